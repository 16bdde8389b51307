"""The comparison on one's own data: what it measures, the frontier and intervals."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score
from sklearn.model_selection import ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from frhsic_core import distance_correlation, gdp
from frhsic_core.remedies import RemediedRegressor, compare_remedies, comparison, encoder
from frhsic_core.remedies.catalog import REMEDIES, WITH_S, plain_of
from frhsic_core.remedies.learners import learner as make
from frhsic_core.remedies.people import read_people
from frhsic_core.remedies.result import MEASURES, RemedyComparison, non_dominated, summarized

AWARE = WITH_S.key


@pytest.fixture(scope="module")
def people() -> tuple[pd.DataFrame, np.ndarray, pd.DataFrame]:
    rng = np.random.default_rng(0)
    age = rng.uniform(20, 70, 500)
    frame = pd.DataFrame({"skill": rng.normal(size=500), "years": age / 10 + rng.normal(size=500)})
    frame["town"] = rng.choice(["north", "south"], 500)
    frame.loc[:5, "skill"] = np.nan
    wage = frame["skill"].fillna(0) + frame["years"] + 0.3 * rng.normal(size=500)
    return frame, wage.to_numpy(), pd.DataFrame({"age": age, "sex": rng.choice(["f", "m"], 500)})


@pytest.fixture(scope="module")
def found(people: Any) -> RemedyComparison:
    X, y, s = people
    kinds = [key for key in REMEDIES if key != "encoder"]
    return compare_remedies(
        X, y, sensitive_features=s, remedies=kinds, learners=["linear"], n_splits=2
    )


def test_every_remedy_lowers_the_dependence(found: Any) -> None:
    full = found.table[found.table["strength"] != 0.5].set_index("remedy")
    assert set(full.index) == set(REMEDIES) - {"encoder"}
    plain = full.loc["none"]
    assert plain["dcor"] > 0.5
    assert full.loc[AWARE, "needs_s"]
    full = full.drop(AWARE)
    assert (full.drop("none")["dcor"] < 0.6 * plain["dcor"]).all()
    assert full["needs_s"].to_dict() == {key: REMEDIES[key].needs_s for key in full.index}
    assert found.task == "regression"
    half = found.table[found.table["strength"] == 0.5].set_index("remedy")
    assert (half["dcor"] > full.loc[half.index, "dcor"]).all()


@pytest.mark.parametrize(
    "learner", ["linear", make_pipeline(PolynomialFeatures(2), Ridge())], ids=["ours", "own"]
)
def test_the_row_without_a_remedy_is_a_plain_fit(people: Any, learner: Any) -> None:
    """One split by hand: the same samples, the same learner, the library's own statistics."""
    X, y, s = people
    X = X.fillna(0.0)[["skill", "years"]].to_numpy()
    options = {
        "remedies": ["none"],
        "learners": [learner] if learner == "linear" else {"own": learner},
    }
    result = compare_remedies(
        X, y, sensitive_features=s["age"], n_splits=2, random_state=7, **options
    )
    train, test = next(iter(ShuffleSplit(2, test_size=0.3, random_state=7).split(X)))
    predicted = make(learner, "regression").fit(X[train], y[train]).predict(X[test])
    row, age = result.splits.iloc[0], s["age"].to_numpy()[test]
    squared = float(distance_correlation(predicted, age, squared=True, estimator="unbiased"))
    np.testing.assert_allclose(row["dcor"], np.sqrt(squared))
    np.testing.assert_allclose(row["gdp"], gdp(predicted / y[train].std(), age))
    np.testing.assert_allclose(
        row["score"], 1 - np.mean((predicted - y[test]) ** 2) / y[test].var()
    )
    with pytest.warns(UserWarning, match="NO remedy"):
        assert result.fit_best(X, y, sensitive_features=s["age"]).learner is learner


def test_frontier_and_best(found: Any) -> None:
    frontier = found.frontier()
    assert (np.diff(frontier["dcor"]) <= 0).all()
    best = found.best(within=10.0)
    assert best["dcor"] == found.table["dcor"].min()
    assert not found.best(within=10.0, needs_s=False)["needs_s"]
    assert found.best(within=10.0, measure="gdp")["gdp"] == found.table["gdp"].min() <= best["gdp"]


