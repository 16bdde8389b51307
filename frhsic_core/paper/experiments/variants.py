r"""The choice of the recommended form of FRHSIC and the same search for its rivals.

**Z of four dimensions.** Every method of the main table with a representation of four dimensions (``variants_best``,
which also has rows of earlier forms that nothing reads): five datasets, 25 splits. The published settings are in the
main sweep.

**The recommended form.** The rule and both runs were fixed before any candidate was trained. Of 24 candidates, twelve
are the full cross of estimator, scaling of Z (whitened with a moving average of the bandwidth, or standardized with the
bandwidth of every batch) and kernels (Gaussian, or multi-scale on Z and on S), with a head term of weight 1 and a Z of
four dimensions. Twelve more change one thing about the multi-scale forms: the weight of the head term, the bandwidth
policy, or the dimension of Z. They are trained on COMPAS and ACS Income, splits 42 to 46, nine λ
(``recommended_search``). The rivals are the six of the main table, as published and with a Z of four dimensions. The
shortfall of a candidate by one measure is the nAUP of the best rival minus its own. The score is the largest of the
shortfalls by ``MEASURES``, averaged over the two datasets; the smallest score wins, and a tie goes to the earlier
candidate. A form that is good by GDP alone, or by the probe alone, does not win. The winner is then trained on all five
datasets with 25 splits (``recommended_test``, which also has rows of the form with other kernels that nothing reads).
Adult, MEPS and Crime took no part in the choice among the candidates, but the trial that suggested the candidates had
used them.

**The same search for the rivals.** Each of the six rivals gets the three dimensions of Z and one more choice: FREM and
MMD the three scalings of Z, dCor its form, ADV its adversary, LAFTR its bins, Reg-GDP its bandwidth
(``rival_search``). What is already stored is not trained again. The same rule, against the same twelve rivals, chooses
one form of each, which is trained on five datasets with 25 splits (``rival_test``). Unfair with a Z of four dimensions
is there too.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from frhsic_core.paper.experiments import DATASETS, GRIDS, METHODS, SPLITS
from frhsic_core.paper.experiments.comparison import named, sweeps_of
from frhsic_core.paper.experiments.main import family
from frhsic_core.paper.runs.plan import Experiment, Settings, Task, stacks_of
from frhsic_core.paper.stored import stored_rows
from frhsic_core.registry import PARETO_METHODS

CHOICE_DATASETS = ("compas", "acs_income")
#: GDP as the paper computes it and as it defines it, and the R² of the nonlinear probe.
MEASURES = ("gdp_reference", "gdp_sample", "nonlinear_r2")


@dataclass(frozen=True)
class Variant:
    """A method in one setting: ``option`` is its name in the store, ``settings`` those of the penalty."""

    option: str
    method: str
    settings: Settings
    dimension: int

    @property
    def name(self) -> str:
        """Method and option, as tables of sweeps name it."""
        return f"{self.method}:{self.option}"


#: Every method of the main table with a Z of four dimensions.
NARROW = tuple(Variant("narrow", method, (), 4) for method in METHODS if method != "unfair")
_PUBLISHED_RIVALS = tuple(method for method in PARETO_METHODS if method != "frhsic")
#: The six rivals as published, and the six with a Z of four dimensions.
RIVALS = (*_PUBLISHED_RIVALS, *(v.name for v in NARROW if v.method in _PUBLISHED_RIVALS))


# The candidates ------------------------------------------------------------------------------------------------------

_POLICY = {"whiten": "moving_average", "standardize": "every_batch"}


def _candidate(
    estimator: str,
    scale: str,
    kernels: str = "multi_scale",
    *,
    head: float = 1.0,
    policy: str = "",
    dimension: int = 4,
) -> Variant:
    """Return a candidate; its name says everything in which it differs from another candidate."""
    policy = policy or _POLICY[scale]
    settings: dict[str, Any] = {
        "estimator": estimator,
        "scale": scale,
        "bandwidth": policy,
        "on": "both" if head else "representation",
        "kernel": kernels,
        "bandwidth_s": "median",
        "attributes": "joint",
        "kernel_s": kernels,
        "output_weight": head or 1.0,
    }
    name = f"{estimator}, {scale}, {policy}, {kernels}, head {head:g}, dimension {dimension}"
    return Variant(name, "frhsic", tuple(settings.items()), dimension)


_TWO = ("normalized", "unbiased")
_CROSS = [
    (e, scale, k)
    for e in (*_TWO, "biased")
    for scale in _POLICY
    for k in ("multi_scale", "gaussian")
]
_PAIR = (("normalized", "whiten"), ("unbiased", "standardize"))
CANDIDATES = (
    *(_candidate(*form) for form in _CROSS),
    *(_candidate(estimator, scale, head=3.0) for estimator in _TWO for scale in _POLICY),
    *(_candidate(*form, head=0.0) for form in _PAIR),
    *(_candidate(estimator, "standardize", policy="moving_average") for estimator in _TWO),
    *(_candidate(*form, dimension=8) for form in _PAIR),
    *(_candidate(estimator, "standardize", dimension=50) for estimator in _TWO),
)
#: The winner by the rule; that the stored search still gives it is tested.
RECOMMENDED = "frhsic:biased, whiten, moving_average, gaussian, head 1, dimension 4"
_WINNER = next(candidate for candidate in CANDIDATES if candidate.name == RECOMMENDED)


# The rivals' own search: what is changed beside the dimension of Z; empty for the published form.
_CHOICES: dict[str, dict[str, dict[str, Any]]] = {
    "frem": {
        f"Z {scale}": {"scale": scale, "bandwidth": policy} for scale, policy in _POLICY.items()
    },
    "mmd_binned": {f"Z {scale}": {"scale": scale} for scale in _POLICY},
    "dcor": {"correlation": {"form": "correlation"}},
    "adv": {"HGR adversary": {"adversary": "hgr"}},
    "laftr": {"ten bins": {"bins": 10}},
    "reg_gdp": {"bandwidth on S 0.4": {"smoothing": 0.4}},
}


def _rival_forms() -> tuple[Variant, ...]:
    forms = []
    for method, choices in _CHOICES.items():
        for words, changes in {"": {}, **choices}.items():
            for dimension in (4, 8, 50):
                if (
                    changes or dimension == 8
                ):  # the main sweep has 50 dimensions, ``variants_best`` has four
                    name = ", ".join(filter(None, (words, f"dimension {dimension}")))
                    forms.append(Variant(name, method, tuple(changes.items()), dimension))
    return tuple(forms)


#: The forms of the rivals that are trained for the search, beside the twelve of ``RIVALS``.
RIVAL_FORMS = _rival_forms()
_UNFAIR_NARROW = Variant("narrow", "unfair", (), 4)


# The plans -----------------------------------------------------------------------------------------------------------


def _plan(name: str, variants: tuple[Variant, ...], *, choice: bool) -> Experiment:
    """Return the variants on the two datasets and five splits of the choice, or on five datasets and 25 splits.

    Unfair is in the main sweep, with the same splits, seeds and encoder.
    """
    datasets, splits = (CHOICE_DATASETS, SPLITS["text"]) if choice else (DATASETS, SPLITS["full"])
    jobs = [
        stacks_of([Task(dataset, "reference", "reference")], [v.method], GRIDS["full"], splits,
              options={v.option: v.settings}, network=(("widths", (50, v.dimension)),))
        for dataset in datasets for v in variants
    ]  # fmt: skip
    return Experiment(name, tuple(chain.from_iterable(jobs)))


def plan_variants_best() -> Experiment:
    """Return every method with a Z of four dimensions."""
    return _plan("variants_best", NARROW, choice=False)


def plan_recommended_search() -> Experiment:
    """Return the candidates on the two datasets of the choice."""
    return _plan("recommended_search", CANDIDATES, choice=True)


def plan_recommended_test() -> Experiment:
    """Return the recommended form."""
    return _plan("recommended_test", (_WINNER,), choice=False)


def plan_rival_search() -> Experiment:
    """Return the forms of the rivals on the two datasets of the choice."""
    return _plan("rival_search", RIVAL_FORMS, choice=True)


def plan_rival_test() -> Experiment:
    """Return Unfair with a Z of four dimensions, and the chosen form of each rival that no other table has."""
    chosen = chosen_rivals()
    forms = tuple(form for form in RIVAL_FORMS if form.name in chosen)
    return _plan("rival_test", (_UNFAIR_NARROW, *forms), choice=False)


# Tables --------------------------------------------------------------------------------------------------------------


def floored(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with every classifier at least as accurate as the constant one, which is open to everybody.

    nAUP normalises the utility over all points of a comparison: a single model below the majority rate lifts the
    utility of every constant model, and can turn the order of two other methods. With the floor it cannot.
    """
    lifted = np.maximum(rows["performance"], rows["constant"]).where(
        rows["task"] != "regression", rows["performance"]
    )
    return rows.assign(performance=lifted)


