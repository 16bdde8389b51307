"""Formal proofs, failing sentences, and the picture and table of all statements."""

from __future__ import annotations

import csv
import json
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from frhsic_core.paper.statements import overview
from frhsic_core.paper.statements.overview import (
    KINDS,
    concerned,
    counts,
    failing,
    sentences,
    theorems,
)
from frhsic_core.paper.statements.registry import statements
from frhsic_core.paper.stored import book_folder

ROOT = Path(__file__).resolve().parents[3]
CHAPTERS = ROOT / "notebooks"
PROOFS = book_folder("proofs")
PROOF_IN_PAPER = {"yes", "no", "cites another paper", "definition"}
ROWS = json.loads(book_folder("claims", "verdicts.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def found() -> list[overview.Standing]:
    return overview.standings(ROWS)


@pytest.mark.parametrize("number", list(statements()))
def test_a_statement_has_its_box_and_an_entry_that_search_finds_first(number: str) -> None:
    one = statements()[number]
    text = (CHAPTERS / f"{one.chapter}.md").read_text(encoding="utf-8")
    before, _, after = text.partition(f":label: {one.anchor}\n")
    # A statement that the paper prints twice has one box, which names both numbers.
    assert number in before.rsplit("{prf:", 1)[1] + after.partition("\n````\n")[0]
    assert one.paper_proof in PROOF_IN_PAPER
    assert (
        f"{{index}} ! {number}\n" in text
    )  # a main entry of the index is the first answer of the search


def rests_on(number: str) -> set[str]:
    """Return every statement that a statement builds on, directly or not."""
    direct = statements()[number].builds_on
    return set(direct).union(*map(rests_on, direct))


def test_dependencies_are_statements_and_none_follows_from_others() -> None:
    exercise = {"Theorem 4.5", "Theorem 4.3", "Proposition 4.1", "Definition 2.1", "Lemma B.1"}
    assert rests_on("Corollary 4.6") == exercise  # of the chapter
    for one in statements().values():
        for used in one.builds_on:
            assert not any(used in rests_on(other) for other in one.builds_on)


def test_every_box_has_its_own_place_below_what_it_builds_on() -> None:
    places = {number: one.place for number, one in statements().items()}
    assert len(set(places.values())) == len(statements())
    assert all(places[used][1] < places[user][1] for used, user in overview.drawn_edges())


def test_every_statement_that_needs_a_proof_is_proved_here(found: list[overview.Standing]) -> None:
    assert [one.statement.number for one in found] == list(statements())
    assert [
        one.statement.number for one in found if one.statement.needs_verdict and not one.here
    ] == []
    by_number = {one.statement.number: one for one in found}
    assert by_number["Theorem 5.1"].here == "for kernels on Z bounded by 1.44"
    assert by_number["Theorem 5.1"].formal == "parts"
    assert by_number["Theorem 4.7"].formal == "yes"
    assert by_number["Theorem 4.5"].formal == "for finite Z and S"
    assert by_number["Theorem 4.5"].evidence[0] == "proof"


def test_proofs_stand_in_the_chapter_of_the_statement() -> None:
    for number, (chapter, _) in overview.page_proofs(CHAPTERS).items():
        assert chapter == statements()[number].chapter, number


def test_verdicts_follow_from_the_certificates(found: list[overview.Standing]) -> None:
    verdict = {one.statement.number: one.verdict for one in found}
    assert (
        verdict["Theorem 4.7"] == verdict["Remark B.3"] == "holds; a sentence in or near it fails"
    )
    assert all(
        one.here.startswith("for ") for one in found if one.verdict == "needs a further condition"
    )
    judged = [
        overview.judged(ROWS)[number]
        for number in ("Theorem 4.3", "Theorem 4.7", "Theorem 5.1", "Lemma B.2")
    ]
    assert judged == [("holds", 0), ("holds", 3), ("needs a further condition", 0), ("holds", 2)]
    assert {one.verdict for one in overview.standings([])} == {"holds"}


def test_the_picture_is_well_formed_and_every_box_is_a_link(found: list[overview.Standing]) -> None:
    html = overview.map_html(found)
    svg = ElementTree.fromstring(re.search(r"<svg.*</svg>", html, re.DOTALL)[0])
    assert [node.get("href") for node in svg.iter("a")] == [one.link for one in found]
    assert len(list(svg.iter("path"))) == len(overview.drawn_edges()) + 1  # and the arrow head
    width, height = (float(x) for x in svg.get("viewBox").split()[2:])
    for box in svg.iter("rect"):
        assert 0 <= float(box.get("x")) <= width - overview.WIDTH
        assert 0 <= float(box.get("y")) <= height - overview.HEIGHT
    keys = re.findall(r'class="key (\w+)"', html)
    assert keys == [*overview.VERDICTS.values(), "formal", "parts"]
    assert {part for node in svg.iter("a") for part in node.get("class").split()} == set(keys)


def test_lines_run_between_the_columns(found: list[overview.Standing]) -> None:
    """A line starts and ends at its boxes and turns in the middle of a gap, where no box is."""
    for used, user in overview.drawn_edges():
        (x, y), (to_x, to_y) = overview._corner(used), overview._corner(user)
        start, *middle, end = re.findall(r"(-?[\d.]+) (-?[\d.]+)", overview._edge(used, user))
        if to_y - y == overview.HEIGHT + overview.DOWN:
            assert (float(start[0]), float(end[0])) == (
                x + overview.WIDTH / 2,
                to_x + overview.WIDTH / 2,
            )
            continue
        ((turn, _), (again, _)) = middle
        away = abs(float(turn) - np.array([float(start[0]), float(end[0])]))
        assert (turn == again, *away) == (True, overview.ACROSS / 2, overview.ACROSS / 2 - 1)
        step = overview.WIDTH + overview.ACROSS
        assert (float(turn) - overview.MARGIN) % step == overview.WIDTH + overview.ACROSS / 2


def test_the_table_has_a_row_for_each_statement(found: list[overview.Standing]) -> None:
    rows = overview.overview_table(found)
    assert list(rows[0]) == [
        "statement",
        "proved in the paper",
        "here",
        "formally",
        "evidence",
        "verdict",
    ]
    assert [(row["here"], row["verdict"]) for row in rows] == [
        (one.here or "–", one.verdict) for one in found
    ]
    for row in rows:
        checked = row["formally"] not in ("–", "parts")
        assert ("proof" in row["evidence"].split(", ")) == checked, row["statement"]
        assert ("proof of parts" in row["evidence"].split(", ")) == (row["formally"] == "parts"), (
            row["statement"]
        )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(PROOFS, tmp_path / "proofs"))


def test_the_list_beside_the_files_is_that_of_the_files() -> None:
    with (PROOFS / "statements.csv").open(encoding="utf-8", newline="") as file:
        listed = {f"{row['file']}.{row['theorem']}" for row in csv.DictReader(file)}
    assert {one.full_name for one in overview.formal_theorems()} <= listed
    record = json.loads((PROOFS / "checked.json").read_text(encoding="utf-8"))
    assert set(record["theorems"]) == listed
    assert set(record["files"]) == {path.stem for path in PROOFS.glob("*.v")}


def test_every_proof_has_a_certificate() -> None:
    numbers = {one.statement for one in overview.formal_theorems()}
    recorded = [row for row in ROWS if row["evidence"] == "proof"]
    assert [row["statement"] for row in recorded] == [
        number for number in statements() if number in numbers
    ]
    assert all(row["middle"] == row["upper"] == len(row["details"]["theorems"]) for row in recorded)


def test_a_changed_file_is_inconclusive_until_it_is_checked_again(copy: Path) -> None:
    assert overview.proof_certificates("Theorem 4.7", copy)[0].verdict == "holds"
    path = copy / "Sample.v"  # imported by the file of Theorem 4.7
    text = path.read_text(encoding="utf-8")
    path.write_text(text + "\n(* changed *)\n", encoding="utf-8")
    assert overview.proof_certificates("Theorem 4.7", copy)[0].verdict == "inconclusive"
    path.write_text(text, encoding="utf-8")
    (copy / "New.v").write_text("", encoding="utf-8")
    assert overview.proof_certificates("Theorem 4.7", copy)[0].verdict == "inconclusive"


def test_an_axiom_or_a_theorem_that_was_not_checked_is_noticed(copy: Path) -> None:
    path = copy / "checked.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    record["theorems"]["Theorem_4_7.finite_sample"] = "Axioms: excluded_middle"
    path.write_text(json.dumps(record), encoding="utf-8")
    assert overview.proof_certificates("Theorem 4.7", copy)[0].verdict == "fails as stated"
    del record["theorems"]["Theorem_4_7.finite_sample"]
    path.write_text(json.dumps(record), encoding="utf-8")
    assert overview.proof_certificates("Theorem 4.7", copy)[0].verdict == "inconclusive"
    path.unlink()
    assert overview.proof_certificates("Theorem 4.7", copy)[0].verdict == "inconclusive"


def test_lemmas_and_steps_are_parts_and_other_theorems_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "statements.csv").write_text(
        "statement,file,theorem,marker,proved,assumptions\n"
        'Theorem 4.5,A,part,"lemma of Theorem 4.5, one",a lemma,none\n'
        "Theorem 4.3,A,whole,Theorem 4.3,all,finite Z\n"
        "McDiarmid,A,other,McDiarmid,all,none\n",
        encoding="utf-8",
    )
    found = overview.theorems_in(tmp_path)
    assert [(one.full_name, one.whole, one.words) for one in found] == [
        ("A.part", False, "one"),
        ("A.whole", True, "Theorem 4.3"),
    ]


