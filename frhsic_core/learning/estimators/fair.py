"""FRHSIC and its rivals as scikit-learn estimators: ``fit(X, y, sensitive_features=s)``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import Tags

from frhsic_core._arrays import as_tensor
from frhsic_core.inputs.fitting import require_numbers, two_classes
from frhsic_core.learning.estimators.base import FairModel
from frhsic_core.learning.estimators.input import LEARNING_RATE, FitInput, favorable_class
from frhsic_core.learning.rules import LambdaSelection

MANY_CLASSES = (
    "sklearn.set_config(enable_metadata_routing=True), then OneVsRestClassifier(FairClassifier()"
    ".set_fit_request(sensitive_features=True)).fit(X, y, sensitive_features=s)"
)


class _WithPositiveClass(FairModel):
    """An estimator with two classes, one of which is the favorable one."""

    def __init__(
        self,
        lam: float | str = 1.0,
        *,
        positive_class: Any = None,
        method: str = "frhsic",
        penalty_settings: dict[str, Any] | None = None,
        epochs: int | str = "auto",
        batch_size: int = 256,
        learning_rate: float = LEARNING_RATE,
        widths: Sequence[int] | None = None,
        random_state: Any = None,
        device: str = "auto",
        dtype: str = "float32",
        selection: LambdaSelection | dict[str, Any] | None = None,
        verbose: bool = False,
    ) -> None:
        # scikit-learn reads the parameters from this signature, so the base class cannot provide
        # it.
        super().__init__(
            lam,
            method=method,
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
        self.positive_class = positive_class

    def _as_numbers(self, y: Any, given: FitInput, classes: np.ndarray) -> np.ndarray:
        """Set ``positive_class_`` and return 1 for the samples of this class, 0 for the others."""
        condition = (self.penalty_settings or {}).get("condition")
        self.positive_class_ = favorable_class(y, classes, self.positive_class, condition=condition)
        return (given.y == self.positive_class_).astype(np.float64)


class FairClassifier(ClassifierMixin, _WithPositiveClass):
    """A binary classifier that depends less on a continuous attribute.

    Its representation and its probabilities do. It minimizes cross-entropy + λ · penalty. The
    default penalty is whitened FRHSIC, the recommended form of
    :class:`frhsic_core.learning.FRHSIC`: the HSIC of whitened Z, which rescaling, collapsing or
    shearing Z cannot evade, and that of the logits with a linear kernel. Measure the remaining
    dependence with :func:`frhsic_core.audit_representation`.

    Parameters
    ----------
    lam : float or "auto", default 1.0
        λ ≥ 0, the weight of the penalty. ``"auto"`` takes the smallest λ that has four fifths of
        the possible reduction in dependence, measured on held-out parts of the training data; see
        ``selection``.
    positive_class : label, optional
        The favorable class. With ``penalty_settings={"condition": "positives"}`` (equal
        opportunity) the penalty uses the samples of this class only. The default is the last class
        of an ordered categorical, and otherwise the last label in sorted order: 1 for 0 and 1, but
        "declined" for "approved" and "declined". Set it if labels are text.
    method : str, default "frhsic"
        A key of ``frhsic_core.registry.METHODS``: ``"unfair"``, FRHSIC or one of its rivals.
    penalty_settings : dict, optional
        Single settings of the penalty, such as ``{"condition": "positives"}`` for equal
        opportunity, ``{"condition": "labels"}`` for equalized odds, ``{"attributes": "sum"}`` for
        several attributes, or ``{"estimator": "unbiased"}``.
    epochs : int or "auto", default "auto"
        Number of passes over the data. ``"auto"`` gives 600 steps (400 with fewer than 4,000
        samples), and at least 8 epochs (``n_epochs_``). With fewer steps a model looks fairer than
        it will be.
    batch_size : int, default 256
        Number of samples in a mini-batch, at most n.
    learning_rate : float, default 0.005
        Learning rate of Adam in the first epoch. It falls linearly to zero. With a smaller one,
        ``epochs="auto"`` makes as many more steps.
    widths : tuple of int, optional
        Width of each layer of the encoder. The last width is the dimension of Z. The default is
        (50, 4). Keep the last one low: mini-batches should have many times as many samples, and
        directions of Z that the task does not need are filled by the attribute.
    random_state : int, RandomState or None
        Seed of initial weights and mini-batches. With a whole number ``fit`` is repeatable. None
        takes a new seed, which ``seed_`` keeps. The global generators of NumPy and PyTorch are
        neither used nor changed.
    device : str, default "auto"
        Device of the training. ``"auto"`` is CUDA if it is available.
    dtype : {"float32", "float64"}, default "float32"
        Precision of the training.
    selection : LambdaSelection or dict, optional
        How ``lam="auto"`` chooses λ: a :class:`frhsic_core.learning.LambdaSelection` or a
        dictionary of its parameters.
    verbose : bool, default False
        Whether to print loss, penalty and metric of every epoch, and the time left.

    Attributes
    ----------
    classes_ : ndarray
        The two classes, sorted. The second column of the probabilities belongs to ``classes_[1]``.
    positive_class_ : label
        The class that counted as y = 1 in training.
    encoder_, head_ : nn.Sequential, nn.Linear
        Plain PyTorch modules, float64. Their input is ``arcsinh((X - offset_) / scale_)``, after
        categories and missing values have become numbers (``columns_``): the median is subtracted,
        and the inverse hyperbolic sine keeps extreme values from doing harm. The head's output is
        the logit of ``positive_class_``.
    lam_ : float
        The λ of the model.
    lambda_choice_ : LambdaChoice or None
        What ``lam="auto"`` tried and why it chose this λ.
    certificate_ : DependenceBound or None
        With ``selection={"rule": "guarantee", "guaranteed_gdp": 0.1}``, the upper bound on GDP of
        the probabilities, from samples that took no part in the training. None without it: samples
        that train a model cannot guarantee anything about it.
    n_epochs_ : int
        Number of epochs, given or found by ``"auto"``.
    history_ : DataFrame
        Loss, penalty, ratio and metric of every epoch.

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

    def _target(self, y: Any, given: FitInput) -> tuple[np.ndarray, str]:
        self.classes_ = two_classes(given.y, advice=MANY_CLASSES)
        return self._as_numbers(y, given, self.classes_), "classification"

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the logits of ``classes_[1]``, ``(n,)``."""
        _, logits = self._forward(X)
        if self.positive_class_ == self.classes_[1]:
            return logits
        return -logits

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

    It minimizes the mean squared error of the standardized target + λ · penalty. Parameters,
    defaults and attributes are those of :class:`FairClassifier`, without those about classes.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> s = rng.uniform(size=400)
    >>> X = np.column_stack([s + rng.normal(size=400), rng.normal(size=400)])
    >>> model = FairRegressor(lam=1.0, epochs=60, learning_rate=1e-2, random_state=0, device="cpu")
    >>> model.fit(X, X.sum(1), sensitive_features=s).predict(X).shape
    (400,)
    """

    _checks: ClassVar[dict[str, Any]] = {"y_numeric": True}

    def _target(self, y: Any, given: FitInput) -> tuple[np.ndarray, str]:
        return given.y, "regression"

    def predict(self, X: Any) -> np.ndarray:
        """Return the predictions on the scale of y."""
        _, output = self._forward(X)
        return output * self.target_scale_ + self.target_offset_


