"""Copy MathJax into the built book, so that no page needs the network."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from typing import Any


def _copy_mathjax(app: Any, exception: Exception | None) -> None:
    """Copy the part of MathJax that pages load; the package's own extension would copy all of its 24 MB."""
    if exception or app.builder.format != "html":
        return
    spec = importlib.util.find_spec("sphinx-mathjax-offline")
    if spec is None or spec.origin is None:
        raise RuntimeError("sphinx-mathjax-offline is missing. Install the book extra: pip install '.[book]'.")
    source = Path(spec.origin).parent / "static" / "mathjax"
    target = Path(app.outdir) / "_static" / "mathjax"
    for folder in ("output/chtml/fonts", "input/tex/extensions"):
        shutil.copytree(source / folder, target / folder, dirs_exist_ok=True)
    shutil.copy2(source / "tex-mml-chtml.js", target)


def _drop_thebe(app: Any, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """Remove the script for live code cells, which are not used: it is added twice and then logs an error."""
    context["script_files"] = [
        script
        for script in context.get("script_files", [])
        if "thebe" not in f"{script.filename} {script.attributes.get('body')}".lower()
    ]


def setup(app: Any) -> dict[str, bool]:
    """Register both hooks."""
    app.connect("build-finished", _copy_mathjax)
    app.connect("html-page-context", _drop_thebe, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
