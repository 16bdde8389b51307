"""Bandwidth policies for the kernel on Z, and the guard that reports when Z escapes its kernel.

Z moves while the encoder learns. A kernel whose bandwidth does not follow can be evaded by rescaling Z: far beyond the
bandwidth all pairs are equally different for the kernel, and a Gaussian HSIC falls to zero although nothing became
independent. Far below it, all pairs are equal. The guard warns when the ratio median(|z − z'|)/σ_Z leaves [1/3, 3].
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

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
    max_points : int or None
        Number of rows of the batch that the median is computed from; see :func:`frhsic_core.kernels.batch_median`.
    """

    max_points: int | None = None

    def refreshes(self, epoch: int, step: int) -> bool:
        """Return whether step ``step`` of epoch ``epoch`` recomputes σ_Z."""
        raise NotImplementedError

    def update(self, old: Tensor, z: Tensor, *, exponents: Tensor | None = None) -> Tensor:
        """Return the new σ_Z ``(models,)`` from the batch; ``old`` is zero before the first time.

        ``exponents`` are −|z_i − z_j|²/2 of the rows, ``(models, m, m)``, where they are known already.
        """
        points = self.max_points
        if exponents is None and points is not None and points <= 128 and z.shape[-2] > 1 and can_fuse_batch(z):
            return fused_batch_median(z, max_points=points)
        return batch_median(z, points, exponents=exponents)


@dataclass(frozen=True)
class FixedBandwidth(BandwidthPolicy):
    """Keep one value: the one given, or the median of the first batch of the untrained encoder."""

    value: float | None = None

    def __post_init__(self) -> None:
        if self.value is not None and not self.value > 0:
            raise ValueError(f"bandwidth is {self.value}: it must be positive.")

    def refreshes(self, epoch: int, step: int) -> bool:
        return epoch == 0 and step == 0

    def update(self, old: Tensor, z: Tensor, *, exponents: Tensor | None = None) -> Tensor:
        return super().update(old, z, exponents=exponents) if self.value is None else torch.full_like(old, self.value)


@dataclass(frozen=True)
class EveryEpochs(BandwidthPolicy):
    """Take the median of the first mini-batch of every ``epochs``-th epoch, as in the paper's text."""

    epochs: int = 20

    def refreshes(self, epoch: int, step: int) -> bool:
        return epoch % self.epochs == 0 and step == 0


@dataclass(frozen=True)
class ReferenceSchedule(BandwidthPolicy):
    """Update on every batch of epochs 0, 20, 40, ... and keep the last value in between, as the released code does."""

    epochs: int = 20

    def refreshes(self, epoch: int, step: int) -> bool:
        return epoch % self.epochs == 0

    def update(self, old: Tensor, z: Tensor, *, exponents: Tensor | None = None) -> Tensor:
        return super().update(old, z, exponents=exponents) + 1e-5


@dataclass(frozen=True)
class EveryBatch(BandwidthPolicy):
    """Take the median of (128 points of) every batch, so that rescaling Z rescales the kernel with it."""

    max_points: int | None = 128

    def refreshes(self, epoch: int, step: int) -> bool:
        return True


@dataclass(frozen=True)
class MovingAverage(BandwidthPolicy):
    """Take an exponential moving average of the batch medians: σ ← (1 − rate)·σ + rate·median."""

    max_points: int | None = 128
    rate: float = 0.1

    def refreshes(self, epoch: int, step: int) -> bool:
        return True

    def update(self, old: Tensor, z: Tensor, *, exponents: Tensor | None = None) -> Tensor:
        new = super().update(old, z, exponents=exponents)
        return torch.where(old > 0, torch.lerp(old, new, self.rate), new)


_POLICIES: dict[str, BandwidthPolicy] = {
    "fixed": FixedBandwidth(),
    "every_20_epochs": EveryEpochs(),
    "reference": ReferenceSchedule(),
    "every_batch": EveryBatch(),
    "moving_average": MovingAverage(),
}


def resolve_policy(policy: BandwidthPolicy | str | float) -> BandwidthPolicy:
    """Return the policy for a name, a number (a fixed bandwidth) or a policy.

    Examples
    --------
    >>> resolve_policy(1.0)
    FixedBandwidth(max_points=None, value=1.0)
    """
    if isinstance(policy, BandwidthPolicy):
        return policy
    if isinstance(policy, str):
        if policy not in _POLICIES:
            raise ValueError(f"bandwidth is {policy!r}: choose one of {', '.join(map(repr, _POLICIES))} or a number.")
        return _POLICIES[policy]
    return FixedBandwidth(value=float(policy))


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
