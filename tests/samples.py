"""Samples that several files of tests draw, and fixtures of stored rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from frhsic_core.learning import Penalty
from frhsic_core.learning.data import Batch, TrainingData
from frhsic_core.paper.stored import stored_rows


def stored(experiment: str) -> Any:
    """Return a fixture: the stored rows of an experiment, read once for the tests of a file."""
    return pytest.fixture(scope="module")(lambda: stored_rows(experiment))


def normal(seed: int, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def normal_grid(points: int = 601, reach: float = 12.0) -> tuple[np.ndarray, np.ndarray]:
    """Trapezoid nodes and weights for N(0, 1): spectrally accurate for smooth integrands."""
    x = np.linspace(-reach, reach, points)
    w = np.exp(-0.5 * x * x)
    return x, w / w.sum()


def correlated(
    seed: int, n: int, rho: float = 0.0, d: int = 1, batch: tuple[int, ...] = ()
) -> tuple[Tensor, Tensor]:
    """Pairs with correlation ρ between s and the first column of z; I = −log(1 − ρ²)/2 for every d."""
    g = torch.Generator().manual_seed(seed)
    z = torch.randn(*batch, n, d, generator=g, dtype=torch.float64)
    s = torch.randn(*batch, n, 1, generator=g, dtype=torch.float64)
    z[..., :1] = rho * s + math.sqrt(1 - rho**2) * z[..., :1]
    return z, s


def with_squares(
    seed: int, n: int, d: int, p: int = 1, batch: tuple[int, ...] = ()
) -> tuple[Tensor, Tensor]:
    """Pairs in which every column of s is the square of a column of z, and noise."""
    g = torch.Generator().manual_seed(seed)
    z = torch.randn(*batch, n, d, generator=g, dtype=torch.float64)
    return z, torch.randn(*batch, n, p, generator=g, dtype=torch.float64) + z[..., :p] ** 2


def prepared(penalty: Penalty, data: TrainingData, *, models: int = 2, d: int = 2) -> Any:
    """Return the penalty, set up for models of one dataset with d columns of Z."""
    generators = [torch.Generator().manual_seed(i) for i in range(models)]
    penalty.setup(
        data,
        dataset=torch.zeros(models, dtype=torch.int64),
        generators=generators,
        representation=d,
    )
    return penalty


def batch_of(
    data: TrainingData,
    z: Tensor,
    output: Tensor,
    rows: Tensor | None = None,
    weights: Tensor | None = None,
) -> Batch:
    """Return a mini-batch of some rows of one dataset, or of all, for each model of z."""
    models = z.shape[0]
    rows = torch.arange(data.n) if rows is None else rows
    assert data.s is not None
    return Batch(
        z[:, rows], output[:, rows], data.s[:, rows].expand(models, -1, -1), data.y[:, rows].expand(models, -1),
        None if weights is None else weights[..., rows].expand(models, -1), rows.expand(models, -1),
    )  # fmt: skip


def classified(
    seed: int, *shape: int, d: int, dtype: torch.dtype = torch.float64
) -> tuple[Tensor, Tensor, Tensor]:
    """Features of which the first rises with s, labels that depend on the first two, and s."""
    generator = torch.Generator().manual_seed(seed)
    s = torch.rand(*shape, generator=generator, dtype=dtype)
    x = torch.randn(*shape, d, generator=generator, dtype=dtype)
    x[..., 0] += 2 * s
    y = (torch.rand(*shape, generator=generator) < torch.sigmoid(x[..., 0] - 1 + x[..., 1])).to(
        dtype
    )
    return x, y, s
