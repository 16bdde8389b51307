"""Sentences about Theorem 4.7 that fail, and their corrections."""

from __future__ import annotations

import pandas as pd
import pytest
import torch

from frhsic_core.kernels import Gaussian
from frhsic_core.paper.statements import gap_remarks
from frhsic_core.paper.statements.gap_spectrum import gap_spectrum


@pytest.mark.parametrize("check", [function for functions in gap_remarks.CHECKS.values() for function in functions])
def test_what_is_printed_fails_and_what_is_corrected_holds(check) -> None:
    certificates = check(quick=True)
    printed = [c for c in certificates if c.claim.startswith(("appendix", "text"))]
    corrected = [c for c in certificates if c not in printed]
    assert printed
    assert corrected
    assert {c.verdict for c in printed} == {"fails as stated"}
    assert {c.verdict for c in corrected} == {"holds as corrected"}


def test_group_means_against_pandas(generator: torch.Generator) -> None:
    values = torch.randn(40, generator=generator, dtype=torch.float64)
    s = torch.randint(5, (40, 1), generator=generator).double()
    frame = pd.DataFrame({"v": values.numpy(), "s": s[:, 0].numpy()})
    expected = frame.groupby("s")["v"].transform("mean") - frame["v"].mean()
    assert torch.allclose(gap_remarks.group_means(values, s), torch.tensor(expected.to_list(), dtype=values.dtype))


def test_projection_gives_back_the_gap_without_ties(generator: torch.Generator) -> None:
    s = torch.arange(6, dtype=torch.float64)
    z = torch.randn(6, 1, generator=generator, dtype=torch.float64)
    found = gap_spectrum(z, s, anchors=z, coefficients=torch.ones(6), kernel_s=Gaussian(1.0))
    assert found.rank == 5
    assert torch.allclose(found.projected(5), found.gap, atol=1e-12)


def test_the_trivial_bound_is_reached() -> None:
    values = torch.tensor([0.0, 1.0, 0.0, 1.0])
    assert (values - values.mean()).square().mean().item() == gap_remarks.trivial_gap()
