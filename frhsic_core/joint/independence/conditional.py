"""The tests of Z ⟂ S | C: permutations within the groups of a discrete C.

Two statistics are used. With R_i = φ(Z_i) − E[φ(Z)|C_i] and Q_i = ψ(S_i) − E[ψ(S)|C_i], *by value* of C is
Σ_c P(C = c) HSIC(Z, S | C = c), the share-weighted mean of the criterion, and *pooled* is ‖E[R ⊗ Q]‖². The first is
zero only under conditional independence. The second adds up what the values of C have in common, and finds a weak
dependence that is alike for many values of C. The aggregated test uses both.

Why the level is exact for a discrete C: given C, the rows of one group are i.i.d. and Z ⟂ S within it, so exchanging S
among the rows of a group does not change the distribution. The argument of
:mod:`frhsic_core.joint.independence.permutation` then holds word for word with this group of permutations. Group means
do not change under such an exchange, so centering within groups comes first.
"""

from __future__ import annotations

import torch
from torch import Tensor

from frhsic_core.joint.given import Given, spaced_rows
from frhsic_core.joint.independence.features import BASE_ROWS
from frhsic_core.joint.independence.fits import fitted_gamma, pair_sums
from frhsic_core.joint.independence.permutation import (
    SMALL_ROWS,
    Decision,
    both_statistics,
    decide,
    exact_hsic,
    factors_of,
    one_window,
    permuted_statistics,
    scaled,
)
from frhsic_core.joint.independence.residual import residual_test
from frhsic_core.kernels import Gaussian, Kernel, median_distance


def conditional_test(
    z: Tensor,
    s: Tensor,
    kernel_z: Kernel | None,
    kernel_s: Kernel | None,
    given: Given,
    *,
    method: str,
    n_permutations: int,
    generator: torch.Generator,
    alpha: float,
    clusters: list[Tensor] | None,
) -> tuple[Decision, tuple[float, ...] | None]:
    """Return the test of Z ⟂ S | C of one sample ``(n, d)`` and ``(n, p)``, and the factors of the bandwidths."""
    n = len(z)
    if not given.discrete:
        if clusters is not None:
            raise ValueError("clusters needs a discrete given: exchange is possible between rows of equal given only.")
        return residual_test(
            z, s, given, kernel_z, kernel_s, method=method, n_signs=n_permutations, generator=generator, alpha=alpha
        )
    groups = given.groups()
    strata = group_strata(groups, n, clusters)
    z, kernel_z = within_kernel(kernel_z, z, groups)
    s, kernel_s = within_kernel(kernel_s, s, groups)
    if method in ("gamma", "spectral"):
        statistic, mean, variance, shape = fitted_moments(z, s, kernel_z, kernel_s, groups, method)
        constant = variance <= 0
        pvalue, threshold = fitted_gamma(statistic, mean, variance.clamp_min(1e-300), shape.clamp_min(1e-300), alpha)
        return decide(statistic, pvalue, threshold, constant, n), None
    factors = factors_of(kernel_z, kernel_s) if method == "aggregated" else (1.0,)
    kernels_z, kernels_s = ([scaled(kernel, factor) for factor in factors] for kernel in (kernel_z, kernel_s))
    found = permuted_statistics(z, s, kernels_z, kernels_s, groups, strata, n_permutations, generator)
    if method == "permutation":
        decision = one_window(found.by_value[:, 0], found.constant[0], alpha, n)
    else:
        decision = both_statistics(found.by_value, found.pooled, found.constant, factors, alpha, n)
    return exact_hsic(decision, z, s, kernel_z, kernel_s, groups), factors if method == "aggregated" else None


def within_kernel(kernel: Kernel | None, x: Tensor, groups: list[Tensor]) -> tuple[Tensor, Kernel]:
    """Return the rows and their kernel; for ``None`` the rows minus the mean of their group, with a Gaussian kernel.

    Shifting a group changes nothing within it. The pooled statistic compares rows of different groups, and finds what
    they have in common if they lie at the same place.
    """
    if kernel is not None:
        return x, kernel
    x = x.clone()
    rounding = 1e-12 * x.abs().amax(0)
    for rows in groups:
        x[rows] -= x[rows].mean(0)
    x = torch.where(x.abs() <= rounding, 0.0, x)
    return x, Gaussian(median_distance(x, max_points=None if len(x) <= SMALL_ROWS else BASE_ROWS))


def group_strata(groups: list[Tensor], n: int, clusters: list[Tensor] | None) -> list[Tensor]:
    """Return the rows that may be exchanged, ``(count, size)`` each: those of one group, or its clusters of one size.

    In a large sample the rows that give the bandwidths are exchanged among themselves only: the kernel on S is then the
    same for each permutation, which the exact level needs.
    """
    code = torch.empty(n, dtype=torch.long)
    for g, rows in enumerate(groups):
        code[rows] = g
    if n > SMALL_ROWS and clusters is None:
        code = 2 * code
        code[spaced_rows(n, BASE_ROWS)] += 1
    strata = []
    for rows in [torch.arange(n).unsqueeze(-1)] if clusters is None else clusters:
        if bool((code[rows] != code[rows[:, :1]]).any()):
            raise ValueError(
                "given varies within a cluster: whole clusters are exchanged between rows of equal given. Average each "
                "cluster, or leave clusters out."
            )
        first = code[rows[:, 0]]
        strata += [part for value in first.unique().tolist() if len(part := rows[first == value]) > 1]
    if not strata:
        raise ValueError("given has no group with two rows to exchange: use fewer groups.")
    return strata


def fitted_moments(
    z: Tensor, s: Tensor, kernel_z: Kernel, kernel_s: Kernel, groups: list[Tensor], method: str
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return Σ n_g HSIC_g, and mean, variance and gamma shape of its null distribution by the fits of the groups.

    The groups are independent, so their cumulants add up. Groups with fewer than six rows are left out.
    """
    moments = []
    for rows in groups:
        if len(rows) < 6:
            continue
        rows = rows.to(z.device)
        n = len(rows)
        sums = pair_sums(z[rows], s[rows], kernel_z, kernel_s, method=method)
        if bool(sums.k.constant | sums.l.constant):
            continue
        mean, variance, shape = sums.fitted(method)
        third = 2.0 * variance**1.5 / shape.sqrt()
        moments.append(torch.stack([sums.product.clamp_min(0.0) / n, mean, variance, third]))
    if not moments:
        return tuple(z.new_zeros(4).unbind())  # type: ignore[return-value]
    statistic, mean, variance, third = torch.stack(moments).sum(0).unbind()
    # A gamma distribution with shape a has skewness 2/√a.
    return statistic, mean, variance, 4.0 * variance**3 / third**2
