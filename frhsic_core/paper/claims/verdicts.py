"""The ledger: every number of the paper beside ours, with a verdict computed from data.

``book/claims/claims.csv`` and ``cells.csv`` hold the numbers as printed and, for each, the query that answers it and
the rule that judges it. These files hold no verdict. :func:`ledger` calls every query and applies the rule that
:mod:`frhsic_core.paper.claims.rules` states.

Lines are of three kinds, which are counted apart: *measured* (a number from data or runs), *implemented as printed* (a
setting that our code copied from the paper) and *proved or checked* (a statement). The kind is a column of the files.
"""

from __future__ import annotations

import json
import math
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import special

from frhsic_core._choices import one_of
from frhsic_core.paper.claims.answers import TAIL, Answer, Spread, joined, queries
from frhsic_core.paper.claims.rules import (
    CORRECTED,
    FALSE_DISCOVERIES,
    HELD_OUT_SEED,
    RULES,
    TESTED,
    half_unit,
    margin,
    p_values,
    parsed,
    threshold,
)
from frhsic_core.paper.stored import printed_numbers

AGREES = "agrees"
DISAGREES = "disagrees"
OPEN = "open"
OTHER_DATA = "other data"
NOT_JUDGED = "cannot be judged"
VERDICTS = (AGREES, DISAGREES, CORRECTED, OPEN, OTHER_DATA, NOT_JUDGED)
# The verdicts that say that the paper's number or sentence does not hold as printed.
CONTRADICTED = (DISAGREES, CORRECTED)
# The datasets whose rows are not those of the authors.
OTHER_DATASETS = frozenset({"acs_income", "meps"})
# What a verdict rests on: a number from data or runs, a setting that our code copied, or a statement.
MEASURED = "measured"
KINDS = (MEASURED, "implemented as printed", "proved or checked")
PAPER = (
    "A Joint-Distribution Route to Fair Representations with Continuous Sensitive Attributes, source frhsic.tex "
    "(1,731 lines, SHA-256 6ff4a8b35ef5…)"
)
# Claims of the paper in words, each with the lines that carry it. Which of them fail is computed.
NAMED = {
    "By the area under the frontier, FRHSIC is first on COMPAS, within .004 of the best on Crime, and in the middle "
    "elsewhere": ("C050", "C049", "C051"),
    "Over new heads, FRHSIC is the most consistent of the methods that keep accuracy": ("C175",),
    "The selected weight of the penalty keeps the performance, and GDP of two attributes falls at kept accuracy": (
        "C213",
        "C156",
    ),
    "An epoch of FRHSIC, against FREM with the 32 anchors of the text, is 36 times faster, and two to three times when "
    "the attribute has several dimensions": ("C007", "C193", "C194"),
    "The mutual information of representation and attribute has the printed values": (
        "C176",
        "C177",
        "C179",
    ),
}


class Cuts(NamedTuple):
    """The largest p-values that count as *disagrees* and as *agrees*, from the false discovery rate over all lines."""

    differs: float = FALSE_DISCOVERIES
    agrees: float = FALSE_DISCOVERIES


def claims() -> pd.DataFrame:
    """Return the claims of the text and the cells of the tables as printed, with query, rule and chapter; all text.

    ``repeats`` is the id of the first line with the same question and the same printed number; empty for that line.

    Examples
    --------
    >>> claims().set_index("id").loc["T001", ["claim", "value"]].to_list()
    ['adult, unfair, acc, baseline lambda=0', '.849']
    """
    found = printed_numbers()
    question = [
        found["query"],
        found["arguments"],
        found["rule"],
        found["value"].map(lambda text: str(parsed(text))),
    ]
    first = found.groupby(question)["id"].transform("first")
    return found.assign(repeats=first.where(first != found["id"], ""))


def answer_of(name: str, arguments: str) -> Answer:
    """Return the answer of a query."""
    return queries()[name](**json.loads(arguments or "{}"))


def has_test(answer: Answer, rule: str, name: str) -> bool:
    """Return whether the two tests judge this value; other rules return their decision directly."""
    return rule in TESTED and name in answer.prints and name in answer.means


