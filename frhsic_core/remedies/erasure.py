"""Transformers that remove from X what predicts S: LEACE, its kernel form, and a correlation remover."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any, Self

import numpy as np
import pandas as pd
import torch
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from frhsic_core.arrays import ArrayLike, fix_signs
from frhsic_core.choices import one_of
from frhsic_core.learning.estimators.columns import coded, has_categories
from frhsic_core.remedies.attributes import (
    BASES,
    AttributeBasis,
    Features,
    read_attributes,
    require_score_attributes,
    require_variation,
    split_columns,
    standardized,
    warn_of_attribute,
    warn_of_missing,
)

_RANK = 1e-10  # directions of X or φ below this share of the largest variance do not exist


def require_strength(strength: Any) -> float:
    """Return the strength; raise an error unless it is a number from 0 to 1."""
    if isinstance(strength, bool | str) or not isinstance(strength, Real) or not 0.0 <= float(strength) <= 1.0:
        raise ValueError(f"strength is {strength!r}: give a number from 0 (no change) to 1 (all of it).")
    return float(strength)


def noise_correlation(n: int, d: int, k: int) -> float:
    r"""Return the largest canonical correlation that independent samples are expected to show.

    This is the upper edge of the law of Wachter (1980) for d and k columns of n samples,

    .. math:: r^2 = a + b - 2ab + 2\sqrt{ab(1-a)(1-b)},\qquad a = d/n,\; b = k/n.

    Examples
    --------
    >>> round(noise_correlation(1000, 10, 8), 3)
    0.189
    """
    a, b = min(d / n, 1.0), min(k / n, 1.0)
    if a + b >= 1.0:
        return 1.0
    return math.sqrt(a + b - 2 * a * b + 2 * math.sqrt(a * b * (1 - a) * (1 - b)))


def _roots(centered: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the pseudo-inverse root of the covariance, and its root, from centered samples."""
    values, vectors = np.linalg.eigh(centered.T @ centered / len(centered))
    kept = values > _RANK * max(values[-1], np.finfo(float).tiny)
    roots = np.sqrt(np.where(kept, values, 0.0))
    inverse = np.divide(1.0, roots, out=np.zeros_like(roots), where=kept)
    return (vectors * inverse) @ vectors.T, (vectors * roots) @ vectors.T


