"""Proposition 4.1 and Remark 4.2."""

from __future__ import annotations

from fractions import Fraction

import pytest
import torch

from frhsic_core.kernels import Gaussian
from frhsic_core.laws import GaussianPair
from frhsic_core.paper.statements import decomposition
from frhsic_core.paper.statements.deviations import deviations_of_joint
from frhsic_core.paper.statements.disintegration import example_law
from frhsic_core.paper.statements.zero_level import exact_hsic, joint_laws, power_gram


def test_decomposition_is_the_definition_on_every_small_law() -> None:
    k, l = power_gram(2), power_gram(2, ratio=Fraction(1, 5))
    for joint in joint_laws(2, 2, 6):
        assert decomposition.decomposed_hsic(joint, k, l) == exact_hsic(joint, k, l)


def test_decomposition_needs_the_kernel_inside() -> None:
    joint = example_law()
    k, l = power_gram(4), power_gram(3)
    assert decomposition.decomposed_hsic(joint, k, 0 * l + 1) == 0  # a constant kernel on S sees nothing
    assert decomposition.decomposed_hsic(joint, k, l) > 0


@pytest.mark.parametrize("rho", [0.05, 0.6, 0.99])
@pytest.mark.parametrize("sigma", [0.2, 1.0, 8.0])
def test_centred_bound_lies_between_hsic_and_the_printed_bound(rho: float, sigma: float) -> None:
    law, kernel = GaussianPair(rho), Gaussian(sigma)
    sharper = decomposition.centred_bound(law, kernel_z=Gaussian(1.0), kernel_s=kernel)
    printed = decomposition.expected_mmd_bound(law, kernel_z=Gaussian(1.0), kernel_s=kernel)
    assert sharper.middle == pytest.approx(printed.middle)
    assert sharper.middle <= sharper.upper
    # ‖k(s,·) − μ‖ can pass one for very small bandwidths only by the size of μ.
    assert sharper.upper <= printed.upper * (1.0 + sigma)


def test_centred_bound_is_much_sharper_at_large_bandwidths() -> None:
    law = GaussianPair(0.3)
    sharper = decomposition.centred_bound(law, kernel_z=Gaussian(1.0), kernel_s=Gaussian(5.0))
    assert sharper.upper < 0.1 * law.expected_mmd(Gaussian(1.0)) ** 2


def test_a_broken_bound_is_not_certified(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        GaussianPair, "expected_mmd", lambda self, kernel: 0.3 * self.expected_squared_mmd(kernel) ** 0.5
    )
    certificate = decomposition.expected_mmd_bound(GaussianPair(0.1), kernel_z=Gaussian(1.0), kernel_s=Gaussian(1.0))
    assert certificate.verdict == "fails as stated"


def test_hidden_wave_keeps_its_conditional_integral() -> None:
    eye = torch.eye(2, dtype=torch.float64)
    values, hsics = [], []
    for frequency in (1, 3, 7):
        joint, s = decomposition.hidden_wave(frequency)
        assert torch.allclose(joint.sum(), torch.ones((), dtype=torch.float64))
        d = deviations_of_joint(joint, eye, Gaussian(0.2)(s.unsqueeze(-1)))
        values.append(d.expected_squared_mmd.item())
        hsics.append(d.hsic.item())
    assert values == pytest.approx([values[0]] * 3)
    assert hsics[0] > 50 * hsics[1]
    assert hsics[1] > hsics[2] > 0


def test_certificates_hold() -> None:
    certificates = [c for checks in decomposition.CHECKS.values() for check in checks for c in check(quick=True)]
    assert len(certificates) == 7
    assert {c.verdict for c in certificates} == {"holds"}
