"""No line of the ledger changes unnoticed: its verdict, numbers and notes are those on record.

The questions of the paper leave some branches of the queries out: others.json has further questions, with our answers.
If a change is meant, run this file with Python: it writes both records again. Then read the difference.
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from frhsic_core.paper.claims import ledger, verdicts

RECORD, OTHERS = (Path(__file__).with_name(name) for name in ("recorded.csv", "others.json"))
WORDS = ["id", "kind", "form", "printed", "verdict", "by the code", "repeats", "from stored runs", "measure", "whose"]
NUMBERS = ["deviation", "margin", "p_differs", "p_agrees", "splits"]
TEXTS = ["ours", "stored", "note"]
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
# Four digits are shown. Rounding moves the last one, and an interval made of quantiles a little more.
TOLERANCE = 2e-3


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Return what is on record of each line: words, numbers and texts."""
    return table[[*WORDS, *TEXTS]].assign(**{name: [f"{value:.5g}" for value in table[name]] for name in NUMBERS})


def agree(first: str, second: str) -> bool:
    """Whether two texts have the same words, and the same numbers up to rounding."""
    return NUMBER.sub("#", first) == NUMBER.sub("#", second) and all(
        one == two or math.isclose(float(one), float(two), rel_tol=TOLERANCE, abs_tol=1e-4)
        for one, two in zip(NUMBER.findall(first), NUMBER.findall(second), strict=True)
    )


def changes(now: pd.DataFrame, before: pd.DataFrame) -> list[str]:
    """Return the entries that differ, as lines of text."""
    found = []
    for new, old in zip(now.to_dict("records"), before.to_dict("records"), strict=True):
        for name in (*WORDS, *NUMBERS, *TEXTS):
            if not (agree(new[name], old[name]) if name not in WORDS else new[name] == old[name]):
                found.append(f"{old['id']}: {name} was {old[name]}, now {new[name]}")
    return found


@pytest.fixture(scope="module")
def recorded() -> pd.DataFrame:
    return pd.read_csv(RECORD, dtype=str, keep_default_na=False)


def test_no_line_has_changed(full_ledger: pd.DataFrame, recorded: pd.DataFrame) -> None:
    found = changes(summary(full_ledger), recorded)
    assert not found, "\n".join(found[:20])


def answered(question: dict[str, Any]) -> dict[str, Any]:
    """Return one of the further questions with what the ledger would show as our answer."""
    found = verdicts.answer_of(question["query"], json.dumps(question["arguments"]))
    return question | {"ours": verdicts._ours(found), "note": found.note, "why": found.why}


def test_other_questions_have_the_recorded_answers() -> None:
    for before in json.loads(OTHERS.read_text(encoding="utf-8")):
        now = answered(before)
        assert all(agree(now[name], before[name]) for name in ("ours", "note", "why")), (now, before)


def test_a_change_is_found(recorded: pd.DataFrame) -> None:
    other = recorded.copy()
    assert changes(other, recorded) == []
    other.loc[3, "verdict"] = "agrees" if other.loc[3, "verdict"] != "agrees" else "open"
    row = other.index[other["deviation"] != "nan"][0]
    other.loc[row, "deviation"] = f"{1.01 * float(other.loc[row, 'deviation']) + 0.01:.5g}"
    assert len(changes(other, recorded)) == 2
    assert agree("0.8412 3", "0.8413 3")
    assert not agree("0.84 3", "0.85 3")
    assert not agree("lower on 3", "higher on 3")


if __name__ == "__main__":
    summary(ledger()).to_csv(RECORD, index=False)
    lines = [json.dumps(answered(one), ensure_ascii=False) for one in json.loads(OTHERS.read_text(encoding="utf-8"))]
    OTHERS.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")
