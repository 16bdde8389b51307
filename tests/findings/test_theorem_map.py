"""Guards the checked sentences of the chapter on the map of theorems."""

from __future__ import annotations

import json

from frhsic_core.paper.runs.stored import book_folder
from frhsic_core.paper.statements.sentences import failing


def test_one_numbered_statement_fails() -> None:
    records = json.loads(book_folder("claims", "verdicts.json").read_text(encoding="utf-8"))
    broken = [s for s in failing(records) if s.kind == "numbered statement"]
    assert [s.statements for s in broken] == [("Theorem 5.1", "Proposition G.2")]
