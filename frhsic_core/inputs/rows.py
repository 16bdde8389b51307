"""Check that two arguments have the same people in the same rows, and warn at the caller's line."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from typing import Any

_LIBRARY = os.path.dirname(os.path.dirname(__file__)) + os.sep


class RowLabelWarning(UserWarning):
    """Two pandas objects have different row labels and are matched by position."""


def require_same_rows(a: Any, b: Any, *, names: tuple[str, str]) -> None:
    """Raise an error if the row labels of two pandas objects are in another order.

    Rows are matched by position, but pandas users expect them to be matched by label. Only two
    arguments that both have labels can contradict each other; labels that differ are a warning.
    Different numbers of rows are left to the caller. O(n) when they agree.

    Parameters
    ----------
    a, b : array_like
        Any two arguments; only Series and DataFrames are checked.
    names : tuple of str
        Names of the arguments in messages.

    Examples
    --------
    >>> import pandas as pd
    >>> age = pd.Series([30, 40], index=["Ann", "Bob"])
    >>> require_same_rows(age, age[["Bob", "Ann"]], names=("z", "s"))
    Traceback (most recent call last):
    ValueError: z and s have the same row labels in another order (first rows: 'Ann' and 'Bob'), \
and rows are matched by position: bring them into one order, s.loc[z.index], or pass .to_numpy() \
where the position is right.
    """
    both_labelled = hasattr(a, "iloc") and hasattr(b, "iloc")
    if not both_labelled or len(a) != len(b) or a.index.equals(b.index):
        return
    first = (a.index != b.index).argmax()
    shown = " and ".join(repr(index[[first]].tolist()[0]) for index in (a.index, b.index))
    where = "first rows" if first == 0 else f"rows {first}"
    if a.index.isin(b.index).all() and b.index.isin(a.index).all():
        raise ValueError(
            f"{names[0]} and {names[1]} have the same row labels in another order ({where}: "
            f"{shown}), and rows are matched by position: bring them into one order, "
            f"{names[1]}.loc[{names[0]}.index], or pass .to_numpy() where the position is right."
        )
    warn_caller(
        f"{names[0]} and {names[1]} have different row labels ({where}: {shown}) and are matched "
        "by position: if that is right, pass .to_numpy(); if not, select the same rows of both.",
        RowLabelWarning,
    )


def warn_caller(message: str, kind: type[Warning] = UserWarning) -> None:
    """Warn with the first line outside the library, which a user can change."""
    level = 0
    for frame, _ in traceback.walk_stack(sys._getframe()):
        level += 1
        if not frame.f_code.co_filename.startswith(_LIBRARY):
            break
    warnings.warn(message, kind, stacklevel=level)
