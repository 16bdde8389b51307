"""Measure how often the tests reject, and how often the audit's band and interval contain the truth.

Table ``levels_and_power``: the share of rejections of independent samples (level) and of dependent ones (power) at
α = .05. Levels are measured on normal, Cauchy, discrete (tied) and log-normal samples. The power is measured on the
alternatives of ``ALTERNATIVES``, beside distance correlation and a nearest-neighbor estimate of mutual information,
both with permutations. The tests of independence given C are measured in the same way, on samples in which Z and S
depend on C (``GIVEN``). The kernel conditional independence test of causal-learn (KCI) is measured on the same samples;
its units fail where causal-learn is not installed. The test ``one kernel`` has one Gaussian kernel on Z and one
on S, for many pairs of bandwidths: it shows what a test reaches that knows the scale.

Table ``audit_coverage``: in how many samples of a distribution with a known curve E[score | S] the band of the audit
contains the whole curve, and the interval contains GDP. The attributes include tied and heavy-tailed ones, the scores
include hard labels.

Table ``bound_coverage``: in how many samples a bound of :mod:`frhsic_core.bounds` is at least as large as the truth,
and how much larger. The samples come from distributions with 2 to 1,000 groups and known GDP, from the Gaussian pair,
and from the held-out predictions of five datasets, which are resampled and so are a population with a known truth.
"""

from __future__ import annotations

import math
import zlib
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from frhsic_core.paper.runs.plan import Experiment, Unit, units_of
from frhsic_core.registry import PAPER_DATASETS

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from frhsic_core.conditional._curve import Array

ALPHA = 0.05
_AT_LEVEL = ALPHA * (1 + 1e-12)  # a p-value of exactly α rejects, whatever its last bit is
# α(B + 1) is a whole number, so that the exact tests have level α and not a little less.
PERMUTATIONS = 199
LAWS = ("normal", "cauchy", "discrete", "lognormal")
ALTERNATIVES = (
    "linear",
    "sin 1",
    "sin 2",
    "sin 3",
    "sin 4",
    "heteroscedastic",
    "circle",
    "high-dimensional",
)
TESTS = ("gamma", "spectral", "permutation", "aggregated", "dcor", "ksg", "kci")
_NEIGHBORS = 5
# Bandwidths of one kernel on Z and of one on S, in median bandwidths.
WIDTHS = (8.0, 4.0, 2.0, 1.0, 0.5, 0.25, 0.125, 0.0625)
# Samples (Z, S, C). In the first group Z ⟂ S | C, in the second it is not.
GIVEN = {
    "given level": (
        "labels",
        "linear",
        "sine",
        "heteroscedastic",
        "three columns",
        "skewed",
        "mixed",
    ),
    "given power": ("labels alike", "labels opposite", "alike", "opposite", "square", "wave"),
}
GIVEN_SIZES = (100, 400)
GIVEN_DRAWS = {"given level": 1000, "given power": 300}
# The audit: distributions of S, shapes of the curve, and the nominal coverage.
ATTRIBUTES = ("ages", "five values", "Cauchy", "normal", "log-normal")
SHAPES = ("flat", "weak", "slope", "wave")
COVERAGE = 0.95
ERROR_DRAWS = 500  # draws of the error process inside one fit; the audit uses more
_TRUTH = 400_000
BANDWIDTH = 0.5  # of both kernels of a bound, fixed in advance; attributes are divided by their largest value
_ENTRIES = {"cuda": 2**27, "cpu": 2**22}  # of the Gram matrices of a batch


