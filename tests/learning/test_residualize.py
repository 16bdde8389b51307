"""X residualised on S: what is removed, on which rows it is fitted."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.linear_model import LinearRegression

from frhsic_core.learning import Residualizer


def sample(n: int = 400) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(5)
    s = torch.rand(n, generator=generator, dtype=torch.float64)
    noise = 0.1 * torch.randn(n, 2, generator=generator, dtype=torch.float64)
    return torch.stack([2 * s, torch.sin(6 * s)], dim=-1) + noise, s


def test_linear_equals_scikit_learn() -> None:
    """Residuals of held-out rows equal those of a fitted LinearRegression."""
    x, s = sample()
    mine = Residualizer().fit(x[:300], s[:300]).transform(x[300:], s[300:])
    line = LinearRegression().fit(s[:300, None].numpy(), x[:300].numpy())
    np.testing.assert_allclose(mine.numpy(), x[300:].numpy() - line.predict(s[300:, None].numpy()), atol=1e-8)


def test_kernel_form_removes_a_curve_that_the_line_leaves() -> None:
    """sin(6s): the linear residual still follows s², the kernel one is down to the noise."""
    x, s = sample()
    linear = Residualizer("linear").fit(x[:300], s[:300]).transform(x[300:], s[300:])
    kernel = Residualizer("kernel").fit(x[:300], s[:300]).transform(x[300:], s[300:])
    assert linear[:, 1].std() > 0.3
    assert kernel[:, 1].std() < 0.15


def test_kernel_form_equals_ridge_regression() -> None:
    """Against the normal equations: centers evenly spaced in the order of S, an intercept without a penalty."""
    x, s = sample()
    x = x + 100.0
    centers = s.sort().values[torch.linspace(0, 399, 7).round().long()]
    distances = (centers[:, None] - centers[None]).abs()[torch.triu(torch.ones(7, 7), diagonal=1) > 0]
    sigma = torch.quantile(distances, 0.5)

    def design(values: torch.Tensor) -> torch.Tensor:
        gram = torch.exp(-((values[:, None] - centers[None]) ** 2) / (2 * sigma**2))
        return torch.cat([torch.ones(len(values), 1, dtype=torch.float64), gram], dim=1)

    rows = design(s)
    moments = rows.T @ rows / 400
    ridge = 1e-3 / 8 * moments.diagonal().mean() * torch.diag(torch.tensor([0.0] + [1.0] * 7, dtype=torch.float64))
    expected = x - rows @ torch.linalg.solve(moments + ridge, rows.T @ x / 400)
    mine = Residualizer("kernel", centers=7).fit_transform(x, s)
    torch.testing.assert_close(mine, expected, rtol=0, atol=1e-6)
    assert mine.mean(0).abs().max() < 1e-6


def test_splits_are_separate_and_ties_are_fine() -> None:
    """Leading dimensions are splits; integer ages repeat."""
    x, s = sample()
    s = (s * 20).round()
    for form in ("linear", "kernel"):
        both = Residualizer(form).fit_transform(torch.stack([x, 3 * x]), torch.stack([s, s]))
        assert torch.isfinite(both).all()
        torch.testing.assert_close(both[0], Residualizer(form).fit_transform(x, s), rtol=1e-6, atol=1e-8)
        torch.testing.assert_close(both[1], 3 * both[0], rtol=1e-6, atol=1e-8)


def test_errors() -> None:
    """Unknown forms, bad numbers, no fit."""
    with pytest.raises(ValueError, match="form is 'tree'"):
        Residualizer("tree")
    with pytest.raises(ValueError, match="ridge is 0"):
        Residualizer(ridge=0)
    with pytest.raises(RuntimeError, match="not fitted"):
        Residualizer().transform(torch.ones(3, 1), torch.arange(3.0))
