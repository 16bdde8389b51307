"""Every engine of HSIC that serves a problem gives the number of the definition, and the list has no gap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from samples import correlated, normal
from torch import Tensor

from frhsic_core import (
    Categorical,
    Distance,
    Gaussian,
    InverseMultiquadric,
    Laplacian,
    Linear,
    MultiScale,
    Product,
    hsic,
)
from frhsic_core.joint import contraction
from frhsic_core.joint.engines import ENGINES, Engine, columns, dense, fused, streamed, thin
from frhsic_core.joint.problem import Problem

ROWS = 900


def codes(x: Tensor) -> Tensor:
    """Return the numbers as codes of a few categories."""
    return (2.0 * x).round().clamp(-2.0, 2.0)


ONE, OTHER = correlated(1, ROWS, 0.5)
MANY = torch.cat([ONE + normal(7, ROWS, 1), normal(8, ROWS, 5)], 1)
LEARNED = torch.tensor(0.8, dtype=torch.float64, requires_grad=True)
HALVES = torch.tensor([0.7, 1.4], dtype=torch.float64)
PROBLEMS = {
    "two columns": Problem(ONE, OTHER, Gaussian(0.9), Gaussian(0.7)),
    "scales": Problem(ONE, OTHER, MultiScale(1.5), InverseMultiquadric(1.2)),
    "distances": Problem(ONE, OTHER, Distance(), Distance()),
    "Laplacian kernels": Problem(ONE, OTHER, Laplacian(0.8), Laplacian(1.3)),
    "a Laplacian kernel": Problem(ONE, OTHER, Gaussian(0.9), Laplacian(1.3)),
    "categories": Problem(ONE, codes(OTHER), Gaussian(0.9), Categorical()),
    "linear": Problem(MANY, OTHER, Linear(), Gaussian(0.7)),
    "many columns": Problem(MANY, OTHER, Gaussian(2.5), Gaussian(0.7)),
    "mixed": Problem(
        ONE,
        torch.cat([OTHER, codes(OTHER)], 1),
        Gaussian(0.9),
        Product([Gaussian(1.0), Categorical()]),
    ),
    "narrow": Problem(ONE, OTHER, Gaussian(1e-3), Gaussian(0.7)),
    "few rows": Problem(ONE[:30], OTHER[:30], Gaussian(0.9), Gaussian(0.7)),
    "a batch": Problem(torch.stack([MANY, 2.0 * MANY]), OTHER, Gaussian(HALVES), Gaussian(0.7)),
    "a batch of columns": Problem(
        torch.stack([ONE, OTHER]), OTHER, Gaussian(HALVES), Gaussian(0.7)
    ),
    "learned": Problem(ONE, OTHER, Gaussian(LEARNED), Gaussian(0.7)),
}
FORMS: dict[str, dict[str, Any]] = {
    "biased": {},
    "unbiased": {"estimator": "unbiased"},
    "normalized": {"normalized": True},
}


def in_form(problem: Problem, form: str) -> Problem:
    return Problem(
        problem.z, problem.s, problem.kernel_z, problem.kernel_s, problem.weights, **FORMS[form]
    )


def by_definition(problem: Problem) -> Tensor:
    """Return HSIC of whole matrices in float64."""
    return contraction.dependence(
        problem.z,
        problem.s,
        kernel_z=problem.kernel_z,
        kernel_s=problem.kernel_s,
        estimator=problem.estimator,
        normalized=problem.normalized,
    ).detach()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_every_engine_that_serves_agrees(name: str, form: str) -> None:
    problem = in_form(PROBLEMS[name], form)
    expected = by_definition(problem)
    answers = 0
    for engine in ENGINES:
        if not engine.serves(problem):
            continue
        value = engine.value(problem)
        if value is not None:
            answers += 1
            torch.testing.assert_close(value.detach(), expected, rtol=1e-10, atol=1e-15)
    assert answers >= (1 if name == "learned" else 2)  # whole matrices, and at least another way


# The engines that answer a problem, in the order of the list.
ANSWERS: dict[str, tuple[Engine, ...]] = {
    "two columns": (thin, dense, streamed),
    "distances": (columns, dense, streamed),
    "Laplacian kernels": (columns, dense, streamed),
    "a Laplacian kernel": (columns, dense, streamed),
    "categories": (thin, dense, streamed),
    "many columns": (dense, streamed),
    "narrow": (dense, streamed),
    "few rows": (dense, streamed),
    "learned": (dense,),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_who_answers(name: str) -> None:
    problem = PROBLEMS[name]
    serving = [engine for engine in ENGINES if engine.serves(problem)]
    answering = [engine for engine in serving if engine.value(problem) is not None]
    assert tuple(answering) == ANSWERS[name]
    assert fused not in answering  # there is no GPU


def test_the_first_engine_that_answers_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def answering(name: str, answer: Tensor | None) -> Callable[[Problem], Tensor | None]:
        def value(problem: Problem) -> Tensor | None:
            asked.append(name)
            return answer

        return value

    monkeypatch.setattr(thin, "value", answering("thin", None))
    monkeypatch.setattr(dense, "value", answering("dense", torch.tensor(3.0)))
    monkeypatch.setattr(streamed, "value", answering("streamed", torch.tensor(4.0)))
    assert float(hsic(ONE, OTHER, kernel_z=Gaussian(0.9), kernel_s=Gaussian(0.7))) == 3.0
    assert asked == ["thin", "dense"]


def test_a_kernel_of_a_user_is_asked_for_its_shape_and_its_graph() -> None:
    """Kernels of the library have nothing but their bandwidths, and are not called for it."""

    def own(x: Tensor, y: Tensor | None = None) -> Tensor:
        return Gaussian(LEARNED * HALVES)(x, y)

    problem = Problem(MANY, OTHER, own, Gaussian(0.7))
    assert problem.batch == (2,)
    assert problem.is_learned
    with torch.no_grad():
        assert not Problem(MANY, OTHER, own, Gaussian(LEARNED)).is_learned
    assert Problem(MANY, OTHER, Product([Gaussian(LEARNED)]), Gaussian(0.7)).is_learned
    assert Problem(MANY, OTHER, Gaussian(HALVES[:, None]), Gaussian(HALVES)).batch == (2, 2)
