"""The interface between a penalty and the training loop, and the kernel on Z that some share.

Z moves while the encoder learns. A kernel whose bandwidth does not follow can be evaded by
rescaling Z: far beyond the bandwidth all pairs are equally different for the kernel, and a Gaussian
HSIC falls to zero although nothing became independent. Far below it, all pairs are equal. The guard
warns when the ratio median(|z − z'|)/σ_Z leaves [1/3, 3].
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from frhsic_core.conditional._smoothing import counted_range
from frhsic_core.joint.contraction import Frame, GradientTerm
from frhsic_core.joint.fused import can_fuse_batch, fused_batch_median
from frhsic_core.kernels import batch_median
from frhsic_core.learning.data import Batch, TrainingData
from frhsic_core.learning.penalties.scaling import (
    standardized,
    standardized_frame,
    whiten,
    whitened_frame,
)

SCALES = (None, "standardize", "whiten", "minmax")
ESCAPE = 3.0  # the ratio may lie in [1/ESCAPE, ESCAPE]


# The bandwidth of the kernel on Z -----------------------------------------------------------------


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
        Number of rows of the batch that the median is computed from; see
        :func:`frhsic_core.kernels.batch_median`.
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
        if self.first_batch and step > 0:
            return False
        if self.epochs is None:
            return epoch == 0
        return epoch % self.epochs == 0

    def update(self, old: Tensor, z: Tensor, *, exponents: Tensor | None = None) -> Tensor:
        """Return the new σ_Z ``(models,)`` from the batch; ``old`` is zero before the first time.

        ``exponents`` are −|z_i − z_j|²/2 of the rows, ``(models, m, m)``, where they are known
        already.
        """
        if self.value is not None:
            return torch.full_like(old, self.value)
        if exponents is None and self._fuses(z):
            return fused_batch_median(z, old, max_points=self.max_points or 0, rate=self.rate)
        new = batch_median(z, self.max_points, exponents=exponents)
        if self.added:
            new = new + self.added
        if self.rate == 1:
            return new
        mixed = torch.lerp(old, new, self.rate)
        # To look at the old values costs nothing on a CPU, and on a GPU it would wait for them.
        if old.device.type == "cpu" and min(old.tolist()) > 0:
            return mixed
        return torch.where(old > 0, mixed, new)

    def _fuses(self, z: Tensor) -> bool:
        """Return whether the fused kernels compute the median: of at most 128 rows, on a GPU."""
        if self.max_points is None or self.max_points > 128 or self.added:
            return False
        return z.shape[-2] > 1 and can_fuse_batch(z)


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
            choices = ", ".join(map(repr, _POLICIES))
            raise ValueError(f"bandwidth is {policy!r}: choose one of {choices} or a number.")
        return _POLICIES[policy]
    return replace(_POLICIES["fixed"], value=float(policy))


def guard(ratio: Tensor, *, epoch: int) -> bool:
    """Warn and return True when a ratio median(|z − z'|)/σ_Z lies outside [1/3, 3]."""
    escaped = (ratio > ESCAPE) | (ratio < 1 / ESCAPE)
    if not bool(escaped.any()):
        return False
    models = escaped.nonzero().flatten().tolist()
    outside = ratio[escaped]
    worst = outside[outside.log().abs().argmax()].item()
    shown = ", ".join(map(str, models[:5]))
    if len(models) > 5:
        shown += ", …"
    warnings.warn(
        f"epoch {epoch}: Z has escaped its kernel in {len(models)} of {ratio.numel()} models "
        f"({shown}): the median distance is {worst:.2g} bandwidths (1/3 to 3 is safe). The penalty "
        "no longer measures dependence there; use bandwidth='every_batch', and audit Z with a "
        "scale-free measure.",
        EscapeWarning,
        stacklevel=2,
    )
    return True


# The penalties ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Setup:
    """What a penalty can fit itself to before training.

    Parameters
    ----------
    data : TrainingData
        The datasets.
    dataset : Tensor
        ``(models,)``: the dataset that each model is trained on.
    generators : sequence of torch.Generator
        One for each model, in the state in which its encoder and head left it; an adversary draws
        its weights next.
    representation : int
        Dimension of Z.
    """

    data: TrainingData
    dataset: Tensor
    generators: Sequence[torch.Generator]
    representation: int

    @property
    def models(self) -> int:
        """Number of models."""
        return len(self.dataset)

    @property
    def s(self) -> Tensor:
        """Sensitive attributes, ``(datasets, n, p)``."""
        assert self.data.s is not None
        return self.data.s


class Penalty(nn.Module):
    """A penalty on the dependence of Z, or of the head's output, on S.

    It is a differentiable function ``batch -> (models,)``. Subclasses override :meth:`forward` or,
    if gradients are known, :meth:`terms`; and :meth:`prepare` if something is fitted to the
    training data. State that changes is a buffer or a parameter. A step must not wait for the
    device and must not use Python's random numbers, because it is captured once and replayed.

    Parameters
    ----------
    condition : {None, "positives", "labels", "controls"}
        With ``"positives"`` only rows with y = 1 count (equal opportunity). ``"labels"`` and
        ``"controls"`` penalize the dependence given y (equalized odds) or given control features,
        for FRHSIC only (see ``learning.penalties.conditional``).
    minimum_rows : int
        The penalty of a model is zero in a batch in which fewer rows count.
    """

    key = "custom"
    policy: BandwidthPolicy | None = None
    needs_attribute = True
    conditions: tuple[str | None, ...] = (None, "positives")

    def __init__(self, *, condition: str | None = None, minimum_rows: int = 4) -> None:
        super().__init__()
        if condition not in self.conditions:
            choices = ", ".join(map(repr, self.conditions))
            raise ValueError(
                f"condition is {condition!r}: choose one of {choices} for {self.key!r}."
            )
        self.condition = condition
        self.minimum_rows = minimum_rows
        self.weighted = False

    def setup(
        self,
        data: TrainingData,
        *,
        dataset: Tensor,
        generators: Sequence[torch.Generator],
        representation: int,
    ) -> None:
        """Check the settings against the data, then ``prepare`` with a ``Setup`` of them."""
        self.weighted = data.sample_weight is not None
        if self.condition == "positives" and data.task != "classification":
            raise ValueError(
                "condition='positives' needs a classification task: y = 1 has no meaning here."
            )
        self.prepare(Setup(data, dataset, generators, representation))

    def prepare(self, setup: Setup) -> None:
        """Create and fit what the penalty keeps; by default nothing."""

    def forward(self, batch: Batch, *, refresh: bool = False) -> Tensor:
        """Return the penalty of each model, by default the sum of all terms.

        ``refresh`` renews a bandwidth first.
        """
        total: Tensor | None = None
        for term in (*self.output_terms(batch), *self.terms(batch, refresh=refresh)):
            value = term.differentiable() if isinstance(term, GradientTerm) else term
            total = value if total is None else total + value
        if total is None:
            return batch.z.new_zeros(batch.z.shape[0])
        return total

    def terms(self, batch: Batch, *, refresh: bool = False) -> Iterable[GradientTerm | Tensor]:
        """Return the terms as a training step uses them; by default one, ``forward`` itself."""
        return [self(batch, refresh=refresh)]

    def output_terms(self, batch: Batch) -> list[GradientTerm]:
        """Return terms of the head's output that a GPU should compute beside ``terms``."""
        return []

    def adversary_loss(self, batch: Batch) -> Tensor:
        """Return the loss ``(models,)`` that an adversary minimizes on detached Z.

        The adversary is the parameters of the penalty. By default the game is zero-sum: what the
        encoder minimizes is what the adversary maximizes.
        """
        return -self(batch)

    def ratio(
        self, z: Tensor, weights: Tensor | None = None, *, sigma: Tensor | None = None
    ) -> Tensor | None:
        """Return median(|z − z'|)/σ_Z for each model, or None when there is no kernel on Z.

        Parameters
        ----------
        z : Tensor
            ``(models, n, d)``.
        weights : Tensor, optional
            ``row_weights`` of these rows. Z is scaled by the rows that count, as in a step.
        sigma : Tensor, optional
            The bandwidth σ_Z ``(models,)`` to divide by; by default the current one.
        """
        return None

    def row_weights(self, batch: Batch) -> tuple[Tensor | None, Tensor | None]:
        """Return weights that sum to one, and whether enough rows count, ``(models,)``.

        The first is None if all rows count alike, the second if there is no condition.
        """
        weights = batch.weights
        if self.condition != "positives":
            if weights is None:
                return None, None
            return _normalized(weights), None
        kept = (batch.y > 0.5).to(batch.z.dtype)
        enough = kept.sum(-1) >= self.minimum_rows
        if weights is not None:
            kept = kept * weights
        return _normalized(kept), enough

    def extra_repr(self) -> str:
        if self.condition is None:
            return ""
        return f"condition={self.condition!r}"

    def settings(self) -> dict[str, object]:
        """Return the public settings in words, for records."""
        kinds = str | int | float | tuple | BandwidthPolicy | None
        found: dict[str, object] = {}
        for name, value in sorted(vars(self).items()):
            public = not name.startswith("_") and name != "training"
            if public and isinstance(value, kinds):
                found[name] = repr(value)
        return found


def _normalized(weights: Tensor) -> Tensor:
    """Return the weights divided by their sum; all zero where none is positive."""
    return weights / weights.sum(-1, keepdim=True).clamp_min(1e-30)


class Unfair(Penalty):
    """No penalty: the task loss alone, whatever λ is. S is not needed."""

    key = "unfair"
    needs_attribute = False

    def terms(self, batch: Batch, *, refresh: bool = False) -> list[GradientTerm | Tensor]:
        return []


def counted(
    terms: list[GradientTerm | Tensor], enough: Tensor | None
) -> list[GradientTerm | Tensor]:
    """Set the terms to zero for the models in whose batch too few rows count."""
    if enough is None:
        return terms
    found: list[GradientTerm | Tensor] = []
    for term in terms:
        if isinstance(term, GradientTerm):
            found.append(term.times(enough.to(term.value.dtype)))
        else:
            found.append(term * enough)
    return found


class KernelPenalty(Penalty):
    """A penalty with a kernel on Z: its scaling, its bandwidth σ_Z and the policy that updates it.

    Parameters
    ----------
    bandwidth : BandwidthPolicy, str or float
        See ``learning.penalties.base.resolve_policy``.
    scale : {None, "standardize", "whiten", "minmax"}
        How Z is scaled in the batch before the kernel: each coordinate to mean 0 and variance 1, or
        to [0, 1]; ``"whiten"`` gives every direction variance 1
        (:func:`frhsic_core.learning.penalties.scaling.whiten`).
    """

    sigma_z: Tensor
    eye: Tensor | None

    def __init__(
        self,
        *,
        bandwidth: BandwidthPolicy | str | float = "every_batch",
        scale: str | None = None,
        condition: str | None = None,
        minimum_rows: int = 4,
    ) -> None:
        super().__init__(condition=condition, minimum_rows=minimum_rows)
        if scale not in SCALES:
            raise ValueError(
                f"scale is {scale!r}: choose None, 'standardize', 'whiten' or 'minmax'."
            )
        self.scale = scale
        self.policy = resolve_policy(bandwidth)

    def prepare(self, setup: Setup) -> None:
        self.register_buffer("sigma_z", setup.data.x.new_zeros(setup.models))
        eye: Tensor | None = None
        if self.scale == "whiten":
            device = setup.data.x.device
            eye = torch.eye(setup.representation, dtype=torch.float64, device=device)
        self.register_buffer("eye", eye, persistent=False)

    def scaled(self, z: Tensor, weights: Tensor | None = None) -> Tensor:
        """Return Z scaled by ``scale`` with the mean, variance or range of the rows that count."""
        if self.scale == "standardize":
            rows, _ = standardized(z, weights)
            return rows
        if self.scale == "whiten":
            return whiten(z, weights)
        if self.scale == "minmax":
            of_columns = None if weights is None else weights.unsqueeze(-2)
            low, high = counted_range(z.mT, of_columns)
            width = (high - low + 1e-6).mT  # the constant keeps a column that does not vary at zero
            return (z - low.mT) / width
        return z

    def frame(self, z: Tensor, weights: Tensor | None = None) -> Frame:
        """Return ``scaled`` Z for functions of the distances between its rows."""
        if self.scale == "whiten":
            return whitened_frame(z, weights, eye=self.eye)
        if self.scale == "standardize":
            return standardized_frame(z, weights)
        z = self.scaled(z, weights)
        return Frame(z, z.detach(), None)

    def renew(
        self,
        z: Tensor,
        *,
        refresh: bool,
        enough: Tensor | None = None,
        exponents: Tensor | None = None,
    ) -> Tensor:
        """Return σ_Z ``(models,)`` for scaled Z; ``refresh`` recomputes it in place first.

        ``exponents`` are −|z_i − z_j|²/2 of the scaled rows, where they are known already. If too
        few rows count (``enough`` is False), scaled Z has no meaning and the old σ_Z stays, if
        there is one.
        """
        if refresh:
            assert self.policy is not None
            new = self.policy.update(self.sigma_z, z, exponents=exponents)
            if enough is not None and self.scale in ("standardize", "whiten"):
                new = torch.where(enough | (self.sigma_z == 0), new, self.sigma_z)
            self.sigma_z.copy_(new)
        return self.sigma_z

    def lone_sigma(self, left: NDArray[Any], right: NDArray[Any], *, refresh: bool) -> float:
        """Return the σ_Z that ``renew`` would set for one model on a CPU, without setting it.

        The product of the matrices is |z_i − z_j|²/2 for scaled Z. It returns zero where only the
        general form can renew σ_Z: with a fixed bandwidth, or with so many equal rows that the
        median is zero up to rounding.
        """
        current = self.sigma_z.numpy()
        old = float(current[0])
        policy = self.policy
        if not refresh or policy is None:
            return old
        half = min(policy.max_points or 0, left.shape[1]) // 2
        if policy.value is not None or half == 0:
            return 0.0
        distances = (left[:, :half].T @ right[:, half : 2 * half]).reshape(-1)
        middle = (len(distances) - 1) // 2  # the lower median, as of torch
        median = float(np.partition(distances, middle)[middle])
        if not median > 5e3 * np.finfo(right.dtype).eps * right[-1].max():
            return 0.0
        new = math.sqrt(2.0 * median) + policy.added
        if old > 0 and policy.rate < 1:
            new = old + policy.rate * (new - old)
        return float(current.dtype.type(new))

    @torch.no_grad()
    def ratio(
        self, z: Tensor, weights: Tensor | None = None, *, sigma: Tensor | None = None
    ) -> Tensor | None:
        if sigma is None:
            sigma = self.sigma_z
        median = batch_median(self.scaled(z, weights), None)
        return median / sigma.clamp_min(1e-30)
