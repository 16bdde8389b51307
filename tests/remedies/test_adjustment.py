"""Adjusted scores: scikit-learn's checks, brute force, validity of probabilities, bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import cross_val_predict, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from frhsic_core import distance_correlation
from frhsic_core.learning import MissingAttributeWarning
from frhsic_core.remedies import AdjustedClassifier, AdjustedRegressor
from frhsic_core.remedies.adjustment import Adjustment, flat_offset
from frhsic_core.remedies.attributes import AttributeBasis, read_attributes


@pytest.fixture(scope="module")
def sample() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    age = rng.uniform(-1, 1, 1200)
    X = rng.normal(size=(1200, 3))
    X[:, 0] += np.sin(3 * age)
    X[:, 1] *= 1.5 + age  # the spread depends on age, the mean does not
    return X, X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=1200), age


@pytest.mark.filterwarnings("ignore::frhsic_core.learning.MissingAttributeWarning")
@parametrize_with_checks([AdjustedClassifier(LogisticRegression()), AdjustedRegressor(Ridge())])
def test_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


def test_mean_subtracts_the_out_of_fold_regression_on_the_basis(sample: Any) -> None:
    X, y, age = sample
    frame = read_attributes(age, len(X))
    phi = AttributeBasis("bins", 6).fit(frame).transform(frame)
    fold = cross_val_predict(LinearRegression(), X, y, cv=4)
    bins = phi.argmax(1)
    shift = np.array([fold[bins == b].mean() for b in range(6)])
    model = AdjustedRegressor(LinearRegression(), basis="bins", n_basis=6, cv=4, strength=0.7)
    model.fit(X, y, sensitive_features=age)
    expected = LinearRegression().fit(X, y).predict(X) - 0.7 * (shift[bins] - shift[bins].mean())
    np.testing.assert_allclose(model.predict(X, sensitive_features=age), expected, rtol=1e-8)


def test_mean_probability_is_flat_in_every_bin(sample: Any) -> None:
    X, _, age = sample
    logit = 2 * X[:, 0] + X[:, 1]
    frame = read_attributes(age, len(X))
    phi = AttributeBasis("bins", 6).fit(frame).transform(frame)
    p = expit(logit + np.hstack([np.ones((1200, 1)), phi]) @ flat_offset(logit, np.hstack([np.ones((1200, 1)), phi])))
    means = [p[phi[:, b] == 1].mean() for b in range(6)]
    np.testing.assert_allclose(means, expit(logit).mean(), atol=1e-6)
    raw = [expit(logit)[phi[:, b] == 1].mean() for b in range(6)]
    assert np.ptp(raw) > 0.2


def test_rank_maps_groups_to_the_barycenter() -> None:
    """Two categories: the barycenter of two Gaussians is the Gaussian with the mean of means and of deviations."""
    rng = np.random.default_rng(0)
    group = np.repeat(["a", "b"], 4000)
    score = np.where(group == "a", rng.normal(1.0, 1.0, 8000), rng.normal(-1.0, 3.0, 8000))
    order = rng.permutation(8000)
    frame = read_attributes(group[order], 8000)
    phi = AttributeBasis("linear").fit(frame).transform(frame)
    adjustment = Adjustment("rank", 1.0, classifier=False).fit(score[order], phi, frame)
    mapped = adjustment(score[order], phi, frame)
    for name in ("a", "b"):
        part = mapped[group[order] == name]
        assert abs(part.mean()) < 0.1
        assert abs(part.std() - 2.0) < 0.15
        # The map is monotone within a group: nobody overtakes anybody.
        own = score[order][group[order] == name]
        assert (np.diff(part[np.argsort(own)]) >= 0).all()


@pytest.mark.parametrize("strength", [0.5, 1.0])
def test_rank_removes_more_than_the_mean(sample: Any, strength: float) -> None:
    X, y, age = sample
    train, test = slice(0, 800), slice(800, 1200)
    found = {}
    for method in ("none", "mean", "rank"):
        model = AdjustedRegressor(
            LinearRegression(), method=method.replace("none", "mean"), strength=0.0 if method == "none" else strength
        ).fit(X[train], y[train], sensitive_features=age[train])
        score = model.predict(X[test], sensitive_features=age[test])
        found[method] = float(distance_correlation(score, age[test], squared=True, estimator="unbiased"))
    assert found["rank"] < found["mean"] < 0.7 * found["none"]


@pytest.mark.parametrize("method", ["mean", "rank"])
@pytest.mark.parametrize("attribute", ["age", "mixed"])
def test_probabilities_are_valid_and_depend_less(sample: Any, method: str, attribute: str) -> None:
    X, y, age = sample
    label = np.where(y + 2 * age > 0, "yes", "no")
    s: Any = age
    if attribute == "mixed":
        s = pd.DataFrame({"age": age, "sex": np.where(X[:, 2] > 0, "f", "m")})
    model = AdjustedClassifier(LogisticRegression(), method=method, use_attributes=True)
    model.fit(X, label, sensitive_features=s)
    p = model.predict_proba(X, sensitive_features=s)
    plain = model.estimator_.predict_proba(np.hstack([X, model.inputs_.transform(read_attributes(s, 1200))]))[:, 1]
    assert ((p > 0) & (p < 1)).all()
    np.testing.assert_allclose(p.sum(1), 1.0)
    assert abs(p[:, 1].mean() - plain.mean()) < 0.02  # as many people as before
    after, before = (float(distance_correlation(v, age)) for v in (p[:, 1], plain))
    assert after < 0.35 * before
    assert set(model.predict(X, sensitive_features=s)) == {"yes", "no"}
    assert model.score(X, label, sensitive_features=s) > 0.6


@pytest.mark.parametrize("kind", ["regressor", "classifier"])
def test_project_needs_no_attribute_to_predict(sample: Any, kind: str) -> None:
    X, y, age = sample
    train, test = slice(0, 800), slice(800, 1200)
    if kind == "regressor":
        model: Any = AdjustedRegressor(LinearRegression(), method="project")
        plain: Any = LinearRegression()
        score = lambda m: m.predict(X[test])  # noqa: E731
    else:
        y = y > 0
        model = AdjustedClassifier(LogisticRegression(), method="project")
        plain = LogisticRegression()
        score = lambda m: m.predict_proba(X[test])[:, 1]  # noqa: E731
    model.fit(X[train], y[train], sensitive_features=age[train])
    plain.fit(X[train], y[train])
    after, before = (abs(np.corrcoef(score(m), age[test])[0, 1]) for m in (model, plain))
    assert after < 0.15 < 0.25 < before
    assert np.corrcoef(score(model), score(plain))[0, 1] > 0.6


def test_project_removes_the_least() -> None:
    """Gaussian X and S: g(x) is linear, and the projection is f − Cov(f, g)/Var(g)·g."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 2))
    s = X[:, 0] + 0.5 * rng.normal(size=1500)
    y = X @ [1.0, 1.0]
    model = AdjustedRegressor(LinearRegression(), method="project", basis="linear").fit(X, y, sensitive_features=s)
    assert np.sqrt(np.mean((model.predict(X) - X[:, 1]) ** 2)) < 0.2
    independent = AdjustedRegressor(LinearRegression(), method="project").fit(
        X, y, sensitive_features=rng.normal(size=1500)
    )
    np.testing.assert_allclose(independent.predict(X), y, atol=1e-8)  # nothing to remove


