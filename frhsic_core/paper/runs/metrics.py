"""Measure every trained model of a stack at once, on its device."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from frhsic_core.arrays import ArrayLike
from frhsic_core.auditing import audit_representation
from frhsic_core.conditional import gdp
from frhsic_core.conditional._gdp import as_predictions
from frhsic_core.conditional._smoothing import Bandwidth, counted_range, log_kernel, resolve_bandwidth

if TYPE_CHECKING:
    from frhsic_core.learning.stack import TrainedStack
    from frhsic_core.paper.splits import SplitStack

AUDIT_ROWS = 1000  # rows of the test part behind HSIC and distance correlation


GRID = {"uniform": 50, "density": 999}
_BLOCK = 1 << 24  # numbers in one block of the weight matrix: 128 MiB in float64


@torch.no_grad()
def smoothed_gdp(
    y_pred: ArrayLike, s: ArrayLike, *, average: str = "sample", bandwidth: Bandwidth = "silverman"
) -> Tensor:
    """Estimate ``E_S |E[f | S] − E f|`` with Nadaraya–Watson weights at one bandwidth. O(mn) time for m values of S.

    The library itself has one GDP (:func:`frhsic_core.gdp`). The columns ``gdp_sample``, ``gdp_uniform`` and
    ``gdp_density`` of the stored results are measured with this function, so that they can be compared with the paper.

    Parameters
    ----------
    y_pred : array_like
        ``(..., n)``: predictions.
    s : array_like
        ``(..., n)`` or ``(..., n, p)``; several attributes have product weights and need ``average="sample"``.
    average : {"sample", "uniform", "density"}
        Over the observed S; evenly over 50 points from the smallest to the largest S; or over 999 points between them,
        weighted by the kernel density estimate of S. With ``bandwidth="jiang"``, probabilities and S scaled to [0, 1]
        the last one is the form of Jiang et al. (2022).
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
    at = s
    if average != "sample":
        low, high = counted_range(s.squeeze(-1), None)
        count = GRID[average]
        steps = torch.linspace(0.0, 1.0, count + 2, dtype=s.dtype, device=s.device)[1:-1]
        if average == "uniform":
            steps = torch.linspace(0.0, 1.0, count, dtype=s.dtype, device=s.device)
        at = (low + (high - low) * steps).unsqueeze(-1)
    mean = y.mean(-1, keepdim=True)
    step = max(1, _BLOCK // max(1, s.shape[:-1].numel()))
    gaps, densities = [], []
    for start in range(0, at.shape[-2], step):
        logits = log_kernel(at[..., start : start + step, :], s, h)
        conditional = (torch.softmax(logits, dim=-1) @ y.unsqueeze(-1)).squeeze(-1)
        gaps.append((conditional - mean).abs())
        densities.append(torch.logsumexp(logits, dim=-1))
    gap = torch.cat(gaps, dim=-1)
    if average == "density":
        return (torch.softmax(torch.cat(densities, dim=-1), dim=-1) * gap).sum(-1)
    return gap.mean(-1)


def gdp_conventions(output: Tensor, s: Tensor, *, task: str) -> dict[str, Tensor]:
    """Return the GDP of a stack in four conventions; ``output (..., n)`` are logits for classification, ``s (..., n)``.

    ============== ============== ====================================== ==========================
    name           predictions    average over S                         bandwidth
    ============== ============== ====================================== ==========================
    gdp_reference  logits         50 equally spaced values, equal weight 0.1
    gdp_uniform    probabilities  the same                               0.1
    gdp_sample     probabilities  the observed values: the definition    0.1
    gdp_density    probabilities  999 values, density weights            (3n/4)^(-1/5), Jiang et al.
    ============== ============== ====================================== ==========================

    One thing changes from each row to the next; the last row changes the bandwidth as well. For a regression the
    predictions are the outputs in all rows. O(n²) time for each model.

    Examples
    --------
    >>> s = torch.linspace(0, 1, 200, dtype=torch.float64)
    >>> values = gdp_conventions(4.0 * s - 2.0, s, task="classification")
    >>> [f"{name} {value:.3f}" for name, value in values.items()]
    ['gdp_reference 0.961', 'gdp_uniform 0.208', 'gdp_sample 0.206', 'gdp_density 0.090']
    """
    f = torch.sigmoid(output) if task == "classification" else output
    return {
        "gdp_reference": gdp(output, s, estimator="authors", check_finite=False),
        "gdp_uniform": smoothed_gdp(f, s, average="uniform", bandwidth=0.1),
        "gdp_sample": smoothed_gdp(f, s, bandwidth=0.1),
        "gdp_density": smoothed_gdp(f, s, average="density", bandwidth="jiang"),
    }


def prediction_metrics(output: Tensor, y: Tensor, attributes: Tensor, *, task: str) -> dict[str, Tensor]:
    """Return what is measured on predictions: those columns of :func:`evaluate`."""
    y = y.double()
    if task == "classification":
        performance = ((output > 0) == (y > 0.5)).double().mean(-1)
        loss = F.binary_cross_entropy_with_logits(output, y, reduction="none").mean(-1)
        share = y.mean(-1)
        constant = torch.maximum(share, 1.0 - share)
    else:
        performance = loss = (output - y).square().mean(-1)
        constant = y.var(-1, correction=0)
    each = [gdp_conventions(output, s.squeeze(-1), task=task) for s in attributes.double().split(1, -1)]
    return {
        "performance": performance,
        "loss": loss,
        "constant": constant,
        "positive": (output > 0).double().mean(-1),
        "spread": output.std(-1, correction=0),
        **{name: torch.stack([one[name] for one in each]).amax(0) for name in each[0]},
    }


@torch.no_grad()
def evaluate(trained: TrainedStack, splits: SplitStack, *, rows: int = AUDIT_ROWS) -> dict[str, np.ndarray]:
    """Measure every model of a stack on the test part of its own split.

    Predictions: ``performance`` is the accuracy or the mean squared error, ``constant`` that of the best constant
    predictor (the majority rate, or the variance of y), ``loss`` the task loss, ``positive`` the share predicted
    positive, ``spread`` the standard deviation of the output, and ``gdp_*`` are those of :func:`gdp_conventions`. With
    several attributes, GDP is that of the attribute for which it is largest.

    Representation: ``normalized_hsic_{0.5,1,2}`` are computed at multiples of the median bandwidth, ``hsic_floor_1`` is
    the value expected under independence, ``distance_correlation`` is squared and bias-corrected; these use ``rows``
    evenly spaced test samples. ``linear_r2`` and ``nonlinear_r2`` are the cross-fitted R² of predicting S from Z; they
    use all test samples. ``ratio`` is the median distance of Z in bandwidths at the end of training.

    If there is a validation part, ``validation_performance`` and ``validation_gdp_*`` are added. A model that diverged
    to NaN has NaN in every column. O(rows²) memory for each of the models that are audited at a time.
    """
    z, output, alive = _forward(trained, splits.x_test)
    which = torch.tensor(trained.dataset, device=z.device)
    attributes = _columns(splits.s_test)[which]
    metrics = prediction_metrics(output, splits.y_test[which], attributes, task=trained.task)
    audit = audit_representation(z, attributes, max_rows=rows, chunk_size=64 if z.is_cuda else 8)
    # Stored rows have one of the floors, and no numbers of single attributes.
    stored = {
        name: value for name, value in audit.as_dict().items() if not name.startswith("floor") and "[" not in name
    }
    metrics |= {name: torch.tensor(value) for name, value in stored.items()}
    metrics["hsic_floor_1"] = audit.floor[..., audit.bandwidths.index(1.0)]
    if splits.x_validation is not None and splits.y_validation is not None and splits.s_validation is not None:
        _, output, _ = _forward(trained, splits.x_validation)
        found = prediction_metrics(
            output, splits.y_validation[which], _columns(splits.s_validation)[which], task=trained.task
        )
        kept = [name for name in found if name == "performance" or name.startswith("gdp")]
        metrics |= {f"validation_{name}": found[name] for name in kept}
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
