"""On a dark page a picture keeps its colors where they mean a number."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def functions_with_a_color_scale() -> set[str]:
    """Return the functions of the paper that draw a map of colors, themselves or by a helper."""
    found = set()
    for path in (ROOT / "frhsic_core" / "paper").rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        sources = {node.name: ast.unparse(node) for node in functions}
        scaled = {name for name, source in sources.items() if "cmap=" in source}
        helpers = {name for name in scaled if name.startswith("_")}
        for name, source in sources.items():
            if any(f"{helper}(" in source for helper in helpers):
                scaled.add(name)
        found |= {f"{path.stem}.{name}" for name in scaled}
    return found


def figures_with_a_color_scale() -> set[str]:
    """Return the names of the figures whose cell draws a map of colors, itself or by a function."""
    functions = functions_with_a_color_scale()
    names = set()
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            source = "".join(cell["source"])
            figure = cell["metadata"].get("mystnb", {}).get("figure", {})
            called = [name for name in functions if draws(source, name)]
            if "name" in figure and ("cmap=" in source or called):
                names.add(figure["name"])
    return names


def draws(source: str, function: str) -> bool:
    """Whether a cell calls a function, by its name or as an attribute of its module."""
    module, name = function.split(".")
    words = rf"\b{module}\.{name}\(" if name == "draw" else rf"\b{name}\("
    return re.search(words, source) is not None


def test_no_color_scale_is_turned_around_on_a_dark_page() -> None:
    """A filter that exchanges light and dark would make the oldest people the youngest."""
    rules = (ROOT / "book" / "_static" / "book.css").read_text(encoding="utf-8")
    (kept,) = re.findall(r"Where a color means a number.*?\{", rules, re.DOTALL)
    figures = figures_with_a_color_scale()
    assert {"fig-watch-lambda", "fig-gram-matrices", "fig-matched"} <= figures
    assert set(re.findall(r"#(fig-[\w-]+)", kept)) == figures
    assert set(re.findall(r'src\*="(fig-[\w-]+)"', kept)) == figures, "also in the gallery"
