"""The picture and the table of all statements: dependencies, places, links and states of proof."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from frhsic_core.paper.runs.stored import book_folder
from frhsic_core.paper.statements import overview
from frhsic_core.paper.statements.registry import statements

ROOT = Path(__file__).resolve().parents[3]
CHAPTERS = ROOT / "notebooks"
PROOF_IN_PAPER = {"yes", "no", "cites another paper", "definition"}


@pytest.fixture(scope="module")
def found() -> list[overview.Standing]:
    return overview.standings(json.loads(book_folder("claims", "verdicts.json").read_text(encoding="utf-8")))


@pytest.mark.parametrize("number", list(statements()))
def test_a_statement_has_its_box_and_an_entry_that_search_finds_first(number: str) -> None:
    one = statements()[number]
    text = (CHAPTERS / f"{one.chapter}.md").read_text(encoding="utf-8")
    box = text.split(f":label: {one.anchor}\n")[0].rsplit("{prf:", 1)[1]
    assert number in box
    assert one.paper_proof in PROOF_IN_PAPER
    assert f"{{index}} ! {number}\n" in text  # a main entry of the index is the first answer of the search


def test_dependencies_are_statements_and_have_no_circle() -> None:
    for number, one in statements().items():
        assert set(one.builds_on) <= set(statements())
        assert number not in overview.ancestors(number)
    assert overview.ancestors("Corollary 4.6") >= {"Theorem 4.5", "Proposition 4.1", "Definition 2.1", "Lemma B.1"}


def test_drawn_edges_leave_out_what_follows() -> None:
    edges = overview.drawn_edges()
    assert ("Theorem 4.3", "Theorem 4.5") in edges
    assert ("Proposition 4.1", "Theorem 4.5") not in edges
    for number in statements():
        reached, new = set(), {number}
        while new:
            reached |= new
            new = {used for used, user in edges if user in reached} - reached
        assert reached - {number} == overview.ancestors(number)


def test_every_box_has_its_own_place_below_what_it_builds_on() -> None:
    assert set(overview.PLACES) == set(statements())
    assert len(set(overview.PLACES.values())) == len(statements())
    assert all(overview.PLACES[used][1] < overview.PLACES[user][1] for used, user in overview.drawn_edges())


def test_every_statement_that_needs_a_proof_is_proved_here(found: list[overview.Standing]) -> None:
    assert [one.statement.number for one in found] == list(statements())
    assert [one.statement.number for one in found if one.statement.needs_verdict and not one.here] == []
    by_number = {one.statement.number: one for one in found}
    assert by_number["Theorem 5.1"].here == "for kernels bounded by one"
    assert by_number["Theorem 5.1"].formal == "parts"
    assert by_number["Theorem 4.7"].formal == "yes"
    assert by_number["Theorem 4.5"].formal == "for finite Z and S"
    assert by_number["Theorem 4.5"].evidence[0] == "proof"


def test_proofs_stand_in_the_chapter_of_the_statement() -> None:
    for number, (chapter, _) in overview.page_proofs(CHAPTERS).items():
        assert chapter == statements()[number].chapter, number


def test_verdicts_follow_from_the_certificates(found: list[overview.Standing]) -> None:
    verdict = {one.statement.number: one.verdict for one in found}
    assert verdict["Theorem 5.1"] == verdict["Lemma B.1"] == "needs a further condition"
    assert verdict["Theorem 4.7"] == verdict["Remark B.3"] == "holds; a sentence in or near it fails"
    # Remark G.4 is a bound of its own: its certificate breaks the remark, and not a sentence beside it.
    assert verdict["Remark G.4"] == verdict["Corollary G.3"] == "needs a further condition"
    assert all(one.here.startswith("for ") for one in found if one.verdict == "needs a further condition")
    assert verdict["Theorem 4.3"] == "holds"
    nothing = {one.statement.number: one.verdict for one in overview.standings([])}
    assert set(nothing.values()) == {"holds"}


def test_the_picture_is_well_formed_and_every_box_is_a_link(found: list[overview.Standing]) -> None:
    html = overview.map_html(found)
    svg = ElementTree.fromstring(re.search(r"<svg.*</svg>", html, re.DOTALL)[0])
    links = [node.get("href") for node in svg.iter("a")]
    assert links == [one.link for one in found]
    assert len(list(svg.iter("path"))) == len(overview.drawn_edges()) + 1  # and the arrow head
    width, height = (float(x) for x in svg.get("viewBox").split()[2:])
    for box in svg.iter("rect"):
        assert 0 <= float(box.get("x")) <= width - overview.WIDTH
        assert 0 <= float(box.get("y")) <= height - overview.HEIGHT
    assert "checked by a proof assistant" in html


def test_the_table_has_a_row_for_each_statement(found: list[overview.Standing]) -> None:
    rows = overview.overview_table(found)
    assert list(rows[0]) == ["statement", "proved in the paper", "here", "formally", "evidence", "verdict"]
    assert all(row["verdict"] in overview.VERDICTS for row in rows)
    for row in rows:
        checked = row["formally"] not in ("–", "parts")
        assert ("proof" in row["evidence"].split(", ")) == checked, row["statement"]
        assert ("proof of parts" in row["evidence"].split(", ")) == (row["formally"] == "parts"), row["statement"]
