"""Execute text notebooks and write the committed ``.ipynb`` beside each.

The same code gives the same bytes.

Usage: ``python book/_ext/run_notebooks.py [--jobs N] [notebooks/NAME.md ...]`` (all of them when
none is named). ``--refresh`` executes nothing: it updates the prose and the hidden install cell,
keeps the outputs, and refuses a notebook whose code has changed.

``jupytext --sync`` takes whichever file is newer and ``--update --execute`` keeps old outputs, so
neither is used.

A hidden first cell installs the package where it is missing, else it does nothing. On Colab only
the notebook is there; on Binder the repository is, perhaps not installed; in a checkout both are.
The cell finds out which, points ``FRHSIC_BOOK`` to the stored results and goes to the folder of the
notebooks. It is added here, not kept in the text: it needs the repository's address, which has one
place, ``_config.yml``.
"""

from __future__ import annotations

import argparse
import base64
import io
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")
os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")

import jupytext
import nbformat
import yaml
from nbclient import NotebookClient
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from frhsic_core._atomic_files import write_atomically

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


def read(text: Path) -> nbformat.NotebookNode:
    """Return a text notebook with the install cell first and with the same ids each time."""
    notebook = jupytext.read(text)
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number:03d}"
    notebook.cells.insert(0, install_cell(*public_address()))
    return notebook


def execute(text: Path) -> None:
    """Run one text notebook from its folder and write the executed file."""
    notebook = read(text)
    if "kernelspec" not in notebook.metadata:
        raise ValueError(
            f"{text.name} has no kernelspec. Add 'kernelspec: {{name: python3, ...}}' to its front "
            "matter."
        )
    if not any(cell.cell_type == "code" for cell in notebook.cells[1:]):
        # A backtick in the title of a fenced block ends the fence early and swallows the rest of
        # the page.
        raise ValueError(f"{text.name} has no code cell. Look for a fence that never closes.")
    NotebookClient(
        notebook,
        timeout=600,
        kernel_name="python3",
        record_timing=False,
        store_widget_state=False,
        coalesce_streams=True,
        extra_arguments=["--InlineBackend.figure_format=retina"],  # twice the size on the page
        resources={"metadata": {"path": str(text.parent)}},
    ).execute()
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if "image/png" in data:
                data["image/png"] = with_palette(data["image/png"])
    notebook.metadata = nbformat.from_dict(
        {"kernelspec": notebook.metadata["kernelspec"], "language_info": {"name": "python"}}
    )
    write(notebook, text.with_suffix(".ipynb"))


def with_palette(picture: str) -> str:
    """Return a PNG in base64 with at most 256 colors, which makes it half as large."""
    file = io.BytesIO()
    info = PngInfo()
    with Image.open(io.BytesIO(base64.b64decode(picture))) as image:
        white = Image.new("RGBA", image.size, "white")
        flat = Image.alpha_composite(white, image.convert("RGBA")).convert("RGB")
        version = image.info.get("Software")  # of matplotlib, for a check of the figure
        if version:
            info.add_text("Software", version)
    flat.quantize(256, dither=Image.Dither.NONE).save(file, "PNG", optimize=True, pnginfo=info)
    return base64.b64encode(file.getvalue()).decode()


def code_cells(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    """Return the cells of code without the install cell."""
    return [cell for cell in notebook.cells[1:] if cell.cell_type == "code"]


def refresh(text: Path) -> None:
    """Take over what is not code (prose, install cell), keep code and outputs."""
    target = text.with_suffix(".ipynb")
    old = nbformat.read(target, as_version=4)
    new = read(text)
    before = nbformat.writes(old)
    executed = code_cells(old)
    changed = code_cells(new)
    if [cell.source for cell in changed] != [cell.source for cell in executed]:
        raise ValueError(
            f"{text.name}: its code has changed since it was executed. Run it without --refresh."
        )
    for cell, same in zip(changed, executed, strict=True):
        cell.outputs = same.outputs
        cell.execution_count = same.execution_count
    old.cells = new.cells
    if nbformat.writes(old) != before:
        write(old, target)


def write(notebook: nbformat.NotebookNode, target: Path) -> None:
    """Replace a file at once, so that an interrupted run leaves the old file whole."""
    write_atomically({target: lambda file: file.write((nbformat.writes(notebook) + "\n").encode())})


def main() -> int:
    """Execute the notebooks named on the command line, or all, and print the seconds of each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebooks", nargs="*", type=Path)
    parser.add_argument("--jobs", type=int, default=1, help="notebooks executed at the same time")
    parser.add_argument("--refresh", action="store_true", help="update the prose without executing")
    arguments = parser.parse_args()
    work = refresh if arguments.refresh else execute
    texts = [path.resolve().with_suffix(".md") for path in arguments.notebooks]
    texts = texts or sorted((ROOT / "notebooks").glob("*.md"))

    def attempt(text: Path) -> str:
        start = time.perf_counter()
        try:
            work(text)
            return f"{time.perf_counter() - start:.1f} s"
        except Exception as error:
            return f"FAILED\n{error}"

    failed = False
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for number, (text, result) in enumerate(
            zip(texts, pool.map(attempt, texts), strict=True), start=1
        ):
            print(f"[{number}/{len(texts)}] {text.name}: {result}", flush=True)
            failed |= result.startswith("FAILED")
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
