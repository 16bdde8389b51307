"""Directives that describe the chapters, read from the notebooks when the book is built.

* ```` ```{part-chapters} ```` lists the chapters below the page it stands on: title and minutes to read.
* ```` ```{execution-status} ```` lists every executed notebook: cells, outputs, figures and errors.
"""

from __future__ import annotations

import importlib.metadata
import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docutils import nodes
from install_cell import is_install_cell
from sphinx import addnodes
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).resolve().parents[2]
WORDS_PER_MINUTE = 180  # technical prose; a formula counts as one word


@dataclass(frozen=True)
class Facts:
    """Counts of one chapter."""

    cells: int = 0
    executed: int = 0
    outputs: int = 0
    figures: int = 0
    errors: int = 0
    words: int = 0

    @property
    def minutes(self) -> int:
        """Reading time, rounded up to five minutes; a code cell counts as half a minute."""
        return max(5, 5 * math.ceil((self.words / WORDS_PER_MINUTE + 0.5 * self.cells) / 5))


def facts(path: Path) -> Facts:
    """Count what a notebook or a page of text holds."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return Facts(words=len(text.split()))
    cells = [cell for cell in json.loads(text)["cells"] if not is_install_cell(cell)]
    code = [cell for cell in cells if cell["cell_type"] == "code" and "".join(cell["source"]).strip()]
    outputs = [output for cell in code for output in cell["outputs"]]
    prose = " ".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    return Facts(
        cells=len(code),
        executed=sum(cell["execution_count"] is not None for cell in code),
        outputs=len(outputs),
        figures=sum("image/png" in output.get("data", {}) for output in outputs),
        errors=sum(output["output_type"] == "error" for output in outputs),
        words=len(re.sub(r"\$[^$]*\$", "x", prose).split()),
    )


def link(document: str, here: str) -> nodes.Node:
    """Return a link that shows the title of a page."""
    words = nodes.inline(document, document, classes=["xref", "doc"])
    place = {"refdomain": "std", "reftype": "doc", "reftarget": f"/{document}", "refdoc": here}
    return addnodes.pending_xref("", words, refexplicit=False, refwarn=True, **place)


def table(header: list[str], rows: list[list[nodes.Node | str]], name: str) -> nodes.table:
    """Return a plain table."""

    def line(values: list[Any]) -> nodes.row:
        parts = [nodes.Text(value) if isinstance(value, str) else value for value in values]
        return nodes.row("", *[nodes.entry("", nodes.paragraph("", "", part)) for part in parts])

    group = nodes.tgroup("", *[nodes.colspec(colwidth=1) for _ in header], cols=len(header))
    group += nodes.thead("", line(header))
    group += nodes.tbody("", *[line(row) for row in rows])
    return nodes.table("", group, classes=[name])


class PartChapters(SphinxDirective):
    """The chapters below this page."""

    def run(self) -> list[nodes.Node]:
        """Return a table of links and reading times."""
        self.env.note_reread()  # its chapters may change while this page does not
        part = self.config.external_site_map[self.env.docname]
        documents = [str(entry) for tree in part.subtrees for entry in tree.items]
        found = [facts(Path(self.env.doc2path(document))) for document in documents]
        rows: list[list[nodes.Node | str]] = [
            [link(document, self.env.docname), f"{f.minutes} min", f"{f.cells}" if f.cells else "–"]
            for document, f in zip(documents, found, strict=True)
        ]
        rows.append(["together", f"{sum(f.minutes for f in found)} min", ""])
        return [table(["chapter", "to read", "cells"], rows, "part-chapters")]


class ExecutionStatus(SphinxDirective):
    """Every executed notebook of the book."""

    def run(self) -> list[nodes.Node]:
        """Return the table and the version of the package that built it."""
        self.env.note_reread()
        rows: list[list[nodes.Node | str]] = []
        for document in sorted(self.env.found_docs):
            path = Path(self.env.doc2path(document))
            if path.suffix != ".ipynb":
                continue
            f = facts(path)
            counts = [f"{f.cells}", f"{f.outputs}", f"{f.figures}", f"{path.stat().st_size / 1024:.0f} kB"]
            state = "all run, no error" if f.executed == f.cells and not f.errors else "unrun cells or errors"
            rows.append([link(document, self.env.docname), *counts, state])
        words = f"{len(rows)} notebooks, built with frhsic-core {importlib.metadata.version('frhsic-core')}."
        header = ["notebook", "cells", "outputs", "figures", "size", "state"]
        return [nodes.paragraph(words, words), table(header, rows, "execution-status")]


def setup(app: Any) -> dict[str, bool]:
    """Register both directives."""
    app.add_directive("part-chapters", PartChapters)
    app.add_directive("execution-status", ExecutionStatus)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
