"""Transfer: freeze each representation, train four fresh heads on it, and measure the GDP of each.

The paper's table takes GDP of logits for the linear head and the MLP and of hard labels for the forest and the SVM.
Here every head has that number and GDP on one scale for all four: of probabilities as defined, of probabilities over
the uniform grid, and of labels.

The reference protocol was trained, on five splits. The paper's table prints one run, so the interval of a query is
where another single run would lie, by Student's t.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from frhsic_core.paper.claims.answers import (
    IMPLEMENTED,
    Answer,
    Spread,
    data_note,
    joined,
    mean_of_runs,
    query,
    rows_of,
)
from frhsic_core.paper.experiments.presets import DATASETS, LIVE, METHODS, SPLITS, settings, smoke
from frhsic_core.paper.experiments.shared.paired import t_interval
from frhsic_core.paper.experiments.shared.pareto import keeps, named
from frhsic_core.paper.runs.plan import Experiment, Task
from frhsic_core.paper.runs.stored import book_folder
from frhsic_core.registry import TRANSFER_METHODS, labels

if TYPE_CHECKING:
    from torch import Tensor

    from frhsic_core.data.dataset import Dataset
    from frhsic_core.learning.stack import TrainedStack
    from frhsic_core.paper.experiments.fresh_heads import Prediction
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

    from frhsic_core.paper.experiments.fresh_heads import forest_head, neural_heads, svm_head

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


# Tables and queries --------------------------------------------------------------------------------------------------

CONVENTIONS = labels(("gdp_mixed", "gdp_sample", "gdp_uniform", "gdp_label"))
# λ of the paper's table for Adult and Crime, of its appendix for the rest.
PAPER_LAMS = {"adult": 10.0, "crime": 100.0, "compas": 10.0, "meps": 10.0, "acs_income": 10.0}
_KEY = ["dataset", "name", "lam", "split"]


def by_head(rows: pd.DataFrame) -> pd.DataFrame:
    """Return one line for each model and head: ``performance`` and GDP by every convention.

    ``name`` is the method, with its option after a colon.
    """
    rows = named(rows)
    parts = [
        rows[_KEY].assign(
            head=head,
            performance=rows[f"{head}_performance"].astype(float),
            **{name: rows[f"{head}_{name}"].astype(float) for name in CONVENTIONS},
        )
        for head in HEADS
    ]
    return pd.concat(parts, ignore_index=True)


def across_heads(rows: pd.DataFrame, *, convention: str = "gdp_sample", heads: Sequence[str] = HEADS) -> pd.DataFrame:
    """Return for each model the mean, standard deviation (divisor 4, as printed) and largest GDP over its heads.

    ``between`` is the share of the variance that is the distance between the first two heads' mean and the last two
    heads' mean: with the paper's convention, logits against labels. A model without all the heads has NaN.

    Examples
    --------
    >>> row = {"dataset": "adult", "method": "frem", "option": "", "lam": 10.0, "split": 42}
    >>> for head, value in zip(HEADS, (0.6, 0.6, 0.1, 0.1)):
    ...     row |= {f"{head}_performance": 0.8} | {f"{head}_{name}": value for name in CONVENTIONS}
    >>> across_heads(pd.DataFrame([row]))[["mean", "sd", "largest", "between"]].round(3).iloc[0].tolist()
    [0.35, 0.25, 0.6, 1.0]
    """
    if convention not in CONVENTIONS:
        raise ValueError(f"convention is {convention!r}: choose one of {', '.join(map(repr, CONVENTIONS))}.")
    lines = by_head(rows)
    wide = lines[lines["head"].isin(heads)].pivot(index=_KEY, columns="head", values=convention)[list(heads)]
    values = wide.to_numpy(float)
    whole = ~np.isnan(values).any(1)
    found = pd.DataFrame(
        {
            "mean": values.mean(1),
            "sd": values.std(1),
            "largest": values.max(1),
            "worst head": [heads[i] if ok else "" for i, ok in zip(np.argmax(values, 1), whole, strict=True)],
        },
        index=wide.index,
    )
    if len(heads) == len(HEADS):
        half = (values[:, :2].mean(1) - values[:, 2:].mean(1)) / 2
        with np.errstate(invalid="ignore", divide="ignore"):
            found["between"] = half**2 / values.var(1)
    return found.reset_index()


def spread_table(rows: pd.DataFrame, *, convention: str = "gdp_sample") -> pd.DataFrame:
    """Return mean and standard deviation over splits of the spread over heads and of the largest GDP.

    One line for each dataset, method and λ, with the mean ``performance`` of the model's own head, its ratio to
    Unfair's and whether it is within one per cent.
    """
    found = across_heads(rows, convention=convention)
    grouped = found.groupby(["dataset", "name", "lam"])
    table = pd.DataFrame(
        {
            "sd": grouped["sd"].mean(),
            "sd over splits": grouped["sd"].std(),
            "largest": grouped["largest"].mean(),
            "largest over splits": grouped["largest"].std(),
            "mean": grouped["mean"].mean(),
            "splits": grouped["split"].nunique(),
            "between": grouped["between"].mean(),
        }
    )
    return table.join(preserving(rows)).reset_index()


def own_and_fresh(rows: pd.DataFrame) -> pd.DataFrame:
    """Return for each model GDP of its ``own`` head, the ``worst`` fresh head's and the ``excess`` of that over it.

    Probabilities, as defined. The worst is over the heads that were fitted: without the forest on large datasets beyond
    the first λ.
    """
    lines = by_head(rows)
    wide = lines.pivot(index=_KEY, columns="head", values="gdp_sample")
    found = pd.DataFrame(
        {
            "own": named(rows).set_index(_KEY)["gdp_sample"].astype(float),
            "worst": wide.max(axis=1),
        }
    )
    return found.assign(excess=found["worst"] - found["own"]).reset_index()


def paired_difference(found: pd.DataFrame, column: str, *, dataset: str, lam: float, other: str) -> tuple[float, float]:
    """Return the mean over splits of FRHSIC less ``other`` and the half-width of its 95 % t interval.

    ``found`` has a line for each model (:func:`across_heads`, :func:`own_and_fresh`); Unfair is taken at its λ of zero.

    Examples
    --------
    >>> lines = [("adult", name, 10.0, split, 0.1 * split * (1 + (name == "frem")))
    ...          for split in (1, 2, 3) for name in ("frhsic", "frem")]
    >>> table = pd.DataFrame(lines, columns=["dataset", "name", "lam", "split", "sd"])
    >>> mean, half = paired_difference(table, "sd", dataset="adult", lam=10.0, other="frem")
    >>> round(mean, 3), round(half, 3)
    (-0.2, 0.248)
    """
    part = found[found["dataset"] == dataset]
    wide = [
        part[(part["name"] == one) & (part["lam"] == (0.0 if one == "unfair" else lam))].set_index("split")[column]
        for one in ("frhsic", other)
    ]
    return t_interval((wide[0] - wide[1]).dropna().to_numpy())


def preserving(rows: pd.DataFrame) -> pd.DataFrame:
    """Return mean performance of the model's own head and whether it is within 1 % of Unfair's, for each model."""
    rows = named(rows)
    means = rows.groupby(["dataset", "name", "lam"])["performance"].mean()
    datasets = means.index.get_level_values("dataset")
    ratio = means / means.xs(("unfair", 0.0), level=("name", "lam")).loc[datasets].to_numpy()
    regression = rows.groupby("dataset")["task"].first().loc[datasets] == "regression"
    kept = keeps(ratio.to_numpy(), 1.0, higher=~regression)
    return pd.DataFrame({"performance": means, "of Unfair's": ratio, "kept": kept})


def places(
    rows: pd.DataFrame,
    dataset: str,
    *,
    convention: str = "gdp_mixed",
    methods: Sequence[str] = TRANSFER_METHODS,
    column: str = "sd",
    kept_only: bool = True,
) -> pd.Series:
    """Return the rank of each method on a dataset by ``column`` over heads; the lowest value has rank 1.

    Only those that keep performance take part, unless ``kept_only=False``.
    """
    table = spread_table(rows[rows["dataset"] == dataset], convention=convention)
    part = table[(table["lam"] == PAPER_LAMS[dataset]) & table["name"].isin(methods)]
    part = part[part["kept"]] if kept_only else part
    return part.set_index("name")[column].dropna().rank(method="min").astype(int)


def authors_heads() -> pd.DataFrame:
    """Return the spread over heads of the authors' stored values, and the scales' share of it."""
    stored = pd.read_csv(book_folder("claims", "authors", "transfer.csv"))
    wide = stored.pivot(index=["dataset", "method"], columns="head", values="gdp")
    values = wide[["linear", "mlp", "random_forest", "svm"]].to_numpy(float)
    half = (values[:, :2].mean(1) - values[:, 2:].mean(1)) / 2
    return pd.DataFrame({"sd": values.std(1), "between": half**2 / values.var(1)}, index=wide.index)


@cache
def _across(convention: str) -> pd.DataFrame:
    return across_heads(rows_of("transfer"), convention=convention)


@cache
def heads_of(dataset: str, method: str, convention: str = "gdp_mixed") -> pd.DataFrame:
    """Return mean, spread and largest GDP over heads at the paper's λ, a line for each split."""
    found = _across(convention)
    lam = 0.0 if method == "unfair" else PAPER_LAMS[dataset]
    part = found[(found["dataset"] == dataset) & (found["name"] == method) & (found["lam"] == lam)]
    return part.dropna(subset="sd").sort_values("split").set_index("split")


