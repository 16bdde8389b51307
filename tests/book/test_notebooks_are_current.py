"""The guard: each committed notebook is its text, executed in order, without errors."""

from __future__ import annotations

from pathlib import Path

import jupytext
import nbformat
import pytest

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
TEXTS = sorted(NOTEBOOKS.glob("*.md"))


def essence(cell: nbformat.NotebookNode) -> tuple[str, str, tuple[str, ...]]:
    return cell.cell_type, cell.source.strip(), tuple(cell.metadata.get("tags", ()))


def test_there_are_notebooks() -> None:
    assert TEXTS
    assert {path.stem for path in TEXTS} == {path.stem for path in NOTEBOOKS.glob("*.ipynb")}


@pytest.mark.parametrize("text", TEXTS, ids=lambda path: path.stem)
def test_text_and_executed_notebook_agree(text: Path) -> None:
    source = jupytext.read(text)
    executed = nbformat.read(text.with_suffix(".ipynb"), as_version=4)
    hint = f"{text.stem}: text and executed notebook differ; run `make notebooks` and commit both."
    assert [essence(cell) for cell in source.cells] == [essence(cell) for cell in executed.cells], hint


@pytest.mark.parametrize("text", TEXTS, ids=lambda path: path.stem)
def test_every_cell_was_run_in_order_without_errors(text: Path) -> None:
    executed = nbformat.read(text.with_suffix(".ipynb"), as_version=4)
    # nbval compares nothing for a cell that was never run: an empty notebook would pass it.
    code = [cell for cell in executed.cells if cell.cell_type == "code" and cell.source.strip()]
    assert code
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    for cell in code:
        if "raises-exception" not in cell.metadata.get("tags", ()):
            assert not [output for output in cell.outputs if output.output_type == "error"]
