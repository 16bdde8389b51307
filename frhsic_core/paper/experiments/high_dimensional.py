"""A vector S: what it does to the estimators and to the power of a test.

The paper's appendix on high-dimensional attributes (``sec:highdim_S``) compares times (they are in
:mod:`frhsic_core.paper.experiments.cost`, part ``dimension``) and says that the conditional route loses statistically.
Here Z = ρ·a'S + √(1 − ρ²)·ε with S ~ N(0, I_p) and a unit vector a. Isotropic kernels and weights see distances only,
so a may be the first axis: p − 1 coordinates of S are noise, whichever direction Z follows. Then

- the law of Z given S, and with it E[MMD], is that of the scalar pair, whatever p;
- HSIC is the pair's times μ_L^(p−1), μ_L = σ_S/√(σ_S² + 2) the mean kernel of one coordinate.

Units of part ``error`` compare estimators with these values; units of part ``power`` count rejections of permutation
tests at level 5 %.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from frhsic_core.paper.runs.plan import Study, units_of

if TYPE_CHECKING:
    from torch import Generator, Tensor

COORDINATES = (1, 2, 3, 4, 5, 8, 12)
SIGMA_Z = 1.0
LEVEL = 0.05
HSIC = ("hsic_biased", "hsic_unbiased")


def plan(preset: str) -> Study:
    """Return the units of both parts; ``smoke`` has few replications of small samples."""
    name = "high_dimensional"
    if preset == "smoke":
        units = units_of(part="error", rho=0.5, p=(1, 3), n=64, replications=4)
        units += units_of(part="power", rho=0.3, p=2, n=32, replications=5, permutations=19)
        return Study(f"{name}_smoke", name, units)
    # The null shows the floor of each estimator and the level of each test.
    units = units_of(part="error", rho=(0.5, 0.0), p=COORDINATES, n=256, replications=200)
    units += units_of(part="power", rho=(0.3, 0.0), p=COORDINATES, n=128, replications=400, permutations=99)
    return Study(name, name, units)


def bandwidths(n: int, p: int) -> dict[str, dict[str, float]]:
    """Return the bandwidths on S by rule: of HSIC one and the median distance, of EIPM one half and Silverman's rule.

    The median distance of two draws of N(0, I_p) is exact: the median heuristic without sampling error.

    Examples
    --------
    >>> found = bandwidths(1000, 2)
    >>> math.isclose(found["hsic"]["median"], 2 * math.sqrt(math.log(2))), round(found["eipm"]["silverman"], 4)
    (True, 0.3162)
    """
    from scipy import stats

    median = math.sqrt(2.0 * stats.chi2.median(p))
    silverman = (4.0 / ((p + 2) * n)) ** (1.0 / (p + 4))
    return {"hsic": {"one": 1.0, "median": median}, "eipm": {"0.5": 0.5, "silverman": silverman}}


def truth(estimator: str, rho: float, p: int, bandwidth: float) -> float:
    """Return the value to estimate: HSIC at its bandwidth on S, or E[MMD] whatever the smoothing."""
    from frhsic_core.kernels import Gaussian
    from frhsic_core.laws import GaussianPair
    from frhsic_core.laws.formulas import mean_kernel

    law = GaussianPair(rho)
    kernel = Gaussian(SIGMA_Z)
    if estimator == "eipm":
        return law.expected_mmd(kernel)
    return law.hsic(kernel, Gaussian(bandwidth)) * mean_kernel(bandwidth) ** (p - 1)


def sample(rho: float, n: int, p: int, count: int, generator: Generator) -> tuple[Tensor, Tensor]:
    """Draw ``z (count, n, 1)`` and ``s (count, n, p)``, Z following the first coordinate."""
    import torch

    s = torch.randn(count, n, p, generator=generator, dtype=torch.float64)
    noise = torch.randn(count, n, 1, generator=generator, dtype=torch.float64)
    return rho * s[..., :1] + math.sqrt(1.0 - rho**2) * noise, s


def estimate(estimator: str, z: Tensor, s: Tensor, bandwidth: float) -> Tensor:
    """Return one of the estimators at a bandwidth on S for each sample of a batch."""
    from frhsic_core.conditional import eipm
    from frhsic_core.joint import hsic
    from frhsic_core.kernels import Gaussian

    kernel = Gaussian(SIGMA_Z)
    if estimator == "eipm":
        return eipm(z, s, kernel_z=kernel, bandwidth=bandwidth)
    form = estimator.removeprefix("hsic_")
    return hsic(z, s, kernel_z=kernel, kernel_s=Gaussian(bandwidth), estimator=form)


def measure_unit(unit: dict[str, Any], device: str) -> list[dict[str, Any]]:
    """Measure a unit of one of the two parts."""
    import torch

    rho, p, n = unit["rho"], unit["p"], unit["n"]
    of_errors = unit["part"] == "error"
    generator = torch.Generator().manual_seed(1000 * p + n if of_errors else 77 * p + n)
    z, s = (part.to(device) for part in sample(rho, n, p, unit["replications"], generator))
    rows = []
    for kind, rules in bandwidths(n, p).items():
        for rule, bandwidth in rules.items():
            if not of_errors:
                name = "eipm" if kind == "eipm" else "hsic_biased"
                share = rejections(name, z, s, bandwidth, permutations=unit["permutations"])
                rows.append({"estimator": kind, "rule": rule, "power": share})
                continue
            for name in ("eipm",) if kind == "eipm" else HSIC:
                values = estimate(name, z, s, bandwidth)
                exact = truth(name, rho, p, bandwidth)
                found = {"bandwidth": bandwidth, "truth": exact, "mean": values.mean(), "sd": values.std()}
                numbers = {key: float(f"{value:.6g}") for key, value in found.items()}
                rows.append({"estimator": name, "rule": rule, **numbers})
    return rows


def rejections(estimator: str, z: Tensor, s: Tensor, bandwidth: float, *, permutations: int) -> float:
    """Return the share of samples whose permutation test rejects independence at the level.

    The permutations are the same for every sample; each test is exact, its statistics being exchangeable given them.
    """
    import torch

    generator = torch.Generator().manual_seed(permutations)
    observed = estimate(estimator, z, s, bandwidth)
    larger = torch.ones_like(observed)
    for _ in range(permutations):
        order = torch.randperm(z.shape[-2], generator=generator).to(z.device)
        larger += estimate(estimator, z[:, order], s, bandwidth) >= observed * (1.0 - 1e-12)
    return float((larger / (1 + permutations) <= LEVEL).double().mean())
