"""Permutation tests: n·HSIC_b under many orders of the rows of S, and the rank of the observed value among them.

Small samples are permuted row by row. Large ones are put into bins, and whole bins are permuted (*cheap permutations*,
Domingo-Enrich, Dwivedi and Mackey, 2025): the inner products of all pairs of blocks are computed in one pass over the
two Gram matrices, and every permutation is then a sum of a few thousand numbers from a table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

_CHUNK = 2**22  # numbers held at once: 32 MB
_INDEXED = {"cuda": 2**26, "cpu": 2**17}  # the same for indexed matrices: what the cache of a CPU can hold
# Bins of one group change places. All pairs of blocks of two groups are compared, (BINS²)² products for each pair.
BINS = 8
GROUPS = 4
# Entries of a stack of Gram blocks held at once; about six such stacks exist at a time.
_ENTRIES = {"cuda": 2**25, "cpu": 2**19}

Grams = Callable[..., Tensor]
"""``(x, y=None) -> (windows, n, m)``: one Gram matrix for each bandwidth."""


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
) -> tuple[Tensor, Tensor]:
    """Return the p-value (1 + #{T_π ≥ T})/(1 + B) and the level-α critical value that it implies.

    Permuting the rows of S leaves K as it is and permutes L. Indexing an n × n matrix by B permutations is slow. But
    Gram matrices of scalar attributes have a numerical rank r of a few tens, L = GGᵀ, and n²HSIC = ‖K^{1/2}G_π‖²_F:
    permuting n × r factors and one matrix product took about a tenth of the time at n = 300. Matrices of full rank are
    indexed.

    Parameters
    ----------
    k, l : Tensor
        Centred Gram matrices of one shape, ``(..., n, n)``.
    n_permutations : int
        B; every batch element has its own B permutations.
    generator : torch.Generator
        Source of the permutations.
    alpha : float
        Level.
    strata : list of Tensor, optional
        Clusters that change places, as in :func:`random_orders`.

    Examples
    --------
    >>> k = torch.eye(2, dtype=torch.float64) - 0.5
    >>> permutation_null(k, k, 19, torch.Generator().manual_seed(0), 0.05)[0].item()  # two rows: every order ties
    1.0
    """
    batch, n = k.shape[:-2], k.shape[-1]
    k, l = k.reshape(-1, n, n), l.reshape(-1, n, n)
    k_factor, l_factor = low_rank_factor(k), low_rank_factor(l)
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
    n, count = k.shape[-1], order.shape[1]
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


def low_rank_factor(gram: Tensor) -> Tensor | None:
    """Return the pivoted Cholesky factor G with at most n/2 columns, or ``None`` if 1e-12 of the trace is left."""
    n = gram.shape[-1]
    residual = gram.diagonal(dim1=-2, dim2=-1).clone()
    small = 1e-12 * residual.sum(-1)
    columns = gram.new_zeros(len(gram), n, 0)
    batch = torch.arange(len(gram), device=gram.device)
    while bool((residual.clamp_min(0.0).sum(-1) > small).any()):
        if columns.shape[-1] >= n // 2:
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
    grams_z: Grams,
    grams_s: Grams,
    n_permutations: int,
    generator: torch.Generator,
    strata: list[Tensor] | None = None,
) -> tuple[Tensor, Tensor]:
    r"""Return n·HSIC_b of the sample and of B permutations of bins, and whether Z or S is constant.

    With row sums k and l of the Gram matrices,

    .. math:: n^2\,\mathrm{HSIC}_\pi = \sum_{ij} K_{ij} L_{\pi(i)\pi(j)} - \frac 2n \sum_i k_i l_{\pi(i)}
        + \frac{\sum_i k_i \sum_i l_i}{n^2}.

    The rows are in ``GROUPS`` groups of ``BINS`` bins, and π permutes the bins of each group. The first sum is then a
    sum over pairs of bins (b, c) of ⟨K_bc, L_{π(b)π(c)}⟩, of which two groups have (BINS²)² different ones: a matrix
    product of the blocks of K and L as rows. One pass over the Gram matrices, O(n²(d + p + BINS²)) time,
    O(n(d + p) + entries) memory, where the entries of the blocks held at a time are a constant; each permutation costs
    (BINS·GROUPS)² additions.

    Returns ``(1 + B, windows)`` and ``(windows,)``. The permutations of bins are a subgroup of all permutations, so the
    rank of the observed statistic has the exact level (see :mod:`frhsic_core.joint.independence.aggregated`).
    """
    n, device = z.shape[0], z.device
    groups = [rows.to(device) for rows in bins_of(n, generator, strata)]
    orders = [_bin_orders(len(rows), n_permutations, generator).to(device) for rows in groups]
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


def _bin_orders(bins: int, count: int, generator: torch.Generator) -> Tensor:
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