def test_prefit_needs_no_second_training(sample: Any) -> None:
    X, y, age = sample
    fitted = HistGradientBoostingRegressor(max_iter=20).fit(X[:600], y[:600])
    model = AdjustedRegressor(fitted, cv="prefit").fit(X[600:], y[600:], sensitive_features=age[600:])
    assert model.estimator_ is fitted
    adjusted = model.predict(X[600:], sensitive_features=age[600:])
    assert abs(np.corrcoef(adjusted, age[600:])[0, 1]) < 1e-6 < 0.2 < np.corrcoef(fitted.predict(X), age)[0, 1]


def test_out_of_fold_scores_are_used(sample: Any) -> None:
    """A learner that memorizes y: its own training scores would subtract E[y | S], not E[score | S]."""
    X, y, age = sample
    from sklearn.neighbors import KNeighborsRegressor

    model = AdjustedRegressor(KNeighborsRegressor(1), cv=5).fit(
        X[:800], y[:800] + 3 * age[:800], sensitive_features=age[:800]
    )
    new = model.predict(X[800:], sensitive_features=age[800:])
    assert abs(np.corrcoef(new, age[800:])[0, 1]) < 0.1


def test_a_column_of_x_works_in_cross_validation(sample: Any) -> None:
    X, y, age = sample
    frame = pd.DataFrame(X, columns=list("abc")).assign(age=age)
    model = AdjustedRegressor(LinearRegression(), sensitive_columns=["age"])
    assert cross_val_score(model, frame, y, cv=3).min() > 0.3


def test_bad_input(sample: Any) -> None:
    X, y, age = sample
    with pytest.warns(MissingAttributeWarning, match="changes NOTHING"):
        plain = AdjustedRegressor(LinearRegression()).fit(X, y)
    np.testing.assert_allclose(plain.predict(X), LinearRegression().fit(X, y).predict(X))
    fitted = AdjustedRegressor(LinearRegression()).fit(X, y, sensitive_features=age)
    with pytest.raises(ValueError, match="needs S of every sample"):
        fitted.predict(X)
    with pytest.raises(ValueError, match="method"):
        AdjustedRegressor(method="median").fit(X, y, sensitive_features=age)
    with pytest.raises(ValueError, match="use_attributes"):
        AdjustedRegressor(method="project", use_attributes=True).fit(X, y, sensitive_features=age)
    with pytest.raises(ValueError, match="cv is 1"):
        AdjustedRegressor(cv=1).fit(X, y, sensitive_features=age)
    with pytest.raises(ValueError, match="binary classification"):
        AdjustedClassifier().fit(X, np.arange(1200) % 3, sensitive_features=age)
    with pytest.raises(ValueError, match="two of each class"):
        AdjustedClassifier(LogisticRegression()).fit(X, np.arange(1200) == 0, sensitive_features=age)
