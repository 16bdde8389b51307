"""How often the uniform bounds of section 5 and appendix G hold: coverage with exact binomial intervals.

The supremum of |HSIC_n(h) − HSIC(h)| over a class of encoders is bracketed, not sampled. On inputs with finitely many
values both HSICs are linear in the Gram matrix of the encoded values, so

    HSIC_n(h) − HSIC(h) = Σ_ij k(h(x_i), h(x_j))·M_ij,    M = A(counts/n) − A(probabilities),

and M does not depend on h. A grid over the parameters and a Lipschitz constant then bracket the supremum rigorously, at
a cost that does not depend on n. For any class whatsoever ½Σ|M_ij| bounds it from above, since 0 ≤ k ≤ 1 and ΣM_ij = 0.
Coverage is counted with the upper side, and at sample sizes where B_n is below the trivial bound 1/4: above it,
coverage could not fail. The bounds are far from tight, so each certificate also gives the fraction of B_n at which
coverage would fall below 1 − δ. A proof, not coverage, shows that the bound holds; its steps are checked here too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from scipy import stats
from torch import Tensor

from frhsic_core.arrays import RandomState, as_generator
from frhsic_core.joint.contraction import center, contraction_weights
from frhsic_core.kernels import Gaussian
from frhsic_core.paper.statements import Certificate, check, equality, inequality
from frhsic_core.paper.statements.concentration import (
    Constants,
    informative_size,
    linear_complexity,
    proved_bound,
    root_slack,
    trivial_bound,
    uniform_bound,
)
from frhsic_core.paper.statements.rates import CONFIDENCE, loglog_slope, slope_certificate


@dataclass(frozen=True)
class FiniteInputs:
    """A law of (X, S) on finitely many points.

    Attributes
    ----------
    x, s, probabilities : Tensor
        ``(N, d)``, ``(N, 1)``, ``(N,)``.
    kernel_z, kernel_s : Gaussian
        Unit kernels, with one bandwidth each.
    """

    x: Tensor
    s: Tensor
    probabilities: Tensor
    kernel_z: Gaussian
    kernel_s: Gaussian

    @property
    def constants(self) -> Constants:
        """ν and ℓ of the kernels."""
        return Constants.of(self.kernel_z, self.kernel_s)

    @cached_property
    def gram_s(self) -> Tensor:
        """Gram matrix on the points of S, ``(N, N)``."""
        return self.kernel_s(self.s)

    @cached_property
    def population(self) -> Tensor:
        """A with HSIC(h) = Σ k(h(x_i), h(x_j))·A_ij, ``(N, N)``."""
        return contraction_weights(self.gram_s, weights=self.probabilities)

    def draw(self, n: int, draws: int, *, random_state: RandomState) -> Tensor:
        """Return the relative frequencies of ``draws`` samples of size n, ``(draws, N)``; O(N·draws), whatever n is."""
        seed = int(torch.randint(2**62, (), generator=as_generator(random_state)))
        probabilities = self.probabilities.numpy()
        counts = np.random.default_rng(seed).multinomial(n, probabilities / probabilities.sum(), size=draws)
        return torch.as_tensor(counts, dtype=self.x.dtype) / n

    def empirical(self, frequencies: Tensor) -> Tensor:
        """Return A of each sample, ``(draws, N, N)``."""
        return contraction_weights(self.gram_s, weights=frequencies)

    def contrast(self, frequencies: Tensor) -> Tensor:
        """Return M = A(frequencies) − A(probabilities), ``(draws, N, N)``."""
        return self.empirical(frequencies) - self.population

    def encoded_gram(self, weights: Tensor) -> Tensor:
        """Return the Gram matrices of h_w(x) = w·x for each row of ``weights`` ``(G, d)``, shape ``(G, N, N)``."""
        return self.kernel_z((self.x @ weights.T).T.unsqueeze(-1))


@dataclass(frozen=True)
class Supremum:
    """A bracket of the supremum for each draw: ``lower`` is reached by an encoder of the class, ``upper`` by none."""

    lower: Tensor
    upper: Tensor


def two_column_inputs(*, columns: int = 2, points: int = 5, bandwidth: float = 0.5) -> FiniteInputs:
    """Return X uniform on a grid in [−1, 1]^columns (1 or 2) and S = X₁ + X_last²/2 ± 1/4 with a fair sign.

    Examples
    --------
    >>> law = two_column_inputs()
    >>> tuple(law.x.shape), round(law.probabilities.sum().item(), 12)
    ((50, 2), 1.0)
    """
    axis = torch.linspace(-1.0, 1.0, points, dtype=torch.float64)
    x = torch.cartesian_prod(*[axis] * columns).reshape(-1, columns)
    signal = x[:, 0] + 0.5 * x[:, -1].square()
    s = torch.stack([signal - 0.25, signal + 0.25], -1).reshape(-1, 1)
    x = x.repeat_interleave(2, 0)
    probabilities = torch.full((len(x),), 1.0 / len(x), dtype=torch.float64)
    return FiniteInputs(x, s, probabilities, Gaussian(bandwidth), Gaussian(bandwidth))


def parameter_grid(columns: int, *, radius: float, step: float) -> tuple[Tensor, float]:
    """Return points w, and how far the farthest w with |w| ≤ radius is from one of them.

    w and −w encode alike, so half of the ball will do. Points just outside it take part in the upper side alone.
    """
    axis = torch.arange(0.0, radius + step, step, dtype=torch.float64)
    if columns == 1:
        return axis.unsqueeze(-1), 0.5 * step
    if columns == 2:
        both = torch.cat([-axis.flip(0)[:-1], axis])
        lattice = torch.cartesian_prod(both, axis)
        reach = step / math.sqrt(2.0)
        return lattice[torch.linalg.vector_norm(lattice, dim=-1) <= radius + reach], reach
    raise ValueError(f"The encoder has {columns} parameters but the grid takes one or two.")


def linear_class(law: FiniteInputs, frequencies: Tensor, *, radius: float, step: float) -> Supremum:
    """Bracket sup |HSIC_n − HSIC| over h_w(x) = w·x, |w| ≤ radius, for each draw; O(G·N²·draws).

    k is Lipschitz in the distance of its arguments with constant c = e^(−1/2)/σ, and moving w by ε moves that distance
    by at most ε·|x_i − x_j|. So the difference of the two HSICs is Lipschitz in w with constant c·Σ|M_ij|·|x_i − x_j|.
    """
    grid, reach = parameter_grid(law.x.shape[-1], radius=radius, step=step)
    contrast = law.contrast(frequencies)
    values = (law.encoded_gram(grid).flatten(1) @ contrast.flatten(1).T).abs()
    inside = torch.linalg.vector_norm(grid, dim=-1) <= radius * (1.0 + 1e-12)
    slope = math.exp(-0.5) / law.kernel_z.bandwidth * (contrast.abs() * torch.cdist(law.x, law.x)).sum((-2, -1))
    return Supremum(values[inside].amax(0), values.amax(0) + slope * reach)


def any_class(law: FiniteInputs, frequencies: Tensor) -> Tensor:
    """Return ½Σ|M_ij|, which no encoder into any space exceeds under a kernel with values in [0, 1]."""
    return 0.5 * law.contrast(frequencies).abs().sum((-2, -1))


DELTA, RADIUS = 0.05, 2.0
ASSUMPTIONS = ("bounded X", "independent rows", "fixed unit kernels")


def class_complexity(law: FiniteInputs, frequencies: Tensor, *, n: int, radius: float = RADIUS) -> float:
    """Return G_n of {x ↦ w·x : |w| ≤ radius}: exact given each sample, averaged over the samples."""
    # √frequency·x has the Gram matrix of the sample divided by n, whatever the order of its rows.
    rows = frequencies.sqrt().unsqueeze(-1) * law.x
    return linear_complexity(rows, radius=radius, dimension=1).mean().item() * rows.shape[-2] / math.sqrt(n)


def _coverage(
    claim: str, gaps: Tensor, bound: float, *, delta: float = DELTA, corrected: bool = False, **details: Any
) -> Certificate:
    """Certify that ``gaps ≤ bound`` with probability at least 1 − delta, by the lower end of an exact 95 % interval."""
    if bound >= trivial_bound():
        raise ValueError(
            f"The bound is {bound:.3g}: at {trivial_bound()} or more, coverage cannot fail. Use more rows."
        )
    hits = int((gaps <= bound).sum())
    low, high = stats.binomtest(hits, len(gaps)).proportion_ci()
    quantile = torch.quantile(gaps, 1.0 - delta).item()
    return inequality(claim, middle=1.0 - delta, upper=low, evidence="statistical", corrected=corrected,
                      assumptions=ASSUMPTIONS,
                      details={"coverage": hits / len(gaps),
                       "interval": [low, high],
                       "draws": len(gaps),
                       "bound": bound,
                       "quantile of the supremum": quantile,
                       "fraction of the bound at which coverage breaks": quantile / bound,
                       "trivial bound": trivial_bound(),
                       **details})  # fmt: skip


@check("Theorem 5.1")
def linear_encoders(*, quick: bool) -> list[Certificate]:
    """Check Theorem 5.1 for one- and two-parameter linear encoders; the supremum is rigorous."""
    generator = torch.Generator().manual_seed(51)
    certificates = []
    for columns, points, step in ((1, 11, 0.005), (2, 5, 0.05 if quick else 0.02)):
        law = two_column_inputs(columns=columns, points=points)
        for name, bound, n, corrected in (
            ("the printed bound", uniform_bound, 4_000_000, False),
            ("the proved bound", proved_bound, 1_000_000, True),
        ):
            frequencies = law.draw(n, 100 if quick else 200, random_state=generator)
            found = linear_class(law, frequencies, radius=RADIUS, step=step)
            complexity = class_complexity(law, frequencies, n=n)
            first = informative_size(
                complexity_root_n=complexity * math.sqrt(n), delta=DELTA, constants=law.constants, bound=bound
            )
            certificates.append(
                _coverage(
                    f"coverage of {name}, linear encoders with {columns} parameter(s), supremum rigorous", found.upper,
                    bound(n, complexity=complexity, delta=DELTA, constants=law.constants), corrected=corrected, n=n,
                    complexity=complexity, **{"largest supremum, reached by an encoder": found.lower.max().item(),
                    "first n at which the bound beats the trivial one": first})
            )  # fmt: skip
    return certificates


def moved_covariance(gram_z: Tensor, gram_s: Tensor) -> Tensor:
    """Return n·‖Ĉ − Ĉ'‖, where the last of n + 1 rows takes the place of the first, from Gram matrices of all rows.

    The matrix D of coefficients of φ_a ⊗ ψ_b in Ĉ − Ĉ' gives ‖Ĉ − Ĉ'‖² = tr(D K D L). O(n³) for each of the batch.
    """
    n = gram_z.shape[-1] - 1
    before, after = (torch.ones(n + 1, dtype=gram_z.dtype) for _ in range(2))
    before[-1] = after[0] = 0.0
    old, new = (torch.diag(kept) - torch.outer(kept, kept) / n for kept in (before, after))
    d = old - new
    return ((d @ gram_z @ d) * gram_s).sum((-2, -1)).clamp_min(0.0).sqrt()


def moved_hsic(gram_z: Tensor, gram_s: Tensor) -> Tensor:
    """Return n·|HSIC_n − HSIC_n'|, where the last of n + 1 rows takes the place of the first."""
    n = gram_z.shape[-1] - 1
    old, new = (
        (center(gram_z[..., kept, kept]) * gram_s[..., kept, kept]).sum((-2, -1))
        for kept in (slice(0, n), slice(1, n + 1))
    )
    return (old - new).abs() / n


