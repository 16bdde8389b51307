"""Evidence "proof": read from the files, valid only for the files that Coq has checked."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from frhsic_core.paper.runs.stored import book_folder
from frhsic_core.paper.statements import formal
from frhsic_core.paper.statements.registry import checks, statements

FOLDER = book_folder("proofs")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(FOLDER, tmp_path / "proofs"))


def test_at_least_ten_statements_are_proved_and_theorem_5_1_only_in_part() -> None:
    proved = formal.formally_proved()
    assert len(proved) >= 10
    assert {"Theorem 3.2", "Theorem 4.5", "Theorem 4.7"} <= set(proved)
    assert not {"Theorem 5.1", "Corollary 5.2"} & set(proved)
    parts = {one.statement for one in formal.formal_theorems() if not one.whole}
    assert parts == {"Theorem 5.1", "Corollary 5.2"}


def test_the_list_beside_the_files_is_that_of_the_files() -> None:
    assert {one.full_name for one in formal.formal_theorems()} <= set(formal.restrictions(FOLDER))
    record = json.loads((FOLDER / "checked.json").read_text(encoding="utf-8"))
    assert set(record["theorems"]) == set(formal.restrictions(FOLDER))
    assert set(record["files"]) == {path.stem for path in FOLDER.glob("*.v")}


def test_every_proof_has_a_certificate() -> None:
    numbers = {one.statement for one in formal.formal_theorems()}
    results = [one for found in checks("formal").values() for check in found for one in check(quick=True)]
    assert [one.statement for one in results] == [number for number in statements() if number in numbers]
    assert all(one.verdict == "holds" and one.evidence == "proof" for one in results)
    assert all(one.middle == one.upper == len(one.details["theorems"]) for one in results)


def test_a_changed_file_is_inconclusive_until_it_is_checked_again(copy: Path) -> None:
    assert formal.proof_certificates("Theorem 4.7", copy)[0].verdict == "holds"
    path = copy / "Sample.v"  # imported by the file of Theorem 4.7
    path.write_text(path.read_text(encoding="utf-8") + "\n(* changed *)\n", encoding="utf-8")
    assert formal.proof_certificates("Theorem 4.7", copy)[0].verdict == "inconclusive"
    assert formal.proof_certificates("Theorem 3.2", copy)[0].verdict == "holds"


def test_an_axiom_or_a_theorem_that_was_not_checked_is_noticed(copy: Path) -> None:
    path = copy / "checked.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    record["theorems"]["Theorem_4_7.finite_sample"] = "Axioms: excluded_middle"
    path.write_text(json.dumps(record), encoding="utf-8")
    assert formal.proof_certificates("Theorem 4.7", copy)[0].verdict == "fails as stated"
    del record["theorems"]["Theorem_4_7.finite_sample"]
    path.write_text(json.dumps(record), encoding="utf-8")
    assert formal.proof_certificates("Theorem 4.7", copy)[0].verdict == "inconclusive"
    path.unlink()
    assert formal.proof_certificates("Theorem 4.7", copy)[0].verdict == "inconclusive"


def test_only_what_stands_between_the_comments_counts(tmp_path: Path) -> None:
    (tmp_path / "A.v").write_text(
        "(* begin definitions for Theorem 4.7 *)\nTheorem no : True.\n(* end definitions for Theorem 4.7 *)\n"
        "(* begin lemma of Theorem 4.5, one *)\nTheorem part : True.\n(* end lemma of Theorem 4.5, one *)\n"
        "(* begin Theorem 4.3 *)\nTheorem whole : True.\n(* end Theorem 4.3 *)\n",
        encoding="utf-8",
    )
    assert formal.theorems_in(tmp_path) == (
        formal.FormalTheorem("Theorem 4.5", False, "A", "part", "one"),
        formal.FormalTheorem("Theorem 4.3", True, "A", "whole", "Theorem 4.3"),
    )
