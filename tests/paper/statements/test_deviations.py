"""The deviations of a law against explicit feature vectors, sums and the Gaussian pair's closed forms."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from frhsic_core.joint import hsic
from frhsic_core.kernels import Gaussian, Laplacian
from frhsic_core.laws import FiniteLaw, GaussianPair, KernelHead
from frhsic_core.paper.statements.deviations import (
    Deviations,
    deviations_of_joint,
    deviations_of_pair,
)
from frhsic_core.paper.statements.smoothing import operator_norm


@pytest.fixture
def explicit(generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return a law on 5 × 4 points with explicit features: φ(z) in R³, ψ(s) in R²."""
    joint = torch.rand(5, 4, generator=generator, dtype=torch.float64)
    features_z = torch.randn(5, 3, generator=generator, dtype=torch.float64)
    features_s = torch.randn(4, 2, generator=generator, dtype=torch.float64)
    return joint / joint.sum(), features_z, features_s


def test_against_explicit_features(explicit: tuple[torch.Tensor, torch.Tensor, torch.Tensor]) -> None:
    joint, z, s = explicit
    d = deviations_of_joint(joint, z @ z.T, s @ s.T)
    p = joint.sum(0)
    delta = (joint / p).T @ z - joint.sum(1) @ z  # (4, 3): Δ(s) itself
    cross = torch.einsum("s,si,sj->ij", p, delta, s)  # E[Δ(S) ⊗ ψ(S)]
    assert torch.allclose(d.gram, delta @ delta.T)
    assert torch.allclose(d.hsic, (cross**2).sum())
    assert torch.allclose(d.expected_mmd, (p * delta.norm(dim=1)).sum())
    assert torch.allclose(d.expected_squared_mmd, (p * delta.norm(dim=1) ** 2).sum())
    g = s @ torch.tensor([0.3, -1.0], dtype=torch.float64)
    assert torch.allclose(d.smoothed(g), ((p * g) @ delta).norm() ** 2)
    alpha = torch.arange(5, dtype=torch.float64)
    gap, norm = d.gap(alpha)
    assert torch.allclose(gap, delta @ (alpha @ z))
    assert torch.allclose(norm, (alpha @ z).norm() ** 2)


def test_spectrum_resolves_both_criteria(explicit: tuple[torch.Tensor, torch.Tensor, torch.Tensor]) -> None:
    joint, z, _ = explicit
    d = deviations_of_joint(joint, z @ z.T, Gaussian(1.0)(torch.arange(4, dtype=torch.float64).unsqueeze(-1)))
    for centered in (False, True):
        spectrum = d.spectrum(centered=centered)
        assert torch.allclose((spectrum.eigenvalues * spectrum.energies).sum(), d.hsic)
        assert torch.allclose(spectrum.energies.sum(), d.expected_squared_mmd)
        assert torch.allclose(spectrum.tails[0], spectrum.energies[1:].sum())
        assert spectrum.tails[-1] == 0
    # The centred operator has the constant in its kernel.
    assert d.spectrum(centered=True).eigenvalues[-1] < 1e-12


def test_centred_spectrum_of_a_sample_is_that_of_the_centred_gram_matrix(generator: torch.Generator) -> None:
    n = 30
    z, s = torch.randn(2, n, 1, generator=generator, dtype=torch.float64)
    gram_s = Gaussian(0.7)(s)
    d = deviations_of_joint(torch.eye(n, dtype=torch.float64) / n, Gaussian(1.0)(z), gram_s)
    h = torch.eye(n, dtype=torch.float64) - 1.0 / n
    expected = torch.linalg.eigvalsh(h @ gram_s @ h / n).flip(0)
    assert torch.allclose(d.spectrum(centered=True).eigenvalues, expected.clamp_min(0.0), atol=1e-12)
    assert torch.allclose(d.hsic, hsic(z, s, kernel_z=Gaussian(1.0), kernel_s=Gaussian(0.7)))


def test_impossible_values_have_no_deviation() -> None:
    joint = torch.tensor([[0.5, 0.0], [0.5, 0.0]], dtype=torch.float64)
    eye = torch.eye(2, dtype=torch.float64)
    d = deviations_of_joint(joint, eye, eye)
    assert d.hsic == 0
    assert torch.isfinite(d.gram).all()


