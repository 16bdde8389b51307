"""Count the words of each chapter: in view, folded, and before the first picture.

Usage: ``python book/_ext/count_words.py``. It counts the chapters of ``_toc.yml`` as they were executed.

In view, a symbol counts as a word, and a displayed formula, a line of code or a printed table counts as none. What is
folded counts whole: its text, its code and what it prints. Solutions are on a page of their own and counted apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path

import nbformat
import pandas as pd
from install_cell import CELL_ID

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^\s*(`{3,}|:{3,})\s*(?:\{([\w:-]+)\})?(.*)$")
FOLDED_CODE = {"hide-cell", "hide-input", "remove-cell", "remove-input"}
FOLDED_OUTPUT = {"hide-cell", "hide-output", "remove-cell", "remove-output"}
# Directives whose body is not read as text on the page.
SKIPPED = {"index", "explorer", "toctree", "code-cell", "math", "code", "gallery", "image"}
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
    figures: int = 0
    tables: int = 0
    code: int = 0
    folds: list[str] = field(default_factory=list)

    def picture(self) -> None:
        """Count a picture."""
        self.figures += 1
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


def pieces(text: str) -> Iterator[tuple[str, str]]:
    """Yield the lines of a page of MyST, each with what it is: seen, folded, solution, code, picture or fold.

    Options of directives, labels and comments are left out. A fold comes with its title.
    """
    fences: list[tuple[str, str, str]] = []  # the marks, the directive and where its text is
    options = False
    for line in text.splitlines():
        fence = FENCE.match(line)
        place = fences[-1][2] if fences else SEEN
        inner = fences[-1][1] if fences else ""
        if fence and fences and not fence[2] and not fence[3].strip() and len(fence[1]) >= len(fences[-1][0]):
            fences.pop()
            continue
        if fence and (fence[1][0] == "`" or fence[2]) and inner != "code":
            name = fence[2] or "code"
            name = "code" if name == "code-block" else name
            title = fence[3].strip()
            if name == "dropdown" and place == SEEN:
                place = SOLUTION if title in ("Solution", "Solutions") else FOLDED
                if place == FOLDED:
                    yield "fold", title
            elif name in PICTURES and place == SEEN:
                yield "picture", name
            if name not in SKIPPED and name != "dropdown":
                yield place, title
            fences.append((fence[1], name, place))
            options = True
            continue
        options = options and bool(re.match(r"\s*:[\w-]+:", line))
        if options or re.match(r"\s*(?:\([\w-]+\)=|%|\+\+\+)", line):
            continue
        if inner == "code" and place == SEEN:
            yield "code", line
        elif inner not in SKIPPED:
            yield place, line


def count_text(text: str, found: Length) -> None:
    """Add the counts of a page or a cell of MyST."""
    gathered = {SEEN: "", FOLDED: "", SOLUTION: ""}

    def settle() -> None:
        for place, block in gathered.items():
            setattr(found, place, getattr(found, place) + words(block))
            gathered[place] = ""

    for kind, line in pieces(text):
        if kind == "picture" or (kind == SEEN and "<svg" in line):
            settle()  # so that the words above the picture are counted before it
            found.picture()
        elif kind == "fold":
            found.folds.append(line)
        elif kind == "code":
            found.code += bool(line.strip())
        else:
            found.tables += kind == SEEN and bool(re.match(r"\s*\|(?:\s*:?-+:?\s*\|)+\s*$", line))
            gathered[kind] += f"{line}\n"
    settle()


def count_code(cell: nbformat.NotebookNode, found: Length) -> None:
    """Add the counts of a cell of code: its lines, its caption, its pictures and its tables."""
    tags = set(cell.metadata.get("tags", ()))
    shown = cell.metadata.get("mystnb", {})
    outputs = [output.get("data", {}) for output in cell.get("outputs", ())]
    if not tags & FOLDED_CODE:
        found.code += sum(bool(line.strip()) for line in cell.source.splitlines())
    elif tags & {"hide-cell", "hide-input"}:
        found.folded += len(re.findall(r"\w+|[^\w\s]+", cell.source))  # names and signs, as a page highlights them
    if tags & {"hide-cell", "hide-input", "hide-output"}:
        found.folds.append(shown.get("code_prompt_show", ""))
    if tags & {"hide-cell", "hide-output"}:
        found.folded += sum(printed_words(output) for output in cell.get("outputs", ()))
    if tags & FOLDED_OUTPUT:
        return
    html = ["".join(data.get("text/html", "")) for data in outputs]
    if shown.get("figure") or any("image/png" in data for data in outputs) or any("<svg" in text for text in html):
        found.picture()
    found.seen += words(str(shown.get("figure", {}).get("caption", "")))
    found.tables += sum(text.count("<table") for text in html)
    for data in outputs:
        count_text("".join(data.get("text/markdown", "")), found)


def printed_words(output: nbformat.NotebookNode) -> int:
    """Return the number of words that an output shows, apart from those in pictures."""
    data = output.get("data", {})
    shown = output.get("text") or data.get("text/html") or data.get("text/markdown") or ""
    if "image/png" in data:
        return 0
    return len(WORD.findall(re.sub(r"<style.*?</style>|<[^>]*>", " ", "".join(shown), flags=re.DOTALL)))


def count(path: Path) -> Length:
    """Return the counts of an executed notebook."""
    found = Length()
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "markdown":
            count_text(cell.source, found)
        elif cell.cell_type == "code" and cell.get("id") != CELL_ID:
            count_code(cell, found)
    return found


def chapters() -> list[Path]:
    """Return the executed notebooks of the contents, in their order."""
    names = re.findall(r"file: (notebooks/\w+)", (ROOT / "_toc.yml").read_text(encoding="utf-8"))
    return [ROOT / f"{name}.ipynb" for name in names]


def main() -> None:
    """Print one line for each chapter, and the sums."""
    names = [field.name for field in fields(Length)]
    counted = pd.DataFrame([vars(count(path)) for path in chapters()], index=[path.stem for path in chapters()])
    counted["folds"] = counted["folds"].map(len)
    counted.loc["sum"] = counted.drop(columns="before").sum()
    print(counted[names].astype("Int64").to_string(na_rep=""))


if __name__ == "__main__":
    main()
