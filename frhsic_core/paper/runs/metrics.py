"""Measure every trained model of a stack at once, on its device."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from frhsic_core.arrays import ArrayLike
from frhsic_core.auditing import audit_representation
from frhsic_core.conditional import gdp
from frhsic_core.conditional._gdp import as_predictions
from frhsic_core.conditional._smoothing import Bandwidth, resolve_bandwidth, weights_at

if TYPE_CHECKING:
    from frhsic_core.learning.stack import TrainedStack
    from frhsic_core.paper.splits import SplitStack

AUDIT_ROWS = 1000  # rows of the test part behind HSIC and distance correlation
# What every sweep stores of an audit of the representation.
AUDITED = ("normalized_hsic_1", "distance_correlation", "linear_r2", "nonlinear_r2")
_BLOCK = 1 << 24  # numbers in one block of the weight matrix: 128 MiB in float64


@torch.no_grad()
def smoothed_gdp(y_pred: ArrayLike, s: ArrayLike, *, bandwidth: Bandwidth = 0.1) -> Tensor:
    """Estimate ``E_S |E[f | S] − E f|`` with Nadaraya–Watson weights at one bandwidth, at the observed S. O(n²) time.

    The library itself has one GDP (:func:`frhsic_core.gdp`). The column ``gdp_sample`` of the stored results is
    measured with this function, so that it can be compared with the paper's.

    Parameters
    ----------
    y_pred : array_like
        ``(..., n)``: predictions.
    s : array_like
        ``(..., n)`` or ``(..., n, p)``; several attributes have product weights.
    bandwidth : float, str, Tensor or tuple
        As in :func:`frhsic_core.eipm`.

    Returns
    -------
    Tensor
        The batch shape.

    Examples
    --------
    >>> round(smoothed_gdp([0.1, 0.2, 0.7, 0.8], [0.0, 0.0, 1.0, 1.0], bandwidth=0.01).item(), 6)
    0.3
    """
    y, s = as_predictions(y_pred, s, check_finite=False)
    h = resolve_bandwidth(bandwidth, s, None)
    mean = y.mean(-1, keepdim=True)
    step = max(1, _BLOCK // max(1, s.shape[:-1].numel()))
    gaps = []
    for at in s.split(step, dim=-2):
        conditional = (weights_at(at, s, h, None) @ y.unsqueeze(-1)).squeeze(-1)
        gaps.append((conditional - mean).abs())
    return torch.cat(gaps, dim=-1).mean(-1)


def prediction_metrics(output: Tensor, y: Tensor, attributes: Tensor, *, task: str) -> dict[str, Tensor]:
    """Return what is measured on predictions: those columns of :func:`evaluate`."""
    y = y.double()
    f = output
    if task == "classification":
        f = torch.sigmoid(output)
        performance = ((output > 0) == (y > 0.5)).double().mean(-1)
        share = y.mean(-1)
        constant = torch.maximum(share, 1.0 - share)
    else:
        performance = (output - y).square().mean(-1)
        constant = y.var(-1, correction=0)
    each = attributes.double().unbind(-1)
    return {
        "performance": performance,
        "constant": constant,
        "positive": (output > 0).double().mean(-1),
        "gdp_reference": torch.stack([gdp(output, s, estimator="authors", check_finite=False) for s in each]).amax(0),
        "gdp_sample": torch.stack([smoothed_gdp(f, s) for s in each]).amax(0),
    }


@torch.no_grad()
def evaluate(trained: TrainedStack, splits: SplitStack, *, rows: int = AUDIT_ROWS) -> dict[str, np.ndarray]:
    """Measure every model of a stack on the test part of its own split.

    Predictions: ``performance`` is the accuracy or the mean squared error, ``constant`` that of the best constant
    predictor (the majority rate, or the variance of y), and ``positive`` the share predicted positive.
    ``gdp_reference`` is GDP as the paper computes it: of logits, averaged over 50 equally spaced values of S.
    ``gdp_sample`` is GDP as it is defined: of probabilities, averaged over the observed values, at the same bandwidth.
    For a regression both are of the outputs. With several attributes, GDP is that of the attribute for which it is
    largest.

    Representation: ``normalized_hsic_1`` is at the median bandwidths, ``distance_correlation`` is squared and
    bias-corrected; these use ``rows`` evenly spaced test samples. ``linear_r2`` and ``nonlinear_r2`` are the
    cross-fitted R² of predicting S from Z; they use all test samples. ``ratio`` is the median distance of Z in
    bandwidths at the end of training.

    If there is a validation part, ``validation_performance`` and ``validation_gdp_reference`` are added. A model that
    diverged to NaN has NaN in every column. O(rows²) memory for each of the models that are audited at a time.
    """
    z, output, alive = _forward(trained, splits.x_test)
    which = torch.tensor(trained.dataset, device=z.device)
    attributes = _columns(splits.s_test)[which]
    metrics = prediction_metrics(output, splits.y_test[which], attributes, task=trained.task)
    audit = audit_representation(z, attributes, max_rows=rows, chunk_size=64 if z.is_cuda else 8)
    values = audit.as_dict()
    metrics |= {name: torch.tensor(values[name]) for name in AUDITED}
    if splits.x_validation is not None and splits.y_validation is not None and splits.s_validation is not None:
        _, output, _ = _forward(trained, splits.x_validation)
        found = prediction_metrics(
            output, splits.y_validation[which], _columns(splits.s_validation)[which], task=trained.task
        )
        metrics |= {f"validation_{name}": found[name] for name in ("performance", "gdp_reference")}
    measured = {name: torch.where(alive.cpu(), value.double().cpu(), torch.nan) for name, value in metrics.items()}
    history = trained.history["ratio"]
    measured["ratio"] = history[-1] if len(history) else torch.full((trained.models,), torch.nan)
    return {name: value.float().numpy() for name, value in measured.items()}


def _forward(trained: TrainedStack, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return Z and the output, set to zero for models that diverged, and which models did not diverge."""
    z, output = trained.forward(x)
    alive = torch.isfinite(z).all(-1).all(-1) & torch.isfinite(output).all(-1)
    return torch.where(alive[:, None, None], z, 0.0), torch.where(alive[:, None], output, 0.0).double(), alive


def _columns(s: Tensor) -> Tensor:
    return s.unsqueeze(-1) if s.ndim == 2 else s
