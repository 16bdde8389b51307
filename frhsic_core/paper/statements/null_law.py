"""At independence HSIC's estimator is degenerate: n·HSIC_b has a limit, and a mean that training never gets below.

The paper calls the estimator a non-degenerate V-statistic. That is true where Z and S depend on each other: there
√n(HSIC_n − HSIC) has a normal limit with variance 4·Var h₁, h₁(z, s) = E[k̃(Z, z)·l̃(S, s)]. At Z ⟂ S, the target of
training, h₁ is zero everywhere. Then n·HSIC_b has a limit law and, for kernels with k(x, x) = 1, the mean

    E[n·HSIC_b] = (1 − μ_K)(1 − μ_L)(1 − 1/n),    μ_K = E k(Z, Z'), μ_L = E l(S, S'),

so that a mini-batch of m rows has a penalty of about (1 − μ_K)(1 − μ_L)/m even when nothing is left to remove.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import torch

from frhsic_core.joint.hsic import hsic
from frhsic_core.kernels import Gaussian
from frhsic_core.laws import FiniteLaw, GaussianPair
from frhsic_core.paper.statements.certificate import Certificate, equality, inequality, strict_inequality
from frhsic_core.paper.statements.registry import Check
from frhsic_core.paper.statements.samples import rational_hsic

__all__ = ["CHECKS", "null_mean", "projection_variance", "rational_unbiased_hsic"]

STATEMENT, LABEL = "Definition 2.1", "def:hsic"
Matrix = Sequence[Sequence[Any]]


def null_mean(mean_k: Any, mean_l: Any, *, n: int) -> Any:
    """(1 − μ_K)(1 − μ_L)(1 − 1/n), the mean of n·HSIC_b at independence for kernels with k(x, x) = 1.

    Examples
    --------
    >>> null_mean(Fraction(1, 2), Fraction(1, 2), n=2)
    Fraction(1, 8)
    """
    return (1 - mean_k) * (1 - mean_l) * (1 - Fraction(1, n))


def rational_unbiased_hsic(gram: list[list[Fraction]], other: list[list[Fraction]]) -> Fraction:
    """Unbiased HSIC (Song et al., 2012) in rational arithmetic, O(n²), at least four rows."""
    n = len(gram)
    k, l = ([[Fraction(0) if i == j else m[i][j] for j in range(n)] for i in range(n)] for m in (gram, other))
    rows, other_rows = [sum(row, Fraction(0)) for row in k], [sum(row, Fraction(0)) for row in l]
    paired = sum((k[i][j] * l[i][j] for i in range(n) for j in range(n)), Fraction(0))
    product = sum(rows, Fraction(0)) * sum(other_rows, Fraction(0))
    cross = sum((a * b for a, b in zip(rows, other_rows, strict=True)), Fraction(0))
    return (paired + product / ((n - 1) * (n - 2)) - 2 * cross / (n - 2)) / (n * (n - 3))


def exact_mean(
    statistic: Callable[[list[list[Fraction]], list[list[Fraction]]], Fraction],
    *,
    n: int,
    p_z: Sequence[Fraction],
    p_s: Sequence[Fraction],
    gram_z: Matrix,
    gram_s: Matrix,
) -> Fraction:
    """Mean of a statistic over all samples of n independent rows with Z ⟂ S, by enumeration: (|Z|·|S|)^n terms."""
    cells = [(i, j, p * q) for i, p in enumerate(p_z) for j, q in enumerate(p_s)]
    total = Fraction(0)
    for sample in itertools.product(cells, repeat=n):
        chance = math.prod((cell[2] for cell in sample), start=Fraction(1))
        k = [[gram_z[a[0]][b[0]] for b in sample] for a in sample]
        l = [[gram_s[a[1]][b[1]] for b in sample] for a in sample]
        total += chance * statistic(k, l)
    return total


def projection_variance(law: FiniteLaw, gram_z: Matrix, gram_s: Matrix) -> Any:
    """4·Var h₁: the variance of the normal limit of √n(HSIC_n − HSIC), zero exactly when that is degenerate."""
    k, l = np.array(gram_z, dtype=object), np.array(gram_s, dtype=object)
    k = k - (k @ law.p_z)[:, None]
    l = l - (l @ law.p_s)[:, None]
    h = (k - (law.p_z @ k)[None, :]) @ law.difference @ (l - (law.p_s @ l)[None, :])
    mean = (law.probabilities * h).sum()
    return 4 * ((law.probabilities * h * h).sum() - mean * mean)


HALF, THIRD = Fraction(1, 2), Fraction(1, 3)
GRAM_Z = [[Fraction(1), HALF], [HALF, Fraction(1)]]
GRAM_S = [[Fraction(1), Fraction(1, 4)], [Fraction(1, 4), Fraction(1)]]
P_Z, P_S = (THIRD, 1 - THIRD), (Fraction(1, 4), Fraction(3, 4))


def exact_null_means(*, quick: bool) -> list[Certificate]:
    """Both estimators on a two-by-two law, all samples enumerated."""
    options: dict[str, Any] = {"p_z": P_Z, "p_s": P_S, "gram_z": GRAM_Z, "gram_s": GRAM_S}
    mean_k = sum(P_Z[i] * P_Z[j] * GRAM_Z[i][j] for i in range(2) for j in range(2))
    mean_l = sum(P_S[i] * P_S[j] * GRAM_S[i][j] for i in range(2) for j in range(2))
    n = 4
    biased = n * exact_mean(rational_hsic, n=n, **options)
    formula = null_mean(mean_k, mean_l, n=n)
    unbiased = exact_mean(rational_unbiased_hsic, n=n, **options)
    return [
        equality(
            STATEMENT,
            LABEL,
            "at independence n times biased HSIC has mean (1 - mu_K)(1 - mu_L)(1 - 1/n), all samples enumerated",
            left=float(biased),
            right=float(formula),
            tolerance=0.0,
            evidence="exact",
            details={"n": n, "mean": str(biased), "formula": str(formula)},
        ),
        equality(
            STATEMENT,
            LABEL,
            "at independence unbiased HSIC has mean zero, all samples enumerated",
            left=float(unbiased),
            right=0.0,
            tolerance=0.0,
            evidence="exact",
            details={"n": n, "mean": str(unbiased)},
        ),
    ]


def degeneracy(*, quick: bool) -> list[Certificate]:
    """The first projection: zero at independence, positive off it, and right as a variance there."""
    independent = FiniteLaw([0, 1], [0, 1], [[p * q for q in P_S] for p in P_Z])
    table = [[Fraction(1, 2), Fraction(1, 8)], [Fraction(1, 8), Fraction(1, 4)]]
    dependent = FiniteLaw([0, 1], [0, 1], table)
    at_null = projection_variance(independent, GRAM_Z, GRAM_S)
    off_null = projection_variance(dependent, GRAM_Z, GRAM_S)
    n, draws = 4000, 2000 if quick else 20_000
    rng = np.random.default_rng(21)
    counts = rng.multinomial(n, np.array(table, dtype=float).ravel(), size=draws).reshape(draws, 2, 2) / n
    difference = counts - counts.sum(2, keepdims=True) * counts.sum(1, keepdims=True)
    k, l = np.array(GRAM_Z, dtype=float), np.array(GRAM_S, dtype=float)
    variance = float(n * ((k @ difference @ l) * difference).sum((1, 2)).var(ddof=1))
    return [
        strict_inequality(
            STATEMENT,
            LABEL,
            "text: the estimator is a non-degenerate V-statistic; variance of its first projection at independence",
            middle=0.0,
            upper=float(at_null),
            evidence="exact",
            details={"variance": str(at_null)},
        ),
        strict_inequality(
            STATEMENT,
            LABEL,
            "off the null the estimator is non-degenerate; variance of its first projection",
            middle=0.0,
            upper=float(off_null),
            evidence="exact",
            corrected=True,
            details={"variance": str(off_null)},
        ),
        inequality(
            STATEMENT,
            LABEL,
            "off the null n times the variance of HSIC is that of the first projection, up to sampling error and 1/n",
            middle=abs(variance / float(off_null) - 1.0),
            upper=5.0 * math.sqrt(2.0 / draws) + 40.0 / n,
            evidence="statistical",
            corrected=True,
            details={"n": n, "draws": draws, "n times variance": variance, "limit": float(off_null)},
        ),
    ]


def gaussian_null(*, quick: bool) -> list[Certificate]:
    """The Gaussian law at ρ = 0: mean of n·HSIC_b and of the unbiased form within four standard errors."""
    n, draws = 64, 500 if quick else 4000
    z, s = GaussianPair(0.0).sample(n, generator=torch.Generator().manual_seed(22), batch=(draws,))
    kernel = Gaussian(1.0)
    expected = GaussianPair(0.0).null_mean(kernel, kernel, n=n)
    certificates = []
    for estimator, factor, target in (("biased", n, expected), ("unbiased", 1, 0.0)):
        values = factor * hsic(z, s, kernel_z=kernel, kernel_s=kernel, estimator=estimator)
        certificates.append(
            inequality(
                STATEMENT,
                LABEL,
                f"Gaussian law at independence: mean of the {estimator} estimator against its exact value",
                middle=abs(values.mean().item() - target),
                upper=4.0 * values.std().item() / math.sqrt(draws),
                evidence="statistical",
                details={"n": n, "draws": draws, "mean": values.mean().item(), "exact": target},
            )
        )
    return certificates


CHECKS: dict[str, list[Check]] = {STATEMENT: [exact_null_means, degeneracy, gaussian_null]}
