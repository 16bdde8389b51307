"""Build the computations that are timed: this library's and those of other libraries, for each part of the study."""

from __future__ import annotations

import importlib.util
import math
import subprocess
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

OURS = "frhsic_core"
TRACE = "trace of four matrices"
DIMENSION = 50
PERMUTATIONS = 100
# Bandwidths near the medians of the sample of :func:`_sample`.
SIGMA_Z, SIGMA_S = 10.0, 1.5
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
        epoch = iter(range(10**9))

        def run() -> None:
            number = next(epoch)
            for step in range(steps):
                trainer.step(step, epoch=number)
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


PARTS: dict[str, Callable[[dict[str, Any], str], tuple[Calls, dict[str, Any]]]] = {
    "gradient": _gradient, "value": _value, "test": _test, "large": _large, "training": _training, "limit": _limit,
}  # fmt: skip