class FairEncoder(_WithPositiveClass):
    """A representation that predicts y and depends less on the attribute.

    If y has two values, they are classes, and otherwise numbers. Parameters and defaults are those
    of :class:`FairClassifier`, except for ``widths``, which is (50, 8): Z has twice the dimension
    of a classifier's, because other models will use it for other targets.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> s = rng.uniform(20, 70, size=400)
    >>> X = np.column_stack([s / 50 + rng.normal(size=400), rng.normal(size=400)])
    >>> y = X.sum(1) > 1
    >>> encoder = FairEncoder(epochs=60, learning_rate=1e-2, random_state=0, device="cpu")
    >>> encoder.fit(X, y, sensitive_features=s).transform(X).shape
    (400, 8)
    """

    _widths = (50, 8)

    def _target(self, y: Any, given: FitInput) -> tuple[np.ndarray, str]:
        values = np.unique(given.y)
        if len(values) < 2:
            value = values.tolist()[0]
            count = "1 sample" if len(given.y) == 1 else f"{len(given.y)} rows"
            raise ValueError(f"y is constant ({value!r}, {count}): nothing can be learned from it.")
        if len(values) == 2:
            return self._as_numbers(y, given, values), "classification"
        if self.positive_class is not None:
            raise ValueError(
                f"positive_class is {self.positive_class!r}, but y has {len(values)} values: leave "
                "positive_class out."
            )
        require_numbers(given.y)
        return as_tensor(given.y, name="y").numpy(), "regression"
