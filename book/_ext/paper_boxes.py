"""Give every statement one number, the paper's: in its box and in references to it.

References to a box titled ``Theorem 4.5 of the paper`` read "Theorem 4.5". Boxes of our own have no
number, because readers would take it for the paper's. They show their kind and title.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes

FROM_PAPER = re.compile(r"\b(?:of|in) the paper\b|\bthe paper['’]s\b", re.IGNORECASE)
ONE_NUMBER = re.compile(
    r"^((?:Theorem|Proposition|Corollary|Lemma|Remark|Definition) (?:[A-Z]\.)?\d[\d.]*\d|\w+ [A-Z]\.\d+) of the paper"
)
OWN_NUMBER = re.compile(
    r'(?<=<p class="admonition-title">)<span class="caption-number">.*?</span>'
)  # of a box


def paper_number(title: str) -> str | None:
    """Return the paper's number of a box that restates one numbered statement, else None.

    Examples
    --------
    >>> paper_number("Lemma B.2 of the paper, and its correction"), paper_number("Figures 3 and 4 of the paper")
    ('Lemma B.2', None)
    """
    return match[1] if (match := ONE_NUMBER.match(title)) else None


def _retitle(app: Any, doctree: nodes.document) -> None:
    for title in list(doctree.findall(nodes.title)):
        box = title.parent
        if "proof" not in box.get("classes", ()):
            continue
        words = title.astext().strip()
        kind = str(box.get("realtype", "box")).title()
        from_paper = bool(FROM_PAPER.search(words))
        box["classes"].append("from-paper" if from_paper else "our-own")
        if not from_paper and kind != "Remark":
            title.insert(0, nodes.Text(f"{kind}: "))
        known = app.env.proof_list.get(box.get("label", ""), {})
        known["name"] = paper_number(words) or f"{kind} “{words}”"


def _rename_references(app: Any, doctree: nodes.document, docname: str) -> None:
    names = {
        label: known.get("name") for label, known in getattr(app.env, "proof_list", {}).items()
    }
    for reference in doctree.findall(nodes.reference):
        place = reference.get("refid") or reference.get("refuri", "").partition("#")[2]
        if names.get(place) and re.fullmatch(r"\w+ [\d.]+", reference.astext()):
            reference[:] = [nodes.inline("", names[place], classes=["std", "std-ref"])]


def _drop_numbers(
    app: Any, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    if "body" in context:
        context["body"] = OWN_NUMBER.sub("", context["body"])


def setup(app: Any) -> dict[str, bool]:
    """Retitle when a page has been read, rename references once they are resolved, and drop the book's own numbers."""
    app.connect("doctree-read", _retitle)
    app.connect("doctree-resolved", _rename_references, priority=900)
    app.connect("html-page-context", _drop_numbers)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
