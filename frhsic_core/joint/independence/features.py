"""Features of a sample that serve several kernels at once, for tests of more than a few hundred rows.

One column is first put into at most ``CELLS`` cells with equally many rows, and each row gets the mean of its cell; up
to ``CELLS`` distinct values stay as they are. A feature is then a number for each cell, and the features of a million
rows are looked up in a small table. Cells depend on the values alone and not on their order, so a permutation test of
the rounded column is as exact as one of the column itself. Several columns have no cells: their features are kernel
values at a few landmark rows.

The kernels are those of all windows of bandwidths. A pivoted Cholesky decomposition of their sum gives one common
basis, in which each kernel has a small matrix: what is summed over rows is summed once for all windows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from frhsic_core.arrays import spaced_rows
from frhsic_core.joint.factors import pivoted_cholesky

CELLS = 1024
LANDMARKS = 512  # features of a sample with several columns, at most
BASE_ROWS = 1000  # rows among which landmarks are chosen; they also give the default bandwidths
SHARE = 1e-6  # share of the variance of the features that a test of many rows does without


def cells(x: Tensor) -> tuple[Tensor, Tensor] | None:
    """Return the means of the cells, ``(m, d)``, and the cell of each row, or ``None`` if several columns vary.

    Examples
    --------
    >>> cells(torch.tensor([[5.0], [7.0], [5.0]]))
    (tensor([[5.],
            [7.]]), tensor([0, 1, 0]))
    """
    varies = (x != x[:1]).any(0).nonzero().flatten()
    if len(varies) > 1:
        return None
    column = int(varies[0]) if len(varies) else 0
    values, index, counts = torch.unique(x[:, column], return_inverse=True, return_counts=True)
    if len(values) > CELLS:
        middle = counts.cumsum(0) - 0.5 * counts
        _, cell = torch.unique((middle * (CELLS / len(x))).long(), return_inverse=True)
        total = torch.zeros(int(cell[-1]) + 1, dtype=x.dtype, device=x.device)
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

    def __init__(self, kernels: Sequence[Callable[..., Tensor]], x: Tensor, *, share: float = SHARE) -> None:
        self.kernels, self.x = kernels, x
        self.index: Tensor | None
        found = cells(x) if len(x) > CELLS else (x, torch.arange(len(x), device=x.device))
        base, self.index = (x[spaced_rows(len(x), BASE_ROWS, x.device)], None) if found is None else found
        counts = torch.ones_like(base[:, 0])
        if self.index is not None:
            counts = torch.bincount(self.index, minlength=len(base)).to(x)
        weight = counts / counts.sum()
        grams = torch.stack([kernel(base) for kernel in kernels])
        mean = grams @ weight
        spread = grams.diagonal(dim1=-2, dim2=-1) @ weight - mean @ weight
        self.constant = spread <= len(x) * torch.finfo(x.dtype).eps * grams.abs().amax((-2, -1))
        if self.index is not None:  # features of other rows need the kernel itself
            mean = mean - 0.5 * (mean @ weight).unsqueeze(-1)
            grams.sub_(mean.unsqueeze(-1)).sub_(mean.unsqueeze(-2))
        self.units = torch.where(self.constant, 0.0, 1.0 / (grams.diagonal(dim1=-2, dim2=-1) @ weight))
        most = LANDMARKS if self.index is None or x.shape[1] > 1 else len(base)
        total = torch.tensordot(self.units, grams, 1)
        columns, pivots, _ = pivoted_cholesky(total, share=share, most=most, weight=weight)
        self.rank = len(pivots)
        self.landmarks, self.lower = base[pivots], columns[pivots]
        _, triangle = torch.linalg.qr(columns * weight.sqrt().unsqueeze(-1))
        self.inverse = torch.linalg.inv(triangle)
        basis = columns @ self.inverse
        self.maps = []
        for gram in grams:
            weighted = weight.unsqueeze(-1) * basis
            values, vectors = torch.linalg.eigh(weighted.mT @ gram @ weighted)
            kept = values.clamp_min(0.0).cumsum(0) > 0.1 * share * values.sum()
            self.maps.append(vectors[:, kept] * values[kept].sqrt())
        self.table = None if self.index is None else basis
        self.tables = [basis @ change for change in self.maps]

    def __call__(self, rows: Tensor) -> Tensor:
        """Return the basis at these rows, ``(rows, rank)``."""
        if self.table is not None and self.index is not None:
            return self.table[self.index[rows]]
        x = self.x[rows]
        values = sum(unit * kernel(x, self.landmarks) for unit, kernel in zip(self.units, self.kernels, strict=True))
        return torch.linalg.solve_triangular(self.lower, torch.as_tensor(values).mT, upper=False).mT @ self.inverse

    def of(self, kernel: int) -> Callable[[Tensor], Tensor]:
        """Return the function that gives the features of one kernel at some rows."""
        if self.index is None:
            return lambda rows: self(rows) @ self.maps[kernel]
        index, table = self.index, self.tables[kernel]
        return lambda rows: table[index[rows]]
