"""People that a fit does not know: without an attribute, of another category, far from zero."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import SkipTestWarning
from sklearn.linear_model import LinearRegression
from sklearn.utils.estimator_checks import check_estimator

from frhsic_core import AdjustedRegressor, ScoreAdjuster, adjust_scores
from frhsic_core.learning import MissingAttributeWarning
from frhsic_core.remedies.attributes import read_attributes
from frhsic_core.remedies.basis import AttributeBasis, standardized
from frhsic_core.remedies.dependence import dependence_of
from frhsic_core.remedies.project import AttributeGuess

GONE = 40


def people(n: int = 600) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    age = rng.integers(20, 70, n).astype(float)
    return age - 45 + 10 * rng.normal(size=n), age


def without_some() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    score, age = people()
    some = age.copy()
    some[:GONE] = np.nan
    return score, age, some


@pytest.mark.parametrize("kind", [np.asarray, pd.Series, list])
def test_people_without_the_attribute_are_refused_by_default(kind: Any) -> None:
    score, _, some = without_some()
    with pytest.raises(ValueError, match=r"sensitive_features has 40 missing .* in 600 rows: drop"):
        adjust_scores(score, sensitive_features=kind(some))


@pytest.mark.parametrize("method", ["rank", "mean"])
def test_people_without_the_attribute_keep_their_scores(method: str) -> None:
    """The others get what they get without these people."""
    score, age, some = without_some()
    with pytest.warns(UserWarning, match=r"40 missing .* in 600 rows: their scores stay") as found:
        new = adjust_scores(score, sensitive_features=some, method=method, missing="leave")
    assert len(found) == 1
    np.testing.assert_array_equal(new[:GONE], score[:GONE])
    alone = adjust_scores(score[GONE:], sensitive_features=age[GONE:], method=method)
    np.testing.assert_allclose(new[GONE:], alone, rtol=1e-12)


def test_people_without_the_attribute_get_the_expected_score() -> None:
    """Close to the mean adjusted score of people with a similar score, and in the order of scores."""
    score, _, some = without_some()
    with pytest.warns(UserWarning, match="they get the average adjusted score"):
        new = adjust_scores(score, sensitive_features=some, missing="expected")
    order = np.argsort(score[:GONE])
    assert (np.diff(new[:GONE][order]) >= 0).all()
    near = [np.argsort(np.abs(score[GONE:] - one))[:60] for one in score[:GONE]]
    expected = [new[GONE:][rows].mean() for rows in near]
    assert np.abs(new[:GONE] - expected).mean() < 0.15 * new.std()
    adjuster = ScoreAdjuster(missing="expected").fit(score[GONE:], sensitive_features=some[GONE:])
    with pytest.warns(UserWarning, match="1 missing or infinite values in 1 rows"):
        one = adjuster.transform(score[:1], sensitive_features=[np.nan])
    np.testing.assert_allclose(one, new[:1])


def test_a_frame_with_words_and_gaps() -> None:
    score, age, some = without_some()
    sex = np.where(np.arange(600) % 2 == 0, "f", "m").astype(object)
    sex[-1] = None
    frame = pd.DataFrame({"age": some, "sex": sex})
    with pytest.warns(UserWarning, match="41 missing or infinite values in 600 rows"):
        new = adjust_scores(score, sensitive_features=frame, missing="leave")
    np.testing.assert_array_equal(new[-1], score[-1])
    known = slice(GONE, 599)
    whole = pd.DataFrame({"age": age[known], "sex": sex[known]})
    alone = adjust_scores(score[known], sensitive_features=whole)
    np.testing.assert_allclose(new[known], alone, rtol=1e-12)


def test_a_category_that_fit_did_not_have_warns() -> None:
    rng = np.random.default_rng(1)
    region = rng.choice(["north", "south"], 300)
    score = (region == "north") + rng.normal(size=300)
    words = (
        r"category 'NORTH' of 'sensitive', which fit did not have \('north', 'south'\).* in 2 of 3"
    )
    adjuster = ScoreAdjuster("mean").fit(score, sensitive_features=region)
    with pytest.warns(UserWarning, match=words):
        new = adjuster.transform([0.0, 0.0, 0.0], sensitive_features=["NORTH", "east", "north"])
    both = adjuster.transform([0.0, 0.0], sensitive_features=["north", "south"])
    share = np.mean(region == "north")
    np.testing.assert_allclose(new[0], share * both[0] + (1 - share) * both[1], atol=1e-12)
    model = AdjustedRegressor(LinearRegression(), cv=2)
    model.fit(score[:, None], score, sensitive_features=region)
    with pytest.warns(UserWarning, match="category 'NORTH'"):
        model.predict(score[:1, None], sensitive_features=["NORTH"])


@pytest.mark.parametrize("method", ["rank", "mean"])
@pytest.mark.parametrize("offset", [2.0**45, -(2.0**45), 1e12])
def test_an_offset_of_the_attribute_changes_nothing(method: str, offset: float) -> None:
    """Ages in whole numbers are exact that far from zero, so every step of the arithmetic is."""
    score, age = people()
    near = adjust_scores(score, sensitive_features=age, method=method)
    far = adjust_scores(score, sensitive_features=age + offset, method=method)
    np.testing.assert_allclose(far, near, rtol=1e-9, atol=1e-9)


def test_standardized_knows_a_constant_by_its_rounding() -> None:
    values = np.column_stack([np.full(50, 0.1), np.arange(50) + 2.0**45, np.zeros(50)])
    mean, spread = standardized(values, constant=3.0)
    np.testing.assert_allclose(spread, [3.0, np.arange(50).std(), 3.0])
    np.testing.assert_allclose(mean, [0.1, 24.5 + 2.0**45, 0.0], rtol=1e-15)


def test_the_basis_has_the_size_that_it_says() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({
        "many": rng.normal(size=90), "two": rng.integers(0, 2, 90) * 1.0,
        "three": rng.integers(0, 3, 90) * 1.0, "word": rng.choice(list("abc"), 90),
    })  # fmt: skip
    s = read_attributes(frame, 90)
    for kind in ("linear", "spline"):
        basis = AttributeBasis(kind).fit(s)
        assert basis.transform(s).shape[1] == basis.size


def test_a_weak_proxy_is_kept() -> None:
    """A guess counts from three standard errors of its correlation on, so from .09 of 1,000."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 1))
    s = 0.2 * X[:, 0] + rng.normal(size=1000)
    guess = AttributeGuess().fit(X, s[:, None])
    correlation = np.corrcoef(AttributeGuess().fit(X, s[:, None])[:, 0], s)[0, 1]
    assert guess.shape[1] == 1
    assert 3.0 < correlation * np.sqrt(1000) < 6.0
    noise = rng.normal(size=(1000, 1))
    assert AttributeGuess().fit(X, noise).shape[1] == 0


