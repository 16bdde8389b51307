"""HSIC as a penalty that any PyTorch training loop can add."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from frhsic_core.joint.gather import gather_rows
from frhsic_core.joint.hsic import hsic, normalized_hsic
from frhsic_core.kernels import Kernel

__all__ = ["HSICLoss"]

FORMS = ("biased", "unbiased", "normalized")


class HSICLoss(nn.Module):
    r"""λ · HSIC(Z, S) on a mini-batch: add it to the task loss.

    .. math:: \min_{h, f}\; \widehat{\mathcal L}(f \circ h) + \lambda\, \widehat{\mathrm{HSIC}}(h(X), S)

    (the paper's ``eq:frhsic_objective``). O(m²d) for a batch of m rows.

    Parameters
    ----------
    lam : float
        λ ≥ 0.
    estimator : {"biased", "unbiased", "normalized"}
        The paper's penalty is ``"biased"``; it has a floor of order 1/m that shrinks when Z collapses. ``"unbiased"``
        has none. ``"normalized"`` does not change when Z is rescaled, so λ means the same for every architecture.
    kernel_z, kernel_s : Kernel, optional
        ``None``: Gaussian at the median distance of each batch, detached, so that rescaling Z does not evade it.
    attributes : {"joint", "product", "sum"}
        As in :func:`frhsic_core.hsic`, for several attributes.
    gather : bool
        Under ``torch.distributed``: the penalty of the global batch, the rows of all processes together. HSIC is not a
        mean over rows, so the average of the processes' own penalties is another number, with a larger bias. Every
        process returns the same value; its gradient is scaled so that DistributedDataParallel's averaging gives exactly
        the gradient of one process on the global batch (see :mod:`frhsic_core.joint.gather`). O((Wm)²d) time on each
        of W processes; only Z and S travel, O(Wm(d + p)).

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
                f"lam is {lam!r}: give a number that is zero or positive; only FairClassifier and its siblings choose "
                "one, lam='auto'."
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
        self, z: Tensor, s: Tensor, *, mask: Tensor | None = None, sample_weight: Tensor | None = None
    ) -> Tensor:
        """Return λ·HSIC with the batch shape of ``z``; ``mask`` keeps some rows (``y == 1``: equal opportunity)."""
        if self.gather:
            z, s, mask, sample_weight = _gathered(z, s, mask, sample_weight)
        if self.estimator == "normalized":
            value = normalized_hsic(
                z, s, kernel_z=self.kernel_z, kernel_s=self.kernel_s, mask=mask, sample_weight=sample_weight
            )
        else:
            value = hsic(
                z,
                s,
                kernel_z=self.kernel_z,
                kernel_s=self.kernel_s,
                estimator=self.estimator,
                attributes=self.attributes,
                mask=mask,
                sample_weight=sample_weight,
            )
        return self.lam * value

    def extra_repr(self) -> str:
        """Show λ and the estimator when a model is printed."""
        return f"lam={self.lam:g}, estimator={self.estimator!r}" + (", gather=True" if self.gather else "")


def _gathered(
    z: Tensor, s: Tensor, mask: Tensor | None, sample_weight: Tensor | None
) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
    """Rows of all processes; vectors travel as columns, the mask as numbers."""
    z = z.unsqueeze(-1) if z.ndim == 1 else z
    column = s.ndim < z.ndim
    s = gather_rows((s.unsqueeze(-1) if column else s).detach())
    kept = None if mask is None else gather_rows(torch.as_tensor(mask, device=z.device).to(z.dtype).unsqueeze(-1))
    if sample_weight is not None:
        sample_weight = gather_rows(torch.as_tensor(sample_weight).to(z).unsqueeze(-1)).squeeze(-1)
    return gather_rows(z), s, None if kept is None else kept.squeeze(-1) > 0.5, sample_weight
