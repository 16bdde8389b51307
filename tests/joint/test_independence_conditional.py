"""Tests of Z ⟂ S | C: brute-force references, exact and asymptotic levels, power, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from frhsic_core.joint.given import read_given
from frhsic_core.joint.hsic import hsic
from frhsic_core.joint.independence import hsic_test
from frhsic_core.joint.independence.aggregated import FACTORS
from frhsic_core.joint.independence.conditional import group_strata
from frhsic_core.joint.independence.permutation import random_orders
from frhsic_core.kernels import Gaussian, median_bandwidth


def normal(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def labels(seed: int, n: int, count: int) -> torch.Tensor:
    return torch.randint(0, count, (n,), generator=torch.Generator().manual_seed(seed))


# A discrete C --------------------------------------------------------------------------------------------------------


def both_statistics(z: np.ndarray, s: np.ndarray, code: np.ndarray, factor: float, sigmas: tuple[float, float]):
    """Return n times the two statistics from their definitions, with feature means by group."""
    n = len(z)
    k, l = (
        np.exp(-(np.subtract.outer(x, x) ** 2) / (2 * (factor * sigma) ** 2))
        for x, sigma in zip((z, s), sigmas, strict=True)
    )
    center = np.eye(n)
    for g in np.unique(code):
        member = (code == g).astype(float)
        center -= np.outer(member, member) / member.sum()
    k, l = center @ k @ center, center @ l @ center
    by_value = sum((k * l)[np.ix_(code == g, code == g)].sum() / (code == g).sum() for g in np.unique(code))
    return by_value, (k * l).sum() / n


def test_the_aggregated_test_is_a_loop_over_orders_within_groups() -> None:
    code = labels(1, 18, 3)
    z, s = normal(2, 18) + code, normal(3, 18) + code
    strata = group_strata(read_given(code, 18).groups(), 18, None)
    orders = random_orders((1, 19, 18), torch.Generator().manual_seed(4), strata)[0]
    assert all(torch.equal(code[order], code) for order in orders)
    within = [x - torch.stack([x[code == c].mean() for c in code]) for x in (z, s)]
    sigmas = tuple(median_bandwidth(x).item() for x in within)
    values = np.array([
        np.array([both_statistics(z.numpy(), s[order].numpy(), code.numpy(), f, sigmas) for f in FACTORS]).T.ravel()
        for order in [torch.arange(18), *orders]
    ])  # fmt: skip
    root = np.cbrt(values)
    largest = ((root - root.mean(0)) / root.std(0)).max(1)
    result = hsic_test(z, s, given=code, n_permutations=19, generator=torch.Generator().manual_seed(4))
    assert result.method == "aggregated"
    assert result.statistic.item() == pytest.approx(largest[0], rel=1e-6)
    assert result.pvalue.item() == (largest >= largest[0] - 1e-9).mean()
    assert result.hsic.item() == pytest.approx(values[0, FACTORS.index(1.0)] / 18)
    assert result.factor_pvalues is not None
    assert result.factor_pvalues.min() == result.pvalue


def test_the_statistic_is_the_mean_of_the_groups_by_share() -> None:
    code = labels(5, 40, 2)
    z, s = normal(6, 40, 2), normal(7, 40, 1)
    kernels = {"kernel_z": Gaussian(1.3), "kernel_s": Gaussian(0.8)}
    share = [(code == g).double().mean() * hsic(z[code == g], s[code == g], **kernels) for g in range(2)]
    for method in ("gamma", "spectral", "permutation", "aggregated"):
        result = hsic_test(z, s, given=code, method=method, n_permutations=19, **kernels)
        assert result.hsic.item() == pytest.approx(sum(share).item())
        if method != "aggregated":
            assert result.statistic.item() == pytest.approx(40 * result.hsic.item())


@pytest.mark.parametrize("method", ["gamma", "spectral"])
def test_one_group_is_no_condition(method: str) -> None:
    z, s = normal(8, 50), normal(9, 50)
    kernels = {"kernel_z": Gaussian(1.0), "kernel_s": Gaussian(1.0)}
    given = hsic_test(z, s, given=["all"] * 50, method=method, **kernels)
    plain = hsic_test(z, s, method=method, **kernels)
    assert given.pvalue.item() == pytest.approx(plain.pvalue.item())
    assert given.threshold.item() == pytest.approx(plain.threshold.item())


@pytest.mark.parametrize("rows", [24, 1100])
def test_level_is_exact_within_groups_where_z_and_s_depend_on_the_group(rows: int) -> None:
    """With 19 permutations the level is 1/20; without ``given`` every sample is rejected."""
    draws = 200 if rows == 24 else 40
    code = torch.arange(rows) % 3
    z, s = normal(10, draws, rows, 1) + 3 * code.unsqueeze(-1), normal(11, draws, rows, 1) + 3 * code.unsqueeze(-1)
    method = "aggregated" if rows == 24 else "permutation"
    rejected = int(hsic_test(z, s, given=code, method=method, n_permutations=19).reject.sum())
    low, high = stats.binom.interval(0.99, draws, 0.05)
    assert low <= rejected <= high
    assert bool(hsic_test(z[0], s[0]).reject)
