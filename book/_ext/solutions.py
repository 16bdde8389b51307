"""Move the solutions of the exercises to a page of their own when the book is built.

A chapter keeps each solution next to its exercise, in a box titled "Solutions". On the pages the
boxes are gone. ``book/solutions`` lists the solutions of all chapters, and every exercise links to
its solution and back. Below them are the solutions of the homework, which ``book/homework`` keeps
in a box for each week. With the variable ``FRHSIC_SOLUTIONS=no`` (or ``exercise_solutions: false``
in ``_config.yml``) the exercises stay, and the pages, the search index and the notebooks for
download have no solution.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes

PAGE = "book/solutions"
HOMEWORK = "book/homework"
WEEK = re.compile(r"(?m)^\((homework-\d+)\)=\n## (.+)$")
VARIABLE = "FRHSIC_SOLUTIONS"
ABSENT = "This edition is for a course and has no solutions."
EMPTY = f"(ch-solutions)=\n# Solutions to the exercises\n\n{ABSENT}\n"
# On a page of the built book: links to solutions, and what follows the heading of the page of
# solutions.
SHOWN = re.compile(
    r'(?s)<span class="exercise-link">.*?</span></a></span>|<p><a [^>]*#solutions-[^>]*>.*?</p>\n'
    r'|(?:(?<=<span id="ch-solutions"></span>)|(?<=<span id="ch-teaching"></span>))'
    r"(<h1>.*?</h1>).*(?=</article>)"
)
BOX = re.compile(r"(?ms)^(:{3,})\{dropdown\} Solutions[ \t]*\n(.*?)^\1[ \t]*$\n?")


def are_wanted(value: str) -> bool:
    """Return whether the book shows solutions; a typing error must not publish them."""
    if value not in ("yes", "no"):
        raise ValueError(f"{VARIABLE} is {value!r}. Use yes or no.")
    return value == "yes"


def solutions_in(text: str) -> str:
    """Return the solutions of a text, which are a numbered list in a box.

    Examples
    --------
    >>> solutions_in("1. Why?\\n\\n:::{dropdown} Solutions\\n1. Because.\\n:::\\n")
    '1. Because.\\n'
    """
    return "".join(match[2] for match in BOX.finditer(text))


def stripped(source: str, link: str = "") -> str:
    """Return the JSON text of a notebook with a link, or nothing, in place of its solutions."""
    if "{dropdown} Solution" not in source:
        return source
    notebook = json.loads(source)
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = BOX.sub(link, "".join(cell["source"]))
    return json.dumps(notebook)


def without_solutions(path: Path) -> str:
    """Return the text of a notebook or a page, also of the built book, without its solutions."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".html":
        return SHOWN.sub(_heading_alone, text)
    if path.suffix == ".ipynb":
        return stripped(text)
    return BOX.sub("", text)


def _heading_alone(shown: re.Match[str]) -> str:
    """Return the heading of the page of solutions with a sentence, and nothing for a link."""
    heading = shown[1]
    if not heading:
        return ""
    return f"{heading}{ABSENT}"


def all_solutions(paths: list[Path]) -> str:
    """Return the body of the page: the solutions of every chapter under the chapter's title."""
    parts = []
    for path in paths:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        written = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
        text = "\n\n".join(written)
        found = solutions_in(text)
        if found:
            heading = re.search(r"(?m)^# (.+)$", text)
            title = heading[1] if heading else path.stem
            parts.append(f"(solutions-{path.stem})=\n## {title}\n\n{found}")
    return "\n\n".join(parts)


def homework(text: str) -> tuple[str, str]:
    """Return the page of the homework with links for solutions, and the solutions of all weeks."""
    left, *weeks = WEEK.split(text)
    found = ""
    for label, title, body in zip(weeks[::3], weeks[1::3], weeks[2::3], strict=True):
        link = f"{{ref}}`Solutions of this week <solutions-{label}>`\n"
        left += f"({label})=\n## {title}{BOX.sub(link, body)}"
        heading = f"Homework of {title[0].lower()}{title[1:]}"
        found += f"\n\n(solutions-{label})=\n## {heading}\n\n{solutions_in(body)}"
    return left, found


