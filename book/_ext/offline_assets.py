"""Put MathJax and an archive of the library into the built book, so that no page needs the network."""

from __future__ import annotations

import importlib
import shutil
import zipfile
from pathlib import Path
from typing import Any


def copy_mathjax(target: Path) -> None:
    """Copy the part of MathJax that pages load; the package's own extension would copy all of its 24 MB."""
    package = importlib.import_module("sphinx-mathjax-offline")  # of the book extra
    source = Path(str(package.__file__)).parent / "static" / "mathjax"
    for folder in ("output/chtml/fonts", "input/tex/extensions"):
        shutil.copytree(source / folder, target / folder, dirs_exist_ok=True)
    shutil.copy2(source / "tex-mml-chtml.js", target)


def pack_library(root: Path, target: Path) -> None:
    """Write what ``pip install frhsic_core.zip`` needs; the bytes depend on the files alone."""
    files = [root / name for name in ("pyproject.toml", "README.md", "LICENSE", "CITATION.cff")]
    files += [path for path in (root / "frhsic_core").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(files):
            entry = zipfile.ZipInfo(f"frhsic_core/{path.relative_to(root).as_posix()}")  # dated 1980
            archive.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)


def _add_files(app: Any, exception: Exception | None) -> None:
    if not exception and app.builder.format == "html":
        static = Path(app.outdir) / "_static"
        copy_mathjax(static / "mathjax")
        pack_library(Path(__file__).resolve().parents[2], static / "frhsic_core.zip")


def _drop_thebe(app: Any, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """Remove the script for live code cells, which are not used: it is added twice and then logs an error."""
    named = [(s, f"{s.filename} {s.attributes.get('body')}".lower()) for s in context.get("script_files", [])]
    context["script_files"] = [script for script, name in named if "thebe" not in name]


def setup(app: Any) -> dict[str, bool]:
    """Register both hooks."""
    app.connect("build-finished", _add_files)
    app.connect("html-page-context", _drop_thebe, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
