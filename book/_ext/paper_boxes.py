"""Show the paper's number first, its label in small and this book's number last in boxes that restate the paper.

Chapters write a plain title such as ``Theorem 4.5 of the paper, cor:hsic-mmd-equivalence``. References to such a box
read "Theorem 4.5" too.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes

FROM_PAPER = re.compile(r"\bof the paper\b|\bthe paper's\b")
ONE_NUMBER = re.compile(
    r"^((?:Theorem|Proposition|Corollary|Lemma|Remark|Definition) (?:[A-Z]\.)?\d[\d.]*\d|\w+ [A-Z]\.\d+) of the paper"
)
LABEL = re.compile(r",? ?\b((?:thm|cor|prop|lem|def|rem|fig|tab|eq|sec|app):[\w-]+)")


def parts(title: str) -> list[tuple[str, str]]:
    """Split a title into ``("words", …)`` and ``("label", …)``.

    Examples
    --------
    >>> parts("Table 1 of the paper, tab:real_data, and its reading")
    [('words', 'Table 1 of the paper'), ('label', 'tab:real_data'), ('words', ', and its reading')]
    """
    return [("label" if number % 2 else "words", piece) for number, piece in enumerate(LABEL.split(title)) if piece]


def paper_number(title: str) -> str | None:
    """Return the paper's number of a box that restates one numbered statement, else None."""
    return match[1] if (match := ONE_NUMBER.match(title)) else None


def _retitle(app: Any, doctree: nodes.document) -> None:
    for box in doctree.findall(lambda node: "proof" in node.get("classes", ()) if hasattr(node, "get") else False):
        title = next(iter(box.findall(nodes.title)), None)
        if title is None or not FROM_PAPER.search(title.astext()):
            continue
        words = re.sub(r"^\s*\((.*)\)\s*$", r"\1", title.astext(), flags=re.DOTALL)
        title.clear()
        for kind, text in parts(words):
            title += nodes.inline(text, text, classes=["paper-label"]) if kind == "label" else nodes.Text(text)
        box["classes"].append("from-paper")
        known = app.env.proof_list.get(box.get("label", ""))
        if known is not None:
            known["paper"] = paper_number(words)


def _rename_references(app: Any, doctree: nodes.document, docname: str) -> None:
    numbers = {label: known.get("paper") for label, known in getattr(app.env, "proof_list", {}).items()}
    for reference in doctree.findall(nodes.reference):
        place = reference.get("refid") or reference.get("refuri", "").partition("#")[2]
        if numbers.get(place) and re.fullmatch(r"\w+ [\d.]+", reference.astext()):
            reference[:] = [nodes.inline("", numbers[place], classes=["std", "std-ref"])]


def setup(app: Any) -> dict[str, bool]:
    """Retitle when a page has been read, rename references once they are resolved."""
    app.connect("doctree-read", _retitle)
    app.connect("doctree-resolved", _rename_references, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
