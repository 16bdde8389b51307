"""Tables and names as the chapters show them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from frhsic_core.registry import METHODS, PAPER_DATASETS, labels, titles

if TYPE_CHECKING:
    from IPython.display import HTML

DATASET_TITLES = titles((*PAPER_DATASETS, "synthetic"))
METHOD_LABELS = labels(METHODS)
NAMES = DATASET_TITLES | METHOD_LABELS
#: Words for the columns of the paper's datasets that are sensitive attributes.
ATTRIBUTE_NAMES = dict.fromkeys(("age", "AGEP", "AGE15X"), "age") | {
    "racepctblack": "share of Black residents",
    "householdsize": "household size",
}


def table(
    rows: pd.DataFrame | Iterable[Any],
    columns: Sequence[Any] | None = None,
    *,
    names: Mapping[Any, str] | None = None,
    digits: int | None = None,
    escape: bool = False,
) -> HTML:
    """Return rows as an HTML table without borders.

    The index is shown only if it has a name, and its name is not shown.

    Parameters
    ----------
    rows : DataFrame or iterable
        A frame, or rows that :class:`pandas.DataFrame` accepts.
    columns : sequence, optional
        The titles of the columns, if ``rows`` is not a frame.
    names : mapping, optional
        Words for labels of the index and of the columns, for example ``NAMES``.
    digits : int, optional
        Decimal places of the numbers that are floats.
    escape : bool
        Show markup in cells and titles literally. By default a cell can contain ``<br>`` or a link.

    Examples
    --------
    >>> "<th>GDP<br>of age</th>" in table([("Adult", 0.25)], ["data", "GDP<br>of age"]).data
    True
    >>> frame = pd.DataFrame({"adult": [0.25]}, index=pd.Index(["frhsic"], name="method"))
    >>> shown = table(frame, names=NAMES, digits=1).data
    >>> [word in shown for word in ("Adult", "FRHSIC", "0.2", "method")]
    [True, True, True, False]
    """
    # Only notebooks need IPython: the package can be imported without it.
    from IPython.display import HTML

    frame = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(rows, columns=columns)
    if digits is not None:
        frame = frame.map(lambda value: f"{value:.{digits}f}" if isinstance(value, float) else value)
    if names is not None:
        frame = frame.rename(index=names, columns=names)
    has_index = frame.index.name is not None
    return HTML(frame.to_html(border=0, escape=escape, index=has_index, index_names=False))
