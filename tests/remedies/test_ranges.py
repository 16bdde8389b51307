"""Adjusted scores keep the range and the mean of the scores: no negative premium, no probability of 1.1."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, PoissonRegressor

from frhsic_core import ScoreAdjuster, adjust_scores, gdp
from frhsic_core.remedies import AdjustedRegressor
from frhsic_core.remedies.links import IDENTITY, LOG, LOGIT, flat_offset
from frhsic_core.remedies.ranges import ScoreRange

METHODS = ("mean", "rank")


def premiums(n: int = 3000) -> tuple[np.ndarray, np.ndarray]:
    """Return positive premiums that fall with age, with a long tail, and the ages."""
    rng = np.random.default_rng(0)
    age = rng.uniform(18, 80, n)
    return np.exp(6.5 - 0.03 * age + 0.8 * rng.normal(size=n)), age


@pytest.mark.parametrize("method", METHODS)
def test_premiums_stay_positive_and_their_total_stays(method: str) -> None:
    score, age = premiums()
    plain = adjust_scores(score, sensitive_features=age, method=method, keep_range=False)
    assert plain.min() < 0
    with warnings.catch_warnings(action="ignore"):
        kept = adjust_scores(score, sensitive_features=age, method=method)
    assert score.min() <= kept.min()
    assert kept.max() <= score.max()
    np.testing.assert_allclose(kept.mean(), score.mean(), rtol=1e-3 if method == "rank" else 1e-9)
    assert gdp(kept, age) < 0.2 * gdp(score, age)


@pytest.mark.parametrize("unit", [1e-8, 1e-20, 1e-140])
@pytest.mark.parametrize("method", METHODS)
def test_rare_events_keep_their_differences(method: str, unit: float) -> None:
    """Logits end at 15, so scores below 3e-7 would all become one number, in silence."""
    score, age = premiums(300)
    rare = score / score.max() * unit
    with pytest.raises(ValueError, match="are so close to 0 or 1 that logits lose their"):
        adjust_scores(rare, sensitive_features=age, method=method)
    kept = adjust_scores(rare, sensitive_features=age, method=method, link="log")
    large = adjust_scores(1e3 * rare / unit, sensitive_features=age, method=method, link="log")
    np.testing.assert_allclose(kept / unit, large / 1e3, rtol=1e-6)


@pytest.mark.parametrize("low", [0.0, 1e-6, 0.01])
def test_usual_probabilities_have_logits(low: float) -> None:
    score, age = premiums(300)
    shares = np.clip(score / score.max(), low, 1.0)
    adjusted = adjust_scores(shares, sensitive_features=age)
    np.testing.assert_allclose(adjusted.mean(), shares.mean(), rtol=1e-6)


def test_what_was_moved_is_counted() -> None:
    score, age = premiums()
    moved = adjust_scores(score, sensitive_features=age, method="mean", keep_range=False)
    with pytest.warns(UserWarning, match=r"adjusted scores would lie outside of") as found:
        adjust_scores(score, sensitive_features=age, method="mean")
    assert len(found) == 1
    text = str(found[0].message)
    count = int(text.split(" of ")[0].replace(",", ""))
    outside = (moved < score.min()) | (moved > score.max())
    assert abs(count - outside.sum()) < 0.1 * outside.sum()
    assert "which keeps their mean" in text


def test_scores_of_both_signs_have_no_range() -> None:
    rng = np.random.default_rng(0)
    s = rng.normal(size=500)
    score = s + rng.normal(size=500)
    kept = adjust_scores(score, sensitive_features=s, method="mean")
    free = adjust_scores(score, sensitive_features=s, method="mean", keep_range=False)
    np.testing.assert_array_equal(kept, free)


def test_a_score_beyond_the_range_in_fit_keeps_its_place() -> None:
    """Nobody is moved farther out than she was, and nobody overtakes a person of the same age."""
    score, age = premiums()
    adjuster = ScoreAdjuster("mean").fit(score, sensitive_features=age)
    new = np.linspace(0.0, 2.0 * score.max(), 400)
    for year in (20.0, 50.0, 79.0):
        with warnings.catch_warnings(action="ignore"):
            adjusted = adjuster.transform(new, sensitive_features=np.full(400, year))
        assert (np.diff(adjusted) >= 0).all()
        assert (adjusted >= np.minimum(new, score.min())).all()
        assert (adjusted <= np.maximum(new, score.max())).all()


@pytest.mark.parametrize("method", METHODS)
def test_the_log_link_multiplies(method: str) -> None:
    """Two groups: with the mean, every premium of a group is multiplied by one number."""
    score, age = premiums()
    old = np.where(age > 50, "old", "young")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        new = adjust_scores(score, sensitive_features=old, method=method, link="log")
    assert new.min() > 0
    np.testing.assert_allclose(new.mean(), score.mean(), rtol=1e-9)
    if method == "mean":
        for group in ("old", "young"):
            factor = score.mean() / score[old == group].mean()
            np.testing.assert_allclose(new[old == group], factor * score[old == group], rtol=1e-6)


def test_links_that_scores_cannot_have() -> None:
    score, age = premiums()
    with pytest.raises(ValueError, match="link='log' needs positive scores"):
        adjust_scores(score - score.min(), sensitive_features=age, link="log")
    with pytest.raises(ValueError, match="link='logit' needs scores from 0 to 1"):
        adjust_scores(score, sensitive_features=age, link="logit")


@pytest.mark.parametrize("link", [IDENTITY, LOG, LOGIT], ids=lambda link: link.name)
def test_a_flat_offset_solves_its_equations(link: Any) -> None:
    """With weights, as those of rows that are repeated."""
    rng = np.random.default_rng(1)
    s = rng.uniform(-1, 1, 300)
    eta = s + 0.5 * rng.normal(size=300)
    phi = np.column_stack([np.ones(300), s, s**2])
    weight = rng.integers(1, 4, 300)
    beta = flat_offset(eta, phi, link=link, weight=weight.astype(float))
    again = flat_offset(np.repeat(eta, weight), np.repeat(phi, weight, axis=0), link=link)
    np.testing.assert_allclose(beta, again, atol=1e-7)
    moved = link.inverse(eta + phi @ beta)
    mean = np.average(link.inverse(eta), weights=weight)
    np.testing.assert_allclose(phi.T @ (weight * (moved - mean)), 0.0, atol=1e-5)
    np.testing.assert_allclose(link.inverse(link.of(link.inverse(eta))), link.inverse(eta))


def test_the_constant_solves_its_equation() -> None:
    """A brute-force search over constants finds the same mean."""
    rng = np.random.default_rng(2)
    score = rng.gamma(1.0, 10.0, 400)
    adjusted = score + 8.0 * rng.normal(size=400)
    found = ScoreRange().fit(score, adjusted)
    low, high = found.limits
    tried = np.linspace(-20, 20, 40_001)
    means = np.array([np.clip(adjusted + shift, low, high).mean() for shift in tried])
    best = tried[np.abs(means - score.mean()).argmin()]
    assert abs(found.shift - best) <= tried[1] - tried[0]


@pytest.mark.parametrize("method", ["mean", "rank", "project"])
@pytest.mark.parametrize("model", ["boosting", "linear"])
def test_predicted_premiums_stay_positive(method: str, model: str) -> None:
    score, age = premiums(1500)
    rng = np.random.default_rng(3)
    y = rng.gamma(2.0, score / 2.0)
    X = np.column_stack([np.log(score), age + 3 * rng.normal(size=1500), rng.normal(size=1500)])
    kinds = {"boosting": HistGradientBoostingRegressor(max_iter=30), "linear": LinearRegression()}
    wrapped = AdjustedRegressor(kinds[model], method=method, cv=3)
    wrapped.fit(X, y, sensitive_features=age)
    s = None if method == "project" else age
    raw = wrapped.estimator_.predict(X)
    with warnings.catch_warnings(action="ignore"):
        new = wrapped.predict(X, sensitive_features=s)
    # A linear model of premiums has negative predictions of its own: they become no worse.
    assert (new >= np.minimum(raw, 0.0)).all()
    wrapped.set_params(keep_range=False).fit(X, y, sensitive_features=age)
    free = wrapped.predict(X, sensitive_features=s)
    if model == "boosting" and method != "rank":
        assert (free < 0).any()


def test_shares_stay_between_zero_and_one() -> None:
    """A regressor of 0 and 1, whose predictions are probabilities."""
    rng = np.random.default_rng(4)
    s = rng.uniform(-1, 1, 1500)
    X = np.column_stack([s + 0.3 * rng.normal(size=1500), rng.normal(size=1500)])
    y = (X[:, 0] + 0.4 * rng.normal(size=1500) > 0).astype(float)
    model = AdjustedRegressor(HistGradientBoostingRegressor(max_iter=40), method="project", cv=3)
    model.fit(X, y, sensitive_features=s)
    raw = model.estimator_.predict(X)
    with warnings.catch_warnings(action="ignore"):
        new = model.predict(X)
    assert (new >= np.minimum(raw, 0.0)).all()
    assert (new <= np.maximum(raw, 1.0)).all()


def test_a_log_link_of_a_model_needs_positive_predictions() -> None:
    score, age = premiums(600)
    X = np.log(score)[:, None]
    options: dict[str, Any] = {"link": "log", "cv": 2}
    model = AdjustedRegressor(PoissonRegressor(), **options).fit(X, score, sensitive_features=age)
    new = model.predict(X, sensitive_features=age)
    assert new.min() > 0
    assert gdp(new, age) < 0.2 * gdp(score, age)
    with pytest.raises(ValueError, match="link='log' needs positive predictions"):
        AdjustedRegressor(LinearRegression(), **options).fit(X, score - 900, sensitive_features=age)


@pytest.mark.parametrize("method", METHODS)
def test_a_weight_of_two_is_a_row_twice(method: str) -> None:
    score, age = premiums(400)
    weight = np.random.default_rng(5).integers(1, 3, 400)
    options: dict[str, Any] = {"link": "log"} if method == "mean" else {}
    once = ScoreAdjuster(method, **options)
    once.fit(score, sensitive_features=age.round(), sample_weight=weight)
    twice = ScoreAdjuster(method, **options)
    twice.fit(np.repeat(score, weight), sensitive_features=np.repeat(age.round(), weight))
    with warnings.catch_warnings(action="ignore"):
        first = once.transform(score, sensitive_features=age.round())
        other = twice.transform(score, sensitive_features=age.round())
    if method == "mean":
        # The knots of the splines are quantiles of the rows.
        assert np.abs(first / other - 1).max() < 0.1
        total = np.average(first, weights=weight)
        np.testing.assert_allclose(total, np.average(score, weights=weight), rtol=1e-7)
    else:
        assert np.corrcoef(first, other)[0, 1] > 0.99
    with pytest.raises(ValueError, match="sample_weight needs weights"):
        once.fit(score, sensitive_features=age, sample_weight=-weight)
    with pytest.raises(ValueError, match="sample_weight has 399 rows"):
        once.fit(score, sensitive_features=age, sample_weight=weight[1:])
