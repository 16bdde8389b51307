"""Nothing in learning draws from, or sets, the global generators of torch, NumPy and Python."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from samples import classified

from frhsic_core.learning import (
    METHODS,
    FairClassifier,
    FairEncoder,
    FairRegressor,
    select_lambda,
)

pytestmark = pytest.mark.filterwarnings("ignore::frhsic_core.learning.FitWarning")
QUICK = {"epochs": 1, "widths": (4, 2), "batch_size": 64}
SAMPLE = tuple(part.numpy() for part in classified(0, 160, d=3))


def states() -> list[Any]:
    _, keys, *position = np.random.get_state()  # noqa: NPY002
    found: list[Any] = [torch.get_rng_state().tolist(), random.getstate(), keys.tolist(), position]
    if torch.cuda.is_available():
        found.extend(state.tolist() for state in torch.cuda.get_rng_state_all())
    return found


def assert_untouched(action: Callable[[], Any]) -> Any:
    before = states()
    result = action()
    assert states() == before
    return result


def test_the_check_can_fail() -> None:
    for draw in (
        lambda: torch.rand(1),
        lambda: torch.nn.Linear(2, 2),
        random.random,
        lambda: np.random.rand(),  # noqa: NPY002
    ):
        with pytest.raises(AssertionError):
            assert_untouched(draw)


# FREM has a fixed bandwidth, and the weights are random.
@pytest.mark.filterwarnings("ignore::frhsic_core.learning.EscapeWarning")
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("estimator", [FairClassifier, FairRegressor])
def test_every_method_fits(estimator: type, method: str, device: str) -> None:
    x, y, s = SAMPLE
    model = estimator(method=method, device=device, **QUICK)
    target = y if estimator is FairClassifier else x[:, 1]
    assert_untouched(lambda: model.fit(x, target, sensitive_features=s))
    assert np.isfinite(assert_untouched(lambda: model.transform(x))).all()


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
@pytest.mark.parametrize("estimator", [FairClassifier, FairRegressor, FairEncoder])
@pytest.mark.parametrize("seed", [0, None])
def test_estimators(estimator: type, seed: int | None, device: str) -> None:
    x, y, s = SAMPLE
    model = estimator(1.0, random_state=seed, device=device, **QUICK)
    assert_untouched(lambda: model.fit(x, y, sensitive_features=s))
    assert_untouched(lambda: model.transform(x))


def test_a_fit_does_not_load_the_compiler_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch._dynamo", None)  # an import raises an error
    x, y, s = SAMPLE
    FairClassifier(device="cpu", **QUICK).fit(x, y, sensitive_features=s)


def test_without_a_seed_every_fit_is_new() -> None:
    x, y, s = SAMPLE
    seeds = {
        FairClassifier(device="cpu", **QUICK).fit(x, y, sensitive_features=s).seed_
        for _ in range(3)
    }
    assert len(seeds) == 3
    state = np.random.RandomState(3)
    model = FairClassifier(device="cpu", random_state=np.random.RandomState(3), **QUICK).fit(
        x, y, sensitive_features=s
    )
    assert model.seed_ == state.randint(2**31 - 1)


@pytest.mark.filterwarnings("ignore::UserWarning")  # too short a training chooses no penalty
def test_the_choice_of_lambda_and_the_residuals() -> None:
    x, y, s = SAMPLE
    options = {"lams": [0.0, 1.0], "n_permutations": 9, "device": "cpu", **QUICK}
    assert_untouched(lambda: select_lambda(x, y, s, **options))
    auto = FairClassifier(
        "auto", selection={"lams": [0.0, 1.0], "n_permutations": 9}, device="cpu", **QUICK
    )
    assert_untouched(lambda: auto.fit(x, y, sensitive_features=s))
