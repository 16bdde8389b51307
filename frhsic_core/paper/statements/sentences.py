"""The sentences of the paper that a failing certificate concerns, each counted once, in classes.

A certificate is a check, and several checks may concern one sentence: the same theorem stated twice, two laws that
break one remark. ``sentences.csv`` names every sentence that a certificate failed, with the certificates that concern
it and the class it belongs to:

* *numbered statement*: a theorem, proposition, corollary or lemma, as printed;
* *sentence*: a sentence of a remark, of the text or of a caption;
* *reading*: words that hold under one reading and fail under another;
* *other setting*: a case of ours that the paper does not have, and so no failure of the paper.

The file holds no verdict: a sentence fails when one of its certificates does.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from frhsic_core.paper.statements.registry import statements

KINDS = ("numbered statement", "sentence", "reading", "other setting")
FAILS = "fails as stated"


@dataclass(frozen=True)
class Sentence:
    """One row of ``sentences.csv``.

    Attributes
    ----------
    key : str
        A short name.
    kind : str
        One of ``KINDS``.
    statements : tuple of str
        Numbers of the statements it belongs to; two where the paper says it twice.
    place : str
        Where it stands.
    sentence : str
        What it says, in our words.
    holds : str
        When it holds, or what holds instead.
    certificates : tuple of str
        Beginnings or parts of the claims that concern it.
    itself : bool
        Whether the sentence is what its statements state, and not a further sentence in them or near them. True for
        every numbered statement, and for a remark whose main claim fails.
    """

    key: str
    kind: str
    statements: tuple[str, ...]
    place: str
    sentence: str
    holds: str
    certificates: tuple[str, ...]
    itself: bool


@cache
def sentences() -> tuple[Sentence, ...]:
    """Return the sentences in the order of the file, classes together.

    Examples
    --------
    >>> sentences()[0].statements
    ('Theorem 5.1', 'Corollary 5.2', 'Proposition G.2', 'Corollary G.3')
    """
    text = resources.files("frhsic_core.paper.statements").joinpath("sentences.csv").read_text(encoding="utf-8")
    return tuple(
        Sentence(
            key=row["key"],
            kind=row["kind"],
            statements=tuple(row["statements"].split("; ")),
            place=row["place"],
            sentence=row["sentence"],
            holds=row["holds"],
            certificates=tuple(json.loads(row["certificates"])),
            itself=row["itself"] == "yes",
        )
        for row in csv.DictReader(text.splitlines())
    )


def theorems() -> tuple[str, ...]:
    """Return the numbers of the paper's theorems, propositions, corollaries and lemmas.

    Examples
    --------
    >>> len(theorems())
    18
    """
    return tuple(n for n in statements() if n.startswith(("Theorem", "Proposition", "Corollary", "Lemma")))


def concerned(sentence: Sentence, rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the recorded certificates that concern a sentence: of its statements, with one of its texts."""
    return [
        row
        for row in rows
        if row["statement"] in sentence.statements and any(text in row["claim"] for text in sentence.certificates)
    ]


def failing(rows: Iterable[Mapping[str, Any]]) -> list[Sentence]:
    """Return the sentences that a recorded certificate failed."""
    rows = list(rows)
    return [s for s in sentences() if any(row["verdict"] == FAILS for row in concerned(s, rows))]


def counts(rows: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Count the paper's theorems, those that hold as printed, and the failing sentences of each class.

    Parameters
    ----------
    rows : iterable of mappings
        Certificates on record, as in ``book/claims/verdicts.json``.

    Returns
    -------
    dict
        ``"theorems"``, ``"theorems that hold"`` and the number of failing sentences for every one of ``KINDS``.
    """
    rows = list(rows)
    found = failing(rows)
    numbered = [row for s in found if s.kind == "numbered statement" for row in concerned(s, rows)]
    broken = {row["statement"] for row in numbered if row["verdict"] == FAILS}
    kinds = Counter(s.kind for s in found)
    return {
        "theorems": len(theorems()),
        "theorems that hold": sum(number not in broken for number in theorems()),
        **{kind: kinds[kind] for kind in KINDS},
    }
