"""Give every statement one number, the paper's: in its box and in references to it.

Chapters write a title such as ``Theorem 4.5 of the paper, cor:hsic-mmd-equivalence``. The page shows "Theorem 4.5 of
the paper", and references to the box read "Theorem 4.5". Boxes of our own have no number, because readers would take it
for the paper's. They show their kind and title.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes

FROM_PAPER = re.compile(r"\b(?:of|in) the paper\b|\bthe paper['’]s\b", re.IGNORECASE)
ONE_NUMBER = re.compile(
    r"^((?:Theorem|Proposition|Corollary|Lemma|Remark|Definition) (?:[A-Z]\.)?\d[\d.]*\d|\w+ [A-Z]\.\d+) of the paper"
)
OWN_NUMBER = re.compile(r'(?<=<p class="admonition-title">)<span class="caption-number">.*?</span>')  # of a box
LABEL = re.compile(r",?\s*\b(?:thm|cor|prop|lem|def|rem|fig|tab|eq|sec|app):[\w-]+")


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


def _retitle(app: Any, doctree: nodes.document) -> None:
    for title in list(doctree.findall(nodes.title)):
        box = title.parent
        if "proof" not in box.get("classes", ()):
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
        known = app.env.proof_list.get(box.get("label", ""), {})
        known["name"] = paper_number(words) or f"{kind} “{words}”"


def _rename_references(app: Any, doctree: nodes.document, docname: str) -> None:
    names = {label: known.get("name") for label, known in getattr(app.env, "proof_list", {}).items()}
    for reference in doctree.findall(nodes.reference):
        place = reference.get("refid") or reference.get("refuri", "").partition("#")[2]
        if names.get(place) and re.fullmatch(r"\w+ [\d.]+", reference.astext()):
            reference[:] = [nodes.inline("", names[place], classes=["std", "std-ref"])]


def _drop_numbers(app: Any, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    if "body" in context:
        context["body"] = OWN_NUMBER.sub("", context["body"])


def setup(app: Any) -> dict[str, bool]:
    """Retitle when a page has been read, rename references once they are resolved, and drop the book's own numbers."""
    app.connect("doctree-read", _retitle)
    app.connect("doctree-resolved", _rename_references, priority=900)
    app.connect("html-page-context", _drop_numbers)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