def _rows(count: int, n: int, generator: torch.Generator, *, signed: bool) -> tuple[Tensor, Tensor]:
    """Draw Gram matrices of n + 1 rows: features in a few directions of the orthant, or of the sphere if ``signed``."""
    grams = []
    for _ in range(2):
        features = torch.randn(count, n + 1, 3, generator=generator, dtype=torch.float64)
        features = features if signed else features.abs() ** 4  # most of the length along one axis
        features = features / torch.linalg.vector_norm(features, dim=-1, keepdim=True)
        features[:, 1:-1] = torch.where(
            torch.rand(count, 1, 1, generator=generator) < 0.8, features[:, 1:2], features[:, 1:-1]
        )  # in most samples the other rows agree, which makes the change largest
        grams.append(features @ features.mT)
    return grams[0], grams[1]


@check("Theorem 5.1")
def bounded_difference(*, quick: bool) -> list[Certificate]:
    """Check the first step of the proof, the exact bounded difference, on random rows and at its extreme case."""
    generator = torch.Generator().manual_seed(58)
    count = 500 if quick else 4000
    worst: dict[str, float] = {"covariance": 0.0, "HSIC": 0.0, "signed": 0.0}
    for n in (2, 3, 5, 10, 40):
        grams = _rows(count, n, generator, signed=False)
        signed = _rows(count, n, generator, signed=True)
        found = {
            "covariance": moved_covariance(*grams),
            "HSIC": moved_hsic(*grams),
            "signed": moved_covariance(*signed),
        }
        worst = {name: max(worst[name], values.max().item()) for name, values in found.items()}
    # Three values of Z and of S: all other rows have the first, row i moves from the second to the third.
    n = 400
    value = torch.ones(n + 1, dtype=torch.long)
    value[0], value[-1] = 0, 2
    extreme = torch.eye(3, dtype=torch.float64)[value][:, value]
    reached = moved_covariance(extreme, extreme).item()
    return [
        inequality("step of the proof: one row moves n times the covariance by at most root 6, kernels in [0, 1]",
                   middle=worst["covariance"], upper=math.sqrt(6.0), evidence="deterministic", corrected=True,
                   details={"instances": 5 * count}),
        equality("root 6 cannot be smaller: three values reach the share 1 - 1/n of it",
                 left=reached, right=math.sqrt(6.0) * (1.0 - 1.0 / n), evidence="exact", corrected=True,
                 details={"n": n}),
        inequality("step of the proof: one row moves n times the covariance by at most root 24, signed kernels",
                   middle=worst["signed"], upper=math.sqrt(24.0), evidence="deterministic", corrected=True,
                   details={"instances": 5 * count}),
        inequality("step of the proof: one row moves n times HSIC_n by at most root 6, kernels in [0, 1]",
                   middle=worst["HSIC"], upper=math.sqrt(6.0), evidence="deterministic", corrected=True,
                   details={"instances": 5 * count}),
    ]  # fmt: skip


