"""One remedy with its learner as one model, from a raw table to predictions."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import Tags, assert_all_finite, column_or_1d
from sklearn.utils.validation import check_is_fitted

from frhsic_core._arrays import ArrayLike
from frhsic_core._choices import one_of
from frhsic_core.auditing import audit
from frhsic_core.inputs.fitting import require_numbers, two_classes
from frhsic_core.remedies.attributes import (
    checked_features,
    read_attributes,
    warn_of_no_attribute,
)
from frhsic_core.remedies.catalog import REMEDIES
from frhsic_core.remedies.cross_fits import CrossFits
from frhsic_core.remedies.people import People, as_frame, read_people
from frhsic_core.remedies.plain import WITHOUT_S, plain_of
from frhsic_core.remedies.remedy import Path, Remedy

_LEARNER = "the learner"
# Words are read as categories, and missing values are allowed.
_ANY: dict[str, Any] = {"dtype": None, "ensure_all_finite": False}


class RemediedModel(BaseEstimator):
    """What a remedied classifier and a remedied regressor share.

    ``fit_best`` returns one of them. Text, categories and missing values of X are read as in
    :func:`~frhsic_core.compare_remedies`. Save the fitted model with joblib.
    """

    _task: ClassVar[str]

    def __init__(
        self,
        remedy: str = "none",
        learner: Any = "linear",
        strength: float = 1.0,
        *,
        random_state: int = 0,
    ) -> None:
        self.remedy = remedy
        self.learner = learner
        self.strength = strength
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, sensitive_features: ArrayLike | None = None) -> Self:
        """Fit on a raw table, and audit predictions for people of folds that no fit has seen.

        Without ``sensitive_features`` a warning says that the model has no remedy.
        """
        remedy = REMEDIES[one_of("remedy", self.remedy, REMEDIES)]
        table = as_frame(checked_features(self, X, reset=True, **_ANY))
        if sensitive_features is None:
            warn_of_no_attribute(self, "fit(X, y, sensitive_features=s)")
            remedy = WITHOUT_S
        people = read_people(table, self._checked_target(y), sensitive_features, self._task)
        self.needs_s_ = remedy.needs_s
        self.audit_ = None
        with warnings.catch_warnings(action="ignore"):  # the audit shows what a fit was worth
            if sensitive_features is not None:
                scores = self._unseen_scores(people, remedy)
                self.audit_ = audit(scores, sensitive_features=people.s, y_true=people.y)
            self.model_ = self._fitted(people, remedy)
        self._keep(people)
        return self

    def _checked_target(self, y: Any) -> np.ndarray:
        """Return the target in one dimension."""
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        # validate_data(self, y=y) would forget the names of the columns of X.
        target = column_or_1d(y, warn=True)
        assert_all_finite(target, estimator_name=type(self).__name__, input_name="y")
        return np.asarray(target)

    def _keep(self, people: People) -> None:
        """Keep what predictions need to know of the target."""

    def _fitted(self, people: People, remedy: Remedy) -> Path:
        """Fit the remedy, and a model without one if its strength is a share of predictions."""
        plain = None
        if remedy.blends and self.strength < 1.0:
            plain = plain_of(remedy).fit(people, self.learner, seed=self.random_state)
        options: dict[str, Any] = {"plain": plain, "seed": self.random_state}
        return remedy.fit_path(people, self.learner, [self.strength], **options)

    def _unseen_scores(self, people: People, remedy: Remedy) -> np.ndarray:
        """Return scores of all people from models of folds without them."""
        fits = CrossFits(people, {_LEARNER: self.learner}, seed=self.random_state)
        plain = None
        if remedy.blends and self.strength < 1.0:
            plain = fits.scores(plain_of(remedy), _LEARNER)
        (unseen,) = remedy.cross_fit(fits, _LEARNER, [self.strength], plain=plain)
        return unseen

    def _predicted(self, X: Any, s: ArrayLike | None) -> np.ndarray:
        check_is_fitted(self)
        table = as_frame(checked_features(self, X, reset=False, **_ANY))
        frame = None
        if self.needs_s_:
            if s is None:
                raise ValueError(
                    "sensitive_features is missing: this remedy needs S of every person that it "
                    "predicts."
                )
            frame = read_attributes(s, X)
        (values,) = self.model_(table, frame)
        return values

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.allow_nan = True
        return tags


class RemediedRegressor(RegressorMixin, RemediedModel):
    """One remedy with a regressor, from a raw table to predictions.

    Parameters
    ----------
    remedy, learner : str
        Keys of :func:`~frhsic_core.compare_remedies`; the learner can also be a model of your own.
    strength : float
        Share of the remedy in the predictions, or λ of an encoder.
    random_state : int
        Seed of an encoder.

    Attributes
    ----------
    audit_ : Audit or None
        The audit of predictions for people that the model had not seen (5 folds).
    needs_s_ : bool
        Whether ``sensitive_features`` are needed to predict.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> age = rng.uniform(20, 70, 300)
    >>> X = np.column_stack([age + 5 * rng.normal(size=300), rng.normal(size=300)])
    >>> y = X[:, 0] / 10 + X[:, 1]
    >>> model = RemediedRegressor("leace").fit(X, y, sensitive_features=age)
    >>> bool(abs(np.corrcoef(model.predict(X), age)[0, 1]) < 0.1)
    True
    """

    _task = "regression"

    def _checked_target(self, y: Any) -> np.ndarray:
        require_numbers(y)
        return super()._checked_target(y)

    def predict(self, X: Any, *, sensitive_features: ArrayLike | None = None) -> np.ndarray:
        """Return the predictions."""
        return self._predicted(X, sensitive_features)

    def score(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        sensitive_features: ArrayLike | None = None,
    ) -> float:
        """Return R² of the predictions."""
        predicted = self.predict(X, sensitive_features=sensitive_features)
        return float(r2_score(y, predicted, sample_weight=sample_weight))


class RemediedClassifier(ClassifierMixin, RemediedModel):
    """One remedy with a classifier of two classes, from a raw table to predictions.

    Parameters
    ----------
    remedy, learner, strength, random_state
        As in :class:`RemediedRegressor`.

    Attributes
    ----------
    classes_ : ndarray
        The two classes; the second counts as positive.
    audit_, needs_s_
        As in :class:`RemediedRegressor`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> age = rng.uniform(20, 70, 300)
    >>> X = np.column_stack([age + 5 * rng.normal(size=300), rng.normal(size=300)])
    >>> y = X[:, 0] / 10 + X[:, 1] > 4
    >>> model = RemediedClassifier("leace").fit(X, y, sensitive_features=age)
    >>> bool(abs(np.corrcoef(model.predict_proba(X)[:, 1], age)[0, 1]) < 0.1)
    True
    """

    _task = "classification"
    classes_: np.ndarray

    def _checked_target(self, y: Any) -> np.ndarray:
        target = super()._checked_target(y)
        two_classes(target, advice="pass y == value, one class against the others")
        return target

    def _keep(self, people: People) -> None:
        assert people.classes is not None
        self.classes_ = people.classes

    def predict_proba(self, X: Any, *, sensitive_features: ArrayLike | None = None) -> np.ndarray:
        """Return the probabilities of both classes."""
        positive = self._predicted(X, sensitive_features)
        return np.column_stack([1.0 - positive, positive])

    def predict(self, X: Any, *, sensitive_features: ArrayLike | None = None) -> np.ndarray:
        """Return the class with the larger probability."""
        positive = self._predicted(X, sensitive_features) > 0.5
        return np.asarray(self.classes_[positive.astype(int)])

    def score(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        sensitive_features: ArrayLike | None = None,
    ) -> float:
        """Return the accuracy of the predicted classes."""
        predicted = self.predict(X, sensitive_features=sensitive_features)
        return float(accuracy_score(y, predicted, sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


REMEDIED: dict[str, type[RemediedModel]] = {
    kind._task: kind for kind in (RemediedRegressor, RemediedClassifier)
}
