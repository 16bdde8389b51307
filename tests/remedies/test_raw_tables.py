"""Tables as people have them: text, categories, missing values, pipelines by name, sparse matrices, saved models."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import (
    GridSearchCV,
    StratifiedKFold,
    cross_val_predict,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from frhsic_core import AdjustedClassifier, AttributeEraser, KernelEraser, compare_remedies, gdp
from frhsic_core.inputs.features import columns_of, fit_columns
from frhsic_core.paper.stored import book_folder
from frhsic_core.remedies import RemediedClassifier
from frhsic_core.remedies.learners import learner

N = 400


def table() -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    age = np.round(rng.uniform(20, 70, N))
    X = pd.DataFrame({
        "test": age / 20 + rng.normal(size=N),
        "city": rng.choice(["Oslo", "Rome", "Bonn"], N),
        "level": pd.Categorical(rng.choice(["low", "high"], N)),
        "income": rng.normal(size=N),
    })  # fmt: skip
    y = np.where(X["test"] + (X["city"] == "Oslo") + rng.normal(size=N) > 2.5, "yes", "no")
    X.loc[rng.random(N) < 0.1, "income"] = np.nan
    X.loc[rng.random(N) < 0.05, "city"] = None
    return X, y, age


def by_name() -> Any:
    numbers = SimpleImputer(), ["test", "income"]
    words = OneHotEncoder(handle_unknown="ignore"), ["city", "level"]
    columns = ColumnTransformer([("numbers", *numbers), ("words", *words)])
    return make_pipeline(columns, LogisticRegression(max_iter=1000))


def test_the_model_gets_the_table_as_it_is() -> None:
    """The wrapped model is the one that the table alone gives; the mean of the adjusted scores is flat."""
    X, y, age = table()
    plain = by_name().fit(X, y).predict_proba(X)
    for method in ("mean", "rank"):
        model = AdjustedClassifier(by_name(), method=method).fit(X, y, sensitive_features=age)
        np.testing.assert_allclose(model.estimator_.predict_proba(X), plain, rtol=1e-12)
        assert gdp(model.predict_proba(X, sensitive_features=age)[:, 1], age) < 0.3 * gdp(
            plain[:, 1], age
        )
    project = AdjustedClassifier(by_name(), method="project").fit(X, y, sensitive_features=age)
    assert gdp(project.predict_proba(X)[:, 1], age) < 0.7 * gdp(plain[:, 1], age)
    boosted = AdjustedClassifier(
        HistGradientBoostingClassifier(max_iter=5)
    )  # takes missing numbers
    boosted.fit(X[["test", "income"]], y, sensitive_features=age)
    assert boosted.estimator_.feature_names_in_.tolist() == ["test", "income"]
    with pytest.raises(ValueError, match="feature names"):
        project.predict(X[["city", "test", "level", "income"]])


def test_sparse_matrices() -> None:
    X, y, age = table()
    numbers = columns_of(X, fit_columns(X))
    dense = AdjustedClassifier(LogisticRegression()).fit(numbers, y, sensitive_features=age)
    thin = AdjustedClassifier(LogisticRegression()).fit(
        sparse.csr_matrix(numbers), y, sensitive_features=age
    )
    p = dense.predict_proba(numbers, sensitive_features=age)
    np.testing.assert_allclose(
        thin.predict_proba(sparse.csr_matrix(numbers), sensitive_features=age), p, atol=1e-4
    )


@pytest.mark.parametrize("kind", [AttributeEraser, KernelEraser])
def test_erasers_read_the_table(kind: Any) -> None:
    """The same as on the numbers that a reader would make of it: indicators, medians and flags of missing values."""
    X, _, age = table()
    by_hand = pd.get_dummies(X[["city", "level"]], dummy_na=False, dtype=float).to_numpy()
    known = np.sort(X["income"].dropna())
    median = known[(len(known) - 1) // 2]
    numbers = np.column_stack([
        X["test"], by_hand[:, :3], X["city"].isna(),
        by_hand[:, [3, 4]], X["income"].fillna(median), X["income"].isna(),
    ]).astype(float)  # fmt: skip
    found, expected = kind(), kind()
    a = found.fit(X, sensitive_features=age).transform(X)
    b = expected.fit(numbers, sensitive_features=age).transform(numbers)
    if kind is not KernelEraser:
        np.testing.assert_allclose(a[:, [0, 7, 8]], b[:, [0, 7, 8]], atol=1e-6)
    assert np.isfinite(a).all()
    new = X[:3].assign(city=["Paris", "Oslo", None])  # Paris was not seen
    assert np.isfinite(found.transform(new)).all()
    with pytest.raises(ValueError, match="feature names"):
        found.transform(pd.DataFrame(numbers[:3, :4], columns=list("abcd")))


@pytest.fixture(scope="module")
def found() -> Any:
    X, y, age = table()
    remedies = {"leace": [0.5], "adjust_rank": [1.0], "project": [1.0]}
    return compare_remedies(
        X, y, sensitive_features=age, remedies=remedies, learners=["linear"], n_splits=2
    )


@pytest.mark.slow  # it fits two models; the chapter loads one in a new process
def test_the_best_models_are_saved_and_loaded(found: Any, tmp_path: Path) -> None:
    X, y, age = table()
    for needs_s in (False, True):
        model = found.fit_best(X, y, sensitive_features=age, within=0.5, needs_s=needs_s)
        assert model.needs_s_ == needs_s
        s = {"sensitive_features": age} if needs_s else {}
        assert set(model.predict(X, **s)) == {"yes", "no"}
        loaded = joblib.load(joblib.dump(model, tmp_path / "model.joblib")[0])
        np.testing.assert_array_equal(loaded.predict_proba(X, **s), model.predict_proba(X, **s))
        with pytest.raises(ValueError, match="feature names"):
            model.predict(X[["city"]], **s)
    with pytest.raises(ValueError, match="needs S of every person"):
        model.predict(X)


def test_the_audit_of_the_best_model_is_out_of_fold(found: Any) -> None:
    """A model without a remedy: its audited scores are those of scikit-learn's cross-validation."""
    X, y, age = table()
    numbers = X[["test"]]
    model = RemediedClassifier("none").fit(numbers, y, sensitive_features=age)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    p = cross_val_predict(
        learner("linear", "classification"), numbers, y == "yes", cv=folds, method="predict_proba"
    )
    assert model.audit_.gdp == pytest.approx(gdp(p[:, 1], age), abs=1e-6)
    likely = model.predict_proba(numbers)[:, 1] > 0.5
    np.testing.assert_array_equal(model.predict(numbers), np.where(likely, "yes", "no"))


