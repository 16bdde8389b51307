"""What the scikit-learn estimators share: checking, scaling, training, encoding, saving.

X and S are scaled to [0, 1] on the training rows inside, as the paper does; the target of a regression is standardised.
Training is in float32 on whatever device there is, predictions are in float64 on the CPU: plain PyTorch modules that do
not depend on the number of rows they are asked about.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from numbers import Real
from typing import Any, Self, cast

import numpy as np
import pandas as pd
import torch
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
from torch import nn

from frhsic_core.learning.estimator_input import check_selection, standardised, value_range
from frhsic_core.learning.fit_warnings import (
    InterruptedWarning,
    MissingAttributeWarning,
    UnpenalisedWarning,
    warn_if_constant,
    warn_if_undertrained,
)
from frhsic_core.learning.interrupt import inside_a_search
from frhsic_core.learning.penalties import Penalty
from frhsic_core.learning.persistence import load_estimator, plain_networks, save_estimator
from frhsic_core.learning.progress import progress_bar
from frhsic_core.learning.protocols import METHODS, architecture, make_penalty
from frhsic_core.learning.selection import LambdaPath, select_lambda
from frhsic_core.learning.trained import TrainedStack
from frhsic_core.learning.trainer import Trainer

__all__ = ["FairModel"]

DTYPES = {"float32": torch.float32, "float64": torch.float64}
_CHUNK = 8192  # rows predicted at a time


class FairModel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base of the three estimators; :class:`frhsic_core.learning.FairClassifier` documents the parameters."""

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
        epochs: int = 50,
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
        self._check_parameters()
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
            kept = sample_weight > 0  # a row of weight zero must not even stretch the scaling
            if not kept.all():
                X, y, sample_weight = X[kept], y[kept], sample_weight[kept]
                s = None if s is None else s[kept]
            if len(X) == 0:
                raise ValueError("sample_weight is zero everywhere: at least one row needs a positive weight.")
        if task == "classification" and len(np.unique(y)) < 2:
            raise ValueError("y has one class only: a classifier needs rows of both classes.")
        if s is None and self.method != "unfair" and self.lam != 0:
            warnings.warn(
                f"sensitive_features is missing: {type(self).__name__}(lam={self.lam!r}) is trained WITHOUT a penalty "
                "and depends on the attribute as much as any model. Pass fit(X, y, sensitive_features=s), or lam=0.",
                MissingAttributeWarning,
                stacklevel=3,
            )
        if task == "regression":
            y, self.target_offset_, self.target_scale_ = standardised(y, sample_weight)
        penalised = s is not None and self.method != "unfair" and self.lam != 0
        self.offset_, self.scale_ = value_range(X)
        x = (X - self.offset_) / self.scale_
        if s is not None and penalised:
            s_offset, s_scale = value_range(s)
            s = (s - s_offset) / s_scale
        seed = self.random_state
        if not isinstance(seed, (int, np.integer)):
            seed = int(check_random_state(seed).randint(np.iinfo(np.int32).max))
        penalty = make_penalty("unfair") if not penalised else self._penalty()
        options: dict[str, Any] = {
            "task": task,
            "protocol": self.protocol,
            "epochs": self.epochs,
            "batch_size": self.batch_size,
            "learning_rate": self.learning_rate,
            "widths": tuple(self.widths),
            "device": self.device,
            "dtype": DTYPES[self.dtype],
        }
        path: LambdaPath | None = None
        lam = 0.0 if not penalised else self.lam
        with progress_bar(type(self).__name__) if self.verbose else nullcontext() as callback:
            if lam == "auto":
                check_selection(self.selection)
                path = select_lambda(
                    x, y, s, penalty=penalty, seed=seed, sample_weight=sample_weight, callback=callback,
                    **options, **(self.selection or {}),
                )  # fmt: skip
                lam = path.choice.lam
                if lam == 0:
                    warnings.warn(
                        "lam='auto' chose λ = 0, no penalty: no larger λ of the grid was worth its price on the rows "
                        "held out (lambda_choice_.table shows what was tried). Give lam a number, more rows or epochs, "
                        "or selection={'tolerance': ...} above the standard error of the held-out performance.",
                        UnpenalisedWarning,
                        stacklevel=3,
                    )
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
        self._keep(stack, index, task=task, lam=float(lam), seed=int(seed))
        self.lambda_choice_ = None if path is None else path.choice
        if not stack.interrupted:
            self._warn(x, path, steps=self.epochs * -(-len(x) // min(self.batch_size, len(x))))
        return self

    def _warn(self, x: np.ndarray, path: LambdaPath | None, *, steps: int) -> None:
        """Say so where the model predicts one value, or the training was too short to have done anything."""
        rows = np.linspace(0, len(x) - 1, min(len(x), 2000)).astype(int)
        tried = None if path is None else path.stack.output(x[rows]).double().cpu().numpy()
        with torch.no_grad():
            output = self.head_(self.encoder_(torch.from_numpy(x[rows]))).squeeze(-1).numpy()
        if not warn_if_undertrained(steps=steps, learning_rate=self.learning_rate, stacklevel=4):
            warn_if_constant(output, classes=hasattr(self, "classes_"), lam=self.lam_, tried=tried, stacklevel=4)

    def _keep(self, stack: TrainedStack, index: int, *, task: str, lam: float, seed: int) -> None:
        encoder, head = stack.lone(index)
        self.encoder_, self.head_ = encoder.double().cpu(), head.double().cpu()
        rows = {name: stack.history[name] for name in ("loss", "penalty", "ratio", "metric")}
        # Before the first epoch has ended there is no row, and no column for the model.
        self.history_ = pd.DataFrame(
            {name: values[:, index] if len(values) else values[:, 0:0].flatten() for name, values in rows.items()}
        )
        self.task_, self.lam_, self.seed_ = task, lam, seed
        self.interrupted_ = stack.interrupted
        if stack.interrupted:
            choice = f" while λ was being chosen (λ = {lam:g} is provisional)" if self.lam == "auto" else ""
            warnings.warn(
                f"training was interrupted after {stack.history.epochs} of {self.epochs} epochs{choice}: the model as "
                "it stands is kept (interrupted_ is True).",
                InterruptedWarning,
                stacklevel=4,
            )

    def _penalty(self) -> Penalty:
        settings = dict(self.penalty_settings or {})
        if self.method == "frhsic" and self.protocol == "recommended":
            settings = {"on": self._on, **settings}
        return make_penalty(self.method, protocol=self.protocol, **settings)

    def _check_parameters(self) -> None:
        if self.method not in METHODS:
            raise ValueError(f"method is {self.method!r}: choose one of {', '.join(map(repr, METHODS))}.")
        if isinstance(self.lam, str):
            if self.lam != "auto":
                raise ValueError(f"lam is {self.lam!r}: give a number that is zero or positive, or 'auto'.")
        elif not isinstance(self.lam, Real):
            raise ValueError(f"lam is {self.lam!r}: give a number that is zero or positive, or 'auto'.")
        elif not 0 <= self.lam < float("inf"):
            raise ValueError(f"lam is {self.lam}: it must be zero or positive, and finite, or 'auto'.")
        if str(self.device).startswith("cuda") and not torch.cuda.is_available():
            raise ValueError(f"device is {self.device!r} and there is no CUDA device: use 'cpu' or 'auto'.")
        if self.dtype not in DTYPES:
            raise ValueError(f"dtype is {self.dtype!r}: choose 'float32' or 'float64'.")

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
