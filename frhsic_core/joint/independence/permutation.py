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

The same argument holds when "row" is replaced by "bin" or by "cluster".

Small samples are permuted row by row. Large ones are put into bins, and whole bins are permuted (*cheap permutations*,
Domingo-Enrich, Dwivedi and Mackey, 2025). With thin matrices, K̃ = Φ̃Φ̃ᵀ, the cross-covariances of all pairs of bins are
computed in one pass over the rows; every permutation is then a sum of a few of them, in O(n) time altogether. Where a
rank is too large, the inner products of all pairs of blocks of the Gram matrices take their place, in O(n²) time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag, one_hot

from frhsic_core.joint.contraction import center
from frhsic_core.joint.factors import ThinPair, thin_factors
from frhsic_core.joint.independence.fits import dense_sums
from frhsic_core.kernels import Gaussian, Kernel, Laplacian, Product

# Powers of two: a Gaussian Gram matrix at half the bandwidth is the fourth power of the matrix.
FACTORS = (4.0, 2.0, 1.0, 0.5, 0.25, 0.125)
# Above this many rows bins are permuted instead of rows: the same power at a small part of the cost.
INDEXED_ROWS = 1024
_TIE = 1e-6  # of a standard deviation
_FACTOR_ROWS, _FACTOR_RANK = 128, 160  # fewer rows, or a larger rank: looking up entries is as fast as factors
_CHUNK = 2**22  # numbers held at once: 32 MB
_FEATURE_ROWS = 2**14  # rows whose features are held at once
NEGLIGIBLE = 1e-12  # share of the variance of the features that a test does without
_INDEXED = {"cuda": 2**26, "cpu": 2**17}  # the same for indexed matrices: what the cache of a CPU can hold
# Bins of one group change places. All pairs of blocks of two groups are compared, (BINS²)² products for each pair.
BINS = 8
GROUPS = 4
# Entries of a stack of Gram blocks held at once; about six such stacks exist at a time.
_ENTRIES = {"cuda": 2**25, "cpu": 2**19}


RowFeatures = Callable[[Tensor], Tensor]
"""``rows -> (rows, features)``: features of some rows of a sample."""


# Several bandwidths -------------------------------------------------------------------------------------------------


def scaled(kernel: Kernel, factor: float) -> Kernel:
    """Return the kernel with its bandwidths multiplied by ``factor``; one without a bandwidth is returned unchanged.

    Examples
    --------
    >>> scaled(Gaussian(2.0), 0.5)
    Gaussian(bandwidth=1.0)
    """
    if isinstance(kernel, Product):
        return Product([scaled(part, factor) for part in kernel.factors])
    bandwidth = getattr(kernel, "bandwidth", None)
    return kernel if bandwidth is None else type(kernel)(bandwidth * factor)  # type: ignore[call-arg]


def has_bandwidth(kernel: Kernel) -> bool:
    """Return whether :func:`scaled` changes the kernel."""
    if isinstance(kernel, Product):
        return any(map(has_bandwidth, kernel.factors))
    return getattr(kernel, "bandwidth", None) is not None


