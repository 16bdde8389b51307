"""Mistakes that users make: each has a message that says what to do, or gives the right result all the same.

The rows of ``REVIEW`` are the mistakes of a review by a practitioner; those of ``OWN`` were added later. A row is the
mistake, what a user typed, what should happen (an error, a warning, a sentence of the command with exit status 2, or a
result that is right), and words of the message as a regular expression.
"""

from __future__ import annotations

import pickle
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
import torch
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError, UnsetMetadataPassedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from typer.testing import CliRunner

import frhsic_core as fc
from frhsic_core import (
    AdjustedClassifier,
    AdjustedRegressor,
    AttributeEraser,
    FairClassifier,
    FairEncoder,
    FairRegressor,
    KernelEraser,
    ScoreAdjuster,
    adjust_scores,
    audit,
    audit_representation,
    compare_remedies,
)
from frhsic_core._arrays import RowLabelWarning
from frhsic_core.auditing import gdp_score
from frhsic_core.cli import command
from frhsic_core.inputs.columns import far_codes
from frhsic_core.inputs.files import read_table
from frhsic_core.learning import FitWarning, MissingAttributeWarning
from frhsic_core.remedies.dependence import dependence_of

RNG = np.random.default_rng(0)
N = 200
AGE = np.round(RNG.uniform(20, 70, N))
TENS = np.round(AGE, -1)
SKILL = AGE / 40 + RNG.normal(size=N)
X = pd.DataFrame({"skill": SKILL, "luck": RNG.normal(size=N)})
TOWN = RNG.choice(["north", "south"], N)
Y = (SKILL + RNG.normal(size=N) > 1).astype(int)
P = 1 / (1 + np.exp(-SKILL))
THREE = np.arange(N) % 3
RARE = np.arange(N) < 10
HOLES = np.where(AGE > 60, np.nan, AGE)
WORDS = np.where(AGE > 45, "old", "young")
IDS = np.array([f"id{k}" for k in range(N)])
BORN = pd.Series(pd.Timestamp("2020-01-01") - pd.to_timedelta(AGE * 365.2425, unit="D"))
SERIES = pd.Series(AGE, name="age")
BOTH_S = X[["luck"]].assign(age=AGE)
SHUFFLED = SERIES.sample(frac=1, random_state=0)
FAST = {"epochs": 30, "learning_rate": 5e-2, "widths": (8, 2), "random_state": 0, "device": "cpu"}
HEAVY = {"lam": 1e4, "epochs": 200, "learning_rate": 1e-2}
HEAVY |= {"penalty_settings": {"estimator": "biased", "scale": None, "bandwidth": "every_batch"}}
FLAT = {"method": "reg_gdp", "lam": 1e6, "epochs": 600, "learning_rate": 2e-3}
ONE = {"remedies": ["leace"], "learners": ["linear"], "n_splits": 2}


class Right:
    """The call returns True: the result is right."""


class Told:
    """The command ends with exit status 2 and a sentence, without a traceback and without files."""


def with_value(value: float) -> np.ndarray:
    """Return the ages with one other value."""
    return np.where(np.arange(N) == 3, value, AGE)


def fair(
    X: Any = X, y: Any = Y, s: Any = AGE, *more: Any, kind: type = FairClassifier, **options: Any
) -> Any:
    known = {"sample_weight", "control_features"} & set(options)
    given = {name: options.pop(name) for name in known}
    return kind(**FAST | options).fit(X, y, *more, sensitive_features=s, **given)


def adjusted(
    X: Any = X, y: Any = Y, s: Any = AGE, model: Any = None, **options: Any
) -> AdjustedClassifier:
    return AdjustedClassifier(model or LogisticRegression(), **options).fit(
        X, y, sensitive_features=s
    )


def compare(X: Any = X, y: Any = Y, s: Any = AGE, **options: Any) -> Any:
    return compare_remedies(X, y, sensitive_features=s, **ONE | options)


def search(
    model: Any, grid: dict[str, list[Any]], *, given: Any = AGE, **options: Any
) -> np.ndarray:
    found = GridSearchCV(model, grid, cv=2, **options).fit(X, Y, sensitive_features=given)
    return found.cv_results_["mean_test_score"]


def routed(model: Any) -> Any:
    with sklearn.config_context(enable_metadata_routing=True):
        return search(model(), {"method": ["mean", "rank"]})


def routed_model() -> AdjustedClassifier:
    model = AdjustedClassifier(LogisticRegression()).set_fit_request(sensitive_features=True)
    return model.set_score_request(sensitive_features=True)


