"""The guard: each committed notebook is its text, executed in order, without errors."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import jupytext
import nbformat
import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = ROOT / "notebooks"
TEXTS = sorted(NOTEBOOKS.glob("*.md"))
DRAWING = re.compile(r"\bplt\.|\baxis\.|\baxes\b|\bdraw_\w+\(")


@pytest.fixture(params=TEXTS, ids=lambda path: path.stem)
def text(request: pytest.FixtureRequest) -> Path:
    """Return the text of a chapter: a test runs for each."""
    return request.param


@pytest.fixture
def executed(text: Path) -> nbformat.NotebookNode:
    return nbformat.read(text.with_suffix(".ipynb"), as_version=4)


def essence(cell: nbformat.NotebookNode) -> tuple[str, str, tuple[str, ...]]:
    return cell.cell_type, cell.source.strip(), tuple(cell.metadata.get("tags", ()))


def test_there_are_notebooks() -> None:
    assert TEXTS
    assert {path.stem for path in TEXTS} == {path.stem for path in NOTEBOOKS.glob("*.ipynb")}


def test_text_and_executed_notebook_agree(text: Path, executed: nbformat.NotebookNode) -> None:
    source = jupytext.read(text)
    hint = f"{text.stem}: text and executed notebook differ; run `make notebooks` and commit both."
    assert [essence(cell) for cell in source.cells] == [
        essence(cell) for cell in executed.cells[1:]
    ], hint


def test_every_cell_was_run_in_order_without_errors(executed: nbformat.NotebookNode) -> None:
    # nbval compares nothing for a cell that was never run: an empty notebook would pass it.
    code = [cell for cell in executed.cells if cell.cell_type == "code" and cell.source.strip()]
    assert code
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    for cell in code:
        if "raises-exception" not in cell.metadata.get("tags", ()):
            assert not [output for output in cell.outputs if output.output_type == "error"]


def test_a_chapter_has_an_opening_and_fills_no_form(text: Path) -> None:
    """The opening is the chapter's first slide. Bold labels in front of paragraphs would make every chapter a form."""
    source = text.read_text(encoding="utf-8")
    below = source.split("\n# ", 1)[1].split("\n\n", 1)[1]
    assert below.startswith("% opening\n")
    assert "% end of opening" in below
    assert not re.search(r"\*\*(?:The answer first|By hand|With a pencil)\.\*\*", source)


def code_of(text: Path) -> list[str]:
    return [cell.source for cell in jupytext.read(text).cells if cell.cell_type == "code"]


def test_cells_that_draw_check_nothing(text: Path) -> None:
    hint = f"{text.stem}: move the check of a sentence to tests/findings/test_{text.stem}.py."
    for source in code_of(text):
        kinds = {type(node) for node in ast.walk(ast.parse(source))}
        assert ast.Assert not in kinds or not DRAWING.search(source), hint


def test_no_helper_is_defined_in_two_chapters() -> None:
    homes: dict[str, list[str]] = {}
    for text in TEXTS:
        for source in code_of(text):
            for node in ast.parse(source).body:
                if isinstance(node, ast.FunctionDef):
                    homes.setdefault(ast.unparse(node), []).append(text.stem)
    twice = {
        code.splitlines()[0]: chapters for code, chapters in homes.items() if len(chapters) > 1
    }
    assert not twice, "Define what two chapters need in frhsic_core/paper/display.py."


def test_what_is_folded_has_a_title_of_its_own(text: Path) -> None:
    folded = {"hide-cell", "hide-output"}
    cells = [
        cell for cell in jupytext.read(text).cells if folded & set(cell.metadata.get("tags", ()))
    ]
    prompts = [cell.metadata.get("mystnb", {}) for cell in cells]
    titles = [prompt.get("code_prompt_show") for prompt in prompts]
    assert all(titles), f"{text.stem}: say in code_prompt_show what the folded cell shows."
    assert titles == [prompt.get("code_prompt_hide") for prompt in prompts]
    assert len(set(titles)) == len(titles), f"{text.stem}: two folded cells have the same title."


def test_new_runs_lie_inside_the_stored_intervals(
    text: Path, executed: nbformat.NotebookNode
) -> None:
    for cell in executed.cells:
        if cell.cell_type == "code" and "inside" in cell.source:
            assert "False" not in json.dumps(cell.outputs), (
                f"{text.stem}: a new run is outside the stored interval."
            )


