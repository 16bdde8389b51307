"""What the pages of modules need: no object twice, and |d| as an absolute value."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

API = (Path(__file__).resolve().parents[1] / "api.md").read_text(encoding="utf-8")


def escape_bars(lines: list[str]) -> None:
    r"""Escape bars outside of code, in place: reStructuredText would read |d| as a substitution.

    Examples
    --------
    >>> lines = ["ranks of |d|, ``a | b`` and `c|d`", r"already \|"]
    >>> escape_bars(lines)
    >>> print(*lines, sep="; ")
    ranks of \|d\|, ``a | b`` and `c|d`; already \|
    """
    lines[:] = [
        re.sub(r"(``.*?``|`[^`]*`)|(?<!\\)\|", lambda match: match[1] or r"\|", line)
        for line in lines
    ]


def _escape(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    if not any(line.lstrip().startswith((".. math::", "+-", "| ")) for line in lines):
        escape_bars(lines)


def _skip_imported(
    app: Any, what: str, name: str, thing: Any, skip: bool, options: Any
) -> bool | None:
    """Document an object in the module that defines it, or in the package of a private module, unless api.md does."""
    if what != "module" or not hasattr(thing, "__qualname__"):  # members of a class, and data, stay
        return None
    home, module = str(thing.__module__), app.env.temp_data.get("autodoc:module")
    if not home.startswith("frhsic_core"):
        return None
    listed = re.search(rf":: frhsic_core\.(\w+\.)*{name.rpartition('.')[2]}\n", API)
    return None if home == module or (home.startswith(f"{module}._") and not listed) else True


def setup(app: Any) -> dict[str, bool]:
    """Register the hooks; docstrings are escaped after napoleon has read them."""
    app.connect("autodoc-skip-member", _skip_imported)
    app.connect("autodoc-process-docstring", _escape, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
