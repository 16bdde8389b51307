"""The bound B_n of Theorem 5.1 and the Gaussian complexity in it: what they are, and when the bound says something.

    B_n(H, δ) = 8√2·ν_Zν_S·√(log(2/δ)/n) + 4ν_Zν_S/n + 48√π·max{ν_Zℓ_S, ν_Sℓ_Z}·G_n(H).

HSIC and its estimate both lie in [0, ν_Zν_S/4] for kernels with values in [0, ν]: with l̃ the centred kernel of S,

    HSIC(Z, S) = E[(k − ν_Z/2)·l̃] ≤ (ν_Z/2)·√HSIC(S, S),   so HSIC(S, S) ≤ ν_S²/4 (take Z = S), and the product follows.

Two fair coins and kernels 1[x = y] attain it. A B_n above ν_Zν_S/4 therefore says nothing: that is the bound to beat.

The linear-encoder bound after Corollary 5.3 is about H = {x ↦ Wx : ‖W‖_F ≤ R}. The supremum inside the complexity is a
maximum of a linear function over a ball,

    sup_W (1/n)Σ⟨ξ_i, W x_i⟩ = R·‖(1/n)Σ ξ_i x_iᵀ‖_F,

so Ĝ_n = R·E_ξ‖·‖_F: an equality. The squared norm is Σ_j a_j χ²_{d_Z} with a_j the eigenvalues of ΣX_iX_iᵀ, and the
mean of its root is one smooth integral. The paper prints the right side without its expectation over ξ, but a number on
the left cannot be at most a random one on the right for every draw.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from scipy import stats
from torch import Tensor

from frhsic_core.arrays import ArrayLike, RandomState, as_generator, as_sample
from frhsic_core.kernels import Kernel
from frhsic_core.paper.statements import Certificate, check, equality, inequality


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
    """Return B_n(H, δ) of Theorem 5.1 (``eq:Bn_explicit``); O(1).

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
        raise ValueError(f"delta is {delta}: pass a probability strictly between 0 and 1.")
    c = constants or Constants()
    scale = c.bound_z * c.bound_s
    root_z, root_s = (math.sqrt(c.bound_z), math.sqrt(c.bound_s)) if homogeneous else (1.0, 1.0)
    slope = max(c.bound_z * root_s * c.lipschitz_s, c.bound_s * root_z * c.lipschitz_z)
    deviation = 8.0 * math.sqrt(2.0) * scale * math.sqrt(math.log(2.0 / delta) / n) + 4.0 * scale / n
    return deviation + 48.0 * math.sqrt(math.pi) * slope * complexity


def proved_bound(n: int, *, complexity: float, delta: float = 0.05, constants: Constants | None = None) -> float:
    """Return the bound that the book proves for non-negative kernels of any size, with smaller constants; O(1).

    √3·ν_Zν_S·√(log(2/δ)/n) + 2ν_Zν_S/n + 20√π·ν_S√ν_Z·ℓ_Z·G_n(H). The chapter on uniform concentration has the proof.
    For fewer than twelve rows the first term alone exceeds the trivial bound. The attribute is not encoded, so that no
    Lipschitz constant of its kernel is needed.

    Examples
    --------
    >>> round(proved_bound(10_000, complexity=0.0), 4)
    0.0335
    """
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta is {delta}: pass a probability strictly between 0 and 1.")
    c = constants or Constants()
    scale = c.bound_z * c.bound_s
    deviation = math.sqrt(3.0) * scale * math.sqrt(math.log(2.0 / delta) / n) + 2.0 * scale / n
    return deviation + 20.0 * math.sqrt(math.pi) * c.bound_s * math.sqrt(c.bound_z) * c.lipschitz_z * complexity


def trivial_bound(constants: Constants | None = None) -> float:
    """Return ν_Zν_S/4, the largest |HSIC_n − HSIC| there can be for kernels with values in [0, ν].

    Examples
    --------
    >>> trivial_bound()
    0.25
    """
    c = constants or Constants()
    return 0.25 * c.bound_z * c.bound_s


