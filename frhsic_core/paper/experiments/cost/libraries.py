"""Time calls in turns: this library's computations beside those of other libraries, and the epochs of a training.

All implementations of a computation run in turns in one process, after one call of each to warm up, so that a ratio of
their medians compares like with like. On the CPU, and from 1,000 samples on, the first call of each runs in a process
of its own, which measures its memory: a process that has computed before reuses memory that it freed and never gave
back. A call of more than five seconds is not repeated. Libraries that are not installed are left out.
"""

from __future__ import annotations

import importlib.util
import math
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

OURS = "frhsic_core"
TRACE = "trace of four matrices"
DIMENSION = 50
PERMUTATIONS = 100
# Bandwidths near the medians of the sample of :func:`sample`.
SIGMA_Z, SIGMA_S = 10.0, 1.5
_ON_Z = {"on": "representation"}
#: The penalties of the part ``training``: method and settings. The first is what the others are compared with.
PENALTIES: dict[str, tuple[str, dict[str, Any]]] = {
    "no penalty": ("unfair", {}),
    "FRHSIC, fixed bandwidth": ("frhsic", {"estimator": "biased", "scale": None, "bandwidth": 1.0, **_ON_Z}),
    "FRHSIC, bandwidth of every batch": (
        "frhsic",
        {"estimator": "biased", "scale": None, "bandwidth": "every_batch", **_ON_Z},
    ),
    "FRHSIC, standardized": ("frhsic", {"estimator": "normalized", "scale": "standardize", **_ON_Z}),
    "FRHSIC, whitened": ("frhsic", {"estimator": "normalized", **_ON_Z}),
    "FRHSIC, whitened, on Z and output": ("frhsic", {"estimator": "normalized", "on": "both"}),
}
# After this many seconds nothing is repeated: the call that was to warm up is the measurement.
PATIENCE = 5.0
# With more samples the matrices of the other implementations need too much memory.
MOST_OF_OTHERS = 5_000
# The matrices of fewer samples are too small to be seen in the memory of a process.
ALONE = 1_000
# Training steps in a row of the part ``training``, and samples of a mini-batch.
STEPS, BATCH = 20, 256
# A captured step runs eagerly first, is captured at the second call and replayed from the third; a last, smaller batch
# has a graph of its own.
WARM_UP = {False: 1, True: 3}
Calls = dict[str, Callable[[], Any]]


def sample(n: int, device: str, dtype: str) -> tuple[Tensor, Tensor]:
    """Return Gaussian Z with ``DIMENSION`` columns and S, its first column with noise."""
    import torch

    generator = torch.Generator().manual_seed(n)
    z = torch.randn(n, DIMENSION, generator=generator)
    s = z[:, :1] + torch.randn(n, 1, generator=generator)
    return z.to(device, getattr(torch, dtype)), s.to(device, getattr(torch, dtype))


def by_trace(z: Tensor, s: Tensor) -> Tensor:
    """Return HSIC as one first writes it down, tr(KHLH)/n²: four n × n matrices, three products."""
    from frhsic_core.paper.experiments.cost.plain_forms import plain_gram, trace_hsic

    return trace_hsic(plain_gram(z, SIGMA_Z), plain_gram(s, SIGMA_S), form="trace")


def by_library(z: Tensor, s: Tensor, **options: Any) -> Tensor:
    """Return HSIC of this library at the same bandwidths."""
    from frhsic_core import Gaussian, hsic

    return hsic(z, s, kernel_z=Gaussian(SIGMA_Z), kernel_s=Gaussian(SIGMA_S), **options)


def _with_gradient(function: Callable[..., Tensor], z: Tensor, s: Tensor) -> Callable[[], float]:
    z = z.clone().requires_grad_()

    def call() -> float:
        z.grad = None
        value = function(z, s)
        value.backward()
        return float(value.detach())

    return call


