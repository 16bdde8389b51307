"""Bandwidth policies for the kernel on Z, and the guard that reports when Z escapes its kernel.

Z moves while the encoder learns. A kernel whose bandwidth does not follow can be evaded by rescaling Z: far beyond the
bandwidth all pairs are equally different for the kernel, and a Gaussian HSIC falls to zero although nothing became
independent. Far below it, all pairs are equal. The guard warns when the ratio median(|z − z'|)/σ_Z leaves [1/3, 3].
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from frhsic_core.joint.fused import can_fuse_batch, fused_batch_median
from frhsic_core.kernels import batch_median

ESCAPE = 3.0  # the ratio may lie in [1/ESCAPE, ESCAPE]


class EscapeWarning(UserWarning):
    """Z has left the range in which its kernel distinguishes points."""


@dataclass(frozen=True)
class BandwidthPolicy:
    """When σ_Z is recomputed, and how the new value enters.

    Parameters
    ----------
    epochs : int or None
        Recompute σ_Z in every ``epochs``-th epoch, or with None in the first one only.
    first_batch : bool
        Recompute on the first mini-batch of such an epoch only, and not on all of them.
    value : float or None
        A fixed value; by default the median of the mini-batch.
    max_points : int or None
        Number of rows of the batch that the median is computed from; see :func:`frhsic_core.kernels.batch_median`.
    rate : float
        Weight of the new median: σ ← (1 − rate)·σ + rate·median, from the second time on.
    added : float
        Constant that is added to the median.
    """

    epochs: int | None = 1
    first_batch: bool = False
    value: float | None = None
    max_points: int | None = 128
    rate: float = 1.0
    added: float = 0.0

    def __post_init__(self) -> None:
        if self.value is not None and not self.value > 0:
            raise ValueError(f"bandwidth is {self.value}: it must be positive.")

    def refreshes(self, epoch: int, step: int) -> bool:
        """Return whether step ``step`` of epoch ``epoch`` recomputes σ_Z."""
        due = epoch == 0 if self.epochs is None else epoch % self.epochs == 0
        return due and (step == 0 or not self.first_batch)

    def update(self, old: Tensor, z: Tensor, *, exponents: Tensor | None = None) -> Tensor:
        """Return the new σ_Z ``(models,)`` from the batch; ``old`` is zero before the first time.

        ``exponents`` are −|z_i − z_j|²/2 of the rows, ``(models, m, m)``, where they are known already.
        """
        if self.value is not None:
            return torch.full_like(old, self.value)
        points = self.max_points
        if exponents is None and points is not None and points <= 128 and z.shape[-2] > 1 and can_fuse_batch(z):
            new = fused_batch_median(z, max_points=points)
        else:
            new = batch_median(z, points, exponents=exponents)
        if self.added:
            new = new + self.added
        return new if self.rate == 1 else torch.where(old > 0, torch.lerp(old, new, self.rate), new)


_POLICIES: dict[str, BandwidthPolicy] = {
    # The median of the first batch of the untrained encoder.
    "fixed": BandwidthPolicy(None, first_batch=True, max_points=None),
    # The paper's text: the median of one mini-batch.
    "every_20_epochs": BandwidthPolicy(20, first_batch=True, max_points=None),
    # The released code: every batch of epochs 0, 20, 40, ..., and the last value in between.
    "reference": BandwidthPolicy(20, max_points=None, added=1e-5),
    # Rescaling Z rescales the kernel with it.
    "every_batch": BandwidthPolicy(),
    "moving_average": BandwidthPolicy(rate=0.1),
}


def resolve_policy(policy: BandwidthPolicy | str | float) -> BandwidthPolicy:
    """Return the policy for a name, a number (a fixed bandwidth) or a policy.

    Examples
    --------
    >>> resolve_policy(2.0).value, resolve_policy("moving_average").rate
    (2.0, 0.1)
    """
    if isinstance(policy, BandwidthPolicy):
        return policy
    if isinstance(policy, str):
        if policy not in _POLICIES:
            raise ValueError(f"bandwidth is {policy!r}: choose one of {', '.join(map(repr, _POLICIES))} or a number.")
        return _POLICIES[policy]
    return replace(_POLICIES["fixed"], value=float(policy))


def guard(ratio: Tensor, *, epoch: int) -> bool:
    """Warn (:class:`EscapeWarning`) and return True when a ratio median(|z − z'|)/σ_Z lies outside [1/3, 3]."""
    escaped = (ratio > ESCAPE) | (ratio < 1 / ESCAPE)
    if not bool(escaped.any()):
        return False
    models = escaped.nonzero().flatten().tolist()
    worst = ratio[escaped][(ratio[escaped].log().abs()).argmax()].item()
    shown = ", ".join(map(str, models[:5])) + (", …" if len(models) > 5 else "")
    warnings.warn(
        f"epoch {epoch}: Z has escaped its kernel in {len(models)} of {ratio.numel()} models ({shown}): the median "
        f"distance is {worst:.2g} bandwidths (1/3 to 3 is safe). The penalty no longer measures dependence there; use "
        "bandwidth='every_batch', and audit Z with a scale-free measure.",
        EscapeWarning,
        stacklevel=2,
    )
    return True