def needed(printed: str, answer: Answer, rule: str, name: str) -> tuple[str, int]:
    """Return whose splits would decide an open line, ``"ours"`` or ``"the paper's"``, and about how many.

    Ours where our value lies within the margin of the print: their mean would become exact enough. The paper's where it
    does not: its mean over a few runs is then too noisy to be called different. Zero where runs do not help.

    Examples
    --------
    >>> from frhsic_core.paper.claims.answers import Spread
    >>> spreads = {"any": Spread(0.3, 0.5, 0.7)}, {"any": Spread(0.4, 0.5, 0.6)}
    >>> wide = Answer({"any": 0.5}, *spreads, measure="gdp", splits=25)
    >>> needed(".52", wide, "within_spread", "any"), needed(".60", wide, "within_spread", "any")
    (('ours', 278), ("the paper's", 23))
    """
    value = float(np.max(parsed(printed)))
    prints, means = answer.prints[name], answer.means[name]
    room = margin(printed, rule, answer.measure) - abs(value - means.middle)
    if room > 0:
        return "ours", math.ceil(answer.splits * (means.half(value) / room) ** 2)
    distance = abs(value - prints.middle) - half_unit(printed)
    if not answer.splits or not distance > 0:
        return "", 0
    return "the paper's", math.ceil(answer.runs * (prints.half(value) / distance) ** 2)


class Judgement(NamedTuple):
    """The verdict on a print; why, where it is open or cannot be judged; the p-values of both tests, if there are any.

    ``whose`` and ``splits`` are what :func:`needed` returns for an open line.
    """

    verdict: str
    why: str = ""
    p_differs: float = math.nan
    p_agrees: float = math.nan
    whose: str = ""
    splits: int = 0


def deciding(answer: Answer) -> str:
    """Return the key of the value that decides: the text's protocol, or the one value there is."""
    return next(
        (name for name in ("any", "text") if name in answer.values), next(iter(answer.values), "")
    )


def judge(printed: str, answer: Answer, rule: str, cuts: Cuts, name: str = "") -> Judgement:
    """Judge a print by the value of one protocol, by default by the value that decides.

    Examples
    --------
    >>> judge(".85", Answer({"text": 0.7, "reference": 0.85}), "within_spread", Cuts()).verdict
    'disagrees'
    """
    if answer.why:
        return Judgement(NOT_JUDGED, answer.why)
    name = name or deciding(answer)
    value, prints = answer.values[name], answer.prints.get(name)
    tested = has_test(answer, rule, name)
    p = (math.nan, math.nan)
    if tested:
        p = p_values(printed, rule, answer.measure, answer.prints[name], answer.means[name])
    if value is None or (prints is not None and math.isnan(prints.middle)):
        # There is no such setting, or no draw of our splits has such a point.
        return Judgement(DISAGREES, "", *p)
    if tested:
        if p[1] <= cuts.agrees:
            return Judgement(AGREES, "", *p)
        if p[0] <= cuts.differs:
            return Judgement(DISAGREES, "", *p)
        whose, count = needed(printed, answer, rule, name)
        why = (
            f"about {count:,} splits of {whose} would decide"
            if count
            else "more splits would not decide it"
        )
        return Judgement(OPEN, why, *p, whose, count)
    decision = RULES[rule](printed, value, prints)
    if isinstance(decision, str):
        return Judgement(CORRECTED) if decision == CORRECTED else Judgement(OPEN, decision)
    return Judgement(AGREES if decision else DISAGREES)


@cache
def answers() -> dict[str, Answer]:
    """Return the answer to every claim by its id; equal questions are asked once."""
    found: dict[tuple[str, str], Answer] = {}
    for claim in claims().to_dict("records"):
        key = (claim["query"], claim["arguments"])
        if key not in found:
            found[key] = answer_of(*key)
    return {c["id"]: found[c["query"], c["arguments"]] for c in claims().to_dict("records")}


def on_other_data(claim: dict[str, str]) -> bool:
    """Return whether a measured line is about ACS Income or MEPS alone."""
    given = json.loads(claim["arguments"] or "{}")
    datasets = {given["dataset"]} if "dataset" in given else set(given.get("datasets", ()))
    return claim["kind"] == MEASURED and bool(datasets) and datasets <= OTHER_DATASETS


