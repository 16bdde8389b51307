"""Answers of the ledger that come from recorded certificates."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from frhsic_core.paper.claims.answers import Answer, query
from frhsic_core.paper.runs.reference import book_folder

__all__ = ["recorded"]

ORDER = ("fails as stated", "inconclusive", "holds as corrected", "holds")


@cache
def recorded() -> list[dict[str, Any]]:
    """Return the recorded certificates."""
    found: list[dict[str, Any]] = json.loads(book_folder("claims", "verdicts.json").read_text(encoding="utf-8"))
    return found


def _text(certificate: dict[str, Any]) -> str:
    return f"{certificate['verdict']}: {certificate['claim']} [{certificate['evidence']}]"


@query
def certificates(statement: str, contains: list[str], beside: list[str] | None = None) -> Answer:
    """Return the verdicts of a statement's certificates whose claim contains one of the texts; each must occur.

    Certificates found by ``beside`` are mentioned in the note but not judged: cases that the paper's sentence leaves
    out, by a condition it states or by the kernels it uses.
    """
    cited: list[dict[str, Any]] = []
    others: list[dict[str, Any]] = []
    for text, kept in (*((text, cited) for text in contains), *((text, others) for text in beside or ())):
        found = [c for c in recorded() if c["statement"] == statement and text in c["claim"]]
        if not found:
            return Answer(why=f"no certificate of {statement} says {text!r}")
        kept += found
    # What breaks first, then what holds instead or besides.
    first = {verdict: next((c for c in cited if c["verdict"] == verdict), None) for verdict in ORDER}
    shown = [_text(c) for c in first.values() if c is not None][:2]
    shown += [f"beside it, not judged, {_text(c)}" for c in others]
    note = f"{statement}, {'; '.join(shown)}"
    return Answer({"any": tuple(dict.fromkeys(certificate["verdict"] for certificate in cited))}, note=note)


@query
def exact_hsic_limit() -> Answer:
    """Return the least value of biased HSIC, zero if it is certified to be a squared norm in rational arithmetic."""
    answer = certificates("Definition 2.1", ["is the defined squared norm"])
    return Answer({"any": 0.0 if answer.values["any"] == ("holds",) else None}, note=answer.note)
