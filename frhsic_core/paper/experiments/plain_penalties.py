"""FREM and FRHSIC as one would write them down first: a loop over anchors, a trace of four matrices, plain autograd.

The library has each of them as one inner product with a Gram matrix and a gradient written out. Timing both separates
what an *algorithm* costs from what an *implementation* of it costs. The values are the same
(``tests/paper/experiments/test_runtime.py``).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from frhsic_core.kernels import median_bandwidth
from frhsic_core.learning.batches import Batch, TrainingData
from frhsic_core.learning.penalties import Penalty

__all__ = ["LoopFREM", "TraceFRHSIC", "loop_eipm", "plain_gram", "trace_hsic"]


def plain_gram(x: Tensor, bandwidth: float | Tensor) -> Tensor:
    """Gaussian Gram matrix ``(n, n)`` of rows ``(n, d)``; O(n²d)."""
    square = (x * x).sum(-1)
    distances = (square[:, None] + square[None, :] - 2.0 * x @ x.mT).clamp_min(0.0)
    return torch.exp(-distances / (2.0 * bandwidth**2))


def loop_eipm(gram: Tensor, smooth: Tensor, anchors: int, *, epsilon: float = 1e-10) -> Tensor:
    """Mean over the first ``anchors`` rows of the weighted MMD, one row at a time.

    For each anchor the weights without its own row, then the three quadratic forms of MMD². O(anchors·n²) time in some
    dozen small operations for each anchor: on a GPU the launches are what takes the time.
    """
    rows, overall = gram.mean(0), gram.mean()
    total = gram.new_zeros(())
    for i in range(anchors):
        w = smooth[i].clone()
        w[i] = 0.0
        w = w / w.sum()
        squared = (w @ gram @ w - 2.0 * (w @ rows) + overall).clamp_min(0.0)
        total = total + squared * torch.rsqrt(squared + epsilon)
    return total / anchors


def trace_hsic(gram_z: Tensor, gram_s: Tensor, *, form: str) -> Tensor:
    """Biased HSIC: ``"trace"`` is tr(KHLH)/n² with H spelled out, O(n³); ``"centred"`` sums K̃ ∘ L̃, O(n²).

    The paper's ``eq:hsic_empirical``; the released code takes the second form.
    """
    n = len(gram_z)
    if form == "trace":
        centring = torch.eye(n, dtype=gram_z.dtype, device=gram_z.device) - 1.0 / n
        return torch.trace(gram_z @ centring @ gram_s @ centring) / n**2

    def centred(gram: Tensor) -> Tensor:
        return gram - gram.mean(0, keepdim=True) - gram.mean(1, keepdim=True) + gram.mean()

    return (centred(gram_z) * centred(gram_s)).sum() / n**2


class LoopFREM(Penalty):
    """FREM with a Python loop over anchors, for one model; all rows of the batch with ``anchors=None``."""

    key = "frem"

    def __init__(self, *, anchors: int | None, smoothing: float = 0.5, bandwidth: float = 1.0) -> None:
        super().__init__()
        self.anchors, self.smoothing, self.bandwidth = anchors, smoothing, bandwidth

    def forward(self, batch: Batch, *, refresh: bool = False) -> Tensor:
        z, s = batch.z.squeeze(0), batch.s.squeeze(0)
        count = len(z) if self.anchors is None else min(self.anchors, len(z))
        value = loop_eipm(plain_gram(z, self.bandwidth), plain_gram(s, self.smoothing), count)
        return value.unsqueeze(0)


class TraceFRHSIC(Penalty):
    """FRHSIC with fixed bandwidths from both Gram matrices by autograd, for one model; see :func:`trace_hsic`."""

    key = "frhsic"
    sigma_s: Tensor

    def __init__(self, *, form: str = "trace", bandwidth: float = 1.0, bandwidth_s: float | None = None) -> None:
        super().__init__()
        self.form, self.bandwidth, self.bandwidth_s = form, bandwidth, bandwidth_s

    def setup(
        self, data: TrainingData, *, dataset: Tensor, generators: Sequence[torch.Generator], representation: int
    ) -> None:
        super().setup(data, dataset=dataset, generators=generators, representation=representation)
        assert data.s is not None
        sigma = median_bandwidth(data.s[0], max_points=2000) if self.bandwidth_s is None else self.bandwidth_s
        self.register_buffer("sigma_s", torch.as_tensor(sigma, dtype=data.x.dtype, device=data.x.device))

    def forward(self, batch: Batch, *, refresh: bool = False) -> Tensor:
        z, s = batch.z.squeeze(0), batch.s.squeeze(0)
        grams = plain_gram(z, self.bandwidth), plain_gram(s, self.sigma_s)
        return trace_hsic(*grams, form=self.form).unsqueeze(0)
