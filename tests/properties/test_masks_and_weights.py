"""A mask is the subset of its rows, and whole weights are repeated rows: one test for every statistic that takes them.

Kernels and bandwidths are fixed, because data-driven ones see the rows that a mask leaves out.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import frhsic_core as fc
from frhsic_core.conditional._smoothing import resolve_bandwidth, row_weights

KERNELS: dict[str, Any] = {"kernel_z": fc.Gaussian(1.0), "kernel_s": fc.Laplacian(0.8)}
SMOOTHING: dict[str, Any] = {"kernel_z": fc.Gaussian(1.0), "bandwidth": 0.4}
Statistic = Callable[..., Tensor]


def loss(estimator: str, **options: Any) -> Statistic:
    return fc.HSICLoss(2.0, estimator=estimator, kernel_z=fc.Gaussian(1.0), **options)


def sum_of_columns(z: Tensor, s: Tensor, **options: Any) -> Tensor:
    """attributes='sum' chooses its own bandwidths on S: columns with two values have the same ones in every subset."""
    return fc.hsic(z, s, kernel_z=fc.Gaussian(1.0), attributes="sum", **options)


def gdp(**fixed: Any) -> Statistic:
    return lambda z, s, **options: fc.gdp(z[:, 0], s[:, :1], **fixed, **options)


# What takes a mask; then what takes weights that stand for repeated rows.
MASKED: dict[str, Statistic] = {
    "hsic": lambda z, s, **options: fc.hsic(z, s, **KERNELS, **options),
    "hsic streamed": lambda z, s, **options: fc.hsic(z, s, chunk_size=7, **KERNELS, **options),
    "hsic unbiased": lambda z, s, **options: fc.hsic(z, s, estimator="unbiased", **KERNELS, **options),
    "hsic unbiased streamed": lambda z, s, **options: fc.hsic(
        z, s, estimator="unbiased", chunk_size=7, **KERNELS, **options
    ),
    "normalized_hsic": lambda z, s, **options: fc.normalized_hsic(z, s, **KERNELS, **options),
    "normalized_hsic streamed": lambda z, s, **options: fc.normalized_hsic(z, s, chunk_size=7, **KERNELS, **options),
    "HSICLoss": loss("biased", kernel_s=fc.Gaussian(0.7)),
    "HSICLoss unbiased": loss("unbiased", kernel_s=fc.Gaussian(0.7)),
    "HSICLoss normalized": loss("normalized", kernel_s=fc.Gaussian(0.7)),
    "eipm": lambda z, s, **options: fc.eipm(z, s, **SMOOTHING, **options),
    "eipm squared": lambda z, s, **options: fc.eipm(z, s, power=2, **SMOOTHING, **options),
    "gdp": gdp(),
    "gdp of the authors": gdp(estimator="authors"),
}
# The unbiased HSIC takes no weights. Elsewhere a repeated row is another row: it is left out by itself, it makes a pair
# with its copy, or it counts against a constant or in the choice of a bandwidth.
NO_WEIGHTS = ["hsic unbiased", "hsic unbiased streamed", "HSICLoss unbiased"]
NO_REPETITION = ["eipm", "eipm squared", "gdp", "gdp of the authors"]
WEIGHTED = {name: statistic for name, statistic in MASKED.items() if name not in (*NO_WEIGHTS, *NO_REPETITION)}


def sample(n: int = 30) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    z = torch.randn(n, 3, generator=generator, dtype=torch.float64)
    s = 0.5 * torch.randn(n, 2, generator=generator, dtype=torch.float64) + z[:, :2]
    mask = torch.rand(n, generator=generator) < 0.6
    mask[[int(s[:, 0].argmin()), int(s[:, 0].argmax())]] = False  # a grid spans the rows kept
    counts = torch.randint(1, 4, (n,), generator=generator)
    return z, s, mask, counts


@pytest.fixture(params=["dense", "by block"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run each statistic as it is, and with limits so small that it goes block by block."""
    if request.param == "by block":
        for module in ("joint.hsic", "joint.distance", "conditional._eipm"):
            monkeypatch.setattr(sys.modules[f"frhsic_core.{module}"], "DENSE_ROWS", 5)
        monkeypatch.setattr(sys.modules["frhsic_core.conditional._eipm"], "_BLOCK", 49)
    return request.param


def close(found: Tensor, expected: Tensor) -> None:
    assert found.abs().max() > 1e-6
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("name", MASKED)
def test_a_mask_is_its_rows(name: str, path: str) -> None:
    z, s, mask, _ = sample()
    close(MASKED[name](z, s, mask=mask), MASKED[name](z[mask], s[mask]))


@pytest.mark.parametrize("name", WEIGHTED)
def test_whole_weights_are_repeated_rows(name: str, path: str) -> None:
    z, s, mask, counts = sample()
    statistic = WEIGHTED[name]
    repeated = [x.repeat_interleave(counts, 0) for x in (z, s)]
    close(statistic(z, s, sample_weight=counts), statistic(*repeated))
    kept = counts * mask
    repeated = [x.repeat_interleave(kept, 0) for x in (z, s)]
    close(statistic(z, s, sample_weight=counts, mask=mask), statistic(*repeated))


@pytest.mark.parametrize("name", [*NO_REPETITION, *WEIGHTED])
def test_weights_are_those_of_the_rows_kept(name: str, path: str) -> None:
    z, s, mask, _ = sample()
    weights = torch.linspace(0.5, 2.0, 30, dtype=torch.float64)
    statistic = MASKED[name]
    found = statistic(z, s, sample_weight=weights, mask=mask)
    close(found, statistic(z[mask], s[mask], sample_weight=3.0 * weights[mask]))
    assert not torch.allclose(found, statistic(z, s, mask=mask), rtol=1e-4)


@pytest.mark.parametrize("chunk_size", [None, 7])
def test_a_sum_over_attributes_takes_masks_and_weights(chunk_size: int | None) -> None:
    z, s, mask, counts = sample()
    s = (s > 0).double()
    options = {"chunk_size": chunk_size}
    # All columns must keep both values, about equally often, so that no default bandwidth moves.
    expected = sum(
        fc.hsic(z[mask], s[mask][:, a], kernel_z=fc.Gaussian(1.0), kernel_s=fc.Gaussian(fc.median_bandwidth(s[:, a])))
        for a in range(2)
    )
    close(sum_of_columns(z, s, mask=mask, **options), torch.as_tensor(expected))
    both = sum_of_columns(z, s, mask=mask, sample_weight=counts, **options)
    expected = sum(fc.hsic(z, s[:, a], kernel_z=fc.Gaussian(1.0), mask=mask, sample_weight=counts) for a in range(2))
    close(both, torch.as_tensor(expected))
    assert not torch.allclose(both, sum_of_columns(z, s, mask=mask), rtol=1e-4)


def test_rules_for_the_bandwidth_take_masks_and_weights() -> None:
    def rule(s: Tensor, name: str = "silverman", **weights: Any) -> Tensor:
        q = row_weights(s, weights.get("mask"), weights.get("sample_weight"))
        return torch.as_tensor(resolve_bandwidth(name, s, q))

    _, s, mask, counts = sample()
    close(rule(s, "scott", mask=mask), rule(s[mask], "scott"))
    weighted = rule(s, mask=mask, sample_weight=counts)
    close(weighted, rule(s[mask], sample_weight=counts[mask]))
    assert not torch.allclose(weighted, rule(s, mask=mask), rtol=1e-4)
