"""What a test of Z ⟂ S | C needs for a discrete C: rows that may be exchanged, and kernels within groups.

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

from frhsic_core.joint.given import spaced_rows
from frhsic_core.joint.independence.features import BASE_ROWS
from frhsic_core.joint.independence.permutation import SMALL_ROWS
from frhsic_core.kernels import Gaussian, Kernel, median_distance


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