def test_findings_are_named_after_chapters() -> None:
    """``test_NAME.py`` checks the sentences of a chapter."""
    chapters = {path.stem for path in TEXTS}
    files = (ROOT / "tests" / "findings").glob("test_*.py")
    findings = {path.stem.removeprefix("test_") for path in files}
    assert findings
    assert findings <= chapters


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "book" / "_ext")
    import run_notebooks

    return run_notebooks


def test_the_first_cell_installs_what_is_missing(
    text: Path, executed: Any, install: ModuleType
) -> None:
    hint = (
        f"{text.stem}: run `python book/_ext/run_notebooks.py --refresh` and commit the notebook."
    )
    assert executed.cells[0] == install.install_cell(*install.public_address()), hint


def test_a_refresh_keeps_outputs_and_takes_over_prose(
    install: ModuleType, tmp_path: Path, monkeypatch
) -> None:
    text = Path(shutil.copy(ROOT / "notebooks" / "why_continuous.md", tmp_path))
    target = Path(shutil.copy(ROOT / "notebooks" / "why_continuous.ipynb", tmp_path))
    before = target.read_bytes()
    install.refresh(text)
    assert target.read_bytes() == before
    text.write_text(text.read_text(encoding="utf-8") + "\nA new paragraph.\n", encoding="utf-8")
    monkeypatch.setattr(install, "public_address", lambda: ("https://example.org/a/b", "main"))
    install.refresh(text)
    old, new = nbformat.reads(before, as_version=4), nbformat.read(target, as_version=4)
    assert "example.org" in new.cells[0].source
    assert "A new paragraph." in new.cells[-1].source
    assert [cell.get("outputs") for cell in new.cells] == [
        cell.get("outputs") for cell in old.cells
    ]
    text.write_text(
        text.read_text(encoding="utf-8").replace(
            "{code-cell} ipython3\n", "{code-cell} ipython3\n1\n"
        )
    )
    with pytest.raises(ValueError, match="its code has changed"):
        install.refresh(text)


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[list[str]]:
    """Return what the cell would run in an empty folder; a clone makes the folders that the real one would."""
    run: list[list[str]] = []

    def record(command: list[str], **_: Any) -> None:
        run.append(command)
        if command[:2] == ["git", "clone"]:
            (Path(command[-1]) / "book" / "results").mkdir(parents=True)
            (Path(command[-1]) / "notebooks").mkdir()

    monkeypatch.setattr(subprocess, "run", record)
    monkeypatch.setenv(
        "FRHSIC_BOOK", "before"
    )  # so that what the cell sets is undone after the test
    monkeypatch.delenv("FRHSIC_BOOK")
    (tmp_path / "content").mkdir()
    monkeypatch.chdir(tmp_path / "content")
    return run


def test_where_the_package_is_the_cell_does_nothing(install, commands, capsys) -> None:
    names: dict[str, Any] = {}
    exec(install.install_cell("https://example.org/a/b", "main").source, names)
    assert (commands, capsys.readouterr().out) == ([], "")
    assert "FRHSIC_BOOK" not in os.environ
    assert set(names) <= {"__builtins__", "install_if_missing"}


def test_without_an_address_it_says_what_to_do(install, commands, capsys, monkeypatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    exec(install.install_cell("", "main").source, {})
    assert commands == []
    assert "pip install '.[notebooks]'" in capsys.readouterr().out


def test_alone_it_fetches_the_repository_and_its_results(
    install, commands, monkeypatch, tmp_path
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    exec(install.install_cell("https://example.org/a/b", "trunk").source, {})
    root = tmp_path / "content" / "frhsic-core"
    clone, pip = commands
    assert clone[:2] == ["git", "clone"]
    assert clone[-3:] == ["trunk", "https://example.org/a/b", str(root)]
    assert pip == [sys.executable, "-m", "pip", "install", "--quiet", f"{root}[notebooks]"]
    assert os.environ["FRHSIC_BOOK"] == str(root / "book")
    assert Path.cwd() == root / "notebooks"  # chapters name files next to the notebooks


def test_in_a_checkout_it_installs_that_checkout(install, commands, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    (tmp_path / "frhsic_core").mkdir()
    (tmp_path / "book" / "results").mkdir(parents=True)
    (tmp_path / "notebooks").mkdir()
    exec(install.install_cell("https://example.org/a/b", "main").source, {})
    assert [command[-1] for command in commands] == [f"{tmp_path}[notebooks]"]
    assert os.environ["FRHSIC_BOOK"] == str(tmp_path / "book")
