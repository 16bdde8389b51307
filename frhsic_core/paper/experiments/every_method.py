"""Every method, old and new, on every dataset of the paper: what is left of the dependence when the score is kept.

The trained methods come from the stored sweeps ``main`` and ``recommended_test`` (25 splits), the closed forms from the
table ``every_method`` (5 splits). A unit is one dataset and one closed form, which is fitted at all of its strengths.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from frhsic_core.paper.experiments.closed_forms import CLOSED_FORMS, evaluated
from frhsic_core.paper.experiments.shared.paired import corrected_t, holm, mean_of_others
from frhsic_core.paper.experiments.shared.pareto import BAND, matched_index
from frhsic_core.paper.experiments.variants import RECOMMENDED
from frhsic_core.paper.runs.plan import Study, units_of
from frhsic_core.paper.runs.stored import stored_rows
from frhsic_core.registry import METHODS, PAPER_METHODS, SWEEP_DATASETS, labels, titles

if TYPE_CHECKING:
    from matplotlib.figure import Figure


WHITENED = "frhsic_whitened"  # the recommended form
NETWORKS = (*PAPER_METHODS, WHITENED)
NARROW = ":narrow"
SPLITS = tuple(range(42, 47))
FEWEST_SPLITS = 5
# The two measures of the figure: what the prediction reveals, and what the representation reveals.
SHOWN = labels(("gdp_sample", "nonlinear_r2"))


def label(name: str) -> str:
    """Return the name of a method in figures and tables; ``*`` marks those that need S to predict."""
    if name == WHITENED:
        return "FRHSIC, whitened (recommended)"
    if name.endswith(NARROW):
        return f"{label(name.removesuffix(NARROW))}, Z of 4 dimensions"
    if name in METHODS:
        return METHODS[name].label
    return CLOSED_FORMS[name].label + (" *" if CLOSED_FORMS[name].needs_s else "")


def plan(preset: str) -> Study:
    """Return one unit for each dataset and closed form, small datasets first; ``smoke`` has one on 500 samples."""
    if preset == "smoke":
        return Study("every_method_smoke", "every_method", units_of(dataset="synthetic", method="remover_x"))
    return Study("every_method", "every_method", units_of(dataset=SWEEP_DATASETS, method=tuple(CLOSED_FORMS)))


def measure_unit(unit: dict[str, Any], device: str) -> list[dict[str, Any]]:
    """Return a row for each split and strength of one closed form."""
    from frhsic_core.paper.datasets import load_variant
    from frhsic_core.paper.splits import stack_splits

    synthetic = unit["dataset"] == "synthetic"
    data = load_variant(unit["dataset"], "text" if synthetic else "reference", n=500 if synthetic else None)
    form = CLOSED_FORMS[unit["method"]]
    rows = []
    for split in SPLITS:
        part = stack_splits(data, seeds=(split,))
        for strength in form.strengths:
            found = evaluated(*form.fit(part, strength), part)
            rows.append({"split": split, "task": part.task, "lam": strength} | found)
    return rows


# Tables --------------------------------------------------------------------------------------------------------------


def sweep_rows() -> pd.DataFrame:
    """Return the rows of every method in the reference protocol, with the columns ``name``, ``setting`` and ``dcor``.

    A method of the paper is there as published and with a Z of four dimensions (``name:narrow``), which is the
    dimension of the recommended form.
    """
    main = stored_rows("main")
    main = main[(main["variant"] == "reference") & (main["protocol"] == "reference")]
    best = stored_rows("variants_best")
    narrow = best[best["option"] == "narrow"]
    test = stored_rows("recommended_test")
    test = test[test["option"] == RECOMMENDED.partition(":")[2]]
    closed = stored_rows("every_method")
    closed = closed[closed["method"].isin(list(CLOSED_FORMS))]
    parts = [
        main.assign(name=main["method"]),
        narrow.assign(name=narrow["method"] + NARROW),
        test.assign(name=WHITENED),
        closed.assign(name=closed["method"], option=""),
    ]
    rows = pd.concat(parts, ignore_index=True)
    return rows.assign(
        setting=rows["option"].astype(str) + rows["lam"].map(" {:g}".format),
        dcor=np.sqrt(rows["distance_correlation"].clip(lower=0.0)),
    )


def pooled(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with one name for both dimensions of Z, so that a method may choose the dimension as well."""
    return rows.assign(name=rows["name"].str.removesuffix(NARROW))


