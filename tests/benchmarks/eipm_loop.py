"""Seconds for EIPM in a loop over anchors against one matrix product: ``python tests/benchmarks/eipm_loop.py``.

The paper times FREM with a Python loop over all rows of each mini-batch and concludes that HSIC is about 36 times
faster. The loop is not part of the estimator: this prints how much of the ratio goes away with it, and what one biased
HSIC costs on the same batch, forward and backward, one thread.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor

from frhsic_core.conditional import eipm
from frhsic_core.kernels import Gaussian

ROWS, WIDTH, SIGMA, GAMMA = 256, 50, 1.0, 0.5


def loop_eipm(z: Tensor, s: Tensor, anchors: Tensor) -> Tensor:
    """One anchor at a time: the weighted MMD as a difference of three quadratic forms."""
    gram = torch.exp(-torch.cdist(z, z, compute_mode="donot_use_mm_for_euclid_dist").square() / (2 * SIGMA**2))
    smooth = torch.exp(-(s.unsqueeze(1) - s).square() / (2 * GAMMA**2))
    n = len(s)
    uniform = torch.full((n,), 1.0 / n, dtype=z.dtype)
    total = z.new_zeros(())
    for i in anchors.tolist():
        w = smooth[i].clone()
        w[i] = 0.0
        w = w / w.sum()
        squared = (w @ gram @ w - 2.0 * (w @ gram @ uniform) + uniform @ gram @ uniform).clamp_min(0.0)
        total = total + squared * torch.rsqrt(squared + 1e-10)
    return total / len(anchors)


def product_eipm(z: Tensor, s: Tensor, anchors: Tensor) -> Tensor:
    """Return the library's form of the same number."""
    return eipm(z, s, kernel_z=Gaussian(SIGMA), bandwidth=GAMMA, anchors=anchors, check_finite=False)


def trace_hsic(z: Tensor, s: Tensor, anchors: Tensor) -> Tensor:
    """Biased HSIC with one centred Gram matrix under autograd, for scale; it needs no anchors."""
    gram_s = Gaussian(GAMMA)(s.unsqueeze(-1))
    centred = gram_s - gram_s.mean(0) - gram_s.mean(1, keepdim=True) + gram_s.mean()
    return (Gaussian(SIGMA)(z) * centred).mean()


def seconds(statistic: Callable[[Tensor, Tensor, Tensor], Tensor], *data: Tensor, repeats: int) -> float:
    """Median wall-clock seconds of one forward and backward pass."""
    z, s, anchors = data
    times = []
    for _ in range(repeats + 2):
        z = z.detach().requires_grad_()
        start = time.perf_counter()
        statistic(z, s, anchors).backward()
        times.append(time.perf_counter() - start)
    return statistics.median(times[2:])


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    s = torch.rand(ROWS, generator=generator)
    z = torch.randn(ROWS, WIDTH, generator=generator) / WIDTH**0.5 + s.unsqueeze(-1)
    print(f"EIPM forward and backward, batch {ROWS}, d = {WIDTH}, float32, one thread")
    print(f"{'anchors':>8} {'loop s':>10} {'product s':>10} {'ratio':>7} {'HSIC s':>10} {'difference':>11}")
    for count in (32, ROWS):
        anchors = torch.arange(0, ROWS, ROWS // count)
        exact = (z.double(), s.double(), anchors)
        difference = abs(loop_eipm(*exact) - product_eipm(*exact)).item()
        loop = seconds(loop_eipm, z, s, anchors, repeats=10)
        product = seconds(product_eipm, z, s, anchors, repeats=50)
        hsic = seconds(trace_hsic, z, s, anchors, repeats=50)
        print(f"{count:>8} {loop:>10.5f} {product:>10.5f} {loop / product:>7.1f} {hsic:>10.5f} {difference:>11.1e}")


if __name__ == "__main__":
    main()
