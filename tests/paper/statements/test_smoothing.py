"""The deviations of finite laws; ``test_search`` writes out the sides of all forms of Theorem 4.3."""

from __future__ import annotations

import pytest
import torch

from frhsic_core.kernels import Gaussian, Laplacian
from frhsic_core.laws import FiniteLaw
from frhsic_core.paper.statements.smoothing import deviations_of_joint


def test_finite_laws_have_the_answers_of_their_own(generator: torch.Generator) -> None:
    joint = torch.rand(4, 5, generator=generator, dtype=torch.float64).numpy()
    law = FiniteLaw([0.0, 0.5, 1.0, 3.0], [-1.0, 0.0, 0.2, 1.0, 4.0], joint / joint.sum())
    kernel_z, kernel_s = Gaussian(0.8), Laplacian(1.5)
    arrays = [
        torch.as_tensor(x) for x in (law.probabilities, law.gram_z(kernel_z), law.gram_s(kernel_s))
    ]
    d = deviations_of_joint(*arrays)
    batch = deviations_of_joint(torch.stack([arrays[0].flip(0), arrays[0]]), *arrays[1:])
    assert torch.allclose(batch.hsic[1], d.hsic)
    assert d.hsic.item() == pytest.approx(law.hsic(kernel_z, kernel_s), rel=1e-12)
    assert d.expected_mmd.item() == pytest.approx(law.expected_mmd(kernel_z), rel=1e-12)
    assert d.expected_squared_mmd.item() == pytest.approx(
        law.expected_squared_mmd(kernel_z), rel=1e-12
    )
