"""Put MathJax, slides and archives into the built book, so that neither a page nor a chapter needs the repository."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import Any

import nbformat
from make_slides import clean, filled, write
from mathjax import copy_mathjax
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from solutions import without_solutions

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ("pyproject.toml", "README.md", "LICENSE", "CITATION.cff", "frhsic_core")
STORED = (
    "book/results",
    "book/claims",
    "book/data_summaries",
    "book/proofs",
    "book/_static/credit_model.py",
)
CHAPTERS = (
    *LIBRARY,
    "LICENSE-docs",
    "notebooks",
    "book/homework.md",
    *STORED,
)  # what every chapter needs, and the homework
MAKE = re.compile(
    r"(?ms)^[^\n]*`make [^\n]*\n\n?|^## Work on the repository.*?(?=^## )"
)  # needs the repository
UNSEEN = re.compile(
    r"__pycache__/|/slides/\w+-week-|/_sources/book/teaching"
)  # the last two have answers to votes
TASK = re.compile(
    r"(?ms)^\*\*Coding task: ([^*]+)\.\*\* (.+?)\n\n```python\n(.+?)```\n\n(Expected.+?```text.+?```)"
)
MACRO = re.compile(r"\\(HSIC|MMD|GDP|E)(?![a-zA-Z])")  # of the book, unknown to Jupyter


def starters(text: str) -> dict[str, str]:
    """Return a notebook for each coding task of the homework: the task, its code to begin with, the expected output."""
    found, kernel = (
        {},
        {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
    )
    for title, task, code, output in TASK.findall(text):
        first = new_markdown_cell(f"# {title[0].upper()}{title[1:]}\n\n{task}", id="task")
        cells = [
            first,
            new_code_cell(code.rstrip(), id="starter"),
            new_markdown_cell(output, id="output"),
        ]
        name = re.sub(r"\W+", "_", title.lower())
        found[f"notebooks/homework/{name}.ipynb"] = nbformat.writes(
            new_notebook(cells=cells, metadata=kernel)
        )
    return found


def pack(root: Path, names: tuple[str, ...], target: Path) -> None:
    """Write files and folders to an archive, without solutions; its one folder is what ``pip install`` takes."""
    found = [
        path
        for name in names
        for path in ((root / name).rglob("*") if (root / name).is_dir() else [root / name])
    ]
    files: dict[str, str | bytes] = {}
    for path in (
        path
        for path in found
        if path.is_file() and path != target and not UNSEEN.search(path.as_posix())
    ):
        text = without_solutions(path) if path.suffix in (".ipynb", ".md", ".html") else ""
        text = MAKE.sub("", text) if path == root / "README.md" else text
        text = re.sub(
            rf'<a href="[^"]*{target.name}">(.+?)</a>', r"\1", text
        )  # an archive has no link to itself
        if path == root / "book" / "homework.md":
            text = MACRO.sub(r"\\mathrm{\1}", clean(filled(text, {})))
            files |= starters(text)
        files[path.relative_to(root).as_posix()] = text or path.read_bytes()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for inside, content in sorted(files.items()):
            archive.writestr(
                zipfile.ZipInfo(f"{target.stem}/{inside}"), content, zipfile.ZIP_DEFLATED
            )  # dated 1980


def _add_files(app: Any, exception: Exception | None) -> None:
    if not exception and app.builder.format == "html":
        static = Path(app.outdir) / "_static"
        copy_mathjax(static / "mathjax")
        pack(ROOT, LIBRARY, static / "frhsic_core.zip")
        pack(ROOT, CHAPTERS, static / "chapters.zip")
        write(static / "slides", app.config.myst_substitutions, mathjax="../mathjax", book="../..")
        pack(Path(app.outdir), ("",), static / "book-without-solutions.zip")


def _drop_thebe(
    app: Any, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Remove the script for live code cells, which are not used: it is added twice and then logs an error."""
    named = [
        (s, f"{s.filename} {s.attributes.get('body')}".lower())
        for s in context.get("script_files", [])
    ]
    context["script_files"] = [script for script, name in named if "thebe" not in name]


def setup(app: Any) -> dict[str, bool]:
    """Register both hooks; the files are added after all others, since one archive contains the whole book."""
    app.connect("build-finished", _add_files, priority=900)
    app.connect("html-page-context", _drop_thebe, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
