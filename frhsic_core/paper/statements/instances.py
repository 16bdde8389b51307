"""Random finite laws, thousands at a time, with the awkward cases on purpose.

A statement that must hold for every law is searched for counterexamples where they would hide: two values only, ties,
a constant Z, values of probability zero, bandwidths so small that the Gram matrix is the identity and so large that it
is all ones, kernels that take negative values, bounds κ other than one. Some instances are built to make the
inequalities of section 4 equalities, so that a constant wrong by a tenth cannot pass.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from frhsic_core.kernels import Gaussian, InverseMultiquadric, Laplacian
from frhsic_core.paper.statements.deviations import Deviations, deviations_of_joint

__all__ = ["FAMILIES", "Instances", "cosine_gram", "random_instances"]

SIZE = 6  # atoms of Z and of S
GramOf = Callable[[Tensor, Tensor], Tensor]  # (points (B, n, d), bandwidths (B,)) -> (B, n, n)


def cosine_gram(x: Tensor, bandwidth: Tensor) -> Tensor:
    """cos((x − y)/σ) of the first coordinate: bounded by one, positive semi-definite, not characteristic, signed."""
    # Reduced first: the rounding of a difference of large angles would make the matrix indefinite.
    angle = torch.remainder(x[..., :1] / bandwidth[..., None, None], 2.0 * torch.pi)
    return torch.cos(angle - angle.mT)


KERNELS: dict[str, GramOf] = {
    "Gaussian": lambda x, bandwidth: Gaussian(bandwidth)(x),
    "Laplacian": lambda x, bandwidth: Laplacian(bandwidth)(x),
    "inverse multiquadric": lambda x, bandwidth: InverseMultiquadric(bandwidth)(x),
    "cosine": cosine_gram,
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
    bound_z, bound_s : Tensor
        ``(B,)``, κ_Z and κ_S.
    alpha, beta : Tensor
        ``(B, a)`` and ``(B, b)``: f = Σ α_i k_Z(z_i, ·), g = Σ β_j k_S(s_j, ·).
    family : Tensor
        ``(B,)``, index into ``FAMILIES``.
    """

    joint: Tensor
    gram_z: Tensor
    gram_s: Tensor
    bound_z: Tensor
    bound_s: Tensor
    alpha: Tensor
    beta: Tensor
    family: Tensor

    @property
    def deviations(self) -> Deviations:
        """The conditional deviations of every law in the batch."""
        return deviations_of_joint(self.joint, self.gram_z, self.gram_s)


def random_instances(count: int, *, generator: torch.Generator) -> Instances:
    """Draw ``count`` laws, spread evenly over ``FAMILIES`` and over the kernels; float64 on the CPU.

    O(count) time: no loop over instances.

    Examples
    --------
    >>> batch = random_instances(80, generator=torch.Generator().manual_seed(0))
    >>> tuple(batch.joint.shape), bool((batch.joint.sum((-2, -1)) - 1).abs().max() < 1e-12)
    ((80, 6, 6), True)
    """

    def uniform(*shape: int) -> Tensor:
        return torch.rand(*shape, generator=generator, dtype=torch.float64)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    family = torch.arange(count) % len(FAMILIES)
    is_family = {name: family == index for index, name in enumerate(FAMILIES)}
    z, s = normal(count, SIZE, 2), normal(count, SIZE, 1)
    width_z, width_s = 10.0 ** (4.0 * uniform(count) - 2.0), 10.0 ** (4.0 * uniform(count) - 2.0)
    # −log(U)^3 is heavy-tailed: some cells get nearly all the mass, others next to none.
    joint = (-uniform(count, SIZE, SIZE).log()) ** 3
    joint = torch.where(uniform(count, SIZE, SIZE) < 0.2, 0.0, joint)
    joint[:, 0, 0] += 1e-3  # never an empty law

    ties = is_family["ties"][:, None, None]
    z, s = torch.where(ties, z.round(), z), torch.where(ties, s.round(), s)
    z = torch.where(is_family["degenerate Z"][:, None, None], z[:, :1], z)
    paired = torch.eye(SIZE, dtype=torch.float64).expand(count, SIZE, SIZE)
    joint = torch.where(is_family["paired sample"][:, None, None], paired, joint)
    width_z = torch.where(is_family["tiny bandwidths"], 1e-3 * width_z, width_z)
    width_s = torch.where(is_family["tiny bandwidths"], 1e-3, width_s)
    width_z = torch.where(is_family["huge bandwidths"], 1e3 * width_z, width_z)
    width_s = torch.where(is_family["huge bandwidths"], 1e3 * width_s, width_s)
    two = is_family["two values"] | is_family["tight"]
    joint = torch.where(two[:, None, None] & (torch.arange(SIZE) > 1), 0.0, joint)
    joint[:, 0, 0] += 1e-3 * two

    # Tight laws: two equally likely values half a turn apart, so that the cosine kernel has k_S(0, 1) = −κ.
    tight = is_family["tight"]
    columns = joint / joint.sum(-2, keepdim=True).clamp_min(1e-300)
    joint = torch.where(tight[:, None, None], columns, joint)
    apart = torch.zeros(count, SIZE, 1, dtype=torch.float64)
    apart[:, 1, 0] = torch.pi * width_s
    s = torch.where(tight[:, None, None], apart, s)
    joint = joint / joint.sum((-2, -1), keepdim=True)

    bound_z, bound_s = 10.0 ** (2.0 * uniform(count) - 1.0), 10.0 ** (2.0 * uniform(count) - 1.0)
    which_z = torch.randint(len(KERNELS), (count,), generator=generator)
    which_s = torch.randint(len(KERNELS), (count,), generator=generator)
    gram_z, gram_s = (
        torch.stack([gram(points, width) for gram in KERNELS.values()])[which, torch.arange(count)]
        for points, width, which in ((z, width_z, which_z), (s, width_s, which_s))
    )
    gram_z, gram_s = gram_z * bound_z[:, None, None], gram_s * bound_s[:, None, None]

    alpha, beta = normal(count, SIZE), normal(count, SIZE)
    p_s = joint.sum(-2).clamp_min(1e-300)
    toward = joint[..., 0] / p_s[:, :1] - joint.sum(-1)  # f = Δ(s_1), the head along the deviation itself
    alpha = torch.where(two[:, None], toward, alpha)
    contrast = torch.zeros(SIZE, dtype=torch.float64)
    contrast[0], contrast[1] = 1.0, -1.0
    beta = torch.where(two[:, None], contrast, beta)
    return Instances(joint, gram_z, gram_s, bound_z, bound_s, alpha, beta, family)
