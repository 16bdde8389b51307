"""Let docstrings write |d| for an absolute value: reStructuredText would read it as a substitution."""

from __future__ import annotations

import re
from typing import Any


def escape_bars(lines: list[str]) -> None:
    r"""Escape bars outside of code, in place.

    Examples
    --------
    >>> lines = ["ranks of |d|, ``a | b``"]
    >>> escape_bars(lines)
    >>> print(lines[0])
    ranks of \|d\|, ``a | b``
    """
    lines[:] = [re.sub(r"(``.*?``|`[^`]*`)|(?<!\\)\|", lambda match: match[1] or r"\|", line) for line in lines]


def _escape(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    if not any(line.lstrip().startswith((".. math::", "+-", "| ")) for line in lines):
        escape_bars(lines)


def setup(app: Any) -> dict[str, bool]:
    """Run after napoleon."""
    app.connect("autodoc-process-docstring", _escape, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
