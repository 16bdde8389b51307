"""Guards the checked sentences of the chapter on why a continuous attribute needs its own methods."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch

from frhsic_core import Gaussian
from frhsic_core.laws import FiniteLaw
from frhsic_core.paper.statements.decomposition import hidden_wave
from frhsic_core.paper.statements.smoothing import deviations_of_joint


def gdp(shares: np.ndarray) -> float:
    return FiniteLaw([0, 1], range(len(shares)), np.stack([1 - shares, shares]) / len(shares)).gdp(
        [0, 1]
    )


def test_gdp_of_the_four_ages_and_of_waves_in_bins(printed) -> None:
    """A wave has 1/π for every number of periods, up to the 128 points at which it is computed; in some bins zero."""
    text, sizes = printed.text("why_continuous"), {"four": 4, "eight": 8, "sixteen": 16}
    assert f"so GDP is ${gdp(np.array([2, 8, 8, 2]) / 10):g}$".replace("0.", ".") in text
    claims = re.findall(
        r"(four|eight|sixteen) bins (hide|show) (?:this wave|a wave with (\w+) periods)",
        text.lower(),
    )
    periods = 0
    for bins, verb, named in claims:
        periods = sizes[named] if named else periods  # or this wave
        wave = 0.5 * (1 + np.cos(2 * np.pi * periods * (np.arange(4096) + 0.5) / 4096))
        assert (gdp(wave.reshape(sizes[bins], -1).mean(1)) < 1e-12) == (verb == "hide"), (
            bins,
            periods,
        )
        assert gdp(hidden_wave(periods)[0][1].numpy() * 128) == pytest.approx(1 / np.pi, rel=2e-2)
    assert len(claims) == 3


def hsic(periods: int, bandwidth: float) -> float:
    joint, s = hidden_wave(periods)
    gram = Gaussian(bandwidth)(s.unsqueeze(-1))
    return deviations_of_joint(joint, torch.eye(2, dtype=torch.float64), gram).hsic.item()


def test_a_fast_wave_is_far_below_the_floor_of_a_few_hundred_people() -> None:
    """Under independence the biased estimate has mean (1 − E k)(1 − E l)/n; for the fair coin Z, E k is a half."""
    grid = torch.linspace(0, 1, 401, dtype=torch.float64).unsqueeze(-1)
    floor = 0.5 * (1 - Gaussian(0.2)(grid).mean().item()) / 400
    assert 0 < hsic(16, 0.2) < floor / 10


def test_the_best_bandwidth_is_the_period_over_two_pi() -> None:
    best = max(np.linspace(0.01, 0.2, 96), key=lambda bandwidth: hsic(4, bandwidth))
    assert best == pytest.approx(1 / (8 * np.pi), abs=0.005)
