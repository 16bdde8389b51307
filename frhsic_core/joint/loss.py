"""HSIC as a penalty that any PyTorch training loop can add."""

from __future__ import annotations

from torch import Tensor, nn

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
    ) -> None:
        super().__init__()
        if not lam >= 0:
            raise ValueError(f"lam is {lam}: it must be zero or positive.")
        if estimator not in FORMS:
            raise ValueError(f"estimator is {estimator!r}: choose one of {', '.join(map(repr, FORMS))}.")
        self.lam = float(lam)
        self.estimator = estimator
        self.kernel_z = kernel_z
        self.kernel_s = kernel_s
        self.attributes = attributes

    def forward(
        self, z: Tensor, s: Tensor, *, mask: Tensor | None = None, sample_weight: Tensor | None = None
    ) -> Tensor:
        """Return λ·HSIC with the batch shape of ``z``; ``mask`` keeps some rows (``y == 1``: equal opportunity)."""
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
        return f"lam={self.lam:g}, estimator={self.estimator!r}"