def _with_splits(answer: Answer, name: str, times: float) -> tuple[Spread, Spread]:
    """Return the two spreads if we had ``times`` as many splits and our mean stayed where it is.

    Only the error of our own mean and the estimate of the scale improve, not the noise of the paper's few runs. That
    this noise is partly shared is left out, so that the first spread is rather too narrow.
    """
    prints, means = answer.prints[name], answer.means[name]
    if not answer.splits:
        return prints, means
    splits = times * answer.splits
    scale = special.stdtrit(splits - 1.0, TAIL) / special.stdtrit(answer.splits - 1.0, TAIL)
    noise = math.sqrt((1.0 + answer.runs / splits) / (1.0 + answer.runs / answer.splits))
    return prints.scaled(noise * scale, splits - 1.0), means.scaled(
        scale / math.sqrt(times), splits - 1.0
    )


@cache
def _tests(protocol: str, times: float = 1.0) -> np.ndarray:
    """Return both p-values of all measured lines with tests, ``(lines, 2)``, each question once, without other data."""
    found = []
    for claim in claims().to_dict("records"):
        answer = answers()[claim["id"]]
        name = deciding(answer) if protocol == "text" else protocol
        if (
            claim["repeats"]
            or answer.why
            or on_other_data(claim)
            or not has_test(answer, claim["rule"], name)
        ):
            continue
        spreads = answer.prints[name], answer.means[name]
        if times != 1.0:
            spreads = _with_splits(answer, name, times)
        found.append(p_values(claim["value"], claim["rule"], answer.measure, *spreads))
    return np.array(found).reshape(-1, 2)


@cache
def cuts_of(protocol: str, times: float = 1.0) -> Cuts:
    """Return the cuts of a protocol over all its tests, with ``times`` as many splits of ours."""
    differs, agrees = _tests(protocol, times).T
    return Cuts(threshold(differs), threshold(agrees))


def open_with(times: float, cuts: Cuts | None = None) -> int:
    """Return how many tested lines would be open with ``times`` as many splits of ours, if our means stayed the same.

    ``cuts`` are by default those of the rule. The default of ``Cuts`` tests each line alone at 5 %: no rule that keeps
    this level on every line leaves fewer lines open.
    """
    cuts = cuts or cuts_of("text", times)
    p = _tests("text", times)
    return len(p) - int(((p[:, 0] <= cuts.differs) | (p[:, 1] <= cuts.agrees)).sum())


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
        spread = answer.means.get(name) or answer.prints.get(name)
        span = f" [{_shown(spread.low)}, {_shown(spread.high)}]" if spread else ""
        parts.append(("" if name == "any" else f"{name} ") + _shown(value) + span)
    # One value for both protocols is shown once.
    texts = {part.partition(" ")[2] for part in parts}
    return next(iter(texts)) if len(parts) == 2 and len(texts) == 1 else "; ".join(parts)


def _stored(claim: dict[str, str]) -> tuple[str, str, str]:
    """Return what the authors' stored runs give, whether it is the printed number, and a note."""
    from frhsic_core.paper.claims.stored import stored_answer

    if not claim["stored_table"]:
        return "", "none", ""
    theirs = stored_answer(claim["stored_table"], claim["stored_rows"], claim["stored_formula"])
    if theirs.why:
        return "", "none", ""
    same = judge(claim["value"], theirs, claim["stored_rule"], Cuts()).verdict == AGREES
    return (
        _ours(theirs),
        "consistent" if same else "not",
        f"stored runs: {theirs.note}" if theirs.note else "",
    )


@cache
def _judged() -> pd.DataFrame:
    lines = []
    for claim in claims().to_dict("records"):
        answer = answers()[claim["id"]]
        rule = claim["rule"]
        printed = claim["value"]
        found = judge(printed, answer, rule, cuts_of("text"))
        other = on_other_data(claim) and found.verdict != NOT_JUDGED
        by_code = ""
        if "reference" in answer.values and not answer.why:
            by_code = judge(printed, answer, rule, cuts_of("reference"), "reference").verdict
        by_test = not answer.why and has_test(answer, rule, deciding(answer))
        shown, from_stored, their_note = _stored(claim)
        lines.append(
            {
                **{
                    column: claim[column]
                    for column in ("id", "source", "kind", "form", "place", "claim")
                },
                "printed": printed,
                "ours": _ours(answer),
                "verdict": OTHER_DATA if other else found.verdict,
                "by the code": by_code,
                "repeats": claim["repeats"],
                "deviation": float(np.max(parsed(printed))) - answer.values[deciding(answer)]
                if by_test
                else math.nan,
                "margin": margin(printed, rule, answer.measure) if by_test else math.nan,
                "p_differs": found.p_differs,
                "p_agrees": found.p_agrees,
                "measure": answer.measure if by_test else "",
                "tested": by_test,
                "note": joined("" if other else found.why, answer.note, their_note),
                "stored": shown,
                "from stored runs": from_stored,
                "chapter": claim["chapter"],
                "whose": found.whose,
                "splits": found.splits,
            }
        )
    return pd.DataFrame(lines)


