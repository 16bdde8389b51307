"""Adjust scores along S: those of any regressor or classifier, with S or without it, or scores and S alone."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable
from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar, Self, cast

import numpy as np
import pandas as pd
import torch
from scipy import sparse
from scipy.optimize import brentq, minimize
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone, is_classifier
from sklearn.ensemble import RandomForestRegressor
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import cross_val_predict
from sklearn.utils import Tags, get_tags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from frhsic_core._arrays import ArrayLike, fix_signs
from frhsic_core._atomic_files import write_atomically
from frhsic_core.inputs.columns import as_columns
from frhsic_core.inputs.features import columns_of, fit_columns
from frhsic_core.inputs.fitting import require_numbers, two_classes
from frhsic_core.remedies._attributes import (
    AttributeBasis,
    attributes_to_fit,
    checked_features,
    read_attributes,
    standardized,
    warn_of_few,
)

# The estimator checks what it can take.
_ANY: dict[str, Any] = {"dtype": None, "accept_sparse": True, "ensure_all_finite": False}
_LOGIT = 15.0  # probabilities of exactly 0 and 1 count as this logit
_PLACES = 1000  # of S, at which the distribution of scores is estimated
_LEVELS = 400  # of the scores
_SHARES = np.linspace(0.0, 1.0, 401)  # at which quantiles are averaged


def logits(probabilities: np.ndarray) -> np.ndarray:
    """Return the logits of probabilities, cut at ±15."""
    return np.clip(logit(probabilities), -_LOGIT, _LOGIT)


def flat_offset(score: np.ndarray, phi: np.ndarray) -> np.ndarray:
    r"""Return β for which the mean of σ(score + φβ) does not depend on S along the functions φ.

    .. math:: \sum_i \varphi(s_i)\,\{\sigma(l_i + \varphi(s_i)^\top\beta) - \bar p\} = 0,\qquad
        \bar p = \tfrac1n\sum_i \sigma(l_i)

    These are the equations of a logistic regression of the constant target p̄ with offset l, so the solution is unique
    up to functions that are zero on the samples. ``phi`` includes a constant column. O(nk²) for each of a few steps.

    Examples
    --------
    >>> s = np.linspace(-1, 1, 200)
    >>> phi = np.column_stack([np.ones(200), s])
    >>> p = expit(3 * s + phi @ flat_offset(3 * s, phi))
    >>> bool(abs(p @ s) < 1e-6), bool(abs(p.mean() - expit(3 * s).mean()) < 1e-6)
    (True, True)
    """
    target = expit(score).mean()

    def loss(beta: np.ndarray) -> tuple[float, np.ndarray]:
        eta = score + phi @ beta
        return float(np.mean(np.logaddexp(0.0, eta) - target * eta)), phi.T @ (
            expit(eta) - target
        ) / len(score)

    def curvature(beta: np.ndarray) -> np.ndarray:
        p = expit(score + phi @ beta)
        return phi.T @ (phi * (p * (1 - p))[:, None]) / len(score) + 1e-9 * np.eye(phi.shape[1])

    start = np.zeros(phi.shape[1])
    options = {"gtol": 1e-14}
    return np.asarray(
        minimize(loss, start, jac=True, hess=curvature, method="trust-exact", options=options).x
    )


class ConditionalRanks:
    r"""The conditional distribution of numbers r given attributes S, and its average over S as quantiles.

    S is rounded to a grid that is finer than the bandwidth of its kernel, and r to at most 400 levels, so the samples
    become a table of counts. Smoothed over S with Gaussian weights, inside equal categories, the table gives
    F(r | s). O(n log n) for the table, O(log n) for each new number.
    """

    def fit(self, r: np.ndarray, frame: pd.DataFrame) -> ConditionalRanks:
        """Count the samples at each place of S and level of r."""
        values = frame.select_dtypes("number").to_numpy(np.float64)
        self.range = (values.min(0), values.max(0))
        # Silverman's rule for p attributes.
        self.width = (
            1.06 * len(r) ** (-1.0 / (4 + max(values.shape[1], 1))) * standardized(values)[1]
        )
        self.step = 0.125
        places, words, index = self._places(frame)
        while len(places) > max(
            _PLACES, len(set(words))
        ):  # several attributes, or one with a few huge values
            self.step *= 2.0
            places, words, index = self._places(frame)
        self.places, self.words = places, words
        distinct = np.unique(r)
        self.levels = (
            distinct
            if len(distinct) <= _LEVELS
            else np.unique(np.quantile(r, np.linspace(0, 1, _LEVELS)))
        )
        cell = np.searchsorted(self.levels, r, side="left").clip(max=len(self.levels) - 1)
        size = (len(places), len(self.levels))
        self.counts = (
            np.bincount(index * size[1] + cell, minlength=size[0] * size[1])
            .reshape(size)
            .astype(np.float64)
        )
        share = self.counts.sum(1) / len(r)
        table = self._table(places, words)
        self.quantiles = sum(
            q * np.interp(_SHARES, line, self.levels) for q, line in zip(share, table, strict=True)
        )
        return self

    def __call__(self, r: np.ndarray, frame: pd.DataFrame) -> np.ndarray:
        """Return the averaged quantile E_S[Q(u | S)] at the rank u = F(r | s) of each number."""
        places, words, index = self._places(frame)
        members = pd.Series(index).groupby(index).indices
        ranks = np.empty(len(r))
        for start in range(0, len(places), _PLACES):
            part = slice(start, start + _PLACES)
            for place, line in enumerate(self._table(places[part], words[part]), start):
                ranks[members[place]] = np.interp(r[members[place]], self.levels, line)
        return np.interp(ranks, _SHARES, self.quantiles)

    def _places(self, frame: pd.DataFrame) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the distinct places, numbers on the grid and joined categories, and the place of each row."""
        numbers = np.clip(frame.select_dtypes("number").to_numpy(np.float64), *self.range)
        table = pd.DataFrame(np.rint((numbers - self.range[0]) / (self.step * self.width)))
        table["words"] = ""
        for _, column in frame.select_dtypes(exclude="number").items():
            table["words"] += "\n" + column.to_numpy()
        index = table.groupby(list(table), sort=False).ngroup().to_numpy()
        table = table.drop_duplicates()
        return table.drop(columns="words").to_numpy(), table["words"].to_numpy(object), index

    def _table(self, places: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Return the mid-ranks F(level | place)."""
        squares = np.zeros((len(places), len(self.places)))
        for new, known in zip(places.T, self.places.T, strict=True):
            squares += (self.step * (new[:, None] - known)) ** 2
        same = words[:, None] == self.words
        same |= ~same.any(1, keepdims=True)  # a combination that fit did not have borrows from all
        squares = np.where(same, squares, np.inf)
        table = np.exp(-0.5 * (squares - squares.min(1, keepdims=True))) @ self.counts
        table /= table.sum(1, keepdims=True)
        return np.cumsum(table, axis=1) - 0.5 * table


class Adjustment:
    r"""Map scores along S so that their mean, or their whole distribution, depends less on S.

    ``"mean"`` subtracts the smoothed conditional mean: f − (m(s) − m̄), with m the least-squares fit of f on φ(S).
    For a classifier it adds φ(s)ᵀβ to the logit, where β makes the mean *probability* flat (:func:`flat_offset`).

    ``"project"`` does the same with ĝ(x) = Ê[φ(S) | X = x] in place of φ(s), and so needs no S. Since
    E[f(X) φ(S)] = E[f(X) g(X)], this is the smallest change of f, in mean square, among the functions of X alone.

    ``"rank"`` replaces the conditional quantile by the averaged one, the Wasserstein barycenter of the conditional
    distributions: with u = F(f | s), the new score is E_S[Q(u | S)]. F is that of the flat scores f − (m(s) − m̄)
    (:class:`ConditionalRanks`). Logits of a classifier get one more constant, which restores the mean probability.

    With ``"mean"`` and ``"rank"`` nobody overtakes a person with the same S.
    """

    def __init__(self, method: str, *, classifier: bool) -> None:
        self.method = method
        self.classifier = classifier
        self.basis = AttributeBasis("spline")

    def fit(self, score: np.ndarray, frame: pd.DataFrame, x: Any = None) -> Adjustment:
        """Fit on scores (logits of a classifier) and attributes; ``"project"`` needs the features x too."""
        phi = self.basis.fit(frame).transform(frame)
        if self.method == "project":
            self.guess = AttributeGuess()
            phi = self.guess.fit(x, phi)
        phi = np.insert(phi, 0, 1.0, axis=1)
        if self.classifier and self.method != "rank":
            self.beta = flat_offset(score, phi)
        else:
            self.beta = -np.linalg.lstsq(phi, score, rcond=None)[0]
            self.beta[0] -= (phi @ self.beta).mean()  # the mean of the scores stays
        if self.method == "rank":
            flat = score + phi @ self.beta
            self.ranks = ConditionalRanks().fit(flat, frame)
            if self.classifier:
                mapped, mean = self.ranks(flat, frame), expit(score).mean()
                self.ranks.quantiles += brentq(
                    lambda c: expit(mapped + c).mean() - mean, -4 * _LOGIT, 4 * _LOGIT
                )
        return self

    def __call__(self, score: np.ndarray, frame: Any, x: Any = None) -> np.ndarray:
        """Return the adjusted scores; ``"project"`` needs the features x, and the others the attributes."""
        phi = np.insert(
            self.guess(x) if self.method == "project" else self.basis.transform(frame),
            0,
            1.0,
            axis=1,
        )
        flat = score + phi @ self.beta
        return flat if self.method != "rank" else self.ranks(flat, self.basis.in_order(frame))


# Scores alone ---------------------------------------------------------------------------------------------------------

_FEWEST = 20
_FORMAT = "frhsic adjustment of scores 5"
_PARTS: dict[str, type] = {
    kind.__name__: kind for kind in (Adjustment, AttributeBasis, ConditionalRanks)
}


class ScoreAdjuster(BaseEstimator):
    """Adjust scores along S: fit on scores and attributes, save, and apply to new scores, one by one if needed.

    This is the adjustment of ``AdjustedClassifier`` and ``AdjustedRegressor`` without their model. Scores from 0 to 1
    are adjusted as logits and stay between 0 and 1; other scores keep their unit. Nobody overtakes a person with the
    same attributes. **S is needed for every score that is adjusted.** O(n log n).

    Parameters
    ----------
    method : {"rank", "mean"}
        What no longer depends on S: the whole distribution of the scores, or their mean.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> age = rng.uniform(20, 70, 1000)
    >>> score = age + 10 * rng.normal(size=1000)
    >>> adjuster = ScoreAdjuster().fit(score, sensitive_features=age)
    >>> new = adjuster.transform([50.0, 50.0], sensitive_features=[30, 60])  # high at age 30, low at age 60
    >>> bool(new[0] > new[1] + 20)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {"method": [StrOptions({"rank", "mean"})]}

    def __init__(self, method: str = "rank") -> None:
        self.method = method

    def fit(self, scores: ArrayLike, *, sensitive_features: ArrayLike) -> Self:
        """Fit on scores ``(n,)`` that the model gave to people it was not trained on, and their attributes."""
        self._validate_params()
        values, frame = _read(scores, sensitive_features, to_fit=True)
        if len(values) < _FEWEST:
            raise ValueError(
                f"the number of scores is {len(values)}: a fit needs at least {_FEWEST}."
            )
        if len(np.unique(values)) <= 2:
            raise ValueError(
                "scores is constant or has two values: adjust the probabilities, then apply a threshold."
            )
        probabilities = bool(values.min() >= 0.0 and values.max() <= 1.0)
        adjustment = Adjustment(self.method, classifier=probabilities)
        self.adjustment_ = adjustment.fit(logits(values) if probabilities else values, frame)
        return self

    def transform(self, scores: ArrayLike, *, sensitive_features: ArrayLike) -> np.ndarray:
        """Return the adjusted scores; each depends on its own row only."""
        check_is_fitted(self)
        values, frame = _read(scores, sensitive_features)
        if not self.adjustment_.classifier:
            return self.adjustment_(values, frame)
        if len(values) and not (values.min() >= 0.0 and values.max() <= 1.0):
            raise ValueError(
                "scores has values outside of 0 to 1, but fit had probabilities: pass the same kind."
            )
        return np.asarray(expit(self.adjustment_(logits(values), frame)), dtype=np.float64)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted adjustment as JSON, which :meth:`load` reads without running any code in it."""
        check_is_fitted(self)
        content = {
            "format": _FORMAT,
            "parameters": self.get_params(),
            "adjustment": self.adjustment_,
        }
        text = json.dumps(content, default=_as_json)
        write_atomically({Path(path): lambda file: file.write(text.encode())})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file of :meth:`save`."""
        try:
            found = json.loads(Path(path).read_text(encoding="utf-8"), object_hook=_from_json)
        except (ValueError, KeyError):
            found = None
        if not isinstance(found, dict) or found.get("format") != _FORMAT:
            raise ValueError(
                f"{path} is not a saved adjustment of scores: save the adjustment again."
            )
        model = cls(**found["parameters"])
        model.adjustment_ = found["adjustment"]
        return model


def other_half(
    adjuster: ScoreAdjuster, scores: np.ndarray, frame: Any
) -> tuple[np.ndarray, np.ndarray] | None:
    """Fit on one half of the rows; return which rows are in the other half, and their adjusted scores.

    On the rows that fit it, an adjustment removes the gap of these rows, chance included, and looks too good. Parts
    that fit each other in turn would do so too: pooled, their errors cancel. None: there are too few rows, or a
    category is in one half only.
    """
    other = np.random.default_rng(0).permutation(len(scores)) % 2 == 1
    try:
        with warnings.catch_warnings(action="ignore"):  # about halves that no user made
            fitted = clone(adjuster).fit(scores[~other], sensitive_features=frame[~other])
            return other, fitted.transform(scores[other], sensitive_features=frame[other])
    except ValueError:
        return None


def adjust_scores(
    scores: ArrayLike, *, sensitive_features: ArrayLike, method: str = "rank"
) -> np.ndarray:
    """Return scores that depend less on S, from scores and attributes alone.

    No labels, features or model are needed. For new people later, keep a :class:`~frhsic_core.ScoreAdjuster`, which
    this function fits and applies to the same rows. O(n log n).

    Parameters
    ----------
    scores : array_like
        ``(n,)``: probabilities, which stay between 0 and 1, or scores of any unit.
    sensitive_features : array_like
        ``(n,)``, ``(n, p)`` or a frame with numeric and categorical columns.
    method : {"rank", "mean"}
        As in :class:`~frhsic_core.ScoreAdjuster`.

    Examples
    --------
    >>> from frhsic_core import gdp
    >>> rng = np.random.default_rng(0)
    >>> age = rng.uniform(20, 70, 2000)
    >>> score = 1 / (1 + np.exp(-(age - 45) / 20 - rng.normal(size=2000)))
    >>> gdp(score, age) > 0.1, gdp(adjust_scores(score, sensitive_features=age), age) < 0.02
    (True, True)
    """
    adjuster = ScoreAdjuster(method).fit(scores, sensitive_features=sensitive_features)
    return adjuster.transform(scores, sensitive_features=sensitive_features)


def _read(scores: ArrayLike, s: ArrayLike, *, to_fit: bool = False) -> tuple[np.ndarray, Any]:
    column, *more = as_columns(scores, argument="scores", default="scores", categorical=False)
    if more:
        raise ValueError(
            f"scores has the shape (n, {1 + len(more)}): pass one score for each row, (n,)."
        )
    if column.missing:
        raise ValueError(
            f"scores has {column.missing} missing or infinite values: drop those rows first."
        )
    return column.values, read_attributes(s, scores, name="scores", to_fit=to_fit)


def _as_json(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return {"__array__": value.tolist(), "dtype": str(value.dtype)}
    if type(value).__name__ in _PARTS:
        return {"__part__": type(value).__name__} | vars(value)
    return value.item()  # a NumPy number


def _from_json(found: dict[str, Any]) -> Any:
    if "__array__" in found:
        return np.array(found["__array__"], dtype=found["dtype"])
    if "__part__" not in found:
        return found
    part: Any = object.__new__(_PARTS[found.pop("__part__")])
    vars(part).update(found)
    return part


# Around a model ------------------------------------------------------------------------------------------------------


class AttributeGuess:
    """Predict φ(S) from X with a random forest: ĝ(x) = Ê[φ(S) | X = x], along what X predicts beyond chance.

    The forest's out-of-bag predictions stand for new samples, so one fit is enough. Of the whitened functions φ only
    those stay whose out-of-bag prediction correlates with them by more than three standard errors.
    """

    def fit(self, X: Any, phi: np.ndarray) -> np.ndarray:
        """Fit on training samples and return their out-of-bag ĝ."""
        self.columns = None if sparse.issparse(X) else fit_columns(X)
        centered = phi - phi.mean(0)
        values, vectors = np.linalg.eigh(centered.T @ centered / len(phi))
        vectors = fix_signs(torch.from_numpy(vectors)).numpy()
        kept = values > 1e-6 * values[-1]
        target = centered @ vectors[:, kept] / np.sqrt(values[kept])
        # On this grid the sums of a forest are exact, so columns that split the samples alike tie on every processor.
        target = np.round(target * 2**20) / 2**20
        self.forest = RandomForestRegressor(
            100, min_samples_leaf=5, max_features=0.5, oob_score=True, random_state=0
        )
        with warnings.catch_warnings(
            action="ignore", category=UserWarning
        ):  # a sample of all trees gets the mean
            self.forest.fit(self._numbers(X), target if target.shape[1] > 1 else target[:, 0])
        guess = np.nan_to_num(self.forest.oob_prediction_.reshape(target.shape))
        spread = guess.std(0)
        correlation = ((guess - guess.mean(0)) * target).mean(0) / np.where(
            spread > 0, spread, np.inf
        )
        # Out-of-bag predictions of noise correlate negatively with it, so the test is one-sided.
        self.kept = correlation > 3.0 / np.sqrt(len(phi))
        return guess[:, self.kept]

    def __call__(self, X: Any) -> np.ndarray:
        return self.forest.predict(self._numbers(X)).reshape(-1, len(self.kept))[:, self.kept]

    def _numbers(self, X: Any) -> Any:
        return X if self.columns is None else columns_of(X, self.columns)


def require_predictions(model: Any, *, classes: bool) -> None:
    """Raise an error for a model that does not predict probabilities of classes, or numbers."""
    name = type(model).__name__
    if classes and not hasattr(model, "predict_proba"):
        raise TypeError(
            f"{name} has no predict_proba, which two classes need. Wrap it in CalibratedClassifierCV if it is a "
            "classifier. A regressor is for numbers: use AdjustedRegressor, or task='regression'."
        )
    if is_classifier(model) and not classes:
        raise TypeError(f"{name} is a classifier, but y has numbers to predict: pass a regressor.")


class _Adjusted:
    """What the two wrappers share: everything but the form of their predictions."""

    predict: Callable[..., np.ndarray]
    _validate_params: Callable[[], None]
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "method": [StrOptions({"mean", "rank", "project"})],
        "cv": [Interval(Integral, 2, None, closed="left"), StrOptions({"prefit"})],
    }

    def __init__(self, estimator: Any, *, method: str = "mean", cv: int | str = 5) -> None:
        self.estimator = estimator
        self.method = method
        self.cv = cv

    def fit(self, X: Any, y: Any, *, sensitive_features: ArrayLike | None = None) -> Self:
        """Fit the estimator on all samples, and the adjustment on out-of-fold scores."""
        self._validate_params()
        y = self._read_target(y)
        X = checked_features(self, X, reset=True, **_ANY)
        check_consistent_length(X, y)
        frame = attributes_to_fit(
            self, X, sensitive_features, predicts_without=self.method == "project"
        )
        if frame is not None and is_classifier(self):
            warn_of_few(y)
        require_predictions(self.estimator, classes=is_classifier(self))
        if self.cv == "prefit":
            check_is_fitted(self.estimator)
        self.estimator_ = self.estimator if self.cv == "prefit" else clone(self.estimator).fit(X, y)
        self.adjustment_ = None
        if frame is not None:
            adjustment = Adjustment(self.method, classifier=is_classifier(self))
            self.adjustment_ = adjustment.fit(self._scores(X, y), frame, X)
        return self

    def _scores(self, X: Any, y: np.ndarray | None = None) -> np.ndarray:
        """Return predictions, or the logits of probabilities; with y, those of samples that no fit has seen."""
        how = "predict_proba" if is_classifier(self) else "predict"
        if y is None or self.cv == "prefit":
            raw = getattr(self.estimator_, how)(X)
        else:
            folds = min(
                int(self.cv),
                *(np.unique(y, return_counts=True)[1] if is_classifier(self) else [len(y)]),
            )
            if folds < 2:
                raise ValueError(
                    "y has a class with one sample: out-of-fold scores need two of each class."
                )
            raw = cross_val_predict(clone(self.estimator_), X, y, cv=folds, method=how)
        raw = np.asarray(raw, dtype=np.float64)
        return logits(raw[:, 1]) if is_classifier(self) else raw

    def _read_target(self, y: Any) -> np.ndarray:
        """Return the checked target, and keep the classes of a classifier."""
        if not is_classifier(self):
            require_numbers(y)
            return np.asarray(validate_data(self, y=y, y_numeric=True), dtype=np.float64)
        y = validate_data(self, y=y)
        self.classes_ = two_classes(y, advice="pass y == value, one class against the others")
        return cast(np.ndarray, y)

    def _adjusted(self, X: Any, s: ArrayLike | None) -> np.ndarray:
        check_is_fitted(self)
        given, X = X, checked_features(self, X, reset=False, **_ANY)
        score = self._scores(X)
        if self.adjustment_ is None:
            return score
        if self.method == "project":
            return self.adjustment_(score, None, X)
        if s is None:
            raise ValueError(
                f"sensitive_features is missing: {type(self).__name__} needs S of every sample that it predicts. Pass "
                "predict(X, sensitive_features=s). In GridSearchCV and cross_val_score, call sklearn.set_config("
                "enable_metadata_routing=True) and model.set_fit_request(sensitive_features=True)"
                ".set_score_request(sensitive_features=True). Without S at prediction time use method='project'."
            )
        return self.adjustment_(score, read_attributes(s, given))

    def score(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        sensitive_features: ArrayLike | None = None,
    ) -> float:
        """Return the accuracy, or R², of the adjusted predictions."""
        metric = accuracy_score if is_classifier(self) else r2_score
        return float(
            metric(
                y,
                self.predict(X, sensitive_features=sensitive_features),
                sample_weight=sample_weight,
            )
        )

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()  # type: ignore[misc]  # of the other bases
        tags.target_tags.required = True
        if tags.classifier_tags is not None:
            tags.classifier_tags.multi_class = False
        inner = get_tags(self.estimator).input_tags
        tags.input_tags.sparse, tags.input_tags.allow_nan = inner.sparse, inner.allow_nan
        return tags


class AdjustedRegressor(_Adjusted, RegressorMixin, BaseEstimator):
    """Wrap a regressor and adjust its predictions along S; **most methods need S to predict**.

    The mean along S is fitted on out-of-fold predictions, since predictions of the training samples are too good. For
    squared error the mean adjustment is the best prediction at every level of mean dependence, if the regressor is the
    conditional mean. The cost is ``cv`` + 1 fits of the estimator.

    Parameters
    ----------
    estimator : estimator
        Any scikit-learn regressor. It gets X as it was passed.
    method, cv
        As in :class:`AdjustedClassifier`.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> rng = np.random.default_rng(0)
    >>> age = rng.uniform(20, 70, 500)
    >>> X = np.column_stack([age, rng.normal(size=500)])
    >>> model = AdjustedRegressor(LinearRegression()).fit(X, X.sum(1), sensitive_features=age)
    >>> bool(abs(np.corrcoef(model.predict(X, sensitive_features=age), age)[0, 1]) < 1e-6)
    True
    """

    def predict(self, X: Any, *, sensitive_features: ArrayLike | None = None) -> np.ndarray:
        """Return the adjusted predictions."""
        return self._adjusted(X, sensitive_features)


class AdjustedClassifier(_Adjusted, ClassifierMixin, BaseEstimator):
    """Wrap a binary classifier and flatten its probabilities along S; **most methods need S to predict**.

    The adjustment acts on the logit, so that probabilities stay between 0 and 1. With ``method="mean"`` the mean
    probability of out-of-fold scores is exactly flat along the functions of S. The cost is ``cv`` + 1 fits of the
    estimator.

    Parameters
    ----------
    estimator : estimator
        Any scikit-learn classifier with predict_proba. It gets X as it was passed: a
        DataFrame with its names, text and missing values, or a sparse matrix.
    method : {"mean", "rank", "project"}
        What no longer depends on S: with ``"mean"`` the mean of the scores, with ``"rank"`` their whole distribution
        (a conditional rank transform to the Wasserstein barycenter). Both need S of the samples that are predicted.
        ``"project"`` flattens the mean **without** S at prediction time: it subtracts what a random forest on X knows
        of S.
    cv : int or "prefit"
        Number of folds of the out-of-fold scores. With ``"prefit"`` the estimator is already fitted, and the samples
        that are passed to ``fit`` must be new to it.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> age = rng.uniform(20, 70, 500)
    >>> X = np.column_stack([age, rng.normal(size=500)])
    >>> y = (age - 45) / 10 + X[:, 1] > 0
    >>> model = AdjustedClassifier(LogisticRegression()).fit(X, y, sensitive_features=age)
    >>> p = model.predict_proba(X, sensitive_features=age)[:, 1]
    >>> bool(abs(np.corrcoef(p, age)[0, 1]) < 0.15)
    True
    """

    def predict_proba(self, X: Any, *, sensitive_features: ArrayLike | None = None) -> np.ndarray:
        """Return the adjusted probabilities of both classes."""
        positive = expit(self._adjusted(X, sensitive_features))
        return np.column_stack([1.0 - positive, positive])

    def predict(self, X: Any, *, sensitive_features: ArrayLike | None = None) -> np.ndarray:
        """Return the class with the larger adjusted probability."""
        positive = self.predict_proba(X, sensitive_features=sensitive_features)[:, 1] > 0.5
        return cast(np.ndarray, self.classes_[positive.astype(int)])
