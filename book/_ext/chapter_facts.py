"""What the book says about its own chapters, read from the notebooks when it is built.

* ```` ```{part-chapters} ```` lists the chapters below the page it stands on: title and minutes to read.
* ```` ```{execution-status} ```` tells of every executed notebook: cells, outputs, figures, errors, version.
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
WORDS_PER_MINUTE = 180  # technical prose; a formula counts as the words around it


@dataclass(frozen=True)
class Facts:
    """One chapter, counted."""

    cells: int
    executed: int
    outputs: int
    figures: int
    errors: int
    words: int
    bytes: int

    @property
    def minutes(self) -> int:
        """Reading time, to the next five minutes; a code cell counts as half a minute."""
        return max(5, 5 * math.ceil((self.words / WORDS_PER_MINUTE + 0.5 * self.cells) / 5))


def facts(path: Path) -> Facts:
    """Count what a notebook or a page of text holds."""
    if path.suffix == ".md":
        text = path.read_text(encoding="utf-8")
        return Facts(0, 0, 0, 0, 0, len(text.split()), path.stat().st_size)
    every = json.loads(path.read_text(encoding="utf-8"))["cells"]
    cells = [cell for cell in every if not is_install_cell(cell)]
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
        bytes=path.stat().st_size,
    )


def source_of(document: str) -> Path | None:
    """Return the file a page is made from."""
    for suffix in (".ipynb", ".md"):
        path = ROOT / f"{document}{suffix}"
        if path.is_file():
            return path
    return None


def link(document: str, here: str) -> nodes.Node:
    """Return a link that shows the title of a page."""
    words = nodes.inline(document, document, classes=["xref", "doc"])
    place = {"refdomain": "std", "reftype": "doc", "reftarget": f"/{document}", "refdoc": here}
    return addnodes.pending_xref("", words, refexplicit=False, refwarn=True, **place)


def table(header: list[str], rows: list[list[nodes.Node | str]], widths: list[int], name: str) -> nodes.table:
    """Return a plain table."""
    group = nodes.tgroup(cols=len(header))
    group += [nodes.colspec(colwidth=width) for width in widths]

    def line(values: list[nodes.Node | str]) -> nodes.row:
        row = nodes.row()
        for value in values:
            content = nodes.Text(value) if isinstance(value, str) else value
            row += nodes.entry("", nodes.paragraph("", "", content))
        return row

    group += nodes.thead("", line(list(header)))
    group += nodes.tbody("", *[line(row) for row in rows])
    return nodes.table("", group, classes=[name, "colwidths-given"])


class PartChapters(SphinxDirective):
    """The chapters below this page."""

    def run(self) -> list[nodes.Node]:
        """Return a table of links and reading times."""
        rows: list[list[nodes.Node | str]] = []
        minutes = 0
        self.env.note_reread()  # its chapters may change while this page does not
        for document in children(self.env, self.env.docname):
            path = source_of(document)
            if path is None:
                continue
            found = facts(path)
            minutes += found.minutes
            runs = f"{found.cells}" if found.cells else "–"
            rows.append([link(document, self.env.docname), f"{found.minutes} min", runs])
        if not rows:
            words = "The chapters of this part are being written."
            return [nodes.paragraph(words, words)]
        rows.append(["together", f"{minutes} min", ""])
        return [table(["chapter", "to read", "cells"], rows, [70, 18, 12], "part-chapters")]


def children(env: Any, document: str) -> list[str]:
    """Return the pages directly below one in the table of contents."""
    toc = env.app.config.external_site_map
    item = toc.get(document)
    if item is None:
        return []
    return [str(entry) for tree in item.subtrees for entry in tree.items if isinstance(entry, str)]


class ExecutionStatus(SphinxDirective):
    """Every executed notebook of the book."""

    def run(self) -> list[nodes.Node]:
        """Return the table and the version that the outputs are compared with."""
        self.env.note_reread()
        rows: list[list[nodes.Node | str]] = []
        for document in sorted(self.env.found_docs):
            path = source_of(document)
            if path is None or path.suffix != ".ipynb":
                continue
            f = facts(path)
            state = "all run, no error" if f.executed == f.cells and not f.errors else "look: unrun cells or errors"
            rows.append(
                [link(document, self.env.docname), f"{f.cells}", f"{f.outputs}", f"{f.figures}",
                 f"{f.bytes / 1024:.0f} kB", state]
            )  # fmt: skip
        version = importlib.metadata.version("frhsic-core")
        words = f"{len(rows)} notebooks, built with frhsic-core {version}."
        header = ["notebook", "cells", "outputs", "figures", "size", "state"]
        return [nodes.paragraph(words, words), table(header, rows, [38, 9, 11, 11, 11, 20], "execution-status")]


def setup(app: Any) -> dict[str, bool]:
    """Register both directives."""
    app.add_directive("part-chapters", PartChapters)
    app.add_directive("execution-status", ExecutionStatus)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
