"""Measure how often each test of independence rejects: independent samples (level) and dependent ones (power).

Levels at α = .05 are measured on normal, Cauchy, discrete (tied) and log-normal samples of 50, 200 and 1,000 rows, and
of 2,000 rows for the aggregated test. The power is measured on the alternatives of ``ALTERNATIVES``, beside
distance correlation and a nearest-neighbor estimate of mutual information, both with permutations.

The package's statistics are enough: ``python -m frhsic_core.paper.experiments.levels_and_power FOLDER --device cuda``
runs the study without the command-line extras. Each unit is stored when it is done, and the same command resumes.
"""

from __future__ import annotations

import math
import sys
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from frhsic_core.paper.runs.plan import Study, units_of

if TYPE_CHECKING:
    import torch
    from torch import Tensor

ALPHA = 0.05
# α(B + 1) is a whole number, so that the exact tests have level α and not a little less.
PERMUTATIONS = 199
LAWS = ("normal", "cauchy", "discrete", "lognormal")
ALTERNATIVES = ("linear", "sin 1", "sin 2", "sin 3", "sin 4", "heteroscedastic", "circle", "high-dimensional")
TESTS = {"level": ("gamma", "spectral", "permutation", "aggregated"), "power": ("permutation", "aggregated", "dcor")}
SIZES = {"level": (50, 200, 1000), "power": (200, 500)}
DRAWS = {"level": 2000, "power": 500}
# The mutual information of every permuted sample is slow.
KSG_DRAWS = 200
_NEIGHBORS = 5
_ENTRIES = {"cuda": 2**27, "cpu": 2**22}  # of the Gram matrices of a batch


def plan(preset: str) -> Study:
    """Return one unit for each kind, law, size and test; ``smoke`` has few draws of small samples."""
    name = "levels_and_power"
    if preset == "smoke":
        small = {"draws": 12, "permutations": 19}
        units = units_of(kind="level", law=("normal", "discrete"), n=30, test=TESTS["level"], **small)
        units += units_of(kind="power", law=("linear", "sin 2"), n=40, test=(*TESTS["power"], "ksg"), **small)
        return Study(f"{name}_smoke", name, units)
    units = ()
    for kind, laws in (("level", LAWS), ("power", ALTERNATIVES)):
        common = {"kind": kind, "law": laws, "n": SIZES[kind]}
        units += units_of(**common, test=TESTS[kind], draws=DRAWS[kind], permutations=PERMUTATIONS)
        if kind == "level":  # of this size the aggregated test permutes bins of rows
            large = common | {"n": 2000}
            units += units_of(**large, test="aggregated", draws=DRAWS[kind], permutations=PERMUTATIONS)
        else:
            units += units_of(**common, test="ksg", draws=KSG_DRAWS, permutations=PERMUTATIONS)
    return Study(name, name, units)


