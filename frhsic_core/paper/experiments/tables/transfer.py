"""Tables of the transfer experiment from stored rows: spread over heads, the worst head, who keeps performance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from frhsic_core.paper.experiments.tables.pareto import BAND
from frhsic_core.paper.experiments.transfer import HEADS
from frhsic_core.paper.runs.reference import book_folder

__all__ = [
    "CONVENTIONS",
    "HEAD_NAMES",
    "PAPER_LAMS",
    "across_heads",
    "authors_heads",
    "by_head",
    "own_and_fresh",
    "paired_difference",
    "places",
    "preserving",
    "spread_table",
]

CONVENTIONS = {
    "gdp_mixed": "as in the paper: logits and labels",
    "gdp_sample": "probabilities, as defined",
    "gdp_uniform": "probabilities, uniform grid",
    "gdp_label": "labels, as defined",
}
HEAD_NAMES = {"linear": "linear", "mlp": "MLP", "forest": "forest", "svm": "SVM"}
# λ of the paper's table for Adult and Crime, of its appendix for the rest.
PAPER_LAMS = {"adult": 10.0, "crime": 100.0, "compas": 10.0, "meps": 10.0, "acs_income": 10.0}
PAPER_METHODS = ("frhsic", "frem", "reg_gdp", "adv")
_KEY = ["dataset", "name", "lam", "split"]


def by_head(rows: pd.DataFrame) -> pd.DataFrame:
    """Return one line for each model and head: ``performance`` and GDP by every convention.

    ``name`` is the method, with its option after a colon.
    """
    rows = rows.assign(name=rows["method"].where(rows["option"] == "", rows["method"] + ":" + rows["option"]))
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


def spread_table(rows: pd.DataFrame, *, convention: str = "gdp_sample", heads: Sequence[str] = HEADS) -> pd.DataFrame:
    """Return mean and standard deviation over splits of the spread over heads and of the largest GDP.

    One line for each dataset, method and λ, with the mean ``performance`` of the model's own head, its ratio to
    Unfair's and whether it is within one per cent.
    """
    found = across_heads(rows, convention=convention, heads=heads)
    grouped = found.groupby(["dataset", "name", "lam"])
    table = pd.DataFrame(
        {
            "sd": grouped["sd"].mean(),
            "sd over splits": grouped["sd"].std(),
            "largest": grouped["largest"].mean(),
            "largest over splits": grouped["largest"].std(),
            "mean": grouped["mean"].mean(),
            "splits": grouped["split"].nunique(),
        }
    )
    if "between" in found:
        table["between"] = grouped["between"].mean()
    return table.join(preserving(rows)).reset_index()


def own_and_fresh(rows: pd.DataFrame) -> pd.DataFrame:
    """Return for each model GDP of its ``own`` head, the ``worst`` fresh head's and the ``excess`` of that over it.

    Probabilities, as defined. The worst is over the heads that were fitted, ``heads`` of them: without the forest on
    large datasets beyond the first λ. ``worst_three`` leaves the forest out everywhere, to compare over λ.
    """
    lines = by_head(rows)
    wide = lines.pivot(index=_KEY, columns="head", values="gdp_sample")
    rows = rows.assign(name=rows["method"].where(rows["option"] == "", rows["method"] + ":" + rows["option"]))
    found = pd.DataFrame(
        {
            "own": rows.set_index(_KEY)["gdp_sample"].astype(float),
            "worst": wide.max(axis=1),
            "worst_three": wide.drop(columns="forest").max(axis=1),
            "heads": wide.notna().sum(axis=1),
        }
    )
    return found.assign(excess=found["worst"] - found["own"]).reset_index()


def paired_difference(
    found: pd.DataFrame, column: str, *, dataset: str, lam: float, name: str = "frhsic", other: str
) -> tuple[float, float]:
    """Return the mean over splits of ``name`` less ``other`` and the half-width of its 95 % t interval.

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
    from scipy.stats import t

    part = found[found["dataset"] == dataset]
    wide = [
        part[(part["name"] == one) & (part["lam"] == (0.0 if one == "unfair" else lam))].set_index("split")[column]
        for one in (name, other)
    ]
    gap = (wide[0] - wide[1]).dropna()
    return float(gap.mean()), float(t.ppf(0.975, len(gap) - 1) * gap.std() / np.sqrt(len(gap)))


def preserving(rows: pd.DataFrame, *, band: float = BAND) -> pd.DataFrame:
    """Return mean performance of the model's own head and whether it is within ``band`` of Unfair's, for each model."""
    rows = rows.assign(name=rows["method"].where(rows["option"] == "", rows["method"] + ":" + rows["option"]))
    means = rows.groupby(["dataset", "name", "lam"])["performance"].mean()
    unfair = means.xs(("unfair", 0.0), level=("name", "lam")).reindex(means.index.get_level_values("dataset"))
    ratio = means.to_numpy() / unfair.to_numpy()
    task = rows.groupby("dataset")["task"].first().reindex(means.index.get_level_values("dataset"))
    kept = np.where(task == "regression", ratio <= 1 + band, ratio >= 1 - band)
    return pd.DataFrame({"performance": means, "of Unfair's": ratio, "kept": kept})


def places(
    rows: pd.DataFrame,
    dataset: str,
    *,
    convention: str = "gdp_mixed",
    lam: float | None = None,
    methods: Sequence[str] = PAPER_METHODS,
    column: str = "sd",
    kept_only: bool = True,
) -> pd.Series:
    """Return the order of the methods on a dataset by ``column`` over heads, the lowest first: place by method.

    Only those that keep performance take part, unless ``kept_only=False``.
    """
    table = spread_table(rows[rows["dataset"] == dataset], convention=convention)
    part = table[(table["lam"] == (PAPER_LAMS[dataset] if lam is None else lam)) & table["name"].isin(methods)]
    part = part[part["kept"]] if kept_only else part
    return part.set_index("name")[column].dropna().rank(method="min").astype(int)


def authors_heads() -> pd.DataFrame:
    """Return the spread over heads of the authors' stored values, and the scales' share of it."""
    stored = pd.read_csv(book_folder("claims", "authors", "transfer.csv"))
    wide = stored.pivot(index=["dataset", "method"], columns="head", values="gdp")
    values = wide[["linear", "mlp", "random_forest", "svm"]].to_numpy(float)
    half = (values[:, :2].mean(1) - values[:, 2:].mean(1)) / 2
    return pd.DataFrame({"sd": values.std(1), "between": half**2 / values.var(1)}, index=wide.index)
