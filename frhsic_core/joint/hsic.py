"""The Hilbert–Schmidt independence criterion: biased, unbiased, normalized, and as a loss.

HSIC(Z, S) = ‖μ_ZS − μ_Z ⊗ μ_S‖² (Definition 2.1, ``def:hsic``). Every estimator is one centered Gram matrix and one
elementwise product (:mod:`frhsic_core.joint.contraction`); the product of four n × n matrices is never formed.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.functional import pad

from frhsic_core.arrays import (
    DENSE_ROWS,
    ArrayLike,
    as_mask,
    as_pair,
    batch_shape,
    fits_memory,
    read_mixed,
    require_value,
    row_weights,
    same_kind,
)
from frhsic_core.choices import one_of
from frhsic_core.joint.contraction import ESTIMATORS, dependence
from frhsic_core.joint.factors import SORTED_ROWS, thin_hsic
from frhsic_core.joint.streaming import streaming_hsic
from frhsic_core.kernels import Distance, Kernel, Linear, resolve_kernel, without_units

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
    kernels and distances of one column take O(n log² n). The relative error is below 1e-10 (see
    :mod:`frhsic_core.joint.factors`).

    Otherwise O(n²(d + p)) time, with O(n²) memory up to 4,096 rows. Above that, or where whole matrices do not fit into
    memory, the sum over all pairs goes block by block in O(n) memory; on a GPU with Triton fused kernels do it.

    Parameters
    ----------
    z, s : array_like
        ``(..., n, d)`` and ``(..., n, p)`` or ``(..., n)``. A table ``s`` may have columns of text or categories beside
        numeric ones, such as sex and age.
    kernel_z, kernel_s : Kernel or str, optional
        A kernel, or its name: ``"gaussian"``, ``"laplacian"``, ``"imq"``, ``"multi_scale"``, ``"linear"``,
        ``"distance"`` or ``"categorical"``, at the median bandwidth of each batch element, detached; or ``"product"``,
        the product over the columns of Gaussians at their own median bandwidths. ``None`` is Gaussian; for a table with
        categories it is the product over its columns of Gaussians and of :class:`~frhsic_core.kernels.Categorical`.
    estimator : {"biased", "unbiased"}
        See above; the unbiased form needs four rows.
    mask : array_like of bool, optional
        ``(..., n)``: use these rows only (``y == 1`` gives the equal-opportunity form). Default bandwidths are still
        those of all rows.
    sample_weight : array_like, optional
        ``(..., n)``, non-negative: HSIC of the weighted empirical distribution (biased form only).
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
    return _criterion(z, s, estimator, check_finite=check_finite, **options)


def _criterion(
    z: ArrayLike,
    s: ArrayLike,
    form: str,
    *,
    kernel_z: Kernel | str | None,
    kernel_s: Kernel | str | None,
    mask: ArrayLike | None,
    sample_weight: ArrayLike | None,
    check_finite: bool = True,
) -> Tensor:
    """Return HSIC in one of ``FORMS``."""
    s, categorical = read_mixed(s)
    z, s = as_pair(z, s, check_finite=check_finite, min_rows=4 if form == "unbiased" else 1)
    kernel_z = resolve_kernel(kernel_z, z, name="kernel_z")
    kernel_s = resolve_kernel(kernel_s, s, name="kernel_s", categorical=categorical)
    weights = _row_weights(z, form=form, mask=mask, sample_weight=sample_weight)
    # These kernels measure from the origin. It drops out of HSIC, and one far from the sample would cost digits.
    z, s = (
        x - x.detach().mean(-2, keepdim=True) if isinstance(kernel, Linear | Distance) else x
        for x, kernel in ((z, kernel_z), (s, kernel_s))
    )
    normalized = form == "normalized"
    if normalized:  # a ratio has no units; those of a kernel without a bandwidth would leave the range
        z, s = without_units(z, kernel_z), without_units(s, kernel_s)
    options: dict[str, Any] = {"kernel_z": kernel_z, "kernel_s": kernel_s, "row_weights": weights}
    estimator = "unbiased" if form == "unbiased" else "biased"
    value = dependence_at_any_size(z, s, estimator=estimator, normalized=normalized, **options)
    if form != "unbiased":
        value = value.clamp(0.0, 1.0 if normalized else None)
    return require_value(value, "normalized_hsic" if normalized else "hsic") if check_finite else value


def dependence_at_any_size(z: Tensor, s: Tensor, **options: Any) -> Tensor:
    """Return :func:`frhsic_core.joint.contraction.dependence` of checked samples.

    It is computed from sorted columns or thin matrices where these serve, and block by block where whole matrices are
    too large.
    """
    n = z.shape[-2]
    value = thin_hsic(z, s, **options) if n >= SORTED_ROWS else None
    if value is not None:
        return value
    dense = n <= DENSE_ROWS and fits_memory(z, 6 * n * n * batch_shape(z, s).numel())
    return (dependence if dense else streaming_hsic)(z, s, **options)


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
        self.gather = bool(gather)

    def forward(
        self,
        z: Tensor,
        s: Tensor,
        *,
        mask: Tensor | None = None,
        sample_weight: Tensor | None = None,
    ) -> Tensor:
        """Return λ·HSIC with the batch shape of ``z``.

        ``mask`` keeps some rows (``y == 1``: equal opportunity). :func:`frhsic_core.joint.conditional_hsic` is the
        penalty given a third variable, such as the label (equalized odds).
        """
        if self.gather:
            z, s, mask, sample_weight = _gathered(z, s, mask, sample_weight)
        options: dict[str, Any] = {"mask": mask, "sample_weight": sample_weight}
        options |= {"kernel_z": self.kernel_z, "kernel_s": self.kernel_s}
        # Mixed precision would form the Gram matrices in half precision, where HSIC is lost in rounding.
        with torch.autocast(z.device.type if isinstance(z, Tensor) else "cpu", enabled=False):
            return self.lam * _criterion(z, s, self.estimator, **options)

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


def gather_rows(x: Tensor) -> Tensor:
    """Return the rows of all processes in the order of ranks, ``(..., n_r, d) -> (..., Σ n_r, d)``.

    Every process computes the same function P of all rows, so the sum over the processes of its gradients in one's own
    rows is the gradient of P times the number of processes W. DistributedDataParallel averages, and
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
    from torch.distributed.nn.functional import all_gather  # its backward pass adds up the gradients of the processes

    mine = torch.tensor([x.shape[-2]], device=x.device)
    counts = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(counts, mine)
    sizes = [int(count) for count in counts]
    padded = pad(x, (0, 0, 0, max(sizes) - x.shape[-2])).contiguous()
    return torch.cat([part[..., :n, :] for part, n in zip(all_gather(padded), sizes, strict=True)], dim=-2)
