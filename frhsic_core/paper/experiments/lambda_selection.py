"""Choosing λ on a validation part: by an independence test, as the paper proposes, and by performance and GDP.

70 % of the rows train, 15 % choose, 15 % report. Every method of the main table is trained, so that the comparison of
methods, which the paper makes at the λ that is best on the *test* part, can be made at the λ chosen on the validation
part instead. The paper's rule is for FRHSIC; its tests are asked of every method.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from frhsic_core.paper.experiments.presets import DATASETS, GRIDS, METHODS
from frhsic_core.paper.runs.plan import Experiment, Task

if TYPE_CHECKING:
    from torch import Tensor

    from frhsic_core.data.dataset import Dataset
    from frhsic_core.data.splits import SplitStack
    from frhsic_core.learning.trained import TrainedStack

__all__ = ["FRACTIONS", "SPLITS", "TEST_ROWS", "measure", "plan"]

FRACTIONS = (0.7, 0.15, 0.15)
# The paper's experiment has three splits, 42 to 44.
SPLITS = {"text": tuple(range(42, 45)), "full": tuple(range(42, 52))}
# The released test looks at 1,000 random validation rows, or at all where there are fewer.
TEST_ROWS = 1000
PERMUTATIONS = 199


def plan(preset: str) -> Experiment:
    """``text``: FRHSIC on the paper's three datasets and splits; ``full``: eight methods, five datasets, ten splits.

    ``full`` trains the reference protocol, and FRHSIC on the paper's three datasets in the text's as well.
    """
    if preset == "smoke":
        task = Task("synthetic", "text", "reference", (("n", 600),))
        return _sweep("lambda_selection_smoke", (task,), ("unfair", "frhsic"), (1.0, 50.0), (42, 43), epochs=2)
    tasks = tuple(Task(name, "text", "text") for name in ("crime", "compas", "adult"))
    text = _sweep("lambda_selection", tasks, ("unfair", "frhsic"), GRIDS["full"], SPLITS[preset])
    if preset == "text":
        return text
    tasks = tuple(Task(name, "reference", "reference") for name in DATASETS)
    full = _sweep("lambda_selection", tasks, METHODS, GRIDS["full"], SPLITS["full"])
    return replace(full, also=(text, live_sweep()))


def live_sweep(splits: tuple[int, ...] = SPLITS["full"]) -> Experiment:
    """FRHSIC on the synthetic law, small enough for a laptop: what the chapter's live cell repeats."""
    task = Task("synthetic", "text", "reference", (("n", 2000),))
    return _sweep("", (task,), ("frhsic",), (1.0, 50.0), splits, epochs=40)


def _sweep(
    name: str,
    tasks: tuple[Task, ...],
    methods: tuple[str, ...],
    lams: tuple[float, ...],
    splits: tuple[int, ...],
    *,
    epochs: int = 200,
) -> Experiment:
    return Experiment(
        name, tasks, methods, lams, splits, epochs=epochs, fractions=FRACTIONS, measure="lambda_selection"
    )


def measure(trained: TrainedStack, splits: SplitStack, data: Dataset) -> dict[str, Tensor]:
    """The tests of :mod:`frhsic_core.paper.experiments.lambda_tests` between Z and S on the validation part.

    On ``TEST_ROWS`` random rows (``validation_rows`` says how many there were) under the names given there, and on all
    rows with the suffix ``_all``, without permutations; ``validation_rows_all`` is their number.
    """
    import torch

    from frhsic_core.paper.experiments.lambda_tests import thresholds

    assert splits.x_validation is not None
    assert splits.s_validation is not None
    which = torch.tensor(trained.dataset, device=splits.x_validation.device)
    z = trained.encode(splits.x_validation)
    alive = torch.isfinite(z).all(-1).all(-1)
    z, s = torch.where(alive[:, None, None], z, 0.0), splits.s_validation[which]
    n = z.shape[-2]
    # One random order for each split: the rows tested first are the released test's.
    orders = [torch.randperm(n, generator=torch.Generator().manual_seed(seed)) for seed in splits.seeds]
    order = torch.stack(orders).to(z.device)[which]
    z, s = torch.take_along_dim(z, order.unsqueeze(-1), 1), torch.take_along_dim(s, order, 1)
    rows = min(TEST_ROWS, n)
    found = thresholds(z[:, :rows], s[:, :rows], permutations=PERMUTATIONS)
    found |= {f"{name}_all": value for name, value in thresholds(z, s).items()}
    found = {name: torch.where(alive.cpu(), value, torch.nan) for name, value in found.items()}
    sizes = {"validation_rows": rows, "validation_rows_all": n}
    return found | {name: torch.full((len(z),), float(value)) for name, value in sizes.items()}
