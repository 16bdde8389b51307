"""The result of a comparison: a table, its frontier, the best row, and the model behind it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import stats

from frhsic_core._arrays import ArrayLike, warn_caller
from frhsic_core._choices import one_of
from frhsic_core.remedies.catalog import REMEDIES, WITH_S, WITHOUT_S, is_plain
from frhsic_core.remedies.remedied import REMEDIED, RemediedModel
from frhsic_core.remedies.tasks import TASKS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MEASURES = ("score", "dcor", "gdp", "cpu_seconds")


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
        return TASKS[self.task].score_name

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
        plain = rows["score"][rows["remedy"].map(is_plain)].max()
        close = rows[rows["score"] >= plain - within]
        dependence = close[one_of("measure", measure, ("dcor", "gdp"))]
        return close.loc[dependence.idxmin()]

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
        if is_plain(row["remedy"]):
            warn_caller(
                f"The model has NO remedy: none loses so little {self.score_name} and depends less "
                "on S."
            )
        chosen = self.learners.get(row["learner"], row["learner"])
        kind = REMEDIED[self.task]
        model = kind(row["remedy"], chosen, float(row["strength"]))
        return model.fit(X, y, sensitive_features=sensitive_features)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw score against distance correlation with intervals; needs matplotlib.

        Up and to the left is better.
        """
        import matplotlib.pyplot as plt

        if ax is None:
            _, ax = plt.subplots(figsize=(7.4, 4.6), layout="constrained")
        ordered = self.table.sort_values("strength")
        for (remedy, model), rows in ordered.groupby(["remedy", "learner"], sort=False):
            style: dict[str, Any] = {}
            if rows["needs_s"].any():
                style = {"linestyle": "--", "markerfacecolor": "white"}
            ax.errorbar(
                rows["dcor"],
                rows["score"],
                yerr=rows["score_half"],
                xerr=rows["dcor_half"],
                marker="o",
                linewidth=1,
                elinewidth=0.5,
                label=f"{REMEDIES[str(remedy)].label}, {model}",
                **style,
            )
        frontier = self.frontier().sort_values("dcor", kind="stable")
        behind: dict[str, Any] = {"color": "gray", "linewidth": 5, "alpha": 0.25, "zorder": 0}
        ax.plot(frontier["dcor"], frontier["score"], **behind)
        ax.set_xlabel("dependence on S (distance correlation)")
        ax.set_ylabel(f"held-out {self.score_name}")
        beside: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}
        ax.legend(fontsize=7, frameon=False, title="hollow: needs S", **beside)
        return ax

    def shown(self) -> pd.DataFrame:
        """Return the table with readable columns, the best scores first."""
        titles = {
            "remedy": "remedy",
            "learner": "learner",
            "strength": "strength",
            "needs_s": "needs S to predict",
            "score": self.score_name,
            "score_half": "±",
            "dcor": "dCor",
            "dcor_half": "± ",
            "gdp": "GDP",
            "cpu_seconds": "CPU s",
            "non_dominated": "on the frontier",
        }
        ordered = self.table.sort_values("score", ascending=False, kind="stable")
        rows = ordered.reset_index(drop=True)
        rows["remedy"] = [REMEDIES[key].label for key in rows["remedy"]]
        rows["needs_s"] = np.where(rows["needs_s"], "yes", "no")
        rows["non_dominated"] = np.where(rows["non_dominated"], "yes", "")
        return rows[list(titles)].rename(columns=titles)

    def _repr_html_(self) -> str:
        return self.shown().to_html(index=False, float_format="{:.3f}".format, border=0)

    def __str__(self) -> str:
        splits = self.splits["split"].nunique()
        many = "s" * (splits != 1)
        sentences = [f"{len(self.table)} settings on {splits} split{many}."]
        for needs_s in sorted(self.table["needs_s"].unique()):
            sentences.append(self._sentence(bool(needs_s)))
        return " ".join(sentences)

    def _sentence(self, needs_s: bool) -> str:
        """Say what the best model of one league loses and gains."""
        league, words = WITHOUT_S, "without S to predict"
        if needs_s:
            league, words = WITH_S, "with S to predict"
        plain = self.table[self.table["remedy"] == league.key].nlargest(1, "score").iloc[0]
        row = self.best(needs_s=needs_s)
        return (
            f"Among the models {words}, the one without a remedy has {self.score_name} "
            f"{plain['score']:.3f} and dCor {plain['dcor']:.3f}. Of those that lose at most 0.02, "
            f"{REMEDIES[row['remedy']].label} ({row['learner']}, strength {row['strength']:g}) "
            f"depends least on S: {self.score_name} {row['score']:.3f}, dCor {row['dcor']:.3f}."
        )


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
