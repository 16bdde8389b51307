"""Arrays of numbers that stay rational as long as everything in them is.

A NumPy array of dtype ``object`` holding :class:`fractions.Fraction` goes through sums and matrix products without
rounding; one float among the operands, and the whole computation is float64.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from torch import Tensor

from frhsic_core.arrays import as_tensor

__all__ = ["as_table", "in_one_arithmetic", "is_exact"]


def as_table(x: Any, *, name: str, exact: bool = False) -> np.ndarray:
    """Read nested numbers as Fractions where all are whole or Fractions and one is a Fraction, else as float64.

    Parameters
    ----------
    x : array_like
    name : str
        How errors call it.
    exact : bool
        Whole numbers alone become Fractions too.

    Examples
    --------
    >>> as_table([[Fraction(1, 3), 0]], name="table")
    array([[Fraction(1, 3), Fraction(0, 1)]], dtype=object)
    >>> as_table([[0.5, 0.5]], name="table").dtype
    dtype('float64')
    """
    if isinstance(x, Tensor):
        x = x.detach().cpu()
    raw = np.array(x, dtype=object) if isinstance(x, (list, tuple)) else np.asarray(x)
    entries = list(raw.flat) if raw.dtype.kind in "Oiu" else []
    rational = len(entries) > 0 and all(isinstance(entry, (int, np.integer, Fraction)) for entry in entries)
    if rational and (exact or any(isinstance(entry, Fraction) for entry in entries)):
        table = np.empty(raw.size, dtype=object)
        table[:] = [entry if isinstance(entry, Fraction) else Fraction(int(entry)) for entry in entries]
        return table.reshape(raw.shape)
    return as_tensor(x, name=name).double().numpy()


def is_exact(x: np.ndarray) -> bool:
    """Whether the array holds Fractions."""
    return x.dtype == object


def in_one_arithmetic(*arrays: np.ndarray) -> list[np.ndarray]:
    """Return the arrays as they are if all hold Fractions, else all as float64."""
    if all(is_exact(array) for array in arrays):
        return list(arrays)
    return [array.astype(np.float64) for array in arrays]
