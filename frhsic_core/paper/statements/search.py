"""Search for counterexamples among random laws and among random samples.

A statement that must hold for every law is evaluated on ten thousand random finite laws, in one
batch. The laws include the cases where a counterexample would hide: two values only, ties, a
constant Z, values of probability zero, tiny bandwidths (the Gram matrix is the identity) and huge
ones (it is all ones), kernels that take negative values, kernels with a diagonal k(x, x) that is
not constant, bounds κ other than one. Some laws make the inequalities of section 4 equalities.
:func:`search` reports the worst slack.

A sample is a law too, in which each row has the same probability. A statement that must hold for
every sample is searched with :func:`worst_excess`, among samples with the same kernels and corners.
A *step* maps a batch of samples to excesses, one or more for each: how far the left side exceeds
the right one, in units where rounding is about n·eps.

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
TINY = 1e-300  # below every probability that is not zero: no division by zero
GramOf = Callable[[Tensor, Tensor], Tensor]  # (points (B, n, d), bandwidths (B,)) -> (B, n, n)


def cosine_gram(x: Tensor, bandwidth: Tensor) -> Tensor:
    """Return cos((x − y)/σ) of the first coordinate: bounded by one, PSD, of both signs."""
    # Reduced first: the rounding of a difference of large angles would make the matrix indefinite.
    angle = torch.remainder(x[..., :1] / bandwidth[..., None, None], 2.0 * torch.pi)
    return torch.cos(angle - angle.mT)


def in_unit_ball(x: Tensor) -> Tensor:
    """Divide the points ``(..., n, d)`` by their largest norm, so that x·y is at most one."""
    largest = torch.linalg.vector_norm(x, dim=-1, keepdim=True).amax(-2, keepdim=True)
    return x / torch.where(largest > 0, largest, 1.0)


def tempered_gram(x: Tensor, bandwidth: Tensor) -> Tensor:
    """Return w(x)w(y)·exp(−|x − y|²/(2σ²)) with w(x) = 1/(1 + |x|²).

    It is bounded by one and largest at the origin. Its diagonal w(x)² tells apart what a constant
    diagonal cannot: κ, k(s₀, s₀) and their mean.
    """
    weight = 1.0 / (1.0 + x.square().sum(-1))
    return weight.unsqueeze(-1) * Gaussian(bandwidth)(x) * weight.unsqueeze(-2)


def gaussian_gram(x: Tensor, bandwidth: Tensor) -> Tensor:
    """Return the Gaussian kernel."""
    return Gaussian(bandwidth)(x)


def laplacian_gram(x: Tensor, bandwidth: Tensor) -> Tensor:
    """Return the Laplacian kernel."""
    return Laplacian(bandwidth)(x)


def multiquadric_gram(x: Tensor, bandwidth: Tensor) -> Tensor:
    """Return the inverse multiquadric kernel."""
    return InverseMultiquadric(bandwidth)(x)


def linear_gram(x: Tensor, _: Tensor) -> Tensor:
    """Return x·y of points in the unit ball, which needs no bandwidth."""
    return Linear()(in_unit_ball(x))


def polynomial_gram(x: Tensor, bandwidth: Tensor) -> Tensor:
    """Return (½ + ½x·y)² of points in the unit ball."""
    return (0.5 + 0.5 * linear_gram(x, bandwidth)) ** 2


KERNELS: dict[str, GramOf] = {
    "Gaussian": gaussian_gram,
    "Laplacian": laplacian_gram,
    "inverse multiquadric": multiquadric_gram,
    "cosine": cosine_gram,
    "tempered": tempered_gram,
    "linear": linear_gram,
    "polynomial": polynomial_gram,
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
    """A batch of finite laws with kernels, a function g in F_S and a head f in F_Z.

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
    """Draw ``count`` laws, spread evenly over ``FAMILIES`` and over the kernels.

    With ``samples`` they are the empirical laws of samples of ``size`` rows, with kernels bounded
    by one. O(count) time: no loop over instances.

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

    def power_of_ten(limit: float) -> Tensor:
        """Draw a number between 10^(−limit) and 10^limit for each law."""
        return 10.0 ** (2.0 * limit * uniform(count) - limit)

    # The order of the draws decides the laws, so each of them is drawn whether it is used or not.
    family = torch.arange(count) % len(FAMILIES)
    z = normal(count, size, 2)
    s = normal(count, size, 1)
    width_z = power_of_ten(2.0)
    width_s = power_of_ten(2.0)
    # −log(U)^3 is heavy-tailed: some cells get nearly all the mass, others next to none.
    joint = (-uniform(count, size, size).log()) ** 3
    joint = torch.where(uniform(count, size, size) < 0.2, 0.0, joint)
    joint[:, 0, 0] += 1e-3  # never an empty law

    is_family = {name: family == index for index, name in enumerate(FAMILIES)}
    is_tiny = is_family["tiny bandwidths"]
    is_huge = is_family["huge bandwidths"]
    is_tight = is_family["tight"]
    has_two_values = is_family["two values"] | is_tight

    def in_table(which: Tensor) -> Tensor:
        """Give a mask of laws ``(B,)`` the axes of a table or of points."""
        return which[:, None, None]

    has_ties = in_table(is_family["ties"])
    z = torch.where(has_ties, z.round(), z)
    s = torch.where(has_ties, s.round(), s)
    z = torch.where(in_table(is_family["degenerate Z"]), z[:, :1], z)
    paired = torch.eye(size, dtype=torch.float64).expand(count, size, size)
    joint = torch.where(in_table(is_family["paired sample"]), paired, joint)
    width_z = torch.where(is_tiny, 1e-3 * width_z, width_z)
    width_s = torch.where(is_tiny, 1e-3, width_s)
    width_z = torch.where(is_huge, 1e3 * width_z, width_z)
    width_s = torch.where(is_huge, 1e3 * width_s, width_s)
    beyond_two = torch.arange(size) > 1
    joint = torch.where(in_table(has_two_values) & beyond_two, 0.0, joint)
    joint[:, 0, 0] += 1e-3 * has_two_values

    # Tight laws: two equally likely opposite values half a turn apart. The cosine and the linear
    # kernel have k_S(s₀, s₁) = −κ there.
    columns = joint / joint.sum(-2, keepdim=True).clamp_min(TINY)
    joint = torch.where(in_table(is_tight), columns, joint)
    half_a_turn_apart = torch.zeros(count, size, 1, dtype=torch.float64)
    half_a_turn_apart[:, 0, 0] = -0.5 * torch.pi * width_s
    half_a_turn_apart[:, 1, 0] = 0.5 * torch.pi * width_s
    s = torch.where(in_table(is_tight), half_a_turn_apart, s)
    if samples:
        joint = paired
        alternating = (torch.arange(size) % 2).double().unsqueeze(-1)
        s = torch.where(in_table(has_two_values), alternating, s)
    joint = joint / joint.sum((-2, -1), keepdim=True)

    scale_z = power_of_ten(1.0)
    scale_s = power_of_ten(1.0)
    which_z = torch.randint(len(KERNELS), (count,), generator=generator)
    which_s = torch.randint(len(KERNELS), (count,), generator=generator)
    gram_z = chosen_grams(z, width_z, which_z)
    gram_s = chosen_grams(s, width_s, which_s)
    if not samples:
        gram_z = gram_z * in_table(scale_z)
        gram_s = gram_s * in_table(scale_s)

    alpha = normal(count, size)
    beta = normal(count, size)
    p_s = joint.sum(-2).clamp_min(TINY)
    first_deviation = joint[..., 0] / p_s[:, :1] - joint.sum(-1)
    alpha = torch.where(has_two_values[:, None], first_deviation, alpha)  # f = Δ(s_1)
    contrast = torch.zeros(size, dtype=torch.float64)
    contrast[0] = 1.0
    contrast[1] = -1.0
    beta = torch.where(has_two_values[:, None], contrast, beta)
    return Instances(
        joint=joint, gram_z=gram_z, gram_s=gram_s, alpha=alpha, beta=beta, family=family
    )


def chosen_grams(points: Tensor, widths: Tensor, which: Tensor) -> Tensor:
    """Return the Gram matrix of each set of points for one of ``KERNELS``."""
    of_every_kernel = torch.stack([gram(points, widths) for gram in KERNELS.values()])
    return of_every_kernel[which, torch.arange(len(which))]


# Laws in one batch. All searches together take about a second, so quick runs keep the full size.
COUNT = 10_000
TOLERANCE = 1e-11  # absolute, for sides of order κ ≤ 10; rounding reaches about 1e-14

Sides = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Searched:
    """One inequality ``left ≤ right`` with a function that returns its sides for a batch.

    Sides have the shape ``(B,)`` or ``(B, m)``.
    """

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
        Multiplies the right side. One is the statement; 0.9 is a broken version that must be
        caught.

    Examples
    --------
    >>> bound = SEARCHED[1]
    >>> search(bound, count=400).verdict
    'holds'
    >>> search(bound, count=400, scale=0.9).verdict
    'fails as stated'
    """
    batch = _laws(count)
    left, right = searched.sides(batch)
    left = left.reshape(count, -1)
    right = scale * right.reshape(count, -1)
    slack = (right - left) / left.abs().clamp_min(1.0)
    worst = int(slack.argmin())
    worst_instance = worst // slack.shape[-1]
    # A ratio of two numbers that are nearly zero says nothing.
    ratio = torch.where(right > 1e-9, left / right.clamp_min(TINY), 0.0)
    return inequality(
        f"random laws: {searched.claim}",
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
            "family of the worst": FAMILIES[int(batch.family[worst_instance])],
        },
    )


