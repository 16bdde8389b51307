"""Compare simple remedies with FRHSIC on the paper's five datasets: the same splits, the same score, the same GDP.

The ten splits are the first of the main sweep: with the corrected test, more of them hardly help. A unit is one dataset
and one split. The remedies are those of :mod:`frhsic_core.remedies`: erasers before a linear model or gradient
boosting, and adjusted scores after it. What a user hands over is the prediction of one model, so dependence is the GDP
of the prediction.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from frhsic_core.paper.experiments import every_method
from frhsic_core.paper.experiments.presets import DATASETS, SPLITS
from frhsic_core.paper.experiments.shared.paired import compare_all
from frhsic_core.paper.runs.plan import Study, units_of
from frhsic_core.paper.runs.stored import stored_rows

TEN = SPLITS["full"][:10]
STRENGTHS = (0.5, 0.75, 1.0)
MEASURE = "gdp_sample"
KEPT = ("performance", "gdp_reference", MEASURE)
TRAINED = ("frhsic", every_method.WHITENED)
FAMILIES = {"without": "simple, without S", "with": "simple, with S"}


def plan(preset: str) -> Study:
    """Return one unit for each split and dataset; ``smoke`` has one on 500 samples of the synthetic law."""
    if preset == "smoke":
        return Study("simple_remedies_smoke", "simple_remedies", units_of(split=42, dataset="synthetic"))
    return Study("simple_remedies", "simple_remedies", units_of(split=TEN, dataset=DATASETS))


def measure_unit(unit: dict[str, Any], device: str) -> list[dict[str, Any]]:
    """Return a row for each remedy, learner and strength: its score and the GDP of its predictions."""
    import torch

    from frhsic_core.paper.datasets import load_variant
    from frhsic_core.paper.runs.metrics import prediction_metrics
    from frhsic_core.paper.splits import stack_splits
    from frhsic_core.remedies.adjustment import logits
    from frhsic_core.remedies.attributes import read_attributes
    from frhsic_core.remedies.comparison import LEARNERS, REMEDIES, Sample, fit_predict

    synthetic = unit["dataset"] == "synthetic"
    data = load_variant(unit["dataset"], "text" if synthetic else "reference", n=500 if synthetic else None)
    splits = stack_splits(data, seeds=(unit["split"],))

    def numbers_of(x: torch.Tensor, y: torch.Tensor, s: torch.Tensor) -> Sample:
        x, y, s = (part[0].double() for part in (x, y, s))
        return x.numpy(), y.numpy(), read_attributes(s.numpy(), len(s))

    train = numbers_of(splits.x_train, splits.y_train, splits.s_train)
    test = numbers_of(splits.x_test, splits.y_test, splits.s_test)
    plain: dict[tuple[bool, str], np.ndarray] = {}
    rows = []
    for key, remedy in REMEDIES.items():
        for learner in LEARNERS:
            # The random features of the kernel eraser are made for linear models, and boosting on them is slow.
            if key == "encoder" or (key, learner) == ("kernel_eraser", "boosting"):
                continue
            found = fit_predict(key, learner, STRENGTHS, train, test, plain, task=splits.task, seed=0)
            for strength, predicted, seconds in found:
                output = predicted if splits.task == "regression" else logits(predicted)
                measured = prediction_metrics(
                    torch.from_numpy(output), splits.y_test[0], splits.s_test[0][:, None], task=splits.task, names=KEPT
                )
                row = {"method": key, "learner": learner, "strength": strength, "needs_s": remedy.needs_s}
                numbers = {name: round(value.item(), 6) for name, value in measured.items()}
                rows.append(row | {"task": splits.task} | numbers | {"cpu_seconds": round(seconds, 3)})
    return rows


# Tables --------------------------------------------------------------------------------------------------------------


def sides(simple: pd.DataFrame, trained: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of both sides with ``name`` and ``setting``; no remedy is a choice of both simple families."""
    parts = [every_method.pooled(trained[trained["name"].str.removesuffix(every_method.NARROW).isin(TRAINED)])]
    parts.append(trained[trained["name"] == "unfair"])
    words = simple["method"] + ", " + simple["learner"] + simple["strength"].map(", {:g}".format)
    for key, name in FAMILIES.items():
        own = (simple["needs_s"] == (key == "with")) | (simple["method"] == "none")
        parts.append(simple[own].assign(name=name, setting=words[own]))
    columns = ["dataset", "task", "split", "name", "setting", *KEPT]
    return pd.concat([part[columns] for part in parts], ignore_index=True)


def settings(rows: pd.DataFrame) -> pd.Series:
    """Return the number of settings that each side chooses from, by name."""
    return rows.groupby("name")["setting"].nunique()


def compared(matched: pd.DataFrame) -> pd.DataFrame:
    """Compare each trained form with each simple family on each dataset at the matched point, on common splits.

    ``matched`` is :func:`~frhsic_core.paper.experiments.every_method.matched` of :func:`sides`. ``verdict`` is that of
    the trained form by the corrected test, with Holm's correction over all lines: ``better``, ``worse`` or
    ``not_significant``; a family that keeps the score on no setting has no line.
    """
    pairs = []
    for dataset, part in matched.groupby("dataset", sort=False):
        wide = part.pivot(index="split", columns="name", values=MEASURE)
        for trained in TRAINED:
            for simple in FAMILIES.values():
                if {trained, simple} <= set(wide.columns):
                    both = wide[[trained, simple]].dropna().to_numpy().T
                    pairs.append(({"dataset": dataset, "trained": trained, "simple": simple}, *both))
    table = compare_all(pairs, higher=False)
    side = np.where(table["mean"] > 0, "better", "worse")
    return table.assign(verdict=np.where(table["p_corrected_holm"] < 0.05, side, "not_significant"))


def stored_sides() -> pd.DataFrame:
    """Return :func:`sides` of the stored rows."""
    return sides(stored_rows("simple_remedies"), every_method.sweep_rows())
