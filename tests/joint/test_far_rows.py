"""Compare HSIC on samples at the edges with the textbook formula, in NumPy and float64.

Ties, far rows, two clouds, heavy tails, offsets and units: each engine and each dtype must give the
value of the sample that it was given.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from frhsic_core import HSICLoss, hsic, hsic_bound, hsic_test, normalized_hsic
from frhsic_core.joint import conditional_hsic, khgr
from frhsic_core.kernels import (
    Gaussian,
    InverseMultiquadric,
    Kernel,
    Laplacian,
    Linear,
    MultiScale,
    median_bandwidth,
    squared_distances,
)

RELATIVE = {np.float64: 1e-9, np.float32: 1e-3}


# The textbook formula -------------------------------------------------------------------------------


def squares(x: np.ndarray) -> np.ndarray:
    """Return |x_i − x_j|² from the differences of each column."""
    total = np.zeros((len(x), len(x)))
    for column in x.T:
        total += np.subtract.outer(column, column) ** 2
    return total


def gaussian(x: np.ndarray, sigma: float) -> np.ndarray:
    return np.exp(-squares(x) / (2.0 * sigma**2))


def multi_scale(x: np.ndarray, sigma: float) -> np.ndarray:
    return sum(gaussian(x, factor * sigma) for factor in (2.0, 1.0, 0.5, 0.25)) / 4.0


def inverse_multiquadric(x: np.ndarray, sigma: float) -> np.ndarray:
    return 1.0 / np.sqrt(1.0 + squares(x) / sigma**2)


def laplacian(x: np.ndarray, sigma: float) -> np.ndarray:
    total = np.zeros((len(x), len(x)))
    for column in x.T:
        total += np.abs(np.subtract.outer(column, column))
    return np.exp(-total / sigma)


def centered(gram: np.ndarray) -> np.ndarray:
    return gram - gram.mean(0) - gram.mean(1)[:, None] + gram.mean()


def textbook(k: np.ndarray, l: np.ndarray) -> tuple[float, float]:
    """Return HSIC and its normalized form."""
    k, l = centered(k), centered(l)
    return (k * l).mean(), (k * l).sum() / np.sqrt((k * k).sum() * (l * l).sum())


KERNELS = {
    Gaussian: gaussian,
    MultiScale: multi_scale,
    InverseMultiquadric: inverse_multiquadric,
    Laplacian: laplacian,
}


# Samples at the edges -------------------------------------------------------------------------------


def usual(n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=(n, d))


def ties(n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    return usual(n, d, rng).round()


def one_far_row(n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    x = usual(n, d, rng)
    x[-1] = 1e12
    return x


def missing_code(n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    x = usual(n, d, rng)
    x[-1] = 9_999_999_999
    return x


def far_pair(n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    x = usual(n, d, rng)
    x[-2:] = 1e9
    x[-1] += 1.0
    return x


def two_clouds(n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    x = usual(n, d, rng)
    x[: n // 2] += 1e8
    return x


def heavy_tails(n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    return rng.standard_t(1, size=(n, d))


def offset(n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    return usual(n, d, rng) + 1e6


def small_units(n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    return 1e-7 * usual(n, d, rng)


def large_units(n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    return 1e7 * usual(n, d, rng)


SAMPLES = (
    ties,
    one_far_row,
    missing_code,
    far_pair,
    two_clouds,
    heavy_tails,
    offset,
    small_units,
    large_units,
)


def attribute(z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return an S that depends on most rows of Z."""
    first = z[:, 0] - np.median(z[:, 0])
    spread = np.median(np.abs(first))
    bounded = np.clip(first / spread, -3.0, 3.0)
    return bounded**2 + 0.3 * rng.normal(size=len(z))


SIZES = (
    pytest.param(60, 1),
    pytest.param(60, 3),
    pytest.param(700, 1),
    pytest.param(700, 2),
    pytest.param(900, 2),
    pytest.param(900, 5, marks=pytest.mark.slow),
    pytest.param(4300, 1, marks=pytest.mark.slow),
    pytest.param(4300, 2, marks=pytest.mark.slow),
    pytest.param(4300, 5, marks=pytest.mark.slow),
)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.parametrize(("n", "d"), SIZES)
def test_hsic_is_that_of_the_textbook(n: int, d: int, sample, dtype) -> None:
    rng = np.random.default_rng(n + d)
    z = sample(n, d, rng)
    s = attribute(z, rng)[:, None].astype(dtype)
    z = z.astype(dtype)
    exact_z, exact_s = z.astype(np.float64), s.astype(np.float64)
    sigma, tau = median_bandwidth(exact_z), median_bandwidth(exact_s)
    for kind, formula in KERNELS.items():
        expected = textbook(formula(exact_z, sigma), formula(exact_s, tau))
        options = {"kernel_z": kind(sigma), "kernel_s": kind(tau)}
        both = torch.as_tensor(z), torch.as_tensor(s)
        found = hsic(*both, **options).item(), normalized_hsic(*both, **options).item()
        assert found == pytest.approx(expected, rel=RELATIVE[dtype]), kind.__name__