def same(first: Any, second: Any) -> bool:
    return bool(
        np.allclose(np.asarray(first, float), np.asarray(second, float), rtol=1e-9, atol=1e-12)
    )


def gap(p: Any, s: Any, **options: Any) -> float:
    return audit(p, sensitive_features=s, **options).gdp


def quiet(p: Any, s: Any, **options: Any) -> bool:
    return not audit(p, sensitive_features=s, **options).notes


def repaired(s: Any) -> np.ndarray:
    return adjust_scores(P, sensitive_features=s)


def ages(s: Any = AGE) -> ScoreAdjuster:
    return ScoreAdjuster().fit(P, sensitive_features=s)


def told_nothing(call: Callable[[], Any]) -> bool:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        call()
    return not told


def age_seen(method: str) -> np.ndarray:
    """Return the probabilities of a model that sees the age, adjusted or not."""
    table = X.assign(years=AGE)
    if method == "none":
        return LogisticRegression().fit(table, Y).predict_proba(table)[:, 1]
    return adjusted(table, method=method).predict_proba(table, sensitive_features=AGE)[:, 1]


def group_gap(s: np.ndarray) -> float:
    """Return GDP of an attribute with few values by its definition."""
    means = pd.Series(P).groupby(s).transform("mean")
    return float((means - P.mean()).abs().mean())


def by_name(names: Any) -> bool:
    table = X.assign(age=AGE)
    values = table[names]
    return same(
        fair(table, s=names).predict_proba(table), fair(table, s=values).predict_proba(table)
    )


def in_a_pipeline() -> bool:
    model = make_pipeline(StandardScaler(), FairClassifier(**FAST))
    model.fit(X, Y, fairclassifier__sensitive_features=AGE)
    return same(pickle.loads(pickle.dumps(model)).predict_proba(X), model.predict_proba(X))


def unseen(kind: Any) -> bool:
    model = kind.fit(X.assign(town=TOWN), sensitive_features=AGE)
    return bool(np.isfinite(model.transform(X[:3].assign(town="west"))).all())


def run(
    *arguments: str, text: str | bytes | None = None, name: str = "d.csv", first: str = "audit"
) -> Any:
    """Return a call of a command with a table; ``text`` replaces the table of scores and ages."""

    def call(folder: Path) -> tuple[int, str]:
        path = folder / name
        content = table() if text is None else text
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        given = [str(path) if one == "FILE" else one for one in arguments]
        out = folder / ("o.csv" if first == "adjust" else "o.html")
        result = CliRunner().invoke(command(), [first, str(path), *given, "--out", str(out)])
        assert not list(folder.glob("o.*"))
        return result.exit_code, " ".join((result.output + getattr(result, "stderr", "")).split())

    return call


def adjust(folder: Path, option: str, name: str, sensitive: str = "age") -> tuple[int, str]:
    """Run the adjustment of a table with an option that names a file beside it."""
    (folder / "d.csv").write_text(before := table(), encoding="utf-8")
    ages(SERIES).save(folder / "ages.json")
    given = [
        "adjust",
        str(folder / "d.csv"),
        "--score",
        "p",
        "--sensitive",
        sensitive,
        option,
        str(folder / name),
    ]
    result = CliRunner().invoke(
        command(), [*given, *([] if option == "--out" else ["--out", str(folder / "o.csv")])]
    )
    assert (folder / "d.csv").read_text(encoding="utf-8") == before
    return result.exit_code, " ".join((result.output + getattr(result, "stderr", "")).split())


def table(p: Any = P, age: Any = AGE) -> str:
    return pd.DataFrame({"p": p, "age": age, "y": Y}).to_csv(index=False)


BOTH = ("--score", "p", "--sensitive", "age")