def test_no_remedy_is_a_candidate_and_each_league_has_its_own_baseline() -> None:
    rows = [
        ("none", 0.0, False, 0.63, 0.24),  # better than the only remedy by both numbers
        ("leace", 1.0, False, 0.62, 0.26),
        (
            "encoder",
            1.0,
            False,
            0.68,
            0.25,
        ),  # so much better that the model without a remedy is not close to it
        (AWARE, 0.0, True, 0.80, 0.60),  # sees S, so that no model without S comes close
        ("adjust_mean", 1.0, True, 0.79, 0.10),
    ]
    table = pd.DataFrame(rows, columns=["remedy", "strength", "needs_s", "score", "dcor"]).assign(
        learner="linear"
    )
    found = RemedyComparison(table.assign(split=0), table, "classification")
    assert found.best(needs_s=False)["remedy"] == "none"
    with (
        pytest.warns(UserWarning, match="NO remedy: none loses so little"),
        pytest.raises(ValueError, match="rows"),
    ):
        found.fit_best([[1.0]], [0, 1], sensitive_features=[1, 2], needs_s=False)
    assert found.best(needs_s=True)["remedy"] == "adjust_mean"
    assert found.best(within=0.0)["remedy"] == AWARE
    assert "no remedy (linear, strength 0) depends least on S" in str(found)
    with pytest.raises(ValueError, match="needs_s=True"):
        RemedyComparison(table, table[~table["needs_s"]], "classification").best(needs_s=True)


def test_a_strength_blends_predictions(people: Any) -> None:
    """A linear learner would undo an invertible change of X; half of the blend lies between the two models."""
    X, y, s = people
    grid = {"leace_spline": [0.0, 0.5, 1.0]}
    found = compare_remedies(
        X, y, sensitive_features=s["age"], remedies=grid, learners=["linear"], n_splits=1
    )
    rows = found.table.set_index(["remedy", "strength"])
    none, half, whole = (rows.loc[("leace_spline", t)] for t in (0.0, 0.5, 1.0))
    plain = rows.loc[("none", 0.0)]
    assert (none["score"], none["dcor"]) == (
        pytest.approx(plain["score"]),
        pytest.approx(plain["dcor"]),
    )
    assert whole["dcor"] < 0.8 * half["dcor"] < 0.8 * 0.98 * none["dcor"]


def test_non_dominated_by_brute_force() -> None:
    rng = np.random.default_rng(0)
    u, d = rng.integers(0, 6, size=(2, 60)).astype(float)
    for i, kept in enumerate(non_dominated(u, d)):
        beaten = any(
            u[j] >= u[i] and d[j] <= d[i] and (u[j] > u[i] or d[j] < d[i]) for j in range(len(u))
        )
        assert kept == (not beaten)


def test_intervals_are_those_of_the_corrected_test() -> None:
    from frhsic_core.paper.experiments.comparison import corrected_t

    values = np.array([0.5, 0.6, 0.4, 0.7])
    rows = pd.DataFrame(
        {
            "remedy": "none",
            "learner": "linear",
            "strength": 0.0,
            "needs_s": False,
            "split": range(4),
        }
    )
    for name in MEASURES:
        rows[name] = values
    half = summarized(rows, test_share=0.2)["score_half"].item()
    # At the end of a 95 % interval the two-sided p-value is 5 %.
    np.testing.assert_allclose(corrected_t(values - values.mean() + half)[1], 0.05)


def test_views(found: Any) -> None:
    import matplotlib

    matplotlib.use("Agg")
    assert "needs S to predict" in found._repr_html_()
    axes = found.plot()
    assert len(axes.get_legend().get_texts()) == found.table.groupby(["remedy", "learner"]).ngroups
    hollow = [drawn[0].get_markerfacecolor() == "white" for drawn in axes.containers]
    assert sum(hollow) == found.table[found.table["needs_s"]]["remedy"].nunique() < len(hollow)
    shown = found.shown()
    best = found.table["score"].idxmax()
    assert shown.loc[0, "remedy"] == REMEDIES[found.table.loc[best, "remedy"]].label
    assert (shown["on the frontier"] == "yes").sum() == len(found.frontier())
    assert "R²" in found.shown()


