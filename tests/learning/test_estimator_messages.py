"""What a practitioner gets wrong first, and what she is told."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from frhsic_core import FairClassifier, audit_representation
from frhsic_core.learning.fair_model import UnpenalisedWarning


def rows(n: int = 200) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x, s = rng.normal(size=(n, 3)), rng.uniform(size=n)
    return x, (x[:, 0] + s > 0.5).astype(int), s


def fit(**parameters: object) -> FairClassifier:
    x, y, s = rows()
    settings = {"epochs": 2, "widths": (8, 2), "random_state": 0, "device": "cpu", **parameters}
    return FairClassifier(**settings).fit(x, y, sensitive_features=s)


def test_two_columns_of_probabilities() -> None:
    x, _, s = rows()
    with pytest.raises(ValueError, match=r"predictions has shape \(200, 2\).*predict_proba\(X\)\[:, 1\]"):
        audit_representation(x, s, predictions=np.zeros((200, 2)))


def test_a_file_that_is_no_model_gives_no_advice_to_unpickle(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"give a file that save\(\) wrote") as caught:
        FairClassifier.load(path)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_parameters() -> None:
    with pytest.raises(ValueError, match="lam is None: give a number"):
        fit(lam=None)
    with pytest.raises(ValueError, match=r"selection has no \['lambdas'\]: choose from lams"):
        fit(lam="auto", selection={"lambdas": [0.0, 1.0]})


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_no_cuda_device() -> None:
    with pytest.raises(ValueError, match="there is no CUDA device: use 'cpu' or 'auto'"):
        fit(device="cuda")


def test_auto_says_when_it_chose_no_penalty() -> None:
    with pytest.warns(UnpenalisedWarning, match="chose λ = 0, no penalty"):
        model = fit(lam="auto", selection={"lams": [0.0], "n_permutations": 19})
    assert model.lam_ == 0.0


def test_the_chosen_lambda_is_the_number_of_the_grid() -> None:
    model = fit(lam="auto", selection={"lams": [0.1], "n_permutations": 19})
    assert model.lam_ == 0.1