def root_slack(n: int, *, delta: float = 0.05, parameters: int = 0, reach: float = 1.0) -> float:
    """Return what must be added to n/(n − 1)·√HSIC_n so that it bounds √HSIC with probability 1 − δ.

    For one encoder √(3·log(1/δ)/n), as in :func:`frhsic_core.hsic_bound`. For all linear encoders with ``parameters``
    entries at once, a net of (1 + 2·n·reach)^parameters encoders joins the logarithm, and 3/n pays for its mesh.

    Parameters
    ----------
    n : int
        Sample size.
    delta : float
        Allowed probability of failure.
    parameters : int
        Number of entries of W; zero for one encoder that is fixed in advance.
    reach : float
        ℓ_Z·R·M, with ‖W‖_F ≤ R and ‖X‖ ≤ M.

    Examples
    --------
    >>> round(root_slack(10_000) ** 2, 4), round(root_slack(10_000, parameters=2) ** 2, 4)
    (0.0009, 0.0069)
    """
    logarithm = math.log(1.0 / delta) + parameters * math.log(1.0 + 2.0 * reach * n)
    return math.sqrt(3.0 * logarithm / n) + (3.0 / n if parameters else 0.0)


def informative_size(
    *,
    complexity_root_n: float,
    target: float | None = None,
    delta: float = 0.05,
    constants: Constants | None = None,
    bound: Callable[..., float] = uniform_bound,
) -> int:
    """Return the smallest n with ``bound`` below ``target`` (default: the trivial bound) if G_n = complexity_root_n/√n.

    Examples
    --------
    >>> informative_size(complexity_root_n=0.0, bound=proved_bound)  # a single encoder
    193
    >>> informative_size(complexity_root_n=0.0)  # a single encoder
    7587
    >>> informative_size(complexity_root_n=math.sqrt(50))  # linear, R = M = 1, d_Z = 50
    6216486
    """
    goal = trivial_bound(constants) if target is None else target

    def above(n: int) -> bool:
        complexity = complexity_root_n / math.sqrt(n)
        return bound(n, complexity=complexity, delta=delta, constants=constants) >= goal

    high = 1
    while above(high):
        high *= 2
    low = high // 2
    while high - low > 1:  # B_n falls in n, so halving finds the crossing
        middle = (low + high) // 2
        low, high = (middle, high) if above(middle) else (low, middle)
    return high


@check("Theorem 5.1")
def when_informative() -> list[Certificate]:
    """Find where B_n is above the trivial bound and where it gets below it; the paper claims no size."""
    linear = informative_size(complexity_root_n=linear_complexity_bound(radius=1.0, largest=1.0, dimension=50, n=1))
    single = informative_size(complexity_root_n=0.0)
    adult = uniform_bound(30_000, complexity=math.sqrt(50 / 30_000))
    return [
        inequality(
            "at the size of Adult the bound is above the trivial 1/4, linear encoders with R = M = 1 and d_Z = 50",
            middle=trivial_bound(), upper=adult, evidence="exact",
            details={"n": 30_000, "first n that does": linear, "first n for a single encoder": single}),
        inequality(
            "the bound beats the trivial 1/4 from the computed n on, same class",
            middle=uniform_bound(linear, complexity=math.sqrt(50 / linear)), upper=trivial_bound(), evidence="exact",
            details={"n": linear, "one n before": uniform_bound(linear - 1, complexity=math.sqrt(50 / (linear - 1)))}),
    ]  # fmt: skip


