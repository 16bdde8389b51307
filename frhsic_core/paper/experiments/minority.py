"""Rare values of S: the reference P_Z ⊗ Unif(S) of the paper's conclusion (tex:800) against P_Z ⊗ P_S.

HSIC with the product reference counts people; those at the ends of the range of S are few and count little. Weighting
the rows by the inverse density of S makes every value count alike. Both are trained here with everything else equal,
and measured where it should matter: by cells of S that count alike, in the worst tenth, and on the rarest values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from frhsic_core.paper.experiments.variants import BASE
from frhsic_core.paper.runs.plan import Experiment, Task

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

__all__ = ["CELLS", "LAMS", "OPTIONS", "RARE", "cell_statistics", "measure", "plan"]

DATASETS = ("compas", "adult")
LAMS = (1.0, 5.0, 50.0, 500.0)
SPLITS = tuple(range(42, 52))
# The base with a head term, and the biased form on the representation alone, each with both references.
FORMS: dict[str, dict[str, Any]] = {
    "normalized": {},
    "biased": {"estimator": "biased", "on": "representation"},
}
OPTIONS = tuple(
    (f"{form} {reference}", tuple((BASE | changes | {"reference": reference}).items()))
    for form, changes in FORMS.items()
    for reference in ("product", "uniform")
)
CELLS = 20  # equal-width cells of S, as the uniform reference uses
RARE = 0.1  # the rarest cells that together hold at most this share of the rows
FEWEST = 10  # a cell with fewer test rows has no mean worth comparing


def plan(preset: str) -> Experiment:
    """Return the experiment; ``text`` and ``full`` are the same, since the paper reports none."""
    if preset == "smoke":
        tasks: tuple[Task, ...] = (Task("synthetic", "text", "reference", (("n", 600),)),)
        return _sweep("minority_smoke", tasks, (10.0,), (42, 43), epochs=2)
    return _sweep("minority", tuple(Task(name, "reference", "reference") for name in DATASETS), LAMS, SPLITS)


def _sweep(
    name: str, tasks: tuple[Task, ...], lams: tuple[float, ...], splits: tuple[int, ...], *, epochs: int = 200
) -> Experiment:
    trained = Experiment(
        name, tasks, ("frhsic",), lams, splits, options=OPTIONS, epochs=epochs, measure="minority"
    )  # fmt: skip
    return Experiment(name, tasks, ("unfair",), lams, splits, epochs=epochs, measure="minority", also=(trained,))


def cell_statistics(f: Tensor, right: Tensor, s: Tensor) -> dict[str, Tensor]:
    r"""Measure predictions ``f (models, n)`` of one test part by cells of ``s (n,)``; ``right (models, n)`` is 0 or 1.

    ``cell_gap`` is the mean over equal-width cells of |mean of f in the cell − mean of f|, every cell counting alike;
    ``people_gap`` the same with every row counting alike; ``worst_gap`` the largest gap among ten groups of equally
    many rows; ``rare_gap`` and ``rare_performance`` the gap of, and the share right in, the rarest cells that together
    hold at most a tenth of the rows, ``rare_share`` their share. Cells with fewer than ten rows join no mean over
    cells, but count among the rare. O(models · n · cells).
    """
    import torch

    overall = f.mean(-1, keepdim=True)
    low, high = s.amin(), s.amax()
    place = ((s - low) / (high - low).clamp_min(1e-30) * CELLS).long().clamp_(0, CELLS - 1)
    member = torch.nn.functional.one_hot(place, CELLS).to(f.dtype)
    counts = member.sum(0)
    gaps = (f @ member / counts.clamp_min(1.0) - overall).abs()
    counted = (counts >= FEWEST).to(f.dtype)
    # Ties must not be cut: rows with the same S belong to one tenth, that of the middle of their ranks.
    _, inverse, sizes = s.unique(return_inverse=True, return_counts=True)
    middle = (sizes.cumsum(0) - 0.5 * sizes) / len(s)
    tenth = torch.nn.functional.one_hot((10 * middle).long().clamp_(0, 9)[inverse], 10).to(f.dtype)
    people = tenth.sum(0)
    by_tenth = (f @ tenth / people.clamp_min(1.0) - overall).abs() * (people > 0)
    order = counts.argsort(stable=True)
    kept = order[counts[order].cumsum(0) <= RARE * len(s)]
    rare = torch.isin(place, kept).to(f.dtype)
    total = rare.sum()
    return {
        "cell_gap": (gaps * counted).sum(-1) / counted.sum(),
        "people_gap": (gaps * counts * counted).sum(-1) / (counts * counted).sum(),
        "worst_gap": by_tenth.amax(-1),
        "rare_gap": ((f * rare).sum(-1) / total - overall.squeeze(-1)).abs(),
        "rare_performance": (right * rare).sum(-1) / total,
        "rare_share": (total / len(s)).expand(len(f)),
    }


def measure(trained: Any, splits: Any, data: Any) -> dict[str, np.ndarray]:
    """Add the columns of :func:`cell_statistics` to the rows of a stack, each model on its own split's test part."""
    import torch

    with torch.no_grad():
        _, output = trained.forward(splits.x_test)
        f = torch.sigmoid(output.double())
        which = torch.tensor(trained.dataset, device=f.device)
        found: dict[str, Tensor] = {}
        for i in which.unique().tolist():
            models = (which == i).nonzero().flatten()
            y, s = splits.y_test[i], splits.s_test[i].double()
            right = ((output[models] > 0) == (y > 0.5)).double()
            for name, value in cell_statistics(f[models], right, s).items():
                found.setdefault(name, f.new_empty(len(f)))[models] = value
    return {name: value.cpu().numpy() for name, value in found.items()}
