"""Points for the paper's authors. Each names its evidence, and its standing follows from that evidence.

```` ```{author-point} Title ````
``:paper:`` where in the paper; ``:claim:`` words of a recorded certificate (several: separated by ``;``); ``:chapter:``
names of chapters that show it; ``:file:`` a test or stored data that shows it; ``:question:`` what is asked while
nothing shows it. A point with evidence in the repository is "shown" and says what was found. Any other is "being
checked" and shows only its question.
"""

from __future__ import annotations

from typing import Any

from chapter_facts import ROOT, link
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

from frhsic_core.paper.claims.stored import recorded


class AuthorPoint(SphinxDirective):
    """One point, its place in the paper, its evidence and its standing."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True
    option_spec = dict.fromkeys(("paper", "claim", "chapter", "file", "question"), directives.unchanged_required)

    def run(self) -> list[nodes.Node]:
        """Return a box whose class says the standing."""
        self.env.note_reread()
        evidence = self.evidence()
        standing = "shown" if evidence else "being checked"
        title = nodes.paragraph("", "", nodes.strong("", self.arguments[0]))
        title += nodes.inline("", standing, classes=["standing"])
        place = nodes.emphasis("", f"In the paper: {self.options['paper']}")
        box = nodes.container("", title, nodes.paragraph("", "", place), is_div=True)
        box["classes"] = ["author-point", standing.replace(" ", "-")]
        if evidence:
            box += self.parse_content_to_nodes()
            box += nodes.paragraph("", "", nodes.strong("", "Evidence"))
            box += nodes.bullet_list("", *[nodes.list_item("", nodes.paragraph("", "", part)) for part in evidence])
        elif "question" in self.options:
            box += nodes.paragraph("", "", nodes.strong("", "We ask: "), nodes.Text(self.options["question"]))
        else:
            raise self.error(f"The point “{self.arguments[0]}” has no evidence yet. Give it a :question:.")
        return [box]

    def evidence(self) -> list[nodes.Node]:
        """Return the recorded certificates, the chapters and the files that exist."""
        found: list[nodes.Node] = []
        for words in filter(None, map(str.strip, self.options.get("claim", "").split(";"))):
            for row in recorded():
                if words in row["claim"]:
                    text = f"certificate of {row['statement']}, “{row['claim']}”: {row['verdict']} ({row['evidence']})"
                    found.append(nodes.Text(text))
        documents = [f"notebooks/{name}" for name in self.options.get("chapter", "").split()]
        found += [link(document, self.env.docname) for document in documents if document in self.env.found_docs]
        files = self.options.get("file", "").split()
        return found + [nodes.literal(name, name) for name in files if (ROOT / name).is_file()]


def setup(app: Any) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("author-point", AuthorPoint)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
