"""Reading what is given to an estimator's ``fit``, and saying what is wrong with it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.utils.validation import validate_data

from frhsic_core.arrays import ArrayLike, as_tensor, require_same_rows
from frhsic_core.learning.fit_parameters import check_parameters

__all__ = ["read_attribute", "read_data", "read_fit", "require_aligned", "standardised", "value_range"]


def read_fit(
    estimator: Any, X: Any, y: Any, more: tuple[Any, ...], s: Any, sample_weight: Any, **checks: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Everything given to ``fit``, with the parameters of the estimator, checked: X, y and the attribute(s) or None."""
    check_parameters(estimator)
    require_aligned(X, y, s, sample_weight)
    values, target = read_data(estimator, X, y, more, **checks)
    return values, target, None if s is None else read_attribute(s, X, len(values))


def read_data(estimator: Any, X: Any, y: Any, more: tuple[Any, ...], **checks: Any) -> tuple[np.ndarray, np.ndarray]:
    """X and y, checked by scikit-learn; text in X is named by column, a third positional argument is refused.

    Parameters
    ----------
    estimator : estimator
        Whose ``fit`` it is.
    X, y : array_like
        The data.
    more : tuple
        Further positional arguments of ``fit``.
    **checks
        Passed to :func:`sklearn.utils.validation.validate_data`.
    """
    if more:
        raise TypeError(
            "fit takes X and y by position, and more was given: write fit(X, y, sensitive_features=s) for the "
            "attribute, and sample_weight=w for weights."
        )
    _check_columns(X)
    try:
        return validate_data(estimator, X, y, dtype=np.float64, **checks)
    except (TypeError, ValueError) as error:
        text = _text_columns(X)
        if not text:
            raise
        shown = ", ".join(text[:5]) + (f" and {len(text) - 5} more" if len(text) > 5 else "")
        raise ValueError(
            f"X has text in {shown}: could not convert string to float. Encode such columns as numbers first, "
            "with OneHotEncoder or pandas.get_dummies, or drop them."
        ) from error


def _check_columns(X: Any) -> None:
    """Refuse columns of the same name, which no message could tell apart, and dates, which have no scale."""
    if hasattr(X, "columns") and hasattr(X, "iloc"):
        repeated = X.columns[X.columns.duplicated()].unique()
        if len(repeated):
            raise ValueError(
                f"X has several columns named {', '.join(map(repr, repeated))}: give each column a name of its own, or "
                "pass X.to_numpy()."
            )
        dates = [
            repr(name) for name, kind in zip(X.columns, X.dtypes, strict=True) if getattr(kind, "kind", "") in "Mm"
        ]
    else:
        dates = ["all"] if getattr(getattr(X, "dtype", None), "kind", "") in ("M", "m") else []
    if dates:
        raise ValueError(
            f"X has dates in column {', '.join(dates)}: turn them into numbers first, such as years "
            "(X[name].dt.year) or days since a date, or drop them."
        )


def require_aligned(X: Any, y: Any, s: Any, sample_weight: Any) -> None:
    """Refuse pandas objects whose row labels are in another order than X's (or than y's, where X has no labels)."""
    first, name = (X, "X") if hasattr(X, "iloc") else (y, "y")
    for other, what in ((y, "y"), (s, "sensitive_features"), (sample_weight, "sample_weight")):
        if what != name:
            require_same_rows(first, other, names=(name, what), stacklevel=4)


def _text_columns(X: Any) -> list[str]:
    """Columns of X with text that is no number, each with its first such value."""
    if hasattr(X, "columns") and hasattr(X, "iloc"):
        columns = [(repr(name), X.iloc[:, i]) for i, name in enumerate(X.columns)]
    elif getattr(X, "ndim", 0) == 2 and isinstance(X, np.ndarray) and X.dtype.kind in "OUS":
        columns = [(str(i), pd.Series(X[:, i])) for i in range(X.shape[1])]
    else:
        return []
    found = []
    for name, values in columns:
        text = [value for value in values if isinstance(value, str | bytes) and not _is_number(value)]
        if text:
            found.append(f"column {name} (first: {text[0]!r})")
    return found


def _is_number(text: str | bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def read_attribute(s: Any, X: Any, rows: int) -> np.ndarray:
    """Return the attribute(s) as ``(n, p)`` float64, checked; the name(s) of columns of a DataFrame X will do."""
    s = _by_name(s, X, rows)
    tensor = as_tensor(s, name="sensitive_features").detach().cpu().double()
    if tensor.ndim == 1:
        tensor = tensor.unsqueeze(-1)
    if tensor.ndim != 2 or tensor.shape[0] != rows:
        raise ValueError(
            f"sensitive_features has shape {tuple(tensor.shape)} but X has {rows} rows: one row per sample is needed."
        )
    if not bool(torch.isfinite(tensor).all()):
        bad = int((~torch.isfinite(tensor)).sum())
        raise ValueError(
            f"sensitive_features has {bad} NaN or infinite values: drop those rows first; what is not known cannot be "
            "penalised, and a value filled in is not known."
        )
    constant = (tensor == tensor[:1]).all(0)
    if bool(constant.any()):
        column = int(constant.nonzero()[0])
        raise ValueError(f"sensitive_features is constant (column {column}): nothing can depend on it; drop it.")
    return tensor.numpy()


def _by_name(s: Any, X: Any, rows: int) -> ArrayLike:
    """Replace names of columns by the columns; they stay in X."""
    named = isinstance(s, str) or (isinstance(s, list | tuple) and len(s) > 0 and all(isinstance(v, str) for v in s))
    if not named or (not isinstance(s, str) and len(s) == rows):
        return s  # one text for each row: reading it as numbers says so
    columns = list(getattr(X, "columns", ()))
    names = [s] if isinstance(s, str) else list(s)
    if not columns:
        raise TypeError(
            f"sensitive_features is {s!r}, a name, and X is no DataFrame: pass the values, one for each row. Behind "
            "another step of a pipeline, where X has become an array: "
            f"pipeline.fit(X, y, fairclassifier__sensitive_features=X[{s!r}])."
        )
    missing = [name for name in names if name not in columns]
    if missing:
        raise ValueError(
            f"sensitive_features is {s!r}: X has no column {', '.join(map(repr, missing))}, but "
            f"{', '.join(map(repr, columns))}."
        )
    return X[names].to_numpy()


def value_range(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Minimum and width of each column; a constant column is shifted, not stretched."""
    low, width = values.min(0), np.ptp(values, axis=0)
    return low, np.where(width > 0, width, 1.0)


def standardised(y: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, float, float]:
    """Target of variance one, with its mean and spread."""
    mean = float(np.average(y, weights=weights))
    spread = float(np.sqrt(np.average((y - mean) ** 2, weights=weights)))
    spread = spread if spread > 0 else 1.0
    return (y - mean) / spread, mean, spread
