"""How tight Theorem 4.7 is on trained models: as the paper draws it, as the theorem says it, and sharper.

Everything is measured on test rows of Adult and Crime. The kernel on S is Gaussian at the median of the test rows; the
kernel on Z is taken twice, with bandwidth one (as the released script has it) and with the median of the test rows (as
the models were trained). Heads: k(z0, ·) for 64 test rows z0, and the linear head that was trained.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from frhsic_core.paper.runs.plan import Experiment, Task

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["ANCHORS", "CUTOFF", "LAMS", "RESOLUTIONS", "SUBSAMPLE", "gap_of_heads", "measure", "plan", "sensitive_side"]

LAMS = (0.1, 1.0, 10.0, 100.0, 1000.0)
SUBSAMPLE = 1500  # rows of the paper's figure, of which a fifth tests
CUTOFF = 1e-6
ANCHORS = 64
RESOLUTIONS = 12  # m for which λ̂_m and the resolved gap are stored
HEAD_RESOLUTIONS = (1, 2, 4)
LEADING = 64  # eigenvectors of L̃ behind COCO; the others' eigenvalues are below 1e-16 of the first
ROWS = 1000  # test rows used where there are more
_KEEP = (("n", SUBSAMPLE),)


def plan(preset: str) -> Experiment:
    """Five splits at the paper's λ: on 1,500 rows, and on all; ``text`` is the text's protocol on 1,500 rows."""
    if preset == "smoke":
        task = Task("synthetic", "text", "reference", (("n", 300),))
        name, methods = "bound_tightness_smoke", ("unfair", "frhsic")
        return Experiment(name, (task,), methods, (10.0,), (42, 43), epochs=2, measure="bound_tightness")
    text, reference = (
        tuple(Task(name, protocol, protocol, options) for options in (_KEEP, ()) for name in ("crime", "adult"))
        for protocol in ("text", "reference")
    )
    tasks = text[:2] if preset == "text" else (*reference, *text)
    splits = tuple(range(42, 47))
    return Experiment("bound_tightness", tasks, ("unfair", "frhsic"), LAMS, splits, measure="bound_tightness")


def sensitive_side(s: Tensor) -> dict[str, Any]:
    """Return the eigensystem of L̃/n in float64, what float32 makes of it, and the groups of equal S.

    ``kept`` and ``smallest`` belong to the cut-off of the paper's figure; ``rank`` counts what exceeds n·eps·λ̂_1.

    Parameters
    ----------
    s : Tensor
        ``(n,)``, float64.
    """
    import torch

    from frhsic_core.joint.centring import centre
    from frhsic_core.kernels import Gaussian, median_bandwidth

    s = s.reshape(-1, 1)
    n, sigma = len(s), median_bandwidth(s)
    values, vectors = torch.linalg.eigh(centre(Gaussian(sigma)(s)) / n)
    values, vectors = values.flip(0), vectors.flip(1)
    single = s.float()
    coarse = torch.linalg.eigvalsh(centre(Gaussian(sigma.float())(single)) / n).flip(0)
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
    r"""Left and right sides of Theorem 4.7 for one model and one kernel on Z; O(n³) time, O(n²) memory.

    With δ the centred values of a head k(z0, ·) and a_j = (ê_j·δ)²/n, averaged over the anchors: ``left`` = Σ_j a_j
    over all n (what the figure draws; ``left_max`` its maximum), ``resolved_m`` = Σ_{j≤m} a_j, ``projected`` the same
    at m = kept, ``grouped`` at m = r, the variance of the means over rows with equal S. ``hsic``/λ̂_m is the theorem's
    bound, ``coco_squared``/λ̂_m its sharper form; ``best_hsic`` and ``best_coco`` are bound plus unresolved rest at the
    best m ≤ kept. ``informative_hsic`` and ``informative_coco`` count the m whose bound is below the variance of the
    head. For the trained head: ``head_left_m`` and ``head_bound_m`` (see :mod:`frhsic_core.paper.statements.any_head`;
    squares of both sides) and its ``head_variance``.
    """
    import torch

    from frhsic_core.joint.centring import centre
    from frhsic_core.kernels import Gaussian

    values, vectors, kept, n = side["values"], side["vectors"], side["kept"], len(z)
    kernel = Gaussian(sigma_z)
    gram = kernel(z)
    delta = gram[:, :ANCHORS] - gram[:, :ANCHORS].mean(0)
    squares = (vectors.mT @ delta).square() / n
    left, resolved = squares.sum(0), squares.cumsum(0)
    leading = vectors[:, :LEADING] * values[:LEADING].clamp_min(0.0).sqrt()
    inner = leading.mT @ centre(gram) @ leading / n
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
    spectrum, loadings = spectrum.clamp_min(0.0), basis.mT @ delta
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
        z, output = z.double(), output.double()
        sides = [sensitive_side(s[:ROWS].double()) for s in splits.s_test]
        rows = []
        for i, split in enumerate(trained.dataset):
            side, here = sides[split], torch.nan_to_num(z[i])
            row = dict(side["numbers"])
            for name, sigma in (("unit", 1.0), ("median", median_bandwidth(here))):
                found = gap_of_heads(here, torch.nan_to_num(output[i]), side, sigma_z=sigma)
                row |= {f"{name}_{key}": value for key, value in found.items()}
            row["test_rows"] = float(here.shape[0])
            rows.append(row)
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}
