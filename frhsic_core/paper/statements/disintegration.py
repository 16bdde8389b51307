"""Definition 2.1, Proposition 3.1, Theorem 3.2 and Corollary 3.4: the two routes to dependence.

On a finite space with rational probabilities and the rational kernel r^|i−j| every quantity here is
a fraction, so "zero" means zero. Proposition 3.1 is an equivalence; it is checked by going through
*all* joint laws with a given common denominator and comparing the truth values of its six
conditions on each.

A witness class enters only through its support function, the supremum of Σ f(z, s)·M(z, s) over f
in the class. Theorem 3.2 evaluates it at M = P_ZS − P_Z⊗P_S in two ways; Corollary 3.4 says when it
splits into one supremum per value of S. Two classes on finite spaces: functions bounded by one
(total variation, rational arithmetic) and 1-Lipschitz functions (Wasserstein; transport problem
against its dual, both linear programs).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import combinations, product
from typing import Any

import numpy as np
import torch
from scipy.optimize import linprog
from scipy.sparse import coo_matrix, vstack

from frhsic_core.joint import hsic
from frhsic_core.kernels import Gaussian, Laplacian, Linear
from frhsic_core.laws import FiniteLaw
from frhsic_core.laws._finite import wasserstein
from frhsic_core.paper.statements import Certificate, check, equality, inequality, strict_inequality
from frhsic_core.paper.statements.concentration import all_tables

Exact = np.ndarray  # of Fractions, dtype object

CONDITIONS = (
    "joint IPM",
    "independence",
    "conditional laws",
    "every bounded g",
    "EIPM",
    "GDP of every head",
)


def power_gram(size: int, *, ratio: Fraction = Fraction(1, 2)) -> Exact:
    """Return the Gram matrix r^|i−j| on {0, …, size−1}, as fractions.

    It is at most one, and positive definite for 0 < r < 1.

    Examples
    --------
    >>> power_gram(2).tolist()
    [[Fraction(1, 1), Fraction(1, 2)], [Fraction(1, 2), Fraction(1, 1)]]
    """
    powers = np.array([ratio**distance for distance in range(size)], dtype=object)
    i, j = np.indices((size, size))
    return powers[abs(i - j)]


def exact_hsic(joint: Exact, gram_z: Exact, gram_s: Exact) -> Fraction:
    """Return ‖μ_ZS − μ_Z⊗μ_S‖² of a finite law by Definition 2.1 (``def:hsic``).

    The arithmetic is that of the entries. With D = P_ZS − P_Z⊗P_S it is Σ D_ij D_kl k_Z(i, k)
    k_S(j, l). O(a²b + ab²) operations.

    Examples
    --------
    >>> half = Fraction(1, 2)
    >>> exact_hsic(np.array([[half, 0], [0, half]], dtype=object), power_gram(2), power_gram(2))
    Fraction(1, 16)
    """
    difference = joint - np.outer(joint.sum(1), joint.sum(0))
    return (difference * (gram_z @ difference @ gram_s)).sum()


def as_fractions(counts: np.ndarray, denominator: int) -> Exact:
    """Return whole numbers divided by a denominator."""
    return counts.astype(object) * Fraction(1, denominator)


def joint_laws(rows: int, columns: int, denominator: int) -> Iterator[Exact]:
    """Yield all laws on a rows × columns grid whose probabilities are multiples of 1/denominator.

    Zero is such a multiple.
    """
    for counts in all_tables(denominator, rows * columns):
        yield as_fractions(counts.reshape(rows, columns), denominator)


def events(size: int) -> list[list[int]]:
    """Return every set of the values 0, …, size − 1.

    Examples
    --------
    >>> events(2)
    [[], [0], [1], [0, 1]]
    """
    found: list[list[int]] = []
    for count in range(size + 1):
        found += map(list, combinations(range(size), count))
    return found


def carried(joint: Exact) -> list[int]:
    """Return the values of S that have a positive probability: "P_S-almost every s"."""
    p_s = joint.sum(0)
    return [s for s in range(joint.shape[1]) if p_s[s] > 0]


def conditional_law(joint: Exact, s: int) -> Exact:
    """Return the law of Z given S = s, the probabilities of the column divided by their sum."""
    return joint[:, s] / joint[:, s].sum()


@cache
def functions(size: int) -> Exact:
    """Return all g on ``size`` values with g(z) in {−1, 0, 1} as rows; they span all functions.

    A mean is linear in g and GDP is a seminorm, so what is zero for these is zero for every g.
    """
    return np.array(list(product((-1, 0, 1), repeat=size)), dtype=object)


def is_product_of_events(joint: Exact) -> bool:
    """Whether P(Z ∈ A, S ∈ B) = P(Z ∈ A)·P(S ∈ B) for all events A and B: independence."""
    p_z = joint.sum(1)
    p_s = joint.sum(0)
    for a in events(joint.shape[0]):
        for b in events(joint.shape[1]):
            if joint[np.ix_(a, b)].sum() != p_z[a].sum() * p_s[b].sum():
                return False
    return True


def has_one_conditional_law(joint: Exact) -> bool:
    """Whether the law of Z given S = s is the law of Z, for every s of positive probability."""
    p_z = joint.sum(1)
    return all((conditional_law(joint, s) == p_z).all() for s in carried(joint))


def gaps_of_means(joint: Exact) -> Iterator[Exact]:
    """Yield E[g(Z) | S = s] − E g(Z) for every s, one g of :func:`functions` after the other."""
    p_z = joint.sum(1)
    laws = np.array([conditional_law(joint, s) for s in carried(joint)])
    for g in functions(joint.shape[0]):
        yield laws @ g - g @ p_z


def squared_mmd(joint: Exact, gram_z: Exact) -> Fraction:
    """Return E_S MMD²(P_{Z|S}, P_Z), which is rational and zero exactly where E_S MMD is."""
    p_s = joint.sum(0)
    total = Fraction(0)
    for s in carried(joint):
        difference = conditional_law(joint, s) - joint.sum(1)
        total += p_s[s] * (difference @ gram_z @ difference)
    return total


def gdps(joint: Exact) -> Iterator[Fraction]:
    """Yield E_S |E[g(Z) | S] − E g(Z)| for one g of :func:`functions` after the other."""
    weights = joint.sum(0)[carried(joint)]
    for gaps in gaps_of_means(joint):
        yield abs(gaps) @ weights


def conditions(joint: Exact, gram_z: Exact, gram_s: Exact) -> tuple[bool, ...]:
    """Return the truth of the conditions of Proposition 3.1 (``prop:equivalence``) for a law.

    In the order of ``CONDITIONS``: the four of the proposition, then its EIPM form (the kernel's
    unit ball) and its GDP form. Each is computed from its own definition, by its own function.
    """
    return (
        exact_hsic(joint, gram_z, gram_s) == 0,
        is_product_of_events(joint),
        has_one_conditional_law(joint),
        all((gaps == 0).all() for gaps in gaps_of_means(joint)),
        squared_mmd(joint, gram_z) == 0,
        all(gdp == 0 for gdp in gdps(joint)),
    )


@check("Definition 2.1")
def definition_is_implemented() -> list[Certificate]:
    """Check that the library's HSIC is the number of Definition 2.1, on a rational law."""
    joint = as_fractions(np.array([[2, 3], [1, 6], [3, 0]]), 15)
    # r^|i−j| with r = 1/2 is the Laplacian kernel of bandwidth 1/log 2 on integers; two points
    # cannot tell it from a Gaussian, so S takes one of bandwidth 1/√(2 log 2).
    exact = exact_hsic(joint, power_gram(3), power_gram(2))
    i, j = np.indices(joint.shape).reshape(2, -1)
    value = hsic(
        i.astype(float),
        j.astype(float),
        kernel_z=Laplacian(1.0 / np.log(2.0)),
        kernel_s=Gaussian(1.0 / np.sqrt(2.0 * np.log(2.0))),
        sample_weight=joint.reshape(-1).astype(float),
    )
    return [
        equality(
            "hsic() of a weighted sample is the defined squared norm, in rational arithmetic",
            left=float(value),
            right=float(exact),
            evidence="exact",
            tolerance=1e-12,
            details={"exact": str(exact)},
        )
    ]


