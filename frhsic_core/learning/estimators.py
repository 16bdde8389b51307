"""FRHSIC and its rivals as scikit-learn estimators: ``fit(X, y, sensitive_features=s)``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from frhsic_core.arrays import ArrayLike, as_tensor
from frhsic_core.learning.estimator_input import read_attribute, read_data
from frhsic_core.learning.fair_model import FairModel
from frhsic_core.learning.fit_warnings import (
    ConstantPredictionWarning,
    InterruptedWarning,
    MissingAttributeWarning,
    UndertrainedWarning,
    UnpenalisedWarning,
)

__all__ = [
    "ConstantPredictionWarning",
    "FairClassifier",
    "FairEncoder",
    "FairRegressor",
    "InterruptedWarning",
    "MissingAttributeWarning",
    "UndertrainedWarning",
    "UnpenalisedWarning",
]

Attribute = ArrayLike | str | None


class FairEncoder(FairModel):
    """A representation that predicts y and depends less on the attribute.

    Parameters
    ----------
    task : {"auto", "classification", "regression"}
        What y is; ``"auto"``: a classification when it has two values, otherwise a regression.
    lam, method, ...
        As in :class:`FairClassifier`. The penalty is on Z alone unless ``penalty_settings`` says otherwise.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> s = rng.uniform(20, 70, size=400)
    >>> X = np.column_stack([s / 50 + rng.normal(size=400), rng.normal(size=400)])
    >>> y = X.sum(1) > 1
    >>> encoder = FairEncoder(lam=1.0, epochs=60, widths=(16, 4), random_state=0, device="cpu")
    >>> encoder.fit(X, y, sensitive_features=s).transform(X).shape
    (400, 4)
    """

    _on = "representation"

    def __init__(
        self,
        lam: float | str = 1.0,
        *,
        task: str = "auto",
        method: str = "frhsic",
        protocol: str = "recommended",
        penalty_settings: dict[str, Any] | None = None,
        epochs: int = 50,
        batch_size: int = 256,
        learning_rate: float = 1e-3,
        widths: Sequence[int] = (50, 8),
        random_state: Any = None,
        device: str = "auto",
        dtype: str = "float32",
        selection: dict[str, Any] | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            lam,
            method=method,
            protocol=protocol,
            penalty_settings=penalty_settings,
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
            widths=widths,
            random_state=random_state,
            device=device,
            dtype=dtype,
            selection=selection,
            verbose=verbose,
        )
        self.task = task

    def fit(self, X: Any, y: Any, *more: Any, sensitive_features: Attribute = None, sample_weight: Any = None) -> Self:
        """Fit on ``X (n, d)``, ``y (n,)`` and the attribute(s) ``(n,)`` or ``(n, p)``, or named columns of X."""
        given = X
        X, y = read_data(self, X, y, more)
        if self.task not in ("auto", "classification", "regression"):
            raise ValueError(f"task is {self.task!r}: choose 'auto', 'classification' or 'regression'.")
        task = self.task
        values = np.unique(y)
        if task == "auto":
            task = "classification" if len(values) == 2 else "regression"
        if task == "classification":
            if len(values) > 2:
                raise ValueError(f"y has {len(values)} classes: two are supported; use task='regression' for a number.")
            target = (y == values[-1]).astype(np.float64)
        else:
            target = as_tensor(y, name="y").numpy()
        s = None if sensitive_features is None else read_attribute(sensitive_features, given, len(X))
        return self._fit(X, target, s, sample_weight, task)


class FairClassifier(ClassifierMixin, FairModel):
    """A binary classifier whose representation and probabilities depend less on a continuous attribute.

    Minimises cross-entropy + λ · penalty. The default penalty is FRHSIC in the form that neither rescaling, nor
    collapsing, nor shearing Z evades: the normalised HSIC with Z whitened and the bandwidth a moving average, on Z and,
    with a linear kernel, on the logits. What it leaves is for
    :func:`frhsic_core.learning.audit.audit_representation` to say.

    Parameters
    ----------
    lam : float or "auto"
        λ ≥ 0, the weight of the penalty; ``"auto"`` chooses it on a part of the training data, see ``selection``.
    method : str
        ``frhsic`` (default), ``frem``, ``reg_gdp``, ``adv``, ``mmd_binned``, ``laftr``, ``dcor`` or ``unfair``.
    protocol : {"recommended", "text", "reference"}
        Settings of the method; see :mod:`frhsic_core.learning.protocols`.
    penalty_settings : dict, optional
        Single settings of the penalty, such as ``{"condition": "positives"}`` for equal opportunity,
        ``{"attributes": "sum"}`` for several attributes, ``{"estimator": "unbiased"}``.
    epochs, batch_size, learning_rate
        Of Adam. A batch larger than n is n.
    widths : tuple of int
        Of the encoder; the last is the dimension of Z. Batches should have many times as many rows. A Z wider than what
        X holds beside the attribute has directions that nothing else can fill: keep it narrow.
    random_state : int, RandomState or None
        A whole number makes ``fit`` repeatable.
    device : str
        ``"auto"`` trains on CUDA where there is one.
    dtype : {"float32", "float64"}
        Of the training.
    selection : dict, optional
        For ``lam="auto"``: keywords of :func:`frhsic_core.learning.selection.select_lambda`.
    verbose : bool
        Draw a progress bar (needs rich).

    Attributes
    ----------
    classes_ : ndarray
        The two classes; probabilities are of ``classes_[1]`` in the second column.
    encoder_, head_ : nn.Sequential, nn.Linear
        Plain PyTorch modules, float64, for X scaled by ``(X - offset_) / scale_``.
    lam_, lambda_choice_
        The λ used, and with ``"auto"`` what was tried.
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
    >>> model = FairClassifier(epochs=60, random_state=0, device="cpu").fit(X, y, sensitive_features=s)
    >>> model.predict(X[:2]).shape, model.predict_proba(X).shape, model.transform(X).shape
    ((2,), (400, 2), (400, 4))
    """

    classes_: np.ndarray

    def fit(self, X: Any, y: Any, *more: Any, sensitive_features: Attribute = None, sample_weight: Any = None) -> Self:
        """Fit on ``X (n, d)``, two classes ``y (n,)`` and the attribute(s) ``(n,)`` or ``(n, p)``.

        ``sensitive_features`` may also be the name of a column of a DataFrame X, or a list of names; the columns stay
        in X. Without it and with λ > 0 the model is trained without a penalty, and a :class:`MissingAttributeWarning`
        says so. Warnings also say when the model predicts one class for every row
        (:class:`ConstantPredictionWarning`) and when there were too few steps to learn (:class:`UndertrainedWarning`).
        Ctrl-C keeps what was trained, with a warning; inside a search or a cross-validation it raises, so that the
        search stops.
        """
        given = X
        X, y = read_data(self, X, y, more)
        check_classification_targets(y)
        kind = type_of_target(y, input_name="y")
        if kind != "binary":
            raise ValueError(f"Only binary classification is supported. The type of the target is {kind}.")
        self.classes_ = np.unique(y)
        if len(self.classes_) < 2:
            only = self.classes_.tolist()[0]
            raise ValueError(f"y has one class only ({only!r}): a classifier needs rows of both classes.")
        s = None if sensitive_features is None else read_attribute(sensitive_features, given, len(X))
        return self._fit(X, (y == self.classes_[1]).astype(np.float64), s, sample_weight, "classification")

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the logits, ``(n,)``; positive means ``classes_[1]``."""
        return self._forward(X)[1]

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

    Minimises the mean squared error of the standardised target + λ · penalty. Parameters and attributes as in
    :class:`FairClassifier`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> s = rng.uniform(size=400)
    >>> X = np.column_stack([s + rng.normal(size=400), rng.normal(size=400)])
    >>> model = FairRegressor(lam=1.0, epochs=60, random_state=0, device="cpu")
    >>> model.fit(X, X.sum(1), sensitive_features=s).predict(X).shape
    (400,)
    """

    def fit(self, X: Any, y: Any, *more: Any, sensitive_features: Attribute = None, sample_weight: Any = None) -> Self:
        """Fit on ``X (n, d)``, numbers ``y (n,)``, the attribute(s) ``(n,)`` or ``(n, p)``, or columns of X by name."""
        given = X
        X, y = read_data(self, X, y, more, y_numeric=True)
        s = None if sensitive_features is None else read_attribute(sensitive_features, given, len(X))
        return self._fit(X, y, s, sample_weight, "regression")

    def predict(self, X: Any) -> np.ndarray:
        """Return the predictions on the scale of y."""
        return self._forward(X)[1] * self.target_scale_ + self.target_offset_
