"""Combine predictions and functions of S: the loss, a penalty on the covariance with S, a ridge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import minimize

from frhsic_core.remedies.links import Link

_RIDGE = 0.01  # of the curvature of the loss along one column
_STRONGEST = 1e6  # the weight that stands for an infinite one


class Combination:
    r"""The weights θ of columns D = (predictions, functions of S) along a path of penalties.

    .. math:: \min_\theta\; \frac1n\sum_i \ell(y_i, \eta_i)
        + \frac\lambda2\,\Big\|\frac1n\sum_i \eta_i\,\psi(s_i)\Big\|^2
        + \frac\rho2\sum_j v_j(\theta_j - \theta^0_j)^2,\qquad \eta = \theta_c + D\theta

    The loss is that of the link: squares for numbers, the logistic loss for probabilities. It is
    convex in θ, and so is the penalty. The ridge, with the variances v of the columns (for
    predictions at least that of the best one), pulls toward
    θ⁰, which is 1 for the best single prediction and 0 elsewhere: without it, predictions that are
    nearly alike would get huge weights of both signs.

    A strength t in [0, 1] is the penalty with λ = t / (1 − t), in units in which λ = 1 halves the
    covariance on average if the loss is a square. Each strength takes a few Newton steps with
    O(nq²) operations for q columns.
    """

    def __init__(self, link: Link) -> None:
        self.link = link

    def fit(
        self,
        columns: np.ndarray,
        y: np.ndarray,
        psi: np.ndarray,
        strengths: Sequence[float],
        *,
        best: int,
        models: int,
    ) -> Combination:
        """Fit the weights for each strength.

        The first ``models`` columns are predictions, and column ``best`` is the best of them.
        """
        design = _with_constant(columns)
        psi = psi - psi.mean(0)
        covariance = psi.T @ design / len(y)
        theta = np.zeros(design.shape[1])
        theta[1 + best] = 1.0
        curvature = float(np.mean(self.link.slope(columns[:, best])))
        # A prediction that is nearly constant must not get a huge weight: it would follow the noise
        # of its folds, and blow up a new sample for which it is not constant.
        variances = columns.var(0)
        variances[:models] = np.maximum(variances[:models], variances[best])
        ridge = _RIDGE * curvature * np.append(0.0, variances)
        unit = curvature / self._reach(columns, psi)
        problem = _Problem(self.link, design, y, covariance, ridge, theta.copy())
        weights = []
        for strength in strengths:
            theta = problem.solved(unit * _weight(strength), theta)
            weights.append(theta)
        self.weights = np.array(weights)
        return self

    def __call__(self, columns: np.ndarray) -> np.ndarray:
        """Return the combined predictions ``(strengths, n)``."""
        return np.asarray(self.link.inverse(self.weights @ _with_constant(columns).T))

    @staticmethod
    def _reach(columns: np.ndarray, psi: np.ndarray) -> float:
        """Return how much of a function of S the columns can express, 1 if all of it, on average."""
        if not psi.size:
            return 1.0
        centered = columns - columns.mean(0)
        expressed = centered @ np.linalg.lstsq(centered, psi, rcond=None)[0]
        return max(float((expressed**2).mean() / (psi**2).mean()), 1e-3)


class _Problem:
    """The convex objective and its minimizer for one weight of the penalty."""

    def __init__(
        self, link: Link, design: np.ndarray, y: np.ndarray, covariance: np.ndarray,
        ridge: np.ndarray, center: np.ndarray,
    ) -> None:  # fmt: skip
        self.link = link
        self.design = design
        self.y = y
        self.covariance = covariance
        self.ridge = ridge
        self.center = center

    def solved(self, weight: float, start: np.ndarray) -> np.ndarray:
        """Return the minimizer."""
        penalty = weight * self.covariance.T @ self.covariance + np.diag(self.ridge)
        pull = self.ridge * self.center
        rows = len(self.y)

        def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
            eta = self.design @ theta
            value = np.mean(self.link.potential(eta) - self.y * eta)
            value += 0.5 * theta @ penalty @ theta - pull @ theta
            gradient = self.design.T @ (self.link.inverse(eta) - self.y) / rows
            return float(value), gradient + penalty @ theta - pull

        def curvature(theta: np.ndarray) -> np.ndarray:
            slope = self.link.slope(self.design @ theta)
            return self.design.T @ (self.design * slope[:, None]) / rows + penalty

        options: dict[str, Any] = {"gtol": 1e-10}
        found = minimize(
            loss, start, jac=True, hess=curvature, method="trust-exact", options=options
        )
        return np.asarray(found.x)


def _weight(strength: float) -> float:
    if strength >= 1.0:
        return _STRONGEST
    return min(strength / (1.0 - strength), _STRONGEST)


def _with_constant(columns: np.ndarray) -> np.ndarray:
    return np.insert(columns, 0, 1.0, axis=1)
