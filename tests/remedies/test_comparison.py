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
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from frhsic_core import distance_correlation, gdp, learning
from frhsic_core.remedies import RemediedRegressor, compare_remedies, comparison
from frhsic_core.remedies.catalog import REMEDIES
from frhsic_core.remedies.learners import learner as make
from frhsic_core.remedies.measured import half_width, non_dominated
from frhsic_core.remedies.people import read_people
from frhsic_core.remedies.plain import WITH_S, plain_of
from frhsic_core.remedies.result import RemedyComparison
from frhsic_core.remedies.tasks import TASKS

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
    keys = [key for key in REMEDIES if key != "encoder"]
    options: dict[str, Any] = {"remedies": keys, "learners": ["linear"], "n_splits": 2}
    return compare_remedies(X, y, sensitive_features=s, **options)


def test_every_remedy_lowers_the_dependence(found: Any) -> None:
    plain = found.table["remedy"].isin(["none", AWARE])
    full = found.table[plain | (found.table["strength"] == 1.0)].set_index("remedy")
    assert set(full.index) == set(REMEDIES) - {"encoder"}
    plain = full.loc["none"]
    assert plain["dcor"] > 0.5
    assert full.loc[AWARE, "needs_s"]
    # Both columns go here, and with them the age; a price still depends on S as much as X does.
    full = full.drop([AWARE, "columns", "price"])
    assert (full.drop("none")["dcor"] < 0.6 * plain["dcor"]).all()
    assert full["needs_s"].to_dict() == {key: REMEDIES[key].needs_s for key in full.index}
    assert found.task == "regression"
    half = found.table[found.table["strength"] == 0.5].set_index("remedy")
    half = half.drop(["columns", "price"])
    assert (found.table.set_index("remedy").loc[["path", "path_with_s"], "score"] > -1.0).all()
    assert (half["dcor"] > full.loc[half.index, "dcor"]).all()


@pytest.mark.parametrize(
    "learner", ["linear", make_pipeline(PolynomialFeatures(2), Ridge())], ids=["ours", "own"]
)
def test_the_row_without_a_remedy_is_a_plain_fit(people: Any, learner: Any) -> None:
    """By hand: the same folds, the same learner, the library's own statistics."""
    X, y, s = people
    X = X.fillna(0.0)[["skill", "years"]].to_numpy()
    options = {
        "remedies": ["none"],
        "learners": [learner] if learner == "linear" else {"own": learner},
    }
    result = compare_remedies(
        X, y, sensitive_features=s["age"], n_splits=2, random_state=7, **options
    )
    folds = KFold(2, shuffle=True, random_state=7)
    model = make(learner, "regression")
    predicted = cross_val_predict(model, X, y, cv=folds)
    row, age = result.table.iloc[0], s["age"].to_numpy()
    squared = float(distance_correlation(predicted, age, squared=True, estimator="unbiased"))
    np.testing.assert_allclose(row["dcor"], np.sqrt(squared))
    np.testing.assert_allclose(row["gdp"], gdp(predicted / y.std(), age))
    np.testing.assert_allclose(row["score"], r2_score(y, predicted))
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
        learner="linear", lost=0.0, lost_half=0.01
    )
    found = RemedyComparison(table, "classification", 100)
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
        RemedyComparison(table[~table["needs_s"]], "classification", 100).best(needs_s=True)


