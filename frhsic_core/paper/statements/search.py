"""Search for counterexamples among random laws and among random samples.

A statement that must hold for every law is evaluated on ten thousand random finite laws, in one batch. The laws include
the cases where a counterexample would hide: two values only, ties, a constant Z, values of probability zero, tiny
bandwidths (the Gram matrix is the identity) and huge ones (it is all ones), kernels that take negative values, kernels
with a diagonal k(x, x) that is not constant, bounds κ other than one. Some laws make the inequalities of section 4
equalities. :func:`search` reports the worst slack.

A sample is a law too, in which each row has the same probability. A statement that must hold for every sample is
searched with :func:`worst_excess`, among samples with the same kernels and corners. A *step* maps a batch of samples to
excesses, one or more for each: how far the left side exceeds the right one, in units where rounding is about n·eps.

A search that cannot detect a constant that is wrong by a tenth certifies nothing;
``tests/paper/statements/test_search.py`` shows that each of these can.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor

from frhsic_core._arrays import RandomState, as_generator
from frhsic_core.kernels import Gaussian, InverseMultiquadric, Laplacian, Linear
from frhsic_core.paper.statements import Certificate, check, inequality
from frhsic_core.paper.statements.smoothing import (
    Deviations,
    bilinear,
    deviations_of_joint,
    fixed_head,
    localized,
    smoothed,
)

SIZE = 6  # atoms of Z and of S
GramOf = Callable[[Tensor, Tensor], Tensor]  # (points (B, n, d), bandwidths (B,)) -> (B, n, n)


def cosine_gram(x: Tensor, bandwidth: Tensor) -> Tensor:
    """Return cos((x − y)/σ) of the first coordinate: bounded by one, positive semi-definite, signed."""
    # Reduced first: the rounding of a difference of large angles would make the matrix indefinite.
    angle = torch.remainder(x[..., :1] / bandwidth[..., None, None], 2.0 * torch.pi)
    return torch.cos(angle - angle.mT)


def in_unit_ball(x: Tensor) -> Tensor:
    """Divide the points of each sample ``(..., n, d)`` by their largest norm, so that x·y is at most one."""
    largest = torch.linalg.vector_norm(x, dim=-1, keepdim=True).amax(-2, keepdim=True)
    return x / torch.where(largest > 0, largest, 1.0)


def tempered_gram(x: Tensor, bandwidth: Tensor) -> Tensor:
    """Return w(x)w(y)·exp(−|x − y|²/(2σ²)) with w(x) = 1/(1 + |x|²): bounded by one, largest at the origin.

    Its diagonal w(x)² tells apart what a constant diagonal cannot: κ, k(s₀, s₀) and their mean.
    """
    weight = 1.0 / (1.0 + x.square().sum(-1))
    return weight.unsqueeze(-1) * Gaussian(bandwidth)(x) * weight.unsqueeze(-2)


KERNELS: dict[str, GramOf] = {
    "Gaussian": lambda x, bandwidth: Gaussian(bandwidth)(x),
    "Laplacian": lambda x, bandwidth: Laplacian(bandwidth)(x),
    "inverse multiquadric": lambda x, bandwidth: InverseMultiquadric(bandwidth)(x),
    "cosine": cosine_gram,
    "tempered": tempered_gram,
    "linear": lambda x, _: Linear()(in_unit_ball(x)),
    "polynomial": lambda x, _: (0.5 + 0.5 * Linear()(in_unit_ball(x))) ** 2,
}
FAMILIES = (
    "generic",
    "ties",
    "two values",
    "degenerate Z",
    "paired sample",
    "tiny bandwidths",
    "huge bandwidths",
    "tight",
)


@dataclass(frozen=True)
class Instances:
    """A batch of finite laws with kernels, a function g in F_S, a head f in F_Z and two positions in S.

    Attributes
    ----------
    joint, gram_z, gram_s : Tensor
        ``(B, a, b)``, ``(B, a, a)``, ``(B, b, b)``.
    alpha, beta : Tensor
        ``(B, a)`` and ``(B, b)``: f = Σ α_i k_Z(z_i, ·), g = Σ β_j k_S(s_j, ·).
    family : Tensor
        ``(B,)``, index into ``FAMILIES``.
    """

    joint: Tensor
    gram_z: Tensor
    gram_s: Tensor
    alpha: Tensor
    beta: Tensor
    family: Tensor

    @property
    def difference(self) -> Tensor:
        """Joint law less the product of its marginals, ``(B, a, b)``."""
        return self.joint - self.joint.sum(-1, keepdim=True) * self.joint.sum(-2, keepdim=True)

    @property
    def hsic(self) -> Tensor:
        """HSIC by Definition 2.1 on the joint law, without conditioning on anything, ``(B,)``."""
        return (self.difference * (self.gram_z @ self.difference @ self.gram_s)).sum((-2, -1))

    @property
    def deviations(self) -> Deviations:
        """The conditional deviations of every law in the batch."""
        return deviations_of_joint(self.joint, self.gram_z, self.gram_s)


def random_instances(
    count: int, *, random_state: RandomState, size: int = SIZE, samples: bool = False
) -> Instances:
    """Draw ``count`` laws, spread evenly over ``FAMILIES`` and over the kernels; float64 on the CPU.

    With ``samples`` they are the empirical laws of samples of ``size`` rows, with kernels bounded by one. O(count)
    time: no loop over instances.

    Examples
    --------
    >>> batch = random_instances(80, random_state=0)
    >>> tuple(batch.joint.shape), bool((batch.joint.sum((-2, -1)) - 1).abs().max() < 1e-12)
    ((80, 6, 6), True)
    """
    generator = as_generator(random_state)

    def uniform(*shape: int) -> Tensor:
        return torch.rand(*shape, generator=generator, dtype=torch.float64)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    family = torch.arange(count) % len(FAMILIES)
    is_family = {name: family == index for index, name in enumerate(FAMILIES)}
    z, s = normal(count, size, 2), normal(count, size, 1)
    width_z, width_s = 10.0 ** (4.0 * uniform(count) - 2.0), 10.0 ** (4.0 * uniform(count) - 2.0)
    # −log(U)^3 is heavy-tailed: some cells get nearly all the mass, others next to none.
    joint = (-uniform(count, size, size).log()) ** 3
    joint = torch.where(uniform(count, size, size) < 0.2, 0.0, joint)
    joint[:, 0, 0] += 1e-3  # never an empty law

    ties = is_family["ties"][:, None, None]
    z, s = torch.where(ties, z.round(), z), torch.where(ties, s.round(), s)
    z = torch.where(is_family["degenerate Z"][:, None, None], z[:, :1], z)
    paired = torch.eye(size, dtype=torch.float64).expand(count, size, size)
    joint = torch.where(is_family["paired sample"][:, None, None], paired, joint)
    width_z = torch.where(is_family["tiny bandwidths"], 1e-3 * width_z, width_z)
    width_s = torch.where(is_family["tiny bandwidths"], 1e-3, width_s)
    width_z = torch.where(is_family["huge bandwidths"], 1e3 * width_z, width_z)
    width_s = torch.where(is_family["huge bandwidths"], 1e3 * width_s, width_s)
    two = is_family["two values"] | is_family["tight"]
    joint = torch.where(two[:, None, None] & (torch.arange(size) > 1), 0.0, joint)
    joint[:, 0, 0] += 1e-3 * two

    # Tight laws: two equally likely opposite values half a turn apart. The cosine and the linear kernel have
    # k_S(s₀, s₁) = −κ there.
    tight = is_family["tight"]
    columns = joint / joint.sum(-2, keepdim=True).clamp_min(1e-300)
    joint = torch.where(tight[:, None, None], columns, joint)
    apart = torch.zeros(count, size, 1, dtype=torch.float64)
    apart[:, 0, 0], apart[:, 1, 0] = -0.5 * torch.pi * width_s, 0.5 * torch.pi * width_s
    s = torch.where(tight[:, None, None], apart, s)
    if samples:
        joint, rows = (
            torch.eye(size, dtype=torch.float64).expand(count, size, size),
            torch.arange(size),
        )
        s = torch.where(two[:, None, None], (rows % 2).double().unsqueeze(-1), s)
    joint = joint / joint.sum((-2, -1), keepdim=True)

    size_z, size_s = 10.0 ** (2.0 * uniform(count) - 1.0), 10.0 ** (2.0 * uniform(count) - 1.0)
    which_z = torch.randint(len(KERNELS), (count,), generator=generator)
    which_s = torch.randint(len(KERNELS), (count,), generator=generator)
    gram_z, gram_s = (
        torch.stack([gram(points, width) for gram in KERNELS.values()])[which, torch.arange(count)]
        for points, width, which in ((z, width_z, which_z), (s, width_s, which_s))
    )
    if not samples:
        gram_z, gram_s = gram_z * size_z[:, None, None], gram_s * size_s[:, None, None]

    alpha, beta = normal(count, size), normal(count, size)
    p_s = joint.sum(-2).clamp_min(1e-300)
    toward = joint[..., 0] / p_s[:, :1] - joint.sum(
        -1
    )  # f = Δ(s_1), the head along the deviation itself
    alpha = torch.where(two[:, None], toward, alpha)
    contrast = torch.zeros(size, dtype=torch.float64)
    contrast[:2] = torch.tensor([1.0, -1.0])
    beta = torch.where(two[:, None], contrast, beta)
    return Instances(joint, gram_z, gram_s, alpha, beta, family)


COUNT = 10_000  # in one batch; all searches together take about a second, so quick runs keep the full size
TOLERANCE = 1e-11  # absolute, for sides of order κ ≤ 10; rounding reaches about 1e-14

Sides = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Searched:
    """One inequality ``left ≤ right`` and how to compute it for a batch; sides are ``(B,)`` or ``(B, m)``."""

    statement: str
    name: str
    claim: str
    sides: Callable[[Instances], Sides]


@cache
def _laws(count: int) -> Instances:
    return random_instances(count, random_state=0)


def search(searched: Searched, *, count: int = COUNT, scale: float = 1.0) -> Certificate:
    """Evaluate one inequality on ``count`` random laws in one batch and certify its worst case.

    Parameters
    ----------
    searched : Searched
    count : int
        Number of laws; all searches with the same number share them.
    scale : float
        Multiplies the right side. One is the statement; 0.9 is a broken version that must be caught.

    Examples
    --------
    >>> search(SEARCHED[1], count=400).verdict, search(SEARCHED[1], count=400, scale=0.9).verdict
    ('holds', 'fails as stated')
    """
    batch = _laws(count)
    left, right = searched.sides(batch)
    left, right = left.reshape(count, -1), scale * right.reshape(count, -1)
    slack = (right - left) / left.abs().clamp_min(1.0)
    worst = int(slack.argmin())
    instance, _ = divmod(worst, slack.shape[-1])
    ratio = torch.where(right > 1e-9, left / right.clamp_min(1e-300), 0.0)
    return inequality(
        searched.claim,
        middle=left.reshape(-1)[worst].item(),
        upper=right.reshape(-1)[worst].item(),
        evidence="deterministic",
        tolerance=TOLERANCE,
        assumptions=("kernels bounded and positive semi-definite",),
        details={
            "instances": count,
            "comparisons": slack.numel(),
            "violations": int((slack < -TOLERANCE).any(-1).sum()),
            "largest left/right": ratio.max().item(),
            "family of the worst": FAMILIES[int(batch.family[instance])],
        },
    )


def _equal(left: Tensor, right: Tensor) -> Sides:
    """Turn an equality of non-negative numbers into two inequalities."""
    return torch.stack([left, right], -1), torch.stack([right, left], -1)


def _direction(x: Instances) -> Sides:
    d = x.deviations
    left = torch.stack([d.hsic, d.bound_s * d.expected_mmd**2], -1)
    return left, d.bound_s.unsqueeze(-1) * torch.stack(
        [d.expected_mmd**2, d.expected_squared_mmd], -1
    )


def _upper(x: Instances) -> Sides:
    # Multiplied out: λ_m(E[MMD²] − ρ_m²) ≤ HSIC for every m, λ_m = 0 included, without dividing by rounding.
    d = x.deviations
    spectrum = d.spectrum()
    left = spectrum.eigenvalues * (d.expected_squared_mmd.unsqueeze(-1) - spectrum.tails)
    return left, x.hsic.unsqueeze(-1).expand_as(left)


def _heads(x: Instances) -> tuple[Sides, Sides]:
    """Return the sides of Corollary 4.6 for every m: of the projected gap, and of GDP with its tail."""
    d = x.deviations
    spectrum, (gap, norm) = d.spectrum(), d.gap(x.alpha)
    captured = (spectrum.coefficients(d.probabilities.sqrt() * gap) ** 2).cumsum(-1)
    tail = captured[..., -1:] - captured
    gdp = (d.probabilities * gap.abs()).sum(-1, keepdim=True)
    right = (norm * x.hsic).unsqueeze(-1).expand_as(captured)
    return (spectrum.eigenvalues * captured, right), (spectrum.eigenvalues * (gdp**2 - tail), right)


def _fubini(x: Instances) -> Sides:
    # The gaps ⟨μ_{Z|S} − μ_Z, f⟩ average to zero; plus ⟨μ_Z, f⟩, squared, so that both sides are non-negative.
    d = x.deviations
    embedded = torch.einsum("...i,...ij,...j->...", x.joint.sum(-1), x.gram_z, x.alpha)
    inner = (d.probabilities * (embedded.unsqueeze(-1) + d.gap(x.alpha)[0])).sum(-1)
    return _equal(embedded**2, inner**2)


SEARCHED = [
    Searched(statement, name, f"random laws: {claim}", sides)
    for statement, name, claim, sides in (
        ("Proposition 4.1", "decomposition", "the decomposition is HSIC", lambda x: _equal(x.hsic, x.deviations.hsic)),
        ("Proposition 4.1", "expected_mmd_bound", "HSIC ≤ κ(E MMD)²",
         lambda x: (x.hsic, x.deviations.bound_s * x.deviations.expected_mmd**2)),
        ("Remark 4.2", "direction", "HSIC ≤ κ·EIPM² ≤ κ·E[MMD²]", _direction),
        ("Theorem 4.3", "smoothed", "smoothed form", lambda x: smoothed(x.deviations, x.beta)),
        ("Theorem 4.3", "fixed_head", "fixed-head form", lambda x: fixed_head(x.deviations, x.alpha)),
        ("Theorem 4.3", "bilinear", "bilinear form", lambda x: bilinear(x.deviations, x.alpha, x.beta)),
        ("Corollary 4.4", "one_point", "one point", lambda x: localized(x.deviations)[0]),
        ("Corollary 4.4", "two_points", "two points", lambda x: localized(x.deviations)[1]),
        ("Theorem 4.5", "lower", "lower side",
         lambda x: (x.hsic, x.deviations.bound_s * x.deviations.expected_squared_mmd)),
        ("Theorem 4.5", "upper", "upper side, every m", _upper),
        ("Corollary 4.6", "projected_head", "projected gap, every m", lambda x: _heads(x)[0]),
        ("Corollary 4.6", "gdp", "GDP with its tail, every m", lambda x: _heads(x)[1]),
        ("Lemma B.1", "fubini", "E⟨μ_{Z|S}, f⟩ is ⟨μ_Z, f⟩", _fubini),
    )
]  # fmt: skip


def _register(entry: Searched) -> None:
    @check(entry.statement, name=f"search_{entry.name}")
    def run() -> list[Certificate]:
        return [search(entry)]


for _entry in SEARCHED:
    _register(_entry)


SIZES = (2, 3, 6, 12)  # rows of the samples


def features(gram: Tensor) -> Tensor:
    """Return points ``(..., n, n)`` whose inner products are a Gram matrix, so that a linear kernel restores it."""
    values, vectors = torch.linalg.eigh(gram)
    return vectors * values.clamp_min(0.0).sqrt().unsqueeze(-2)


def worst_excess(
    steps: Mapping[str, Callable[[Any], Tensor]],
    *,
    prepare: Callable[[Instances], Any],
    instances: int,
    random_state: RandomState,
) -> dict[str, float]:
    """Return, for each step, the largest excess over random samples of 2 to 12 rows; a NaN counts as infinite.

    Parameters
    ----------
    steps : mapping
        Functions of what ``prepare`` returns; a tensor of any shape.
    prepare : callable
        Computes once per batch of samples what the steps share.
    instances, random_state
        Number of samples and their source.

    Examples
    --------
    >>> steps = {"the diagonal is at most one": lambda x: x.gram_z.diagonal(dim1=-2, dim2=-1) - 1.0}
    >>> worst = worst_excess(steps, prepare=lambda x: x, instances=400, random_state=0)
    >>> worst["the diagonal is at most one"] < 1e-12
    True
    """
    found = dict.fromkeys(steps, -math.inf)
    generator = as_generator(random_state)
    for size in SIZES:
        count = instances // len(SIZES)
        prepared = prepare(random_instances(count, random_state=generator, size=size, samples=True))
        for name, step in steps.items():
            excess = step(prepared)
            found[name] = max(
                found[name], torch.where(excess.isnan(), torch.inf, excess).max().item()
            )
    return found
