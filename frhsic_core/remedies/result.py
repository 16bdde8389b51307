"""The result of a comparison: a table, its frontier, the best row, and the model behind it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from frhsic_core._arrays import ArrayLike, warn_caller
from frhsic_core._choices import one_of
from frhsic_core.inputs.fitting import FitWarning
from frhsic_core.remedies.catalog import REMEDIES, is_plain
from frhsic_core.remedies.plain import WITH_S, WITHOUT_S
from frhsic_core.remedies.remedied import REMEDIED, RemediedModel
from frhsic_core.remedies.strength_paths import along_strengths
from frhsic_core.remedies.tasks import TASKS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WITHIN = 0.02


@dataclass(frozen=True)
class RemedyComparison:
    """The result of :func:`~frhsic_core.compare_remedies`.

    Attributes
    ----------
    table : DataFrame
        One row for each remedy, learner and strength: ``score`` and ``dcor`` of the predictions of
        all samples, by models that had not seen them, each with the half-width of a 95 % interval
        (``score_half``, ``dcor_half``); ``lost``, the score that the best model without a remedy
        has more, with the half-width for the same samples (``lost_half``); and ``non_dominated``.
    task : {"regression", "classification"}
        The score is R² of a regression and AUC of a classification.
    samples : int
        The number of samples.
    learners : mapping of str
        The learner behind each name of the table.
    """

    table: pd.DataFrame
    task: str
    samples: int
    learners: Mapping[str, Any] = field(default_factory=dict)

    @property
    def score_name(self) -> str:
        """R² or AUC."""
        return TASKS[self.task].score_name

    def frontier(self) -> pd.DataFrame:
        """Return the rows that no other row beats in both score and distance correlation.

        The highest score is first.
        """
        rows = self.table[self.table["non_dominated"]]
        return rows.sort_values("score", ascending=False, kind="stable")

    def best(
        self, *, within: float = _WITHIN, needs_s: bool | None = None, measure: str = "dcor"
    ) -> pd.Series:
        """Return the row that depends least on S, of those that lose at most ``within`` of the score.

        The best model without a remedy counts, so the row never depends more on S than this model.
        Between the strengths that were compared, the numbers of a remedy follow a smooth curve, so
        the strength of the row may be any between them, and the row uses what ``within`` allows.

        Parameters
        ----------
        within : float
            How far the score may be below that of the best model without a remedy. Compare it with
            ``lost_half`` of the row: a smaller difference is noise.
        needs_s : bool, optional
            Only models that need S to predict (True), or that do not (False).
        measure : {"dcor", "gdp"}
            The dependence: the distance correlation, or GDP.

        Returns
        -------
        Series
            If it has no remedy, none of them helps enough.
        """
        if not within >= 0:
            raise ValueError(f"within is {within}: it must be zero or positive.")
        one_of("measure", measure, ("dcor", "gdp"))
        rows = self.table
        if needs_s is not None:
            rows = rows[rows["needs_s"] == needs_s]
        if rows.empty:
            raise ValueError(
                f"no model with needs_s={needs_s} was compared: add such a remedy to remedies."
            )
        plain = rows["score"][rows["remedy"].map(is_plain)].max()
        rows = along_strengths(rows)
        rows = rows.assign(lost=plain - rows["score"])
        close = rows[rows["lost"] <= within]
        return close.loc[close[measure].idxmin()]

    def noise(self, row: pd.Series, *, within: float = _WITHIN) -> str:
        """Say how well the lost score of a row is known, and how many samples ``within`` needs."""
        known = (
            f"Its lost {self.score_name} is {row['lost']:.3f} ± {row['lost_half']:.3f} "
            f"(95 %, {self.samples:,} samples)"
        )
        if row["lost_half"] <= within:
            return f"{known}."
        inside = f"{known}: within={within:g} is inside this noise"
        if within == 0:
            return f"{inside}."
        needed = math.ceil(self.samples * (row["lost_half"] / within) ** 2)
        return f"{inside}, and about {float(f'{needed:.2g}'):,.0f} samples would decide."

    def fit_best(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: ArrayLike,
        within: float = _WITHIN,
        needs_s: bool | None = None,
        measure: str = "dcor",
    ) -> RemediedModel:
        """Fit the model of :meth:`best` on raw data and return it with its audit, to be saved.

        Parameters
        ----------
        X, y, sensitive_features
            As in :func:`~frhsic_core.compare_remedies`; usually the same.
        within, needs_s, measure
            As in :meth:`best`.

        Returns
        -------
        RemediedModel
            Its ``audit_`` is that of predictions for people that the model had not seen. If no
            remedy helps, it has none, and a warning says so. Another warning says if ``within`` is
            smaller than the noise of the lost score.
        """
        row = self.best(within=within, needs_s=needs_s, measure=measure)
        if is_plain(row["remedy"]):
            warn_caller(
                f"The model has NO remedy: none loses so little {self.score_name} and depends less "
                "on S."
            )
        elif row["lost_half"] > within:
            warn_caller(self.noise(row, within=within), FitWarning)
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
            "lost": "lost",
            "lost_half": "±  ",
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
        sentences = [f"{len(self.table)} settings, {self.samples:,} samples."]
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
        sentence = (
            f"Among the models {words}, the one without a remedy has {self.score_name} "
            f"{plain['score']:.3f} and dCor {plain['dcor']:.3f}. Of those that lose at most "
            f"{_WITHIN:g}, {REMEDIES[row['remedy']].label} ({row['learner']}, strength "
            f"{row['strength']:g}) depends least on S: {self.score_name} {row['score']:.3f}, dCor "
            f"{row['dcor']:.3f}."
        )
        if is_plain(row["remedy"]):
            return sentence
        return f"{sentence} {self.noise(row)}"
