"""A fit that is interrupted or fails leaves the model that was there before, or none."""

from __future__ import annotations

from pkgutil import resolve_name
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from frhsic_core.learning import FairClassifier, FairEncoder, FairRegressor
from frhsic_core.learning.step import Step

pytestmark = pytest.mark.filterwarnings("ignore::frhsic_core.learning.FitWarning")
QUICK = {"widths": (4, 2), "epochs": 3, "batch_size": 32, "random_state": 0, "device": "cpu"}
MODELS = {
    "classifier": FairClassifier(**QUICK),
    "classifier, auto": FairClassifier("auto", selection={"n_permutations": 19}, **QUICK),
    "regressor": FairRegressor(**QUICK),
    "encoder": FairEncoder(**QUICK),
}
# Where the interrupt comes: the function that is called next, and at which of its calls.
BASE = "frhsic_core.learning.estimators.base"
MOMENTS = {
    "after the names are checked": (f"{BASE}.FairModel._fit", 1),
    "before the scaling": (f"{BASE}.fit_scaling", 1),
    "in the first step": ("frhsic_core.learning.step.Step.__call__", 1),
    "in a later step": ("frhsic_core.learning.step.Step.__call__", 7),
    "when the networks are kept": (f"{BASE}.FairModel._keep", 1),
    "when the model is judged": (f"{BASE}.undertrained", 1),
}


def table(seed: int, *, labels: tuple[str, str]) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Return X, whose columns have names of their own, two classes, and an attribute."""
    rng = np.random.default_rng(seed)
    s = rng.uniform(20, 70, size=120)
    X = pd.DataFrame({f"a{seed}": s / 25 + rng.normal(size=120), f"b{seed}": rng.normal(size=120)})
    return X, np.where(X.sum(axis=1) > 2, *labels), s


def target_of(model: Any, y: np.ndarray) -> np.ndarray:
    """Return the classes, or for a regressor numbers whose scale depends on the classes."""
    if not isinstance(model, FairRegressor):
        return y
    return np.char.str_len(y) * np.linspace(1.0, 1000.0, len(y))


def interrupt(monkeypatch: pytest.MonkeyPatch, where: str, call: int) -> None:
    """Raise KeyboardInterrupt at the given call of a function."""
    module, _, name = where.rpartition(".")
    owner = resolve_name(module)
    real = getattr(owner, name)
    calls = 0

    def interrupted(*args: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == call:
            raise KeyboardInterrupt
        return real(*args, **options)

    monkeypatch.setattr(owner, name, interrupted)


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("kind", MODELS)
def test_an_interrupted_refit_leaves_the_old_model(
    kind: str, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = MODELS[kind].__sklearn_clone__()
    X, y, s = table(0, labels=("no", "yes"))
    other, z, t = table(1, labels=("A", "BBBB"))
    model.fit(X, target_of(model, y), sensitive_features=s)
    before = dict(vars(model))
    answer = model.transform(X)
    interrupt(monkeypatch, *MOMENTS[moment])
    with pytest.raises(KeyboardInterrupt):
        model.fit(other, target_of(model, z), sensitive_features=t)
    assert vars(model).keys() == before.keys()
    assert all(value is before[name] for name, value in vars(model).items())
    np.testing.assert_array_equal(model.transform(X), answer)
    with pytest.raises(ValueError, match="feature names"):
        model.transform(other)


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("kind", MODELS)
def test_an_interrupted_first_fit_leaves_no_model(
    kind: str, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = MODELS[kind].__sklearn_clone__()
    X, y, s = table(0, labels=("no", "yes"))
    interrupt(monkeypatch, *MOMENTS[moment])
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, target_of(model, y), sensitive_features=s)
    assert vars(model) == model.get_params(deep=False)
    for method in {"predict", "predict_proba", "transform"} & set(dir(model)):
        with pytest.raises(NotFittedError):
            getattr(model, method)(X)


def test_a_failed_refit_leaves_the_old_model() -> None:
    """An error in the data, and a training that diverges."""
    model = FairClassifier(**QUICK)
    X, y, s = table(0, labels=("no", "yes"))
    model.fit(X, y, sensitive_features=s)
    answer = model.predict_proba(X)
    other, z, t = table(1, labels=("A", "BBBB"))
    with pytest.raises(ValueError, match="constant"):
        model.fit(other, z, sensitive_features=np.ones(120))
    model.set_params(learning_rate=1e30)
    with pytest.raises(ValueError, match="diverged"):
        model.fit(other, z, sensitive_features=t)
    assert model.classes_.tolist() == ["no", "yes"]
    np.testing.assert_array_equal(model.predict_proba(X), answer)


def test_the_training_that_is_interrupted_is_real(monkeypatch: pytest.MonkeyPatch) -> None:
    """The steps above exist: 3 epochs of 4 mini-batches, and more where λ is chosen."""
    steps = []
    real = Step.__call__

    def counted(self: Step, *args: Any, **options: Any) -> None:
        steps.append(1)
        real(self, *args, **options)

    monkeypatch.setattr(Step, "__call__", counted)
    X, y, s = table(0, labels=("no", "yes"))
    FairClassifier(**QUICK).fit(X, y, sensitive_features=s)
    assert len(steps) == 12
