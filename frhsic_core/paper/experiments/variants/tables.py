"""Tables of the variants, and the rule that picks the best: fixed before any of them was trained."""

from __future__ import annotations

import numpy as np
import pandas as pd

from frhsic_core.paper.experiments.main import CONVENTIONS, extremes, family, verdict_counts
from frhsic_core.paper.experiments.presets import experiment_for
from frhsic_core.paper.experiments.shared.pareto import sweeps_of
from frhsic_core.paper.experiments.variants import (
    BEST,
    DEFAULT,
    PUBLISHED,
    RETUNED,
    VARIANTS,
    Variant,
    best_rows,
    variant_rows,
)
from frhsic_core.paper.runs.plan import Experiment
from frhsic_core.paper.runs.store import ResultStore
from frhsic_core.paper.runs.stored import book_folder, stored_rows
from frhsic_core.registry import PARETO_METHODS

# GDP as the paper computes it and as it defines it; then the representation, by a probe and by the criterion itself.
MEASURES = ("gdp_reference", "gdp_sample", "nonlinear_r2", "normalized_hsic_1")


def all_rows() -> pd.DataFrame:
    """Return the stored variants beside the main sweep, ready for a comparison."""
    return variant_rows(stored_rows("variants"), stored_rows("main"))


def floored(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with every classifier at least as accurate as the constant one, which is open to everybody.

    nAUP normalises the utility over all points of a comparison: a single model below the majority rate lifts the
    utility of every constant model, and can turn the order of two other methods. With the floor it cannot.
    """
    lifted = np.maximum(rows["performance"], rows["constant"]).where(rows["task"] != "regression", rows["performance"])
    return rows.assign(performance=lifted)


def variant_areas(rows: pd.DataFrame, *, measures: tuple[str, ...] = MEASURES) -> pd.DataFrame:
    """Return nAUP of every method and variant in ``rows``, a line for each dataset and name, a column for each measure.

    All of them form one comparison on each dataset: the same λ, the same splits, the same normalisation.
    """
    columns = {
        measure: pd.concat(
            {dataset: pd.Series(sweep.areas(), index=sweep.methods) for dataset, sweep in sweeps_of(rows, measure)},
            names=["dataset", "name"],
        )
        for measure in measures
    }
    return pd.DataFrame(columns)


def ranking(rows: pd.DataFrame, *, method: str = "frhsic") -> pd.DataFrame:
    r"""Rank the variants of a method; a line for each, the best first.

    ``rank`` is the mean, over datasets and the four measures of ``MEASURES``, of the place by nAUP among the
    variants of the method (1 is best). ``collapsed`` is the share of models that predict a constant. The score is

    .. math:: \text{rank} + (\text{number of variants})\cdot\text{collapsed},

    so that a variant that always collapses comes last. The smallest score is best; ties go to the earlier name. A
    variant that was not trained on every dataset takes no part.
    """
    everywhere = rows.groupby("name")["dataset"].nunique() == rows["dataset"].nunique()
    rows = rows[rows["name"].map(everywhere)]
    areas = variant_areas(rows)
    names = areas.index.get_level_values("name")
    own = areas[(names == method) | names.str.startswith(f"{method}:")]
    places = own.groupby(level="dataset").rank(ascending=False, method="average")
    kept = rows[rows["method"] == method]
    share = extremes(kept.assign(method=kept["name"])).groupby("method")["collapsed"].mean()
    table = pd.DataFrame({"rank": places.mean(axis=1).groupby(level="name").mean(), "collapsed": share})
    table["score"] = table["rank"] + len(table) * table["collapsed"]
    return table.rename_axis("name").reset_index().sort_values(["score", "name"], ignore_index=True)


def best(rows: pd.DataFrame, *, method: str = "frhsic", count: int = 3) -> tuple[str, ...]:
    """Return the names of the best variants by :func:`ranking`; for FRHSIC what was published does not compete."""
    table = ranking(rows, method=method)
    return tuple(table.loc[(table["name"] != "frhsic"), "name"][:count])


def left_out(rows: pd.DataFrame, *, measures: tuple[str, ...] = MEASURES) -> pd.DataFrame:
    """Choose the best variant on all splits but one, and measure it on that one: nAUP without the choice's optimism.

    A line for each dataset, measure and split left out: the variant chosen, its nAUP on the split, and that of every
    method of the main table, in a comparison of these alone. The datasets that took part in the choice are the same;
    only the splits are new.
    """
    lines = []
    for split in sorted(set(rows["split"])):
        chosen = best(rows[rows["split"] != split], count=1)[0]
        here = rows[(rows["split"] == split) & rows["name"].isin(["unfair", chosen, *PARETO_METHODS])]
        for measure in measures:
            for dataset, sweep in sweeps_of(here, measure):
                areas = dict(zip(sweep.methods, sweep.areas(), strict=True))
                line = {"dataset": dataset, "measure": measure, "split": split, "chosen": chosen}
                lines.append(line | {"value": areas[chosen]} | {m: areas[m] for m in PARETO_METHODS})
    return pd.DataFrame(lines)


def to_train(name: str) -> pd.DataFrame:
    """Count the models of an experiment that the book holds and those still to be trained, by dataset and method."""
    experiment = experiment_for(name)
    assert isinstance(experiment, Experiment)
    done = ResultStore(book_folder("results"), experiment.name).done()
    lines = [
        {
            "dataset": job.recipe.task.dataset,
            "method": job.recipe.method,
            "stored": len(set(job.keys) & done),
            "to be trained": len(set(job.keys) - done),
        }
        for job in experiment.jobs()
    ]
    return pd.DataFrame(lines).groupby(["dataset", "method"], sort=False).sum()


def factor_table(rows: pd.DataFrame, *, method: str) -> pd.DataFrame:
    """Return nAUP by factor and level, columns (dataset, measure): what changing one setting does.

    The first lines are what was published and (for FRHSIC) the base that every other line departs from.
    """
    areas = variant_areas(rows).unstack("dataset").swaplevel(axis=1)
    areas = areas.reindex(columns=[(d, m) for d in dict.fromkeys(areas.columns.get_level_values(0)) for m in MEASURES])
    shown: list[Variant] = [v for v in (*PUBLISHED, *VARIANTS) if v.method == method and v.name in areas.index]
    first = {v.factor: i for i, v in reversed(list(enumerate(shown)))}
    shown.sort(key=lambda v: first[v.factor])  # the levels of a factor together
    index = pd.MultiIndex.from_tuples([(v.factor, v.level) for v in shown], names=["factor", "level"])
    return areas.loc[[v.name for v in shown]].set_axis(index)


def factor_changes(rows: pd.DataFrame, *, measure: str) -> pd.DataFrame:
    """Return how much nAUP changes when one setting of FRHSIC's base is changed, the largest gain first.

    A line for each factor and level that was trained on every dataset: the mean and the standard deviation over the
    splits of the difference to the base, which is averaged over the datasets in each split.
    """
    differences: dict[str, list[np.ndarray]] = {}
    datasets = 0
    for _, sweep in sweeps_of(rows, measure):
        datasets += 1
        single = dict(zip(sweep.methods, sweep.areas(np.eye(sweep.splits)).T, strict=True))
        for name, values in single.items():
            differences.setdefault(name, []).append(values - single["frhsic:base"])
    lines = []
    for variant in (*PUBLISHED, *VARIANTS):
        found = differences.get(variant.name, [])
        if variant.method == "frhsic" and variant.name != "frhsic:base" and len(found) == datasets:
            change = np.mean(found, axis=0)
            line = {"factor": variant.factor, "level": variant.level, "mean": change.mean(), "sd": change.std(ddof=1)}
            lines.append(line)
    return pd.DataFrame(lines).set_index(["factor", "level"]).sort_values("mean", ascending=False)


# The settings of the rivals in their natural order; None is what was published.
LEVELS: dict[str, tuple[str, str, tuple[str | None, ...], str]] = {
    "FREM: anchors": ("frem", "anchors", ("8", "16", None, "64", "128", "all"), "32"),
    "FREM: bandwidth on S": ("frem", "bandwidth on S", ("0.1", "0.25", None, "1"), "0.5"),
    "FREM: bandwidth on Z": ("frem", "bandwidth on Z", ("0.5", None, "2", "median"), "1"),
    "Reg-GDP: bandwidth on S": ("reg_gdp", "bandwidth on S", ("0.05", "0.1", None, "0.4"), "0.2"),
    "Reg-GDP: grid points": ("reg_gdp", "points", ("10", None, "100"), "30"),
}


def level_tables(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return nAUP along the levels of each rival's setting, mean and sd over the splits taken singly."""
    single = {
        (dataset, name): values
        for dataset, sweep in sweeps_of(rows, "gdp_reference")
        for name, values in zip(sweep.methods, sweep.areas(np.eye(sweep.splits)).T, strict=True)
    }
    tables = {}
    for title, (method, factor, levels, published) in LEVELS.items():
        names = [(method if level is None else f"{method}:{factor} {level}", level or published) for level in levels]
        lines = [
            {"dataset": dataset, "level": level, "mean": values.mean(), "sd": values.std(ddof=1), "values": values}
            for dataset in sorted({dataset for dataset, _ in single})
            for name, level in names
            if (values := single.get((dataset, name))) is not None
        ]
        order = [level for _, level in names]
        tables[title] = pd.DataFrame(lines).assign(level=lambda t, order=order: pd.Categorical(t["level"], order))
    return tables


def rivals_of(against: str) -> tuple[str, ...]:
    """Return the six rivals: ``"published"``, ``"retuned"`` (two by the rule) or ``"narrow"`` (Z of four columns).

    Examples
    --------
    >>> rivals_of("retuned")[:2]
    ('frem:anchors 8', 'reg_gdp:bandwidth on S 0.4')
    """
    rivals = [method for method in PARETO_METHODS if method != "frhsic"]
    retuned = {name.partition(":")[0]: name for name in RETUNED}
    names = {
        "published": rivals,
        "retuned": [retuned.get(method, method) for method in rivals],
        "narrow": [f"{method}:narrow" for method in rivals],
    }
    if against not in names:
        raise ValueError(f"against is {against!r}: choose one of {', '.join(map(repr, names))}.")
    return tuple(names[against])


def best_headline(*, splits: tuple[int, ...] | None = None, against: str = "published") -> pd.DataFrame:
    """Count verdicts of the published FRHSIC, the best variants and the default against six rivals, by measure.

    Each is compared alone with the rivals (nAUP, the same comparison for all), Holm over the thirty comparisons of a
    line. Against narrow rivals stand the default and the published FRHSIC, whose Z has four columns there too. For
    other pages: ``best_headline().loc[(BEST[0], "gdp_reference"), "ahead_corrected"]``. ``against`` as in
    :func:`rivals_of`.
    """
    rows = best_rows(splits=splits)
    rivals = rivals_of(against)
    shown = ("frhsic:narrow", DEFAULT.name) if against == "narrow" else ("frhsic", *BEST, DEFAULT.name)
    lines: dict[tuple[str, str], dict[str, int]] = {}
    for name in shown:
        for measure in CONVENTIONS:
            table = family(rows, measure=measure, summary="naup", method=name, methods=(name, *rivals))
            lines[name, measure] = verdict_counts(table)
    return pd.DataFrame(lines).T.rename_axis(["name", "measure"])
