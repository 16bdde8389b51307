"""Equal opportunity on Adult and COMPAS: which rows the penalty sees, and which bandwidths it has, varied singly.

The paper's table (``tab:eo``) compares FRHSIC on all rows (DP) with FRHSIC on the rows with y = 1 (EO). In the released
code the two arms differ in the bandwidths as well: medians in one, σ = 1 on both sides in the other. Here both rules
are trained on both sets of rows, so that the two changes can be told apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from frhsic_core.paper.experiments.presets import SPLITS
from frhsic_core.paper.runs.plan import Experiment, Settings, Task

if TYPE_CHECKING:
    from torch import Tensor

    from frhsic_core.data.dataset import Dataset
    from frhsic_core.data.splits import SplitStack
    from frhsic_core.learning.trained import TrainedStack

__all__ = ["ARMS", "GRIDS", "measure", "plan"]

# The text names four λ; the released script has 5 as well. The two large ones are ours.
GRIDS = {"text": (0.1, 1.0, 10.0, 50.0), "full": (0.1, 1.0, 5.0, 10.0, 50.0, 100.0, 500.0)}
DATASETS = ("compas", "adult")
_BIASED: Settings = (("estimator", "biased"), ("scale", None))
_MEDIANS: Settings = (*_BIASED, ("bandwidth", "reference"), ("bandwidth_s", "first_1000"))
_UNIT: Settings = (*_BIASED, ("bandwidth", 1.0), ("bandwidth_s", 1.0))
_TEXT: Settings = (*_BIASED, ("bandwidth", "every_20_epochs"), ("bandwidth_s", "median"))
# The released EO penalty is zero in a batch with ten positives or fewer.
_POSITIVES: Settings = (("condition", "positives"), ("minimum_rows", 11))
#: Rows the penalty sees × bandwidth rule, reference protocol. ``dp`` and ``eo`` are the arms of the paper's table.
ARMS: dict[str, Settings] = {
    "dp": _MEDIANS,
    "eo": (*_UNIT, *_POSITIVES),
    "eo_medians": (*_MEDIANS, *_POSITIVES),
    "dp_unit": _UNIT,
}
# The text states one bandwidth rule and no other for EO.
TEXT_ARMS: dict[str, Settings] = {"dp": _TEXT, "eo": (*_TEXT, *_POSITIVES)}


def plan(preset: str) -> Experiment:
    """Both arms, and in ``full`` both bandwidth rules on both sets of rows; Unfair beside them."""
    if preset == "smoke":
        task = Task("synthetic", "text", "reference", (("n", 600),))
        return _arms("equal_opportunity_smoke", (task,), ARMS, (1.0, 50.0), (42, 43), epochs=2)
    tasks = tuple(Task(name, "text", "text") for name in DATASETS)
    if preset == "text":
        return _arms("equal_opportunity", tasks, TEXT_ARMS, GRIDS["text"], SPLITS["text"])
    text = _arms("", tasks, TEXT_ARMS, GRIDS["full"], SPLITS["full"])
    reference = tuple(Task(name, "reference", "reference") for name in DATASETS)
    also = (text, live_arms(), _again(reference))
    return _arms("equal_opportunity", reference, ARMS, GRIDS["full"], SPLITS["full"], also=also)


def _again(tasks: tuple[Task, ...]) -> Experiment:
    """Train the two arms of the paper's table four times more on its λ and five splits, from other initial weights."""
    arms = tuple((name, ARMS[name]) for name in ("dp", "eo"))
    return Experiment(
        "",
        tasks,
        ("frhsic",),
        GRIDS["text"],
        SPLITS["text"],
        repeats=(1, 2, 3, 4),
        options=arms,
        measure="equal_opportunity",
    )


def live_arms(splits: tuple[int, ...] = SPLITS["full"]) -> Experiment:
    """Two arms on the synthetic law, small enough for a laptop: what the chapter's live cell repeats."""
    task = Task("synthetic", "text", "reference", (("n", 2000),))
    arms = {name: ARMS[name] for name in ("dp", "eo_medians")}
    return _arms("", (task,), arms, (1.0,), splits, epochs=40)


def _arms(
    name: str,
    tasks: tuple[Task, ...],
    arms: dict[str, Settings],
    lams: tuple[float, ...],
    splits: tuple[int, ...],
    *,
    epochs: int = 200,
    also: tuple[Experiment, ...] = (),
) -> Experiment:
    unfair = Experiment("", tasks, ("unfair",), lams, splits, epochs=epochs, measure="equal_opportunity")
    return Experiment(
        name,
        tasks,
        ("frhsic",),
        lams,
        splits,
        options=tuple(arms.items()),
        epochs=epochs,
        measure="equal_opportunity",
        also=(unfair, *also),
    )


def measure(trained: TrainedStack, splits: SplitStack, data: Dataset) -> dict[str, Tensor]:
    """What equal opportunity asks of every model, on the test rows with y = 1.

    ``eo_gdp_reference`` (logits, 50 equally spaced values: the paper's), ``eo_gdp_uniform`` and ``eo_gdp_sample``
    (probabilities; the last is the definition), ``eo_positive`` the share of them predicted positive, and, of as many
    of them as every split has, the probes, distance correlation and normalised HSIC of
    :func:`frhsic_core.learning.audit.audit_representation` under the prefix ``eo_``.
    """
    import torch

    from frhsic_core.conditional import gdp
    from frhsic_core.learning.audit import audit_representation

    with torch.no_grad():
        which = torch.tensor(trained.dataset, device=splits.x_test.device)
        z, output = trained.forward(splits.x_test)
        alive = torch.isfinite(z).all(-1).all(-1) & torch.isfinite(output).all(-1)
        z, output = torch.where(alive[:, None, None], z, 0.0), torch.where(alive[:, None], output, 0.0).double()
        s, kept = splits.s_test[which].double(), splits.y_test[which] > 0.5
        probability = torch.sigmoid(output)
        found = {
            "eo_gdp_reference": gdp(output, s, reference=True, mask=kept, check_finite=False),
            "eo_gdp_uniform": gdp(probability, s, weights="uniform", bandwidth=0.1, mask=kept, check_finite=False),
            "eo_gdp_sample": gdp(probability, s, weights="sample", bandwidth=0.1, mask=kept, check_finite=False),
            "eo_positive": ((output > 0) & kept).double().sum(-1) / kept.sum(-1).clamp_min(1),
        }
        rows = kept.double().argsort(dim=-1, descending=True, stable=True)[:, : positives_in(data, s.shape[-1])]
        audit = audit_representation(
            torch.take_along_dim(z, rows.unsqueeze(-1), 1),
            torch.take_along_dim(s, rows, 1).unsqueeze(-1),
            max_rows=1000,
            chunk=64 if z.device.type == "cuda" else 8,
        ).as_dict()
        for name in ("linear_r2", "nonlinear_r2", "distance_correlation", "normalized_hsic_1"):
            found[f"eo_{name}"] = torch.tensor(audit[name])
        return {name: torch.where(alive.cpu(), value.double().cpu(), torch.nan) for name, value in found.items()}


def positives_in(data: Dataset, rows: int) -> int:
    """How many positives a random part of so many rows has at least: four standard deviations below the mean.

    A number that depends on the data alone, so that what is measured of a model does not depend on its neighbours.
    """
    share = float((data.y > 0.5).mean())
    return max(10, int(rows * share - 4.0 * (rows * share * (1.0 - share)) ** 0.5))
