"""Bandwidth policies: when they renew, what they hold, what the guard says."""

from __future__ import annotations

import pytest
import torch

from frhsic_core.learning import BandwidthPolicy, EscapeWarning
from frhsic_core.learning.penalties.base import guard, resolve_policy


def test_schedules() -> None:
    """Which (epoch, step) renew."""

    def renewals(policy: str | float | BandwidthPolicy) -> list[tuple[int, int]]:
        return [(e, b) for e in range(41) for b in range(3) if resolve_policy(policy).refreshes(e, b)]

    assert renewals("fixed") == renewals(0.7) == [(0, 0)]
    assert renewals("every_20_epochs") == [(0, 0), (20, 0), (40, 0)]
    assert renewals(BandwidthPolicy(15, first_batch=True)) == [(0, 0), (15, 0), (30, 0)]
    assert renewals("reference") == [(e, b) for e in (0, 20, 40) for b in range(3)]
    assert len(renewals("every_batch")) == len(renewals("moving_average")) == 123


def test_updates() -> None:
    """Fixed values, the reference's constant, the moving average from its first value on."""
    z = torch.tensor([[[0.0], [1.0], [3.0]]], dtype=torch.float64)
    zero = torch.zeros(1, dtype=torch.float64)
    assert resolve_policy(0.3).update(zero, z).item() == 0.3
    for name in ("fixed", "every_20_epochs"):
        assert resolve_policy(name).update(zero + 4.0, z).item() == 2.0
    assert resolve_policy("reference").update(zero, z).item() == pytest.approx(2.0 + 1e-5, abs=1e-12)
    average = BandwidthPolicy(rate=0.25, max_points=None)
    assert average.update(zero, z).item() == 2.0
    assert average.update(zero + 4.0, z).item() == pytest.approx(3.5)


def test_names() -> None:
    """Names, numbers and policies are understood."""
    assert resolve_policy("every_batch") == BandwidthPolicy()
    assert resolve_policy(BandwidthPolicy(5)) == BandwidthPolicy(5)
    assert [resolve_policy(name).max_points for name in ("every_batch", "moving_average")] == [128, 128]
    assert resolve_policy("moving_average").rate == 0.1


def test_guard() -> None:
    """Silent inside [1/3, 3]; outside it names the models and the worst ratio."""
    assert not guard(torch.tensor([0.34, 1.0, 2.9]), epoch=3)
    with pytest.warns(EscapeWarning, match=r"epoch 7: Z has escaped its kernel in 2 of 3 models \(0, 2\).*45"):
        assert guard(torch.tensor([0.3, 1.0, 45.0]), epoch=7)
