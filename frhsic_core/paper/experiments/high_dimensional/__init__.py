"""A vector S: what it does to the estimators, to the power of a test, and to what training reaches.

The paper's appendix on high-dimensional attributes (``sec:highdim_S``) compares times (they are in
:mod:`frhsic_core.paper.experiments.cost`, part ``dimension``) and says that the conditional route loses
statistically. Units of part

- ``error``: estimators of HSIC and of the conditional integral against exact values, S Gaussian with p coordinates;
- ``power``: permutation tests at equal n;
- ``columns``: how much each of the paper's columns of Adult adds to a distance;
- ``training``: Adult, S made of d named columns: what is left of each attribute, over splits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from frhsic_core.paper.experiments.cost import ADULT_ROWS, DIMENSIONS, LAM, SIGMA_S, SMOOTHING, attributes
from frhsic_core.paper.experiments.presets import settings
from frhsic_core.paper.runs.jobs import Samples, run_job
from frhsic_core.paper.runs.plan import Job, Recipe, Settings, Study, Task, units_of

if TYPE_CHECKING:
    from torch import Tensor

    from frhsic_core.data.dataset import Dataset
    from frhsic_core.learning.stack import TrainedStack
    from frhsic_core.paper.splits import SplitStack

COORDINATES = (1, 2, 3, 4, 5, 8, 12)
#: Rows of a sample, and how many samples: one estimate of EIPM takes n² exponentials for each of its bandwidths.
SIZES = {256: 200, 500: 100, 1_000: 48, 2_000: 24}
#: Smoothing bandwidths that EIPM may choose from.
GAMMAS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.4, 2.0)
LAMS = (1.0, LAM["dimension"])
TEST_ROWS = 2_000
NAMES = ("age", "capital-gain", "capital-loss", "hours-per-week")


#: Method and settings. Fixed bandwidths are those of the appendix; normalised is the form recommended here.
CASES: dict[str, tuple[str, Settings]] = {
    "unfair": ("unfair", ()),
    "frhsic, fixed": ("frhsic", settings(estimator="biased", scale=None, bandwidth=1.0, bandwidth_s=SIGMA_S)),
    "frem, fixed": ("frem", settings(smoothing=SMOOTHING, anchors=32, power=1, bandwidth=1.0, scale=None)),
    "frhsic, normalised": (
        "frhsic",
        settings(estimator="normalized", scale="standardize", bandwidth="every_batch", bandwidth_s="median"),
    ),
}


def _parts(values: np.ndarray, seeds: Sequence[int], device: str) -> tuple[Tensor, Tensor]:
    """Return ``ADULT_ROWS`` training and ``TEST_ROWS`` test rows of each split, scaled to [0, 1] by the former."""
    import torch

    orders = np.stack([np.random.RandomState(seed).permutation(len(values)) for seed in seeds])
    train, test = (
        torch.as_tensor(np.asarray(values, dtype=np.float64)[rows], device=device)
        for rows in (orders[:, :ADULT_ROWS], orders[:, ADULT_ROWS : ADULT_ROWS + TEST_ROWS])
    )
    low = train.amin(1, keepdim=True)
    width = train.amax(1, keepdim=True) - low
    width = torch.where(width > 0, width, 1.0)
    return (train - low) / width, (test - low) / width


class _Columns(Samples):
    """Gives Adult with S made of d columns, and splits of a fixed number of rows."""

    def dataset(self, task: Task) -> Dataset:
        """Return Adult with the columns of a task."""
        return attributes(dict(task.options)["d"], n=None)

    def splits(self, job: Job) -> SplitStack:
        """Return the splits of a stack on the device."""
        from frhsic_core.paper.splits import SplitStack

        data = self.dataset(job.recipe.task)
        columns = {"x": data.X, "s": data.s.reshape(data.n, -1), "y": data.y}
        found: dict[str, Any] = {}
        for name, values in columns.items():
            found[f"{name}_train"], found[f"{name}_test"] = _parts(values, job.splits, self.device)
        found["x_test"] = found["x_test"].float()
        return SplitStack(**found, seeds=job.splits, task=data.task, name="adult")


def measure(trained: TrainedStack, splits: SplitStack, data: Dataset) -> dict[str, Tensor]:
    """Measure every model on the test rows: columns ``"ATTRIBUTE: MEASURE"``, with ATTRIBUTE ``all`` or one name."""
    import torch

    from frhsic_core.audit.probes import linear_features, probe_r2, random_features
    from frhsic_core.audit.representation import audit_representation
    from frhsic_core.conditional import gdp

    device = splits.x_test.device
    which = torch.tensor(trained.dataset, device=device)
    _, every = _parts(attributes(len(NAMES), n=None).s, splits.seeds, str(device))
    z, output = trained.forward(splits.x_test)
    chunk = 64 if device.type == "cuda" else 8
    audit = audit_representation(z, splits.s_test[which], max_rows=500, features=100, chunk=chunk)
    labels = splits.y_test[which]
    share = labels.mean(-1)
    found = {
        "all: accuracy": ((output > 0) == (labels > 0.5)).double().mean(-1),
        "all: constant": torch.maximum(share, 1.0 - share),
        "all: normalized_hsic": audit.normalized_hsic[..., 1],
        "all: floor": audit.floor[..., 1],
        "all: distance_correlation": audit.distance_correlation,
    }
    linear = linear_features(z.double())
    curved = random_features(z.double(), features=200)
    for a, name in enumerate(NAMES):
        own = every[which][..., a]
        found |= {
            f"{name}: gdp_reference": gdp(output.double(), own, reference=True),
            f"{name}: gdp_sample": gdp(torch.sigmoid(output.double()), own, weights="sample", bandwidth=0.1),
            f"{name}: linear_r2": probe_r2(linear, own.unsqueeze(-1)),
            f"{name}: nonlinear_r2": probe_r2(curved, own.unsqueeze(-1)),
        }
    return {name: value.cpu() for name, value in found.items()}


def train(
    case: str, d: int, *, lams: tuple[float, ...], splits: tuple[int, ...], epochs: int, device: str
) -> list[dict[str, Any]]:
    """Train on ``ADULT_ROWS`` rows of each split, S having d columns, and measure on ``TEST_ROWS`` others.

    A row for each attribute and model; ``notes`` where the training warned.
    """
    method, chosen = CASES[case]
    task = Task("adult", "text", "reference", (("d", d),))
    recipe = Recipe(task, method, settings=chosen, epochs=epochs, measure="high_dimensional")
    job = Job(recipe, lams if method != "unfair" else (0.0,), splits)
    part = run_job(job, samples=_Columns(device))
    notes = {"notes": "; ".join(part.provenance["notes"])} if part.provenance["notes"] else {}
    rows = []
    for attribute in ("all", *NAMES):
        own = {
            name.partition(": ")[2]: values
            for name, values in part.metrics.items()
            if name.startswith(f"{attribute}: ")
        }
        for m, (lam, split, _) in enumerate(job.models):
            found = {name: float(f"{values[m]:.5g}") for name, values in own.items()}
            rows.append({"lam": lam, "split": split, "attribute": attribute, **found, **notes})
    return rows


def column_shares() -> list[dict[str, Any]]:
    """Return what each scaled column adds to the squared distance of two people, and how often they agree in it."""
    data = attributes(5, n=None)
    s = (data.s - data.s.min(0)) / (data.s.max(0) - data.s.min(0))
    # The mean squared difference of two draws is twice the variance.
    variance = s.var(axis=0)
    return [
        {
            "attribute": name,
            "share": float(f"{variance[a] / variance.sum():.4g}"),
            "sd": float(f"{variance[a] ** 0.5:.4g}"),
            "agree": float(f"{((np.unique(s[:, a], return_counts=True)[1] / data.n) ** 2).sum():.4g}"),
        }
        for a, name in enumerate(data.sensitive_names)
    ]


def measure_unit(unit: dict[str, Any], device: str) -> list[dict[str, Any]]:
    """Measure a unit of one of the four parts."""
    if unit["part"] == "columns":
        return column_shares()
    if unit["part"] == "training":
        splits = tuple(range(42, 42 + unit["splits"]))
        return train(unit["case"], unit["d"], lams=LAMS, splits=splits, epochs=unit["epochs"], device=device)
    from frhsic_core.paper.experiments.high_dimensional import vector_attribute

    if unit["part"] == "power":
        return vector_attribute.power(
            unit["rho"], unit["p"], unit["n"], replications=unit["replications"],
            permutations=unit["permutations"], device=device,
        )  # fmt: skip
    return vector_attribute.errors(
        unit["rho"], unit["p"], unit["n"], replications=unit["replications"], gammas=GAMMAS, device=device
    )


def plan(preset: str) -> Study:
    """Return the units; ``text`` is the training of the paper's columns alone."""
    if preset == "smoke":
        units = (
            *units_of(part="error", rho=0.5, p=(1, 3), n=64, replications=4),
            *units_of(part="power", rho=0.3, p=2, n=32, replications=5, permutations=19),
        )
        return Study("high_dimensional_smoke", "high_dimensional", units)
    # The ends and the middle first, so that a run that was cut short shows the whole range.
    order = tuple(sorted(DIMENSIONS, key=lambda d: d % 2 == 0))
    training = units_of(part="columns") + units_of(part="training", d=order, case=tuple(CASES), splits=5, epochs=200)
    if preset == "text":
        return Study("high_dimensional", "high_dimensional", training)
    # The null shows the floor of each estimator.
    errors = [
        unit
        for n, replications in SIZES.items()
        for unit in units_of(part="error", rho=(0.5, 0.0), p=COORDINATES, n=n, replications=replications)
    ]
    tests = units_of(part="power", rho=(0.3, 0.0), p=COORDINATES, n=128, replications=400, permutations=99)
    return Study("high_dimensional", "high_dimensional", (*errors, *tests, *training))


def best_smoothing(rows: pd.DataFrame, estimator: str) -> pd.DataFrame:
    """Return for each p and n the smoothing bandwidth with the least root mean squared error, among those tried.

    Choosing it needs the truth, so that it flatters the estimator, on purpose.
    """
    kept = rows[(rows["estimator"] == estimator) & (rows["rho"] > 0) & (rows["rule"] != "silverman")].copy()
    kept["rmse"] = np.hypot(kept["mean"] - kept["truth"], kept["sd"])
    return kept.loc[kept.groupby(["p", "n"])["rmse"].idxmin()].reset_index(drop=True)
