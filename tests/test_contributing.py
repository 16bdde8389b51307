"""Execute the examples of book/contributing.md in a copy of the package."""

from __future__ import annotations

import ast
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
FUTURE = "from __future__ import annotations\n"


class Block(NamedTuple):
    """A code block of the page: the file it belongs to, the list or table that it extends, and its text."""

    path: str
    table: str
    text: str


def blocks(section: str) -> list[Block]:
    """Return the blocks of a section of the page that name a file."""
    body = re.split(r"^## ", PAGE.partition(f"## {section}\n")[2], maxsplit=1, flags=re.MULTILINE)[
        0
    ]
    return [Block(path, table, text) for _, path, table, text in BLOCK.findall(body)]


def value_of(text: str, table: str) -> ast.expr:
    """Return the list, tuple or dict that a module assigns to a name; of a dict made by a loop, what it loops over."""
    for statement in ast.parse(text).body:
        names = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
        if any(isinstance(name, ast.Name) and name.id == table for name in names):
            value = statement.value  # type: ignore[attr-defined]
            return value.generators[0].iter if isinstance(value, ast.DictComp) else value
    raise AssertionError(f"no table {table}")


def with_entry(text: str, table: str, entry: str) -> str:
    """Return a module with one more entry at the end of a list, tuple or dict.

    Examples
    --------
    >>> with_entry("KINDS = (a, b)\\n", "KINDS", "c")
    'KINDS = (a, b,\\nc,\\n)\\n'
    """
    value = value_of(text, table)
    lines = text.splitlines(keepends=True)
    assert value.end_lineno is not None
    assert value.end_col_offset is not None
    last = lines[value.end_lineno - 1].encode()
    end = sum(len(line) for line in lines[: value.end_lineno - 1])
    end += len(last[: value.end_col_offset].decode()) - 1  # before the bracket
    before = text[:end].rstrip()
    comma = "" if before.endswith((",", "(", "[", "{")) else ","
    return f"{before}{comma}\n{entry.rstrip().rstrip(',')},\n{text[end:]}"


def write(block: Block, root: Path) -> None:
    """Write a block into a copy: a new file, an import, an entry of a list or table, or lines at the end of a file."""
    path = root / block.path
    if block.table == "imports":
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace(FUTURE, f"{FUTURE}\n{block.text}", 1), encoding="utf-8")
    elif block.table:
        text = path.read_text(encoding="utf-8")
        path.write_text(with_entry(text, block.table, block.text), encoding="utf-8")
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


def test_every_wish_has_its_walk_and_its_number_of_files() -> None:
    """The table at the beginning names a section and counts the files of its example."""
    wishes = re.findall(r"^\| .+ \| (\d) \| \*(.+)\* \|$", PAGE, re.MULTILINE)
    assert len(wishes) == 9
    for count, section in wishes:
        assert len({block.path for block in blocks(section)}) == int(count), section
    small = ("Add a remedy", "Add an engine", "Add a kernel", "Add a measure to the audit")
    counts = {section: int(count) for count, section in wishes}
    assert max(counts[section] for section in (*small, "Add a dataset")) <= 3


def test_the_map_has_every_folder_and_no_other() -> None:
    listed = re.findall(r"^\| `(\w+)` \|", PAGE.partition("## Add a remedy")[0], re.MULTILINE)
    folders = {path.parent.name for path in (ROOT / "frhsic_core").glob("*/__init__.py")}
    assert set(listed) == folders


def test_every_module_of_the_walks_exists() -> None:
    walks = PAGE.partition("## The map of the house")[2].partition("## Add a remedy")[0]
    modules = re.findall(r"`(?!tests)(\w+/[\w/]+\.py)`", walks)
    assert len(modules) > 12
    assert [name for name in modules if not (ROOT / "frhsic_core" / name).is_file()] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "section", ["Add a remedy", "Add an engine", "Add a kernel", "Add a measure to the audit"]
)
def test_a_wish_ends_at_a_green_test(section: str, copy: Path) -> None:
    run_tests(copy, add(section, copy, most=3))


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
