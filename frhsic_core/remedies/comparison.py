"""Compare remedies on your own data: fit each of them on several splits, and measure score and dependence held out."""

from __future__ import annotations

import html
import io
import math
import time
import warnings
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from scipy import sparse, stats
from sklearn.base import BaseEstimator
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold, StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from frhsic_core.arrays import ArrayLike, require_same_rows
from frhsic_core.auditing import audit
from frhsic_core.choices import one_of
from frhsic_core.learning.estimators import FairClassifier, FairRegressor
from frhsic_core.remedies.adjustment import AdjustedClassifier, AdjustedRegressor
from frhsic_core.remedies.attributes import (
    Features,
    attribute_matrix,
    read_attributes,
    require_variation,
    warn_of_attribute,
    warn_of_few,
)
from frhsic_core.remedies.erasure import AttributeEraser, CorrelationRemover, KernelEraser
from frhsic_core.remedies.measures import dependence_of, score_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIZE = (7.4, 4.6)  # of the figure, in inches
LEARNERS = ("linear", "boosting")
#: The label of each remedy by its key, and whether it needs S of the person that is predicted.
REMEDIES: dict[str, tuple[str, bool]] = {
    "none": ("no remedy", False),
    "leace": ("LEACE on S", False),
    "leace_spline": ("LEACE on splines of S", False),
    "kernel_eraser": ("kernel eraser", False),
    "project": ("scores, projected", False),
    "encoder": ("trained encoder (FRHSIC)", False),
    "correlation_remover": ("correlation remover", True),
    "residual_spline": ("residuals on splines of S", True),
    "adjust_mean": ("scores, mean adjusted", True),
    "adjust_rank": ("scores, ranks adjusted", True),
}
# The baseline of remedies that need S to predict is a model that sees S and is not changed.
AWARE = "none_with_s"
LABELS = {key: label for key, (label, _) in REMEDIES.items()} | {AWARE: "no remedy, S is a feature"}
TEST_SHARE = 0.3
STRENGTHS = (0.5, 1.0)
_CLASSES = 20  # at most so many different whole numbers can be classes
LAMS = (0.3, 1.0, 5.0, 20.0)
MEASURES = ("score", "dcor", "gdp", "linear_r2", "nonlinear_r2", "cpu_seconds")
_PREPARED = {
    "leace": lambda t: AttributeEraser("linear", strength=t),
    "leace_spline": lambda t: AttributeEraser("spline", strength=t),
    "kernel_eraser": lambda t: KernelEraser("spline", strength=t),
    "correlation_remover": lambda t: CorrelationRemover("linear", strength=t),
    "residual_spline": lambda t: CorrelationRemover("spline", strength=t),
}
ADJUSTED = {"project": "project", "adjust_mean": "mean", "adjust_rank": "rank"}


def learner(name: str, task: str) -> Any:
    """Return an unfitted learner: a regularized linear model on standardized columns, or gradient boosting."""
    one_of("learner", name, LEARNERS)
    if name == "linear":
        model = RidgeCV(np.logspace(-2, 4, 13)) if task == "regression" else LogisticRegression(max_iter=2000)
        return make_pipeline(StandardScaler(), model)
    booster = HistGradientBoostingRegressor if task == "regression" else HistGradientBoostingClassifier
    return booster(max_iter=100, learning_rate=0.06, max_leaf_nodes=15, min_samples_leaf=20, random_state=0)


@dataclass(frozen=True)
class FittedRemedy:
    """One remedy with one learner, fitted on numbers; a call returns predictions (probabilities) of new samples."""

    model: Any
    change: Any  # of X, or None
    needs_s: bool
    task: str

    def __call__(self, x: np.ndarray, s: pd.DataFrame | None) -> np.ndarray:
        more: dict[str, Any] = {"sensitive_features": s} if self.needs_s else {}
        if self.change is not None:
            x, more = self.change.transform(x, **more), {}
        if self.task == "regression":
            return np.asarray(self.model.predict(x, **more), dtype=np.float64)
        return np.asarray(self.model.predict_proba(x, **more)[:, 1], dtype=np.float64)


