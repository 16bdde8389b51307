"""The numbers by which remedies are compared: the score of held-out predictions, and their dependence on S."""

from __future__ import annotations

import numpy as np
import torch
from sklearn.metrics import r2_score, roc_auc_score

from frhsic_core.auditing._representation import linear_features, probe_r2, random_features
from frhsic_core.conditional import gdp
from frhsic_core.joint import distance_correlation

MOST_ROWS = 2000


def score_of(predicted: np.ndarray, y: np.ndarray, *, task: str) -> float:
    """Return R² of a regression, or AUC of a classification with labels 0 and 1."""
    return float(r2_score(y, predicted) if task == "regression" else roc_auc_score(y, predicted))


@torch.no_grad()
def dependence_of(predicted: np.ndarray, s: np.ndarray, *, scale: float = 1.0) -> dict[str, float]:
    """Return how strongly predictions ``(n,)`` depend on ``s (n, p)``, in four measures.

    ``dcor`` is the root of the bias-corrected squared distance correlation, and zero where that is negative. ``gdp``
    is that of ``predicted / scale`` over all samples; ``linear_r2`` and ``nonlinear_r2`` are cross-fitted and at least
    zero. With several attributes the last three are the largest. Attributes are standardized first. All measures but
    GDP use at most 2,000 evenly spaced samples, so the cost is bounded.

    Examples
    --------
    >>> s = np.linspace(0, 1, 200)[:, None]
    >>> found = dependence_of(s[:, 0], s)
    >>> round(found["dcor"], 3), round(found["linear_r2"], 3)
    (1.0, 1.0)
    """
    if predicted.std() <= 1e-12 * max(1.0, float(np.abs(predicted).max())):
        return {"dcor": 0.0, "gdp": 0.0, "linear_r2": 0.0, "nonlinear_r2": 0.0}
    columns = s.T[np.ptp(s, axis=0) > 0]
    rows = np.linspace(0, len(s) - 1, min(len(s), MOST_ROWS)).round().astype(int)
    f = torch.from_numpy(predicted[rows]).double()
    s = s[rows]
    deviation = s.std(0)
    varies = deviation > 0
    attributes = torch.from_numpy((s[:, varies] - s[:, varies].mean(0)) / deviation[varies]).double()
    z = f.reshape(1, -1, 1)
    probed = attributes.unsqueeze(0)
    return {
        "dcor": float(distance_correlation(f, attributes, squared=True, estimator="unbiased").clamp_min(0.0).sqrt()),
        "gdp": max(gdp(predicted / scale, column) for column in columns),
        "linear_r2": max(0.0, probe_r2(linear_features(z), probed).item()),
        "nonlinear_r2": max(0.0, probe_r2(random_features(z, features=60), probed).item()),
    }
