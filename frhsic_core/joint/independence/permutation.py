"""Permutation tests: n·HSIC_b under many orders of the rows of S, and the rank of the observed value among them.

The *aggregated* test looks at several bandwidths with one set of permutations. A test at the median bandwidth sees
dependence at one scale only. Here every *window* has the bandwidths of Z and S multiplied by one factor, and the
statistic is the largest of the windows' standardized statistics.

Why the level is exact for every n, kernel and distribution of i.i.d. rows:

1. Let T_b be the vector of the windows' statistics after the permutation π_b of S; π_0 is the identity, the others are
   drawn from a group of permutations. Under independence (Z, S) and (Z, π(S)) have the same distribution, so the order
   of T_0, …, T_B is exchangeable (the group is closed under composition; Hemerik and Goeman, 2018).
2. The median bandwidth does not change when S is permuted. Mean and standard deviation of each window are taken over
   all of T_0, …, T_B and do not depend on their order either, so the maxima A_0, …, A_B are exchangeable as well.
3. Hence #{b : A_b ≥ A_0} is stochastically at least uniform on 1, …, B + 1, and P(p ≤ α) ≤ ⌊α(B + 1)⌋/(B + 1) ≤ α.
   Ties are counted against rejection.

The same argument holds when "row" is replaced by "bin" or by "cluster", and when Z or S is first replaced by features
that do not depend on the order of the rows.

For Z ⟂ S | C with a discrete C, S is exchanged among rows of equal C: given C, the rows of one group are i.i.d. and
Z ⟂ S within it. Group means do not change under such an exchange, so centering within groups comes first. There are
then two statistics. *By value* of C is Σ_c P(C = c) HSIC(Z, S | C = c), which is zero only under conditional
independence. *Pooled* is ‖E[R ⊗ Q]‖² with R = φ(Z) − E[φ(Z)|C] and Q = ψ(S) − E[ψ(S)|C]. It adds up what the values of
C have in common, and finds a weak dependence that is alike for many of them. The aggregated test uses both.

Up to ``SMALL_ROWS`` rows are permuted one by one. Larger samples are put into bins, and whole bins are permuted (*cheap
permutations*, Domingo-Enrich, Dwivedi and Mackey, 2025). With features K̃ = FFᵀ the products of all pairs of bins are
computed in one pass over the rows. Every permutation is then a sum of a few of them, in O(n) time altogether.

One column is first put into at most ``CELLS`` cells with equally many rows, and each row gets the mean of its cell; up
to ``CELLS`` distinct values stay as they are. A feature is then a number for each cell, and the features of a million
rows are looked up in a small table. Cells depend on the values alone and not on their order, so a permutation test of
the rounded column is as exact as one of the column itself. Several columns have no cells: their features are kernel
values at a few landmark rows. The kernels are those of all windows of bandwidths. A pivoted Cholesky decomposition of
their sum gives one common basis, in which each kernel has a small matrix: what is summed over rows is summed once for
all windows.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from frhsic_core._arrays import spaced_rows
from frhsic_core.backend import Draws, TorchDraws, xp
from frhsic_core.joint.engines import WITHOUT_PAIRS, solve
from frhsic_core.joint.factors import pivoted_cholesky
from frhsic_core.joint.hsic import hsic
from frhsic_core.joint.independence.fits import only_rounding
from frhsic_core.joint.problem import Problem
from frhsic_core.kernels import Gaussian, Kernel, median_distance, with_bandwidths

if TYPE_CHECKING:
    from torch import Tensor

FACTORS = (4.0, 2.0, 1.0, 0.5, 0.25, 0.125)
# Above this many rows bins are permuted instead of rows: the same power at a small part of the cost.
SMALL_ROWS = 512
# Up to this many rows, all pairs are compared for the exact HSIC beside the statistic of the features.
EXACT_ROWS = 2**13
_TIE = 1e-6  # of a standard deviation
# Fewer rows, or a larger rank: looking up the entries of a matrix is as fast as a product of its factors.
_FACTOR_ROWS, _FACTOR_RANK = 128, 160
_FACTOR_SHARE = 1e-9  # share of the trace that the factors leave out
_CHUNK = 2**22  # numbers held at once: 32 MB
_FEATURE_ROWS = 2**14  # rows whose features are held at once
_INDEXED = {
    "cuda": 2**26,
    "cpu": 2**17,
}  # the same for indexed matrices: what the cache of a CPU can hold
# All rows are in so many bins: one set of bins that change places, or four sets where comparing all pairs is too much.
BINS = 32
_FEW_BINS = 8
_PAIRS = 2**27  # numbers of products of features that may be computed for each bin
CELLS = 1024
LANDMARKS = 512  # features of a sample with several columns, at most
BASE_ROWS = 1000  # rows among which landmarks are chosen; they also give the default bandwidths
SHARE = 1e-6  # share of the variance of the features that a test of many rows does without


@dataclass(frozen=True)
class Request:
    """What a user asks of a test; ``clusters`` are labels ``(n,)``."""

    method: str
    n_permutations: int
    draws: Draws | TorchDraws
    alpha: float
    clusters: np.ndarray | None


# Several bandwidths -------------------------------------------------------------------------------------------------


def scaled(kernel: Kernel, factors: tuple[float, ...]) -> list[Kernel]:
    """Return the kernel with its bandwidths multiplied by each factor; one without a bandwidth stays as it is.

    Examples
    --------
    >>> scaled(Gaussian(2.0), (1.0, 0.5))
    [Gaussian(bandwidth=2.0), Gaussian(bandwidth=1.0)]
    """
    return [with_bandwidths(kernel, partial(operator.mul, factor)) for factor in factors]


def windows(
    method: str, among: tuple[float, ...], *kernels: Kernel
) -> tuple[tuple[float, ...], list[list[Kernel]]]:
    """Return the multiples of bandwidths that a test tries, one if no kernel has a bandwidth, and the kernels there."""
    has_bandwidth = any(
        with_bandwidths(kernel, lambda bandwidth: bandwidth) is not kernel for kernel in kernels
    )
    factors = among if method == "aggregated" and has_bandwidth else (1.0,)
    return factors, [scaled(kernel, factors) for kernel in kernels]


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
    x = xp.where(x.abs() <= rounding, 0.0, x)
    return x, Gaussian(median_distance(x, max_points=None if len(x) <= SMALL_ROWS else BASE_ROWS))


# Features of many rows -----------------------------------------------------------------------------------------------


def cells(x: Tensor) -> tuple[Tensor, Tensor] | None:
    """Return the means of the cells, ``(m, d)``, and the cell of each row, or ``None`` if several columns vary.

    Examples
    --------
    >>> import torch
    >>> cells(torch.tensor([[5.0], [7.0], [5.0]]))
    (tensor([[5.],
            [7.]]), tensor([0, 1, 0]))
    """
    varies = (x != x[:1]).any(0).nonzero().flatten()
    if len(varies) > 1:
        return None
    column = int(varies[0]) if len(varies) else 0
    values, index, counts = xp.unique(x[:, column], return_inverse=True, return_counts=True)
    if len(values) > CELLS:
        middle = counts.cumsum(0) - 0.5 * counts
        _, cell = xp.unique((middle * (CELLS / len(x))).long(), return_inverse=True)
        total = x.new_zeros(int(cell[-1]) + 1)
        mass = total.index_add(0, cell, counts.to(x))
        values = total.index_add(0, cell, values * counts) / mass
        index = cell[index]
    base = x[:1].repeat(len(values), 1)
    base[:, column] = values
    return base, index


class JointFeatures:
    """Features of the rows of one sample in a common basis of several kernels.

    Parameters
    ----------
    kernels : sequence of callable
        The kernels.
    x : Tensor
        ``(n, d)``, the sample.
    share : float
        Share of the variance that may be left out.

    Attributes
    ----------
    rank : int
        Number of functions in the basis.
    maps : list of Tensor
        ``(rank, rank of the kernel)``: from the basis to the features of each kernel.
    constant : Tensor
        ``(kernels,)``: whether nothing but rounding is left of a kernel after centering.
    """

    def __init__(
        self, kernels: Sequence[Callable[..., Tensor]], x: Tensor, *, share: float = SHARE
    ) -> None:
        self.kernels = kernels
        self.x = x
        base, self.index = _base_of(x)
        weight = self._weight_of(base)
        grams = xp.stack([kernel(base) for kernel in kernels])
        mean = grams @ weight
        spread = grams.diagonal(dim1=-2, dim2=-1) @ weight - mean @ weight
        self.constant = only_rounding(spread, grams.abs().amax((-2, -1)), len(x))
        if self.index is not None:  # features of other rows need the kernel itself
            mean = mean - 0.5 * (mean @ weight).unsqueeze(-1)
            grams.sub_(mean.unsqueeze(-1)).sub_(mean.unsqueeze(-2))
        # Each kernel counts with its variance, and a constant one not at all.
        variance = grams.diagonal(dim1=-2, dim2=-1) @ weight
        self.units = xp.where(self.constant, 0.0, 1.0 / variance)
        total = xp.tensordot(self.units, grams, 1)
        basis = self._orthonormal(base, total, weight, share)
        self.maps = [_map_to_features(gram, basis, weight, share) for gram in grams]
        self.tables = [basis @ change for change in self.maps]
        self.tables.append(basis)

    def _weight_of(self, base: Tensor) -> Tensor:
        """Return the share of the rows in each cell, or equal weights for some rows of the sample."""
        counts = xp.ones_like(base[:, 0])
        if self.index is not None:
            counts = xp.bincount(self.index).to(self.x)  # no cell is empty
        return counts / counts.sum()

    def _orthonormal(self, base: Tensor, total: Tensor, weight: Tensor, share: float) -> Tensor:
        """Choose landmarks by a decomposition of the sum of the kernels; return their orthonormal functions."""
        most = LANDMARKS
        if self.index is not None and self.x.shape[1] == 1:
            most = len(base)
        columns, pivots, _ = pivoted_cholesky(total, share=share, most=most, weight=weight)
        self.rank = len(pivots)
        self.landmarks = base[pivots]
        self.lower = columns[pivots]
        self.inverse = xp.inv(xp.triangle(columns * weight.sqrt().unsqueeze(-1)))
        return columns @ self.inverse

    def __call__(self, rows: Tensor, kernel: int | None = None) -> Tensor:
        """Return the basis at these rows, ``(rows, rank)``, or the features of one kernel."""
        if self.index is not None:
            table = self.tables[-1] if kernel is None else self.tables[kernel]
            return table[self.index[rows]]
        x = self.x[rows]
        values = x.new_zeros(())
        for unit, own in zip(self.units, self.kernels, strict=True):
            values = values + unit * own(x, self.landmarks)
        basis = xp.solve_triangular(self.lower, values.mT, upper=False).mT @ self.inverse
        if kernel is None:
            return basis
        return basis @ self.maps[kernel]


def _base_of(x: Tensor) -> tuple[Tensor, Tensor | None]:
    """Return the points whose kernel values describe a sample, and the point of each row.

    Few rows are their own points, and the rows of one column are those of its cells. Of several
    columns these are some of the rows: the other rows have no point, and the second is ``None``.
    """
    if len(x) <= CELLS:
        return x, xp.arange(len(x), like=x)
    found = cells(x)
    if found is None:
        return x[spaced_rows(len(x), BASE_ROWS, like=x)], None
    return found


def _map_to_features(gram: Tensor, basis: Tensor, weight: Tensor, share: float) -> Tensor:
    """Return the matrix from the common basis to the features of one kernel."""
    weighted = weight.unsqueeze(-1) * basis
    values, vectors = xp.eigh(weighted.mT @ gram @ weighted)
    kept = values.clamp_min(0.0).cumsum(0) > 0.1 * share * values.sum()
    return vectors[:, kept] * values[kept].sqrt()


# Orders of the rows --------------------------------------------------------------------------------------------------


def group_strata(
    groups: list[Tensor], n: int, clusters: np.ndarray | None, *, like: Tensor
) -> list[Tensor]:
    """Return the rows that may be exchanged, ``(count, size)`` each, beside ``like``.

    They are those of one group, or its clusters of one size. In a large sample the rows that give
    the bandwidths are exchanged among themselves only: the kernel on S is then the same for each
    permutation, which the exact level needs.
    """
    code = np.empty(n, dtype=np.int64)
    for g, rows in enumerate(groups):
        code[np.asarray(rows.cpu())] = g
    if n > SMALL_ROWS and clusters is None:
        code = 2 * code
        code[np.asarray(spaced_rows(n, BASE_ROWS))] += 1 if len(groups) > 1 else -1
    labels = np.arange(n) if clusters is None else clusters
    _, inverse, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    by_cluster = np.argsort(inverse, kind="stable")
    starts = np.cumsum(sizes) - sizes
    strata = []
    for size in np.unique(sizes):
        first = starts[sizes == size][:, np.newaxis]
        members = by_cluster[first + np.arange(size)]
        own = code[members]
        if len(members) > 1 and bool((own != own[:, :1]).any()):
            raise ValueError(
                "given varies within a cluster: whole clusters are exchanged between rows of equal "
                "given. Average each cluster, or leave clusters out."
            )
        for value in np.unique(own[:, 0]):
            part = members[own[:, 0] == value]
            if len(part) > 1:
                strata.append(xp.as_tensor(part, like=like))
    if not strata and clusters is not None:
        raise ValueError(
            "clusters has no two clusters of one size and equal given: there is nothing to "
            "exchange."
        )
    if not strata:
        raise ValueError("given has no group with two rows to exchange: use fewer groups.")
    return strata


def random_orders(
    count: int, n: int, draws: Draws | TorchDraws, strata: list[Tensor] | None = None, *, like: Any
) -> Tensor:
    """Return the identity and random orders of n rows, ``(1 + count, n)``, beside ``like``.

    ``strata`` are indices ``(clusters, size)``: whole clusters of equal size change places, and the
    rows of each cluster keep their order. Rows outside them stay where they are. Without strata all
    rows change places.
    """
    order = xp.arange(n, like=like).repeat(1 + count, 1)
    if strata is None:
        strata = [xp.arange(n, like=like).unsqueeze(-1)]
    for rows in strata:
        keys = draws.uniform(count, len(rows))
        order[1:, rows.flatten()] = rows[keys.argsort(-1)].flatten(-2)
    return order


def bins_of(
    n: int, draws: Draws | TorchDraws, strata: list[Tensor], *, bins: int = BINS
) -> list[Tensor]:
    """Return sets of bins, indices ``(bins, rows)``; the bins of one set change places.

    Rows, or clusters, are assigned to bins at random: the subgroup of permutations must not depend
    on an order that the data may have, such as by age. The few rows that are left over stay where
    they are.
    """
    sets = []
    for stratum in strata:
        count = len(stratum)
        rows = stratum[draws.permutation(count)]
        own = min(bins, count)
        number = max(1, min(round(BINS / bins * rows.numel() / n), count // own))
        each = count // (own * number)
        used = rows[: number * own * each]
        sets += [part.reshape(own, -1) for part in used.split(own * each)]
    return sets


# The statistics of all orders ----------------------------------------------------------------------------------------


def within_groups(grams: Tensor, groups: list[Tensor]) -> Tensor:
    """Return Gram matrices ``(..., n, n)`` centered by the means of the groups."""
    member = grams.new_zeros(grams.shape[-1], len(groups))
    for g, rows in enumerate(groups):
        member[rows, g] = 1.0
    mean = member / member.sum(0)
    rows = member @ (mean.mT @ grams)
    return grams - rows - rows.mT + (rows @ mean) @ member.mT


def row_statistics(
    k: Tensor, l: Tensor, groups: list[Tensor], order: Tensor
) -> tuple[Tensor, Tensor]:
    """Return both statistics for orders ``(count, n)`` from Gram matrices ``(windows, n, n)`` centered within groups.

    Two columns of scores and ages have a rank of a few tens in most windows, and a product of factors is then many
    times faster than looking up n² entries.
    """
    n = k.shape[-1]
    by_value, pooled = k.new_zeros(2, len(order), len(k)).unbind()

    def factor(gram: Tensor) -> Tensor | None:
        columns, _, enough = pivoted_cholesky(
            gram, share=_FACTOR_SHARE, most=min(_FACTOR_RANK, n // 2)
        )
        return columns if enough else None

    full = []
    for w in range(len(k)):
        own = factor(k[w]) if n >= _FACTOR_ROWS else None
        other = None if own is None else factor(l[w])
        if own is None or other is None:
            full.append(w)
            continue
        chunk = max(1, _CHUNK // (other.shape[-1] * n + 1))
        for start in range(0, len(order), chunk):
            part = order[start : start + chunk]
            moved = other[part.mT]  # (n, count, rank)
            total: Any = 0.0
            for rows in groups:
                cross = own[rows].mT @ (moved if len(rows) == n else moved[rows]).flatten(1)
                by_value[start : start + chunk, w] += _squares(cross, len(part)) / len(rows)
                total = total + cross
            pooled[start : start + chunk, w] = _squares(total, len(part)) / n
    if full:
        place = xp.arange(n, like=k)
        for rows in groups:
            place[rows] = xp.arange(len(rows), like=k)
            own, other = (gram[full][:, rows][:, :, rows] for gram in (k, l))
            by_value[:, full] += indexed_statistics(own, other, place[order[:, rows]])
        pooled[:, full] = (
            by_value[:, full] if len(groups) == 1 else indexed_statistics(k[full], l[full], order)
        )
    return by_value, pooled


def _squares(cross: Tensor, count: int) -> Tensor:
    """Return the sums of squares of ``count`` matrices that lie side by side."""
    return cross.square().sum(0).unflatten(0, (count, -1)).sum(-1)


def indexed_statistics(k: Tensor, l: Tensor, order: Tensor) -> Tensor:
    """Return n·HSIC_b for orders ``(count, n)`` and pairs of matrices ``(windows, n, n)``, as ``(count, windows)``.

    Both matrices are symmetric and ``k`` is centered, so the entries on and above the diagonal are enough. The windows
    of one pair of rows lie side by side in memory: one lookup for each pair of rows serves all of them.
    """
    n = k.shape[-1]
    row, column = xp.triu_indices(n, like=k)
    weight = xp.where(row == column, 1.0, 2.0).to(k) / n
    own = (k[:, row, column] * weight).mT.contiguous()
    table = l.flatten(1).mT.contiguous()
    chunk = max(1, _INDEXED.get(k.device.type, _INDEXED["cpu"]) // own.numel())
    parts = []
    for part in order.split(chunk):
        moved = table.index_select(0, (part[:, row] * n + part[:, column]).flatten())
        parts.append((moved.unflatten(0, (len(part), -1)) * own).sum(-2))
    return xp.cat(parts)


def bin_statistics(
    features_z: JointFeatures,
    features_s: JointFeatures,
    groups: list[Tensor],
    sets: list[Tensor],
    orders: list[Tensor],
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the statistics for orders ``(1 + B, bins)`` of the bins of each set, from features, and what is constant.

    With the cross-covariance Σ_g of the features in each group g of rows, *by value* is Σ_g n_g‖Σ_g‖² and *pooled* is
    ‖Σ_g n_g Σ_g‖²/n, ``(1 + B, windows)`` each. Both are n·HSIC_b if there is one group.

    The permutations of bins are a subgroup of all permutations, so the rank of the observed statistic has the exact
    level. All bins of a set lie in one group.
    """
    maps = list(zip(features_z.maps, features_s.maps, strict=True))
    n = sum(map(len, groups))
    which = 0 * xp.arange(n, like=groups[0]) - 1  # the set of each row; few rows have none
    for i, rows in enumerate(sets):
        which[rows.flatten()] = i
    by_value = features_z.x.new_zeros(len(orders[0]), len(maps))
    pooled: list[Any] = [0.0] * len(maps)
    # For few rows, whose features are at hand, the sums of every window cost less than a change of basis of all bins.
    at_hand = features_z.index is not None and features_s.index is not None
    direct = at_hand and n < BINS * max(features_z.rank, features_s.rank)
    for members in groups:
        found = which[members]
        own = [(sets[i], orders[i]) for i in found.unique().tolist() if i >= 0]
        bins = [members[found < 0].unsqueeze(0), *(rows for rows, _ in own)]
        basis = [] if direct else _bin_products(features_z, features_s, bins)
        for w, (map_z, map_s) in enumerate(maps):
            tables = (
                _bin_products(partial(features_z, kernel=w), partial(features_s, kernel=w), bins)
                if direct
                else basis
            )
            mapped = (
                table if direct else map_z.mT @ table @ map_s for table in tables
            )  # held one at a time
            cross = next(mapped).flatten().expand(len(by_value), -1)
            for (rows, order), table in zip(own, mapped, strict=True):
                # Bin b of Z meets bin π(b) of S.
                place = order + len(rows) * xp.arange(len(rows), like=order)
                cross = cross + xp.sum_of_rows(table.flatten(2).flatten(0, 1), place)
            by_value[:, w] += cross.square().sum(-1) / len(members)
            pooled[w] = pooled[w] + cross
    constant = features_z.constant | features_s.constant
    for x in (features_z.x, features_s.x):
        constant = constant | all(bool((x[rows] == x[rows[:1]]).all()) for rows in groups)
    together = [cross.square().sum(-1) / n for cross in pooled]
    return by_value, xp.stack(together, -1), constant


