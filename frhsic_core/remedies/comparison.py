"""Compare remedies on your own data: fit each of them on several splits, and measure score and dependence held out."""

from __future__ import annotations

import math
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from scipy import sparse, stats
from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold, StratifiedShuffleSplit
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted, column_or_1d

from frhsic_core._arrays import ArrayLike, require_same_rows, warn_caller
from frhsic_core._choices import one_of
from frhsic_core.auditing import audit
from frhsic_core.conditional import gdp
from frhsic_core.inputs.features import columns_of, fit_columns
from frhsic_core.inputs.fitting import require_features, require_resolution, warn_of_attribute
from frhsic_core.joint import distance_correlation
from frhsic_core.learning import FairClassifier, FairRegressor
from frhsic_core.remedies.attributes import (
    AttributeBasis,
    attribute_matrix,
    checked_features,
    read_attributes,
    warn_of_few,
)
from frhsic_core.remedies.erase import AttributeEraser, KernelEraser
from frhsic_core.remedies.models import (
    AdjustedClassifier,
    AdjustedRegressor,
    require_predictions,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEARNERS = ("linear", "boosting")


@dataclass(frozen=True)
class Remedy:
    """A remedy: its label, whether it needs S of the person that is predicted, and what it does.

    ``change`` makes a transformer of X; ``method`` is that of the adjustment of scores. A remedy has at most one of
    them. Without both it is the trained encoder, or a model without a remedy.
    """

    label: str
    needs_s: bool = False
    change: Callable[[], Any] | None = None
    method: str = ""


# The baseline of remedies that need S to predict is a model that sees S and is not changed.
AWARE = "none_with_s"
PLAIN = {False: "none", True: AWARE}
REMEDIES = {
    "none": Remedy("no remedy"),
    AWARE: Remedy("no remedy, S is a feature", True),
    "leace": Remedy("LEACE on S", change=lambda: AttributeEraser("linear")),
    "leace_spline": Remedy("LEACE on splines of S", change=lambda: AttributeEraser("spline")),
    "kernel_eraser": Remedy("kernel eraser", change=lambda: KernelEraser("spline")),
    "project": Remedy("scores, projected", method="project"),
    "encoder": Remedy("trained encoder (FRHSIC)"),
    "adjust_mean": Remedy("scores, mean adjusted", True, method="mean"),
    "adjust_rank": Remedy("scores, ranks adjusted", True, method="rank"),
}
TEST_SHARE = 0.3
STRENGTHS = (0.5, 1.0)
_CLASSES = 20  # at most so many different whole numbers can be classes
LAMS = (0.3, 1.0, 5.0, 20.0)
MEASURES = ("score", "dcor", "gdp", "cpu_seconds")
_MOST_ROWS = 2000  # for the distance correlation, so that its cost is bounded


def learner(name: Any, task: str) -> Any:
    """Return an unfitted learner: a regularized linear model on standardized columns, boosting, or a model of yours."""
    if not isinstance(name, str):
        require_predictions(name, classes=task == "classification")
        return clone(name)
    one_of("learner", name, LEARNERS)
    if name == "linear":
        model = (
            RidgeCV(np.logspace(-2, 4, 13))
            if task == "regression"
            else LogisticRegression(max_iter=2000)
        )
        return make_pipeline(StandardScaler(), model)
    booster = (
        HistGradientBoostingRegressor if task == "regression" else HistGradientBoostingClassifier
    )
    return booster(
        max_iter=100, learning_rate=0.06, max_leaf_nodes=15, min_samples_leaf=20, random_state=0
    )


def without_steps(name: Any) -> tuple[Pipeline | None, Any]:
    """Return the steps of a pipeline that chooses columns of a table, and its model; None before other learners."""
    parts = name.get_params().values() if isinstance(name, BaseEstimator) else ()
    if not any(isinstance(part, ColumnTransformer) for part in parts):
        return None, name
    if not isinstance(name, Pipeline):
        raise TypeError(
            f"{type(name).__name__} wraps a pipeline that chooses columns: pass the pipeline instead."
        )
    return clone(name[:-1]), name[-1]


def score_of(predicted: np.ndarray, y: np.ndarray, *, task: str) -> float:
    """Return R² of a regression, or AUC of a classification with labels 0 and 1."""
    return float(r2_score(y, predicted) if task == "regression" else roc_auc_score(y, predicted))


def dependence_of(predicted: np.ndarray, s: np.ndarray, *, scale: float = 1.0) -> dict[str, float]:
    """Return how strongly predictions ``(n,)`` depend on ``s (n, p)``.

    ``dcor`` is the root of the bias-corrected squared distance correlation with the standardized attributes, of at most
    2,000 evenly spaced samples, and zero where that is negative. ``gdp`` is that of ``predicted / scale``, the largest
    of all attributes.

    Examples
    --------
    >>> s = np.linspace(0, 1, 200)[:, None]
    >>> round(dependence_of(s[:, 0], s)["dcor"], 3)
    1.0
    """
    if predicted.std() <= 1e-12 * max(1.0, float(np.abs(predicted).max())):
        return {"dcor": 0.0, "gdp": 0.0}
    s = s[:, np.ptp(s, axis=0) > 0]
    rows = np.linspace(0, len(s) - 1, min(len(s), _MOST_ROWS)).round().astype(int)
    squared = distance_correlation(
        predicted[rows], s[rows] / s.std(0), squared=True, estimator="unbiased"
    )
    return {
        "dcor": math.sqrt(max(float(squared), 0.0)),
        "gdp": max(gdp(predicted / scale, c) for c in s.T),
    }


Sample = tuple[
    Any, np.ndarray, pd.DataFrame
]  # X as given, the target (0 and 1 for classes), the attributes


class FittedRemedy:
    """One remedy at full strength with one learner; a call returns predictions (probabilities) of new samples.

    ``lam`` and ``seed`` are those of a trained encoder. The first steps of a pipeline that chooses columns are fitted
    on the table as it is, and the remedy stands between them and the last step.
    """

    def __init__(
        self, key: str, name: Any, train: Sample, *, task: str, lam: float = 1.0, seed: int = 0
    ) -> None:
        x, y, s = train
        self.steps, name = without_steps(name)
        self.columns = fit_columns(x) if self.steps is None else None
        remedy = REMEDIES[key]
        numbers = task == "regression"
        self.how = "predict" if numbers else "predict_proba"
        self.seen = (
            AttributeBasis("linear").fit(s) if remedy.needs_s else None
        )  # by a learner for which S is a feature
        self.given = remedy.needs_s and bool(remedy.method)  # S, once more, to adjust the scores
        model: Any
        more: dict[str, Any] = {"sensitive_features": s}
        if key == "encoder":
            model = (FairRegressor if numbers else FairClassifier)(
                lam, random_state=seed, device="cpu"
            )
            more = {"sensitive_features": attribute_matrix(s)}
        elif remedy.method:
            model = (AdjustedRegressor if numbers else AdjustedClassifier)(
                learner(name, task), method=remedy.method
            )
        elif remedy.change is not None:
            model = Pipeline([("change", remedy.change()), ("learner", learner(name, task))])
            more = {"change__sensitive_features": s}
        else:
            model, more = learner(name, task), {}
        self.model = model.fit(self._inputs(x, s, y), y, **more)

    def _inputs(self, x: Any, s: pd.DataFrame | None, y: np.ndarray | None = None) -> np.ndarray:
        if self.steps is not None:
            x = self.steps.transform(x) if y is None else self.steps.fit_transform(x, y)
            x = x.toarray() if sparse.issparse(x) else np.asarray(x)
        x = x if self.columns is None else columns_of(x, self.columns)
        return x if self.seen is None or s is None else np.hstack([x, self.seen.transform(s)])

    def __call__(self, x: Any, s: pd.DataFrame | None) -> np.ndarray:
        more = {"sensitive_features": s} if self.given else {}
        predicted = np.asarray(
            getattr(self.model, self.how)(self._inputs(x, s), **more), dtype=np.float64
        )
        return predicted if predicted.ndim == 1 else predicted[:, 1]


@dataclass(frozen=True)
class RemedyComparison:
    """The result of :func:`~frhsic_core.compare_remedies`.

    Attributes
    ----------
    splits : DataFrame
        One row for each remedy, learner, strength and split.
    table : DataFrame
        Means over the splits, with the half-width of a 95 % interval (``score_half``, ``dcor_half``) that allows for
        the samples that the splits share, and ``non_dominated``.
    task : {"regression", "classification"}
        The score is R² of a regression and AUC of a classification.
    learners : mapping of str
        The learner behind each name of the table.
    """

    splits: pd.DataFrame
    table: pd.DataFrame
    task: str
    learners: Mapping[str, Any] = field(default_factory=dict)

    @property
    def score_name(self) -> str:
        """R² or AUC."""
        return "R²" if self.task == "regression" else "AUC"

    def frontier(self) -> pd.DataFrame:
        """Return the rows that no other row beats in both score and distance correlation, the highest score first."""
        return self.table[self.table["non_dominated"]].sort_values(
            "score", ascending=False, kind="stable"
        )

    def best(
        self, *, within: float = 0.02, needs_s: bool | None = None, measure: str = "dcor"
    ) -> pd.Series:
        """Return the row that depends least on S, of those whose score is at most ``within`` below that of no remedy.

        The best model without a remedy counts, so the row never depends more on S than this model. ``measure`` of the
        dependence is ``"dcor"``, the distance correlation, or ``"gdp"``. With ``needs_s`` only models that need S to
        predict count (True), or those that do not (False). If the row has no remedy, none of them helps enough.
        """
        if not within >= 0:
            raise ValueError(f"within is {within}: it must be zero or positive.")
        rows = self.table if needs_s is None else self.table[self.table["needs_s"] == needs_s]
        if rows.empty:
            raise ValueError(
                f"no model with needs_s={needs_s} was compared: add such a remedy to remedies."
            )
        plain = rows["score"][rows["remedy"].isin(PLAIN.values())].max()
        close = rows[rows["score"] >= plain - within]
        return close.loc[close[one_of("measure", measure, ("dcor", "gdp"))].idxmin()]

    def fit_best(
        self, X: Any, y: Any, *, sensitive_features: ArrayLike, **choice: Any
    ) -> RemediedModel:
        """Fit the model of :meth:`best` on raw data and return it with its audit, ready to be saved with joblib.

        Parameters
        ----------
        X, y, sensitive_features
            As in :func:`~frhsic_core.compare_remedies`; usually the same.
        **choice
            ``within``, ``needs_s`` and ``measure``, as in :meth:`best`.

        Returns
        -------
        RemediedModel
            Its ``audit_`` is that of predictions for people that the model had not seen. If no remedy helps, it has
            none, and a warning says so.
        """
        row = self.best(**choice)
        if row["remedy"] in PLAIN.values():
            warn_caller(
                f"The model has NO remedy: none loses so little {self.score_name} and depends less on S."
            )
        chosen = self.learners.get(row["learner"], row["learner"])
        model = RemediedModel(row["remedy"], chosen, float(row["strength"]), task=self.task)
        return model.fit(X, y, sensitive_features=sensitive_features)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw score against distance correlation with intervals; up and to the left is better. Needs matplotlib."""
        import matplotlib.pyplot as plt

        if ax is None:
            _, ax = plt.subplots(figsize=(7.4, 4.6), layout="constrained")
        for (remedy, model), rows in self.table.sort_values("strength").groupby(
            ["remedy", "learner"], sort=False
        ):
            style: dict[str, Any] = (
                {"linestyle": "--", "markerfacecolor": "white"} if rows["needs_s"].any() else {}
            )
            sides = (rows["dcor"], rows["score"], rows["score_half"], rows["dcor_half"])
            label = f"{REMEDIES[str(remedy)].label}, {model}"
            ax.errorbar(*sides, marker="o", linewidth=1, elinewidth=0.5, label=label, **style)
        frontier = self.frontier().sort_values("dcor", kind="stable")
        ax.plot(
            frontier["dcor"], frontier["score"], color="gray", linewidth=5, alpha=0.25, zorder=0
        )
        ax.set(
            xlabel="dependence on S (distance correlation)", ylabel=f"held-out {self.score_name}"
        )
        ax.legend(
            fontsize=7,
            frameon=False,
            loc="center left",
            bbox_to_anchor=(1.0, 0.5),
            title="hollow: needs S",
        )
        return ax

    def shown(self) -> pd.DataFrame:
        """Return the table with readable columns, the best scores first."""
        names = {
            "needs_s": "needs S to predict",
            "score": self.score_name,
            "score_half": "±",
            "dcor": "dCor",
        }
        names |= {
            "dcor_half": "± ",
            "gdp": "GDP",
            "cpu_seconds": "CPU s",
            "non_dominated": "on the frontier",
        }
        rows = self.table.sort_values("score", ascending=False, kind="stable").reset_index(
            drop=True
        )
        rows = rows.assign(
            remedy=[REMEDIES[key].label for key in rows["remedy"]],
            needs_s=np.where(rows["needs_s"], "yes", "no"),
            non_dominated=np.where(rows["non_dominated"], "yes", ""),
        )
        return rows[["remedy", "learner", "strength", *names]].rename(columns=names)

    def _repr_html_(self) -> str:
        return self.shown().to_html(index=False, float_format="{:.3f}".format, border=0)

    def __str__(self) -> str:
        splits = self.splits["split"].nunique()
        lines = [f"{len(self.table)} settings on {splits} split{'s' * (splits != 1)}."]
        for needs, rows in self.table.groupby("needs_s"):
            words = "with S to predict" if needs else "without S to predict"
            plain = rows[rows["remedy"] == PLAIN[bool(needs)]].nlargest(1, "score").iloc[0]
            row = self.best(needs_s=bool(needs))
            lines.append(
                f"Among the models {words}, the one without a remedy has {self.score_name} {plain['score']:.3f} and "
                f"dCor {plain['dcor']:.3f}. Of those that lose at most 0.02, {REMEDIES[row['remedy']].label} "
                f"({row['learner']}, strength {row['strength']:g}) depends least on S: {self.score_name} "
                f"{row['score']:.3f}, dCor {row['dcor']:.3f}."
            )
        return " ".join(lines)


def non_dominated(score: Iterable[float], dependence: Iterable[float]) -> np.ndarray:
    """Return which points no other point beats: a higher or equal score with less or equal dependence, one strictly.

    Examples
    --------
    >>> non_dominated([0.9, 0.8, 0.7], [0.5, 0.1, 0.2]).tolist()
    [True, True, False]
    """
    u, d = np.asarray(list(score), float), np.asarray(list(dependence), float)
    at_least = (u >= u[:, None]) & (d <= d[:, None])
    return np.logical_not((at_least & ~at_least.T).any(1, keepdims=True))[:, 0]


def compare_remedies(
    X: Any,
    y: Any,
    *misplaced: Any,
    sensitive_features: ArrayLike = None,
    remedies: Sequence[str] | Mapping[str, Sequence[float]] | None = None,
    learners: Sequence[str] | Mapping[str, Any] = LEARNERS,
    n_splits: int = 5,
    task: str = "auto",
    max_seconds: float | None = None,
    random_state: int = 0,
    verbose: bool = False,
) -> RemedyComparison:
    """Fit remedies × learners × strengths on several splits of your data, and measure them on held-out samples.

    The cost is that of all fits: for 5,000 samples about half a minute for each split, most of it for the trained
    encoders; leave ``"encoder"`` out of ``remedies`` to save it.

    A strength t below 1 is a blend of predictions, (1 − t) · without + t · with the remedy: a learner could undo a
    weaker change of X. The strength of an encoder is its λ.

    Parameters
    ----------
    X : array_like or DataFrame
        ``(n, d)``. Columns of text become indicators, and missing numbers become the median of the training samples.
        Leave S out of X: the remedies that may use S get it from ``sensitive_features``.
    y : array_like
        Numbers for a regression, two classes for a classification. The larger class counts as positive. Several
        classes are refused: compare each of them with the others.
    sensitive_features : array_like
        ``(n,)``, ``(n, p)`` or a frame with numeric and categorical columns.
    remedies : sequence or mapping of str, optional
        Of leace, leace_spline, kernel_eraser, project, encoder, adjust_mean and adjust_rank; all by default. A mapping
        gives the strengths of each. A model without a remedy is added, with S as a feature where remedies need S.
    learners : sequence of {"linear", "boosting"} or mapping of str to estimator
        What is trained after, or before, each remedy. A mapping names scikit-learn models of your own, with
        ``predict_proba`` if there are classes. They get X as an array of numbers. A pipeline with a ColumnTransformer
        gets X as it is, and a remedy that changes X stands before its last step.
    n_splits : int
        Number of random splits into 70 % training and 30 % test samples.
    task : {"auto", "regression", "classification"}
        Set it if y has few different whole numbers that are a scale and not classes.
    max_seconds : float, optional
        Start no further fit after this time. Complete splits are kept; of the first split, what is done.
    random_state : int
        Seed of the splits and of the encoders.
    verbose : bool
        Print the fit that runs, with the time so far, to the error stream.

    Returns
    -------
    RemedyComparison
        A table, the frontier, a plot and an HTML view.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> age = rng.uniform(20, 70, 400)
    >>> X = np.column_stack([age + 5 * rng.normal(size=400), rng.normal(size=400)])
    >>> y = X[:, 0] / 10 + X[:, 1] + rng.normal(size=400)
    >>> found = compare_remedies(X, y, sensitive_features=age, remedies=["leace"], learners=["linear"], n_splits=2)
    >>> found.table[["remedy", "strength", "needs_s"]].values.tolist()
    [['none', 0.0, False], ['leace', 0.5, False], ['leace', 1.0, False]]
    """
    if misplaced or sensitive_features is None:
        raise TypeError(
            "compare_remedies takes X and y alone by position and needs sensitive_features by name: "
            "compare_remedies(X, y, sensitive_features=age)."
        )
    models = dict(learners) if isinstance(learners, Mapping) else {name: name for name in learners}
    plan = _plan(remedies, models)
    if n_splits < 1:
        raise ValueError(f"n_splits is {n_splits}: at least one split is needed.")
    if not (max_seconds is None or (isinstance(max_seconds, Real) and max_seconds >= 0)):
        raise ValueError(
            f"max_seconds is {max_seconds!r}: give a number of seconds, zero or more, or None."
        )
    table, target, frame, task, _ = _read(X, y, sensitive_features, task)
    for model in models.values():  # at once, and not after minutes of other fits
        learner(without_steps(model)[1], task)
    warn_of_attribute(table, frame)
    if task == "classification":
        warn_of_few(target)
    if any(key == "encoder" for key, *_ in plan):
        for name in frame.select_dtypes("number"):
            require_resolution(
                frame[name].to_numpy(), str(name), more=" Or leave 'encoder' out of remedies."
            )
    splitter = ShuffleSplit if task == "regression" else StratifiedShuffleSplit
    splits = splitter(n_splits, test_size=TEST_SHARE, random_state=random_state).split(
        table, target
    )
    found: list[dict[str, Any]] = []
    begin = time.monotonic()
    for number, (train, test) in enumerate(splits):
        known, new = (
            (table.iloc[at], target[at], frame.iloc[at].reset_index(drop=True))
            for at in (train, test)
        )
        scale = float(target[train].std()) if task == "regression" else 1.0
        plain: dict[tuple[bool, Any], np.ndarray] = {}
        for place, (key, name, grid) in enumerate(plan):
            late = (
                bool(found) and max_seconds is not None and time.monotonic() - begin > max_seconds
            )
            if late:
                break
            if verbose:
                what = f"split {number + 1} of {n_splits}, fit {place + 1} of {len(plan)}, {key} with {name}"
                print(f"{what}, after {time.monotonic() - begin:.0f} s", file=sys.stderr)
            options: dict[str, Any] = {"task": task, "seed": random_state + number}
            fits = fit_predict(key, models.get(name, name), grid, known, new, plain, **options)
            for strength, predicted, seconds in fits:
                row = {
                    "remedy": key,
                    "learner": name,
                    "strength": strength,
                    "split": number,
                    "cpu_seconds": seconds,
                }
                row |= {
                    "needs_s": REMEDIES[key].needs_s,
                    "score": score_of(predicted, new[1], task=task),
                }
                found.append(row | dependence_of(predicted, attribute_matrix(new[2]), scale=scale))
        if late:
            what = (
                f"{number} of {n_splits} splits are complete and kept"
                if number
                else "a part of one split is kept"
            )
            warn_caller(f"the comparison took more than {max_seconds:g} s: {what}.")
            found = [row for row in found if row["split"] < number or number == 0]
            break
    rows = pd.DataFrame(found)
    return RemedyComparison(rows, summarized(rows, test_share=TEST_SHARE), task, models)


def fit_predict(
    key: str, name: Any, grid: Sequence[float], known: Sample, new: Sample, plain: dict[tuple[bool, Any], np.ndarray],
    *, task: str, seed: int,
) -> list[tuple[float, np.ndarray, float]]:  # fmt: skip
    """Return each strength of a remedy, its predictions and its CPU seconds; keep those without a remedy in ``plain``.

    A remedy is fitted once, at full strength, and blended with the model of its league that has no remedy. An encoder
    is trained for each λ. The models without a remedy have to come first.
    """
    found, league = [], (REMEDIES[key].needs_s, name)
    with warnings.catch_warnings(action="ignore"):  # the table shows what a fit was worth
        for t in {PLAIN[league[0]]: [0.0], "encoder": grid}.get(key, [1.0]):
            start = time.process_time()
            value = FittedRemedy(key, name, known, task=task, lam=t, seed=seed)(new[0], new[2])
            found.append((t, value, time.process_time() - start))
    if key in PLAIN.values():
        plain[league] = value
    if key in (*PLAIN.values(), "encoder"):
        return found
    return [(t, (1.0 - t) * plain[league] + t * value, found[0][2]) for t in grid]


def summarized(rows: pd.DataFrame, *, test_share: float) -> pd.DataFrame:
    """Return means over splits and half-widths of 95 % intervals, corrected for the overlap of the training parts."""
    groups = rows.groupby(["remedy", "learner", "strength", "needs_s"], sort=False)
    table = groups[list(MEASURES)].mean()
    splits = rows["split"].nunique()
    # The variance of the corrected resampled t-test of Nadeau and Bengio (2003); of one split it is not known.
    factor = stats.t.ppf(0.975, splits - 1) * math.sqrt(
        1.0 / splits + test_share / (1.0 - test_share)
    )
    for name in ("score", "dcor"):
        table[f"{name}_half"] = groups[name].std(ddof=1).to_numpy() * factor
    table = table.reset_index()
    table["non_dominated"] = non_dominated(table["score"], table["dcor"])
    return table


def _plan(remedies: Any, learners: Mapping[str, Any]) -> list[tuple[str, str, list[float]]]:
    """Return remedy, learner and strengths of each fit, the models without a remedy first."""
    if isinstance(remedies, str):
        remedies = [remedies]
    for key in remedies or ():
        one_of("remedy", key, REMEDIES)
    keys = [key for key in REMEDIES if remedies is None or key in remedies or key == "none"]
    if any(REMEDIES[key].needs_s for key in keys) and AWARE not in keys:
        keys.insert(1, AWARE)
    keys.sort(key=lambda key: key == "encoder")  # the most expensive last, for a limit of time
    given = remedies if isinstance(remedies, Mapping) else {}
    plan = []
    for key in keys:
        grid = [
            float(strength) for strength in given.get(key, LAMS if key == "encoder" else STRENGTHS)
        ]
        wrong = [
            strength
            for strength in grid
            if not 0.0 <= strength <= (math.inf if key == "encoder" else 1.0)
        ]
        if wrong:
            what = (
                "λ of an encoder is zero or more"
                if key == "encoder"
                else "a strength lies between 0 and 1"
            )
            raise ValueError(f"remedies has the strength {wrong[0]:g} for {key!r}: {what}.")
        plan += [(key, name, grid) for name in (["network"] if key == "encoder" else learners)]
    return plan


def _read(
    X: Any, y: Any, s: ArrayLike, task: str
) -> tuple[pd.DataFrame, np.ndarray, pd.DataFrame, str, np.ndarray | None]:
    """Return X as a table, the target as numbers, the attributes, the task, and the classes, which become 0 and 1."""
    one_of("task", task, ("auto", "regression", "classification"))
    if sparse.issparse(X):
        raise ValueError(
            "X is sparse: pass X.toarray() or a DataFrame, since the remedies change all columns."
        )
    require_same_rows(X, y, names=("X", "y"))
    require_features(X)
    table = X if isinstance(X, pd.DataFrame) else pd.DataFrame(np.asarray(X))
    target = column_or_1d(y)
    if len(target) != len(table):
        raise ValueError(
            f"y has {len(target)} rows but X has {len(table)}: both need one row per sample."
        )
    bad = ~np.isfinite(target) if target.dtype.kind == "f" else pd.isna(target)
    if bad.any():
        raise ValueError(
            f"y has {int(bad.sum())} missing or infinite values: drop those rows first."
        )
    distinct, counts = np.unique(target, return_counts=True)
    if len(distinct) < 2:
        raise ValueError(
            f"y has one value only {distinct.tolist()}: pass two classes, or numbers that differ."
        )
    frame = read_attributes(s, X, to_fit=True)
    several = type_of_target(target) == "multiclass" and len(distinct) <= _CLASSES
    if task == "regression" or (task == "auto" and len(distinct) > 2 and not several):
        if target.dtype.kind not in "iuf":
            raise ValueError(
                "y is text: pass numbers for a regression, or two classes for a classification."
            )
        return table, target.astype(np.float64), frame, "regression", None
    if len(distinct) > 2:
        advice = "compare each class with the others (y == value), or pass task='regression' for numbers on a scale."
        raise ValueError(f"y has {len(distinct)} different values: {advice}")
    # Both parts of every split need both classes, and out-of-fold scores need two samples of each.
    least = math.ceil(max(1.0 / TEST_SHARE, 2.0 / (1.0 - TEST_SHARE)))
    if counts.min() < least:
        rare = distinct.tolist()[counts.argmin()]
        raise ValueError(
            f"y has the class {rare!r} only {counts.min()} times: at least {least} are needed to split."
        )
    return table, (target == distinct[1]).astype(np.float64), frame, "classification", distinct


class RemediedModel(BaseEstimator):
    """One remedy with its learner as one model, from a raw table to predictions; ``fit_best`` returns it.

    Text, categories and missing values of X are read as in :func:`~frhsic_core.compare_remedies`. Save the fitted model
    with joblib.

    Parameters
    ----------
    remedy, learner : str
        Keys of the comparison; the learner can also be a model of your own.
    strength : float
        Share of the remedy in the predictions, or λ of an encoder.
    task : {"regression", "classification"}
        What is predicted.

    Attributes
    ----------
    audit_ : Audit
        The audit of predictions for people that the model had not seen (5 folds).
    needs_s_ : bool
        Whether ``sensitive_features`` are needed to predict.
    classes_ : ndarray or None
        The two classes; the second counts as positive.
    """

    def __init__(
        self, remedy: str, learner: Any, strength: float, *, task: str = "classification"
    ) -> None:
        self.remedy = remedy
        self.learner = learner
        self.strength = strength
        self.task = task

    def fit(self, X: Any, y: Any, *, sensitive_features: ArrayLike) -> Self:
        """Fit on a raw table, and audit predictions for people of folds that the model did not see."""
        table, target, frame, _, self.classes_ = _read(X, y, sensitive_features, self.task)
        checked_features(self, table, reset=True)
        self.needs_s_ = REMEDIES[self.remedy].needs_s
        folds = KFold if self.task == "regression" else StratifiedKFold
        unseen = np.empty(len(target))
        with warnings.catch_warnings(action="ignore"):  # the audit shows what a fit was worth
            for train, test in folds(5, shuffle=True, random_state=0).split(table, target):
                self._fit(
                    table.iloc[train], target[train], frame.iloc[train].reset_index(drop=True)
                )
                unseen[test] = self._scores(
                    table.iloc[test], frame.iloc[test].reset_index(drop=True)
                )
            self._fit(table, target, frame)
        self.audit_ = audit(unseen, sensitive_features=frame, y_true=target)
        return self

    def _fit(self, table: pd.DataFrame, target: np.ndarray, frame: pd.DataFrame) -> None:
        share = 1.0 if self.remedy == "encoder" else self.strength
        keys = {self.remedy: share}
        if share < 1.0:
            keys[PLAIN[self.needs_s_]] = 1.0 - share
        options: dict[str, Any] = {"task": self.task, "lam": self.strength}
        known = (table, target, frame)
        self.parts_ = [
            (s, FittedRemedy(key, self.learner, known, **options)) for key, s in keys.items()
        ]

    def _scores(self, table: pd.DataFrame, frame: pd.DataFrame | None) -> np.ndarray:
        return np.sum([share * part(table, frame) for share, part in self.parts_], axis=0)

    def _predicted(self, X: Any, s: ArrayLike | None) -> np.ndarray:
        check_is_fitted(self)
        table = checked_features(
            self, X if isinstance(X, pd.DataFrame) else pd.DataFrame(np.asarray(X)), reset=False
        )
        if self.needs_s_ and s is None:
            raise ValueError(
                "sensitive_features is missing: this remedy needs S of every person that it predicts."
            )
        return self._scores(table, read_attributes(s, X) if self.needs_s_ else None)

    def predict_proba(self, X: Any, *, sensitive_features: ArrayLike | None = None) -> np.ndarray:
        """Return the probabilities of both classes."""
        if self.task == "regression":
            raise AttributeError("a regression has no probabilities: use predict.")
        positive = self._predicted(X, sensitive_features)
        return np.column_stack([1.0 - positive, positive])

    def predict(self, X: Any, *, sensitive_features: ArrayLike | None = None) -> np.ndarray:
        """Return the predictions, or the class with the larger probability."""
        values = self._predicted(X, sensitive_features)
        return values if self.classes_ is None else self.classes_[(values > 0.5).astype(int)]
