"""Bandwidth policies: when they renew, what they hold, what the guard says."""

from __future__ import annotations

import pytest
import torch

from frhsic_core.learning import (
    EscapeWarning,
    EveryBatch,
    EveryEpochs,
    FixedBandwidth,
    MovingAverage,
    ReferenceSchedule,
)
from frhsic_core.learning.bandwidth import guard, resolve_policy


def test_schedules() -> None:
    """Which (epoch, step) renew."""

    def renewals(policy: object) -> list[tuple[int, int]]:
        return [(e, b) for e in range(41) for b in range(3) if policy.refreshes(e, b)]  # type: ignore[attr-defined]

    assert renewals(FixedBandwidth()) == [(0, 0)]
    assert renewals(EveryEpochs()) == [(0, 0), (20, 0), (40, 0)]
    assert renewals(EveryEpochs(epochs=15)) == [(0, 0), (15, 0), (30, 0)]
    assert renewals(ReferenceSchedule()) == [(e, b) for e in (0, 20, 40) for b in range(3)]
    assert len(renewals(EveryBatch())) == len(renewals(MovingAverage())) == 123


def test_updates() -> None:
    """Fixed values, the reference's constant, the moving average from its first value on."""
    z = torch.tensor([[[0.0], [1.0], [3.0]]], dtype=torch.float64)
    zero = torch.zeros(1, dtype=torch.float64)
    assert FixedBandwidth(value=0.3).update(zero, z).item() == 0.3
    assert FixedBandwidth().update(zero, z).item() == 2.0
    assert ReferenceSchedule().update(zero, z).item() == pytest.approx(2.0 + 1e-5)
    average = MovingAverage(rate=0.25, max_points=None)
    assert average.update(zero, z).item() == 2.0
    assert average.update(zero + 4.0, z).item() == pytest.approx(3.5)


def test_names() -> None:
    """Names, numbers and policies are understood; others are refused by name."""
    assert resolve_policy("every_20_epochs") == EveryEpochs()
    assert resolve_policy(2) == FixedBandwidth(value=2.0)
    assert resolve_policy(EveryBatch()) == EveryBatch()
    with pytest.raises(ValueError, match="bandwidth is 'sometimes'"):
        resolve_policy("sometimes")
    with pytest.raises(ValueError, match=r"bandwidth is 0\.0"):
        resolve_policy(0.0)


def test_guard() -> None:
    """Silent inside [1/3, 3]; outside it names the models and the worst ratio."""
    assert not guard(torch.tensor([0.34, 1.0, 2.9]), epoch=3)
    with pytest.warns(EscapeWarning, match=r"epoch 7: Z has escaped its kernel in 2 of 3 models \(0, 2\).*45"):
        assert guard(torch.tensor([0.3, 1.0, 45.0]), epoch=7)
