"""Kernels against plain loops, their constants against search, and the bandwidth rule."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from scipy.spatial.distance import pdist
from torch.utils._python_dispatch import TorchDispatchMode

from frhsic_core.kernels import (
    Categorical,
    Distance,
    Gaussian,
    InverseMultiquadric,
    Kernel,
    Laplacian,
    Linear,
    MultiScale,
    Product,
    _median_of_rows,
    batch_median,
    median_bandwidth,
    median_distance,
    multi_scale_grams,
    squared_distances,
)

FORMULAS = {
    "gaussian": (Gaussian(0.7), lambda x, y: math.exp(-np.sum((x - y) ** 2) / (2 * 0.49))),
    "multi_scale": (
        MultiScale(0.7),
        lambda x, y: np.mean(
            [math.exp(-np.sum((x - y) ** 2) / (2 * (f * 0.7) ** 2)) for f in (2, 1, 0.5, 0.25)]
        ),
    ),
    "laplacian": (Laplacian(0.7), lambda x, y: math.exp(-np.sum(np.abs(x - y)) / 0.7)),
    "imq": (InverseMultiquadric(0.7), lambda x, y: (1 + np.sum((x - y) ** 2) / 0.49) ** -0.5),
    "linear": (Linear(), lambda x, y: float(x @ y)),
    "distance": (
        Distance(),
        lambda x, y: (np.linalg.norm(x) + np.linalg.norm(y) - np.linalg.norm(x - y)) / 2,
    ),
    "product": (
        Product([Gaussian(0.5), Laplacian(2.0)]),
        lambda x, y: math.exp(-((x[0] - y[0]) ** 2) / 0.5 - abs(x[1] - y[1]) / 2),
    ),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_gram_is_the_formula(name: str, generator: torch.Generator) -> None:
    kernel, formula = FORMULAS[name]
    x = torch.randn(2, 5, 2, generator=generator, dtype=torch.float64)
    y = torch.randn(2, 4, 2, generator=generator, dtype=torch.float64)
    gram, own = kernel(x, y), kernel(x)
    assert gram.shape == (2, 5, 4)
    for b in range(2):
        for i in range(5):
            for j in range(4):
                assert gram[b, i, j].item() == pytest.approx(
                    formula(x[b, i].numpy(), y[b, j].numpy()), abs=1e-12
                )
            for j in range(5):
                assert own[b, i, j].item() == pytest.approx(
                    formula(x[b, i].numpy(), x[b, j].numpy()), abs=1e-12
                )


@pytest.mark.parametrize("name", [name for name in FORMULAS if name != "linear"])
def test_gradient_is_finite_on_repeated_rows(name: str) -> None:
    kernel, _ = FORMULAS[name]
    x = torch.tensor([[1.0, 2.0], [1.0, 2.0], [0.0, 1.0]], dtype=torch.float64, requires_grad=True)
    kernel(x).sum().backward()
    assert torch.isfinite(x.grad).all()


@pytest.mark.parametrize(
    ("kernel", "constant"),
    [
        (Gaussian(0.7), 1 / 0.7),
        (MultiScale(0.7), math.sqrt(5.3125) / 0.7),
        (InverseMultiquadric(0.7), 1 / 0.7),
        (Product([Gaussian(0.5), Gaussian(2.0)]), 1 / 0.5),
    ],
)
def test_lipschitz_constant_holds_and_is_reached(
    kernel: Kernel, constant: float, generator: torch.Generator
) -> None:
    """Pairs at distances over six decades never pass the constant of the docstring, and near pairs approach it."""
    x = torch.randn(4000, 2, generator=generator, dtype=torch.float64)
    step = torch.randn(4000, 2, generator=generator, dtype=torch.float64)
    step[:1000, 1] = 0.0
    y = x + step * 10.0 ** torch.linspace(-3, 3, 4000, dtype=torch.float64).unsqueeze(-1)
    value = kernel(x.unsqueeze(1), y.unsqueeze(1)).flatten()
    ratio = (2 - 2 * value).clamp_min(0).sqrt() / (x - y).norm(dim=-1)
    assert 0.99 * constant <= ratio.max() <= constant * (1 + 1e-6)


def test_bandwidths_may_differ_along_the_batch(generator: torch.Generator) -> None:
    x = torch.randn(3, 6, 2, generator=generator, dtype=torch.float64)
    bandwidth = torch.tensor([0.5, 1.0, 2.0])
    for kind in (Gaussian, MultiScale, Laplacian, InverseMultiquadric):
        stacked = kind(bandwidth)(x)
        for b in range(3):
            torch.testing.assert_close(stacked[b], kind(bandwidth[b].item())(x[b]))


def test_categories_are_equal_if_all_their_columns_are() -> None:
    x = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 1.0]])
    equal = (x.unsqueeze(0) == x.unsqueeze(1)).all(-1).float()
    assert torch.equal(Categorical()(x), equal)
    assert torch.equal(Categorical()(x[:3], x[1:]), equal[:3, 1:])


def test_multi_scale_slope_is_the_derivative() -> None:
    """In q = ‖x − y‖²/4σ² the kernel is the mean of exp(−q f/2) for f = 1, 4, 16 and 64; the slope is −2 times it."""
    q = torch.linspace(0, 8, 50, dtype=torch.float64, requires_grad=True)
    kernel = torch.stack([torch.exp(-0.5 * f * q) for f in (1, 4, 16, 64)]).mean(0)
    (derivative,) = torch.autograd.grad(kernel.sum(), q)
    gram, slope = multi_scale_grams(torch.exp(-0.5 * q.detach()), (1.0, 4.0))
    torch.testing.assert_close(gram, kernel.detach())
    torch.testing.assert_close(slope, -2 * derivative)


class EveryResult(TorchDispatchMode):
    """Keep the result of every operation."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[torch.Tensor] = []

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        self.kept.append(function(*args, **(kwargs or {})))
        return self.kept[-1]


