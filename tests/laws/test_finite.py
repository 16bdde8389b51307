"""Finite laws against brute-force sums, exact Fractions, and other ways to the same supremum."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.stats import wasserstein_distance

from frhsic_core.kernels import Gaussian, Laplacian
from frhsic_core.laws import FiniteLaw, GaussianPair
from frhsic_core.laws._finite import wasserstein
from frhsic_core.laws._quadrature import normal_expectation

KERNEL_Z, KERNEL_S = Gaussian(0.8), Gaussian(1.2)
THIRD = Fraction(1, 3)


def random_law(seed: int, nz: int = 4, ns: int = 3, d: int = 2, exact: bool = False) -> FiniteLaw:
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 1000, (nz, ns))
    table = counts / counts.sum()
    if exact:
        table = [[Fraction(int(count), int(counts.sum())) for count in row] for row in counts]
    return FiniteLaw(rng.normal(size=(nz, d)), rng.normal(size=ns), table)


def test_a_drawn_law_depends_on_the_seed_alone_and_its_cells_are_exponential() -> None:
    drawn, again = (FiniteLaw.random(200, 100, random_state=3) for _ in range(2))
    np.testing.assert_array_equal(drawn.probabilities, again.probabilities)
    assert drawn.z_points.shape == (200, 1)
    assert abs(drawn.s_points.mean().item()) < 0.5
    cells = 20_000 * drawn.probabilities.ravel()  # exponential with mean one, so P(cell > 1) = 1/e
    assert abs((cells > 1).mean() - math.exp(-1)) < 5 * math.sqrt(0.25 / 20_000)


def brute_force_hsic(p: np.ndarray, k: np.ndarray, l: np.ndarray) -> object:
    """Three expectations over independent copies, written as they are defined."""
    cells = list(np.ndindex(*p.shape))
    pz, ps = p.sum(1), p.sum(0)
    joint = sum(p[a] * p[b] * k[a[0], b[0]] * l[a[1], b[1]] for a in cells for b in cells)
    half = sum(
        p[a] * pz[i] * ps[t] * k[a[0], i] * l[a[1], t]
        for a in cells
        for i in range(len(pz))
        for t in range(len(ps))
    )
    mean_k = sum(pz[i] * pz[j] * k[i, j] for i in range(len(pz)) for j in range(len(pz)))
    mean_l = sum(ps[i] * ps[j] * l[i, j] for i in range(len(ps)) for j in range(len(ps)))
    return joint - 2 * half + mean_k * mean_l


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_hsic_is_the_brute_force_sum(seed: int) -> None:
    law = random_law(seed)
    k, l = law.gram_z(KERNEL_Z), law.gram_s(KERNEL_S)
    assert law.hsic(KERNEL_Z, KERNEL_S) == pytest.approx(
        brute_force_hsic(law.probabilities, k, l), rel=1e-11
    )
    assert law.hsic(k, l) == law.hsic(KERNEL_Z, KERNEL_S)
    assert 0.0 < law.coco(k, l) <= math.sqrt(law.hsic(k, l))


def test_fractions_stay_exact() -> None:
    law = random_law(5, exact=True)
    k = [[3, 1, 0, 0], [1, 2, 1, 0], [0, 1, 2, Fraction(1, 2)], [0, 0, Fraction(1, 2), 1]]
    l = [[2, 1, 0], [1, 2, 1], [0, 1, 2]]
    as_fractions = [
        np.array([[Fraction(x) for x in row] for row in gram], dtype=object) for gram in (k, l)
    ]
    value = law.hsic(k, l)
    assert isinstance(value, Fraction)
    assert value == brute_force_hsic(law.probabilities, *as_fractions)
    assert isinstance(law.hsic(k, KERNEL_S), float)
    square = law.expected_squared_mmd(k)
    assert isinstance(square, Fraction)
    by_hand = Fraction(0)
    for t in range(3):
        row = [law.probabilities[i, t] / law.p_s[t] - law.p_z[i] for i in range(4)]
        gram = as_fractions[0]
        by_hand += law.p_s[t] * sum(
            row[i] * row[j] * gram[i, j] for i in range(4) for j in range(4)
        )
    assert square == by_hand
    head = [1, 0, Fraction(1, 2), -1]
    gap = [sum(head[i] * law.delta[i, t] for i in range(4)) for t in range(3)]
    assert law.gdp(head) == sum(abs(g) * q for g, q in zip(gap, law.p_s, strict=True))
    assert (
        law.total_variation() == (abs(law.delta).sum(0) / 2) @ law.p_s
    )  # decomposable: Corollary 3.4
    assert isinstance(law.total_variation(), Fraction)
    assert sum(law.p_z) == sum(law.p_s) == 1
    assert (law.conditional.sum(0) == 1).all()
    assert isinstance(law.gdp(torch.tensor([1, 0, 0, 2])), Fraction)
    assert isinstance(law.gdp(torch.ones(4, requires_grad=True)), float)


def test_floats_and_fractions_agree() -> None:
    exact = random_law(6, exact=True)
    rounded = FiniteLaw(exact.z_points, exact.s_points, exact.probabilities.astype(float))
    gram_z, gram_s = np.eye(4), np.eye(3)
    for name, arguments in {
        "hsic": (gram_z, gram_s),
        "expected_mmd": (gram_z,),
        "expected_squared_mmd": (gram_z,),
        "coco": (gram_z, gram_s),
        "total_variation": (),
        "gdp": ([1, 2, 3, 5],),
        "wasserstein": (),
        "expected_wasserstein": (),
    }.items():
        first, second = getattr(exact, name)(*arguments), getattr(rounded, name)(*arguments)
        assert float(first) == pytest.approx(second, rel=1e-9), name


@pytest.mark.parametrize("seed", [0, 3])
def test_conditional_route_is_the_brute_force_sum(seed: int) -> None:
    law = random_law(seed)
    p, k = law.probabilities, law.gram_z(KERNEL_Z)
    squared = []
    for t in range(3):
        delta = p[:, t] / p[:, t].sum() - p.sum(1)
        squared.append(delta @ k @ delta)
    np.testing.assert_allclose(law.conditional_squared_mmd(KERNEL_Z), squared, rtol=1e-11)
    assert law.expected_mmd(KERNEL_Z) == pytest.approx(p.sum(0) @ np.sqrt(squared), rel=1e-12)
    assert law.expected_squared_mmd(KERNEL_Z) == pytest.approx(p.sum(0) @ squared, rel=1e-12)


def test_suprema_are_attained() -> None:
    """Search over the extreme points of each class, or a witness that reaches the value."""
    law = random_law(7)
    difference = law.difference
    # Total variation: f in {0, 1}.
    best = max(
        float((np.reshape(f, difference.shape) * difference).sum())
        for f in itertools.product((0.0, 1.0), repeat=12)
    )
    assert law.total_variation() == pytest.approx(best, rel=1e-12)
    k, l = law.gram_z(KERNEL_Z), law.gram_s(KERNEL_S)
    # COCO: no pair of unit functions found at random beats it, and power iteration reaches it.
    a = np.ones(4)
    for _ in range(500):
        b = difference.T @ k @ a
        a = difference @ l @ b
        a /= math.sqrt(a @ k @ a)
    b = difference.T @ k @ a
    b /= math.sqrt(b @ l @ b)
    assert a @ k @ difference @ l @ b == pytest.approx(law.coco(k, l), rel=1e-9)


def test_wasserstein_against_its_dual_and_the_line() -> None:
    law = random_law(8, d=1)
    z, s = law.z_points.numpy()[:, 0], law.s_points.numpy()[:, 0]
    by_line = sum(
        q * wasserstein_distance(z, z, law.conditional[:, t], law.p_z)
        for t, q in enumerate(law.p_s)
    )
    assert law.expected_wasserstein() == pytest.approx(by_line, rel=1e-9)
    for scale in (0.1, 1.0, 1e3):
        scaled = FiniteLaw(z, scale * s, law.probabilities)
        points = list(itertools.product(z, scale * s))
        pairs = list(itertools.permutations(range(12), 2))
        rows = np.zeros((len(pairs), 12))
        for row, (i, j) in enumerate(pairs):
            rows[row, i], rows[row, j] = 1.0, -1.0
        lipschitz = [
            abs(points[i][0] - points[j][0]) + abs(points[i][1] - points[j][1]) for i, j in pairs
        ]
        bounds = [(0.0, 0.0)] + [(None, None)] * 11
        dual = linprog(-law.difference.ravel(), A_ub=rows, b_ub=lipschitz, bounds=bounds)
        assert scaled.wasserstein() == pytest.approx(-dual.fun, rel=1e-8)
    # A witness that may jump between values of S is the conditional route: the limit of a huge
    # scale on S.
    assert law.wasserstein() <= law.expected_wasserstein() + 1e-12
    assert scaled.wasserstein() == pytest.approx(law.expected_wasserstein(), rel=1e-8)
    assert wasserstein(np.zeros(3), np.ones((3, 3))) == 0.0
    tiny = wasserstein(
        np.array([1e-11, 0.0, -1e-11]), np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0)))
    )
    assert tiny == pytest.approx(2e-11, rel=1e-9)


@pytest.mark.parametrize("centered", [False, True])
def test_eigensystem(centered: bool) -> None:
    law = random_law(9, ns=4)
    system = law.mercer(KERNEL_S, centered=centered)
    psi, weight = system.eigenfunctions, law.p_s
    l = law.gram_s(KERNEL_S)
    if centered:
        mean = l @ weight
        l = l - mean[:, None] - mean + weight @ mean
    assert psi.shape == (4, 3 if centered else 4)
    np.testing.assert_allclose(psi.T * weight @ psi, np.eye(psi.shape[1]), atol=1e-12)
    np.testing.assert_allclose(l * weight @ psi, psi * system.eigenvalues, atol=1e-12)
    assert (np.diff(system.eigenvalues) < 0).all()
    coefficients = law.delta_coefficients(KERNEL_Z, KERNEL_S, centered=centered)
    hsic, total = law.hsic(KERNEL_Z, KERNEL_S), law.expected_squared_mmd(KERNEL_Z)
    assert (coefficients * system.eigenvalues).sum() == pytest.approx(hsic, rel=1e-10)
    assert coefficients.sum() == pytest.approx(total, rel=1e-10)
    if not centered:
        for m in range(5):
            tail = law.spectral_tail(KERNEL_Z, KERNEL_S, m=m)
            assert tail == pytest.approx(coefficients[m:].sum(), abs=1e-14)
        assert law.spectral_tail(KERNEL_Z, KERNEL_S, m=99) == pytest.approx(0.0, abs=1e-15)


def test_a_deficient_kernel_leaves_a_tail() -> None:
    """A constant kernel on S sees nothing: HSIC is zero, the tail keeps the whole of E[MMD²]."""
    law = random_law(10, exact=True)
    ones = [[1] * 3] * 3
    assert law.hsic(np.eye(4, dtype=int), ones) == 0
    assert len(law.mercer(ones).eigenvalues) == 1
    total = float(law.expected_squared_mmd(np.eye(4, dtype=int)))
    assert law.spectral_tail(np.eye(4), ones, m=99) == pytest.approx(total, rel=1e-12)


def test_independence_is_exactly_zero() -> None:
    product = np.multiply.outer(
        [THIRD, 2 * THIRD], [Fraction(1, 4), Fraction(1, 2), Fraction(1, 4)]
    )
    law = FiniteLaw([0, 1], [0, 1, 2], product)
    identity_z, identity_s = np.eye(2, dtype=int), np.eye(3, dtype=int)
    assert law.hsic(identity_z, identity_s) == 0
    assert law.total_variation() == 0
    assert law.gdp([1, 5]) == 0
    for value in (
        law.hsic(KERNEL_Z, KERNEL_S),
        law.expected_mmd(KERNEL_Z),
        law.wasserstein(),
        law.expected_wasserstein(),
        law.coco(KERNEL_Z, KERNEL_S),
    ):
        assert value == 0.0


def test_sample_follows_the_table(generator: torch.Generator) -> None:
    law = random_law(12, nz=3, ns=2, d=2)
    z, s = law.sample(200_000, random_state=generator)
    assert z.shape == (200_000, 2)
    assert s.shape == (200_000,)
    for i, t in np.ndindex(3, 2):
        hit = ((z == law.z_points[i]).all(-1) & (s == law.s_points[t, 0])).double()
        p = float(law.probabilities[i, t])
        assert abs(hit.mean().item() - p) < 5.0 * math.sqrt(p * (1 - p) / 200_000)
    z, s = law.sample(6, batch=(2, 3), random_state=generator, dtype=torch.float32)
    assert z.shape == (2, 3, 6, 2)
    assert s.shape == (2, 3, 6)
    assert z.dtype == s.dtype == torch.float32
    wide = FiniteLaw([0, 1], [[0.0, 1.0], [2.0, 3.0]], [[0.5, 0.0], [0.0, 0.5]])
    z, s = wide.sample(50, random_state=generator)
    assert s.shape == (50, 2)
    assert torch.equal(s[:, 0], 2 * z[:, 0])
    assert FiniteLaw([0], [[1.0]], [[1.0]]).sample(3)[1].shape == (3, 1)
    assert repr(wide) == "FiniteLaw(nz=2, ns=2, exact=False)"


@given(st.lists(st.lists(st.integers(0, 20), min_size=3, max_size=3), min_size=2, max_size=4))
def test_exact_inequalities(counts: list[list[int]]) -> None:
    """Jensen, the bound of Proposition 4.1 with ν = 1, and the equality of the two total variations, in Fractions."""
    table = np.array(counts, dtype=object) + 1  # every value of S needs some mass
    law = FiniteLaw(
        range(len(counts)),
        range(3),
        [[Fraction(int(c), int(table.sum())) for c in row] for row in table],
    )
    k, l = np.eye(len(counts), dtype=int), np.eye(3, dtype=int)
    assert law.hsic(k, l) >= 0
    assert (
        law.total_variation() == (abs(law.delta).sum(0) / 2) @ law.p_s
    )  # decomposable: Corollary 3.4
    assert law.hsic(k, l) <= law.expected_squared_mmd(k)
    assert math.sqrt(law.hsic(k, l)) <= law.expected_mmd(k) + 1e-12


@pytest.mark.parametrize(
    ("probabilities", "message"),
    [
        ([[0.5, 0.6], [0.0, 0.0]], r"probabilities sum to 1\.1"),
        ([[Fraction(1, 2), Fraction(1, 3)], [0, 0]], "probabilities sum to 5/6"),
        ([[1.5, -0.5], [0.0, 0.0]], r"probabilities has a negative entry \(-0\.5\)"),
        ([[Fraction(3, 2), Fraction(-1, 2)], [0, 0]], r"negative entry \(-1/2\)"),
        ([[1.0, 0.0], [0.0, 0.0]], "s value number 1 has probability zero: leave it out"),
        ([[math.nan, 0.5], [0.0, 0.5]], "probabilities has NaN or infinite entries"),
        ([0.5, 0.5], r"probabilities has shape \(2,\)"),
        ([[0.5, 0.5]], r"z_values has shape \(2,\) but probabilities has 1 of them"),
        ([[0.5], [0.5]], r"s_values has shape \(2,\) but probabilities has 1 of them"),
    ],
)
def test_impossible_tables(probabilities: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FiniteLaw([0, 1], [0, 1], probabilities)


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda: random_law(13).hsic(np.eye(3), np.eye(3)), ValueError, r"kernel_z has shape \(3, 3\)"),
    (lambda: random_law(13).hsic(np.eye(4), np.eye(4)), ValueError, r"kernel_s has shape \(4, 4\)"),
    (lambda: random_law(13).gdp([1.0, 2.0]), ValueError, r"head has shape \(2,\)"),
    (lambda: random_law(13).spectral_tail(KERNEL_Z, KERNEL_S, m=-1), ValueError, "m is -1"),
    (lambda: wasserstein(np.array([1.0, -1.0]), np.array([[0.0, math.inf], [math.inf, 0.0]])), ValueError,
     "distance has negative"),
    *((lambda rho=rho: GaussianPair(rho), ValueError, "rho is") for rho in (1.0, -1.0, 1.5, math.nan)),
    (lambda: GaussianPair(0.5).hsic(Laplacian(1.0), KERNEL_S), TypeError, r"kernel_z is Laplacian: .*Gaussian\(bandwi"),
    (lambda: GaussianPair(0.5).hsic(KERNEL_Z, "gaussian"), TypeError, "kernel_s is str"),
    (lambda: GaussianPair(0.5).expected_mmd(Gaussian(torch.ones(2))), ValueError, r"kernel_z .* of shape \(2,\)"),
    (lambda: GaussianPair(0.5).eipm_limit(KERNEL_Z, bandwidth=-1.0), ValueError, r"smoothing bandwidth is -1\.0"),
    (lambda: GaussianPair(0.5).spectral_tail(KERNEL_Z, Gaussian(1e-4), m=1), ArithmeticError, "larger bandwidth on S"),
    (lambda: normal_expectation(lambda s: math.sin(1e6 * s) ** 2), ArithmeticError, "points where the integrand bends"),
])  # fmt: skip
def test_errors_say_what_to_do(
    call: Callable[[], object], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        call()