Row = tuple[str, Any, type, str]
REVIEW: list[Row] = [
    ("a column that is not there", run("--score", "p", "--sensitive", "agee"), Told, "did you mean 'age'"),
    ("a file that is not there", lambda: read_table("no.csv", ["p"]), ValueError, "does not exist"),
    ("words as labels", lambda: audit(P, sensitive_features=AGE, y_true=WORDS), ValueError, "positive_class="),
    ("three labels", lambda: audit(P, sensitive_features=AGE, y_true=np.resize([*"abc"], N), positive_class="a"),
     ValueError, "at most two values, one of them 'a'"),
    ("missing ages", lambda: fair(s=HOLES), ValueError, r"has \d+ NaN or infinite values: drop those rows"),
    ("missing ages, adjusted", lambda: adjusted(s=HOLES), ValueError, r"\d+ missing .*drop those rows"),
    ("a constant attribute", lambda: fair(s=np.ones(N)), ValueError, "constant"),
    ("identifiers as attribute", lambda: audit(P, sensitive_features=IDS), ValueError, "200 distinct words"),
    ("identifiers, erased", lambda: AttributeEraser().fit(X, sensitive_features=IDS), ValueError, "200 distinct words"),
    # A date is a number that falls as the age rises, and GDP does not depend on the direction of an attribute.
    ("dates of birth", lambda: same(gap(P, BORN), gap(P, AGE)), Right, ""),
    ("dates, adjusted", lambda: same(repaired(BORN), repaired(-AGE)), Right, ""),
    ("an attribute with two values", lambda: same(gap(P, AGE > 45), group_gap(AGE > 45)), Right, ""),
    ("an attribute with five values", lambda: same(gap(P, AGE // 10), group_gap(AGE // 10)), Right, ""),
    ("a shuffled index", lambda: fair(X, s=SHUFFLED), ValueError, "X and sensitive_features have the same row labels"),
    ("a shuffled index, audited", lambda: audit(pd.Series(P), sensitive_features=SHUFFLED),
     ValueError, "another order"),
    ("lists", lambda: same(gap(P.tolist(), [[age] for age in AGE]), gap(P, AGE)), Right, ""),
    ("negative weights", lambda: fair(sample_weight=-np.ones(N)), ValueError, "Negative values.*sample_weight"),
    ("predict before fit", lambda: FairClassifier().predict(X), NotFittedError, "not fitted yet"),
    ("columns in another order", lambda: fair().predict(X[["luck", "skill"]]), ValueError, "feature names"),
    ("an attribute of other people", lambda: fair(s=AGE[:-1]), ValueError, "X has 200 rows"),
    ("pickle and a pipeline", in_a_pipeline, Right, ""),
    ("a clone", lambda: clone(FairClassifier(3.0, epochs=7)).get_params()["epochs"] == 7, Right, ""),
    ("a grid search", lambda: bool(np.isfinite(search(FairClassifier(**FAST), {"lam": [0.0, 1.0]})).all()), Right, ""),
    ("three classes, compared", lambda: compare(y=THREE), ValueError, r"3 different values.*task='regression'"),
    ("three classes, audited", lambda: audit(P, sensitive_features=AGE, y_true=THREE), ValueError, "has 3 values"),
    ("three classes, trained", lambda: fair(y=THREE), ValueError, "OneVsRestClassifier"),
    ("three classes, adjusted", lambda: adjusted(y=THREE), ValueError, "binary classification"),
    ("ten positives", lambda: compare(y=RARE), FitWarning, "only 10 times"),
    ("ten positives, adjusted", lambda: adjusted(y=RARE), FitWarning, "only 10 times"),
    ("a sparse X", lambda: compare(sparse.csr_matrix(X)), ValueError, "X is sparse"),
    ("S inside X", lambda: compare(X.assign(years=AGE)), FitWarning, "'years' of X is the sensitive"),
    ("S inside X, erased", lambda: AttributeEraser().fit(X.assign(years=AGE), sensitive_features=AGE),
     FitWarning, "'years' of X is the sensitive"),
    ("a category that fit did not see", lambda: unseen(AttributeEraser()) and unseen(KernelEraser()), Right, ""),
    ("a search that scores without S", lambda: search(AdjustedClassifier(LogisticRegression()), {"method": ["mean"]}),
     UserWarning, r"Scoring failed[\s\S]*set_score_request\(sensitive_features=True\)"),
    ("the same with error_score", lambda: search(AdjustedClassifier(LogisticRegression()), {"method": ["mean"]},
                                                 error_score="raise"), ValueError, "sensitive_features is missing"),
    ("routing without a request", lambda: routed(lambda: AdjustedClassifier(LogisticRegression())),
     UnsetMetadataPassedError, "sensitive_features"),
    ("routing with requests", lambda: bool(np.isfinite(routed(routed_model)).all()), Right, ""),
    ("names of an Arrow table", lambda: audit(P, sensitive_features=pytest.importorskip("pyarrow").table(
        {"age": AGE})).attributes[0].name == "age", Right, ""),
]  # fmt: skip

OWN: list[Row] = [
    # The attribute
    ("a code of 1e9 among ages", lambda: fair(s=with_value(1e9)),
     ValueError, r"value 1e\+09 \(column 0\).*median.*drop"),
    ("a code of 1e30", lambda: fair(s=with_value(1e30)), ValueError, r"value 1e\+30"),
    *((f"a code of {code} among ages: {name}", lambda fit=fit, code=code: fit(with_value(code)), UserWarning,
       f"far from all others .20 to 70., such as {code}, in 1 of 200 rows") for code in (-999, 999) for name, fit in {
           "audited": lambda s: audit(P, sensitive_features=s), "trained": lambda s: fair(s=s),
           "adjusted": lambda s: adjusted(s=s), "compared": lambda s: compare(s=s), "scores": repaired,
           "erased": lambda s: AttributeEraser().fit(X, sensitive_features=s)}.items()),
    ("codes at both ends", lambda: "3 of 203" in far_codes(np.array([*AGE, -99999, 998, 999]), "age"), Right, ""),
    ("no codes: old, skewed or few", lambda: not any(far_codes(np.array(s, float), "s") for s in (
        [*AGE, 150], np.exp(2 * SKILL), [*(AGE // 10), 99], Y)), Right, ""),
    *((f"S inside X: {kind}", lambda kind=kind: kind.fit(X.assign(years=AGE), Y, sensitive_features=AGE), FitWarning,
       "'years' of X is the sensitive") for kind in (
           AdjustedClassifier(LogisticRegression(), method="project"), FairClassifier(**FAST), FairRegressor(**FAST),
           FairEncoder(**FAST))),
    ("a missing number in X", lambda: fair(X.assign(k=pd.array([None, *[1] * 199], "Int64"))), Right, ""),
    ("one name for two attributes", lambda: fair(s=pd.DataFrame(np.c_[AGE, SKILL], columns=["s", "s"])), Right, ""),
    # A remedy that needs S to predict may use it as a feature, too: the adjustment removes what the model makes of it.
    ("S inside X, mean adjusted", lambda: gap(age_seen("mean"), AGE) < 0.2 * gap(age_seen("none"), AGE), Right, ""),
    ("an age far outside of those in fit", lambda: ages().transform([0.5], sensitive_features=[150.0]), UserWarning,
     r"far outside of 20 to 70.*150.*in 1 of 1 rows"),
    ("an age a little outside", lambda: told_nothing(lambda: ages().transform([0.5], sensitive_features=[72.0])), Right,
     ""),
    ("another attribute than in fit", lambda: ages(SERIES).transform(P, sensitive_features=SERIES.rename("income")),
     ValueError, "columns 'income', but fit had 'age'"),
    ("attributes in another order", lambda: same(*(ages(BOTH_S).transform(P, sensitive_features=BOTH_S[names])
                                                   for names in (["age", "luck"], ["luck", "age"]))), Right, ""),
    ("an attribute in other units", lambda: same(fair(s=AGE * 2.0**30).predict_proba(X), fair().predict_proba(X)),
     Right, ""),
    ("a code of 1e300, audited", lambda: audit(P, sensitive_features=with_value(1e300)), ValueError, "too large"),
    ("numbers that are written as text", lambda: same(repaired(AGE.astype(int).astype(str)), repaired(AGE)), Right, ""),
    ("an unknown age among numbers", lambda: audit(P, sensitive_features=[*AGE[1:], "unknown"]), ValueError,
     "mixes numbers and words: 1 of 200"),
    ("no age at all", lambda: audit(P, sensitive_features=np.full(N, np.nan)), ValueError, "has no value in any"),
    ("the same age for all", lambda: audit(P, sensitive_features=np.ones(N)), ValueError, "is constant"),
    ("the same age, adjusted", lambda: adjust_scores(P, sensitive_features=np.ones(N)), ValueError, "constant"),
    ("a constant column, representation", lambda: audit_representation(X, X.assign(age=3.0)), ValueError,
     r"s is constant \(column 2\)"),
    ("a shuffled index, representation", lambda: audit_representation(X, SHUFFLED), ValueError, "z and s have"),
    ("two columns of one name", lambda: audit(P, sensitive_features=pd.concat([SERIES, SERIES], axis=1)), ValueError,
     "two columns named 'age'"),
    ("words where fit had numbers", lambda: adjusted().predict(X, sensitive_features=WORDS),
     ValueError, "numeric in fit"),
    ("numbers where fit had words", lambda: adjusted(s=WORDS).predict(X, sensitive_features=AGE),
     ValueError, "text in fit"),
    ("no attribute, adjusted", lambda: adjusted(s=None), MissingAttributeWarning, "changes NOTHING"),
    ("no attribute, erased", lambda: AttributeEraser().fit(X), MissingAttributeWarning, "changes NOTHING"),
    ("no attribute to predict", lambda: adjusted().predict(X), ValueError, "needs S of every sample"),
    ("a name that X does not have", lambda: fair(s="agee"), ValueError, "no column 'agee'.*'skill', 'luck'"),
    ("a name without a table", lambda: fair(X.to_numpy(), s="age"), TypeError, "fairclassifier__sensitive_features"),
    ("the name of a column", lambda: by_name("luck") and by_name(["age", "luck"]), Right, ""),
    ("labels in another order", lambda: fair(y=pd.Series(Y)[SHUFFLED.index]), ValueError, "X and y have the same row"),
    ("a curve of two attributes", lambda: fc.gdp_curve(P, X), ValueError, "gdp_curve"),
    ("a guarantee at another level", lambda: audit(P, sensitive_features=TENS, alpha=0.3).bound.bound == fc.gdp_bound(
        P, sensitive_features=TENS, delta=0.3).bound, Right, ""),
    ("scores and ages by name", lambda: same(adjust_scores({"p": P}, sensitive_features={"age": AGE}),
                                             adjust_scores(P, sensitive_features=AGE)), Right, ""),
    ("weights in another order", lambda: fair(sample_weight=SHUFFLED), ValueError, "X and sample_weight have the same"),
    *((f"another order: {kind}", lambda kind=kind: kind.fit(X, SKILL, sensitive_features=SHUFFLED),
       ValueError, "X and sensitive_features have") for kind in (
           FairRegressor(), FairEncoder(), AdjustedRegressor(Ridge()), AttributeEraser(), KernelEraser())),
    ("another order, compared", lambda: compare(s=SHUFFLED), ValueError, "X and sensitive_features have"),
    ("scores in another order", lambda: adjust_scores(pd.Series(P), sensitive_features=SHUFFLED),
     ValueError, "scores and sensitive_features have"),
    ("given in another order", lambda: fc.hsic_test(pd.Series(P), AGE, given=SHUFFLED), ValueError, "z and given"),
    ("other row labels", lambda: fair(s=SERIES.set_axis(range(900, 900 + N))), RowLabelWarning, "different row labels"),
    ("dates with a hole", lambda: fair(s=BORN.where(AGE < 60)), ValueError, "NaN"),
    # The call
    ("the attribute by position", lambda: audit(P, AGE), TypeError, r"audit\(y_pred, sensitive_features=age"),
    ("no attribute to audit", lambda: audit(P), TypeError, "needs sensitive_features by name"),
    ("the attribute by position in fit", lambda: FairClassifier().fit(X, Y, AGE), TypeError, "3 positional arguments"),
    ("fairlearn's name", lambda: fc.gdp(Y, P, sensitive_features=AGE), TypeError, r"gdp_score\(y_true, y_pred"),
    ("another word for a seed", lambda: fc.hsic_test(P, AGE, seed=0), TypeError, "write random_state"),
    ("another word for alpha", lambda: fc.hsic_test(P, AGE, level=0.1), TypeError, "write alpha"),
    ("another word for weights", lambda: fc.hsic(P, AGE, weights=AGE), TypeError, "write sample_weight"),
    ("another name of a kernel", lambda: fc.hsic(P, AGE, kernel_z="rbf"), ValueError, "gaussian"),
    ("ages of other people", lambda: fc.hsic(P, AGE[:-1]), ValueError, "199"),
    ("an alpha of 0.95", lambda: audit(P, sensitive_features=AGE, alpha=0.95), ValueError, "such as 0.05"),
    ("a method that does not exist", lambda: fair(method="frshic"), ValueError, "did you mean 'frhsic'"),
    ("a negative λ", lambda: fair(lam=-1.0), ValueError, "zero or positive, or 'auto'"),
    ("a setting with a typing error", lambda: fair(penalty_settings={"conditon": "positives"}),
     ValueError, "condition"),
    ("a rule with a typing error", lambda: fair(lam="auto", selection={"tolerence": 0.1}), ValueError, "tolerance"),
    ("a class that y does not have", lambda: fair(positive_class="yes"), ValueError, "classes 0 and 1"),
    ("a remedy with a typing error", lambda: compare(remedies=["lease"]), ValueError, "did you mean 'leace'"),
    ("one remedy without a list", lambda: set(compare(remedies="leace").table["remedy"]) == {"none", "leace"},
     Right, ""),
    ("a strength of two", lambda: compare(remedies={"leace": [2.0]}), ValueError, "strength 2 for 'leace'.*0 and 1"),
    ("a λ below zero", lambda: compare(remedies={"encoder": [-1.0]}), ValueError, "λ of an encoder is zero or more"),
    *((f"max_seconds={given!r}", lambda given=given: compare(max_seconds=given), ValueError, "a number of seconds")
      for given in (-1.0, "30", float("nan"))),
    ("the attribute by position, compared", lambda: compare_remedies(X, Y, AGE), TypeError, "2 positional arguments"),
    ("no splits", lambda: compare(n_splits=0), ValueError, "at least two folds"),
    ("a negative limit", lambda: compare().best(within=-1.0), ValueError, "within is -1"),
    ("a method of another class", lambda: adjusted(method="median"), ValueError, "'method' parameter"),
    ("one fold", lambda: adjusted(cv=1), ValueError, "'cv' parameter"),
    ("a basis that does not exist", lambda: AttributeEraser("bins").fit(X, sensitive_features=AGE),
     ValueError, "basis"),
    # The model
    ("a classifier without probabilities", lambda: adjusted(model=LinearSVC()), TypeError, "CalibratedClassifierCV"),
    *((f"no classifier: {name}", lambda it=it: compare(learners={"mine": it}), TypeError, f"{name} has no predict_pr")
      for name, it in {"Ridge": Ridge(), "int": 3}.items()),
    *((f"a classifier for numbers: {name}", call, TypeError, "is a classifier, but y has numbers") for name, call in {
        "compared": lambda: compare(y=SKILL, learners={"logistic": LogisticRegression()}),
        "adjusted": lambda: AdjustedRegressor(LogisticRegression()).fit(X, SKILL, sensitive_features=AGE)}.items()),
    ("a model that is not fitted", lambda: adjusted(cv="prefit"), NotFittedError, "not fitted yet"),
    ("fewer columns later", lambda: compare().fit_best(X, Y, sensitive_features=AGE, within=1).predict(X[["luck"]]),
     ValueError, "feature names"),
    # X and y
    *((f"no columns: {name}", lambda fit=fit, x=x: fit(x), ValueError, r"X has 0 feature\(s\).*with columns")
      for x in (X[[]], np.empty((N, 0))) for name, fit in {
          "trained": fair, "adjusted": adjusted, "compared": compare,
          "erased": lambda x: AttributeEraser().fit(x, sensitive_features=AGE)}.items()),
    ("text in an array", lambda: fair(np.column_stack([SKILL, WORDS]).astype(object)), ValueError,
     r"text in column 1 \(first: '(old|young)'\)"),
    ("dates in X", lambda: fair(X.assign(born=BORN)), ValueError, "dates in column 'born'"),
    ("columns of one name in X", lambda: fair(pd.concat([X, X[["luck"]]], axis=1)), ValueError, "columns named 'luck'"),
    ("a sparse X, trained", lambda: fair(sparse.csr_matrix(X)), TypeError, "Sparse"),
    ("a sparse X, erased", lambda: AttributeEraser().fit(sparse.csr_matrix(X), sensitive_features=AGE),
     TypeError, "parse"),
    ("infinity in X", lambda: AttributeEraser().fit(X.replace(X.iloc[0, 0], np.inf), sensitive_features=AGE),
     ValueError,
     "infinity"),
    *((f"words for a regression: {kind}",
       lambda kind=kind: kind.fit(X, np.char.add(THREE.astype(str), "x"), sensitive_features=AGE),
       ValueError, "text .first: '0x'") for kind in (FairRegressor(), AdjustedRegressor(Ridge()), FairEncoder())),
    ("dates for a regression", lambda: fair(y=BORN, kind=FairRegressor), ValueError, "dates .first"),
    *((f"a missing label: {kind}",
       lambda kind=kind: kind.fit(X, np.where(RARE, None, WORDS), sensitive_features=AGE), ValueError,
       "y has 10 missing") for kind in (FairClassifier(), AdjustedClassifier(LogisticRegression()), FairEncoder())),
    *((f"a target that never changes: {kind.__name__}",
       lambda kind=kind: kind().fit(X, np.full(N, 5.0), sensitive_features=AGE),
       ValueError, r"y is constant \(5") for kind in (FairRegressor, FairEncoder)),
    ("one class", lambda: adjusted(y=np.ones(N)), ValueError, "one class only"),
    ("one class, compared", lambda: compare(y=["a"] * N), ValueError, "one value only .'a'"),
    ("a class of one", lambda: adjusted(y=np.arange(N) == 0), ValueError, "two of each class"),
    ("a class of three", lambda: compare(y=np.arange(N) < 3), ValueError, "only 3 times: at least 4"),
    ("a scale of three numbers", lambda: compare(y=THREE, task="regression").task == "regression", Right, ""),
    ("missing targets", lambda: compare(y=np.where(RARE, np.nan, SKILL)), ValueError, "10 missing"),
    ("too few steps", lambda: fair(epochs=2, learning_rate=1e-3), FitWarning, "looks fairer.*epochs=1000 or more"),
    ("a λ that outweighs the task", lambda: fair(y=X["luck"] + AGE / 70 > 1.2, **HEAVY), FitWarning,
     r"λ = 10000\) predicts one class .* from 0\.\d\d to .*a lower lam"),
    ("a regression that is a constant", lambda: fair(y=RNG.normal(size=N), kind=FairRegressor, **FLAT), FitWarning,
     "almost one value .*a lower lam"),
    ("λ chosen among none", lambda: fair(lam="auto", selection={"lams": [0.0], "n_permutations": 19}),
     FitWarning, "chose λ = 0"),
    ("a control that is no column", lambda: fair(control_features="town"), ValueError, "control_features"),
    ("a shuffled control", lambda: fair(control_features=SHUFFLED), ValueError, "X and control_features have the same"),
    # The scores
    ("a tensor with a gradient", lambda: gap(torch.tensor(P, requires_grad=True), AGE) == gap(P, AGE), Right, ""),
    ("weights in another order", lambda: fc.gdp(P, SERIES, sample_weight=SHUFFLED), ValueError, "s and sample_weight"),
    ("an attribute of one value, compared",
     lambda: dependence_of(P, np.c_[AGE, 0 * AGE]) == dependence_of(P, AGE[:, None]), Right, ""),
    ("both columns of probabilities", lambda: audit(np.column_stack([1 - P, P]), sensitive_features=AGE), ValueError,
     r"predict_proba\(X\)\[:, 1\]"),
    ("both columns, representation", lambda: audit_representation(X, AGE, predictions=np.zeros((N, 2))), ValueError,
     r"predict_proba\(X\)\[:, 1\]"),
    ("a threshold in percent", lambda: audit(P, sensitive_features=AGE, threshold=50),
     ValueError, "nobody would be selected"),
    ("scores in percent", lambda: audit(100 * P, sensitive_features=AGE, threshold=0.5),
     ValueError, "everybody would be"),
    ("swapped columns", lambda: audit(AGE, sensitive_features=P), UserWarning, r"swapped.*audit\(sensitive, sens"),
    ("points along a share of few values", lambda: quiet(AGE, np.round(P, 1)), Right, ""),
    ("predictions of numbers along a share", lambda: quiet(AGE, P, y_true=AGE + SKILL), Right, ""),
    ("predictions that leave the range of a share", lambda: quiet(1.4 * P - 0.2, P), Right, ""),
    ("a representation as scores", lambda: audit(X, sensitive_features=AGE), ValueError, "call audit_representation"),
    ("two columns of scores", run(*BOTH, "--score", "y"), Told, "has 2 columns"),
    ("words as scores", lambda: audit(WORDS, sensitive_features=AGE), ValueError, "positive_class="),
    ("hard decisions, adjusted", lambda: adjust_scores(Y, sensitive_features=AGE), ValueError, "has two values"),
    ("missing scores, adjusted", lambda: adjust_scores(HOLES, sensitive_features=AGE),
     ValueError, "missing or infinite"),
    ("both columns, adjusted", lambda: adjust_scores(np.column_stack([P, P]), sensitive_features=AGE),
     ValueError, "shape"),
    ("ten scores, adjusted", lambda: adjust_scores(P[:10], sensitive_features=AGE[:10]), ValueError, "at least 20"),
    ("percent after probabilities", lambda: ScoreAdjuster().fit(P, sensitive_features=AGE).transform(
        [70.0], sensitive_features=[30.0]), ValueError, "outside of 0 to 1"),
    ("weights of zero", lambda: audit(P, sensitive_features=AGE, sample_weight=np.zeros(N)),
     ValueError, "zero in every row"),
    ("a metric of two attributes", lambda: gdp_score(Y, P, sensitive_features=X),
     ValueError, "one sensitive attribute"),
    ("the number of two audits", lambda: audit(P, sensitive_features=X).gdp, ValueError, r"result\['skill'\].gdp"),
    # The command
    ("no columns named", run(), Told, "has the columns 'p', 'age', 'y'"),
    ("capital letters", run("--score", "P", "--sensitive", "age"), Told, "did you mean 'p'"),
    ("one column in two roles", run(*BOTH, "--control", "age"), Told, "by --control"),
    ("the score as label", run(*BOTH, "--label", "p"), Told, "by --score and by --label"),
    ("the label as weight", run(*BOTH, "--label", "y", "--weight", "y"), Told, "by --label and by --weight"),
    ("decimal commas", run(*BOTH, text="p;age\n" + "\n".join(f"0,{k};{k}" for k in range(20, 70))),
     Told, "decimal point"),
    ("percent signs", run(*BOTH, text=table(p="30 %")), Told, "decimal point"),
    ("ages with a unit", run(*BOTH, text="p,age\n" + ".3,20 years\n.4,31 years\n.5,53 years\n" * 9), Told, "units"),
    ("a unit without a space", run(*BOTH, first="adjust", text=table(age=[f"{a:g}yrs" for a in AGE])), Told, "units"),
    ("infinite scores", run(*BOTH, text=table(p=np.inf)), Told, "no finite value"),
    ("an empty file", run(*BOTH, text=""), Told, "could not be read"),
    ("a header alone", run(*BOTH, text="p,age\n"), Told, "no rows"),
    ("a header with a column twice", run(*BOTH, text="p,age,age\n1,2,3\n"), Told, "2 columns named 'age'"),
    ("a comma inside a number", run(*BOTH, text="age,p\n1,200,2\n1,200,3\n"), Told, "more cells in a row"),
    ("a file of Excel", run(*BOTH, name="d.xlsx"), Told, "Excel"),
    ("another encoding", run(*BOTH, text="p,age\n1,süß\n".encode("latin-1")), Told, "UTF-8"),
    ("no parquet in a parquet file", run(*BOTH, name="d.parquet"), Told, "could not be read as parquet"),
    ("one row", run(*BOTH, text="p,age\n0.5,30\n"), Told, "at least 20"),
    ("a gate without a number", run(*BOTH, "--fail-above", "gdp>0.05"), Told, "such as gdp=0.05"),
    ("a gate that needs labels", run(*BOTH, "--fail-above", "equal_opportunity=0.1"), Told, "needs --label"),
    ("a quote that does not end", run(*BOTH, text='p,age\n1,"2\n'), Told, "could not be read"),
    ("a folder without tables", lambda: read_table(Path(__file__).parent, ["p"]), ValueError, "could not be read"),
    ("a measure with a typing error", run(*BOTH, "--fail-above", "gpd=0.1"), Told, "did you mean 'gdp'"),
    ("a guarantee without a gate", run(*BOTH, "--guaranteed"), Told, "--fail-above gdp=0.05"),
    ("scores that are adjusted already", run(*BOTH, first="adjust", text=table().replace("p,age", "p,age,p_adjusted")),
     Told, "already has a column 'p_adjusted'"),
    ("the score as attribute", run("--score", "p", "--sensitive", "p", first="adjust"), Told, "by --score"),
    ("the same score for all", run(*BOTH, first="adjust", text=table(p=0.3)), Told, "is constant or"),
    ("a table over its own", lambda folder: adjust(folder, "--out", "d.csv"), Told, "this command reads: name another"),
    ("an adjustment over its table", lambda folder: adjust(folder, "--save", "d.csv"), Told,
     "this command reads: name another"),
    ("an adjustment of another attribute", lambda folder: adjust(folder, "--use", "ages.json", sensitive="y"), Told,
     "columns 'y', but fit had 'age'"),
    ("no adjustment in the file", run(*BOTH, "--use", "FILE", first="adjust"), Told, "not a saved adjustment"),
]  # fmt: skip


@pytest.mark.parametrize("typed", [
    "AdjustedClassifier(LogisticRegression()).fit(X, Y)", "AttributeEraser().fit(X)",
    "AttributeEraser().fit(X.assign(years=AGE), sensitive_features=AGE)",
    "AdjustedClassifier(LogisticRegression()).fit(X, RARE, sensitive_features=AGE)",
    "compare_remedies(X, RARE, sensitive_features=AGE, **ONE)", "FairClassifier(**FAST | {'epochs': 1}).fit(X, Y)",
])  # fmt: skip
def test_a_warning_names_the_file_of_the_user(typed: str) -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", UserWarning)
        exec(compile(typed, "user.py", "exec"), globals())
    ours = [one for one in told if one.category.__module__.startswith("frhsic_core")]
    assert {one.filename for one in ours} == {"user.py"}


@pytest.mark.filterwarnings("ignore::frhsic_core.learning.FitWarning")
@pytest.mark.filterwarnings("ignore::frhsic_core.learning.EscapeWarning")
@pytest.mark.parametrize(
    ("call", "kind", "words"), [pytest.param(*row[1:], id=row[0]) for row in REVIEW + OWN]
)
def test_a_mistake(call: Callable[..., Any], kind: type, words: str, tmp_path: Path) -> None:
    torch.set_num_threads(1)
    if kind is Told:
        status, said = call(tmp_path)
        assert status == 2
        assert "Traceback" not in said
        assert re.search(words, said), said
    elif kind is Right:
        assert bool(call())
    elif issubclass(kind, Warning):
        with warnings.catch_warnings(action="ignore"), pytest.warns(kind, match=words):
            call()
    else:
        with pytest.raises(kind, match=words):
            call()
