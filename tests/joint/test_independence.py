"""Tests of independence: null moments over all permutations, level, power, p-values, the result type."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from samples import correlated
from scipy import stats

from frhsic_core.joint import hsic, hsic_test
from frhsic_core.joint.independence.permutation import scaled, windows
from frhsic_core.kernels import Categorical, Distance, Gaussian, Laplacian, Linear, Product

METHODS = ["gamma", "spectral", "permutation"]
ALL_METHODS = [*METHODS, "aggregated"]


def rejections(
    seed: int, n: int, repetitions: int, *, method: str, d: int = 1, rho: float = 0.0, **settings
) -> int:
    generator = torch.Generator().manual_seed(seed + 1)
    count = 0
    for part in range(0, repetitions, 100):  # blocks keep the memory small
        z, s = correlated(1000 * seed + part, n, d=d, rho=rho, batch=(100,))
        count += int(
            hsic_test(z, s, method=method, random_state=generator, **settings).reject.sum()
        )
    return count


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("n", "d", "repetitions"),
    [
        (100, 1, 600),
        pytest.param(300, 1, 500, marks=pytest.mark.slow),
        pytest.param(100, 50, 500, marks=pytest.mark.slow),
    ],
)
def test_level_is_inside_the_exact_99_percent_interval(
    method: str, n: int, d: int, repetitions: int
) -> None:
    # The default kernel at n = 100; at n = 300 a fixed one, since the medians take most of the time. With 19
    # permutations the level is exactly 1/20.
    kernels = {} if n == 100 else {"kernel_z": Gaussian(math.sqrt(d)), "kernel_s": Gaussian(1.0)}
    count = rejections(3, n, repetitions, method=method, d=d, n_permutations=19, **kernels)
    low, high = stats.binom.interval(0.99, repetitions, 0.05)
    assert low <= count <= high, count / repetitions


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_power_at_correlation_three_tenths(method: str, record_property) -> None:
    kernels = {"kernel_z": Gaussian(1.0), "kernel_s": Gaussian(1.0)}
    power = {
        n: rejections(5, n, 100, method=method, rho=0.3, n_permutations=99, **kernels) / 100
        for n in (100, 300)
    }
    record_property("power", power)
    assert power[100] > 0.5
    assert power[300] > 0.95


@pytest.mark.parametrize("method", METHODS)
def test_integer_ages_keep_the_level(method: str) -> None:
    generator = torch.Generator().manual_seed(0)
    z, s = correlated(6, 60, batch=(400,))
    result = hsic_test(
        z.round(), (40 + 3 * s).round(), method=method, n_permutations=19, random_state=generator
    )
    low, high = stats.binom.interval(0.99, 400, 0.05)
    assert low <= int(result.reject.sum()) <= high


def test_gamma_follows_gretton_and_others() -> None:
    z, s = correlated(9, 40, rho=0.2)
    kernel = Gaussian(0.8)
    result = hsic_test(z, s, kernel_z=kernel, kernel_s=kernel)
    n, k, l = 40, kernel(z).numpy(), kernel(s).numpy()
    h = np.eye(n) - np.ones((n, n)) / n
    off = ~np.eye(n, dtype=bool)
    mean = (1 + k[off].mean() * l[off].mean() - k[off].mean() - l[off].mean()) / n
    squares = (((h @ k @ h) * (h @ l @ h)) / 6) ** 2
    variance = (
        72 * (n - 4) * (n - 5) / n / (n - 1) / (n - 2) / (n - 3) * squares[off].sum() / n / (n - 1)
    )
    law = stats.gamma(mean**2 / variance, scale=n * variance / mean)
    assert result.pvalue.item() == pytest.approx(law.sf(result.statistic.item()), rel=1e-9)
    assert result.threshold.item() == pytest.approx(law.ppf(0.95), rel=1e-9)


def test_spectral_fit_is_pearsons_with_moments_by_brute_force() -> None:
    """Mean and variance over all 720 orders of 6 rows; the skewness from eigenvalues, not from traces."""
    z, s = correlated(21, 6, d=2)
    kernel_z, kernel_s = Gaussian(1.0), Laplacian(0.7)
    h = torch.eye(6, dtype=torch.float64) - 1 / 6
    k, l = h @ kernel_z(z) @ h, h @ kernel_s(s) @ h
    orders = torch.tensor(list(itertools.permutations(range(6))))
    null = (k * l[orders.unsqueeze(-1), orders.unsqueeze(-2)]).sum((-2, -1)) / 6
    weights = torch.outer(torch.linalg.eigvalsh(k), torch.linalg.eigvalsh(l)).flatten()
    # The r-th cumulant of a weighted sum of χ²₁ variables is 2^(r−1) (r − 1)! Σ w^r.
    skewness = 8 * weights.pow(3).sum() / (2 * weights.square().sum()).pow(1.5)
    law = stats.pearson3(
        skewness.item(), loc=null.mean().item(), scale=null.std(correction=0).item()
    )
    result = hsic_test(z, s, method="spectral", kernel_z=kernel_z, kernel_s=kernel_s)
    assert result.threshold.item() == pytest.approx(law.isf(0.05), rel=1e-8)
    assert result.pvalue.item() == pytest.approx(law.sf(result.statistic.item()), rel=1e-8)


@pytest.mark.parametrize(("d", "p"), [(1, 1), (20, 1), (1, 20), (20, 20)])
def test_permutation_p_value_equals_a_loop(d: int, p: int) -> None:
    g = torch.Generator().manual_seed(13)
    z = torch.randn(2, 30, d, generator=g, dtype=torch.float64)
    s = torch.randn(2, 30, p, generator=g, dtype=torch.float64) + 0.4 * z[..., :1]
    kernels = {"kernel_z": Gaussian(3.0 * d**0.5), "kernel_s": Gaussian(3.0 * p**0.5)}
    result = hsic_test(
        z,
        s,
        method="permutation",
        n_permutations=199,
        random_state=torch.Generator().manual_seed(14),
        **kernels,
    )
    keys = torch.rand(2, 199, 30, generator=torch.Generator().manual_seed(14), dtype=torch.float64)
    for i in range(2):
        observed = hsic(z[i], s[i], **kernels)
        null = torch.stack([hsic(z[i], s[i][order], **kernels) for order in keys[i].argsort(-1)])
        expected = (1 + (null >= observed).sum().item()) / 200
        assert result.pvalue[i].item() == pytest.approx(expected, abs=1e-12)
        assert result.threshold[i].item() == pytest.approx(
            30 * null.sort().values[-10].item(), rel=1e-8
        )


@given(
    values=st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=6, max_size=15),
    method=st.sampled_from(ALL_METHODS),
    alpha=st.sampled_from([0.01, 0.05, 0.2]),
    kernel=st.sampled_from([None, Laplacian(1.0), Distance()]),
)
def test_p_value_threshold_and_statistic_tell_one_story(values, method, alpha, kernel) -> None:
    z = torch.tensor([[float(a)] for a, _ in values], dtype=torch.float64)
    s = torch.tensor([[float(b)] for _, b in values], dtype=torch.float64)
    result = hsic_test(
        z, s, method=method, alpha=alpha, kernel_z=kernel, kernel_s=kernel, n_permutations=39
    )
    assert 0 <= result.pvalue <= 1
    assert result.hsic.item() == pytest.approx(
        hsic(z, s, kernel_z=kernel, kernel_s=kernel).item(), abs=1e-12
    )
    if method != "aggregated":
        assert result.statistic.item() == pytest.approx(len(values) * result.hsic.item(), rel=1e-12)
    if abs(result.statistic - result.threshold) > 2e-6 * abs(result.statistic):
        assert bool(result.reject) == bool(result.statistic > result.threshold)


@pytest.mark.parametrize("method", ALL_METHODS)
@pytest.mark.parametrize("kernel", [None, Linear(), Distance()], ids=repr)
def test_a_constant_has_p_value_one(method: str, kernel) -> None:
    ages = torch.arange(12.0, dtype=torch.float64)
    constant = torch.full((12, 2), 0.3, dtype=torch.float64)
    for z, s in ((constant, ages), (ages, constant), (constant, constant)):
        result = hsic_test(z, s, method=method, kernel_z=kernel, kernel_s=kernel)
        assert (result.statistic.item(), result.pvalue.item()) == (0.0, 1.0)
        assert not result.reject


@pytest.mark.parametrize("method", ALL_METHODS)
def test_batch_shapes_and_dtypes(method: str) -> None:
    z, s = correlated(16, 20, d=2, rho=0.5, batch=(2, 3))
    result = hsic_test(z, s, method=method)
    assert (
        result.pvalue.shape
        == result.threshold.shape
        == result.hsic.shape
        == result.reject.shape
        == (2, 3)
    )
    assert hsic_test(z, s[0, 0], method=method).pvalue.shape == (2, 3)
    assert (result.method, result.alpha) == (method, 0.05)
    if method in ("gamma", "spectral"):
        alone = hsic_test(z[1, 2], s[1, 2], method=method)
        assert alone.pvalue.item() == pytest.approx(result.pvalue[1, 2].item(), rel=1e-9)
    single = hsic_test(z.float(), s.float(), method=method)
    assert (single.pvalue.dtype, single.statistic.dtype) == (torch.float64, torch.float32)
    torch.testing.assert_close(single.pvalue, result.pvalue, rtol=1e-3, atol=1e-5)
    needs = hsic_test(z.requires_grad_(), s, method=method)
    assert not needs.statistic.requires_grad


@pytest.mark.parametrize("method", ALL_METHODS)
@pytest.mark.parametrize("scale", [1e300, 1e-300, 1e155, 1e-162])
def test_units_do_not_matter(method: str, scale: float) -> None:
    z, s = correlated(24, 30, d=2, rho=0.5)
    expected = hsic_test(z, s, method=method, n_permutations=39)
    for x, y in ((z * scale, s), (z, s * scale), (z / scale, s * scale)):
        result = hsic_test(x, y, method=method, n_permutations=39)
        assert result.pvalue.item() == pytest.approx(expected.pvalue.item(), rel=1e-9)
        assert result.hsic.item() == pytest.approx(expected.hsic.item(), rel=1e-9)


def test_exact_p_value_at_alpha_rejects() -> None:
    """A p-value of 1/20 must reject at .05 in every dtype: a float32 p-value compared in float64 would not."""
    z = torch.linspace(0, 1, 30)
    for x in (z, z.double()):
        result = hsic_test(x, x, method="permutation", n_permutations=19)
        assert result.pvalue.item() == pytest.approx(0.05)
        assert bool(result.reject)


def test_few_permutations_cannot_reject() -> None:
    z = torch.linspace(0, 1, 30, dtype=torch.float64)
    result = hsic_test(z, z, method="permutation", n_permutations=10)
    assert result.threshold.item() == math.inf
    assert not result.reject


class Own:
    """A kernel of a user, with a bandwidth."""

    def __init__(self, bandwidth: float) -> None:
        self.bandwidth = bandwidth

    def __call__(self, x: torch.Tensor, y: torch.Tensor | None = None) -> torch.Tensor:
        return Gaussian(self.bandwidth)(x, y)


def test_the_windows_are_those_of_kernels_with_a_bandwidth() -> None:
    """A kernel of a user is scaled as the library's own, and two kernels without a bandwidth have one window."""
    z = torch.linspace(-1.0, 1.0, 60, dtype=torch.float64)
    options = {"method": "aggregated", "random_state": 0}
    library, own = (
        hsic_test(z, torch.cos(8 * z), kernel_z=kind(0.7), kernel_s=kind(0.7), **options)
        for kind in (Gaussian, Own)
    )
    assert float(own.pvalue) == float(library.pvalue)
    assert windows("aggregated", (2.0, 1.0), Distance(), Product([Categorical(), Linear()]))[0] == (
        1.0,
    )
    assert windows("aggregated", (2.0, 1.0), Distance(), Product([Categorical(), Own(1.0)]))[0] == (
        2.0,
        1.0,
    )
    assert scaled(Product([Gaussian(0.5), Categorical()]), (4.0,)) == [
        Product([Gaussian(2.0), Categorical()])
    ]
