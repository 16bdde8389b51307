"""The search must hold on the statements, and must catch each of them broken."""

from __future__ import annotations

import math

import pytest
import torch

from frhsic_core.paper.statements import search as module
from frhsic_core.paper.statements.search import (
    FAMILIES,
    KERNELS,
    SEARCHED,
    Searched,
    features,
    random_instances,
    search,
    worst_excess,
)

IDS = [f"{s.statement}-{s.name}" for s in SEARCHED]


@pytest.mark.parametrize("searched", SEARCHED, ids=IDS)
def test_a_constant_wrong_by_a_tenth_is_caught(searched: Searched) -> None:
    certificate = search(searched, scale=0.9)
    assert certificate.verdict == "fails as stated"
    assert certificate.details["violations"] > 100


def by_name(name: str) -> Searched:
    return next(s for s in SEARCHED if s.name == name)


def test_kernels_by_hand() -> None:
    """Between (0, 0) and (1.2, 1.6), of norm 2, the largest, and of absolute sum 2.8, at bandwidth 3."""
    x = torch.tensor([[[0.0, 0.0], [1.2, 1.6]]], dtype=torch.float64)
    expected = {
        "Gaussian": (1.0, math.exp(-2 / 9), 1.0),
        "Laplacian": (1.0, math.exp(-2.8 / 3), 1.0),
        "inverse multiquadric": (1.0, (1 + 4 / 9) ** -0.5, 1.0),
        "cosine": (1.0, math.cos(0.4), 1.0),
        "tempered": (1.0, math.exp(-2 / 9) / 5, 1 / 25),
        "linear": (0.0, 0.0, 1.0),
        "polynomial": (0.25, 0.25, 1.0),
    }
    assert expected.keys() == KERNELS.keys()
    for name, values in expected.items():
        gram = KERNELS[name](x, torch.tensor([3.0], dtype=torch.float64))[0]
        assert (gram[0, 0].item(), gram[0, 1].item(), gram[1, 1].item()) == pytest.approx(
            values, abs=1e-14
        ), name
    narrow = KERNELS["cosine"](x, torch.tensor([0.1], dtype=torch.float64))[0, 0, 1]
    assert narrow.item() == pytest.approx(math.cos(12.0), abs=1e-14)


def test_instances_are_what_they_promise(generator: torch.Generator) -> None:
    x = random_instances(1600, random_state=generator)
    assert torch.allclose(x.joint.sum((-2, -1)), torch.ones(1600, dtype=torch.float64))
    assert (x.joint >= 0).all()
    for gram in (x.gram_z, x.gram_s):
        diagonal = gram.diagonal(dim1=-2, dim2=-1)
        assert (torch.linalg.eigvalsh(gram).amin(-1) > -1e-12 * diagonal.amax(-1)).all()
        assert (
            (diagonal.amin(-1) < 0.5 * diagonal.amax(-1)).double().mean() > 0.3
        ).all()  # not constant
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
    # Bandwidths of every size: some Gram matrices are nearly the identity, some nearly all ones, and most are neither.
    for gram in (x.gram_z[of["generic"]], x.gram_s[of["generic"]]):
        outside = (gram / gram.amax((-2, -1), keepdim=True))[
            :, ~torch.eye(module.SIZE, dtype=torch.bool)
        ].abs()
        assert 0.01 < (outside.amax(-1) < 1e-3).double().mean() < 0.25
        assert 0.01 < (outside.amin(-1) > 0.99).double().mean() < 0.25
    # With two values the head is the deviation of the first one, along which the inequalities can be equalities.
    two = x.joint[of["two values"] | of["tight"]]
    deviation = two[..., 0] / two[..., 0].sum(-1, keepdim=True) - two.sum(-1)
    assert torch.allclose(x.alpha[of["two values"] | of["tight"]], deviation)


@pytest.mark.parametrize("size", [2, 6])
def test_samples_have_equal_rows_and_every_corner(size: int) -> None:
    x = random_instances(1600, random_state=2, size=size, samples=True)
    assert torch.equal(
        x.joint, torch.eye(size, dtype=torch.float64).expand(1600, size, size) / size
    )
    for gram in (x.gram_z, x.gram_s):
        points = features(gram)
        assert (points @ points.mT - gram).abs().max() < 1e-13
        assert gram.diagonal(dim1=-2, dim2=-1).max() == pytest.approx(1.0, abs=1e-12)
    of = {name: x.family == i for i, name in enumerate(FAMILIES)}
    binary = x.gram_s[of["two values"]]
    ranks = torch.linalg.matrix_rank(binary - binary.mean(-1, keepdim=True), atol=1e-9)
    assert (ranks <= 1).all()  # at most one direction
    assert (ranks == 1).any()
    constant = x.gram_z[of["degenerate Z"]]
    assert torch.allclose(constant, constant[:, :1, :1].expand_as(constant))


def test_worst_excess_takes_the_largest_and_counts_nan_as_a_violation() -> None:
    seen = []

    def largest(x: module.Instances) -> torch.Tensor:
        seen.append((len(x.joint), x.joint.shape[-1], (x.alpha.amax(-1)).max().item()))
        return x.alpha

    steps = {"head": largest, "nan": lambda x: x.alpha * torch.nan}
    worst = worst_excess(steps, prepare=lambda x: x, instances=240, random_state=3)
    assert [part[:2] for part in seen] == [(60, size) for size in module.SIZES]
    assert worst == {"head": max(part[2] for part in seen), "nan": float("inf")}


