"""Copy MathJax, so that pages and slides show formulas without a network."""

from __future__ import annotations

import importlib
import shutil
from pathlib import Path


def copy_mathjax(target: Path) -> None:
    """Copy the part of MathJax that pages load; the package's own extension would copy all of its 24 MB."""
    package = importlib.import_module("sphinx-mathjax-offline")  # of the book extra
    source = Path(str(package.__file__)).parent / "static" / "mathjax"
    for folder in ("output/chtml/fonts", "input/tex/extensions"):
        shutil.copytree(source / folder, target / folder, dirs_exist_ok=True)
    shutil.copy2(source / "tex-mml-chtml.js", target)
