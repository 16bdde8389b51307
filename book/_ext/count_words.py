"""Count the words of each chapter: in view, folded, and before the first picture.

Usage: ``python book/_ext/count_words.py``. It counts the chapters of ``_toc.yml`` as they were
executed.

In view, a symbol counts as a word, and a displayed formula, a line of code or a printed table
counts as none. What is folded counts whole: its text, its code and what it prints. Solutions are on
a page of their own and counted apart.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pandas as pd
from markdown_it import MarkdownIt
from mdit_py_plugins.colon_fence import colon_fence_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.myst_blocks import myst_block_plugin

ROOT = Path(__file__).resolve().parents[2]
MARKDOWN = (
    MarkdownIt("commonmark")
    .enable("table")
    .use(dollarmath_plugin)
    .use(colon_fence_plugin)
    .use(myst_block_plugin)
)
DIRECTIVE = re.compile(r"\{([\w:-]+)\}\s*(.*)")
OPTIONS = re.compile(r"\A(?:\s*:[\w-]+:.*\n)*")
# Directives whose body is not read as text on the page.
SKIPPED = {"index", "explorer", "toctree", "code-cell", "code-block", "math", "gallery", "image"}
PICTURES = {"explorer", "figure", "image"}
ROLE = re.compile(r"\{[\w:-]+\}`([^`<]*?)\s*(?:<[^`]*>)?`")  # it shows its text
WORD = re.compile(r"\w[\w’'.,/-]*")
SEEN, FOLDED, SOLUTION = "seen", "folded", "solution"


@dataclass
class Length:
    """Counts of one chapter. ``before`` is the number of words in view before the first picture."""

    seen: int = 0
    folded: int = 0
    solution: int = 0
    before: int | None = None
    tables: int = 0

    def add(self, text: str, place: str) -> None:
        """Count the words of a text without directives, and the picture that it may be."""
        if "<svg" in text and place == SEEN:
            self.picture()
        setattr(self, place, getattr(self, place) + words(text))

    def picture(self) -> None:
        """Note how many words come before the first picture."""
        if self.before is None:
            self.before = self.seen


def words(text: str) -> int:
    """Count the words of a text without directives.

    Examples
    --------
    >>> words("The {term}`corrected test <Corrected test>` of $S$, see $a+b$.")
    7
    """
    text = re.sub(r"\$\$.+?\$\$(?: \([\w-]+\))?", "", text, flags=re.DOTALL)
    text = re.sub(r"\$[^$]+\$", "x", text)
    text = ROLE.sub(r"\1", text)
    return len(WORD.findall(re.sub(r"<[^>]*>|https?://\S+", " ", text)))


def count_text(text: str, found: Length, place: str = SEEN) -> None:
    """Add the counts of a page or a cell of MyST, or of the body of a directive in it."""
    for token in MARKDOWN.parse(text):
        directive = DIRECTIVE.match(token.info) if token.type in ("fence", "colon_fence") else None
        if token.type in ("inline", "html_block"):
            found.add(token.content, place)
        elif token.type == "list_item_open":
            found.add(token.info, place)  # the number of the item
        elif token.type == "table_open":
            found.tables += place == SEEN
        elif directive:
            name, title = directive.groups()
            inside = place
            if name == "dropdown" and place == SEEN:
                inside = SOLUTION if title in ("Solution", "Solutions") else FOLDED
            elif name in PICTURES and place == SEEN:
                found.picture()
            if name not in SKIPPED:
                found.add("" if name == "dropdown" else title, place)
                count_text(OPTIONS.sub("", token.content), found, inside)


def count_code(cell: nbformat.NotebookNode, found: Length) -> None:
    """Add the counts of a cell of code: its caption, its pictures and its tables, and the code if it is folded."""
    tags = set(cell.metadata.get("tags", ()))
    figure = cell.metadata.get("mystnb", {}).get("figure", {})
    outputs = [output.get("data", {}) for output in cell.get("outputs", ())]
    if tags & {"hide-cell", "hide-input"}:
        found.folded += len(
            re.findall(r"\w+|[^\w\s]+", cell.source)
        )  # names and signs, as a page highlights them
    if tags & {"hide-cell", "hide-output"}:
        found.folded += sum(printed_words(output) for output in cell.get("outputs", ()))
    if tags & {"hide-cell", "hide-output", "remove-cell", "remove-output"}:
        return
    html = ["".join(data.get("text/html", "")) for data in outputs]
    if (
        figure
        or any("image/png" in data for data in outputs)
        or any("<svg" in text for text in html)
    ):
        found.picture()
    found.add(str(figure.get("caption", "")), SEEN)
    found.tables += sum(text.count("<table") for text in html)
    for data in outputs:
        count_text("".join(data.get("text/markdown", "")), found)


def printed_words(output: nbformat.NotebookNode) -> int:
    """Return the number of words that an output shows, apart from those in pictures."""
    data = output.get("data", {})
    shown = output.get("text") or data.get("text/html") or data.get("text/markdown") or ""
    if "image/png" in data:
        return 0
    return len(
        WORD.findall(re.sub(r"<style.*?</style>|<[^>]*>", " ", "".join(shown), flags=re.DOTALL))
    )


def count(path: Path) -> Length:
    """Return the counts of an executed notebook."""
    found = Length()
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "markdown":
            count_text(cell.source, found)
        elif cell.cell_type == "code":
            count_code(cell, found)
    return found


def chapters() -> list[Path]:
    """Return the executed notebooks of the contents, in their order."""
    names = re.findall(r"file: (notebooks/\w+)", (ROOT / "_toc.yml").read_text(encoding="utf-8"))
    return [ROOT / f"{name}.ipynb" for name in names]


def main() -> None:
    """Print one line for each chapter, and the sums."""
    counted = pd.DataFrame(
        [vars(count(path)) for path in chapters()], index=[path.stem for path in chapters()]
    )
    counted.loc["sum"] = counted.drop(columns="before").sum()
    print(counted.astype("Int64").to_string(na_rep=""))


if __name__ == "__main__":
    main()
