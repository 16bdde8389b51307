"""Theorem 4.3 and Corollary 4.4 against explicit tensors in finite-dimensional feature spaces."""

from __future__ import annotations

import pytest
import torch

from frhsic_core.kernels import Gaussian
from frhsic_core.laws import GaussianPair
from frhsic_core.paper.statements import smoothing
from frhsic_core.paper.statements.deviations import deviations_of_joint, deviations_of_pair


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
    assert torch.allclose(smoothing.operator_norm(d), torch.linalg.matrix_norm(cross, ord=2) ** 2)


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


def test_operator_norm_is_attained_and_below_hsic() -> None:
    d = deviations_of_pair(GaussianPair(0.6), Gaussian(1.0), Gaussian(1.0), nodes=40)
    largest = smoothing.operator_norm(d)
    assert largest < d.hsic
    generator = torch.Generator().manual_seed(0)
    beta = torch.randn(500, 40, generator=generator, dtype=torch.float64) * d.probabilities.sqrt()
    left, right = smoothing.smoothed(d, beta)
    assert (left <= right / d.hsic * largest * (1 + 1e-9)).all()


def test_equality_with_two_values_and_only_there(explicit: tuple[torch.Tensor, ...]) -> None:
    joint, z, s = explicit
    contrast = torch.tensor([1.0, -1.0], dtype=torch.float64)
    two = deviations_of_joint(joint[:, :2] / joint[:, :2].sum(), z @ z.T, s[:2] @ s[:2].T)
    left, right = smoothing.smoothed(two, contrast)
    assert torch.allclose(left, right)
    left, right = smoothing.smoothed(two, torch.tensor([1.0, 1.0], dtype=torch.float64))
    assert left < right
