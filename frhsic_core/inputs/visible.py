"""Make characters visible that would move the cursor, hide text or turn its direction."""

from __future__ import annotations

import re

# Control characters except tab and line feed; marks of direction; line and paragraph separators.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]"
)


def visible(text: str) -> str:
    """Return a text whose control characters are written as a program writes them.

    A name in somebody's file could otherwise rewrite lines of a terminal or of a log.

    Examples
    --------
    >>> print(visible("north" + chr(27) + "[2K"))
    north\\x1b[2K
    """
    return _HIDDEN.sub(_spelled, text)


def _spelled(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")
