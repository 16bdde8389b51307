"""Figures of notebooks may be drawn with other fonts, but must show the same."""

from __future__ import annotations

import base64
import functools
import io
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import figure_check as check
import matplotlib
import nbformat
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[1]


def draw(change: Callable[[Axes], object] = lambda axis: None, *, version: str = "1") -> str:
    """Return a figure with two lines, four bars and a legend, after a change of it, by a version of matplotlib."""
    figure = Figure(figsize=(6, 3.5), layout="constrained")
    axis = figure.add_subplot()
    x = np.linspace(0.0, 4.0, 60)
    axis.plot(x, np.sin(x), label="sine")
    axis.plot(x, np.cos(x), "--", label="cosine")
    axis.bar([0.5, 1.5, 2.5, 3.5], [0.4, 0.6, 0.3, 0.5], width=0.2, color="tab:green")
    axis.set_xlabel("the attribute S")
    axis.set_ylabel("a measured value")
    axis.legend(loc="lower left")
    change(axis)
    buffer = io.BytesIO()
    figure.savefig(buffer, bbox_inches="tight", dpi=200, metadata={"Software": version})
    return base64.b64encode(buffer.getvalue()).decode()


@functools.cache
def unchanged() -> str:
    """Return the figure without a change."""
    return draw()


@pytest.mark.parametrize(
    "settings",
    [
        {"axes.labelsize": 10.5},
        {"text.hinting": "none"},
        {"text.hinting": "force_autohint", "text.antialiased": False},
        {"font.sans-serif": ["DejaVu Serif"]},
        {"lines.antialiased": False, "patch.antialiased": False},
    ],
)
def test_other_fonts_and_edges_pass(settings: dict[str, object]) -> None:
    with matplotlib.rc_context(settings):
        drawn = draw(version="2")
    assert check.difference(unchanged(), drawn) == ""


def test_one_version_of_matplotlib_allows_less() -> None:
    def point(axis: Axes) -> None:
        axis.plot([2.0], [0.8], "o", markersize=5)

    assert check.difference(unchanged(), draw(point))
    assert check.difference(unchanged(), draw(point, version="2")) == ""


CHANGES: dict[str, Callable[[Axes], object]] = {
    "empty": lambda axis: axis.clear(),
    "no line": lambda axis: axis.lines[1].remove(),
    "moved line": lambda axis: axis.lines[0].set_ydata(axis.lines[0].get_ydata() + 0.15),
    "scaled line": lambda axis: axis.lines[0].set_ydata(1.2 * axis.lines[0].get_ydata()),
    "no bar": lambda axis: axis.patches[2].remove(),
    "shorter bar": lambda axis: axis.patches[1].set_height(0.4),
    "other color": lambda axis: axis.lines[0].set_color("tab:purple"),
    "swapped colors": lambda axis: (axis.lines[0].set_color("C1"), axis.lines[1].set_color("C0")),
    "other limits": lambda axis: axis.set_ylim(-2.0, 2.0),
    "new line": lambda axis: axis.axhline(0.8, color="tab:red"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_other_contents_fail(name: str) -> None:
    """By another version of matplotlib; what fails there fails with the smaller tolerances for one version, too."""
    assert check.difference(unchanged(), draw(CHANGES[name], version="2"))


def test_another_size_fails() -> None:
    higher = draw(lambda axis: axis.figure.set_size_inches(6, 3.75))
    assert re.match(
        r"it has 6\d\d x 38\d pixels instead of 6\d\d x 36\d", check.difference(unchanged(), higher)
    )


@pytest.mark.slow
def test_nbval_fails_on_a_changed_figure(tmp_path: Path) -> None:
    """Of two figures, the one that was stored differently fails."""
    for name in ("notebooks/conftest.py", "tests/figure_check.py"):
        (tmp_path / name).parent.mkdir()
        shutil.copy(ROOT / name, tmp_path / name)
    cells = [
        nbformat.v4.new_code_cell("import matplotlib.pyplot as plt\n_ = plt.plot([0, 1], [0, 1])"),
        nbformat.v4.new_code_cell("_ = plt.plot([0, 1], [1, 0], color='C1')"),
    ]
    notebook = nbformat.v4.new_notebook(cells=cells)
    arguments = ["--InlineBackend.figure_format=retina"]
    NotebookClient(notebook, kernel_name="python3", extra_arguments=arguments).execute()
    first, second = (
        next(out for out in cell.outputs if "data" in out)["data"] for cell in notebook.cells
    )
    second["image/png"] = first["image/png"]
    nbformat.write(notebook, tmp_path / "notebooks" / "two.ipynb")
    words = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        ".",
        "-c",
        "/dev/null",
    ]
    words += ["--nbval", "--nbval-current-env", "notebooks"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "1 failed, 1 passed" in done.stdout
    assert "Figure 1 of the cell has changed" in done.stdout