def test_the_dependence_on_a_short_attribute() -> None:
    """The unit of S does not matter, a constant attribute adds nothing, and all rows count."""
    rng = np.random.default_rng(0)
    s = rng.uniform(0, 1, (300, 1))
    predicted = s[:, 0] + rng.normal(size=300)
    whole = dependence_of(predicted, s)
    assert whole["dcor"] > 0.1
    for other in (0.001 * s, 1000 * s, np.hstack([s, np.ones((300, 1))])):
        np.testing.assert_allclose(dependence_of(predicted, other)["dcor"], whole["dcor"])


def test_the_adjuster_is_an_estimator() -> None:
    """scikit-learn has no checks for scores in one dimension, and says so."""
    with pytest.warns(SkipTestWarning, match="one_d_array=True, two_d_array=False"):
        check_estimator(ScoreAdjuster())
    score, age = people()
    adjuster = ScoreAdjuster("mean", missing="leave")
    before = score.copy(), age.copy()
    first = adjuster.fit(score, sensitive_features=age).transform(score, sensitive_features=age)
    again = clone(adjuster).fit_transform(score, sensitive_features=age)
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(before, (score, age))
    assert clone(adjuster).get_params() == adjuster.get_params()
    with pytest.raises(ValueError, match="needs S of every score"):
        adjuster.transform(score)
    with pytest.warns(MissingAttributeWarning, match="ScoreAdjuster changes NOTHING"):
        unchanged = ScoreAdjuster().fit(score)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(unchanged.transform(score), score)
