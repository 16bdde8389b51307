"""Guards the checked sentences of the chapter on why a continuous attribute needs its own methods."""

from __future__ import annotations

import torch

from frhsic_core import Gaussian


def test_a_fast_wave_is_far_below_the_floor_of_a_few_hundred_people(printed) -> None:
    """Under independence the biased estimate has mean (1 − E k)(1 − E l)/n; for the fair coin Z, E k is a half."""
    grid = torch.linspace(0, 1, 401, dtype=torch.float64).unsqueeze(-1)
    floor = 0.5 * (1 - Gaussian(0.2)(grid).mean().item()) / 400
    fast = printed.table("why_continuous", "periods k").loc["16"].astype(float)
    assert 0 < fast["HSIC, bandwidth .2"] < floor / 10


def test_a_wave_that_is_slow_for_its_bins_cannot_hide() -> None:
    grid = (torch.arange(4096, dtype=torch.float64) + 0.5) / 4096

    def measures(conditional: torch.Tensor) -> tuple[float, float]:
        """Return the largest difference of two conditional probabilities, and GDP."""
        gap = conditional.max() - conditional.min()
        return gap.item(), (conditional - conditional.mean()).abs().mean().item()

    def share_left(periods: float) -> float:
        """Return how much of the wave four bins see, for the shift at which they see most."""
        waves = [0.5 * (1 + torch.cos(2 * torch.pi * (periods * grid + shift / 32))) for shift in range(32)]
        binned = [measures(wave.reshape(4, -1).mean(1)) for wave in waves]
        worst = max(range(32), key=lambda shift: binned[shift][0])
        whole = measures(waves[worst])
        return max(binned[worst][0] / whole[0], binned[worst][1] / whole[1])

    assert share_left(1.5) > 0.5
    assert share_left(4.5) < 0.2
    assert share_left(16.5) < 0.05
