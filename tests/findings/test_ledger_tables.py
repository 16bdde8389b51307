"""What the chapter ``ledger`` states about the stored results of its tables."""

from __future__ import annotations

import pandas as pd
import pytest

from frhsic_core.paper.claims.answers import PROTOCOLS
from frhsic_core.paper.claims.stored import two_grids
from frhsic_core.paper.runs.stored import reference_sweep


@pytest.fixture(scope="module")
def table(full_ledger: pd.DataFrame) -> pd.DataFrame:
    return full_ledger


def test_main_table_follows_from_the_stored_runs(table: pd.DataFrame) -> None:
    cells = table[table["place"].isin(["tab:real_data", "tab:pareto_summary"])]
    said = cells[cells["from stored runs"] != "none"]
    assert len(said) == 180
    assert (said["from stored runs"] == "consistent").all()


def test_known_lines(table: pd.DataFrame) -> None:
    line = table.set_index("id")
    assert line.loc["C080", "verdict"] == "reproduced by the reference protocol only"
    # Reg-GDP has no kernel on Z, and versions of software are facts about a machine: nothing to compare.
    assert line.loc["C113", "verdict"] == line.loc["C137", "verdict"] == "cannot be judged"
    assert line.loc["C187", "verdict"] == "reproduced by the reference protocol only"
    assert line.loc["C007", "from stored runs"] == "not"
    assert line.loc["C007", "stored"] == "24.3"
    # Our runs have nine λ, the text names five, the stored sweep has eighteen.
    assert line.loc["C034", "verdict"] == "differs"
    assert line.loc["C034", "from stored runs"] == "not"
    # FRHSIC is last by the paper's own printed nAUP on MEPS, and neither protocol has it in the middle on all three.
    assert line.loc["C051", "verdict"] == "fails"
    assert line.loc["C051", "note"].startswith("9 λ for every method; text: place 2, 2, 3 of 6")
    assert "not judged, fails as stated: the printed bound for kernels of any size" in line.loc["C013", "note"]
    assert not table["note"].str.contains("not run yet|not trained yet").any()


def test_rules_that_were_too_loose(table: pd.DataFrame) -> None:
    line = table.set_index("id")["verdict"]
    # On the GPU alone the overhead of 2 to 3 is not found, and the eigenvalues are not of the printed order.
    assert (line[["C193", "C194", "C195", "C076", "C077", "T261"]] == "differs").all()
    # Coverage says nothing about constants; single runs over five decades decide nothing.
    assert (line[["C011", "C012", "C013", "C203", "T265"]] == "compatible, not decided").all()
    # One rate, one verdict.
    assert set(line[["C003", "C004", "C045"]]) == {"holds as corrected"}
    # A dash by construction is no result.
    assert (line[["T003", "T024", "T045", "T066", "T087", "T107"]] == "cannot be judged").all()
    # 32,561 is not "about 30,000 after removing missing values"; the text's 30,162 is.
    stored = table.set_index("id")["from stored runs"]
    assert (stored[["C018", "C079", "C214"]] == "not").all()
    assert line["C218"] == "compatible, not decided"


def test_one_quantity_is_printed_twice_with_two_values(table: pd.DataFrame) -> None:
    """Table 1 and the Pareto summary: each value follows from its own grid, and not from the other's."""
    pairs = two_grids().set_index("dataset")
    assert pairs.loc["acs_income", ["Table 1", "Pareto summary"]].tolist() == [0.228, 0.399]
    assert pairs.loc["meps", ["Table 1", "Pareto summary"]].tolist() == [0.329, 0.517]
    assert pairs.loc["compas", ["Table 1", "Pareto summary"]].tolist() == [0.090, 0.107]
    assert set(pairs.index) == {"acs_income", "meps", "compas"}
    for column, grid in (("Table 1", "18 λ"), ("Pareto summary", "9 λ")):
        assert (pairs[column] - pairs[grid]).abs().max() < 0.0006
    assert (pairs["Table 1"] - pairs["9 λ"]).abs().min() > 0.01
    line = table.set_index("id")["verdict"]
    assert not (line["T026"].startswith("reproduced") and line["T136"].startswith("reproduced"))


def test_places_are_those_of_the_main_table(table: pd.DataFrame) -> None:
    """The ledger and the main table compare on one grid: the same places by nAUP."""
    from frhsic_core.paper.experiments.main import MAIN_METHODS, pareto_table, places, summaries
    from frhsic_core.paper.runs.stored import stored_rows

    rows = stored_rows("main")
    for protocol in PROTOCOLS:
        part = rows[(rows["protocol"] == protocol) & (rows["variant"] == protocol)]
        areas = pareto_table(part, methods=MAIN_METHODS, resamples=1).set_index(["dataset", "method"])["naup"]
        ranks = areas.groupby(level="dataset").rank(ascending=False).xs("frhsic", level="method")
        for dataset in ("adult", "acs_income", "meps", "crime", "compas"):
            found = places(summaries(dataset, protocol)[0], "frhsic")
            assert found[0] == ranks[dataset], (protocol, dataset)


def test_stored_grids_are_unequal() -> None:
    sweep = reference_sweep()
    counts = sweep[sweep["method"] != "unfair"].groupby("method")["lam"].nunique()
    assert counts["frhsic"] == 18
    assert counts.drop("frhsic").max() == 9
