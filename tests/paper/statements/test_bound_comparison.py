"""One row of the table of bounds, against the parts it is made of."""

from __future__ import annotations

import pytest
import torch

from frhsic_core.kernels import Gaussian
from frhsic_core.laws import GaussianPair
from frhsic_core.paper.statements.bound_comparison import compare_bounds
from frhsic_core.paper.statements.sharper import sharper_gap


def test_one_anchor_is_the_sharper_gap(generator: torch.Generator) -> None:
    z, s = GaussianPair(0.6).sample(80, generator=generator)
    kernel = Gaussian(1.0)
    row = compare_bounds(z, s, anchors=[[0.4]], kernel_z=kernel, kernel_s=kernel, cutoff=1e-3)
    found = sharper_gap(z, s, anchors=[[0.4]], coefficients=[1.0], kernel_z=kernel, kernel_s=kernel, resolutions=1)
    kept = int((found.spectrum.eigenvalues > 1e-3 * found.spectrum.eigenvalues[0]).sum())
    assert row["kept"] == kept
    assert row["printed"] == pytest.approx(found.hsic_bounds[kept - 1].item())
    assert row["left"] == pytest.approx(found.spectrum.gap.square().mean().item())
    assert row["projected"] == pytest.approx(found.spectrum.mean_squares[kept - 1].item())
    assert row["best_hsic"] == pytest.approx((found.hsic_bounds + found.rests)[:kept].min().item())
    assert row["best_coco"] == pytest.approx((found.coco_bounds + found.rests)[:kept].min().item())
    assert row["weighted"] == pytest.approx(found.weighted.item())


def test_order_on_independent_and_dependent_samples(generator: torch.Generator) -> None:
    for rho in (0.0, 0.9):
        z, s = GaussianPair(rho).sample(150, generator=generator)
        row = compare_bounds(z, s)
        assert row["projected"] <= row["left"] <= row["best_coco"] <= row["best_hsic"]
        assert row["weighted"] <= row["coco_squared"] <= row["hsic"]
