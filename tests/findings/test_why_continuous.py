"""Guards the checked sentences of the chapter on why a continuous attribute needs its own methods."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from frhsic_core import Gaussian
from frhsic_core.laws import FiniteLaw
from frhsic_core.paper.statements.decomposition import hidden_wave
from frhsic_core.paper.statements.smoothing import deviations_of_joint


def test_gdp_of_the_four_ages_and_of_a_wave(printed) -> None:
    """A wave has 1/π for every number of periods, up to the 128 points at which it is computed."""
    shares, text = np.array([2, 8, 8, 2]) / 10, printed.text("why_continuous")
    four = FiniteLaw([0, 1], range(4), np.stack([1 - shares, shares]) / 4)
    assert f"so GDP is ${four.gdp([0, 1]):g}$".replace("0.", ".") in text
    for periods in (4, 8):
        joint, s = hidden_wave(periods)
        assert FiniteLaw([0, 1], s, joint.numpy()).gdp([0, 1]) == pytest.approx(1 / np.pi, rel=2e-2)


def test_a_fast_wave_is_far_below_the_floor_of_a_few_hundred_people() -> None:
    """Under independence the biased estimate has mean (1 − E k)(1 − E l)/n; for the fair coin Z, E k is a half."""
    grid = torch.linspace(0, 1, 401, dtype=torch.float64).unsqueeze(-1)
    floor = 0.5 * (1 - Gaussian(0.2)(grid).mean().item()) / 400
    joint, s = hidden_wave(16)
    wave = deviations_of_joint(joint, torch.eye(2, dtype=torch.float64), Gaussian(0.2)(s.unsqueeze(-1)))
    assert 0 < wave.hsic.item() < floor / 10


def test_the_best_bandwidth_is_the_period_over_two_pi() -> None:
    joint, s = hidden_wave(4)
    bandwidths = np.linspace(0.01, 0.2, 96)
    values = [
        deviations_of_joint(joint, torch.eye(2, dtype=torch.float64), Gaussian(b)(s.unsqueeze(-1))).hsic.item()
        for b in bandwidths
    ]
    assert bandwidths[int(np.argmax(values))] == pytest.approx(1 / (8 * np.pi), abs=0.005)