def variant_areas(rows: pd.DataFrame) -> pd.DataFrame:
    """Return nAUP of every method and variant in ``rows``, a line for each dataset and name, a column for each measure.

    All of them form one comparison on each dataset: the same λ, the same splits, the same normalisation.
    """
    columns = {
        measure: pd.concat(
            {
                dataset: pd.Series(sweep.areas(), index=sweep.methods)
                for dataset, sweep in sweeps_of(rows, measure)
            },
            names=["dataset", "name"],
        )
        for measure in MEASURES
    }
    return pd.DataFrame(columns)


def rival_rows(
    main: pd.DataFrame, best: pd.DataFrame, *, datasets: tuple[str, ...] = CHOICE_DATASETS
) -> pd.DataFrame:
    """Return the rows of Unfair and of the rivals, from the main sweep and from that of the low-dimensional Z."""
    rows = pd.concat(
        [main[main["option"] == ""], best[best["option"] == "narrow"]], ignore_index=True
    )
    reference = (rows["variant"] == "reference") & (rows["protocol"] == "reference")
    return rows[reference & rows["dataset"].isin(datasets) & (rows["method"] != "frhsic")]


def shortfalls(rows: pd.DataFrame, *, rivals: bool = False) -> pd.DataFrame:
    """Score the candidates by the rule of this module, the best first.

    ``rows`` are those of the candidates, of the rivals and of Unfair (``named``). The columns are ``score`` and, for
    each dataset and measure, the nAUP of the best rival minus that of the candidate. With ``rivals`` the candidates are
    the forms of the rivals, those of ``RIVALS`` too.
    """
    areas = variant_areas(floored(rows))
    names = areas.index.get_level_values("name")
    best = areas[names.isin(RIVALS)].groupby(level="dataset").max()
    own = areas if rivals else areas[~names.isin(RIVALS)]
    shortfall = best.reindex(own.index.get_level_values("dataset")).set_axis(own.index) - own
    score = shortfall.max(axis=1).groupby(level="name").mean()
    table = shortfall.unstack("dataset")
    table.columns = pd.Index([f"{measure}, {dataset}" for measure, dataset in table.columns])
    # A stable sort keeps the order of the candidates where scores are equal.
    planned = (
        [*RIVALS, *(form.name for form in RIVAL_FORMS)]
        if rivals
        else [form.name for form in CANDIDATES]
    )
    order = [name for name in planned if name in table.index]
    order += [name for name in table.index if name not in order]
    return table.assign(score=score).loc[order].sort_values("score", kind="stable")


