"""Every method, old and new, on every dataset of the paper: what is left of the dependence when the score is kept.

The trained methods come from the stored sweeps ``main`` and ``recommended_test`` (25 splits), the closed forms from the
table ``every_method`` (5 splits), which also has the R² of gradient boosting as a probe and the CPU seconds of a fit. A
unit is one dataset and one method. A network is trained again on the CPU at the λ that the stored sweeps match, which
were trained on a GPU. A closed form is fitted at all of its strengths.

CPU seconds are the processor time of one fit on one thread. The five splits of a network are trained as one stack, and
its time is the time of the stack divided by five. A network that is trained alone takes two to three times as long, as
the rows of LEACE on Z show. Loading the data, choosing λ and evaluating are not counted.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from frhsic_core.paper.experiments.closed_forms import CLOSED_FORMS, evaluated
from frhsic_core.paper.experiments.shared.paired import corrected_t, holm, mean_of_others
from frhsic_core.paper.experiments.shared.pareto import BAND, matched_index
from frhsic_core.paper.experiments.variants import RECOMMENDED
from frhsic_core.paper.runs.plan import Job, Settings, Study, units_of
from frhsic_core.paper.runs.stored import stored_rows
from frhsic_core.registry import METHODS, PAPER_METHODS, SWEEP_DATASETS, labels, titles

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from frhsic_core.paper.splits import SplitStack

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
    """Return one unit for each dataset and method, small datasets first; ``smoke`` has one method on 500 samples."""
    if preset == "smoke":
        return Study("every_method_smoke", "every_method", units_of(dataset="synthetic", method="remover_x"))
    regression_only = {key for key, row in CLOSED_FORMS.items() if row.regression_only}
    units: list[Settings] = []
    for dataset in SWEEP_DATASETS:
        own = [name for name in (*NETWORKS, *CLOSED_FORMS) if dataset == "crime" or name not in regression_only]
        units += units_of(dataset=dataset, method=tuple(own))
    return Study("every_method", "every_method", tuple(units))


def _split_stack(dataset: str, seeds: tuple[int, ...]) -> SplitStack:
    from frhsic_core.paper.datasets import load_variant
    from frhsic_core.paper.splits import stack_splits

    synthetic = dataset == "synthetic"
    data = load_variant(dataset, "text" if synthetic else "reference", n=500 if synthetic else None)
    return stack_splits(data, seeds=seeds)


def measure_unit(unit: dict[str, Any], device: str) -> list[dict[str, Any]]:
    """Return a row for each split of one method: at the matched λ of a network, at all strengths of a closed form."""
    splits = _split_stack(unit["dataset"], SPLITS)
    found = _networks(unit, splits) if unit["method"] in NETWORKS else _closed_forms(unit, splits)
    rows = []
    for index, lam, seconds, z, output in found:
        part = _split_stack(unit["dataset"], (SPLITS[index],))
        s = splits.s_test[index].double().cpu().numpy()
        rows.append(
            {"split": SPLITS[index], "task": splits.task, "lam": lam}
            | evaluated(z, output, part)
            | {"boosting_r2": boosting_r2(z, s), "cpu_seconds": round(seconds, 4)}
        )
    return rows


def _networks(unit: dict[str, Any], splits: SplitStack) -> list[tuple[int, float, float, np.ndarray, np.ndarray]]:
    import torch

    from frhsic_core.paper.experiments.presets import experiment_for
    from frhsic_core.paper.runs.jobs import trainer_of

    dataset, method = unit["dataset"], unit["method"]
    experiment = experiment_for("recommended_test" if method == WHITENED else "main")
    wanted = ("frhsic", RECOMMENDED.partition(":")[2]) if method == WHITENED else (method, "")
    recipe = next(
        job.recipe
        for job in experiment.jobs()
        if isinstance(job, Job)
        and (job.recipe.method, job.recipe.option) == wanted
        and (job.recipe.task.dataset, job.recipe.task.variant, job.recipe.task.protocol)
        == (dataset, "reference", "reference")
    )
    lam = matched_lam(dataset, method)
    trainer = trainer_of(Job(recipe, (lam,), SPLITS), splits, device="cpu")
    start = time.process_time()
    trained = trainer.fit()
    seconds = (time.process_time() - start) / len(SPLITS)
    with torch.no_grad():
        z, output = trained.forward(splits.x_test)
    return [(i, lam, seconds, z[i].double().numpy(), output[i].double().numpy()) for i in range(len(SPLITS))]


def _closed_forms(unit: dict[str, Any], splits: SplitStack) -> list[tuple[int, float, float, np.ndarray, np.ndarray]]:
    row = CLOSED_FORMS[unit["method"]]
    found = []
    for index in range(len(SPLITS)):
        fitted = []
        seconds = 0.0
        for strength in row.strengths:
            start = time.process_time()
            fitted.append((strength, *row.fit(splits, index, strength)))
            # The first strength pays for a network that the others use again: each would need it alone.
            seconds = max(seconds, time.process_time() - start)
        found += [(index, strength, seconds, z, output) for strength, z, output in fitted]
    return found


def matched_lam(dataset: str, name: str, *, measure: str = "gdp_sample") -> float:
    """Return the λ of the stored sweep with the least dependence within 1 % of Unfair's score, or the smallest λ."""
    rows = sweep_rows()
    rows = rows[rows["dataset"] == dataset]
    unfair = rows[rows["name"] == "unfair"]["performance"].mean()
    means = rows[rows["name"] == name].groupby("lam")[["performance", measure]].mean()
    higher = rows["task"].iloc[0] != "regression"
    place = int(matched_index(means["performance"].to_numpy(), means[measure].to_numpy(), unfair, higher=higher))
    return float(means.index[max(place, 0)])


def boosting_r2(z: np.ndarray, s: np.ndarray, *, folds: int = 3, seed: int = 0) -> float:
    """Return the cross-fitted R² of gradient boosting that predicts S from Z, at most 2,000 evenly spaced samples.

    Examples
    --------
    >>> x = np.linspace(-1, 1, 300)[:, None]
    >>> bool(boosting_r2(x, x[:, 0] ** 2) > 0.95)
    True
    """
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.model_selection import KFold, cross_val_predict

    rows = np.linspace(0, len(z) - 1, min(len(z), 2000)).round().astype(int)
    z, s = z[rows], s[rows].reshape(len(rows), -1)
    largest = 0.0
    for column in s.T:
        model = HistGradientBoostingRegressor(max_iter=100, learning_rate=0.06, max_leaf_nodes=15, random_state=0)
        parts = KFold(folds, shuffle=True, random_state=seed)
        error = np.mean((column - cross_val_predict(model, z, column, cv=parts)) ** 2)
        largest = max(largest, 1.0 - float(error) / max(float(column.var()), 1e-300))
    return round(largest, 6)


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


def strongest(rows: pd.DataFrame | None = None) -> pd.DataFrame:
    """Return the mean of the study's rows at the strongest setting of each method, by ``method`` and ``dataset``.

    The strongest setting of a closed form is its largest strength, whatever it costs in quality. A network has one
    setting, its matched λ. The bounded-R² ridge regression is left out, because its strength is a bound.
    """
    rows = stored_rows("every_method") if rows is None else rows
    rows = rows[rows["method"] != "frrm"]
    largest = rows.groupby(["dataset", "method"])["lam"].transform("max")
    measures = ["performance", "gdp_sample", "linear_r2", "nonlinear_r2", "boosting_r2", "cpu_seconds"]
    return rows[rows["lam"] == largest].groupby(["method", "dataset"], sort=False)[measures].mean()


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
