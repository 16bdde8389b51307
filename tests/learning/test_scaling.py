"""Whitening Z in the batch: its value, its gradient, and what the penalty gains from it; bandwidth policies."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from samples import batch_of, normal, prepared

from frhsic_core.learning import BandwidthPolicy, EscapeWarning, make_penalty
from frhsic_core.learning.data import TrainingData
from frhsic_core.learning.penalties.base import guard, resolve_policy
from frhsic_core.learning.penalties.scaling import RIDGE, lone_whitening, whiten


def test_whitening_against_numpy_and_under_linear_maps() -> None:
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(2, 500, 3, generator=generator, dtype=torch.float64)
    white = whiten(z)
    for i in range(2):
        covariance = np.cov(z[i].numpy().T, bias=True)
        factor = np.linalg.cholesky(covariance + (RIDGE * np.trace(covariance) + 1e-8) * np.eye(3))
        expected = np.linalg.solve(factor, (z[i] - z[i].mean(0)).numpy().T).T
        np.testing.assert_allclose(white[i].numpy(), expected, atol=1e-12)
        np.testing.assert_allclose(
            np.cov(white[i].numpy().T, bias=True), np.eye(3), atol=1e-3
        )  # the ridge
    mixing = torch.tensor([[1.0, 0.5, 0.0], [0.2, 1.0, 0.0], [0.0, 0.3, 2.0]], dtype=torch.float64)
    before, after = torch.cdist(white, white), torch.cdist(whiten(z @ mixing), whiten(z @ mixing))
    torch.testing.assert_close(before, after, atol=1e-2, rtol=1e-2)
    weights = torch.full((2, 500), 1 / 500, dtype=torch.float64)
    torch.testing.assert_close(whiten(z, weights), white)
    doubled, halves = (
        torch.cat([z, z[:, :1]], dim=1),
        torch.full((2, 501), 1 / 501, dtype=torch.float64),
    )
    heavier = torch.full((2, 500), 1 / 501, dtype=torch.float64)
    heavier[:, 0] *= 2
    torch.testing.assert_close(whiten(doubled, halves)[:, :500], whiten(z, heavier))


def test_whitening_survives_repeated_rows_and_a_dead_direction() -> None:
    z = (
        torch.tensor([[1.0, 0.0]] * 3 + [[2.0, 0.0]] * 3, dtype=torch.float64)
        .unsqueeze(0)
        .requires_grad_()
    )
    whiten(z).square().sum().backward()
    assert z.grad is not None
    assert bool(z.grad.isfinite().all())
    assert bool(whiten(torch.ones(1, 5, 2)).isfinite().all())


def test_the_whitened_penalty_sees_the_thin_direction() -> None:
    generator = torch.Generator().manual_seed(0)
    s, u = torch.randn(2, 1, 256, 1, generator=generator, dtype=torch.float64)
    z = torch.cat([u + 0.02 * s, u - 0.02 * s], dim=-1)
    data = TrainingData.from_arrays(z[0], (u[0, :, 0] > 0).double(), s[0], dtype=torch.float64)
    value = {}
    for scale in ("standardize", "whiten"):
        penalty = make_penalty("frhsic", estimator="normalized", on="representation", scale=scale)
        value[scale] = prepared(penalty, data, models=1)(
            batch_of(data, z, u[..., 0]), refresh=True
        ).item()
    assert value["standardize"] < 0.05
    assert value["whiten"] > 0.3


def test_the_gradient_of_whitening() -> None:
    """The written-out gradient against finite differences and against autograd through the factorisation."""
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(2, 9, 3, generator=generator, dtype=torch.float64, requires_grad=True)
    weights = torch.rand(2, 9, generator=generator, dtype=torch.float64)
    weights = weights / weights.sum(-1, keepdim=True)
    assert torch.autograd.gradcheck(lambda value: whiten(value, weights), (z,))
    centred = z - z.mean(-2, keepdim=True)
    covariance = centred.mT @ centred / 9
    total = covariance.diagonal(dim1=-2, dim2=-1).sum(-1)[:, None, None]
    factor = torch.linalg.cholesky(
        covariance + (RIDGE * total + 1e-8) * torch.eye(3, dtype=torch.float64)
    )
    plain = torch.linalg.solve_triangular(factor, centred.mT, upper=False).mT
    direction = torch.randn(2, 9, 3, generator=generator, dtype=torch.float64)
    (expected,) = torch.autograd.grad((plain * direction).sum(), z)
    (got,) = torch.autograd.grad((whiten(z) * direction).sum(), z)
    torch.testing.assert_close(got, expected, rtol=1e-10, atol=1e-12)


def test_the_gradient_of_one_model_has_the_part_of_the_ridge() -> None:
    """Two millionths of the gradient, which float32 would not show."""
    z = normal(3, 1, 40, 3).requires_grad_()
    white = whiten(z)
    in_z, in_white = torch.autograd.grad(torch.pdist(white[0]).sin().sum(), [z, white])
    found, back = lone_whitening(z.detach()[0].numpy())
    np.testing.assert_allclose(found, white.detach()[0].T, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(back(in_white[0].T.numpy()), in_z[0].T, rtol=1e-8, atol=1e-10)


def test_whitening_is_as_exact_in_single_precision_as_its_input() -> None:
    """Fifty columns of which most are thin: single-precision Z gives the double-precision result to its own digits."""
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(1, 256, 50, generator=generator, dtype=torch.float64)
    z = z * torch.logspace(0, -4, 50, dtype=torch.float64)
    single = z.float()
    torch.testing.assert_close(whiten(single), whiten(single.double()).float(), rtol=0, atol=1e-6)


# Bandwidth policies: when they renew, what they hold, what the guard says -------------------------


def test_schedules() -> None:
    """Which (epoch, step) renew."""

    def renewals(policy: str | float | BandwidthPolicy) -> list[tuple[int, int]]:
        return [
            (e, b) for e in range(41) for b in range(3) if resolve_policy(policy).refreshes(e, b)
        ]

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
    assert resolve_policy("reference").update(zero, z).item() == pytest.approx(
        2.0 + 1e-5, abs=1e-12
    )
    average = BandwidthPolicy(rate=0.25, max_points=None)
    assert average.update(zero, z).item() == 2.0
    assert average.update(zero + 4.0, z).item() == pytest.approx(3.5)


def test_names() -> None:
    """Names, numbers and policies are understood."""
    assert resolve_policy("every_batch") == BandwidthPolicy()
    assert resolve_policy(BandwidthPolicy(5)) == BandwidthPolicy(5)
    assert [resolve_policy(name).max_points for name in ("every_batch", "moving_average")] == [
        128,
        128,
    ]
    assert resolve_policy("moving_average").rate == 0.1


def test_guard() -> None:
    """Silent inside [1/3, 3]; outside it names the models and the worst ratio."""
    assert not guard(torch.tensor([0.34, 1.0, 2.9]), epoch=3)
    with pytest.warns(
        EscapeWarning, match=r"epoch 7: Z has escaped its kernel in 2 of 3 models \(0, 2\).*45"
    ):
        assert guard(torch.tensor([0.3, 1.0, 45.0]), epoch=7)


@pytest.mark.parametrize("old", [0.0, 1e-3, 2.0])
def test_one_step_of_one_model_averages_the_bandwidth_once(old: float) -> None:
    """A row far from the others makes the fast form give up: it must not have moved σ_Z before."""
    z = normal(0, 300, 4).float()
    z[0] *= 1000
    s = normal(1, 300, 1).float()
    output = normal(2, 300).float()
    data = TrainingData.from_arrays(z, (output > 0).float(), s)
    found = {}
    for models in (1, 2):
        penalty = prepared(make_penalty("frhsic"), data, models=models, d=4)
        penalty.sigma_z.fill_(old)
        here = z.expand(models, -1, -1).clone().requires_grad_()
        there = output.expand(models, -1).clone().requires_grad_()
        terms = list(penalty.terms(batch_of(data, here, there), refresh=True))
        assert len(terms) == 2
        found[models] = penalty.sigma_z[0].item()
    median = penalty.ratio(z.expand(2, -1, -1))[0].item() * found[2]
    once = old + 0.1 * (median - old) if old > 0 else median
    assert found[2] == pytest.approx(once, rel=0.05)  # the step takes the median of 128 rows
    assert found[1] == pytest.approx(found[2], rel=1e-4)
