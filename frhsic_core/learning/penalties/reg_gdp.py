"""Reg-GDP: generalised demographic parity of the output as a penalty (Jiang et al., 2022)."""

from __future__ import annotations

import torch
from torch import Tensor

from frhsic_core._choices import one_of
from frhsic_core.conditional._smoothing import counted_range, weights_at
from frhsic_core.joint.contraction import weighted_mean
from frhsic_core.learning.data import Batch
from frhsic_core.learning.penalties.base import Penalty, Setup


class RegGDP(Penalty):
    r"""Mean over a grid of ``|Ê[f | S = s] − Ê[f]|``, f the head's output (logits of classes).

    .. math::

        \frac1G\sum_g \Big|\sum_j w_j(s_g) f_j - \bar f\Big|,\qquad
        w = \text{Nadaraya–Watson weights}.

    O(Gm). It constrains one head and leaves Z itself free. With several attributes the terms are
    added.

    Parameters
    ----------
    points : int
        Number G of equally spaced grid points.
    smoothing : float
        Bandwidth on S.
    grid_range : {"batch", "training"}
        Between the smallest and the largest S of the batch (the released code) or of the training
        data (the text).
    """

    key = "reg_gdp"
    low: Tensor
    high: Tensor

    def __init__(
        self,
        *,
        points: int = 30,
        smoothing: float = 0.2,
        grid_range: str = "batch",
        condition: str | None = None,
        minimum_rows: int = 4,
    ) -> None:
        super().__init__(condition=condition, minimum_rows=minimum_rows)
        one_of("grid_range", grid_range, ("batch", "training"))
        if points < 1 or not smoothing > 0:
            raise ValueError(
                f"points is {points} and smoothing {smoothing}: both must be positive."
            )
        self.points = points
        self.smoothing = float(smoothing)
        self.grid_range = grid_range

    def prepare(self, setup: Setup) -> None:
        self.register_buffer("low", setup.s.amin(1)[setup.dataset])
        self.register_buffer("high", setup.s.amax(1)[setup.dataset])

    def forward(self, batch: Batch, *, refresh: bool = False) -> Tensor:
        weights, enough = self.row_weights(batch)
        output = batch.output
        mean = weighted_mean(output, weights)
        step = torch.linspace(0.0, 1.0, self.points, dtype=output.dtype, device=output.device)
        value = torch.zeros_like(mean)
        for a in range(batch.s.shape[-1]):
            s = batch.s[..., a : a + 1]
            if self.grid_range == "training":
                low = self.low[:, a : a + 1]
                high = self.high[:, a : a + 1]
            else:
                low, high = counted_range(s.squeeze(-1), weights)
            grid = low + (high - low) * step
            local = weights_at(grid.unsqueeze(-1), s, self.smoothing, weights)
            conditional = (local @ output.unsqueeze(-1)).squeeze(-1)
            value = value + (conditional - mean.unsqueeze(-1)).abs().mean(-1)
        if enough is None:
            return value
        return value * enough
