"""HSIC as a loss for training loops of torch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from frhsic_core._choices import one_of
from frhsic_core.joint.hsic import FORMS, criterion
from frhsic_core.kernels import Kernel


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

    Notes
    -----
    HSIC is not a mean over rows, so the average of the penalties of several processes is a different number with a
    larger bias. Under ``torch.distributed`` give each process the rows of all of them, equally many from each::

        from torch.distributed.nn.functional import all_gather
        penalty(torch.cat(all_gather(z)), torch.cat(all_gather(s)))

    Each of W processes then computes the same penalty P, and the gradients of their copies add up to W·∂P/∂z in one's
    own rows. DistributedDataParallel averages: (1/W) Σ_r W ∂P/∂z_r · ∂z_r/∂θ = ∂P/∂θ, exactly the gradient of one
    process on the global batch. Where gradients are summed, divide the penalty by W.

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
        normalized = self.estimator == "normalized"
        options: dict[str, Any] = {
            "mask": mask,
            "sample_weight": sample_weight,
            "normalized": normalized,
        }
        options |= {"kernel_z": self.kernel_z, "kernel_s": self.kernel_s}
        # Mixed precision would form the Gram matrices in half precision, where HSIC is lost in rounding.
        with torch.autocast(z.device.type if isinstance(z, Tensor) else "cpu", enabled=False):
            return self.lam * criterion(
                z, s, estimator="biased" if normalized else self.estimator, **options
            )

    def extra_repr(self) -> str:
        """Show λ and the estimator when a model is printed."""
        return f"lam={self.lam:g}, estimator={self.estimator!r}"
