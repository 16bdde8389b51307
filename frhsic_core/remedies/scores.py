"""Adjust scores from scores and attributes alone."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.isotonic import isotonic_regression
from sklearn.utils import Tags
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from frhsic_core._arrays import ArrayLike, warn_caller
from frhsic_core._atomic_files import write_atomically
from frhsic_core.remedies.attributes import read_attributes, warn_of_no_attribute
from frhsic_core.remedies.links import LINKS
from frhsic_core.remedies.rank_adjustment import ADJUSTMENTS
from frhsic_core.remedies.saved import read_saved, written
from frhsic_core.remedies.score_checks import (
    choose_link,
    known_rows,
    read_scores,
    read_weight,
    require_same_kind,
    require_scores_to_adjust,
    rows_of,
)

MISSING = ("refuse", "leave", "expected")
_PLACES = 50  # of the scores, at which the expected adjustment is kept


class ScoreAdjuster(TransformerMixin, BaseEstimator):
    """Adjust scores along S: fit on scores and attributes, save, and apply to new scores.

    This is the adjustment of ``AdjustedClassifier`` and ``AdjustedRegressor`` without their model.
    Scores from 0 to 1 are adjusted as logits and stay between 0 and 1. Other scores keep their unit
    and, if none is negative, their range. Their mean is kept. Nobody overtakes a person with the
    same attributes. **S is needed for every score that is adjusted**; ``missing`` says what happens
    without it. O(n log n).

    Parameters
    ----------
    method : {"rank", "mean"}
        What no longer depends on S: the whole distribution of the scores, or their mean.
    link : {"auto", "identity", "log", "logit"}
        The scale of the adjustment. Automatic: logits for scores from 0 to 1, and the scores as
        they are otherwise. ``"log"`` is for positive scores such as premiums and expected claims:
        it multiplies, so they stay positive.
    keep_range : bool
        Keep adjusted scores within the range of the scores in fit, if none of these is negative. A
        warning says how many had to be moved. The mean stays. Other links keep their range anyway.
    missing : {"refuse", "leave", "expected"}
        What happens to people without an attribute: an error; their scores stay as they are; or
        they get the average adjusted score of people with their score. A warning counts them.

    Attributes
    ----------
    adjustment_ : object or None
        The fitted adjustment; None without attributes.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> age = rng.uniform(20, 70, 1000)
    >>> score = age + 10 * rng.normal(size=1000)
    >>> adjuster = ScoreAdjuster().fit(score, sensitive_features=age)
    >>> # high at age 30, low at age 60
    >>> new = adjuster.transform([50.0, 50.0], sensitive_features=[30, 60])
    >>> bool(new[0] > new[1] + 20)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "method": [StrOptions(set(ADJUSTMENTS))],
        "link": [StrOptions({"auto", *LINKS})],
        "keep_range": ["boolean"],
        "missing": [StrOptions(set(MISSING))],
    }

    def __init__(
        self,
        method: str = "rank",
        *,
        link: str = "auto",
        keep_range: bool = True,
        missing: str = "refuse",
    ) -> None:
        self.method = method
        self.link = link
        self.keep_range = keep_range
        self.missing = missing

    def fit(
        self,
        scores: ArrayLike,
        y: Any = None,
        *,
        sensitive_features: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit on scores ``(n,)`` that the model gave to people it was not trained on.

        Parameters
        ----------
        scores : array_like
            ``(n,)``.
        y : object
            Ignored.
        sensitive_features : array_like
            Their attributes.
        sample_weight : array_like, optional
            How much each person counts. Of scores per year, such as a yearly premium, it is the
            exposure in years.
        """
        self._validate_params()
        values = read_scores(scores)
        self.adjustment_ = None
        self.expected_ = None
        if sensitive_features is None:
            warn_of_no_attribute(self, "fit(scores, sensitive_features=s)")
            return self
        known = known_rows(sensitive_features, scores, len(values))
        self._say_missing(known)
        weight = read_weight(sample_weight, len(values))
        if not known.all():
            values = values[known]
            sensitive_features = rows_of(sensitive_features, known)
            weight = None if weight is None else weight[known]
        frame = read_attributes(sensitive_features, len(values), name="scores", to_fit=True)
        require_scores_to_adjust(values)
        link = choose_link(self.link, values)
        adjustment = ADJUSTMENTS[self.method](link, keep_range=self.keep_range)
        with warnings.catch_warnings(action="ignore"):  # transform says it of its own rows
            self.adjustment_ = adjustment.fit(values, frame, weight=weight)
            self.expected_ = _expected(values, self.adjustment_(values, frame))
        return self

    def transform(
        self, scores: ArrayLike, *, sensitive_features: ArrayLike | None = None
    ) -> np.ndarray:
        """Return the adjusted scores; each depends on its own row only."""
        check_is_fitted(self)
        values = read_scores(scores)
        if self.adjustment_ is None:
            return values
        if sensitive_features is None:
            raise ValueError(
                "sensitive_features is missing: an adjustment needs S of every score. Pass "
                "transform(scores, sensitive_features=s)."
            )
        require_same_kind(values, self.adjustment_.link)
        known = known_rows(sensitive_features, scores, len(values))
        self._say_missing(known)
        if known.all():
            frame = read_attributes(sensitive_features, len(values), name="scores")
            return self.adjustment_(values, frame)
        new = self.without_attribute(values)
        if known.any():
            part = rows_of(sensitive_features, known)
            new[known] = self.adjustment_(values[known], read_attributes(part, len(part)))
        return new

    def fit_transform(self, scores: ArrayLike, y: Any = None, **fit_params: Any) -> np.ndarray:
        """Fit on scores and attributes, and return these scores adjusted."""
        self.fit(scores, y, **fit_params)
        return self.transform(scores, sensitive_features=fit_params.get("sensitive_features"))

    def without_attribute(self, scores: ArrayLike) -> np.ndarray:
        """Return the scores of people whose attribute is not known, as ``missing`` says.

        With ``"expected"`` they are the average adjusted score of people with these scores.
        """
        values = read_scores(scores)
        if self.missing != "expected" or self.expected_ is None:
            return values.copy()
        before, after = self.expected_
        within = np.clip(values, before[0], before[-1])
        return np.interp(within, before, after) + (values - within)

    def _say_missing(self, known: np.ndarray) -> None:
        """Raise an error, or warn, if some people have no attribute."""
        count = int((~known).sum())
        if count == 0:
            return
        what = f"sensitive_features has {count:,} missing or infinite values in {len(known):,} rows"
        if self.missing == "refuse":
            raise ValueError(
                f"{what}: drop those rows first, or choose what happens to these people. "
                "missing='leave' leaves their scores as they are, missing='expected' gives them "
                "the average adjusted score of people with their score."
            )
        does = {
            "leave": "their scores stay as they are",
            "expected": "they get the average adjusted score of people with their score",
        }
        warn_caller(f"{what}: {does[self.missing]}. Fits leave these people out.")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted adjustment as JSON with a seal.

        :meth:`load` reads it without running any code in it.
        """
        check_is_fitted(self)
        text = written(self)
        write_atomically({Path(path): lambda file: file.write(text.encode())})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file of :meth:`save`.

        Raises
        ------
        ValueError
            The file was changed, damaged or made by something else. The seal shows damage and
            changes by hand; it is no signature, since whoever can write a file can seal it anew.
        """
        return read_saved(cls, path)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        return tags


def adjust_scores(
    scores: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    method: str = "rank",
    link: str = "auto",
    keep_range: bool = True,
    missing: str = "refuse",
    sample_weight: ArrayLike | None = None,
) -> np.ndarray:
    """Return scores that depend less on S, from scores and attributes alone.

    No labels, features or model are needed. For new people later, keep a
    :class:`~frhsic_core.ScoreAdjuster`, which this function fits and applies to the same rows.
    O(n log n).

    Parameters
    ----------
    scores : array_like
        ``(n,)``: probabilities, which stay between 0 and 1, or scores of any unit, which keep their
        range if none is negative.
    sensitive_features : array_like
        ``(n,)``, ``(n, p)`` or a frame with numeric and categorical columns.
    method, link, keep_range, missing
        As in :class:`~frhsic_core.ScoreAdjuster`.
    sample_weight : array_like, optional
        How much each person counts, such as an exposure.

    Examples
    --------
    >>> from frhsic_core import gdp
    >>> rng = np.random.default_rng(0)
    >>> age = rng.uniform(20, 70, 2000)
    >>> score = 1 / (1 + np.exp(-(age - 45) / 20 - rng.normal(size=2000)))
    >>> gdp(score, age) > 0.1, gdp(adjust_scores(score, sensitive_features=age), age) < 0.02
    (True, True)
    """
    adjuster = ScoreAdjuster(method, link=link, keep_range=keep_range, missing=missing)
    with warnings.catch_warnings():
        # The same people are counted once more by transform.
        warnings.filterwarnings("ignore", "sensitive_features has .* missing or infinite values")
        adjuster.fit(scores, sensitive_features=sensitive_features, sample_weight=sample_weight)
    return adjuster.transform(scores, sensitive_features=sensitive_features)


def other_half(
    adjuster: ScoreAdjuster, scores: np.ndarray, frame: Any
) -> tuple[np.ndarray, np.ndarray] | None:
    """Fit on one half of the rows; return which are in the other, and their adjusted scores.

    On the rows that fit it, an adjustment removes the gap of these rows, chance included, and looks
    too good. Parts that fit each other in turn would do so too: pooled, their errors cancel. None:
    there are too few rows, or a category is in one half only.
    """
    other = np.random.default_rng(0).permutation(len(scores)) % 2 == 1
    try:
        with warnings.catch_warnings(action="ignore"):  # about halves that no user made
            fitted = clone(adjuster).fit(scores[~other], sensitive_features=frame[~other])
            return other, fitted.transform(scores[other], sensitive_features=frame[other])
    except ValueError:
        return None


def _expected(before: np.ndarray, after: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean scores before and after the adjustment in groups of neighboring scores.

    The means after are those of an isotonic regression, so that the order of people stays.
    """
    order = np.argsort(before, kind="stable")
    groups = np.array_split(order, min(_PLACES, len(order)))
    means = [before[group].mean() for group in groups]
    adjusted = [after[group].mean() for group in groups]
    distinct, first = np.unique(means, return_index=True)
    return distinct, isotonic_regression(np.array(adjusted)[first])
