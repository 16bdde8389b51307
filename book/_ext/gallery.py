"""All figures of the book on one page: ```` ```{gallery} ```` shows small pictures that link to their chapters.

Pictures and captions are those of the executed notebooks. The small pictures are drawn when the book is built.
"""

from __future__ import annotations

import base64
import io
import itertools
import json
import re
from pathlib import Path
from typing import Any

from alt_text import plain
from docutils import nodes
from PIL import Image
from solutions import chapters
from sphinx import addnodes
from sphinx.util.docutils import SphinxDirective

FOLDER = Path("book", "generated", "gallery")
WIDTH = 400  # pixels: a column of the gallery at twice its size on a phone
COLORS = 48
SHORTEST = 20  # characters of a sentence that describes a picture
LONG_ENOUGH = 36  # characters from which the words for an axis describe the picture
AXIS = re.compile(r"(Horizontal|Vertical): |The (horizontal|vertical) ax[ei]s .*")


class thumbnail(nodes.General, nodes.Element):
    """A picture that becomes a link when addresses are known."""


def link(document: str, here: str) -> nodes.Node:
    """Return a link that shows the title of a page."""
    words = nodes.inline(document, document, classes=["xref", "doc"])
    place = {"refdomain": "std", "reftype": "doc", "reftarget": f"/{document}", "refdoc": here}
    return addnodes.pending_xref("", words, refexplicit=False, refwarn=True, **place)


def figures(path: Path) -> list[tuple[str, str, bytes]]:
    """Return the name, the caption and the picture of every figure of a notebook."""
    found = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        figure = cell["metadata"].get("mystnb", {}).get("figure", {})
        pictures = [data for output in cell.get("outputs", ()) if (data := output.get("data", {}).get("image/png"))]
        if figure.get("name") and pictures:
            picture = base64.b64decode("".join(pictures[0]))
            found.append((figure["name"], " ".join(figure["caption"].split()), picture))
    return found


def first_sentence(caption: str) -> str:
    """Return the first sentence of a caption that says what the picture shows.

    A sentence that only names an axis is skipped. One that describes what is measured loses the name of its axis. A
    first sentence that is only a name is kept with the next one.

    Examples
    --------
    >>> first_sentence("HSIC of the pair at $\\\\rho=.5$. The band is one standard deviation.")
    'HSIC of the pair at $\\\\rho=.5$.'
    >>> first_sentence("COMPAS. Accuracy against GDP. Bars are deviations.")
    'COMPAS. Accuracy against GDP.'
    >>> first_sentence("Horizontal: the sample size n. Vertical: the mean absolute error over 500 samples. It falls.")
    'The mean absolute error over 500 samples.'
    """
    sentences = re.split(r"(?<=[.?!])\s+(?=[A-Z$*“\"])", caption)
    leading = list(itertools.takewhile(AXIS.match, sentences))
    described = max((AXIS.sub("", sentence, count=1) for sentence in leading), key=len, default="")
    if len(described) >= LONG_ENOUGH:
        return described if described[1:2].isupper() else described[0].upper() + described[1:]
    first, *others = [sentence for sentence in sentences if not AXIS.match(sentence)] or sentences
    return first if len(first) >= SHORTEST or not others else f"{first} {others[0]}"


def shrink(picture: bytes, target: Path) -> None:
    """Write a small copy with few colors, which is enough for lines and text."""
    with Image.open(io.BytesIO(picture)) as image:
        flat = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image.convert("RGBA")).convert("RGB")
    small = flat.resize((WIDTH, max(1, round(flat.height * WIDTH / flat.width))), Image.Resampling.LANCZOS)
    target.parent.mkdir(parents=True, exist_ok=True)
    small.quantize(COLORS).save(target, optimize=True)


class Gallery(SphinxDirective):
    """Small pictures of all figures, by chapter."""

    def run(self) -> list[nodes.Node]:
        """Return one heading and one grid for each chapter with figures."""
        self.env.note_reread()
        found: list[nodes.Node] = []
        for document in chapters(self.env.app):
            cards = [self.card(document, *figure) for figure in figures(Path(self.env.doc2path(document)))]
            if cards:
                found.append(nodes.rubric("", "", link(document, self.env.docname)))
                found.append(nodes.container("", *cards, classes=["gallery"], is_div=True))
        return found

    def card(self, document: str, name: str, caption: str, picture: bytes) -> nodes.Node:
        """Return a picture with the first sentence of its caption."""
        file = FOLDER / f"{name}.png"
        shrink(picture, Path(self.env.srcdir, file))
        image = nodes.image(uri=f"/{file.as_posix()}", alt=plain(first_sentence(caption).replace("$", "")))
        words = self.parse_text_to_nodes(first_sentence(caption))
        return nodes.container("", thumbnail("", image, docname=document, label=name), *words, is_div=True)


def _link_thumbnails(app: Any, doctree: nodes.document, docname: str) -> None:
    for node in list(doctree.findall(thumbnail)):
        address = app.builder.get_relative_uri(docname, node["docname"])
        reference = nodes.reference("", "", *node.children, refuri=f"{address}#{node['label']}", internal=True)
        node.replace_self(nodes.paragraph("", "", reference))


def setup(app: Any) -> dict[str, bool]:
    """Register the directive."""
    app.add_node(thumbnail)
    app.add_directive("gallery", Gallery)
    app.connect("doctree-resolved", _link_thumbnails)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
