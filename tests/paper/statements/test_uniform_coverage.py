"""Section 5 and appendix G: coverage, and a bound small enough to break it."""

from __future__ import annotations

import pytest
import torch

from frhsic_core.paper.statements import uniform_coverage
from frhsic_core.paper.statements.complexity import linear_complexity
from frhsic_core.paper.statements.encoder_suprema import linear_class, two_column_inputs
from frhsic_core.paper.statements.uniform_coverage import _coverage, class_complexity, learned_encoder


@pytest.mark.parametrize(
    "check", [pytest.param(f, id=f"{s}-{f.__name__}") for s, fs in uniform_coverage.CHECKS.items() for f in fs]
)
def test_certificates_hold(check) -> None:
    for certificate in check(quick=True):
        assert certificate.verdict == "holds", certificate.claim
        if certificate.statement != "Corollary 5.3":
            assert certificate.details["fraction of the bound at which coverage breaks"] < 0.1


def test_coverage_fails_for_a_bound_that_is_too_small(generator: torch.Generator) -> None:
    law = two_column_inputs(columns=1)
    gaps = linear_class(law, law.draw(100, 200, generator=generator), radius=2.0, step=0.01).upper
    small = _coverage("Theorem 5.1", "x", gaps, torch.quantile(gaps, 0.8).item())
    assert small.verdict == "fails as stated"
    assert _coverage("Theorem 5.1", "x", gaps, gaps.max().item()).verdict == "holds"


def test_complexity_of_the_class_is_that_of_the_rows(generator: torch.Generator) -> None:
    law = two_column_inputs()
    frequencies = law.draw(40, 1, generator=generator)
    rows = law.x.repeat_interleave((frequencies[0] * 40).round().long(), 0)
    expected = linear_complexity(rows, radius=2.0, dimension=1).item()
    assert class_complexity(law, frequencies, n=40) == pytest.approx(expected, rel=1e-12)


def test_the_adversary_is_the_worst_choice(generator: torch.Generator) -> None:
    law = two_column_inputs()
    frequencies = law.draw(100, 50, generator=generator)
    gaps = {}
    for choose in ("objective", "worst"):
        empirical, population = learned_encoder(law, frequencies, choose=choose, step=0.2)
        gaps[choose] = population - empirical
    assert (gaps["worst"] >= gaps["objective"] - 1e-15).all()
    assert (gaps["worst"] <= linear_class(law, frequencies, radius=2.0, step=0.2).upper).all()
    with pytest.raises(ValueError, match="choose is 'best'"):
        learned_encoder(law, frequencies, choose="best", step=0.2)