@check("Theorem 5.1")
def bias_step(*, quick: bool) -> list[Certificate]:
    """Check the third step of the proof: the bias of HSIC_n, on drawn samples."""
    law, n, draws = two_column_inputs(columns=1, points=11), 20, 20_000 if quick else 160_000
    gram = law.encoded_gram(torch.ones(1, 1, dtype=torch.float64))[0]
    population = (gram * law.population).sum().item()
    frequencies = law.draw(n, draws, random_state=58)
    drawn = torch.cat([(gram * law.empirical(part)).sum((-2, -1)) for part in frequencies.split(2000)])
    bias = n * (drawn.mean().item() - population)
    error = 4.0 * n * drawn.std().item() / math.sqrt(draws)
    return [
        inequality("step of the proof: n times the bias of HSIC_n lies between -1/2 and 2, kernels in [0, 1]",
                   lower=-0.5 + error, middle=bias, upper=2.0 - error, evidence="statistical", corrected=True,
                   details={"n": n, "draws": draws, "HSIC": population})
    ]  # fmt: skip


def all_tables(n: int) -> np.ndarray:
    """Return every 2 × 2 table of counts that sum to n, ``(tables, 4)``, in the order a, b, c, d.

    Examples
    --------
    >>> len(all_tables(3))
    20
    """
    grid = np.stack(np.meshgrid(*[np.arange(n + 1)] * 3, indexing="ij"), -1).reshape(-1, 3)
    kept = grid[grid.sum(1) <= n]
    return np.column_stack([kept, n - kept.sum(1)])


