"""Queries of the ledger on recorded certificates."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from frhsic_core.experiments.ledger.answers import Answer, query
from frhsic_core.experiments.reference import book_folder

__all__ = ["recorded"]

WORTH_SAYING = ("fails as stated", "inconclusive", "holds as corrected", "holds")


@cache
def recorded() -> list[dict[str, Any]]:
    """Return the recorded certificates."""
    found: list[dict[str, Any]] = json.loads(book_folder("claims", "verdicts.json").read_text(encoding="utf-8"))
    return found


@query
def certificates(statement: str, contains: list[str]) -> Answer:
    """Verdicts of the certificates of a statement whose claim contains one of the texts; each text must be found."""
    cited: list[dict[str, Any]] = []
    for text in contains:
        found = [c for c in recorded() if c["statement"] == statement and text in c["claim"]]
        if not found:
            return Answer(why=f"no certificate of {statement} says {text!r}")
        cited += found
    # What breaks first, then what holds instead or besides.
    first = {verdict: next((c for c in cited if c["verdict"] == verdict), None) for verdict in WORTH_SAYING}
    said = [f"{verdict}: {c['claim']} [{c['evidence']}]" for verdict, c in first.items() if c is not None]
    note = f"{statement}, {'; '.join(said[:2])}"
    return Answer({"any": tuple(dict.fromkeys(certificate["verdict"] for certificate in cited))}, note=note)


@query
def exact_hsic_limit() -> Answer:
    """Whether biased HSIC is a squared norm, hence nonnegative: certified in rational arithmetic; its least value."""
    answer = certificates("Definition 2.1", ["is the defined squared norm"])
    return Answer({"any": 0.0 if answer.values["any"] == ("holds",) else None}, note=answer.note)
