"""Leave out the columns of X that tell S best."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags, check_array
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from frhsic_core._arrays import ArrayLike
from frhsic_core.inputs.features import columns_of, fit_columns
from frhsic_core.remedies.attributes import attributes_to_fit, checked_features
from frhsic_core.remedies.basis import StandardFunctions

_NUMBERS: dict[str, Any] = {"dtype": np.float64, "ensure_all_finite": "allow-nan"}


class ColumnRemover(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""Remove the columns of X that tell S best; S is not needed to predict.

    A column's rank is the share of its variance that functions of S explain,

    .. math:: R^2_j = \sum_k \mathrm{Cor}(x_j, \psi_k(S))^2

    with functions ψ of mean 0 and covariance 1. Text and missing values of X first become numbers,
    and each indicator is a column. What the other columns tell together stays. O(ndk).

    Parameters
    ----------
    columns : int
        How many columns are removed; one always stays.

    Attributes
    ----------
    removed_ : ndarray
        Their numbers, the one that tells S best first.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> age = rng.uniform(20, 70, 500)
    >>> X = np.column_stack([rng.normal(size=500), age + rng.normal(size=500)])
    >>> ColumnRemover(1).fit(X, sensitive_features=age).removed_.tolist()
    [1]
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "columns": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(self, columns: int = 2) -> None:
        self.columns = columns

    def fit(self, X: Any, y: Any = None, *, sensitive_features: ArrayLike | None = None) -> Self:
        """Fit on training samples; ``sensitive_features`` is ``(n,)``, ``(n, p)`` or a frame."""
        self._validate_params()
        X = checked_features(self, X, reset=True, **_NUMBERS)
        self.plan_ = fit_columns(X)
        x = check_array(columns_of(X, self.plan_))
        frame = attributes_to_fit(self, X, sensitive_features, predicts_without=True)
        self.removed_ = np.empty(0, dtype=int)
        if frame is not None:
            told = told_of(x, StandardFunctions().fit(frame).transform(frame))
            count = min(self.columns, x.shape[1] - 1)
            self.removed_ = np.argsort(-told, kind="stable")[:count]
        self.kept_ = np.setdiff1d(np.arange(x.shape[1]), self.removed_)
        self._n_features_out = len(self.kept_)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the other columns."""
        check_is_fitted(self)
        X = checked_features(self, X, reset=False, **_NUMBERS)
        return np.asarray(check_array(columns_of(X, self.plan_))[:, self.kept_])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def told_of(x: np.ndarray, psi: np.ndarray) -> np.ndarray:
    r"""Return the share of each column's variance that functions of S explain, 0 of a constant one.

    .. math:: R^2_j = \sum_k \mathrm{Cor}(x_j, \psi_k(S))^2

    for functions with mean 0 and covariance 1. O(ndk).

    Examples
    --------
    >>> s = np.array([[-1.0], [1.0], [-1.0], [1.0]])
    >>> told_of(np.column_stack([s, [1.0, 1.0, -1.0, -1.0]]), s).tolist()
    [1.0, 0.0]
    """
    centered = x - x.mean(0)
    spread = centered.std(0)
    covariance = centered.T @ psi / len(x)
    shape = np.zeros_like(covariance)
    correlation = np.divide(covariance, spread[:, None], out=shape, where=spread[:, None] > 0)
    return (correlation**2).sum(1)
