"""Fill the MyST substitutions with the book's numbers and the commands, and link to chapters by name.

``{{ ledger.agree }}`` is a value of :func:`frhsic_core.paper.page_values.page_values`;
``{chapter}`parity_gap``` is short for ``{doc}`/notebooks/parity_gap```.
"""

from __future__ import annotations

from typing import Any

from commands import tables
from sphinx.roles import XRefRole


class ChapterRole(XRefRole):
    """Link to a chapter by the name of its notebook."""

    def process_link(
        self, env: Any, node: Any, explicit: bool, title: str, target: str
    ) -> tuple[str, str]:
        """Return the title and the address of the page."""
        node["refdomain"] = "std"
        node["reftype"] = "doc"
        return title, f"/notebooks/{target}"


def _bold(value: Any) -> Any:
    """Set every number in bold, as a reader finds it faster."""
    return (
        {name: _bold(part) for name, part in value.items()}
        if isinstance(value, dict)
        else f"**{value}**"
    )


def _fill(app: Any, config: Any) -> None:
    from frhsic_core.paper.page_values import page_values

    config.myst_substitutions = _bold(page_values()) | {"commands": tables()}


def setup(app: Any) -> dict[str, bool]:
    """Register the role and the values, before MyST reads them."""
    app.add_role("chapter", ChapterRole(warn_dangling=True))
    app.connect("config-inited", _fill)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