def matched(rows: pd.DataFrame, measure: str, *, band: float = BAND) -> pd.DataFrame:
    """Return the matched row of each dataset, method and split; the setting is chosen on the other splits.

    The setting is the one with the least dependence whose score is within ``band`` of Unfair's. A method without such
    a setting is left out. So is a method with fewer than five complete splits. ``share`` is the dependence divided by
    Unfair's on the same split.
    """
    found = []
    for _, part in rows.groupby("dataset", sort=False):
        higher = part["task"].iloc[0] != "regression"
        unfair = part[part["name"] == "unfair"].set_index("split")
        for _, own in part.groupby("name", sort=False):
            indexed = own.set_index(["setting", "split"], drop=False)
            score, dependence = (indexed[column].unstack("split") for column in ("performance", measure))
            whole = score.columns[score.notna().all() & dependence.notna().all()]
            if len(whole) < FEWEST_SPLITS:
                continue
            base = unfair.loc[whole]
            kept = [values[whole].to_numpy().T for values in (score, dependence)]
            first, second = map(mean_of_others, kept)
            level = mean_of_others(base["performance"].to_numpy())
            place = matched_index(first, second, level, higher=higher, band=band)
            if (place < 0).any():
                continue
            rows_of = indexed.loc[list(zip(score.index[place], whole, strict=True))]
            found.append(rows_of.assign(share=rows_of[measure].to_numpy() / base[measure].to_numpy()))
    return pd.concat(found, ignore_index=True)


def compared_with_best(table: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Compare each method with the best on its dataset: means over splits, and a corrected test with Holm's correction.

    The best has the least mean dependence among the methods with the most splits, which are the trained ones: five
    splits of a closed form would leave the test without power for all others. The columns are ``share`` (of Unfair's
    dependence), ``splits``, ``difference`` to the best, ``p_holm`` and ``worse`` (significantly).
    """
    lines = []
    for dataset, part in table.groupby("dataset", sort=False):
        wide = part.pivot(index="split", columns="name", values=measure)
        counts = wide.notna().sum()
        best = wide[counts.index[counts == counts.max()]].mean().idxmin()
        for name in wide:
            both = wide[[name, best]].dropna()
            difference = (both[name] - both[best]).to_numpy()
            lines.append(
                {
                    "dataset": dataset,
                    "name": name,
                    "best": best,
                    "share": part[part["name"] == name]["share"].mean(),
                    "splits": int(wide[name].notna().sum()),
                    "p": 1.0 if name == best else corrected_t(difference)[1],
                    "difference": float(difference.mean()) if name != best else 0.0,
                }
            )
    found = pd.DataFrame(lines)
    tested = found["name"] != found["best"]
    found.loc[tested, "p_holm"] = holm(found.loc[tested, "p"].to_numpy())
    return found.assign(worse=(found["p_holm"] < 0.05) & (found["difference"] > 0))


def draw(rows: pd.DataFrame | None = None) -> Figure:
    """Draw the share of Unfair's dependence that is left by each trained method when at most 1 % of the score is lost.

    One panel for each measure of ``SHOWN``, a row for each method and a column for each dataset. Pale is little
    dependence. A method chooses its λ and the dimension of its Z (:func:`pooled`). A bold number is not significantly
    worse than the best method of its column. Gray: the method has no setting that keeps the score, or is not stored.
    """
    import matplotlib.pyplot as plt

    rows = pooled(sweep_rows() if rows is None else rows)
    rows = rows[rows["name"].isin(NETWORKS)]
    found = {m: compared_with_best(matched(rows, m), m).set_index(["name", "dataset"]) for m in SHOWN}
    shares = pd.concat([table["share"].unstack("dataset") for table in found.values()], axis=1).drop(index="unfair")
    names = list(shares.clip(upper=1.0).fillna(1.0).mean(axis=1).sort_values(kind="stable").index)
    datasets = list(SWEEP_DATASETS)
    figure, axes = plt.subplots(1, 2, figsize=(7.6, 1.3 + 0.29 * len(names)), sharey=True, layout="constrained")
    for axis, (measure, words) in zip(axes, SHOWN.items(), strict=True):
        table = found[measure]
        values = table["share"].unstack("dataset").reindex(index=names, columns=datasets)
        axis.set_facecolor("0.9")
        image = axis.imshow(100 * values.to_numpy(float), cmap="OrRd", vmin=0, vmax=100, aspect="auto")
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
        axis.set_xticks(range(len(datasets)), titles(datasets).values(), fontsize=8, rotation=30, ha="right")
        axis.set_yticks(range(len(names)), [label(name) for name in names], fontsize=8)
        axis.tick_params(length=0)
    figure.colorbar(image, ax=axes, shrink=0.7, label="% of Unfair's dependence", pad=0.01)
    return figure
