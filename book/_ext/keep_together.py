"""Keep punctuation on the line of the formula that it belongs to.

A browser may break a line between a formula and the comma after it, or between a bracket and the formula that it opens,
because a formula is a box to it.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes

AFTER = re.compile(r"^[^\s\w]+|^-\w+")  # ",", ").", and the "-th" of a number
BEFORE = re.compile(r"[(\[“\"‘']+$")


def join_punctuation(parent: nodes.Element) -> None:
    """Wrap each formula among the children with the punctuation that touches it."""
    for formula in [child for child in parent.children if isinstance(child, nodes.math)]:
        place = parent.index(formula)
        pieces: list[nodes.Node] = [formula]
        following = parent[place + 1] if place + 1 < len(parent) else None
        if isinstance(following, nodes.Text) and (match := AFTER.match(following)):
            pieces.append(nodes.Text(match[0]))
            parent[place + 1] = nodes.Text(following[match.end() :])
        previous = parent[place - 1] if place else None
        if isinstance(previous, nodes.Text) and (match := BEFORE.search(previous)):
            pieces.insert(0, nodes.Text(match[0]))
            parent[place - 1] = nodes.Text(previous[: match.start()])
        if len(pieces) > 1:
            parent[place] = nodes.inline("", "", *[piece.copy() for piece in pieces], classes=["together"])
            parent[place][pieces.index(formula)] = formula


def _join(app: Any, doctree: nodes.document, docname: str) -> None:
    if app.builder.format == "html":
        for parent in {formula.parent for formula in doctree.findall(nodes.math)}:
            join_punctuation(parent)


def setup(app: Any) -> dict[str, bool]:
    """Join when the references of a page are resolved."""
    app.connect("doctree-resolved", _join)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
