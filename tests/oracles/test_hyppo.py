"""hyppo as an independent reference. One file for all of it: its just-in-time compilation takes seconds, once."""

from __future__ import annotations

import math

import pytest
import torch

from frhsic_core import Gaussian, hsic

hyppo = pytest.importorskip("hyppo.independence")


@pytest.mark.parametrize("estimator", ["biased", "unbiased"])
def test_hsic(estimator: str, generator: torch.Generator) -> None:
    z = torch.randn(50, 2, generator=generator, dtype=torch.float64)
    s = torch.randn(50, 1, generator=generator, dtype=torch.float64) + z[:, :1]

    def ours(a: torch.Tensor, b: torch.Tensor) -> float:
        return hsic(a, b, kernel_z=Gaussian(1.0), kernel_s=Gaussian(1.0), estimator=estimator).item()

    correlation = ours(z, s) / math.sqrt(ours(z, z) * ours(s, s))
    theirs = hyppo.Hsic(bias=estimator == "biased", gamma=0.5).statistic(z.numpy(), s.numpy())
    # hyppo reports a correlation, and its square root for the biased form only.
    assert theirs == pytest.approx(math.sqrt(correlation) if estimator == "biased" else correlation, rel=1e-10)