def measure_unit(unit: dict[str, Any], device: str) -> list[dict[str, Any]]:
    """Return how many of the draws one test rejects."""
    import torch

    # All tests of one law and size have the same samples, and the first draws of a longer run are those of a shorter.
    seed = zlib.crc32(f"{unit['kind']} {unit['law']} {unit['n']}".encode())
    draws, n = unit["draws"], unit["n"]
    size = max(1, _ENTRIES.get(device.partition(":")[0], _ENTRIES["cpu"]) // n**2)
    generator = torch.Generator(device=device).manual_seed(1)
    rejected = 0
    for start in range(0, draws, size):
        stop = min(start + size, draws)
        pairs = [_sample(unit["law"], n, seed + draw) for draw in range(start, stop)]
        z, s = (torch.stack(part).to(device) for part in zip(*pairs, strict=True))
        found = _pvalues(unit["test"], z, s, unit["permutations"], generator)
        rejected += int((found <= ALPHA * (1 + 1e-12)).sum())
    return [{"rejected": rejected, "rate": rejected / draws}]


def _sample(law: str, n: int, seed: int) -> tuple[Tensor, Tensor]:
    """Return one sample ``(n, d)`` and ``(n, 1)`` of a law or an alternative, in float64 on the CPU."""
    import torch

    generator = torch.Generator().manual_seed(seed)

    def normal(d: int = 1) -> Tensor:
        return torch.randn(n, d, generator=generator, dtype=torch.float64)

    def uniform(rows: int = n) -> Tensor:
        return torch.rand(rows, 1, generator=generator, dtype=torch.float64)

    s, z = normal(), normal()
    if law == "cauchy":
        return z / normal(), s / normal()
    if law == "discrete":  # four and five values of unequal frequency
        return (z.abs() * 1.5).floor().clamp_max(3), (s * 1.2).round().clamp(-2, 2)
    if law == "lognormal":
        return z.exp(), s.exp()
    if law == "linear":
        return 0.2 * s + math.sqrt(0.96) * z, s
    if law == "heteroscedastic":
        return z * (1.0 + 0.7 * s.abs()), s
    if law == "circle":
        angle = 2 * math.pi * uniform()
        return angle.cos() + 0.4 * z, angle.sin() + 0.4 * s
    if law == "high-dimensional":
        others = normal(19)
        return torch.cat([0.4 * s + math.sqrt(0.84) * z, others], 1), s
    if law.startswith("sin "):  # density 1 + sin(ωx) sin(ωy) on a square of width 2π, by rejection
        omega = int(law.removeprefix("sin "))
        x, y = (math.pi * (2 * uniform(4 * n) - 1) for _ in range(2))
        kept = 2 * uniform(4 * n) < 1 + torch.sin(omega * x) * torch.sin(omega * y)
        rows = kept.flatten().nonzero().flatten()[:n]
        return x[rows], y[rows]
    assert law == "normal"
    return z, s


def _pvalues(test: str, z: Tensor, s: Tensor, permutations: int, generator: torch.Generator) -> Tensor:
    """Return the p-values of a batch of samples."""
    from frhsic_core.joint import hsic_test
    from frhsic_core.kernels import Distance

    options: dict[str, Any] = {"n_permutations": permutations, "generator": generator, "alpha": ALPHA}
    if test == "ksg":
        return _information(z, s, permutations, generator)
    if test == "dcor":  # with permutations, distance correlation and covariance give the same p-value
        return hsic_test(z, s, method="permutation", kernel_z=Distance(), kernel_s=Distance(), **options).pvalue
    return hsic_test(z, s, method=test, **options).pvalue


def _information(z: Tensor, s: Tensor, permutations: int, generator: torch.Generator) -> Tensor:
    import torch

    from frhsic_core.joint.independence.permutation import random_orders
    from frhsic_core.joint.information import ksg_information, standardized

    order = random_orders((permutations, len(s), s.shape[1]), generator).to(s.device)
    unit = standardized(s, seed=1)[..., 0]
    moved = torch.cat([unit.unsqueeze(0), unit.expand_as(order).gather(-1, order)])
    values = ksg_information(standardized(z), moved, k=_NEIGHBORS).strict
    return (values >= values[0] - 1e-12).double().mean(0)


def rates(rows: pd.DataFrame, kind: str) -> pd.DataFrame:
    """Return the share of rejected draws, a row for each law and size and a column for each test."""
    part = rows[rows["kind"] == kind]
    laws = {law: i for i, law in enumerate((*LAWS, *ALTERNATIVES))}
    table = part.pivot_table(index=["law", "n"], columns="test", values="rate", sort=False)
    tests = [test for test in (*TESTS["level"], "dcor", "ksg") if test in table]
    return table[tests].sort_index(key=lambda index: index.map(lambda value: laws.get(value, value)))


def level_interval(draws: int, *, confidence: float = 0.99) -> tuple[float, float]:
    """Return the exact binomial interval of the share of rejections at level ``ALPHA``.

    Examples
    --------
    >>> low, high = level_interval(2000)
    >>> round(low, 4), round(high, 4)
    (0.038, 0.063)
    """
    from scipy.stats import binom

    low, high = binom.interval(confidence, draws, ALPHA)
    return float(low) / draws, float(high) / draws


def main(arguments: list[str]) -> int:
    """Run the study with the packages of the library alone, and print its tables."""
    import argparse

    from frhsic_core.paper.runs.runner import run_experiment
    from frhsic_core.paper.runs.store import ResultStore

    parser = argparse.ArgumentParser(description="Measure levels and power of the tests of independence.")
    parser.add_argument("folder", type=Path, help="folder of the results")
    parser.add_argument("--preset", default="full", help="smoke or full")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads of torch")
    given = parser.parse_args(arguments)
    study = plan(given.preset)
    store = ResultStore(given.folder, study.name)
    report = run_experiment(study, store, device=given.device, threads=given.threads, say=print)
    store.compact(study)
    for kind in ("level", "power"):
        print(rates(store.read(), kind).round(3).to_string())
    return report.exit_status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
