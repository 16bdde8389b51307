"""Bandwidth policies for the kernel on Z, and the guard that reports when Z escapes its kernel.

Z moves while the encoder learns; a kernel whose bandwidth stays behind can be evaded by rescaling Z: far beyond the
bandwidth every pair looks equally different and a Gaussian HSIC falls to zero although nothing became independent.
Below it, every pair looks equal. The ratio median(|z − z'|)/σ_Z says where one is; the guard warns outside [1/3, 3].
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import torch
from torch import Tensor

from frhsic_core.kernels import squared_distances

__all__ = [
    "BandwidthPolicy",
    "EscapeWarning",
    "EveryBatch",
    "EveryEpochs",
    "FixedBandwidth",
    "MovingAverage",
    "MultipleOfMedian",
    "ReferenceSchedule",
    "batch_median",
    "guard",
    "resolve_policy",
]

ESCAPE = 3.0  # the ratio may lie in [1/ESCAPE, ESCAPE]


class EscapeWarning(UserWarning):
    """Z has left the range in which its kernel can tell points apart."""


def batch_median(z: Tensor, *, max_points: int | None = None) -> Tensor:
    """Lower median of the pairwise Euclidean distances of a batch, ``(..., n, d) -> (...)``.

    Without ``max_points`` over all pairs of rows. With it, over the pairs between two halves of the first
    ``max_points`` rows, which are a random sample since mini-batches are in random order: a quarter of the numbers to
    select from, at almost the same accuracy. Nothing waits for the device. Where more than half of the pairs coincide
    the root mean square distance stands in, and one for a constant Z. O(n²d) time; a selection, not a sort.

    Examples
    --------
    >>> batch_median(torch.tensor([[0.0], [1.0], [3.0]])).item()
    2.0
    """
    z = z.detach()
    n = z.shape[-2]
    if n < 2:
        return z.new_ones(z.shape[:-2])
    if max_points is None:
        squared = squared_distances(z).flatten(-2)
        # The n zeros of the diagonal come first in order, then every pair twice.
        place = n + 2 * ((n * (n - 1) // 2 - 1) // 2) + 1
    else:
        half = min(max_points, n) // 2
        squared = squared_distances(z[..., :half, :], z[..., half : 2 * half, :]).flatten(-2)
        place = (half * half + 1) // 2
    median = squared.kthvalue(place, dim=-1).values
    tiny = torch.finfo(z.dtype).tiny ** 0.5
    median = torch.where(median > tiny, median, squared.mean(-1))
    return torch.where(median > tiny, median, torch.ones_like(median)).sqrt()


@dataclass(frozen=True)
class BandwidthPolicy:
    """When σ_Z is recomputed and how the new value is taken over; the base class is what the subclasses share.

    Parameters
    ----------
    max_points : int or None
        Rows of the batch that the median is taken from; see :func:`batch_median`.
    """

    max_points: int | None = None

    def refreshes(self, epoch: int, step: int) -> bool:
        """Say whether step ``step`` of epoch ``epoch`` recomputes σ_Z."""
        raise NotImplementedError

    def update(self, old: Tensor, z: Tensor) -> Tensor:
        """Return the new σ_Z ``(models,)`` from the batch; ``old`` is zero before the first time."""
        return batch_median(z, max_points=self.max_points)


@dataclass(frozen=True)
class FixedBandwidth(BandwidthPolicy):
    """One value throughout: the one given, or the median of the first batch of the untrained encoder."""

    value: float | None = None

    def __post_init__(self) -> None:
        if self.value is not None and not self.value > 0:
            raise ValueError(f"bandwidth is {self.value}: it must be positive.")

    def refreshes(self, epoch: int, step: int) -> bool:
        return epoch == 0 and step == 0

    def update(self, old: Tensor, z: Tensor) -> Tensor:
        return super().update(old, z) if self.value is None else torch.full_like(old, self.value)


@dataclass(frozen=True)
class EveryEpochs(BandwidthPolicy):
    """The text: the median of the current mini-batch, every ``epochs`` epochs (on their first batch)."""

    epochs: int = 20

    def refreshes(self, epoch: int, step: int) -> bool:
        return epoch % self.epochs == 0 and step == 0


@dataclass(frozen=True)
class ReferenceSchedule(BandwidthPolicy):
    """The released code: every batch of epochs 0, 20, 40, ...; in between, the last (short) batch's value; + 1e-5."""

    epochs: int = 20

    def refreshes(self, epoch: int, step: int) -> bool:
        return epoch % self.epochs == 0

    def update(self, old: Tensor, z: Tensor) -> Tensor:
        return super().update(old, z) + 1e-5


@dataclass(frozen=True)
class EveryBatch(BandwidthPolicy):
    """The median of (128 points of) every batch: rescaling Z rescales the kernel with it."""

    max_points: int | None = 128

    def refreshes(self, epoch: int, step: int) -> bool:
        return True


@dataclass(frozen=True)
class MultipleOfMedian(EveryBatch):
    """A multiple of every batch's median: how much the heuristic itself matters."""

    multiple: float = 1.0

    def __post_init__(self) -> None:
        if not self.multiple > 0:
            raise ValueError(f"multiple is {self.multiple}: it must be positive.")

    def update(self, old: Tensor, z: Tensor) -> Tensor:
        return self.multiple * super().update(old, z)


@dataclass(frozen=True)
class MovingAverage(BandwidthPolicy):
    """An exponential moving average of the batch medians: σ ← (1 − rate)·σ + rate·median."""

    max_points: int | None = 128
    rate: float = 0.1

    def refreshes(self, epoch: int, step: int) -> bool:
        return True

    def update(self, old: Tensor, z: Tensor) -> Tensor:
        new = super().update(old, z)
        return torch.where(old > 0, torch.lerp(old, new, self.rate), new)


_POLICIES: dict[str, BandwidthPolicy] = {
    "fixed": FixedBandwidth(),
    "every_20_epochs": EveryEpochs(),
    "reference": ReferenceSchedule(),
    "every_batch": EveryBatch(),
    "half_every_batch": MultipleOfMedian(multiple=0.5),
    "twice_every_batch": MultipleOfMedian(multiple=2.0),
    "moving_average": MovingAverage(),
}


def resolve_policy(policy: BandwidthPolicy | str | float) -> BandwidthPolicy:
    """Return the policy meant by a name, a number (fixed at it) or a policy.

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
    """Warn (:class:`EscapeWarning`) when a ratio median(|z − z'|)/σ_Z lies outside [1/3, 3]; return whether it did."""
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