def equal(left: Tensor, right: Tensor) -> Sides:
    """Turn an equality of non-negative numbers into two inequalities."""
    return torch.stack([left, right], -1), torch.stack([right, left], -1)


def decomposition(x: Instances) -> Sides:
    """Return HSIC by its definition and by the decomposition."""
    return equal(x.hsic, x.deviations.hsic)


def expected_mmd_bound(x: Instances) -> Sides:
    """Return HSIC and κ(E MMD)²."""
    d = x.deviations
    return x.hsic, d.bound_s * d.expected_mmd**2


def direction(x: Instances) -> Sides:
    """Return HSIC and κ·EIPM², then κ·EIPM² and κ·E[MMD²]."""
    d = x.deviations
    of_eipm = d.bound_s * d.expected_mmd**2
    of_integral = d.bound_s * d.expected_squared_mmd
    return torch.stack([d.hsic, of_eipm], -1), torch.stack([of_eipm, of_integral], -1)


def smoothed_form(x: Instances) -> Sides:
    """Return the sides of the smoothed form."""
    return smoothed(x.deviations, x.beta)


def fixed_head_form(x: Instances) -> Sides:
    """Return the sides of the fixed-head form."""
    return fixed_head(x.deviations, x.alpha)


def bilinear_form(x: Instances) -> Sides:
    """Return the sides of the bilinear form."""
    return bilinear(x.deviations, x.alpha, x.beta)


