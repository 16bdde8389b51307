"""Arms of one method compared λ by λ over the same splits, and the queries on equal opportunity and several attributes.

An arm is an option of an experiment (which rows the penalty uses, which kernel it has). ``rows`` are those of one
dataset and protocol; lower is better in every column but ``performance``. The spread that matters for a table of single
runs is that of one run; for the question which arm is better, that of a mean over splits. Where the paper printed a
single run, the interval of a query is that of one run: for GDP, which is skewed, the range over our splits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from frhsic_core.paper.claims.answers import PROTOCOLS, Answer, one_run, query, rows_of
from frhsic_core.paper.claims.relevance import RELEVANT
from frhsic_core.paper.experiments.shared.paired import compare, compare_all, corrected_scale, t_interval
from frhsic_core.paper.experiments.shared.pareto import BAND, matched_index, on_grid
from frhsic_core.paper.runs.stored import printed_cells

# Median distance of Z, in bandwidths, beyond which the guard of the training loop warns.
ESCAPE = 3.0


@cache
def arm_rows(experiment: str, *, dataset: str, protocol: str, repeats: bool = False) -> pd.DataFrame:
    """Return the stored rows of one dataset and protocol with a column ``arm``, ``"unfair"`` for Unfair.

    Repeats of a split from other initial weights are left out unless ``repeats`` is set.
    """
    rows = rows_of(experiment)
    rows = rows[(rows["dataset"] == dataset) & (rows["protocol"] == protocol)]
    rows = rows if repeats else rows[rows["seed"] == rows["split"]]
    return rows.assign(arm=rows["option"].where(rows["method"] != "unfair", "unfair"))


def values_at(rows: pd.DataFrame, arm: str, lam: float, column: str) -> pd.Series:
    """Return a column of one arm at one λ, indexed by split; Unfair has λ = 0 alone, whatever ``lam`` is."""
    part = rows[rows["arm"] == arm]
    part = part if arm == "unfair" else part[np.isclose(part["lam"], lam)]
    if part.empty:
        known = ", ".join(map(str, sorted(set(rows["arm"]))))
        raise ValueError(f"There are no rows of {arm!r} at λ = {lam:g}: the arms are {known}.")
    return part.groupby("split")[column].mean().astype(float)


def compare_arms(
    rows: pd.DataFrame, first: str, second: str, *, column: str, lams: Sequence[float], second_scale: float = 1.0
) -> pd.DataFrame:
    """Compare two arms split by split at each λ, Holm over the λ; ``rows`` are from :func:`arm_rows`.

    ``second_scale`` is the λ of the second arm in units of the first's: 0.5 compares a sum of two criteria at equal
    weight. A line has both means, the fields of :class:`~frhsic_core.paper.experiments.shared.paired.Paired`,
    ``p_holm`` and ``verdict``, which is the arm that is ahead at 5 % after Holm, or ``"not_significant"``;
    ``p_corrected_holm`` is the same adjustment of the corrected resampled t-test, which allows for splits that share
    rows and is the stricter of the two.
    """
    pairs = []
    for lam in lams:
        a = values_at(rows, first, lam, column)
        b = values_at(rows, second, second_scale * lam, column)
        both = sorted(set(a.index) & set(b.index))
        a, b = a[both], b[both]
        pairs.append(({"lam": lam, "first": a.mean(), "second": b.mean()}, a.to_numpy(), b.to_numpy()))
    table = compare_all(pairs, higher=False)
    ahead = np.where(table["effect"] > 0, first, second)
    return table.assign(verdict=np.where(table["p_holm"] < 0.05, ahead, "not_significant"))


def matched_arms(rows: pd.DataFrame, arms: Sequence[str], *, column: str, band: float = BAND) -> pd.DataFrame:
    """Return each arm's λ with the lowest mean of ``column`` within ``band`` of Unfair's mean accuracy, and its values.

    The λ is that of the mean over splits, one for all of them; an arm without one has NaN.
    """
    unfair = float(values_at(rows, "unfair", 0.0, "performance").mean())
    lines = {}
    for arm in arms:
        part = rows[rows["arm"] == arm].groupby("lam")[["performance", column]].mean().sort_index()
        place = matched_index(part["performance"].to_numpy(), part[column].to_numpy(), unfair, higher=True, band=band)
        lines[arm] = part.reset_index().reindex([int(place)]).iloc[0]  # there is no line −1: NaN
    return pd.DataFrame(lines).T.rename_axis("arm")


def compare_matched(
    rows: pd.DataFrame, first: str, second: str, *, column: str, lams: Sequence[float] | None = None
) -> dict[str, Any]:
    """Compare two arms split by split, each at its own matched λ; ``lams`` restricts both grids.

    The fields of :class:`~frhsic_core.paper.experiments.shared.paired.Paired`, and λ, mean accuracy and mean
    ``column`` of each arm.
    """
    rows = on_grid(rows, lams)
    table = matched_arms(rows, (first, second), column=column)
    a, b = (values_at(rows, arm, float(table.loc[arm, "lam"]), column) for arm in (first, second))
    found = asdict(compare(a.to_numpy(), b.to_numpy(), higher=False))
    for name, arm in (("first", first), ("second", second)):
        found |= {f"{name}_{part}": float(table.loc[arm, part]) for part in ("lam", "performance", column)}
    return found


def restart_spread(rows: pd.DataFrame, first: str, second: str, *, lam: float, column: str) -> pd.DataFrame:
    """Return how a difference of two arms scatters when both start from weights of their own, split by split.

    ``rows`` with repeats. For each split trained more than once, over all pairs of a run of the first and another run
    of the second: ``mean``, ``sd`` (of the pairs, divisor n), smallest and largest difference second − first.
    """
    lines = {}
    for split, part in rows[np.isclose(rows["lam"], lam)].groupby("split"):
        a, b = (part[part["arm"] == arm].sort_values("seed")[column].to_numpy(float) for arm in (first, second))
        if len(a) < 2 or len(a) != len(b):
            continue
        # A run shares its weights with the one of the same seed: those pairs are left out.
        gaps = (b[None, :] - a[:, None])[~np.eye(len(a), dtype=bool)]
        lines[split] = {"mean": gaps.mean(), "sd": gaps.std(), "low": gaps.min(), "high": gaps.max(), "runs": len(a)}
    return pd.DataFrame(lines).T.rename_axis("split")


def order_share(rows: pd.DataFrame, first: str, second: str, *, lam: float, columns: Sequence[str]) -> dict[str, float]:
    """Return the share of splits in which the first arm is lower, for each column, and in all of them (``"all"``)."""
    lower = pd.DataFrame({c: values_at(rows, first, lam, c) < values_at(rows, second, lam, c) for c in columns})
    return {**lower.mean().to_dict(), "all": float(lower.all(axis=1).mean())}


def fall_shares(rows: pd.DataFrame, arm: str, *, columns: Sequence[str], lams: Sequence[float]) -> pd.DataFrame:
    """Return for each column whether its mean never rises along ``lams``, and the share of splits where it does not."""
    lines = {}
    for column in columns:
        paths = pd.concat({lam: values_at(rows, arm, lam, column) for lam in lams}, axis=1)
        steps = np.diff(paths.to_numpy(), axis=1)
        lines[column] = {
            "mean falls": bool((np.diff(paths.mean().to_numpy()) <= 0).all()),
            "share of splits": float((steps <= 0).all(axis=1).mean()),
        }
    return pd.DataFrame(lines).T


def printed_arms(label: str) -> pd.DataFrame:
    """Return a printed table of arms: a line for each dataset, arm and λ, a column for each quantity.

    Examples
    --------
    >>> float(printed_arms("tab:eo").loc[("adult", "eo", 50.0), "eo_gdp"])
    0.352
    """
    cells = printed_cells(label)
    arms = cells["method"].str.removeprefix("frhsic_")
    lams = cells["setting"].str.removeprefix("lambda=").astype(float)
    cells = cells.assign(arm=arms, lam=lams)
    return cells.set_index(["dataset", "arm", "lam", "quantity"])["value"].unstack("quantity")


@query
def arm_point(experiment: str, dataset: str, arm: str | dict[str, str], measure: str, lam: float = 0.0) -> Answer:
    """Return one arm at one λ; ``arm`` may differ between the protocols. The interval is that of a single run."""
    values = {}
    intervals = {}
    note = ""
    for protocol in PROTOCOLS:
        rows = arm_rows(experiment, dataset=dataset, protocol=protocol)
        name = arm if isinstance(arm, str) else arm[protocol]
        found = values_at(rows, name, lam, measure)
        skewed = measure != "performance"
        values[protocol], intervals[protocol], level = one_run(found.to_numpy(), skewed=skewed)
        note = f"split 42 alone, reference protocol: {found.iloc[0]:.4g}; {len(found)} splits"
        escaped = int((values_at(rows, name, lam, "ratio") > ESCAPE).sum()) if name != "unfair" else 0
        note += f", Z beyond {ESCAPE:g} bandwidths at the end in {escaped} of them" if escaped else ""
    return Answer(values, intervals, note=note, measure="gdp" if skewed else "performance", level=level)


def _paired(rows: pd.DataFrame, first: str, second: str, column: str, lam: float) -> tuple[float, float, float]:
    """Return the mean of first − second over splits, and its 95 % interval for splits that share rows."""
    difference = (values_at(rows, first, lam, column) - values_at(rows, second, lam, column)).dropna().to_numpy()
    mean, half = t_interval(difference)
    reach = half * corrected_scale(len(difference))
    return mean, mean - reach, mean + reach


@query
def arm_lower(experiment: str, dataset: str, arms: dict[str, list[str]], lam: float, measures: list[str]) -> Answer:
    """Return whether the first arm has lower values than the second at one λ in every measure; paired over splits."""
    values: dict[str, Any] = {}
    notes = []
    for protocol in PROTOCOLS:
        rows = arm_rows(experiment, dataset=dataset, protocol=protocol)
        first, second = arms[protocol]
        found = [_paired(rows, first, second, column, lam) for column in measures]
        lower = order_share(rows, first, second, lam=lam, columns=measures)["all"]
        shown = ", ".join(f"{mean:+.3f} ({low:+.3f} to {high:+.3f})" for mean, low, high in found)
        notes.append(f"{protocol}: {first} − {second} {shown}, lower in all of {lower:.0%} of splits")
        if any(low > 0 for _, low, _ in found):
            values[protocol] = False
        else:
            decided = all(high < 0 for _, _, high in found)
            values[protocol] = True if decided else "the splits leave open which one is lower"
    return Answer(values, note="; ".join(notes))


@query
def arm_not_worse(experiment: str, dataset: str, first: str, second: str, measure: str, lams: list[float]) -> Answer:
    """Return whether the first arm is at most a relevant difference worse than the second at every λ.

    A test of non-inferiority: the upper end of the paired interval must be below the relevant difference. That a test
    finds no difference is not enough.
    """
    values: dict[str, Any] = {}
    notes = []
    for protocol in PROTOCOLS:
        rows = arm_rows(experiment, dataset=dataset, protocol=protocol)
        worse = []
        open_at = []
        for lam in lams:
            _, low, high = _paired(rows, first, second, measure, lam)
            margin = RELEVANT["gdp"].difference(float(values_at(rows, second, lam, measure).mean()))
            if low > margin:
                worse.append(f"{lam:g}")
            elif high > margin:
                open_at.append(f"{lam:g}")
        if worse:
            values[protocol] = False
            notes.append(f"{protocol}: worse by a relevant difference at λ = {', '.join(worse)}")
        elif open_at:
            values[protocol] = f"at λ = {', '.join(open_at)} the splits do not exclude that it is relevantly worse"
            notes.append(f"{protocol}: open at λ = {', '.join(open_at)}")
        else:
            values[protocol] = True
            notes.append(f"{protocol}: at most a relevant difference worse at every λ")
    return Answer(values, note="; ".join(notes))


@query
def attributes_fall(lams: list[float], forms: dict[str, list[str]], band: float = BAND) -> Answer:
    """Return whether GDP of each attribute falls along ``lams`` in every form, accuracy within ``band`` of Unfair."""
    values = {}
    notes = []
    columns = ["gdp_reference_age", "gdp_reference_hours"]
    for protocol in PROTOCOLS:
        rows = arm_rows("multi_sensitive", dataset="adult", protocol=protocol)
        unfair = float(values_at(rows, "unfair", 0.0, "performance").mean())
        met = []
        for form in forms[protocol]:
            falls = fall_shares(rows, form, columns=columns, lams=lams)
            accuracy = min(float(values_at(rows, form, lam, "performance").mean()) for lam in lams)
            met.append(bool(falls["mean falls"].all()) and accuracy >= (1 - band) * unfair)
            kept = f"accuracy down by at most {1 - accuracy / unfair:.1%}"
            share = f"in {float(falls['share of splits'].min()):.0%} of single splits"
            notes.append(f"{form}, {protocol}: {'falls' if falls['mean falls'].all() else 'rises'} ({share}), {kept}")
        values[protocol] = all(met)
    return Answer(values, note="; ".join(notes))
