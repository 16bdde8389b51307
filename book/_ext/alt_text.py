"""Give every picture an alternative text: its caption, or else the heading above it."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform


def plain(text: str) -> str:
    r"""Return a caption as it is read aloud, with its formulas free of LaTeX commands.

    Examples
    --------
    >>> plain(r"the bound \sqrt{\mathrm{HSIC}} at \rho=.5 falls like n^{-1/2}")
    'the bound √HSIC at rho=.5 falls like n^-1/2'
    """
    text = re.sub(r"\\(?:mathrm|,|;|!)", "", text.replace("\\sqrt", "√").replace("\\cdot", "·"))
    return " ".join(re.sub(r"[\\{}]", "", text).split())


def words_for(image: nodes.image) -> str:
    """Return the caption of the figure around an image, else the nearest heading above it."""
    node: nodes.Node | None = image
    while node is not None:
        if isinstance(node, nodes.figure):
            for caption in node.findall(nodes.caption):
                return plain(caption.astext())
        if isinstance(node, nodes.section):
            return f"Figure of the section “{next(node.findall(nodes.title)).astext()}”"
        node = node.parent
    return "Figure"


class AlternativeText(SphinxPostTransform):
    """Run after MyST-NB has turned cell outputs into images (its transform has priority 4)."""

    default_priority = 500

    def run(self, **_: Any) -> None:
        """Fill in what is missing; docutils falls back to the file name, which describes nothing."""
        for image in self.document.findall(nodes.image):
            given = str(image.get("alt", "")).strip()
            if not given or given == image.get("uri") or given.lower().endswith((".png", ".svg", ".jpg", ".jpeg")):
                image["alt"] = words_for(image)


def setup(app: Any) -> dict[str, bool]:
    """Register the transform."""
    app.add_post_transform(AlternativeText)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
