"""What is left of the dependence when the score is kept: the trained methods, and simple remedies beside FRHSIC.

The trained methods come from the stored sweeps ``main``, ``variants_best`` and ``recommended_test`` (25 splits). The
table ``simple_remedies`` has the remedies of :mod:`frhsic_core.remedies` on the same five datasets, with the same score
and the same GDP: erasers before a linear model or gradient boosting, and adjusted scores after it. Its ten splits are
the first of the main sweep: with the corrected test, more of them hardly help. A unit is one dataset and one split.
What a user hands over is the prediction of one model, so its dependence is the GDP of the prediction.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from frhsic_core.paper.experiments import DATASETS, SPLITS
from frhsic_core.paper.experiments.comparison import compare_all, matched_index, mean_of_others
from frhsic_core.paper.experiments.variants import RECOMMENDED
from frhsic_core.paper.runs.plan import Experiment, units_of
from frhsic_core.paper.stored import stored_rows
from frhsic_core.registry import METHODS, SWEEP_DATASETS, labels

if TYPE_CHECKING:
    from matplotlib.figure import Figure


WHITENED = "frhsic_whitened"  # the recommended form
# The two measures of the figure: what the prediction reveals, and what the representation reveals.
SHOWN = labels(("gdp_sample", "nonlinear_r2"))
TEN = SPLITS["full"][:10]
STRENGTHS = (0.5, 0.75, 1.0)
# The models without a remedy come first: the others are blended with them.
SIMPLE = (
    "none",
    "none_with_s",
    "leace",
    "leace_spline",
    "kernel_eraser",
    "project",
    "adjust_mean",
    "adjust_rank",
)
MEASURE = "gdp_sample"
KEPT = ("performance", "gdp_reference", MEASURE)
TRAINED = ("frhsic", WHITENED)
FAMILIES = {"without": "simple, without S", "with": "simple, with S"}


def label(name: str) -> str:
    """Return the name of a trained method in figures and tables."""
    return "FRHSIC, whitened (recommended)" if name == WHITENED else METHODS[name].label


def plan_simple_remedies() -> Experiment:
    """Return one unit for each split and dataset."""
    return Experiment("simple_remedies", units_of("simple_remedies", split=TEN, dataset=DATASETS))


def measure_unit_simple_remedies(unit: dict[str, Any], device: str) -> list[dict[str, Any]]:
    """Return a row for each remedy, learner and strength: its score and the GDP of its predictions."""
    import torch

    from frhsic_core.paper.datasets import load_variant, stack_splits
    from frhsic_core.paper.runs.jobs import prediction_metrics
    from frhsic_core.remedies import learners
    from frhsic_core.remedies.attributes import read_attributes
    from frhsic_core.remedies.catalog import REMEDIES
    from frhsic_core.remedies.cross_fits import Predictor
    from frhsic_core.remedies.links import LOGIT
    from frhsic_core.remedies.people import People
    from frhsic_core.remedies.plain import plain_of
    from frhsic_core.remedies.remedy import Blend, Path
    from frhsic_core.remedies.tasks import TASKS

    data = load_variant(unit["dataset"], "reference", n=unit.get("n"))
    splits = stack_splits(data, seeds=(unit["split"],))

    def numbers_of(x: torch.Tensor, y: torch.Tensor, s: torch.Tensor) -> People:
        attributes = s[0].double().numpy()
        frame = read_attributes(attributes, len(attributes))
        return People(x[0].double().numpy(), y[0].double().numpy(), frame, TASKS[splits.task])

    train = numbers_of(splits.x_train, splits.y_train, splits.s_train)
    test = numbers_of(splits.x_test, splits.y_test, splits.s_test)
    plain: dict[tuple[str, str], Predictor] = {}
    rows = []
    for key in SIMPLE:
        remedy = REMEDIES[key]
        for learner in learners.LEARNERS:
            # The random features of the kernel eraser are made for linear models, and boosting on them is slow.
            if (key, learner) == ("kernel_eraser", "boosting"):
                continue
            strengths: tuple[float, ...] = STRENGTHS
            path: Path
            with warnings.catch_warnings(action="ignore"):
                if remedy.is_plain:
                    strengths = remedy.strengths
                    plain[key, learner] = remedy.fit(train, learner)
                    path = Blend(None, plain[key, learner], strengths)
                else:
                    without = plain[plain_of(remedy).key, learner]
                    path = remedy.fit_path(train, learner, strengths, plain=without)
            every = path(test.x, test.s)
            for strength, predicted in zip(strengths, every, strict=True):
                output = predicted if splits.task == "regression" else LOGIT.of(predicted)
                measured = prediction_metrics(
                    torch.from_numpy(output),
                    splits.y_test[0],
                    splits.s_test[0][:, None],
                    task=splits.task,
                )
                row = {
                    "method": key,
                    "learner": learner,
                    "strength": strength,
                    "needs_s": remedy.needs_s,
                }
                numbers = {name: round(measured[name].item(), 6) for name in KEPT}
                rows.append(row | {"task": splits.task} | numbers)
    return rows


# Tables --------------------------------------------------------------------------------------------------------------


def sweep_rows() -> pd.DataFrame:
    """Return the rows of every trained method in the reference protocol, with the columns ``name`` and ``setting``.

    A method of the paper may choose the dimension of its Z: fifty as published, or four as the recommended form has it.
    """
    main = stored_rows("main")
    main = main[(main["variant"] == "reference") & (main["protocol"] == "reference")]
    best = stored_rows("variants_best")
    narrow = best[best["option"] == "narrow"]
    test = stored_rows("recommended_test")
    test = test[test["option"] == RECOMMENDED.partition(":")[2]]
    parts = [
        main.assign(name=main["method"]),
        narrow.assign(name=narrow["method"]),
        test.assign(name=WHITENED),
    ]
    rows = pd.concat(parts, ignore_index=True)
    return rows.assign(setting=rows["option"].astype(str) + rows["lam"].map(" {:g}".format))


def matched(rows: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Return the matched row of each dataset, method and split; the setting is chosen on the other splits.

    The setting is the one with the least dependence whose score is within 1 % of Unfair's. A method without such a
    setting is left out. ``share`` is the dependence divided by Unfair's on the same split.
    """
    found = []
    for _, part in rows.groupby("dataset", sort=False):
        higher = part["task"].iloc[0] != "regression"
        unfair = part[part["name"] == "unfair"].set_index("split")
        for _, own in part.groupby("name", sort=False):
            indexed = own.set_index(["setting", "split"], drop=False)
            score, dependence = (
                indexed[column].unstack("split") for column in ("performance", measure)
            )
            whole = score.columns[score.notna().all() & dependence.notna().all()]
            base = unfair.loc[whole]
            kept = [values[whole].to_numpy().T for values in (score, dependence)]
            first, second = map(mean_of_others, kept)
            level = mean_of_others(base["performance"].to_numpy())
            place = matched_index(first, second, level, higher=higher)
            if (place < 0).any():
                continue
            rows_of = indexed.loc[list(zip(score.index[place], whole, strict=True))]
            found.append(
                rows_of.assign(share=rows_of[measure].to_numpy() / base[measure].to_numpy())
            )
    return pd.concat(found, ignore_index=True)


