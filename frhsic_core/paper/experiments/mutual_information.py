"""Mutual information between Z and S along the sweep: as the released code estimates it, and with its faults undone.

The paper's appendix reports a nearest-neighbour estimate on a few principal components of the test representation. Here
every model of the main sweep's first five splits gets that number, the same without the clamp at zero, the published
estimator, the published estimator on standardised components, and for each the value that a permuted S shows: the scale
on which "about 0" can be read. Two one-dimensional functions of Z stand beside them, whose information about S is a
lower bound on that of Z: the head's output, and the best linear guess of S.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from frhsic_core.paper.experiments.presets import DATASETS, GRIDS, METHODS, SPLITS
from frhsic_core.paper.runs.plan import Experiment, Task

if TYPE_CHECKING:
    from torch import Tensor

    from frhsic_core.data.dataset import Dataset
    from frhsic_core.data.splits import SplitStack
    from frhsic_core.learning.trained import TrainedStack

__all__ = ["NEIGHBOURS", "live", "measure", "plan"]

NEIGHBOURS = 5


def plan(preset: str) -> Experiment:
    """The main sweep's first five splits, with information measured."""
    if preset == "smoke":
        task = Task("synthetic", "text", "reference", (("n", 600),))
        methods = ("unfair", "frhsic", "reg_gdp", "adv")
        return Experiment(
            "mutual_information_smoke", (task,), methods, (1.0, 100.0), (42, 43), epochs=3, measure="mutual_information"
        )
    protocol = "text" if preset == "text" else "reference"
    tasks = tuple(Task(name, protocol, protocol) for name in DATASETS)
    name = "mutual_information"
    return Experiment(name, tasks, METHODS, GRIDS[preset], SPLITS["text"], measure=name, also=(live(),))


def live() -> Experiment:
    """The small part that the chapter's live cell repeats: two methods on the synthetic law."""
    task = Task("synthetic", "text", "reference", (("n", 2000),))
    name = "mutual_information"
    return Experiment(name, (task,), ("unfair", "frhsic"), (10.0,), tuple(range(42, 52)), epochs=40, measure=name)


def measure(trained: TrainedStack, splits: SplitStack, data: Dataset) -> dict[str, np.ndarray]:
    """Information about S on the test part of each model's split, in nats.

    ================== ======================================== ================================
    column             of                                       by
    ================== ======================================== ================================
    mi_reference       2 to 5 principal components of raw Z     closed counts, clamped at 0
    mi_closed          the same                                 closed counts
    mi_strict          the same                                 KSG as published
    mi_standardised    the same, each with variance 1           KSG as published
    mi_output          the output of the model's own head       KSG as published
    mi_probe           the linear guess of S from Z             KSG as published
    ================== ======================================== ================================

    ``*_zero`` is the estimate with the rows of S permuted. ``components`` is how many principal components were kept,
    ``scale`` the standard deviation of the first in units of that of S. O(n²) time for each model and column.
    """
    import torch

    from frhsic_core.paper.experiments.neighbours import ksg_information, principal_components, standardised

    z, output = trained.forward(splits.x_test)
    alive = torch.isfinite(z).all(-1).all(-1) & torch.isfinite(output).all(-1)
    z = torch.where(alive[:, None, None], z, 0.0)
    output = torch.where(alive[:, None], output, 0.0)
    which = torch.tensor(trained.dataset, device=z.device)
    s = splits.s_test[which].double()
    order = torch.randperm(s.shape[-1], generator=torch.Generator().manual_seed(0)).to(s.device)
    raw = torch.stack([s, s[:, order]])
    unit = standardised(s.unsqueeze(-1)).squeeze(-1)
    scaled = torch.stack([unit, unit[:, order]])
    components, number = principal_components(z)
    found: dict[str, Tensor] = {"components": number.double()}
    found["scale"] = components[..., 0].std(-1, correction=0) / s.std(-1, correction=0)
    information = ksg_information(components, raw, k=NEIGHBOURS)
    found["mi_reference"] = information.closed[0].clamp_min(0.0)
    for name, values in (("closed", information.closed), ("strict", information.strict)):
        found |= {f"mi_{name}": values[0], f"mi_{name}_zero": values[1]}
    for name, view in (
        ("standardised", components),
        ("output", output.unsqueeze(-1)),
        ("probe", _linear_guess(trained, splits, z, alive)),
    ):
        values = ksg_information(standardised(view, seed=1), scaled, k=NEIGHBOURS).strict
        found |= {f"mi_{name}": values[0], f"mi_{name}_zero": values[1]}
    return {name: torch.where(alive, value, torch.nan).cpu().numpy() for name, value in found.items()}


def _linear_guess(trained: TrainedStack, splits: SplitStack, z_test: Tensor, alive: Tensor) -> Tensor:
    """Least squares of S on the training Z, read off on the test Z; ``(models, n, 1)``."""
    import torch

    guesses = []
    step = 16  # models at a time: the training part of a whole stack in double precision would not fit
    z_train = trained.encode(splits.x_train)
    for first in range(0, trained.models, step):
        part = slice(first, first + step)
        z = torch.where(alive[part, None, None], z_train[part], 0.0).double()
        s = splits.s_train[torch.tensor(trained.dataset[part], device=z.device)].double()
        middle, level = z.mean(-2, keepdim=True), s.mean(-1, keepdim=True)
        z, s = z - middle, (s - level).unsqueeze(-1)
        gram = z.mT @ z
        size = gram.diagonal(dim1=-2, dim2=-1).mean(-1).clamp_min(torch.finfo(z.dtype).tiny)
        ridge = 1e-6 * size[:, None, None] * torch.eye(gram.shape[-1], dtype=z.dtype, device=z.device)
        guesses.append((z_test[part].double() - middle) @ torch.linalg.solve(gram + ridge, z.mT @ s))
    return torch.cat(guesses)