def written_out(
    joint: torch.Tensor, z: torch.Tensor, s: torch.Tensor, f: torch.Tensor, g: torch.Tensor
) -> dict:
    """Return both sides of every search for one law, from explicit features and sums over the values of S."""
    p_z, p_s = joint.sum(1), joint.sum(0)
    carried = [j for j in range(len(p_s)) if p_s[j] > 0]
    delta = {j: (joint[:, j] / p_s[j]) @ z - p_z @ z for j in carried}
    cross = sum(p_s[j] * torch.outer(delta[j], s[j]) for j in carried)
    hsic = (cross**2).sum()
    largest = max(s[j] @ s[j] for j in range(len(p_s)))
    mean = sum(p_s[j] * delta[j].norm() for j in carried)
    square = sum(p_s[j] * delta[j].norm() ** 2 for j in carried)
    gap = {j: f @ delta[j] for j in carried}
    smoothed = sum(p_s[j] * (g @ s[j]) * delta[j] for j in carried)
    weighted = sum(p_s[j] * gap[j] * s[j] for j in carried)
    bilinear = sum(p_s[j] * (g @ s[j]) * gap[j] for j in carried)
    one = [((cross @ point) ** 2).sum() for point in s]
    pairs = [(i, j) for i in range(len(s)) for j in range(len(s))]
    two = [((cross @ (s[i] - s[j])) ** 2).sum() for i, j in pairs]
    # The operator T_S on the values that occur, in the orthonormal basis of their indicators.
    root = torch.stack([p_s[j].sqrt() for j in carried])
    operator = (
        torch.stack([torch.stack([s[i] @ s[j] for j in carried]) for i in carried])
        * root
        * root[:, None]
    )
    values, vectors = (part.flip(-1) for part in torch.linalg.eigh(operator))
    along = (vectors.T * root) @ torch.stack([delta[j] for j in carried])
    captured = (along**2).sum(1).cumsum(0)
    head = (vectors.T * root) @ torch.stack([gap[j] for j in carried])
    resolved = (head**2).cumsum(0)
    gdp = sum(p_s[j] * gap[j].abs() for j in carried)
    m = range(len(values))
    inner = f @ (p_z @ z)
    return {
        "decomposition": ([hsic, hsic], [hsic, hsic]),
        "expected_mmd_bound": ([hsic], [largest * mean**2]),
        "direction": ([hsic, largest * mean**2], [largest * mean**2, largest * square]),
        "smoothed": ([smoothed @ smoothed], [(g @ g) * hsic]),
        "fixed_head": ([weighted @ weighted], [(f @ f) * hsic]),
        "bilinear": ([bilinear**2], [(f @ f) * (g @ g) * hsic]),
        "one_point": (one, [(point @ point) * hsic for point in s]),
        "two_points": (two, [((s[i] - s[j]) @ (s[i] - s[j])) * hsic for i, j in pairs]),
        "lower": ([hsic], [largest * square]),
        "upper": ([values[i] * captured[i] for i in m], [hsic for _ in m]),
        "projected_head": ([values[i] * resolved[i] for i in m], [(f @ f) * hsic for _ in m]),
        "gdp": ([values[i] * (gdp**2 - resolved[-1] + resolved[i]) for i in m], [(f @ f) * hsic for _ in m]),
        "fubini": ([inner**2] * 2, [inner**2] * 2),
    }  # fmt: skip


WRITTEN = 2 * len(FAMILIES) * len(KERNELS)
SPECTRAL = ("upper", "projected_head", "gdp")


@pytest.fixture(scope="module")
def laws() -> tuple[module.Instances, list[dict]]:
    x = random_instances(WRITTEN, random_state=3)
    expected = []
    for i in range(WRITTEN):
        z, s = features(x.gram_z[i]), features(x.gram_s[i])
        expected.append(written_out(x.joint[i], z, s, x.alpha[i] @ z, x.beta[i] @ s))
    return x, expected


@pytest.mark.parametrize("searched", SEARCHED, ids=IDS)
def test_sides_are_those_of_the_statement(
    searched: Searched, laws: tuple[module.Instances, list[dict]]
) -> None:
    """A search cannot notice a right side that is too large; sums written out can."""
    x, expected = laws
    name = searched.name
    left, right = (side.reshape(WRITTEN, -1) for side in searched.sides(x))
    values = x.deviations.spectrum().eigenvalues
    # Eigenfunctions of equal eigenvalues, zero included, are not unique, and a value that never occurs adds a zero.
    distinct = (values[:, :-1] - values[:, 1:]).amin(-1) > 1e-6 * values[:, 0]
    chosen = [i for i in range(WRITTEN) if name not in SPECTRAL or distinct[i]]
    for i in chosen:
        for found, wanted in zip((left[i], right[i]), expected[i][name], strict=True):
            torch.testing.assert_close(found, torch.stack(list(wanted)), rtol=1e-5, atol=1e-9)
    assert len(chosen) > WRITTEN // 10


def test_a_nan_among_the_laws_is_inconclusive() -> None:
    def undefined(x: module.Instances) -> module.Sides:
        left, right = by_name("lower").sides(x)
        return torch.where(torch.arange(len(left)) == 7, torch.nan, left), right

    assert (
        search(Searched("Theorem 4.5", "wrong", "undefined", undefined)).verdict == "inconclusive"
    )


@pytest.mark.parametrize(("size", "violations"), [(1.0, 400), (1e-3, 0)])
def test_a_violation_is_counted_relative_to_the_left_side_or_to_one(
    size: float, violations: int
) -> None:
    """Left sides of one that pass the right sides by three tolerances are violations; a thousandth of it is not."""

    def sides(x: module.Instances) -> module.Sides:
        left = torch.full_like(x.hsic, size)
        return left, left - 3.0 * module.TOLERANCE * size

    found = search(Searched("Theorem 4.5", "wrong", "too small", sides), count=400)
    assert found.details["violations"] == violations