@query(kind=IMPLEMENTED)
def transfer_setting(what: str, dataset: str = "") -> Answer:
    """Return the λ of a dataset's table in the transfer experiment, or its number of heads, from the stored rows."""
    rows = rows_of("transfer")
    if what == "heads":
        return Answer({"any": float(sum(name.endswith("_gdp_mixed") for name in rows.columns))})
    rows = rows[(rows["method"] != "unfair") & (rows["option"] == "")]
    if not dataset:
        lam = float(rows["lam"].min())
        every = bool((rows[rows["lam"] == lam]["dataset"].nunique()) == rows["dataset"].nunique())
        note = "every dataset was run at it; the printed values of Crime are said to be at 100"
        return Answer({"any": lam if every else None}, note=note)
    lam = PAPER_LAMS[dataset]
    trained = bool((rows.loc[rows["dataset"] == dataset, "lam"] == lam).any())
    return Answer({"any": lam if trained else None})


@query
def transfer_spread(dataset: str, method: str) -> Answer:
    """Return the standard deviation of GDP over the four heads, logits and labels mixed as printed; one run."""
    found = heads_of(dataset, method)
    values = found["sd"].to_numpy(float)
    one = heads_of(dataset, method, "gdp_sample")["sd"].mean()
    note = "" if dataset == "crime" else f"{found['between'].mean():.0%} of the variance is logits against labels"
    note = joined(
        "reference protocol", note, f"on one scale {one:.4f}", f"split 42 alone {values[0]:.4g}", data_note(dataset)
    )
    mean, prints, means = mean_of_runs(values, runs=1)
    return Answer({"any": mean}, {"any": prints}, {"any": means}, note=note, measure="gdp", runs=1, splits=len(values))