@dataclass(frozen=True)
class ScaledExample:
    """A class and kernels c·k for which the bound as printed is broken with probability near one.

    X is continuous, S a fair coin independent of X with values 0 and 3, H all functions into {0, 3}. For every h the
    population HSIC is zero. The encoder that copies S_i at each X_i and is zero elsewhere is in H, and its empirical
    HSIC depends on the number of ones alone: c²·(π₀π₁)²·(2 − 2a)(2 − 2b), a = b = exp(−9/2). G_n(H) = 3/√(2π).

    The consequences of the bound break with the roles exchanged. Let X = (U, S) with U continuous, and let ĥ be zero at
    the n sampled points and S elsewhere. Then HSIC_n(ĥ) = 0 and HSIC(ĥ) is that of S with itself, c²(1 − a)²/4.
    """

    n: int = 1_000_000
    factor: float = 1e6
    complexity: float = 3.0 / math.sqrt(2.0 * math.pi)

    @property
    def left(self) -> float:
        """The supremum is at least this, except with probability 1e-6 (the number of ones is binomial)."""
        ones = float(stats.binom.ppf(5e-7, self.n, 0.5)) / self.n
        return self.factor**2 * (ones * (1.0 - ones)) ** 2 * (2.0 - 2.0 * math.exp(-4.5)) ** 2

    @property
    def learned(self) -> float:
        """Population HSIC of the encoder that is zero on the sample and S elsewhere; its empirical HSIC is zero."""
        return 0.25 * self.factor**2 * (1.0 - math.exp(-4.5)) ** 2

    def bound(self, *, homogeneous: bool) -> float:
        """Return B_n of this class and these kernels at δ = .05."""
        constants = Constants().scaled(self.factor, self.factor)
        return uniform_bound(self.n, complexity=self.complexity, constants=constants, homogeneous=homogeneous)


@check("Theorem 5.1", "Proposition G.2")
def broken_by_scaling() -> list[Certificate]:
    """Break Theorem 5.1, and Proposition G.2, which is the same, with kernels c·k."""
    example = ScaledExample()
    return [
        inequality(
            "the printed bound for kernels of any size: an encoder class that breaks it, kernels c times Gaussian",
            middle=example.left, upper=example.bound(homogeneous=False), evidence="exact",
            assumptions=("kernels bounded by c", "feature maps Lipschitz with the root of c"),
            details={"n": example.n, "c": example.factor, "probability": 1.0 - 1e-6, "G_n": example.complexity})
    ]  # fmt: skip


@check("Proposition G.2")
def corrected_by_scaling() -> list[Certificate]:
    """Check Proposition G.2 with kernels c·k and a last term that scales as HSIC does."""
    example = ScaledExample()
    corrected = example.bound(homogeneous=True)
    return [
        inequality(
            "the bound with a last term that scales like HSIC: the same class and kernels", middle=example.left,
            upper=corrected, evidence="exact", corrected=True, details={"n": example.n, "c": example.factor}),
        equality("the corrected bound for c times the kernels is c squared times the bound for the kernels",
                 left=corrected / example.factor**2, right=uniform_bound(example.n, complexity=example.complexity),
                 evidence="exact", corrected=True),
    ]  # fmt: skip


def _printed_and_corrected(claim: str, example: ScaledExample, *, middle: float, times: int) -> list[Certificate]:
    names = ("the printed bound for kernels of any size", "the bound with a last term that scales like HSIC")
    return [
        inequality(
            f"{name}: {claim}, an encoder that is zero on the sample", middle=middle,
            upper=times * example.bound(homogeneous=corrected), evidence="exact", corrected=corrected,
            details={"n": example.n, "c": example.factor, "empirical HSIC": 0.0, "G_n": example.complexity})
        for name, corrected in zip(names, (False, True), strict=True)
    ]  # fmt: skip


@check("Corollary 5.2", "Corollary G.3")
def learned_by_scaling() -> list[Certificate]:
    """Break Corollary 5.2, and Corollary G.3, which is the same, with kernels c·k, and check the corrected bound."""
    example = ScaledExample()
    claim = "population HSIC is at most empirical HSIC plus the bound"
    return _printed_and_corrected(claim, example, middle=example.learned, times=1)


