"""Theorem 4.7: against brute force, at equality, and with broken versions that the same search must catch."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from frhsic_core.joint import hsic
from frhsic_core.kernels import Gaussian, InverseMultiquadric, Laplacian, Linear
from frhsic_core.paper.statements.parity_gap import (
    STEPS,
    GapSpectrum,
    division_free_excess,
    gap_spectrum,
    identity_excess,
    jensen_excess,
    lower_bound_excess,
    on_both_heads,
    on_the_gaussian_law,
    projection_excess,
    proof_chain,
    witness_spectrum,
)
from frhsic_core.paper.statements.search import worst_excess


def test_spectrum_against_explicit_matrices(generator: torch.Generator) -> None:
    n = 7
    z = torch.randn(n, 2, generator=generator, dtype=torch.float64)
    s = torch.randn(n, 1, generator=generator, dtype=torch.float64)
    anchors = torch.randn(3, 2, generator=generator, dtype=torch.float64)
    coefficients = torch.randn(3, generator=generator, dtype=torch.float64)
    kernel = Gaussian(1.3)
    found = gap_spectrum(z, s, anchors=anchors, coefficients=coefficients, kernel_z=kernel, kernel_s=kernel)
    h = torch.eye(n, dtype=torch.float64) - 1.0 / n
    k, l = kernel(z), kernel(s)
    head = kernel(z, anchors) @ coefficients
    values = torch.linalg.eigvalsh(h @ l @ h / n).flip(0)
    assert torch.allclose(found.eigenvalues, values, atol=1e-14)
    assert torch.allclose(found.gap, h @ head)
    assert torch.allclose(found.hsic, torch.trace(k @ h @ l @ h) / n**2)
    assert torch.allclose(found.squared_norm, coefficients @ kernel(anchors) @ coefficients)
    assert found.rank == n - 1
    for m in (1, 3, n - 1):
        basis = found.vectors[:, :m]
        projected = basis @ basis.T @ h @ head
        assert torch.allclose(found.projected(m), projected)
        assert torch.allclose(found.mean_squares[m - 1], projected.square().mean())
        assert torch.allclose(found.parity_gap(m), projected.abs().mean())
        assert torch.allclose(found.bounds[m - 1], found.squared_norm * found.hsic / values[m - 1])
    assert torch.isinf(found.bounds[-1])


def test_batches_equal_single_samples(generator: torch.Generator) -> None:
    z = torch.randn(3, 5, 2, generator=generator, dtype=torch.float64)
    s = torch.randn(3, 5, 1, generator=generator, dtype=torch.float64)
    coefficients = torch.randn(3, 5, generator=generator, dtype=torch.float64)
    kernel = Gaussian(1.0)
    together = gap_spectrum(z, s, anchors=z, coefficients=coefficients, kernel_z=kernel, kernel_s=kernel)
    for i in range(3):
        alone = gap_spectrum(z[i], s[i], anchors=z[i], coefficients=coefficients[i], kernel_z=kernel, kernel_s=kernel)
        assert torch.allclose(together.mean_squares[i], alone.mean_squares)
        assert torch.allclose(together.bounds[i], alone.bounds)


def test_bound_is_attained_by_the_witness_head_when_s_is_binary(generator: torch.Generator) -> None:
    s = torch.tensor([0.0, 0.0, 0.0, 1.0, 1.0], dtype=torch.float64)
    z = s.unsqueeze(-1) + 0.5 * torch.randn(5, 1, generator=generator, dtype=torch.float64)
    kernel = Gaussian(1.0)
    first = gap_spectrum(z, s, anchors=z, coefficients=torch.ones(5), kernel_z=kernel, kernel_s=kernel)
    found = gap_spectrum(z, s, anchors=z, coefficients=first.vectors[:, 0], kernel_z=kernel, kernel_s=kernel)
    assert found.rank == 1
    assert torch.allclose(found.mean_squares[0], found.bounds[0], rtol=1e-12)


@pytest.mark.parametrize("kernel", [Laplacian(0.7), InverseMultiquadric(1.0), Linear()])
def test_holds_for_other_kernels(kernel: object, generator: torch.Generator) -> None:
    z = torch.randn(20, 12, 2, generator=generator, dtype=torch.float64)
    s = torch.randn(20, 12, 1, generator=generator, dtype=torch.float64)
    coefficients = torch.randn(20, 12, generator=generator, dtype=torch.float64)
    found = gap_spectrum(z, s, anchors=z, coefficients=coefficients, kernel_z=kernel, kernel_s=kernel)
    for step in STEPS.values():
        assert step(found).max() < 1e-12


def search(step: Callable[[GapSpectrum], Tensor], *, centered: bool = True) -> float:
    worst = worst_excess(
        {"step": on_both_heads(step)},
        prepare=lambda batch: witness_spectrum(batch, centered=centered),
        instances=1200,
        generator=torch.Generator().manual_seed(5),
    )
    return worst["step"].excess


@pytest.mark.parametrize("name", list(STEPS))
def test_no_counterexample(name: str) -> None:
    assert search(STEPS[name]) < 1e-12
    assert search(STEPS[name], centered=False) < 1e-12


def shrunk(found: GapSpectrum, factor: float) -> GapSpectrum:
    return GapSpectrum(**{**vars(found), "hsic": factor * found.hsic})


def leading_eigenvalue(found: GapSpectrum) -> Tensor:
    right = found.squared_norm * found.hsic
    excess = found.eigenvalues[..., :1] * found.mean_squares - right.unsqueeze(-1)
    return torch.where(found.counts, excess, -torch.inf) / found.scale.unsqueeze(-1)


def unprojected(found: GapSpectrum) -> Tensor:
    last = found.eigenvalues.gather(-1, (found.rank.clamp_min(1) - 1).unsqueeze(-1)).squeeze(-1)
    excess = last * found.gap.square().mean(-1) - found.squared_norm * found.hsic
    return torch.where(found.rank > 0, excess, -torch.inf) / found.scale


class Smaller(GapSpectrum):
    def parity_gap(self, m: Tensor | int) -> Tensor:
        return 0.99 * super().parity_gap(m)


BROKEN: dict[str, Callable[[GapSpectrum], Tensor]] = {
    "identity with a lost term": lambda f: (f.hsic - (f.eigenvalues * f.energies)[..., 1:].sum(-1) / f.rows).abs(),
    "lower bound with 99 percent of HSIC": lambda f: lower_bound_excess(shrunk(f, 0.99)),
    "projection bound with 99 percent of the norm": lambda f: projection_excess(
        GapSpectrum(**{**vars(f), "squared_norm": 0.99 * f.squared_norm})
    ),
    "Jensen with 99 percent of the gap": lambda f: jensen_excess(Smaller(**vars(f))),
    "bound with 99 percent of HSIC": lambda f: division_free_excess(shrunk(f, 0.99)),
    "bound with the largest eigenvalue for every m": leading_eigenvalue,
    "bound without the projection at m = r": unprojected,
    "HSIC divided by n(n-1) in the identity": lambda f: identity_excess(shrunk(f, f.rows / (f.rows - 1))),
}


@pytest.mark.parametrize("name", list(BROKEN))
def test_a_broken_version_is_caught(name: str) -> None:
    assert search(BROKEN[name]) > 1e-6


def test_certificates_hold() -> None:
    certificates = proof_chain(quick=True) + on_the_gaussian_law(quick=True)
    assert len(certificates) == len(STEPS) + 4
    assert {certificate.verdict for certificate in certificates} == {"holds"}
    assert all(certificate.slack > 0 for certificate in certificates[len(STEPS) :])


def test_hsic_is_the_librarys(generator: torch.Generator) -> None:
    z = torch.randn(9, 1, generator=generator, dtype=torch.float64)
    found = gap_spectrum(z, z[:, 0], anchors=z, coefficients=torch.ones(9))
    assert found.hsic == hsic(z, z[:, 0])


def test_the_steps_written_out_with_projections(generator: torch.Generator) -> None:
    """A step that is too weak breaks nothing, so its sides are computed again from explicit projections."""
    n = 7
    z = torch.randn(n, 2, generator=generator, dtype=torch.float64)
    s = torch.randn(n, 1, generator=generator, dtype=torch.float64)
    weights = torch.randn(n, generator=generator, dtype=torch.float64)
    kernel = Gaussian(1.0)
    found = gap_spectrum(z, s, anchors=z, coefficients=weights, kernel_z=kernel, kernel_s=kernel)
    h = torch.eye(n, dtype=torch.float64) - 1.0 / n
    k, l = h @ kernel(z) @ h, h @ kernel(s) @ h
    value, norm = (k * l).sum() / n**2, weights @ kernel(z) @ weights
    delta = h @ (kernel(z) @ weights)
    values, vectors = (part.flip(-1) for part in torch.linalg.eigh(l / n))
    for m in range(1, n):
        projection = vectors[:, :m] @ vectors[:, :m].T
        trace, square = (projection @ k @ projection).trace(), (projection @ delta).square().mean()
        expected = {
            lower_bound_excess: values[m - 1] * trace / n - value,
            projection_excess: (square - norm * trace / n) / found.scale,
            division_free_excess: (values[m - 1] * square - norm * value) / found.scale,
        }
        for step, excess in expected.items():
            torch.testing.assert_close(step(found)[m - 1], excess, rtol=1e-7, atol=1e-13)
