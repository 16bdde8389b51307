"""The convex path: its minimizer in closed form, what it cannot see, and models on data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.utils.estimator_checks import parametrize_with_checks

from frhsic_core import compare_remedies, distance_correlation
from frhsic_core.remedies import (
    ColumnRemover,
    RemediedClassifier,
    RemediedRegressor,
    combination,
)
from frhsic_core.remedies.attributes import read_attributes
from frhsic_core.remedies.basis import StandardFunctions
from frhsic_core.remedies.column_remover import told_of
from frhsic_core.remedies.combination import Combination
from frhsic_core.remedies.links import IDENTITY, LOGIT

STRENGTHS = (0.0, 0.3, 0.6, 0.9, 1.0)


@pytest.fixture(scope="module")
def problem() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return columns, a target and functions of S with mean 0 and covariance 1."""
    rng = np.random.default_rng(0)
    s = rng.uniform(-1, 1, 400)
    psi = StandardFunctions().fit(read_attributes(s, 400)).transform(read_attributes(s, 400))
    columns = rng.normal(size=(400, 4)) + np.outer(s, [1.0, 0.5, 0.0, -1.0])
    columns = np.hstack([columns, psi[:, :2] + 0.5 * rng.normal(size=(400, 2))])
    y = columns @ [1.0, 1.0, 0.3, 0.0, 0.0, 0.0] + np.sin(3 * s) + rng.normal(size=400)
    return columns, y, psi


def test_least_squares_under_moment_conditions(problem: Any, monkeypatch: Any) -> None:
    """The best predictor minus c_k times the projections of the functions, as the docstring says."""
    monkeypatch.setattr(combination, "_RIDGE", 0.0)
    columns, y, psi = problem
    path = Combination(IDENTITY).fit(columns, y, psi, STRENGTHS, best=0, models=4)(columns)
    design = np.insert(columns, 0, 1.0, axis=1)
    projection = design @ np.linalg.pinv(design)
    best, guesses = projection @ y, projection @ psi
    gram = guesses.T @ guesses / len(y)
    covariance = psi.T @ best / len(y)
    reach = np.trace(gram) / psi.shape[1]
    for strength, found in zip(STRENGTHS[:-1], path[:-1], strict=True):
        weight = strength / (1.0 - strength) / reach
        c = weight * np.linalg.solve(np.eye(len(gram)) + weight * gram, covariance)
        np.testing.assert_allclose(found, best - guesses @ c, atol=1e-6)
    assert np.abs(psi.T @ path[-1] / len(y)).max() < 1e-5


@pytest.mark.parametrize("link", [IDENTITY, LOGIT], ids=lambda link: link.name)
def test_the_path_pays_loss_for_covariance(problem: Any, link: Any) -> None:
    columns, y, psi = problem
    if link is LOGIT:
        y = (y > 0.0).astype(float)
    path = Combination(link).fit(columns, y, psi, STRENGTHS, best=1, models=4)
    eta = [link.of(predicted) for predicted in path(columns)]
    loss = [np.mean(link.potential(one) - y * one) for one in eta]
    left = [np.linalg.norm(psi.T @ one / len(y)) for one in eta]
    assert (np.diff(loss) > 0).all()
    assert (np.diff(left) < 0).all()
    assert left[-1] < 0.02 * left[0]


