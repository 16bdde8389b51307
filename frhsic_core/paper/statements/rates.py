"""Rates of convergence against exact truths: HSIC, and EIPM at a fixed and at a shrinking bandwidth.

The paper's synthetic study takes each estimator's value at a large sample as the truth. For the Gaussian law the truth
is known (:class:`frhsic_core.laws.GaussianPair`), and then the two estimators part: HSIC converges to HSIC at root-n;
EIPM at a fixed smoothing bandwidth converges at root-n too, to the wrong number; the rate n^(−2/5) belongs to
γ_n ∝ n^(−1/5), where the smoothing bias is of order γ_n².
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from frhsic_core.conditional import eipm
from frhsic_core.joint.hsic import hsic
from frhsic_core.kernels import Gaussian
from frhsic_core.laws import GaussianPair
from frhsic_core.paper.statements.certificate import Certificate, inequality
from frhsic_core.paper.statements.coverage import loglog_slope
from frhsic_core.paper.statements.registry import Check

__all__ = ["CHECKS", "Convergence", "eipm_convergence", "hsic_convergence", "smoothing_bias_slope"]

STATEMENT, LABEL = "Corollary 5.3", "cor:uniform-hsic-rootn"
LAW, KERNEL = GaussianPair(0.5), Gaussian(1.0)


@dataclass(frozen=True)
class Convergence:
    """Estimates of one number at several sample sizes, beside the number.

    Attributes
    ----------
    sizes : ndarray
        ``(k,)``.
    estimates : ndarray
        ``(k, replications)``.
    truth : float
        What should be estimated, exactly.
    """

    sizes: np.ndarray
    estimates: np.ndarray
    truth: float

    def errors(self, target: float | None = None) -> np.ndarray:
        """Absolute errors against ``target``, by default the truth."""
        return np.abs(self.estimates - (self.truth if target is None else target))

    def slope(self, target: float | None = None, *, confidence: float = 0.95) -> tuple[float, tuple[float, float]]:
        """Slope of the mean absolute error on log-log axes, with its interval."""
        return loglog_slope(self.sizes, self.errors(target), confidence=confidence)


def hsic_convergence(
    sizes: tuple[int, ...],
    *,
    replications: int,
    law: GaussianPair = LAW,
    kernel: Gaussian = KERNEL,
    estimator: str = "biased",
    generator: torch.Generator,
) -> Convergence:
    """Draw HSIC estimates at each size; O(replications·Σn²) time.

    Examples
    --------
    >>> found = hsic_convergence((20, 40), replications=3, generator=torch.Generator().manual_seed(0))
    >>> found.estimates.shape, round(found.truth, 9)
    ((2, 3), 0.01076332)
    """
    estimates = []
    for n in sizes:
        z, s = law.sample(n, generator=generator, batch=(replications,))
        estimates.append(
            [
                hsic(one_z, one_s, kernel_z=kernel, kernel_s=kernel, estimator=estimator).item()
                for one_z, one_s in zip(z, s, strict=True)
            ]
        )
    return Convergence(np.array(sizes, dtype=np.float64), np.array(estimates), law.hsic(kernel, kernel))


def eipm_convergence(
    sizes: tuple[int, ...],
    *,
    replications: int,
    bandwidth: float,
    power: float = 0.0,
    law: GaussianPair = LAW,
    kernel: Gaussian = KERNEL,
    generator: torch.Generator,
) -> Convergence:
    """Draw EIPM estimates with smoothing bandwidth γ_n = bandwidth·n^power; O(replications·Σn³) time.

    Examples
    --------
    >>> found = eipm_convergence((20,), replications=2, bandwidth=0.5, generator=torch.Generator().manual_seed(0))
    >>> round(found.truth, 9)
    0.199520697
    """
    estimates = []
    for n in sizes:
        z, s = law.sample(n, generator=generator, batch=(replications,))
        gamma = bandwidth * n**power
        estimates.append(
            [eipm(one_z, one_s, kernel_z=kernel, bandwidth=gamma).item() for one_z, one_s in zip(z, s, strict=True)]
        )
    return Convergence(np.array(sizes, dtype=np.float64), np.array(estimates), law.expected_mmd(kernel))


def smoothing_bias_slope(small: float, large: float, *, constant: float = 1.0) -> float:
    """Log-log slope of the exact smoothing bias |EIPM(γ_n) − E[MMD]| at γ_n = constant·n^(−1/5), between two n.

    Examples
    --------
    >>> round(smoothing_bias_slope(1e8, 1e10), 3)
    -0.4
    """
    truth = LAW.expected_mmd(KERNEL)
    biases = [abs(LAW.eipm_limit(KERNEL, bandwidth=constant * n**-0.2) - truth) for n in (small, large)]
    return math.log(biases[1] / biases[0]) / math.log(large / small)


def hsic_rate(*, quick: bool) -> list[Certificate]:
    """HSIC against its exact value: the slope's 95 % interval contains −1/2."""
    sizes = (100, 200, 400) if quick else (100, 200, 400, 800)
    replications = 200 if quick else 400
    found = hsic_convergence(sizes, replications=replications, generator=torch.Generator().manual_seed(0))
    slope, (low, high) = found.slope()
    return [
        inequality(
            STATEMENT,
            LABEL,
            "a single encoder: the 95 % interval of HSIC's log-log slope contains -1/2, Gaussian law off the null",
            lower=low,
            middle=-0.5,
            upper=high,
            evidence="statistical",
            assumptions=("rho = .5", "unit bandwidths", "truth in closed form"),
            details={"slope": slope, "truth": found.truth, "replications": replications, "sizes": list(sizes)},
        )
    ]


