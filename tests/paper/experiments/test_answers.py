"""The answers of the experiments to claims of the paper are those on record, up to two lines for each query."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

from frhsic_core.paper.claims.answers import queries
from frhsic_core.paper.claims.verdicts import OTHER_DATA, Cuts, _ours, answer_of, claims, judge

RECORD = Path(__file__).parents[1] / "claims" / "recorded.csv"
LINES = claims()
HERE = [name for name, function in queries().items() if ".experiments." in function.__module__]


def numbers(text: str) -> list[float]:
    """Return the numbers within a text."""
    return [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?(?:e-?\d+)?", text)]


@pytest.fixture(scope="module")
def recorded() -> pd.DataFrame:
    return pd.read_csv(RECORD, dtype=str, keep_default_na=False).set_index("id")


@pytest.mark.parametrize("name", sorted(set(LINES["query"]) & set(HERE)))
def test_answers_are_on_record(name: str, recorded: pd.DataFrame) -> None:
    """Compare our value with its interval, what is measured, and the numbers of the note, a part of the recorded."""
    for line in LINES[LINES["query"] == name].drop_duplicates("arguments").head(2).to_dict("records"):
        answer = answer_of(name, line["arguments"])
        known = recorded.loc[line["id"]]
        # Four digits are shown; rounding moves the last one.
        assert numbers(_ours(answer)) == pytest.approx(numbers(known["ours"]), rel=2e-3, abs=1e-4)
        assert known["measure"] in ("", answer.measure)
        if not answer.prints:  # the verdict of a test depends on all lines of the ledger
            verdict = judge(line["value"], answer, line["rule"], Cuts()).verdict
            assert known["verdict"] in (verdict, OTHER_DATA)
        note, all_of_it = numbers(answer.note), numbers(known["note"])
        starts = range(len(all_of_it) - len(note) + 1)
        assert any(note == pytest.approx(all_of_it[i : i + len(note)], rel=2e-3, abs=1e-4) for i in starts)
