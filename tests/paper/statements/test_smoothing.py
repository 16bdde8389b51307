"""Theorem 4.3 at equality, and the deviations of finite laws; ``test_search`` writes out the sides of all forms."""

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


def test_equality_with_two_values_and_only_there(explicit: tuple[torch.Tensor, ...]) -> None:
    joint, z, s = explicit
    contrast = torch.tensor([1.0, -1.0], dtype=torch.float64)
    two = deviations_of_joint(joint[:, :2] / joint[:, :2].sum(), z @ z.T, s[:2] @ s[:2].T)
    left, right = smoothing.smoothed(two, contrast)
    assert torch.allclose(left, right)
    left, right = smoothing.smoothed(two, torch.tensor([1.0, 1.0], dtype=torch.float64))
    assert left < right


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
