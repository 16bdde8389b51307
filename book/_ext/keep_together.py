"""Keep punctuation on the line of the formula that it belongs to.

A browser may break a line between a formula and the comma after it, or between a bracket and the
formula that it opens, because a formula is a box to it.
"""

from __future__ import annotations

import re
from typing import Any

FORMULA = r'<span class="math notranslate nohighlight">[^<]*</span>'
AFTER = r"(?:[^\s\w<&]|&\w+;)+"  # ",", ").", and the hyphen of a number with "-th"
BEFORE = r"(?:[(\[“‘']|&quot;)+"
TOUCHED = re.compile(f"{BEFORE}{FORMULA}(?:{AFTER})?|{FORMULA}{AFTER}")


def join_punctuation(html: str) -> str:
    """Wrap each formula of a page with the punctuation that touches it."""
    return TOUCHED.sub(r'<span class="together">\g<0></span>', html)


def _join(
    app: Any, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    if "body" in context:
        context["body"] = join_punctuation(context["body"])


def setup(app: Any) -> dict[str, bool]:
    """Join in the HTML of a page."""
    app.connect("html-page-context", _join)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