def test_multi_scale_powers_are_never_subnormal() -> None:
    for dtype, least in ((torch.float32, -19), (torch.float64, -154)):
        widest = torch.logspace(least, 0, 500, dtype=dtype)
        with EveryResult() as results:
            multi_scale_grams(widest, (1.0, 4.0))
        assert len(results.kept) > 9
        assert min(result.min() for result in results.kept) >= torch.finfo(dtype).tiny


def test_far_from_the_origin_distances_keep_their_digits() -> None:
    x = torch.tensor([[1e6], [1e6 + 1.0], [1e6 + 3.0]], dtype=torch.float32)
    assert squared_distances(x).tolist() == [[0.0, 1.0, 9.0], [1.0, 0.0, 4.0], [9.0, 4.0, 0.0]]


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_bandwidth_must_be_positive(bad: float) -> None:
    for kind in (Gaussian, MultiScale, Laplacian, InverseMultiquadric):
        with pytest.raises(ValueError, match="must be a positive number"):
            kind(bad)


def lower_median(distances: np.ndarray) -> float:
    return float(np.sort(distances)[(len(distances) - 1) // 2])


@pytest.mark.parametrize("n", [2, 3, 4, 5, 30, 31, 41])
def test_median_bandwidth_is_the_lower_median_of_scipys_distances(
    n: int, generator: torch.Generator
) -> None:
    """For even and odd numbers of pairs, in a stack, of checked samples and of mini-batches; with no gradient."""
    x = torch.randn(3, n, 4, generator=generator, dtype=torch.float64, requires_grad=True)
    stack = x.detach().numpy()
    expected = [lower_median(pdist(xi)) for xi in stack]
    for found in (median_bandwidth(x), batch_median(x, None)):
        assert not found.requires_grad
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)
    assert median_bandwidth(x[1]).item() == pytest.approx(expected[1], rel=1e-12)
    expected = [lower_median(pdist(xi, "cityblock")) for xi in stack]
    np.testing.assert_allclose(median_distance(x, power=1).numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize(
    "shape", [(2, 1), (3, 1), (50, 1), (700, 1), (1301, 1), (301, 2), (1301, 50)]
)
def test_the_median_is_selected_without_all_distances(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(shape[0])
    samples = {
        "normal": rng.normal(size=shape),
        "heavy tails": rng.standard_cauchy(shape),
        "rounded": rng.normal(size=shape).round(1),
        "few rows": rng.normal(size=(5, shape[1]))[rng.integers(5, size=shape[0])],
        "far from zero": 1e9 + rng.normal(size=shape),
        "tiny": 1e-200 * rng.normal(size=shape),
    }
    for name, x in samples.items():
        unit = 2.0 ** np.frexp(np.abs(x).max())[1]  # squares would leave the range
        distances = unit * pdist(x / unit)
        expected = lower_median(distances) or distances.mean() or 1.0
        assert median_bandwidth(x, max_points=None) == pytest.approx(expected, rel=1e-12), name
    assert (_median_of_rows(samples["normal"]) is None, _median_of_rows(x[:199])) == (
        shape[0] < 200,
        None,
    )


def test_batch_median_of_two_halves(generator: torch.Generator) -> None:
    """With max_points: the lower median between the halves of the first rows; close to that of all pairs."""
    x = torch.randn(256, 5, generator=generator, dtype=torch.float64)
    found = batch_median(x, 128)
    torch.testing.assert_close(found, torch.cdist(x[:64], x[64:128]).flatten().median())
    assert abs(found / median_bandwidth(x) - 1) < 0.05


def test_what_stands_in_for_a_median_of_zero() -> None:
    """The mean distance where most pairs coincide; one for a constant sample or a single row."""
    for width in (1, 5):
        ties = torch.full((10, width), 0.7, dtype=torch.float64)
        ties[0] += width**-0.5
        for median in (median_bandwidth, partial(batch_median, max_points=None)):
            assert median(ties).item() == pytest.approx(9 / 45)
    assert batch_median(ties[:, :1], 10).item() == pytest.approx(5**-0.5 * 5 / 25)
    for median in (
        median_bandwidth,
        partial(batch_median, max_points=None),
        partial(batch_median, max_points=128),
    ):
        for shape in ((5, 2), (1, 2), (4, 1, 2)):
            assert torch.equal(median(torch.ones(shape)), torch.ones(shape[:-2]))


def test_median_bandwidth_of_evenly_spaced_rows(generator: torch.Generator) -> None:
    x = torch.randn(1999, 2, generator=generator, dtype=torch.float64)
    assert median_bandwidth(x).item() == pytest.approx(
        lower_median(pdist(x[::2].numpy())), rel=1e-12
    )
