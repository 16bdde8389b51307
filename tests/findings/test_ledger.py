"""Guards the sentences of the chapter on the ledger of claims."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from frhsic_core.paper.claims import headline
from frhsic_core.paper.claims.answers import PROTOCOLS
from frhsic_core.paper.claims.simulated import best_share, shares, simulated
from frhsic_core.paper.claims.stored import two_grids
from frhsic_core.paper.claims.verdicts import NAMED, Cuts, open_with


@pytest.fixture(scope="module")
def table(full_ledger: pd.DataFrame) -> pd.DataFrame:
    return full_ledger


def test_most_numbers_are_open_and_the_code_agrees_more_often(table) -> None:
    found = headline(table)
    assert found["open"] > found["judged"] / 2
    assert found["code"]["agrees"] > found["agree"]
    assert found["code"]["disagrees"] < found["disagree"]


def test_the_claims_that_fail_are_the_named_ones(table) -> None:
    """Five lines; none of them agrees under the released code's protocol."""
    assert headline(table)["failing"] == list(NAMED)
    assert len(NAMED) == 5
    lines = table.set_index("id").loc[[key for ids in NAMED.values() for key in ids]]
    assert set(lines["by the code"]) <= {"", "open", "disagrees"}


def test_the_lines_are_those_of_the_paper(table) -> None:
    assert table["source"].value_counts().to_dict() == {"table": 271, "text": 218}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_the_simulated_papers_say(protocol: str) -> None:
    """A true number is rarely called wrong, a wrong one almost never confirmed; many stay open, as most true ones."""
    found = shares(simulated(protocol, papers=6))
    assert (found[["disagrees", "open", "agrees"]].sum(axis=1).round(9) == 1).all()
    noticed = found["disagrees"]
    assert noticed["true"] <= 0.05
    assert noticed.drop("swapped").is_monotonic_increasing  # a larger error is noticed more often
    assert noticed["shifted by 50 %"] > 0.8
    assert 0.5 < noticed["swapped"] < (0.8 if protocol == "reference" else 1.0)
    assert found.drop(index="true")["agrees"].max() <= 0.03
    assert found.loc["true", "open"] > 0.5
    assert 0.2 < found.loc["swapped", "open"] < 0.6


def test_no_rule_notices_many_more_swapped_numbers() -> None:
    """The best rule for single numbers stays below four of five; with twenty splits of the paper it would not."""
    ours = shares(simulated("text", papers=6)).loc["swapped", "disagrees"]
    assert ours < best_share("text") < 0.8 < best_share("text", runs=20)


def test_our_runs_alone_leave_many_lines_open() -> None:
    assert open_with(math.inf, Cuts()) < open_with(math.inf) < open_with(400) < open_with(40) < open_with(4)
    assert open_with(math.inf, Cuts()) > 50


def test_lines_that_the_page_names(table: pd.DataFrame) -> None:
    """Their verdicts, like all others, are compared with the record in ``tests/paper/claims``."""
    line = table.set_index("id")
    assert line.loc["C051", "note"].startswith("9 λ for every method; text: place 2, 2, 3 of 6")
    assert (line.loc[["C193", "C194", "C195", "C053", "C061"], "repeats"] == "").all()
    assert line.loc[["C001", "C002", "C003"], "verdict"].tolist() == ["agrees", "agrees", "holds as corrected"]


def test_one_quantity_is_printed_twice_with_two_values() -> None:
    """Table 1 and the Pareto summary: each value follows from its own grid, and not from the other's."""
    pairs = two_grids().set_index("dataset")
    assert pairs.loc["acs_income", ["Table 1", "Pareto summary"]].tolist() == [0.228, 0.399]
    assert pairs.loc["meps", ["Table 1", "Pareto summary"]].tolist() == [0.329, 0.517]
    assert pairs.loc["compas", ["Table 1", "Pareto summary"]].tolist() == [0.090, 0.107]
    assert set(pairs.index) == {"acs_income", "meps", "compas"}
    for column, grid in (("Table 1", "18 λ"), ("Pareto summary", "9 λ")):
        assert (pairs[column] - pairs[grid]).abs().max() < 0.0006
    assert (pairs["Table 1"] - pairs["9 λ"]).abs().min() > 0.01