def root_hsic(table: np.ndarray) -> np.ndarray:
    """Return √HSIC = 2|ad − bc| of 2 × 2 tables of shares, for kernels 1[x = y]."""
    a, b, c, d = np.moveaxis(table, -1, 0)
    return 2.0 * np.abs(a * d - b * c)


# Shares of Z = 0 and 1 for S = 0, then for S = 1: independent, dependent, and Z = S a fair coin.
TABLES = ((0.25, 0.25, 0.25, 0.25), (0.06, 0.14, 0.24, 0.56), (0.3, 0.2, 0.1, 0.4), (0.5, 0.0, 0.0, 0.5))


@check("Corollary 5.2")
def root_certificate(*, quick: bool) -> list[Certificate]:
    """Check the bound for the root of HSIC on 2 × 2 laws, with all samples: its two steps, and how often it fails."""
    shares, failures, breaks = [], [], []
    n = 60 if quick else 100
    counts = all_tables(n)
    estimates = n / (n - 1) * root_hsic(counts / n)
    for law in TABLES:
        weight = stats.multinomial(n, law).pmf(counts)
        truth = float(root_hsic(np.asarray(law)))
        shares.append((truth, float(weight @ estimates)))
        failures.append(float(weight @ (estimates + root_slack(n, delta=DELTA) < truth)))
        order = np.argsort(estimates)
        quantile = estimates[order][np.searchsorted(np.cumsum(weight[order]), DELTA)]
        breaks.append((truth - quantile) / root_slack(n, delta=DELTA))
    truth, mean = max(shares, key=lambda pair: pair[0] - pair[1])
    return [
        inequality("step to the root bound: n/(n-1) times the root of HSIC_n is on average at least the root of HSIC",
                   middle=truth, upper=mean, evidence="exact", corrected=True, details={"laws": len(TABLES)}),
        equality("the factor n/(n-1) cannot be smaller: for a fair coin Z = S the mean is the root of HSIC",
                 left=shares[-1][1], right=0.5, evidence="exact", corrected=True),
        inequality("the root of HSIC exceeds its bound with probability at most delta, all samples of 2 x 2 laws",
                   middle=max(failures), upper=DELTA, evidence="exact", corrected=True,
                   details={"delta": DELTA, "fraction of the slack at which it breaks": max(breaks)}),
    ]  # fmt: skip


