r"""HSIC given a third variable: how strongly Z depends on S among samples with the same C.

For a discrete C it is the mean of the criterion of the groups by their share,

.. math:: \mathrm{HSIC}(Z, S \mid C) = \sum_c P(C = c)\, \mathrm{HSIC}(Z, S \mid C = c) .

For a continuous C there are no groups. With φ̃ = φ(Z) − E[φ(Z)|C] and ψ̃ = ψ(S) − E[ψ(S)|C], the conditional means by
kernel ridge regression, and the features χ of a Gaussian kernel on C, it is ‖E[φ̃ ⊗ ψ̃ ⊗ χ(C)]‖². This is zero exactly
where E[φ̃ ⊗ ψ̃ | C] is zero, for characteristic kernels. (A kernel on pairs (Z, C) without the residuals would not be
zero under Z ⟂ S | C if S depends on C.)

Both are Σ_ij K_ij A_ij with a matrix A that is a linear function of the Gram matrix L of S, ``A = operator(L)``, and
⟨K, operator(L)⟩ is symmetric and non-negative for K = L. So one engine serves both: the gradient in K is A, and the
normalized form is a correlation of K and L in this inner product, between 0 and 1 by Cauchy and Schwarz. Nothing here
waits for the device.

Conditioning on C and on a one-to-one function of C is the same. Labels are therefore read as codes of groups, and a
continuous column as the normal scores of its ranks: an outlier of C then has no more influence than another row.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri

from frhsic_core._arrays import (
    ArrayLike,
    as_pair,
    require_memory,
    require_value,
    row_weights,
    same_kind,
    spaced_rows,
)
from frhsic_core._choices import one_of
from frhsic_core.backend import Array, as_words, xp
from frhsic_core.joint.contraction import Operator, dependence
from frhsic_core.joint.factors import Factor
from frhsic_core.kernels import (
    Categorical,
    Gaussian,
    Kernel,
    median_distance,
    needs_torch,
    resolve_kernel,
)

if TYPE_CHECKING:
    from torch import Tensor

FORMS = ("biased", "normalized")
# Features of C in a regression, and its ridge for features of size one and weights that sum to one.
GIVEN_FEATURES = 32
RIDGE = 1e-3


# Reading C ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Given:
    """The variable C in Z ⟂ S | C for n rows.

    Attributes
    ----------
    codes : array
        ``(n,)``, whole numbers: the group of each row by its discrete columns; zero if there is none.
    numbers : array
        ``(n, q)``, float64: normal scores of the continuous columns; q is zero if all columns are discrete.
    """

    codes: Array
    numbers: Array

    @property
    def discrete(self) -> bool:
        """Whether C is a label, so that rows with equal C form groups."""
        return self.numbers.shape[1] == 0

    @property
    def mixed(self) -> bool:
        """Whether there are groups beside continuous columns."""
        return not self.discrete and bool((self.codes != 0).any())

    @property
    def rows(self) -> Array:
        """``(n, q + 1)``, float64: the normal scores, then the code of the group."""
        return as_words(np.column_stack([self.numbers, self.codes]))

    def rows_beside(self, like: Tensor) -> Tensor:
        """Return :attr:`rows` beside a sample."""
        return xp.as_tensor(self.rows.numpy(), like=like).to(like.dtype)

    @classmethod
    def of_rows(cls, rows: Tensor) -> Given:
        """Return what ``rows`` was made of."""
        found = np.asarray(rows.detach().cpu().double())
        return cls(as_words(found[:, -1].astype(np.int64)), as_words(found[:, :-1]))

    def groups(self, *, like: Tensor) -> list[Tensor]:
        """Return the rows of each group, in their order."""
        codes = self.codes.numpy()
        order = np.argsort(codes, kind="stable")
        ends = np.cumsum(np.bincount(codes))[:-1]
        return [xp.as_tensor(rows, like=like) for rows in np.split(order, ends)]


def read_given(given: ArrayLike, n: int, *, name: str = "given") -> Given:
    """Read labels, words, numbers or a table of them, ``(n,)`` or ``(n, columns)``.

    The type of a column decides, and not its values: words, truth values and categories are
    discrete, also categories of numbers and numbers that are written as text. Other numbers are
    continuous, unless they have two values only: then rows with one value are a group, whatever
    the type. Several discrete columns form one group for each combination of values.

    Examples
    --------
    >>> read_given(["a", "b", "a"], 3).codes
    Array([0, 1, 0])
    >>> read_given(np.arange(100) % 2, 100).discrete
    True
    >>> read_given(np.arange(100) % 3, 100).discrete
    False
    """
    if isinstance(given, Given):
        return given
    import pandas as pd

    from frhsic_core.inputs.columns import CATEGORIES, read_column
    from frhsic_core.inputs.tables import as_table

    table = as_table(given, argument=name, default=name)
    if len(table) != n:
        raise ValueError(
            f"{name} has {len(table)} rows but z has {n}: both need one row per sample."
        )
    if table.shape[1] == 0:
        raise ValueError(f"{name} has no columns: at least one is needed.")
    codes = np.zeros(n, dtype=np.int64)
    scores = []
    for k in range(table.shape[1]):
        column = read_column(table.iloc[:, k], name=str(table.columns[k]))
        if column.missing:
            raise ValueError(
                f"{column.name!r} has {column.missing} missing or infinite values: drop those rows "
                "or name a category."
            )
        values, group, counts = np.unique(column.values, return_inverse=True, return_counts=True)
        stated = isinstance(table.dtypes.iloc[k], pd.CategoricalDtype)
        if column.labels and not stated and len(values) > CATEGORIES:
            raise ValueError(
                f"{column.name!r} has {len(values):,} different numbers that are written as text: "
                "pass them as numbers if they are, or as categories if each is a group."
            )
        if column.labels or len(values) <= 2:
            codes = np.unique(codes * len(values) + group, return_inverse=True)[1]
        else:
            midranks = np.cumsum(counts) - 0.5 * counts  # less one half
            scores.append(ndtri(midranks[group] / n))
    numbers = np.stack(scores, axis=1) if scores else np.zeros((n, 0))
    return Given(as_words(codes), as_words(numbers))


# Its kernel and features --------------------------------------------------------------------------------------------


def landmark_features(kernel: Callable[..., Tensor], x: Tensor, count: int) -> Factor:
    """Return the features F(x) = k(x, X)·k(X, X)^(−1/2) with ``count`` evenly spaced rows X of the sample ``(n, d)``.

    FFᵀ is the Gram matrix if X has all rows.
    """
    landmarks = x[spaced_rows(len(x), count, like=x)]
    values, vectors = xp.eigh(kernel(landmarks))
    # Directions that rounding alone has made are dropped.
    kept = values > 1e-10 * values.amax()
    root = vectors * xp.where(kept, values.clamp_min(1e-300).rsqrt(), 0.0)
    return Factor(root, lambda rows: kernel(rows, landmarks), polynomial=False)


@dataclass(frozen=True)
class GivenKernel:
    """The kernel on C: Gaussian on the normal scores, times one plus it for rows of one group.

    Rows are ``[scores, code]``. Rows of different groups have kernel zero, so that each group has a regression of its
    own, with a constant.
    """

    gaussian: Gaussian
    mixed: bool

    def __call__(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        gram = self.gaussian(x[..., :-1], None if y is None else y[..., :-1])
        if not self.mixed:
            return gram
        return (1.0 + gram) * Categorical()(x[..., -1:], None if y is None else y[..., -1:])


def given_kernel(c: Tensor, *, mixed: bool, scale: float = 1.0) -> GivenKernel:
    """Return the kernel on rows of C ``[scores, code]`` at a multiple of the median bandwidth of the scores."""
    rows = c[spaced_rows(len(c), 1024, like=c), :-1]
    return GivenKernel(Gaussian(scale * median_distance(rows, max_points=None)), mixed)


# HSIC given C -------------------------------------------------------------------------------------------------------


def group_operator(
    codes: Tensor, weights: Tensor | None = None, *, minimum_rows: int = 2
) -> Operator:
    """Return the operator of a discrete C: centering within groups, and the share of each group.

    Parameters
    ----------
    codes : Tensor
        ``(..., m)``: the group of each row, as whole numbers or as a float.
    weights : Tensor, optional
        ``(..., m)``, summing to one.
    minimum_rows : int
        Groups with fewer rows count as zero.
    """
    same = codes.unsqueeze(-1) == codes.unsqueeze(-2)
    count = same.sum(-1)

    def operator(gram: Tensor) -> Tensor:
        member = same.to(gram.dtype)
        w = xp.full_like(member[..., 0], 1.0 / member.shape[-1]) if weights is None else weights
        share = (member @ w.unsqueeze(-1)).clamp_min(1e-30)  # of the group of each row, (..., m, 1)
        row = (gram * member) @ w.unsqueeze(-1) / share
        grand = member @ (w.unsqueeze(-1) * row) / share
        row = row - 0.5 * grand
        # Rows i and j are of one group, so the share is that of either.
        factor = (
            member
            * (w.unsqueeze(-1) / share)
            * w.unsqueeze(-2)
            * (count >= minimum_rows).unsqueeze(-1)
        )
        return factor * (gram - row - row.mT)

    return operator


def smooth_operator(features: Tensor, local: Tensor, weights: Tensor | None = None) -> Operator:
    """Return the operator of a continuous C: residuals of a ridge regression on features of C, and a kernel on C.

    Parameters
    ----------
    features : Tensor
        ``(..., m, r)``: features of C.
    local : Tensor
        ``(..., m, m)``: a positive kernel on C.
    weights : Tensor, optional
        ``(..., m)``, summing to one.
    """
    m = features.shape[-2]
    w = xp.full_like(features[..., 0], 1.0 / m) if weights is None else weights
    column = w.unsqueeze(-1)
    mean = (column * features).sum(-2, keepdim=True)
    centered = features - mean
    weighted = (column * centered).mT
    eye = xp.eye(features.shape[-1], like=features)
    factor = xp.cholesky(weighted @ centered + RIDGE * eye)
    half = xp.solve_triangular(factor, weighted, upper=False)
    hat = xp.solve_triangular(factor.mT, half, upper=True)  # coefficients of a function of the rows
    pairs = local * column * column.mT

    def residual(matrix: Tensor) -> Tensor:
        """Return the residuals of each column of a matrix."""
        return matrix - column.mT @ matrix - centered @ (hat @ matrix)

    def transposed(matrix: Tensor) -> Tensor:
        return matrix - column * matrix.sum(-2, keepdim=True) - hat.mT @ (centered.mT @ matrix)

    def operator(gram: Tensor) -> Tensor:
        inner = pairs * residual(residual(gram).mT)
        result = transposed(transposed(inner).mT)
        return 0.5 * (result + result.mT)

    return operator


@same_kind
def conditional_hsic(
    z: ArrayLike,
    s: ArrayLike,
    given: ArrayLike,
    *,
    kernel_z: Kernel | str | None = None,
    kernel_s: Kernel | str | None = None,
    estimator: str = "biased",
    mask: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> Tensor:
    """Return HSIC(Z, S | C), the criterion of equalized odds (C the label) and of parity given a legitimate factor.

    See the definition at the top of ``joint.given``. O(n²(d + p)) time and O(n²) memory;
    differentiable in ``z`` and ``s``. Use :func:`frhsic_core.hsic_test` with ``given`` for a test.

    Parameters
    ----------
    z, s : array_like
        ``(..., n, d)`` and ``(..., n, p)`` or ``(..., n)``.
    given : array_like
        C, ``(n,)`` or ``(n, columns)``. Words, truth values and categories are labels, and so are
        numbers with two values; other numbers are continuous. Of a label of several whole numbers
        pass categories or text.
    kernel_z, kernel_s : Kernel or str, optional
        A kernel or its name, as in :func:`frhsic_core.hsic`.
    estimator : {"biased", "normalized"}
        The criterion itself, or the correlation.
    mask, sample_weight : array_like, optional
        ``(n,)``: rows to use, and their weights.

    Returns
    -------
    Tensor, array or float
        Shape ``(...)``.

    Examples
    --------
    >>> import torch
    >>> label = torch.tensor([0, 0, 0, 0, 1, 1, 1, 1])
    >>> z = torch.tensor([0.0, 1.0, 0.0, 1.0, 5.0, 6.0, 5.0, 6.0], dtype=torch.float64)
    >>> s = torch.tensor([0.0, 0.0, 1.0, 1.0, 9.0, 9.0, 8.0, 8.0], dtype=torch.float64)
    >>> round(conditional_hsic(z, s, label).item(), 6)
    0.0
    """
    one_of("estimator", estimator, FORMS)
    z, s = as_pair(z, s, torch=needs_torch(kernel_z) or needs_torch(kernel_s))
    n = z.shape[-2]
    found = read_given(given, n)
    weights = row_weights(z, mask, sample_weight)
    require_memory(
        z,
        n,
        batch=math.prod(z.shape[:-2]),
        copies=8,
        advice="Use fewer rows, or a mini-batch of them.",
    )
    kernel_z = resolve_kernel(kernel_z, z, name="kernel_z")
    kernel_s = resolve_kernel(kernel_s, s, name="kernel_s")
    if found.discrete:
        operator = group_operator(xp.as_tensor(found.codes.numpy(), like=z), weights)
    else:
        c = found.rows_beside(z)
        kernel = given_kernel(c, mixed=found.mixed)
        operator = smooth_operator(
            landmark_features(kernel, c, GIVEN_FEATURES)(c), kernel(c), weights
        )
    normalized = estimator == "normalized"
    value = dependence(
        z, s, kernel_z=kernel_z, kernel_s=kernel_s, normalized=normalized, operator=operator
    )
    return require_value(value, "conditional_hsic").clamp_min(0.0)
