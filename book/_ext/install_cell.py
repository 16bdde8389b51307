"""The hidden first cell of every executed notebook: installs the package where it is missing, else does nothing.

On Colab only the notebook is there; on Binder the repository is, perhaps not installed; in a checkout both are.
The cell finds out which, points ``FRHSIC_BOOK`` to the stored results and goes to the folder of the notebooks. It is
added when a notebook is executed (``run_notebooks.py``), not kept in the text: it needs the repository's address, which
has one place, ``_config.yml``.
"""

from __future__ import annotations

from pathlib import Path

import nbformat
import yaml

ROOT = Path(__file__).resolve().parents[2]

# A function, so that no chapter comes to lean on a name that this cell happens to import.
TEMPLATE = """\
# @title Install the package where it is missing (Colab, Binder); elsewhere this does nothing.
def install_if_missing(address={address!r}, branch={branch!r}):
    import importlib.util
    import os
    import pathlib
    import subprocess
    import sys

    here = pathlib.Path.cwd()
    root = here.parent if (here.parent / "frhsic_core").is_dir() else here / "frhsic-core"
    if importlib.util.find_spec("frhsic_core") is None:
        if not root.is_dir() and address:
            subprocess.run(["git", "clone", "--quiet", "--depth=1", "--branch", branch, address, str(root)], check=True)
        if root.is_dir():
            subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", f"{{root}}[notebooks]"], check=True)
            importlib.invalidate_caches()
        else:
            print("frhsic_core is missing: get this book's repository, run `pip install '.[notebooks]'` in it, "
                  "and open this notebook from its notebooks folder.")
    if (root / "book" / "results").is_dir():
        os.environ.setdefault("FRHSIC_BOOK", str(root / "book"))
        os.chdir(root / "notebooks")


install_if_missing()"""


def public_address(config: Path = ROOT / "_config.yml") -> tuple[str, str]:
    """Return the repository's public address (empty while there is none) and its branch."""
    found = yaml.safe_load(config.read_text(encoding="utf-8"))["repository"]
    return found["url"], found["branch"]


def install_cell(address: str, branch: str) -> nbformat.NotebookNode:
    """Return the cell, run and without output; no page shows it, JupyterLab and Colab fold it."""
    return nbformat.v4.new_code_cell(
        TEMPLATE.format(address=address, branch=branch),
        id="install-if-missing",
        execution_count=1,
        metadata={"tags": ["remove-cell"], "jupyter": {"source_hidden": True}, "cellView": "form"},
    )
