"""Remove from X what predicts S linearly: LEACE."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags, check_array
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from frhsic_core._arrays import ArrayLike
from frhsic_core.inputs.features import columns_of, fit_columns
from frhsic_core.inputs.fitting import require_squares
from frhsic_core.remedies.attributes import attributes_to_fit, checked_features
from frhsic_core.remedies.basis import BASES, AttributeBasis, standardized

_NUMBERS: dict[str, Any] = {"dtype": np.float64, "ensure_all_finite": "allow-nan"}
RANK = 1e-10  # directions of X or φ below this share of the largest variance do not exist


def noise_correlation(n: int, d: int, k: int) -> float:
    r"""Return the largest canonical correlation that independent samples are expected to show.

    This is the upper edge of the law of Wachter (1980) for d and k columns of n samples,

    .. math:: r^2 = a + b - 2ab + 2\sqrt{ab(1-a)(1-b)},\qquad a = d/n,\; b = k/n.

    Examples
    --------
    >>> round(noise_correlation(100, 30, 40), 3)
    0.953
    """
    a, b = min(d / n, 1.0), min(k / n, 1.0)
    if a + b >= 1.0:
        return 1.0
    return math.sqrt(a + b - 2 * a * b + 2 * math.sqrt(a * b * (1 - a) * (1 - b)))


def _roots(centered: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the pseudo-inverse root of the covariance, and its root, from centered samples."""
    values, vectors = np.linalg.eigh(centered.T @ centered / len(centered))
    kept = values > RANK * max(values[-1], np.finfo(float).tiny)
    roots = np.sqrt(np.where(kept, values, 0.0))
    inverse = np.divide(1.0, roots, out=np.zeros_like(roots), where=kept)
    return (vectors * inverse) @ vectors.T, (vectors * roots) @ vectors.T