@pytest.mark.parametrize("n", [60, 700])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_default_bandwidths_see_past_a_far_row(n: int, dtype) -> None:
    rng = np.random.default_rng(n)
    z = one_far_row(n, 1, rng)
    s = attribute(z, rng)[:, None].astype(dtype)
    z = z.astype(dtype)
    exact_z, exact_s = z.astype(np.float64), s.astype(np.float64)
    expected = textbook(
        gaussian(exact_z, median_bandwidth(exact_z)), gaussian(exact_s, median_bandwidth(exact_s))
    )
    both = torch.as_tensor(z), torch.as_tensor(s)
    found = hsic(*both).item(), normalized_hsic(*both).item()
    assert found == pytest.approx(expected, rel=RELATIVE[dtype])
    assert HSICLoss(2.0)(*both).item() == pytest.approx(2.0 * expected[0], rel=RELATIVE[dtype])


@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("kind", [Gaussian, MultiScale, InverseMultiquadric])
def test_the_gradient_is_that_of_the_rows_that_matter(d: int, kind) -> None:
    """A far row has no gradient, and the other rows have that of a sample with it nearby."""
    rng = np.random.default_rng(d)
    z = usual(40, d, rng)
    s = torch.as_tensor(attribute(z, rng))
    gradients = []
    for far in (1e12, 1e4):  # at both places the far row meets nobody
        z[-1] = far
        rows = torch.as_tensor(z).requires_grad_()
        hsic(rows, s, kernel_z=kind(0.7), kernel_s=Gaussian(1.0)).backward()
        gradients.append(rows.grad)
    size = float(gradients[1].abs().max())
    assert torch.allclose(gradients[0], gradients[1], rtol=1e-6, atol=1e-6 * size)


def test_a_stack_may_hold_one_sample_with_a_far_row() -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(size=(3, 50, 2))
    s = rng.normal(size=50)
    z[1, -1] = 1e11
    each = [hsic(one, s, kernel_z=Gaussian(1.0), kernel_s=Gaussian(1.0)) for one in z]
    assert hsic(z, s, kernel_z=Gaussian(1.0), kernel_s=Gaussian(1.0)) == pytest.approx(each)
    expected = textbook(gaussian(z[1], 1.0), gaussian(s[:, None], 1.0))[0]
    assert each[1] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("d", [1, 2])
def test_the_bound_and_kernels_of_other_statistics_see_past_a_far_row(d: int) -> None:
    """The bound, HSIC within labels, kHGR and the test read the same Gram matrix."""
    rng = np.random.default_rng(d)
    n = 200
    z = usual(n, d, rng)
    s = attribute(z, rng)
    kernels: dict[str, Kernel] = {"kernel_z": Gaussian(1.0), "kernel_s": Gaussian(1.0)}
    label = np.arange(n) % 2
    near, far = z.copy(), z.copy()
    near[-1], far[-1] = 1e4, 1e12
    assert hsic_bound(far, s, **kernels) == pytest.approx(hsic_bound(near, s, **kernels))
    assert conditional_hsic(far, s, label, **kernels) == pytest.approx(
        conditional_hsic(near, s, label, **kernels)
    )
    assert khgr(far, s, ridge=0.1, **kernels) == pytest.approx(khgr(near, s, ridge=0.1, **kernels))
    for method in ("gamma", "spectral", "permutation", "aggregated"):
        one = hsic_test(near, s, method=method, **kernels)
        other = hsic_test(far, s, method=method, **kernels)
        assert other.pvalue == pytest.approx(one.pvalue, rel=1e-6)
        assert other.hsic == pytest.approx(one.hsic, rel=1e-6)


def test_squared_distances_of_a_far_pair() -> None:
    x = torch.tensor([[0.0, 0.0], [1.0, 1.0], [1e9, 1e9], [1e9 + 1.0, 1e9]], dtype=torch.float64)
    expected = torch.as_tensor(squares(x.numpy()))
    assert torch.equal(squared_distances(x), expected)
    assert torch.equal(squared_distances(x[:2], x), expected[:2])


# Units of kernels without a bandwidth -------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["linear", "distance"])
@pytest.mark.parametrize(
    ("n", "method"),
    [
        (60, "gamma"),
        (900, "gamma"),
        (900, "spectral"),
        (60, "permutation"),
        (60, "aggregated"),
        pytest.param(900, "permutation", marks=pytest.mark.slow),
        pytest.param(900, "aggregated", marks=pytest.mark.slow),
    ],
)
def test_the_test_does_not_depend_on_units_or_offsets(n: int, method: str, kernel: str) -> None:
    rng = np.random.default_rng(n)
    z = rng.normal(size=n)
    s = 0.7 * z + rng.normal(size=n)
    options = {"kernel_z": kernel, "method": method, "n_permutations": 99}
    expected = hsic_test(z, s, **options)
    assert expected.pvalue < 0.05
    power = 2.0 if kernel == "linear" else 1.0
    for unit in (2.0**-23, 2.0**200):
        found = hsic_test(unit * z, s, **options)
        assert found.pvalue == pytest.approx(expected.pvalue, rel=1e-6)
        for name in ("hsic", "statistic", "threshold"):
            scale = 1.0 if name != "hsic" and method == "aggregated" else unit**power
            assert getattr(found, name) == pytest.approx(scale * getattr(expected, name), rel=1e-6)
    assert hsic_test(z + 1e8, s, **options).pvalue == pytest.approx(expected.pvalue, rel=1e-3)


def test_linear_kernel_of_columns_with_small_numbers() -> None:
    """At 768 rows thin matrices take over: what counts as rounding is a share of the largest entry."""
    rng = np.random.default_rng(0)
    z = 1e-7 * rng.normal(size=(768, 2))
    s = z[:, 0] / 1e-7 + rng.normal(size=768)
    assert hsic_test(z, s, kernel_z=Linear(), method="gamma").pvalue < 1e-12
