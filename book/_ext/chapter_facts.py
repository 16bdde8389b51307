"""Directives that describe the chapters, read from the notebooks when the book is built.

* ```` ```{part-chapters} ```` lists the chapters below the page it stands on: title and time to read; then the time of
  the part and of its half of the book. With ``:times: no`` there are no times, for pages in which one looks things up.
* ```` ```{execution-status} ```` lists every executed notebook: cells, outputs, figures and errors.
"""

from __future__ import annotations

import importlib.metadata
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from install_cell import is_install_cell
from sphinx import addnodes
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).resolve().parents[2]
# The reading speed of technical prose, and the seconds that other things take. A page counts what is in view.
WORDS_PER_MINUTE = 180
SECONDS = {"inline": 5, "display": 20, "figures": 30, "tables": 30, "code": 2}
RULE = (
    f"The times count what is in view: {WORDS_PER_MINUTE} words or single symbols in a minute, {SECONDS['inline']} "
    f"seconds for a formula in a sentence and {SECONDS['display']} for a displayed one, {SECONDS['figures']} for a "
    f"figure or a table, {SECONDS['code']} for a line of code. They do not count what is folded, nor the work on an "
    "exercise."
)
FOLDED_CELL = {"hide-cell", "hide-output", "remove-cell", "remove-output"}
FOLDED_CODE = {"hide-cell", "hide-input", "remove-cell", "remove-input"}
FENCE = re.compile(r"^\s*(`{3,}|:{3,})\s*(?:\{([\w:-]+)\})?(.*)$")
# Directives whose body is not read as text on the page.
SKIPPED = {"dropdown", "index", "explorer", "part-chapters", "execution-status", "toctree", "code-cell"}


@dataclass(frozen=True)
class Facts:
    """Counts of one chapter: of the whole notebook, and of what a reader sees."""

    cells: int = 0
    executed: int = 0
    outputs: int = 0
    figures: int = 0
    errors: int = 0
    words: int = 0
    inline: int = 0
    display: int = 0
    tables: int = 0
    code: int = 0

    @property
    def seconds(self) -> float:
        """Reading time by ``RULE``."""
        return 60 * self.words / WORDS_PER_MINUTE + sum(SECONDS[name] * getattr(self, name) for name in SECONDS)

    @property
    def minutes(self) -> int:
        """Reading time in whole minutes, at least one, so that the chapters of a part add up to its time."""
        return max(1, round(self.seconds / 60))


def in_view(text: str) -> tuple[str, int, int]:
    """Return the text that a page shows, with the numbers of its displayed formulas and of its lines of code.

    Folded blocks, options of directives, labels and comments are left out; a block of code is counted, not returned.
    """
    lines: list[str] = []
    open_fences: list[tuple[str, str]] = []
    display = code = 0
    options = False
    for line in text.splitlines():
        fence = FENCE.match(line)
        if fence and open_fences and not fence[2] and not fence[3].strip() and len(fence[1]) >= len(open_fences[-1][0]):
            open_fences.pop()
            continue
        hidden = any(name in SKIPPED for _, name in open_fences)
        if fence and (fence[1][0] == "`" or fence[2]) and (not open_fences or open_fences[-1][1] != "code"):
            name = fence[2] or "code"
            name = "code" if name in ("code", "code-block") else name
            open_fences.append((fence[1], name))
            options = True
            if not hidden and name not in SKIPPED:
                display += name == "math"
                lines.append("" if name == "code" else fence[3])  # the title of a box
            continue
        options = options and bool(re.match(r"\s*:[\w-]+:", line))
        if hidden or options or re.match(r"\s*(?:\([\w-]+\)=|%|\+\+\+)", line):
            continue
        inner = open_fences[-1][1] if open_fences else ""
        if inner == "code":
            code += bool(line.strip())
        elif inner != "math":
            lines.append(line)
    shown = "\n".join(lines)
    display += len(re.findall(r"\$\$.+?\$\$", shown, flags=re.DOTALL))
    shown = re.sub(r"\$\$.+?\$\$(?: \([\w-]+\))?", "", shown, flags=re.DOTALL)
    return shown, display, code