def leace_projection(
    x: np.ndarray, phi: np.ndarray, *, min_correlation: float | str = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    r"""Return the oblique projection that LEACE subtracts from centered X, and the canonical correlations.

    .. math:: r(x) = x - W^+ P W (x - \bar x),\qquad W = (\Sigma_{xx}^{1/2})^+,\quad
        P = \text{the orthogonal projection onto the columns of } W\Sigma_{x\varphi}

    (Belrose et al., 2023, theorem 4.2). Among all affine maps that leave no covariance with φ it changes X least. The
    columns of WΣ_{xφ} are taken in the coordinates of canonical correlation, which spans the same space. Directions
    with a correlation of at most ``min_correlation`` stay; ``"auto"`` is :func:`noise_correlation`. O(n(d + k)² + d³).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(50, 3))
    >>> s = x[:, :1] + x[:, 1:2]
    >>> projection, _ = leace_projection(x, s)
    >>> erased = x - (x - x.mean(0)) @ projection.T
    >>> bool(abs(np.cov(erased.T, s.T)[3, :3]).max() < 1e-12)
    True
    """
    centered = x - x.mean(0)
    phi = phi - phi.mean(0)
    whitening, coloring = _roots(centered)
    phi_whitening, _ = _roots(phi)
    cross = whitening @ (centered.T @ phi / len(x)) @ phi_whitening
    directions, correlations, _ = np.linalg.svd(cross, full_matrices=False)
    rank = [int(np.linalg.matrix_rank(part, hermitian=True)) for part in (whitening, phi_whitening)]
    least = (
        noise_correlation(len(x), *rank) if min_correlation == "auto" else float(min_correlation)
    )
    kept = directions[:, correlations > max(least, 1e-8)]
    return coloring @ kept @ kept.T @ whitening, correlations


def retained_map(projection: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return I − projection, with zeros for the columns of which only rounding errors would be left.

    These are the columns that are erased completely, and those that do not vary in the samples x, to which the
    projection adds rounding errors. A learner that scales its columns would turn the errors, which still follow S, into
    a feature. It would also turn what a new sample has in such a column into a huge number.
    """
    kept = np.eye(len(projection)) - projection
    before = x.var(0)
    # From the samples: a product with the covariance would have errors as large as the limit.
    left = (x @ kept.T).var(0)
    kept[(left <= 1e-16 * before) | (before <= RANK * before.max())] = 0.0
    return kept


class AttributeEraser(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""Remove from X, by LEACE, what predicts S or a function of S linearly; S is not needed to predict.

    .. math:: x \mapsto x - W^+ P W (x - \bar x)

    is the smallest affine change of X after which no linear model on X can predict φ(S) (Belrose et al., 2023). With
    φ(S) = S it removes the correlation. With splines it also flattens E[f(X) | S] for every *linear* f, along
    these functions. A nonlinear learner can still find S in higher moments: see
    :class:`~frhsic_core.KernelEraser`. A learner can undo a map that erases only a part, since it is invertible: to
    give up less score, blend the predictions with and without the eraser. Text and missing values of X first become
    numbers: indicators and medians. O(n(d + k)² + d³).

    Parameters
    ----------
    basis : {"linear", "spline"}
        The functions φ: S itself, or eight splines of each numeric attribute. Categories become indicators.
    min_correlation : float or "auto"
        Canonical correlations up to this one are left. ``"auto"`` is the largest that independent samples of this size
        would show, so that few samples or many functions do not erase X completely. 0 is LEACE as published.

    Attributes
    ----------
    n_erased_ : int
        Number of directions of X that were removed.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> age = rng.uniform(20, 70, 500)
    >>> X = np.column_stack([age + rng.normal(size=500), rng.normal(size=500)])
    >>> erased = AttributeEraser(basis="linear").fit_transform(X, sensitive_features=age)
    >>> bool(abs(np.corrcoef(erased.T, age)[2, :2]).max() < 0.1)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "basis": [StrOptions(set(BASES))],
        "min_correlation": [Interval(Real, 0, 1, closed="left"), StrOptions({"auto"})],
    }

    def __init__(self, basis: str = "spline", *, min_correlation: float | str = "auto") -> None:
        self.basis = basis
        self.min_correlation = min_correlation

    def fit(self, X: Any, y: Any = None, *, sensitive_features: ArrayLike | None = None) -> Self:
        """Fit on training samples; ``sensitive_features`` is ``(n,)``, ``(n, p)`` or a frame with any columns."""
        self._validate_params()
        X = checked_features(self, X, reset=True, **_NUMBERS)
        self.columns_ = fit_columns(X)
        x = check_array(columns_of(X, self.columns_))
        require_squares(x)
        frame = attributes_to_fit(self, X, sensitive_features, predicts_without=True)
        offset, scale = self._fit_features(x)
        z = self._features_of(x)
        self._n_features_out = z.shape[1]
        self.mean_ = z.mean(0)
        self.n_erased_ = 0
        if frame is not None:
            phi = AttributeBasis(self.basis).fit(frame).transform(frame)
            scaled = (z - offset) / scale
            projection, _ = leace_projection(scaled, phi, min_correlation=self.min_correlation)
            self.retained_ = scale[:, None] * retained_map(projection, scaled) / scale
            self.n_erased_ = round(float(np.trace(projection)))
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the features of X without what predicts φ(S)."""
        check_is_fitted(self)
        X = checked_features(self, X, reset=False, **_NUMBERS)
        z = self._features_of(check_array(columns_of(X, self.columns_)))
        return z if self.n_erased_ == 0 else self.mean_ + (z - self.mean_) @ self.retained_.T

    def _fit_features(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Fit the features of X, and return an offset and the unit of each in which a change is small or large."""
        # Columns with large units must not decide which directions of small variance exist.
        return standardized(x, constant=1.0)

    def _features_of(self, x: np.ndarray) -> np.ndarray:
        """Return the features of X."""
        return x

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
