"""Fits that end without an error and are not what was meant: each says so, and says what to do."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd
import pytest

from frhsic_core import gdp
from frhsic_core.learning import FairClassifier, FairEncoder, FitWarning
from frhsic_core.learning.estimators.input import number_of_epochs
from frhsic_core.learning.estimators.warnings import constant_prediction, no_gain

SHORT = {"epochs": 25, "learning_rate": 5e-2, "widths": (8, 2), "random_state": 0, "device": "cpu"}


def people(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the toy data of the chapter on equal opportunity: a skill, a proxy of age, and noise."""
    rng = np.random.default_rng(seed)
    age, skill = rng.uniform(size=n), rng.normal(size=n)
    y = skill + 2.0 * (age - 0.5) + 0.5 * rng.normal(size=n) > 0
    return (
        np.column_stack(
            [skill + 0.3 * rng.normal(size=n), age + 0.15 * rng.normal(size=n), rng.normal(size=n)]
        ),
        y,
        age,
    )


# Steps --------------------------------------------------------------------------------------------


def test_epochs_make_some_hundred_steps() -> None:
    for rows, batch_size in (
        (10, 256),
        (700, 256),
        (1000, 256),
        (5000, 256),
        (30_000, 256),
        (1000, 10),
    ):
        epochs = number_of_epochs("auto", rows=rows, batch_size=batch_size)
        steps = -(-rows // min(rows, batch_size))
        wanted = 400 if rows < 4000 else 600
        assert epochs == 8 or (epochs * steps >= wanted > (epochs - 1) * steps)
        assert epochs >= 8
    assert number_of_epochs("auto", rows=100_000, batch_size=256) == 8
    assert number_of_epochs("auto", rows=5120, batch_size=256, learning_rate=1e-3) == 150
    assert number_of_epochs("auto", rows=5120, batch_size=256, learning_rate=1.0) == 30
    assert number_of_epochs(7, rows=10, batch_size=256) == 7


def test_a_default_fit_on_a_thousand_rows_has_learnt() -> None:
    """With 50 epochs of four steps it was at chance, looked perfectly fair, and said nothing."""
    X, y, s = people(1024, 0)
    X_test, y_test, _ = people(2000, 1)
    model = FairClassifier(random_state=2, device="cpu").fit(X, y, sensitive_features=s)
    assert model.n_epochs_ == 100
    assert model.score(X_test, y_test) > 0.76


# No better than a constant ------------------------------------------------------------------------


def test_no_better_than_a_constant() -> None:
    rng = np.random.default_rng(0)
    y = (rng.uniform(size=1000) < 0.45).astype(float)
    options = {"lam": 10.0, "learning_rate": 1e-3}
    coin, half = (
        rng.normal(size=1000),
        np.where(rng.uniform(size=1000) < 0.3, 2 * y - 1, rng.normal(size=1000)),
    )
    classified = no_gain(coin, y, task="classification", **options)
    assert re.search(r"λ = 10\) .*accuracy 0\.\d+.* 0\.5.*lower lam", classified)
    assert no_gain(half, y, task="classification", **options) is None
    target = rng.normal(size=1000)
    assert re.search(r"R² -?0\.0", no_gain(0.001 * target, target, task="regression", **options))
    assert no_gain(0.2 * target, target, task="regression", **options) is None
    assert "a smaller learning_rate" in no_gain(
        coin, y, task="classification", lam=10.0, learning_rate=100.0
    )
    one_class, tried = coin - 9.0, np.stack([coin - 8.0, coin + 9.0])
    said = constant_prediction(one_class, classes=True, tried=tried, **options)
    assert re.search(
        r"one class .* from 0\.00 to 0\.0.*every other λ.*a lower lam.*rare class", said
    )
    assert "other λ" not in constant_prediction(
        one_class, classes=True, tried=np.stack([coin, coin - 8]), **options
    )
    assert constant_prediction(coin, classes=True, tried=tried, **options) is None
    assert constant_prediction(one_class, classes=False, tried=None, **options) is None


def test_a_penalty_that_outweighs_the_task_is_told() -> None:
    """The target is the attribute itself, so that a large λ leaves nothing to predict."""
    X, _, s = people(400, 0)
    longer = SHORT | {"epochs": 150, "learning_rate": 1e-2, "widths": (16, 4)}
    with pytest.warns(FitWarning, match=r"λ = 1000\)"):
        model = FairClassifier(1000.0, **longer).fit(X, s > np.median(s), sensitive_features=s)
    assert (
        len(np.unique(model.predict(X))) == 2
    )  # both classes are predicted: no other warning would tell


def test_a_training_that_diverged_keeps_the_old_model() -> None:
    X, y, s = people(200, 0)
    model = FairClassifier(**SHORT).fit(X, y, sensitive_features=s)
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match=r"diverged to NaN at learning_rate=1e\+30"):
        model.set_params(learning_rate=1e30).fit(X * 100, y, sensitive_features=s)
    np.testing.assert_array_equal(model.predict_proba(X), before)