def test_a_strong_ridge_keeps_the_best_prediction(problem: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(combination, "_RIDGE", 1e9)
    columns, y, psi = problem
    y = y + columns[:, 1].mean() - y.mean()
    (found,) = Combination(IDENTITY).fit(columns, y, psi, [0.0], best=1, models=4)(columns)
    np.testing.assert_allclose(found, columns[:, 1], atol=1e-5)


def test_a_nearly_constant_prediction_gets_no_huge_weight(problem: Any) -> None:
    """As that of a model of one rare column: a new sample with this column moved by thousands."""
    columns, y, psi = problem
    columns = columns.copy()
    columns[:, 3] = 1e-3 * np.random.default_rng(0).normal(size=len(y))
    found = Combination(IDENTITY).fit(columns, y, psi, [0.0], best=0, models=4)
    spiked = columns.copy()
    spiked[:, 3] += 1.0
    assert np.abs(found(spiked) - found(columns)).max() < 0.2


def test_what_the_functions_cannot_see_is_bounded() -> None:
    """On a sample, for functions of S of every kind; and close to equal for the worst f."""
    rng = np.random.default_rng(0)
    s = rng.uniform(-1, 1, 500)
    frame = read_attributes(s, 500)
    psi = StandardFunctions().fit(frame).transform(frame)
    shapes = {
        "step": np.sign(s - 0.3), "wave": np.sin(20 * s), "line": s,
        "noise": rng.normal(size=500), "bump": np.exp(-((s - 0.9) ** 2) / 0.001),
    }  # fmt: skip
    for name, h in shapes.items():
        h = (h - h.mean()) / h.std()
        seen = psi @ (psi.T @ h / 500)
        unseen = (h - seen).std()
        for f in (rng.normal(size=500), np.exp(s), h - seen):
            f = f - f.mean()
            bound = np.linalg.norm(psi.T @ f / 500) + f.std() * unseen
            assert abs(np.mean(f * h)) <= bound * (1 + 1e-9), name
        worst = h - seen
        assert abs(np.mean(worst * h)) == pytest.approx(worst.std() * unseen), name


# On data ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def people() -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    age = rng.uniform(20, 70, 500)
    X = pd.DataFrame({"skill": rng.normal(size=500), "years": age / 10 + rng.normal(size=500)})
    X["town"] = rng.choice(["north", "south"], 500)
    X["height"] = rng.normal(size=500)
    return X, X["skill"].to_numpy() + X["years"].to_numpy() + 0.5 * rng.normal(size=500), age


def test_the_path_is_compared(people: Any) -> None:
    X, y, age = people
    keys = ["path", "path_with_s", "columns", "adjust_mean"]
    found = compare_remedies(X, y, sensitive_features=age, remedies=keys, learners=["linear"])
    rows = found.table.set_index(["remedy", "strength"])
    assert set(found.table["learner"]) == {"linear", "stack"}
    for key in ("path", "path_with_s"):
        own = rows.loc[key]
        assert own.loc[1.0, "dcor"] < 0.35 < 0.5 < own.loc[0.0, "dcor"]
        # Weights of twenty columns cost what they cost; else the combination is no worse.
        assert own.loc[0.0, "lost"] < 0.02
    with_s, mean = rows.loc[("path_with_s", 1.0)], rows.loc[("adjust_mean", 1.0)]
    # Theory: for a square loss nothing that knows S loses less at no dependence of the mean.
    assert with_s["lost"] < mean["lost"] + 0.01


@pytest.mark.slow  # it trains every model several times
@pytest.mark.parametrize("key", ["path", "path_with_s"])
def test_a_path_is_a_model(people: Any, key: str, tmp_path: Path) -> None:
    X, y, age = people
    given, known = {"sensitive_features": age}, {"sensitive_features": age[:400]}
    more: dict[str, Any] = {}
    new: dict[str, Any] = {}
    if key != "path":
        more, new = given, {"sensitive_features": age[400:]}
    model = RemediedRegressor(key, "stack", 0.9).fit(X[:400], y[:400], **known)
    plain = RemediedRegressor("none").fit(X[:400], y[:400], **known)
    predicted = model.predict(X[400:], **new)
    left = float(distance_correlation(predicted, age[400:]))
    assert left < 0.6 * float(distance_correlation(plain.predict(X[400:]), age[400:]))
    assert model.audit_.gdp < 0.6 * plain.audit_.gdp
    loaded = joblib.load(joblib.dump(model, tmp_path / "model.joblib")[0])
    np.testing.assert_array_equal(loaded.predict(X[400:], **new), predicted)
    classes = RemediedClassifier(key, "stack", 0.9).fit(X, y > 4.0, **given)
    p = classes.predict_proba(X, **more)
    assert ((p > 0.0) & (p < 1.0)).all()
    assert p[:, 1].mean() == pytest.approx(np.mean(y > 4.0), abs=0.03)


# Columns ------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::frhsic_core.learning.MissingAttributeWarning")
@parametrize_with_checks([ColumnRemover()])
def test_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


def test_the_columns_that_tell_the_age_are_removed(people: Any) -> None:
    """Also one whose mean does not rise with age, and text by its indicators."""
    rng = np.random.default_rng(1)
    X, _, age = people
    X = X.assign(valley=((age - 45) / 10) ** 2 + rng.normal(size=500))
    remover = ColumnRemover(2).fit(X, sensitive_features=age)
    assert sorted(remover.removed_.tolist()) == [1, 5]
    kept = remover.transform(X)
    assert kept.shape == (500, 4)
    assert abs(np.corrcoef(kept.T, age)[-1, :-1]).max() < 0.15
    all_but_one = ColumnRemover(99).fit(X, sensitive_features=age)
    assert all_but_one.transform(X[:3]).shape == (3, 1)


def test_the_share_that_functions_explain() -> None:
    rng = np.random.default_rng(0)
    s = rng.normal(size=300)
    frame = read_attributes(s, 300)
    psi = StandardFunctions().fit(frame).transform(frame)
    np.testing.assert_allclose(psi.mean(0), 0.0, atol=1e-12)
    np.testing.assert_allclose(np.cov(psi.T, ddof=0), np.eye(psi.shape[1]), atol=1e-9)
    x = np.column_stack([expit(s), rng.normal(size=300), np.ones(300)])
    told = told_of(x, psi)
    residual = x - x.mean(0) - psi @ (psi.T @ (x - x.mean(0)) / 300)
    expected = 1.0 - residual[:, :2].var(0) / x[:, :2].var(0)
    np.testing.assert_allclose(told[:2], expected)
    assert told[2] == 0.0
