"""Adjusted scores, and scikit-learn's checks of all remedies: brute force, validity of probabilities, bad input."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import cross_val_predict
from sklearn.utils.estimator_checks import parametrize_with_checks

from frhsic_core import ScoreAdjuster, adjust_scores, distance_correlation
from frhsic_core.remedies import (
    AdjustedClassifier,
    AdjustedRegressor,
    AttributeEraser,
    KernelEraser,
    RemediedClassifier,
    RemediedModel,
    RemediedRegressor,
)
from frhsic_core.remedies.attributes import read_attributes
from frhsic_core.remedies.basis import AttributeBasis
from frhsic_core.remedies.project import AttributeGuess
from frhsic_core.remedies.rank_adjustment import RankAdjustment
from frhsic_core.remedies.ranks import ConditionalRanks


@pytest.fixture(scope="module")
def sample() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    age = rng.uniform(-1, 1, 1200)
    X = rng.normal(size=(1200, 3))
    X[:, 0] += np.sin(3 * age)
    X[:, 1] *= 1.5 + age  # the spread depends on age, the mean does not
    return X, X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=1200), age


def not_for_raw_tables(estimator: Any) -> dict[str, str]:
    """Return the checks that an estimator of raw tables need not pass."""
    if isinstance(estimator, RemediedModel):
        return {"check_dtype_object": "Words in an array of objects are categories."}
    return {}


@pytest.mark.filterwarnings("ignore::frhsic_core.learning.MissingAttributeWarning")
@parametrize_with_checks(
    [
        AdjustedClassifier(LogisticRegression()),
        AdjustedRegressor(Ridge()),
        AttributeEraser(),
        KernelEraser(),
        RemediedClassifier(),
        RemediedRegressor(),
    ],
    expected_failed_checks=not_for_raw_tables,
)
def test_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


def test_mean_subtracts_the_out_of_fold_regression_on_the_basis(sample: Any) -> None:
    X, y, age = sample
    frame = read_attributes(age, len(X))
    phi = AttributeBasis().fit(frame).transform(frame)
    shift = (
        LinearRegression().fit(phi, cross_val_predict(LinearRegression(), X, y, cv=4)).predict(phi)
    )
    model = AdjustedRegressor(LinearRegression(), cv=4).fit(X, y, sensitive_features=age)
    expected = LinearRegression().fit(X, y).predict(X) - (shift - shift.mean())
    np.testing.assert_allclose(model.predict(X, sensitive_features=age), expected, rtol=1e-8)


def test_rank_maps_groups_to_the_barycenter() -> None:
    """Two categories: the barycenter of two Gaussians is the Gaussian with the mean of means and of deviations."""
    rng = np.random.default_rng(0)
    group = np.repeat(["a", "b"], 4000)
    score = np.where(group == "a", rng.normal(1.0, 1.0, 8000), rng.normal(-1.0, 3.0, 8000))
    order = rng.permutation(8000)
    frame = read_attributes(group[order], 8000)
    adjustment = RankAdjustment(keep_range=False).fit(score[order], frame)
    mapped = adjustment(score[order], frame)
    for name in ("a", "b"):
        part = mapped[group[order] == name]
        assert abs(part.mean()) < 0.1
        assert abs(part.std() - 2.0) < 0.15
        # The map is monotone within a group: nobody overtakes anybody.
        own = score[order][group[order] == name]
        assert (np.diff(part[np.argsort(own)]) >= 0).all()


@pytest.mark.parametrize("method", ["mean", "rank"])
@pytest.mark.parametrize("attribute", ["age", "mixed"])
def test_probabilities_are_valid_and_depend_less(sample: Any, method: str, attribute: str) -> None:
    X, y, age = sample
    label = np.where(y + 2 * age > 0, "yes", "no")
    s: Any = age
    if attribute == "mixed":
        s = pd.DataFrame({"age": age, "sex": np.where(X[:, 2] > 0, "f", "m")})
    X = np.column_stack([X, age])  # the model may use S
    model = AdjustedClassifier(LogisticRegression(), method=method).fit(
        X, label, sensitive_features=s
    )
    p = model.predict_proba(X, sensitive_features=s)
    plain = model.estimator_.predict_proba(X)[:, 1]
    assert ((p > 0) & (p < 1)).all()
    np.testing.assert_allclose(p.sum(1), 1.0)
    assert abs(p[:, 1].mean() - plain.mean()) < 0.02  # as many people as before
    after, before = (float(distance_correlation(v, age)) for v in (p[:, 1], plain))
    assert after < 0.35 * before
    assert set(model.predict(X, sensitive_features=s)) == {"yes", "no"}
    assert model.score(X, label, sensitive_features=s) > 0.6


def test_project_removes_the_least() -> None:
    """Gaussian X and S: g(x) is linear, and the projection is f − Cov(f, g)/Var(g)·g."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 2))
    s = X[:, 0] + 0.5 * rng.normal(size=1500)
    y = X @ [1.0, 1.0]
    model = AdjustedRegressor(LinearRegression(), method="project").fit(X, y, sensitive_features=s)
    assert np.sqrt(np.mean((model.predict(X) - X[:, 1]) ** 2)) < 0.2
    model.fit(X, y, sensitive_features=rng.normal(size=1500))
    np.testing.assert_allclose(model.predict(X), y, atol=1e-8)  # independent: nothing to remove
    # Two columns that split the samples alike tie. Rounding, which differs between processors, must not decide.
    alike, phi = np.column_stack([X, X > 0, X <= 0]), np.column_stack([s, s**2, s**3])
    first, other = (
        AttributeGuess().fit(alike, phi * (1 + c * rng.normal(size=phi.shape)))
        for c in (0.0, 1e-15)
    )
    np.testing.assert_allclose(
        first, other, atol=1e-4
    )  # a target can move by one step of the grid, 1e-6


