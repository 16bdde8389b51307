"""Batched search for counterexamples: every inequality that must hold for every law, on ten thousand of them.

Each entry of ``SEARCHED`` computes both sides of one statement for a whole batch; :func:`search` reports the worst
slack. ``scale`` shrinks the right side on purpose: a search that cannot see a constant wrong by a tenth certifies
nothing, and ``tests/paper/statements/test_search.py`` shows that each of these can.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from frhsic_core.paper.statements.certificate import Certificate, inequality
from frhsic_core.paper.statements.instances import FAMILIES, Instances, random_instances
from frhsic_core.paper.statements.registry import Check

__all__ = ["COUNT", "SEARCHED", "Searched", "search", "search_certificate"]

COUNT = 10_000  # in one batch; all sixteen searches together take about a second, so quick runs keep the full size
TOLERANCE = 1e-11  # absolute, for sides of order κ ≤ 10; rounding reaches about 1e-14

Sides = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Searched:
    """One inequality ``left ≤ right`` and how to compute it for a batch; sides are ``(B,)`` or ``(B, m)``."""

    statement: str
    label: str
    claim: str
    sides: Callable[[Instances], Sides]


def _equal(left: Tensor, right: Tensor) -> Sides:
    """Turn an equality of non-negative numbers into two inequalities."""
    return torch.stack([left, right], -1), torch.stack([right, left], -1)


def _direct_hsic(x: Instances) -> Tensor:
    """Definition 2.1 on the joint law, without conditioning on anything."""
    difference = x.joint - x.joint.sum(-1, keepdim=True) * x.joint.sum(-2, keepdim=True)
    return (difference * (x.gram_z @ difference @ x.gram_s)).sum((-2, -1))


def _norm(coefficients: Tensor, gram: Tensor) -> Tensor:
    return torch.einsum("...i,...ij,...j->...", coefficients, gram, coefficients)


def _g(x: Instances) -> Tensor:
    return torch.einsum("...jk,...k->...j", x.gram_s, x.beta)


def _decomposition(x: Instances) -> Sides:
    return _equal(_direct_hsic(x), x.deviations.hsic)


def _expected_mmd_bound(x: Instances) -> Sides:
    return _direct_hsic(x), x.bound_s * x.deviations.expected_mmd**2


def _direction(x: Instances) -> Sides:
    d = x.deviations
    left = torch.stack([d.hsic, x.bound_s * d.expected_mmd**2], -1)
    return left, x.bound_s.unsqueeze(-1) * torch.stack([d.expected_mmd**2, d.expected_squared_mmd], -1)


def _smoothed(x: Instances) -> Sides:
    return x.deviations.smoothed(_g(x)), _norm(x.beta, x.gram_s) * _direct_hsic(x)


def _fixed_head(x: Instances) -> Sides:
    gap, norm = x.deviations.gap(x.alpha)
    return _norm(x.joint.sum(-2) * gap, x.gram_s), norm * _direct_hsic(x)


def _bilinear(x: Instances) -> Sides:
    gap, norm = x.deviations.gap(x.alpha)
    left = (x.joint.sum(-2) * _g(x) * gap).sum(-1) ** 2
    return left, norm * _norm(x.beta, x.gram_s) * _direct_hsic(x)


def _one_point(x: Instances) -> Sides:
    d = x.deviations
    left = torch.stack([d.smoothed(x.gram_s[..., j]) for j in range(x.gram_s.shape[-1])], -1)
    return left, x.gram_s.diagonal(dim1=-2, dim2=-1) * _direct_hsic(x).unsqueeze(-1)


def _two_points(x: Instances) -> Sides:
    d, size = x.deviations, x.gram_s.shape[-1]
    diagonal = x.gram_s.diagonal(dim1=-2, dim2=-1)
    pairs = [(i, j) for i in range(size) for j in range(i)]
    left = torch.stack([d.smoothed(x.gram_s[..., i] - x.gram_s[..., j]) for i, j in pairs], -1)
    squared = torch.stack([diagonal[..., i] + diagonal[..., j] - 2.0 * x.gram_s[..., i, j] for i, j in pairs], -1)
    return left, squared * _direct_hsic(x).unsqueeze(-1)


def _lower(x: Instances) -> Sides:
    return _direct_hsic(x) / x.bound_s, x.deviations.expected_squared_mmd


def _upper(x: Instances, *, centred: bool = False) -> Sides:
    # Multiplied out: λ_m(E[MMD²] − ρ_m²) ≤ HSIC for every m, λ_m = 0 included, without dividing by rounding.
    d = x.deviations
    spectrum = d.spectrum(centred=centred)
    left = spectrum.eigenvalues * (d.expected_squared_mmd.unsqueeze(-1) - spectrum.tails)
    return left, _direct_hsic(x).unsqueeze(-1).expand_as(left)


def _projected_head(x: Instances) -> Sides:
    d = x.deviations
    spectrum, (gap, norm) = d.spectrum(), d.gap(x.alpha)
    coefficients = torch.einsum("...s,...sl->...l", d.probabilities.sqrt() * gap, spectrum.vectors)
    left = spectrum.eigenvalues * (coefficients**2).cumsum(-1)
    return left, (norm * _direct_hsic(x)).unsqueeze(-1).expand_as(left)


def _gdp(x: Instances) -> Sides:
    d = x.deviations
    spectrum, (gap, norm) = d.spectrum(), d.gap(x.alpha)
    coefficients = torch.einsum("...s,...sl->...l", d.probabilities.sqrt() * gap, spectrum.vectors)
    energy = coefficients**2
    tail = energy.sum(-1, keepdim=True) - energy.cumsum(-1)
    gdp = (d.probabilities * gap.abs()).sum(-1, keepdim=True)
    left = spectrum.eigenvalues * (gdp**2 - tail)
    return left, (norm * _direct_hsic(x)).unsqueeze(-1).expand_as(left)


def _disintegrated(x: Instances) -> Sides:
    p_z, p_s = x.joint.sum(-1, keepdim=True), x.joint.sum(-2, keepdim=True)
    conditional = torch.where(p_s > 0, x.joint / p_s.clamp_min(1e-300) - p_z, 0.0)
    contrast = p_s * conditional
    ball = (contrast * (x.gram_z @ contrast @ x.gram_s)).sum((-2, -1))
    left = torch.stack([_direct_hsic(x), (x.joint - p_z * p_s).abs().sum((-2, -1))], -1)
    return _equal(left, torch.stack([ball, contrast.abs().sum((-2, -1))], -1))


def _bounded_class(x: Instances) -> Sides:
    p_z, p_s = x.joint.sum(-1, keepdim=True), x.joint.sum(-2, keepdim=True)
    conditional = torch.where(p_s > 0, x.joint / p_s.clamp_min(1e-300) - p_z, 0.0)
    averaged = (p_s.squeeze(-2) * conditional.abs().sum(-2)).sum(-1)
    return _equal((x.joint - p_z * p_s).abs().sum((-2, -1)), averaged)


def _fubini(x: Instances) -> Sides:
    # U = μ_{Z|S}, v = f: ⟨E U, f⟩ = ⟨μ_Z, f⟩ against E_S⟨U, f⟩; squares keep both sides non-negative.
    p_z, p_s = x.joint.sum(-1), x.joint.sum(-2)
    embedded = torch.einsum("...i,...ij,...j->...", p_z, x.gram_z, x.alpha)
    conditional = torch.where(p_s.unsqueeze(-2) > 0, x.joint / p_s.clamp_min(1e-300).unsqueeze(-2), 0.0)
    inner = torch.einsum("...is,...ij,...j->...s", conditional, x.gram_z, x.alpha)
    return _equal(embedded**2, (p_s * inner).sum(-1) ** 2)


_SMOOTHED, _LOCAL = "thm:hsic_smoothed_conditional_control", "cor:localized_sensitive_contrasts"
_EQUIVALENCE, _HEAD = "cor:hsic-mmd-equivalence", "cor:spectral_gdp_control"

SEARCHED: tuple[Searched, ...] = (
    Searched("Theorem 3.2", "thm:joint-equals-integral", "random laws: RKHS ball, bounded functions", _disintegrated),
    Searched("Corollary 3.4", "cor:decomposable-class", "random laws: the bounded class splits over S", _bounded_class),
    Searched("Proposition 4.1", "thm:EIPM_HSIC", "random laws: the decomposition is HSIC", _decomposition),
    Searched("Proposition 4.1", "thm:EIPM_HSIC", "random laws: HSIC ≤ κ(E MMD)²", _expected_mmd_bound),
    Searched("Remark 4.2", "rem:hsic-eipm-direction", "random laws: HSIC ≤ κ·EIPM² ≤ κ·E[MMD²]", _direction),
    Searched("Theorem 4.3", _SMOOTHED, "random laws: smoothed form", _smoothed),
    Searched("Theorem 4.3", _SMOOTHED, "random laws: fixed-head form", _fixed_head),
    Searched("Theorem 4.3", _SMOOTHED, "random laws: bilinear form", _bilinear),
    Searched("Corollary 4.4", _LOCAL, "random laws: one point", _one_point),
    Searched("Corollary 4.4", _LOCAL, "random laws: two points", _two_points),
    Searched("Theorem 4.5", _EQUIVALENCE, "random laws: lower side", _lower),
    Searched("Theorem 4.5", _EQUIVALENCE, "random laws: upper side, every m", _upper),
    Searched("Corollary 4.6", _HEAD, "random laws: projected gap, every m", _projected_head),
    Searched("Corollary 4.6", _HEAD, "random laws: GDP with its tail, every m", _gdp),
    Searched("Lemma B.1", "lem:fubini", "random laws: E⟨μ_{Z|S}, f⟩ is ⟨μ_Z, f⟩", _fubini),
    Searched("Lemma B.2", "lem:discrete-coincidence", "random laws: the double sum is HSIC", _decomposition),
)


@cache
def _batch(count: int, seed: int) -> Instances:
    return random_instances(count, generator=torch.Generator().manual_seed(seed))


def search(searched: Searched, *, count: int = COUNT, seed: int = 0, scale: float = 1.0) -> Certificate:
    """Evaluate one inequality on ``count`` random laws in one batch and certify its worst case.

    Parameters
    ----------
    searched : Searched
    count, seed : int
        Which laws; all searches with the same numbers share them.
    scale : float
        Multiplies the right side. One is the statement; 0.9 is a broken version that must be caught.

    Examples
    --------
    >>> search(SEARCHED[3], count=400).verdict, search(SEARCHED[3], count=400, scale=0.9).verdict
    ('holds', 'fails as stated')
    """
    batch = _batch(count, seed)
    left, right = searched.sides(batch)
    left, right = left.reshape(count, -1), scale * right.reshape(count, -1)
    slack = (right - left) / left.abs().clamp_min(1.0)
    worst = int(slack.argmin())
    instance, _ = divmod(worst, slack.shape[-1])
    ratio = torch.where(right > 1e-9, left / right.clamp_min(1e-300), 0.0)
    return inequality(
        searched.statement,
        searched.label,
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


def search_certificate(searched: Searched) -> Check:
    """Return a check, named after the statement, that runs the search."""

    def check(*, quick: bool) -> list[Certificate]:
        return [search(searched)]

    check.__name__ = f"search_{searched.sides.__name__.strip('_')}"
    return check


CHECKS: dict[str, list[Check]] = {}
for _searched in SEARCHED:
    CHECKS.setdefault(_searched.statement, []).append(search_certificate(_searched))
