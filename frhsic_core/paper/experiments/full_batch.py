"""One evaluation of HSIC and of EIPM on a whole sample: seconds, and arithmetic operations counted as they happen.

Time has constants, caches and launches in it; the number of operations has none of them and is the same everywhere.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from frhsic_core.conditional import eipm
from frhsic_core.joint.hsic import hsic
from frhsic_core.kernels import Gaussian
from frhsic_core.paper.experiments.plain_penalties import loop_eipm, plain_gram, trace_hsic

__all__ = ["FORMS", "OperationCount", "count_operations", "time_evaluation"]

WIDTH = 50  # dimension of Z, as in the paper's networks
SMOOTHING = 0.5
ANCHORS = 32
PART = 32  # anchors of a long loop that are timed


class OperationCount(TorchDispatchMode):
    """Counts arithmetic operations: 2·rows·inner·columns for a matrix product, one for each number made otherwise."""

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
FORMS: dict[str, tuple[Callable[[Tensor, Tensor, int], Tensor], bool]] = {
    "hsic": (_hsic, True),
    "hsic_trace": (_trace, True),
    "eipm_loop": (_loop, True),
    "eipm_product": (_product, True),
    "eipm_loop_32": (_loop, False),
    "eipm_product_32": (_product, False),
}


def _sample(n: int, device: str) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(n)
    s = torch.rand(n, 1, generator=generator)
    z = torch.randn(n, WIDTH, generator=generator) / WIDTH**0.5 + s
    return z.to(device), s.to(device)


def count_operations(form: str, n: int, *, anchors: int | None = None) -> int:
    """Operations of one evaluation at n rows; 32 or n anchors unless told otherwise.

    Shapes decide them, so tensors without numbers in them (torch's meta device) are enough, and large n costs nothing.
    """
    evaluate, everything = FORMS[form]
    z, s = _sample(n, "meta")
    count = anchors or (n if everything else min(ANCHORS, n))

    def operations(rows: int) -> int:
        with torch.no_grad(), OperationCount() as counter:
            evaluate(z, s, rows)
        return counter.operations

    if evaluate is not _loop:
        return operations(count)
    # Every anchor of the loop costs the same.
    return operations(1) + (count - 1) * (operations(2) - operations(1))


def time_evaluation(form: str, n: int, device: str, *, repeats: int = 5, most: float = 1.0) -> tuple[list[float], int]:
    """Seconds of single evaluations, and the number of anchors that were really gone through.

    A loop over n anchors is timed over 32 of them and scaled, the Gram matrices apart. At most ``repeats`` evaluations,
    and no second one after ``most`` seconds.
    """
    evaluate, everything = FORMS[form]
    z, s = _sample(n, device)
    count = n if everything else min(ANCHORS, n)
    part = min(count, PART) if evaluate is _loop else count

    def seconds(anchors: int) -> float:
        _wait(device)
        begin = time.perf_counter()
        evaluate(z, s, anchors)
        _wait(device)
        return time.perf_counter() - begin

    def once() -> float:
        if evaluate is not _loop:
            return seconds(count)
        # Everything but the turns of the loop, then a part of the turns by themselves.
        _wait(device)
        begin = time.perf_counter()
        grams = plain_gram(z, 1.0), plain_gram(s, SMOOTHING)
        _wait(device)
        middle = time.perf_counter()
        loop_eipm(*grams, part)
        _wait(device)
        return middle - begin + (time.perf_counter() - middle) * count / part

    with torch.no_grad():
        evaluate(*_sample(64, device), 32)  # libraries set themselves up at the first call
        begin = time.perf_counter()
        found = [once()]
        if time.perf_counter() - begin < most:  # else too long to be repeated: the first evaluation is the measurement
            found = []
            while len(found) < repeats and time.perf_counter() - begin < most * repeats:
                found.append(once())
    return found, part


def _wait(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize()
