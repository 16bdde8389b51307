"""The Hilbert–Schmidt independence criterion: biased, unbiased, normalized, and as a loss.

HSIC(Z, S) = ‖μ_ZS − μ_Z ⊗ μ_S‖² (Definition 2.1, ``def:hsic``). Every estimator is one centered Gram matrix and one
elementwise product (:mod:`frhsic_core.joint.contraction`); the product of four n × n matrices is never formed.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from frhsic_core.arrays import ArrayLike, as_mask, as_pair, read_mixed, require_value, row_weights, same_kind
from frhsic_core.choices import one_of
from frhsic_core.joint.contraction import ESTIMATORS
from frhsic_core.joint.factors import THIN_ROWS, thin_hsic
from frhsic_core.joint.given import conditional_hsic
from frhsic_core.joint.streaming import all_pairs
from frhsic_core.kernels import Categorical, Kernel, product_kernel, resolve_kernel, without_units

ATTRIBUTES = ("joint", "product", "sum")
FORMS = ("biased", "unbiased", "normalized")


@same_kind
def hsic(
    z: ArrayLike,
    s: ArrayLike,
    *,
    kernel_z: Kernel | str | None = None,
    kernel_s: Kernel | str | None = None,
    estimator: str = "biased",
    mask: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    attributes: str = "joint",
    check_finite: bool = True,
) -> Tensor:
    r"""Return the Hilbert–Schmidt independence criterion of a representation and a sensitive attribute.

    Biased (a V-statistic, the paper's penalty, its equation ``eq:hsic_empirical``):

    .. math:: \widehat{\mathrm{HSIC}}_b = n^{-2}\,\mathrm{tr}(KHLH) \ge 0 .

    Unbiased (a U-statistic; Song et al., 2012), which may be negative and has mean zero under independence:

    .. math:: \widehat{\mathrm{HSIC}}_u = \frac{1}{n(n-3)}\Big[\mathrm{tr}(\tilde K\tilde L)
        + \frac{\mathbf 1^\top\tilde K\mathbf 1\,\mathbf 1^\top\tilde L\mathbf 1}{(n-1)(n-2)}
        - \frac{2}{n-2}\mathbf 1^\top\tilde K\tilde L\mathbf 1\Big],\quad \tilde K = K - \mathrm{diag}(K).

    Two columns of numbers, such as a score and an age, take O(n r²) time and O(n) memory, where r is the numerical rank
    of the Gram matrices, a few tens at bandwidths near the median; so do categories and a few columns. Laplacian
    kernels of one column take O(n log² n). The relative error is below 1e-10 (see :mod:`frhsic_core.joint.factors`).
    Otherwise O(n²(d + p)) time, with O(n²) memory up to 4,096 rows. Above that, or where whole matrices do not fit into
    memory, the sum over all pairs goes block by block in O(n) memory; on a GPU with Triton fused kernels do it.

    Parameters
    ----------
    z, s : array_like
        ``(..., n, d)`` and ``(..., n, p)`` or ``(..., n)``. A table ``s`` may have columns of text or categories beside
        numeric ones, such as sex and age.
    kernel_z, kernel_s : Kernel or str, optional
        A kernel, or its name: ``"gaussian"``, ``"laplacian"``, ``"imq"``, ``"multi_scale"``, ``"linear"``,
        ``"distance"`` or ``"categorical"``, at the median bandwidth of each batch element, detached. ``None`` is
        Gaussian; for a table with categories it is the product over its columns of Gaussians and of
        :class:`~frhsic_core.kernels.Categorical`.
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
    check_finite : bool
        Look for NaN, infinities and numbers beyond the range of the dtype, before and after.

    Returns
    -------
    Tensor, array or float
        Shape ``(...)``. With kernels that have a bandwidth the result does not depend on the units of ``z`` and ``s``.

    Notes
    -----
    Implements Definition 2.1 and the statistic of Theorem 4.7 (``thm:hsic_gdp``). Introduced in the chapter "Which HSIC
    is this?".

    Examples
    --------
    >>> round(hsic([0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 2.0, 3.0]), 4)
    0.1186
    >>> hsic([0.0, 1.0, 2.0, 3.0], [5.0, 5.0, 5.0, 5.0])
    0.0
    """
    one_of("estimator", estimator, ESTIMATORS)
    options: dict[str, Any] = {"kernel_z": kernel_z, "kernel_s": kernel_s, "mask": mask, "sample_weight": sample_weight}
    return _criterion(z, s, estimator, attributes=attributes, check_finite=check_finite, **options)


def _criterion(
    z: ArrayLike,
    s: ArrayLike,
    form: str,
    *,
    kernel_z: Kernel | str | None,
    kernel_s: Kernel | str | None,
    mask: ArrayLike | None,
    sample_weight: ArrayLike | None,
    attributes: str = "joint",
    check_finite: bool = True,
) -> Tensor:
    """Return HSIC in one of ``FORMS``."""
    one_of("attributes", attributes, ATTRIBUTES)
    s, categorical = read_mixed(s)
    z, s = as_pair(z, s, check_finite=check_finite, min_rows=4 if form == "unbiased" else 1)
    if attributes != "joint" and kernel_s is not None:
        raise ValueError(
            f"attributes={attributes!r} chooses the kernels on S itself: drop kernel_s, or use attributes='joint'."
        )
    kernel_z = resolve_kernel(kernel_z, z, name="kernel_z")
    weights = _row_weights(z, form=form, mask=mask, sample_weight=sample_weight)
    if attributes == "sum":
        columns = [
            _value(z, column, kernel_z, Categorical() if a in categorical else resolve_kernel(None, column),
                   form, weights)
            for a, column in enumerate(s.split(1, dim=-1))
        ]  # fmt: skip
        value = torch.stack(columns).sum(0)
    else:
        if attributes == "product" and not categorical:
            kernel_s = product_kernel(s)
        kernel_s = resolve_kernel(kernel_s, s, name="kernel_s", categorical=categorical)
        value = _value(z, s, kernel_z, kernel_s, form, weights)
    name = "normalized_hsic" if form == "normalized" else "hsic"
    return require_value(value, name) if check_finite else value


def _value(z: Tensor, s: Tensor, kernel_z: Kernel, kernel_s: Kernel, form: str, weights: Tensor | None) -> Tensor:
    """Return HSIC in one of ``FORMS`` of checked samples: thin where the ranks are small, else over all pairs."""
    if form == "normalized":  # a ratio has no units; those of a kernel without a bandwidth would leave the range
        z, s = without_units(z, kernel_z), without_units(s, kernel_s)
    options: dict[str, Any] = {
        "kernel_z": kernel_z,
        "kernel_s": kernel_s,
        "row_weights": weights,
        "estimator": "unbiased" if form == "unbiased" else "biased",
        "normalized": form == "normalized",
    }
    value = thin_hsic(z, s, **options) if z.shape[-2] >= THIN_ROWS else None
    if value is None:
        value = all_pairs(z, s, **options)
    if form == "unbiased":
        return value
    return value.clamp_min(0.0) if form == "biased" else value.clamp(0.0, 1.0)


def _row_weights(z: Tensor, *, form: str, mask: ArrayLike | None, sample_weight: ArrayLike | None) -> Tensor | None:
    """Return probabilities or, for the unbiased form, a 0/1 mask of the rows; ``None`` if all count the same."""
    if form != "unbiased":
        return row_weights(z, mask, sample_weight)
    if sample_weight is not None:
        raise ValueError("sample_weight needs estimator='biased': the unbiased form exists for masks only.")
    if mask is None:
        return None
    kept = as_mask(mask, z)
    if bool((kept.sum(-1) < 4).any()):
        raise ValueError(f"mask keeps {int(kept.sum(-1).min())} rows: the unbiased estimator needs at least 4.")
    return kept.to(z.dtype)


@same_kind
def normalized_hsic(
    z: ArrayLike,
    s: ArrayLike,
    *,
    kernel_z: Kernel | str | None = None,
    kernel_s: Kernel | str | None = None,
    mask: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> Tensor:
    r"""Return the normalized HSIC in [0, 1], a correlation of the two centered Gram matrices (also called CKA).

    .. math:: \frac{\mathrm{HSIC}_b(Z,S)}{\sqrt{\mathrm{HSIC}_b(Z,Z)\,\mathrm{HSIC}_b(S,S)}},\qquad
        0 \text{ if either is constant.}

    Three times the cost of :func:`hsic`. Parameters as there; always the biased form.

    Examples
    --------
    >>> round(normalized_hsic([0.0, 1.0, 2.0, 3.0], [0.0, 2.0, 4.0, 6.0]), 6)
    1.0
    """
    options: dict[str, Any] = {"kernel_z": kernel_z, "kernel_s": kernel_s, "mask": mask, "sample_weight": sample_weight}
    return _criterion(z, s, "normalized", **options)


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
    kernel_z, kernel_s : Kernel or str, optional
        ``None`` is a Gaussian at the median distance of each batch, detached, so that rescaling Z changes nothing.
    attributes : {"joint", "product", "sum"}
        As in :func:`frhsic_core.hsic`, for several attributes.
    gather : bool
        Under ``torch.distributed``, use the rows of all processes together. HSIC is not a mean over rows, so the
        average of the processes' own penalties is a different number with a larger bias. Every process returns the same
        value. Its gradient is scaled so that the averaging of DistributedDataParallel gives exactly the gradient of one
        process on the global batch (see ``gather_rows``). O((Wm)²d) time on each of W processes; only
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
        kernel_z: Kernel | str | None = None,
        kernel_s: Kernel | str | None = None,
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
        one_of("estimator", estimator, FORMS)
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
            rows: dict[str, Any] = {"mask": mask, "sample_weight": sample_weight}
            if given is not None:
                return self.lam * self._given(z, s, given, rows)
            rows |= {"kernel_z": self.kernel_z, "kernel_s": self.kernel_s}
            return self.lam * _criterion(z, s, self.estimator, attributes=self.attributes, **rows)

    def _given(self, z: Tensor, s: Tensor, given: Tensor, rows: dict[str, Any]) -> Tensor:
        z, s = as_pair(z, s)
        options = {"kernel_z": self.kernel_z, "estimator": self.estimator, **rows}
        if self.attributes == "sum":
            columns = [conditional_hsic(z, column, given, **options) for column in s.split(1, dim=-1)]
            return torch.stack(columns).sum(0)
        kernel_s = product_kernel(s) if self.attributes == "product" else self.kernel_s
        return conditional_hsic(z, s, given, kernel_s=kernel_s, **options)

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


class _Gather(torch.autograd.Function):
    """Concatenate along dimension −2; backward keeps one's own rows, times the number of processes."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, sizes: tuple[int, ...], rank: int) -> Tensor:
        largest = max(sizes)
        padded = x.new_zeros(*x.shape[:-2], largest, x.shape[-1])
        padded[..., : x.shape[-2], :] = x
        parts = [torch.empty_like(padded) for _ in sizes]
        dist.all_gather(parts, padded.contiguous())
        ctx.start, ctx.rows, ctx.world = sum(sizes[:rank]), sizes[rank], len(sizes)
        return torch.cat([part[..., :n, :] for part, n in zip(parts, sizes, strict=True)], dim=-2)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return grad[..., ctx.start : ctx.start + ctx.rows, :] * ctx.world, None, None


def gather_rows(x: Tensor) -> Tensor:
    """Return the rows of all processes in the order of ranks, ``(..., n_r, d) -> (..., Σ n_r, d)``.

    Every process computes the same function P of all rows, so the gradient of P in one's own rows is known without
    further communication. It is multiplied by the number of processes W, because DistributedDataParallel averages:
    (1/W) Σ_r W ∂P/∂z_r · ∂z_r/∂θ = ∂P/∂θ, the gradient of a single process on the global batch. Where gradients are
    summed instead of averaged, divide the penalty by W.

    The processes may have different numbers of rows. Without an initialized process group, or with one process, the
    result is ``x`` itself.

    Examples
    --------
    >>> gather_rows(torch.ones(2, 1)).shape
    torch.Size([2, 1])
    """
    if not (dist.is_available() and dist.is_initialized()) or dist.get_world_size() == 1:
        return x
    mine = torch.tensor([x.shape[-2]], device=x.device)
    counts = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(counts, mine)
    return _Gather.apply(x, tuple(int(c) for c in counts), dist.get_rank())
