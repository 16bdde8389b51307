"""FRHSIC and its rivals as scikit-learn estimators: ``fit(X, y, sensitive_features=s)``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from frhsic_core.learning.estimator_input import read_fit
from frhsic_core.learning.fair_encoder import Attribute, FairEncoder
from frhsic_core.learning.fair_model import FairModel
from frhsic_core.learning.fit_parameters import favourable_class
from frhsic_core.learning.fit_warnings import (
    ConstantPredictionWarning,
    InterruptedWarning,
    MissingAttributeWarning,
    NoGainWarning,
    PositiveClassWarning,
    SmallBatchWarning,
    UndertrainedWarning,
    UnmetRuleWarning,
    UnpenalisedWarning,
)
from frhsic_core.learning.outliers import OutlierWarning

__all__ = [
    "ConstantPredictionWarning",
    "FairClassifier",
    "FairEncoder",
    "FairRegressor",
    "InterruptedWarning",
    "MissingAttributeWarning",
    "NoGainWarning",
    "OutlierWarning",
    "PositiveClassWarning",
    "SmallBatchWarning",
    "UndertrainedWarning",
    "UnmetRuleWarning",
    "UnpenalisedWarning",
]


class FairClassifier(ClassifierMixin, FairModel):
    """A binary classifier whose representation and probabilities depend less on a continuous attribute.

    Minimises cross-entropy + λ · penalty. The default penalty is FRHSIC in the form that neither rescaling, nor
    collapsing, nor shearing Z evades: the normalised HSIC with Z whitened and the bandwidth a moving average, on Z and,
    with a linear kernel, on the logits. What it leaves is for
    :func:`frhsic_core.learning.audit.audit_representation` to say.

    Parameters
    ----------
    lam : float or "auto", default 0.5
        λ ≥ 0, the weight of the penalty; ``"auto"`` chooses it on a part of the training data, see ``selection``.
    positive_class : label, optional
        The favourable class: with ``penalty_settings={"condition": "positives"}`` (equal opportunity) the rows whose
        dependence counts. By default the last of an ordered categorical, otherwise ``classes_[1]``, the larger label:
        1 of 0 and 1, but of "approved" and "declined" the declined, so name it where labels are text.
    method : str, default "frhsic"
        ``frhsic``, ``frem``, ``reg_gdp``, ``adv``, ``mmd_binned``, ``laftr``, ``dcor`` or ``unfair``.
    protocol : {"recommended", "text", "reference"}, default "recommended"
        Settings of the method; see :mod:`frhsic_core.learning.protocols`.
    penalty_settings : dict, optional
        Single settings of the penalty, such as ``{"condition": "positives"}`` for equal opportunity,
        ``{"attributes": "sum"}`` for several attributes, ``{"estimator": "unbiased"}``.
    epochs : int or "auto", default "auto"
        ``"auto"``: as many as make 2,000 steps, and at least 50 (``n_epochs_``). Fewer steps make a model that looks
        fairer than it will be.
    batch_size, learning_rate : default 256, 0.001
        Of Adam. A batch larger than n is n.
    widths : tuple of int, default (50, 4)
        Of the encoder; the last is the dimension of Z. Batches should have many times as many rows. A Z wider than what
        X holds beside the attribute has directions that nothing else can fill: keep it narrow.
    random_state : int, RandomState or None
        A whole number makes ``fit`` repeatable.
    device : str, default "auto"
        ``"auto"`` trains on CUDA where there is one.
    dtype : {"float32", "float64"}, default "float32"
        Of the training.
    selection : dict, optional
        For ``lam="auto"``: keywords of :func:`frhsic_core.learning.selection.select_lambda`.
    verbose : bool, default False
        Draw a progress bar (needs rich). Without it ``lam="auto"`` draws one on a terminal when it takes seconds.

    Attributes
    ----------
    classes_ : ndarray
        The two classes, sorted; probabilities are of ``classes_[1]`` in the second column.
    positive_class_ : label
        The class that counted as y = 1 in training.
    encoder_, head_ : nn.Sequential, nn.Linear
        Plain PyTorch modules, float64, for X scaled by ``(X - offset_) / scale_``: minimum and range of the training
        rows. The head's output is the logit of ``positive_class_``.
    lam_, lambda_choice_
        The λ used, and with ``"auto"`` what was tried.
    n_epochs_ : int
        Epochs asked for, or found by ``"auto"``.
    history_ : DataFrame
        Per epoch: loss, penalty, ratio, metric.
    interrupted_ : bool
        Whether Ctrl-C ended the training; the model as it stood was kept.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> s = rng.uniform(20, 70, size=400)
    >>> X = np.column_stack([s / 50 + rng.normal(size=400), rng.normal(size=400)])
    >>> y = np.where(X.sum(1) > 1, "yes", "no")
    >>> model = FairClassifier(epochs=60, learning_rate=1e-2, random_state=0, device="cpu")
    >>> model = model.fit(X, y, sensitive_features=s)
    >>> model.predict(X[:2]).shape, model.predict_proba(X).shape, model.transform(X).shape
    ((2,), (400, 2), (400, 4))
    """

    classes_: np.ndarray

    def __init__(
        self,
        lam: float | str = 0.5,
        *,
        positive_class: Any = None,
        method: str = "frhsic",
        protocol: str = "recommended",
        penalty_settings: dict[str, Any] | None = None,
        epochs: int | str = "auto",
        batch_size: int = 256,
        learning_rate: float = 1e-3,
        widths: Sequence[int] = (50, 4),
        random_state: Any = None,
        device: str = "auto",
        dtype: str = "float32",
        selection: dict[str, Any] | None = None,
        verbose: bool = False,
    ) -> None:
        # scikit-learn takes the parameters from this signature, so it cannot be left to the base class.
        super().__init__(
            lam, method=method, protocol=protocol, penalty_settings=penalty_settings, epochs=epochs,
            batch_size=batch_size, learning_rate=learning_rate, widths=widths, random_state=random_state,
            device=device, dtype=dtype, selection=selection, verbose=verbose,
        )  # fmt: skip
        self.positive_class = positive_class

    def fit(self, X: Any, y: Any, *more: Any, sensitive_features: Attribute = None, sample_weight: Any = None) -> Self:
        """Fit on ``X (n, d)``, two classes ``y (n,)`` and the attribute(s) ``(n,)`` or ``(n, p)``.

        ``sensitive_features`` may also be the name of a column of a DataFrame X, or a list of names; the columns stay
        in X. Rows are matched by position: pandas objects whose labels are in another order are refused. Without an
        attribute and with λ > 0 the model is trained without a penalty, and a ``MissingAttributeWarning`` says so.
        Other warnings (:mod:`frhsic_core.learning.fit_warnings`) say when there were too few steps, when the model
        predicts one class or no better than one, when batches are too small, when ``"auto"`` found nothing, and when a
        value lies so far out that scaling leaves nothing of its column. Ctrl-C keeps what was trained, with a warning;
        inside a search or a cross-validation it raises, so that the search stops.
        """
        given = y
        X, y, s = read_fit(self, X, y, more, sensitive_features, sample_weight)
        check_classification_targets(y)
        kind = type_of_target(y, input_name="y")
        if kind != "binary":
            raise ValueError(f"Only binary classification is supported. The type of the target is {kind}.")
        self.classes_ = np.unique(y)
        if len(self.classes_) < 2:
            only = self.classes_.tolist()[0]
            raise ValueError(f"y has one class only ({only!r}): a classifier needs rows of both classes.")
        condition = (self.penalty_settings or {}).get("condition")
        self.positive_class_ = favourable_class(
            given, self.classes_, self.positive_class, condition=condition, stacklevel=2
        )
        return self._fit(X, (y == self.positive_class_).astype(np.float64), s, sample_weight, "classification")

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the logits, ``(n,)``; positive means ``classes_[1]``."""
        logits = self._forward(X)[1]
        return logits if self.positive_class_ == self.classes_[1] else -logits

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities of both classes, ``(n, 2)``."""
        logits = torch.from_numpy(self.decision_function(X))
        return torch.stack([torch.sigmoid(-logits), torch.sigmoid(logits)], dim=-1).numpy()

    def predict(self, X: Any) -> np.ndarray:
        """Return the more probable class."""
        positive = (self.decision_function(X) > 0).astype(int)
        return self.classes_[positive]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        assert tags.classifier_tags is not None
        tags.classifier_tags.multi_class = False
        return tags


class FairRegressor(RegressorMixin, FairModel):
    """A regressor whose representation and predictions depend less on a continuous attribute.

    Minimises the mean squared error of the standardised target + λ · penalty. Parameters, their defaults and attributes
    as in :class:`FairClassifier`, but for the classes.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> s = rng.uniform(size=400)
    >>> X = np.column_stack([s + rng.normal(size=400), rng.normal(size=400)])
    >>> model = FairRegressor(lam=1.0, epochs=60, learning_rate=1e-2, random_state=0, device="cpu")
    >>> model.fit(X, X.sum(1), sensitive_features=s).predict(X).shape
    (400,)
    """

    def fit(self, X: Any, y: Any, *more: Any, sensitive_features: Attribute = None, sample_weight: Any = None) -> Self:
        """Fit on ``X (n, d)``, numbers ``y (n,)``, the attribute(s) ``(n,)`` or ``(n, p)``, or columns of X by name."""
        X, y, s = read_fit(self, X, y, more, sensitive_features, sample_weight, y_numeric=True)
        return self._fit(X, y, s, sample_weight, "regression")

    def predict(self, X: Any) -> np.ndarray:
        """Return the predictions on the scale of y."""
        return self._forward(X)[1] * self.target_scale_ + self.target_offset_
