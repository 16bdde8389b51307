"""The smallest positive eigenvalue of the centred Gram matrix of S against the bandwidth: what it is, and what is kept.

1,500 rows of Adult and of Crime, S scaled to [0, 1]. In float32 and float64 the "smallest positive eigenvalue" needs a
cut-off; with exact arithmetic it does not. Equal values of S make that feasible: k distinct values with shares w turn
the n × n problem into one of k − 1 dimensions, small enough for balls of thousands of bits (python-flint).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from frhsic_core.paper.runs.study import Study, units_of

__all__ = ["CUTOFF", "DATASETS", "ROWS", "SIGMAS", "exact_matrix", "measure_unit", "plan", "smallest_enclosed"]

SIGMAS = (0.1, 0.3, 1.0, 3.0, 10.0)
ROWS = 1500
CUTOFF = 1e-6
DATASETS = (("adult", "reference"), ("crime", "reference"), ("crime", "text"))
# Bits to begin with, for each bandwidth; they are doubled until the enclosure is tight (conditions reach 1e500).
BITS = {0.1: 1000, 0.3: 1400, 1.0: 2000, 3.0: 2500, 10.0: 3000}
# Bandwidths at which all eigenvalues of Adult are computed, and with how many bits: its smallest is above 1e-320.
WHOLE = {0.1: 500, 1.0: 1000, 10.0: 1500}


def plan(preset: str) -> Study:
    """A unit for each dataset and bandwidth, and all eigenvalues of Adult at three; ``smoke``: the synthetic law."""
    if preset == "smoke":
        units = units_of(what=("smallest", "spectrum"), dataset="synthetic", variant="text", n=12, sigma=1.0)
        return Study("bandwidth_scaling_smoke", "bandwidth_scaling", units)
    chosen = DATASETS[:2] if preset == "text" else DATASETS
    units = tuple(
        unit
        for dataset, variant in chosen
        for unit in units_of(what="smallest", dataset=dataset, variant=variant, n=ROWS, sigma=SIGMAS)
    )
    more = units_of(what="spectrum", dataset="adult", variant="reference", n=ROWS, sigma=tuple(WHOLE))
    return Study("bandwidth_scaling", "bandwidth_scaling", units if preset == "text" else (*units, *more))


def rational_values(dataset: str, variant: str, n: int) -> list[Fraction]:
    """Return n values of S (seed 42) as rationals, scaled to [0, 1] by the range of the whole dataset."""
    from frhsic_core.data import load_dataset

    def exact(values: Any) -> list[Fraction]:
        return [Fraction(float(v)).limit_denominator(10_000) for v in np.asarray(values).ravel()]

    if dataset == "synthetic":  # a law: its range is known
        return exact(load_dataset(dataset, variant, n=n, seed=42).s)
    whole = exact(load_dataset(dataset, variant).s)
    low, high = min(whole), max(whole)
    return [(v - low) / (high - low) for v in exact(load_dataset(dataset, variant, n=n, seed=42).s)]


def exact_matrix(values: Sequence[Fraction], sigma: Fraction) -> Any:
    r"""Return a (k−1) × (k−1) ball matrix with the positive eigenvalues of HLH/n, for n values of which k are distinct.

    With shares w_a of the distinct values, HLH/n has the positive eigenvalues of Q·(√w_a k(s_a, s_b) √w_b)·Qᵀ, the rows
    of Q an orthonormal basis of the complement of √w (a Householder reflection). Precision is that of ``flint.ctx``.
    """
    from flint import arb, arb_mat

    points = sorted(set(values))
    count, n = len(points), len(values)
    roots = [(arb(values.count(point)) / n).sqrt() for point in points]
    x, width = [arb(p.numerator) / p.denominator for p in points], arb(sigma.numerator) / sigma.denominator
    # A product, not a power: a ball around zero to the second power is NaN in python-flint.
    gram = arb_mat(
        [
            [p * q * (-(a - b) * (a - b) / (2 * width * width)).exp() for b, q in zip(x, roots, strict=True)]
            for a, p in zip(x, roots, strict=True)
        ]
    )
    # Householder: the reflection that sends √w to minus the first axis; its other rows are the basis.
    normal = [roots[0] + 1, *roots[1:]]
    square = sum((a * a for a in normal), arb(0))
    basis = arb_mat(
        [[(1 if i == j else 0) - 2 * normal[i] * normal[j] / square for j in range(count)] for i in range(1, count)]
    )
    return basis * gram * basis.transpose()


def smallest_enclosed(matrix: Any) -> tuple[float, float]:
    """Return log₁₀ of a lower and an upper bound of the smallest eigenvalue of a positive definite ball matrix.

    1/‖A⁻¹‖_F ≤ λ_min ≤ yᵀAy/yᵀy with y = A⁻²e_i: one inverse, O(k³) ball operations. NaN when the balls have grown too
    wide to say anything.

    Examples
    --------
    >>> from flint import arb_mat
    >>> [round(end, 6) for end in smallest_enclosed(arb_mat([[2, 1], [1, 2]]))]
    [-0.022879, 0.010465]
    """
    from flint import arb, arb_mat

    k = matrix.nrows()
    try:
        inverse = matrix.inv()
    except ZeroDivisionError:  # the balls contain a singular matrix
        return float("nan"), float("nan")
    total = sum((inverse[i, j] * inverse[i, j] for i in range(k) for j in range(k)), arb(0))
    largest = max(range(k), key=lambda i: float(inverse[i, i].log()))
    y = inverse * (inverse * arb_mat([[int(i == largest)] for i in range(k)]))
    upper = (y.transpose() * matrix * y)[0, 0] / (y.transpose() * y)[0, 0]
    return _decades(1 / total.sqrt(), lower=True), _decades(upper, lower=False)


def _decades(ball: Any, *, lower: bool) -> float:
    """log₁₀ of one end of a ball, which may lie far outside the range of a float; NaN where it is not positive."""
    end = ball.lower() if lower else ball.upper()
    return float(end.log()) / math.log(10) if end > 0 else math.nan


def float_eigenvalues(values: Sequence[Fraction], sigma: float, *, single: bool) -> np.ndarray:
    """Return the eigenvalues of HLH/n in float32 or float64, largest first."""
    import torch

    from frhsic_core.joint.centring import centre
    from frhsic_core.kernels import Gaussian

    s = torch.tensor([float(v) for v in values], dtype=torch.float32 if single else torch.float64).unsqueeze(-1)
    return torch.linalg.eigvalsh(centre(Gaussian(sigma)(s)) / len(s)).flip(0).double().numpy()


def measure_unit(unit: dict[str, Any], device: str) -> list[dict[str, Any]]:
    """Measure λ̂_S by precision and cut-off, or list all eigenvalues; values as decadic logarithms, on the CPU."""
    from flint import acb_mat, ctx

    values = rational_values(unit["dataset"], unit["variant"], unit["n"])
    sigma = unit["sigma"]
    floats = {name: float_eigenvalues(values, sigma, single=name == "float32") for name in ("float32", "float64")}
    before = ctx.prec
    ctx.prec = WHOLE[sigma] if unit["what"] == "spectrum" else BITS[sigma]
    try:
        matrix = exact_matrix(values, Fraction(str(sigma)))
        if unit["what"] == "spectrum":
            # An approximate solver at this precision; the smallest is checked against its enclosure by the tests.
            exact = sorted(float(v.real.log()) / np.log(10) for v in acb_mat(matrix).eig(algorithm="approx"))[::-1]
            return [
                {
                    "index": j + 1,
                    "log10_exact": round(value, 4),
                    **{f"log10_{name}": _log10(found[j]) for name, found in floats.items()},
                }
                for j, value in enumerate(exact)
            ]
        ends = smallest_enclosed(matrix)
        while not ends[1] - ends[0] < 1e-3:
            ctx.prec *= 2
            matrix = exact_matrix(values, Fraction(str(sigma)))
            ends = smallest_enclosed(matrix)
        rank, bits = matrix.nrows(), ctx.prec
    finally:
        ctx.prec = before
    rows = []
    for name, found in floats.items():
        eps = float(np.finfo(name).eps)
        for cut, share in (("relative", CUTOFF), ("rounding", len(values) * eps)):
            kept = found[found > share * found[0]]
            rows.append(
                {
                    "precision": name,
                    "cut": cut,
                    "kept": len(kept),
                    "log10_smallest": _log10(kept[-1]),
                    "log10_smallest_upper": _log10(kept[-1]),
                    "log10_largest": _log10(found[0]),
                }
            )
    top = _log10(floats["float64"][0])
    low, high = (round(end, 4) for end in ends)
    exact_row = {"kept": rank, "log10_smallest": low, "log10_smallest_upper": high, "log10_largest": top}
    return [*rows, {"precision": "exact", "cut": "none", **exact_row, "bits": bits}]


def _log10(value: float) -> float:
    """The logarithm, six digits; NaN where rounding has made an eigenvalue negative."""
    return round(float(np.log10(value)), 6) if value > 0 else float("nan")
