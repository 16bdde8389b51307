"""Forward and backward of one HSIC penalty (m = 256, d = 50, one thread) against the trace of four matrices."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch

from frhsic_core import Gaussian, hsic

torch.set_num_threads(1)
M, D = 256, 50
generator = torch.Generator().manual_seed(0)
z = torch.randn(M, D, generator=generator, requires_grad=True)
s = torch.rand(M, 1, generator=generator)
sigma_z, sigma_s = 10.0, 0.3
H = torch.eye(M) - 1.0 / M


def by_trace() -> torch.Tensor:
    def gram(x: torch.Tensor, sigma: float) -> torch.Tensor:
        norm = x.square().sum(-1)
        return torch.exp(-(norm[:, None] + norm[None] - 2 * x @ x.T).clamp_min(0) / (2 * sigma**2))

    return torch.trace(gram(z, sigma_z) @ H @ gram(s, sigma_s) @ H) / M**2


def by_library() -> torch.Tensor:
    return hsic(z, s, kernel_z=Gaussian(sigma_z), kernel_s=Gaussian(sigma_s))


def milliseconds(function: Callable[[], torch.Tensor], repeats: int = 300) -> float:
    times = []
    for _ in range(repeats):
        z.grad = None
        start = time.perf_counter()
        function().backward()
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times[repeats // 10 :])


if __name__ == "__main__":
    # Interleaved rounds, so that a busy machine slows both alike.
    rounds = [(milliseconds(by_trace, 100), milliseconds(by_library, 100)) for _ in range(5)]
    trace, library = (min(column) for column in zip(*rounds, strict=True))
    print(f"value: trace {by_trace().item():.8f}, library {by_library().item():.8f}")
    print(f"trace of four matrices, autograd: {trace:.3f} ms; library: {library:.3f} ms; ratio {trace / library:.1f}")
