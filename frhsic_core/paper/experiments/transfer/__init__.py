"""Transfer: freeze each representation, train four fresh heads on it, and measure the GDP of each.

The paper's table takes GDP of logits for the linear head and the MLP and of hard labels for the forest and the SVM.
Here every head has that number and GDP on one scale for all four: of probabilities as defined, of probabilities over
the uniform grid, and of labels.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from frhsic_core.paper.experiments.presets import DATASETS, LIVE, METHODS, SPLITS, settings, smoke
from frhsic_core.paper.runs.plan import Experiment, Task

if TYPE_CHECKING:
    from torch import Tensor

    from frhsic_core.data.dataset import Dataset
    from frhsic_core.learning.stack import TrainedStack
    from frhsic_core.paper.experiments.transfer.fresh_heads import Prediction
    from frhsic_core.paper.splits import SplitStack

HEADS = ("linear", "mlp", "forest", "svm")
LAMS = (10.0, 100.0)
# FRHSIC where neither scale nor bandwidth can be evaded, with the head's output penalised as well.
RECOMMENDED = settings(estimator="normalized", scale="standardize", bandwidth="every_batch", on="both")
# A forest takes 10 to 30 s of a core on more rows than these: there it is fitted at the first λ only.
FOREST_ROWS = 6000


def plan(preset: str) -> Experiment:
    """Return seven methods and one more form of FRHSIC, λ = 10 and 100, five splits, four heads."""
    protocol = "text" if preset == "text" else "reference"
    tasks = tuple(Task(dataset, protocol, protocol) for dataset in DATASETS)
    methods = tuple(name for name in METHODS if name != "laftr")
    full = Experiment("transfer", tasks, methods, LAMS, SPLITS["text"], measure="transfer")
    normalized = replace(full, methods=("frhsic",), options=(("normalised, both", RECOMMENDED),))
    if preset == "smoke":
        return smoke(replace(full, methods=("unfair", "frhsic"), also=(normalized,)), lams=LAMS, epochs=3)
    return replace(full, also=(normalized, live()))


def live() -> Experiment:
    """Return two methods on a small sample of the synthetic law: what the chapter's live cell repeats."""
    splits = tuple(range(42, 52))
    return Experiment("transfer", (LIVE,), ("unfair", "frhsic"), LAMS[:1], splits, epochs=40, measure="transfer")


def measure(trained: TrainedStack, splits: SplitStack, data: Dataset) -> dict[str, np.ndarray]:
    """Train four heads on each frozen representation of the stack, and measure performance and GDP of each.

    Columns are ``HEAD_WHAT`` with HEAD one of ``HEADS`` and WHAT ``performance`` (accuracy or mean squared error),
    ``gdp_mixed`` (the paper's: logits of the first two heads, labels of the last two, uniform grid), ``gdp_sample``
    (probabilities, averaged over the people there are: the definition), ``gdp_uniform`` (probabilities, uniform grid)
    and ``gdp_label`` (labels, averaged over the people). For a regression all but the weights agree. The forest of a
    large dataset is left out (NaN) beyond the first λ, see ``FOREST_ROWS``.
    """
    import torch

    from frhsic_core.paper.experiments.transfer.fresh_heads import forest_head, neural_heads, svm_head

    which = torch.tensor(trained.dataset, device=splits.y_train.device)
    z_train = trained.encode(splits.x_train)
    z_test = trained.encode(splits.x_test)
    alive = torch.isfinite(z_train).all(-1).all(-1) & torch.isfinite(z_test).all(-1).all(-1)
    z_train, z_test = (torch.where(alive[:, None, None], z, 0.0) for z in (z_train, z_test))
    y_train = splits.y_train[which]
    y = splits.y_test[which]
    s = splits.s_test[which].double()
    task = data.task
    heads = neural_heads(z_train, y_train, z_test, seeds=trained.seeds, task=task)
    heads["svm"] = svm_head(z_train, y_train, z_test, task=task)
    fitted = torch.ones(trained.models, dtype=torch.bool)
    if z_train.shape[1] > FOREST_ROWS:
        fitted = trained.lam <= LAMS[0]
    found: dict[str, np.ndarray] = {}
    for name, prediction in heads.items():
        found |= _columns(name, prediction, y, s, task, alive)
    chosen = fitted.nonzero().squeeze(-1).to(z_train.device)
    if len(chosen):
        forest = forest_head(z_train[chosen], y_train[chosen], z_test[chosen], task=task)
        part = _columns("forest", forest, y[chosen], s[chosen], task, alive[chosen])
    for name in [name for name in found if name.startswith("linear_")]:
        column = np.full(trained.models, np.nan)
        if len(chosen):
            column[chosen.cpu().numpy()] = part[name.replace("linear", "forest")]
        found[name.replace("linear", "forest")] = column
    return found


def _columns(
    name: str, prediction: Prediction, y: Tensor, s: Tensor, task: str, alive: Tensor
) -> dict[str, np.ndarray]:
    import torch

    from frhsic_core.conditional import gdp
    from frhsic_core.paper.smoothed_gdp import smoothed_gdp

    y = y.double()
    hit = (prediction.label == y).double() if task == "classification" else (prediction.label - y).square()
    values = {
        "performance": hit.mean(-1),
        "gdp_mixed": gdp(prediction.score, s, estimator="authors", check_finite=False),
        "gdp_sample": smoothed_gdp(prediction.probability, s, bandwidth=0.1),
        "gdp_uniform": smoothed_gdp(prediction.probability, s, average="uniform", bandwidth=0.1),
        "gdp_label": smoothed_gdp(prediction.label, s, bandwidth=0.1),
    }
    return {f"{name}_{what}": torch.where(alive, value, torch.nan).cpu().numpy() for what, value in values.items()}