# Scores and attributes alone ------------------------------------------------------------------------------------------


def scores(n: int = 1500) -> tuple[np.ndarray, pd.DataFrame]:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {"age": rng.integers(20, 70, n).astype(float), "sex": rng.choice(["f", "m"], n)}
    )
    logit = (
        (frame["age"] - 45) / 15
        + (frame["sex"] == "f")
        + rng.normal(size=n) * (0.4 + frame["age"] / 60)
    )
    return expit(logit.to_numpy()), frame


def test_ranks_are_those_of_weighted_counts() -> None:
    """One by one: the weighted mid-rank among all samples, and the mean of weighted quantiles at that rank."""
    rng = np.random.default_rng(0)
    s = rng.choice([-1.0, -0.3, 0.2, 0.9, 1.7], 300)
    r = np.round(rng.normal(size=300) * (2 + s), 1)
    frame = read_attributes(s, 300)
    found = ConditionalRanks().fit(r, frame, AttributeBasis().fit(frame))
    width = 1.06 * 300**-0.2 * s.std()
    # Its own grid moves every value by at most a sixteenth of the bandwidth.
    s = np.rint((s - s.min()) / (width / 8)) * width / 8
    levels = np.unique(r)

    def ranks(at: float) -> np.ndarray:
        weight = np.exp(-0.5 * ((s - at) / width) ** 2)
        return np.array(
            [(weight[r < v].sum() + 0.5 * weight[r == v].sum()) / weight.sum() for v in levels]
        )

    shares = np.linspace(0, 1, 401)
    quantiles = np.mean([np.interp(shares, ranks(at), levels) for at in s], axis=0)
    expected = [
        np.interp(ranks(at)[levels == value][0], shares, quantiles)
        for at, value in zip(s, r, strict=True)
    ]
    np.testing.assert_allclose(found(r, frame), expected, atol=1e-10)