def one_point(x: Instances) -> Sides:
    """Return the sides of the one-point form at every s₀."""
    found, _ = localized(x.deviations)
    return found


def two_points(x: Instances) -> Sides:
    """Return the sides of the two-point form at every pair."""
    _, found = localized(x.deviations)
    return found


def lower_side(x: Instances) -> Sides:
    """Return HSIC and κ·E[MMD²]."""
    d = x.deviations
    return x.hsic, d.bound_s * d.expected_squared_mmd


def upper_side(x: Instances) -> Sides:
    """Return λ_m(E[MMD²] − ρ_m²) and HSIC for every m.

    Theorem 4.5 is multiplied out, so that λ_m = 0 is included and rounding never divides.
    """
    d = x.deviations
    spectrum = d.spectrum()
    left = spectrum.eigenvalues * (d.expected_squared_mmd.unsqueeze(-1) - spectrum.tails)
    return left, x.hsic.unsqueeze(-1).expand_as(left)


def captured_squares(x: Instances) -> Tensor:
    """Return the square of the gap of the head that the first m eigenfunctions capture."""
    d = x.deviations
    gap, _ = d.gap(x.alpha)
    coefficients = d.spectrum().coefficients(d.probabilities.sqrt() * gap)
    return (coefficients**2).cumsum(-1)


