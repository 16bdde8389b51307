"""Closed-form regressions with limited dependence on S: an HSIC penalty, and a bound on the R² of S."""

from __future__ import annotations

import numpy as np


def hsic_ridge(
    features: np.ndarray, y: np.ndarray, psi: np.ndarray, *, penalty: float, ridge: float = 1e-3
) -> np.ndarray:
    r"""Return the coefficients of least squares with a ridge and an HSIC penalty, in closed form.

    .. math:: \min_w\; \tfrac1n\|y - \Phi w\|^2 + \rho\|w\|^2 + \eta\,\mathrm{HSIC}(\Phi w, S),\qquad
        \mathrm{HSIC}(f, S) = \tfrac1{n^2} f^\top H\Psi\Psi^\top H f

    with the linear kernel on the prediction and the kernel ΨΨᵀ on S (Pérez-Suay et al., 2017; Li et al., 2022). With
    random features Φ it is kernel ridge regression. Columns of Φ are centered, and the mean of y is added by the
    caller. O(n(m + k)² + m³) for m features.

    Parameters
    ----------
    features, psi : ndarray
        Φ ``(n, m)``, and features Ψ ``(n, k)`` of S.
    y : ndarray
        ``(n,)`` or ``(n, t)``, centered.
    penalty, ridge : float
        η and ρ.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> s, x = rng.normal(size=(2, 500))
    >>> features = np.column_stack([s, x])
    >>> w = hsic_ridge(features - features.mean(0), s + x, s[:, None], penalty=1e6)
    >>> bool(abs(w[0]) < 0.2), round(float(w[1]), 1)
    (True, 1.0)
    """
    n = len(features)
    cross = features.T @ (psi - psi.mean(0)) / n
    system = features.T @ features / n + ridge * np.eye(features.shape[1]) + penalty * cross @ cross.T
    return np.linalg.solve(system, features.T @ y / n)


def bounded_ridge(X: np.ndarray, y: np.ndarray, s: np.ndarray, *, bound: float) -> tuple[np.ndarray, np.ndarray]:
    r"""Return coefficients of S and of U, the part of X that S does not predict, with a bounded share of S.

    .. math:: \hat y = S\alpha_\lambda + U\beta,\qquad
        R^2_S = \frac{\mathrm{Var}(S\alpha_\lambda)}{\mathrm{Var}(S\alpha_\lambda) + \mathrm{Var}(U\beta)} \le r

    β is least squares on U, α the ridge regression (SᵀS + λI)⁻¹Sᵀy with the smallest λ that keeps the bound: the fair
    ridge regression model of Scutari, Panero and Proissl (2022). All inputs are centered. O(n(d + p)²).

    Parameters
    ----------
    X, s : ndarray
        ``(n, d)`` and ``(n, p)``, centered.
    y : ndarray
        ``(n,)``, centered.
    bound : float
        r from 0 (S has no effect) to 1 (least squares).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> s, x = rng.normal(size=(2, 500, 1)); s, x = s - s.mean(), x - x.mean()
    >>> a, b = bounded_ridge(x, (s + x)[:, 0], s, bound=0.1)
    >>> share = np.var(s @ a) / (np.var(s @ a) + np.var((x - s @ np.linalg.lstsq(s, x, rcond=None)[0]) @ b))
    >>> round(float(share), 6)
    0.1
    """
    if not 0.0 <= bound <= 1.0:
        raise ValueError(f"bound is {bound}: give a share from 0 to 1.")
    residual = X - s @ np.linalg.lstsq(s, X, rcond=None)[0]
    beta = np.linalg.lstsq(residual, y, rcond=1e-10)[0]
    rest = float((residual @ beta).var())
    values, vectors = np.linalg.eigh(s.T @ s)
    projected = vectors.T @ (s.T @ y)

    def alpha(lam: float) -> np.ndarray:
        return vectors @ (projected / np.maximum(values + lam, 1e-300))

    def share(lam: float) -> float:
        own = float((s @ alpha(lam)).var())
        return own / max(own + rest, 1e-300)

    if share(0.0) <= bound:
        return alpha(0.0), beta
    if bound == 0.0:
        return np.zeros(s.shape[1]), beta
    low, high = 0.0, float(values[-1])
    while share(high) > bound:
        high *= 4.0
    for _ in range(200):  # the share falls monotonically with λ
        middle = 0.5 * (low + high)
        low, high = (middle, high) if share(middle) > bound else (low, middle)
    return alpha(high), beta
