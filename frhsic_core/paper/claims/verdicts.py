"""The ledger: every number of the paper beside ours, with a verdict computed from data.

``book/claims/claims.csv`` and ``cells.csv`` hold the numbers as printed and, for each, the query that answers it and
the rule that judges it. These files hold no verdict. :func:`ledger` calls every query and applies every rule.

Lines are of three kinds, which are counted apart: *measured* (a number from data or runs), *implemented as printed* (a
setting that our code copied from the paper) and *proved or checked* (a statement). A measured line shows what its rule
could have found: the smallest deviation from our value that it would have called different.
"""

from __future__ import annotations

import inspect
import json
import math
from collections import Counter
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from frhsic_core.paper.claims.answers import (
    FULL_GRID,
    KIND_OF,
    KINDS,
    MEASURED,
    PROTOCOLS,
    TAIL,
    Answer,
    Interval,
    predicted,
    queries,
    weights,
)
from frhsic_core.paper.claims.relevance import RELEVANT
from frhsic_core.paper.claims.rules import APPROXIMATE, CORRECTED, HALF_DECADE, RULES, Decision, half_unit, parsed
from frhsic_core.paper.experiments.presets import GRIDS
from frhsic_core.paper.runs.provenance import code_version
from frhsic_core.paper.runs.stored import book_folder

REPRODUCED = "reproduced"
REFERENCE_ONLY = "reproduced by the reference protocol only"
COMPATIBLE = "compatible, not decided"
DIFFERS = "differs"
FAILS = "fails"
OPEN = "cannot be judged"
VERDICTS = (REPRODUCED, REFERENCE_ONLY, COMPATIBLE, CORRECTED, DIFFERS, FAILS, OPEN)
# The verdicts that say that the paper's number or sentence does not hold as printed.
CONTRADICTED = (DIFFERS, FAILS, CORRECTED)
FORMS = ("setting", "result", "statement")
PAPER = (
    "A Joint-Distribution Route to Fair Representations with Continuous Sensitive Attributes, source frhsic.tex "
    "(1,731 lines, SHA-256 6ff4a8b35ef5…)"
)
# How often an interval of five-split means calls a mean of the same distribution different.
FALSE_RATE = 2.0 * TAIL


def claims() -> pd.DataFrame:
    """Return the claims of the text and the cells of the tables as printed, with query, rule and chapter; all text.

    Examples
    --------
    >>> claims().set_index("id").loc["T001", ["claim", "value"]].to_list()
    ['adult, unfair, acc, baseline lambda=0', '.849']
    """
    folder = book_folder("claims")
    parts = []
    for source, name in (("text", "claims.csv"), ("table", "cells.csv")):
        parts.append(pd.read_csv(folder / name, dtype=str, keep_default_na=False).assign(source=source))
    return pd.concat(parts, ignore_index=True).fillna("")


def answer_of(name: str, arguments: str, *, grid: str = FULL_GRID) -> Answer:
    """Return the answer of a query; ``grid`` is given to the queries that depend on the λ grid of our sweeps."""
    if name not in queries():
        raise ValueError(f"There is no query {name!r}: choose one of {', '.join(sorted(queries()))}.")
    function = queries()[name]
    given = json.loads(arguments or "{}")
    if "lambda_grid" in inspect.signature(function).parameters:
        given["lambda_grid"] = grid
    return function(**given)


def detects(printed: str, value: Any, interval: Interval | None, rule: str) -> float:
    """Return the smallest deviation from our value, to the worse side, that the rule would have called different.

    In the unit of the printed number; NaN where the rule has none (an answer of yes or no).

    Examples
    --------
    >>> round(detects(".85", 0.84, (0.82, 0.85), "within_spread"), 4)
    0.0251
    """
    if interval is not None and rule in ("within_spread", "at_most", "at_least", "between", "rank"):
        rounding = 1.02 * half_unit(printed) if rule == "within_spread" else 0.0
        return max(interval[1] - value, value - interval[0]) + rounding
    if rule == "approximately":
        return APPROXIMATE * float(parsed(printed))
    if rule == "magnitude":
        return float((10.0**HALF_DECADE - 1.0) * value)
    if rule == "order":
        return 0.1
    return 0.0 if rule == "equal" and isinstance(value, int | float) else math.nan


