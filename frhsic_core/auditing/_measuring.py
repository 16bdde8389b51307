"""Measure what an audit reports: for each attribute, for all together, and for the scores."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from frhsic_core.auditing._results import (
    MEASURES,
    PERMUTATIONS,
    AttributeAudit,
    Measure,
)
from frhsic_core.auditing._rows import Copies
from frhsic_core.auditing._statistics import (
    effect_sizes,
    explained_share,
    group_impact,
    group_table,
    impact_ratio,
    indicators,
    neighbor_correlation,
    residuals,
    sample_rows,
    scaled,
    with_labels,
)
from frhsic_core.auditing._words import number
from frhsic_core.bounds import gdp_bound
from frhsic_core.conditional import Curve
from frhsic_core.conditional._curve import Array, Smoother
from frhsic_core.conditional.neighbors import scan_groups
from frhsic_core.inputs.columns import MIN_ROWS, Column, Columns

TEST_ROWS = 20_000  # of several columns
_LABEL_ROWS = 50  # fewer people with a label have no curve
_BINS = r"[\[(][^,]+, [^,]+[\])]"


def outside(score: Array) -> bool:
    """Return whether many scores lie outside 0 to 1; a linear model of two classes gives a few."""
    return bool(np.mean((score < 0.0) | (score > 1.0)) > 0.25)


@dataclass
class _Rows:
    """The rows of one attribute with their scores, and the curves along it."""

    s: Array
    f: Array
    weight: Array | None
    nominal: bool
    alpha: float
    random_state: int
    curves: dict[str, Curve] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.smoother = Smoother(self.s, weight=self.weight, nominal=self.nominal)

    def add(self, name: str, values: Array, *, center: float | None = None) -> None:
        """Add the curve of values of all rows."""
        self.curves[name] = self.smoother.curve(
            values, center=center, alpha=self.alpha, random_state=self.random_state
        )

    def add_part(
        self,
        name: str,
        values: Array,
        part: NDArray[np.bool_],
        *,
        center: float | None = None,
        least: int = _LABEL_ROWS,
    ) -> None:
        """Add the curve of values among a part of the rows, unless they are too few."""
        if part.all():
            self.add(name, values, center=center)
            return
        if part.sum() < least or np.ptp(self.s[part]) == 0:
            return
        weight = None if self.weight is None else self.weight[part]
        smoother = Smoother(self.s[part], weight=weight, nominal=self.nominal)
        self.curves[name] = smoother.curve(
            values[part], center=center, alpha=self.alpha, random_state=self.random_state
        )

    def groups(self, name: str, values: Array) -> pd.DataFrame | None:
        """Return what four groups show of a curve; None for categories."""
        if self.nominal:
            return None
        return group_table(values, self.s, self.curves[name], weight=self.weight)

    def hidden(self) -> float:
        """Return the correlation of neighbors that the curve of the scores hides."""
        if self.nominal:
            return 0.0
        return neighbor_correlation(
            self.f, self.s, self.curves["gdp"], random_state=self.random_state
        )


@dataclass(frozen=True)
class Measuring:
    """The checked input of one audit."""

    columns: Columns
    threshold: float | None
    alpha: float
    min_group: int
    copies: Copies
    random_state: int

    @property
    def one_scale(self) -> bool:
        """Whether label minus prediction has a meaning: two classes need predictions in 0 to 1."""
        label = self.columns.label
        if label is None or not label.categories:
            return True
        return not outside(self.columns.score.values[self.columns.usable])

    def attribute(self, column: Column) -> AttributeAudit:
        """Return the audit of one attribute."""
        index = self._rows(column)
        rows = self._scored(column, index)
        attribute = indicators(column.at(index))
        rows.add("gdp", rows.f)
        tests = {"pvalue": self._test(rows.f, attribute, index)}
        chosen = self._chosen(rows.f)
        if chosen is not None:
            rows.add("selected", chosen)
        tests |= self._with_labels(rows, index, attribute, chosen)
        explained: dict[str, float] = {}
        if self.columns.controls:
            tests |= self._with_controls(rows, index, attribute, column)
            explained = self._explained(column)
        unbounded = self._unbounded(rows.f, column, rows.weight)
        bound = None
        if not unbounded:
            bound = gdp_bound(rows.f, sensitive_features=rows.s, delta=self.alpha)
        scan = scan_groups(
            rows.f,
            rows.s,
            weight=rows.weight,
            size=self.min_group,
            nominal=rows.nominal,
            alpha=self.alpha,
        )
        spread = _spread(rows.f, rows.weight)
        rates = None if chosen is None else rows.groups("selected", chosen)
        numbers = _measures(rows.curves, spread)
        if scan is not None:
            numbers["max_gap"] = Measure(scan.value, len(index), scan.low, scan.high)
        if bound is not None:
            numbers["gdp_bound"] = Measure(bound.bound, len(index))
        numbers |= tests
        if chosen is not None:
            numbers |= _impact(rows.curves["selected"], rates, len(index))
        numbers |= effect_sizes(
            rows.f, attribute, weight=rows.weight, random_state=self.random_state
        )
        return AttributeAudit(
            name=column.name,
            categories=column.categories,
            rows=len(index),
            curves=rows.curves,
            numbers=numbers,
            groups=rows.groups("gdp", rows.f),
            selected_groups=rates,
            bound=bound,
            unbounded=unbounded,
            spread=spread,
            scan=scan,
            explained_by=explained,
            hidden=rows.hidden(),
        )

    def _scored(self, column: Column, index: NDArray[np.intp]) -> _Rows:
        """Return the rows of an attribute with their scores."""
        s = column.values[index]
        if np.ptp(s) == 0:
            raise ValueError(
                f"{column.name!r} is constant: nothing can depend on it. Check it, or leave it out."
            )
        return _Rows(
            s=s,
            f=self.columns.score.values[index],
            weight=self._weight(index),
            nominal=bool(column.categories),
            alpha=self.alpha,
            random_state=self.random_state,
        )

    def _chosen(self, f: Array) -> Array | None:
        """Return 1 for each selected person and 0 for the others; None without a threshold."""
        if self.threshold is None:
            return None
        return (f >= self.threshold).astype(np.float64)

    def _with_labels(
        self, rows: _Rows, index: NDArray[np.intp], attribute: Array, chosen: Array | None
    ) -> dict[str, Measure]:
        """Add the curves that need labels, and return the test given the label."""
        label = self.columns.label
        if label is None:
            return {}
        y = label.values[index]
        told = label.known[index]
        if label.categories:
            rows.add_part("outcomes", np.nan_to_num(y), told)
            rows.add_part("equal_opportunity", rows.f, y == 1)
            if chosen is not None:
                rows.add_part("true_positives", chosen, y == 1)
            rows.add_part("label_0", rows.f, y == 0)
            if chosen is not None:
                rows.add_part("false_positives", chosen, y == 0)
        if told.sum() < _LABEL_ROWS or np.ptp(rows.s[told]) == 0:
            return {}
        if self.one_scale:
            rows.add_part("calibration", np.nan_to_num(y) - rows.f, told, center=0.0)
            if not label.categories:
                rows.add_part("outcomes", np.nan_to_num(y), told)
        test = self._test(rows.f[told], attribute[told], index[told], y[told, None])
        return {"pvalue_given_label": test}

    def _with_controls(
        self, rows: _Rows, index: NDArray[np.intp], attribute: Array, column: Column
    ) -> dict[str, Measure]:
        """Add the curve of what the controls leave of the scores; return the test given them."""
        kept = np.isin(index, self._rows(column, *self.columns.controls))
        controls = [control.at(index[kept]) for control in self.columns.controls]
        weight = self._weight(index[kept])
        left = np.zeros(len(index))
        left[kept] = residuals(
            rows.f[kept], controls, weight=weight, random_state=self.random_state
        )
        rows.add_part("gdp_given", left, kept, center=0.0, least=MIN_ROWS)
        test = self._test(rows.f[kept], attribute[kept], index[kept], scaled(controls))
        return {"pvalue_given": test}

    def _explained(self, column: Column) -> dict[str, float]:
        """Return the R² of the attribute given each control, and given all of several."""
        index = self._rows(column, *self.columns.controls)
        weight = self._weight(index)
        controls = [control.at(index) for control in self.columns.controls]
        sets = {control.name: [control] for control in controls}
        if len(controls) > 1:
            sets[" and ".join(sets)] = controls
        attribute = column.at(index)
        options: dict[str, Any] = {"weight": weight, "random_state": self.random_state}
        return {name: explained_share(attribute, some, **options) for name, some in sets.items()}

    def _unbounded(self, f: Array, column: Column, weight: Array | None) -> str:
        """Return why GDP has no guaranteed bound; an empty text if it has one."""
        if weight is not None:
            return "the rows have weights"
        if self.copies.pasted:
            return (
                f"it needs independent rows, and most of the {self.copies.rows:,} rows occur "
                f"{self.copies.times} times ({self.copies.distinct:,} are different). Remove the "
                "copies"
            )
        bins = [name for name in column.categories if re.fullmatch(_BINS, name)]
        if column.categories and len(bins) == len(column.categories):
            return (
                "the rows may have chosen the edges of the bins; gdp_bound takes edges that were "
                "fixed in advance"
            )
        low, high = f.min(), f.max()
        if low >= 0.0 and high <= 1.0:
            return ""
        percent = ""
        if low >= 0.0 and high <= 100.0:
            percent = ": if they are percent, divide them by 100"
        found = f"from {number(low)} to {number(high)}{percent}"
        return f"it needs scores from 0 to 1, and these are {found}"

    def performance(self) -> dict[str, float]:
        """Return how good the scores are: means, and with two classes AUC and accuracy.

        These are about all rows with a score (``rows``), or with a score and a label
        (``labeled_rows``), also those without an attribute.
        """
        rows = np.flatnonzero(self.columns.usable)
        f = self.columns.score.values[rows]
        weight = self._weight(rows)
        found = {"rows": float(len(rows)), "mean_score": float(np.average(f, weights=weight))}
        chosen = None if self.threshold is None else f >= self.threshold
        if chosen is not None:
            found["selection_rate"] = float(np.average(chosen, weights=weight))
        label = self.columns.label
        if label is None or not label.categories:
            return found
        told = label.known[rows]
        y = label.values[rows][told]
        part = None if weight is None else weight[told]
        found["labeled_rows"] = float(told.sum())
        found["mean_label"] = float(np.average(y, weights=part))
        if 0.0 < found["mean_label"] < 1.0:
            found["auc"] = float(roc_auc_score(y, f[told], sample_weight=part))
        if chosen is not None:
            found["accuracy"] = float(np.average(chosen[told] == y, weights=part))
        return found

    def joint(self) -> AttributeAudit:
        """Return the test and the effect sizes of all attributes together."""
        attributes = self.columns.sensitive
        rows = self._rows(*attributes)
        s = scaled([column.at(rows) for column in attributes])
        f = self.columns.score.values[rows]
        numbers = {"pvalue": self._test(f, s, rows)}
        weight = self._weight(rows)
        numbers |= effect_sizes(f, s, weight=weight, random_state=self.random_state)
        name = " and ".join(column.name for column in attributes)
        return AttributeAudit(name, rows=len(rows), numbers=numbers)

    def _rows(self, *columns: Column) -> NDArray[np.intp]:
        """Return the usable rows in which all columns are known."""
        known = [column.known for column in columns]
        rows = np.flatnonzero(np.logical_and.reduce([self.columns.usable, *known]))
        if len(rows) < MIN_ROWS:
            names = " and ".join(repr(column.name) for column in columns)
            raise ValueError(
                f"Number of rows in which {names} and the score are known: {len(rows)}. Add rows, "
                f"or check the columns: an audit needs at least {MIN_ROWS}."
            )
        return rows

    def _weight(self, rows: NDArray[np.intp]) -> Array | None:
        """Return the weights of some rows; None without weights."""
        if self.columns.weight is None:
            return None
        return self.columns.weight.values[rows]

    def _test(self, f: Array, s: Array, rows: NDArray[np.intp], given: Any = None) -> Measure:
        """Return the p-value of a test of independence of ``f`` and ``s``, perhaps given more."""
        # Imported here: it needs torch, and a test patches it.
        from frhsic_core.joint import hsic_test

        narrow = s.shape[1] == 1 and (given is None or given.shape[1] == 1)
        most = len(f) if narrow else TEST_ROWS
        kept = sample_rows(len(f), most, weight=self._weight(rows), random_state=self.random_state)
        if len(kept) < 4:  # weights can leave hardly any row
            return Measure(1.0, len(kept))
        options: dict[str, Any] = {
            "n_permutations": PERMUTATIONS,
            "random_state": self.random_state,
        }
        given = None if given is None else with_labels(given[kept])
        found = hsic_test(f[kept], s[kept], given=given, method="aggregated", **options)
        return Measure(float(found.pvalue), len(kept))


def _spread(f: Array, weight: Array | None) -> float:
    """Return the standard deviation of the scores, and of equal scores no rounding error."""
    if np.ptp(f) == 0:
        return 0.0
    return float(np.sqrt(np.cov(f, aweights=weight, ddof=0)))


def _measures(curves: dict[str, Curve], spread: float) -> dict[str, Measure]:
    """Return the measures of the curves; equalized odds needs those of both labels."""
    found = {}
    for name in MEASURES:
        if name in curves:
            found[name] = _mean_gap([curves[name]])
        if name == "gdp_over_sd":
            found[name] = _mean_gap([curves["gdp"]], unit=spread or 1.0)
        if name == "equalized_odds" and {"equal_opportunity", "label_0"} <= curves.keys():
            found[name] = _mean_gap([curves["equal_opportunity"], curves["label_0"]])
    return found


def _mean_gap(curves: list[Curve], unit: float = 1.0) -> Measure:
    """Return the largest mean gap of some curves.

    The larger of two numbers lies between the larger lower end and the larger upper end.
    """
    return Measure(
        value=max(curve.gdp for curve in curves) / unit,
        rows=sum(curve.n for curve in curves),
        low=max(curve.gdp_low for curve in curves) / unit,
        high=max(curve.gdp_high for curve in curves) / unit,
        floor=max(curve.floor for curve in curves) / unit,
    )


def _impact(selected: Curve, rates: Any, rows: int) -> dict[str, Measure]:
    """Return the impact ratios along the attribute and of its groups, or of its categories."""
    along, most_along = impact_ratio(selected)
    if rates is None:
        ratio, least, most = group_impact(selected.low, selected.mean, selected.high)
    else:
        ratio, least, most = group_impact(
            rates.low.to_numpy(), rates.means.to_numpy(), rates.high.to_numpy()
        )
    return {
        "impact_ratio": Measure(along, rows, high=most_along),
        "impact_ratio_groups": Measure(ratio, rows, least, most),
        "impact_gap": Measure(1.0 - ratio, rows, 1.0 - most, 1.0 - least),
    }
