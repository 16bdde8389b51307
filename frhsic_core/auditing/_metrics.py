"""Metric functions with fairlearn's conventions, and a scikit-learn scorer.

``y_true`` and ``y_pred`` come first and ``sensitive_features`` is a keyword, as in fairlearn. Inside a ``MetricFrame``
the numeric attribute is a sample parameter, and the frame groups by the categorical one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from frhsic_core.auditing._input import read_columns
from frhsic_core.conditional._curve import Smoother


def _gap(
    y_true: Any,
    y_pred: Any,
    sensitive_features: Any,
    sample_weight: Any,
    *,
    label: float | None = None,
    error: bool = False,
) -> float:
    columns = read_columns(y_pred, sensitive_features, y_true, None, sample_weight)
    if len(columns.sensitive) > 1 or len(columns.scores) > 1:
        raise ValueError("a metric takes one column of predictions and one sensitive attribute: pass one of each.")
    attribute = columns.sensitive[0]
    f = columns.scores[0].values
    known = attribute.known & np.isfinite(f)
    if error or label is not None:
        if columns.label is None:
            raise ValueError("y_true is None: this metric compares predictions with labels.")
        y = columns.label.values
        known &= np.isfinite(y) if label is None else y == label
    if columns.weight is not None:
        known &= np.nan_to_num(columns.weight.values) > 0
    s = attribute.values[known]
    if len(s) == 0:
        raise ValueError(
            f"no row has a prediction and a value of {attribute.name!r}" + (f" and label {label:g}." if label else ".")
        )
    weight = None if columns.weight is None else columns.weight.values[known]
    smoother = Smoother(s, weight=weight, nominal=bool(attribute.categories))
    return smoother.gdp((y - f)[known], center=0.0)[0] if error else smoother.gdp(f[known])[0]


def gdp_score(y_true: Any, y_pred: Any, *, sensitive_features: Any, sample_weight: Any = None) -> float:
    """Return GDP, the mean distance between E[prediction | S] and the overall mean; ``y_true`` is not used.

    The same number as :func:`frhsic_core.gdp`, with the arguments of a metric; categories and missing values are
    allowed, as in :func:`frhsic_core.audit`.

    Parameters
    ----------
    y_true, y_pred : array_like
        Labels (ignored, as in fairlearn's demographic parity) and predictions.
    sensitive_features : array_like
        One attribute, numbers or categories.
    sample_weight : array_like, optional
        Weights of the rows.

    Examples
    --------
    >>> gdp_score(None, [0.0] * 20 + [1.0] * 20, sensitive_features=[30] * 20 + [50] * 20)
    0.5
    """
    return _gap(None, y_pred, sensitive_features, sample_weight)


def equal_opportunity_gap(y_true: Any, y_pred: Any, *, sensitive_features: Any, sample_weight: Any = None) -> float:
    """Return the same as :func:`gdp_score` among the rows with label 1."""
    return _gap(y_true, y_pred, sensitive_features, sample_weight, label=1.0)


def equalized_odds_gap(y_true: Any, y_pred: Any, *, sensitive_features: Any, sample_weight: Any = None) -> float:
    """Return the larger of the gaps among the rows with label 1 and with label 0."""
    return max(_gap(y_true, y_pred, sensitive_features, sample_weight, label=label) for label in (1.0, 0.0))


def calibration_gap(y_true: Any, y_pred: Any, *, sensitive_features: Any, sample_weight: Any = None) -> float:
    """Return the mean distance from zero of E[label − prediction | S]."""
    return _gap(y_true, y_pred, sensitive_features, sample_weight, error=True)


def gap_scorer(metric: Callable[..., float] = gdp_score, **options: Any) -> Any:
    """Return a scikit-learn scorer that is largest where the gap is smallest.

    The scorer asks for ``sensitive_features``; metadata routing carries them through cross-validation.

    Parameters
    ----------
    metric : callable
        One of the metrics of this module.
    **options
        Further arguments of :func:`sklearn.metrics.make_scorer`, such as ``response_method="predict_proba"``.

    Examples
    --------
    >>> import sklearn
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     scorer = gap_scorer(response_method="predict_proba")
    """
    from sklearn import get_config
    from sklearn.metrics import make_scorer

    scorer = make_scorer(metric, greater_is_better=False, **options)
    return scorer.set_score_request(sensitive_features=True) if get_config()["enable_metadata_routing"] else scorer