@pytest.mark.parametrize(("rho", "sigma_z", "sigma_s"), [(0.3, 1.0, 0.5), (0.95, 0.5, 2.0), (-0.6, 3.0, 1.0)])
def test_pair_at_nodes_agrees_with_closed_forms(rho: float, sigma_z: float, sigma_s: float) -> None:
    law, kernel_z, kernel_s = GaussianPair(rho), Gaussian(sigma_z), Gaussian(sigma_s)
    d = deviations_of_pair(law, kernel_z, kernel_s, nodes=150)
    assert d.hsic.item() == pytest.approx(law.hsic(kernel_z, kernel_s), rel=1e-10)
    assert d.expected_squared_mmd.item() == pytest.approx(law.expected_squared_mmd(kernel_z), rel=1e-10)
    for centered in (False, True):
        spectrum = d.spectrum(centered=centered)
        if centered:
            eigenvalues, energies = law.centered_spectrum(kernel_z, kernel_s, m=6)
        else:
            eigenvalues = law.mercer(kernel_s).eigenvalues(6)
            energies = law.delta_coefficients(kernel_z, kernel_s, m=6)
        assert np.allclose(spectrum.eigenvalues[:6].numpy(), eigenvalues, rtol=1e-9)
        assert np.allclose(spectrum.energies[:6].numpy(), energies, rtol=1e-7, atol=1e-13)
    gap, norm = d.gap(torch.tensor([1.0, 0.0, -2.0, 0.5], dtype=torch.float64))
    head = KernelHead([-1.0, 0.0, 0.5, 2.0], [1.0, 0.0, -2.0, 0.5], kernel=kernel_z)
    assert norm.item() == pytest.approx(head.norm**2, rel=1e-12)
    assert (d.probabilities * gap**2).sum().item() == pytest.approx(law.expected_squared_gap(head), rel=1e-9)


def test_batches_are_laws_one_by_one(generator: torch.Generator) -> None:
    joint = torch.rand(7, 3, 4, generator=generator, dtype=torch.float64)
    joint = joint / joint.sum((-2, -1), keepdim=True)
    gram_z, gram_s = torch.eye(3, dtype=torch.float64), torch.eye(4, dtype=torch.float64)
    batch = deviations_of_joint(joint, gram_z, gram_s)
    for i in range(7):
        one = deviations_of_joint(joint[i], gram_z, gram_s)
        assert torch.allclose(batch.hsic[i], one.hsic)
        assert torch.allclose(batch.expected_mmd[i], one.expected_mmd)


def test_heads_must_be_there() -> None:
    eye = torch.eye(2, dtype=torch.float64)
    d = Deviations(torch.full((2,), 0.5, dtype=torch.float64), eye, eye)
    with pytest.raises(ValueError, match="no heads"):
        d.gap(torch.ones(2, dtype=torch.float64))


def test_finite_laws_have_the_answers_of_their_own(generator: torch.Generator) -> None:
    joint = torch.rand(4, 5, generator=generator, dtype=torch.float64).numpy()
    law = FiniteLaw([0.0, 0.5, 1.0, 3.0], [-1.0, 0.0, 0.2, 1.0, 4.0], joint / joint.sum())
    kernel_z, kernel_s = Gaussian(0.8), Laplacian(1.5)
    arrays = (law.probabilities, law.gram_z(kernel_z), law.gram_s(kernel_s))
    d = deviations_of_joint(*map(torch.as_tensor, arrays))
    assert d.hsic.item() == pytest.approx(law.hsic(kernel_z, kernel_s), rel=1e-12)
    assert d.expected_mmd.item() == pytest.approx(law.expected_mmd(kernel_z), rel=1e-12)
    assert d.expected_squared_mmd.item() == pytest.approx(law.expected_squared_mmd(kernel_z), rel=1e-12)
    assert operator_norm(d).item() == pytest.approx(law.coco(kernel_z, kernel_s) ** 2, rel=1e-9)
