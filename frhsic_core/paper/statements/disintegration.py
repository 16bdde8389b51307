"""Theorem 3.2, Definition 3.3 and Corollary 3.4: one supremum over the joint law, or one for each value of S.

A witness class enters only through its support function, the supremum of Σ f(z, s)·M(z, s) over f in the class.
Theorem 3.2 evaluates it at M = P_ZS − P_Z⊗P_S in two ways; Corollary 3.4 says when it splits into one supremum per
value of S. Three classes on finite spaces: functions bounded by one (total variation, rational arithmetic),
1-Lipschitz functions (Wasserstein; transport problem against its dual, both linear programs) and the unit ball of a
product RKHS (HSIC).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_matrix, vstack

from frhsic_core.laws.finite import wasserstein
from frhsic_core.paper.statements import Certificate, check, equality, farthest, inequality, strict_inequality
from frhsic_core.paper.statements.zero_level import Exact, exact_hsic, power_gram


def example_law() -> Exact:
    """Return a rational 4 × 3 law, dependent, with unequal margins."""
    counts = [[6, 1, 2], [4, 5, 1], [1, 7, 3], [2, 1, 9]]
    return np.array([[Fraction(count, 42) for count in row] for row in counts], dtype=object)


def conditional_contrast(joint: Exact) -> Exact:
    """Return P_S(s)·(P_{Z|S=s} − P_Z)(z), the integrand of Theorem 3.2's right side, from the conditional laws."""
    p_z, p_s = joint.sum(1), joint.sum(0)
    columns = [p_s[j] * (joint[:, j] / p_s[j] - p_z) if p_s[j] > 0 else 0 * p_z for j in range(len(p_s))]
    return np.stack(columns, axis=1)


def total_variation(measure: Exact) -> Fraction:
    """Return the supremum of Σ f·M over |f| ≤ 1: the sum of absolute values."""
    return abs(measure).sum()


def largest_over_signs(joint: Exact) -> Fraction:
    """Return the largest E f(Z, S) − E f(Z, S'), S' independent of Z, over all f with values −1 and 1; O(2^cells).

    The expectations are sums over pairs of cells, so that no conditional law and no absolute value is used.

    Examples
    --------
    >>> largest_over_signs(np.array([[Fraction(1, 2), 0], [0, Fraction(1, 2)]], dtype=object))
    Fraction(1, 1)
    """
    scale = math.lcm(*(Fraction(p).denominator for p in joint.ravel()))
    counts = np.array([[int(p * scale) for p in row] for row in joint])
    product = np.einsum("ij,kl->il", counts, counts)
    signs = 1 - 2 * ((np.arange(2**counts.size)[:, None] >> np.arange(counts.size)) & 1)
    return Fraction(int((signs @ (scale * counts - product).ravel()).max()), scale**2)


def lipschitz_supremum(measure: np.ndarray, pairs: list[tuple[int, int, float]]) -> float:
    """Return the supremum of Σ f·M over |f_i − f_j| ≤ c for each ``(i, j, c)``, by a linear program in f.

    ``measure`` is flat; each connected part of the constraint graph must carry total mass zero.
    """
    i, j, c = (np.array(column) for column in zip(*pairs, strict=True))
    row = np.arange(len(pairs))
    half = coo_matrix(
        (np.r_[np.ones(len(row)), -np.ones(len(row))], (np.r_[row, row], np.r_[i, j])),
        shape=(len(row), measure.size),
    ).tocsr()
    result = linprog(
        -measure, A_ub=vstack([half, -half]), b_ub=np.r_[c, c], bounds=[(None, None)] * measure.size, method="highs"
    )
    return -float(result.fun)


def _grid_pairs(rows: int, columns: int, *, across: bool) -> list[tuple[int, int, float]]:
    """Return the pairs of grid points with distance |z − z'| + |s − s'|; ``across=False``: within one value of S."""
    points = [(i, j) for i in range(rows) for j in range(columns)]
    return [
        (a, b, float(abs(p[0] - q[0]) + abs(p[1] - q[1])))
        for a, p in enumerate(points)
        for b, q in enumerate(points)
        if a < b and (across or p[1] == q[1])
    ]


def _laws(quick: bool) -> list[Exact]:
    generator = np.random.default_rng(3)
    laws = [example_law()]
    for _ in range(3 if quick else 20):
        counts = generator.integers(0, 12, size=(int(generator.integers(2, 6)), int(generator.integers(2, 5))))
        counts[0, 0] += 1
        laws.append(np.array([[Fraction(int(c), int(counts.sum())) for c in row] for row in counts], dtype=object))
    return laws


