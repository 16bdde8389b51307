"""All figures of the book on one page: ```` ```{gallery} ```` links small pictures to chapters.

Pictures and captions are those of the executed notebooks. Each can be downloaded at its full size,
for slides. The small pictures are drawn when the book is built.
"""

from __future__ import annotations

import base64
import io
import json
import re
from pathlib import Path
from typing import Any

from alt_text import plain
from docutils import nodes
from PIL import Image
from solutions import chapters
from sphinx.util.docutils import SphinxDirective

FOLDER = Path("book", "generated", "gallery")
WIDTH = 400  # pixels: a column of the gallery at twice its size on a phone
COLORS = 48
SHORTEST = 20  # characters of a sentence that describes a picture
CARD = """:::{{container}}
[![{alt}](/{folder}/{name}-small.png)](#{name})

{words} {{download}}`PNG </{folder}/{name}.png>`
:::
"""


def figures(path: Path) -> list[tuple[str, str, bytes]]:
    """Return the name, the caption and the picture of every figure of a notebook.

    A page without code has none.
    """
    if path.suffix != ".ipynb":
        return []
    found = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        figure = cell["metadata"].get("mystnb", {}).get("figure", {})
        outputs = [output.get("data", {}) for output in cell.get("outputs", ())]
        pictures = [data["image/png"] for data in outputs if data.get("image/png")]
        if figure.get("name") and pictures:
            picture = base64.b64decode("".join(pictures[0]))
            caption = " ".join(figure["caption"].split())
            found.append((figure["name"], caption, picture))
    return found


def first_sentence(caption: str) -> str:
    """Return the first sentence of a caption; one that is only a name is kept with the next one.

    Examples
    --------
    >>> first_sentence("Where $n^{-1/2}$ holds. The band is one standard deviation.")
    'Where $n^{-1/2}$ holds.'
    >>> first_sentence("COMPAS. Accuracy against GDP. Bars are deviations.")
    'COMPAS. Accuracy against GDP.'
    """
    first, *others = re.split(r"(?<=[.?!])\s+(?=[A-Z$*“\"])", caption)
    if len(first) < SHORTEST and others:
        return f"{first} {others[0]}"
    return first


def shrink(picture: bytes, target: Path) -> None:
    """Write a small copy with few colors, which is enough for lines and text."""
    with Image.open(io.BytesIO(picture)) as image:
        flat = image.convert("RGB")
    height = max(1, round(flat.height * WIDTH / flat.width))
    small = flat.resize((WIDTH, height), Image.Resampling.LANCZOS)
    small.quantize(COLORS).save(target, optimize=True)


class Gallery(SphinxDirective):
    """Small pictures of all figures, by chapter."""

    def run(self) -> list[nodes.Node]:
        """Return one heading and one grid for each chapter with figures."""
        self.env.note_reread()
        folder = Path(self.env.srcdir, FOLDER)
        folder.mkdir(parents=True, exist_ok=True)
        page = ""
        for document in chapters(self.env.app):
            cards = ""
            for name, caption, picture in figures(Path(self.env.doc2path(document))):
                (folder / f"{name}.png").write_bytes(picture)
                shrink(picture, folder / f"{name}-small.png")
                words = first_sentence(caption)
                alt = plain(words.replace("$", ""))
                cards += CARD.format(alt=alt, words=words, name=name, folder=FOLDER.as_posix())
            if cards:
                page += f"**{{doc}}`/{document}`**\n\n::::{{container}} gallery\n{cards}::::\n\n"
        return self.parse_text_to_nodes(page)


def setup(app: Any) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("gallery", Gallery)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
