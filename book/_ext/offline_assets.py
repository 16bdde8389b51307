"""Put MathJax and archives into the built book, so that neither a page nor a chapter needs the repository."""

from __future__ import annotations

import importlib
import shutil
import zipfile
from pathlib import Path
from typing import Any

from solutions import without_solutions

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ("pyproject.toml", "README.md", "LICENSE", "CITATION.cff", "frhsic_core")
# What every cell of every chapter needs, and the homework.
STORED = ("book/results", "book/claims", "book/data_summaries", "book/proofs", "book/_static/credit_model.py")
CHAPTERS = (*LIBRARY, "notebooks", "book/homework.md", *STORED)


def copy_mathjax(target: Path) -> None:
    """Copy the part of MathJax that pages load; the package's own extension would copy all of its 24 MB."""
    package = importlib.import_module("sphinx-mathjax-offline")  # of the book extra
    source = Path(str(package.__file__)).parent / "static" / "mathjax"
    for folder in ("output/chtml/fonts", "input/tex/extensions"):
        shutil.copytree(source / folder, target / folder, dirs_exist_ok=True)
    shutil.copy2(source / "tex-mml-chtml.js", target)


def pack(root: Path, names: tuple[str, ...], target: Path) -> None:
    """Write files and folders of the repository to an archive; its bytes depend on them alone. Solutions are left out.

    An unpacked archive has one folder, which ``pip install`` takes.
    """
    found = [path for name in names for path in ((root / name).rglob("*") if (root / name).is_dir() else [root / name])]
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(path for path in found if path.is_file() and "__pycache__" not in path.parts):
            inside = path.relative_to(root).as_posix()
            content = without_solutions(path) if path.suffix in (".ipynb", ".md") else path.read_bytes()
            entry = zipfile.ZipInfo(f"{target.stem}/{inside}")  # dated 1980
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED)


def _add_files(app: Any, exception: Exception | None) -> None:
    if not exception and app.builder.format == "html":
        static = Path(app.outdir) / "_static"
        copy_mathjax(static / "mathjax")
        pack(ROOT, LIBRARY, static / "frhsic_core.zip")
        pack(ROOT, CHAPTERS, static / "chapters.zip")


def _drop_thebe(app: Any, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """Remove the script for live code cells, which are not used: it is added twice and then logs an error."""
    named = [(s, f"{s.filename} {s.attributes.get('body')}".lower()) for s in context.get("script_files", [])]
    context["script_files"] = [script for script, name in named if "thebe" not in name]


def setup(app: Any) -> dict[str, bool]:
    """Register both hooks."""
    app.connect("build-finished", _add_files)
    app.connect("html-page-context", _drop_thebe, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