def test_every_failing_certificate_belongs_to_one_sentence() -> None:
    broken = [row for row in ROWS if row["verdict"] == "fails as stated"]
    assert broken
    for row in broken:
        found = [s.sentence for s in sentences() if concerned(s, [row])]
        assert len(found) == 1, (
            f"{row['statement']}: {row['claim']} belongs to {found or 'no sentence'}"
        )


def test_every_text_of_a_sentence_finds_failing_certificates_only() -> None:
    for s in sentences():
        for text in s.certificates:
            found = [
                row for row in ROWS if row["statement"] in s.statements and text in row["claim"]
            ]
            assert found, f"{s.sentence}: no certificate says {text!r}"
            assert {row["verdict"] for row in found} == {"fails as stated"}, s.sentence
    assert len(failing(ROWS)) == len(sentences())


def test_rows_are_well_formed() -> None:
    for s in sentences():
        assert s.kind in KINDS
        assert set(s.statements) <= set(statements())
        assert all((s.place, s.sentence, s.holds))
        # A numbered statement fails itself; what is said beside it is no theorem.
        assert s.kind != "numbered statement" or set(s.statements) <= set(theorems())
        # A theorem that fails is a numbered statement; a remark can fail as a whole without a number among these.
        assert s.itself == (s.kind == "numbered statement") or not set(s.statements) & set(
            theorems()
        )


def test_counts_follow_from_the_record() -> None:
    found = counts(ROWS)
    assert found["theorems"] == 18
    assert found["theorems that hold"] == 13
    assert found["numbered statement"] == 2
    assert sum(found[kind] for kind in KINDS) < sum(
        row["verdict"] == "fails as stated" for row in ROWS
    )
    # A certificate that no longer fails takes its sentence with it; no verdict is typed.
    mended = [
        row | {"verdict": "holds"} if "kernels of any size" in row["claim"] else row for row in ROWS
    ]
    fewer = {"theorems that hold": 17, "numbered statement": 1, "sentence": found["sentence"] - 1}
    assert counts(mended) == found | fewer
    assert counts([])["sentence"] == 0
