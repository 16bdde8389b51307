"""EIPM: loop-free against the loop, against the Gaussian law, and its gradients."""

from __future__ import annotations

import math
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from frhsic_core.conditional import eipm
from frhsic_core.kernels import Distance, Gaussian, InverseMultiquadric, Laplacian, median_bandwidth
from frhsic_core.laws import GaussianPair


def sample(generator, *batch, n=20, d=3):
    s = torch.rand(*batch, n, generator=generator, dtype=torch.float64)
    z = torch.randn(*batch, n, d, generator=generator, dtype=torch.float64) + s.unsqueeze(-1)
    return z, s


def loop_eipm(z, s, *, sigma, gamma, power=1, anchors=None, q=None, epsilon=1e-10):
    """Compute the exact reference: one anchor at a time, NumPy, sums as they are written."""
    z, s = z.detach().numpy(), s.numpy().reshape(len(s), -1)
    n = len(s)
    q = np.full(n, 1 / n) if q is None else np.asarray(q) / np.sum(q)
    kernel = np.array([[math.exp(-((a - b) ** 2).sum() / (2 * sigma**2)) for b in z] for a in z])
    total = mass = 0.0
    for i in range(n) if anchors is None else anchors:
        if q[i] == 0:
            continue
        w = q * np.exp(-((s - s[i]) ** 2).sum(-1) / (2 * gamma**2))
        w[i] = 0.0
        w = w / w.sum()
        squared = max(w @ kernel @ w - 2 * w @ kernel @ q + q @ kernel @ q, 0.0)
        total += q[i] * (squared if power == 2 else squared / math.sqrt(squared + epsilon))
        mass += q[i]
    return total / mass


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("anchors", [None, [0, 7, 13]])
@pytest.mark.parametrize("p", [1, 2])
def test_loop_free_equals_the_loop(generator, power, anchors, p):
    z, _ = sample(generator)
    s = torch.rand(20, p, generator=generator, dtype=torch.float64)
    index = None if anchors is None else torch.tensor(anchors)
    value = eipm(z, s, kernel_z=Gaussian(1.3), bandwidth=0.2, power=power, anchors=index)
    expected = loop_eipm(z, s, sigma=1.3, gamma=0.2, power=power, anchors=anchors)
    assert value.item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("limits", [{}, {"DENSE_ROWS": 5, "_BLOCK": 49}], ids=["dense", "by block"])
def test_loop_free_equals_the_loop_with_weights_and_mask(generator, monkeypatch, power, limits):
    """As it is, and with limits so small that it goes block by block."""
    for name, limit in limits.items():
        monkeypatch.setattr(sys.modules["frhsic_core.conditional._eipm"], name, limit)
    z, s = sample(generator)
    weights = torch.rand(20, generator=generator, dtype=torch.float64)
    mask = torch.arange(20) % 4 != 1
    for extra, q in (({}, mask.double()), ({"sample_weight": weights}, weights * mask)):
        value = eipm(z, s, kernel_z=Gaussian(1.0), bandwidth=0.3, power=power, mask=mask, **extra)
        expected = loop_eipm(z, s, sigma=1.0, gamma=0.3, power=power, q=q.numpy())
        assert value.item() == pytest.approx(expected, abs=1e-12)


def test_eipm_of_a_gaussian_pair_goes_to_the_smoothed_criterion(generator):
    n, law, replicates, gammas = 1000, GaussianPair(0.5), 16, (1.0, 0.5, 0.1)
    values = torch.empty(replicates, 3, dtype=torch.float64)
    for r in range(replicates):
        z, s = law.sample(n, random_state=generator)
        for g, gamma in enumerate(gammas):
            values[r, g] = eipm(
                z, s, kernel_z=Gaussian(1.0), bandwidth=gamma, anchors=200, random_state=generator
            )
    error = values.std(0) / math.sqrt(replicates)
    limits = torch.tensor(
        [law.eipm_limit(Gaussian(1.0), bandwidth=gamma) for gamma in gammas], dtype=torch.float64
    )
    # At finite n the variance of the smoothed mean adds a little, the more the smaller the bandwidth.
    assert bool(
        ((values.mean(0) - limits).abs() < 3.5 * error + torch.tensor([0.002, 0.004, 0.01])).all()
    )
    # The rest is the bandwidth's own bias, which no n removes: far below E MMD at γ = 1 and γ = .5.
    assert bool((values.mean(0)[:2] + 6 * error[:2] < law.expected_mmd(Gaussian(1.0))).all())


@given(seed=st.integers(0, 10**6), power=st.sampled_from([1, 2]), shift=st.floats(-50, 50))
def test_properties(seed, power, shift):
    z, s = sample(torch.Generator().manual_seed(seed), n=10, d=2)
    options = {"kernel_z": Gaussian(1.0), "bandwidth": 0.3}
    order = torch.randperm(10, generator=torch.Generator().manual_seed(seed))
    value = eipm(z, s, power=power, **options)
    assert value >= 0
    assert value <= 4
    torch.testing.assert_close(
        eipm(z[order], s[order], power=power, **options), value, rtol=1e-8, atol=1e-11
    )
    torch.testing.assert_close(
        eipm(z + shift, s - shift, power=power, **options), value, rtol=1e-6, atol=1e-9
    )
    # Jensen: the mean MMD never exceeds the root of the mean MMD².
    assert eipm(z, s, **options) <= eipm(z, s, power=2, **options).sqrt() + 1e-12


