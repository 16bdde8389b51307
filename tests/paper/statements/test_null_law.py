"""Degeneracy at independence: exact enumerations against the library and against simulation."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch

from frhsic_core.joint import hsic
from frhsic_core.laws import FiniteLaw
from frhsic_core.paper.statements import null_law
from frhsic_core.paper.statements.null_law import GRAM_S, GRAM_Z, exact_mean, null_mean, projection_variance
from frhsic_core.paper.statements.samples import rational_hsic


class Table:
    bound, lipschitz = 1.0, float("inf")

    def __init__(self, gram) -> None:
        self.gram = torch.tensor([[float(value) for value in row] for row in gram], dtype=torch.float64)

    def __call__(self, x: torch.Tensor, y: torch.Tensor | None = None) -> torch.Tensor:
        other = x if y is None else y
        return self.gram[x.long(), other.long().mT]


def test_rational_unbiased_form_against_the_library() -> None:
    z, s = [0, 1, 1, 0, 1], [0, 0, 1, 1, 1]
    k, l = ([[gram[a][b] for b in rows] for a in rows] for gram, rows in ((GRAM_Z, z), (GRAM_S, s)))
    expected = hsic(
        torch.tensor(z).double(), torch.tensor(s).double(), kernel_z=Table(GRAM_Z), kernel_s=Table(GRAM_S),
        estimator="unbiased",
    )  # fmt: skip
    assert float(null_law.rational_unbiased_hsic(k, l)) == pytest.approx(expected.item(), abs=1e-15)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("p", [Fraction(1, 2), Fraction(1, 7)])
def test_null_mean_by_enumeration(n: int, p: Fraction) -> None:
    p_z, p_s = (p, 1 - p), (Fraction(2, 5), Fraction(3, 5))
    means = [
        sum(q[i] * q[j] * gram[i][j] for i in range(2) for j in range(2)) for q, gram in ((p_z, GRAM_Z), (p_s, GRAM_S))
    ]
    found = n * exact_mean(rational_hsic, n=n, p_z=p_z, p_s=p_s, gram_z=GRAM_Z, gram_s=GRAM_S)
    assert found == null_mean(*means, n=n)
    assert n == 1 or found != (1 - means[0]) * (1 - means[1])  # without the last factor it would be wrong


def test_projection_variance_by_numerical_differentiation() -> None:
    table = np.array([[0.5, 0.125], [0.125, 0.25]])
    k, l = np.array(GRAM_Z, dtype=float), np.array(GRAM_S, dtype=float)

    def value(p: np.ndarray) -> float:
        d = p - np.outer(p.sum(1), p.sum(0))
        return float(((k @ d @ l) * d).sum())

    slopes = np.zeros((2, 2))
    for cell in np.ndindex(2, 2):
        point = np.zeros((2, 2))
        point[cell] = 1.0
        step = 1e-6
        slopes[cell] = (value((1 - step) * table + step * point) - value((1 + step) * table - step * point)) / (
            2 * step
        )
    expected = (table * slopes**2).sum() - (table * slopes).sum() ** 2
    law = FiniteLaw([0, 1], [0, 1], [[Fraction(1, 2), Fraction(1, 8)], [Fraction(1, 8), Fraction(1, 4)]])
    assert float(projection_variance(law, GRAM_Z, GRAM_S)) == pytest.approx(expected, rel=1e-6)


def test_certificates() -> None:
    certificates = [c for checks in null_law.CHECKS.values() for check in checks for c in check(quick=True)]
    failing = [c.claim for c in certificates if not c.holds]
    assert failing == [c.claim for c in certificates if c.claim.startswith("text")]
    assert len(failing) == 1
