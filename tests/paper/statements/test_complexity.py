"""Gaussian complexity of linear encoders: closed forms, Monte Carlo, a direct maximum, and broken bounds."""

from __future__ import annotations

import math

import pytest
import torch

from frhsic_core.paper.statements import complexity
from frhsic_core.paper.statements.complexity import linear_complexity, linear_complexity_bound, root_mean_square


@pytest.mark.parametrize(("rows", "dimension"), [(1, 1), (3, 1), (1, 4), (2, 5), (7, 50)])
def test_orthogonal_inputs_have_a_chi_mean(rows: int, dimension: int) -> None:
    # Orthonormal rows: ‖Σξ_i x_iᵀ‖_F is a chi variable with rows·dimension degrees of freedom.
    k = rows * dimension
    expected = math.sqrt(2.0) * math.exp(math.lgamma((k + 1) / 2) - math.lgamma(k / 2)) / rows
    found = linear_complexity(torch.eye(rows, 8, dtype=torch.float64), radius=2.5, dimension=dimension)
    assert found.item() == pytest.approx(2.5 * expected, rel=1e-12)


def test_against_the_mean_of_direct_maxima(generator: torch.Generator) -> None:
    x = torch.rand(12, 2, generator=generator, dtype=torch.float64)
    noise = torch.randn(20_000, 3, 12, generator=generator, dtype=torch.float64)
    norms = torch.linalg.matrix_norm(noise @ x / 12)
    error = 4.0 * norms.std().item() / math.sqrt(len(norms))
    assert linear_complexity(x, radius=1.0, dimension=3).item() == pytest.approx(norms.mean().item(), abs=error)
    # No W in the ball gives more than the norm, and W = M/‖M‖ gives it.
    w = torch.randn(20_000, 3, 2, generator=generator, dtype=torch.float64)
    w = w / torch.linalg.matrix_norm(w, keepdim=True)
    products = (noise @ x / 12 * w).sum((-2, -1))
    assert (products <= norms + 1e-12).all()


def test_scaling_and_repetition(generator: torch.Generator) -> None:
    x = torch.randn(4, 6, 3, generator=generator, dtype=torch.float64)
    once = linear_complexity(x, radius=1.0, dimension=2)
    assert torch.allclose(linear_complexity(3.0 * x, radius=2.0, dimension=2), 6.0 * once)
    # Repeating every row four times halves the complexity.
    assert torch.allclose(linear_complexity(x.repeat(1, 4, 1), radius=1.0, dimension=2), 0.5 * once)
    assert linear_complexity(torch.zeros(3, 2), radius=1.0, dimension=2) < 1e-100


def test_the_bound_is_reached_in_the_limit() -> None:
    x = torch.eye(1, 1, dtype=torch.float64)
    exact = linear_complexity(x, radius=1.0, dimension=10_000).item()
    assert exact == pytest.approx(linear_complexity_bound(radius=1.0, largest=1.0, dimension=10_000, n=1), rel=1e-4)
    assert exact <= root_mean_square(x, radius=1.0, dimension=10_000).item()


def test_a_broken_bound_is_caught() -> None:
    worst = dict.fromkeys(complexity.excesses(torch.ones(1, 1, 1, dtype=torch.float64), 1), -math.inf)
    for x, dimension in complexity.random_inputs(720, generator=torch.Generator().manual_seed(0)):
        for name, excess in complexity.excesses(x, dimension).items():
            worst[name] = max(worst[name], excess.max().item())
    assert max(worst.values()) < 1e-12
    # Each right side one percent smaller would be violated by one of these inputs.
    assert all(value > -0.01 for value in worst.values())


def test_certificates() -> None:
    verdicts = [c.verdict for c in complexity.as_printed(quick=True) + complexity.search(quick=True)]
    assert verdicts == ["fails as stated", "holds as corrected", "holds", "holds as corrected", "holds as corrected"]
