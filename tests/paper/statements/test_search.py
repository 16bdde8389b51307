"""The search must hold on the statements, and must catch each of them broken."""

from __future__ import annotations

import pytest
import torch

from frhsic_core.paper.statements import search as module
from frhsic_core.paper.statements.search import (
    COUNT,
    FAMILIES,
    KERNELS,
    SEARCHED,
    Searched,
    awkward_samples,
    random_instances,
    search,
    worst_excess,
)

IDS = [f"{s.statement}-{s.sides.__name__}" for s in SEARCHED]


@pytest.mark.parametrize("searched", SEARCHED, ids=IDS)
def test_holds_on_ten_thousand_laws(searched: Searched) -> None:
    certificate = search(searched)
    assert COUNT == 10_000
    assert certificate.verdict == "holds"
    assert certificate.details["violations"] == 0
    assert certificate.details["largest left/right"] > 0.99  # the search reaches the edge of the inequality


@pytest.mark.parametrize("searched", SEARCHED, ids=IDS)
def test_a_constant_wrong_by_a_tenth_is_caught(searched: Searched) -> None:
    certificate = search(searched, scale=0.9)
    assert certificate.verdict == "fails as stated"
    assert certificate.details["violations"] > 100


def by_name(name: str) -> Searched:
    return next(s for s in SEARCHED if s.sides.__name__ == name)


def test_the_wrong_eigenvalue_is_caught() -> None:
    """Theorem 4.5 with λ_{m−1} in place of λ_m: a slip of one in the index."""

    def slipped(x: module.Instances) -> module.Sides:
        d = x.deviations
        spectrum = d.spectrum()
        values = torch.cat([spectrum.eigenvalues[..., :1], spectrum.eigenvalues[..., :-1]], -1)
        left = values * (d.expected_squared_mmd.unsqueeze(-1) - spectrum.tails)
        return left, module._direct_hsic(x).unsqueeze(-1).expand_as(left)

    assert search(Searched("Theorem 4.5", "slipped", slipped)).verdict == "fails as stated"


def test_forgetting_the_tail_is_caught() -> None:
    """Theorem 4.5 without ρ_m²."""

    def tailless(x: module.Instances) -> module.Sides:
        d = x.deviations
        left = d.spectrum().eigenvalues * d.expected_squared_mmd.unsqueeze(-1)
        return left, module._direct_hsic(x).unsqueeze(-1).expand_as(left)

    assert search(Searched("Theorem 4.5", "tailless", tailless)).verdict == "fails as stated"


def test_forgetting_the_bound_of_the_kernel_is_caught() -> None:
    """Proposition 4.1 without κ_S."""

    def unbounded(x: module.Instances) -> module.Sides:
        return module._direct_hsic(x), x.deviations.expected_mmd**2

    assert search(Searched("Proposition 4.1", "unbounded", unbounded)).verdict == "fails as stated"


def test_expected_mmd_may_not_be_squared_inside() -> None:
    """(E MMD)² ≤ HSIC/κ, the bound turned round."""

    def reversed_bound(x: module.Instances) -> module.Sides:
        left, right = by_name("_expected_mmd_bound").sides(x)
        return right, left

    assert search(Searched("Remark 4.2", "reversed", reversed_bound)).verdict == "fails as stated"


def test_instances_are_what_they_promise(generator: torch.Generator) -> None:
    x = random_instances(1600, generator=generator)
    assert torch.allclose(x.joint.sum((-2, -1)), torch.ones(1600, dtype=torch.float64))
    assert (x.joint >= 0).all()
    for gram in (x.gram_z, x.gram_s):
        diagonal = gram.diagonal(dim1=-2, dim2=-1)
        assert (torch.linalg.eigvalsh(gram).amin(-1) > -1e-12 * diagonal.amax(-1)).all()
        assert ((diagonal.amin(-1) < 0.5 * diagonal.amax(-1)).double().mean() > 0.2).all()  # not constant
    of = {name: x.family == i for i, name in enumerate(FAMILIES)}
    support = (x.joint.sum(-2) > 0).sum(-1)
    assert (support[of["two values"]] == 2).all()
    assert (support[of["tight"]] == 2).all()
    constant = x.gram_z[of["degenerate Z"]]
    assert torch.allclose(constant, constant[:, :1, :1].expand_as(constant))
    off = x.gram_s / x.deviations.bound_s[:, None, None].clamp_min(1e-300)
    off.diagonal(dim1=-2, dim2=-1).zero_()
    assert (off[of["tiny bandwidths"]].abs().amax((-2, -1)) < 1e-3).any()
    assert (off[of["huge bandwidths"]].amax((-2, -1)) > 0.999).any()
    assert (off[of["ties"]].amax((-2, -1)) == 1.0).any()  # two values that are the same
    assert (off < -0.5).any()  # a kernel with negative values is among them
    assert len(KERNELS) == 7


def test_same_seed_same_laws() -> None:
    a, b = (random_instances(16, generator=torch.Generator().manual_seed(5)) for _ in range(2))
    assert torch.equal(a.joint, b.joint)
    assert torch.equal(a.gram_s, b.gram_s)


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
