"""The formal proofs: their list, the page that shows them, and, where Coq is installed, the checker itself."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "book" / "proofs"
CHECK = [sys.executable, str(ROOT / ".ci" / "proofs")]
PAGE = ROOT / "book" / "formal_proofs.md"
INCLUDE = re.compile(r'proofs/(\w+)\.v\n:language: coq\n:start-after: "(.*)"\n:end-before: "(.*)"')


def rows(name: str) -> list[dict[str, str]]:
    with (FOLDER / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def source(name: str) -> str:
    return (FOLDER / f"{name}.v").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "row", rows("statements.csv"), ids=lambda row: f"{row['file']}.{row['theorem']}"
)
def test_a_listed_theorem_stands_between_its_markers(row: dict[str, str]) -> None:
    text = source(row["file"])
    shown = text.split(f"(* begin {row['marker']} *)")[1].split(f"(* end {row['marker']} *)")[0]
    assert re.search(rf"^Theorem {row['theorem']}\b", shown, re.MULTILINE)
    assert "Proof." not in shown


def test_every_theorem_between_markers_is_listed() -> None:
    listed = {(row["file"], row["marker"]) for row in rows("statements.csv")}
    marked = {
        (path.stem, name)
        for path in FOLDER.glob("*.v")
        for name in re.findall(r"\(\* begin (.*) \*\)", source(path.stem))
    }
    assert {(file, name) for file, name in marked if not name.startswith("definitions")} == listed


def sections() -> dict[str, tuple[str, str]]:
    """Return the sections of the page about one statement each: the words in brackets of the heading, and the text."""
    page = PAGE.read_text(encoding="utf-8")
    found = re.split(r"(?m)^##+ (?:One proof, line by line: )?(.+)$", page)[1:]
    names = {row["statement"] for row in rows("statements.csv")}
    shown = {}
    for heading, text in zip(found[::2], found[1::2], strict=True):
        name, _, scope = heading.partition(" (")
        if name in names:
            shown[name] = (scope, text)
    return shown


def test_the_page_shows_a_theorem_of_every_statement_and_names_its_scope() -> None:
    """The heading says "finite" where a theorem of the statement assumes it, and only there."""
    listed = rows("statements.csv")
    shown = sections()
    assert set(shown) == {row["statement"] for row in listed}
    for name, (scope, text) in shown.items():
        own = [row for row in listed if row["statement"] == name]
        assert scope, f"{name}: the heading does not say for which spaces."
        assert bool(re.search(r"\bfinite\b", scope)) == any(
            re.search(r"\bfinite\b", r["assumptions"]) for r in own
        ), name
        included = {(file, start) for file, start, _ in INCLUDE.findall(text)}
        assert included & {(row["file"], f"(* begin {row['marker']} *)") for row in own}, name


def test_what_the_page_shows_is_in_the_files() -> None:
    shown = INCLUDE.findall(PAGE.read_text(encoding="utf-8"))
    assert len(shown) == PAGE.read_text(encoding="utf-8").count("{literalinclude}")
    for file, start, end in shown:
        assert source(file).count(start) == source(file).count(end) == 1


def test_the_proof_that_is_read_is_the_proof_of_the_file() -> None:
    """Every command that the table explains stands in the proof of Theorem 3.2, in this order."""
    proof = (
        source("Theorem_3_2")
        .split("(* end Theorem 3.2 *)")[1]
        .split("(* begin Corollary 3.4 *)")[0]
    )
    _, text = sections()["Theorem 3.2"]
    quoted = re.findall(r"(?m)^\| `(.+?)` \|", text)
    assert len(quoted) == 9
    place = 0
    for words in quoted:
        for piece in words.split("…"):
            place = proof.index(piece.strip(), place)
        place += 1


def test_only_the_files_with_the_real_exponential_use_axioms() -> None:
    """The record says what each theorem rests on; `.ci/proofs` allows the classical axioms in three files only."""
    record = json.loads((FOLDER / "checked.json").read_text(encoding="utf-8"))
    found = {
        name: rests
        for name, rests in record["theorems"].items()
        if rests != "Closed under the global context"
    }
    assert {name.partition(".")[0] for name in found} == {
        "Exponential",
        "Candidates_real",
        "New_bounds_real",
    }
    assert all(len(rests.removeprefix("Axioms: ").split(", ")) <= 3 for rests in found.values())


def test_every_file_has_a_wrong_statement_that_fits() -> None:
    mutants = rows("mutants.csv")
    assert {row["file"] for row in mutants} == {path.stem for path in FOLDER.glob("*.v")}
    for row in mutants:
        assert source(row["file"]).count(row["old"]) == 1, row["about"]


def test_every_wrong_statement_has_a_counterexample() -> None:
    """A proof that Coq rejects does not show that a statement is false: one mutant was true."""
    mutants = rows("mutants.csv")
    script = [sys.executable, str(FOLDER / "counterexamples.py")]
    done = subprocess.run(script, capture_output=True, text=True, check=True)
    shown = {}
    for line in done.stdout.splitlines()[:-1]:
        name, _, numbers = line.rpartition(": ")
        left, _, right = numbers.partition(" > ")
        shown[name] = float(left) > float(right) or numbers.startswith("1e-06")
    assert {row["line_of_script"] for row in mutants} == set(shown)
    assert all(shown.values())
    assert all(row["counterexample"] for row in mutants)


def test_without_coq_the_check_says_how_to_install_it() -> None:
    done = subprocess.run(
        CHECK, env={"PATH": "/nowhere"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "apt-get install coq" in done.stderr
    optional = subprocess.run(
        [*CHECK, "--optional"],
        env={"PATH": "/nowhere"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert optional.returncode == 0


@pytest.mark.parametrize(
    ("settings", "status"),
    [({"CI": "true"}, 1), ({"CI": "true", "FRHSIC_WITHOUT_PROOFS": "yes"}, 0)],
)
def test_continuous_integration_leaves_them_out_by_name_alone(
    settings: dict[str, str], status: int
) -> None:
    done = subprocess.run(
        [*CHECK, "--optional"],
        env={"PATH": "/nowhere", **settings},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status
    assert "THE PROOFS WERE NOT CHECKED" in done.stderr


def test_the_container_has_the_packages_of_the_checker() -> None:
    container = (ROOT / ".ci" / "proofs.Dockerfile").read_text(encoding="utf-8")
    done = subprocess.run(
        CHECK, env={"PATH": "/nowhere"}, capture_output=True, text=True, check=False
    )
    [packages] = re.findall(r"apt-get install (.+)", done.stderr)
    assert set(packages.split()) <= set(container.split())


def test_where_packages_can_be_had_a_missing_library_is_an_error(tmp_path: Path) -> None:
    """A coqc that finds no library, and an apt-get that installs nothing: `--optional` must not pass."""
    for name, code in (("coqc", 1), ("apt-get", 0)):
        command = tmp_path / name
        command.write_text(
            f"#!/bin/sh\necho $0 $@ >> {tmp_path}/calls\nexit {code}\n", encoding="utf-8"
        )
        command.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    command = [*CHECK, "--install", "--optional"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "a MathComp library is missing" in done.stderr
    assert "install" in (tmp_path / "calls").read_text(encoding="utf-8").split("apt-get", 1)[1]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_checker_accepts_a_proof_and_rejects_a_wrong_statement() -> None:
    """One file, with what it needs; `make proofs` checks them all."""
    done = subprocess.run(
        [*CHECK, "--only", "Lemma_B_2", "--break"], capture_output=True, text=True, check=False
    )
    if "THE PROOFS WERE NOT CHECKED" in done.stderr:
        pytest.skip(f"needs Coq and MathComp: {done.stderr.strip()}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "two_groups" in done.stdout
    assert "rejected" in done.stdout