def test_a_limit_of_time_keeps_what_is_done() -> None:
    X, y, age = table()
    with pytest.warns(UserWarning, match="took more than"):
        found = compare_remedies(X, y, sensitive_features=age, n_splits=5, max_seconds=0.01)
    assert set(found.table["remedy"]) == {"none", "none_with_s"}


def test_a_pipeline_over_named_columns_gets_the_table() -> None:
    """Without a remedy it is the pipeline fitted by hand; LEACE stands before its last step; new people are raw."""
    X, y, age = table()
    options: dict[str, Any] = {
        "sensitive_features": age,
        "remedies": {"leace": [1.0], "adjust_mean": [1.0]},
    }
    found = compare_remedies(X, y, learners={"mine": by_name()}, n_splits=2, **options)
    unseen = {"none": np.empty(len(X)), "leace": np.empty(len(X))}
    folds = StratifiedKFold(2, shuffle=True, random_state=0)
    for train, test in folds.split(X, y):
        columns = by_name()[:-1].fit(X.iloc[train])  # on the people of the training part alone
        known, new = columns.transform(X.iloc[train]), columns.transform(X.iloc[test])
        eraser = AttributeEraser("linear").fit(known, sensitive_features=age[train])
        parts = {
            "none": (known, new),
            "leace": (eraser.transform(known), eraser.transform(new)),
        }
        for key, (a, b) in parts.items():
            unseen[key][test] = by_name()[-1].fit(a, y[train]).predict_proba(b)[:, 1]
    rows = found.table.set_index("remedy")
    for key, p in unseen.items():
        expected = roc_auc_score(y == "yes", p), gdp(p, age)
        assert tuple(rows.loc[key, ["score", "gdp"]]) == pytest.approx(expected), key
    best = found.fit_best(X, y, sensitive_features=age, within=1.0, needs_s=False)
    assert set(best.predict(X[:9])) <= {"yes", "no"}
    with pytest.raises(TypeError, match="GridSearchCV wraps a pipeline"):
        compare_remedies(X, y, learners={"mine": GridSearchCV(by_name(), {})}, **options)


