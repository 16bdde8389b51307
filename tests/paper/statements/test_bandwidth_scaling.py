"""Remark B.3: eigenvalues against NumPy, enclosures against floats, exponents against their theory."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch

from frhsic_core.paper.statements import bandwidth_scaling as b


def test_eigenvalues_are_those_of_hlh() -> None:
    s = torch.tensor([0.0, 0.4, 1.0, 2.5, 2.6], dtype=torch.float64)
    gram = np.exp(-((s.numpy()[:, None] - s.numpy()[None]) ** 2) / (2 * 0.7**2))
    h = np.eye(5) - 0.2
    expected = np.sort(np.linalg.eigvalsh(h @ gram @ h / 5))[::-1]
    assert np.allclose(b.centred_eigenvalues(s, bandwidth=0.7).numpy(), expected, atol=1e-14)


def test_enclosures_contain_the_float_eigenvalues() -> None:
    points = [Fraction(0), Fraction(1, 3), Fraction(1), Fraction(5, 2)]
    balls = b.enclosed_eigenvalues(points, Fraction(3, 4))
    floats = b.centred_eigenvalues(torch.tensor([float(p) for p in points], dtype=torch.float64), bandwidth=0.75)
    assert [float(ball.mid()) for ball in balls] == pytest.approx(floats[:-1].tolist(), rel=1e-12)
    assert all(float(ball.rad()) < 1e-80 for ball in balls)


def test_precision_is_restored() -> None:
    from flint import ctx

    before = ctx.prec
    b.enclosed_eigenvalues([Fraction(0), Fraction(1)], Fraction(1))
    assert ctx.prec == before


def test_kept_eigenvalue_counts() -> None:
    value, rank = b.kept_eigenvalue(torch.tensor([1.0, 1e-3, 2e-6, 5e-7, 0.0], dtype=torch.float64))
    assert value == pytest.approx(2e-6)
    assert rank == 3


def test_certificates_are_as_recorded() -> None:
    certificates = [c for check in b.CHECKS["Remark B.3"] for c in check(quick=True)]
    failing = [c.claim for c in certificates if not c.holds]
    assert len(failing) == 3
    assert any("tied" in claim for claim in failing)
    assert any("polynomial" in claim for claim in failing)
    assert any("cut-off" in claim for claim in failing)
    assert sum(c.verdict == "holds as corrected" for c in certificates) == 4
    assert sum(c.evidence == "interval" for c in certificates) == 3
