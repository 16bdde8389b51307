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
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from frhsic_core.arrays import ArrayLike, as_mask, as_pair, as_weights, require_value
from frhsic_core.choices import one_of
from frhsic_core.joint.contraction import GramFunction, inner_product, inverse_root, smallest_own, through_gram
from frhsic_core.joint.given import Given, read_given
from frhsic_core.joint.independence.features import Features, given_kernel
from frhsic_core.kernels import Kernel, resolve_kernel
from frhsic_core.memory import require_memory

FORMS = ("biased", "unbiased", "normalized")
# Features of C in a regression, and its ridge for features of size one and weights that sum to one.
GIVEN_FEATURES = 32
RIDGE = 1e-3

Operator = Callable[[Tensor], Tensor]
"""``L -> A`` with HSIC(Z, S | C) = ⟨K, A⟩; linear, symmetric and non-negative."""


def group_operator(
    codes: Tensor, weights: Tensor | None = None, *, unbiased: bool = False, minimum_rows: int = 2
) -> Operator:
    """Return the operator of a discrete C: centering within groups, and the share of each group.

    Parameters
    ----------
    codes : Tensor
        ``(..., m)``: the group of each row, as whole numbers or as a float.
    weights : Tensor, optional
        ``(..., m)``, summing to one; biased form only.
    unbiased : bool
        Whether to use the unbiased estimator in each group of at least four rows.
    minimum_rows : int
        Groups with fewer rows count as zero.
    """
    same = codes.unsqueeze(-1) == codes.unsqueeze(-2)
    count = same.sum(-1)
    fewest = max(minimum_rows, 4) if unbiased else minimum_rows

    def by_weight(gram: Tensor) -> Tensor:
        member = same.to(gram.dtype)
        w = torch.full_like(member[..., 0], 1.0 / member.shape[-1]) if weights is None else weights
        share = (member @ w.unsqueeze(-1)).clamp_min(1e-30)  # of the group of each row, (..., m, 1)
        row = (gram * member) @ w.unsqueeze(-1) / share
        grand = member @ (w.unsqueeze(-1) * row) / share
        row = torch.sub(row, grand, alpha=0.5)
        # Rows i and j are of one group, so the share is that of either.
        factor = member * (w.unsqueeze(-1) / share) * w.unsqueeze(-2) * (count >= fewest).unsqueeze(-1)
        return factor * (gram - row - row.mT)

    def without_diagonal(gram: Tensor) -> Tensor:
        member = same.to(gram.dtype)
        n = count.to(gram.dtype).unsqueeze(-1)
        eye = torch.eye(member.shape[-1], dtype=torch.bool, device=gram.device)
        hollow = (gram * member).masked_fill(eye, 0.0)
        row = hollow.sum(-1, keepdim=True) / (n - 2).clamp_min(1.0)
        grand = member @ row / (n - 1).clamp_min(1.0)
        factor = (count >= fewest).unsqueeze(-1) / ((n - 3).clamp_min(1.0) * member.shape[-1])
        return (factor * member * (hollow - row - row.mT + grand)).masked_fill(eye, 0.0)

    return without_diagonal if unbiased else by_weight


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
    w = torch.full_like(features[..., 0], 1.0 / m) if weights is None else weights
    column = w.unsqueeze(-1)
    mean = (column * features).sum(-2, keepdim=True)
    centered = features - mean
    weighted = (column * centered).mT
    eye = torch.eye(features.shape[-1], dtype=features.dtype, device=features.device)
    factor, _ = torch.linalg.cholesky_ex(weighted @ centered + RIDGE * eye)
    half = torch.linalg.solve_triangular(factor, weighted, upper=False)
    hat = torch.linalg.solve_triangular(factor.mT, half, upper=True)  # coefficients of a function of the rows
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


def conditional_function(operator: Operator, gram_s: Tensor, *, normalized: bool) -> GramFunction:
    """Return ``K -> (value, gradient)`` of ⟨K, A⟩ with A the operator of the Gram matrix of S, or of the correlation.

    The correlation is ⟨K, A⟩/√(⟨K, A_K⟩⟨L, A⟩), and zero if Z or S is constant given C.
    """
    weights = operator(gram_s)
    if not normalized:
        return inner_product(weights)
    own_s = (gram_s * weights).sum((-2, -1))

    def function(gram: Tensor) -> tuple[Tensor, Tensor]:
        own = operator(gram)
        own_z = (gram * own).sum((-2, -1))
        smallest = smallest_own(gram, rows=1)
        root = inverse_root(own_z, own_s, smallest)
        value = (gram * weights).sum((-2, -1)) * root
        share = value / own_z.clamp_min(smallest)
        return value, root[..., None, None] * weights - share[..., None, None] * own

    return function


