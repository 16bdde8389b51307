"""The base class of the scikit-learn estimators: scaling, training and encoding.

The columns of X become numbers and are scaled (``inputs.features``). S is scaled to [0, 1] by the
minimum and maximum of the training samples, as in the paper. The target of a regression is
standardized. The learning rate falls linearly to zero. The training runs in float32 on the chosen
device. Predictions are computed in float64 on the CPU by plain PyTorch modules, so the prediction
for a sample does not depend on the other samples.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
import torch
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted
from torch import nn

from frhsic_core._arrays import ArrayLike, warn_caller
from frhsic_core.bounds import DependenceBound, gdp_bound
from frhsic_core.inputs.features import columns_of, fit_columns, fit_scaling, scaled
from frhsic_core.inputs.fitting import FitWarning, MissingAttributeWarning, all_or_nothing
from frhsic_core.learning.data import TrainingData
from frhsic_core.learning.estimators.input import (
    DTYPES,
    LEARNING_RATE,
    FitInput,
    number_of_epochs,
    read_columns,
    read_fit,
    seed_of,
    standardized,
)
from frhsic_core.learning.estimators.warnings import (
    constant_prediction,
    few_of_a_class,
    no_gain,
    small_batch,
    undertrained,
    unwanted_choice,
)
from frhsic_core.learning.penalties import Penalty, make_penalty
from frhsic_core.learning.rules import LambdaSelection
from frhsic_core.learning.selection import LambdaPath, select_lambda
from frhsic_core.learning.stack import CHUNK, TrainedStack, cpu_threads
from frhsic_core.learning.trainer import Trainer, TrainingSettings

Attribute = ArrayLike | str | None
# Training samples, evenly spaced, that show whether a model predicts anything: of the model, and of
# each model that lam="auto" tried.
SAMPLES_JUDGED = 10_000
SAMPLES_OF_OTHERS = 2000


class FairModel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base class of the three estimators; :class:`~frhsic_core.FairClassifier` documents the parameters."""

    encoder_: nn.Sequential
    head_: nn.Linear
    _widths: tuple[int, ...] = (50, 4)
    _checks: ClassVar[dict[str, Any]] = {}  # of scikit-learn, of X and y
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "epochs": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "widths": ["array-like", None],
        "random_state": ["random_state"],
        "device": [str, torch.device],
        "dtype": [StrOptions(set(DTYPES))],
        "penalty_settings": [dict, None],
        "verbose": ["boolean"],
    }

    def __init__(
        self,
        lam: float | str = 1.0,
        *,
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
        self.lam = lam
        self.method = method
        self.penalty_settings = penalty_settings
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.widths = widths
        self.random_state = random_state
        self.device = device
        self.dtype = dtype
        self.selection = selection
        self.verbose = verbose

    # Training -------------------------------------------------------------------------------------

    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: Attribute = None,
        sample_weight: Any = None,
        control_features: Attribute = None,
    ) -> Self:
        """Fit on ``X (n, d)``, classes or numbers ``y (n,)`` and attributes ``(n,)`` or ``(n, p)``.

        ``sensitive_features`` may also be the name of a column of a DataFrame X, or a list of
        names. The columns stay in X. Samples are matched by position; pandas objects whose labels
        are in another order are an error. A table of numeric and text columns (age and sex) is one
        mixed attribute, with a product of kernels.

        ``control_features`` are legitimate factors C, or their names in X: only the dependence
        given C is penalized (``condition="controls"`` of FRHSIC). Labels form groups, other numbers
        enter by regressions in the mini-batch (:func:`frhsic_core.hsic_test` has the rule). For
        equalized odds use ``penalty_settings={"condition": "labels"}`` instead.

        Columns of a DataFrame with text, categories or truth values are encoded, and missing values
        of X are replaced by the median and marked (``inputs.features``). ``predict`` then needs a
        DataFrame with the same columns.

        A warning is given if the fit is probably not what you want
        (``learning.estimators.warnings``): a missing attribute with λ > 0 (the model is then
        trained without a penalty), an attribute that is a column of X or has values far from all
        others, too few steps, a model that predicts one class or is no better than that,
        mini-batches that are too small, or ``lam="auto"`` without a useful λ.
        """
        given = read_fit(
            self,
            X,
            y,
            s=sensitive_features,
            sample_weight=sample_weight,
            control=control_features,
            checks=self._checks,
        )
        target, task = self._target(y, given)
        return self._fit(given._replace(y=target), task)

    def _target(self, y: Any, given: FitInput) -> tuple[np.ndarray, str]:
        """Return the target as numbers, 0 and 1 for classes, and the task."""
        raise NotImplementedError

    def _fit(self, given: FitInput, task: str) -> Self:
        """Train on checked input; y is 0 and 1 for a classification, else numbers."""
        given = given.without_zero_weights()
        X, y, s, weights, control, _ = given
        self._require_two_values(y, task)
        penalized = self._is_penalized(s)
        penalty = make_penalty("unfair")
        if penalized:
            penalty = self._penalty(given)
        counted = 1.0  # share of the samples of a mini-batch that the penalty uses
        if penalty.condition == "positives":
            counted = float(y.mean())
        batch_size = min(int(self.batch_size), len(X))
        seed = seed_of(self.random_state)
        seen = self._seen(given, task, seed=seed)
        fitted = slice(None) if seen.all() else seen
        columns = fit_columns(X[fitted], weights)
        numbers = columns_of(X, columns)
        offset, scale = fit_scaling(numbers[fitted], weights)
        x = scaled(numbers, offset, scale)
        target_offset, target_scale = 0.0, 1.0
        if task == "regression":
            y, target_offset, target_scale = standardized(y, weights)
        data = TrainingData.from_arrays(
            torch.from_numpy(x),
            y,
            _between_zero_and_one(s, seen) if penalized and s is not None else None,
            sample_weight=weights,
            task=task,
        )
        if control is not None:
            data = replace(data, control=torch.from_numpy(control).unsqueeze(0))
        epochs = number_of_epochs(
            self.epochs, rows=len(x), batch_size=batch_size, learning_rate=self.learning_rate
        )
        stack, index, path = self._train(
            data, penalty, seed=seed, epochs=epochs, penalized=penalized
        )

        # Everything is trained: only now replace the attributes of an earlier fit.
        self._keep(stack, index)
        self.columns_ = columns
        self.offset_ = offset
        self.scale_ = scale
        if task == "regression":
            self.target_offset_ = target_offset
            self.target_scale_ = target_scale
        self.task_ = task
        self.seed_ = seed
        self.n_epochs_ = epochs
        self.lambda_choice_ = None if path is None else path.choice
        self.certificate_ = None
        if s is not None and not seen.all():
            self.certificate_ = self._certificate(x[~seen], s[~seen])
        if path is not None:
            self.lam_ = path.choice.lam
        elif penalized:
            self.lam_ = float(self.lam)
        else:
            self.lam_ = 0.0
        complaints = self._complaints(
            x, y, path, batch_size=batch_size, penalized=penalized, counted=counted
        )
        for message in complaints:
            if message is not None:
                warn_caller(message, FitWarning)
        return self

    def _require_two_values(self, y: np.ndarray, task: str) -> None:
        """Raise ``ValueError`` if all samples that count have the same target."""
        if (y != y[0]).any():
            return
        what = "has one class only" if task == "classification" else f"is constant ({y[0]:g})"
        raise ValueError(
            f"y {what} in the {len(y)} sample(s) that count: nothing can be learned from it."
        )

    def _is_penalized(self, s: np.ndarray | None) -> bool:
        """Return whether a penalty is used, and warn if it is wanted but has no attribute."""
        wanted = self.method != "unfair" and self.lam != 0
        if wanted and s is None:
            warn_caller(
                f"sensitive_features is missing: {type(self).__name__}(lam={self.lam!r}) is "
                "trained WITHOUT a penalty and may depend on the attribute as much as any other "
                "model. Pass fit(X, y, sensitive_features=s), or use lam=0.",
                MissingAttributeWarning,
            )
        return wanted and s is not None

    def _seen(self, given: FitInput, task: str, *, seed: int) -> np.ndarray:
        """Return which samples may take part in the training in any way, ``(n,)``.

        These are all samples unless a guarantee is wanted.
        """
        s = given.s
        rows = len(given.y)
        seen = np.ones(rows, dtype=bool)
        selection = LambdaSelection.of(self.selection)
        if selection.rule != "guarantee":
            return seen
        if self.lam != "auto":
            raise ValueError(
                f"lam is {self.lam}, so all samples train the model, and samples that train a "
                "model cannot guarantee anything about it. Set lam='auto', which holds samples "
                "out, or use gdp_bound with other samples."
            )
        if task != "classification" or not hasattr(self, "predict_proba"):
            raise ValueError(
                f"a {type(self).__name__} has no probabilities: the rule 'guarantee' is for "
                "FairClassifier."
            )
        if s is None or s.shape[1] != 1:
            raise ValueError(
                "sensitive_features must be one attribute: the rule 'guarantee' is for one."
            )
        if given.weights is not None:
            raise ValueError(
                "sample_weight is given: the bound of the rule 'guarantee' is for samples that "
                "count alike."
            )
        held, *_ = selection.held_out(rows, random_state=seed)
        seen[held.numpy()] = False
        return seen

    def _certificate(self, x: np.ndarray, s: np.ndarray) -> DependenceBound:
        """Return the bound on GDP of the probabilities for scaled X that trained no model."""
        selection = LambdaSelection.of(self.selection)
        _, logits = self._outputs(x)
        scores = torch.sigmoid(torch.from_numpy(logits))
        return gdp_bound(
            scores, sensitive_features=s, delta=selection.delta, candidates=len(selection.lams)
        )

    def _train(
        self, data: TrainingData, penalty: Penalty, *, seed: int, epochs: int, penalized: bool
    ) -> tuple[TrainedStack, int, LambdaPath | None]:
        """Return a trained stack, the index of the wanted model in it, and how λ was chosen."""
        settings = TrainingSettings(
            epochs=epochs,
            batch_size=int(self.batch_size),
            learning_rate=self.learning_rate,
            decay=True,
            widths=self._layers,
            dtype=DTYPES[self.dtype],
            device=self.device,
        )
        path: LambdaPath | None = None
        lam = self.lam if penalized else 0.0
        callback = print if self.verbose else None
        if lam == "auto":
            selection = LambdaSelection.of(self.selection)
            # A model with a guarantee is kept as it is: after a second training nothing would be
            # known about it.
            final = selection.rule == "guarantee"
            tried = settings
            if not final:
                tried = replace(settings, epochs=math.ceil(epochs / 2))
            path = select_lambda(
                data,
                selection=selection,
                penalty=penalty,
                settings=tried,
                random_state=seed,
                callback=callback,
            )
            if final:
                return path.stack, path.index, path
            lam = path.choice.lam
        trainer = Trainer(data, penalty=penalty, lam=float(lam), seeds=seed, settings=settings)
        return trainer.fit(callback=callback), 0, path

    def _keep(self, stack: TrainedStack, index: int) -> None:
        """Keep the networks and the history of one model of a stack."""
        encoder, head = stack.lone(index)
        for weight in (*encoder.parameters(), *head.parameters()):
            if not bool(weight.isfinite().all()):
                raise ValueError(
                    f"the training diverged to NaN at learning_rate={self.learning_rate:g}: use a "
                    "smaller one, such as 0.001."
                )
        self.encoder_ = encoder.double().cpu()
        self.head_ = head.double().cpu()
        columns = ("loss", "penalty", "ratio", "metric")
        self.history_ = pd.DataFrame({name: stack.history[name][:, index] for name in columns})

    def _complaints(
        self,
        x: np.ndarray,
        y: np.ndarray,
        path: LambdaPath | None,
        *,
        batch_size: int,
        penalized: bool,
        counted: float,
    ) -> Iterator[str | None]:
        """Yield what is probably wrong with the model, or None.

        ``counted`` is the share of samples that the penalty uses.
        """
        if penalized:
            yield small_batch(batch_size * counted, batch_size=batch_size)
        if path is not None:
            yield unwanted_choice(path.choice, self.certificate_)
            if self.task_ == "classification" and path.choice.rule == "tradeoff":
                yield few_of_a_class(path.rarer)
        rate = self.learning_rate
        short = undertrained(
            epochs=self.n_epochs_,
            steps_per_epoch=math.ceil(len(x) / batch_size),
            learning_rate=rate,
            penalized=penalized,
        )
        yield short
        if short is not None:
            return
        rows = np.linspace(0, len(x) - 1, min(len(x), SAMPLES_JUDGED)).astype(int)
        _, output = self._outputs(x[rows])
        tried: np.ndarray | None = None
        if path is not None:
            some = x[rows[:SAMPLES_OF_OTHERS]]
            tried = path.stack.output(some).double().cpu().numpy()
        flat = constant_prediction(
            output,
            classes=hasattr(self, "classes_"),
            tried=tried,
            lam=self.lam_,
            learning_rate=rate,
        )
        yield flat
        if flat is None:
            yield no_gain(output, y[rows], task=self.task_, lam=self.lam_, learning_rate=rate)

    def _penalty(self, given: FitInput) -> Penalty:
        """Return the penalty, with settings that the data imply unless the user has set them."""
        implied: dict[str, Any] = {}
        if given.control is not None:
            implied["condition"] = "controls"
        if given.categorical:
            implied["attributes"] = "product"
            implied["categorical"] = given.categorical
        settings = implied | dict(self.penalty_settings or {})
        return make_penalty(self.method, **settings)

    # Using ----------------------------------------------------------------------------------------

    def _forward(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Check and scale X; return Z ``(n, d)`` and the head's output ``(n,)``, float64."""
        check_is_fitted(self)
        numbers = read_columns(self, X)
        return self._outputs(scaled(numbers, self.offset_, self.scale_))

    @torch.no_grad()
    def _outputs(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return Z ``(n, d)`` and the head's output ``(n,)`` for scaled X."""
        with cpu_threads(len(x) * max(x.shape[1], *self._layers)):
            blocks = torch.from_numpy(x).split(CHUNK)
            z = torch.cat([self.encoder_(block) for block in blocks])
            output = self.head_(z).squeeze(-1)
        return z.numpy(), output.numpy()

    def transform(self, X: Any) -> np.ndarray:
        """Return the representation Z, ``(n, widths[-1])``."""
        z, _ = self._forward(X)
        return z

    @property
    def _layers(self) -> tuple[int, ...]:
        """The width of each layer of the encoder."""
        if self.widths is None:
            return self._widths
        return tuple(self.widths)

    @property
    def _n_features_out(self) -> int:
        return int(self._layers[-1])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.allow_nan = True
        return tags


def _between_zero_and_one(s: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Return the attributes scaled by the least and the largest value of the samples ``seen``."""
    width = np.ptp(s[seen], axis=0)
    divisor = np.where(width > 0, width, 1.0)  # a constant is refused later
    return (s - s[seen].min(0)) / divisor