def compared_with_best(table: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Compare each method with the best on its dataset: means over splits, and a corrected test with Holm's correction.

    The best has the least mean dependence among the methods with the most complete splits. The columns are ``share``
    (of Unfair's dependence), ``worse`` (significantly) and, but for the best, those of
    :func:`~frhsic_core.paper.experiments.comparison.compare_all`.
    """
    leaders, pairs = [], []
    for dataset, part in table.groupby("dataset", sort=False):
        wide = part.pivot(index="split", columns="name", values=measure)
        counts = wide.notna().sum()
        best = wide[counts.index[counts == counts.max()]].mean().idxmin()
        for name, share in part.groupby("name")["share"].mean().items():
            labels = {"dataset": dataset, "name": name, "best": best, "share": share}
            if name == best:
                leaders.append(labels)
            else:
                pairs.append((labels, (wide[best] - wide[name]).dropna().to_numpy()))
    found = pd.concat([pd.DataFrame(leaders), compare_all(pairs)], ignore_index=True)
    return found.assign(worse=found["verdict_corrected"] == "worse")


def draw() -> Figure:
    """Draw the share of Unfair's dependence that is left by each trained method when at most 1 % of the score is lost.

    One panel for each measure of ``SHOWN``, a row for each method and a column for each dataset. Pale is little
    dependence. A method chooses its λ and the dimension of its Z. A bold number is not significantly worse than the
    best method of its column. Gray: the method has no setting that keeps the score, or is not stored.
    """
    import matplotlib.pyplot as plt

    rows = sweep_rows()
    found = {
        m: compared_with_best(matched(rows, m), m).set_index(["name", "dataset"]) for m in SHOWN
    }
    shares = pd.concat(
        [table["share"].unstack("dataset") for table in found.values()], axis=1
    ).drop(index="unfair")
    names = list(shares.clip(upper=1.0).fillna(1.0).mean(axis=1).sort_values(kind="stable").index)
    datasets = list(SWEEP_DATASETS)
    figure, axes = plt.subplots(
        1, 2, figsize=(7.6, 1.3 + 0.29 * len(names)), sharey=True, layout="constrained"
    )
    for axis, (measure, words) in zip(axes, SHOWN.items(), strict=True):
        table = found[measure]
        values = table["share"].unstack("dataset").reindex(index=names, columns=datasets)
        axis.set_facecolor("0.9")
        image = axis.imshow(
            100 * values.to_numpy(float), cmap="OrRd", vmin=0, vmax=100, aspect="auto"
        )
        for i, name in enumerate(names):
            for j, dataset in enumerate(datasets):
                value = values.iloc[i, j]
                if np.isnan(value):
                    axis.text(j, i, "–", ha="center", va="center", fontsize=8, color="0.5")
                    continue
                axis.text(j, i, f"{100 * max(value, 0.0):.0f}", ha="center", va="center", fontsize=8,
                          weight="normal" if table.loc[(name, dataset), "worse"] else "bold",
                          color="white" if value > 0.7 else "black")  # fmt: skip
        axis.set_title(words, fontsize=10)
        axis.set_xticks(
            range(len(datasets)), labels(datasets).values(), fontsize=8, rotation=30, ha="right"
        )
        axis.set_yticks(range(len(names)), [label(name) for name in names], fontsize=8)
        axis.tick_params(length=0)
    figure.colorbar(image, ax=axes, shrink=0.7, label="% of Unfair's dependence", pad=0.01)
    return figure


# Simple remedies beside FRHSIC ---------------------------------------------------------------------------------------


def sides(simple: pd.DataFrame, trained: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of both sides with ``name`` and ``setting``; no remedy is a choice of both simple families."""
    parts = [trained[trained["name"].isin((*TRAINED, "unfair"))]]
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

    ``matched`` is :func:`matched` of :func:`sides`. ``verdict`` is that of
    the trained form by the corrected test, with Holm's correction over all lines: ``better``, ``worse`` or
    ``not_significant``; a family that keeps the score on no setting has no line.
    """
    pairs = []
    for dataset, part in matched.groupby("dataset", sort=False):
        wide = part.pivot(index="split", columns="name", values=MEASURE)
        for trained in TRAINED:
            for simple in FAMILIES.values():
                if {trained, simple} <= set(wide.columns):
                    difference = (wide[simple] - wide[trained]).dropna().to_numpy()
                    pairs.append(
                        ({"dataset": dataset, "trained": trained, "simple": simple}, difference)
                    )
    table = compare_all(pairs)
    return table.assign(verdict=table["verdict_corrected"])


def stored_sides() -> pd.DataFrame:
    """Return :func:`sides` of the stored rows."""
    return sides(stored_rows("simple_remedies"), sweep_rows())
