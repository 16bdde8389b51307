"""Time and memory of this library beside others, for two columns of n rows: a score and an attribute.

The quantities are those that users ask for and that another library offers too: HSIC at given bandwidths, distance
correlation, and mutual information from nearest neighbors. hyppo and causal-learn normalize HSIC in other ways; the
work is of the same kind.

Every measurement runs on one thread of a process of its own, since a process that has computed before reuses memory
that it never gave back. ``frhsic run peers`` measures all of them, ``--store FOLDER`` on another machine than the one
of the stored results.
"""

from __future__ import annotations

import importlib.util
import json
import math
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from frhsic_core.paper.runs.plan import Experiment, Unit, units_of

OURS = "frhsic_core"
SIZES = (1_000, 10_000, 100_000, 1_000_000)
MODULES = {"causal-learn": "causallearn", "scikit-learn": "sklearn"}
#: What each library computes. A star stands for n × n matrices, which do not fit into memory beyond 10,000 rows.
QUANTITIES = {
    "HSIC": (OURS, "hyppo*", "causal-learn*"),
    "distance correlation": (OURS, "dcor", "hyppo*", "statsmodels*"),
    "mutual information": (OURS, "scikit-learn"),
}
LARGEST_MATRIX = 10_000
BANDWIDTHS = 1.0, 1.5
NEIGHBORS = 5
# Seconds after which a measurement is given up, and after which a call is not repeated.
LIMIT = 300.0
PATIENCE = 2.0


def plan() -> Experiment:
    """Return a unit for each quantity, library and size."""
    units: tuple[Unit, ...] = ()
    for quantity, libraries in QUANTITIES.items():
        for library in libraries:
            sizes = tuple(n for n in SIZES if n <= LARGEST_MATRIX or not library.endswith("*"))
            units += units_of(
                "peers", quantity=quantity, implementation=library.removesuffix("*"), n=sizes
            )
    return Experiment("peers", units)


def measure_unit(unit: dict[str, Any], device: str) -> list[dict[str, Any]]:
    """Return seconds, memory (MiB above what was in use) and value; without them, a note says why, but not for ours."""
    name = unit["implementation"]
    if importlib.util.find_spec(MODULES.get(name, name)) is None:
        return [{"seconds": math.nan, "note": "not installed"}]
    script = f"from {__name__} import print_measurement; print_measurement({unit!r})"
    threads = dict.fromkeys(
        ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
    )
    command = [sys.executable, "-W", "ignore", "-c", script]
    try:
        run = subprocess.run(
            command, capture_output=True, text=True, timeout=LIMIT, env={**os.environ, **threads}
        )
    except subprocess.TimeoutExpired:
        return [{"seconds": math.nan, "note": f"more than {LIMIT:.0f} s"}]
    if run.returncode:
        reason = (run.stderr.strip() or f"exit status {run.returncode}").splitlines()[-1]
        if name == OURS:
            raise RuntimeError(reason)
        return [{"seconds": math.nan, "note": reason}]
    return [json.loads(run.stdout.splitlines()[-1])]


def print_measurement(unit: dict[str, Any]) -> None:
    """Measure a unit in this process and print its row."""
    import torch

    torch.set_num_threads(1)
    of = unit["quantity"], unit["implementation"]
    call_of(*of, *sample(64))()  # imports and compilers belong to no measurement
    call = call_of(*of, *sample(unit["n"]))
    before = _peak()
    times: list[float] = []
    while not times or (sum(times) < PATIENCE and len(times) < 15):
        begin = time.perf_counter()
        value = float(call())
        times.append(time.perf_counter() - begin)
    memory = _peak() - before
    found = {"seconds": float(np.median(times)), "mebibytes": memory, "value": value}
    print(
        json.dumps(
            {name: float(f"{number:.5g}") for name, number in found.items()}
            | {"repeats": len(times)}
        )
    )


def _peak() -> float:
    """Return the largest memory of this process so far in MiB; on Linux ``ru_maxrss`` starts at that of its parent."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().partition("VmHWM:")[2].split()[0]) / 1024
    import resource  # Windows has no such module, and only a measurement needs it

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # macOS counts bytes


def sample(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a standard normal column, and the same with noise."""
    rng = np.random.default_rng(n)
    z = rng.standard_normal(n)
    return z, z + rng.standard_normal(n)


def call_of(quantity: str, library: str, z: np.ndarray, s: np.ndarray) -> Callable[[], Any]:
    """Return a call that computes a quantity of two columns by a library."""
    x, y = z[:, None], s[:, None]
    if library == OURS:
        return _own_call(quantity, z, s)
    if library == "scikit-learn":
        from sklearn.feature_selection import mutual_info_regression

        return lambda: mutual_info_regression(x, s, n_neighbors=NEIGHBORS, random_state=0)[0]
    if library == "statsmodels":
        from statsmodels.stats.dist_dependence_measures import distance_correlation

        return lambda: distance_correlation(x, y)
    if library == "causal-learn":
        from causallearn.utils.KCI.KCI import KCI_UInd

        # Its width is that of exp(−width·d²/2).
        widths = {"kwidthx": BANDWIDTHS[0] ** -2, "kwidthy": BANDWIDTHS[1] ** -2}
        test = KCI_UInd(kernelX="Gaussian", kernelY="Gaussian", est_width="manual", **widths)
        return lambda: test.HSIC_V_statistic(*test.kernel_matrix(x, y))[0]
    if library == "dcor":
        import dcor

        return lambda: dcor.distance_correlation(z, s)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # hyppo warns on import
        from hyppo.independence import Dcorr, Hsic
    if quantity == "distance correlation":
        return lambda: Dcorr(bias=True).statistic(x, y)
    from sklearn.metrics.pairwise import rbf_kernel

    gammas = [0.5 / bandwidth**2 for bandwidth in BANDWIDTHS]
    return lambda: Hsic(compute_kernel=None, bias=True).statistic(
        rbf_kernel(x, gamma=gammas[0]), rbf_kernel(y, gamma=gammas[1])
    )


def _own_call(quantity: str, z: np.ndarray, s: np.ndarray) -> Callable[[], Any]:
    from frhsic_core import Gaussian, distance_correlation, hsic, mutual_information

    if quantity == "HSIC":
        kernel_z, kernel_s = map(Gaussian, BANDWIDTHS)
        return lambda: hsic(z, s, kernel_z=kernel_z, kernel_s=kernel_s)
    if quantity == "distance correlation":
        return lambda: distance_correlation(z, s)
    return lambda: mutual_information(z, s, k=NEIGHBORS)
