"""FREM and FRHSIC as one would write them down first, and the operations of one evaluation on a whole sample.

The plain forms are a loop over anchors, a trace of four matrices, and plain autograd. The library has each of them as
one inner product with a Gram matrix and a gradient written out. Timing both separates what an *algorithm* costs from
what an *implementation* of it costs. The values are the same (``tests/paper/experiments/test_cost.py``).

Arithmetic operations are counted as they happen. Time has constants, caches and launches in it; the number of
operations has none of them and is the same everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from frhsic_core.conditional import eipm
from frhsic_core.joint.hsic import hsic
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


def trace_hsic(gram_z: Tensor, gram_s: Tensor, *, form: str) -> Tensor:
    """Return biased HSIC: ``"trace"`` is tr(KHLH)/n² with H spelled out, O(n³); ``"centred"`` sums K̃ ∘ L̃, O(n²).

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
        z = batch.z.squeeze(0)
        s = batch.s.squeeze(0)
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
        z = batch.z.squeeze(0)
        s = batch.s.squeeze(0)
        grams = plain_gram(z, self.bandwidth), plain_gram(s, self.sigma_s)
        return trace_hsic(*grams, form=self.form).unsqueeze(0)


class OperationCount(TorchDispatchMode):
    """Counts arithmetic operations: 2·rows·inner·columns for a matrix product, one for every other number."""

    def __init__(self) -> None:
        super().__init__()
        self.operations = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        name = function.__name__.partition(".")[0]
        tensors = [value for value in args if isinstance(value, Tensor)]
        if name in ("mm", "bmm", "mv", "addmm", "baddbmm"):
            self.operations += 2 * result.numel() * tensors[-2].shape[-1]
        elif name == "dot":
            self.operations += 2 * tensors[0].numel()
        elif name in ("sum", "mean", "amax", "_softmax"):
            self.operations += tensors[0].numel()
        elif isinstance(result, Tensor) and not _is_view(name):
            self.operations += result.numel()
        return result


def _is_view(name: str) -> bool:
    return name in {"t", "transpose", "view", "_unsafe_view", "expand", "select", "slice", "unsqueeze", "squeeze",
                    "detach", "alias", "as_strided", "permute", "reshape", "lift_fresh"}  # fmt: skip


def _hsic(z: Tensor, s: Tensor, anchors: int) -> Tensor:
    return hsic(z, s, kernel_z=Gaussian(1.0), kernel_s=Gaussian(SMOOTHING), check_finite=False)


def _trace(z: Tensor, s: Tensor, anchors: int) -> Tensor:
    return trace_hsic(plain_gram(z, 1.0), plain_gram(s, SMOOTHING), form="trace")


def _product(z: Tensor, s: Tensor, anchors: int) -> Tensor:
    count = None if anchors == len(z) else anchors
    return eipm(z, s, kernel_z=Gaussian(1.0), bandwidth=SMOOTHING, anchors=count, check_finite=False)


def _loop(z: Tensor, s: Tensor, anchors: int) -> Tensor:
    return loop_eipm(plain_gram(z, 1.0), plain_gram(s, SMOOTHING), anchors)


# Name: how it is computed, and whether over all rows as anchors or over 32.
EVALUATIONS: dict[str, tuple[Callable[[Tensor, Tensor, int], Tensor], bool]] = {
    "hsic": (_hsic, True),
    "hsic_trace": (_trace, True),
    "eipm_loop": (_loop, True),
    "eipm_product": (_product, True),
    "eipm_loop_32": (_loop, False),
    "eipm_product_32": (_product, False),
}


def count_operations(form: str, n: int, *, anchors: int | None = None) -> int:
    """Count the operations of one evaluation at n rows, with 32 or n anchors by default.

    Shapes decide them, so tensors without numbers in them (torch's meta device) are enough, and large n costs nothing.
    """
    evaluate, everything = EVALUATIONS[form]
    z, s = torch.empty(n, WIDTH, device="meta"), torch.empty(n, 1, device="meta")
    count = anchors or (n if everything else min(ANCHORS, n))

    def operations(rows: int) -> int:
        with torch.no_grad(), OperationCount() as counter:
            evaluate(z, s, rows)
        return counter.operations

    if evaluate is not _loop:
        return operations(count)
    # Every anchor of the loop costs the same.
    return operations(1) + (count - 1) * (operations(2) - operations(1))
