"""Read and check scores, their weights and attributes, before an adjustment gets them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from frhsic_core._arrays import ArrayLike, require_same_rows
from frhsic_core.inputs.columns import as_columns
from frhsic_core.inputs.tables import as_table
from frhsic_core.remedies.attributes import UNNAMED
from frhsic_core.remedies.links import IDENTITY, LINKS, LOG, LOGIT, Link

_LOST = 1e-3  # of the standard deviation of the scores
_FEWEST = 20


def read_scores(scores: ArrayLike) -> np.ndarray:
    """Return scores as numbers; a missing one is an error."""
    column, *more = as_columns(scores, argument="scores", default="scores", categorical=False)
    if more:
        raise ValueError(
            f"scores has the shape (n, {1 + len(more)}): pass one score for each row, (n,)."
        )
    if column.missing:
        raise ValueError(
            f"scores has {column.missing} missing or infinite values: drop those rows first."
        )
    return column.values


def read_weight(weight: ArrayLike | None, rows: int) -> np.ndarray | None:
    """Return one weight for each row, positive or zero."""
    if weight is None:
        return None
    options: dict[str, Any] = {"default": "sample_weight", "categorical": False}
    column, *more = as_columns(weight, argument="sample_weight", **options)
    values = column.values
    if more or len(values) != rows:
        raise ValueError(
            f"sample_weight has {len(values)} rows and {1 + len(more)} columns: pass one weight "
            f"for each of the {rows} rows."
        )
    if column.missing or values.min() < 0.0 or values.max() == 0.0:
        raise ValueError(
            "sample_weight needs weights that are known and not negative, and one above zero."
        )
    return values


def choose_link(name: str, values: np.ndarray) -> Link:
    """Return the link of a name, or that of the kind of scores; raise an error if it cannot be."""
    least, most = values.min(), values.max()
    probabilities = bool(least >= 0.0 and most <= 1.0)
    if name == "auto":
        link: Link = LOGIT if probabilities else IDENTITY
    else:
        link = LINKS[name]
    if link is LOGIT and not probabilities:
        raise ValueError("link='logit' needs scores from 0 to 1: choose another link.")
    if link is LOGIT:
        _require_logits(values)
    if link is LOG and least <= 0.0:
        raise ValueError(
            f"link='log' needs positive scores, but the smallest is {least:g}: choose 'identity'."
        )
    return link


def _require_logits(values: np.ndarray) -> None:
    """Raise an error for probabilities so close to 0 or 1 that their logits, up to ±15, lose them."""
    change = np.abs(LOGIT.inverse(LOGIT.of(values)) - values).mean()
    if change > _LOST * values.std():
        raise ValueError(
            f"scores from {values.min():.3g} to {values.max():.3g} are so close to 0 or 1 that "
            "logits lose their differences: choose link='log' for scores near 0, and adjust one "
            "minus the scores if they are near 1."
        )


def require_scores_to_adjust(values: np.ndarray) -> None:
    if len(values) < _FEWEST:
        raise ValueError(f"the number of scores is {len(values)}: a fit needs at least {_FEWEST}.")
    if len(np.unique(values)) <= 2:
        raise ValueError(
            "scores is constant or has two values: adjust the probabilities, then apply a threshold."
        )


def require_same_kind(values: np.ndarray, link: Link) -> None:
    if not len(values):
        return
    if link is LOGIT and not (values.min() >= 0.0 and values.max() <= 1.0):
        raise ValueError(
            "scores has values outside of 0 to 1, but fit had probabilities: pass the same kind."
        )
    if link is LOG and values.min() <= 0.0:
        raise ValueError("scores has values of zero or below, but link='log' needs positive ones.")


def known_rows(s: ArrayLike, scores: ArrayLike, rows: int) -> np.ndarray:
    """Return which rows have a value of every attribute; other numbers of rows are found later."""
    require_same_rows(scores, s, names=("scores", "sensitive_features"))
    frame = as_table(s, argument="sensitive_features", default=UNNAMED)
    if len(frame) != rows:
        return np.ones(rows, dtype=bool)
    if frame.isna().all().any():
        return np.zeros(rows, dtype=bool)
    columns = as_columns(s, argument="sensitive_features", default=UNNAMED, categorical=True)
    return np.logical_and.reduce([column.known for column in columns])


def rows_of(s: ArrayLike, kept: np.ndarray) -> pd.DataFrame:
    """Return some rows of attributes, as numbers and words."""
    columns = as_columns(s, argument="sensitive_features", default=UNNAMED, categorical=True)
    frame = {}
    for column in columns:
        values = column.values[kept]
        if column.categories:
            words = np.array(column.categories, dtype=object)
            values = words[values.astype(int)]
        frame[column.name] = values
    return pd.DataFrame(frame)
