"""The Hilbert–Schmidt independence criterion: biased, unbiased, normalised.

HSIC(Z, S) = ‖μ_ZS − μ_Z ⊗ μ_S‖² (Definition 2.1, ``def:hsic``). All estimators here are one centred Gram matrix and one
elementwise product: no product of four n × n matrices is ever formed.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from frhsic_core.arrays import ArrayLike, as_mask, as_pair, as_weights
from frhsic_core.joint.centring import contraction_weights, require_estimator
from frhsic_core.joint.gram import product_kernel, resolve_kernel
from frhsic_core.joint.streaming import streaming_hsic
from frhsic_core.kernels import Gaussian, Kernel, lowest_exponent

__all__ = ["contract", "hsic", "normalized_hsic"]

# Above this many rows two dense float64 Gram matrices pass a quarter of a gigabyte: stream instead.
DENSE_ROWS = 4096
ATTRIBUTES = ("joint", "product", "sum")


class _GaussianContraction(torch.autograd.Function):
    """Σ_ij A_ij exp(−‖z_i − z_j‖²/(2σ²)) with the gradient written out: (2/σ²)(W − diag(W1))z, W = K ∘ A.

    Autograd through the same formula keeps five n × n matrices and runs eight passes over them; this keeps one and runs
    one matrix product.
    """

    @staticmethod
    def forward(ctx: Any, z: Tensor, weights: Tensor, precision: Tensor | float) -> Tensor:
        u = (z - z.mean(-2, keepdim=True)).mul_(precision)
        gram = u @ u.mT
        half = 0.5 * gram.diagonal(dim1=-2, dim2=-1)  # from the product itself, so that the diagonal is exactly zero
        gram = gram.sub_(half.unsqueeze(-1)).sub_(half.unsqueeze(-2)).clamp_(lowest_exponent(u.dtype), 0.0).exp_()
        keep_gram = ctx.needs_input_grad[1]
        product = gram * weights if keep_gram else gram.mul_(weights)
        ctx.save_for_backward(u, product, gram if keep_gram else None)
        ctx.precision = precision
        return product.sum((-2, -1))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        u, product, gram = ctx.saved_tensors
        grad = grad[..., None, None]
        grad_z = None
        if ctx.needs_input_grad[0]:
            grad_z = (product @ u).sub_(product.sum(-1, keepdim=True) * u).mul_(2.0 * grad * ctx.precision)
        return grad_z, None if gram is None else grad * gram, None


def contract(z: Tensor, weights: Tensor, kernel: Kernel) -> Tensor:
    """Σ_ij k(z_i, z_j) A_ij for symmetric A: every HSIC once A is known, O(n²d), differentiable in z.

    Gaussian kernels with a bandwidth that needs no gradient take the written-out gradient; others go through autograd.
    No input is checked and nothing waits for the device, so a training step can be captured in a CUDA graph.

    Examples
    --------
    >>> contract(torch.zeros(2, 1), torch.full((2, 2), 0.25), Gaussian(1.0)).item()
    1.0
    """
    bandwidth = kernel.bandwidth if isinstance(kernel, Gaussian) else None
    if bandwidth is None or (isinstance(bandwidth, Tensor) and bandwidth.requires_grad):
        return (kernel(z) * weights).sum((-2, -1))
    precision = 1.0 / (bandwidth.to(z)[..., None, None] if isinstance(bandwidth, Tensor) else bandwidth)
    batch = precision.shape[:-2] if isinstance(precision, Tensor) else ()
    shape = torch.broadcast_shapes(z.shape[:-2], weights.shape[:-2], batch)
    if z.shape[:-2] != shape or weights.shape[:-2] != shape:
        z, weights = z.expand(*shape, *z.shape[-2:]), weights.expand(*shape, *weights.shape[-2:])
    return _GaussianContraction.apply(z, weights, precision)


def hsic(
    z: ArrayLike,
    s: ArrayLike,
    *,
    kernel_z: Kernel | None = None,
    kernel_s: Kernel | None = None,
    estimator: str = "biased",
    mask: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    attributes: str = "joint",
    chunk_size: int | None = None,
    check_finite: bool = True,
) -> Tensor:
    r"""Hilbert–Schmidt independence criterion between a representation and a sensitive attribute.

    Biased (a V-statistic, the paper's penalty, its equation ``eq:hsic_empirical``):

    .. math:: \widehat{\mathrm{HSIC}}_b = n^{-2}\,\mathrm{tr}(KHLH) \ge 0 .

    Unbiased (a U-statistic; Song et al., 2012), which may be negative and has mean zero under independence:

    .. math:: \widehat{\mathrm{HSIC}}_u = \frac{1}{n(n-3)}\Big[\mathrm{tr}(\tilde K\tilde L)
        + \frac{\mathbf 1^\top\tilde K\mathbf 1\,\mathbf 1^\top\tilde L\mathbf 1}{(n-1)(n-2)}
        - \frac{2}{n-2}\mathbf 1^\top\tilde K\tilde L\mathbf 1\Big],\quad \tilde K = K - \mathrm{diag}(K).

    Time O(n²(d + p)). Memory O(n²) up to 4,096 rows; above that, or with ``chunk_size``, exact in O(n) memory (see
    :func:`frhsic_core.joint.streaming_hsic`).

    Parameters
    ----------
    z, s : array_like
        ``(..., n, d)`` and ``(..., n, p)`` or ``(..., n)``.
    kernel_z, kernel_s : Kernel, optional
        ``None``: Gaussian at the median bandwidth, per batch element, detached.
    estimator : {"biased", "unbiased"}
        See above; the unbiased form needs four rows.
    mask : array_like of bool, optional
        ``(..., n)``: use these rows only (``y == 1`` gives the equal-opportunity form). Default bandwidths are still
        those of all rows.
    sample_weight : array_like, optional
        ``(..., n)``, non-negative: HSIC of the weighted empirical law (biased form only).
    attributes : {"joint", "product", "sum"}
        For p > 1: one kernel on the whole vector; a product of kernels, one per column, at their own median bandwidths;
        or the sum over columns of p separate criteria, which sees each attribute but not their combination.
    chunk_size : int, optional
        Rows per block of the streamed computation.
    check_finite : bool
        Look for NaN and infinities first.

    Returns
    -------
    Tensor
        Shape ``(...)``.

    Notes
    -----
    Implements Definition 2.1 and the statistic of Theorem 4.7 (``thm:hsic_gdp``). Introduced in the chapter "Which HSIC
    is this?".

    Examples
    --------
    >>> round(hsic([0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 2.0, 3.0]).item(), 4)
    0.0723
    >>> hsic([0.0, 1.0, 2.0, 3.0], [5.0, 5.0, 5.0, 5.0]).item()
    0.0
    """
    require_estimator(estimator)
    if attributes not in ATTRIBUTES:
        raise ValueError(f"attributes is {attributes!r}: choose 'joint', 'product' or 'sum'.")
    z, s = as_pair(z, s, check_finite=check_finite, min_rows=4 if estimator == "unbiased" else 1)
    if attributes != "joint" and kernel_s is not None:
        raise ValueError(
            f"attributes is {attributes!r} and kernel_s is given: the first chooses the kernels, drop one."
        )
    options: dict[str, Any] = {
        "estimator": estimator,
        "mask": mask,
        "sample_weight": sample_weight,
        "chunk_size": chunk_size,
        "check_finite": False,
    }
    kernel_z = resolve_kernel(kernel_z, z, check_finite=False)
    if attributes == "sum":
        columns = [hsic(z, s[..., a : a + 1], kernel_z=kernel_z, **options) for a in range(s.shape[-1])]
        return torch.stack(columns).sum(0)
    if attributes == "product":
        kernel_s = product_kernel(s, check_finite=False)
    kernel_s = resolve_kernel(kernel_s, s, check_finite=False)
    weights = _row_weights(z, estimator=estimator, mask=mask, sample_weight=sample_weight)
    if chunk_size is not None or z.shape[-2] > DENSE_ROWS:
        return streaming_hsic(
            z, s, kernel_z=kernel_z, kernel_s=kernel_s, estimator=estimator, row_weights=weights, chunk_size=chunk_size
        )
    return contract(z, contraction_weights(kernel_s(s), estimator=estimator, weights=weights), kernel_z)


def _row_weights(
    z: Tensor, *, estimator: str, mask: ArrayLike | None, sample_weight: ArrayLike | None
) -> Tensor | None:
    """Probabilities (biased) or a 0/1 mask (unbiased) for the rows; ``None`` when every row counts the same."""
    if mask is None and sample_weight is None:
        return None
    kept = None if mask is None else as_mask(mask, z)
    if estimator == "unbiased":
        if sample_weight is not None:
            raise ValueError("sample_weight needs estimator='biased': the unbiased form exists for masks only.")
        assert kept is not None
        if bool((kept.sum(-1) < 4).any()):
            raise ValueError(f"mask keeps {int(kept.sum(-1).min())} rows: the unbiased estimator needs at least 4.")
        return kept.to(z.dtype)
    raw = z.new_ones(z.shape[-2]) if sample_weight is None else as_weights(sample_weight, z)
    if kept is not None:
        raw = raw * kept.to(z.dtype)
        if bool((raw.sum(-1) == 0).any()):
            raise ValueError("mask keeps no row with a positive weight: at least one is needed.")
    return raw / raw.sum(-1, keepdim=True)


def normalized_hsic(
    z: ArrayLike,
    s: ArrayLike,
    *,
    kernel_z: Kernel | None = None,
    kernel_s: Kernel | None = None,
    mask: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    chunk_size: int | None = None,
    check_finite: bool = True,
) -> Tensor:
    r"""Normalised HSIC, in [0, 1]: a correlation of the two centred Gram matrices (also called CKA).

    .. math:: \frac{\mathrm{HSIC}_b(Z,S)}{\sqrt{\mathrm{HSIC}_b(Z,Z)\,\mathrm{HSIC}_b(S,S)}},\qquad
        0 \text{ if either is constant.}

    Three times the cost of :func:`hsic`. Parameters as there; always the biased form.

    Examples
    --------
    >>> round(normalized_hsic([0.0, 1.0, 2.0, 3.0], [0.0, 2.0, 4.0, 6.0]).item(), 6)
    1.0
    """
    z, s = as_pair(z, s, check_finite=check_finite)
    kernel_z, kernel_s = (
        resolve_kernel(kernel_z, z, check_finite=False),
        resolve_kernel(kernel_s, s, check_finite=False),
    )
    weights = _row_weights(z, estimator="biased", mask=mask, sample_weight=sample_weight)
    if chunk_size is not None or z.shape[-2] > DENSE_ROWS:

        def streamed(a: Tensor, b: Tensor, kernel_a: Kernel, kernel_b: Kernel) -> Tensor:
            return streaming_hsic(
                a, b, kernel_z=kernel_a, kernel_s=kernel_b, row_weights=weights, chunk_size=chunk_size
            )

        cross = streamed(z, s, kernel_z, kernel_s)
        own = streamed(z, z, kernel_z, kernel_z) * streamed(s, s, kernel_s, kernel_s)
    else:
        gram_z, gram_s = kernel_z(z), kernel_s(s)
        weights_z = contraction_weights(gram_z, weights=weights)
        weights_s = contraction_weights(gram_s, weights=weights)
        cross = (gram_z * weights_s).sum((-2, -1))
        own = (gram_z * weights_z).sum((-2, -1)) * (gram_s * weights_s).sum((-2, -1))
    # A constant sample leaves rounding of order eps² here; its correlation with anything is zero by definition.
    smallest = torch.finfo(own.dtype).eps ** 2
    safe = own.clamp_min(smallest)
    return torch.where(own > smallest, cross / safe.sqrt(), torch.zeros_like(cross)).clamp(0.0, 1.0)
