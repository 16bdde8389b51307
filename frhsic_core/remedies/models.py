"""Adjust the predictions of any scikit-learn regressor or classifier along S, with S or without it."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any, ClassVar, Self, cast

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone, is_classifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import cross_val_predict
from sklearn.utils import Tags, get_tags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from frhsic_core._arrays import ArrayLike
from frhsic_core.inputs.fitting import require_numbers, two_classes
from frhsic_core.remedies.attributes import (
    attributes_to_fit,
    checked_features,
    read_attributes,
    warn_of_few,
)
from frhsic_core.remedies.learners import require_predictions
from frhsic_core.remedies.links import IDENTITY, LOG, LOGIT, Link
from frhsic_core.remedies.mean_adjustment import MeanAdjustment
from frhsic_core.remedies.project import ProjectedAdjustment
from frhsic_core.remedies.rank_adjustment import RankAdjustment

METHODS: dict[str, type[MeanAdjustment]] = {
    "mean": MeanAdjustment,
    "rank": RankAdjustment,
    "project": ProjectedAdjustment,
}
# The estimator checks what it can take.
_ANY: dict[str, Any] = {"dtype": None, "accept_sparse": True, "ensure_all_finite": False}


class _Adjusted:
    """What the two wrappers share: everything but the form of their predictions."""

    estimator: Any
    method: str
    cv: int | str
    predict: Callable[..., np.ndarray]
    _validate_params: Callable[[], None]
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "method": [StrOptions(set(METHODS))],
        "cv": [Interval(Integral, 2, None, closed="left"), StrOptions({"prefit"})],
    }

    def fit(self, X: Any, y: Any, *, sensitive_features: ArrayLike | None = None) -> Self:
        """Fit the estimator on all samples, and the adjustment on out-of-fold scores."""
        self._validate_params()
        y = self._read_target(y)
        X = checked_features(self, X, reset=True, **_ANY)
        check_consistent_length(X, y)
        without = self.method == "project"
        frame = attributes_to_fit(self, X, sensitive_features, predicts_without=without)
        if frame is not None and is_classifier(self):
            warn_of_few(y)
        require_predictions(self.estimator, classes=is_classifier(self))
        self.estimator_ = self._fitted_estimator(X, y)
        self.adjustment_ = None
        if frame is not None:
            scores = self._unseen_scores(X, y)
            adjustment = self._adjustment(scores)
            self.adjustment_ = adjustment.fit(scores, frame, X, target=self._numeric_target(y))
        return self

    def _read_target(self, y: Any) -> np.ndarray:
        """Return the checked target."""
        raise NotImplementedError

    def _numeric_target(self, y: np.ndarray) -> np.ndarray:
        """Return the target as numbers, 1 for the second class."""
        raise NotImplementedError

    def _most_folds(self, y: np.ndarray) -> int:
        """Return the largest number of folds that this target allows."""
        raise NotImplementedError

    def _adjustment(self, scores: np.ndarray) -> MeanAdjustment:
        """Return an adjustment for scores of this kind."""
        raise NotImplementedError

    def _fitted_estimator(self, X: Any, y: np.ndarray) -> Any:
        if self.cv == "prefit":
            check_is_fitted(self.estimator)
            return self.estimator
        return clone(self.estimator).fit(X, y)

    def _scores(self, X: Any) -> np.ndarray:
        """Return predictions, or the probabilities of the second class."""
        raise NotImplementedError

    def _unseen_scores(self, X: Any, y: np.ndarray) -> np.ndarray:
        """Return scores of samples that no fit has seen."""
        if self.cv == "prefit":
            return self._scores(X)
        folds = min(int(self.cv), self._most_folds(y))
        if folds < 2:
            raise ValueError(
                "y has a class with one sample: out-of-fold scores need two of each class."
            )
        how = "predict_proba" if is_classifier(self) else "predict"
        raw = cross_val_predict(clone(self.estimator_), X, y, cv=folds, method=how)
        raw = np.asarray(raw, dtype=np.float64)
        return raw[:, 1] if is_classifier(self) else raw

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
                f"sensitive_features is missing: {type(self).__name__} needs S of every sample that "
                "it predicts. Pass predict(X, sensitive_features=s). In GridSearchCV and "
                "cross_val_score, call sklearn.set_config(enable_metadata_routing=True) and "
                "model.set_fit_request(sensitive_features=True)"
                ".set_score_request(sensitive_features=True). Without S at prediction time use "
                "method='project'."
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
        predicted = self.predict(X, sensitive_features=sensitive_features)
        return float(metric(y, predicted, sample_weight=sample_weight))

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

    The mean along S is fitted on out-of-fold predictions, since predictions of the training samples
    are too good. For squared error the mean adjustment is the best prediction at every level of
    mean dependence, if the regressor is the conditional mean. The cost is ``cv`` + 1 fits of the
    estimator.

    Parameters
    ----------
    estimator : estimator
        Any scikit-learn regressor. It gets X as it was passed.
    method, cv
        As in :class:`AdjustedClassifier`.
    link : {"identity", "log"}
        The scale of the adjustment. ``"log"`` multiplies positive predictions, such as premiums.
    keep_range : bool
        If no y is negative, keep adjusted predictions within the range of the out-of-fold
        predictions, and their mean. A warning says how many had to be moved.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> rng = np.random.default_rng(0)
    >>> age = rng.uniform(-25, 25, 500)
    >>> X = np.column_stack([age, rng.normal(size=500)])
    >>> model = AdjustedRegressor(LinearRegression()).fit(X, X.sum(1), sensitive_features=age)
    >>> predicted = model.predict(X, sensitive_features=age)
    >>> bool(abs(np.corrcoef(predicted, age)[0, 1]) < 1e-6)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **_Adjusted._parameter_constraints,
        "link": [StrOptions({"identity", "log"})],
        "keep_range": ["boolean"],
    }

    def __init__(
        self,
        estimator: Any,
        *,
        method: str = "mean",
        cv: int | str = 5,
        link: str = "identity",
        keep_range: bool = True,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.cv = cv
        self.link = link
        self.keep_range = keep_range

    def _read_target(self, y: Any) -> np.ndarray:
        require_numbers(y)
        return np.asarray(validate_data(self, y=y, y_numeric=True), dtype=np.float64)

    def _numeric_target(self, y: np.ndarray) -> np.ndarray:
        return y

    def _most_folds(self, y: np.ndarray) -> int:
        return len(y)

    def _scores(self, X: Any) -> np.ndarray:
        scores = np.asarray(self.estimator_.predict(X), dtype=np.float64)
        if self.link == "log":
            _require_positive(scores)
        return scores

    def _adjustment(self, scores: np.ndarray) -> MeanAdjustment:
        if self.link == "log":
            _require_positive(scores)
        link: Link = LOG if self.link == "log" else IDENTITY
        return METHODS[self.method](link, keep_range=self.keep_range)

    def predict(self, X: Any, *, sensitive_features: ArrayLike | None = None) -> np.ndarray:
        """Return the adjusted predictions."""
        return self._adjusted(X, sensitive_features)


def _require_positive(scores: np.ndarray) -> None:
    if scores.min() <= 0.0:
        raise ValueError(
            f"link='log' needs positive predictions, but the smallest is {scores.min():g}: use a "
            "model with a log link, such as PoissonRegressor, or link='identity'."
        )


class AdjustedClassifier(_Adjusted, ClassifierMixin, BaseEstimator):
    """Wrap a binary classifier and flatten its probabilities along S; **most methods need S**.

    The adjustment acts on the logit, so that probabilities stay between 0 and 1. With
    ``method="mean"`` the mean probability of out-of-fold scores is exactly flat along the functions
    of S. The cost is ``cv`` + 1 fits of the estimator.

    Parameters
    ----------
    estimator : estimator
        Any scikit-learn classifier with predict_proba. It gets X as it was passed: a DataFrame with
        its names, text and missing values, or a sparse matrix.
    method : {"mean", "rank", "project"}
        What no longer depends on S: with ``"mean"`` the mean of the scores, with ``"rank"`` their
        whole distribution (a conditional rank transform to the Wasserstein barycenter). Both need S
        of the samples that are predicted. ``"project"`` flattens the mean **without** S at
        prediction time: it subtracts what a random forest on X knows of S.
    cv : int or "prefit"
        Number of folds of the out-of-fold scores. With ``"prefit"`` the estimator is already
        fitted, and the samples that are passed to ``fit`` must be new to it.

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

    def __init__(self, estimator: Any, *, method: str = "mean", cv: int | str = 5) -> None:
        self.estimator = estimator
        self.method = method
        self.cv = cv

    def _read_target(self, y: Any) -> np.ndarray:
        """Return the checked labels, and keep the classes."""
        y = validate_data(self, y=y)
        self.classes_ = two_classes(y, advice="pass y == value, one class against the others")
        return cast(np.ndarray, y)

    def _numeric_target(self, y: np.ndarray) -> np.ndarray:
        return (y == self.classes_[1]).astype(np.float64)

    def _most_folds(self, y: np.ndarray) -> int:
        return int(np.unique(y, return_counts=True)[1].min())

    def _scores(self, X: Any) -> np.ndarray:
        return np.asarray(self.estimator_.predict_proba(X), dtype=np.float64)[:, 1]

    def _adjustment(self, scores: np.ndarray) -> MeanAdjustment:
        return METHODS[self.method](LOGIT)

    def predict_proba(self, X: Any, *, sensitive_features: ArrayLike | None = None) -> np.ndarray:
        """Return the adjusted probabilities of both classes."""
        positive = self._adjusted(X, sensitive_features)
        return np.column_stack([1.0 - positive, positive])

    def predict(self, X: Any, *, sensitive_features: ArrayLike | None = None) -> np.ndarray:
        """Return the class with the larger adjusted probability."""
        positive = self.predict_proba(X, sensitive_features=sensitive_features)[:, 1] > 0.5
        return cast(np.ndarray, self.classes_[positive.astype(int)])
