"""hyppo as an independent reference, in one file: its import is slow."""

from __future__ import annotations

import math
import warnings
from typing import Any

import pytest
import torch

from frhsic_core import Gaussian, distance_correlation, hsic


@pytest.fixture
def hyppo(uncompiled: None) -> Any:
    with warnings.catch_warnings(action="ignore"):
        return pytest.importorskip("hyppo.independence")


@pytest.fixture
def pair(generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    z = torch.randn(50, 2, generator=generator, dtype=torch.float64)
    return z, torch.randn(50, 1, generator=generator, dtype=torch.float64) + z[:, :1]


@pytest.mark.parametrize("estimator", ["biased", "unbiased"])
def test_hsic(hyppo: Any, estimator: str, pair: tuple[torch.Tensor, torch.Tensor]) -> None:
    z, s = pair

    def ours(a: torch.Tensor, b: torch.Tensor) -> float:
        return float(hsic(a, b, kernel_z=Gaussian(1.0), kernel_s=Gaussian(1.0), estimator=estimator))

    correlation = ours(z, s) / math.sqrt(ours(z, z) * ours(s, s))
    theirs = hyppo.Hsic(bias=estimator == "biased", gamma=0.5).statistic(z.numpy(), s.numpy())
    # hyppo reports a correlation, and its square root for the biased form only.
    assert theirs == pytest.approx(math.sqrt(correlation) if estimator == "biased" else correlation, rel=1e-10)


def test_distance_correlation(hyppo: Any, pair: tuple[torch.Tensor, torch.Tensor]) -> None:
    z, s = pair
    biased = hyppo.Dcorr(bias=True).statistic(z.numpy(), s.numpy())
    unbiased = hyppo.Dcorr(bias=False).statistic(z.numpy(), s.numpy())
    # The biased form is rooted there, the unbiased one is not.
    assert float(distance_correlation(z, s)) == pytest.approx(float(biased), rel=1e-8)
    ours = float(distance_correlation(z, s, squared=True, estimator="unbiased"))
    assert ours == pytest.approx(float(unbiased), rel=1e-8)