def fit_remedy(
    remedy: str,
    name: str,
    strength: float,
    train: tuple[np.ndarray, np.ndarray, pd.DataFrame],
    *,
    task: str,
    seed: int = 0,
) -> FittedRemedy:
    """Fit one remedy with one learner on numbers X, a target (0 and 1 for a classification) and attributes."""
    X, y, s = train
    needs = remedy == AWARE or REMEDIES[remedy][1]
    change = None
    if remedy in ADJUSTED or remedy == AWARE:
        wrapper = AdjustedRegressor if task == "regression" else AdjustedClassifier
        options: dict[str, Any] = {
            "method": ADJUSTED.get(remedy, "mean"),
            "strength": strength,
            "use_attributes": needs,
        }
        model: Any = wrapper(learner(name, task), **options).fit(X, y, sensitive_features=s)
    elif remedy == "encoder":
        kind = FairRegressor if task == "regression" else FairClassifier
        model = kind(strength, random_state=seed, device="cpu").fit(X, y, sensitive_features=attribute_matrix(s))
    else:
        if remedy != "none":
            change = _PREPARED[remedy](strength)
            X = change.fit_transform(X, sensitive_features=s)
        model = learner(name, task).fit(X, y)
    return FittedRemedy(model, change, needs, task)


def fit_predict(
    remedy: str,
    name: str,
    strengths: Sequence[float],
    train: tuple[np.ndarray, np.ndarray, pd.DataFrame],
    test: tuple[np.ndarray, pd.DataFrame],
    *,
    task: str,
    seed: int = 0,
) -> list[tuple[float, np.ndarray, float]]:
    """Fit one remedy with one learner; return each strength, its predictions (probabilities) and its CPU seconds.

    Adjusted scores are fitted once for all strengths, and the time is divided by their number.
    """
    found = []
    fitted: FittedRemedy | None = None
    for strength in strengths:
        start = time.process_time()
        if fitted is None or remedy not in ADJUSTED:
            fitted = fit_remedy(remedy, name, strength or 1.0 * (remedy in ADJUSTED), train, task=task, seed=seed)
        if remedy in ADJUSTED:
            fitted.model.adjustment_.strength = strength
        value = fitted(*test)
        found.append((strength, value, time.process_time() - start))
    if remedy in ADJUSTED:
        share = sum(seconds for *_, seconds in found) / len(found)
        found = [(strength, value, share) for strength, value, _ in found]
    return found


