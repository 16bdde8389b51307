"""Remark B.3: eigenvalues of centered Gram matrices, in floats and enclosed in balls."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch

from frhsic_core.paper.statements import spectral as b


def test_eigenvalues_are_those_of_hlh() -> None:
    s = torch.tensor([0.0, 0.4, 1.0, 2.5, 2.6], dtype=torch.float64)
    gram = np.exp(-((s.numpy()[:, None] - s.numpy()[None]) ** 2) / (2 * 0.7**2))
    h = np.eye(5) - 0.2
    expected = np.sort(np.linalg.eigvalsh(h @ gram @ h / 5))[::-1]
    assert np.allclose(b.centered_eigenvalues(s, bandwidth=0.7).numpy(), expected, atol=1e-14)


def test_enclosures_contain_the_float_eigenvalues() -> None:
    points = [Fraction(0), Fraction(1, 3), Fraction(1), Fraction(5, 2)]
    balls = b.enclosed_eigenvalues(points, Fraction(3, 4))
    floats = b.centered_eigenvalues(torch.tensor([float(p) for p in points], dtype=torch.float64), bandwidth=0.75)
    assert [float(ball.mid()) for ball in balls] == pytest.approx(floats[:-1].tolist(), rel=1e-12)
    assert all(float(ball.rad()) < 1e-80 for ball in balls)


def test_ties_count_and_too_few_bits_are_an_error() -> None:
    points = [Fraction(k, 4) for k in (0, 0, 0, 1, 2, 2, 4)]
    balls = b.enclosed_eigenvalues(points, Fraction(1, 2))
    floats = b.centered_eigenvalues(torch.tensor([float(p) for p in points], dtype=torch.float64), bandwidth=0.5)
    assert [float(ball.mid()) for ball in balls] == pytest.approx(floats[:3].tolist(), rel=1e-12)
    assert floats[3:].max() < 1e-15
    with pytest.raises(ValueError, match="eigenvalues"):
        b.enclosed_eigenvalues([Fraction(k, 39) for k in range(40)], Fraction(3), bits=64)


def test_kept_eigenvalue_counts() -> None:
    value, rank = b.kept_eigenvalue(torch.tensor([1.0, 1e-3, 2e-6, 5e-7, 0.0], dtype=torch.float64))
    assert value == pytest.approx(2e-6)
    assert rank == 3


@pytest.mark.parametrize("bandwidth", [Fraction(1, 10), Fraction(1), Fraction(10)])
def test_the_smallest_alone_is_that_of_all_eigenvalues(bandwidth: Fraction) -> None:
    points = [Fraction(i * i, 49) for i in range(8)] + [Fraction(0), Fraction(1)]  # with ties
    found, expected = b.enclosed_smallest(points, bandwidth), b.enclosed_eigenvalues(points, bandwidth)[-1]
    assert found.contains(expected)
    assert float((found.rad() / found.mid()).abs_upper()) < 1e-8
    with pytest.raises(ZeroDivisionError):
        b.enclosed_smallest([Fraction(i, 39) for i in range(40)], Fraction(3), bits=64)