@check("Proposition 3.1")
def equivalence_on_all_laws(*, quick: bool) -> list[Certificate]:
    """Check that the six conditions of Proposition 3.1 agree on every law of a grid."""
    # Values of Z, values of S, and the common denominator.
    if quick:
        grids = [(2, 2, 8), (2, 3, 6), (3, 2, 6)]
    else:
        grids = [(2, 2, 16), (2, 3, 8), (3, 2, 8), (3, 3, 6)]
    disagree = 0
    independent = 0
    total = 0
    for rows, columns, denominator in grids:
        gram_z = power_gram(rows)
        gram_s = power_gram(columns, ratio=Fraction(1, 3))
        for joint in joint_laws(rows, columns, denominator):
            found = conditions(joint, gram_z, gram_s)
            truth = dict(zip(CONDITIONS, found, strict=True))
            disagree += len(set(found)) > 1
            independent += truth["independence"]
            total += 1
    return [
        equality(
            "the four conditions, the EIPM form and the GDP form agree "
            "on every law of a rational grid",
            left=float(disagree),
            right=0.0,
            evidence="exact",
            tolerance=0.0,
            assumptions=("kernels strictly positive definite on the finite space: characteristic",),
            details={"laws": total, "independent": independent, "conditions": list(CONDITIONS)},
        )
    ]