@check("Remark G.4")
def bridge_by_scaling() -> list[Certificate]:
    """Break Remark G.4 with kernels c·k, and check the corrected bound.

    The test sample has new points, so that Z = S there. For a binary S the centered Gram matrix has one positive
    eigenvalue. The head f = k(3, ·) − k(0, ·) attains Cauchy-Schwarz, hence its projected gap times λ̂₁/‖f‖² equals the
    test HSIC, c²(π₀π₁)²(2 − 2a)², which ``left`` bounds from below.
    """
    example = ScaledExample(factor=1e7)
    claim = "the projected test gap is at most the spectral factor times training HSIC plus twice the bound"
    return _printed_and_corrected(claim, example, middle=example.left, times=2)


@check("Proposition G.2")
def laplacian_feature_map() -> list[Certificate]:
    """Check the Lipschitz assumption for a Laplacian kernel, where ‖φ(x) − φ(y)‖² = 2 − 2·exp(−|x − y|)."""
    near, far = 1e-12, 1e-2
    steep, flat = (math.sqrt(-2.0 * math.expm1(-t)) / t for t in (near, far))
    exponent = 1.0 + math.log(steep / flat) / math.log(near / far)
    return [
        inequality(
            "text: the kernels have Lipschitz feature maps; Laplacian kernel of the ablation, steepness near and far",
            middle=steep, upper=flat, evidence="exact", details={"distances": [near, far]}),
        inequality("the feature map of a Laplacian kernel is Hölder continuous with exponent 1/2",
                   middle=abs(exponent - 0.5), upper=1e-3, evidence="exact", corrected=True,
                   details={"exponent": exponent}),
    ]  # fmt: skip


# E√Q = π^(−1/2) ∫ (1 − E exp(−e^{2y}Q)) e^{−y} dy. The integrand decays like e^{−|y|} and is analytic for |Im y| < π/4,
# so the trapezoidal rule with step h is right to about exp(−π²/2h).
STEP, REACH = 0.1, 40.0


def linear_complexity(x: ArrayLike, *, radius: float, dimension: int) -> Tensor:
    """Return the Gaussian complexity Ĝ_n of {x ↦ Wx : ‖W‖_F ≤ R, W of ``dimension`` rows}, to about 14 digits.

    O(n·d² + d³) time for inputs in R^d; the number of rows of W costs nothing.

    Parameters
    ----------
    x : array_like
        Inputs, ``(..., n, d)``.
    radius : float
        R.
    dimension : int
        d_Z, the dimension of the representation.

    Returns
    -------
    Tensor
        Batch shape.

    Examples
    --------
    >>> round(linear_complexity([[1.0]], radius=1.0, dimension=1).item() ** 2 * math.pi, 10)  # E|ξ| = √(2/π)
    2.0
    """
    x = as_sample(x, name="x").to(torch.float64)
    values = torch.linalg.svdvals(x).square()
    total = values.sum(-1, keepdim=True).clamp_min(torch.finfo(x.dtype).tiny)
    y = torch.arange(-REACH, REACH + STEP / 2, STEP, dtype=x.dtype, device=x.device)
    logs = torch.log1p(2.0 * torch.exp(2.0 * y) * (values / total).unsqueeze(-1)).sum(-2)
    mean_root = (-torch.expm1(-0.5 * dimension * logs) * torch.exp(-y)).sum(-1) * (STEP / math.sqrt(math.pi))
    return radius * total.squeeze(-1).sqrt() * mean_root / x.shape[-2]


def linear_complexity_bound(*, radius: float, largest: float, dimension: int, n: int) -> float:
    """Return the paper's R·M·√(d_Z/n) for inputs with ‖X‖ ≤ M.

    Examples
    --------
    >>> linear_complexity_bound(radius=1.0, largest=1.0, dimension=4, n=100)
    0.2
    """
    return radius * largest * math.sqrt(dimension / n)


