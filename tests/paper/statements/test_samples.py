"""The search must reach the awkward corners, and report what it found."""

from __future__ import annotations

from fractions import Fraction

import torch

from frhsic_core.joint import hsic
from frhsic_core.paper.statements.samples import awkward_samples, rational_hsic, worst_excess


def test_every_corner_is_visited(generator: torch.Generator) -> None:
    seen = set()
    for batch in awkward_samples(1200, generator=generator):
        for z, s in zip(batch.z, batch.s, strict=True):
            distinct = len(torch.unique(s))
            seen.add("constant s" if distinct == 1 else "tied s" if distinct < len(s) else "distinct s")
            if bool((z == z[0]).all()):
                seen.add("constant z")
        seen |= {f"n = {batch.z.shape[1]}"}
        seen |= {"tiny bandwidth"} if batch.bandwidth_s.min() < 0.01 else set()
        seen |= {"huge bandwidth"} if batch.bandwidth_s.max() > 100 else set()
        assert batch.z.dtype == torch.float64
    wanted = {"constant s", "tied s", "distinct s", "constant z", "n = 2", "tiny bandwidth", "huge bandwidth"}
    assert wanted <= seen


def test_same_seed_same_samples() -> None:
    first, second = (next(awkward_samples(24, generator=torch.Generator().manual_seed(3))) for _ in range(2))
    assert torch.equal(first.z, second.z)
    assert torch.equal(first.bandwidth_s, second.bandwidth_s)


def test_worst_excess_names_the_sample_and_counts_nan_as_a_violation(generator: torch.Generator) -> None:
    worst = worst_excess(
        {"spread": lambda b: b.s.amax((-2, -1)) - b.s.amin((-2, -1)), "nan": lambda b: b.s[:, 0, 0] * torch.nan},
        prepare=lambda batch: batch,
        instances=240,
        generator=generator,
    )
    s = worst["spread"].instance["s"]
    assert max(s) - min(s) == worst["spread"].excess
    assert worst["spread"].instances == 240
    assert worst["nan"].excess == float("inf")


def test_rational_hsic_agrees_with_floats() -> None:
    z, s = [0, 1, 1, 3], [0, 0, 2, 1]

    class Laplace:  # values are dyadic, so both computations see the same matrix
        bound, lipschitz = 1.0, float("inf")

        def __call__(self, x: torch.Tensor, y: torch.Tensor | None = None) -> torch.Tensor:
            return 2.0 ** -torch.cdist(x, x if y is None else y)

    gram, other = ([[Fraction(1, 2 ** abs(a - b)) for b in v] for a in v] for v in (z, s))
    assert abs(float(rational_hsic(gram, other)) - hsic(z, s, kernel_z=Laplace(), kernel_s=Laplace()).item()) < 1e-15