def _bin_products(
    features_z: Callable[[Tensor], Tensor],
    features_s: Callable[[Tensor], Tensor],
    sets: list[Tensor],
) -> list[Tensor]:
    """Return Σ φψᵀ for all pairs of bins of each set ``(bins, rows)``, as ``(bins, bins, rank, rank)``.

    The first set is one bin, and the product of the means of all rows is subtracted from its sum.
    """
    one = xp.cat([bins.flatten()[:1] for bins in sets])[
        :1
    ]  # not every kernel takes a sample without rows
    sums = [xp.zeros_like(features(one)[0]) for features in (features_z, features_s)]
    tables = []
    for bins in sets:
        count = len(bins)
        table = sums[0].new_zeros(count * len(sums[0]), count * len(sums[1]))
        for part in bins.split(max(1, _FEATURE_ROWS // count), dim=1) if bins.numel() else ():
            both = [features(part.mT.flatten()) for features in (features_z, features_s)]
            sums = [total + rows.sum(0) for total, rows in zip(sums, both, strict=True)]
            table.addmm_(both[0].reshape(part.shape[1], -1).mT, both[1].reshape(part.shape[1], -1))
        tables.append(table.unflatten(1, (count, -1)).unflatten(0, (count, -1)).transpose(1, 2))
    tables[0] = tables[0] - xp.outer(*sums) / sum(bins.numel() for bins in sets)
    return tables


# The decision --------------------------------------------------------------------------------------------------------


def decide(
    value: Tensor, statistic: Tensor, pvalue: Tensor, threshold: Tensor, constant: Tensor
) -> Tensor:
    """Return HSIC, statistic, threshold and p-value of one sample, ``(4,)``; 0, 0, 0 and 1 for a constant argument."""
    found = xp.stack([value, statistic, threshold, pvalue])
    return xp.where(constant, found.new_tensor([0.0, 0.0, 0.0, 1.0]), found)


def ranked(
    by_value: Tensor,
    pooled: Tensor,
    constant: Tensor,
    factors: tuple[float, ...],
    request: Request,
    n: int,
) -> Tensor:
    """Return the test from two tables ``(1 + B, windows)``; their first row belongs to the sample, the others do not.

    ``constant`` ``(windows,)`` says where nothing varies. The statistic of the aggregated test is the largest
    standardized value of a row, and that of the permutation test, which has one window, is its value. The p-value is
    (1 + #{T_π ≥ least})/(1 + B), with ``least`` a little below the observed statistic: equal statistics (discrete
    attributes) must count as equal whatever the order of summation.
    """
    values = by_value[:, 0]
    if request.method == "permutation":
        least = values[0] * (1.0 - 1e-7)
    else:
        values = standardized(
            xp.where(constant.repeat(2), 0.0, xp.cat([by_value, pooled], -1))
        ).amax(-1)
        least = values[0] - _TIE
    null = values[1:]
    pvalue = (1.0 + (null >= least).sum().double()) / (1.0 + len(null))
    # p ≤ α exactly when the statistic exceeds the m-th largest permuted one, m = ⌊α(B + 1)⌋.
    m = int(request.alpha * (len(null) + 1) * (1 + 1e-12))
    threshold = null.topk(m).values[-1] if m else xp.full_like(least, math.inf)
    return decide(by_value[0, factors.index(1.0)] / n, values[0], pvalue, threshold, constant.all())


def permutation_test(
    z: Tensor,
    s: Tensor,
    kernel_z: Kernel,
    kernel_s: Kernel,
    groups: list[Tensor],
    strata: list[Tensor],
    request: Request,
) -> Tensor:
    """Return the permutation or aggregated test of one sample ``(n, d)`` and ``(n, p)`` in float64.

    O(Bn²) time at most up to 512 rows. Above, the statistics take O(n) time, and Σ_g (n_g/n) HSIC_b of the groups
    O(n r²) for Gram matrices of small rank r. For others it takes O(n²), and with a group of more than ``EXACT_ROWS``
    rows ``hsic`` is that of the features.

    Parameters
    ----------
    z, s : Tensor
        The sample.
    kernel_z, kernel_s : Kernel
        The kernels, whose bandwidths the aggregated test multiplies by several factors.
    groups : list of Tensor
        The rows of each group.
    strata : list of Tensor
        What changes places, as in :func:`random_orders`; each stratum lies in one group.
    request : Request
        The method, the number of permutations and their source.
    """
    n = len(z)
    n_permutations = request.n_permutations
    draws = request.draws
    factors, kernels_of_both = windows(request.method, FACTORS, kernel_z, kernel_s)
    sides = list(zip(kernels_of_both, (z, s), strict=True))
    groups = [rows.to(z.device) for rows in groups]
    if n <= SMALL_ROWS:
        order = random_orders(n_permutations, n, draws, strata, like=z)
        grams = [xp.stack([kernel(x) for kernel in kernels]) for kernels, x in sides]
        k, l = (within_groups(gram, groups) for gram in grams)
        constant = z.new_zeros(len(factors)) > 0
        for gram, centered in zip(grams, (k, l), strict=True):
            spread = centered.diagonal(dim1=-2, dim2=-1).mean(-1)
            constant |= only_rounding(spread, gram.abs().amax((-2, -1)), n)
        by_value, pooled = (values.clamp_min(0.0) for values in row_statistics(k, l, groups, order))
        return ranked(by_value, pooled, constant, factors, request, n)
    features_z, features_s = (JointFeatures(kernels, x) for kernels, x in sides)
    bins = BINS if n * features_z.rank * features_s.rank <= _PAIRS else _FEW_BINS
    sets = [rows.to(z.device) for rows in bins_of(n, draws, strata, bins=bins)]
    orders = [random_orders(n_permutations, len(rows), draws, like=z) for rows in sets]
    found = ranked(
        *bin_statistics(features_z, features_s, groups, sets, orders), factors, request, n
    )
    total = xp.zeros_like(found[0])
    for rows in groups:
        value: Tensor | None
        if len(rows) <= EXACT_ROWS:
            value = hsic(z[rows], s[rows], kernel_z=kernel_z, kernel_s=kernel_s)
        else:
            value = solve(Problem(z[rows], s[rows], kernel_z, kernel_s), WITHOUT_PAIRS)
        if value is None:
            return found
        total += len(rows) / n * value
    found[0] = total.clamp_min(0.0)
    return found


def standardized(values: Tensor) -> Tensor:
    """Return the cube roots of ``(1 + B, windows)`` statistics with mean 0 and variance 1 in each window.

    The null distribution of a wide window is skewed like χ²₁ and that of a narrow one is almost normal. Without a
    transformation the wide windows decide the maximum. The cube root of a gamma variable is nearly normal for every
    shape (Wilson and Hilferty, 1931). A window in which nothing changes is zero everywhere.
    """
    root = values.pow(1.0 / 3.0)
    mean = root.mean(0)
    deviation = root.std(0, correction=0)
    alive = deviation > _TIE * mean
    return xp.where(alive, (root - mean) / xp.where(alive, deviation, 1.0), 0.0)