def _decided(printed: str, value: Any, interval: Interval | None, rule: str, measure: str) -> Decision:
    """Apply a rule; a printed value in an interval that is too long to exclude a relevant difference is not decided."""
    if value is None:
        return False
    decision = RULES[rule](printed, value, interval)
    if decision is not True or rule != "within_spread" or interval is None:
        return decision
    found = detects(printed, value, interval, rule)
    relevant = RELEVANT[measure].difference(float(parsed(printed)))
    if found <= relevant:
        return True
    return f"would differ only beyond {found:.2g}; {relevant:.2g} would matter"


def _verdict(form: str, printed: str, answer: Answer, rule: str) -> tuple[str, str, str]:
    """Return the verdict, the key of the value that decided it, and why nothing was decided."""
    if form not in FORMS or rule not in RULES:
        raise ValueError(f"form is {form!r} and rule {rule!r}: choose among {FORMS} and {tuple(RULES)}.")
    if answer.why:
        return OPEN, "", answer.why
    found = {
        name: _decided(printed, value, answer.intervals.get(name), rule, answer.measure)
        for name, value in answer.values.items()
    }
    for name in ("any", "text"):
        if found.get(name) is True:
            return REPRODUCED, name, ""
    if found.get("reference") is True:
        return REFERENCE_ONLY, "reference", ""
    for name, decision in found.items():
        if decision == CORRECTED:
            return CORRECTED, name, ""
        if isinstance(decision, str):
            return COMPATIBLE, name, decision
    first = next(iter(found), "")
    return (FAILS if form == "statement" else DIFFERS), first, ""


def judge(form: str, printed: str, answer: Answer, rule: str) -> tuple[str, str]:
    """Return the verdict on a printed value and, where it is not decided or cannot be judged, why.

    The rule is applied to the value of each protocol. *Reproduced*: the text's protocol (or the one value there is)
    agrees, and its interval is short enough to exclude a relevant difference; *by the reference protocol only*: the
    same of the released code's protocol and not of the text's; *compatible, not decided*: the printed value lies in an
    interval that is too long. Otherwise a setting or result *differs* and a statement *fails*.

    Examples
    --------
    >>> judge("result", ".85", Answer({"text": 0.7, "reference": 0.849}), "within_spread")
    ('reproduced by the reference protocol only', '')
    >>> long = Answer({"any": 0.8}, {"any": (0.6, 1.0)}, measure="gdp")
    >>> judge("result", ".85", long, "within_spread")
    ('compatible, not decided', 'would differ only beyond 0.21; 0.05 would matter')
    """
    verdict, _, why = _verdict(form, printed, answer, rule)
    return verdict, why


