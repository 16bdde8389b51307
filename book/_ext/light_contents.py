"""Make the list of contents beside each page from titles alone, which takes a tenth of the time.

Sphinx copies every heading and every documented name of the book for every page, and then keeps only the titles. Here
they are removed once. The pages stay the same.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from docutils import nodes
from sphinx import addnodes


def titles(toc: nodes.Element) -> nodes.Element:
    """Return the contents of a document with its titles and the lists of further documents, without its headings."""
    copy = toc.deepcopy()
    for entry in copy.children:
        if isinstance(entry, nodes.list_item) and len(entry) > 1:
            below = list(entry.findall(addnodes.toctree))
            entry[1].children = []
            entry[1].extend(below)
            if not below:
                entry.pop(1)
    return copy


def setup(app: Any) -> dict[str, bool]:
    """Let every page read the titles in place of the whole contents."""

    @cache
    def all_titles() -> dict[str, nodes.Element]:
        return {name: titles(toc) for name, toc in app.env.tocs.items()}

    def lighten(app: Any, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
        whole = context["toctree"]

        def toctree(**options: Any) -> str:
            if not options.get("titles_only"):
                return whole(**options)
            tocs = app.env.tocs
            app.env.tocs = all_titles()
            try:
                return whole(**options)
            finally:
                app.env.tocs = tocs

        context["toctree"] = toctree

    app.connect("html-page-context", lighten)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
