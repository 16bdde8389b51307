"""The numbers by which remedies are compared: the score of held-out predictions, and their dependence on S."""

from __future__ import annotations

import numpy as np
import torch
from sklearn.metrics import r2_score, roc_auc_score

from frhsic_core.audit.representation import audit_representation

MOST_ROWS = 2000


def score_of(predicted: np.ndarray, y: np.ndarray, *, task: str) -> float:
    """Return R² of a regression, or AUC of a classification with labels 0 and 1."""
    return float(r2_score(y, predicted) if task == "regression" else roc_auc_score(y, predicted))


def dependence_of(predicted: np.ndarray, s: np.ndarray, *, scale: float = 1.0) -> dict[str, float]:
    """Return how strongly predictions ``(n,)`` depend on ``s (n, p)``, in four measures.

    ``dcor`` is the root of the bias-corrected squared distance correlation, and zero where that is negative. ``gdp``
    is that of ``predicted / scale``; ``linear_r2`` and ``nonlinear_r2`` are cross-fitted. With several attributes the
    last three are the largest. Attributes are standardized first. At most 2,000 evenly spaced samples are used.

    Examples
    --------
    >>> s = np.linspace(0, 1, 200)[:, None]
    >>> found = dependence_of(s[:, 0], s)
    >>> round(found["dcor"], 3), round(found["linear_r2"], 3)
    (1.0, 1.0)
    """
    rows = np.linspace(0, len(s) - 1, min(len(s), MOST_ROWS)).round().astype(int)
    predicted, s = predicted[rows], s[rows]
    with torch.no_grad():
        deviation = s.std(0)
        varies = deviation > 0
        standard = (s[:, varies] - s[:, varies].mean(0)) / deviation[varies]
        if predicted.std() <= 1e-12 * max(1.0, float(np.abs(predicted).max())):
            return {"dcor": 0.0, "gdp": 0.0, "linear_r2": 0.0, "nonlinear_r2": 0.0}
        audit = audit_representation(predicted[:, None], standard, predictions=predicted / scale, features=100)
    assert audit.gdp is not None
    return {
        "dcor": float(np.sqrt(max(0.0, audit.distance_correlation.item()))),
        "gdp": audit.gdp.item(),
        "linear_r2": max(0.0, audit.linear_r2.item()),
        "nonlinear_r2": max(0.0, audit.nonlinear_r2.item()),
    }