@check("Theorem 5.1")
def one_encoder(*, quick: bool) -> list[Certificate]:
    """Check the proved bound for a single encoder, at the size from which it says something."""
    law = two_column_inputs(columns=1, points=11)
    n = informative_size(complexity_root_n=0.0, delta=DELTA, bound=proved_bound)
    frequencies = law.draw(n, 1000 if quick else 4000, random_state=59)
    gram = law.encoded_gram(torch.ones(1, 1, dtype=torch.float64))[0]
    gaps = (gram * law.contrast(frequencies)).sum((-2, -1)).abs()
    bound = proved_bound(n, complexity=0.0, delta=DELTA)
    return [_coverage("coverage of the proved bound, one encoder", gaps, bound, corrected=True, n=n)]


@check("Theorem 5.1", "Proposition G.2")
def any_encoders(*, quick: bool) -> list[Certificate]:
    """Check Theorem 5.1, and Proposition G.2, which is the same, for every encoder at once on few inputs."""
    law, n = two_column_inputs(columns=2, points=5), 20_000
    gaps = any_class(law, law.draw(n, 100 if quick else 400, random_state=54))
    # G_n ≥ 0 for every class that holds a fixed encoder, so B_n is at least its first two terms.
    bound = uniform_bound(n, complexity=0.0, delta=DELTA, constants=law.constants)
    claim = "coverage, any encoders at all on finitely many inputs, unit kernels, complexity left out"
    return [_coverage(claim, gaps, bound, n=n)]