@check("Theorem 3.2")
def disintegration(*, quick: bool) -> list[Certificate]:
    """Check Theorem 3.2 for three classes: left side from the joint law, right side from the conditional laws."""
    laws = _laws(quick)
    variation: list[tuple[Any, Any]] = []
    transport: list[tuple[Any, Any]] = []
    ball: list[tuple[Any, Any]] = []
    for joint in laws:
        rows, columns = joint.shape
        product = np.outer(joint.sum(1), joint.sum(0))
        contrast = conditional_contrast(joint)
        if joint.size <= 12:
            variation.append((largest_over_signs(joint), total_variation(contrast)))  # fractions: compared exactly
        points = np.array([(i, j) for i in range(rows) for j in range(columns)])
        cost = np.abs(points[:, None, :] - points[None, :, :]).sum(-1).astype(float)
        transported = wasserstein((joint - product).ravel().astype(float), cost)
        dual = lipschitz_supremum(contrast.ravel().astype(float), _grid_pairs(rows, columns, across=True))
        transport.append((transported, dual))
        gram_z, gram_s = power_gram(rows), power_gram(columns)
        # The ball's supremum is attained at the normalised witness: evaluate the conditional contrast on it.
        witness = gram_z @ contrast @ gram_s
        squared_norm = (contrast * witness).sum()
        attained = float((witness * contrast).sum()) / math.sqrt(squared_norm) if squared_norm else 0.0
        ball.append((math.sqrt(exact_hsic(joint, gram_z, gram_s)), attained))
    details = {"laws": len(laws)}
    (variation_left, variation_right), (transport_left, transport_right), (ball_left, ball_right) = (
        farthest(pairs) for pairs in (variation, transport, ball)
    )
    return [
        equality("bounded functions: the joint total variation is that of the conditional contrasts",
                 left=variation_left, right=variation_right, evidence="exact", tolerance=0.0,
                 details={"laws": len(variation)}),
        equality("Lipschitz functions: the transport cost is the supremum over conditional contrasts",
                 left=transport_left, right=transport_right, evidence="exact", tolerance=1e-9, details=details),
        equality("unit ball of the product RKHS: √HSIC is attained on the conditional contrasts",
                 left=ball_left, right=ball_right, evidence="exact", tolerance=1e-12, details=details),
    ]  # fmt: skip


@check("Definition 3.3")
def decomposable_classes() -> list[Certificate]:
    """Check whether the classes used are decomposable (Definition 3.3), on their slices."""
    joint = example_law()
    rows, columns = joint.shape
    # A selector s ↦ ±1-Lipschitz slice, glued: inside the slice-wise class by construction, outside the joint one.
    glued = np.where(np.arange(columns)[None, :] % 2 == 0, 1.0, -1.0) * np.arange(rows)[:, None]
    flat = glued.ravel()
    slice_excess = max(abs(flat[a] - flat[b]) - c for a, b, c in _grid_pairs(rows, columns, across=False))
    joint_excess = max(abs(flat[a] - flat[b]) - c for a, b, c in _grid_pairs(rows, columns, across=True))
    return [
        inequality("gluing Lipschitz slices stays in the class that is Lipschitz in z alone: decomposable",
                   middle=slice_excess, upper=0.0, evidence="exact"),
        strict_inequality("the same glued function leaves the class Lipschitz in (z, s) jointly: not decomposable",
                          middle=0.0, upper=joint_excess, evidence="exact", margin=1e-3),
    ]  # fmt: skip


@check("Corollary 3.4")
def recovery() -> list[Certificate]:
    """Check Corollary 3.4: equality on decomposable classes, what happens on others, and the words "exactly when"."""
    joint = example_law()
    rows, columns = joint.shape
    p_z, p_s = joint.sum(1), joint.sum(0)
    deviation = [joint[:, j] / p_s[j] - p_z for j in range(columns)]
    difference = (joint - np.outer(p_z, p_s)).astype(float).ravel()

    tv_joint = total_variation(joint - np.outer(p_z, p_s))
    tv_integral = sum(p_s[j] * abs(deviation[j]).sum() for j in range(columns))
    line = np.abs(np.subtract.outer(np.arange(rows), np.arange(rows))).astype(float)
    w_integral = sum(float(p_s[j]) * wasserstein(deviation[j].astype(float), line) for j in range(columns))
    w_slices = lipschitz_supremum(difference, _grid_pairs(rows, columns, across=False))
    w_joint = lipschitz_supremum(difference, _grid_pairs(rows, columns, across=True))
    gram = power_gram(rows)
    expected_mmd = sum(float(p_s[j]) * math.sqrt(deviation[j] @ gram @ deviation[j]) for j in range(columns))
    root_hsic = math.sqrt(exact_hsic(joint, gram, power_gram(columns)))
    # {f*, −f*} with f* the best bounded witness: closed under sign, far from decomposable, and still equal.
    witness = np.sign((joint - np.outer(p_z, p_s)).astype(float)).ravel()
    two_functions = abs(float(witness @ difference))
    return [
        equality("bounded functions are decomposable: joint total variation is its conditional average",
                 left=float(tv_joint - tv_integral), right=0.0, evidence="exact", tolerance=0.0),
        equality("functions Lipschitz in z alone are decomposable: the supremum is the average W1",
                 left=w_slices, right=w_integral, evidence="exact", tolerance=1e-9),
        strict_inequality("without decomposability (Lipschitz in (z, s)) the joint IPM is smaller",
                          middle=w_joint, upper=w_integral, evidence="exact", margin=1e-3),
        strict_inequality("without decomposability (product RKHS ball) √HSIC is smaller than E[MMD]",
                          middle=root_hsic, upper=expected_mmd, evidence="exact", margin=1e-3),
        # "exactly when the witness class decomposes" read as "only then": every class that is not decomposable would
        # have to miss the integral. This two-element class does not miss it.
        strict_inequality("'exactly when' read as 'only when': a class of two functions must miss the integral",
                          middle=two_functions, upper=float(tv_integral), evidence="exact", margin=1e-9,
                          details={"class": "{f, -f}, f the sign of the joint minus the product law"}),
        inequality("decomposability is enough, not needed; any class with slices in V stays at or below the integral",
                   middle=max(two_functions, float(tv_joint)), upper=float(tv_integral), evidence="exact",
                   corrected=True),
    ]  # fmt: skip
