"""Points for the paper's authors. Each names its evidence, and its standing follows from that evidence.

```` ```{author-point} Title ````
``:paper:`` where in the paper; ``:claim:`` words of a recorded certificate (several: separated by ``;``); ``:chapter:``
names of chapters that show it; ``:file:`` a test or stored data that shows it; ``:question:`` what is asked while
nothing shows it. A point with evidence in the repository is "shown" and says what was found. Any other is "being
checked" and shows only its question.

The text of a point has at least three paragraphs: what differs, the evidence, and a suggestion or a question. Further
paragraphs are details, which are folded with the certificates.
"""

from __future__ import annotations

from typing import Any

from chapter_facts import ROOT, link
from docutils import nodes
from docutils.parsers.rst import directives
from readable_tables import readable_nodes
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
        certificates = self.certificates()
        places = self.places()
        evidence = certificates or places
        standing = "shown" if evidence else "being checked"
        title = nodes.paragraph("", "", nodes.strong("", self.arguments[0]))
        title += nodes.inline("", standing, classes=["standing"])
        place = nodes.emphasis("", f"In the paper: {self.options['paper']}")
        box = nodes.container("", title, nodes.paragraph("", "", place), is_div=True)
        box["classes"] = ["author-point", standing.replace(" ", "-")]
        if evidence:
            paragraphs = self.parse_content_to_nodes()
            if len(paragraphs) < 3 or not paragraphs[2].astext().startswith(("Suggestion:", "Question:")):
                raise self.error(
                    f"The third paragraph of “{self.arguments[0]}” must start with Suggestion: or Question:."
                )
            for label, paragraph in zip(("What differs. ", "Evidence. "), paragraphs, strict=False):
                paragraph.insert(0, nodes.strong("", label))
            box += paragraphs[:3]
            if places:
                box += nodes.paragraph("", "", nodes.Text("Shown in: "), *_separated(places))
            box += self.folded(paragraphs[3:], certificates)
        elif "question" in self.options:
            box += nodes.paragraph("", "", nodes.strong("", "We ask: "), nodes.Text(self.options["question"]))
        else:
            raise self.error(f"The point “{self.arguments[0]}” has no evidence yet. Give it a :question:.")
        return [box]

    def certificates(self) -> list[str]:
        """Return one line for each recorded certificate that the point names."""
        return [
            f"{row['statement']}, “{row['claim']}”: {row['verdict']} ({row['evidence']})"
            for words in filter(None, map(str.strip, self.options.get("claim", "").split(";")))
            for row in recorded()
            if words in row["claim"]
        ]

    def places(self) -> list[nodes.Node]:
        """Return the chapters and the files that exist."""
        documents = [f"notebooks/{name}" for name in self.options.get("chapter", "").split()]
        found = [link(document, self.env.docname) for document in documents if document in self.env.found_docs]
        files = self.options.get("file", "").split()
        return found + [nodes.literal(name, name) for name in files if (ROOT / name).is_file()]

    def folded(self, details: list[nodes.Node], certificates: list[str]) -> list[nodes.Node]:
        """Return the details and the certificates in a box that a reader can open."""
        count = f"{len(certificates)} certificate{'s' * (len(certificates) > 1)}"
        title = " and ".join(["Details"] * bool(details) + [count] * bool(certificates))
        if not title:
            return []
        (box,) = self.parse_text_to_nodes(f":::{{dropdown}} {title}\n:::")
        box += details
        if certificates:
            items = [nodes.list_item("", nodes.paragraph("", "", *readable_nodes(line))) for line in certificates]
            box += nodes.bullet_list("", *items)
        return [box]


def _separated(parts: list[nodes.Node]) -> list[nodes.Node]:
    """Return the parts with a semicolon between them."""
    joined = [node for part in parts for node in (nodes.Text("; "), part)]
    return joined[1:]


def setup(app: Any) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("author-point", AuthorPoint)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
