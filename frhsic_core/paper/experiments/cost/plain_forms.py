"""FREM and FRHSIC as one would write them down first, and the operations of one evaluation on a whole sample.

The plain forms are a loop over anchors, a product of two centered matrices, and plain autograd. The library has each of
them as one inner product with a Gram matrix and a gradient written out. Timing both separates what an *algorithm* costs
from what an *implementation* of it costs. The values are the same (``tests/paper/experiments/test_cost.py``).

Time has constants, caches and launches in it; the operations of matrix products have none and are the same everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from frhsic_core.conditional import eipm
from frhsic_core.joint import hsic
from frhsic_core.kernels import Gaussian, median_bandwidth
from frhsic_core.learning.data import Batch, TrainingData
from frhsic_core.learning.penalties import Penalty

WIDTH = 50  # dimension of Z, as in the paper's networks
SMOOTHING = 0.5
ANCHORS = 32


def plain_gram(x: Tensor, bandwidth: float | Tensor) -> Tensor:
    """Return the Gaussian Gram matrix ``(n, n)`` of rows ``(n, d)``; O(n²d)."""
    square = (x * x).sum(-1)
    distances = (square[:, None] + square[None, :] - 2.0 * x @ x.mT).clamp_min(0.0)
    return torch.exp(-distances / (2.0 * bandwidth**2))


def loop_eipm(gram: Tensor, smooth: Tensor, anchors: int, *, epsilon: float = 1e-10) -> Tensor:
    """Return the mean over the first ``anchors`` rows of the weighted MMD, one row at a time.

    For each anchor the weights without its own row, then the three quadratic forms of MMD². O(anchors·n²) time in some
    dozen small operations for each anchor: on a GPU the launches are what takes the time.
    """
    rows = gram.mean(0)
    overall = gram.mean()
    total = gram.new_zeros(())
    for i in range(anchors):
        w = smooth[i].clone()
        w[i] = 0.0
        w = w / w.sum()
        squared = (w @ gram @ w - 2.0 * (w @ rows) + overall).clamp_min(0.0)
        total = total + squared * torch.rsqrt(squared + epsilon)
    return total / anchors


def plain_hsic(gram_z: Tensor, gram_s: Tensor) -> Tensor:
    """Return biased HSIC (the paper's ``eq:hsic_empirical``) as the released code does: the mean of K̃ ∘ L̃, O(n²)."""

    def centered(gram: Tensor) -> Tensor:
        return gram - gram.mean(0, keepdim=True) - gram.mean(1, keepdim=True) + gram.mean()

    return (centered(gram_z) * centered(gram_s)).mean()


class LoopFREM(Penalty):
    """FREM with a Python loop over anchors, for one model; all rows of the batch with ``anchors=None``."""

    key = "frem"

    def __init__(
        self, *, anchors: int | None, smoothing: float = SMOOTHING, bandwidth: float = 1.0
    ) -> None:
        super().__init__()
        self.anchors, self.smoothing, self.bandwidth = anchors, smoothing, bandwidth

    def forward(self, batch: Batch, *, refresh: bool = False) -> Tensor:
        z = batch.z.squeeze(0)
        s = batch.s.squeeze(0)
        count = len(z) if self.anchors is None else min(self.anchors, len(z))
        value = loop_eipm(plain_gram(z, self.bandwidth), plain_gram(s, self.smoothing), count)
        return value.unsqueeze(0)


class PlainFRHSIC(Penalty):
    """FRHSIC with fixed bandwidths from both Gram matrices by autograd, for one model; see :func:`plain_hsic`."""

    key = "frhsic"
    sigma_s: Tensor

    def __init__(self, *, bandwidth: float = 1.0, bandwidth_s: float | None = None) -> None:
        super().__init__()
        self.bandwidth, self.bandwidth_s = bandwidth, bandwidth_s

    def setup(
        self,
        data: TrainingData,
        *,
        dataset: Tensor,
        generators: Sequence[torch.Generator],
        representation: int,
    ) -> None:
        super().setup(data, dataset=dataset, generators=generators, representation=representation)
        assert data.s is not None
        sigma = (
            median_bandwidth(data.s[0], max_points=2000)
            if self.bandwidth_s is None
            else self.bandwidth_s
        )
        self.register_buffer(
            "sigma_s", torch.as_tensor(sigma, dtype=data.x.dtype, device=data.x.device)
        )

    def forward(self, batch: Batch, *, refresh: bool = False) -> Tensor:
        z = batch.z.squeeze(0)
        s = batch.s.squeeze(0)
        return plain_hsic(plain_gram(z, self.bandwidth), plain_gram(s, self.sigma_s)).unsqueeze(0)


def count_operations(form: str, n: int, *, anchors: int | None = None) -> int:
    """Count the multiplications and additions of all products of matrices and vectors in one evaluation at n rows.

    The forms are ``hsic``, ``eipm_loop`` and ``eipm_product`` with all rows as anchors, and the last two with 32 or
    another number of anchors, ``eipm_loop_32`` and ``eipm_product_32``. Shapes decide the count, so tensors without
    numbers in them (torch's meta device) are enough.

    Examples
    --------
    >>> round(count_operations("hsic", 2048) / count_operations("hsic", 1024), 4)
    4.0
    """

    def twice(first: Any, *others: Any, **_: Any) -> int:
        return 2 * torch.Size(first).numel()

    count = (anchors or min(ANCHORS, n)) if form.endswith("_32") else n
    z, s = torch.empty(n, WIDTH, device="meta"), torch.empty(n, 1, device="meta")
    products = {torch.ops.aten.mv: twice, torch.ops.aten.dot: twice}
    with torch.no_grad(), FlopCounterMode(display=False, custom_mapping=products) as counter:
        if form == "hsic":
            hsic(z, s, kernel_z=Gaussian(1.0), kernel_s=Gaussian(SMOOTHING), check_finite=False)
        elif form.startswith("eipm_loop"):
            loop_eipm(plain_gram(z, 1.0), plain_gram(s, SMOOTHING), count)
        else:
            subset = None if count == n else count
            eipm(
                z,
                s,
                kernel_z=Gaussian(1.0),
                bandwidth=SMOOTHING,
                anchors=subset,
                check_finite=False,
            )
    return counter.get_total_flops()
