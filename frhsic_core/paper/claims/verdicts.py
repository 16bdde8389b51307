"""The ledger: every number of the paper beside ours, with a verdict computed from data.

``book/claims/claims.csv`` and ``cells.csv`` hold the numbers as printed and, for each, the query that answers it and
the rule that judges it. These files hold no verdict. :func:`ledger` calls every query and applies every rule.
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

from frhsic_core.paper.claims.answers import FULL_GRID, PROTOCOLS, WIDTH, Answer, predicted, queries, weights
from frhsic_core.paper.claims.rules import RULES
from frhsic_core.paper.runs.provenance import code_version
from frhsic_core.paper.runs.stored import book_folder

REPRODUCED = "reproduced"
REFERENCE_ONLY = "reproduced by the reference protocol only"
DIFFERS = "differs"
FAILS = "fails"
OPEN = "cannot be judged"
VERDICTS = (REPRODUCED, REFERENCE_ONLY, DIFFERS, FAILS, OPEN)
KINDS = ("setting", "result", "statement")
PAPER = (
    "A Joint-Distribution Route to Fair Representations with Continuous Sensitive Attributes, source frhsic.tex "
    "(1,731 lines, SHA-256 6ff4a8b35ef5…)"
)
# Two-sided probability that a normal variable is more than WIDTH standard deviations off.
FALSE_RATE = math.erfc(WIDTH / math.sqrt(2))


def claims() -> pd.DataFrame:
    """Return the 217 claims and 271 cells as printed, one line each, with query, rule and chapter; all text.

    Examples
    --------
    >>> claims().groupby("source").size().to_dict()
    {'table': 271, 'text': 217}
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


def judge(kind: str, printed: str, answer: Answer, rule: str) -> tuple[str, str]:
    """Return the verdict on a printed value and, where it cannot be judged, why.

    The rule is applied to the value of each protocol. *Reproduced*: the text's protocol (or the one value there is)
    agrees; *by the reference protocol only*: the released code's does and the text's does not. Otherwise a setting or
    result *differs* and a statement *fails*, unless the rule could not decide.

    Examples
    --------
    >>> judge("result", ".85", Answer({"text": 0.7, "reference": 0.849}), "within_spread")
    ('reproduced by the reference protocol only', '')
    """
    if kind not in KINDS or rule not in RULES:
        raise ValueError(f"kind is {kind!r} and rule {rule!r}: choose among {KINDS} and {tuple(RULES)}.")
    if answer.why:
        return OPEN, answer.why
    found = {
        name: False if value is None else RULES[rule](printed, value, answer.intervals.get(name))
        for name, value in answer.values.items()
    }
    if any(found.get(name) is True for name in ("any", "text")):
        return REPRODUCED, ""
    if found.get("reference") is True:
        return REFERENCE_ONLY, ""
    open_ones = [decision for decision in found.values() if isinstance(decision, str)]
    if open_ones:
        return OPEN, open_ones[-1]
    return (FAILS if kind == "statement" else DIFFERS), ""


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


@cache
def _judged(grid: str) -> pd.DataFrame:
    lines = []
    for claim in claims().to_dict("records"):
        answer = answer_of(claim["query"], claim["arguments"], grid=grid)
        verdict, why = judge(claim["kind"], claim["value"], answer, claim["rule"])
        shown = ""
        from_stored = "none"
        their_note = ""
        if claim["stored_query"]:
            theirs = answer_of(claim["stored_query"], claim["stored_arguments"])
            if not theirs.why:
                shown = _ours(theirs)
                agrees = judge("result", claim["value"], theirs, claim["stored_rule"])[0] == REPRODUCED
                from_stored = "consistent" if agrees else "not"
                their_note = f"stored runs: {theirs.note}" if theirs.note else ""
        note = "; ".join(part for part in (why, answer.note, their_note) if part)
        lines.append(
            {
                **{name: claim[name] for name in ("id", "source", "kind", "place", "claim")},
                "printed": claim["value"],
                "ours": _ours(answer),
                "verdict": verdict,
                "note": note,
                "stored": shown,
                "from stored runs": from_stored,
                "interval": bool(answer.intervals) and claim["rule"] == "within_spread" and not answer.why,
                "chapter": claim["chapter"],
            }
        )
    return pd.DataFrame(lines)


def ledger(*, verdict: str | None = None, grid: str = FULL_GRID) -> pd.DataFrame:
    """Return the ledger, or its lines with one verdict: printed, ours, verdict, why, and what the stored runs say.

    Some seconds; the encoder's and optimiser's settings load torch.

    Parameters
    ----------
    verdict : str, optional
        One of ``VERDICTS``.
    grid : {"full", "text"}
        The λ of our sweeps, for every method and both protocols: the nine that the authors' sweep has for all methods,
        or the five that the text names.
    """
    if verdict is not None and verdict not in VERDICTS:
        raise ValueError(f"verdict is {verdict!r}: choose one of {', '.join(VERDICTS)}.")
    table = _judged(grid).copy()
    return table if verdict is None else table[table["verdict"] == verdict].reset_index(drop=True)


def expected_false(table: pd.DataFrame) -> tuple[int, float]:
    """Return how many lines are judged by an interval, and how many of them chance alone would call different.

    The second number is an expectation if every printed mean came from the law of our runs of one protocol; a second
    protocol that may agree only lowers it.
    """
    judged = int(table["interval"].sum())
    return judged, judged * FALSE_RATE


@cache
def calibration() -> pd.DataFrame:
    """Return how often the rule calls five of our own splits different from the other twenty.

    For every dataset, protocol and block of five splits: intervals from the other twenty, then the share of matched
    points and areas of the block outside. Were the intervals right, ``FALSE_RATE``.
    """
    from frhsic_core.paper.experiments.main_table import MAIN_METHODS, frontiers, matched_draws
    from frhsic_core.paper.experiments.presets import DATASETS

    lines: Counter[tuple[str, str]] = Counter()
    for protocol in PROTOCOLS:
        for dataset in DATASETS:
            sweep = frontiers(dataset, protocol)
            for block in np.arange(sweep.splits).reshape(5, -1):
                kept = np.setdiff1d(np.arange(sweep.splits), block)
                alone = np.zeros((1, sweep.splits))
                shares = np.zeros((200, sweep.splits))
                alone[0, block] = 1 / block.size
                shares[:, kept] = weights(kept.size, block.size)[:200]
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
    """Return what stands on top: paper, code, stored runs, rule and counts for each verdict."""
    from frhsic_core.paper.claims.settings import provenance

    judged, false = expected_false(table)
    rate = calibration()[["outside", "judged"]].sum()
    counts = table["verdict"].value_counts()
    return {
        "paper": PAPER,
        "code": code_version(),
        "stored runs trained by code": sorted({e["code"] for e in provenance()["environments"]}),
        "claims": int((table["source"] == "text").sum()),
        "cells": int((table["source"] == "table").sum()),
        "verdicts": {name: int(counts.get(name, 0)) for name in VERDICTS},
        "from stored runs": {k: int(v) for k, v in table["from stored runs"].value_counts().items()},
        "judged by an interval": judged,
        "differs by chance alone, expected": round(false, 1),
        "the same by the rate measured on our own splits": round(float(judged * rate["outside"] / rate["judged"]), 1),
    }
