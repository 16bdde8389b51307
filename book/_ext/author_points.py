"""Points for the paper's authors: each states its evidence, and its standing follows from that evidence.

```` ```{author-point} Title ````
``:paper:`` where in the paper; ``:claim:`` text of a recorded certificate (several: separated by ``;``); ``:chapter:``
names of chapters that show it; ``:file:`` a test or stored data that shows it; ``:question:`` what is asked while
nothing shows it. A point whose evidence is in the repository is "shown" and says what was found; any other is "being
checked" and is only its question.
"""

from __future__ import annotations

from typing import Any

from chapter_facts import link
from docutils import nodes
from docutils.parsers.rst import directives
from live_values import ROOT, verdict_rows
from sphinx.util.docutils import SphinxDirective


def _split(text: str, separator: str) -> list[str]:
    return [part.strip() for part in text.split(separator) if part.strip()]


class AuthorPoint(SphinxDirective):
    """One point, its place in the paper, its evidence and its standing."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True
    option_spec = {  # noqa: RUF012  (docutils declares it so)
        "paper": directives.unchanged_required,
        "claim": directives.unchanged,
        "chapter": directives.unchanged,
        "file": directives.unchanged,
        "question": directives.unchanged,
    }

    def run(self) -> list[nodes.Node]:
        """Return a box whose class says the standing."""
        self.env.note_reread()
        evidence = self.certificates() + self.chapters() + self.files()
        standing = "shown" if evidence else "being checked"
        box = nodes.container("", classes=["author-point", standing.replace(" ", "-")], is_div=True)
        title = nodes.paragraph("", "", classes=["author-point-title"])
        title += nodes.strong("", self.arguments[0])
        title += nodes.inline("", f" {standing}", classes=["standing"])
        box += title
        box += nodes.paragraph("", "", nodes.emphasis("", f"In the paper: {self.options['paper']}"))
        if not evidence:
            words = self.options.get("question")
            if not words:
                raise self.error(f"the point “{self.arguments[0]}” has no evidence yet: give it a :question:.")
            box += nodes.paragraph("", "", nodes.strong("", "We ask: "), nodes.Text(words))
            return [box]
        box += self.parse_content_to_nodes()
        box += nodes.paragraph("", "", nodes.strong("", "Evidence"))
        box += nodes.bullet_list("", *[nodes.list_item("", nodes.paragraph("", "", part)) for part in evidence])
        return [box]

    def certificates(self) -> list[nodes.Node]:
        """Certificates on record whose claim holds the given words."""
        rows = verdict_rows()
        found = []
        for words in _split(self.options.get("claim", ""), ";"):
            for row in rows:
                if words in row["claim"]:
                    text = f"certificate of {row['statement']}, “{row['claim']}”: {row['verdict']} ({row['evidence']})"
                    found.append(nodes.inline(text, text))
        return found

    def chapters(self) -> list[nodes.Node]:
        """Links to the named chapters that the book has."""
        names = _split(self.options.get("chapter", ""), " ")
        documents = [f"notebooks/{name}" for name in names]
        return [link(document, self.env.docname) for document in documents if document in self.env.found_docs]

    def files(self) -> list[nodes.Node]:
        """Tests and stored data, by name."""
        names = _split(self.options.get("file", ""), " ")
        return [nodes.literal(name, name) for name in names if (ROOT / name).is_file()]


def setup(app: Any) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("author-point", AuthorPoint)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