def measured(predicted: np.ndarray, y: np.ndarray, s: pd.DataFrame, *, task: str, scale: float) -> dict[str, float]:
    """Return the score of held-out predictions and their dependence on S; ``scale`` divides those of a regression."""
    unit = 1.0 if task == "classification" else scale
    return {"score": score_of(predicted, y, task=task), **dependence_of(predicted, attribute_matrix(s), scale=unit)}


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
    interrupted : bool
        Whether Ctrl-C or ``max_seconds`` ended the comparison before all splits were done.
    """

    splits: pd.DataFrame
    table: pd.DataFrame
    task: str
    interrupted: bool = False

    @property
    def score_name(self) -> str:
        """R² or AUC."""
        return "R²" if self.task == "regression" else "AUC"

    def _league(self, needs_s: bool | None) -> pd.DataFrame:
        return self.table if needs_s is None else self.table[self.table["needs_s"] == needs_s]

    def frontier(self, *, needs_s: bool | None = None) -> pd.DataFrame:
        """Return the rows that no other row beats in both score and distance correlation, the highest score first.

        Parameters
        ----------
        needs_s : bool, optional
            Compare only models that need S to predict (True), or only those that do not (False).
        """
        rows = self._league(needs_s)
        return rows[non_dominated(rows["score"], rows["dcor"])].sort_values("score", ascending=False, kind="stable")

    def best(self, *, within: float = 0.02, needs_s: bool | None = None) -> pd.Series:
        """Return the row with the least distance correlation whose score is at most ``within`` below the best.

        With ``needs_s`` both the candidates and the best score are those of the models that need S to predict (True),
        or of those that do not (False). A model without a remedy is a candidate too: if it is the answer, no remedy is
        needed, or none helps.
        """
        if not within >= 0:
            raise ValueError(f"within is {within}: it must be zero or positive.")
        rows = self._league(needs_s)
        if rows.empty:
            raise ValueError(f"no model with needs_s={needs_s} was compared: add such a remedy to remedies.")
        close = rows[rows["score"] >= rows["score"].max() - within]
        return close.loc[close["dcor"].idxmin()]

    def baseline(self, *, needs_s: bool | None = None) -> pd.Series:
        """Return the row with the best score among the models without a remedy; ``needs_s`` as in :meth:`best`."""
        rows = self._league(needs_s)
        rows = rows[rows["remedy"].isin(("none", AWARE))]
        return rows.loc[rows["score"].idxmax()]

    def fit_best(
        self, X: Any, y: Any, *, sensitive_features: ArrayLike, within: float = 0.02, needs_s: bool | None = None
    ) -> RemediedModel:
        """Fit the model of :meth:`best` on raw data and return it with its audit, ready to be saved with joblib.

        Parameters
        ----------
        X, y, sensitive_features
            As in :func:`~frhsic_core.compare_remedies`; usually the same.
        within, needs_s
            As in :meth:`best`.

        Returns
        -------
        RemediedModel
            Its ``audit_`` is that of predictions for people that the model had not seen.
        """
        row = self.best(within=within, needs_s=needs_s)
        model = RemediedModel(row["remedy"], row["learner"], float(row["strength"]), task=self.task)
        return model.fit(X, y, sensitive_features=sensitive_features)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw score against distance correlation with intervals; up and to the left is better. Needs matplotlib."""
        import matplotlib.pyplot as plt

        from frhsic_core.registry import OKABE_ITO

        if ax is None:
            _, ax = plt.subplots(figsize=SIZE, layout="constrained")
        colors = [color for name, color in OKABE_ITO.items() if name != "yellow"]
        keys = list(dict.fromkeys(self.table["remedy"]))
        for (remedy, model), rows in self.table.groupby(["remedy", "learner"], sort=False):
            needs = bool(rows["needs_s"].iloc[0])
            rows = rows.sort_values("strength")
            ax.errorbar(
                rows["dcor"], rows["score"], rows["score_half"], rows["dcor_half"],
                marker={"linear": "o", "boosting": "s"}.get(str(model), "*"), markersize=6, linewidth=1, elinewidth=0.5,
                linestyle="--" if needs else "-", color=colors[keys.index(str(remedy)) % len(colors)],
                markerfacecolor="white" if needs else None, label=f"{LABELS[str(remedy)]}, {model}",
            )  # fmt: skip
        frontier = self.frontier().sort_values("dcor", kind="stable")
        ax.plot(frontier["dcor"], frontier["score"], color="gray", linewidth=5, alpha=0.25, zorder=0)
        ax.set(xlabel="dependence on S (distance correlation)", ylabel=f"held-out {self.score_name}")
        ax.legend(fontsize=7, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5), title="hollow: needs S")
        return ax

    def shown(self) -> pd.DataFrame:
        """Return the table with readable columns, the best scores first."""
        rows = self.table.sort_values("score", ascending=False, kind="stable")
        named = {
            "remedy": [LABELS[key] for key in rows["remedy"]],
            "learner": rows["learner"].to_numpy(),
            "strength": rows["strength"].to_numpy(),
            "needs S to predict": np.where(rows["needs_s"], "yes", "no"),
            f"{self.score_name}": rows["score"].to_numpy(),
            "±": rows["score_half"].to_numpy(),
            "dCor": rows["dcor"].to_numpy(),
            "± ": rows["dcor_half"].to_numpy(),
            "GDP": rows["gdp"].to_numpy(),
            "probe R², linear": rows["linear_r2"].to_numpy(),
            "nonlinear": rows["nonlinear_r2"].to_numpy(),
            "CPU s": rows["cpu_seconds"].to_numpy(),
            "on the frontier": np.where(rows["non_dominated"], "yes", ""),
        }
        return pd.DataFrame(named)

    def to_html(self) -> str:
        """Return the figure (where matplotlib is installed) and the table as HTML."""
        parts = [f"<p>{html.escape(str(self))}</p>"]
        try:
            import matplotlib.pyplot as plt
        except ImportError:
            pass
        else:
            figure, axes = plt.subplots(figsize=SIZE, layout="constrained")
            self.plot(axes)
            buffer = io.BytesIO()
            figure.savefig(buffer, format="png", dpi=150, bbox_inches="tight")
            plt.close(figure)
            picture = b64encode(buffer.getvalue()).decode()
            parts.append(f'<img alt="score against dependence" width="800" src="data:image/png;base64,{picture}">')
        return "\n".join([*parts, self.shown().to_html(index=False, float_format="{:.3f}".format, border=0)])

    def _repr_html_(self) -> str:
        return self.to_html()

    def __str__(self) -> str:
        splits = self.splits["split"].nunique()
        lines = [f"{len(self.table)} settings on {splits} splits{', interrupted' if self.interrupted else ''}."]
        for needs, words in ((False, "without S to predict"), (True, "with S to predict")):
            rows = self._league(needs)
            if rows.empty:
                continue
            row, plain = self.best(needs_s=needs), self.baseline(needs_s=needs)
            lines.append(
                f"Among the models {words}, the one without a remedy has {self.score_name} {plain['score']:.3f} and "
                f"dCor {plain['dcor']:.3f}. The best {self.score_name} is {rows['score'].max():.3f}; within 0.02 "
                f"of it, {LABELS[row['remedy']]} ({row['learner']}, strength {row['strength']:g}) depends least on S: "
                f"{self.score_name} {row['score']:.3f}, dCor {row['dcor']:.3f}."
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
    at_least = (u[None] >= u[:, None]) & (d[None] <= d[:, None])
    better = (u[None] > u[:, None]) | (d[None] < d[:, None])
    return np.logical_not((at_least & better).any(1, keepdims=True))[:, 0]


def compare_remedies(
    X: Any,
    y: Any,
    *,
    sensitive_features: ArrayLike,
    remedies: Sequence[str] | Mapping[str, Sequence[float]] | None = None,
    learners: Sequence[str] = LEARNERS,
    n_splits: int = 5,
    task: str = "auto",
    max_seconds: float | None = None,
    random_state: int = 0,
    progress: bool | Callable[[str], None] = False,
) -> RemedyComparison:
    """Fit remedies × learners × strengths on several splits of your data, and measure them on held-out samples.

    The cost is that of all fits: for 5,000 samples about half a minute for each split, most of it for the trained
    encoders; leave ``"encoder"`` out of ``remedies`` to save it. Ctrl-C ends the comparison and returns what is done.

    A strength t below 1 of a remedy that changes X is a blend of predictions, (1 − t) · without + t · with the remedy:
    a learner could undo a weaker change of X. Adjusted scores are moved by t. The strength of an encoder is its λ.

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
        Keys of ``frhsic_core.remedies.comparison.REMEDIES``, all by default. A mapping gives the strengths of each.
        ``"none"`` is always added, and for remedies that need S to predict a model without a remedy that sees S.
    learners : sequence of {"linear", "boosting"}
        What is trained after, or before, each remedy.
    n_splits : int
        Number of random splits into 70 % training and 30 % test samples.
    task : {"auto", "regression", "classification"}
        Set it if y has few different whole numbers that are a scale and not classes.
    max_seconds : float, optional
        Start no further fit after this time. Complete splits are kept; of the first split, what is done.
    random_state : int
        Seed of the splits and of the encoders.
    progress : bool or callable
        Print a line for each split, or pass it to a function.

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
    for key in remedies or ():
        one_of("remedy", key, REMEDIES)
    for key in learners:
        one_of("learner", key, LEARNERS)
    plan = _plan(remedies, learners)
    table, target, frame, task, _ = _read(X, y, sensitive_features, task)
    warn_of_attribute(table, frame, stacklevel=2)
    if task == "classification":
        warn_of_few(target, stacklevel=2)
    splitter = ShuffleSplit if task == "regression" else StratifiedShuffleSplit
    splits = splitter(n_splits, test_size=TEST_SHARE, random_state=random_state).split(table, target)
    report = progress if callable(progress) else print if progress else lambda line: None
    found: list[dict[str, Any]] = []
    done: list[list[dict[str, Any]]] = []
    interrupted = False
    begin = time.monotonic()
    try:
        for number, (train, test) in enumerate(splits):
            found = []
            features = Features(table.iloc[train])
            seen, new = features(table.iloc[train]), features(table.iloc[test])
            parts = [frame.iloc[rows].reset_index(drop=True) for rows in (train, test)]
            scale = float(target[train].std())
            plain: dict[str, np.ndarray] = {}
            for key, name, grid in plan:
                if max_seconds is not None and found and time.monotonic() - begin > max_seconds:
                    raise TimeoutError
                blended = key in _PREPARED
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # the table shows what a fit was worth
                    fits = fit_predict(
                        key, name, [1.0] if blended else grid, (seen, target[train], parts[0]), (new, parts[1]),
                        task=task, seed=random_state + number,
                    )  # fmt: skip
                if key == "none":
                    plain[name] = fits[0][1]
                if blended:
                    fits = [(t, (1.0 - t) * plain[name] + t * value, cost) for t in grid for _, value, cost in fits]
                for strength, predicted, seconds in fits:
                    row: dict[str, Any] = {"remedy": key, "learner": name, "strength": strength, "split": number}
                    row |= {"needs_s": key == AWARE or REMEDIES[key][1], "cpu_seconds": seconds}
                    found.append(row | measured(predicted, target[test], parts[1], task=task, scale=scale))
            done.append(found)
            spent = time.monotonic() - begin
            left = spent / (number + 1) * (n_splits - number - 1)
            report(f"split {number + 1} of {n_splits}: {len(found)} fits, {spent:.0f} s, about {left:.0f} s left")
    except (KeyboardInterrupt, TimeoutError) as stopped:
        if not done and not found:
            raise
        interrupted = True
        why = "was interrupted" if isinstance(stopped, KeyboardInterrupt) else f"took more than {max_seconds:g} s"
        warnings.warn(
            f"the comparison {why}: {len(done)} of {n_splits} splits are complete and kept.",
            stacklevel=2,
        )
        done = done or [found]
    rows = pd.DataFrame([row for part in done for row in part])
    return RemedyComparison(rows, summarized(rows, test_share=TEST_SHARE), task, interrupted)


def summarized(rows: pd.DataFrame, *, test_share: float) -> pd.DataFrame:
    """Return means over splits and half-widths of 95 % intervals, corrected for the overlap of the training parts."""
    keys = ["remedy", "learner", "strength", "needs_s"]
    groups = rows.groupby(keys, sort=False)
    table = groups[list(MEASURES)].mean()
    splits = groups["split"].nunique().to_numpy()
    factor = np.full(len(table), np.nan)
    several = splits > 1
    # The variance of the corrected resampled t-test of Nadeau and Bengio (2003).
    spread = np.sqrt(1.0 / splits[several] + test_share / (1.0 - test_share))
    factor[several] = stats.t.ppf(0.975, splits[several] - 1) * spread
    for name in ("score", "dcor"):
        table[f"{name}_half"] = groups[name].std(ddof=1).to_numpy() * factor
    table = table.reset_index()
    table["non_dominated"] = non_dominated(table["score"], table["dcor"])
    return table


def _plan(remedies: Any, learners: Sequence[str]) -> list[tuple[str, str, list[float]]]:
    """Return remedy, learner and strengths of each fit, the models without a remedy first."""
    keys = [key for key in REMEDIES if remedies is None or key in remedies or key == "none"]
    if any(REMEDIES[key][1] for key in keys):
        keys.insert(1, AWARE)
    given = remedies if isinstance(remedies, Mapping) else {}
    plan = []
    keys.sort(key=lambda key: key == "encoder")  # the most expensive last, for a limit of time
    for key in keys:
        default = {"none": (0.0,), AWARE: (0.0,), "encoder": LAMS}.get(key, STRENGTHS)
        grid = [float(strength) for strength in (default if key in ("none", AWARE) else given.get(key, default))]
        plan += [(key, name, grid) for name in (["network"] if key == "encoder" else learners)]
    return plan


def _read(
    X: Any, y: Any, s: ArrayLike, task: str
) -> tuple[pd.DataFrame, np.ndarray, pd.DataFrame, str, np.ndarray | None]:
    """Return X as a table, the target as numbers, the attributes, the task, and the two classes."""
    one_of("task", task, ("auto", "regression", "classification"))
    if sparse.issparse(X):
        raise ValueError("X is sparse: pass X.toarray() or a DataFrame, since the remedies change all columns.")
    require_same_rows(X, y, names=("X", "y"))
    require_same_rows(X, s, names=("X", "sensitive_features"))
    table = X if isinstance(X, pd.DataFrame) else pd.DataFrame(np.asarray(X))
    target, task, classes = _read_target(y, task)
    if len(target) != len(table):
        raise ValueError(f"y has {len(target)} rows but X has {len(table)}: both need one row per sample.")
    frame = read_attributes(s, len(table))
    require_variation(frame)
    return table, target, frame, task, classes


def _read_target(y: Any, task: str) -> tuple[np.ndarray, str, np.ndarray | None]:
    """Return the target as numbers, the task and the classes; two classes become 0 and 1."""
    values = np.asarray(y)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(f"y has shape {values.shape}: pass one value per sample, (n,).")
    if missing := int(pd.isna(values).sum()):
        raise ValueError(f"y has {missing} missing values: drop those rows first.")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise ValueError("y has infinite values: drop those rows first.")
    kind = type_of_target(values)
    if kind == "multiclass" and task != "regression" and len(np.unique(values)) <= _CLASSES:
        raise ValueError(
            f"y has {len(np.unique(values))} different values: only two classes can be compared. Compare each class "
            "with the others (y == value), or pass task='regression' if the values are numbers on a scale."
        )
    kind = "continuous" if task == "regression" and values.dtype.kind in "iuf" else kind
    if task == "classification" and kind != "binary":
        raise ValueError(f"y is {kind}: a classification needs two classes.")
    distinct, counts = np.unique(values, return_counts=True) if kind == "binary" else (values, np.zeros(1))
    if len(distinct) < 2 or (kind != "binary" and (values == values[0]).all()):
        shown = f" ({distinct.tolist()[0]!r})" if len(distinct) else ""
        raise ValueError(
            f"y has one value only{shown}: pass two classes, or numbers that differ. Nothing can be learned from it."
        )
    if kind == "binary":
        # Both parts of every split need both classes, and out-of-fold scores need two samples of each.
        least = math.ceil(max(1.0 / TEST_SHARE, 2.0 / (1.0 - TEST_SHARE)))
        if counts.min() < least:
            rare = distinct.tolist()[counts.argmin()]
            raise ValueError(
                f"y has the class {rare!r} only {counts.min()} times: at least {least} are needed, so that every split "
                "has both classes in both parts."
            )
        return (values == distinct[1]).astype(np.float64), "classification", distinct
    if values.dtype.kind not in "iuf":
        raise ValueError(f"y is {kind}: pass numbers for a regression, or two classes for a classification.")
    return values.astype(np.float64), "regression", None


class RemediedModel(BaseEstimator):
    """One remedy with its learner as one model, from a raw table to predictions; ``fit_best`` returns it.

    Text, categories and missing values of X are read as in :func:`~frhsic_core.compare_remedies`. Save the fitted model
    with joblib.

    Parameters
    ----------
    remedy, learner : str
        Keys of the comparison.
    strength : float
        Share of the remedy in the predictions, or λ of an encoder.
    task : {"regression", "classification"}
        What is predicted.
    random_state : int
        Seed of an encoder, and of the folds of the audit.

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
        self, remedy: str, learner: str, strength: float, *, task: str = "classification", random_state: int = 0
    ) -> None:
        self.remedy = remedy
        self.learner = learner
        self.strength = strength
        self.task = task
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, sensitive_features: ArrayLike) -> Self:
        """Fit on a raw table, and audit predictions for people of folds that the model did not see."""
        table, target, frame, _, self.classes_ = _read(X, y, sensitive_features, self.task)
        self.needs_s_ = self.remedy == AWARE or REMEDIES[self.remedy][1]
        self.names_ = [str(name) for name in table.columns]
        folds = KFold if self.task == "regression" else StratifiedKFold
        unseen = np.empty(len(target))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the audit shows what a fit was worth
            for train, test in folds(5, shuffle=True, random_state=self.random_state).split(table, target):
                self._fit(table.iloc[train], target[train], frame.iloc[train].reset_index(drop=True))
                unseen[test] = self._scores(table.iloc[test], frame.iloc[test].reset_index(drop=True))
            self._fit(table, target, frame)
        named = frame.rename(columns={"0": "sensitive"})  # an array has no names
        self.audit_ = audit(unseen, sensitive_features=named, y_true=target, random_state=self.random_state)
        return self

    def _fit(self, table: pd.DataFrame, target: np.ndarray, frame: pd.DataFrame) -> None:
        self.features_ = Features(table)
        x = self.features_(table)
        options: dict[str, Any] = {"task": self.task, "seed": self.random_state}
        blended = self.remedy in _PREPARED
        strength = 1.0 if blended else self.strength
        self.parts_ = [(1.0, fit_remedy(self.remedy, self.learner, strength, (x, target, frame), **options))]
        if blended and self.strength < 1.0:
            plain = fit_remedy("none", self.learner, 0.0, (x, target, frame), **options)
            self.parts_ = [(self.strength, self.parts_[0][1]), (1.0 - self.strength, plain)]

    def _scores(self, table: pd.DataFrame, frame: pd.DataFrame | None) -> np.ndarray:
        x = self.features_(table)
        return np.sum([share * part(x, frame) for share, part in self.parts_], axis=0)

    def _predicted(self, X: Any, s: ArrayLike | None) -> np.ndarray:
        check_is_fitted(self)
        table = X if isinstance(X, pd.DataFrame) else pd.DataFrame(np.asarray(X))
        if [str(name) for name in table.columns] != self.names_:
            raise ValueError(f"X has the columns {list(table.columns)[:8]}, but fit had {self.names_[:8]}.")
        if not self.needs_s_:
            return self._scores(table, None)
        if s is None:
            raise ValueError("sensitive_features is missing: this remedy needs S of every person that it predicts.")
        return self._scores(table, read_attributes(s, len(table)))

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
