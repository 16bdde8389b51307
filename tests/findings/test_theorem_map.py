"""Guards the checked sentences of the chapter on the map of theorems."""

from __future__ import annotations

import json

from frhsic_core.paper.runs.stored import book_folder
from frhsic_core.paper.statements.overview import failing, standings

RECORDS = json.loads(book_folder("claims", "verdicts.json").read_text(encoding="utf-8"))


def test_the_numbered_statements_that_fail() -> None:
    broken = [s.statements for s in failing(RECORDS) if s.kind == "numbered statement"]
    assert broken == [("Theorem 5.1", "Corollary 5.2", "Proposition G.2", "Corollary G.3"), ("Lemma B.1",)]


def test_the_statements_that_need_a_further_condition() -> None:
    """The uniform bound, its three consequences and Lemma B.1, as in the text below the table and in the recap."""
    needy = {one.statement.number for one in standings(RECORDS) if one.verdict == "needs a further condition"}
    uniform = {"Theorem 5.1", "Corollary 5.2", "Proposition G.2", "Corollary G.3", "Remark G.4"}
    assert needy == uniform | {"Lemma B.1"}
