"""Make the built book self-contained: MathJax and plotly come from installed packages, nothing from the network."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from typing import Any


def _package_folder(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise RuntimeError(f"the package {name!r} is missing: install the book extra, pip install '.[book]'.")
    return Path(spec.origin).parent


def _copy_assets(app: Any, exception: Exception | None) -> None:
    if exception or app.builder.format != "html":
        return
    static = Path(app.outdir) / "_static"
    source = _package_folder("sphinx-mathjax-offline") / "static" / "mathjax"
    target = static / "mathjax"
    target.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source / "tex-mml-chtml.js", target)
    for folder in ("output/chtml/fonts", "input/tex/extensions"):
        shutil.copytree(source / folder, target / folder, dirs_exist_ok=True)
    shutil.copy2(_package_folder("plotly") / "package_data" / "plotly.min.js", static)


def _names_thebe(script: Any) -> bool:
    return (
        "thebe" in f"{getattr(script, 'filename', script)} {getattr(script, 'attributes', {}).get('body', '')}".lower()
    )


def _drop_thebe(app: Any, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """Live code cells are not used; their script is added twice and then logs an error."""
    context["script_files"] = [script for script in context.get("script_files", []) if not _names_thebe(script)]


def setup(app: Any) -> dict[str, bool]:
    """Register both hooks."""
    app.connect("build-finished", _copy_assets)
    app.connect("html-page-context", _drop_thebe, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
