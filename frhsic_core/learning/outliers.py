"""Values so far from the rest that scaling to [0, 1] leaves nothing of the rest."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

__all__ = ["OutlierWarning", "far_values", "warn_of_outliers"]

EMPTY = 0.9  # share of a column's range that one gap between neighbouring values may take
FEW = 0.05  # share of the rows beyond it that are still taken for outliers


class OutlierWarning(UserWarning):
    """A few values lie so far out that min-max scaling squeezes all others together."""


def far_values(column: np.ndarray) -> tuple[np.ndarray, float] | None:
    r"""Return the outlying values of a column and the share of its range left to the others, or None.

    The largest gap between neighbouring values decides: if it takes more than nine tenths of the range, at most one row
    in twenty lies beyond it, and the rows before it have more than two values (a rare category coded as a number is no
    mistake), those beyond are outliers. A typing error (999999), a code for "unknown" (−999) and a unit mixed up are
    found; a long tail is not, since its values fill the range. O(n log n).

    Parameters
    ----------
    column : ndarray
        ``(n,)``, finite.

    Examples
    --------
    >>> ages = np.r_[np.arange(20.0, 70.0), 9999.0]
    >>> values, share = far_values(ages)
    >>> values.tolist(), round(share, 3)
    ([9999.0], 0.005)
    >>> far_values(np.r_[np.zeros(99), 1.0]) is None
    True
    """
    values = np.sort(column)
    width = values[-1] - values[0]
    if len(values) < 3 or not width > 0:
        return None
    gaps = np.diff(values)
    cut = int(gaps.argmax()) + 1
    low, high = values[:cut], values[cut:]
    rest, far = (low, high) if len(high) <= len(low) else (high, low)
    if gaps[cut - 1] <= EMPTY * width or len(far) > max(1, FEW * len(values)) or len(np.unique(rest)) <= 2:
        return None
    return np.unique(far), float((rest[-1] - rest[0]) / width)


def warn_of_outliers(values: np.ndarray, names: Iterable[Any], *, what: str, stacklevel: int) -> None:
    """Warn (:class:`OutlierWarning`) of the columns of ``values (n, d)`` with outliers, by name.

    Parameters
    ----------
    values : ndarray
        ``(n, d)``.
    names : iterable
        Of the columns, text or numbers.
    what : str
        How the message calls the array.
    stacklevel : int
        As in :func:`warnings.warn`, for the caller of this function.
    """
    found = []
    for name, column in zip(names, values.T, strict=True):
        outliers = far_values(column)
        if outliers is not None:
            shown = ", ".join(f"{value:g}" for value in outliers[0][:3]) + (" ..." if len(outliers[0]) > 3 else "")
            found.append(f"column {_shown(name)} ({shown}; the others share {max(outliers[1], 1e-4):.2%} of the range)")
    if found:
        more = f" and {len(found) - 5} more" if len(found) > 5 else ""
        warnings.warn(
            f"{what} has values far from all others in {', '.join(found[:5])}{more}: columns are scaled to [0, 1] by "
            "minimum and maximum, which leaves little of such a column. Correct, clip or drop those values; a code for "
            "'unknown' belongs in a column of its own.",
            OutlierWarning,
            stacklevel=stacklevel + 1,
        )


def _shown(name: Any) -> str:
    return repr(str(name)) if isinstance(name, str) else str(name)