@dataclass(frozen=True)
class Windows:
    """A kernel at several multiples of its bandwidth; the Gram matrices are stacked, ``(windows, n, m)``."""

    kernel: Kernel
    factors: tuple[float, ...]

    def __call__(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        octaves = all(b == 0.5 * a for a, b in zip(self.factors, self.factors[1:], strict=False))
        gram = scaled(self.kernel, self.factors[0])(x, y)
        if not has_bandwidth(self.kernel):
            return gram.expand(len(self.factors), *gram.shape)
        grams = gram.new_empty(len(self.factors), *gram.shape)
        grams[0] = gram
        for i, factor in enumerate(self.factors[1:], start=1):
            if octaves and isinstance(self.kernel, Gaussian):
                torch.square(grams[i - 1], out=grams[i]).square_()
            elif octaves and isinstance(self.kernel, Laplacian):
                torch.square(grams[i - 1], out=grams[i])
            else:
                grams[i] = scaled(self.kernel, factor)(x, y)
        return grams


# The rank of the observed statistic ----------------------------------------------------------------------------------


def rank_test(observed: Tensor, null: Tensor, alpha: float, *, least: Tensor) -> tuple[Tensor, Tensor]:
    """Return the p-value (1 + #{T_π ≥ least})/(1 + B) and the level-α critical value that it implies.

    Parameters
    ----------
    observed, null : Tensor
        ``(...)`` and ``(..., B)``.
    alpha : float
        Level.
    least : Tensor
        ``(...)``, a little below ``observed``: equal statistics (discrete attributes) must count as equal whatever the
        order of summation.
    """
    n_permutations = null.shape[-1]
    as_large = null >= least.unsqueeze(-1)
    pvalue = (1.0 + as_large.sum(-1, dtype=torch.float64)) / (1.0 + n_permutations)
    # p ≤ α exactly when the statistic exceeds the m-th largest permuted one, m = ⌊α(B + 1)⌋.
    m = int(alpha * (n_permutations + 1) * (1 + 1e-12))
    if m == 0:
        threshold = torch.full_like(observed, torch.inf)
    else:
        threshold = null.topk(m, -1).values[..., -1]
    return pvalue, threshold


def relative_rank_test(observed: Tensor, null: Tensor, alpha: float) -> tuple[Tensor, Tensor]:
    """Return :func:`rank_test` for non-negative statistics that are equal up to 1e-7 of their value."""
    return rank_test(observed, null, alpha, least=observed * (1.0 - 1e-7))


# Orders of the rows --------------------------------------------------------------------------------------------------


def random_orders(
    shape: tuple[int, int, int], generator: torch.Generator, strata: list[Tensor] | None = None
) -> Tensor:
    """Return random orders of n rows, ``(batch, count, n)``, on the device of the generator.

    ``strata`` are index tensors ``(clusters, size)``: whole clusters of equal size change places, and the rows of each
    cluster keep their order. Rows outside them stay where they are. Without strata all n! orders are equally likely.
    """
    batch, count, n = shape
    device = generator.device
    if strata is None:
        keys = torch.rand(batch, count, n, generator=generator, device=device, dtype=torch.float64)
        return keys.argsort(-1)
    order = torch.arange(n, device=device).repeat(batch, count, 1)
    for rows in strata:
        rows = rows.to(device)
        keys = torch.rand(batch, count, len(rows), generator=generator, device=device, dtype=torch.float64)
        order[..., rows.flatten()] = rows[keys.argsort(-1)].flatten(-2)
    return order


# Small samples: row by row -------------------------------------------------------------------------------------------


def permutation_null(
    k: Tensor,
    l: Tensor,
    n_permutations: int,
    generator: torch.Generator,
    alpha: float,
    strata: list[Tensor] | None = None,
    *,
    thin: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return the p-value (1 + #{T_π ≥ T})/(1 + B) and the level-α critical value that it implies.

    Permuting the rows of S leaves K as it is and permutes L. Indexing an n × n matrix by B permutations is slow. But
    Gram matrices of scalar attributes have a numerical rank r of a few tens, L = GGᵀ, and n²HSIC = ‖K^{1/2}G_π‖²_F: it
    is enough to permute n × r factors. Matrices of full rank are indexed.

    Parameters
    ----------
    k, l : Tensor
        Centered Gram matrices of one shape, ``(..., n, n)``; with ``thin`` their factors, ``(1, n, rank)``.
    n_permutations : int
        B; every batch element has its own B permutations.
    generator : torch.Generator
        Source of the permutations.
    alpha : float
        Level.
    strata : list of Tensor, optional
        Clusters that change places, as in :func:`random_orders`.
    thin : bool
        Whether factors are given instead of matrices.

    Examples
    --------
    >>> k = torch.eye(2, dtype=torch.float64) - 0.5
    >>> permutation_null(k, k, 19, torch.Generator().manual_seed(0), 0.05)[0].item()  # two rows: every order ties
    1.0
    """
    batch, n = (() if thin else k.shape[:-2]), k.shape[-2]
    k, l = (x.reshape(-1, n, x.shape[-1]) for x in (k, l))
    k_factor, l_factor = (k, l) if thin else (low_rank_factor(k), low_rank_factor(l))
    if l_factor is None and k_factor is not None:  # moving the rows of either side gives the same law
        k, l, k_factor, l_factor = l, k, l_factor, k_factor
    identity = torch.arange(n, device=k.device).expand(len(k), 1, n)
    observed = _permuted(k, l, k_factor, l_factor, identity)
    width = n * (n if l_factor is None else l_factor.shape[-1])
    chunk = max(1, _CHUNK // max(1, len(k) * width))
    draws = []
    for start in range(0, n_permutations, chunk):
        count = min(chunk, n_permutations - start)
        order = random_orders((len(k), count, n), generator, strata)
        draws.append(_permuted(k, l, k_factor, l_factor, order.to(k.device)))
    pvalue, threshold = relative_rank_test(observed.squeeze(-1), torch.cat(draws, -1), alpha)
    return pvalue.reshape(batch), threshold.reshape(batch)


def _permuted(k: Tensor, l: Tensor, k_factor: Tensor | None, l_factor: Tensor | None, order: Tensor) -> Tensor:
    """Return n·HSIC_b of K̃ with the rows of S in each ``order`` ``(batch, count, n)``, as ``(batch, count)``."""
    n, count = k.shape[-2], order.shape[1]
    batch = torch.arange(len(k), device=k.device)[:, None, None]
    if l_factor is None:
        moved = l[batch[..., None], order.unsqueeze(-1), order.unsqueeze(-2)]
        return (moved.flatten(-2) @ k.flatten(-2).unsqueeze(-1)).squeeze(-1) / n
    # All permuted factors side by side: one matrix product for each batch element.
    moved = l_factor[batch, order.mT].flatten(-2)
    if k_factor is not None:
        products = (k_factor.mT @ moved).square()
    else:
        products = (k @ moved) * moved
    return products.sum(-2).unflatten(-1, (count, -1)).sum(-1) / n


def low_rank_factor(gram: Tensor, *, most: int | None = None) -> Tensor | None:
    """Return the pivoted Cholesky factor G with at most n/2 columns, or ``None`` if 1e-12 of the trace is left."""
    n = gram.shape[-1]
    most = n // 2 if most is None else min(most, n // 2)
    residual = gram.diagonal(dim1=-2, dim2=-1).clone()
    small = 1e-12 * residual.sum(-1)
    columns = gram.new_zeros(len(gram), n, 0)
    batch = torch.arange(len(gram), device=gram.device)
    while bool((residual.clamp_min(0.0).sum(-1) > small).any()):
        if columns.shape[-1] >= most:
            return None
        best, pivot = residual.max(-1)
        column = gram[batch, :, pivot] - (columns @ columns[batch, pivot].unsqueeze(-1)).squeeze(-1)
        column = column / torch.where(best > 0, best, 1.0).sqrt().unsqueeze(-1) * (best > 0).unsqueeze(-1)
        columns = torch.cat([columns, column.unsqueeze(-1)], -1)
        residual = residual - column.square()
        residual[batch, pivot] = 0.0
    return columns


def indexed_statistics(k: Tensor, l: Tensor, order: Tensor) -> Tensor:
    """Return n·HSIC_b for orders ``(count, n)`` and pairs of matrices ``(windows, n, n)``, as ``(count, windows)``.

    Both matrices are symmetric and ``k`` is centered, so the entries on and above the diagonal are enough. The windows
    of one pair of rows lie side by side in memory: one lookup for each pair of rows serves all of them.
    """
    n = k.shape[-1]
    row, column = torch.triu_indices(n, n, device=k.device)
    weight = torch.where(row == column, 1.0, 2.0).to(k) / n
    own = (k[:, row, column] * weight).mT.contiguous()
    table = l.flatten(1).mT.contiguous()
    chunk = max(1, _INDEXED.get(k.device.type, _INDEXED["cpu"]) // own.numel())
    parts = []
    for part in order.split(chunk):
        moved = table.index_select(0, (part[:, row] * n + part[:, column]).flatten())
        parts.append((moved.unflatten(0, (len(part), -1)) * own).sum(-2))
    return torch.cat(parts)


def window_statistics(k: Tensor, l: Tensor, order: Tensor) -> Tensor:
    """Return :func:`indexed_statistics`, from factors in those windows whose matrices have a low rank.

    Two columns of scores and ages have a rank of a few tens in most windows, and a product of factors is then many
    times faster than looking up n² entries.
    """
    n = k.shape[-1]
    if n < _FACTOR_ROWS:
        return indexed_statistics(k, l, order)
    values = k.new_empty(len(order), len(k))
    full = []
    for i in range(len(k)):
        own, moved = (low_rank_factor(x[i : i + 1], most=_FACTOR_RANK) for x in (k, l))
        if own is None or moved is None:
            full.append(i)
            continue
        chunk = max(1, _CHUNK // (moved.shape[-1] * n + 1))
        parts = [_permuted(k[i : i + 1], l[i : i + 1], own, moved, part.unsqueeze(0)) for part in order.split(chunk)]
        values[:, i] = torch.cat(parts, -1)[0]
    if full:
        values[:, full] = indexed_statistics(k[full], l[full], order)
    return values


# Large samples: bins ------------------------------------------------------------------------------------------------


def bins_of(n: int, generator: torch.Generator, strata: list[Tensor] | None = None) -> list[Tensor]:
    """Return groups of bins, index tensors ``(bins, rows)`` that hold every row once.

    The bins of one group have equally many rows and change places; rows that are left over form a group of one bin,
    which stays. Rows, or clusters, are assigned to bins at random: the subgroup of permutations must not depend on an
    order that the data may have, such as by age.
    """
    strata = [torch.arange(n).unsqueeze(-1)] if strata is None else strata
    groups = []
    used = torch.zeros(n, dtype=torch.bool)
    for stratum in strata:
        rows = stratum.cpu()
        count = len(rows)
        rows = rows[torch.randperm(count, generator=generator, device=generator.device).cpu()]
        bins = min(BINS, count)
        number = max(1, min(round(GROUPS * rows.numel() / n), count // bins))
        each = count // (bins * number)
        for part in rows[: number * bins * each].split(bins * each):
            groups.append(part.reshape(bins, -1))
            used[part.flatten()] = True
    rest = (~used).nonzero().flatten()
    if len(rest):
        groups.append(rest.unsqueeze(0))
    return groups


def bin_statistics(
    z: Tensor,
    s: Tensor,
    windows_z: Windows,
    windows_s: Windows,
    n_permutations: int,
    generator: torch.Generator,
    strata: list[Tensor] | None = None,
) -> tuple[Tensor, Tensor]:
    """Return n·HSIC_b of the sample and of B permutations of bins, ``(1 + B, windows)``, and where one is constant.

    The rows are in ``GROUPS`` groups of ``BINS`` bins, and the bins of each group are permuted. The permutations of
    bins are a subgroup of all permutations, so the rank of the observed statistic has the exact level.
    """
    sets = [rows.to(z.device) for rows in bins_of(len(z), generator, strata)]
    orders = [bin_orders(len(rows), n_permutations, generator).to(z.device) for rows in sets]
    everything = [torch.arange(len(z), device=z.device)]
    found: dict[float, tuple[Tensor, Tensor]] = {}
    for factor in windows_z.factors:
        factors = thin_factors(z, s, scaled(windows_z.kernel, factor), scaled(windows_s.kernel, factor))
        if factors is not None:
            pair = ThinPair.of(z, s, *factors).reduced(NEGLIGIBLE)
            values, _, constant = feature_statistics(pair.rows_z, pair.rows_s, everything, sets, orders)
            found[factor] = values, constant
    left = tuple(factor for factor in windows_z.factors if factor not in found)
    if left:
        values, constant = _block_statistics(
            z, s, Windows(windows_z.kernel, left), Windows(windows_s.kernel, left), sets, orders
        )
        found |= {factor: (values[:, i], constant[i]) for i, factor in enumerate(left)}
    each = [found[factor] for factor in windows_z.factors]
    return torch.stack([values for values, _ in each], -1), torch.stack([constant for _, constant in each])


def feature_statistics(
    features_z: RowFeatures, features_s: RowFeatures, groups: list[Tensor], sets: list[Tensor], orders: list[Tensor]
) -> tuple[Tensor, Tensor, Tensor]:
    """Return two statistics from features, each ``(1 + B,)``, and whether Z or S is constant; O(n) time.

    With the cross-covariance Σ_g of the features in each group g of rows, the statistics are Σ_g n_g‖Σ_g‖² and
    ‖Σ_g n_g Σ_g‖²/n. Both are n·HSIC_b if there is one group.

    Parameters
    ----------
    features_z, features_s : callable
        Features of some rows.
    groups : list of Tensor
        The rows of each group.
    sets : list of Tensor
        Bins of rows that change places, ``(bins, rows)`` each, all of one group; a set of one bin may have any rows.
    orders : list of Tensor
        The orders of the bins of each set, ``(1 + B, bins)``.
    """
    device = groups[0].device
    n = sum(map(len, groups))
    code = torch.empty(n, dtype=torch.long, device=device)
    for g, rows in enumerate(groups):
        code[rows] = g
    places: dict[int, list[int]] = {}
    for i, rows in enumerate(sets):
        for g in [int(code[rows[0, 0]])] if len(rows) > 1 else code[rows[0]].unique().tolist():
            places.setdefault(g, []).append(i)
    widths = [features(groups[0][:1]).shape[-1] for features in (features_z, features_s)]
    spread, size = (torch.zeros(2, dtype=torch.float64, device=device) for _ in range(2))
    parts = []  # for each group: its number of rows, the product of its sums, and the tables of its sets
    for g in sorted(places):
        sums = [spread.new_zeros(width) for width in widths]
        squares = spread.new_zeros(2)
        count = 0
        tables = []
        for i in places[g]:
            rows = sets[i]
            if len(rows) == 1:
                rows = rows[:, code[rows[0]] == g]
            bins = len(rows)
            table = spread.new_zeros(bins * widths[0], bins * widths[1])
            for part in rows.split(max(1, _FEATURE_ROWS // bins), dim=1):
                own, other = (
                    features(part.flatten()).unflatten(0, part.shape) for features in (features_z, features_s)
                )
                for column_sums, values in zip(sums, (own, other), strict=True):
                    column_sums += values.sum((0, 1))
                squares += torch.stack([own.square().sum(), other.square().sum()])
                count += part.numel()
                table.addmm_(own.transpose(0, 1).flatten(1).mT, other.transpose(0, 1).flatten(1))
            blocks = table.unflatten(1, (bins, -1)).unflatten(0, (bins, -1)).transpose(1, 2)
            tables.append((i, blocks.flatten(2).flatten(0, 1)))
        spread += squares - torch.stack([total.square().sum() for total in sums]) / count
        size += squares
        parts.append((count, torch.outer(*sums).flatten() / count, tables))
    chunk = max(1, _CHUNK // max(1, widths[0] * widths[1]))
    by_value, pooled = [], []
    for start in range(0, len(orders[0]), chunk):
        total: Tensor | float = 0.0
        both: Tensor | float = 0.0
        for count, outer, tables in parts:
            cross = -outer
            for i, blocks in tables:
                # Bin b of Z meets bin π(b) of S: a 0/1 matrix picks the blocks of each order.
                order = orders[i][start : start + chunk]
                cross = cross + one_hot(order, order.shape[1]).to(blocks).flatten(1) @ blocks
            total = total + cross.square().sum(-1) / count
            both = both + cross
        by_value.append(torch.as_tensor(total))
        pooled.append(torch.as_tensor(both).square().sum(-1) / n)
    constant = (spread <= n * torch.finfo(spread.dtype).eps * size).any()
    return torch.cat(by_value), torch.cat(pooled), constant


def _block_statistics(
    z: Tensor, s: Tensor, grams_z: Windows, grams_s: Windows, groups: list[Tensor], orders: list[Tensor]
) -> tuple[Tensor, Tensor]:
    r"""Return the result of :func:`bin_statistics` from blocks of the Gram matrices.

    With row sums k and l of the Gram matrices,

    .. math:: n^2\,\mathrm{HSIC}_\pi = \sum_{ij} K_{ij} L_{\pi(i)\pi(j)} - \frac 2n \sum_i k_i l_{\pi(i)}
        + \frac{\sum_i k_i \sum_i l_i}{n^2}.

    The first sum is a sum over pairs of bins (b, c) of ⟨K_bc, L_{π(b)π(c)}⟩, of which two groups have (BINS²)²
    different ones: a matrix product of the blocks of K and L as rows. One pass over the Gram matrices,
    O(n²(d + p + BINS²)) time, O(n(d + p) + entries) memory, where the entries of the blocks held at a time are a
    constant; each permutation costs (BINS·GROUPS)² additions.
    """
    n, device = z.shape[0], z.device
    n_permutations = len(orders[0]) - 1
    windows = grams_z(z[:1]).shape[0]
    k = torch.zeros(windows, n, dtype=torch.float64, device=device)
    l = torch.zeros_like(k)
    facts = torch.zeros(2, 2, windows, dtype=torch.float64, device=device)  # trace and largest entry of K and L
    total = torch.zeros(1 + n_permutations, windows, dtype=torch.float64, device=device)
    for a, left in enumerate(groups):
        for c in range(a, len(groups)):
            right = groups[c]
            width = len(left) * len(right)
            table = torch.zeros(windows, width, width, dtype=torch.float64, device=device)
            for rows, columns, same in _tiles(left, right, a == c, windows, device.type):
                for sums, x, grams, fact in ((k, z, grams_z, facts[0]), (l, s, grams_s, facts[1])):
                    gram = grams(x[rows.flatten()]) if same else grams(x[rows.flatten()], x[columns.flatten()])
                    sums.index_add_(1, rows.flatten(), gram.sum(-1))
                    if a != c:
                        sums.index_add_(1, columns.flatten(), gram.sum(-2))
                    if same:  # no entry of a positive semi-definite matrix exceeds the largest on its diagonal
                        diagonal = gram.diagonal(dim1=-2, dim2=-1)
                        fact[0] += diagonal.sum(-1)
                        fact[1] = torch.maximum(fact[1], diagonal.amax(-1))
                    blocks = gram.unflatten(-1, columns.shape).unflatten(-3, rows.shape).transpose(-3, -2)
                    if sums is k:
                        own = blocks.reshape(windows, width, -1)
                    else:
                        table.baddbmm_(own, blocks.reshape(windows, width, -1).mT)
            place = (orders[a].unsqueeze(-1) * len(right) + orders[c].unsqueeze(-2)).flatten(-2)
            total += (1 if a == c else 2) * _looked_up(table, place)
    cross = torch.zeros_like(total)
    for rows, order in zip(groups, orders, strict=True):
        cross += _looked_up(k[:, rows] @ l[:, rows].mT, order)
    total = total - 2.0 / n * cross + k.sum(-1) * l.sum(-1) / n**2
    constant = (facts[0, 0] - k.sum(-1) / n <= n * n * torch.finfo(z.dtype).eps * facts[0, 1]) | (
        facts[1, 0] - l.sum(-1) / n <= n * n * torch.finfo(z.dtype).eps * facts[1, 1]
    )
    return (total / n).clamp_min(0.0), constant


def bin_orders(bins: int, count: int, generator: torch.Generator) -> Tensor:
    """Return the identity and ``count`` random orders of the bins of one group, ``(1 + count, bins)``."""
    drawn = random_orders((1, count, bins), generator)[0]
    return torch.cat([torch.arange(bins, device=drawn.device).unsqueeze(0), drawn])


def _tiles(left: Tensor, right: Tensor, own: bool, windows: int, device: str) -> Iterator[tuple[Tensor, Tensor, bool]]:
    """Yield parts of the bins of two groups whose Gram blocks fit into memory, and whether the two parts are one."""
    entries = _ENTRIES.get(device, _ENTRIES["cpu"]) / windows
    size = max(1, int(math.sqrt(entries / (len(left) * len(right)))))
    for i, rows in enumerate(left.split(size, dim=1)):
        for j, columns in enumerate(right.split(size, dim=1)):
            yield rows, columns, own and i == j


def _looked_up(table: Tensor, place: Tensor) -> Tensor:
    """Return Σ_r table[w, r, place[c, r]] for each c and w, as ``(count, windows)``."""
    width = table.shape[-1]
    flat = table.flatten(1).mT.contiguous()
    return embedding_bag(place + width * torch.arange(width, device=place.device), flat, mode="sum")


# The tests ----------------------------------------------------------------------------------------------------------


class Aggregate(NamedTuple):
    """What the aggregated test returns for one sample; ``windows`` are adjusted p-values, ``(windows,)``."""

    hsic: Tensor
    statistic: Tensor
    threshold: Tensor
    pvalue: Tensor
    windows: Tensor


def factors_of(kernel_z: Kernel, kernel_s: Kernel, *, among: tuple[float, ...] = FACTORS) -> tuple[float, ...]:
    """Return the multiples of the bandwidths, or one if neither kernel has a bandwidth."""
    return among if has_bandwidth(kernel_z) or has_bandwidth(kernel_s) else (1.0,)


def aggregated_test(
    z: Tensor,
    s: Tensor,
    kernel_z: Kernel,
    kernel_s: Kernel,
    n_permutations: int,
    generator: torch.Generator,
    alpha: float,
    strata: list[Tensor] | None = None,
) -> Aggregate:
    """Return the aggregated test of one sample ``(n, d)`` and ``(n, p)``."""
    factors = factors_of(kernel_z, kernel_s)
    windows_z, windows_s = Windows(kernel_z, factors), Windows(kernel_s, factors)
    n = z.shape[0]
    if n <= INDEXED_ROWS:
        k, l = windows_z(z), windows_s(s)
        k_centered, l_centered = center(k), center(l)
        constant = dense_sums(k, k_centered).constant | dense_sums(l, l_centered).constant
        order = random_orders((1, n_permutations, n), generator, strata)[0].to(z.device)
        identity = torch.arange(n, device=z.device).unsqueeze(0)
        values = window_statistics(k_centered, l_centered, torch.cat([identity, order])).clamp_min(0.0)
    else:
        values, constant = bin_statistics(z, s, windows_z, windows_s, n_permutations, generator, strata)
    return largest_score(values, constant, alpha, observed=values[0, factors.index(1.0)] / n)


def checked(statistic: Tensor, pvalue: Tensor, threshold: Tensor, constant: Tensor, n: int) -> Aggregate:
    """Return the result of a test with one statistic; a constant argument has statistic 0 and p-value 1."""
    statistic = torch.where(constant, 0.0, statistic)
    pvalue = torch.where(constant, 1.0, pvalue)
    return Aggregate(statistic / n, statistic, torch.where(constant, 0.0, threshold), pvalue, pvalue.unsqueeze(-1))


def largest_score(values: Tensor, constant: Tensor, alpha: float, *, observed: Tensor) -> Aggregate:
    """Return the test whose statistic is the largest standardized value of a row of ``(1 + B, windows)``.

    The first row belongs to the sample, the others to its permutations. ``constant`` ``(windows,)`` says where nothing
    varies, and ``observed`` is the biased HSIC to report.
    """
    values = torch.where(constant, 0.0, values)
    scores = standardized(values)
    statistic, null = scores.amax(-1).split([1, len(values) - 1])
    statistic = statistic.squeeze(-1)
    pvalue, threshold = rank_test(statistic, null, alpha, least=statistic - _TIE)
    # Westfall and Young: each window against the same maxima, so the smallest of them is the p-value of the test.
    windows = (scores.amax(-1).unsqueeze(-1) >= scores[0] - _TIE).double().mean(0)
    everywhere = bool(constant.all())
    return Aggregate(
        hsic=observed * (not everywhere),
        statistic=statistic * (not everywhere),
        threshold=threshold * 0.0 if everywhere else threshold,
        pvalue=pvalue,
        windows=windows,
    )


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
    return torch.where(alive, (root - mean) / torch.where(alive, deviation, 1.0), 0.0)