@pytest.mark.parametrize(
    "kernel", [None, Gaussian(1.0), Laplacian(1.0), InverseMultiquadric(1.0), Distance()]
)
def test_batch_is_a_loop(generator, kernel):
    z, s = sample(generator, 2, 3, n=12)
    mask = torch.rand(2, 3, 12, generator=generator) < 0.8
    for extra in ({}, {"mask": mask}, {"anchors": 5}, {"mask": mask, "anchors": 5}):
        values = eipm(z, s, kernel_z=kernel, bandwidth=0.3, **extra)
        assert values.shape == (2, 3)
        for a in range(2):
            for b in range(3):
                one = {k: v[a, b] if k == "mask" else v for k, v in extra.items()}
                torch.testing.assert_close(
                    values[a, b], eipm(z[a, b], s[a, b], kernel_z=kernel, bandwidth=0.3, **one)
                )


def test_one_attribute_serves_a_stack_of_representations(generator):
    z, _ = sample(generator, 3, n=12)
    s = torch.rand(12, generator=generator, dtype=torch.float64)
    z.requires_grad_()
    sigma = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)
    values = eipm(z, s, kernel_z=Gaussian(sigma), bandwidth=0.3)
    (gradient,) = torch.autograd.grad(values.sum(), z)
    for b in range(3):
        one = z[b].detach().requires_grad_()
        value = eipm(one, s, kernel_z=Gaussian(sigma[b].item()), bandwidth=0.3)
        torch.testing.assert_close(values[b], value)
        torch.testing.assert_close(gradient[b], torch.autograd.grad(value, one)[0])


def test_default_kernel_is_gaussian_at_the_median_bandwidth(generator):
    z, s = sample(generator)
    torch.testing.assert_close(
        eipm(z, s, bandwidth=0.3), eipm(z, s, kernel_z=Gaussian(median_bandwidth(z)), bandwidth=0.3)
    )


def test_anchors(generator):
    z, s = sample(generator, n=30)
    options = {"kernel_z": Gaussian(1.0), "bandwidth": 0.3}
    torch.testing.assert_close(eipm(z, s, anchors=30, **options), eipm(z, s, **options))
    assert eipm(z, s, anchors=8, **options) == eipm(z, s, anchors=8, **options)
    drawn = torch.randperm(30, generator=torch.Generator().manual_seed(1))[:8]
    torch.testing.assert_close(
        eipm(z, s, anchors=8, random_state=torch.Generator().manual_seed(1), **options),
        eipm(z, s, anchors=drawn, **options),
    )
    # Over many draws the anchors average to the full sum.
    draws = torch.stack(
        [eipm(z, s, anchors=8, random_state=generator, **options) for _ in range(400)]
    )
    full = eipm(z, s, **options)
    assert abs(draws.mean() - full) < 4 * draws.std() / 20


def test_anchors_are_drawn_among_the_rows_kept(generator):
    z, s = sample(generator, n=30)
    mask = torch.zeros(30, dtype=torch.bool)
    mask[[3, 8, 9, 20, 29]] = True
    options = {"kernel_z": Gaussian(1.0), "bandwidth": 0.3, "mask": mask}
    for draw in (None, generator):
        torch.testing.assert_close(
            eipm(z, s, anchors=5, random_state=draw, **options), eipm(z, s, **options)
        )


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Laplacian(1.0), InverseMultiquadric(0.7)])
@pytest.mark.parametrize("power", [1, 2])
def test_gradients(generator, kernel, power):
    z, s = sample(generator, 2, n=7, d=2)
    s[:, 2] = s[:, 4]
    if not isinstance(kernel, Laplacian):  # |x| has no derivative where two coordinates meet
        z[:, 2] = z[:, 4]
    at = z.requires_grad_(), s.requires_grad_()
    mask = torch.tensor([1, 1, 1, 0, 1, 1, 1], dtype=torch.bool)
    options = {"kernel_z": kernel, "bandwidth": 0.3}
    assert torch.autograd.gradcheck(lambda z, s: eipm(z, s, power=power, **options), at)
    assert torch.autograd.gradcheck(
        lambda z, s: eipm(z, s, power=power, mask=mask, anchors=3, **options), at
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "kernel", [None, Gaussian(1.0), Laplacian(1.0), InverseMultiquadric(1.0), Distance()]
)
def test_a_constant_representation_has_value_zero_and_a_finite_gradient(kernel, dtype):
    z = torch.full((8, 3), 0.1, dtype=dtype, requires_grad=True)
    s = torch.linspace(0, 1, 8, dtype=dtype)
    for power in (1, 2):
        value = eipm(z, s, kernel_z=kernel, bandwidth=0.3, power=power)
        assert value.item() == pytest.approx(0.0, abs=1e-6)
        assert bool(torch.isfinite(torch.autograd.grad(value, z)[0]).all())


