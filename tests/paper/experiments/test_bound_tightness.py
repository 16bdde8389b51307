"""Tightness of Theorem 4.7 on trained models, and the smallest eigenvalue against the bandwidth."""

from __future__ import annotations

import math

import pytest
import torch

from frhsic_core.kernels import Gaussian, median_bandwidth
from frhsic_core.paper.experiments import bound_tightness
from frhsic_core.paper.experiments.bound_tightness import gap_of_heads
from frhsic_core.paper.statements.parity_gap import gap_spectrum


@pytest.fixture(scope="module")
def sample() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    s = torch.rand(160, generator=generator, dtype=torch.float64).mul(25).round() / 25
    noise = torch.randn(160, 2, generator=generator, dtype=torch.float64)
    return torch.stack([s + 0.3 * noise[:, 0], noise[:, 1]], dim=-1), s


def test_sides_of_the_theorem_for_one_sample(sample) -> None:
    """Each side is computed again, with explicit projections, for every anchor alone."""
    z, s = sample
    found = gap_of_heads(z, s, sigma_z=1.0)
    n = len(s)
    h = torch.eye(n, dtype=z.dtype) - 1.0 / n
    kernel = Gaussian(median_bandwidth(s[:, None]))
    values, vectors = (part.flip(-1) for part in torch.linalg.eigh(h @ kernel(s[:, None]) @ h / n))
    kept = int((values > 1e-6 * values[0]).sum())
    deltas = h @ Gaussian(1.0)(z, z[:64])
    assert found["kept_64"] == kept
    assert found["smallest_64"] == pytest.approx(values[kept - 1].item(), rel=1e-8)
    assert found["left"] == pytest.approx(deltas.square().mean().item(), rel=1e-10)
    assert found["left_max"] == pytest.approx(deltas.square().mean(0).max().item(), rel=1e-10)
    assert found["hsic"] == pytest.approx(
        (Gaussian(1.0)(z) @ h @ kernel(s[:, None]) @ h).trace().item() / n**2
    )
    for m in (1, kept):
        resolved = (vectors[:, :m].T @ deltas).square().sum(0) / n
        assert found[f"resolved_{m}"] == pytest.approx(resolved.mean().item(), rel=1e-8)
        assert found[f"eigenvalue_{m}"] == pytest.approx(values[m - 1].item(), rel=1e-8)


def test_bits_are_added_until_the_smallest_eigenvalue_is_isolated(monkeypatch) -> None:
    """At this bandwidth float64 has digits enough for a reference."""
    monkeypatch.setattr(bound_tightness, "BITS", 60)
    unit = {"what": "smallest", "dataset": "synthetic", "variant": "text", "n": 5, "sigma": 0.3}
    single, double, exact = bound_tightness.measure_unit_bandwidth_scaling(unit, "cpu")
    values = bound_tightness.rational_values("synthetic", "text", 5)
    s = torch.tensor([float(value) for value in values], dtype=torch.float64)[:, None]
    h = torch.eye(5, dtype=torch.float64) - 0.2
    wanted = torch.linalg.eigvalsh(h @ Gaussian(0.3)(s) @ h / 5)
    assert exact["log10_smallest"] == pytest.approx(math.log10(wanted[1]), abs=1e-4)
    assert double["log10_smallest"] == pytest.approx(math.log10(wanted[1]), abs=1e-5)
    assert single["log10_smallest"] == pytest.approx(double["log10_smallest"], abs=0.1)
    assert exact["kept"] == double["kept"] == 4


def test_the_papers_bound_has_the_eigenvalue_of_all_rows(sample) -> None:
    z, s = sample
    f = z[:, 0].sigmoid()
    found = bound_tightness.paper_bound(f.numpy(), s.numpy(), delta=0.05)
    kernels = {
        "kernel_z": Gaussian(median_bandwidth(f[:, None])),
        "kernel_s": Gaussian(median_bandwidth(s[:, None])),
    }
    spectrum = gap_spectrum(f[:, None], s, anchors=[[0.0]], coefficients=[1.0], **kernels)
    assert found["eigenvalue"] == pytest.approx(spectrum.eigenvalues[0].item(), rel=1e-10)
    assert found["hsic"] == pytest.approx(spectrum.hsic.item(), rel=1e-8)
    margin = 8 * math.sqrt(2 * math.log(40) / 160) + 4 / 160
    assert found["paper"] == pytest.approx(
        math.sqrt((found["hsic"] + margin) / found["eigenvalue"])
    )
