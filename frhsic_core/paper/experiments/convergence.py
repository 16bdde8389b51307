"""Convergence of HSIC and EIPM: the paper's figure as printed, a thousand times, and with exact truths.

Gaussian pair with ρ = 0.5, Gaussian kernels of bandwidth 1 (Section 6.2, ``fig:convergence``). Units of part

- ``printed``: the study of the paper, from n = 50 to 5,000 with 20 replications and the estimate at n = 20,000 as the
  truth, repeated ``studies`` times with new data; a row has the fitted slopes of one study;
- ``exact``: estimates at one n, replication by replication, all estimators on the same sample. Truths are closed forms
  (:class:`frhsic_core.laws.GaussianPair`) and are not stored;
- ``bandwidth``: EIPM at two bandwidths that shrink, n^(−1/5) and n^(−1/3), on the same samples, under dependence and at
  independence. It shows which part of the rate belongs to the bandwidth.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from frhsic_core.paper.claims.answers import TAIL, Answer, Interval, Spread, query, rows_of
from frhsic_core.paper.runs.plan import Study, units_of

RHO = 0.5
SIGMA = 1.0
SIZES = (50, 100, 200, 500, 1_000, 2_000, 5_000)
LARGER = (10_000, 20_000)
# The study of the paper, with SIZES.
REPLICATIONS = 20
PROXY_N = 20_000
BANDWIDTH = 1.0
#: Smoothing bandwidth of each EIPM, as a constant and an exponent of n.
ESTIMATORS = {
    "hsic_biased": None,
    "hsic_unbiased": None,
    "eipm_1": (1.0, 0.0),
    "eipm_0.5": (0.5, 0.0),
    "eipm_n": (1.0, -0.2),
    "eipm_n_half": (0.5, -0.2),
}
#: The two rules of the part ``bandwidth``. The second one shrinks faster: its bias is of order n^(−2/3).
RULES = {"eipm_n": (1.0, -0.2), "eipm_third": (1.0, -1.0 / 3.0)}
RULE_SIZES = (100, 200, 400, 800, 1_600, 3_200)
SPREAD = 11.0  # no two of some 10⁸ standard normal draws lie further apart


def gamma_at(name: str, n: int) -> float:
    """Return the smoothing bandwidth of an estimator at n rows.

    Examples
    --------
    >>> gamma_at("eipm_0.5", 1000), round(gamma_at("eipm_n", 1024), 3), round(gamma_at("eipm_third", 1000), 3)
    (0.5, 0.25, 0.1)
    """
    rule = (ESTIMATORS | RULES)[name]
    if rule is None:
        raise ValueError(f"{name!r} has no smoothing bandwidth.")
    constant, power = rule
    return constant * n**power


def estimates(
    n: int, *, replications: int, seed: int, names: tuple[str, ...], rho: float = RHO, device: str = "cpu"
) -> dict[str, Any]:
    """Draw samples and return the estimates of each estimator, ``(replications,)`` in float64."""
    import torch

    from frhsic_core.laws import GaussianPair
    from frhsic_core.paper.experiments.shared.fourier_features import (
        gaussian_features,
        mean_mmd,
        squared_mmd_at_rows,
        v_statistic_hsic,
    )

    # All drawn at once and on the CPU: the same samples whatever the device and the chunks.
    sample = GaussianPair(rho).sample(n, random_state=torch.Generator().manual_seed(seed), batch=(replications,))
    found: dict[str, list[torch.Tensor]] = {name: [] for name in names}
    rows = 2_000_000 if device.startswith("cuda") else 20_000  # more would not stay in the cache of a CPU
    for z, s in zip(*(part.split(max(1, rows // n)) for part in sample), strict=True):
        z = z.to(device)
        s = s.to(device)
        phi = gaussian_features(z.squeeze(-1), SIGMA, spread=SPREAD)
        if any(name.startswith("hsic") for name in names):
            biased, unbiased = v_statistic_hsic(phi, gaussian_features(s, SIGMA, spread=SPREAD))
        for name in names:
            if name.startswith("hsic"):
                found[name].append(biased if name == "hsic_biased" else unbiased)
            else:
                found[name].append(mean_mmd(squared_mmd_at_rows(phi, s, gamma_at(name, n), spread=SPREAD)))
    return {name: torch.cat(parts).cpu().numpy() for name, parts in found.items()}


def printed_studies(seed: int, *, studies: int, device: str = "cpu") -> dict[str, Any]:
    """Carry out the study of the paper ``studies`` times: slopes against its proxies, and against exact values."""
    from frhsic_core.kernels import Gaussian
    from frhsic_core.laws import GaussianPair

    law = GaussianPair(RHO)
    kernel = Gaussian(SIGMA)
    names = {"hsic": "hsic_biased", "eipm": "eipm_1"}
    exact = {"hsic": law.hsic(kernel, kernel), "eipm": law.eipm_limit(kernel, bandwidth=BANDWIDTH)}
    asked = tuple(names.values())
    proxies = estimates(PROXY_N, replications=studies, seed=seed, names=asked, device=device)
    values = [
        estimates(n, replications=REPLICATIONS * studies, seed=seed + 1 + i, names=asked, device=device)
        for i, n in enumerate(SIZES)
    ]
    found: dict[str, np.ndarray] = {}
    for short, name in names.items():
        found[f"proxy_{short}"] = proxies[name]
        for what, target in (("", proxies[name][:, None]), ("_exact", exact[short])):
            errors = [np.abs(one[name].reshape(studies, -1) - target).mean(1) for one in values]
            found[f"slope_{short}{what}"] = np.polyfit(np.log(SIZES), np.log(errors), 1)[0]
    return found


def measure_unit(unit: dict[str, Any], device: str) -> list[dict[str, Any]]:
    """Repeat the printed study, or draw the estimates at one n (and, in the part ``bandwidth``, one ρ)."""
    if unit["part"] == "printed":
        found = printed_studies(1_000_000 + 100 * unit["first"], studies=unit["studies"], device=device)
        first = "study"
        count = unit["studies"]
        digits = 6
    else:
        of_rules = unit["part"] == "bandwidth"
        found = estimates(
            unit["n"],
            replications=unit["replications"],
            seed=2_000_000 + unit["n"] if of_rules else unit["n"],
            names=tuple(RULES if of_rules else ESTIMATORS),
            rho=unit.get("rho", RHO),
            device=device,
        )
        first = "replicate"
        count = unit["replications"]
        digits = 6 if of_rules else 8
    start = unit.get("first", 0)
    return [
        {first: start + i, **{name: float(f"{values[i]:.{digits}g}") for name, values in found.items()}}
        for i in range(count)
    ]


def plan(preset: str) -> Study:
    """Return the units; ``text`` is the printed study once and 20 replications, ``full`` a thousand and 500."""
    if preset == "smoke":
        exact = units_of(part="exact", n=(50, 100), replications=3)
        rules = units_of(part="bandwidth", rho=(RHO, 0.0), n=50, replications=3)
        printed = units_of(part="printed", first=0, studies=1)
        return Study("convergence_smoke", "convergence", (*exact, *rules, *printed))
    if preset == "text":
        exact = units_of(part="exact", n=SIZES, replications=REPLICATIONS)
        return Study("convergence_text", "convergence", (*exact, *units_of(part="printed", first=0, studies=1)))
    exact = units_of(part="exact", n=(*SIZES, *LARGER), replications=500)
    printed = units_of(part="printed", first=tuple(range(0, 1000, 50)), studies=50)
    rules = units_of(part="bandwidth", rho=(RHO, 0.0), n=RULE_SIZES, replications=500)
    return Study("convergence", "convergence", (*exact, *printed, *rules))


def scaled_errors(rows: Any, truth: float) -> dict[str, dict[int, float]]:
    """Return n^rate·RMSE by rule and n: √n·RMSE for γ = n^(−1/3) and n^(2/5)·RMSE for γ = n^(−1/5).

    A rate is right if its row is constant. ``rows`` are those of the part ``bandwidth`` at one ρ.
    """
    rates = {"eipm_third": 0.5, "eipm_n": 0.4}
    return {
        name: {int(n): float(n**rate * np.sqrt(((group[name] - truth) ** 2).mean())) for n, group in rows.groupby("n")}
        for name, rate in rates.items()
    }


def mean_slope(sizes: Sequence[float], errors: Sequence[np.ndarray]) -> float:
    """Return the slope of log(mean error) on log n by ordinary least squares, as the paper fits it."""
    return float(np.polyfit(np.log(sizes), np.log([np.mean(one) for one in errors]), 1)[0])


def slope_interval(sizes: Sequence[float], errors: Sequence[np.ndarray]) -> tuple[float, Interval]:
    """Return :func:`mean_slope` with its 95 % percentile bootstrap over replications, drawn separately at each n.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> sizes = [100, 1000, 10000]
    >>> slope, (low, high) = slope_interval(sizes, [np.abs(rng.normal(size=400)) / n**0.5 for n in sizes])
    >>> low < -0.5 < high
    True
    """
    rng = np.random.default_rng(0)
    means = np.stack([one[rng.integers(len(one), size=(2000, len(one)))].mean(1) for one in map(np.asarray, errors)])
    drawn = np.polyfit(np.log(sizes), np.log(means), 1)[0]
    low, high = np.quantile(drawn, [0.025, 0.975])
    return mean_slope(sizes, errors), (float(low), float(high))


@query
def printed_slope(estimator: str) -> Answer:
    """Return the slope of the printed study, where one such study among a thousand lies, and where their mean does."""
    rows = rows_of("convergence", "printed")
    slopes = rows[f"slope_{estimator}"]
    exact = rows[f"slope_{estimator}_exact"]
    mean = float(slopes.mean())
    error = 2.0 * float(slopes.std(ddof=1)) / len(slopes) ** 0.5
    prints = Spread(*map(float, slopes.quantile([TAIL, 0.5, 1.0 - TAIL])))
    means = Spread(mean - error, mean, mean + error)
    target = "its smoothed limit" if estimator == "eipm" else "the exact HSIC"
    note = f"interval of one study among {len(rows)}; against {target} the mean slope is {exact.mean():.3f}"
    return Answer({"any": mean}, {"any": prints}, {"any": means}, note=note, measure="slope", runs=1, splits=len(rows))
