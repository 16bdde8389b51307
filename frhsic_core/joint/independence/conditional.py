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

from frhsic_core.joint.given import Features, Given, spaced_rows
from frhsic_core.joint.independence.fits import dense_sums, fitted_gamma, pair_sums
from frhsic_core.joint.independence.permutation import (
    INDEXED_ROWS,
    Aggregate,
    Windows,
    bin_orders,
    bins_of,
    checked,
    factors_of,
    feature_statistics,
    largest_score,
    random_orders,
    relative_rank_test,
    scaled,
    window_statistics,
)
from frhsic_core.joint.independence.residual import residual_test
from frhsic_core.kernels import Gaussian, Kernel, median_distance

# Above INDEXED_ROWS a kernel is replaced by its features at this many landmark rows: linear in n.
LANDMARKS = 64


def conditional_test(
    z: Tensor,
    s: Tensor,
    given: Given,
    kernel_z: Kernel | None,
    kernel_s: Kernel | None,
    *,
    method: str,
    n_permutations: int,
    generator: torch.Generator,
    alpha: float,
    clusters: list[Tensor] | None,
) -> tuple[Aggregate, tuple[float, ...] | None]:
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
        return checked(statistic, pvalue, threshold, constant, n), None
    factors = factors_of(kernel_z, kernel_s) if method == "aggregated" else (1.0,)
    windows = (Windows(kernel_z, factors), Windows(kernel_s, factors))
    draw = (n_permutations, generator)
    by_value, pooled, constant = group_statistics(z, s, *windows, groups, strata, *draw, pool=method == "aggregated")
    if method == "permutation":
        pvalue, threshold = relative_rank_test(by_value[0, 0], by_value[1:, 0], alpha)
        return checked(by_value[0, 0], pvalue, threshold, constant[0], n), None
    observed = by_value[0, factors.index(1.0)] / n
    found = largest_score(torch.cat([by_value, pooled], -1), constant.repeat(2), alpha, observed=observed)
    return found._replace(windows=found.windows.unflatten(-1, (2, -1)).amin(-2)), factors


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
    chosen = x if len(x) <= INDEXED_ROWS else x[spaced_rows(len(x), LANDMARKS).to(x.device)]
    return x, Gaussian(median_distance(chosen, max_points=None))


def group_strata(groups: list[Tensor], n: int, clusters: list[Tensor] | None) -> list[Tensor]:
    """Return the rows that may be exchanged, ``(count, size)`` each: those of one group, or its clusters of one size.

    In a large sample the landmark rows are exchanged among themselves only: the kernel on S is then the same for each
    permutation, which the exact level needs.
    """
    code = torch.empty(n, dtype=torch.long)
    for g, rows in enumerate(groups):
        code[rows] = g
    if n > INDEXED_ROWS and clusters is None:
        code = 2 * code
        code[spaced_rows(n, LANDMARKS)] += 1
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


def group_statistics(
    z: Tensor,
    s: Tensor,
    windows_z: Windows,
    windows_s: Windows,
    groups: list[Tensor],
    strata: list[Tensor],
    n_permutations: int,
    generator: torch.Generator,
    *,
    pool: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return n times both statistics of the sample and of B permutations within groups, each ``(1 + B, windows)``.

    The third tensor, ``(windows,)``, says where Z or S does not vary within any group.

    Up to 1,024 rows from Gram matrices, O(Bn²). Above, from features F(x) = k(x, X_m)·k(X_m, X_m)^(−1/2) at 64
    landmark rows: the cross-covariances of all pairs of bins of rows that may change places are computed in one pass,
    O(n), and each permutation is a sum of them.
    """
    if len(z) <= INDEXED_ROWS:
        order = random_orders((1, n_permutations, len(z)), generator, strata)[0].to(z.device)
        order = torch.cat([torch.arange(len(z), device=z.device).unsqueeze(0), order])
        k, l = windows_z(z), windows_s(s)
        k_centered, l_centered = _within_groups(k, groups), _within_groups(l, groups)
        constant = dense_sums(k, k_centered).constant | dense_sums(l, l_centered).constant
        by_value = z.new_zeros(len(order), len(k))
        place = torch.empty(len(z), dtype=torch.long, device=z.device)
        for rows in groups:
            rows = rows.to(z.device)
            place[rows] = torch.arange(len(rows), device=z.device)
            own = [gram[:, rows][:, :, rows] for gram in (k_centered, l_centered)]
            by_value += window_statistics(own[0], own[1], place[order[:, rows]])
        pooled = window_statistics(k_centered, l_centered, order) if pool else by_value[:, :0]
        return by_value.clamp_min(0.0), pooled.clamp_min(0.0), constant
    sets = bins_of(len(z), generator, strata)
    orders = [bin_orders(len(rows), n_permutations, generator).to(z.device) for rows in sets]
    everything = [rows.to(z.device) for rows in groups]
    found = [
        feature_statistics(
            Features(scaled(windows_z.kernel, factor), z, LANDMARKS),
            Features(scaled(windows_s.kernel, factor), s, LANDMARKS),
            everything,
            [rows.to(z.device) for rows in sets],
            orders,
        )
        for factor in windows_z.factors
    ]
    by_value, pooled, constant = (torch.stack(part, -1) for part in zip(*found, strict=True))
    return by_value, pooled, constant


def _within_groups(grams: Tensor, groups: list[Tensor]) -> Tensor:
    """Return Gram matrices centered by the means of the groups."""
    member = grams.new_zeros(grams.shape[-1], len(groups))
    for g, rows in enumerate(groups):
        member[rows, g] = 1.0
    mean = member / member.sum(0)
    rows = member @ (mean.mT @ grams)  # group means, O(n²) for each group
    return grams - rows - rows.mT + (rows @ mean) @ member.mT


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