@check("Linear-encoder bound")
def as_printed(*, quick: bool) -> list[Certificate]:
    """Compare Ĝ_n with R·‖(1/n)Σξ_i x_iᵀ‖_F for single draws of ξ, and with its mean."""
    n, d, dimension, radius = 50, 3, 2, 1.5
    draws = 4_000 if quick else 40_000
    generator = torch.Generator().manual_seed(11)
    x = torch.rand(n, d, generator=generator, dtype=torch.float64)
    noise = torch.randn(draws, dimension, n, generator=generator, dtype=torch.float64)
    norms = radius * torch.linalg.matrix_norm(noise @ x / n)
    exact = linear_complexity(x, radius=radius, dimension=dimension).item()
    below = int((norms < exact).sum())
    low, high = stats.binomtest(below, draws).proportion_ci(0.999)
    radius_of_mean = 4.0 * norms.std().item() / math.sqrt(draws)
    return [
        inequality(
            "text: the complexity is at most the norm without its expectation; share of draws that break it is zero",
            middle=low, upper=0.0, evidence="statistical",
            details={"share": below / draws, "interval": [low, high], "draws": draws}),
        inequality("the complexity equals the expectation of the norm (exact value against the mean of draws)",
                   middle=abs(norms.mean().item() - exact), upper=radius_of_mean, evidence="statistical",
                   corrected=True, details={"exact": exact, "mean of draws": norms.mean().item(), "draws": draws}),
    ]  # fmt: skip


def random_inputs(count: int, *, random_state: RandomState) -> list[tuple[Tensor, int]]:
    """Draw batches of bounded inputs with a dimension d_Z each: on a sphere, in a ball, one direction, mostly zero."""
    generator, batches = as_generator(random_state), []
    settings = [(n, d, dimension) for n in (1, 2, 10, 40) for d in (1, 3, 8) for dimension in (1, 2, 50)]
    for index, (n, d, dimension) in enumerate(settings):
        share = count // len(settings) + (index < count % len(settings))
        x = torch.randn(share, n, d, generator=generator, dtype=torch.float64)
        sphere = x / torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        radii = torch.rand(share, n, 1, generator=generator, dtype=torch.float64)
        rare = sphere * (radii < 0.1) + 1e-3 * sphere
        options = torch.stack([sphere, sphere * radii, sphere[:, :1].expand_as(sphere), rare])
        kind = torch.randint(4, (share,), generator=generator)
        batches.append((options[kind, torch.arange(share)], dimension))
    return batches


def excesses(x: Tensor, dimension: int) -> dict[str, Tensor]:
    """Return how far each inequality is from holding at R = 1, relative to its right side; positive means violated."""
    n, lengths = x.shape[-2], torch.linalg.vector_norm(x, dim=-1)
    exact = linear_complexity(x, radius=1.0, dimension=dimension)
    printed = lengths.amax(-1) * math.sqrt(dimension / n)
    middle = math.sqrt(dimension) * torch.linalg.vector_norm(lengths, dim=-1) / n  # Jensen's bound on the complexity
    return {
        "the complexity is at most R times M times the root of d_Z over n": exact / printed - 1.0,
        "the complexity is at most its root mean square": exact / middle - 1.0,
        "the complexity is at least 0.797 of its root mean square": math.sqrt(2.0 / math.pi) * middle / exact - 1.0,
    }


@check("Linear-encoder bound")
def search(*, quick: bool) -> list[Certificate]:
    """Search random inputs for a violation of the printed bound and of the two-sided one."""
    count = 1_200 if quick else 10_000
    found = [excesses(x, dimension) for x, dimension in random_inputs(count, random_state=12)]
    # The maximum of a tensor keeps a NaN; Python's `max` would drop it.
    worst = {name: torch.cat([excess[name] for excess in found]).max().item() for name in found[0]}
    return [
        inequality(name, middle=value, upper=0.0, tolerance=1e-12, evidence="deterministic", corrected=index > 0,
                   assumptions=("inputs bounded by M",), details={"instances": count})
        for index, (name, value) in enumerate(worst.items())
    ]  # fmt: skip
