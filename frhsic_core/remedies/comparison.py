"""Compare remedies on your own data: predict every sample by models that have not seen it."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

from frhsic_core._arrays import ArrayLike, warn_caller
from frhsic_core._choices import one_of
from frhsic_core.inputs.fitting import warn_of_attribute
from frhsic_core.remedies.attributes import warn_of_few
from frhsic_core.remedies.catalog import REMEDIES
from frhsic_core.remedies.cross_fits import CrossFits
from frhsic_core.remedies.encoder import TrainedEncoder
from frhsic_core.remedies.learners import LEARNERS, learner, without_steps
from frhsic_core.remedies.measured import Setting, measured
from frhsic_core.remedies.people import People, read_people
from frhsic_core.remedies.plain import WITH_S, WITHOUT_S, plain_of
from frhsic_core.remedies.remedy import Remedy
from frhsic_core.remedies.result import RemedyComparison


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
    """Fit remedies × learners × strengths to your data, and measure predictions of unseen samples.

    Every sample is predicted by models of folds without it, so all samples measure. The cost is
    that of all fits, about ten seconds for 1,500 samples; the trained encoder takes minutes and is
    compared if ``remedies`` has ``"encoder"``.

    A strength t below 1 is a blend of predictions, (1 − t) · without + t · with the remedy: a
    learner could undo a weaker change of X. The strength of an encoder is its λ, and the convex
    path has weights of its own for each strength.

    Parameters
    ----------
    X : array_like or DataFrame
        ``(n, d)``. Columns of text become indicators, and missing numbers become the median of the
        training samples. Leave S out of X: the remedies that may use S get it from
        ``sensitive_features``.
    y : array_like
        Numbers for a regression, two classes for a classification. The larger class counts as
        positive. Several classes are refused: compare each of them with the others.
    sensitive_features : array_like
        ``(n,)``, ``(n, p)`` or a frame with numeric and categorical columns.
    remedies : sequence or mapping of str, optional
        Of path, path_with_s, columns, leace, leace_spline, adjust_mean and adjust_rank,
        which are the default, and of price, project, kernel_eraser and encoder. A mapping gives the strengths
        of each. A model without a remedy is added, with S as a feature where remedies need S.
    learners : sequence of {"linear", "boosting"} or mapping of str to estimator
        What is trained after, or before, each remedy. A mapping names scikit-learn models of your
        own, with ``predict_proba`` if there are classes. They get X as an array of numbers. A
        pipeline with a ColumnTransformer gets X as it is, and a remedy that changes X stands before
        its last step. The convex path and the encoder have models of their own.
    n_splits : int
        Number of folds, at least two.
    task : {"auto", "regression", "classification"}
        Set it if y has few different whole numbers that are a scale and not classes.
    max_seconds : float, optional
        Start no further remedy after this time. What is complete is kept.
    random_state : int
        Seed of the folds and of the encoders.
    verbose : bool
        Print the fit that runs, with the time so far, to the error stream.

    Returns
    -------
    RemedyComparison
        A table, the frontier, a plot and an HTML view.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> age = rng.uniform(20, 70, 400)
    >>> X = np.column_stack([age + 5 * rng.normal(size=400), rng.normal(size=400)])
    >>> y = X[:, 0] / 10 + X[:, 1] + rng.normal(size=400)
    >>> options = {"remedies": {"leace": [0.5, 1.0]}, "learners": ["linear"]}
    >>> found = compare_remedies(X, y, sensitive_features=age, **options)
    >>> found.table[["remedy", "strength", "needs_s"]].values.tolist()
    [['none', 0.0, False], ['leace', 0.5, False], ['leace', 1.0, False]]
    """
    models = _named(learners)
    plan = plan_of(remedies, list(models))
    _require_folds_and_time(n_splits, max_seconds)
    people = read_people(X, y, sensitive_features, task)
    _check_before_fits(people, plan, models)
    fits = CrossFits(people, models, folds=_folds(people, n_splits), seed=random_state)
    clock = Clock(max_seconds, verbose=verbose)
    settings: list[Setting] = []
    for number, fit in enumerate(plan):
        if not clock.has_time() and not fit.remedy.is_plain:
            warn_caller(
                f"the comparison took more than {max_seconds:g} s: {number} of {len(plan)} fits are "
                "complete and kept."
            )
            break
        clock.say(fit, number + 1, len(plan))
        settings += settings_of(fit, fits)
    return RemedyComparison(measured(settings, fits), people.task.name, len(people), models)


@dataclass(frozen=True)
class Fit:
    """One remedy with the name of one learner, at some strengths."""

    remedy: Remedy
    learner: str
    strengths: tuple[float, ...]


class Clock:
    """The time since the start, the limit, and what is printed on the way."""

    def __init__(self, most: float | None, *, verbose: bool) -> None:
        self.most = most
        self.verbose = verbose
        self.begin = time.monotonic()

    def has_time(self) -> bool:
        """Return whether another fit may start."""
        return self.most is None or time.monotonic() - self.begin <= self.most

    def say(self, fit: Fit, number: int, fits: int) -> None:
        """Print the fit that starts to the error stream."""
        if not self.verbose:
            return
        passed = time.monotonic() - self.begin
        what = f"fit {number} of {fits}, {fit.remedy.key} with {fit.learner}"
        print(f"{what}, after {passed:.0f} s", file=sys.stderr)


def settings_of(fit: Fit, fits: CrossFits) -> list[Setting]:
    """Return the predictions of all samples by one remedy, at each strength."""
    start = time.process_time()
    with warnings.catch_warnings(action="ignore"):  # the table shows what a fit was worth
        plain = None
        if fit.remedy.blends:
            plain = fits.scores(plain_of(fit.remedy), fit.learner)
        every = fit.remedy.cross_fit(fits, fit.learner, fit.strengths, plain=plain)
    seconds = time.process_time() - start
    return [
        Setting(fit.remedy, fit.learner, strength, predicted, seconds)
        for strength, predicted in zip(fit.strengths, every, strict=True)
    ]


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
    keys = {key for key, remedy in REMEDIES.items() if remedy.by_default}
    if remedies is not None:
        keys = {*remedies, WITHOUT_S.key}
    if any(REMEDIES[key].needs_s for key in keys):
        keys.add(WITH_S.key)
    chosen = [remedy for key, remedy in REMEDIES.items() if key in keys]
    chosen.sort(key=lambda remedy: not remedy.by_default)
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


def _folds(people: People, n_splits: int) -> int:
    """Return the number of folds, at most the number of samples of the rarer class."""
    if people.classes is None:
        return min(n_splits, len(people))
    return min(n_splits, int(min(people.y.sum(), len(people) - people.y.sum())))


def _require_folds_and_time(n_splits: int, max_seconds: Any) -> None:
    if n_splits < 2:
        raise ValueError(f"n_splits is {n_splits}: at least two folds are needed.")
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
