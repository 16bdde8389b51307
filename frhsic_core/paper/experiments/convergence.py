"""Convergence of HSIC and EIPM: the paper's figure as printed, a thousand times, and with exact truths.

Gaussian pair with ρ = 0.5, Gaussian kernels of bandwidth 1 (Section 6.2, ``fig:convergence``). Units of part

- ``printed``: the study of the paper, from n = 50 to 5,000 with 20 replications and the estimate at n = 20,000 as the
  truth, repeated ``studies`` times with new data; a row has the fitted slopes of one study;
- ``exact``: estimates at one n, replication by replication, all estimators on the same sample. Truths are closed forms
  (:class:`frhsic_core.laws.GaussianPair`) and are not stored;
- ``bandwidth``: EIPM at two bandwidths that shrink, n^(−1/5) and n^(−1/3), on the same samples, under dependence and at
  independence. It shows which part of the rate belongs to the bandwidth.

EIPM costs O(n) here and not O(n²): the Gaussian kernels of Z and of the smoothing are written as exact features. A
Gaussian is the transform of a Gaussian, and the trapezoidal rule is exponentially accurate for it:

    exp(−d²/(2σ²)) = Σ_k c_k cos(k·h·d),   c_k ∝ h·exp(−(k·h·σ)²/2),

up to an error of about exp(−(2π/h − |d|)²/(2σ²)) (the next period) and exp(−(k_max·h·σ)²/2) (the frequencies left out).
Both are set below 10⁻¹⁵, so the features are the kernel, to rounding; r ≈ 2.6·(8.3 + range/σ) of them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from frhsic_core.paper.claims.answers import TAIL, Answer, Spread, query, rows_of
from frhsic_core.paper.runs.plan import Experiment, units_of

if TYPE_CHECKING:
    from torch import Tensor

RHO = 0.5
SIGMA = 1.0
SIZES = (50, 100, 200, 500, 1_000, 2_000, 5_000)
LARGER = (10_000, 20_000)
# The study of the paper, with SIZES.
REPLICATIONS = 20
PROXY_N = 20_000
BANDWIDTH = 1.0
#: Smoothing bandwidth of each EIPM, as a constant and an exponent of n. The bias of the last is of order n^(−2/3).
RULES = {
    "eipm_1": (BANDWIDTH, 0.0),
    "eipm_n": (1.0, -0.2),
    "eipm_third": (1.0, -1.0 / 3.0),
}
#: The estimators of each part.
ESTIMATORS = {
    "printed": ("hsic_biased", "eipm_1"),
    "exact": ("hsic_biased", "hsic_unbiased", "eipm_1", "eipm_n"),
    "bandwidth": ("eipm_n", "eipm_third"),
}
RULE_SIZES = (100, 200, 400, 800, 1_600, 3_200)
SPREAD = 11.0  # no two of some 10⁸ standard normal draws lie further apart
REACH = 8.3  # exp(−REACH²/2) is 10⁻¹⁵


def plan() -> Experiment:
    """Return the units: the printed study a thousand times, and 500 replications at each size."""
    name = "convergence"
    exact = units_of(name, part="exact", n=(*SIZES, *LARGER), replications=500)
    printed = units_of(name, part="printed", first=tuple(range(0, 1000, 50)), studies=50)
    rules = units_of(name, part="bandwidth", rho=(RHO, 0.0), n=RULE_SIZES, replications=500)
    return Experiment(name, exact + printed + rules)


def measure_unit(unit: dict[str, Any], device: str) -> list[dict[str, Any]]:
    """Repeat the printed study, or draw the estimates at one n (and, in the part ``bandwidth``, one ρ)."""
    part = unit["part"]
    start = unit.get("first", 0)
    if part == "printed":
        found = printed_studies(1_000_000 + 100 * start, studies=unit["studies"], device=device)
    else:
        seed = unit["n"] + (2_000_000 if part == "bandwidth" else 0)
        options = {"names": ESTIMATORS[part], "rho": unit.get("rho", RHO), "device": device}
        found = estimates(unit["n"], replications=unit["replications"], seed=seed, **options)
    index = "study" if part == "printed" else "replicate"
    table = [dict(zip(found, values, strict=True)) for values in zip(*found.values(), strict=True)]
    return [
        {index: start + i, **{name: float(f"{value:.8g}") for name, value in row.items()}}
        for i, row in enumerate(table)
    ]


def printed_studies(seed: int, *, studies: int, device: str = "cpu") -> dict[str, np.ndarray]:
    """Carry out the study of the paper ``studies`` times: slopes against its proxies, and against exact values."""
    from frhsic_core.kernels import Gaussian
    from frhsic_core.laws import GaussianPair

    law = GaussianPair(RHO)
    kernel = Gaussian(SIGMA)
    exact = {
        "hsic_biased": law.hsic(kernel, kernel),
        "eipm_1": law.eipm_limit(kernel, bandwidth=BANDWIDTH),
    }
    options: dict[str, Any] = {"names": ESTIMATORS["printed"], "device": device}
    proxies = estimates(PROXY_N, replications=studies, seed=seed, **options)
    values = [
        estimates(n, replications=REPLICATIONS * studies, seed=seed + 1 + i, **options)
        for i, n in enumerate(SIZES)
    ]
    found: dict[str, np.ndarray] = {}
    for name, limit in exact.items():
        short = name.partition("_")[0]
        for what, target in (("", proxies[name][:, None]), ("_exact", limit)):
            errors = [np.abs(one[name].reshape(studies, -1) - target).mean(1) for one in values]
            found[f"slope_{short}{what}"] = np.polyfit(np.log(SIZES), np.log(errors), 1)[0]
    return found


def estimates(
    n: int,
    *,
    replications: int,
    seed: int,
    names: tuple[str, ...],
    rho: float = RHO,
    device: str = "cpu",
) -> dict[str, np.ndarray]:
    """Draw samples and return the estimates of each estimator, ``(replications,)`` in float64."""
    import torch

    from frhsic_core.joint import hsic
    from frhsic_core.kernels import Gaussian
    from frhsic_core.laws import GaussianPair

    kernel = Gaussian(SIGMA)
    # All drawn at once and on the CPU: the same samples whatever the device and the chunks.
    sample = GaussianPair(rho).sample(
        n, random_state=torch.Generator().manual_seed(seed), batch=(replications,)
    )
    found: dict[str, list[Tensor]] = {name: [] for name in names}
    rows = (
        2_000_000 if device.startswith("cuda") else 20_000
    )  # more would not stay in the cache of a CPU
    for z, s in zip(*(part.to(device).split(max(1, rows // n)) for part in sample), strict=True):
        phi = gaussian_features(z.squeeze(-1), SIGMA, spread=SPREAD)
        for name in names:
            kind, _, form = name.partition("_")
            if kind == "hsic":
                found[name].append(hsic(z, s, kernel_z=kernel, kernel_s=kernel, estimator=form))
            else:
                constant, power = RULES[name]
                found[name].append(smoothed_eipm(phi, s, constant * n**power, spread=SPREAD))
    return {name: torch.cat(parts).cpu().numpy() for name, parts in found.items()}


def gaussian_features(x: Tensor, bandwidth: float, *, spread: float) -> Tensor:
    """Return features ``(..., n, r)`` whose inner products are the Gaussian kernel of ``x (..., n)``, float64; O(nr).

    ``spread`` is an upper bound of the largest difference of two values.
    """
    import torch

    step = 2.0 * math.pi / (spread + REACH * bandwidth)
    count = math.ceil(REACH / (bandwidth * step))
    k = torch.arange(count + 1, dtype=x.dtype, device=x.device)
    coefficient = (
        step * bandwidth / math.sqrt(2.0 * math.pi) * torch.exp(-0.5 * (k * step * bandwidth) ** 2)
    )
    coefficient[1:] *= 2.0  # k and −k
    angles = step * x.unsqueeze(-1) * k[1:]
    root = coefficient.sqrt()
    return torch.cat(
        [root[0].expand(*x.shape, 1), angles.cos() * root[1:], angles.sin() * root[1:]], dim=-1
    )


def smoothed_eipm(
    phi: Tensor, s: Tensor, bandwidth: float, *, spread: float, epsilon: float = 1e-10
) -> Tensor:
    """Return EIPM with every row as an anchor, from features of Z ``(..., n, r)`` and ``s (..., n)``; O(n·r_z·r_s).

    Rows so far out that the features cannot resolve the sum of their weights are computed from their distances.
    """
    import torch

    psi = gaussian_features(s, bandwidth, spread=spread)
    # The row itself is left out: its own kernel value is one.
    total = (psi @ psi.sum(-2, keepdim=True).mT).squeeze(-1) - 1.0
    local = (psi @ (psi.mT @ phi) - phi) / total.clamp_min(1e-300).unsqueeze(-1)
    for *batch, i in (total < 1e-6).nonzero().tolist():
        place = tuple(batch)
        logits = -((s[place] - s[place][i]) ** 2) / (2.0 * bandwidth**2)
        logits[i] = -torch.inf
        local[(*place, i)] = torch.softmax(logits, dim=-1) @ phi[place]
    squared = (local - phi.mean(-2, keepdim=True)).square().sum(-1)
    return (squared * torch.rsqrt(squared + epsilon)).mean(-1)


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
    return Answer(
        {"any": mean},
        {"any": prints},
        {"any": means},
        note=note,
        measure="slope",
        runs=1,
        splits=len(rows),
    )