def _shown(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        if len(value) > 6 and all(b - a == 1 for a, b in pairwise(value)):
            return f"{value[0]:g} to {value[-1]:g}"
        return ", ".join(_shown(part) for part in value)
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 1e4 else f"{value:.4g}"
    return str(value)


def _ours(answer: Answer) -> str:
    parts = []
    for name, value in answer.values.items():
        interval = answer.intervals.get(name)
        span = f" [{_shown(interval[0])}, {_shown(interval[1])}]" if interval else ""
        parts.append(("" if name == "any" else f"{name} ") + _shown(value) + span)
    # One value for both protocols is shown once.
    texts = {part.partition(" ")[2] for part in parts}
    return next(iter(texts)) if len(parts) == 2 and len(texts) == 1 else "; ".join(parts)


def _power(printed: str, answer: Answer, rule: str, name: str) -> float:
    """Return :func:`detects` of the value that decided the verdict, NaN where there is none."""
    value = answer.values.get(name)
    return math.nan if value is None else detects(printed, value, answer.intervals.get(name), rule)


@cache
def _judged(grid: str) -> pd.DataFrame:
    from frhsic_core.paper.claims.stored import stored_answer

    lines = []
    for claim in claims().to_dict("records"):
        answer = answer_of(claim["query"], claim["arguments"], grid=grid)
        verdict, name, why = _verdict(claim["form"], claim["value"], answer, claim["rule"])
        shown = ""
        from_stored = "none"
        their_note = ""
        if claim["stored_table"]:
            theirs = stored_answer(claim["stored_table"], claim["stored_rows"], claim["stored_formula"])
            if not theirs.why:
                shown = _ours(theirs)
                agrees = judge("result", claim["value"], theirs, claim["stored_rule"])[0] == REPRODUCED
                from_stored = "consistent" if agrees else "not"
                their_note = f"stored runs: {theirs.note}" if theirs.note else ""
        note = "; ".join(part for part in (why, answer.note, their_note) if part)
        kind = KIND_OF[claim["query"]]
        by_interval = bool(answer.intervals) and claim["rule"] == "within_spread" and not answer.why
        lines.append(
            {
                **{column: claim[column] for column in ("id", "source")},
                "kind": kind,
                **{column: claim[column] for column in ("form", "place", "claim")},
                "printed": claim["value"],
                "ours": _ours(answer),
                "verdict": verdict,
                "deviation": float(parsed(claim["value"])) - answer.values[name] if by_interval and name else math.nan,
                "detects": _power(claim["value"], answer, claim["rule"], name) if kind == MEASURED else math.nan,
                "relevant": RELEVANT[answer.measure].difference(float(parsed(claim["value"])))
                if by_interval
                else math.nan,
                "measure": answer.measure if by_interval else "",
                "note": note,
                "stored": shown,
                "from stored runs": from_stored,
                "interval": by_interval,
                "level": answer.level if by_interval else math.nan,
                "chapter": claim["chapter"],
            }
        )
    return pd.DataFrame(lines)


def ledger(*, verdict: str | None = None, kind: str | None = None, grid: str = FULL_GRID) -> pd.DataFrame:
    """Return the ledger, or its lines with one verdict: printed, ours, verdict, why, and what the stored runs say.

    ``deviation`` is the printed value minus ours, ``detects`` the smallest deviation that the rule would have called
    different, ``relevant`` the difference that matters, all in the unit of the printed number. Some
    seconds; the encoder's and optimizer's settings load torch.

    Parameters
    ----------
    verdict : str, optional
        One of ``VERDICTS``.
    kind : str, optional
        One of ``KINDS``.
    grid : {"full", "text"}
        The λ of our sweeps, for every method and both protocols: the nine that the authors' sweep has for all methods,
        or the five that the text names.
    """
    for name, given, known in (("verdict", verdict, VERDICTS), ("kind", kind, KINDS), ("grid", grid, GRIDS)):
        if given is not None and given not in known:
            raise ValueError(f"{name} is {given!r}: choose one of {', '.join(known)}.")
    table = _judged(grid).copy()
    for column, wanted in (("verdict", verdict), ("kind", kind)):
        table = table if wanted is None else table[table[column] == wanted].reset_index(drop=True)
    return table


def counts(table: pd.DataFrame) -> dict[str, dict[str, int]]:
    """Count the verdicts of each kind of line, in the order of ``KINDS`` and ``VERDICTS``, without zeros."""
    found: dict[str, dict[str, int]] = {}
    for kind in KINDS:
        here = table.loc[table["kind"] == kind, "verdict"].value_counts()
        found[kind] = {name: int(here[name]) for name in VERDICTS if name in here}
    return found


def swapped(label: str = "tab:real_data") -> pd.DataFrame:
    """Judge, for each number of a printed table, the number of each other method on the same dataset in its place.

    A line for each swap: dataset, quantity, method, the other method, and the verdict that the wrong number gets. Swaps
    of equal printed numbers are left out: they change nothing.
    """
    lines = claims()
    lines = lines[(lines["place"] == label) & (lines["rule"] == "within_spread")]
    parts = lines["claim"].str.split(", ", n=3, expand=True)
    lines = lines.assign(dataset=parts[0], method=parts[1], setting=parts[3])
    found = []
    for line in lines.to_dict("records"):
        answer = answer_of(line["query"], line["arguments"])
        same = (lines["dataset"] == line["dataset"]) & (lines["quantity"] == line["quantity"])
        for other in lines[same & (lines["value"] != line["value"])].to_dict("records"):
            verdict = judge(line["form"], other["value"], answer, line["rule"])[0]
            named = {name: line[name] for name in ("dataset", "quantity", "method")}
            found.append({**named, "other": other["method"], "verdict": verdict})
    return pd.DataFrame(found)


def expected_false(table: pd.DataFrame) -> tuple[int, float]:
    """Return how many lines are judged by an interval, and how many of them chance alone would call different.

    The second number is an expectation if every printed mean came from the law of our runs of one protocol; a second
    protocol that may agree only lowers it.
    """
    return int(table["interval"].sum()), float(table["level"].sum())


@cache
def calibration() -> pd.DataFrame:
    """Return how often the rule calls five of our own splits different from the other twenty.

    For every dataset and protocol the splits are divided into blocks of five, three times at random. The intervals come
    from the other twenty splits; then the share of matched points and areas of the block outside. Were the intervals
    right, ``FALSE_RATE``.
    """
    from frhsic_core.paper.experiments.main import MAIN_METHODS, frontiers, matched_draws
    from frhsic_core.paper.experiments.presets import DATASETS

    lines: Counter[tuple[str, str]] = Counter()
    for protocol in PROTOCOLS:
        for dataset in DATASETS:
            sweep = frontiers(dataset, protocol)
            rng = np.random.default_rng(0)
            divisions = np.concatenate([rng.permutation(sweep.splits).reshape(5, -1) for _ in range(3)])
            for block in divisions:
                kept = np.setdiff1d(np.arange(sweep.splits), block)
                alone = np.zeros((1, sweep.splits))
                shares = np.zeros((300, sweep.splits))
                alone[0, block] = 1 / block.size
                shares[:, kept] = weights(kept.size, block.size)[:300]
                seen, drawn = (
                    np.concatenate([matched_draws(sweep, w), sweep.areas(w).T[None]]) for w in (alone, shares)
                )
                for what, one, many in zip(("performance", "GDP", "nAUP"), seen, drawn, strict=True):
                    for method in range(len(MAIN_METHODS)):
                        if np.isnan(one[method, 0]):
                            continue
                        low, high = predicted(many[method], runs=block.size, splits=kept.size)
                        lines[what, "judged"] += 1
                        lines[what, "outside"] += int(not low <= one[method, 0] <= high)
    found = pd.Series(lines).unstack().loc[["performance", "GDP", "nAUP"], ["judged", "outside"]]
    return found.assign(share=found["outside"] / found["judged"])


def heading(table: pd.DataFrame) -> dict[str, Any]:
    """Return what stands on top: paper, code, stored runs, rule and counts for each kind and verdict."""
    from frhsic_core.paper.claims.settings import provenance

    judged, false = expected_false(table)
    rate = calibration()[["outside", "judged"]].sum()
    return {
        "paper": PAPER,
        "code": code_version(),
        "stored runs trained by code": sorted({e["code"] for e in provenance()["environments"]}),
        "claims": int((table["source"] == "text").sum()),
        "cells": int((table["source"] == "table").sum()),
        **counts(table),
        "from stored runs": {k: int(v) for k, v in table["from stored runs"].value_counts().items()},
        "judged by an interval": judged,
        "differs by chance alone, expected": round(false, 1),
        "the same by the rate measured on our own splits": round(float(judged * rate["outside"] / rate["judged"]), 1),
    }
