"""Remove from nonlinear features of X what predicts S: the kernel form of LEACE."""

from __future__ import annotations

import math

import numpy as np

from frhsic_core.remedies.basis import standardized, with_fixed_signs
from frhsic_core.remedies.leace import RANK, AttributeEraser

_COMPONENTS = 100  # random features


class KernelEraser(AttributeEraser):
    r"""Remove what predicts S from nonlinear features of X; S is not needed to predict.

    X is standardized and random Fourier features at the median distance are put beside it, an approximation of the
    feature space of a Gaussian kernel. LEACE then removes what predicts φ(S) from these features, which is a projection
    onto the null space of the cross-covariance operator of X and S: HSIC of the erased features, with the linear kernel
    on them, is zero for φ. A nonlinear learner can still find S in what is left. There are m = 100 random features. An
    X with more columns is first reduced to m principal components. A component or a column without variance becomes a
    column of zeros, for new samples too. The result has min(d, m) + m columns. O(n(d + m)²).

    Parameters
    ----------
    basis, min_correlation
        As in :class:`~frhsic_core.AttributeEraser`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(1000, 1))
    >>> s = x[:, 0] ** 2 + 0.1 * rng.normal(size=1000)
    >>> z = KernelEraser(basis="linear", min_correlation=0.0).fit_transform(x, sensitive_features=s)
    >>> bool(abs(np.corrcoef(z.T, s)[-1, :-1]).max() < 1e-6)
    True
    """

    def _fit_features(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        m = _COMPONENTS
        # Columns without variance become zero, for new samples too.
        self.offset_, self.scale_ = standardized(x, constant=np.inf)
        x = (x - self.offset_) / self.scale_
        self.axes_ = None
        rng = np.random.default_rng(0)
        # Drawn for the columns and then projected, the random features depend on the space of the axes only, not on the
        # choice of axes within it, which is the solver's where variances are equal.
        directions = rng.normal(size=(x.shape[1], m))
        if x.shape[1] > m:  # as many components as new features
            values, axes = np.linalg.eigh(x.T @ x / len(x))
            # An axis without variance, as dependent columns have, is zero: it would show rounding errors, and of a new
            # sample what the training samples do not have.
            axes = with_fixed_signs(axes)
            self.axes_ = np.where(values > RANK * values[-1], axes, 0.0)[:, ::-1][:, :m]
            directions = self.axes_.T @ directions
            x = x @ self.axes_
        rows = x[np.linspace(0, len(x) - 1, min(len(x), 500)).astype(int)]
        squares = ((rows[:, None] - rows[None]) ** 2).sum(-1)
        median = float(np.sqrt(np.median(squares[squares > 0]))) if (squares > 0).any() else 1.0
        self.frequencies_ = directions / median
        self.phases_ = rng.uniform(0, 2 * np.pi, m)
        size = x.shape[1] + m
        return np.zeros(size), np.ones(size)

    def _features_of(self, x: np.ndarray) -> np.ndarray:
        x = (x - self.offset_) / self.scale_
        x = x if self.axes_ is None else x @ self.axes_
        return np.hstack(
            [x, math.sqrt(2.0 / len(self.phases_)) * np.cos(x @ self.frequencies_ + self.phases_)]
        )