def learned_encoder(law: FiniteInputs, frequencies: Tensor, *, choose: str, step: float) -> tuple[Tensor, Tensor]:
    """Return (HSIC_n, HSIC) of an encoder w·x chosen from each sample, ``(draws,)`` each.

    ``choose="objective"`` minimises a squared loss plus HSIC_n, as training would; ``"worst"`` takes the encoder whose
    population dependence is most above its empirical one, and ``"worst root"`` compares the roots.
    """
    grid, _ = parameter_grid(law.x.shape[-1], radius=RADIUS, step=step)
    grid = grid[torch.linalg.vector_norm(grid, dim=-1) <= RADIUS]
    gram = law.encoded_gram(grid).flatten(1)
    empirical = law.empirical(frequencies).flatten(1) @ gram.T
    population = (gram @ law.population.flatten()).expand_as(empirical)
    if choose == "worst":
        index = (population - empirical).argmax(1, keepdim=True)
    elif choose == "worst root":
        index = (population.clamp_min(0.0).sqrt() - empirical.clamp_min(0.0).sqrt()).argmax(1, keepdim=True)
    elif choose == "objective":
        target = law.x.sum(-1)
        loss = frequencies @ (law.x @ grid.T - target.unsqueeze(-1)).square()
        index = (loss + 10.0 * empirical).argmin(1, keepdim=True)
    else:
        raise ValueError(f"choose is {choose!r}: pass 'objective', 'worst' or 'worst root'.")
    chosen = (values.gather(1, index).squeeze(1).clamp_min(0.0) for values in (empirical, population))
    return next(chosen), next(chosen)


@check("Corollary 5.2", "Corollary G.3")
def learned_encoders(*, quick: bool) -> list[Certificate]:
    """Compare population and empirical HSIC of an encoder that was chosen from the sample."""
    law, n = two_column_inputs(columns=2, points=5), 4_000_000
    frequencies = law.draw(n, 100 if quick else 200, random_state=56)
    complexity = class_complexity(law, frequencies, n=n)
    bound = uniform_bound(n, complexity=complexity, delta=DELTA, constants=law.constants)
    certificates = []
    for choose, what in (("objective", "the penalised objective"), ("worst", "an adversary who knows the law")):
        empirical, population = learned_encoder(law, frequencies, choose=choose, step=0.1)
        claim = f"population HSIC is at most empirical HSIC plus the bound, encoder chosen by {what}"
        certificates.append(_coverage(claim, population - empirical, bound, n=n))
    n = 20_000
    frequencies = law.draw(n, 100 if quick else 200, random_state=57)
    empirical, population = learned_encoder(law, frequencies, choose="worst root", step=0.1)
    gaps = population.sqrt() - n / (n - 1) * empirical.sqrt()
    slack = root_slack(n, delta=DELTA, parameters=2, reach=RADIUS * math.sqrt(2.0) * float(law.constants.lipschitz_z))
    claim = "the root bound for all linear encoders at once, encoder chosen by an adversary who knows the law"
    certificates.append(_coverage(claim, gaps, slack, corrected=True, n=n))
    return certificates