def hsic_of_head(x: Instances) -> Tensor:
    """Return ‖f‖²·HSIC, the right side of Corollary 4.6, ``(B, 1)``."""
    _, squared_norm = x.deviations.gap(x.alpha)
    return (squared_norm * x.hsic).unsqueeze(-1)


def projected_head(x: Instances) -> Sides:
    """Return the sides of Corollary 4.6 for the projected gap and every m."""
    left = x.deviations.spectrum().eigenvalues * captured_squares(x)
    return left, hsic_of_head(x).expand_as(left)


def gdp_with_tail(x: Instances) -> Sides:
    """Return the sides of Corollary 4.6 for GDP with its tail and every m."""
    d = x.deviations
    captured = captured_squares(x)
    tail = captured[..., -1:] - captured
    gap, _ = d.gap(x.alpha)
    gdp = (d.probabilities * gap.abs()).sum(-1, keepdim=True)
    left = d.spectrum().eigenvalues * (gdp**2 - tail)
    return left, hsic_of_head(x).expand_as(left)


def fubini(x: Instances) -> Sides:
    """Return ⟨μ_Z, f⟩² and the square of E⟨μ_{Z|S}, f⟩.

    The gaps ⟨μ_{Z|S} − μ_Z, f⟩ average to zero. Squares, so that both sides are non-negative.
    """
    d = x.deviations
    gap, _ = d.gap(x.alpha)
    embedded = torch.einsum("...i,...ij,...j->...", x.joint.sum(-1), x.gram_z, x.alpha)
    inner = (d.probabilities * (embedded.unsqueeze(-1) + gap)).sum(-1)
    return equal(embedded**2, inner**2)


SEARCHED = [
    Searched("Proposition 4.1", "decomposition", "the decomposition is HSIC", sides=decomposition),
    Searched("Proposition 4.1", "expected_mmd_bound", "HSIC ≤ κ(E MMD)²", sides=expected_mmd_bound),
    Searched("Remark 4.2", "direction", "HSIC ≤ κ·EIPM² ≤ κ·E[MMD²]", sides=direction),
    Searched("Theorem 4.3", "smoothed", "smoothed form", sides=smoothed_form),
    Searched("Theorem 4.3", "fixed_head", "fixed-head form", sides=fixed_head_form),
    Searched("Theorem 4.3", "bilinear", "bilinear form", sides=bilinear_form),
    Searched("Corollary 4.4", "one_point", "one point", sides=one_point),
    Searched("Corollary 4.4", "two_points", "two points", sides=two_points),
    Searched("Theorem 4.5", "lower", "lower side", sides=lower_side),
    Searched("Theorem 4.5", "upper", "upper side, every m", sides=upper_side),
    Searched("Corollary 4.6", "projected_head", "projected gap, every m", sides=projected_head),
    Searched("Corollary 4.6", "gdp", "GDP with its tail, every m", sides=gdp_with_tail),
    Searched("Lemma B.1", "fubini", "E⟨μ_{Z|S}, f⟩ is ⟨μ_Z, f⟩", sides=fubini),
]


def _register(entry: Searched) -> None:
    @check(entry.statement, name=f"search_{entry.name}")
    def run() -> list[Certificate]:
        return [search(entry)]


for _entry in SEARCHED:
    _register(_entry)


SIZES = (2, 3, 6, 12)  # rows of the samples


def features(gram: Tensor) -> Tensor:
    """Return points ``(..., n, n)`` whose inner products are the Gram matrix."""
    values, vectors = torch.linalg.eigh(gram)
    return vectors * values.clamp_min(0.0).sqrt().unsqueeze(-2)


def worst_excess(
    steps: Mapping[str, Callable[[Any], Tensor]],
    *,
    prepare: Callable[[Instances], Any],
    instances: int,
    random_state: RandomState,
) -> dict[str, float]:
    """Return, for each step, the largest excess over random samples of 2 to 12 rows.

    A NaN counts as infinite.

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
            excess = step(prepared).nan_to_num(nan=torch.inf, posinf=torch.inf, neginf=-torch.inf)
            found[name] = max(found[name], excess.max().item())
    return found