def counted_text(text: str) -> dict[str, int]:
    """Count the words, the formulas, the tables and the lines of code of a page of MyST; a symbol counts as a word.

    Examples
    --------
    >>> counted_text("The {term}`head <Head>` maps $Z$ to $Y$.\\n\\n$$\\na = b\\n$$\\n\\n```python\\nx = 1\\n```")
    {'words': 6, 'inline': 0, 'display': 1, 'tables': 0, 'code': 1}
    """
    shown, display, code = in_view(text)
    tables = len(re.findall(r"(?m)^\s*\|(?:\s*:?-+:?\s*\|)+\s*$", shown))
    formulas = re.findall(r"\$[^$]+\$", shown)
    inline = sum(len(re.findall(r"\\[a-zA-Z]+|[^\s${}_^]", formula)) > 2 for formula in formulas)
    shown = re.sub(r"\$[^$]+\$", "x", shown)
    shown = re.sub(r"\{[\w:-]+\}`([^`<]*?)\s*(?:<[^`]*>)?`", r"\1", shown)  # a role shows its text
    words = re.findall(r"\w[\w’'.,/-]*", re.sub(r"<[^>]*>|https?://\S+", " ", shown))
    return {"words": len(words), "inline": inline, "display": display, "tables": tables, "code": code}


def facts(path: Path) -> Facts:
    """Count what a notebook or a page of text holds."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return Facts(**counted_text(text))
    cells = [cell for cell in json.loads(text)["cells"] if not is_install_cell(cell)]
    code = [cell for cell in cells if cell["cell_type"] == "code" and "".join(cell["source"]).strip()]
    outputs = [output for cell in code for output in cell["outputs"]]
    prose = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    seen = counted_text(prose)
    for cell in code:
        tags = set(cell["metadata"].get("tags", ()))
        if not tags & FOLDED_CODE:
            seen["code"] += sum(bool(line.strip()) for line in "".join(cell["source"]).splitlines())
        if not tags & FOLDED_CELL:
            seen["tables"] += tables_in(cell)
        caption = cell["metadata"].get("mystnb", {}).get("figure", {}).get("caption", "")
        seen["words"] += len(caption.split())
    return Facts(
        cells=len(code),
        executed=sum(cell["execution_count"] is not None for cell in code),
        outputs=len(outputs),
        figures=sum("image/png" in output.get("data", {}) for output in outputs),
        errors=sum(output["output_type"] == "error" for output in outputs),
        **seen,
    )


def tables_in(cell: dict[str, Any]) -> int:
    """Return the number of tables in the outputs of a cell."""
    shown = ["".join(output.get("data", {}).get("text/html", "")) for output in cell["outputs"]]
    written = ["".join(output.get("data", {}).get("text/markdown", "")) for output in cell["outputs"]]
    return sum(text.count("<table") for text in shown) + sum(counted_text(text)["tables"] for text in written)


def hours(seconds: float) -> str:
    """Return a time in words, to the nearest five minutes or, from an hour and a half on, to a tenth of an hour.

    Examples
    --------
    >>> hours(3000), hours(16_000)
    ('50 minutes', '4.4 hours')
    """
    return f"{5 * round(seconds / 300)} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


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

    option_spec: ClassVar = {"times": directives.unchanged}

    def facts_of(self, page: str) -> dict[str, Facts]:
        """Return the facts of every chapter below a page of a part."""
        part = self.config.external_site_map[page]
        documents = [str(entry) for tree in part.subtrees for entry in tree.items]
        return {document: facts(Path(self.env.doc2path(document))) for document in documents}

    def run(self) -> list[nodes.Node]:
        """Return a table of links and reading times, and the time of the half of the book."""
        self.env.note_reread()  # its chapters may change while this page does not
        here = self.env.docname
        found = self.facts_of(here)
        if self.options.get("times") == "no":
            return [table(["chapter"], [[link(document, here)] for document in found], "part-chapters")]
        rows: list[list[nodes.Node | str]] = [
            [link(document, here), f"{f.minutes} min"] for document, f in found.items()
        ]
        half = next(tree for tree in self.config.external_site_map.root.subtrees if here in tree.items)
        whole = sum(f.seconds for page in half.items for f in self.facts_of(str(page)).values())
        own = sum(f.seconds for f in found.values())
        name = str(half.caption).partition(":")[0]
        times = f"This part takes about {hours(own)} to read. All parts under “{name}” take about {hours(whole)}."
        words = f"{times} {RULE}"
        return [table(["chapter", "to read"], rows, "part-chapters"), nodes.paragraph(words, words)]


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
