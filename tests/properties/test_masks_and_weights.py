"""A mask is the subset of its rows, and weights are those of the rows kept: every other statistic that takes them.

Kernels and bandwidths are fixed, because data-driven ones see the rows that a mask leaves out. The forms of HSIC are in
tests/joint/test_forms.py. Here a repeated row is another row: it is left out by itself, it makes a pair with its copy,
or it counts in the choice of a bandwidth.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import frhsic_core as fc
from frhsic_core.arrays import row_weights
from frhsic_core.conditional._smoothing import resolve_bandwidth

SMOOTHING: dict[str, Any] = {"kernel_z": fc.Gaussian(1.0), "bandwidth": 0.4}
Statistic = Callable[..., Tensor]


def gdp(**fixed: Any) -> Statistic:
    return lambda z, s, **options: fc.gdp(z[:, 0], s[:, :1], **fixed, **options)


MASKED: dict[str, Statistic] = {
    "eipm": lambda z, s, **options: fc.eipm(z, s, **SMOOTHING, **options),
    "eipm squared": lambda z, s, **options: fc.eipm(z, s, power=2, **SMOOTHING, **options),
    "gdp": gdp(),
    "gdp of the authors": gdp(estimator="authors"),
}


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
        eipm = sys.modules["frhsic_core.conditional._eipm"]
        monkeypatch.setattr(eipm, "DENSE_ROWS", 5)
        monkeypatch.setattr(eipm, "_BLOCK", 49)
    return request.param


def close(found: Tensor, expected: Tensor) -> None:
    assert found.abs().max() > 1e-6
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("name", MASKED)
def test_a_mask_is_its_rows(name: str, path: str) -> None:
    z, s, mask, _ = sample()
    close(MASKED[name](z, s, mask=mask), MASKED[name](z[mask], s[mask]))


@pytest.mark.parametrize("name", MASKED)
def test_weights_are_those_of_the_rows_kept(name: str, path: str) -> None:
    z, s, mask, _ = sample()
    weights = torch.linspace(0.5, 2.0, 30, dtype=torch.float64)
    statistic = MASKED[name]
    found = statistic(z, s, sample_weight=weights, mask=mask)
    close(found, statistic(z[mask], s[mask], sample_weight=3.0 * weights[mask]))
    assert not torch.allclose(found, statistic(z, s, mask=mask), rtol=1e-4)


def test_rules_for_the_bandwidth_take_masks_and_weights() -> None:
    def rule(s: Tensor, name: str = "silverman", **weights: Any) -> Tensor:
        q = row_weights(s, weights.get("mask"), weights.get("sample_weight"))
        return torch.as_tensor(resolve_bandwidth(name, s, q))

    _, s, mask, counts = sample()
    weighted = rule(s, mask=mask, sample_weight=counts)
    close(weighted, rule(s[mask], sample_weight=counts[mask]))
    assert not torch.allclose(weighted, rule(s, mask=mask), rtol=1e-4)