def _has(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def _hyppo() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # hyppo warns on import
        from hyppo.independence import Hsic
    return Hsic


def _gradient(unit: dict[str, Any], device: str) -> tuple[Calls, dict[str, Any]]:
    z, s = sample(unit["n"], device, "float32")
    return {OURS: _with_gradient(by_library, z, s), TRACE: _with_gradient(by_trace, z, s)}, {"dtype": "float32"}


def _value(unit: dict[str, Any], device: str) -> tuple[Calls, dict[str, Any]]:
    z, s = sample(unit["n"], device, "float64")
    calls: Calls = {OURS: lambda: float(by_library(z, s))}
    if unit["n"] > MOST_OF_OTHERS:
        return calls, {"dtype": "float64"}
    x, y = z.numpy(), s.numpy()
    if _has("hyppo"):
        from sklearn.metrics.pairwise import rbf_kernel

        hsic = _hyppo()

        def by_hyppo() -> float:
            grams = (rbf_kernel(x, gamma=0.5 / SIGMA_Z**2), rbf_kernel(y, gamma=0.5 / SIGMA_S**2))
            return float(hsic(compute_kernel=None, bias=True).statistic(*grams))

        calls["hyppo"] = by_hyppo
    if _has("dcor"):
        import dcor

        calls["dcor"] = lambda: float(dcor.distance_correlation(x, y))
    calls[TRACE] = lambda: float(by_trace(z, s))
    if _has("causallearn"):
        from causallearn.utils.KCI.KCI import KCI_UInd

        test = KCI_UInd(kernelX="Gaussian", kernelY="Gaussian", est_width="manual", kwidthx=SIGMA_Z, kwidthy=SIGMA_S)
        calls["causal-learn"] = lambda: float(test.HSIC_V_statistic(*test.kernel_matrix(x, y))[0])
    return calls, {"dtype": "float64"}


def _test(unit: dict[str, Any], device: str) -> tuple[Calls, dict[str, Any]]:
    from frhsic_core import hsic_test

    dtype = "float64" if device == "cpu" else "float32"
    z, s = sample(unit["n"], device, dtype)

    def ours(method: str) -> Callable[[], float]:
        return lambda: float(hsic_test(z, s, method=method, n_permutations=PERMUTATIONS).pvalue)

    calls: Calls = {OURS: ours("aggregated"), f"{OURS}, one bandwidth": ours("permutation")}
    if device == "cpu" and _has("hyppo"):
        hsic = _hyppo()
        x, y = z.numpy(), s.numpy()

        def by_hyppo() -> float:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # hyppo warns of fewer than 1,000 permutations
                return float(hsic().test(x, y, reps=PERMUTATIONS, workers=1, auto=False, random_state=0)[1])

        calls["hyppo"] = by_hyppo
    return calls, {"dtype": dtype, "permutations": PERMUTATIONS}


def _large(unit: dict[str, Any], device: str) -> tuple[Calls, dict[str, Any]]:
    z, s = sample(unit["n"], device, "float32")
    return {
        OURS: lambda: float(by_library(z, s)),
        f"{OURS}, with gradient": _with_gradient(by_library, z, s),
    }, {"dtype": "float32"}


def _training(unit: dict[str, Any], device: str) -> tuple[Calls, dict[str, Any]]:
    """Return some steps with each penalty, on data with as many features as Adult; on a GPU the step is captured."""
    import torch

    from frhsic_core.learning import Trainer, make_penalty
    from frhsic_core.learning.data import random_order

    n = BATCH * STEPS
    generator = torch.Generator().manual_seed(8)
    s = torch.rand(n, generator=generator)
    x = torch.rand(n, 107, generator=generator)
    x[:, 0] = s + 0.1 * torch.randn(n, generator=generator)
    y = (torch.rand(n, generator=generator) < torch.sigmoid(4 * (x[:, 0] + x[:, 1] - 1))).float()
    data = [part.to(device) for part in (x, y, s)]
    seeds = list(range(unit["models"]))

    def call_of(method: str, settings: dict[str, Any]) -> Callable[[], None]:
        trainer = Trainer(
            *data, penalty=make_penalty(method, **settings), lam=1.0, seeds=seeds, epochs=10**6, batch_size=BATCH,
            widths=(50, unit["d"]), device=device,
        )  # fmt: skip
        trainer.step.begin_epoch(random_order(torch.tensor(seeds, device=device), epoch=0, n=n))
        epoch = iter(range(10**9))

        def run() -> None:
            number = next(epoch)
            for step in range(STEPS):
                trainer.step(step, epoch=number)
            trainer.step.begin_epoch(random_order(torch.tensor(seeds, device=device), epoch=0, n=n))

        for _ in range(WARM_UP[True]):
            run()
        return run

    return {name: call_of(*case) for name, case in PENALTIES.items()}, {"dtype": "float32", "steps": STEPS}


PARTS: dict[str, Callable[[dict[str, Any], str], tuple[Calls, dict[str, Any]]]] = {
    "gradient": _gradient, "value": _value, "test": _test, "large": _large, "training": _training,
}  # fmt: skip


def measure(unit: dict[str, Any], device: str) -> list[dict[str, Any]]:
    """Return a row for each implementation of a part."""
    import torch

    part = PARTS[unit["part"]]
    if "n" in unit:  # imports and compilers belong to no measurement
        for call in part({**unit, "n": 64}, device)[0].values():
            with suppress(Exception):
                call()
    calls, facts = part(unit, device)
    alone = device == "cpu" and unit.get("n", 0) >= ALONE
    first_call = partial(first_call_alone, unit) if alone else lambda name: first_call_of(calls[name], device)
    facts |= {"threads": torch.get_num_threads() if device == "cpu" else 0}
    rows = [{**facts, **row} for row in timed(calls, device, first_call)]
    if device == "cpu" and not alone:  # a process that has computed before says nothing about memory
        rows = [{**row, "mebibytes": math.nan} for row in rows]
    return rows


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
            if name.startswith(OURS) or name in PENALTIES:
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
    """Return the time when the device has finished what it was given."""
    if device.startswith("cuda"):
        import torch

        torch.cuda.synchronize()
    return time.perf_counter()


def first_call_of(call: Callable[[], Any], device: str) -> tuple[float, float, float]:
    """Return memory (MiB above what was in use), seconds and value of a call, or of the next one if it is short."""
    before = _peak(device, start=True)
    begin = _clock(device)
    value = call()
    seconds = _clock(device) - begin
    memory = _peak(device) - before
    if seconds < PATIENCE:
        begin = _clock(device)
        value = call()
        seconds = _clock(device) - begin
    return memory, seconds, float(value) if isinstance(value, float) else math.nan


def first_call_alone(unit: dict[str, Any], name: str) -> tuple[float, float, float]:
    """Return the same of an implementation on the CPU, in a process of its own."""
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


def _peak(device: str, *, start: bool = False) -> float:
    """Return the most memory in use since the last start, in MiB; NaN for a CPU whose system does not tell."""
    if device.startswith("cuda"):
        import torch

        if start:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        return torch.cuda.max_memory_allocated() / 2**20
    if start:
        with suppress(OSError), open("/proc/self/clear_refs", "w") as file:
            file.write("5")  # the peak becomes what is in use now
    with suppress(OSError), open("/proc/self/status") as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith("VmHWM:"))
    return math.nan


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute with one CPU thread inside the block."""
    import torch
    from threadpoolctl import threadpool_limits

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(before)


def timed_epochs(*data: Any, epochs: int, captured: bool, device: str, **settings: Any) -> list[float]:
    """Return the seconds of each of ``epochs`` epochs after the warm-up, waiting for the device at both ends.

    ``data`` and ``settings`` are arguments of :class:`frhsic_core.learning.Trainer`; ``captured`` says whether a step
    is one CUDA graph.
    """
    from frhsic_core.learning import Trainer

    stamps: list[float] = []
    before = WARM_UP[captured]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trainer = Trainer(*data, epochs=before + epochs, device=device, capture=captured, **settings)
        trainer.fit(callback=lambda progress: stamps.append(_clock(device)))
    if any("could not be captured" in str(w.message) for w in caught):
        raise RuntimeError("The step could not be captured, so that this case has no captured time.")
    return [end - begin for begin, end in pairwise(stamps[before - 1 :])]