def fixed_bandwidth(*, quick: bool) -> list[Certificate]:
    """EIPM at a fixed γ: a definite distance from the truth, and convergence to the smoothed criterion."""
    sizes = (100, 200, 400) if quick else (100, 200, 400, 800)
    replications = 40 if quick else 100
    generator = torch.Generator().manual_seed(1)
    certificates = []
    for bandwidth in (0.5, 1.0):
        found = eipm_convergence(sizes, replications=replications, bandwidth=bandwidth, generator=generator)
        limit = LAW.eipm_limit(KERNEL, bandwidth=bandwidth)
        mean = float(found.estimates[-1].mean())
        reach = 4.0 * found.estimates[-1].std(ddof=1) / math.sqrt(replications)
        slope, (low, high) = found.slope(limit, confidence=0.99)
        details = {
            "limit": limit,
            "truth": found.truth,
            "mean of the estimates": mean,
            "slope against the limit": slope,
            "slope against the truth": found.slope()[0],
            "replications": replications,
            "sizes": list(sizes),
        }
        certificates += [
            inequality(
                STATEMENT,
                LABEL,
                f"text: EIPM at the fixed bandwidth {bandwidth} converges to its population value E[MMD]",
                middle=abs(mean - found.truth),
                upper=reach,
                evidence="statistical",
                details=details,
            ),
            inequality(
                STATEMENT,
                LABEL,
                f"EIPM at the fixed bandwidth {bandwidth} converges to the smoothed criterion; 99 % slope interval "
                "contains -1/2",
                lower=low,
                middle=-0.5,
                upper=high,
                evidence="statistical",
                corrected=True,
                details=details,
            ),
        ]
    return certificates


def shrinking_bandwidth(*, quick: bool) -> list[Certificate]:
    """EIPM at γ_n ∝ n^(−1/5): the error against the truth falls, and the exact bias falls like n^(−2/5)."""
    sizes = (100, 200, 400) if quick else (100, 200, 400, 800)
    replications = 40 if quick else 100
    found = eipm_convergence(
        sizes, replications=replications, bandwidth=1.0, power=-0.2, generator=torch.Generator().manual_seed(2)
    )
    slope, (low, high) = found.slope()
    return [
        inequality(
            STATEMENT,
            LABEL,
            "EIPM at a bandwidth of order n^(-1/5): the error against the truth falls (upper end of its slope)",
            middle=high,
            upper=0.0,
            evidence="statistical",
            corrected=True,
            details={"slope": slope, "interval": [low, high], "replications": replications, "sizes": list(sizes)},
        ),
        inequality(
            STATEMENT,
            LABEL,
            "EIPM at a bandwidth of order n^(-1/5): the exact smoothing bias has log-log slope -2/5",
            middle=abs(smoothing_bias_slope(1e10, 1e12) + 0.4),
            upper=1e-3,
            evidence="exact",
            corrected=True,
            details={"slope at practical sizes": smoothing_bias_slope(1e2, 1e4)},
        ),
    ]


CHECKS: dict[str, list[Check]] = {STATEMENT: [hsic_rate, fixed_bandwidth, shrinking_bandwidth]}