@pytest.mark.slow
def test_the_credit_script_takes_a_table_and_a_fitted_pipeline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In an empty folder, as a reader runs it; what it prints without files is in the chapter."""
    X, y, age = table()
    monkeypatch.chdir(tmp_path)
    people, model = X.assign(years=age, default=y), by_name().fit(X[:100], y[:100])
    main = runpy.run_path(str(book_folder("_static", "credit_model.py")))["main"]

    def said(rows: pd.DataFrame, *fitted: Any, limit: float = 0.13) -> str:
        rows.to_csv("applicants.csv", index=False)
        try:
            files = ["applicants.csv", *(joblib.dump(one, "model.joblib")[0] for one in fitted)]
            main(*files, "--age", "years", "--bad", "yes", "--limit", str(limit))
        except SystemExit as stopped:
            print(stopped)
        return " ".join(capsys.readouterr().out.split())

    main.__globals__["OPTIONS"].blend = 0.5
    printed, scored = said(people, model), pd.read_csv("scored.csv")
    assert "If policy and law allow it, use the adjusted score" in printed
    full = 2 * scored["adjusted_score"] - scored["score"]
    auc, gap = roc_auc_score(scored["default"] == "no", full), gdp(full, scored["years"])
    assert (
        f"blend t = 1: GDP {gap:.3f}, GDP / sd {gap / full.std(ddof=0):.2f}, AUC {auc:.2f}"
        in printed
    )
    assert gap < 0.7 * gdp(scored["score"], scored["years"])
    assert (
        f"is at least {np.quantile(scored['adjusted_score'], 0.3):.3f} (the original model"
        in printed
    )
    saved = joblib.load("adjusted_model.joblib")
    np.testing.assert_allclose(
        1 - saved.predict_proba(scored[list(X)])[:, 1], scored["adjusted_score"]
    )
    assert "no column 'default': name yours with --outcome" in said(
        people.drop(columns="default"), model
    )
    assert "now 'yes': 'default' needs two values and has [1]" in said(
        people.assign(default=1), model
    )
    assert "Add people: 150 with" in said(people[:149], model)
    assert "numbers without units" in said(people.assign(years="39 y"), model)
    assert "does not have: city" in said(people.drop(columns="city"), model)
    assert "Drop the column 'city'" in said(
        people.assign(city=[f"{k}th" for k in range(len(people))]), model
    )
    assert "as the model has them, [False, True]" in said(people, by_name().fit(X, y == "yes"))
    assert "has no feature_names_in_" in said(people, DecisionTreeClassifier().fit(age[:, None], y))
    with pytest.raises(SystemExit, match=r"There is no file nowhere\.csv"):
        main("nowhere.csv")
    Path("credit_model.joblib").touch()
    assert "Remove or rename" in said(people)
    with pytest.warns(UserWarning, match="is the sensitive attribute"):
        tied = said(
            people.assign(score=1),
            DecisionTreeClassifier(max_depth=1).fit(people[["years"]], y),
            limit=0.001,
        )
    assert (pd.read_csv("scored.csv")["score"].eq(1).all(), "adjusted_model.joblib" in tied) == (
        True,
        False,
    )
    never = said(people, model, limit=1)
    assert "Choose another --limit: " in never
    assert "gdp is at most 0.5" in never
    wide = said(people, model, limit=0.4)
    # Unknown outcomes, here a quarter, change neither the correction nor who is approved.
    main.__globals__["OPTIONS"].measure = "gdp_over_sd"
    some = said(
        people.assign(default=people["default"].mask(np.arange(len(people)) % 4 == 0)),
        model,
        limit=0.6,
    )
    np.testing.assert_allclose(
        pd.read_csv("scored.csv")["adjusted_score"], scored["adjusted_score"]
    )
    for printed, *parts in (
        (
            tied,
            "equal scores",
            "not shown to be below the limit",
            "score: GDP is not shown",
            "model reads years",
        ),
        (
            wide,
            "the scores, and your limit is more than half",
            "so nothing is adjusted. Written: audit_original",
        ),
        (some, "100 people have no outcome", "score: GDP / sd is not shown to be below 0.6"),
    ):
        assert [part for part in parts if part not in printed] == []
