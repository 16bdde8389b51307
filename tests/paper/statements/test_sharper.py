"""The sharper forms of Theorem 4.7: order of the bounds, attainment, broken versions."""

from __future__ import annotations

import pytest
import torch

from frhsic_core.joint import hsic
from frhsic_core.kernels import Gaussian, Linear
from frhsic_core.laws import GaussianPair
from frhsic_core.paper.statements import sharper
from frhsic_core.paper.statements.search import worst_excess
from frhsic_core.paper.statements.sharper import compare_bounds, sharper_gap


@pytest.fixture
def found(generator: torch.Generator) -> sharper.SharperGap:
    z, s = GaussianPair(0.6).sample(60, generator=generator)
    return sharper_gap(z, s, anchors=[[0.5], [-1.0]], coefficients=[1.0, -0.4], kernel_z=Gaussian(1.0))


def test_the_bounds_are_ordered(found: sharper.SharperGap) -> None:
    m = slice(0, 10)
    assert (found.spectrum.mean_squares[m] <= found.worst_heads[m]).all()
    assert (found.worst_heads[m] <= found.coco_bounds[m]).all()
    assert (found.coco_bounds[m] <= found.hsic_bounds[m]).all()
    value, best = found.best(found.coco_bounds)
    assert value == (found.coco_bounds + found.rests)[best - 1]
    assert value <= found.best(found.hsic_bounds)[0]
    assert value >= found.spectrum.gap.square().mean()


def test_weighted_gap_is_hsic_of_the_head_with_a_linear_kernel(generator: torch.Generator) -> None:
    z, s = GaussianPair(0.6).sample(30, generator=generator)
    kernel = Gaussian(1.0)
    found = sharper_gap(z, s, anchors=[[0.3]], coefficients=[2.0], kernel_z=kernel, kernel_s=kernel)
    values = 2.0 * kernel(z, torch.tensor([[0.3]], dtype=z.dtype))
    assert torch.allclose(found.weighted, hsic(values, s, kernel_z=Linear(), kernel_s=kernel))


def test_coco_is_attained_by_the_leading_singular_function(generator: torch.Generator) -> None:
    z, s = GaussianPair(0.6).sample(25, generator=generator)
    kernel = Gaussian(1.0)
    n = len(z)
    h = torch.eye(n, dtype=z.dtype) - 1.0 / n
    k, l = h @ kernel(z) @ h, h @ kernel(s.unsqueeze(-1)) @ h
    # ‖Σ̂_SZ f‖² for f = Σ c_i φ(z_i): cᵀK̃L̃K̃c/n², over cᵀK̃c; the best c is the top eigenvector of L̃^½K̃L̃^½ mapped back.
    values, vectors = torch.linalg.eig(l @ k)
    top = vectors[:, values.real.argmax()].real
    found = sharper_gap(z, s, anchors=z, coefficients=h @ top, kernel_z=kernel, kernel_s=kernel)
    assert torch.allclose(found.weighted, found.spectrum.squared_norm * found.coco**2, rtol=1e-8)


def test_worst_head_is_reached_by_no_random_head_and_by_its_own_maximiser(generator: torch.Generator) -> None:
    z, s = GaussianPair(0.6).sample(15, generator=generator)
    kernel = Gaussian(1.0)
    coefficients = torch.randn(500, 15, generator=generator, dtype=z.dtype)
    many = sharper_gap(z.expand(500, 15, 1), s.expand(500, 15), anchors=z.expand(500, 15, 1),
                       coefficients=coefficients, kernel_z=kernel, kernel_s=kernel, resolutions=3)  # fmt: skip
    assert (many.spectrum.mean_squares[:, :3] <= many.worst_heads[:, :3] * (1 + 1e-12)).all()
    directions = many.spectrum.vectors[0, :, :3]
    centered = kernel(z) - kernel(z).mean(0) - kernel(z).mean(1, keepdim=True) + kernel(z).mean()
    _, inner = torch.linalg.eigh(directions.T @ centered @ directions)
    best = sharper_gap(z, s, anchors=z, coefficients=directions @ inner[:, -1], kernel_z=kernel, kernel_s=kernel)
    assert torch.allclose(best.spectrum.mean_squares[2], best.worst_heads[2], rtol=1e-10)


@pytest.mark.parametrize("name", list(sharper.STEPS))
def test_a_broken_version_is_caught(name: str) -> None:
    def broken(found: sharper.SharperGap) -> torch.Tensor:
        smaller = sharper.SharperGap(found.spectrum, 0.99 * found.coco, found.worst)
        if "at most HSIC" in name:
            smaller = sharper.SharperGap(found.spectrum, found.coco / 0.99, found.worst)
        return sharper.STEPS[name](smaller)

    def excess(step) -> float:
        options = {"prepare": sharper._prepare, "instances": 1200, "generator": torch.Generator().manual_seed(1)}
        return worst_excess({"step": step}, **options)["step"].excess

    assert excess(sharper.STEPS[name]) < 1e-12
    assert excess(broken) > 1e-6


def test_certificates_hold() -> None:
    certificates = sharper.search(quick=True) + sharper.how_much_sharper(quick=True)
    assert {c.verdict for c in certificates} == {"holds as corrected"}


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
