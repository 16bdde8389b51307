"""A metric function with fairlearn's conventions, of which ``make_scorer`` of scikit-learn makes a scorer.

``y_true`` and ``y_pred`` come first and ``sensitive_features`` is a keyword, as in fairlearn. Inside a ``MetricFrame``
the numeric attribute is a sample parameter, and the frame groups by the categorical one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from frhsic_core.auditing._input import read_columns
from frhsic_core.conditional._curve import Smoother


def gdp_score(
    y_true: Any, y_pred: Any, *, sensitive_features: Any, sample_weight: Any = None, label: float | None = None
) -> float:
    """Return GDP, the mean distance between E[prediction | S] and the overall mean.

    The same number as :func:`frhsic_core.gdp`, with the arguments of a metric; categories and missing values are
    allowed, as in :func:`frhsic_core.audit`.

    Parameters
    ----------
    y_true, y_pred : array_like
        Labels and predictions. The labels are ignored without ``label``, as in fairlearn's demographic parity.
    sensitive_features : array_like
        One attribute, numbers or categories.
    sample_weight : array_like, optional
        Weights of the rows.
    label : float, optional
        Use only the rows with this label. Label 1 gives equal opportunity; equalized odds is the larger of the numbers
        for label 1 and label 0.

    Examples
    --------
    >>> gdp_score(None, [0.0] * 20 + [1.0] * 20, sensitive_features=[30] * 20 + [50] * 20)
    0.5
    """
    if label is not None and y_true is None:
        raise ValueError("y_true is None: with label= the metric needs the label of each row.")
    columns = read_columns(y_pred, sensitive_features, None if label is None else y_true, None, sample_weight)
    if len(columns.sensitive) > 1 or len(columns.scores) > 1:
        raise ValueError("a metric takes one column of predictions and one sensitive attribute: pass one of each.")
    attribute, f, weight = columns.sensitive[0], columns.scores[0].values, None
    known = attribute.known & np.isfinite(f)
    if columns.label is not None:
        known &= columns.label.values == label
    if columns.weight is not None:
        known &= np.nan_to_num(columns.weight.values) > 0
        weight = columns.weight.values[known]
    if not known.any():
        raise ValueError(f"no row has a prediction, a value of {attribute.name!r}, and the label if one was given.")
    return Smoother(attribute.values[known], weight=weight, nominal=bool(attribute.categories)).gdp(f[known])[0]