def leace_projection(
    x: np.ndarray, phi: np.ndarray, *, min_correlation: float | str = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""Return the mean of X, the oblique projection that LEACE subtracts, and the canonical correlations.

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
    >>> mean, projection, _ = leace_projection(x, s)
    >>> erased = x - (x - mean) @ projection.T
    >>> bool(abs(np.cov(erased.T, s.T)[3, :3]).max() < 1e-12)
    True
    """
    mean = x.mean(0)
    centered = x - mean
    phi = phi - phi.mean(0)
    whitening, coloring = _roots(centered)
    phi_whitening, _ = _roots(phi)
    cross = whitening @ (centered.T @ phi / len(x)) @ phi_whitening
    directions, correlations, _ = np.linalg.svd(cross, full_matrices=False)
    rank = [int(np.linalg.matrix_rank(part, hermitian=True)) for part in (whitening, phi_whitening)]
    least = noise_correlation(len(x), *rank) if min_correlation == "auto" else float(min_correlation)
    kept = directions[:, correlations > max(least, 1e-8)]
    return mean, coloring @ kept @ kept.T @ whitening, correlations


def retained_map(projection: np.ndarray, x: np.ndarray, strength: float) -> np.ndarray:
    """Return I − strength · projection, with zeros for the columns of which only rounding errors would be left.

    These are the columns that are erased completely, and those that do not vary in the samples x, to which the
    projection adds rounding errors. A learner that scales its columns would turn the errors, which still follow S, into
    a feature. It would also turn what a new sample has in such a column into a huge number.
    """
    kept = np.eye(len(projection)) - strength * projection
    before = x.var(0)
    # From the samples: a product with the covariance would have errors as large as the limit.
    left = (x @ kept.T).var(0)
    kept[(left <= 1e-16 * before) | (before <= _RANK * before.max())] = 0.0
    return kept


class _Remedy(TransformerMixin, BaseEstimator):
    """What the transformers share: the parameters, reading X and S, and names of columns."""

    n_features_out_: int
    _needs_attributes = False  # to transform new samples

    def __init__(
        self,
        basis: str,
        *,
        strength: float,
        n_basis: int,
        sensitive_columns: Sequence[Any] | None,
        random_state: int,
    ) -> None:
        # scikit-learn reads names and defaults of the parameters from the signature of each subclass.
        self.basis = basis
        self.strength = strength
        self.n_basis = n_basis
        self.sensitive_columns = sensitive_columns
        self.random_state = random_state

    def _read_fit(self, X: Any, s: ArrayLike | None) -> tuple[np.ndarray, Any]:
        """Return checked X, and the attributes as a frame (None where they are missing, with a warning)."""
        require_strength(self.strength)
        one_of("basis", self.basis, BASES)
        X, s = split_columns(X, s, self.sensitive_columns)
        given = X
        X = self._checked(X, reset=True)
        self.features_ = Features(X)
        self.n_features_out_ = len(self.features_.names)
        if s is None:
            if self.strength > 0:
                warn_of_missing(type(self).__name__, stacklevel=4)
            return self.features_(X), None
        frame = read_attributes(s, len(X))
        require_variation(frame)
        if not self._needs_attributes:
            warn_of_attribute(given, frame, stacklevel=4)
        return self.features_(X), frame

    def _checked(self, X: Any, *, reset: bool) -> Any:
        """Return a frame with categories as it is, and otherwise numbers, which may be missing."""
        options: dict[str, Any] = {"dtype": np.float64, "ensure_all_finite": "allow-nan", "reset": reset}
        if has_categories(X):
            validate_data(self, coded(X), **options)
            return X
        return validate_data(self, X, **options)

    def _read(self, X: Any, s: ArrayLike | None) -> tuple[np.ndarray, ArrayLike | None]:
        check_is_fitted(self)
        X, s = split_columns(X, s, self.sensitive_columns)
        X = self._checked(X, reset=False)
        if any("levels" in entry for entry in self.features_.plan or ()) and not isinstance(X, pd.DataFrame):
            raise ValueError("X has no text, but fit had categories: pass a DataFrame with the same columns.")
        return self.features_(X), s

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _fit_basis(self, frame: Any) -> AttributeBasis:
        """Return the functions φ, fitted on the attributes."""
        return AttributeBasis(self.basis, self.n_basis, seed=self.random_state).fit(frame)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns that :meth:`transform` returns."""
        check_is_fitted(self)
        if self.n_features_out_ != len(self.features_.names):
            name = type(self).__name__.lower()
            return np.array([f"{name}{i}" for i in range(self.n_features_out_)], dtype=object)
        if self.features_.plan is not None:
            return np.array(self.features_.names, dtype=object)
        names = getattr(self, "feature_names_in_", None)
        if input_features is not None:
            given = np.asarray(input_features, dtype=object)
            if names is not None and not np.array_equal(given, names):
                raise ValueError("input_features is not equal to feature_names_in_")
            if len(given) != self.n_features_in_:
                raise ValueError("input_features should have length equal to number of features")
            return given
        return np.array([f"x{i}" for i in range(self.n_features_out_)], dtype=object) if names is None else names


class AttributeEraser(_Remedy):
    r"""Remove from X, by LEACE, what predicts S or a function of S linearly; S is not needed to predict.

    .. math:: x \mapsto x - \text{strength}\cdot W^+ P W (x - \bar x)

    is the smallest affine change of X after which no linear model on X can predict φ(S) (Belrose et al., 2023). With
    φ(S) = S it removes the correlation. With splines or bins it also flattens E[f(X) | S] for every *linear* f, along
    these functions. A nonlinear learner can still find S in higher moments: see :class:`KernelEraser`. With strength t
    the covariance with φ(S) is exactly 1 − t times that of X. Text and missing values of X first become numbers:
    indicators and medians. O(n(d + k)² + d³).

    Parameters
    ----------
    basis : {"linear", "spline", "bins", "fourier"}
        The functions φ. Categorical attributes become indicators in each of them.
    strength : float
        0 leaves X unchanged, 1 removes everything. A learner can undo a strength below 1, because the map is then
        invertible: to give up less score, blend the predictions with and without the eraser.
    n_basis : int
        Number of functions for each numeric attribute.
    min_correlation : float or "auto"
        Canonical correlations up to this one are left. ``"auto"`` is the largest that independent samples of this size
        would show, so that few samples or many functions do not erase X completely. 0 is LEACE as published.
    sensitive_columns : list, optional
        Names or positions of the columns of X that are the attributes. They are not returned. Use this in a pipeline
        instead of ``sensitive_features``.
    random_state : int
        Seed of ``basis="fourier"``.

    Attributes
    ----------
    correlations_ : ndarray
        Canonical correlations of X and φ(S) in the training samples.
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

    def __init__(
        self,
        basis: str = "spline",
        *,
        strength: float = 1.0,
        n_basis: int = 8,
        min_correlation: float | str = "auto",
        sensitive_columns: Sequence[Any] | None = None,
        random_state: int = 0,
    ) -> None:
        super().__init__(
            basis, strength=strength, n_basis=n_basis, sensitive_columns=sensitive_columns, random_state=random_state
        )
        self.min_correlation = min_correlation

    def fit(self, X: Any, y: Any = None, *, sensitive_features: ArrayLike | None = None) -> Self:
        """Fit on training samples; ``sensitive_features`` is ``(n,)``, ``(n, p)`` or a frame with any columns."""
        X, frame = self._read_fit(X, sensitive_features)
        self.mean_ = X.mean(0)
        self.retained_ = np.eye(X.shape[1])
        self.correlations_ = np.zeros(0)
        self.n_erased_ = 0
        if frame is None or self.strength == 0:
            return self
        phi = self._fit_basis(frame).transform(frame)
        # Columns with large units must not decide which directions of small variance exist.
        offset, scale = standardized(X)
        x = (X - offset) / scale
        _, projection, self.correlations_ = leace_projection(x, phi, min_correlation=_least(self.min_correlation))
        self.retained_ = scale[:, None] * retained_map(projection, x, self.strength) / scale
        self.n_erased_ = round(float(np.trace(projection)))
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return X without what predicts φ(S), in the same columns."""
        X, _ = self._read(X, None)
        return X if self.n_erased_ == 0 else self.mean_ + (X - self.mean_) @ self.retained_.T


def _least(value: Any) -> float | str:
    if value != "auto" and (
        isinstance(value, str | bool) or not isinstance(value, Real) or not 0.0 <= float(value) < 1.0
    ):
        raise ValueError(f"min_correlation is {value!r}: give a number from 0 to 1, or 'auto'.")
    return value


class KernelEraser(_Remedy):
    r"""Remove what predicts S from nonlinear features of X; S is not needed to predict.

    X is standardized and random Fourier features at the median distance are put beside it, an approximation of the
    feature space of a Gaussian kernel. LEACE then removes what predicts φ(S) from these features, which is a projection
    onto the null space of the cross-covariance operator of X and S: HSIC of the erased features, with the linear kernel
    on them, is zero for φ. With several ``rounds`` the result is reduced to its principal components, gets random
    features of its own and is erased again, which removes what a nonlinear learner could still find. O(n(d + m)²) for
    each round with m features.

    Parameters
    ----------
    basis, strength, n_basis, min_correlation, sensitive_columns, random_state
        As in :class:`AttributeEraser`. The strength mixes the features with the erased ones.
    n_components : int
        Number m of random features in each round. If X has more columns, it is first reduced to m principal components.
        A component or a column without variance becomes a column of zeros, for new samples too.
    rounds : int
        Number of erasures.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(1000, 1))
    >>> s = x[:, 0] ** 2 + 0.1 * rng.normal(size=1000)
    >>> z = KernelEraser(basis="linear", min_correlation=0.0).fit_transform(x, sensitive_features=s)
    >>> bool(abs(np.corrcoef(z.T, s)[-1, :-1]).max() < 1e-6)
    True
    """

    def __init__(
        self,
        basis: str = "spline",
        *,
        strength: float = 1.0,
        n_basis: int = 8,
        n_components: int = 100,
        rounds: int = 1,
        min_correlation: float | str = "auto",
        sensitive_columns: Sequence[Any] | None = None,
        random_state: int = 0,
    ) -> None:
        super().__init__(
            basis, strength=strength, n_basis=n_basis, sensitive_columns=sensitive_columns, random_state=random_state
        )
        self.n_components = n_components
        self.rounds = rounds
        self.min_correlation = min_correlation

    def fit(self, X: Any, y: Any = None, *, sensitive_features: ArrayLike | None = None) -> Self:
        """Fit on training samples; ``sensitive_features`` is ``(n,)``, ``(n, p)`` or a frame with any columns."""
        for name, value in (("n_components", self.n_components), ("rounds", self.rounds)):
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
                raise ValueError(f"{name} is {value!r}: it must be a positive whole number.")
        X, frame = self._read_fit(X, sensitive_features)
        rng = np.random.default_rng(self.random_state)
        phi = None if frame is None else self._fit_basis(frame).transform(frame)
        self.rounds_: list[_Round] = []
        z = X
        for _ in range(self.rounds):
            step = _Round(z, self.n_components, first=not self.rounds_, rng=rng)
            if phi is not None:
                step.erase(z, phi, self.strength, _least(self.min_correlation))
            self.rounds_.append(step)
            z = step(z)
        self.n_features_out_ = z.shape[1]
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the erased features, ``(n, min(d, n_components) + n_components)`` for one round."""
        z, _ = self._read(X, None)
        for step in self.rounds_:
            z = step(z)
        return z


class _Round:
    """One round of the kernel eraser: principal components, random features, erasure."""

    def __init__(self, x: np.ndarray, features: int, *, first: bool, rng: np.random.Generator) -> None:
        # Columns without variance become zero, for new samples too.
        self.offset, self.scale = standardized(x, constant=np.inf)
        if not first:  # the columns of X have units of their own, but those of a later round can be compared
            spread = x.std(0)
            self.scale = np.where(spread > math.sqrt(_RANK) * spread.max(), self.scale, np.inf)
        self.axes = None
        x = (x - self.offset) / self.scale
        if x.shape[1] > features:  # as many components as new features
            values, axes = np.linalg.eigh(x.T @ x / len(x))
            # An axis without variance, as dependent columns have, is zero: it would show rounding errors, and of a new
            # sample what the training samples do not have.
            axes = fix_signs(torch.from_numpy(axes)).numpy()
            self.axes = np.where(values > _RANK * values[-1], axes, 0.0)[:, ::-1][:, :features]
        # Drawn for the columns and then projected, the random features depend on the space of the axes only, not on the
        # choice of axes within it, which is the solver's where variances are equal.
        directions = rng.normal(size=(x.shape[1], features))
        if self.axes is not None:
            directions = self.axes.T @ directions
            x = x @ self.axes
        rows = x[np.linspace(0, len(x) - 1, min(len(x), 500)).astype(int)]
        squares = ((rows[:, None] - rows[None]) ** 2).sum(-1)
        median = float(np.sqrt(np.median(squares[squares > 0]))) if (squares > 0).any() else 1.0
        self.frequencies = directions / median
        self.phases = rng.uniform(0, 2 * np.pi, features)
        self.mean = np.zeros(x.shape[1] + features)
        self.retained: np.ndarray | None = None

    def erase(self, x: np.ndarray, phi: np.ndarray, strength: float, min_correlation: float | str) -> None:
        """Fit the erasure of this round's features."""
        z = self(x)
        self.mean, projection, _ = leace_projection(z, phi, min_correlation=min_correlation)
        self.retained = retained_map(projection, z, strength)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        x = (x - self.offset) / self.scale
        x = x if self.axes is None else x @ self.axes
        z = np.hstack([x, math.sqrt(2.0 / len(self.phases)) * np.cos(x @ self.frequencies + self.phases)])
        return z if self.retained is None else self.mean + (z - self.mean) @ self.retained.T


class CorrelationRemover(_Remedy):
    r"""Subtract from each column of X what a regression on φ(S) predicts; **S is needed to transform new samples**.

    .. math:: x \mapsto x - \text{strength}\cdot B^\top(\varphi(s) - \overline{\varphi(s)}),\qquad
        B = \text{least squares}

    With ``basis="linear"`` this is the correlation remover of fairlearn. Other bases remove the dependence of the mean
    of X on S along more functions. It removes more than :class:`AttributeEraser`, because it may use S of the person
    that is predicted. Where the law does not allow this, use the eraser. O(nk(d + k)).

    Parameters
    ----------
    basis, strength, n_basis, random_state
        As in :class:`AttributeEraser`; the default basis is linear.
    sensitive_columns : list, optional
        Names or positions of the columns of X that are the attributes, as ``sensitive_feature_ids`` of fairlearn. They
        are not returned. In a pipeline this is the only way to pass S to ``predict``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> age = rng.uniform(20, 70, 500)
    >>> X = np.column_stack([age + rng.normal(size=500), rng.normal(size=500)])
    >>> remover = CorrelationRemover().fit(X, sensitive_features=age)
    >>> bool(abs(np.corrcoef(remover.transform(X, sensitive_features=age).T, age)[2, :2]).max() < 1e-9)
    True
    """

    _needs_attributes = True

    def __init__(
        self,
        basis: str = "linear",
        *,
        strength: float = 1.0,
        n_basis: int = 8,
        sensitive_columns: Sequence[Any] | None = None,
        random_state: int = 0,
    ) -> None:
        super().__init__(
            basis, strength=strength, n_basis=n_basis, sensitive_columns=sensitive_columns, random_state=random_state
        )

    def fit(self, X: Any, y: Any = None, *, sensitive_features: ArrayLike | None = None) -> Self:
        """Fit on training samples; ``sensitive_features`` is ``(n,)``, ``(n, p)`` or a frame with any columns."""
        if sensitive_features is not None:
            require_score_attributes(type(self).__name__)
        X, frame = self._read_fit(X, sensitive_features)
        self.basis_ = None
        if frame is None:
            return self
        self.basis_ = self._fit_basis(frame)
        phi = self.basis_.transform(frame)
        self.phi_mean_ = phi.mean(0)
        self.coefficients_ = np.linalg.lstsq(phi - self.phi_mean_, X - X.mean(0), rcond=1e-8)[0]
        return self

    def transform(self, X: Any, *, sensitive_features: ArrayLike | None = None) -> np.ndarray:
        """Return X minus what S predicts; ``sensitive_features`` are those of these samples."""
        X, s = self._read(X, sensitive_features)
        if self.basis_ is None:
            return X
        if s is None:
            raise ValueError(
                "sensitive_features is missing: CorrelationRemover needs S of every sample that it transforms. Pass "
                "transform(X, sensitive_features=s), set sensitive_columns, or use AttributeEraser."
            )
        phi = self.basis_.transform(read_attributes(s, len(X))) - self.phi_mean_
        return X - self.strength * phi @ self.coefficients_

    def fit_transform(self, X: Any, y: Any = None, *, sensitive_features: ArrayLike | None = None) -> np.ndarray:
        """Fit, then transform the same samples with the same attributes."""
        return self.fit(X, y, sensitive_features=sensitive_features).transform(X, sensitive_features=sensitive_features)
