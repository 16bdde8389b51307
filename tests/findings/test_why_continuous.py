"""Guards the checked sentences of the chapter on why a continuous attribute needs its own methods."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from frhsic_core import Gaussian
from frhsic_core.paper.statements.decomposition import hidden_wave
from frhsic_core.paper.statements.smoothing import deviations_of_joint


def share_left(periods: float) -> float:
    """Return how much of the gap of a wave four bins show, for the shift at which they show most."""
    grid = (np.arange(4096) + 0.5) / 4096
    waves = 0.5 * (1 + np.cos(2 * np.pi * (periods * grid + np.arange(32)[:, None] / 32)))
    binned = waves.reshape(32, 4, -1).mean(2)
    return float((np.ptp(binned, axis=1) / np.ptp(waves, axis=1)).max())


def test_the_four_ages_by_hand() -> None:
    shares = np.array([2, 8, 8, 2]) / 10
    assert shares[:2].mean() == shares[2:].mean() == 0.5
    assert np.abs(shares - shares.mean()).mean() == pytest.approx(0.3)


def test_which_bins_hide_which_wave() -> None:
    """Bins of equal width hide the wave exactly when 2k is a multiple of their number; its GDP is 1/π."""
    for k in (4, 8):
        for bins in (2, 4, 8, 16, 32):
            sines = np.sin(2 * np.pi * k * np.arange(bins + 1) / bins)
            hidden = np.ptp(np.diff(sines) * bins / (4 * np.pi * k)) < 1e-12
            assert hidden == (2 * k % bins == 0), (k, bins)
    s = (np.arange(100_000) + 0.5) / 100_000
    assert np.abs(0.5 * np.cos(8 * np.pi * s)).mean() == pytest.approx(1 / np.pi, rel=1e-6)


def test_a_fast_wave_is_far_below_the_floor_of_a_few_hundred_people() -> None:
    """Under independence the biased estimate has mean (1 − E k)(1 − E l)/n; for the fair coin Z, E k is a half."""
    grid = torch.linspace(0, 1, 401, dtype=torch.float64).unsqueeze(-1)
    floor = 0.5 * (1 - Gaussian(0.2)(grid).mean().item()) / 400
    joint, s = hidden_wave(16)
    wave = deviations_of_joint(joint, torch.eye(2, dtype=torch.float64), Gaussian(0.2)(s.unsqueeze(-1)))
    assert 0 < wave.hsic.item() < floor / 10


def test_a_wave_that_is_slow_for_its_bins_cannot_hide() -> None:
    assert share_left(1.5) > 0.5
    assert share_left(4.5) < 0.2
    assert share_left(16.5) < 0.05
    for whole in (4, 8, 12):
        assert share_left(whole) < 1e-12


def test_the_best_bandwidth_is_the_period_over_two_pi() -> None:
    joint, s = hidden_wave(4)
    bandwidths = np.linspace(0.01, 0.2, 96)
    values = [
        deviations_of_joint(joint, torch.eye(2, dtype=torch.float64), Gaussian(b)(s.unsqueeze(-1))).hsic.item()
        for b in bandwidths
    ]
    assert bandwidths[int(np.argmax(values))] == pytest.approx(1 / (8 * np.pi), abs=0.005)
