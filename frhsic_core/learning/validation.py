"""Judging a stack of models on rows they were not trained on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from frhsic_core.arrays import ArrayLike, as_pair, as_tensor
from frhsic_core.conditional.gdp import gdp
from frhsic_core.joint.hsic import normalized_hsic
from frhsic_core.joint.independence import hsic_test
from frhsic_core.learning.trained import TrainedStack

__all__ = ["pooled_table", "validation_table"]

DEPENDENCES = ("normalized_hsic", "hsic", "gdp")
FEWEST_ROWS = 20  # below it a test has nothing to say


@torch.no_grad()
def validation_table(
    stack: TrainedStack,
    x: ArrayLike,
    y: ArrayLike,
    s: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    condition: str | None = None,
    max_rows: int = 1000,
    n_permutations: int = 199,
    alpha: float = 0.05,
    seed: int = 0,
) -> pd.DataFrame:
    """Judge every model of a stack on rows it was not trained on; one row for each model.

    ``lam``, ``performance`` (accuracy or R²), ``standard_error`` (of the difference between this performance and that
    of the smallest λ: both are on the same rows, so most of what is hard about them cancels), ``hsic`` (biased),
    ``normalized_hsic``, ``gdp`` (of probabilities or predictions), ``statistic`` = n·HSIC, ``threshold`` on the same
    scale, ``pvalue``. O(B r²) for each model with r rows and B permutations.

    Parameters
    ----------
    stack : TrainedStack
        One model for each λ.
    x, y, s : array_like
        The validation part, scaled as the training part was.
    sample_weight : array_like, optional
        For the performance.
    condition : {None, "positives"}
        Measure the dependence among rows with y = 1 only (equal opportunity).
    max_rows : int
        Rows, evenly spaced, for HSIC and its test; GDP and the performance use all.
    n_permutations, alpha, seed
        Of the permutation test; α(B + 1) should be a whole number.
    """
    x, s = as_pair(x, s, names=("X", "s"))
    z, output = stack.forward(x)
    z, output, s = z.double().cpu(), output.double().cpu(), s.double().cpu()
    target = as_tensor(y, name="y").double().cpu().reshape(-1)
    weight = torch.ones_like(target) if sample_weight is None else as_tensor(sample_weight, name="sample_weight").cpu()
    weight = (weight / weight.sum()).to(target)
    prediction = torch.sigmoid(output) if stack.task == "classification" else output
    rows = torch.arange(len(target)) if condition is None else (target > 0.5).nonzero().flatten()
    if len(rows) < FEWEST_ROWS:
        raise ValueError(
            f"the validation part has {len(rows)} rows that count: at least {FEWEST_ROWS} are needed to judge "
            "dependence; hold out more, or give lam a number."
        )
    keep = rows[torch.linspace(0, len(rows) - 1, min(len(rows), max_rows)).round().long()]
    test = hsic_test(
        z[:, keep],
        s[keep],
        method="permutation",
        n_permutations=n_permutations,
        alpha=alpha,
        generator=torch.Generator().manual_seed(seed),
    )
    performance, error = _performance(stack.task, output, target, weight, first=int(stack.lam.cpu().argmin()))
    gaps = torch.stack([gdp(prediction[:, rows], s[rows, a]) for a in range(s.shape[-1])]).amax(0)
    return pd.DataFrame(
        {
            "lam": [float(str(lam)) for lam in stack.lam.cpu().numpy()],  # 0.1, not its single-precision neighbour
            "performance": performance.numpy(),
            "standard_error": error.numpy(),
            "hsic": test.hsic.numpy(),
            "normalized_hsic": normalized_hsic(z[:, keep], s[keep].expand(len(z), -1, -1)).numpy(),
            "gdp": gaps.numpy(),
            "statistic": test.statistic.numpy(),
            "threshold": test.threshold.numpy(),
            "pvalue": test.pvalue.numpy(),
        }
    )


def pooled_table(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Average the tables of several splits with disjoint validation parts.

    The standard error is that of the mean, √(Σ SE²)/R for R parts: rows of different parts are different rows. The test
    (``statistic``, ``threshold``, ``pvalue``) is of one model on one part and stays that of the first.
    """
    pooled = tables[0].copy()
    for name in ("performance", "hsic", "normalized_hsic", "gdp"):
        pooled[name] = np.mean([table[name] for table in tables], axis=0)
    errors = np.array([table["standard_error"] for table in tables])
    pooled["standard_error"] = np.sqrt((errors**2).sum(0)) / len(tables)
    return pooled


def _performance(task: str, output: Tensor, target: Tensor, weight: Tensor, *, first: int = 0) -> tuple[Tensor, Tensor]:
    """Accuracy or R² of every model, and the standard error of its difference from that of model ``first``."""
    if task == "classification":
        score = ((output > 0) == (target > 0.5)).to(output.dtype)
        performance = (score * weight).sum(-1)
    else:
        mean = (weight * target).sum()
        total = (weight * (target - mean).square()).sum().clamp_min(1e-30)
        score = -(output - target).square() / total
        performance = 1.0 + (weight * score).sum(-1)
    change = score - score[first]
    change = change - (weight * change).sum(-1, keepdim=True)
    # A mean with weights that sum to one; with equal ones sd/√n.
    rows = 1.0 / weight.square().sum()
    error = (weight.square() * change.square()).sum(-1).sqrt() * (rows / (rows - 1.0).clamp_min(1.0)).sqrt()
    return performance, error
