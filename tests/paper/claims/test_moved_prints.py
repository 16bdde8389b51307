"""Printed numbers, moved by twice the difference that matters: the verdicts of the ledger notice."""

from __future__ import annotations

import pandas as pd

from frhsic_core.paper.claims import MEASURED, claims, judge
from frhsic_core.paper.claims.rules import half_unit, parsed
from frhsic_core.paper.claims.verdicts import answer_of, cuts_of


def test_numbers_that_agree_notice_a_move(full_ledger: pd.DataFrame) -> None:
    """Up and down, a bound in one direction. Without a relevant difference a number is moved by a fifth."""
    lines = full_ledger[full_ledger["kind"] == MEASURED].set_index("id")
    moved = 0
    for claim in claims().to_dict("records"):
        number = parsed(claim["value"])
        if claim["id"] not in lines.index or not isinstance(number, float):
            continue
        line, rule = lines.loc[claim["id"]], claim["rule"]
        if line["verdict"] != "agrees" or not (line["tested"] or rule in ("magnitude", "approximately", "equal")):
            continue  # a question of yes or no has no deviation
        step = max(2 * half_unit(claim["value"]), 2 * line["margin"] if line["margin"] > 0 else 0.2 * abs(number))
        places = [number / 10, number * 10] if rule == "magnitude" else [number - step, number + step]
        answer = answer_of(claim["query"], claim["arguments"])
        kept = [
            place for place in places if judge(repr(float(place)), answer, rule, cuts_of("text")).verdict == "agrees"
        ]
        assert len(kept) <= (rule in ("at_most", "at_least")), claim["id"]
        moved += 1
    assert moved > 20
