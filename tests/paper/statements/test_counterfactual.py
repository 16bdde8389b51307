"""Proposition G.1 on structural models small enough to know everything about them."""

from __future__ import annotations

from fractions import Fraction

import pytest
import torch

from frhsic_core.joint import hsic
from frhsic_core.paper.statements.counterfactual import FiniteSCM, independent, xor

HALF = Fraction(1, 2)


class Delta:
    bound, lipschitz = 1.0, float("inf")

    def __call__(self, x: torch.Tensor, y: torch.Tensor | None = None) -> torch.Tensor:
        return (torch.cdist(x, x if y is None else y) == 0).to(x)


def test_hsic_of_the_law_is_hsic_of_a_sample_with_the_same_frequencies() -> None:
    model = FiniteSCM(
        [[0, 1, 1], [0, 0, 2]], independent([HALF, HALF], [HALF, Fraction(1, 4), Fraction(1, 4)])
    )
    rows = [
        (z, s)
        for s in (0, 1)
        for z, count in zip(model.table[s], (2, 1, 1), strict=True)
        for _ in range(count)
    ]
    z, s = zip(*rows, strict=True)
    assert float(model.hsic()) == pytest.approx(
        float(hsic(z, s, kernel_z=Delta(), kernel_s=Delta()))
    )


def test_exclusive_or() -> None:
    model = xor()
    assert model.hsic() == 0
    assert not model.counterfactually_fair


def test_a_fair_model() -> None:
    model = FiniteSCM([[0, 1, 2], [0, 1, 2]], independent([HALF, HALF], [Fraction(1, 3)] * 3))
    assert model.counterfactually_fair
    assert model.hsic() == 0


def test_units_that_never_occur_do_not_count() -> None:
    model = FiniteSCM([[0, 0], [0, 1]], independent([HALF, HALF], [Fraction(1), Fraction(0)]))
    assert model.counterfactually_fair
    assert model.hsic() == 0