def plan_levels_and_power() -> Experiment:
    """Return one unit for each kind, law, size and test."""
    name = "levels_and_power"
    last = {"permutations": PERMUTATIONS}
    level = {"kind": "level", "law": LAWS}
    tests: tuple[str, ...] = ("gamma", "spectral", "permutation", "aggregated")
    units = units_of(name, **level, n=(50, 200, 1000), test=tests, draws=2000, **last)
    # Of this size the aggregated test permutes bins of rows.
    units += units_of(name, **level, n=2000, test="aggregated", draws=2000, **last)

    power = {"kind": "power", "law": ALTERNATIVES}
    tests = ("permutation", "aggregated", "dcor")
    units += units_of(name, **power, n=(200, 500), test=tests, draws=500, **last)
    units += units_of(name, **power, n=200, test="one kernel", draws=1000, **last)
    # The information of every permuted sample is slow.
    units += units_of(name, **power, n=(200, 500), test="ksg", draws=200, **last)

    for kind, cases in GIVEN.items():
        given = {"kind": kind, "law": cases, "permutations": PERMUTATIONS}
        tests = ("aggregated", "gamma")
        units += units_of(name, **given, n=GIVEN_SIZES, test=tests, draws=GIVEN_DRAWS[kind])
        if kind == "given level":
            # Of this size blocks of rows share a sign, or bins of rows are permuted.
            units += units_of(name, **given, test="aggregated", n=2000, draws=400)
    for kind, cases in GIVEN.items():  # last: they need causal-learn
        given = {"kind": kind, "law": cases, "n": GIVEN_SIZES[0], "test": "kci"}
        units += units_of(name, **given, draws=GIVEN_DRAWS[kind], permutations=0)
    return Experiment(name, units)


