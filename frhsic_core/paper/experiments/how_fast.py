"""How fast is exact HSIC: seconds and memory beside other libraries, and the limits of the device.

``frhsic bench`` measures the machine that it runs on. Each unit times all implementations of one computation in turns,
in one process, after one call of each to warm up, and stores medians, so that a ratio compares like with like. On the
CPU and from 1,000 samples, the first call of each runs in a process of its own, which measures its memory. A call of
more than five seconds is not repeated. The computations are:

- ``gradient``: HSIC and its gradient in Z, n × 50 in float32, against the trace of four matrices;
- ``value``: one statistic in float64, against hyppo, dcor, causal-learn and the trace, on the CPU;
- ``test``: the test of independence by permutations, against hyppo's;
- ``large``: HSIC of up to a million samples on a GPU at each precision, against KeOps;
- ``training``: a training step of 125 models, against the step without a penalty;
- ``limit``: what the device can do: products, exponentials, bytes.

Libraries that are not installed, or need more than half of the free memory, are left out. On the CPU everything runs
with one thread.
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
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import pandas as pd

from frhsic_core.paper.runs.plan import Settings, Study, units_of

if TYPE_CHECKING:
    from torch import Tensor

ORDER = 9
OURS = "frhsic_core"
TRACE = "trace of four matrices"
DIMENSION = 50
MILLION = 1_000_000
PERMUTATIONS = 100
# Bandwidths near the medians of the sample of :func:`_sample`.
SIGMA_Z, SIGMA_S = 10.0, 1.5
# After this many seconds nothing is repeated: the call that was to warm up is the measurement.
PATIENCE = 5.0
# The matrices of fewer samples are too small to be seen in the memory of a process.
ALONE = 1_000
_ON_Z = {"on": "representation"}
FORMS: dict[str, tuple[str, dict[str, Any]]] = {
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


def plan_bench_cpu(preset: str) -> Study:
    """Return the units of one CPU thread."""
    if preset == "smoke":
        units = (
            *units_of(part="gradient", n=64), *units_of(part="value", n=100), *units_of(part="test", n=100),
            *units_of(part="training", models=1, d=4), *units_of(part="limit"),
        )  # fmt: skip
        return Study("bench_cpu_smoke", "bench_cpu", units)
    return Study("bench_cpu", "bench_cpu", (
        *units_of(part="limit"), *units_of(part="gradient", n=(256, 1_024)), *units_of(part="value", n=(2_000, 5_000)),
        *units_of(part="training", models=1, d=(4, 50)), *units_of(part="value", n=20_000),
        *units_of(part="test", n=5_000),
    ))  # fmt: skip


def plan_bench_gpu(preset: str) -> Study:
    """Return the units of a GPU."""
    if preset == "smoke":  # what a machine without a GPU can run of it
        return Study("bench_gpu_smoke", "bench_gpu", units_of(part="gradient", n=64))
    large: tuple[Settings, ...] = units_of(
        part="large", n=(10_000, 30_000, 100_000, 300_000, MILLION), precision=("tf32x3", "tf32")
    )
    return Study("bench_gpu", "bench_gpu", (
        *units_of(part="limit"), *units_of(part="gradient", n=(256, 2_000, 20_000)), *large,
        *units_of(part="large", n=(10_000, 30_000), precision="float64"),
        *units_of(part="test", n=(5_000, 100_000, MILLION)), *units_of(part="training", models=125, d=(4, 50)),
    ))  # fmt: skip


def measure_unit_bench_cpu(unit: dict[str, Any], device: str) -> list[dict[str, Any]]:
    """Measure a unit with one CPU thread, whatever the device."""
    with _one_thread():
        return _measured(unit, "cpu")


def measure_unit_bench_gpu(unit: dict[str, Any], device: str) -> list[dict[str, Any]]:
    """Measure a unit on a GPU."""
    if not device.startswith("cuda") and unit["n"] > 1_000:
        raise ValueError(f"device is {device!r}, but this experiment times a GPU. Without one, run bench_cpu.")
    return _measured(unit, device)


def _measured(unit: dict[str, Any], device: str) -> list[dict[str, Any]]:
    part = _PARTS[unit["part"]]
    if "n" in unit:  # imports and compilers belong to no measurement
        for call in part({**unit, "n": 64}, device)[0].values():
            with suppress(Exception):
                call()
    calls, facts = part(unit, device)
    alone = device == "cpu" and unit.get("n", 0) >= ALONE
    first_call = partial(_first_call_alone, unit) if alone else lambda name: _first_call(calls[name], device)
    rows = [{**facts, **row} for row in _timed(calls, device, first_call)]
    if device == "cpu" and not alone:  # a process that has computed before says nothing about memory
        rows = [{**row, "mebibytes": math.nan} for row in rows]
    import torch

    threads = torch.get_num_threads() if device == "cpu" else 0
    return [{**row, "threads": threads} for row in rows]


@contextmanager
def _one_thread() -> Iterator[None]:
    import torch
    from threadpoolctl import threadpool_limits

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(before)


# Implementations -----------------------------------------------------------------------------------------------------

Calls = dict[str, Callable[[], Any]]


def _sample(n: int, device: str, dtype: str) -> tuple[Tensor, Tensor]:
    import torch

    generator = torch.Generator().manual_seed(n)
    z = torch.randn(n, DIMENSION, generator=generator)
    s = z[:, :1] + torch.randn(n, 1, generator=generator)
    return z.to(device, getattr(torch, dtype)), s.to(device, getattr(torch, dtype))


def _trace(z: Tensor, s: Tensor) -> Tensor:
    """Return HSIC as one first writes it down, tr(KHLH)/n²: four n × n matrices, three products."""
    from frhsic_core.paper.experiments.runtime.plain_forms import plain_gram, trace_hsic

    return trace_hsic(plain_gram(z, SIGMA_Z), plain_gram(s, SIGMA_S), form="trace")


def _ours(z: Tensor, s: Tensor, **options: Any) -> Tensor:
    from frhsic_core import Gaussian, hsic

    return hsic(z, s, kernel_z=Gaussian(SIGMA_Z), kernel_s=Gaussian(SIGMA_S), **options)


def _keops(z: Tensor, s: Tensor) -> Tensor:
    """Return HSIC from three reductions of KeOps: the row sums of both kernels, and the sum of their product."""
    from pykeops.torch import LazyTensor

    def exponent(x: Tensor, sigma: float) -> Any:
        u = (x / (sigma * math.sqrt(2.0))).contiguous()
        return -((LazyTensor(u[:, None, :]) - LazyTensor(u[None, :, :])) ** 2).sum(-1)

    n = len(z)
    a = exponent(z, SIGMA_Z)
    b = exponent(s, SIGMA_S)
    k = a.exp().sum(1).double() / n
    l = b.exp().sum(1).double() / n
    return (a + b).exp().sum(1).double().mean() / n - 2.0 * (k * l).mean() + k.mean() * l.mean()


def _with_gradient(function: Callable[..., Tensor], z: Tensor, *rest: Any) -> Callable[[], float]:
    z = z.clone().requires_grad_()

    def call() -> float:
        z.grad = None
        value = function(z, *rest)
        value.backward()
        return float(value.detach())

    return call


def _has(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


@cache
def _keops_works() -> bool:
    """Return whether KeOps computes HSIC here; where its compiler fails it may end the process that tries."""
    if not _has("pykeops"):
        return False
    script = f"import torch; from {__name__} import _keops; x = torch.rand(9, 2, device='cuda'); _keops(x, x[:, :1])"
    return subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=600).returncode == 0


def _fits(n: int, matrices: int) -> bool:
    """Return whether so many n × n matrices of doubles need less than half of the free memory."""
    with suppress(OSError), open("/proc/meminfo") as file:
        free = next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable:"))
        return matrices * 8 * n * n < free / 2
    return n <= 5_000


def _gradient(unit: dict[str, Any], device: str) -> tuple[Calls, dict[str, Any]]:
    z, s = _sample(unit["n"], device, "float32")
    calls: Calls = {OURS: _with_gradient(_ours, z, s), TRACE: _with_gradient(_trace, z, s)}
    if device != "cpu" and _keops_works():
        calls["KeOps"] = _with_gradient(_keops, z, s)
    return calls, {"dtype": "float32"}


def _value(unit: dict[str, Any], device: str) -> tuple[Calls, dict[str, Any]]:
    z, s = _sample(unit["n"], device, "float64")
    calls: Calls = {OURS: lambda: float(_ours(z, s))}
    x, y = z.numpy(), s.numpy()
    if _has("hyppo") and _fits(unit["n"], 7):
        from sklearn.metrics.pairwise import rbf_kernel

        hsic = _hyppo()

        def by_hyppo() -> float:
            grams = (rbf_kernel(x, gamma=0.5 / SIGMA_Z**2), rbf_kernel(y, gamma=0.5 / SIGMA_S**2))
            return float(hsic(compute_kernel=None, bias=True).statistic(*grams))

        calls["hyppo"] = by_hyppo
    if _has("dcor") and _fits(unit["n"], DIMENSION + 7):  # it keeps the differences of all columns
        import dcor

        calls["dcor"] = lambda: float(dcor.distance_correlation(x, y))
    if unit["n"] <= 5_000:
        calls[TRACE] = lambda: float(_trace(z, s))
        if _has("causallearn"):
            from causallearn.utils.KCI.KCI import KCI_UInd

            test = KCI_UInd(
                kernelX="Gaussian", kernelY="Gaussian", est_width="manual", kwidthx=SIGMA_Z, kwidthy=SIGMA_S
            )
            calls["causal-learn"] = lambda: float(test.HSIC_V_statistic(*test.kernel_matrix(x, y))[0])
    return calls, {"dtype": "float64"}


def _hyppo() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # hyppo warns on import
        from hyppo.independence import Hsic
    return Hsic


def _test(unit: dict[str, Any], device: str) -> tuple[Calls, dict[str, Any]]:
    from frhsic_core import hsic_test

    dtype = "float64" if device == "cpu" else "float32"
    z, s = _sample(unit["n"], device, dtype)

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
    precision = unit["precision"]
    dtype = "float64" if precision == "float64" else "float32"
    z, s = _sample(unit["n"], device, dtype)
    calls: Calls = {
        OURS: lambda: float(_ours(z, s, precision=precision)),
        f"{OURS}, with gradient": _with_gradient(lambda z, s: _ours(z, s, precision=precision), z, s),
    }
    if precision == "tf32x3" and unit["n"] <= 100_000 and _keops_works():
        calls["KeOps"] = lambda: float(_keops(z, s))
    return calls, {"dtype": dtype}


def _training(unit: dict[str, Any], device: str) -> tuple[Calls, dict[str, Any]]:
    """Return one step of each form, on data like Adult; on a GPU the step is captured."""
    import torch

    from frhsic_core.learning import Trainer, make_penalty
    from frhsic_core.learning.data import random_order
    from frhsic_core.paper.experiments.training_step import BATCH, _samples

    steps = 20
    n = BATCH * steps
    data = _samples(n, device)

    def call_of(method: str, settings: dict[str, Any]) -> Callable[[], None]:
        seeds = list(range(unit["models"]))
        trainer = Trainer(
            *data, penalty=make_penalty(method, **settings), lam=1.0, seeds=seeds, epochs=10**6, batch_size=BATCH,
            widths=(50, unit["d"]), device=device,
        )  # fmt: skip
        trainer.step.begin_epoch(random_order(torch.tensor(seeds, device=device), epoch=0, n=n))
        policy = trainer.penalty.policy
        epoch = iter(range(10**9))

        def run() -> None:
            number = next(epoch)
            for step in range(steps):
                trainer.step(step, refresh=policy is not None and policy.refreshes(number, step))
            trainer.step.begin_epoch(random_order(torch.tensor(seeds, device=device), epoch=0, n=n))

        for _ in range(3):  # eagerly, captured, replayed
            run()
        return run

    return {name: call_of(*form) for name, form in FORMS.items()}, {"dtype": "float32", "steps": steps}


def _limit(unit: dict[str, Any], device: str) -> tuple[Calls, dict[str, Any]]:
    """Return products, exponentials and copies; see :func:`rates` for the operations of each."""
    import torch

    size = 8192 if device != "cpu" else 1024
    half = torch.randn(size, size, device=device).to(torch.float16 if device != "cpu" else torch.float32)
    wide = torch.randn(size, size, device=device)
    double = torch.randn(size, size, device=device, dtype=torch.float64)[: size // 4]
    out = torch.empty_like(wide)
    low = "float16" if device != "cpu" else "float32"
    return {
        f"product {low}": lambda: half @ half,
        "product float64": lambda: double @ double.mT,
        "exponential float32": lambda: torch.exp(wide, out=out),
        "exponential float64": lambda: double.exp(),
        "copy": lambda: out.copy_(wide),
    }, {"size": size}


_PARTS: dict[str, Callable[[dict[str, Any], str], tuple[Calls, dict[str, Any]]]] = {
    "gradient": _gradient, "value": _value, "test": _test, "large": _large, "training": _training, "limit": _limit,
}  # fmt: skip


# Timing --------------------------------------------------------------------------------------------------------------


def _timed(
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


def _first_call(call: Callable[[], Any], device: str) -> tuple[float, float, float]:
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


def _first_call_alone(unit: dict[str, Any], name: str) -> tuple[float, float, float]:
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
    part = _PARTS[unit["part"]]
    with _one_thread():
        part({**unit, "n": 64}, "cpu")[0][name]()  # imports belong to no measurement
        print(*_first_call(part(unit, "cpu")[0][name], "cpu"))


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


# Tables --------------------------------------------------------------------------------------------------------------


def ratios(rows: pd.DataFrame, part: str, *, to: str = OURS) -> pd.DataFrame:
    """Return how many times as long each implementation takes as ``to``, for each n of a part.

    Examples
    --------
    >>> rows = pd.DataFrame({"part": "value", "n": 10, "implementation": ["a", "b"], "seconds": [1.0, 3.0]})
    >>> ratios(rows, "value", to="a")["ratio"].tolist()
    [1.0, 3.0]
    """
    kept = rows[rows["part"] == part].copy()
    keys = [name for name in ("n", "models", "d", "precision") if name in kept and kept[name].notna().any()]
    base = kept[kept["implementation"] == to].set_index(keys)["seconds"]
    kept["ratio"] = [
        row["seconds"] / base.loc[tuple(row[key] for key in keys) if len(keys) > 1 else row[keys[0]]]
        for _, row in kept.iterrows()
    ]
    return kept.reset_index(drop=True)


def rates(rows: pd.DataFrame) -> dict[str, float]:
    """Return what the device does in a second: operations of products, exponentials, bytes copied."""
    limit = rows[rows["part"] == "limit"].set_index("implementation")
    size = float(limit["size"].iloc[0])
    work = {
        name: 2.0 * size**3 if name.startswith("product") else size**2 * (8.0 if name == "copy" else 1.0)
        for name in limit.index
    }
    for name in ("product float64", "exponential float64"):
        work[name] /= 16.0 if name.startswith("product") else 4.0
    return {name: work[name] / limit.loc[name, "seconds"] for name in limit.index}


def smallest_seconds(n: int, *, precision: str) -> dict[str, float]:
    """Return the least seconds of HSIC of n rows of 50 columns on an H200, by what limits it; all pairs are counted.

    A pair needs two exponentials, and a product of 64 columns (to which the kernels pad 50), three times for
    ``"tf32x3"``. With symmetric tiles half of each would do.

    Examples
    --------
    >>> {name: round(seconds, 2) for name, seconds in smallest_seconds(1_000_000, precision="tf32x3").items()}
    {'products': 0.39, 'exponentials': 0.48}
    """
    pairs = float(n) ** 2
    products = 3 if precision == "tf32x3" else 1
    return {
        "products": pairs * 2.0 * 64.0 * products / H200["products"],
        "exponentials": pairs * 2.0 / H200["exponentials"],
    }


# In a second, by the data sheet: dense float16 products with tensor cores; 132 multiprocessors, each with 16 special
# function units at 1.98 GHz.
H200 = {"products": 989e12, "exponentials": 132 * 16 * 1.98e9}
