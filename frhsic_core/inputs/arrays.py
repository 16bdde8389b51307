"""Turn lists, arrays and tensors into NumPy arrays of numbers, dates, durations or objects.

torch is not imported: who passes a tensor has imported it. pandas is not imported either.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

ArrayLike = Any  # tensor, array, pandas or polars object, or nested sequence
NUMBERS = "biuf"  # NumPy's kinds of booleans, whole numbers and floating-point numbers
_EXACT = 2**53  # larger whole numbers lose their last digits in float64


def is_tensor(given: Any) -> bool:
    """Return whether an argument is a tensor of torch, without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(given, torch.Tensor)


def is_plain(given: Any) -> bool:
    """Return whether an argument is a NumPy array of numbers that needs no reading."""
    if not isinstance(given, np.ndarray) or isinstance(given, np.ma.MaskedArray):
        return False
    return given.dtype.kind in NUMBERS


def as_array(given: Any, *, argument: str) -> np.ndarray:
    """Return a list, an array or a tensor as a NumPy array of numbers, dates, durations or objects.

    Numbers keep their precision up to float64. A masked value is a missing one.

    Examples
    --------
    >>> as_array(np.ma.masked_equal([62, -999], -999), argument="s")
    array([62., nan])
    """
    if is_tensor(given):
        array = _array_of_tensor(given, argument)
    elif isinstance(given, np.ma.MaskedArray):
        array = _without_mask(given)
    elif isinstance(given, np.ndarray):
        array = given
    else:
        array = _array_of_sequence(given, argument)
    kind = array.dtype.kind
    if kind == "c":
        raise TypeError(complex_numbers(argument))
    if kind == "V":
        raise TypeError(
            f"{argument} is a structured array: pass its columns one by one, or a DataFrame."
        )
    if kind == "S":
        return np.char.decode(array, "utf-8", "replace").astype(object)
    if kind == "U":
        return _without_lost_values(array, argument).astype(object)
    if kind == "f":
        return array.astype(np.float64, copy=False)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def require_exact(values: np.ndarray, name: str) -> None:
    """Raise ``ValueError`` for whole numbers so large that float64 makes equal what differs."""
    if values.dtype.kind not in "iu" or values.dtype.itemsize < 8 or values.size == 0:
        return
    largest = max(int(values.max()), -int(values.min()))
    if largest <= _EXACT:
        return
    distinct = np.unique(values)
    if len(np.unique(distinct.astype(np.float64))) < len(distinct):
        raise ValueError(
            f"{name} has whole numbers up to {largest}, of which the last digits would be lost: "
            "subtract a constant, or write codes as words."
        )


def complex_numbers(argument: str) -> str:
    """Return the message for complex numbers."""
    return f"{argument} is complex: pass the real and the imaginary part as two columns."


def sparse_tensor(argument: str) -> str:
    """Return the message for a sparse tensor or matrix."""
    return f"{argument} is sparse: pass a dense one, {argument}.to_dense() or {argument}.toarray()."


def _array_of_tensor(given: Any, argument: str) -> np.ndarray:
    if given.layout is not sys.modules["torch"].strided:
        raise TypeError(sparse_tensor(argument))
    dense = given.detach().cpu()
    if dense.is_floating_point():
        dense = dense.double()  # NumPy has no bfloat16
    return dense.resolve_conj().numpy()


def _without_mask(given: np.ma.MaskedArray) -> np.ndarray:
    mask = np.ma.getmaskarray(given)
    if not mask.any():
        return np.asarray(given.data)
    if given.dtype.kind in "iuf":
        values = np.array(given.data, dtype=np.float64)
        values[mask] = np.nan
    elif given.dtype.kind in "Mm":
        values = np.array(given.data)
        values[mask] = np.array("NaT", dtype=given.dtype)
    else:
        values = np.array(given.data, dtype=object)
        values[mask] = None
    return values


def _array_of_sequence(given: Any, argument: str) -> np.ndarray:
    if hasattr(given, "nnz") and hasattr(given, "toarray"):
        raise TypeError(sparse_tensor(argument))
    try:
        array = np.asarray(given)
        if array.dtype.kind in "SU":  # NumPy has turned missing values and numbers into words
            array = np.array(given, dtype=object)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"{argument} could not be read as a table ({error}): pass one row per sample, (n,) or "
            "(n, k), and a value in each cell."
        ) from error
    if array.ndim == 0 and array.dtype.kind == "O":
        raise TypeError(f"{argument} is a {type(given).__name__}: pass a list or an array.")
    return array


def _without_lost_values(array: np.ndarray, argument: str) -> np.ndarray:
    lost = int((array == "nan").sum())
    if lost:
        raise ValueError(
            f"{argument} has the text 'nan' in {lost} of {array.size} values, which NumPy writes "
            "for a missing value: pass a list or an array of objects, with None where it is missing."
        )
    return array
