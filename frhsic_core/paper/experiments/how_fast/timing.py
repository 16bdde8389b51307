"""Time calls in turns, and measure their memory."""

from __future__ import annotations

import math
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from frhsic_core.paper.experiments.how_fast.implementations import FORMS, OURS, PARTS, Calls

# After this many seconds nothing is repeated: the call that was to warm up is the measurement.
PATIENCE = 5.0


def timed(
    calls: Calls, device: str, first_call: Callable[[str], tuple[float, float, float]], *, rounds: int = 15
) -> list[dict[str, Any]]:
    """Return, for each implementation, the median of its seconds over rounds in turns, and the memory of one call."""
    first = {}
    memory = {}
    values = {}
    for name in calls:
        try:
            memory[name], first[name], values[name] = first_call(name)
        except Exception as error:  # another library that does not work here is left out, as one that is missing
            if name.startswith(OURS) or name in FORMS:
                raise
            warnings.warn(f"{name} is left out: {type(error).__name__}: {error}", stacklevel=2)
    calls = {name: call for name, call in calls.items() if name in first}
    spent: dict[str, list[float]] = {name: [] for name in calls}
    # Short calls are repeated within a round, so that reading the clock costs nothing beside them.
    for _ in range(rounds):
        for name, call in calls.items():
            if first[name] > PATIENCE or sum(spent[name]) > PATIENCE:
                continue
            inner = max(1, min(20, int(0.01 / max(first[name], 1e-6))))
            begin = _clock(device)
            for _ in range(inner):
                call()
            spent[name].append((_clock(device) - begin) / inner)
    return [
        {
            "implementation": name,
            "seconds": float(f"{statistics.median(spent[name] or [first[name]]):.5g}"),
            "repeats": len(spent[name]),
            "mebibytes": float(f"{memory[name]:.5g}"),
            "value": values[name],
        }
        for name in calls
    ]


def _clock(device: str) -> float:
    if device.startswith("cuda"):
        import torch

        torch.cuda.synchronize()
    return time.perf_counter()


def first_call_of(call: Callable[[], Any], device: str) -> tuple[float, float, float]:
    """Return memory (MiB above what was in use), seconds and value of a call, or of the next one if it is short."""
    begin = _clock(device)
    with _peak(device) as peak:
        value = call()
    seconds = _clock(device) - begin
    if seconds < PATIENCE:
        begin = _clock(device)
        value = call()
        seconds = _clock(device) - begin
    return peak.mebibytes, seconds, float(value) if isinstance(value, float) else math.nan


def first_call_alone(unit: dict[str, Any], name: str) -> tuple[float, float, float]:
    """Return the same of an implementation on the CPU, in a process of its own.

    A process that has computed before reuses memory that it freed and never gave back. There, a call seems to need less
    than it does.
    """
    script = f"from {__name__} import _print_first_call; _print_first_call({unit!r}, {name!r})"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError((run.stderr.strip() or f"exit status {run.returncode}").splitlines()[-1])
    memory, seconds, value = map(float, run.stdout.splitlines()[-1].split())
    return memory, seconds, value


def _print_first_call(unit: dict[str, Any], name: str) -> None:
    part = PARTS[unit["part"]]
    with one_thread():
        part({**unit, "n": 64}, "cpu")[0][name]()  # imports belong to no measurement
        print(*first_call_of(part(unit, "cpu")[0][name], "cpu"))


class _peak:
    """Measure the peak of memory inside the block above the memory before it; NaN where it is not known."""

    def __init__(self, device: str) -> None:
        self.cuda = device.startswith("cuda")
        self.mebibytes = math.nan

    def __enter__(self) -> _peak:
        if self.cuda:
            import torch

            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
            self.before = torch.cuda.memory_allocated() / 2**20
            return self
        with suppress(OSError), open("/proc/self/clear_refs", "w") as file:
            file.write("5")  # the peak becomes what is in use now
        self.before = _resident("VmRSS")
        return self

    def __exit__(self, *_: object) -> None:
        if self.cuda:
            import torch

            self.mebibytes = torch.cuda.max_memory_allocated() / 2**20 - self.before
        else:
            self.mebibytes = max(0.0, _resident("VmHWM") - self.before)


def _resident(field: str) -> float:
    with suppress(OSError), open("/proc/self/status") as file:
        for line in file:
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) / 1024
    return math.nan


@contextmanager
def one_thread() -> Iterator[None]:
    import torch
    from threadpoolctl import threadpool_limits

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(before)
