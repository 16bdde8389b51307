"""Samples made to break finite-sample statements: ties, two rows, constant columns, tiny and huge bandwidths.

A statement that must hold for every sample is searched for counterexamples here. A *step* maps a batch of samples to
excesses, one or more for each: how far the left side exceeds the right one, in units where rounding is about n·eps.
A true step never gets above its tolerance; a false one is caught by the same search, which the tests show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import torch
from torch import Tensor

from frhsic_core.kernels import Gaussian

__all__ = ["SampleBatch", "Worst", "awkward_samples", "rational_hsic", "worst_excess"]

SIZES = (2, 3, 4, 6, 10, 24)
SHAPES_S = ("normal", "three values", "binary", "nearly tied", "grid", "constant")
SHAPES_Z = ("follows s", "normal", "binary", "one different row", "splits the ties", "constant")


@dataclass(frozen=True)
class SampleBatch:
    """Samples of one size with kernels and a head f = Σ_a c_a·k(anchor_a, ·) for each.

    Attributes
    ----------
    z, s : Tensor
        ``(b, n, d)`` and ``(b, n, 1)``, float64.
    bandwidth_z, bandwidth_s : Tensor
        ``(b,)``, from a thousandth to a thousand.
    anchors, coefficients : Tensor
        ``(b, n, d)`` and ``(b, n)``: the head.
    """

    z: Tensor
    s: Tensor
    bandwidth_z: Tensor
    bandwidth_s: Tensor
    anchors: Tensor
    coefficients: Tensor

    @property
    def kernel_z(self) -> Gaussian:
        """Gaussian kernel on Z, one bandwidth for each sample."""
        return Gaussian(self.bandwidth_z)

    @property
    def kernel_s(self) -> Gaussian:
        """Gaussian kernel on S, one bandwidth for each sample."""
        return Gaussian(self.bandwidth_s)


@dataclass(frozen=True)
class Worst:
    """The sample that came closest to breaking a step, or broke it."""

    excess: float
    instances: int
    rows: int
    instance: Mapping[str, Any]


def _pick(kind: Tensor, options: list[Tensor]) -> Tensor:
    """Choose for each sample one of several batches of the same shape."""
    return torch.stack(options)[kind, torch.arange(len(kind))]


def _batch(count: int, n: int, d: int, generator: torch.Generator) -> SampleBatch:
    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    def integers(high: int, *shape: int) -> Tensor:
        return torch.randint(high, shape, generator=generator).double()

    kind_s = torch.randint(len(SHAPES_S), (count,), generator=generator)
    kind_z = torch.randint(len(SHAPES_Z), (count,), generator=generator)
    three = integers(3, count, n, 1)
    s = _pick(
        kind_s,
        [
            normal(count, n, 1),
            three,
            integers(2, count, n, 1),
            three + 1e-5 * normal(count, n, 1),
            torch.arange(n, dtype=torch.float64).reshape(1, n, 1).expand(count, n, 1),
            torch.zeros(count, n, 1, dtype=torch.float64),
        ],
    )
    spike = torch.zeros(count, n, d, dtype=torch.float64)
    spike[:, 0] = 1.0
    z = _pick(
        kind_z,
        [
            s + 0.3 * normal(count, n, d),
            normal(count, n, d),
            integers(2, count, n, d),
            spike,
            (torch.arange(n) % 2).double().reshape(1, n, 1).expand(count, n, d),
            torch.zeros(count, n, d, dtype=torch.float64),
        ],
    )
    one_hot = torch.zeros(count, n, dtype=torch.float64)
    one_hot[:, 0] = 1.0
    head = torch.randint(3, (count,), generator=generator)
    coefficients = _pick(head, [normal(count, n), one_hot, normal(count, n)])
    anchors = _pick((head > 0).long(), [z + normal(count, n, d), z])
    log_bandwidths = 6.0 * torch.rand(2, count, generator=generator, dtype=torch.float64) - 3.0
    # Half of the samples at ordinary bandwidths: the extremes alone would make every Gram matrix trivial.
    ordinary = torch.rand(2, count, generator=generator, dtype=torch.float64) < 0.5
    bandwidth_z, bandwidth_s = 10.0 ** torch.where(ordinary, log_bandwidths / 6.0, log_bandwidths)
    return SampleBatch(z, s, bandwidth_z, bandwidth_s, anchors, coefficients)


def awkward_samples(count: int, *, generator: torch.Generator) -> Iterator[SampleBatch]:
    """Yield batches of awkward samples, ``count`` in all, over sizes from 2 to 24 rows and one or three columns.

    Examples
    --------
    >>> batches = list(awkward_samples(120, generator=torch.Generator().manual_seed(0)))
    >>> sum(len(batch.z) for batch in batches), sorted({batch.z.shape[1] for batch in batches})
    (120, [2, 3, 4, 6, 10, 24])
    """
    settings = [(n, d) for n in SIZES for d in (1, 3)]
    for index, (n, d) in enumerate(settings):
        share = count // len(settings) + (index < count % len(settings))
        if share:
            yield _batch(share, n, d, generator)


def worst_excess(
    steps: Mapping[str, Callable[[Any], Tensor]],
    *,
    prepare: Callable[[SampleBatch], Any],
    instances: int,
    generator: torch.Generator,
) -> dict[str, Worst]:
    """Return, for each step, the largest excess over all samples and the sample it belongs to.

    Parameters
    ----------
    steps : mapping
        Functions of what ``prepare`` returns; shape ``(b, ...)``. A NaN counts as an infinite excess.
    prepare : callable
        Computes once per batch what the steps share.
    instances : int
        Number of samples.
    generator : torch.Generator
        Source of the samples.

    Examples
    --------
    >>> worst = worst_excess({"z is bounded by 9": lambda b: (b.z.abs() - 9.0).amax((-2, -1))},
    ...     prepare=lambda batch: batch, instances=24, generator=torch.Generator().manual_seed(0))
    >>> worst["z is bounded by 9"].excess < 0
    True
    """
    found: dict[str, Worst] = {}
    for batch in awkward_samples(instances, generator=generator):
        prepared = prepare(batch)
        for name, step in steps.items():
            excess = step(prepared)
            excess = torch.where(excess.isnan(), torch.inf, excess).reshape(len(batch.z), -1).amax(-1)
            where = int(excess.argmax())
            if name not in found or excess[where].item() > found[name].excess:
                found[name] = Worst(
                    excess=excess[where].item(),
                    instances=instances,
                    rows=batch.z.shape[1],
                    instance={
                        "z": batch.z[where].tolist(),
                        "s": batch.s[where, :, 0].tolist(),
                        "bandwidth_z": batch.bandwidth_z[where].item(),
                        "bandwidth_s": batch.bandwidth_s[where].item(),
                    },
                )
    return found


def rational_hsic(gram: list[list[Fraction]], other: list[list[Fraction]]) -> Fraction:
    """Biased HSIC of two Gram matrices in rational arithmetic, O(n²).

    Examples
    --------
    >>> one = Fraction(1)
    >>> rational_hsic([[one, one - 1], [one - 1, one]], [[one, one - 1], [one - 1, one]])
    Fraction(1, 4)
    """
    n = len(gram)
    rows, other_rows = [sum(row, Fraction(0)) for row in gram], [sum(row, Fraction(0)) for row in other]
    paired = sum(
        (a * b for row, col in zip(gram, other, strict=True) for a, b in zip(row, col, strict=True)), Fraction(0)
    )
    cross = sum((a * b for a, b in zip(rows, other_rows, strict=True)), Fraction(0))
    total = sum(rows, Fraction(0)) * sum(other_rows, Fraction(0))
    return paired / n**2 - 2 * cross / n**3 + total / n**4