def chapters(app: Any) -> list[str]:
    """Return the notebooks in the order of the contents, which is that of the map of the site."""
    names = getattr(app.config, "external_site_map", None) or app.env.found_docs
    return [str(name) for name in names if str(app.env.doc2path(name)).endswith(".ipynb")]


def _move(app: Any, docname: str, source: list[str]) -> None:
    """Fill the page of solutions, and take the boxes out of a chapter."""
    shown = app.config.exercise_solutions
    if docname == PAGE and shown:
        source[0] += all_solutions([Path(app.env.doc2path(name)) for name in chapters(app)])
        _, solutions = homework(Path(app.env.doc2path(HOMEWORK)).read_text(encoding="utf-8"))
        source[0] += solutions
    elif docname == PAGE:
        source[0] = EMPTY
    elif docname == HOMEWORK:
        with_links, _ = homework(source[0])
        source[0] = with_links if shown else BOX.sub("", source[0])
    elif str(app.env.doc2path(docname)).endswith(".ipynb"):
        link = f"{{ref}}`All solutions of this chapter <solutions-{Path(docname).name}>`\n"
        source[0] = stripped(source[0], link if shown else "")


def _strip_downloads(app: Any, exception: Exception | None) -> None:
    """Take the solutions out of the copied sources, the files behind the download button."""
    if exception is None and not app.config.exercise_solutions:
        for path in list(Path(app.outdir, "_sources").rglob("*")):
            if path.is_file():
                path.write_text(without_solutions(path), encoding="utf-8")


def _items(section: nodes.section) -> list[nodes.list_item]:
    """Return the items of the numbered lists of a section."""
    found: list[nodes.list_item] = []
    for child in section.children:
        if isinstance(child, nodes.enumerated_list):
            found += child.children
    return found


def _link(app: Any, item: nodes.list_item, own: str, other: str, words: str) -> None:
    """Give an item a name of its own and a link to its counterpart."""
    item["ids"].append(own)
    app.env.get_domain("std").note_hyperlink_target(own, app.env.docname, own)
    place = {"refdomain": "std", "reftype": "ref", "reftarget": other, "refdoc": app.env.docname}
    link = addnodes.pending_xref(
        "", nodes.inline(words, words), refexplicit=True, refwarn=True, **place
    )
    last = item.children[-1]
    home = last if isinstance(last, nodes.paragraph) else nodes.paragraph()
    if home is not last:
        item += home
    home += [nodes.Text(" "), nodes.inline("", "", link, classes=["exercise-link"])]


def _pair(app: Any, doctree: nodes.document) -> None:
    """Link exercises and solutions; a link to one that is missing fails the strict build."""
    path = Path(app.env.doc2path(app.env.docname))
    if not app.config.exercise_solutions:
        return
    if app.env.docname == PAGE:
        _link_solutions(app, doctree)
    elif path.suffix == ".ipynb":
        _link_exercises(app, doctree, path.stem)


def _link_solutions(app: Any, doctree: nodes.document) -> None:
    """Link each solution of the page of solutions to its exercise."""
    stems = {}
    for name in chapters(app):
        stem = Path(name).name
        stems[nodes.make_id(f"solutions-{stem}")] = stem
    for section in doctree.findall(nodes.section):
        for stem in [stems[place] for place in section["ids"] if place in stems]:
            for i, item in enumerate(_items(section), 1):
                _link(app, item, f"solution-{stem}-{i}", f"exercise-{stem}-{i}", "↑ exercise")


def _link_exercises(app: Any, doctree: nodes.document, stem: str) -> None:
    """Link each exercise of a chapter to its solution."""
    items: list[nodes.list_item] = []
    for title in doctree.findall(nodes.title):
        if title.astext() == "Exercises":
            items += _items(title.parent)
    for i, item in enumerate(items, 1):
        _link(app, item, f"exercise-{stem}-{i}", f"solution-{stem}-{i}", "Solution")


def setup(app: Any) -> dict[str, bool]:
    """Register the switch and the hooks."""
    app.add_config_value(
        "exercise_solutions", are_wanted(os.environ.get(VARIABLE, "yes")), "env", [bool]
    )
    app.connect("source-read", _move)
    app.connect("doctree-read", _pair)
    app.connect("build-finished", _strip_downloads)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