@check("Proposition 3.1")
def what_breaks_without_characteristic() -> list[Certificate]:
    """Drop "characteristic": with linear kernels Z = S² on {−1, 0, 1} has HSIC zero."""
    third = Fraction(1, 3)
    s = np.array([-1, 0, 1], dtype=object)
    z = np.array([0, 1], dtype=object)
    joint = np.array([[0, third, 0], [third, 0, third]], dtype=object)
    linear = exact_hsic(joint, np.outer(z, z), np.outer(s, s))
    seen = exact_hsic(joint, power_gram(2), power_gram(3))
    points = torch.tensor([-1.0, 0.0, 1.0], dtype=torch.float64)
    library = hsic(points**2, points, kernel_z=Linear(), kernel_s=Linear()).item()
    return [
        strict_inequality(
            "without a characteristic class it breaks: "
            "linear HSIC is 0 for Z = S² while the characteristic one is not",
            middle=float(linear),
            upper=float(seen),
            evidence="exact",
            margin=1e-3,
            details={
                "linear HSIC": str(linear),
                "characteristic HSIC": str(seen),
                "library, linear": library,
            },
        )
    ]


def example_law() -> Exact:
    """Return a rational 4 × 3 law, dependent, with unequal margins."""
    counts = np.array([[6, 1, 2], [4, 5, 1], [1, 7, 3], [2, 1, 9]])
    return as_fractions(counts, 42)


def largest_over_signs(joint: Exact) -> Fraction:
    """Return the largest E f(Z, S) − E f(Z, S'), S' independent of Z, over all f with values ±1.

    O(2^cells) time. The expectations are sums over pairs of cells, so that no conditional law and
    no absolute value is used.

    Examples
    --------
    >>> largest_over_signs(np.array([[Fraction(1, 2), 0], [0, Fraction(1, 2)]], dtype=object))
    Fraction(1, 1)
    """
    denominators = [Fraction(p).denominator for p in joint.ravel()]
    scale = math.lcm(*denominators)
    counts = (joint * scale).astype(int)
    independent = np.einsum("ij,kl->il", counts, counts)
    difference = (scale * counts - independent).ravel()  # times scale², so that it is whole
    signs = np.array(list(product((1, -1), repeat=counts.size)))
    largest = (signs @ difference).max()
    return Fraction(int(largest), scale**2)