def test_classification_and_the_encoder(
    people: Any, monkeypatch: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    X, y, s = people
    monkeypatch.setattr(encoder, "FairClassifier", partial(encoder.FairClassifier, epochs=3))
    result = compare_remedies(
        X[["skill", "years"]].fillna(0.0), np.where(y > np.median(y), "high", "low"), sensitive_features=s["age"],
        remedies={"encoder": [1.0], "adjust_mean": [1.0]}, learners=["linear"], n_splits=1, verbose=True,
    )  # fmt: skip
    assert result.task == "classification"
    assert set(result.table["learner"]) == {"linear", "network"}
    assert result.table["score"].between(0, 1).all()
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(", after")[0] for line in lines[-2:]] == [
        "split 1 of 1, fit 3 of 4, adjust_mean with linear", "split 1 of 1, fit 4 of 4, encoder with network",
    ]  # fmt: skip


@pytest.mark.parametrize(("key", "strength"), [
    ("none", 1.0), ("leace", 0.25), ("leace", 1.0), ("adjust_rank", 0.5),
])  # fmt: skip
def test_a_model_has_the_predictions_that_were_compared(
    people: Any, key: str, strength: float
) -> None:
    """A model without a remedy has the rest of the strength."""
    X, y, s = people
    model = RemediedRegressor(key, "linear", strength).fit(X, y, sensitive_features=s)
    given = read_people(X, y, s, "regression")
    remedy = REMEDIES[key]
    full = remedy.fit(given, "linear")(X, given.s)
    plain = plain_of(remedy).fit(given, "linear")(X, given.s)
    expected = strength * full + (1.0 - strength) * plain
    predicted = model.predict(X, sensitive_features=s)
    np.testing.assert_allclose(predicted, expected, rtol=1e-12)
    assert model.needs_s_ == remedy.needs_s
    assert model.score(X, y, sensitive_features=s) == r2_score(y, predicted)


def test_the_strength_of_an_encoder_is_its_lambda(people: Any, monkeypatch: Any) -> None:
    X, y, s = people
    monkeypatch.setattr(encoder, "FairRegressor", partial(encoder.FairRegressor, epochs=1))
    given = read_people(X, y, s, "regression")
    path = REMEDIES["encoder"].fit_path(given, "network", [0.5, 5.0], plain=None)
    assert [model.model.lam for model in path.models] == [0.5, 5.0]


@pytest.mark.filterwarnings("ignore::frhsic_core.learning.FitWarning")
def test_an_attribute_that_the_encoder_cannot_resolve_is_refused_at_once(
    people: Any, monkeypatch: Any
) -> None:
    X, y, s = people
    age = s["age"].mask(s.index == 3, 1e9)
    monkeypatch.setattr(
        comparison, "fitted_path", lambda *_, **__: pytest.fail("a model was fitted first")
    )
    with pytest.raises(
        ValueError, match=r"value 1e\+09 \(column age\).*leave 'encoder' out of remedies"
    ):
        compare_remedies(X, y, sensitive_features=age)


def test_tables_that_cannot_be_compared(people: Any) -> None:
    X, y, s = people
    matrix = sparse.csr_matrix(X[["years"]].to_numpy())
    with pytest.raises(ValueError, match=r"X is sparse: pass X\.toarray"):
        compare_remedies(matrix, y, sensitive_features=s["age"])
    with pytest.raises(ValueError, match="task is 'guess'"):
        compare_remedies(X, y, sensitive_features=s["age"], task="guess")


@pytest.mark.filterwarnings("ignore::frhsic_core.learning.FitWarning")
def test_the_smallest_class_that_is_accepted() -> None:
    """Both parts of every split have both classes, and every remedy can be fitted."""
    x = np.random.default_rng(0).normal(size=(60, 2))
    y = np.arange(60) < 4
    remedies = {key: [1.0] for key in REMEDIES if key != "encoder"}
    found = compare_remedies(
        x, y, sensitive_features=x[:, 0], remedies=remedies, learners=["linear"], n_splits=1
    )
    assert np.isfinite(found.splits["score"]).all()
