"""The aggregated test: its definition, its level with ties, its power where the median bandwidth is blind."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import torch
from samples import normal
from scipy import stats

from frhsic_core._arrays import as_draws
from frhsic_core.joint import hsic, hsic_test
from frhsic_core.joint.independence.permutation import (
    FACTORS,
    random_orders,
    row_statistics,
    scaled,
    within_groups,
)
from frhsic_core.kernels import (
    Categorical,
    Distance,
    Gaussian,
    Kernel,
    Laplacian,
    Product,
    median_bandwidth,
)


def waves(seed: int, draws: int, n: int, omega: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return samples of the density (1 + sin(ωx) sin(ωy))/(2π)² on a square, by rejection."""
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(-math.pi, math.pi, (2, draws, 4 * n))
    kept = rng.uniform(0, 2, (draws, 4 * n)) < 1 + np.sin(omega * x) * np.sin(omega * y)
    rows = np.argsort(~kept, axis=1, kind="stable")[:, :n]
    x, y = (torch.as_tensor(np.take_along_axis(v, rows, 1)).unsqueeze(-1) for v in (x, y))
    return x, y


def by_hand(z: torch.Tensor, s: torch.Tensor, orders: torch.Tensor) -> np.ndarray:
    """Return the largest score of each order (1 + B,), from one call of hsic for each number."""
    sigma_z, sigma_s = median_bandwidth(z), median_bandwidth(s)
    rows = [torch.arange(len(z)), *orders]
    values = np.array([
        [hsic(z, s[row], kernel_z=Gaussian(f * sigma_z), kernel_s=Gaussian(f * sigma_s)).item() for f in FACTORS]
        for row in rows
    ])  # fmt: skip
    root = np.cbrt(len(z) * values)
    return ((root - root.mean(0)) / root.std(0)).max(1)


@pytest.mark.parametrize("d", [1, 3])
def test_the_test_is_a_loop_over_factors_and_orders(d: int) -> None:
    s = normal(1, 15, 1)
    z = normal(2, 15, d) + 0.7 * s
    orders = random_orders(39, 15, as_draws(3, like=s), like=s)[1:]
    largest = by_hand(z, s, orders)
    result = hsic_test(
        z, s, method="aggregated", n_permutations=39, random_state=torch.Generator().manual_seed(3)
    )
    assert result.statistic.item() == pytest.approx(largest[0], rel=1e-6)
    assert result.pvalue.item() == (largest >= largest[0] - 1e-9).mean()
    assert result.threshold.item() == pytest.approx(np.sort(largest[1:])[-2], rel=1e-6)
    assert result.hsic.item() == pytest.approx(hsic(z, s).item(), rel=1e-10)


@pytest.mark.parametrize("law", ["normal", "cauchy", "binary"])
def test_level_is_exact_also_with_ties(law: str) -> None:
    """With 19 permutations the level is 1/20, or less where samples tie."""
    draws = 400
    z, s = normal(6, draws, 12, 1), normal(7, draws, 12, 1)
    if law == "cauchy":
        z, s = z / normal(8, draws, 12, 1), s / normal(9, draws, 12, 1)
    if law == "binary":
        z, s = (z > 0).double(), (s > 0.5).double()
    rejected = int(hsic_test(z, s, method="aggregated", n_permutations=19).reject.sum())
    low, high = stats.binom.interval(0.99, draws, 0.05)
    assert rejected <= high
    assert law == "binary" or rejected >= low


@pytest.mark.slow
def test_power_where_the_median_bandwidth_is_blind() -> None:
    z, s = waves(10, 20, 200, 2)
    aggregated = hsic_test(z, s, method="aggregated", n_permutations=99)
    single = hsic_test(z, s, method="permutation", n_permutations=99)
    assert int(aggregated.reject.sum()) >= 17
    assert int(single.reject.sum()) <= 7


def test_kernels_without_a_bandwidth_give_the_permutation_test() -> None:
    s = normal(15, 30, 1)
    z = normal(16, 30, 2) + 0.4 * s
    options = {"kernel_z": Distance(), "kernel_s": Distance(), "n_permutations": 99}
    result = hsic_test(
        z, s, method="aggregated", random_state=torch.Generator().manual_seed(1), **options
    )
    orders = random_orders(99, 30, as_draws(1, like=z), like=z)[1:]
    null = torch.stack(
        [hsic(z, s[order], kernel_z=Distance(), kernel_s=Distance()) for order in orders]
    )
    expected = (1 + (null >= hsic(z, s, kernel_z=Distance(), kernel_s=Distance())).sum()) / 100
    assert result.pvalue.item() == pytest.approx(expected.item())


