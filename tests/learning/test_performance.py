"""The performance by which λ is chosen, against scikit-learn, brute force and repetition."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.stats
from scipy.special import expit
from sklearn.metrics import r2_score, roc_auc_score

from frhsic_core.learning import FairClassifier, FitWarning
from frhsic_core.learning.performance import judge_classes, judge_numbers


def judged_samples(seed: int, n: int = 200) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return outputs of three models with ties, classes, and weights of which some are zero."""
    rng = np.random.default_rng(seed)
    y = (rng.uniform(size=n) < 0.2).astype(float)
    outputs = np.round(y + rng.normal(size=(3, n)), 1)
    return outputs, y, rng.integers(0, 4, size=n).astype(float)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("weighted", [False, True])
def test_the_auc_is_that_of_scikit_learn(seed: int, weighted: bool) -> None:
    outputs, y, weight = judged_samples(seed)
    if not weighted:
        weight = np.ones(len(y))
    found = judge_classes(outputs, y, weight, first=0).performance
    expected = [roc_auc_score(y, output, sample_weight=weight) for output in outputs]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def wins(output: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return, for each pair of a positive and a negative sample, 1, 0 or (tied) one half."""
    gap = output[y == 1][:, None] - output[y == 0]
    return 0.5 * (np.sign(gap) + 1.0)


def test_the_standard_error_is_that_of_the_pairs() -> None:
    """DeLong's, from the table of all pairs: the spread of its row means and of its column means."""
    outputs, y, _ = judged_samples(0)
    found = judge_classes(outputs, y, np.ones(len(y)), first=1).standard_error
    for i in (0, 2):
        change = wins(outputs[i], y) - wins(outputs[1], y)
        rows, columns = change.mean(1), change.mean(0)
        expected = np.hypot(scipy.stats.sem(rows), scipy.stats.sem(columns))
        assert found[i] == pytest.approx(expected, rel=1e-10)
    assert found[1] == 0.0


def test_the_standard_error_is_the_spread_over_repetitions() -> None:
    """400 samples of 300 people: the spread of the change has a relative error of 1/√800."""
    changes, errors = [], []
    for seed in range(400):
        rng = np.random.default_rng(seed)
        y = (np.arange(300) < 30).astype(float)
        signal = y + rng.normal(size=300)
        outputs = np.stack([signal, 0.5 * signal + rng.normal(size=300)])
        found = judge_classes(outputs, y, np.ones(300), first=0)
        changes.append(np.diff(found.performance)[0])
        errors.append(found.standard_error[1])
    assert np.std(changes) == pytest.approx(np.mean(errors), rel=5 / np.sqrt(800))


def test_r2_is_that_of_scikit_learn_and_its_error_that_of_the_squares() -> None:
    rng = np.random.default_rng(0)
    y = rng.normal(size=150)
    predictions = y + rng.normal(size=(2, 150))
    weight = rng.integers(0, 4, size=150).astype(float)
    found = judge_numbers(predictions, y, weight, first=0)
    expected = [r2_score(y, one, sample_weight=weight) for one in predictions]
    np.testing.assert_allclose(found.performance, expected, rtol=1e-12)
    squares = (predictions - y) ** 2 / y.var()
    same = judge_numbers(predictions, y, np.ones(150), first=0).standard_error
    assert same[1] == pytest.approx(scipy.stats.sem(squares[1] - squares[0]), rel=1e-10)


def test_a_sample_of_weight_two_is_two_samples_for_the_performance() -> None:
    outputs, y, weight = judged_samples(3)
    times = weight.astype(int)
    repeated = judge_classes(
        outputs.repeat(times, axis=1), y.repeat(times), np.ones(times.sum()), first=0
    )
    found = judge_classes(outputs, y, weight, first=0)
    np.testing.assert_allclose(found.performance, repeated.performance, rtol=1e-12)


def test_one_class_cannot_be_judged() -> None:
    outputs, y, weight = judged_samples(0)
    with pytest.raises(ValueError, match="one class only: λ cannot be chosen"):
        judge_classes(outputs, np.zeros_like(y), weight, first=0)
    with pytest.raises(ValueError, match="one class only: λ cannot be chosen"):
        judge_classes(outputs, y, np.where(y == 1, 0.0, weight), first=0)


# Rare outcomes ------------------------------------------------------------------------------------


def rare(n: int, *, intercept: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a table in which few people have y = 1, with a probability that is always small."""
    rng = np.random.default_rng(0)
    s = rng.uniform(20.0, 70.0, size=n)
    X = np.column_stack([(s - 45) / 15 + rng.normal(size=n), rng.normal(size=n)])
    probability = expit(intercept + 0.5 * X[:, 0] + X[:, 1])
    return X, (rng.uniform(size=n) < probability).astype(int), s


def auto(X: np.ndarray, y: np.ndarray, s: np.ndarray, **selection: Any) -> tuple[Any, list[str]]:
    """Fit a classifier that chooses λ, and return it with its warnings."""
    options = {"lams": (0.0, 1.0, 100.0), "n_permutations": 19} | selection
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = FairClassifier("auto", selection=options, random_state=0, device="cpu")
        model.fit(X, y, sensitive_features=s)
    said = [str(each.message) for each in caught if each.category is FitWarning]
    return model, said


def test_a_rare_outcome_is_judged_by_the_order_of_the_probabilities() -> None:
    """4 of 100 have y = 1: with every λ the accuracy is that of the larger class."""
    X, y, s = rare(4000, intercept=-4.0)
    model, said = auto(X, y, s)
    table = model.lambda_choice_.table
    assert 0.7 < table["performance"][0] < 0.9
    assert (table["standard_error"][1:] > 0.005).all()
    assert (model.predict(X) == 0).mean() > 0.99
    assert not any("rarer class" in message for message in said)


def test_few_samples_of_a_class_are_named() -> None:
    _, said = auto(*rare(800, intercept=-4.5))
    assert any("belong to the rarer class, and with fewer than 30" in message for message in said)
