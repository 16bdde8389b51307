"""The gap of predictions along a numeric attribute, with the arguments of a metric."""

from __future__ import annotations

from typing import Any

from frhsic_core.conditional._curve import Smoother
from frhsic_core.inputs.columns import read_columns


def gdp_score(
    y_true: Any, y_pred: Any, *, sensitive_features: Any, sample_weight: Any = None
) -> float:
    """Return GDP, the mean distance between E[prediction | S] and the overall mean.

    The same number as :func:`frhsic_core.gdp`, with the arguments of a metric; categories and
    missing values are allowed, as in :func:`frhsic_core.audit`.

    Parameters
    ----------
    y_true, y_pred : array_like
        Labels, which are ignored as in fairlearn's demographic parity, and predictions.
    sensitive_features : array_like
        One attribute, numbers or categories.
    sample_weight : array_like, optional
        Weights of the rows.

    Examples
    --------
    >>> gdp_score(None, [0.0] * 20 + [1.0] * 20, sensitive_features=[30] * 20 + [50] * 20)
    0.5
    """
    columns = read_columns(y_pred, sensitive_features, sample_weight=sample_weight)
    if len(columns.sensitive) > 1:
        raise ValueError("a metric takes one sensitive attribute: pass one column.")
    attribute = columns.sensitive[0]
    rows = columns.usable & attribute.known
    if not rows.any():
        raise ValueError(f"no row has a prediction and a value of {attribute.name!r}.")
    weight = None if columns.weight is None else columns.weight.values[rows]
    smoother = Smoother(attribute.values[rows], weight=weight, nominal=bool(attribute.categories))
    return smoother.gdp(columns.score.values[rows])[0]
