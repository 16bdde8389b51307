"""No line of the ledger changes unnoticed: its verdict, numbers and notes are those on record.

The questions of the paper leave some branches of the queries out: others.json has further questions, with our answers.
"""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
from records import Records

from frhsic_core.paper.claims import verdicts

WORDS = [
    "kind",
    "form",
    "printed",
    "verdict",
    "by the code",
    "repeats",
    "from stored runs",
    "measure",
    "whose",
]
NUMBERS = ["deviation", "margin", "p_differs", "p_agrees", "splits"]
# Four digits are shown. Rounding moves the last one, and an interval made of quantiles a little more.
TOLERANCE = {"rel": 2e-3, "abs_": 1e-4, "texts": True}


def test_no_line_has_changed(full_ledger: pd.DataFrame, recorded: Records) -> None:
    table = full_ledger.set_index("id")
    recorded({"id": list(table.index)} | table[WORDS].to_dict(), "words.json")
    numbers = {name: table[name].map("{:.5g}".format) for name in NUMBERS}
    recorded(
        table[["ours", "stored", "note"]].assign(**numbers).to_dict(), "numbers.json", **TOLERANCE
    )


def answered(question: dict[str, Any]) -> dict[str, Any]:
    """Return one of the further questions with what the ledger would show as our answer."""
    found = verdicts.answer_of(question["query"], json.dumps(question["arguments"]))
    return question | {"ours": verdicts._ours(found), "note": found.note, "why": found.why}


def test_other_questions_have_the_recorded_answers(recorded: Records) -> None:
    recorded(list(map(answered, recorded.read("others.json"))), "others.json", **TOLERANCE)
