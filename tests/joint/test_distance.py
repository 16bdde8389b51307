"""Distance correlation, and distance covariance as HSIC with the distance kernel, against brute force and dcor."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from samples import with_squares
from torch.autograd import gradcheck

from frhsic_core.joint.hsic import distance_correlation, hsic

FORMS = [(True, "biased"), (False, "biased"), (True, "unbiased")]


def squared_covariance(z: torch.Tensor, s: torch.Tensor, estimator: str = "biased") -> torch.Tensor:
    return 4 * hsic(z, s, kernel_z="distance", kernel_s="distance", estimator=estimator)


def test_biased_covariance_equals_three_loops() -> None:
    z, s = with_squares(0, n=6, d=3, p=2)
    n = len(z)
    a = [[float((z[i] - z[j]).norm()) for j in range(n)] for i in range(n)]
    b = [[float((s[i] - s[j]).norm()) for j in range(n)] for i in range(n)]
    pairs = list(itertools.product(range(n), repeat=2))
    first = sum(a[i][j] * b[i][j] for i, j in pairs) / n**2
    second = sum(a[i][j] for i, j in pairs) * sum(b[i][j] for i, j in pairs) / n**4
    third = sum(a[i][j] * b[i][k] for i, j, k in itertools.product(range(n), repeat=3)) / n**3
    assert squared_covariance(z, s).item() == pytest.approx(first + second - 2 * third, abs=1e-13)


COLUMNS = {
    "normal": lambda g, n: g.normal(size=(2, n)),
    "dependent": lambda g, n: (x := g.normal(size=n), x**2 + 0.1 * g.normal(size=n)),
    "ties": lambda g, n: g.integers(0, 4, (2, n)).astype(float),
    "one tie each": lambda g, n: np.r_[[0.0, 0.0], g.normal(size=2 * n - 2)].reshape(2, n)[:, ::-1],
    "heavy tails": lambda g, n: g.standard_cauchy((2, n)),
    "far from zero": lambda g, n: 1e6 + g.normal(size=(2, n)),
    "constant": lambda g, n: (g.normal(size=n), np.full(n, 0.7)),
}


@pytest.mark.usefixtures("uncompiled")
def test_agrees_with_dcor() -> None:
    dcor = pytest.importorskip("dcor")
    for seed in range(3):
        z, s = with_squares(seed, n=40, d=3, p=2)
        x = z.numpy(), s.numpy()
        assert squared_covariance(z, s).item() == pytest.approx(
            dcor.distance_covariance_sqr(*x), rel=1e-10
        )
        assert distance_correlation(z, s).item() == pytest.approx(
            dcor.distance_correlation(*x), rel=1e-10
        )
        unbiased = (
            squared_covariance(z, s, "unbiased"),
            distance_correlation(z, s, squared=True, estimator="unbiased"),
        )
        expected = dcor.u_distance_covariance_sqr(*x), dcor.u_distance_correlation_sqr(*x)
        assert [value.item() for value in unbiased] == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("n", [256, 257, 700])
def test_sorted_columns_give_the_sum_over_all_pairs(name: str, n: int) -> None:
    """Two columns are sorted instead of compared pair by pair; a stack is a loop."""
    z, s = (torch.as_tensor(x.copy()) for x in COLUMNS[name](np.random.default_rng(n), n))
    statistics = [
        partial(distance_correlation, squared=squared, estimator=estimator)
        for squared, estimator in FORMS
    ]
    statistics += [
        partial(squared_covariance, estimator=estimator) for estimator in ("biased", "unbiased")
    ]
    for statistic in statistics:
        found, pairwise = statistic(z, s), statistic(z.clone().requires_grad_(), s)
        torch.testing.assert_close(found, pairwise.detach(), rtol=1e-9, atol=1e-12)
        stacked = statistic(torch.stack([z[:, None], s[:, None]]), s)
        torch.testing.assert_close(stacked[0], found, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("squared", "estimator"), FORMS)
def test_gradient(squared: bool, estimator: str) -> None:
    z, s = with_squares(7, n=7, d=2, p=1)
    z.requires_grad_()
    s.requires_grad_()
    assert gradcheck(
        lambda a, b: distance_correlation(a, b, squared=squared, estimator=estimator), (z, s)
    )


@pytest.mark.parametrize(("squared", "estimator"), FORMS)
def test_gradient_is_finite_on_repeated_rows_and_zero_at_a_constant(
    squared: bool, estimator: str
) -> None:
    function = distance_correlation
    ages = torch.tensor([30.0, 30, 41, 41, 41, 52], dtype=torch.float64)
    repeated = torch.tensor(
        [[0.0], [0.0], [1.0], [1.0], [2.0], [2.0]], dtype=torch.float64, requires_grad=True
    )
    (gradient,) = torch.autograd.grad(
        function(repeated, ages, squared=squared, estimator=estimator), repeated
    )
    assert torch.isfinite(gradient).all()
    assert gradient.abs().max() > 0
    constant = torch.full((6, 2), 0.3, dtype=torch.float64, requires_grad=True)
    value = function(constant, ages, squared=squared, estimator=estimator)
    (gradient,) = torch.autograd.grad(value, constant)
    assert value.item() == 0
    assert torch.equal(gradient, torch.zeros_like(gradient))
    assert function(ages, torch.ones(6), squared=squared, estimator=estimator).item() == 0


def test_unbiased_correlation_stays_near_zero_where_the_biased_one_tends_to_one() -> None:
    g = torch.Generator().manual_seed(8)
    z = torch.randn(200, 20, 100, generator=g, dtype=torch.float64)
    s = torch.randn(200, 20, 100, generator=g, dtype=torch.float64)
    unbiased = distance_correlation(z, s, squared=True, estimator="unbiased")
    assert distance_correlation(z, s).min() > 0.7
    assert abs(unbiased.mean()) < 4 * unbiased.std() / 200**0.5


@given(
    values=st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5)), min_size=2, max_size=12),
    shift=st.floats(-50, 50),
    scale=st.floats(0.01, 100),
)
def test_correlation_is_in_the_unit_interval_symmetric_and_free_of_units(
    values, shift, scale
) -> None:
    z = torch.tensor([float(a) for a, _ in values], dtype=torch.float64)
    s = torch.tensor([float(b) for _, b in values], dtype=torch.float64)
    value = distance_correlation(z, s)
    assert 0 <= value <= 1
    # The square is compared: near zero the root turns rounding of 1e-16 into 1e-8.
    for other in (distance_correlation(s, z), distance_correlation(shift + scale * z, s)):
        assert other.square().item() == pytest.approx(value.square().item(), abs=1e-10)
    order = torch.arange(len(z) - 1, -1, -1)
    assert distance_correlation(z[order], s[order]).square().item() == pytest.approx(
        value.square().item(), abs=1e-10
    )
