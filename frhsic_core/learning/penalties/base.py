"""What every penalty offers to the one training loop."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from frhsic_core.learning.bandwidth import BandwidthPolicy, batch_median, resolve_policy
from frhsic_core.learning.batches import Batch, TrainingData
from frhsic_core.learning.penalties.gram import Pull
from frhsic_core.learning.penalties.whitening import whiten

__all__ = ["GramPenalty", "KernelPenalty", "Penalty", "counted"]

CONDITIONS = (None, "positives")
SCALES = (None, "standardise", "whiten", "minmax")


class Penalty(nn.Module):
    """A penalty on the dependence of Z (or of the head's output) on S: ``batch -> (models,)``, differentiable.

    Subclasses override :meth:`forward`, and :meth:`setup` where something is fitted to the training data. Whatever
    must survive a checkpoint is a buffer or a parameter. Nothing in :meth:`forward` may wait for the device or depend
    on Python randomness: the step is captured once and replayed.

    Parameters
    ----------
    condition : {None, "positives"}
        ``"positives"``: only rows with y = 1 count (equal opportunity).
    minimum_rows : int
        A batch in which fewer rows count has penalty zero for that model.
    """

    key = "unfair"
    policy: BandwidthPolicy | None = None
    needs_attribute = True

    def __init__(self, *, condition: str | None = None, minimum_rows: int = 4) -> None:
        super().__init__()
        if condition not in CONDITIONS:
            raise ValueError(f"condition is {condition!r}: choose None or 'positives' (y = 1, equal opportunity).")
        self.condition = condition
        self.minimum_rows = minimum_rows
        self.weighted = False

    def setup(
        self, data: TrainingData, *, dataset: Tensor, generators: Sequence[torch.Generator], representation: int
    ) -> None:
        """Size and fit what the penalty keeps, for models trained on ``data.x[dataset]``.

        Parameters
        ----------
        data : TrainingData
            The datasets.
        dataset : Tensor
            ``(models,)``: which of them each model sees.
        generators : sequence of torch.Generator
            One for each model, where its encoder and head stopped drawing: an adversary goes on from there.
        representation : int
            Dimension of Z.
        """
        self.weighted = data.sample_weight is not None
        if self.condition is not None and data.task != "classification":
            raise ValueError("condition='positives' needs a classification task: y = 1 has no meaning here.")

    def forward(self, batch: Batch, *, refresh: bool = False) -> Tensor:
        """Return the penalty of each model; ``refresh`` recomputes a bandwidth first."""
        return batch.z.new_zeros(batch.z.shape[0])

    def terms(self, batch: Batch, *, refresh: bool = False) -> list[Pull | Tensor]:
        """Return the summands of the penalty as a training step uses them; by default one, ``forward`` itself."""
        return [self(batch, refresh=refresh)]

    def adversary_loss(self, batch: Batch) -> Tensor | None:
        """Loss ``(models,)`` that the adversary minimises on detached Z, or None when there is no adversary."""
        return None

    def ratio(self, z: Tensor, weights: Tensor | None = None, *, sigma: Tensor | None = None) -> Tensor | None:
        """Return median(|z − z'|)/σ_Z for each model, or None when there is no kernel on Z.

        Parameters
        ----------
        z : Tensor
            ``(models, n, d)``.
        weights : Tensor, optional
            ``row_weights`` of these rows: Z is scaled by the rows that count, as in a step.
        sigma : Tensor, optional
            σ_Z to measure in, ``(models,)``; by default the one in force.
        """
        return None

    def row_weights(self, batch: Batch) -> tuple[Tensor | None, Tensor | None]:
        """Weights of the rows, summing to one, and whether enough rows count ``(models,)``; None stands for uniform."""
        weights = batch.weights
        if self.condition is None:
            return (None if weights is None else weights / weights.sum(-1, keepdim=True).clamp_min(1e-30)), None
        kept = (batch.y > 0.5).to(batch.z.dtype)
        enough = kept.sum(-1) >= self.minimum_rows
        weights = kept if weights is None else kept * weights
        return weights / weights.sum(-1, keepdim=True).clamp_min(1e-30), enough

    def extra_repr(self) -> str:
        return "" if self.condition is None else f"condition={self.condition!r}"

    def settings(self) -> dict[str, object]:
        """Public plain-valued settings, for checkpoints and records."""
        return {name: repr(value) for name, value in sorted(vars(self).items()) if _is_setting(name, value)}


def _is_setting(name: str, value: object) -> bool:
    return (
        not name.startswith("_")
        and isinstance(value, str | int | float | tuple | BandwidthPolicy | None)
        and (name not in ("training", "call_super_init", "dump_patches"))
    )


class GramPenalty(Penalty):
    """A penalty made of functions of Gram matrices: :meth:`terms` comes first, :meth:`forward` adds them up."""

    def terms(self, batch: Batch, *, refresh: bool = False) -> list[Pull | Tensor]:
        raise NotImplementedError

    def forward(self, batch: Batch, *, refresh: bool = False) -> Tensor:
        parts = [t.differentiable() if isinstance(t, Pull) else t for t in self.terms(batch, refresh=refresh)]
        return parts[0] if len(parts) == 1 else torch.stack(parts).sum(0)


def counted(terms: list[Pull | Tensor], enough: Tensor | None) -> list[Pull | Tensor]:
    """Set to zero the summands of the models in whose batch too few rows count."""
    if enough is None:
        return terms
    return [t.times(enough.to(t.value.dtype)) if isinstance(t, Pull) else t * enough for t in terms]


class KernelPenalty(GramPenalty):
    """A penalty with a kernel on Z: its scaling, its bandwidth σ_Z and the policy that renews it.

    Parameters
    ----------
    bandwidth : BandwidthPolicy, str or float
        See :func:`frhsic_core.learning.bandwidth.resolve_policy`.
    scale : {None, "standardise", "whiten", "minmax"}
        Scale Z in the batch before the kernel: each coordinate to mean 0 and variance 1, or to [0, 1]; ``"whiten"``
        gives every direction variance 1 (:func:`frhsic_core.learning.penalties.whitening.whiten`).
    """

    sigma_z: Tensor

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
            raise ValueError(f"scale is {scale!r}: choose None, 'standardise', 'whiten' or 'minmax'.")
        self.scale = scale
        self.policy = resolve_policy(bandwidth)

    def setup(
        self, data: TrainingData, *, dataset: Tensor, generators: Sequence[torch.Generator], representation: int
    ) -> None:
        super().setup(data, dataset=dataset, generators=generators, representation=representation)
        self.register_buffer("sigma_z", data.x.new_zeros(len(dataset)))

    def scaled(self, z: Tensor, weights: Tensor | None = None) -> Tensor:
        """Scale Z as asked; with ``weights`` the mean and variance are weighted ones."""
        if self.scale == "standardise":
            p = None if weights is None else weights.unsqueeze(-1)
            mean = z.mean(-2, keepdim=True) if p is None else (p * z).sum(-2, keepdim=True)
            centred = z - mean
            square = centred * centred
            variance = square.mean(-2, keepdim=True) if p is None else (p * square).sum(-2, keepdim=True)
            # The constant keeps a coordinate that has died from being blown up to noise of variance one.
            return centred * torch.rsqrt(variance + 1e-6)
        if self.scale == "whiten":
            return whiten(z, weights)
        if self.scale == "minmax":
            low, high = z.amin(-2, keepdim=True), z.amax(-2, keepdim=True)
            return (z - low) / (high - low + 1e-6)
        return z

    def renew(self, z: Tensor, *, refresh: bool, enough: Tensor | None = None) -> Tensor:
        """Return σ_Z ``(models,)`` for scaled Z, recomputed in place first if asked.

        Too few rows that count (``enough`` is False) scale Z to nonsense: the old σ_Z stays, where there is one.
        """
        if refresh:
            assert self.policy is not None
            with torch.no_grad():
                new = self.policy.update(self.sigma_z, z)
                if enough is not None and self.scale in ("standardise", "whiten"):
                    new = torch.where(enough | (self.sigma_z == 0), new, self.sigma_z)
                self.sigma_z.copy_(new)
        return self.sigma_z

    @torch.no_grad()
    def ratio(self, z: Tensor, weights: Tensor | None = None, *, sigma: Tensor | None = None) -> Tensor | None:
        return batch_median(self.scaled(z, weights)) / (self.sigma_z if sigma is None else sigma).clamp_min(1e-30)
