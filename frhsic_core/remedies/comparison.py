"""Compare remedies on your own data: fit each on several splits, and measure it on held-out samples."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from frhsic_core._arrays import ArrayLike, warn_caller
from frhsic_core._choices import one_of
from frhsic_core.inputs.fitting import warn_of_attribute
from frhsic_core.remedies.attributes import attribute_matrix, warn_of_few
from frhsic_core.remedies.catalog import REMEDIES, WITH_S, WITHOUT_S, plain_of
from frhsic_core.remedies.dependence import dependence_of
from frhsic_core.remedies.encoder import TrainedEncoder
from frhsic_core.remedies.learners import LEARNERS, learner, without_steps
from frhsic_core.remedies.people import TEST_SHARE, People, read_people
from frhsic_core.remedies.remedy import Blend, Path, Predictor, Remedy
from frhsic_core.remedies.result import RemedyComparison, summarized

Row = dict[str, Any]


def compare_remedies(
    X: Any,
    y: Any,
    *,
    sensitive_features: ArrayLike,
    remedies: Sequence[str] | Mapping[str, Sequence[float]] | None = None,
    learners: Sequence[str] | Mapping[str, Any] = LEARNERS,
    n_splits: int = 5,
    task: str = "auto",
    max_seconds: float | None = None,
    random_state: int = 0,
    verbose: bool = False,
) -> RemedyComparison:
    """Fit remedies × learners × strengths on several splits of your data, and measure them on held-out samples.

    The cost is that of all fits: for 5,000 samples about half a minute for each split, most of it for the trained
    encoders; leave ``"encoder"`` out of ``remedies`` to save it.

    A strength t below 1 is a blend of predictions, (1 − t) · without + t · with the remedy: a learner could undo a
    weaker change of X. The strength of an encoder is its λ.

    Parameters
    ----------
    X : array_like or DataFrame
        ``(n, d)``. Columns of text become indicators, and missing numbers become the median of the training samples.
        Leave S out of X: the remedies that may use S get it from ``sensitive_features``.
    y : array_like
        Numbers for a regression, two classes for a classification. The larger class counts as positive. Several
        classes are refused: compare each of them with the others.
    sensitive_features : array_like
        ``(n,)``, ``(n, p)`` or a frame with numeric and categorical columns.
    remedies : sequence or mapping of str, optional
        Of leace, leace_spline, kernel_eraser, project, encoder, adjust_mean and adjust_rank; all by default. A mapping
        gives the strengths of each. A model without a remedy is added, with S as a feature where remedies need S.
    learners : sequence of {"linear", "boosting"} or mapping of str to estimator
        What is trained after, or before, each remedy. A mapping names scikit-learn models of your own, with
        ``predict_proba`` if there are classes. They get X as an array of numbers. A pipeline with a ColumnTransformer
        gets X as it is, and a remedy that changes X stands before its last step.
    n_splits : int
        Number of random splits into 70 % training and 30 % test samples.
    task : {"auto", "regression", "classification"}
        Set it if y has few different whole numbers that are a scale and not classes.
    max_seconds : float, optional
        Start no further fit after this time. Complete splits are kept; of the first split, what is done.
    random_state : int
        Seed of the splits and of the encoders.
    verbose : bool
        Print the fit that runs, with the time so far, to the error stream.

    Returns
    -------
    RemedyComparison
        A table, the frontier, a plot and an HTML view.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> age = rng.uniform(20, 70, 400)
    >>> X = np.column_stack([age + 5 * rng.normal(size=400), rng.normal(size=400)])
    >>> y = X[:, 0] / 10 + X[:, 1] + rng.normal(size=400)
    >>> found = compare_remedies(X, y, sensitive_features=age, remedies=["leace"], learners=["linear"], n_splits=2)
    >>> found.table[["remedy", "strength", "needs_s"]].values.tolist()
    [['none', 0.0, False], ['leace', 0.5, False], ['leace', 1.0, False]]
    """
    models = _named(learners)
    plan = plan_of(remedies, list(models))
    _require_positive(n_splits, max_seconds)
    people = read_people(X, y, sensitive_features, task)
    _check_before_fits(people, plan, models)
    clock = Clock(max_seconds, verbose=verbose)
    options: dict[str, Any] = {"test_size": TEST_SHARE, "random_state": random_state}
    splits = people.task.random_splits(n_splits, **options).split(people.x, people.y)
    rows: list[Row] = []
    for number, (train, test) in enumerate(splits):
        parts = people.take(train), people.take(test)
        split = Split(number, *parts, seed=random_state + number)
        clock.place = f"split {number + 1} of {n_splits}"
        found = measured(split, plan, models, clock)
        if clock.late and number > 0:
            warn_caller(_late(max_seconds, f"{number} of {n_splits} splits are complete and kept"))
            break
        rows += found
        if clock.late:
            warn_caller(_late(max_seconds, "a part of one split is kept"))
            break
    table = pd.DataFrame(rows)
    return RemedyComparison(
        table, summarized(table, test_share=TEST_SHARE), people.task.name, models
    )


@dataclass(frozen=True)
class Fit:
    """One remedy with the name of one learner, at some strengths."""

    remedy: Remedy
    learner: str
    strengths: tuple[float, ...]


@dataclass(frozen=True)
class Split:
    """Training samples, and new ones that measure."""

    number: int
    known: People
    new: People
    seed: int


class Clock:
    """The time since the start, the limit, and what is printed on the way."""

    def __init__(self, most: float | None, *, verbose: bool) -> None:
        self.most = most
        self.verbose = verbose
        self.begin = time.monotonic()
        self.late = False
        self.place = ""

    def has_time(self, *, first: bool) -> bool:
        """Return whether another fit may start; the first one always may."""
        passed = time.monotonic() - self.begin
        self.late = not first and self.most is not None and passed > self.most
        return not self.late

    def say(self, fit: Fit, number: int, fits: int) -> None:
        """Print the fit that starts to the error stream."""
        if not self.verbose:
            return
        passed = time.monotonic() - self.begin
        what = f"{self.place}, fit {number} of {fits}, {fit.remedy.key} with {fit.learner}"
        print(f"{what}, after {passed:.0f} s", file=sys.stderr)


def measured(
    split: Split, plan: Sequence[Fit], models: Mapping[str, Any], clock: Clock
) -> list[Row]:
    """Return a row for each remedy, learner and strength on one split.

    The models without a remedy come first in the plan: the others are blended with them.
    """
    rows: list[Row] = []
    plain: dict[tuple[str, str], Predictor] = {}
    for number, fit in enumerate(plan):
        if not clock.has_time(first=split.number == 0 and number == 0):
            break
        clock.say(fit, number + 1, len(plan))
        start = time.process_time()
        path = fitted_path(split.known, fit, models, plain, seed=split.seed)
        every = path(split.new.x, split.new.s)
        seconds = time.process_time() - start
        for strength, predicted in zip(fit.strengths, every, strict=True):
            row = {
                "remedy": fit.remedy.key,
                "learner": fit.learner,
                "strength": strength,
                "split": split.number,
                "cpu_seconds": seconds,
                "needs_s": fit.remedy.needs_s,
            }
            rows.append(row | scores_of(predicted, split))
    return rows


def fitted_path(
    known: People,
    fit: Fit,
    models: Mapping[str, Any],
    plain: dict[tuple[str, str], Predictor],
    *,
    seed: int,
) -> Path:
    """Fit one remedy at all its strengths; one without a remedy is kept in ``plain``."""
    name = models.get(fit.learner, fit.learner)
    without = plain.get((plain_of(fit.remedy).key, fit.learner))
    with warnings.catch_warnings(action="ignore"):  # the table shows what a fit was worth
        if not fit.remedy.is_plain:
            return fit.remedy.fit_path(known, name, fit.strengths, plain=without, seed=seed)
        predictor = fit.remedy.fit(known, name, seed=seed)
        plain[fit.remedy.key, fit.learner] = predictor
        return Blend(None, predictor, fit.strengths)


def scores_of(predicted: np.ndarray, split: Split) -> dict[str, float]:
    """Return the score and the dependence of the predictions for the new samples of a split."""
    task = split.new.task
    scale = task.unit(split.known.y)
    dependence = dependence_of(predicted, attribute_matrix(split.new.s), scale=scale)
    return {"score": task.score(predicted, split.new.y)} | dependence


# What is compared ---------------------------------------------------------------------------------


def plan_of(remedies: Any, learners: Sequence[str]) -> list[Fit]:
    """Return the fits of a comparison.

    The models without a remedy come first, since others are blended with them, and the most
    expensive come last, for a limit of time.
    """
    if isinstance(remedies, str):
        remedies = [remedies]
    for key in remedies or ():
        one_of("remedy", key, REMEDIES)
    keys = set(REMEDIES)
    if remedies is not None:
        keys = {*remedies, WITHOUT_S.key}
    if any(REMEDIES[key].needs_s for key in keys):
        keys.add(WITH_S.key)
    chosen = [remedy for key, remedy in REMEDIES.items() if key in keys]
    chosen.sort(key=lambda remedy: remedy.own_learner is not None)
    given = remedies if isinstance(remedies, Mapping) else {}
    plan = []
    for remedy in chosen:
        strengths = checked_strengths(remedy, given.get(remedy.key, remedy.strengths))
        names = learners
        if remedy.own_learner is not None:
            names = [remedy.own_learner]
        plan += [Fit(remedy, name, strengths) for name in names]
    return plan


def checked_strengths(remedy: Remedy, given: Sequence[float]) -> tuple[float, ...]:
    """Return strengths as numbers, or raise an error for one that this remedy cannot have."""
    strengths = tuple(float(strength) for strength in given)
    if remedy.is_plain:
        return remedy.strengths
    for strength in strengths:
        if not 0.0 <= strength <= remedy.strongest:
            raise ValueError(
                f"remedies has the strength {strength:g} for {remedy.key!r}: {remedy.meaning}."
            )
    return strengths


def _named(learners: Sequence[str] | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(learners, Mapping):
        return dict(learners)
    return {name: name for name in learners}


# What is checked before the first fit ---------------------------------------------------------------


def _require_positive(n_splits: int, max_seconds: Any) -> None:
    if n_splits < 1:
        raise ValueError(f"n_splits is {n_splits}: at least one split is needed.")
    if max_seconds is None:
        return
    if not (isinstance(max_seconds, Real) and float(max_seconds) >= 0.0):
        raise ValueError(
            f"max_seconds is {max_seconds!r}: give a number of seconds, zero or more, or None."
        )


def _check_before_fits(people: People, plan: Sequence[Fit], models: Mapping[str, Any]) -> None:
    """Raise errors and warnings at once, and not after minutes of fits."""
    for model in models.values():
        learner(without_steps(model)[1], people.task.name)
    warn_of_attribute(people.x, people.s)
    if people.classes is not None:
        warn_of_few(people.y)
    for fit in plan:
        if isinstance(fit.remedy, TrainedEncoder):
            fit.remedy.require_resolution(people.s)


def _late(most: float | None, what: str) -> str:
    return f"the comparison took more than {most:g} s: {what}."