@pytest.mark.parametrize("method", ["rank", "mean"])
def test_scores_alone_are_what_the_wrapper_does(method: str) -> None:
    """A model that returns its only column, fitted before: both ways give the same numbers."""

    class PassThrough(ClassifierMixin, BaseEstimator):
        def fit(self, X: Any, y: Any) -> Any:
            self.classes_ = np.array([0, 1])
            return self

        def predict_proba(self, X: np.ndarray) -> np.ndarray:
            return np.hstack([1 - np.asarray(X), np.asarray(X)])

    p, frame = scores()
    wrapped = AdjustedClassifier(PassThrough().fit(None, None), method=method, cv="prefit")
    wrapped.fit(p[:, None], p > 0.5, sensitive_features=frame)
    expected = wrapped.predict_proba(p[:, None], sensitive_features=frame)[:, 1]
    np.testing.assert_array_equal(
        adjust_scores(p, sensitive_features=frame, method=method), expected
    )


@pytest.mark.filterwarnings("ignore:1 of 1,500 adjusted scores")
@pytest.mark.parametrize("unit", [1.0, 600.0])
def test_people_of_the_same_age_keep_their_order(unit: float) -> None:
    p, frame = scores()
    new = adjust_scores(unit * p, sensitive_features=frame)
    for rows in frame.groupby(["age", "sex"]).indices.values():
        assert (np.diff(new[rows][np.argsort(p[rows], kind="stable")]) >= 0).all()
    assert float(distance_correlation(new, frame["age"])) < 0.2 * float(
        distance_correlation(p, frame["age"])
    )
    assert abs(new.mean() - unit * p.mean()) < 0.01 * unit
    assert new.min() >= unit * p.min() * (unit > 1)
    assert new.max() <= unit * max(p.max(), 1.0)


@pytest.mark.parametrize("method", ["rank", "mean"])
def test_a_saved_adjustment_gives_the_same_scores_one_by_one(tmp_path: Path, method: str) -> None:
    p, frame = scores()
    adjuster = ScoreAdjuster(method).fit(p[:1000], sensitive_features=frame[:1000])
    expected = adjuster.transform(p[1000:], sensitive_features=frame[1000:])
    adjuster.save(tmp_path / "age.adjustment")
    loaded = ScoreAdjuster.load(tmp_path / "age.adjustment")
    assert loaded.get_params() == adjuster.get_params()
    single = [
        loaded.transform(p[i : i + 1], sensitive_features=frame.iloc[i : i + 1])[0]
        for i in range(1000, 1100)
    ]
    np.testing.assert_allclose(single, expected[:100], rtol=1e-12)
    new = pd.DataFrame({"age": [72.0], "sex": ["x"]})
    with pytest.warns(UserWarning, match="category 'x' of 'sex', which fit did not have"):
        outside = loaded.transform([0.5], sensitive_features=new)
    assert 0 < outside[0] < 1
    for early in (
        ScoreAdjuster().save,
        partial(ScoreAdjuster().transform, sensitive_features=frame),
    ):
        with pytest.raises(NotFittedError):
            early(p)


def test_a_million_scores_are_a_table_of_counts() -> None:
    """The cost does not grow with pairs of samples: the table has bounded size for any number of rows."""
    rng = np.random.default_rng(0)
    s = rng.lognormal(size=(50_000, 3))
    frame = read_attributes(s, 50_000)
    found = ConditionalRanks().fit(rng.normal(size=50_000), frame, AttributeBasis().fit(frame))
    assert (np.array(found.counts.shape) <= [1000, 400]).all()
    assert found.counts.sum() == 50_000
    # More combinations of categories than places: each of them is a place.
    words = pd.DataFrame(rng.integers(0, 40, (4000, 2)).astype(str), columns=["a", "b"]) + "x"
    frame = read_attributes(words, 4000)
    crossed = ConditionalRanks().fit(rng.normal(size=4000), frame, AttributeBasis().fit(frame))
    assert 1000 < len(crossed.counts) == len(words.drop_duplicates())
