r"""The attainable frontier: the best squared error at each level of dependence, under stated assumptions.

Let f = E[Y | X, S] be the best prediction that may use S. Two results describe what any prediction can reach:

- **Mean dependence.** Among all predictions with Var(E[g | S]) ≤ α·Var(E[f | S]) the smallest excess of the squared
  error over that of f is (1 − √α)²·Var(E[f | S]). It is reached by f − t·(E[f | S] − E f) with t = 1 − √α: subtracting
  the conditional mean changes f by exactly its projection onto the functions of S.
- **Dependence of the distribution.** With U(g) the mean squared Wasserstein distance of the conditional distributions
  to their barycenter, the smallest excess error subject to U(g) ≤ α·U(f) is (1 − √α)²·U(f) (Chzhen and Schreuder,
  2022). It is reached by mixing f with its image under the conditional rank transform.

The assumptions: the score that is passed in is close to E[Y | X, S], and the loss is the squared error (the Brier score
of a classifier). A curve drawn with other measures, such as AUC and distance correlation, is the path of these optimal
predictions, not a bound for these measures. A better model can lie beyond an estimate that was made with a weaker one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from frhsic_core.arrays import ArrayLike
from frhsic_core.choices import one_of
from frhsic_core.learning.estimators.input import require_numbers
from frhsic_core.remedies.adjustment import Adjustment
from frhsic_core.remedies.attributes import attribute_matrix, read_attributes, require_variation
from frhsic_core.remedies.measures import dependence_of, score_of

PARITIES = ("mean", "distribution")
_METHOD = {"mean": "mean", "distribution": "rank"}


@dataclass(frozen=True)
class AttainableFrontier:
    """The result of :func:`~frhsic_core.attainable_frontier`.

    Attributes
    ----------
    table : DataFrame
        One row for each strength: ``strength``, ``error`` (squared), ``least_error`` (the formula), ``score`` (R² or
        AUC), ``dcor``, ``gdp``.
    parity : str
        ``"mean"`` or ``"distribution"``.
    unfairness : float
        Var(E[f | S]) or U(f): the excess error of complete parity.
    """

    table: pd.DataFrame
    parity: str
    unfairness: float


def attainable_frontier(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    task: str = "regression",
    parity: str = "distribution",
    strengths: Sequence[float] = tuple(np.linspace(0.0, 1.0, 11).tolist()),
    random_state: int = 0,
) -> AttainableFrontier:
    """Estimate the best score at each level of dependence from the best predictions that you have.

    The module docstring states the formulas and the assumptions. The adjustment is fitted on one half of the samples
    and measured on the other, and the halves change places. O(n log n).

    Parameters
    ----------
    y_true : array_like
        ``(n,)``: the target; 0 and 1 for a classification.
    y_pred : array_like
        ``(n,)``: out-of-fold predictions (probabilities of a classifier) of a good model that **sees S**.
    sensitive_features : array_like
        ``(n,)``, ``(n, p)`` or a frame with any columns.
    task : {"regression", "classification"}
        What the predictions are.
    parity : {"mean", "distribution"}
        Which dependence is limited.
    strengths : sequence of float
        Points of the frontier: t = 1 − √α, from 0 (f itself) to 1 (parity).
    random_state : int
        Seed of the halves.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> age, x = rng.normal(size=(2, 2000))
    >>> found = attainable_frontier(age + x, age + x, sensitive_features=age, parity="mean", strengths=(0, 0.5, 1))
    >>> found.table["error"].round(2).tolist()  # t² · Var(age)
    [0.0, 0.24, 0.97]
    """
    one_of("parity", parity, PARITIES)
    one_of("task", task, ("regression", "classification"))
    parts = []
    for name, given in (("y_pred", y_pred), ("y_true", y_true)):
        require_numbers(given, name=name)
        values = np.asarray(given, dtype=np.float64).ravel()
        if not np.isfinite(values).all():
            raise ValueError(f"{name} has NaN or infinite values: drop those rows first.")
        parts.append(values)
    f, y = parts
    if f.shape != y.shape:
        raise ValueError(f"y_pred has {len(f)} rows but y_true has {len(y)}: both need one row per sample.")
    if len(np.unique(y)) < 2:
        raise ValueError("y_true has one value only: no prediction of it can be better than another.")
    if task == "classification" and not np.isin(y, (0.0, 1.0)).all():
        raise ValueError("y_true has values other than 0 and 1: code the classes as 0 and 1, or use task='regression'.")
    frame = read_attributes(sensitive_features, len(f))
    require_variation(frame)
    half = np.random.default_rng(random_state).permutation(len(f)) % 2 == 0
    parity_score = np.empty_like(f)
    for fit, use in ((half, ~half), (~half, half)):
        # Probabilities are predictions for the squared error, so they are adjusted as they are and not as logits.
        adjustment = Adjustment(_METHOD[parity], 1.0, classifier=False)
        adjustment.fit(f[fit], frame[fit].reset_index(drop=True))
        part = frame[use].reset_index(drop=True)
        parity_score[use] = adjustment(f[use], part)
    unfairness = float(np.mean((parity_score - f) ** 2))
    least = float(np.mean((y - f) ** 2))
    s = attribute_matrix(frame)
    rows: list[dict[str, Any]] = []
    for t in strengths:
        g = (1.0 - t) * f + t * parity_score
        rows.append(
            {
                "strength": float(t),
                "error": float(np.mean((y - g) ** 2)),
                "least_error": float(least + t**2 * unfairness),
                "score": score_of(g, y, task=task),
                **dependence_of(g, s, scale=1.0 if task == "classification" else float(y.std())),
            }
        )
    return AttainableFrontier(pd.DataFrame(rows), parity, unfairness)
