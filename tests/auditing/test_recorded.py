"""Whole reports are those on record: every sentence and mark exactly, every number up to one unit of its last digit.

If a change is meant, run this file with Python: it writes the record again. Then read the difference.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from frhsic_core import __version__, audit
from frhsic_core.auditing._report import Audit

FOLDER = Path(__file__).with_name("recorded")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")


def scores(table: pd.DataFrame) -> Audit:
    """Two attributes, a label, a control, thresholds that hold, fail and stay open, and a file as the source."""
    given = {
        "sensitive_features": table[["age", "group"]],
        "y_true": table["hired"],
        "control_features": table["skill"],
    }
    found = audit(table["score"], **given, threshold=0.5, model="a logistic model")
    verdicts = found.check("gdp[age]=0.2", "gdp=0.01") + found.check("gdp[age]=0.1", "gdp[age]=0.5", guaranteed=True)
    return replace(found, verdicts=tuple(verdicts), provenance={"file": "people.csv"})


def decisions(table: pd.DataFrame) -> Audit:
    """Decisions in words about a few ages, with weights."""
    given = {"sensitive_features": (table["age"] // 20 * 20).rename("age"), "sample_weight": 1 + table["skill"].abs()}
    words, label = (np.where(table[name] > 0.6, "yes", "no") for name in ("score", "hired"))
    return audit(words, **given, y_true=label, positive_class="yes")


def amounts(table: pd.DataFrame) -> Audit:
    """Amounts without a label, some of them missing, about an age of which nobody has the same."""
    amount = (900 * table["score"]).where(table["skill"] < 1.5).rename("amount")
    return audit(amount, sensitive_features=table["age"] + 1e-3 * np.arange(len(table)), unit="customers")


CASES = {case.__name__: case for case in (scores, decisions, amounts)}


def report(name: str) -> str:
    """Return the page without its style, one element on a line, and the Markdown."""
    generator = np.random.default_rng(7)
    table = pd.DataFrame({"age": generator.integers(18, 80, 150).astype(float), "skill": generator.normal(size=150)})
    table["group"] = np.where(generator.random(150) < 0.4, "f", "m")
    table["score"] = (1 / (1 + np.exp(-table["skill"] - 0.03 * (table["age"] - 45)))).round(3)
    table["hired"] = (generator.random(150) < table["score"]).astype(int)
    found = CASES[name](table)
    found = replace(found, provenance={"date": "2026-01-02"} | found.provenance)
    page = re.sub(r"<style>.*?</style>", "", found.to_html(), flags=re.DOTALL).replace("><", ">\n<")
    return (page + "\n" + found.to_markdown()).replace(__version__, "VERSION")


def differences(now: str, before: str) -> list[str]:
    """Return the lines that differ by a word, or by a number by more than one unit of its last digit."""

    def agree(new: str, old: str) -> bool:
        if NUMBER.sub("#", new) != NUMBER.sub("#", old):
            return False
        pairs = zip(NUMBER.findall(new), NUMBER.findall(old), strict=True)
        # A number whose last digit is rounded away has fewer digits, such as 0.1 for 0.0996.
        units = ((a, b, 10.0 ** -min(len(x.partition(".")[2]) for x in (a, b))) for a, b in pairs)
        return all(a == b or (abs(float(a) - float(b)) <= 1.01 * unit and "." in a + b) for a, b, unit in units)

    new, old = now.splitlines(), before.splitlines()
    if len(new) != len(old):
        return [f"{len(old)} lines were recorded, now there are {len(new)}"]
    return [f"was: {b}\nnow: {a}" for a, b in zip(new, old, strict=True) if not agree(a, b)]


@pytest.mark.parametrize("name", CASES)
def test_a_report_is_the_recorded_one(name: str) -> None:
    before = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    assert not differences(report(name), before)


if __name__ == "__main__":
    for name in CASES:
        (FOLDER / f"{name}.txt").write_text(report(name), encoding="utf-8")