def test_constant_attribute_and_isolated_rows_have_values():
    z = torch.randn(6, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    # Without row i itself the weights of a constant attribute are 1/5: each MMD is that of one row and all.
    assert 0 < eipm(z, torch.ones(6), bandwidth=0.5).item() < 0.5
    assert bool(torch.isfinite(eipm(z, torch.arange(6.0) * 1e8, bandwidth=1e-6)))


def test_masks_that_keep_nothing_or_one_row_are_zero_without_checks(generator):
    z, s = sample(generator, 3, n=10)
    z.requires_grad_()
    mask = torch.ones(3, 10, dtype=torch.bool)
    mask[1] = False
    mask[2, 1:] = False
    for extra in ({}, {"anchors": 4}):
        value = eipm(
            z, s, kernel_z=Gaussian(1.0), bandwidth=0.3, mask=mask, check_finite=False, **extra
        )
        assert value[0] > 0
        assert value[1:].tolist() == [0.0, 0.0]
        (gradient,) = torch.autograd.grad(value.sum(), z)
        assert bool(torch.isfinite(gradient).all())
        assert bool((gradient[1:] == 0).all())


def test_a_wide_representation_is_not_slow_and_not_nan(generator):
    """Kernel values below 1e-38 are subnormal in float32: they must not reach the matrix product."""
    z = 13 * torch.randn(64, 50, generator=generator)
    s = torch.rand(64, generator=generator)
    assert float(Gaussian(10.0)(z).min()) > torch.finfo(torch.float32).tiny
    value = eipm(z, s, kernel_z=Gaussian(1.0), bandwidth=0.5)
    assert 0 < value.item() < 1


def test_float32_and_numpy_and_pandas(generator):
    z, s = sample(generator)
    value = eipm(z, s, bandwidth=0.3)
    assert eipm(z.numpy(), s.numpy(), bandwidth=0.3) == pytest.approx(value.item(), rel=1e-12)
    assert eipm(pd.DataFrame(z.numpy()), pd.Series(s.numpy()), bandwidth=0.3) == pytest.approx(
        value.item(), rel=1e-12
    )
    single = eipm(z.float(), s.float(), bandwidth=0.3)
    assert single.dtype == torch.float32
    assert single.item() == pytest.approx(value.item(), abs=1e-4)
    torch.testing.assert_close(
        eipm(z[:, 0], s, bandwidth=0.3), eipm(z[:, :1], s[:, None], bandwidth=0.3)
    )
    assert isinstance(eipm([1, 0, 1, 1], [True, False, True, True], bandwidth=1.0), float)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: eipm([1.0, 2.0], [1.0]), ValueError, "s has 1 rows but z has 2"),
        (lambda: eipm([1.0, 2.0], [1.0, 2.0], power=3), ValueError, "power is 3"),
        (
            lambda: eipm([1.0, 2.0], [1.0, 2.0], anchors=0),
            ValueError,
            "anchors is 0: pass a positive number",
        ),
        (
            lambda: eipm([1.0, 2.0], [1.0, 2.0], anchors=1.5),
            ValueError,
            "anchors is 1.5: pass a positive number",
        ),
        (
            lambda: eipm([1.0, 2.0], [1.0, 2.0], anchors=torch.ones(2)),
            TypeError,
            "pass row numbers, a count or None",
        ),
        (lambda: eipm([1.0, 2.0], [1.0, 2.0], kernel_z=1.0), TypeError, r"kernel_z is 1.0"),
        (
            lambda: eipm([1.0, 2.0], [1.0, 2.0], bandwidth=0),
            ValueError,
            "bandwidth is 0: it must be a positive",
        ),
        (
            lambda: eipm([1.0, 2.0], [1.0, 2.0], bandwidth=None),
            ValueError,
            "bandwidth is None: it must be",
        ),
        (
            lambda: eipm([1.0, 2.0], [1.0, 2.0], bandwidth=(1, 2)),
            ValueError,
            "2 entries but s has 1 columns",
        ),
        (
            lambda: eipm([1.0, 2.0], [1.0, 2.0], bandwidth="wide"),
            ValueError,
            "'wide': .*'jiang', 'silverman'",
        ),
        (lambda: eipm([1.0, 2.0], [1.0, 2.0], mask=[0, 0]), ValueError, "mask keeps no row"),
        (
            lambda: eipm([1.0, 2.0], [1.0, 2.0], mask=[1]),
            ValueError,
            "one value for each of the 2 rows",
        ),
        (
            lambda: eipm([1.0, 2.0], [1.0, 2.0], sample_weight=[1, -1]),
            ValueError,
            "negative values",
        ),
    ],
)
def test_errors_say_what_to_do(call, error, text):
    with pytest.raises(error, match=text):
        call()
