"""What the scikit-learn estimators share: checking, scaling, training, encoding, saving.

X and S are scaled to [0, 1] by the minimum and maximum of the training rows inside, as the paper does (a few values far
out are reported, ``OutlierWarning``); the target of a regression is standardised.
Training is in float32 on whatever device there is, predictions are in float64 on the CPU: plain PyTorch modules that do
not depend on the number of rows they are asked about.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import Any, Self, cast

import numpy as np
import pandas as pd
import torch
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
from torch import nn

from frhsic_core.learning.estimator_input import standardised, value_range
from frhsic_core.learning.fit_parameters import DTYPES, number_of_epochs, seed_of
from frhsic_core.learning.fit_warnings import (
    InterruptedWarning,
    warn_if_constant,
    warn_if_no_gain,
    warn_if_small_batch,
    warn_if_undertrained,
    warn_of_choice,
    warn_of_missing_attribute,
)
from frhsic_core.learning.interrupt import inside_a_search
from frhsic_core.learning.outliers import warn_of_outliers
from frhsic_core.learning.penalties import Penalty
from frhsic_core.learning.persistence import load_estimator, plain_networks, save_estimator
from frhsic_core.learning.progress import late_progress_bar, progress_bar
from frhsic_core.learning.protocols import architecture, make_penalty
from frhsic_core.learning.selection import LambdaPath, select_lambda
from frhsic_core.learning.trained import TrainedStack
from frhsic_core.learning.trainer import Trainer

__all__ = ["FairModel"]

_CHUNK = 8192  # rows predicted at a time


class FairModel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base of the three estimators; :class:`frhsic_core.FairClassifier` documents the parameters."""

    encoder_: nn.Sequential
    head_: nn.Linear
    _task = "classification"
    _on = "both"

    def __init__(
        self,
        lam: float | str = 0.5,
        *,
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
        self.lam = lam
        self.method = method
        self.protocol = protocol
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

    # Training ---------------------------------------------------------------------------------------------------------

    def _fit(self, X: Any, y: np.ndarray, s: np.ndarray | None, sample_weight: Any, task: str) -> Self:
        """Train on checked X (float64) and y (0 and 1 for a classification, numbers for a regression) and s."""
        X, y, s, sample_weight = self._weighted_rows(X, y, s, sample_weight)
        if (y == y[0]).all():
            what = "has one class only" if task == "classification" else f"is constant ({y[0]:g})"
            raise ValueError(f"y {what} in the {len(y)} sample(s) that count: there is nothing to be learnt.")
        wanted = self.method != "unfair" and self.lam != 0
        if s is None and wanted:
            warn_of_missing_attribute(type(self).__name__, lam=self.lam, stacklevel=3)
        penalised = s is not None and wanted
        penalty = make_penalty("unfair") if not penalised else self._penalty()
        warn_of_outliers(X, getattr(self, "feature_names_in_", range(X.shape[1])), what="X", stacklevel=3)
        scaling: dict[str, Any] = {}  # kept with the model it belongs to, after the training
        if task == "regression":
            y, scaling["target_offset_"], scaling["target_scale_"] = standardised(y, sample_weight)
        scaling["offset_"], scaling["scale_"] = value_range(X)
        x = (X - scaling["offset_"]) / scaling["scale_"]
        batch = min(int(self.batch_size), len(x))
        if s is not None and penalised:
            warn_of_outliers(s, range(s.shape[1]), what="sensitive_features", stacklevel=3)
            share = 1.0 if penalty.condition is None else float(y.mean())
            warn_if_small_batch(batch * share, batch_size=batch, stacklevel=3)
            s_offset, s_scale = value_range(s)
            s = (s - s_offset) / s_scale
        seed = seed_of(self.random_state)
        options: dict[str, Any] = {
            "task": task,
            "protocol": self.protocol,
            "epochs": number_of_epochs(self.epochs, rows=len(x), batch_size=batch),
            "batch_size": int(self.batch_size),
            "learning_rate": self.learning_rate,
            "widths": tuple(self.widths),
            "device": self.device,
            "dtype": DTYPES[self.dtype],
        }
        path: LambdaPath | None = None
        lam = 0.0 if not penalised else self.lam
        bar = progress_bar if self.verbose else late_progress_bar
        with bar(type(self).__name__) as callback:
            if lam == "auto":
                path = select_lambda(
                    x, y, s, penalty=penalty, seed=seed, sample_weight=sample_weight, callback=callback,
                    **options, **{"repeats": "auto", **(self.selection or {})},
                )  # fmt: skip
                lam = path.choice.lam
            if path is not None and path.stack.interrupted:
                stack, index = path.stack, path.index  # the path is what there is: no second training after Ctrl-C
            else:
                trainer = Trainer(
                    x, y, s if penalised else None, penalty=penalty, lam=float(lam), seeds=seed,
                    sample_weight=sample_weight, **options,
                )  # fmt: skip
                stack, index = trainer.fit(callback=callback), 0
        if stack.interrupted and inside_a_search():
            raise KeyboardInterrupt("Ctrl-C in the middle of a search: the fit under way is dropped with the rest.")
        self._keep(stack, index, task=task, lam=float(lam), seed=seed, epochs=options["epochs"])
        self.__dict__ |= {**scaling, "lambda_choice_": None if path is None else path.choice}
        if not stack.interrupted:
            self._warn(x, y, path, steps_per_epoch=-(-len(x) // batch), penalised=penalised)
        return self

    def _weighted_rows(
        self, X: np.ndarray, y: np.ndarray, s: np.ndarray | None, sample_weight: Any
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, np.ndarray | None]:
        """Leave rows of weight zero out: they must not even stretch the scaling."""
        if sample_weight is None:
            return X, y, s, None
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        kept = weight > 0
        if not kept.any():
            raise ValueError("sample_weight is zero everywhere: at least one row needs a positive weight.")
        return X[kept], y[kept], None if s is None else s[kept], weight[kept]

    def _warn(
        self, x: np.ndarray, y: np.ndarray, path: LambdaPath | None, *, steps_per_epoch: int, penalised: bool
    ) -> None:
        """Say so where the training was too short, or the model predicts one value, or no better than one."""
        if path is not None:
            warn_of_choice(path.choice, stacklevel=4)
        rows = np.linspace(0, len(x) - 1, min(len(x), 10_000)).astype(int)
        with torch.no_grad():
            output = self.head_(self.encoder_(torch.from_numpy(x[rows]))).squeeze(-1).numpy()
        said: dict[str, Any] = {"lam": self.lam_, "learning_rate": self.learning_rate, "stacklevel": 4}
        if warn_if_undertrained(
            epochs=self.n_epochs_, steps_per_epoch=steps_per_epoch, learning_rate=self.learning_rate,
            penalised=penalised, stacklevel=4,
        ):  # fmt: skip
            return
        tried = None if path is None else path.stack.output(x[rows[:2000]]).double().cpu().numpy()
        if not warn_if_constant(output, classes=hasattr(self, "classes_"), tried=tried, **said):
            warn_if_no_gain(output, y[rows], task=self.task_, **said)

    def _keep(self, stack: TrainedStack, index: int, *, task: str, lam: float, seed: int, epochs: int) -> None:
        encoder, head = stack.lone(index)
        if not all(bool(p.isfinite().all()) for p in (*encoder.parameters(), *head.parameters())):
            raise ValueError(
                f"the training diverged to NaN at learning_rate={self.learning_rate:g}: give a smaller one, such as "
                "0.001."
            )
        self.encoder_, self.head_ = encoder.double().cpu(), head.double().cpu()
        rows = {name: stack.history[name] for name in ("loss", "penalty", "ratio", "metric")}
        # Before the first epoch has ended there is no row, and no column for the model.
        self.history_ = pd.DataFrame(
            {name: values[:, index] if len(values) else values[:, 0:0].flatten() for name, values in rows.items()}
        )
        self.task_, self.lam_, self.seed_, self.n_epochs_ = task, lam, seed, epochs
        self.interrupted_ = stack.interrupted
        if stack.interrupted:
            choice = f" while λ was being chosen (λ = {lam:g} is provisional)" if self.lam == "auto" else ""
            warnings.warn(
                f"training was interrupted after {stack.history.epochs} of {epochs} epochs{choice}: the model as "
                "it stands is kept (interrupted_ is True).",
                InterruptedWarning,
                stacklevel=4,
            )

    def _penalty(self) -> Penalty:
        settings = dict(self.penalty_settings or {})
        if self.method == "frhsic" and self.protocol == "recommended":
            settings = {"on": self._on, **settings}
        return make_penalty(self.method, protocol=self.protocol, **settings)

    # Using ------------------------------------------------------------------------------------------------------------

    @torch.no_grad()
    def _forward(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Z ``(n, d)`` and the head's output ``(n,)``, float64."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        x = torch.from_numpy((X - self.offset_) / self.scale_)
        parts = [self.encoder_(block) for block in x.split(_CHUNK)]
        z = torch.cat(parts)
        return z.numpy(), self.head_(z).squeeze(-1).numpy()

    def transform(self, X: Any) -> np.ndarray:
        """Return the representation Z, ``(n, widths[-1])``."""
        return self._forward(X)[0]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator as tensors and JSON; no code, no pickle."""
        save_estimator(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what :meth:`save` wrote; nothing in the file is executed."""
        return load_estimator(cls, path)

    def _networks(self) -> tuple[nn.Sequential, nn.Linear]:
        n_features = cast(int, self.n_features_in_)
        return plain_networks(n_features, tuple(self.widths), activation="selu", **architecture(self.protocol))

    @property
    def _n_features_out(self) -> int:
        return int(tuple(self.widths)[-1])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
