"""Give every figure without an alternative text its caption as one. A test finds pictures that have neither."""

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


class AlternativeText(SphinxPostTransform):
    """Run after MyST-NB has turned cell outputs into images (its transform has priority 4)."""

    default_priority = 500

    def run(self, **_: Any) -> None:
        """Fill in what is missing; docutils falls back to the file name, which describes nothing."""
        for figure in self.document.findall(nodes.figure):
            caption = " ".join(caption.astext() for caption in figure.findall(nodes.caption))
            for image in figure.findall(nodes.image):
                image["alt"] = image.get("alt") or plain(caption)


def setup(app: Any) -> dict[str, bool]:
    """Register the transform."""
    app.add_post_transform(AlternativeText)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