def lipschitz_supremum(measure: np.ndarray, pairs: list[tuple[int, int, float]]) -> float:
    """Return the supremum of Σ f·M over |f_i − f_j| ≤ c for each ``(i, j, c)``.

    It is the value of a linear program in f. ``measure`` is flat; each connected part of the
    constraint graph must carry total mass zero.
    """
    firsts, seconds, limits = map(np.array, zip(*pairs, strict=True))
    # Row k of the matrix has a one at the first point of pair k and minus one at the second.
    count = len(pairs)
    row = np.arange(count)
    entries = np.concatenate([np.ones(count), -np.ones(count)])
    places = (np.tile(row, 2), np.concatenate([firsts, seconds]))
    differences = coo_matrix((entries, places), shape=(count, measure.size)).tocsr()
    result = linprog(
        -measure,
        A_ub=vstack([differences, -differences]),
        b_ub=np.tile(limits, 2),
        bounds=[(None, None)] * measure.size,
        method="highs",
    )
    return -float(result.fun)


def grid_distances(rows: int, columns: int) -> np.ndarray:
    """Return |z − z'| + |s − s'| for all pairs of points of a grid, ``(cells, cells)``."""
    z, s = np.indices((rows, columns)).reshape(2, -1).astype(float)
    return np.abs(np.subtract.outer(z, z)) + np.abs(np.subtract.outer(s, s))


def grid_pairs(rows: int, columns: int, *, across: bool) -> list[tuple[int, int, float]]:
    """Return pairs of grid points with their distance; ``across=False``: of one value of S."""
    distances = grid_distances(rows, columns)
    pairs = []
    for a, b in combinations(range(rows * columns), 2):
        same_s = a % columns == b % columns
        if across or same_s:
            pairs.append((a, b, float(distances[a, b])))
    return pairs


def example_laws(quick: bool) -> list[Exact]:
    """Return the example and random laws of different shapes."""
    generator = np.random.default_rng(3)
    laws = [example_law()]
    for _ in range(3 if quick else 20):
        rows = int(generator.integers(2, 6))
        columns = int(generator.integers(2, 5))
        counts = generator.integers(0, 12, size=(rows, columns))
        counts[0, 0] += 1  # never an empty law
        laws.append(as_fractions(counts, int(counts.sum())))
    return laws


def distance_of(pair: tuple[Any, Any]) -> Any:
    """Return how far apart two numbers are that should be equal."""
    return abs(pair[0] - pair[1])


@check("Theorem 3.2")
def disintegration(*, quick: bool) -> list[Certificate]:
    """Check Theorem 3.2 for two classes of functions.

    The left side comes from the joint law, the right side from the conditional laws.
    """
    laws = example_laws(quick)
    variation: list[tuple[Any, Any]] = []
    transport: list[tuple[Any, Any]] = []
    for joint in laws:
        rows, columns = joint.shape
        independent = np.outer(joint.sum(1), joint.sum(0))
        law = FiniteLaw(range(rows), range(columns), joint)
        contrast = law.p_s * law.delta  # P_S(s)·(P_{Z|S=s} − P_Z)(z), from the conditional laws
        if joint.size <= 12:  # 2^12 functions
            # Fractions, so that they are compared exactly.
            variation.append((largest_over_signs(joint), abs(contrast).sum()))
        difference = (joint - independent).ravel().astype(float)
        transported = wasserstein(difference, grid_distances(rows, columns))
        everywhere = grid_pairs(rows, columns, across=True)
        dual = lipschitz_supremum(contrast.ravel().astype(float), everywhere)
        transport.append((transported, dual))
    variation_left, variation_right = max(variation, key=distance_of)
    transport_left, transport_right = max(transport, key=distance_of)
    return [
        equality(
            "bounded functions: the joint total variation is that of the conditional contrasts",
            left=float(variation_left),
            right=float(variation_right),
            evidence="exact",
            tolerance=0.0,
            details={"laws": len(variation)},
        ),
        equality(
            "Lipschitz functions: the transport cost is the supremum over conditional contrasts",
            left=transport_left,
            right=transport_right,
            evidence="exact",
            tolerance=1e-9,
            details={"laws": len(laws)},
        ),
    ]


