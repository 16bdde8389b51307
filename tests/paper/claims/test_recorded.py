"""No line of the ledger changes unnoticed: its verdict and its numbers are those on record.

If a change is meant, run this file with Python: it writes the record again. Then read the difference.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

import pandas as pd
import pytest

from frhsic_core.paper.claims import ledger

RECORD = Path(__file__).with_name("recorded.csv")
WORDS = ["id", "kind", "form", "printed", "verdict", "by the code", "repeats", "from stored runs", "measure"]
NUMBERS = ["deviation", "margin"]
TEXTS = ["ours", "stored", "note"]
# Four digits are shown. Rounding moves the last one, and an interval made of quantiles a little more.
TOLERANCE = 2e-3


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Return what is on record of each line: words, numbers, and the numbers within texts."""
    lines = table[WORDS].copy()
    for name in NUMBERS:
        lines[name] = [f"{value:.5g}" for value in table[name]]
    for name in TEXTS:
        lines[name] = [" ".join(re.findall(r"-?\d+(?:\.\d+)?(?:e-?\d+)?", text)) for text in table[name]]
    return lines


def agree(first: str, second: str) -> bool:
    """Whether two lists of numbers are the same up to rounding."""
    pairs = list(zip(first.split(), second.split(), strict=False))
    return len(first.split()) == len(second.split()) and all(
        one == two or math.isclose(float(one), float(two), rel_tol=TOLERANCE, abs_tol=1e-4) for one, two in pairs
    )


def changes(now: pd.DataFrame, before: pd.DataFrame) -> list[str]:
    """Return the entries that differ, as lines of text."""
    found = []
    for new, old in zip(now.to_dict("records"), before.to_dict("records"), strict=True):
        for name in (*WORDS, *NUMBERS, *TEXTS):
            same = new[name] == old[name] or (name not in WORDS and agree(new[name], old[name]))
            if not same:
                found.append(f"{old['id']}: {name} was {old[name]}, now {new[name]}")
    return found


@pytest.fixture(scope="module")
def recorded() -> pd.DataFrame:
    return pd.read_csv(RECORD, dtype=str, keep_default_na=False)


def test_no_line_has_changed(full_ledger: pd.DataFrame, recorded: pd.DataFrame) -> None:
    found = changes(summary(full_ledger), recorded)
    assert not found, "\n".join(found[:20])


def test_a_change_is_found(recorded: pd.DataFrame) -> None:
    other = recorded.copy()
    assert changes(other, recorded) == []
    other.loc[3, "verdict"] = "agrees" if other.loc[3, "verdict"] != "agrees" else "open"
    row = other.index[other["deviation"] != "nan"][0]
    other.loc[row, "deviation"] = f"{1.01 * float(other.loc[row, 'deviation']) + 0.01:.5g}"
    assert len(changes(other, recorded)) == 2
    assert agree("0.8412 3", "0.8413 3")
    assert not agree("0.84 3", "0.85 3")
    assert not agree("3", "3 4")


if __name__ == "__main__":
    summary(ledger()).to_csv(RECORD, index=False)
