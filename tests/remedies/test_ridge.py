"""Closed-form regressions: stationarity, training reaches them, and the bound holds with the best fit."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from frhsic_core import hsic
from frhsic_core.kernels import Linear
from frhsic_core.remedies.ridge import bounded_ridge, hsic_ridge


@pytest.fixture
def sample() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    s = rng.normal(size=(400, 2))
    X = rng.normal(size=(400, 4)) + s @ rng.normal(size=(2, 4))
    y = X @ [1.0, -1.0, 0.5, 0.0] + s[:, 0] + 0.5 * rng.normal(size=400)
    return X - X.mean(0), y - y.mean(), s - s.mean(0)


def objective(w: torch.Tensor, X: torch.Tensor, y: torch.Tensor, s: torch.Tensor, eta: float) -> torch.Tensor:
    """Return the penalized loss with the library's own HSIC, an independent path."""
    f = X @ w
    return (y - f).square().mean() + 1e-3 * w.square().sum() + eta * hsic(f, s, kernel_z=Linear(), kernel_s=Linear())


@pytest.mark.parametrize("eta", [0.0, 1.0, 100.0])
def test_training_reaches_the_closed_form(sample: tuple[np.ndarray, ...], eta: float) -> None:
    X, y, s = sample
    w = hsic_ridge(X, y, s, penalty=eta)
    tensors = [torch.from_numpy(part) for part in (X, y, s)]
    exact = objective(torch.from_numpy(w), *tensors, eta).item()
    trained = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([trained], lr=1.0, max_iter=200)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = objective(trained, *tensors, eta)
        loss.backward()
        return loss

    optimizer.step(closure)
    reached = objective(trained, *tensors, eta).item()
    assert exact <= reached * (1 + 1e-9)
    assert reached <= 1.01 * exact
    # Adam, as networks are trained, reaches it within one percent as well.
    slow = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    adam = torch.optim.Adam([slow], lr=0.05)
    for _ in range(400):
        adam.zero_grad()
        objective(slow, *tensors, eta).backward()
        adam.step()
    assert objective(slow, *tensors, eta).item() <= 1.01 * exact


@pytest.mark.parametrize("bound", [0.0, 0.05, 0.3, 1.0])
def test_the_bound_is_kept_and_nothing_better_keeps_it(sample: tuple[np.ndarray, ...], bound: float) -> None:
    X, y, s = sample
    a, b = bounded_ridge(X, y, s, bound=bound)
    residual = X - s @ np.linalg.lstsq(s, X, rcond=None)[0]
    share = lambda v: (s @ v).var() / ((s @ v).var() + (residual @ b).var())  # noqa: E731
    assert share(a) <= bound + 1e-9
    if bound in (0.05, 0.3):
        assert share(a) == pytest.approx(bound, abs=1e-6)
        # Brute force over α: minimize the loss with the ridge's own geometry, subject to the bound.
        loss = lambda v: np.mean((y - residual @ b - s @ v) ** 2)  # noqa: E731
        best = minimize(loss, a, constraints={"type": "ineq", "fun": lambda v: bound - share(v)})
        assert loss(a) <= best.fun * 1.02
    if bound == 1.0:
        least = np.linalg.lstsq(np.hstack([X, s]), y, rcond=None)[0]
        np.testing.assert_allclose(s @ a + residual @ b, np.hstack([X, s]) @ least, atol=1e-8)


def test_bad_bound(sample: tuple[np.ndarray, ...]) -> None:
    with pytest.raises(ValueError, match="bound"):
        bounded_ridge(*sample, bound=2.0)
