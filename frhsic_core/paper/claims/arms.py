"""Queries of the ledger on equal opportunity, several attributes and the choice of λ.

Where the paper printed a single run, the interval is that of one run: mean ± 2 standard deviations over our splits,
widened for the error of our own mean.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from frhsic_core.paper.claims.answers import Answer, query
from frhsic_core.paper.claims.results import DRAWS, PROTOCOLS, predicted, weights
from frhsic_core.paper.experiments.presets import experiment_for
from frhsic_core.paper.experiments.tables.arms import arm_rows, compare_arms, fall_shares, values_at
from frhsic_core.paper.experiments.tables.lambda_selection import accepted, selected
from frhsic_core.paper.experiments.tables.pareto import BAND
from frhsic_core.paper.runs.plan import Experiment
from frhsic_core.paper.runs.reference import stored_rows

__all__ = ["plan_fact"]

PRESET_OF = {"text": "text", "reference": "full"}
# Median distance of Z, in bandwidths, beyond which the guard of the training loop warns.
ESCAPE = 3.0
_arm_rows = cache(arm_rows)


def _not_run(experiment: str) -> Answer:
    return Answer(why=f"not run yet (no stored rows of {experiment!r})")


@query
def plan_fact(experiment: str, what: str) -> Answer:
    """The λ grid, splits or share of validation rows of an experiment, as the text has it and as run in full."""
    values: dict[str, Any] = {}
    for protocol, preset in PRESET_OF.items():
        plan = experiment_for(experiment, preset)
        assert isinstance(plan, Experiment)
        values[protocol] = {
            "lams": lambda plan=plan: plan.lams,
            "splits": lambda plan=plan: len(plan.splits),
            "validation_percent": lambda plan=plan: 100 * plan.fractions[1],
        }[what]()
    return Answer(values)


@query
def arm_point(experiment: str, dataset: str, arm: str | dict[str, str], measure: str, lam: float = 0.0) -> Answer:
    """One arm at one λ; ``arm`` may differ between the protocols. The interval is that of a single run."""
    values, intervals, note = {}, {}, ""
    for protocol in PROTOCOLS:
        rows = _arm_rows(experiment, dataset=dataset, protocol=protocol)
        if rows.empty:
            return _not_run(experiment)
        name = arm if isinstance(arm, str) else arm[protocol]
        found = values_at(rows, name, lam, measure)
        values[protocol] = float(found.mean())
        intervals[protocol] = predicted(weights(len(found), 1) @ found.to_numpy(), runs=1, splits=len(found))
        note = f"split 42 alone, reference protocol: {found.iloc[0]:.4g}; {len(found)} splits"
        escaped = int((values_at(rows, name, lam, "ratio") > ESCAPE).sum()) if name != "unfair" else 0
        note += f", Z beyond {ESCAPE:g} bandwidths at the end in {escaped} of them" if escaped else ""
    return Answer(values, intervals, note=note)


@query
def arm_not_worse(experiment: str, dataset: str, first: str, second: str, measure: str, lams: list[float]) -> Answer:
    """Whether at none of the λ the second arm is ahead of the first (paired signed-rank test over splits, Holm)."""
    values, notes = {}, []
    for protocol in PROTOCOLS:
        rows = _arm_rows(experiment, dataset=dataset, protocol=protocol)
        if rows.empty:
            return _not_run(experiment)
        table = compare_arms(rows, first, second, column=measure, lams=lams)
        values[protocol] = bool((table["verdict"] != second).all())
        shown = ", ".join(f"λ = {lam:g} {verdict}" for lam, verdict in zip(table["lam"], table["verdict"], strict=True))
        notes.append(f"ahead, {protocol} protocol: {shown}")
    return Answer(values, note="; ".join(notes))


@query
def attributes_fall(lams: list[float], forms: dict[str, list[str]], band: float = BAND) -> Answer:
    """Whether in every form the mean GDP of each attribute falls along ``lams``, accuracy within ``band`` of Unfair."""
    values, notes = {}, []
    columns = ["gdp_reference_age", "gdp_reference_hours"]
    for protocol in PROTOCOLS:
        rows = _arm_rows("multi_sensitive", dataset="adult", protocol=protocol)
        if rows.empty:
            return _not_run("multi_sensitive")
        unfair, met = float(values_at(rows, "unfair", 0.0, "performance").mean()), []
        for form in forms[protocol]:
            falls = fall_shares(rows, form, columns=columns, lams=lams)
            accuracy = min(float(values_at(rows, form, lam, "performance").mean()) for lam in lams)
            met.append(bool(falls["mean falls"].all()) and accuracy >= (1 - band) * unfair)
            kept = f"accuracy down by at most {1 - accuracy / unfair:.1%}"
            share = f"in {float(falls['share of splits'].min()):.0%} of single splits"
            notes.append(f"{form}, {protocol}: {'falls' if falls['mean falls'].all() else 'rises'} ({share}), {kept}")
        values[protocol] = all(met)
    return Answer(values, note="; ".join(notes))


@cache
def _selection(protocol: str) -> pd.DataFrame:
    rows = stored_rows("lambda_selection")
    if rows.empty:
        return rows
    return rows[(rows["protocol"] == protocol) & rows["method"].isin(["unfair", "frhsic"])]


def _each_protocol(datasets: list[str], answer: Callable[[pd.DataFrame], tuple[Any, Any, str]]) -> Answer:
    """Ask the rows of the datasets in each protocol that has all of them."""
    values, intervals, notes = {}, {}, []
    for protocol in PROTOCOLS:
        rows = _selection(protocol)
        rows = rows if rows.empty else rows[rows["dataset"].isin(datasets)]
        if rows.empty or set(rows.loc[rows["method"] == "frhsic", "dataset"]) != set(datasets):
            notes.append(f"{protocol}: not trained yet")
            continue
        value, interval, note = answer(rows)
        values[protocol] = value
        if interval is not None:
            intervals[protocol] = interval
        notes.append(f"{protocol}, {rows['split'].nunique()} splits: {note}")
    if not values:
        return Answer(why=f"not run yet (no stored rows of 'lambda_selection' on {', '.join(datasets)})")
    return Answer(values, intervals, note="; ".join(notes))


@query
def selected_end(datasets: list[str], end: str, splits: int = 3, test: str = "released") -> Answer:
    """The smallest or largest λ that the paper's rule selects; the interval holds 95 % of those of three splits."""

    def answer(rows: pd.DataFrame) -> tuple[float, tuple[float, float], str]:
        table = selected(rows, test=test)
        reduce = np.nanmin if end == "min" else np.nanmax
        # A split on which nothing is accepted selects nothing; an experiment in which none does has no end.
        lams = [part["lam"].where(part["satisfied"]).to_numpy() for _, part in table.groupby("dataset")]
        rng = np.random.default_rng(0)
        drawn = np.concatenate([lam[rng.integers(0, len(lam), (DRAWS, splits))] for lam in lams], axis=1)
        ends = reduce(drawn[~np.isnan(drawn).all(1)], axis=1)
        low, high = np.quantile(ends, [0.025, 0.975], method="nearest")
        counts = table["lam"].where(table["satisfied"]).value_counts(dropna=False).sort_index()
        shown = ", ".join(f"{'none' if np.isnan(lam) else f'{lam:g}'} ×{n}" for lam, n in counts.items())
        return float(np.quantile(ends, 0.5, method="nearest")), (float(low), float(high)), f"selected {shown}"

    return _each_protocol(datasets, answer)


