"""Execute the examples of book/contributing.md in a copy of the package."""

from __future__ import annotations

import csv
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "book" / "contributing.md").read_text(encoding="utf-8")
BLOCK = re.compile(
    r"^(`{3,})(?:python|text|yaml|markdown)\n# (\S+?)(?:: (\w+))?\n(.*?)^\1$",
    re.DOTALL | re.MULTILINE,
)
# How a table ends in the files to which a block adds a row: a tuple inside of a dict, or a dict.
ENDS = {
    "frhsic_core/registry.py": "\n    )\n}\n",
    "frhsic_core/paper/experiments/__init__.py": "\n}\n",
}


class Block(NamedTuple):
    """A code block of the page: the file it belongs to, the table of the registry it extends, and its text."""

    path: str
    table: str
    text: str


def blocks(section: str) -> list[Block]:
    """Return the blocks of a section of the page that name a file."""
    body = re.split(r"^## ", PAGE.partition(f"## {section}\n")[2], maxsplit=1, flags=re.MULTILINE)[
        0
    ]
    return [Block(path, table, text) for _, path, table, text in BLOCK.findall(body)]


def write(block: Block, root: Path) -> None:
    """Write a block into a copy: a new file, a row of a table of the registry, or lines at the end of a file."""
    path = root / block.path
    if block.table:
        text = path.read_text(encoding="utf-8")
        start = text.index(f"\n{block.table}: dict[")
        end = text.index(ENDS[block.path], start)
        path.write_text(f"{text[:end]}\n{block.text.rstrip()},{text[end:]}", encoding="utf-8")
    elif path.name == "_toc.yml":
        text = path.read_text(encoding="utf-8")
        end = text.index("\n", text.index("notebooks/other_claims")) + 1
        path.write_text(text[:end] + block.text + text[end:], encoding="utf-8")
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(block.text)


def copied(tmp_path: Path) -> Path:
    """Copy the package, the claims and the tests of the registry; link the stored results."""
    shutil.copytree(
        ROOT / "frhsic_core", tmp_path / "frhsic_core", ignore=shutil.ignore_patterns("__pycache__")
    )
    (tmp_path / "book").mkdir()
    for entry in (ROOT / "book").iterdir():
        if entry.name == "claims":
            shutil.copytree(entry, tmp_path / "book" / "claims")
        else:
            (tmp_path / "book" / entry.name).symlink_to(entry)
    (tmp_path / "tests").mkdir()
    for name in (
        "pyproject.toml",
        "_toc.yml",
        "tests/conftest.py",
        "tests/records.py",
        "tests/test_registry.py",
        "tests/test_layers.py",
    ):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a copy for one test."""
    return copied(tmp_path)


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy with the new method and the new dataset, in which their tests and those of the registry pass."""
    copy = copied(tmp_path_factory.mktemp("extended"))
    found = [*add("Add a method", copy, most=3), *add("Add a dataset", copy, most=3)]
    run_tests(copy, found, "tests/test_registry.py")
    return copy


def run(copy: Path, *words: str) -> str:
    """Run Python in the copy, in which the package is that of the copy; return its output."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("FRHSIC_BOOK", "FRHSIC_DATA")
    }
    environment |= {"PYTHONPATH": str(copy), "FRHSIC_CACHE": str(copy / "cache")}
    done = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, cwd=copy, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def add(section: str, copy: Path, *, most: int) -> list[Block]:
    """Write the blocks of a section into the copy; fail if they are more than ``most`` files."""
    found = blocks(section)
    assert 0 < len({block.path for block in found}) <= most
    for block in found:
        write(block, copy)
    return found


def run_tests(copy: Path, found: list[Block], *others: str) -> None:
    """Run the tests among the blocks, and others, in the copy."""
    tests = [block.path for block in found if block.path.startswith("tests/")]
    assert tests
    assert " passed" in run(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests, *others)


def judged(copy: Path, claim: str) -> list[str]:
    """Judge one claim in the copy: printed, ours, verdict, and the authors' stored runs. All take half a minute."""
    script = (
        "from frhsic_core.paper.claims import verdicts\n"
        "claims = verdicts.claims()\n"
        f"verdicts.claims = lambda: claims[claims['id'] == '{claim}']\n"
        "(line,) = verdicts.ledger().to_dict('records')\n"
        "print(line['printed'], line['ours'], line['verdict'], line['from stored runs'])"
    )
    return run(copy, "-c", script).split()


@pytest.mark.slow
def test_a_method_is_three_files(extended: Path) -> None:
    script = (
        "from frhsic_core.learning import METHODS\n"
        "from frhsic_core.paper.figures.plots import style_of\n"
        "print(METHODS[-1], *style_of('correlation'))"
    )
    assert run(extended, "-c", script).split() == ["correlation", "Correlation", "#777777", "p"]


@pytest.mark.slow
def test_a_dataset_is_three_files(extended: Path) -> None:
    command = "from frhsic_core.cli import command; command()(['data', 'card', 'wages'], standalone_mode=False)"
    shown = run(extended, "-c", command)
    assert "an invented person" in shown
    assert "Invented wages" in shown


@pytest.mark.slow
def test_a_forgotten_row_fails(copy: Path) -> None:
    """Without its row of the registry, the tests of the registry fail for a method and for a dataset."""
    for section in ("Add a method", "Add a dataset"):
        write(blocks(section)[0], copy)
    with pytest.raises(AssertionError, match=r"(?s)row to METHODS.*row to DATASETS"):
        run(
            copy,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "tests/test_registry.py",
            "-k",
            "has_a_row",
        )


@pytest.mark.slow
def test_an_experiment_is_six_files(copy: Path) -> None:
    found = add("Add an experiment", copy, most=6)
    run_tests(copy, found)
    command = "from frhsic_core.cli import main; import sys; sys.argv[0] = 'frhsic'; main()"
    options = ["--preset", "smoke", "--device", "cpu", "--store", str(copy / "store")]
    run(copy, "-c", command, "run", "seed_spread", *options)
    assert (copy / "store" / "seed_spread_smoke.parquet").is_file()
    parts = yaml.safe_load((copy / "_toc.yml").read_text(encoding="utf-8"))["chapters"]
    chapters = [entry for part in parts for entry in part["sections"]]
    assert {"file": "notebooks/seed_spread"} in chapters
    assert (
        (copy / "notebooks" / "seed_spread.md")
        .read_text(encoding="utf-8")
        .startswith("---\njupytext:")
    )
    assert judged(copy, "C900") == ["3", "3", "agrees", "none"]


@pytest.mark.slow
def test_a_claim_is_one_file(copy: Path) -> None:
    add("Add a claim", copy, most=1)
    assert judged(copy, "C901") == ["20000", "20000", "agrees", "consistent"]


@pytest.mark.slow
def test_a_statement_is_three_files(copy: Path) -> None:
    found = add("Add a statement", copy, most=3)
    run_tests(copy, found)


def test_rows_of_tables_have_every_column() -> None:
    tables = (
        ("Add an experiment", "claims.csv"),
        ("Add a claim", "claims.csv"),
        ("Add a statement", "statements.csv"),
    )
    for section, name in tables:
        block = next(block for block in blocks(section) if block.path.endswith(name))
        with (ROOT / block.path).open(encoding="utf-8", newline="") as file:
            heading = next(csv.reader(file))
        assert [len(row) for row in csv.reader(block.text.splitlines())] == [len(heading)]
