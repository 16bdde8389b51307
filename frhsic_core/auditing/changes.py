"""Report what an adjustment of scores changed: sentences, and a page with both curves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from frhsic_core.auditing._about_rows import adjusted
from frhsic_core.auditing._facts import Picture
from frhsic_core.auditing._pictures import curve_svg
from frhsic_core.auditing._templates import fill_html
from frhsic_core.auditing._words import short
from frhsic_core.conditional import Curve
from frhsic_core.conditional._curve import Array, Smoother
from frhsic_core.inputs.columns import MIN_ROWS, Column


def change_report(
    before: Column, after: Array, columns: Sequence[Column], known: np.ndarray, *, fitted_on: str
) -> tuple[list[str], str]:
    """Return the sentences about an adjustment, and a page with the curves before and after.

    The adjustment was ``fitted_on`` other rows (``"others"``), on the half that is missing in
    ``after`` (``"half"``), or on these rows (``"itself"``). The page is empty if the rows are too
    few.
    """
    score = short(before.name)
    kept = known & np.isfinite(after)
    sentences = []
    pictures = []
    for column in columns:
        old = _curve(column, before.values, known)
        new = _curve(column, after, kept)
        if old is None or new is None:
            continue
        name = short(column.name)
        sentences.append(adjusted(name, old, new, fitted_on=fitted_on))
        drawn = curve_svg(column, new, label=f"mean {score}", before=old)
        words = f"The mean along {name} before (orange) and after (blue), each with its 95% band."
        pictures.append(Picture(drawn, words))
    without = int((~known).sum())
    if without:
        sentences.append(
            f"Rows without a score or an attribute, which have no adjusted score: {without:,}."
        )
    if not pictures:
        return sentences, ""
    title = f"{score} before and after the adjustment"
    page = fill_html("change_page.html", title=title, sentences=sentences, pictures=pictures)
    return sentences, page


def _curve(column: Column, values: Array, rows: np.ndarray) -> Curve | None:
    """Return the curve of some rows; None if they are too few or all alike."""
    s = column.values[rows]
    if len(s) < MIN_ROWS or np.ptp(s) == 0:
        return None
    return Smoother(s, nominal=bool(column.categories)).curve(values[rows])
