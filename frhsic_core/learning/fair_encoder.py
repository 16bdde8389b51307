"""FRHSIC as a scikit-learn transformer: a representation for other models to use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from frhsic_core.arrays import ArrayLike, as_tensor
from frhsic_core.learning.estimator_input import read_fit
from frhsic_core.learning.fair_model import FairModel
from frhsic_core.learning.fit_parameters import favourable_class

__all__ = ["Attribute", "FairEncoder"]

Attribute = ArrayLike | str | None


class FairEncoder(FairModel):
    """A representation that predicts y and depends less on the attribute.

    Parameters
    ----------
    lam : float or "auto", default 1.0
        λ ≥ 0. The penalty is on Z alone (:class:`frhsic_core.FairClassifier` has one of weight λ = 0.5 on Z
        and one on the logits), so that the two defaults weigh alike.
    task : {"auto", "classification", "regression"}, default "auto"
        What y is; ``"auto"``: a classification when it has two values, otherwise a regression.
    widths : tuple of int, default (50, 8)
        Z is twice as wide as a classifier's, because other heads and other targets are to find something in it.
    positive_class, method, ...
        As in :class:`frhsic_core.FairClassifier`, with the same defaults.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> s = rng.uniform(20, 70, size=400)
    >>> X = np.column_stack([s / 50 + rng.normal(size=400), rng.normal(size=400)])
    >>> y = X.sum(1) > 1
    >>> encoder = FairEncoder(lam=1.0, epochs=60, learning_rate=1e-2, widths=(16, 4), random_state=0, device="cpu")
    >>> encoder.fit(X, y, sensitive_features=s).transform(X).shape
    (400, 4)
    """

    _on = "representation"

    def __init__(
        self,
        lam: float | str = 1.0,
        *,
        task: str = "auto",
        positive_class: Any = None,
        method: str = "frhsic",
        protocol: str = "recommended",
        penalty_settings: dict[str, Any] | None = None,
        epochs: int | str = "auto",
        batch_size: int = 256,
        learning_rate: float = 1e-3,
        widths: Sequence[int] = (50, 8),
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
        self.task = task
        self.positive_class = positive_class

    def fit(self, X: Any, y: Any, *more: Any, sensitive_features: Attribute = None, sample_weight: Any = None) -> Self:
        """Fit on ``X (n, d)``, ``y (n,)`` and the attribute(s) ``(n,)`` or ``(n, p)``, or named columns of X."""
        given = y
        X, y, s = read_fit(self, X, y, more, sensitive_features, sample_weight)
        if self.task not in ("auto", "classification", "regression"):
            raise ValueError(f"task is {self.task!r}: choose 'auto', 'classification' or 'regression'.")
        task = self.task
        values = np.unique(y)
        if len(values) < 2:
            count = "1 sample" if len(y) == 1 else f"{len(y)} rows"
            raise ValueError(f"y is constant ({values.tolist()[0]!r}, {count}): nothing to be learnt from it.")
        if task == "auto":
            task = "classification" if len(values) == 2 else "regression"
        if task == "regression":
            if self.positive_class is not None:
                raise ValueError(
                    f"positive_class is {self.positive_class!r} and y has {len(values)} values: leave it out."
                )
            return self._fit(X, as_tensor(y, name="y").numpy(), s, sample_weight, task)
        if len(values) > 2:
            raise ValueError(f"y has {len(values)} classes: two are supported; use task='regression' for a number.")
        condition = (self.penalty_settings or {}).get("condition")
        self.positive_class_ = favourable_class(given, values, self.positive_class, condition=condition, stacklevel=2)
        return self._fit(X, (y == self.positive_class_).astype(np.float64), s, sample_weight, task)