@query
def transfer_reduction(dataset: str, method: str) -> Answer:
    """Return by how many per cent the spread over heads is below Unfair's, split by split."""
    found = {}
    for convention in ("gdp_mixed", "gdp_sample"):
        own, unfair = (heads_of(dataset, name, convention)["sd"] for name in (method, "unfair"))
        found[convention] = 100 * (1 - own / unfair).to_numpy(float)
    note = f"on one scale {found['gdp_sample'].mean():.0f} ± {found['gdp_sample'].std(ddof=1):.0f} over splits"
    values = found["gdp_mixed"]
    mean, prints, means = mean_of_runs(values, runs=1)
    return Answer({"any": mean}, {"any": prints}, {"any": means}, note=note, runs=1, splits=len(values))


@query
def transfer_place(datasets: list[str], method: str) -> Answer:
    """Return the worst rank by spread over heads among the paper's methods that keep performance within one per cent.

    On the datasets named, with logits and labels mixed as printed. The spread holds the places in single splits.
    """
    rows = rows_of("transfer")
    found: dict[str, list[float]] = {}
    notes = []
    for dataset in datasets:
        whole = places(rows, dataset)
        if method not in whole:
            notes.append(f"{dataset}: performance is not kept")
            continue
        spread = pd.DataFrame({name: heads_of(dataset, name)["sd"] for name in whole.index})
        single = spread.rank(axis=1, method="min")[method]
        found[dataset] = [float(whole[method]), float(single.min()), float(single.max())]
        sample, hard = (places(rows, dataset, convention=name)[method] for name in ("gdp_sample", "gdp_label"))
        notes.append(f"{dataset}: {whole[method]} of {len(whole)}, by probabilities {sample}, by labels {hard}")
    if not found:
        return Answer({"any": None}, note="; ".join(notes))
    place, low, high = np.max(list(found.values()), axis=0)
    spread = Spread(float(low), float(place), float(high))
    return Answer({"any": float(place)}, {"any": spread}, note="; ".join(notes))