@query
def selected_keeps(datasets: list[str], test: str = "released", band: float = BAND) -> Answer:
    """Whether every model that the paper's rule selects keeps the performance of Unfair within ``band``."""

    def answer(rows: pd.DataFrame) -> tuple[bool, None, str]:
        table = selected(rows, test=test, band=band)
        met = table[table["satisfied"]]
        told = f"{int(met['kept'].sum())} of {len(met)} selections keep it, {int(met['constant'].sum())} are constant"
        return bool(met["kept"].all()), None, told

    return _each_protocol(datasets, answer)


@query
def rejects_everywhere(dataset: str, test: str = "released") -> Answer:
    """Whether the test rejects at every λ on every split."""

    def answer(rows: pd.DataFrame) -> tuple[bool, None, str]:
        part = rows[rows["method"] == "frhsic"]
        kept = accepted(part, test=test)
        shares = [f"{name} {int((~accepted(part, test=name)).sum())}" for name in ("released", "gamma", "permutation")]
        told = f"rejected of {len(part)}: {', '.join(shares)}"
        return not bool(kept.any()), None, told

    return _each_protocol([dataset], answer)


@query
def selection_gdp_near_zero(dataset: str, lam: float, limit: float = 0.05) -> Answer:
    """Whether mean GDP at one λ is at most ``limit``, the tolerance used for the authors' stored runs."""

    def answer(rows: pd.DataFrame) -> tuple[bool, None, str]:
        part = rows[(rows["method"] == "frhsic") & np.isclose(rows["lam"], lam)]
        gdp = part["gdp_reference"].astype(float)
        return bool(gdp.mean() <= limit), None, f"mean {gdp.mean():.3f}, from {gdp.min():.3f} to {gdp.max():.3f}"

    return _each_protocol([dataset], answer)
