"""HSIC and EIPM for a Gaussian vector S of p coordinates, where every answer is known: errors, floors and power.

Z = ρ·a'S + √(1 − ρ²)·ε with S ~ N(0, I_p) and a unit vector a. Isotropic kernels and weights see distances only, so a
may be the first axis: p − 1 coordinates of S are noise, whichever direction Z follows. Then

- the law of Z given S, and with it E[MMD] and E[MMD²], is that of the scalar pair, whatever p;
- so is the limit of EIPM at a fixed smoothing bandwidth;
- HSIC is the pair's times μ_L^(p−1), μ_L = σ_S/√(σ_S² + 2) the mean kernel of one coordinate.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from scipy import stats
from torch import Tensor

from frhsic_core.joint.contraction import center
from frhsic_core.kernels import Gaussian, squared_distances
from frhsic_core.laws import GaussianPair
from frhsic_core.laws.formulas import mean_kernel
from frhsic_core.paper.experiments.shared.fourier_features import gaussian_features, mean_mmd

SIGMA_Z = 1.0
SPREAD = 11.0
RANK = 24


def median_distance(p: int) -> float:
    """Return the median distance of two draws of N(0, I_p): the median heuristic without sampling error.

    Examples
    --------
    >>> round(median_distance(2), 6) == round(2 * math.sqrt(math.log(2)), 6)
    True
    """
    return math.sqrt(2.0 * stats.chi2.median(p))


def silverman(n: int, p: int) -> float:
    """Return the bandwidth of Silverman's rule for N(0, I_p): (4/((p + 2)n))^(1/(p + 4))."""
    return (4.0 / ((p + 2) * n)) ** (1.0 / (p + 4))


def truth(estimator: str, rho: float, p: int, bandwidth: float) -> float:
    """Return the value to estimate: HSIC at its bandwidth on S; E[MMD] or E[MMD²] whatever the smoothing."""
    law = GaussianPair(rho)
    kernel = Gaussian(SIGMA_Z)
    if estimator.startswith("hsic"):
        return law.hsic(kernel, Gaussian(bandwidth)) * mean_kernel(bandwidth) ** (p - 1)
    return law.expected_mmd(kernel) if estimator == "eipm" else law.expected_squared_mmd(kernel)


def sample(rho: float, n: int, p: int, count: int, generator: torch.Generator, device: str) -> tuple[Tensor, Tensor]:
    """Draw ``z (count, n)`` and ``s (count, n, p)``, Z following the first coordinate."""
    s = torch.randn(count, n, p, generator=generator, dtype=torch.float64)
    noise = torch.randn(count, n, generator=generator, dtype=torch.float64)
    z = rho * s[..., 0] + math.sqrt(1.0 - rho**2) * noise
    return z.to(device), s.to(device)


def hsic_values(phi: Tensor, distances: Tensor, sigma_s: float) -> dict[str, Tensor]:
    """Return biased and unbiased HSIC from features of Z ``(..., n, r)`` and squared distances of S ``(..., n, n)``."""
    n = phi.shape[-2]
    gram = torch.exp(-distances / (2.0 * sigma_s**2))
    degree_s = gram.sum(-1)
    total_z = phi.sum(-2, keepdim=True)
    degree_z = (phi * total_z).sum(-1)
    inner = ((gram @ phi) * phi).sum((-2, -1))  # Σ K∘L
    mean_s = degree_s.sum(-1)
    mean_z = degree_z.sum(-1)
    biased = (inner - 2.0 * (degree_s * degree_z).sum(-1) / n + mean_s * mean_z / n**2) / n**2
    # Song et al. (2012): the same three sums over distinct rows.
    off = (inner - n, ((degree_s - 1.0) * (degree_z - 1.0)).sum(-1), (mean_s - n) * (mean_z - n))
    unbiased = (off[0] + off[2] / ((n - 1) * (n - 2)) - 2.0 * off[1] / (n - 2)) / (n * (n - 3))
    return {"hsic_biased": biased, "hsic_unbiased": unbiased}


def leave_one_out(distances: Tensor, gamma: float) -> Tensor:
    """Return the weights of the other rows at each row, from squared distances whose diagonal is infinite."""
    return torch.softmax(-distances / (2.0 * gamma**2), dim=-1)


