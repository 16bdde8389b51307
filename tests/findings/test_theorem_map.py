"""Guards the checked sentences of the chapter on the map of theorems."""

from __future__ import annotations

import json

from frhsic_core.paper.runs.stored import book_folder
from frhsic_core.paper.statements.sentences import failing


def test_the_numbered_statements_that_fail() -> None:
    records = json.loads(book_folder("claims", "verdicts.json").read_text(encoding="utf-8"))
    broken = [s.statements for s in failing(records) if s.kind == "numbered statement"]
    assert broken == [("Theorem 5.1", "Corollary 5.2", "Proposition G.2", "Corollary G.3"), ("Lemma B.1",)]