@check("Corollary 5.3")
def root_n() -> list[Certificate]:
    """Check Corollary 5.3: the slope of the mean supremum against n, with its interval."""
    generator = torch.Generator().manual_seed(53)
    law = two_column_inputs(columns=1, points=11)
    sizes = torch.tensor([1e3, 1e4, 1e5, 1e6])
    draws = 4000
    suprema = torch.stack(
        [
            linear_class(law, law.draw(int(n), draws, random_state=generator), radius=RADIUS, step=0.01).upper
            for n in sizes
        ]
    )
    return [
        slope_certificate(
            "the interval of the log-log slope of the supremum contains -1/2 and excludes -2/5, linear encoders with "
            "one parameter",
            loglog_slope(sizes.numpy(), suprema.numpy(), confidence=CONFIDENCE), rate=-0.5, rival=-0.4,
            evidence="statistical", assumptions=ASSUMPTIONS,
            details={"draws": draws, "mean suprema": suprema.mean(1).tolist()})
    ]  # fmt: skip


def projected_gap(head: Tensor, gram_s: Tensor, frequencies: Tensor, *, m: int) -> Tensor:
    """Return λ̂_m·‖P_mδ_f‖²/n of samples that are given by their frequencies on finitely many points.

    A sample in which the point i occurs n·q_i times has the eigenvalues of √q_i·L̃_ij·√q_j, with L̃ centered by q.
    ``head`` has the values of f on the points, ``(b, N)``; ``frequencies`` is q, ``(b, N)``.
    """
    root = frequencies.sqrt()
    row = (frequencies.unsqueeze(-2) @ gram_s).squeeze(-2)
    centered = gram_s - row.unsqueeze(-1) - row.unsqueeze(-2) + (frequencies * row).sum(-1)[:, None, None]
    values, vectors = torch.linalg.eigh(root.unsqueeze(-1) * centered * root.unsqueeze(-2))
    gap = head - (frequencies * head).sum(-1, keepdim=True)
    along = torch.einsum("bn,bnl->bl", root * gap, vectors.flip(-1)[..., :m])
    return values.flip(-1)[:, m - 1] * along.square().sum(-1)


@check("Remark G.4")
def train_to_test(*, quick: bool) -> list[Certificate]:
    """Check Remark G.4: the projected gap on a test sample, from training HSIC and twice the bound."""
    generator = torch.Generator().manual_seed(55)
    law, n, m = two_column_inputs(columns=2, points=5), 40_000_000, 2
    draws = 100 if quick else 200
    train = law.draw(n, draws, random_state=generator)
    complexity = class_complexity(law, train, n=n)
    penalty = uniform_bound(n, complexity=complexity, delta=DELTA, constants=law.constants)
    grid, _ = parameter_grid(2, radius=RADIUS, step=0.25)
    grid = grid[torch.linalg.vector_norm(grid, dim=-1) <= RADIUS]
    index = (law.empirical(train).flatten(1) @ law.encoded_gram(grid).flatten(1).T - grid.norm(dim=-1)).argmin(1)
    test = law.draw(n, draws, random_state=generator)
    gram = law.encoded_gram(grid)[index]
    trained = (law.empirical(train) * gram).sum((-2, -1))
    tested = (law.empirical(test) * gram).sum((-2, -1))
    encoded = torch.einsum("nd,bd->bn", law.x, grid[index]).unsqueeze(-1)
    head = law.kernel_z(encoded, torch.zeros(draws, 1, 1, dtype=torch.float64)).squeeze(-1)  # f = k(0, ·), of norm one
    scaled = projected_gap(head, law.gram_s, test, m=m)
    return [
        _coverage(claim, gaps, 2.0 * penalty, delta=2.0 * DELTA, n=n, m=m)
        for claim, gaps in (
            ("test HSIC is at most training HSIC plus twice the bound", tested - trained),
            ("the projected test gap is at most the spectral factor times training HSIC plus twice the bound",
             scaled - trained),
        )
    ]  # fmt: skip