def eipm_values(phi: Tensor, weights: Tensor) -> dict[str, Tensor]:
    """Return E[MMD], E[MMD²] and its form from distinct pairs, averaged over all rows as anchors.

    With w the weights at an anchor and q = 1/n: within = Σ_{j≠k} w_j w_k k_jk/(1 − Σw²), across = Σ_{j≠k} w_j q_k
    k_jk/(1 − 1/n), overall likewise; ``eipm_distinct`` averages within − 2·across + overall: no floor from the variance
    of a smoothed mean, only the smoothing bias. O(n²r) for r features of Z.
    """
    n = phi.shape[-2]
    local = weights @ phi
    mean = phi.mean(-2, keepdim=True)
    squared = (local - mean).square().sum(-1)
    own = torch.linalg.vector_norm(weights, dim=-1) ** 2
    within = (local.square().sum(-1) - own) / (1.0 - own).clamp_min(1e-9)
    across = ((local * mean).sum(-1) - 1.0 / n) / (1.0 - 1.0 / n)
    overall = (mean.square().sum(-1) - 1.0 / n) / (1.0 - 1.0 / n)
    # All weight on one neighbor leaves no pair within the conditional law: nothing is known there; return zero.
    distinct = torch.where(own < 1.0 - 1e-6, within - 2.0 * across + overall, 0.0)
    return {"eipm": mean_mmd(squared), "eipm_squared": squared.mean(-1), "eipm_distinct": distinct.mean(-1)}


def prepared(z: Tensor, s: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return features of Z, squared distances of S, and these with an infinite diagonal."""
    phi = gaussian_features(z, SIGMA_Z, spread=SPREAD)
    distances = squared_distances(s)
    # The eigenvalues of this kernel under a normal law fall by a factor of .38: these axes carry all but 10⁻¹⁰ of it.
    phi = phi @ torch.linalg.eigh(phi.mT @ phi).eigenvectors[..., -RANK:]
    others = distances + torch.diag(torch.full((z.shape[-1],), torch.inf, dtype=z.dtype, device=z.device))
    return phi, distances, others


def errors(
    rho: float, p: int, n: int, *, replications: int, gammas: tuple[float, ...], device: str
) -> list[dict[str, Any]]:
    """Return mean and spread of every estimator at every bandwidth over the replications, beside the truth."""
    generator = torch.Generator().manual_seed(1000 * p + n)
    found: dict[tuple[str, str, float], list[Tensor]] = {}
    sigmas = {"one": 1.0, "median": median_distance(p)}
    smoothings = {f"{gamma:g}": gamma for gamma in gammas} | {"silverman": silverman(n, p)}
    chunk = max(1, (64 if device.startswith("cuda") else 2) * 2000**2 // n**2)
    left = replications
    while left > 0:
        count = min(chunk, left)
        left -= count
        phi, distances, others = prepared(*sample(rho, n, p, count, generator, device))
        for rule, sigma in sigmas.items():
            for name, value in hsic_values(phi, distances, sigma).items():
                found.setdefault((name, rule, sigma), []).append(value)
        for rule, gamma in smoothings.items():
            for name, value in eipm_values(phi, leave_one_out(others, gamma)).items():
                found.setdefault((name, rule, gamma), []).append(value)
    rows = []
    for (name, rule, bandwidth), parts in found.items():
        value = torch.cat(parts)
        exact = truth(name, rho, p, bandwidth)
        rows.append(
            {
                "estimator": name,
                "rule": rule,
                "bandwidth": float(f"{bandwidth:.6g}"),
                "truth": float(f"{exact:.8g}"),
                "mean": float(f"{value.mean():.6g}"),
                "sd": float(f"{value.std():.6g}"),
                "error": float(f"{(value - exact).abs().mean():.6g}"),
            }
        )
    return rows


def power(rho: float, p: int, n: int, *, replications: int, permutations: int, device: str) -> list[dict[str, Any]]:
    """Return the share of samples in which a permutation test at level 5 % rejects independence, for four statistics.

    The permutations are the same for every sample; each test is exact, its statistics being exchangeable given them.
    """
    generator = torch.Generator().manual_seed(77 * p + n)
    z, s = sample(rho, n, p, replications, generator, device)
    phi, distances, others = prepared(z, s)
    weights = {
        ("eipm", "0.5"): leave_one_out(others, 0.5),
        ("eipm", "silverman"): leave_one_out(others, silverman(n, p)),
    }
    grams = {
        ("hsic", rule): torch.exp(-distances / (2.0 * sigma**2))
        for rule, sigma in (("one", 1.0), ("median", median_distance(p)))
    }
    centred = {key: center(gram) for key, gram in grams.items()}

    def statistic(key: tuple[str, str], f: Tensor) -> Tensor:
        if key in centred:
            return ((centred[key] @ f) * f).sum((-2, -1))
        return mean_mmd((weights[key] @ f - f.mean(-2, keepdim=True)).square().sum(-1))

    keys = [*centred, *weights]
    observed = {key: statistic(key, phi) for key in keys}
    larger = {key: torch.ones(replications, device=phi.device) for key in keys}
    for _ in range(permutations):
        shuffled = phi[:, torch.randperm(n, generator=generator).to(phi.device)]
        for key in keys:
            larger[key] += (statistic(key, shuffled) >= observed[key] * (1.0 - 1e-12)).to(larger[key])
    return [
        {"estimator": name, "rule": rule, "power": float((count / (1 + permutations) <= 0.05).double().mean())}
        for (name, rule), count in larger.items()
    ]