def measure_unit_levels_and_power(unit: dict[str, Any], device: str) -> list[dict[str, Any]]:
    """Return how many of the draws one test rejects."""
    import torch

    # All tests of one law and size have the same samples, and the first draws of a longer run are
    # those of a shorter one.
    seed = zlib.crc32(f"{unit['kind']} {unit['law']} {unit['n']}".encode())
    generator = torch.Generator(device=device).manual_seed(1)
    if unit["test"] == "one kernel":
        return _one_kernel(unit, seed, generator)
    draw_sample = _sample_given if unit["kind"] in GIVEN else _sample
    draws, n = unit["draws"], unit["n"]
    entries = _ENTRIES.get(device.partition(":")[0], _ENTRIES["cpu"])
    at_once = max(1, entries // n**2)
    rejected = 0
    for start in range(0, draws, at_once):
        stop = min(start + at_once, draws)
        samples = [draw_sample(unit["law"], n, seed + draw) for draw in range(start, stop)]
        batches = [torch.stack(columns).to(device) for columns in zip(*samples, strict=True)]
        z, s, *given = batches
        pvalues = _pvalues(unit["test"], z, s, unit["permutations"], generator, *given)
        rejected += int((pvalues <= _AT_LEVEL).sum())
    return [{"rejected": rejected, "rate": rejected / draws}]


def _one_kernel(
    unit: dict[str, Any], seed: int, generator: torch.Generator
) -> list[dict[str, Any]]:
    """Return how many draws a test with one Gaussian kernel on Z and one on S rejects, for all pairs of ``WIDTHS``.

    A pair that is chosen by its rejections in the second half of the draws has no advantage in the first.
    """
    import torch

    from frhsic_core._arrays import as_draws
    from frhsic_core.joint.independence.permutation import random_orders, within_groups

    n = unit["n"]
    half = unit["draws"] // 2
    rows = torch.arange(n, device=generator.device)
    draws = as_draws(generator, like=rows)
    rejected = torch.zeros(2, len(WIDTHS), len(WIDTHS), dtype=torch.long, device=rows.device)
    for draw in range(unit["draws"]):
        z, s = _sample(unit["law"], n, seed + draw)
        grams_z = within_groups(_grams(z.to(rows.device), median_of=z), [rows])
        grams_s = within_groups(_grams(s.to(rows.device), median_of=s), [rows])
        # The first order is the identity.
        orders = random_orders(unit["permutations"], n, draws, like=rows)
        parts = []
        for order in orders.split(25):
            moved = grams_s[:, order[:, :, None], order[:, None]].flatten(2)
            parts.append(torch.einsum("ai,bpi->pab", grams_z.flatten(1), moved))
        statistics = torch.cat(parts)  # of each permutation, width of Z and width of S
        as_large = statistics >= statistics[0] * (1 - 1e-7)
        rejected[draw // half] += as_large.double().mean(0) <= _AT_LEVEL
    counts, elsewhere = rejected.flatten(1).tolist()
    found = []
    for k, (width_z, width_s) in enumerate(product(WIDTHS, WIDTHS)):
        found.append(
            {
                "width_z": width_z,
                "width_s": width_s,
                "rejected": counts[k],
                "rate": counts[k] / half,
                "elsewhere": elsewhere[k],
            }
        )
    return found


def _grams(x: Tensor, *, median_of: Tensor) -> Tensor:
    """Return the Gram matrices of a column at each of ``WIDTHS`` times the median bandwidth of a sample."""
    import torch

    from frhsic_core.joint.independence.permutation import scaled
    from frhsic_core.kernels import resolve_kernel

    kernels = scaled(resolve_kernel(None, median_of), WIDTHS)
    return torch.stack([kernel(x) for kernel in kernels])


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


def _sample_given(law: str, n: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return one sample ``(n, 1)``, ``(n, 1)`` and ``(n, q)`` of a law of ``GIVEN``, in float64 on the CPU."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    own, noise = torch.randn(2, n, 1, generator=generator, dtype=torch.float64)
    c = torch.randn(n, 1 if law != "three columns" else 3, generator=generator, dtype=torch.float64)
    label = (c * 1.2).round().clamp(-1, 1)  # three labels of unequal frequency
    if law == "labels":
        return 2 * label + own, 2 * label + noise, label
    if law == "labels alike":
        return 2 * label + own, 2 * label + 0.35 * own + noise, label
    if law == "labels opposite":
        return 2 * label + own, 2 * label + 0.7 * label * own + noise, label
    if law == "sine":
        wave = torch.sin(2 * c)
        return wave + 0.3 * own, wave + 0.3 * noise, c
    if law == "heteroscedastic":
        scale = 0.5 + c.abs()
        return c + scale * own, c + scale * noise, c
    if law == "three columns":
        return c.sum(1, keepdim=True) + own, c[:, :1] * c[:, 1:2] + c[:, 2:] + noise, c
    if law == "skewed":
        return c + own, c.square() + noise, c.exp()
    if law == "mixed":  # another slope for each of two groups
        group = (torch.rand(n, 1, generator=generator, dtype=torch.float64) < 0.4).double()
        slope = 1 - 2 * group
        return slope * c + own, slope * c + noise, torch.cat([c, group], 1)
    effect = {
        "linear": torch.zeros_like(own),
        "alike": 0.35 * own,
        "opposite": 0.6 * c * own,
        "square": 0.5 * own.square(),
        "wave": torch.sin(3 * own),
    }
    return c + own, c + effect[law] + noise, c


def _pvalues(
    test: str,
    z: Tensor,
    s: Tensor,
    permutations: int,
    generator: torch.Generator,
    given: Tensor | None = None,
) -> Tensor:
    """Return the p-values of a batch of samples."""
    from frhsic_core.joint import hsic_test
    from frhsic_core.kernels import Distance

    options: dict[str, Any] = {
        "n_permutations": permutations,
        "random_state": generator,
        "alpha": ALPHA,
    }
    if test == "kci":
        assert given is not None
        return _kci(z, s, given)
    if given is not None:
        return hsic_test(z, s, given=_as_groups(given), method=test, **options).pvalue
    if test == "ksg":
        return _information(z, s, permutations, generator)
    if (
        test == "dcor"
    ):  # with permutations, distance correlation and covariance give the same p-value
        return hsic_test(
            z, s, method="permutation", kernel_z=Distance(), kernel_s=Distance(), **options
        ).pvalue
    return hsic_test(z, s, method=test, **options).pvalue


def _as_groups(given: Tensor) -> Tensor:
    """Return the labels -1, 0 and 1 as two columns of 0 and 1, which are groups; others as they are."""
    import torch

    labels = bool((given == given.round()).all())
    return torch.cat([given > -1, given > 0], dim=-1).double() if labels else given


def _information(z: Tensor, s: Tensor, permutations: int, generator: torch.Generator) -> Tensor:
    import torch

    from frhsic_core.joint.information import mutual_information, standardized

    keys = torch.rand(
        permutations,
        len(s),
        s.shape[1],
        generator=generator,
        device=generator.device,
        dtype=torch.float64,
    )
    order = keys.argsort(-1).to(s.device)
    unit = standardized(s, seed=1)[..., 0]
    moved = torch.cat([unit.unsqueeze(0), unit.expand_as(order).gather(-1, order)])
    values = mutual_information(
        standardized(z), moved.unsqueeze(-1), k=_NEIGHBORS, standardize=False
    )
    return (values >= values[0] - 1e-12).double().mean(0)


def _kci(z: Tensor, s: Tensor, given: Tensor) -> Tensor:
    """Return the p-values of causal-learn's kernel conditional independence test with its defaults (a gamma fit)."""
    import torch
    from causallearn.utils.KCI.KCI import KCI_CInd

    samples = zip(z.cpu().numpy(), s.cpu().numpy(), given.cpu().numpy(), strict=True)
    return torch.tensor(
        [float(KCI_CInd().compute_pvalue(*sample)[0]) for sample in samples], dtype=torch.float64
    )


def rates(rows: pd.DataFrame, kind: str) -> pd.DataFrame:
    """Return the share of rejected draws, a row for each law and size and a column for each test."""
    part = rows[rows["kind"] == kind]
    order = GIVEN.get(kind, (*LAWS, *ALTERNATIVES))
    laws = {law: i for i, law in enumerate(order)}
    table = part.pivot_table(index=["law", "n"], columns="test", values="rate", sort=False)
    tests = [test for test in TESTS if test in table]
    return table[tests].sort_index(
        key=lambda index: index.map(lambda value: laws.get(value, value))
    )


def plan_audit_coverage() -> Experiment:
    """Return one unit for each attribute, shape and size."""
    name = "audit_coverage"
    sizes = {"n": (200, 2000, 20_000), "draws": 200}
    units = units_of(name, kind="curve", law=ATTRIBUTES, shape=SHAPES, score="probability", **sizes)
    units += units_of(
        name, kind="curve", law=("ages", "Cauchy"), shape=("flat", "slope"), score="hard", **sizes
    )
    return Experiment(name, units)


def _of_normal(law: str, normal: Array) -> Array:
    """Return the attribute that a standard normal variable becomes."""
    if law == "ages":
        return np.round(40.0 + 15.0 * normal)
    if law == "five values":
        return np.clip(np.round(1.2 * normal), -2.0, 2.0)
    return np.exp(1.2 * normal) if law == "log-normal" else normal


def attribute(law: str, n: int, generator: np.random.Generator) -> Array:
    """Return a sample of S."""
    normal = generator.standard_normal(n)
    return normal / generator.standard_normal(n) if law == "Cauchy" else _of_normal(law, normal)


def conditional_mean(law: str, shape: str, s: Array) -> Array:
    """Return E[score | S = s]."""
    x = {
        "ages": (s - 40.0) / 15.0,
        "Cauchy": s / 2.0,
        "log-normal": np.log(s) / 1.2 if law == "log-normal" else s,
    }
    t = 2.5 * np.tanh(x.get(law, s) / 2.5)
    height = {
        "flat": np.zeros_like(t),
        "weak": 0.02 * np.tanh(t),
        "slope": 0.2 * np.tanh(t / 2.0),
        "wave": 0.1 * np.sin(2 * t),
    }
    return 0.4 + height[shape]


@cache
def true_gdp(law: str, shape: str) -> float:
    """Return E|E[f | S] − E f| by averaging over equally likely values of S."""
    from scipy import stats

    at = (np.arange(_TRUTH) + 0.5) / _TRUTH
    values = stats.cauchy.ppf(at) if law == "Cauchy" else _of_normal(law, stats.norm.ppf(at))
    mean = conditional_mean(law, shape, values)
    return float(np.abs(mean - mean.mean()).mean())


def scores(unit: dict[str, Any], draw: int) -> tuple[Array, Array]:
    """Return the scores and the attribute of one draw."""
    seed = zlib.crc32(f"{unit['law']} {unit['shape']} {unit['score']} {unit['n']}".encode())
    generator = np.random.default_rng([seed, draw])
    s = attribute(unit["law"], unit["n"], generator)
    p = conditional_mean(unit["law"], unit["shape"], s)
    if unit["score"] == "hard":
        return (generator.random(len(s)) < p).astype(np.float64), s
    return generator.beta(4.0 * p, 4.0 * (1.0 - p)), s


def measure_unit_audit_coverage(unit: dict[str, Any], device: str) -> list[dict[str, Any]]:
    """Return in how many of the draws the band and the interval contain the truth."""
    from frhsic_core.conditional._curve import Smoother

    truth = true_gdp(unit["law"], unit["shape"])
    found = {"band": 0, "interval": 0, "above": 0, "below": 0}
    widths = []
    for draw in range(unit["draws"]):
        f, s = scores(unit, draw)
        curve = Smoother(s).curve(f, alpha=1.0 - COVERAGE, draws=ERROR_DRAWS, random_state=draw)
        mean = conditional_mean(unit["law"], unit["shape"], curve.s)
        found["band"] += bool(((curve.low <= mean) & (mean <= curve.high))[curve.inside].all())
        found["above"] += curve.gdp_low > truth + 1e-12
        found["below"] += curve.gdp_high < truth
        widths.append(curve.gdp_high - curve.gdp_low)
    found["interval"] = unit["draws"] - found["above"] - found["below"]
    return [found | {"truth": truth, "width": float(np.mean(widths))}]


def coverage(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the share of draws in which band and interval contain the truth, and the width of the interval."""
    table = rows[["score", "law", "shape", "n"]].assign(
        band=rows["band"] / rows["draws"],
        interval=rows["interval"] / rows["draws"],
        width=rows["width"],
    )
    return table.sort_values(["score", "law", "shape", "n"], ignore_index=True)


def plan_bound_coverage() -> Experiment:
    """Return one unit for each bound, distribution and size."""
    name = "bound_coverage"
    units: tuple[Unit, ...] = ()
    for measure, laws, scored, groups in (
        ("gdp", ("independent", "slope"), ("hard", "probability"), (2, 30, 1000)),
        ("gdp", PAPER_DATASETS, "", 0),
        ("gdp of a continuous attribute", "slope", "", 20),
        ("hsic", ("Gaussian pair, 0", "Gaussian pair, 0.5"), "", 0),
        ("hsic", PAPER_DATASETS, "", 0),
    ):
        sizes = {"n": (100, 1000, 10_000, 100_000), "draws": 400}
        units += units_of(name, measure=measure, **sizes, law=laws, score=scored, groups=groups)
    sources = ("Gaussian pair, 0", "Gaussian pair, 0.5", *PAPER_DATASETS)
    for n, draws in (((100, 1000, 10_000), 400), (100_000, 60)):
        units += units_of(
            name, measure="hsic, variance", n=n, draws=draws, law=sources, score="", groups=0
        )
    return Experiment(name, units)


@cache
def held_out(dataset: str) -> tuple[Array, Array]:
    """Return the predictions, in [0, 1], and the attribute of the half of a dataset that the model did not see."""
    from frhsic_core.paper.experiments.audit_examples import predictions

    found = predictions({"dataset": dataset, "epochs": 60, "seed": 0})
    f, s = (np.asarray(found[name], dtype=np.float64) for name in ("y_pred", "sensitive_features"))
    return np.clip(f, 0.0, 1.0), s


def group_law(law: str, groups: int) -> tuple[Array, Array]:
    """Return the masses of the groups, which fall like 1/rank, and the mean score of each.

    Examples
    --------
    >>> mass, mean = group_law("slope", 2)
    >>> mass.round(3).tolist(), mean.tolist()
    ([0.667, 0.333], [0.2, 0.6])
    """
    mass = 1.0 / np.arange(1, groups + 1)
    mean = np.full(groups, 0.4) if law == "independent" else np.linspace(0.2, 0.6, groups)
    return mass / mass.sum(), mean


def _mean_distance(mass: Array, mean: Array) -> float:
    return float((mass * np.abs(mean - mass @ mean)).sum())


def bound_sample(unit: dict[str, Any], generator: np.random.Generator) -> tuple[Array, Array]:
    """Return the scores (or Z) and the attribute of one draw."""
    n, law = unit["n"], unit["law"]
    if law in PAPER_DATASETS:
        f, s = held_out(law)
        rows = generator.integers(len(f), size=n)
        return f[rows], s[rows] / s.max()
    if unit["measure"].startswith("hsic"):
        rho = float(law.rpartition(" ")[2])
        z, noise = generator.standard_normal((2, n))
        return z, rho * z + math.sqrt(1.0 - rho * rho) * noise
    if unit["measure"] == "gdp":
        mass, mean = group_law(law, unit["groups"])
        s = generator.choice(unit["groups"], size=n, p=mass).astype(np.float64)
        p = mean[s.astype(int)]
    else:  # the mean score rises from 1/4 to 3/4
        s = generator.random(n)
        p = 0.25 + 0.5 * s
    if unit["score"] == "hard":
        return (generator.random(n) < p).astype(np.float64), s
    return generator.beta(8.0 * p, 8.0 * (1.0 - p)), s


def bound_truth(unit: dict[str, Any]) -> float:
    """Return the population value of what is bounded.

    Examples
    --------
    >>> bound_truth({"measure": "gdp of a continuous attribute", "law": "slope", "groups": 20})
    0.125
    """
    from frhsic_core import hsic
    from frhsic_core.kernels import Gaussian
    from frhsic_core.laws import GaussianPair

    kernel = Gaussian(BANDWIDTH)
    if unit["law"] in PAPER_DATASETS:
        f, s = held_out(unit["law"])
        if unit["measure"].startswith("hsic"):
            return float(hsic(f, s / s.max(), kernel_z=kernel, kernel_s=kernel))
        _, group, counts = np.unique(s, return_inverse=True, return_counts=True)
        return _mean_distance(counts / len(s), np.bincount(group, f) / counts)
    if unit["measure"].startswith("hsic"):
        return float(GaussianPair(float(unit["law"].rpartition(" ")[2])).hsic(kernel, kernel))
    if unit["measure"] == "gdp":
        return _mean_distance(*group_law(unit["law"], unit["groups"]))
    return 0.125


def measure_unit_bound_coverage(unit: dict[str, Any], device: str) -> list[dict[str, Any]]:
    """Return in how many draws the bound and the estimate reach the truth, and their means."""
    from frhsic_core.bounds import gdp_bound, hsic_bound
    from frhsic_core.kernels import Gaussian

    truth = bound_truth(unit)
    kernel = Gaussian(BANDWIDTH)
    measure, _, method = unit["measure"].partition(
        ", "
    )  # both bounds of HSIC have the same samples
    seed = zlib.crc32(
        f"{measure} {unit['law']} {unit['score']} {unit['groups']} {unit['n']}".encode()
    )
    delta = 1.0 - COVERAGE
    edges = np.arange(1, unit["groups"]) / max(unit["groups"], 1)
    bounds, estimates = [], []
    for draw in range(unit["draws"]):
        f, s = bound_sample(unit, np.random.default_rng([seed, draw]))
        if measure == "hsic":
            chosen = method or "difference"
            found = hsic_bound(f, s, kernel_z=kernel, kernel_s=kernel, delta=delta, method=chosen)
        elif measure == "gdp":
            found = gdp_bound(f, sensitive_features=s, delta=delta)
        else:
            found = gdp_bound(f, sensitive_features=s, delta=delta, groups=edges, variation=0.5)
        bounds.append(found.bound)
        estimates.append(found.estimate)
    return [
        {
            "truth": truth,
            "covered": int((np.array(bounds) >= truth).sum()),
            "estimate_covers": int((np.array(estimates) >= truth).sum()),
            "bound": float(np.mean(bounds)),
            "estimate": float(np.mean(estimates)),
        }
    ]


def bound_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return, for each bound and size, the smallest coverage over the distributions and the mean bound over truth.

    The ratio is that of the means, over the distributions in which the truth is not zero.
    """
    rows = rows.assign(
        coverage=rows["covered"] / rows["draws"], alone=rows["estimate_covers"] / rows["draws"]
    )
    rows["ratio"] = np.where(
        rows["truth"] > 1e-12, rows["bound"] / rows["truth"].clip(lower=1e-12), np.nan
    )
    grouped = rows.groupby(["measure", "n"])
    table = grouped.agg(
        settings=("covered", "size"),
        coverage=("coverage", "min"),
        alone=("alone", "min"),
        ratio=("ratio", "mean"),
    )
    return table.reset_index()
