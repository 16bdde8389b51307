"""Give every statement one number, the paper's: in its box, in references to it and in the contents.

Chapters write a title such as ``Theorem 4.5 of the paper, cor:hsic-mmd-equivalence``. The page shows "Theorem 4.5 of
the paper", references to the box read "Theorem 4.5", and the contents at the left list the numbers of each chapter.
Boxes of our own have no number, because readers would take it for the paper's. They show their kind and title.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Any

from docutils import nodes

FROM_PAPER = re.compile(r"\b(?:of|in) the paper\b|\bthe paper['’]s\b", re.IGNORECASE)
ONE_NUMBER = re.compile(
    r"^((?:Theorem|Proposition|Corollary|Lemma|Remark|Definition) (?:[A-Z]\.)?\d[\d.]*\d|\w+ [A-Z]\.\d+) of the paper"
)
LABEL = re.compile(r",?\s*\b(?:thm|cor|prop|lem|def|rem|fig|tab|eq|sec|app):[\w-]+")
SHORT = {"Theorem": "Thm", "Proposition": "Prop", "Corollary": "Cor", "Lemma": "Lem"}


def without_labels(title: str) -> str:
    """Return a title without the labels of the paper's source, which no reader types.

    Examples
    --------
    >>> without_labels("Remark B.3 of the paper, rem:lambda2_scaling, and its correction")
    'Remark B.3 of the paper, and its correction'
    >>> without_labels("HSIC for equal opportunity (the paper's sec:eo)")
    'HSIC for equal opportunity (in the paper)'
    """
    title = re.sub(r"\(the paper['’]s \w+:[\w-]+\)", "(in the paper)", title)  # the page has curly quotes
    title = re.sub(r"\bTable tab:[\w-]+", "A table of the paper", title)
    # Two labels joined by "and" leave nothing behind.
    title = re.sub(LABEL.pattern + r"(?: and \w+:[\w-]+)?", "", title)
    return re.sub(r"\s+([,)])", r"\1", title).strip().rstrip(",")


def paper_number(title: str) -> str | None:
    """Return the paper's number of a box that restates one numbered statement, else None."""
    return match[1] if (match := ONE_NUMBER.match(title)) else None


def short_numbers(numbers: list[str]) -> str:
    """Return the numbers of a chapter as the contents show them; remarks and definitions are left out.

    Examples
    --------
    >>> short_numbers(["Theorem 5.1", "Remark G.4", "Corollary 5.2", "Corollary G.3"])
    'Thm 5.1, Cor 5.2, G.3'
    """
    found, before = [], ""
    for kind, _, number in (name.partition(" ") for name in numbers):
        if kind in SHORT:
            found.append(number if kind == before else f"{SHORT[kind]} {number}")
            before = kind
    return ", ".join(found)


def _boxes(doctree: nodes.document) -> list[nodes.Element]:
    return [node for node in doctree.findall(nodes.Element) if "proof" in node.get("classes", ())]


def _retitle(app: Any, doctree: nodes.document) -> None:
    statements: list[str] = []
    for box in _boxes(doctree):
        title = next(iter(box.findall(nodes.title)), None)
        if title is None:
            continue
        words = title.astext().strip()
        if LABEL.search(words):
            words = without_labels(words)
            title[:] = [nodes.Text(words)]
        kind = str(box.get("realtype", "box")).title()
        from_paper = bool(FROM_PAPER.search(words))
        box["classes"].append("from-paper" if from_paper else "our-own")
        if not from_paper and kind != "Remark":
            title.insert(0, nodes.Text(f"{kind}: "))
        statements += filter(None, [paper_number(words)])
        known = app.env.proof_list.get(box.get("label", ""), {})
        known["name"] = paper_number(words) or f"{kind} “{words}”"
    app.env.paper_statements = {**getattr(app.env, "paper_statements", {}), app.env.docname: statements}


def _forget(app: Any, env: Any, docname: str) -> None:
    getattr(env, "paper_statements", {}).pop(docname, None)


def _merge(app: Any, env: Any, docnames: Any, other: Any) -> None:
    found = getattr(other, "paper_statements", {})
    env.paper_statements = {**getattr(env, "paper_statements", {}), **{k: v for k, v in found.items() if k in docnames}}


def _rename_references(app: Any, doctree: nodes.document, docname: str) -> None:
    names = {label: known.get("name") for label, known in getattr(app.env, "proof_list", {}).items()}
    for reference in doctree.findall(nodes.reference):
        place = reference.get("refid") or reference.get("refuri", "").partition("#")[2]
        if names.get(place) and re.fullmatch(r"\w+ [\d.]+", reference.astext()):
            reference[:] = [nodes.inline("", names[place], classes=["std", "std-ref"])]


def _number_contents(app: Any, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """Add the numbers of its statements to a chapter's line in the contents, unless its title has them."""
    make = context.get("generate_toctree_html")
    if make is None:
        return
    found = getattr(app.env, "paper_statements", {})
    numbers = {PurePosixPath(name).name: listed for name, listed in found.items()}

    def with_numbers(*arguments: Any, **options: Any) -> Any:
        contents = make(*arguments, **options)
        if hasattr(contents, "select"):
            for link in contents.select("a.reference.internal"):
                href = link.get("href") or ""
                name = PurePosixPath(href).stem if href != "#" else PurePosixPath(pagename).name
                words = link.get_text()
                missing = short_numbers([number for number in numbers.get(name, []) if number not in words])
                if missing and not link.select(".statements"):  # the theme may ask twice
                    mark = contents.new_tag("span", attrs={"class": "statements"})
                    mark.string = missing
                    link.extend([" ", mark])
        return contents

    context["generate_toctree_html"] = with_numbers


def _bare_titles(app: Any, config: Any) -> None:
    # By default titles are in parentheses, after a number that this book does not show.
    config.proof_title_format = "%t"


def setup(app: Any) -> dict[str, bool]:
    """Retitle when a page has been read, rename references once they are resolved, number the contents at the end."""
    app.connect("config-inited", _bare_titles)
    app.connect("doctree-read", _retitle)
    app.connect("env-purge-doc", _forget)
    app.connect("env-merge-info", _merge)
    app.connect("doctree-resolved", _rename_references, priority=900)
    app.connect("html-page-context", _number_contents, priority=950)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