def search_table(*, rivals: bool = False) -> pd.DataFrame:
    """Return :func:`shortfalls` of the stored search: of the recommended form, or of the forms of the rivals."""
    known = rival_rows(stored_rows("main"), stored_rows("variants_best"))
    own = stored_rows("rival_search" if rivals else "recommended_search")
    rows = [own, known[known["split"].isin(SPLITS["text"])]]
    return shortfalls(named(pd.concat(rows, ignore_index=True)), rivals=rivals)


def chosen_rivals() -> tuple[str, ...]:
    """Return the form of each rival with the smallest score of the stored search."""
    scores = search_table(rivals=True)["score"]
    methods = scores.index.str.partition(":").get_level_values(0)
    return tuple(scores[methods == method].idxmin() for method in _PUBLISHED_RIVALS)


def comparisons() -> pd.DataFrame:
    """Compare the recommended form with every rival on every dataset, 25 splits.

    It is compared with the six published rivals, with the six with a Z of four dimensions, and with the six that had
    the same search, by each measure; Holm's correction over the thirty comparisons of such a family. The columns are
    those of :func:`frhsic_core.paper.experiments.main.family`, with ``measure`` and ``against``.
    """
    rivals = rival_rows(stored_rows("main"), stored_rows("variants_best"), datasets=DATASETS)
    tuned = stored_rows("rival_test")
    rows = named(
        pd.concat([rivals, tuned[tuned["method"] != "unfair"], stored_rows("recommended_test")])
    )
    groups = {"published": RIVALS[:6], "four dimensions": RIVALS[6:], "searched": chosen_rivals()}
    tables = []
    for against, group in groups.items():
        for measure in MEASURES:
            table = family(rows, measure=measure, method=RECOMMENDED, methods=(RECOMMENDED, *group))
            tables.append(table.assign(measure=measure, against=against))
    return pd.concat(tables, ignore_index=True)


def verdicts(table: pd.DataFrame) -> pd.DataFrame:
    """Count the verdicts of :func:`comparisons` by the corrected test; ``unseen``: on Adult, MEPS and Crime."""
    keys = [table[key] for key in ("against", "measure")]
    unseen = ~table["dataset"].isin(CHOICE_DATASETS)
    found = {
        verdict: table["verdict_corrected"] == verdict
        for verdict in ("better", "not_significant", "worse")
    }
    found |= {f"{verdict}, unseen": found[verdict] & unseen for verdict in ("better", "worse")}
    return pd.DataFrame(found).groupby(keys, sort=False).sum()