def test_a_mixed_attribute_is_tested_with_a_product_kernel() -> None:
    """Z follows age for one sex and its opposite for the other: neither attribute alone shows it."""
    age, noise = normal(19, 80), normal(20, 80)
    sex = (torch.arange(80) % 2).double()
    z = age * (2 * sex - 1) + 0.3 * noise
    mixed = torch.stack([age, sex], 1)
    kernel = Product([Gaussian(median_bandwidth(age)), Categorical()])
    table = pd.DataFrame({"age": age.numpy(), "sex": np.where(sex > 0, "f", "m")})
    assert hsic(z, table).item() == pytest.approx(hsic(z, mixed, kernel_s=kernel).item())
    assert bool(
        hsic_test(
            z, table, method="aggregated", clusters=torch.arange(80) // 2, n_permutations=99
        ).reject
    )
    for given in (None, torch.arange(80) // 2 % 2):
        options = {"given": given, "method": "aggregated", "n_permutations": 99}
        result = hsic_test(z, mixed, kernel_s=kernel, **options)
        assert bool(result.reject)
        assert hsic_test(z, table, **options).statistic.item() == pytest.approx(
            result.statistic.item()
        )
    assert not hsic_test(
        z, sex, method="aggregated", kernel_s=Categorical(), n_permutations=99
    ).reject


def test_two_rows_tie_in_every_order() -> None:
    result = hsic_test([0.0, 1.0], [0.0, 1.0], method="aggregated", n_permutations=19)
    assert (result.pvalue, result.reject) == (1.0, False)


def test_rounding_is_no_evidence_where_no_order_changes_anything() -> None:
    """All labels of Z differ, so K̃ = H and every order of S has the same statistic up to rounding."""
    labels = torch.arange(40, dtype=torch.float64)
    for seed in range(3):
        result = hsic_test(
            labels, normal(seed, 40), method="aggregated", kernel_z=Categorical(), n_permutations=39
        )
        assert result.pvalue.item() == 1.0


def test_an_empty_batch_is_empty() -> None:
    result = hsic_test(torch.zeros(0, 8, 1), torch.zeros(0, 8, 1), method="aggregated")
    assert result.pvalue.shape == (0,)


def test_each_sample_of_a_batch_is_standardized_alone() -> None:
    s = normal(17, 2, 20, 1)
    z = s + normal(18, 2, 20, 1)
    both = hsic_test(
        z, s, method="aggregated", n_permutations=39, random_state=torch.Generator().manual_seed(2)
    )
    first = hsic_test(
        z[0],
        s[0],
        method="aggregated",
        n_permutations=39,
        random_state=torch.Generator().manual_seed(2),
    )
    assert both.statistic[0].item() == pytest.approx(first.statistic.item())


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize(
    ("n", "kernel"), [(300, Gaussian(0.3)), (300, Laplacian(0.3)), (60, Gaussian(0.3))]
)
def test_factors_give_the_statistics_of_the_definition(n: int, kernel: Kernel, count: int) -> None:
    """Gaussian windows have a low rank, those of a Laplacian do not, and few rows are looked up."""
    draw = torch.Generator().manual_seed(0)
    s = torch.rand(n, 1, generator=draw, dtype=torch.float64).mul(50).round()
    z = torch.rand(n, 1, generator=draw, dtype=torch.float64) + 0.01 * s
    groups = [torch.arange(g, n, count) for g in range(count)]
    strata = [rows.unsqueeze(-1) for rows in groups]
    k, l = (
        within_groups(torch.stack([window(x) for window in scaled(one, FACTORS)]), groups)
        for one, x in ((kernel, z), (Gaussian(15.0), s))
    )
    order = random_orders(20, n, as_draws(draw, like=z), strata, like=z)
    products = [[a * b[p][:, p] for a, b in zip(k, l, strict=True)] for p in order]
    pooled = torch.tensor(
        [[both.sum() / n for both in own] for own in products], dtype=torch.float64
    )
    by_value = torch.tensor(
        [
            [sum(both[rows][:, rows].sum() / len(rows) for rows in groups) for both in own]
            for own in products
        ],
        dtype=torch.float64,
    )
    found = row_statistics(k, l, groups, order)
    for values, expected in zip(found, (by_value, pooled), strict=True):
        torch.testing.assert_close(values, expected, rtol=1e-7, atol=1e-8 * float(expected.max()))
