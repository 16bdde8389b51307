"""Bootstrap intervals of GDP: replicates one by one, coverage, masks, blocks."""

from __future__ import annotations

import math
import sys

import pytest
import torch

from frhsic_core.conditional import gdp, gdp_interval

CONVENTIONS = [
    {"weights": "sample", "bandwidth": 0.2},
    {"weights": "uniform", "bandwidth": 0.2, "grid": torch.linspace(0.1, 0.9, 20, dtype=torch.float64)},
    {"weights": "density", "bandwidth": 0.2, "grid": torch.linspace(0.1, 0.9, 20, dtype=torch.float64)},
    {"reference": True, "grid": torch.linspace(-2.0, 2.0, 20, dtype=torch.float64)},
]


def sample(generator, *shape):
    s = torch.rand(*shape, generator=generator, dtype=torch.float64)
    y = torch.sin(4 * s) + torch.randn(*shape, generator=generator, dtype=torch.float64)
    return y, s


@pytest.mark.parametrize("options", CONVENTIONS)
def test_replicates_are_gdp_with_counts_as_weights(generator, options):
    """Two replicates, recomputed one by one from the same draws."""
    y, s = sample(generator, 30)
    result = gdp_interval(y, s, n_bootstrap=2, random_state=torch.Generator().manual_seed(3), **options)
    drawn = torch.randint(30, (2, 30), generator=torch.Generator().manual_seed(3))
    values = torch.stack([gdp(y[rows], s[rows], **options) for rows in drawn])
    torch.testing.assert_close(result.standard_error, values.std(), rtol=1e-8, atol=1e-12)
    torch.testing.assert_close(result.bias, values.mean() - result.estimate, rtol=1e-8, atol=1e-12)


def test_interval_covers_roughly_at_its_level(generator):
    n, rho, h, trials = 100, 0.5, 0.3, 200
    s = torch.randn(trials, n, generator=generator, dtype=torch.float64)
    noise = torch.randn(trials, n, generator=generator, dtype=torch.float64)
    y = rho * s + math.sqrt(1 - rho**2) * noise
    truth = rho * math.sqrt(2 / math.pi) / (1 + h * h)
    for method in ("basic", "percentile"):
        result = gdp_interval(y, s, bandwidth=h, n_bootstrap=150, level=0.9, method=method, random_state=generator)
        covered = ((result.lower <= truth) & (truth <= result.upper)).double().mean().item()
        assert 0.80 <= covered <= 0.97
        torch.testing.assert_close(result.estimate, gdp(y, s, bandwidth=h))
        assert result.standard_error.mean().item() == pytest.approx(result.estimate.std().item(), rel=0.2)


def test_interval_is_repeatable_and_takes_masks(generator):
    y, s = sample(generator, 60)
    keep = torch.arange(60) % 2 == 0
    first = gdp_interval(y, s, mask=keep, n_bootstrap=50)
    second = gdp_interval(y, s, mask=keep, n_bootstrap=50)
    assert first.lower == second.lower
    assert first.upper == second.upper
    torch.testing.assert_close(first.estimate, gdp(y, s, mask=keep))
    other = gdp_interval(y, s, mask=keep, n_bootstrap=50, random_state=generator)
    assert other.upper != first.upper


def test_blocks_do_not_change_the_value(generator, monkeypatch):
    y, s = sample(generator, 2, 40)
    for options in CONVENTIONS:
        whole, interval = gdp(y, s, **options), gdp_interval(y, s, n_bootstrap=9, **options)
        with monkeypatch.context() as patch:
            patch.setattr(sys.modules["frhsic_core.conditional.gdp"], "_BLOCK", 40 * 2 * 3)
            torch.testing.assert_close(gdp(y, s, **options), whole, rtol=1e-12, atol=0.0)
            blocked = gdp_interval(y, s, n_bootstrap=9, **options)
            torch.testing.assert_close(blocked.upper, interval.upper, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: gdp_interval([1.0], [1.0], n_bootstrap=1), ValueError, "at least 2 replicates"),
        (lambda: gdp_interval([1.0], [1.0], level=95), ValueError, "level is 95: it must lie between 0 and 1"),
        (lambda: gdp_interval([1.0], [1.0], method="normal"), ValueError, "'basic' or 'percentile'"),
    ],
)
def test_errors_say_what_to_do(call, error, text):
    with pytest.raises(error, match=text):
        call()
