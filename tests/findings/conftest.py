"""What a chapter prints, read from its executed notebook, so that no model is trained twice to check a sentence.

The committed outputs are those of the code: CI executes the notebooks again and compares.
"""

from __future__ import annotations

import functools
import re
from html import unescape
from pathlib import Path

import nbformat
import pandas as pd
import pytest

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"


@functools.cache
def outputs_of(chapter: str) -> list[dict[str, str]]:
    """Return what the cells of a chapter print. A notebook is read once."""
    notebook = nbformat.read(NOTEBOOKS / f"{chapter}.ipynb", as_version=4)
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    return [{"text": output.get("text", ""), **output.get("data", {})} for output in outputs]


class Printed:
    """Tables and numbers that a chapter prints, and its text."""

    def text(self, chapter: str) -> str:
        return (NOTEBOOKS / f"{chapter}.md").read_text(encoding="utf-8")

    def table(self, chapter: str, column: str) -> pd.DataFrame:
        """Return the one table that has a column whose title contains ``column``; its first column is the index."""
        found = []
        for output in outputs_of(chapter):
            if "text/html" in output:
                rows = re.findall(r"<tr.*?</tr>", output["text/html"], re.DOTALL)
                cells = [re.findall(r"<t[dh].*?</t[dh]>", row, re.DOTALL) for row in rows]
                texts = [
                    [unescape(re.sub(r"<[^>]+>", "", cell)).strip() for cell in row]
                    for row in cells
                ]
                if texts and any(column in title for title in texts[0]):
                    found.append(texts)
        (rows,) = found
        frame = pd.DataFrame(rows[1:], columns=rows[0])
        return frame.set_index(frame.columns[0])

    def words(self, chapter: str, start: str) -> str:
        """Return what follows ``start`` in the one printed line that begins with it."""
        lines = [line for output in outputs_of(chapter) for line in output["text"].splitlines()]
        (line,) = [line for line in lines if line.startswith(start)]
        return line.removeprefix(start)

    def numbers(self, chapter: str, start: str) -> list[float]:
        """Return the numbers of the one printed line that begins with ``start``."""
        return [
            float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", self.words(chapter, start))
        ]


@pytest.fixture(scope="session")
def printed() -> Printed:
    return Printed()