def test_a_small_batch_is_told() -> None:
    X, y, s = people(200, 0)
    with pytest.warns(FitWarning, match=r"batch_size=8 .*about 8 samples"):
        FairClassifier(**SHORT | {"batch_size": 8, "epochs": 2, "learning_rate": 2e-2}).fit(
            X, y, sensitive_features=s
        )
    rare = np.argsort(np.argsort(X[:, 0])) >= 190  # 5 % of the rows count
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        FairClassifier(penalty_settings={"condition": "positives"}, **SHORT).fit(
            X, rare, sensitive_features=s
        )
        FairClassifier(0.0, **SHORT | {"batch_size": 8}).fit(X, y, sensitive_features=s)
    assert sum("batch_size" in str(w.message) for w in told) == 1


# Equal opportunity --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [FairClassifier, FairEncoder])
def test_the_favourable_class(kind: type) -> None:
    """Text is sorted, and "approved" comes before "declined": the class to protect must be named, or be told."""
    X, y, s = people(300, 0)
    words = pd.Series(np.where(y, "approved", "declined"))
    options = SHORT | {"penalty_settings": {"condition": "positives"}, "lam": 1.0}
    numbers = kind(**options).fit(X, y.astype(int), sensitive_features=s)  # 1 says it
    assert numbers.positive_class_ == 1
    named = kind(positive_class="approved", **options).fit(X, words, sensitive_features=s)
    ordered = words.astype(pd.CategoricalDtype(["declined", "approved"], ordered=True))
    by_order = kind(**options).fit(X, ordered, sensitive_features=s)
    for model in (named, by_order):
        assert model.positive_class_ == "approved"
        np.testing.assert_array_equal(model.transform(X), numbers.transform(X))
    with pytest.warns(FitWarning, match=r"'declined' was taken .*positive_class='approved'"):
        other = kind(**options).fit(X, words, sensitive_features=s)
    assert other.positive_class_ == "declined"
    assert not np.allclose(other.transform(X), numbers.transform(X))
    kind(**SHORT).fit(X, words, sensitive_features=s)  # without the condition nothing hangs on it


def test_classes_and_columns_stay_sorted() -> None:
    """scikit-learn's order whatever the favourable class: classes_[1] is the second column and the positive logits."""
    X, y, s = people(300, 0)
    words = np.where(y, "approved", "declined")
    model = FairClassifier(positive_class="approved", **SHORT).fit(X, words, sensitive_features=s)
    assert model.classes_.tolist() == ["approved", "declined"]
    assert model.score(X, words) > 0.7
    assert ((model.decision_function(X) > 0) == (model.predict(X) == "declined")).all()
    numbers = FairClassifier(**SHORT).fit(X, y, sensitive_features=s)
    np.testing.assert_allclose(model.predict_proba(X)[:, 0], numbers.predict_proba(X)[:, 1])
    assert gdp(model.predict_proba(X)[:, 0], s, mask=words == "approved") >= 0
    with pytest.raises(ValueError, match=r"positive_class is 'approved'.* 300 values"):
        FairEncoder(positive_class="approved", **SHORT).fit(X, X[:, 0], sensitive_features=s)


# Choosing λ ---------------------------------------------------------------------------------------


def test_an_unmet_rule_is_told() -> None:
    X, y, s = people(400, 0)
    selection = {
        "rule": "independence",
        "lams": [0.0, 0.01],
        "validation_fraction": 0.5,
        "n_permutations": 39,
    }
    with pytest.warns(FitWarning, match=r"λ = 0\.01 .* p > 0\.05"):
        model = FairClassifier("auto", selection=selection, **SHORT).fit(X, y, sensitive_features=s)
    assert not model.lambda_choice_.satisfied