@check("Definition 3.3")
def decomposable_classes() -> list[Certificate]:
    """Check whether the classes used are decomposable (Definition 3.3), on their slices."""
    joint = example_law()
    rows, columns = joint.shape
    # A selector s ↦ ±1-Lipschitz slice, glued: inside the slice-wise class by construction, outside
    # the joint one.
    signs = np.where(np.arange(columns) % 2 == 0, 1.0, -1.0)
    glued = np.multiply.outer(np.arange(rows), signs).ravel()

    def excess(pairs: list[tuple[int, int, float]]) -> float:
        return max(abs(glued[a] - glued[b]) - distance for a, b, distance in pairs)

    slice_excess = excess(grid_pairs(rows, columns, across=False))
    joint_excess = excess(grid_pairs(rows, columns, across=True))
    return [
        inequality(
            "gluing Lipschitz slices stays in the class that is Lipschitz in z alone: decomposable",
            middle=slice_excess,
            upper=0.0,
            evidence="exact",
        ),
        strict_inequality(
            "the same glued function leaves the class Lipschitz in (z, s) jointly: "
            "not decomposable",
            middle=0.0,
            upper=joint_excess,
            evidence="exact",
            margin=1e-3,
        ),
    ]


@check("Corollary 3.4")
def recovery() -> list[Certificate]:
    """Check Corollary 3.4: decomposable classes, others, and the words "exactly when"."""
    joint = example_law()
    rows, columns = joint.shape
    law = FiniteLaw(range(rows), range(columns), joint)
    measure = law.difference
    difference = measure.astype(float).ravel()
    tv_joint = abs(measure).sum()
    tv_integral = sum(law.p_s * abs(law.delta).sum(0))
    w_slices = lipschitz_supremum(difference, grid_pairs(rows, columns, across=False))
    w_joint = lipschitz_supremum(difference, grid_pairs(rows, columns, across=True))
    w_integral = law.expected_wasserstein()
    gram = power_gram(rows)
    expected_mmd = law.expected_mmd(gram)
    root_hsic = math.sqrt(exact_hsic(joint, gram, power_gram(columns)))
    # {f*, −f*} with f* the best bounded witness: closed under sign, far from decomposable, and
    # still equal.
    witness = np.sign(difference)
    two_functions = abs(float(witness @ difference))
    return [
        equality(
            "functions Lipschitz in z alone are decomposable: the supremum is the average W1",
            left=w_slices,
            right=w_integral,
            evidence="exact",
            tolerance=1e-9,
        ),
        strict_inequality(
            "without decomposability (Lipschitz in (z, s)) the joint IPM is smaller",
            middle=w_joint,
            upper=w_integral,
            evidence="exact",
            margin=1e-3,
        ),
        strict_inequality(
            "without decomposability (product RKHS ball) √HSIC is smaller than E[MMD]",
            middle=root_hsic,
            upper=expected_mmd,
            evidence="exact",
            margin=1e-3,
        ),
        # "exactly when the witness class decomposes" read as "only then": every class that is not
        # decomposable would have to miss the integral. This two-element class does not miss it.
        strict_inequality(
            "'exactly when' read as 'only when': a class of two functions must miss the integral",
            middle=two_functions,
            upper=float(tv_integral),
            evidence="exact",
            margin=1e-9,
            details={"class": "{f, -f}, f the sign of the joint minus the product law"},
        ),
        inequality(
            "decomposability is enough, not needed; "
            "any class with slices in V stays at or below the integral",
            middle=max(two_functions, float(tv_joint)),
            upper=float(tv_integral),
            evidence="exact",
            corrected=True,
        ),
    ]
