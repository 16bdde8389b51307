"""Links: the scale on which scores are moved, so that probabilities and premiums stay what they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit

FARTHEST = 15.0  # probabilities of exactly 0 and 1 count as this logit


class Link:
    r"""A scale η = g(score), with the score g⁻¹(η) and a potential whose derivative is g⁻¹."""

    name: str

    def of(self, score: np.ndarray) -> np.ndarray:
        """Return η of scores."""
        raise NotImplementedError

    def inverse(self, eta: np.ndarray) -> np.ndarray:
        """Return scores."""
        raise NotImplementedError

    def potential(self, eta: np.ndarray) -> np.ndarray:
        """Return a function of η with the derivative g⁻¹(η)."""
        raise NotImplementedError

    def slope(self, eta: np.ndarray) -> np.ndarray:
        """Return the derivative of g⁻¹."""
        raise NotImplementedError


@dataclass(frozen=True)
class Identity(Link):
    """Scores of any unit."""

    name: str = "identity"

    def of(self, score: np.ndarray) -> np.ndarray:
        return score

    def inverse(self, eta: np.ndarray) -> np.ndarray:
        return eta

    def potential(self, eta: np.ndarray) -> np.ndarray:
        return eta**2 / 2.0

    def slope(self, eta: np.ndarray) -> np.ndarray:
        return np.ones_like(eta)


@dataclass(frozen=True)
class Log(Link):
    """Positive scores, such as premiums and expected numbers of claims: they are multiplied."""

    name: str = "log"

    def of(self, score: np.ndarray) -> np.ndarray:
        return np.log(score)

    def inverse(self, eta: np.ndarray) -> np.ndarray:
        return np.exp(eta)

    def potential(self, eta: np.ndarray) -> np.ndarray:
        return np.exp(eta)

    def slope(self, eta: np.ndarray) -> np.ndarray:
        return np.exp(eta)


@dataclass(frozen=True)
class Logit(Link):
    """Probabilities; those of exactly 0 and 1 have a logit of ±15."""

    name: str = "logit"

    def of(self, score: np.ndarray) -> np.ndarray:
        return np.clip(logit(score), -FARTHEST, FARTHEST)

    def inverse(self, eta: np.ndarray) -> np.ndarray:
        return expit(eta)

    def potential(self, eta: np.ndarray) -> np.ndarray:
        return np.logaddexp(0.0, eta)

    def slope(self, eta: np.ndarray) -> np.ndarray:
        p = expit(eta)
        return p * (1.0 - p)


IDENTITY, LOG, LOGIT = Identity(), Log(), Logit()
LINKS: dict[str, Link] = {link.name: link for link in (IDENTITY, LOG, LOGIT)}


def flat_offset(
    eta: np.ndarray, phi: np.ndarray, *, link: Link = LOGIT, weight: np.ndarray | None = None
) -> np.ndarray:
    r"""Return β for which the mean of g⁻¹(η + φβ) does not depend on S along the functions φ.

    .. math:: \sum_i w_i\,\varphi(s_i)\,\{g^{-1}(\eta_i + \varphi(s_i)^\top\beta) - \bar f\} = 0,
        \qquad \bar f = \sum_i w_i\, g^{-1}(\eta_i) \Big/ \sum_i w_i

    These are the equations of a regression of the constant target f̄ with the offset η: a logistic
    regression for probabilities, a Poisson regression for the log link, least squares for the
    identity. The solution is unique up to functions that are zero on the samples. ``phi`` includes
    a constant column, so the mean of the scores stays. O(nk²) for each of a few steps.

    Examples
    --------
    >>> s = np.linspace(-1, 1, 200)
    >>> phi = np.column_stack([np.ones(200), s])
    >>> p = expit(3 * s + phi @ flat_offset(3 * s, phi))
    >>> bool(abs(p @ s) < 1e-6), bool(abs(p.mean() - expit(3 * s).mean()) < 1e-6)
    (True, True)
    """
    w = np.ones(len(eta)) if weight is None else weight / weight.mean()
    if link is IDENTITY:
        return _least_squares(eta, phi, w)
    # In units of the mean score, a solver's tolerance is a relative one.
    unit = 1.0
    if link is LOG:
        unit = np.average(link.inverse(eta), weights=w)
        eta = eta - np.log(unit)
    target = np.average(link.inverse(eta), weights=w)
    rows = len(eta)

    def loss(beta: np.ndarray) -> tuple[float, np.ndarray]:
        moved = eta + phi @ beta
        value = np.mean(w * (link.potential(moved) - target * moved))
        gradient = phi.T @ (w * (link.inverse(moved) - target)) / rows
        return float(value), gradient

    def curvature(beta: np.ndarray) -> np.ndarray:
        slope = w * link.slope(eta + phi @ beta)
        return phi.T @ (phi * slope[:, None]) / rows + 1e-9 * np.eye(phi.shape[1])

    start = np.zeros(phi.shape[1])
    options = {"gtol": 1e-14}
    found = minimize(loss, start, jac=True, hess=curvature, method="trust-exact", options=options)
    return np.asarray(found.x)


def _least_squares(score: np.ndarray, phi: np.ndarray, w: np.ndarray) -> np.ndarray:
    root = np.sqrt(w)
    beta = -np.linalg.lstsq(phi * root[:, None], score * root, rcond=None)[0]
    # The first function is constant: the mean of the scores stays.
    beta[0] -= np.average(phi @ beta, weights=w)
    return beta
