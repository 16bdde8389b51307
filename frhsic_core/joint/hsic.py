"""The Hilbert–Schmidt independence criterion: biased, unbiased, normalized, and as a loss.

HSIC(Z, S) = ‖μ_ZS − μ_Z ⊗ μ_S‖² (Definition 2.1, ``def:hsic``). Every estimator is one centered Gram matrix and one
elementwise product (:mod:`frhsic_core.joint.contraction`); the product of four n × n matrices is never formed.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from frhsic_core.arrays import ArrayLike, as_mask, as_pair, as_weights, require_value
from frhsic_core.joint.contraction import dependence, require_estimator
from frhsic_core.joint.gather import gather_rows
from frhsic_core.joint.hsic_given import conditional_hsic
from frhsic_core.joint.mixed import mixed_kernel, read_mixed
from frhsic_core.joint.streaming import fused_form, require_precision, streaming_correlation, streaming_hsic
from frhsic_core.kernels import Categorical, Kernel, product_kernel, resolve_kernel, without_units
from frhsic_core.memory import DENSE_ROWS, require_memory

ATTRIBUTES = ("joint", "product", "sum")
FORMS = ("biased", "unbiased", "normalized")


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
    precision: str | None = None,
    check_finite: bool = True,
) -> Tensor:
    r"""Return the Hilbert–Schmidt independence criterion of a representation and a sensitive attribute.

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
        ``(..., n, d)`` and ``(..., n, p)`` or ``(..., n)``. A table ``s`` may have columns of text or categories beside
        numeric ones, such as sex and age.
    kernel_z, kernel_s : Kernel, optional
        ``None``: Gaussian at the median bandwidth, per batch element, detached. For a table with categories: the
        product over its columns of Gaussians and of :class:`~frhsic_core.kernels.Categorical`.
    estimator : {"biased", "unbiased"}
        See above; the unbiased form needs four rows.
    mask : array_like of bool, optional
        ``(..., n)``: use these rows only (``y == 1`` gives the equal-opportunity form). Default bandwidths are still
        those of all rows.
    sample_weight : array_like, optional
        ``(..., n)``, non-negative: HSIC of the weighted empirical distribution (biased form only).
    attributes : {"joint", "product", "sum"}
        For p > 1: one kernel on the whole vector; a product of kernels, one per column, at their own median bandwidths;
        or the sum over columns of p separate criteria, which measures each attribute but not their combination.
    chunk_size : int, optional
        Rows per block of the streamed computation.
    precision : {"tf32", "tf32x3", "float32", "float64"}, optional
        Precision of the distances in the fused kernels, which compute more than 4,096 rows on a GPU (see
        :mod:`frhsic_core.joint.fused`); elsewhere it changes nothing. The default is float64 for samples in float64 and
        ``"tf32x3"`` otherwise. Measured on 100,000 normal rows of 50 columns at the median bandwidth, the relative
        error of value and gradient is 4e-7 and 6e-7 with ``"tf32x3"``, 2e-7 and 7e-5 with ``"tf32"``.
    check_finite : bool
        Look for NaN, infinities and numbers beyond the range of the dtype, before and after.

    Returns
    -------
    Tensor
        Shape ``(...)``. With kernels that have a bandwidth the result does not depend on the units of ``z`` and ``s``.

    Notes
    -----
    Implements Definition 2.1 and the statistic of Theorem 4.7 (``thm:hsic_gdp``). Introduced in the chapter "Which HSIC
    is this?".

    Examples
    --------
    >>> round(hsic([0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 2.0, 3.0]).item(), 4)
    0.1186
    >>> hsic([0.0, 1.0, 2.0, 3.0], [5.0, 5.0, 5.0, 5.0]).item()
    0.0
    """
    require_estimator(estimator)
    require_precision(precision)
    if attributes not in ATTRIBUTES:
        raise ValueError(f"attributes is {attributes!r}: choose 'joint', 'product' or 'sum'.")
    s, categorical = read_mixed(s)
    z, s = as_pair(z, s, check_finite=check_finite, min_rows=4 if estimator == "unbiased" else 1)
    if attributes != "joint" and kernel_s is not None:
        raise ValueError(
            f"attributes={attributes!r} chooses the kernels on S itself: drop kernel_s, or use attributes='joint'."
        )
    options: dict[str, Any] = {
        "estimator": estimator,
        "mask": mask,
        "sample_weight": sample_weight,
        "chunk_size": chunk_size,
        "precision": precision,
        "check_finite": False,
    }
    kernel_z = resolve_kernel(kernel_z, z, check_finite=False)
    if attributes == "sum":
        columns = [
            hsic(
                z, s[..., a : a + 1], kernel_z=kernel_z, kernel_s=Categorical() if a in categorical else None, **options
            )
            for a in range(s.shape[-1])
        ]
        total = torch.stack(columns).sum(0)
        return require_value(total, "hsic") if check_finite else total
    if categorical and kernel_s is None:
        kernel_s = mixed_kernel(s, categorical)
    elif attributes == "product":
        kernel_s = product_kernel(s, check_finite=False)
    kernel_s = resolve_kernel(kernel_s, s, check_finite=False)
    weights = _row_weights(z, estimator=estimator, mask=mask, sample_weight=sample_weight)
    if chunk_size is not None or z.shape[-2] > DENSE_ROWS:
        value = streaming_hsic(
            z, s, kernel_z=kernel_z, kernel_s=kernel_s, estimator=estimator, row_weights=weights, chunk_size=chunk_size,
            precision=precision,
        )  # fmt: skip
    else:
        _require_dense(z, s)
        value = dependence(z, s, kernel_z=kernel_z, kernel_s=kernel_s, estimator=estimator, row_weights=weights)
    if check_finite:
        require_value(value, "hsic")
    return value.clamp_min(0.0) if estimator == "biased" else value


def _require_dense(z: Tensor, s: Tensor) -> None:
    batch = torch.broadcast_shapes(z.shape[:-2], s.shape[:-2]).numel()
    advice = "Pass chunk_size=2048, which takes batch elements one after another, or fewer batch elements."
    require_memory(z, z.shape[-2], batch=batch, copies=4, advice=advice)


def _row_weights(
    z: Tensor, *, estimator: str, mask: ArrayLike | None, sample_weight: ArrayLike | None
) -> Tensor | None:
    """Return probabilities (biased) or a 0/1 mask (unbiased) of the rows, or ``None`` if all rows count the same."""
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
    precision: str | None = None,
    check_finite: bool = True,
) -> Tensor:
    r"""Return the normalized HSIC in [0, 1], a correlation of the two centered Gram matrices (also called CKA).

    .. math:: \frac{\mathrm{HSIC}_b(Z,S)}{\sqrt{\mathrm{HSIC}_b(Z,Z)\,\mathrm{HSIC}_b(S,S)}},\qquad
        0 \text{ if either is constant.}

    Three times the cost of :func:`hsic`. Parameters as there; always the biased form.

    Examples
    --------
    >>> round(normalized_hsic([0.0, 1.0, 2.0, 3.0], [0.0, 2.0, 4.0, 6.0]).item(), 6)
    1.0
    """
    require_precision(precision)
    s, categorical = read_mixed(s)
    z, s = as_pair(z, s, check_finite=check_finite)
    kernel_z = resolve_kernel(kernel_z, z, check_finite=False)
    if categorical and kernel_s is None:
        kernel_s = mixed_kernel(s, categorical)
    kernel_s = resolve_kernel(kernel_s, s, check_finite=False)
    weights = _row_weights(z, estimator="biased", mask=mask, sample_weight=sample_weight)
    # The ratio has no units; those of a kernel without a bandwidth would leave the range.
    z, s = without_units(z, kernel_z), without_units(s, kernel_s)
    if chunk_size is None and z.shape[-2] <= DENSE_ROWS:
        _require_dense(z, s)
        value = dependence(z, s, kernel_z=kernel_z, kernel_s=kernel_s, row_weights=weights, normalized=True)
    elif chunk_size is None and fused_form(z, s, kernel_z, kernel_s):
        value = streaming_hsic(
            z, s, kernel_z=kernel_z, kernel_s=kernel_s, estimator="normalized", row_weights=weights, precision=precision
        )
    else:
        value = streaming_correlation(
            z, s, kernel_z=kernel_z, kernel_s=kernel_s, row_weights=weights, chunk_size=chunk_size
        )
    if check_finite:
        require_value(value, "normalized_hsic")
    return value.clamp(0.0, 1.0)


class HSICLoss(nn.Module):
    r"""λ · HSIC(Z, S) on a mini-batch, to be added to the task loss of any PyTorch training loop.

    .. math:: \min_{h, f}\; \widehat{\mathcal L}(f \circ h) + \lambda\, \widehat{\mathrm{HSIC}}(h(X), S)

    (the paper's ``eq:frhsic_objective``). O(m²d) for a batch of m rows.

    The recommended form of FRHSIC (:class:`frhsic_core.learning.FRHSIC`, which the estimators train) is the sum of two
    such losses, on whitened Z and on the output of the head::

        HSICLoss(lam)(whiten(z), s) + HSICLoss(lam, kernel_z=Linear())(output, s)

    with ``from frhsic_core.learning import whiten``. λ means the same in all three: with the same bandwidths, value and
    gradient agree. (The estimators average σ_Z over batches and take σ_S from the training data.) Without whitening the
    encoder can evade the kernel by shearing or collapsing Z.

    Parameters
    ----------
    lam : float
        Weight of the penalty, zero or positive.
    estimator : {"biased", "unbiased", "normalized"}
        The paper's penalty is ``"biased"``; it has a floor of order 1/m that shrinks when Z collapses. ``"unbiased"``
        has no floor. ``"normalized"`` is a correlation, so shrinking Z does not lower it.
    kernel_z, kernel_s : Kernel, optional
        ``None`` is a Gaussian at the median distance of each batch, detached, so that rescaling Z changes nothing.
    attributes : {"joint", "product", "sum"}
        As in :func:`frhsic_core.hsic`, for several attributes.
    gather : bool
        Under ``torch.distributed``, use the rows of all processes together. HSIC is not a mean over rows, so the
        average of the processes' own penalties is a different number with a larger bias. Every process returns the same
        value. Its gradient is scaled so that the averaging of DistributedDataParallel gives exactly the gradient of one
        process on the global batch (see :mod:`frhsic_core.joint.gather`). O((Wm)²d) time on each of W processes; only
        Z and S are sent, O(Wm(d + p)).

    Examples
    --------
    >>> import torch
    >>> penalty = HSICLoss(lam=10.0)
    >>> z = torch.linspace(-1, 1, 64).reshape(64, 1).requires_grad_()
    >>> penalty(z, z.detach() ** 2).backward()
    >>> bool(z.grad.abs().max() > 0)
    True
    """

    def __init__(
        self,
        lam: float = 1.0,
        *,
        estimator: str = "biased",
        kernel_z: Kernel | None = None,
        kernel_s: Kernel | None = None,
        attributes: str = "joint",
        gather: bool = False,
    ) -> None:
        super().__init__()
        if not hasattr(lam, "__float__"):
            raise TypeError(
                f"lam is {lam!r}: pass a number that is zero or positive. Only FairClassifier, FairRegressor and "
                "FairEncoder choose one themselves, with lam='auto'."
            )
        if not lam >= 0:
            raise ValueError(f"lam is {lam}: it must be zero or positive.")
        if estimator not in FORMS:
            raise ValueError(f"estimator is {estimator!r}: choose one of {', '.join(map(repr, FORMS))}.")
        self.lam = float(lam)
        self.estimator = estimator
        self.kernel_z = kernel_z
        self.kernel_s = kernel_s
        self.attributes = attributes
        self.gather = bool(gather)

    def forward(
        self,
        z: Tensor,
        s: Tensor,
        *,
        given: Tensor | None = None,
        mask: Tensor | None = None,
        sample_weight: Tensor | None = None,
    ) -> Tensor:
        """Return λ·HSIC with the batch shape of ``z``.

        ``given`` conditions on a third variable: labels of a whole-number type (equalized odds), or floating-point
        numbers (:func:`frhsic_core.joint.conditional_hsic`). ``mask`` keeps some rows (``y == 1``: equal opportunity).
        """
        if self.gather:
            if given is not None:
                columns = given.reshape(len(given), -1).to(torch.float64)
                given = gather_rows(columns).to(given.dtype)
            z, s, mask, sample_weight = _gathered(z, s, mask, sample_weight)
        # Mixed precision would form the Gram matrices in half precision, where HSIC is lost in rounding.
        with torch.autocast(z.device.type if isinstance(z, Tensor) else "cpu", enabled=False):
            rows = {"mask": mask, "sample_weight": sample_weight}
            return self.lam * (self._value(z, s, rows) if given is None else self._given(z, s, given, rows))

    def _given(self, z: Tensor, s: Tensor, given: Tensor, rows: dict[str, Any]) -> Tensor:
        z, s = as_pair(z, s)
        options = {"kernel_z": self.kernel_z, "estimator": self.estimator, **rows}
        if self.attributes == "sum":
            columns = [conditional_hsic(z, column, given, **options) for column in s.split(1, dim=-1)]
            return torch.stack(columns).sum(0)
        kernel_s = product_kernel(s) if self.attributes == "product" else self.kernel_s
        return conditional_hsic(z, s, given, kernel_s=kernel_s, **options)

    def _value(self, z: Tensor, s: Tensor, rows: dict[str, Any]) -> Tensor:
        if self.estimator == "normalized":
            return normalized_hsic(z, s, kernel_z=self.kernel_z, kernel_s=self.kernel_s, **rows)
        return hsic(
            z,
            s,
            kernel_z=self.kernel_z,
            kernel_s=self.kernel_s,
            estimator=self.estimator,
            attributes=self.attributes,
            **rows,
        )

    def extra_repr(self) -> str:
        """Show λ and the estimator when a model is printed."""
        return f"lam={self.lam:g}, estimator={self.estimator!r}" + (", gather=True" if self.gather else "")


def _gathered(
    z: Tensor, s: Tensor, mask: Tensor | None, sample_weight: Tensor | None
) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
    """Return the rows of all processes; vectors are sent as columns, and the mask as numbers."""
    z = z.unsqueeze(-1) if z.ndim == 1 else z
    column = s.ndim < z.ndim
    s = gather_rows((s.unsqueeze(-1) if column else s).detach())
    kept = None if mask is None else gather_rows(torch.as_tensor(mask, device=z.device).to(z.dtype).unsqueeze(-1))
    if sample_weight is not None:
        sample_weight = gather_rows(torch.as_tensor(sample_weight).to(z).unsqueeze(-1)).squeeze(-1)
    return gather_rows(z), s, None if kept is None else kept.squeeze(-1) > 0.5, sample_weight
