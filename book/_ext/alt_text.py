"""Give every figure without an alternative text its caption as one. A test finds pictures that have neither."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes


def plain(text: str) -> str:
    r"""Return a caption as it is read aloud, with its formulas free of LaTeX commands.

    Examples
    --------
    >>> plain(r"the bound \sqrt{\mathrm{HSIC}} at \rho=.5 falls like n^{-1/2}")
    'the bound √HSIC at rho=.5 falls like n^-1/2'
    """
    text = re.sub(r"\\(?:mathrm|,|;|!)", "", text.replace("\\sqrt", "√").replace("\\cdot", "·"))
    return " ".join(re.sub(r"[\\{}]", "", text).split())


def _describe(app: Any, doctree: nodes.document, docname: str) -> None:
    """Fill in what is missing; docutils falls back to the file name, which describes nothing."""
    for figure in doctree.findall(nodes.figure):
        caption = " ".join(caption.astext() for caption in figure.findall(nodes.caption))
        for image in figure.findall(nodes.image):
            image["alt"] = image.get("alt") or plain(caption)


def setup(app: Any) -> dict[str, bool]:
    """Describe figures once MyST-NB has turned the outputs of cells into images."""
    app.connect("doctree-resolved", _describe)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
