"""What the chapter ``ledger`` states about the stored results of its tables."""

from __future__ import annotations

import pandas as pd
import pytest

from frhsic_core.paper.claims import ledger
from frhsic_core.paper.claims.answers import PROTOCOLS, queries
from frhsic_core.paper.runs.stored import reference_sweep


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return ledger()


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
    assert line.loc["C148", "verdict"] == "fails"
    assert line.loc["C187", "verdict"] == "reproduced by the reference protocol only"
    assert line.loc["C007", "from stored runs"] == "not"
    assert line.loc["C007", "stored"] == "24.3"
    assert line.loc["C034", "verdict"] == "reproduced"
    assert line.loc["C034", "from stored runs"] == "not"
    # FRHSIC is last by the paper's own printed nAUP on MEPS; in our runs of the text's protocol it is not.
    assert line.loc["C051", "verdict"] == "reproduced"
    assert line.loc["C051", "from stored runs"] == "not"
    assert line.loc["C051", "note"].startswith("9 λ for every method; text: place 2, 2, 3 of 6")
    # For unit kernels, those of the paper, the constants hold; the note tells what happens to others.
    assert line.loc["C013", "verdict"] == "reproduced"
    assert "not judged, fails as stated: the printed bound for kernels of any size" in line.loc["C013", "note"]
    assert not table["note"].str.contains("not run yet|not trained yet").any()


def test_places_are_those_of_the_main_table(table: pd.DataFrame) -> None:
    """The ledger and the main table compare on one grid: the same places by nAUP."""
    from frhsic_core.paper.experiments.main_table import MAIN_METHODS, pareto_table, places, summaries
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
    assert len(queries()["stored_grids"]().values["any"]) == 18
