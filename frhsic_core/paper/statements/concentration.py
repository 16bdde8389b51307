"""The bound B_n of Theorem 5.1: what it is, when it says something, and how it scales.

    B_n(H, δ) = 8√2·ν_Zν_S·√(log(2/δ)/n) + 4ν_Zν_S/n + 48√π·max{ν_Zℓ_S, ν_Sℓ_Z}·G_n(H).

HSIC and its estimate both lie in [0, ν_Zν_S/4] for kernels with values in [0, ν]: with l̃ the centred kernel of S,

    HSIC(Z, S) = E[(k − ν_Z/2)·l̃] ≤ (ν_Z/2)·√HSIC(S, S),   so HSIC(S, S) ≤ ν_S²/4 (take Z = S), and the product follows.

Two fair coins and kernels 1[x = y] attain it. A B_n above ν_Zν_S/4 therefore says nothing: that is the bound to beat.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy import stats

from frhsic_core.kernels import Kernel
from frhsic_core.paper.statements.certificate import Certificate, equality, inequality
from frhsic_core.paper.statements.complexity import linear_complexity_bound
from frhsic_core.paper.statements.registry import Check

__all__ = ["CHECKS", "Constants", "informative_size", "trivial_bound", "uniform_bound"]


@dataclass(frozen=True)
class Constants:
    """ν_Z, ν_S (bounds of the kernels) and ℓ_Z, ℓ_S (Lipschitz constants of their feature maps)."""

    bound_z: float = 1.0
    bound_s: float = 1.0
    lipschitz_z: float = 1.0
    lipschitz_s: float = 1.0

    @classmethod
    def of(cls, kernel_z: Kernel, kernel_s: Kernel) -> Constants:
        """Read the constants off two kernels."""
        values = (kernel_z.bound, kernel_s.bound, kernel_z.lipschitz, kernel_s.lipschitz)
        return cls(*(float(value) for value in values))

    def scaled(self, factor_z: float, factor_s: float) -> Constants:
        """Return the constants of c_Z·k and c_S·l: ν grows with c, ℓ with its root, HSIC with c_Z·c_S."""
        return Constants(
            factor_z * self.bound_z,
            factor_s * self.bound_s,
            math.sqrt(factor_z) * self.lipschitz_z,
            math.sqrt(factor_s) * self.lipschitz_s,
        )


def uniform_bound(
    n: int, *, complexity: float, delta: float = 0.05, constants: Constants | None = None, homogeneous: bool = False
) -> float:
    """B_n(H, δ) of Theorem 5.1 (``eq:Bn_explicit``); O(1).

    Parameters
    ----------
    n : int
        Sample size.
    complexity : float
        G_n(H), the Gaussian complexity of the encoder class.
    delta : float
        Allowed probability of failure.
    constants : Constants, optional
        Of the kernels; all one by default.
    homogeneous : bool
        The corrected last term, max{ν_Z√ν_S·ℓ_S, ν_S√ν_Z·ℓ_Z}: it scales like HSIC under k → c·k, which the printed one
        does not. The two agree for kernels bounded by one.

    Examples
    --------
    >>> round(uniform_bound(10_000, complexity=0.0), 4)
    0.2177
    """
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta is {delta}: a probability strictly between 0 and 1 is needed.")
    c = constants or Constants()
    scale = c.bound_z * c.bound_s
    root_z, root_s = (math.sqrt(c.bound_z), math.sqrt(c.bound_s)) if homogeneous else (1.0, 1.0)
    slope = max(c.bound_z * root_s * c.lipschitz_s, c.bound_s * root_z * c.lipschitz_z)
    deviation = 8.0 * math.sqrt(2.0) * scale * math.sqrt(math.log(2.0 / delta) / n) + 4.0 * scale / n
    return deviation + 48.0 * math.sqrt(math.pi) * slope * complexity


def trivial_bound(constants: Constants | None = None) -> float:
    """ν_Zν_S/4, the largest |HSIC_n − HSIC| there can be for kernels with values in [0, ν].

    Examples
    --------
    >>> trivial_bound()
    0.25
    """
    c = constants or Constants()
    return 0.25 * c.bound_z * c.bound_s


def informative_size(
    *, complexity_root_n: float, target: float | None = None, delta: float = 0.05, constants: Constants | None = None
) -> int:
    """Smallest n with B_n below ``target`` (the trivial bound by default) for a class with G_n = complexity_root_n/√n.

    Examples
    --------
    >>> informative_size(complexity_root_n=0.0)  # a single encoder
    7587
    >>> informative_size(complexity_root_n=math.sqrt(50))  # linear, R = M = 1, d_Z = 50
    6216486
    """
    goal = trivial_bound(constants) if target is None else target

    def above(n: int) -> bool:
        complexity = complexity_root_n / math.sqrt(n)
        return uniform_bound(n, complexity=complexity, delta=delta, constants=constants) >= goal

    high = 1
    while above(high):
        high *= 2
    low = high // 2
    while high - low > 1:  # B_n falls in n, so halving finds the crossing
        middle = (low + high) // 2
        low, high = (middle, high) if above(middle) else (low, middle)
    return high


def when_informative(*, quick: bool) -> list[Certificate]:
    """Say where B_n is above the trivial bound and where it gets below; the paper claims no size."""
    linear = informative_size(complexity_root_n=linear_complexity_bound(radius=1.0, largest=1.0, dimension=50, n=1))
    single = informative_size(complexity_root_n=0.0)
    adult = uniform_bound(30_000, complexity=math.sqrt(50 / 30_000))
    return [
        inequality(
            "Theorem 5.1",
            "thm:uniform-hsic-frhsic",
            "at the size of Adult the bound is above the trivial 1/4, linear encoders with R = M = 1 and d_Z = 50",
            middle=trivial_bound(),
            upper=adult,
            evidence="exact",
            details={"n": 30_000, "first n that does": linear, "first n for a single encoder": single},
        ),
        inequality(
            "Theorem 5.1",
            "thm:uniform-hsic-frhsic",
            "the bound beats the trivial 1/4 from the computed n on, same class",
            middle=uniform_bound(linear, complexity=math.sqrt(50 / linear)),
            upper=trivial_bound(),
            evidence="exact",
            details={"n": linear, "one n before": uniform_bound(linear - 1, complexity=math.sqrt(50 / (linear - 1)))},
        ),
    ]


@dataclass(frozen=True)
class ScaledExample:
    """A class and kernels c·k for which the bound as printed is broken with probability near one.

    X is continuous, S a fair coin independent of X with values 0 and 3, H all functions into {0, 3}. For every h the
    population HSIC is zero. The encoder that copies S_i at each X_i and is zero elsewhere is in H, and its empirical
    HSIC depends on the number of ones alone: c²·(π₀π₁)²·(2 − 2a)(2 − 2b), a = b = exp(−9/2). G_n(H) = 3/√(2π).
    """

    n: int = 1_000_000
    factor: float = 1e6
    complexity: float = 3.0 / math.sqrt(2.0 * math.pi)

    @property
    def left(self) -> float:
        """The supremum is at least this, except with probability 1e-6 (the number of ones is binomial)."""
        ones = float(stats.binom.ppf(5e-7, self.n, 0.5)) / self.n
        return self.factor**2 * (ones * (1.0 - ones)) ** 2 * (2.0 - 2.0 * math.exp(-4.5)) ** 2

    def bound(self, *, homogeneous: bool) -> float:
        """B_n of this class and these kernels at δ = .05."""
        constants = Constants().scaled(self.factor, self.factor)
        return uniform_bound(self.n, complexity=self.complexity, constants=constants, homogeneous=homogeneous)


def _printed_for_any_scale(statement: str, label: str) -> Certificate:
    example = ScaledExample()
    return inequality(
        statement,
        label,
        "the printed bound for kernels of any size: an encoder class that breaks it, kernels c times Gaussian",
        middle=example.left,
        upper=example.bound(homogeneous=False),
        evidence="exact",
        assumptions=("kernels bounded by c", "feature maps Lipschitz with the root of c"),
        details={"n": example.n, "c": example.factor, "probability": 1.0 - 1e-6, "G_n": example.complexity},
    )


def broken_by_scaling(*, quick: bool) -> list[Certificate]:
    """Theorem 5.1 with kernels c·k."""
    return [_printed_for_any_scale("Theorem 5.1", "thm:uniform-hsic-frhsic")]


def scaled_kernels(*, quick: bool) -> list[Certificate]:
    """Proposition G.2 with kernels c·k, and the last term that scales as HSIC does."""
    example = ScaledExample()
    corrected = example.bound(homogeneous=True)
    return [
        _printed_for_any_scale("Proposition G.2", "prop:uniform_hsic"),
        inequality(
            "Proposition G.2",
            "prop:uniform_hsic",
            "the bound with a last term that scales like HSIC: the same class and kernels",
            middle=example.left,
            upper=corrected,
            evidence="exact",
            corrected=True,
            details={"n": example.n, "c": example.factor},
        ),
        equality(
            "Proposition G.2",
            "prop:uniform_hsic",
            "the corrected bound for c times the kernels is c squared times the bound for the kernels",
            left=corrected / example.factor**2,
            right=uniform_bound(example.n, complexity=example.complexity),
            evidence="exact",
            corrected=True,
        ),
    ]


def rate(*, quick: bool) -> list[Certificate]:
    """B_n itself falls like the root of n when the complexity does: Corollary 5.3, the deterministic half."""
    worst = max(
        math.sqrt(n) * uniform_bound(n, complexity=root / math.sqrt(n), delta=delta)
        - (8.0 * math.sqrt(2.0 * math.log(2.0 / delta)) + 4.0 + 48.0 * math.sqrt(math.pi) * root)
        for n in (1, 10, 10**3, 10**6, 10**9)
        for root in (0.0, 1.0, 50.0)
        for delta in (0.5, 0.05, 1e-6)
    )
    return [
        inequality(
            "Corollary 5.3",
            "cor:uniform-hsic-rootn",
            "the bound times the root of n stays below a constant that depends on the class and on delta alone",
            middle=worst,
            upper=0.0,
            evidence="exact",
            assumptions=("complexity of order n^(-1/2)",),
        )
    ]


CHECKS: dict[str, list[Check]] = {
    "Theorem 5.1": [when_informative, broken_by_scaling],
    "Corollary 5.3": [rate],
    "Proposition G.2": [scaled_kernels],
}
