"""Theorem 4.3 and Corollary 4.4 against explicit tensors in finite-dimensional feature spaces."""

from __future__ import annotations

import pytest
import torch

from frhsic_core.kernels import Gaussian, Laplacian
from frhsic_core.laws import FiniteLaw
from frhsic_core.paper.statements import smoothing
from frhsic_core.paper.statements.smoothing import deviations_of_joint


@pytest.fixture
def explicit(generator: torch.Generator) -> tuple[torch.Tensor, ...]:
    joint = torch.rand(6, 5, generator=generator, dtype=torch.float64)
    z = torch.randn(6, 3, generator=generator, dtype=torch.float64)
    s = torch.randn(5, 4, generator=generator, dtype=torch.float64)
    return joint / joint.sum(), z, s


def test_three_forms_are_contractions_of_one_tensor(explicit: tuple[torch.Tensor, ...]) -> None:
    joint, z, s = explicit
    d = deviations_of_joint(joint, z @ z.T, s @ s.T)
    p = joint.sum(0)
    delta = (joint / p).T @ z - joint.sum(1) @ z
    cross = torch.einsum("s,si,sj->ij", p, delta, s)
    alpha, beta = torch.arange(6, dtype=torch.float64) - 2, torch.linspace(-1, 2, 5, dtype=torch.float64)
    f, g = alpha @ z, beta @ s
    hsic = (cross**2).sum()
    for (left, right), expected, norm in (
        (smoothing.smoothed(d, beta), (cross @ g).norm() ** 2, g.norm() ** 2),
        (smoothing.fixed_head(d, alpha), (f @ cross).norm() ** 2, f.norm() ** 2),
        (smoothing.bilinear(d, alpha, beta), (f @ cross @ g) ** 2, (f.norm() * g.norm()) ** 2),
    ):
        assert torch.allclose(left, expected)
        assert torch.allclose(right, norm * hsic)
        assert left <= right


def test_localised_forms_are_smoothed_forms_at_kernel_sections(explicit: tuple[torch.Tensor, ...]) -> None:
    joint, z, s = explicit
    d = deviations_of_joint(joint, z @ z.T, s @ s.T)
    (one, one_bound), (two, two_bound) = smoothing.localized(d)
    eye = torch.eye(5, dtype=torch.float64)
    for i in range(5):
        left, right = smoothing.smoothed(d, eye[i])
        assert torch.allclose(one[i], left)
        assert torch.allclose(one_bound[i], right)
        left, right = smoothing.smoothed(d, eye[i] - eye[(i + 1) % 5])
        assert torch.allclose(two[i, (i + 1) % 5], left)
        assert torch.allclose(two_bound[i, (i + 1) % 5], right)


def test_equality_with_two_values_and_only_there(explicit: tuple[torch.Tensor, ...]) -> None:
    joint, z, s = explicit
    contrast = torch.tensor([1.0, -1.0], dtype=torch.float64)
    two = deviations_of_joint(joint[:, :2] / joint[:, :2].sum(), z @ z.T, s[:2] @ s[:2].T)
    left, right = smoothing.smoothed(two, contrast)
    assert torch.allclose(left, right)
    left, right = smoothing.smoothed(two, torch.tensor([1.0, 1.0], dtype=torch.float64))
    assert left < right


def test_against_explicit_features(explicit: tuple[torch.Tensor, ...]) -> None:
    joint, z, s = explicit
    d = deviations_of_joint(joint, z @ z.T, s @ s.T)
    p = joint.sum(0)
    delta = (joint / p).T @ z - joint.sum(1) @ z  # Δ(s) itself
    cross = torch.einsum("s,si,sj->ij", p, delta, s)  # E[Δ(S) ⊗ ψ(S)]
    assert torch.allclose(d.gram, delta @ delta.T)
    assert torch.allclose(d.hsic, (cross**2).sum())
    assert torch.allclose(d.expected_mmd, (p * delta.norm(dim=1)).sum())
    assert torch.allclose(d.expected_squared_mmd, (p * delta.norm(dim=1) ** 2).sum())
    g = s @ torch.tensor([0.3, -1.0, 0.5, 2.0], dtype=torch.float64)
    assert torch.allclose(d.smoothed(g), ((p * g) @ delta).norm() ** 2)
    alpha = torch.arange(6, dtype=torch.float64)
    gap, norm = d.gap(alpha)
    assert torch.allclose(gap, delta @ (alpha @ z))
    assert torch.allclose(norm, (alpha @ z).norm() ** 2)
    spectrum = d.spectrum()
    assert torch.allclose((spectrum.eigenvalues * spectrum.energies).sum(), d.hsic)
    assert torch.allclose(spectrum.energies.sum(), d.expected_squared_mmd)
    assert torch.allclose(spectrum.tails, torch.stack([spectrum.energies[m:].sum() for m in range(1, 6)]), atol=1e-14)
    assert torch.allclose(spectrum.coefficients(p.sqrt() * gap).square().sum(), (p * gap**2).sum())


def test_impossible_values_have_no_deviation() -> None:
    joint = torch.tensor([[0.5, 0.0], [0.5, 0.0]], dtype=torch.float64)
    eye = torch.eye(2, dtype=torch.float64)
    d = deviations_of_joint(joint, eye, eye)
    assert d.hsic == 0
    assert torch.isfinite(d.gram).all()


def test_finite_laws_have_the_answers_of_their_own(generator: torch.Generator) -> None:
    joint = torch.rand(4, 5, generator=generator, dtype=torch.float64).numpy()
    law = FiniteLaw([0.0, 0.5, 1.0, 3.0], [-1.0, 0.0, 0.2, 1.0, 4.0], joint / joint.sum())
    kernel_z, kernel_s = Gaussian(0.8), Laplacian(1.5)
    arrays = [torch.as_tensor(x) for x in (law.probabilities, law.gram_z(kernel_z), law.gram_s(kernel_s))]
    d = deviations_of_joint(*arrays)
    batch = deviations_of_joint(torch.stack([arrays[0].flip(0), arrays[0]]), *arrays[1:])
    assert torch.allclose(batch.hsic[1], d.hsic)
    assert d.hsic.item() == pytest.approx(law.hsic(kernel_z, kernel_s), rel=1e-12)
    assert d.expected_mmd.item() == pytest.approx(law.expected_mmd(kernel_z), rel=1e-12)
    assert d.expected_squared_mmd.item() == pytest.approx(law.expected_squared_mmd(kernel_z), rel=1e-12)
