"""How tight Theorem 4.7 is on trained models, and the smallest eigenvalue behind it against the bandwidth.

**Tightness**: as the paper draws it, as the theorem says it, and sharper, on test rows of Adult and Crime. The kernel
on S is Gaussian at the median of the test rows; the kernel on Z is taken twice, with bandwidth one (as the released
script has it) and with the median of the test rows (as the models were trained). Heads: k(z0, ·) for 64 test rows z0,
and the linear head that was trained.

**Bandwidth scaling**: the smallest positive eigenvalue of the centered Gram matrix of S for 1,500 rows of Adult and of
Crime, S scaled to [0, 1]. In float32 and float64 the "smallest positive eigenvalue" needs a cut-off; with exact
arithmetic it does not. Equal values of S make that feasible: k distinct values with shares w turn the n × n problem
into one of k − 1 dimensions, small enough for balls of thousands of bits (python-flint).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from frhsic_core.paper.experiments.presets import SPLITS, smoke
from frhsic_core.paper.runs.plan import Experiment, Study, Task, units_of

if TYPE_CHECKING:
    from torch import Tensor

LAMS = (0.1, 1.0, 10.0, 100.0, 1000.0)
SUBSAMPLE = 1500  # rows of the paper's two figures; of the first a fifth tests
CUTOFF = 1e-6
ANCHORS = 64
RESOLUTIONS = 12  # m for which λ̂_m and the resolved gap are stored
HEAD_RESOLUTIONS = (1, 2, 4)
LEADING = 64  # eigenvectors of L̃ behind COCO; the others' eigenvalues are below 1e-16 of the first
ROWS = 1000  # test rows used where there are more

SIGMAS = (0.1, 0.3, 1.0, 3.0, 10.0)

SCALING_DATASETS = (("adult", "reference"), ("crime", "reference"), ("crime", "text"))

# Bits to begin with, for each bandwidth; they are doubled until the enclosure is tight (conditions reach 1e500).
BITS = {0.1: 1000, 0.3: 1400, 1.0: 2000, 3.0: 2500, 10.0: 3000}
# Bandwidths at which all eigenvalues of Adult are computed, and with how many bits: its smallest is above 1e-320.
WHOLE = {0.1: 500, 1.0: 1000, 10.0: 1500}


def plan(preset: str) -> Experiment:
    """Return five splits at the paper's λ, on 1,500 rows and on all; ``text`` is the text's protocol on 1,500 rows."""
    text, reference = (
        tuple(
            Task(name, protocol, protocol, options)
            for options in ((("n", SUBSAMPLE),), ())
            for name in ("crime", "adult")
        )
        for protocol in ("text", "reference")
    )
    tasks = text[:2] if preset == "text" else (*reference, *text)
    name = "bound_tightness"
    full = Experiment(name, tasks, ("unfair", "frhsic"), LAMS, SPLITS["text"], measure=name)
    return smoke(full, lams=(10.0,), n=300) if preset == "smoke" else full


def sensitive_side(s: Tensor) -> dict[str, Any]:
    """Return the eigensystem of L̃/n in float64, what float32 makes of it, and the groups of equal S, ``s (n,)``.

    ``kept`` and ``smallest`` belong to the cut-off of the paper's figure; ``rank`` counts what exceeds n·eps·λ̂_1.
    """
    import torch

    from frhsic_core.joint.contraction import center
    from frhsic_core.kernels import Gaussian, median_bandwidth

    s = s.reshape(-1, 1)
    n = len(s)
    sigma = median_bandwidth(s)
    values, vectors = torch.linalg.eigh(center(Gaussian(sigma)(s)) / n)
    values = values.flip(0)
    vectors = vectors.flip(1)
    single = s.float()
    coarse = torch.linalg.eigvalsh(center(Gaussian(sigma.float())(single)) / n).flip(0)
    _, group = torch.unique(s, dim=0, return_inverse=True)
    kept, kept_coarse = (int((v > CUTOFF * v[0]).sum()) for v in (values, coarse))
    rank = int((values > n * torch.finfo(values.dtype).eps * values[0]).sum())
    return {
        "s": s,
        "sigma": sigma,
        "values": values,
        "vectors": vectors,
        "group": group,
        "kept": kept,
        "numbers": {
            "sigma_s": sigma.item(),
            "distinct": float(group.max() + 1),
            "largest": values[0].item(),
            "kept_64": float(kept),
            "kept_32": float(kept_coarse),
            "smallest_64": values[kept - 1].item(),
            "smallest_32": coarse[kept_coarse - 1].item(),
            "rank": float(rank),
            "smallest_rank": values[rank - 1].item(),
            **{f"eigenvalue_{m}": values[m - 1].item() for m in range(1, RESOLUTIONS + 1)},
        },
    }


def gap_of_heads(z: Tensor, output: Tensor, side: dict[str, Any], *, sigma_z: Tensor | float) -> dict[str, float]:
    r"""Return left and right sides of Theorem 4.7 for one model and one kernel on Z; O(n³) time, O(n²) memory.

    With δ the centred values of a head k(z0, ·) and a_j = (ê_j·δ)²/n, averaged over the anchors: ``left`` = Σ_j a_j
    over all n (what the figure draws; ``left_max`` its maximum), ``resolved_m`` = Σ_{j≤m} a_j, ``projected`` the same
    at m = kept, ``grouped`` at m = r, the variance of the means over rows with equal S. ``hsic``/λ̂_m is the theorem's
    bound, ``coco_squared``/λ̂_m its sharper form; ``best_hsic`` and ``best_coco`` are bound plus unresolved rest at the
    best m ≤ kept. ``informative_hsic`` and ``informative_coco`` count the m whose bound is below the variance of the
    head. For the trained head: ``head_left_m`` and ``head_bound_m`` (see
    :mod:`frhsic_core.paper.statements.parity_gap`; squares of both sides) and its ``head_variance``.
    """
    import torch

    from frhsic_core.joint.contraction import center
    from frhsic_core.kernels import Gaussian

    values = side["values"]
    vectors = side["vectors"]
    kept = side["kept"]
    n = len(z)
    kernel = Gaussian(sigma_z)
    gram = kernel(z)
    delta = gram[:, :ANCHORS] - gram[:, :ANCHORS].mean(0)
    squares = (vectors.mT @ delta).square() / n
    left = squares.sum(0)
    resolved = squares.cumsum(0)
    leading = vectors[:, :LEADING] * values[:LEADING].clamp_min(0.0).sqrt()
    inner = leading.mT @ center(gram) @ leading / n
    hsic = inner.diagonal().sum()
    coco = torch.linalg.eigvalsh(inner)[-1].clamp_min(0.0)
    rest = left - resolved[:kept]
    bounds = {"hsic": hsic / values[:kept], "coco": coco / values[:kept]}
    means = torch.zeros(int(side["group"].max()) + 1, delta.shape[1], dtype=z.dtype, device=z.device)
    means = means.index_add(0, side["group"], delta) / torch.bincount(side["group"]).to(z).unsqueeze(-1)
    found: dict[str, Any] = {
        "hsic": hsic,
        "coco_squared": coco,
        "left": left.mean(),
        "left_max": left.max(),
        "projected": resolved[kept - 1].mean(),
        "grouped": means[side["group"]].square().mean(),
        "weighted": (values.unsqueeze(-1) * squares).sum(0).mean(),
        **{f"resolved_{m}": resolved[m - 1].mean() for m in range(1, RESOLUTIONS + 1)},
    }
    for name, bound in bounds.items():
        found[f"best_{name}"] = (bound.unsqueeze(-1) + rest).amin(0).mean()
        found[f"informative_{name}"] = (bound < left.mean()).sum()
    found |= _trained_head(output, gram, coco, side)
    return {name: float(value) for name, value in found.items()}


def _trained_head(output: Tensor, gram: Tensor, coco: Tensor, side: dict[str, Any]) -> dict[str, Any]:
    """Bound the gap of any head by its kernel ridge fit and the rest, with the ridge that serves each m best."""
    import torch

    n = len(output)
    delta = output - output.mean()
    spectrum, basis = torch.linalg.eigh(gram)
    spectrum = spectrum.clamp_min(0.0)
    loadings = basis.mT @ delta
    grid = torch.logspace(-8.0, 2.0, 81, dtype=gram.dtype, device=gram.device)
    shrunk = loadings / (spectrum + n * grid.unsqueeze(-1))
    norms = (spectrum * shrunk.square()).sum(-1).sqrt()
    rests = delta - (shrunk * spectrum) @ basis.mT
    sizes = (rests - rests.mean(-1, keepdim=True)).square().mean(-1).sqrt()
    found: dict[str, Any] = {"head_variance": delta.square().mean()}
    for m in HEAD_RESOLUTIONS:
        totals = norms * (coco / side["values"][m - 1]).sqrt() + sizes
        best = totals.argmin()
        found[f"head_left_{m}"] = (side["vectors"][:, :m].mT @ delta).square().sum() / n
        found[f"head_bound_{m}"] = totals[best].square()
        found[f"head_norm_{m}"] = norms[best]
    return found


def measure(trained: Any, splits: Any, data: Any) -> dict[str, np.ndarray]:
    """Measure every model of a stack on (at most 1,000) test rows of its split; see :func:`gap_of_heads`."""
    import torch

    from frhsic_core.kernels import median_bandwidth

    with torch.no_grad():
        z, output = trained.forward(splits.x_test[:, :ROWS])
        z = z.double()
        output = output.double()
        sides = [sensitive_side(s[:ROWS].double()) for s in splits.s_test]
        rows = []
        for i, split in enumerate(trained.dataset):
            side = sides[split]
            here = torch.nan_to_num(z[i])
            row = dict(side["numbers"])
            for name, sigma in (("unit", 1.0), ("median", median_bandwidth(here))):
                found = gap_of_heads(here, torch.nan_to_num(output[i]), side, sigma_z=sigma)
                row |= {f"{name}_{key}": value for key, value in found.items()}
            row["test_rows"] = float(here.shape[0])
            rows.append(row)
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def plan_bandwidth_scaling(preset: str) -> Study:
    """Return a unit for each dataset and bandwidth, and all eigenvalues of Adult at three bandwidths."""
    if preset == "smoke":
        units = units_of(what=("smallest", "spectrum"), dataset="synthetic", variant="text", n=12, sigma=1.0)
        return Study("bandwidth_scaling_smoke", "bandwidth_scaling", units)
    chosen = SCALING_DATASETS[:2] if preset == "text" else SCALING_DATASETS
    units = tuple(
        unit
        for dataset, variant in chosen
        for unit in units_of(what="smallest", dataset=dataset, variant=variant, n=SUBSAMPLE, sigma=SIGMAS)
    )
    more = units_of(what="spectrum", dataset="adult", variant="reference", n=SUBSAMPLE, sigma=tuple(WHOLE))
    return Study("bandwidth_scaling", "bandwidth_scaling", units if preset == "text" else (*units, *more))


def rational_values(dataset: str, variant: str, n: int) -> list[Fraction]:
    """Return n values of S (seed 42) as rationals, scaled to [0, 1] by the range of the whole dataset."""
    from frhsic_core.paper.datasets import load_variant

    def exact(values: Any) -> list[Fraction]:
        return [Fraction(float(v)).limit_denominator(10_000) for v in np.asarray(values).ravel()]

    if dataset == "synthetic":  # a law: its range is known
        return exact(load_variant(dataset, variant, n=n, random_state=42).s)
    whole = exact(load_variant(dataset, variant).s)
    low = min(whole)
    high = max(whole)
    return [(v - low) / (high - low) for v in exact(load_variant(dataset, variant, n=n, random_state=42).s)]


def exact_matrix(values: Sequence[Fraction], sigma: Fraction) -> Any:
    r"""Return a (k−1) × (k−1) ball matrix with the positive eigenvalues of HLH/n, for n values of which k are distinct.

    With shares w_a of the distinct values, HLH/n has the positive eigenvalues of Q·(√w_a k(s_a, s_b) √w_b)·Qᵀ, the rows
    of Q an orthonormal basis of the complement of √w (a Householder reflection). Precision is that of ``flint.ctx``.
    """
    from flint import arb, arb_mat

    points = sorted(set(values))
    count = len(points)
    n = len(values)
    roots = [(arb(values.count(point)) / n).sqrt() for point in points]
    x = [arb(p.numerator) / p.denominator for p in points]
    width = arb(sigma.numerator) / sigma.denominator
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
    """Return log₁₀ of one end of a ball, which may lie outside the range of a float; NaN where it is not positive."""
    end = ball.lower() if lower else ball.upper()
    return float(end.log()) / math.log(10) if end > 0 else math.nan


def float_eigenvalues(values: Sequence[Fraction], sigma: float, *, single: bool) -> np.ndarray:
    """Return the eigenvalues of HLH/n in float32 or float64, largest first."""
    import torch

    from frhsic_core.joint.contraction import center
    from frhsic_core.kernels import Gaussian

    s = torch.tensor([float(v) for v in values], dtype=torch.float32 if single else torch.float64).unsqueeze(-1)
    return torch.linalg.eigvalsh(center(Gaussian(sigma)(s)) / len(s)).flip(0).double().numpy()


def measure_unit_bandwidth_scaling(unit: dict[str, Any], device: str) -> list[dict[str, Any]]:
    """Measure λ̂_S by precision and cut-off, or list all eigenvalues; values as decadic logarithms, on the CPU."""
    from flint import acb_mat, ctx

    values = rational_values(unit["dataset"], unit["variant"], unit["n"])
    sigma = unit["sigma"]
    floats = {name: float_eigenvalues(values, sigma, single=name == "float32") for name in ("float32", "float64")}
    width = Fraction(str(sigma))
    if unit["what"] == "spectrum":
        # An approximate solver at this precision; the smallest is checked against its enclosure by the tests.
        with ctx.workprec(WHOLE[sigma]):
            found = acb_mat(exact_matrix(values, width)).eig(algorithm="approx")
            exact = sorted((float(value.real.log()) / np.log(10) for value in found), reverse=True)
        return [
            {"index": j + 1, "log10_exact": round(value, 4), **{f"log10_{k}": _log10(v[j]) for k, v in floats.items()}}
            for j, value in enumerate(exact)
        ]
    bits = BITS[sigma]
    low, high = math.nan, math.nan
    while not high - low < 1e-3:
        with ctx.workprec(bits):
            matrix = exact_matrix(values, width)
            low, high = smallest_enclosed(matrix)
        bits *= 2
    columns = ("precision", "cut", "kept", "log10_smallest", "log10_smallest_upper", "log10_largest")
    lines: list[tuple[Any, ...]] = []
    for name, eigenvalues in floats.items():
        rounding = len(values) * float(np.finfo(name).eps)
        for cut, share in (("relative", CUTOFF), ("rounding", rounding)):
            kept = eigenvalues[eigenvalues > share * eigenvalues[0]]
            smallest = _log10(kept[-1])
            lines.append((name, cut, len(kept), smallest, smallest, _log10(eigenvalues[0])))
    lines.append(("exact", "none", matrix.nrows(), round(low, 4), round(high, 4), _log10(floats["float64"][0])))
    rows = [dict(zip(columns, line, strict=True)) for line in lines]
    rows[-1]["bits"] = bits // 2
    return rows


def _log10(value: float) -> float:
    """Return the decadic logarithm, six digits; NaN where rounding has made an eigenvalue negative."""
    return round(float(np.log10(value)), 6) if value > 0 else float("nan")
