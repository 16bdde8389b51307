"""Tables of the variants, and the rule that picks the best: fixed before any of them was trained."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from frhsic_core.experiments.pareto import Frontiers
from frhsic_core.experiments.reference import stored_rows
from frhsic_core.experiments.tables import extremes
from frhsic_core.experiments.variants import PUBLISHED, VARIANTS, Variant, variant_rows

__all__ = ["MEASURES", "all_rows", "best", "factor_table", "ranking", "variant_areas"]

# GDP as the paper computes it and as it defines it; then the representation, by a probe and by the criterion itself.
MEASURES = ("gdp_reference", "gdp_sample", "nonlinear_r2", "normalized_hsic_1")
KEYS = ["dataset", "variant", "protocol"]


def all_rows() -> pd.DataFrame:
    """Return the stored variants beside the main sweep, ready for a comparison."""
    return variant_rows(stored_rows("variants"), stored_rows("main"))


def _frontiers(rows: pd.DataFrame, measure: str) -> Iterator[tuple[str, Frontiers]]:
    for key, part in rows.groupby(KEYS, sort=True):
        yield str(key[0]), Frontiers.from_rows(part, dependence=measure, name="name")


def variant_areas(rows: pd.DataFrame, *, measures: tuple[str, ...] = MEASURES) -> pd.DataFrame:
    """Return nAUP of every method and variant in ``rows``, a line for each dataset and name, a column for each measure.

    All of them form one comparison on each dataset: the same λ, the same splits, the same normalisation.
    """
    columns = {
        measure: pd.concat(
            {dataset: pd.Series(sweep.areas(), index=sweep.methods) for dataset, sweep in _frontiers(rows, measure)},
            names=["dataset", "name"],
        )
        for measure in measures
    }
    return pd.DataFrame(columns)


def ranking(rows: pd.DataFrame, *, method: str = "frhsic") -> pd.DataFrame:
    r"""Rank the variants of a method; a line for each, the best first.

    ``rank`` is the mean, over datasets and the four measures of :data:`MEASURES`, of the place by nAUP among the
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


def factor_table(rows: pd.DataFrame, *, method: str, measures: tuple[str, ...] = MEASURES) -> pd.DataFrame:
    """Return nAUP by factor and level, mean over the datasets: what changing one setting does.

    The first lines are what was published and (for FRHSIC) the base that every other line departs from.
    """
    areas = variant_areas(rows, measures=measures).groupby(level="name").mean()
    shown: list[Variant] = [v for v in (*PUBLISHED, *VARIANTS) if v.method == method and v.name in areas.index]
    index = pd.MultiIndex.from_tuples([(v.factor, v.level) for v in shown], names=["factor", "level"])
    return areas.loc[[v.name for v in shown]].set_axis(index)