def given_operator(given: Given, like: Tensor, weights: Tensor | None, *, unbiased: bool = False) -> Operator:
    """Return the operator of the rows of one sample."""
    codes = given.codes.to(like.device)
    if given.discrete:
        return group_operator(codes, weights, unbiased=unbiased)
    if unbiased:
        raise ValueError("estimator='unbiased' needs a discrete given: use 'biased' or 'normalized'.")
    c = given.rows.to(like)
    kernel = given_kernel(c, mixed=given.mixed)
    features = Features(kernel, c, GIVEN_FEATURES)
    return smooth_operator(features(torch.arange(len(c), device=c.device)), kernel(c), weights)


def conditional_hsic(
    z: ArrayLike,
    s: ArrayLike,
    given: ArrayLike,
    *,
    kernel_z: Kernel | None = None,
    kernel_s: Kernel | None = None,
    estimator: str = "biased",
    mask: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> Tensor:
    """Return HSIC(Z, S | C), the criterion of equalized odds (C the label) and of parity given a legitimate factor.

    See the definition at the top of :mod:`frhsic_core.joint.hsic_given`. O(n²(d + p)) time and O(n²) memory;
    differentiable in ``z``. Use :func:`frhsic_core.hsic_test` with ``given`` for a test.

    Parameters
    ----------
    z, s : array_like
        ``(..., n, d)`` and ``(..., n, p)`` or ``(..., n)``.
    given : array_like
        C, ``(n,)`` or ``(n, columns)``. Text, booleans, categories and whole-number types are labels; floating-point
        numbers are continuous. The rule looks at the type and not at the values, so that it is the same for each
        mini-batch.
    kernel_z, kernel_s : Kernel, optional
        ``None``: Gaussian at the median bandwidth of all rows, detached.
    estimator : {"biased", "unbiased", "normalized"}
        The unbiased form is for labels, and leaves out groups with fewer than four rows.
    mask, sample_weight : array_like, optional
        ``(n,)``: rows to use, and their weights (not for the unbiased form).

    Returns
    -------
    Tensor
        Shape ``(...)``.

    Examples
    --------
    >>> label = torch.tensor([0, 0, 0, 0, 1, 1, 1, 1])
    >>> z = torch.tensor([0.0, 1.0, 0.0, 1.0, 5.0, 6.0, 5.0, 6.0], dtype=torch.float64)
    >>> s = torch.tensor([0.0, 0.0, 1.0, 1.0, 9.0, 9.0, 8.0, 8.0], dtype=torch.float64)
    >>> round(conditional_hsic(z, s, label).item(), 6)
    0.0
    """
    one_of("estimator", estimator, FORMS)
    z, s = as_pair(z, s)
    n = z.shape[-2]
    found = read_given(given, n, by_type=True)
    weights = None
    if mask is not None or sample_weight is not None:
        if estimator == "unbiased":
            raise ValueError("estimator='unbiased' has no form with a mask or weights: select the rows first.")
        weights = z.new_ones(n) if sample_weight is None else as_weights(sample_weight, z)
        if mask is not None:
            weights = weights * as_mask(mask, z).to(z.dtype)
        weights = weights / weights.sum(-1, keepdim=True)
    require_memory(z, n, batch=z.shape[:-2].numel(), copies=8, advice="Use fewer rows, or a mini-batch of them.")
    kernel_z = resolve_kernel(kernel_z, z)
    kernel_s = resolve_kernel(kernel_s, s)
    operator = given_operator(found, z, weights, unbiased=estimator == "unbiased")
    function = conditional_function(operator, kernel_s(s.detach()), normalized=estimator == "normalized")
    value = require_value(through_gram(z, kernel_z, function), "conditional_hsic")
    return value if estimator == "unbiased" else value.clamp_min(0.0)