def test_a_strength_blends_predictions(people: Any) -> None:
    """A linear learner would undo an invertible change of X; half of the blend lies between the two models."""
    X, y, s = people
    grid = {"leace_spline": [0.0, 0.5, 1.0]}
    found = compare_remedies(
        X, y, sensitive_features=s["age"], remedies=grid, learners=["linear"], n_splits=2
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


def test_the_score_is_the_mean_of_contributions() -> None:
    """R² and AUC by scikit-learn; their noise by brute force, in 400 draws of 300 people."""
    rng = np.random.default_rng(0)
    scores: dict[str, list[float]] = {"regression": [], "classification": []}
    halves: dict[str, list[float]] = {"regression": [], "classification": []}
    for _ in range(400):
        predicted = rng.normal(size=300).round(1)  # with ties
        y = predicted + 2.0 * rng.normal(size=300)
        for task, target in (("regression", y), ("classification", (y > 1.0).astype(float))):
            own = TASKS[task].contributions(predicted, target)
            assert own.mean() == pytest.approx(TASKS[task].score(predicted, target), abs=1e-12)
            scores[task].append(own.mean())
            halves[task].append(half_width(own))
    for task, values in scores.items():
        # A standard deviation of 400 draws has an error of 1 / √800 = 3.5 %; four of them.
        assert np.mean(halves[task]) == pytest.approx(1.96 * np.std(values), rel=0.15)


def test_what_is_lost_has_the_noise_of_a_difference(found: Any) -> None:
    """For the same people: the model against itself loses nothing, a close one a known amount."""
    table = found.table.set_index("remedy")
    assert table.loc["none", ["lost", "lost_half"]].tolist() == [0.0, 0.0]
    weak = found.table[found.table["strength"] == 0.1].set_index("remedy").loc["leace"]
    assert weak["lost"] == pytest.approx(table.loc["none", "score"] - weak["score"], abs=1e-12)
    assert 0.0 < weak["lost_half"] < 0.7 * weak["score_half"]


def test_the_choice_uses_what_it_may_lose(people: Any) -> None:
    """Between two strengths the numbers are those of a comparison at the strength between."""
    X, y, s = people
    given: dict[str, Any] = {"sensitive_features": s["age"], "learners": ["linear"]}
    found = compare_remedies(X, y, remedies={"leace": [0.1, 0.25, 0.5, 0.75, 1.0]}, **given)
    at_half = found.table.set_index("strength").loc[0.5]
    at_three = found.table.set_index("strength").loc[0.75]
    limit = (at_half["lost"] + at_three["lost"]) / 2.0
    row = found.best(within=limit)
    assert 0.5 < row["strength"] < 0.75
    exact = compare_remedies(X, y, remedies={"leace": [row["strength"]]}, **given).table.iloc[-1]
    for name in ("lost", "lost_half", "dcor"):
        assert row[name] == pytest.approx(exact[name], abs=0.02 * at_three[name]), name
    assert row["gdp"] == pytest.approx(exact["gdp"], rel=0.05)  # a smoother's cut-offs make steps
    assert 0.9 * limit < row["lost"] <= limit


def test_a_limit_inside_the_noise_is_said(people: Any) -> None:
    X, y, s = people
    given: dict[str, Any] = {"sensitive_features": s["age"]}
    found = compare_remedies(X, y, remedies={"leace": [0.1]}, learners=["linear"], **given)
    row = found.best(within=0.3)
    half = row["lost_half"]
    assert "inside" not in found.noise(row, within=half)
    said = found.noise(row, within=half / 2.0)
    # Half as much noise needs four times as many people.
    assert "(95 %, 500 samples)" in said
    assert "is inside this noise, and about 2,000 samples would decide." in said
    noisy = RemedyComparison(found.table.assign(lost_half=0.5), "regression", 500)
    with pytest.warns(UserWarning, match="is inside this noise"):
        noisy.fit_best(X, y, within=0.3, **given)


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
    monkeypatch.setattr(learning, "FairClassifier", partial(learning.FairClassifier, epochs=3))
    result = compare_remedies(
        X[["skill", "years"]].fillna(0.0), np.where(y > np.median(y), "high", "low"), sensitive_features=s["age"],
        remedies={"encoder": [1.0], "adjust_mean": [1.0]}, learners=["linear"], n_splits=2, verbose=True,
    )  # fmt: skip
    assert result.task == "classification"
    assert set(result.table["learner"]) == {"linear", "network"}
    assert result.table["score"].between(0, 1).all()
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(", after")[0] for line in lines[-2:]] == [
        "fit 3 of 4, adjust_mean with linear", "fit 4 of 4, encoder with network",
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


@pytest.mark.filterwarnings("ignore::frhsic_core.learning.FitWarning")
def test_the_strength_of_an_encoder_is_its_lambda(people: Any, monkeypatch: Any) -> None:
    X, y, s = people
    monkeypatch.setattr(learning, "FairRegressor", partial(learning.FairRegressor, epochs=1))
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
        comparison, "settings_of", lambda *_, **__: pytest.fail("a model was fitted first")
    )
    with pytest.raises(
        ValueError, match=r"value 1e\+09 \(column age\).*leave 'encoder' out of remedies"
    ):
        compare_remedies(X, y, sensitive_features=age, remedies=["leace", "encoder"])


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
        x, y, sensitive_features=x[:, 0], remedies=remedies, learners=["linear"], n_splits=2
    )
    assert np.isfinite(found.table["score"]).all()
