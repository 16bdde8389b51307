"""The convergence study: features are the kernel, estimates are the library's, slopes are the fitted ones."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from frhsic_core.conditional import eipm
from frhsic_core.joint.hsic import hsic
from frhsic_core.kernels import Gaussian
from frhsic_core.laws import GaussianPair
from frhsic_core.paper.experiments import convergence

LAW, KERNEL = GaussianPair(0.5), Gaussian(1.0)


@pytest.mark.parametrize("bandwidth", [0.03, 0.3, 1.0, 5.0])
def test_features_are_the_kernel(bandwidth: float) -> None:
    x = torch.randn(2, 60, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    features = convergence.gaussian_features(x, bandwidth, spread=float(x.max() - x.min()))
    exact = torch.exp(-((x.unsqueeze(-1) - x.unsqueeze(-2)) ** 2) / (2 * bandwidth**2))
    assert (features @ features.mT - exact).abs().max() < 1e-12


@pytest.mark.parametrize("gamma", [1.0, 0.3, 0.05, 0.01])
def test_eipm_from_features_with_rows_that_stand_alone(gamma: float) -> None:
    z, s = LAW.sample(120, random_state=torch.Generator().manual_seed(5), batch=(2,))
    phi = convergence.gaussian_features(z.squeeze(-1), 1.0, spread=11.0)
    exact = eipm(z, s, kernel_z=KERNEL, bandwidth=gamma)
    found = convergence.smoothed_eipm(phi, s, gamma, spread=11.0)
    torch.testing.assert_close(found, exact, rtol=1e-8, atol=1e-10)


def test_a_printed_study_by_hand(monkeypatch) -> None:
    monkeypatch.setattr(convergence, "SIZES", (20, 40))
    monkeypatch.setattr(convergence, "REPLICATIONS", 3)
    monkeypatch.setattr(convergence, "PROXY_N", 60)
    found = convergence.printed_studies(9, studies=2)
    for study in range(2):
        sample = LAW.sample(60, random_state=torch.Generator().manual_seed(9), batch=(2,))
        proxy = float(hsic(sample[0][study], sample[1][study], kernel_z=KERNEL, kernel_s=KERNEL))
        errors = []
        for i, n in enumerate((20, 40)):
            z, s = LAW.sample(n, random_state=torch.Generator().manual_seed(10 + i), batch=(6,))
            values = hsic(z, s, kernel_z=KERNEL, kernel_s=KERNEL)[3 * study : 3 * study + 3]
            errors.append((values - proxy).abs().mean().item())
        assert found["slope_hsic"][study] == pytest.approx(
            np.log(errors[1] / errors[0]) / np.log(2), rel=1e-9
        )
