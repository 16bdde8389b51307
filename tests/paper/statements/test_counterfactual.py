"""Proposition G.1 on structural models small enough to know everything about them."""

from __future__ import annotations

from fractions import Fraction

import pytest
import torch

from frhsic_core.joint import hsic
from frhsic_core.paper.statements.counterfactual import FiniteSCM, fair_excess, independent, random_models, xor

HALF = Fraction(1, 2)


class Delta:
    bound, lipschitz = 1.0, float("inf")

    def __call__(self, x: torch.Tensor, y: torch.Tensor | None = None) -> torch.Tensor:
        return (torch.cdist(x, x if y is None else y) == 0).to(x)


def test_hsic_of_the_law_is_hsic_of_a_sample_with_the_same_frequencies() -> None:
    model = FiniteSCM([[0, 1, 1], [0, 0, 2]], independent([HALF, HALF], [HALF, Fraction(1, 4), Fraction(1, 4)]))
    rows = [(z, s) for s in (0, 1) for z, count in zip(model.table[s], (2, 1, 1), strict=True) for _ in range(count)]
    z, s = zip(*rows, strict=True)
    assert float(model.hsic()) == pytest.approx(float(hsic(z, s, kernel_z=Delta(), kernel_s=Delta())))


def test_exclusive_or() -> None:
    model = xor()
    assert model.hsic() == 0
    assert model.exogenous
    assert not model.counterfactually_fair
    assert model.changed() == HALF  # S' differs from S half of the time, and then Z always changes


def test_a_fair_model() -> None:
    model = FiniteSCM([[0, 1, 2], [0, 1, 2]], independent([HALF, HALF], [Fraction(1, 3)] * 3))
    assert model.counterfactually_fair
    assert model.hsic() == 0
    assert model.changed() == 0


def test_units_that_never_occur_do_not_count() -> None:
    model = FiniteSCM([[0, 0], [0, 1]], independent([HALF, HALF], [Fraction(1), Fraction(0)]))
    assert model.counterfactually_fair
    assert model.hsic() == 0


def test_the_search_would_see_a_confounded_model() -> None:
    table, p_s, p_u = random_models(2000, random_state=0)
    excess = fair_excess(table, p_s, p_u)
    assert int(excess.isfinite().sum()) > 500
    assert excess.max() < 1e-15
    # The broken claim: fairness towards the first two values of S is enough.
    nearly = table.clone()
    nearly[:, 1] = nearly[:, 0]
    fair_to_two = (nearly[:, 0] == nearly[:, 1]).all(-1)
    one_hot = torch.nn.functional.one_hot(nearly, 3).double()
    joint = torch.einsum("bsuz,bs,bu->bzs", one_hot, p_s, p_u)
    difference = joint - joint.sum(-1, keepdim=True) * joint.sum(-2, keepdim=True)
    assert difference[fair_to_two].square().sum((-2, -1)).max() > 1e-3
