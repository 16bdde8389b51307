"""Fill the templates of the reports, in which everything that is not markup is escaped.

In HTML, Jinja2 escapes every value. In Markdown, every value passes through
:func:`escape_markdown`. So a template cannot forget it, and no name of a column becomes markup.
"""

from __future__ import annotations

import re
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from frhsic_core.inputs.visible import visible

_NOT_IN_XML = re.compile("[\x00-\x1f\x7f\ufffe\uffff\ud800-\udfff]")
_SPECIAL = re.compile(r"[\\`*_{}\[\]<>#|~$@]")  # in Markdown


def without_controls(value: Any) -> Any:
    """Return a value for HTML or SVG: without the characters that XML does not allow."""
    if isinstance(value, Markup):
        return value
    return _NOT_IN_XML.sub("\ufffd", str(value))


def escape_markdown(text: object) -> str:
    """Return text in which nothing is read as Markdown or HTML, nor obeyed by a terminal."""
    plain = visible(" ".join(str(text).split()))
    return _SPECIAL.sub(r"\\\g<0>", plain)


_LOADER = PackageLoader("frhsic_core.auditing", "templates")
_COMMON: dict[str, Any] = {
    "loader": _LOADER,
    "undefined": StrictUndefined,
    "trim_blocks": True,
    "lstrip_blocks": True,
    "keep_trailing_newline": True,
}
_HTML = Environment(autoescape=True, finalize=without_controls, **_COMMON)
_TEXT = Environment(autoescape=False, finalize=escape_markdown, **_COMMON)


def fill_html(name: str, **values: Any) -> str:
    """Return a template of HTML with its values."""
    return _HTML.get_template(name).render(values)


def fill_markdown(name: str, **values: Any) -> str:
    """Return a template of Markdown with its values."""
    return _TEXT.get_template(name).render(values)
