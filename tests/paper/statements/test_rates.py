"""Rates against exact truths."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from frhsic_core.joint import hsic
from frhsic_core.paper.statements import rates
from frhsic_core.paper.statements.rates import Convergence


def test_convergence_measures_against_what_it_is_told() -> None:
    found = Convergence(np.array([1.0, 4.0]), np.array([[1.0, 3.0], [2.0, 2.5]]), 2.0)
    assert found.errors().tolist() == [[1.0, 1.0], [0.0, 0.5]]
    assert found.errors(3.0).tolist() == [[2.0, 0.0], [1.0, 0.5]]


def test_estimates_are_the_librarys_on_the_laws_sample() -> None:
    found = rates.hsic_convergence((12,), replications=2, generator=torch.Generator().manual_seed(4))
    z, s = rates.LAW.sample(12, generator=torch.Generator().manual_seed(4), batch=(2,))
    expected = hsic(z, s, kernel_z=rates.KERNEL, kernel_s=rates.KERNEL)
    assert found.estimates[0] == pytest.approx(expected.numpy(), rel=1e-12)


def test_the_two_limits_are_far_apart() -> None:
    truth = rates.LAW.expected_mmd(rates.KERNEL)
    assert truth == pytest.approx(0.199520696643811, rel=1e-12)
    assert rates.LAW.eipm_limit(rates.KERNEL, bandwidth=0.5) == pytest.approx(0.158, abs=5e-4)
    assert rates.LAW.eipm_limit(rates.KERNEL, bandwidth=1.0) == pytest.approx(0.0976, abs=5e-5)


def test_smoothing_bias_approaches_two_fifths() -> None:
    slopes = [rates.smoothing_bias_slope(n, 100 * n) for n in (1e2, 1e5, 1e10)]
    assert slopes[0] > slopes[1] > slopes[2] == pytest.approx(-0.4, abs=1e-3)


@pytest.mark.parametrize("check", [f for fs in rates.CHECKS.values() for f in fs])
def test_certificates(check) -> None:
    for certificate in check(quick=True):
        expected = {"fails as stated"} if certificate.claim.startswith("text") else {"holds", "holds as corrected"}
        assert certificate.verdict in expected, certificate.claim