def ledger(*, verdict: str | None = None) -> pd.DataFrame:
    """Return the ledger, or its lines with one verdict: printed, ours, verdict, why, and what the stored runs say.

    ``by the code`` is the verdict of the released code's protocol, ``repeats`` the id of the line that this one
    repeats, ``deviation`` the printed value minus ours, ``margin`` the difference that matters, both in the unit of the
    printed number; ``whose`` and ``splits`` say what would decide an open line. Some seconds; the encoder's and
    optimizer's settings load torch.

    Parameters
    ----------
    verdict : str, optional
        One of ``VERDICTS``.
    """
    if verdict is None:
        return _judged().copy()
    one_of("verdict", verdict, VERDICTS)
    return _judged().query("verdict == @verdict").reset_index(drop=True)


def counts(table: pd.DataFrame) -> dict[str, dict[str, int]]:
    """Count the verdicts of each kind, each question once, in the order of ``VERDICTS`` and without zeros."""
    found: dict[str, dict[str, int]] = {}
    once = table[table["repeats"] == ""]
    for kind in KINDS:
        here = once.loc[once["kind"] == kind, "verdict"].value_counts()
        found[kind] = {name: int(here[name]) for name in VERDICTS if name in here}
    return found


def headline(table: pd.DataFrame) -> dict[str, Any]:
    """Return the result in a few numbers, over measured lines, each question once.

    The lines on the authors' data by verdict; how many verdicts of either kind are expected to be false at most; how
    many of those that disagree agree under the released code's protocol; the lines on other data; the claims of
    ``NAMED`` that fail; and what the authors' stored runs give.
    """
    lines = table[(table["kind"] == MEASURED) & (table["repeats"] == "")]
    same = lines[~lines["verdict"].isin([OTHER_DATA, NOT_JUDGED])]
    against = list(same[same["verdict"] == DISAGREES]["by the code"])
    code = list(same["by the code"].where(same["by the code"] != "", same["verdict"]))
    found, stored = list(lines["verdict"]), list(lines["from stored runs"])
    verdicts = table.set_index("id")["verdict"]
    return {
        "measured": len(lines),
        "judged": len(same),
        "agree": found.count(AGREES),
        "disagree": found.count(DISAGREES),
        "open": found.count(OPEN),
        "other_data": found.count(OTHER_DATA),
        "not_judged": found.count(NOT_JUDGED),
        "false_agree": FALSE_DISCOVERIES * found.count(AGREES),
        "false_disagree": FALSE_DISCOVERIES * found.count(DISAGREES),
        "agree_by_code": against.count(AGREES),
        "code": {name: code.count(name) for name in (AGREES, DISAGREES, OPEN)},
        "failing": [
            words for words, ids in NAMED.items() if (verdicts[list(ids)] == DISAGREES).all()
        ],
        "stored_consistent": stored.count("consistent"),
        "stored_not": stored.count("not"),
    }


def held_out() -> list[str]:
    """Return the forty measured lines that other code recomputes; they depend on the seed and the claims alone."""
    found = claims()
    measured = found[found["kind"] == MEASURED]["id"].to_numpy()
    return sorted(np.random.default_rng(HELD_OUT_SEED).choice(measured, 40, replace=False))


def heading(table: pd.DataFrame) -> dict[str, Any]:
    """Return what stands on top: paper, code, stored runs and counts for each kind and verdict."""
    from frhsic_core.paper.claims.settings import provenance
    from frhsic_core.paper.runs.jobs import code_version

    return {
        "paper": PAPER,
        "code": code_version(),
        "stored runs trained by code": sorted({e["code"] for e in provenance()["environments"]}),
        "claims": int((table["source"] == "text").sum()),
        "cells": int((table["source"] == "table").sum()),
        **counts(table),
        "from stored runs": {
            k: int(v) for k, v in table["from stored runs"].value_counts().items()
        },
    }
