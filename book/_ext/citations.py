"""Label the entries of the bibliography as the text cites them: by author and year.

Entries that share both carry a letter in their year (2005a, 2005b) in ``references.bib``.
"""

from __future__ import annotations

from typing import Any

from pybtex.plugin import register_plugin
from pybtex.style.formatting.unsrt import Style as Unsrt
from pybtex.style.labels import BaseLabelStyle


def short_names(people: list[Any]) -> str:
    """Return the family names of at most two authors, else of the first "et al."."""
    names = [" ".join(map(str, [*person.rich_prelast_names, *person.rich_last_names])) for person in people]
    return " and ".join(names) if len(names) < 3 else f"{names[0]} et al."


class AuthorYearLabels(BaseLabelStyle):
    """Labels such as "Ni and Huo, 2026"."""

    def format_labels(self, sorted_entries: Any) -> Any:
        """Yield one label for each entry."""
        for entry in sorted_entries:
            yield f"{short_names(entry.persons['author'])}, {entry.fields['year']}"


class AuthorYearStyle(Unsrt):
    """Entries sorted by author and year."""

    default_label_style = AuthorYearLabels
    default_sorting_style = "author_year_title"


def setup(app: Any) -> dict[str, bool]:
    """Register the style under the name that ``_config.yml`` uses."""
    register_plugin("pybtex.style.formatting", "author_year", AuthorYearStyle)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
