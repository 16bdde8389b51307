"""GDP against loops, closed forms and the demographic-parity gap, in every convention."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from frhsic_core.conditional import demographic_parity, gdp

CONVENTIONS = [
    {"weights": "sample", "bandwidth": 0.2},
    {"weights": "uniform", "bandwidth": 0.2, "grid": 7},
    {"weights": "density", "bandwidth": 0.2, "grid": 9},
    {"reference": True},
    {"reference": True, "grid": 30, "bandwidth": 0.2},
    {"weights": "density", "bandwidth": "jiang"},
    {"bandwidth": "silverman"},
    {"bandwidth": "scott"},
]


def sample(generator, *shape):
    s = torch.rand(*shape, generator=generator, dtype=torch.float64)
    y = torch.sin(4 * s) + torch.randn(*shape, generator=generator, dtype=torch.float64)
    return y, s


def loop_gdp(y, s, *, h, points, density=False, constant=0.0):
    """One value at a time, as the formula reads."""
    y, s = np.asarray(y), np.asarray(s)
    gaps, mass = [], []
    for point in np.asarray(points):
        kernel = np.exp(-0.5 * ((s - point) / h) ** 2)
        gaps.append(abs((kernel * y).sum() / (kernel.sum() + constant) - y.mean()))
        mass.append(kernel.sum() if density else 1.0)
    return np.average(gaps, weights=mass)


def test_sample_convention_equals_the_loop(generator):
    y, s = sample(generator, 40)
    assert gdp(y, s, bandwidth=0.1).item() == pytest.approx(loop_gdp(y, s, h=0.1, points=s), rel=1e-12)


def test_uniform_convention_equals_the_loop(generator):
    y, s = sample(generator, 40)
    points = np.linspace(s.min().item(), s.max().item(), 50)
    assert gdp(y, s, weights="uniform", bandwidth=0.1).item() == pytest.approx(
        loop_gdp(y, s, h=0.1, points=points), rel=1e-12
    )


def test_density_convention_equals_the_loop(generator):
    y, s = sample(generator, 40)
    points = np.interp(np.arange(1, 1000) / 1000, [0, 1], [s.min().item(), s.max().item()])
    h = (3 * 40 / 4) ** (-1 / 5)
    assert gdp(y, s, weights="density", bandwidth="jiang").item() == pytest.approx(
        loop_gdp(y, s, h=h, points=points, density=True), rel=1e-12
    )


def test_reference_equals_the_loop_with_its_constant(generator):
    y, s = sample(generator, 40)
    # A hole in S wide enough that the authors' 1e-10 rules the conditional mean inside it.
    s = torch.cat([0.1 * s, 2.0 + s])
    y = torch.cat([y, y + 1.0])
    points = np.linspace(s.min().item(), s.max().item(), 50)
    expected = loop_gdp(y, s, h=0.1, points=points, constant=1e-10)
    assert gdp(y, s, reference=True).item() == pytest.approx(expected, rel=1e-10)
    with pytest.warns(DeprecationWarning, match="reference=True") as caught:
        assert gdp(y, s, weights="reference").item() == pytest.approx(expected, rel=1e-10)
    assert caught[0].filename == __file__
    assert abs(gdp(y, s, weights="uniform", bandwidth=0.1).item() - expected) > 1e-3


def test_the_training_penalty_is_the_same_function(generator):
    y, s = sample(generator, 64)
    points = np.linspace(s.min().item(), s.max().item(), 30)
    assert gdp(y, s, reference=True, grid=30, bandwidth=0.2).item() == pytest.approx(
        loop_gdp(y, s, h=0.2, points=points, constant=1e-10), rel=1e-10
    )


def test_given_points_are_used(generator):
    y, s = sample(generator, 30)
    points = torch.tensor([0.2, 0.9], dtype=torch.float64)
    assert gdp(y, s, weights="uniform", bandwidth=0.1, grid=points).item() == pytest.approx(
        loop_gdp(y, s, h=0.1, points=points), rel=1e-12
    )


@pytest.mark.parametrize("ones", [1, 7, 10, 15])
def test_binary_gdp_is_demographic_parity_times_two_p_q(generator, ones):
    s = (torch.arange(20) < ones).double()
    y = torch.randn(20, generator=generator, dtype=torch.float64)
    p = ones / 20
    parity = (y[:ones].mean() - y[ones:].mean()).abs()
    torch.testing.assert_close(demographic_parity(y, s), parity)
    torch.testing.assert_close(gdp(y, s, bandwidth=0.01), 2 * p * (1 - p) * parity)


def test_linear_head_of_a_gaussian_pair_converges_to_the_smoothed_value(generator):
    n, rho, h = 3000, 0.5, 0.3
    s = torch.randn(n, generator=generator, dtype=torch.float64)
    y = rho * s + math.sqrt(1 - rho**2) * torch.randn(n, generator=generator, dtype=torch.float64)
    # E[Z | kernel at s] = ρ s/(1 + h²), so GDP_h = ρ√(2/π)/(1 + h²): .366, where the unsmoothed GDP is .399.
    assert gdp(y, s, bandwidth=h).item() == pytest.approx(rho * math.sqrt(2 / math.pi) / (1 + h * h), abs=0.03)


@pytest.mark.parametrize("options", CONVENTIONS)
def test_batch_is_a_loop(generator, options):
    y, s = sample(generator, 2, 3, 25)
    mask = torch.rand(2, 3, 25, generator=generator) < 0.7
    for extra in ({}, {"mask": mask}, {"sample_weight": s}):
        values = gdp(y, s, **options, **extra)
        assert values.shape == (2, 3)
        for a in range(2):
            for b in range(3):
                one = gdp(y[a, b], s[a, b], **options, **{k: v[a, b] for k, v in extra.items()})
                torch.testing.assert_close(values[a, b], one, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("options", CONVENTIONS)
def test_mask_is_the_subset_and_counts_are_repeated_rows(generator, options):
    y, s = sample(generator, 25)
    keep = torch.arange(25) % 3 != 0
    torch.testing.assert_close(gdp(y, s, mask=keep, **options), gdp(y[keep], s[keep], **options))
    if options.get("bandwidth") in ("jiang", "scott", "silverman"):
        return  # a repeated row counts as two; a weight of two has another effective number
    counts = torch.randint(1, 4, (25,), generator=generator)
    repeated = gdp(y.repeat_interleave(counts), s.repeat_interleave(counts), **options)
    tolerance = 1e-9 if "reference" in str(options) else 1e-12
    torch.testing.assert_close(gdp(y, s, sample_weight=counts, **options), repeated, rtol=tolerance, atol=0.0)


@given(
    seed=st.integers(0, 10**6),
    shift_y=st.floats(-100, 100),
    shift_s=st.floats(-100, 100),
    factor=st.floats(-5, 5),
    options=st.sampled_from([o for o in CONVENTIONS if "reference" not in str(o)]),
)
def test_properties(seed, shift_y, shift_s, factor, options):
    y, s = sample(torch.Generator().manual_seed(seed), 15)
    value = gdp(y, s, **options)
    assert value >= 0
    order = torch.randperm(15, generator=torch.Generator().manual_seed(seed))
    torch.testing.assert_close(gdp(y[order], s[order], **options), value, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(gdp(y + shift_y, s + shift_s, **options), value, rtol=1e-7, atol=1e-10)
    torch.testing.assert_close(gdp(factor * y, s, **options), abs(factor) * value, rtol=1e-9, atol=1e-12)
    assert value <= 2 * y.abs().max()


@pytest.mark.parametrize("options", CONVENTIONS)
def test_degenerate_samples_have_a_value(options):
    s = torch.linspace(0, 1, 6, dtype=torch.float64)
    tolerance = 1e-9  # the reference's constant leaves 1e-10
    assert gdp(torch.full((6,), 2.0).double(), s, **options).item() == pytest.approx(0.0, abs=tolerance)
    assert gdp(s, torch.full((6,), 0.1).double(), **options).item() == pytest.approx(0.0, abs=tolerance)
    assert gdp([1.0], [0.3], **options).item() == pytest.approx(0.0, abs=tolerance)


@pytest.mark.parametrize("options", CONVENTIONS[:5])
def test_gradients(generator, options):
    y, s = sample(generator, 8)
    s[3] = s[5]
    y[3] = y[5]
    y.requires_grad_()
    keep = torch.tensor([1, 1, 0, 1, 1, 1, 0, 1], dtype=torch.bool)
    assert torch.autograd.gradcheck(lambda y: gdp(y, s, **options), y)
    assert torch.autograd.gradcheck(lambda y: gdp(y, s, mask=keep, **options), y)
    constant = torch.ones(8, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(gdp(constant, s, **options), constant)
    assert bool(torch.isfinite(gradient).all())


def test_an_empty_mask_is_zero_without_checks_and_an_error_with_them(generator):
    y, s = sample(generator, 2, 10)
    y.requires_grad_()
    mask = torch.tensor([[True], [False]]).expand(2, 10)
    for options in CONVENTIONS:
        value = gdp(y, s, mask=mask, check_finite=False, **options)
        torch.testing.assert_close(value[0], gdp(y[0], s[0], **options))
        assert value[1].item() == 0.0
        (gradient,) = torch.autograd.grad(value.sum(), y)
        assert bool(torch.isfinite(gradient).all())
        assert bool((gradient[1] == 0).all())
    with pytest.raises(ValueError, match="mask keeps no row"):
        gdp(y, s, mask=mask)


def test_several_attributes_have_product_weights(generator):
    s = torch.randn(20, 2, generator=generator, dtype=torch.float64)
    y = torch.randn(20, generator=generator, dtype=torch.float64)
    h = (0.5, 0.8)
    gaps = []
    for i in range(20):
        kernel = torch.exp(-0.5 * (((s - s[i]) / torch.tensor(h)) ** 2).sum(-1))
        gaps.append(((kernel * y).sum() / kernel.sum() - y.mean()).abs())
    torch.testing.assert_close(gdp(y, s, bandwidth=h), torch.stack(gaps).mean())
    with pytest.raises(ValueError, match="s has 2 columns and weights='uniform' needs a grid over one"):
        gdp(y, s, weights="uniform")


def test_shapes_and_kinds_of_input(generator):
    y, s = sample(generator, 12)
    value = gdp(y, s)
    for given_y, given_s in (
        (y.numpy(), s.numpy()),
        (pd.Series(y.numpy()), pd.Series(s.numpy())),
        (pd.DataFrame({"y": y.numpy()}), s),
        (y[:, None], s[:, None]),
        (y.tolist(), s.tolist()),
    ):
        torch.testing.assert_close(gdp(given_y, given_s), value)
    single = gdp(y.float(), s.numpy())
    assert single.dtype == torch.float32
    assert single.item() == pytest.approx(value.item(), abs=1e-5)
    torch.testing.assert_close(gdp(torch.stack([y, 2 * y]), s), torch.stack([value, 2 * value]))
    assert gdp([True, False, True], [1, 2, 3]).dtype == torch.float64


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: gdp([1.0, 2.0], [1.0, 2.0, 3.0]), ValueError, "s has 3 rows but y_pred has 2"),
        (lambda: gdp(torch.ones(4, 3), torch.ones(4)), ValueError, "put several outputs in a leading dimension"),
        (lambda: gdp([1.0, math.inf], [1.0, 2.0]), ValueError, "y_pred has 1 NaN or infinite"),
        (lambda: gdp(1.0, [1.0]), ValueError, "y_pred is a single number"),
        (lambda: gdp([], []), ValueError, "y_pred has 0 rows"),
        (lambda: gdp(["a"], [1.0]), TypeError, "y_pred could not be read as numbers"),
        (lambda: gdp([1.0], [1.0], weights="mean"), ValueError, "weights is 'mean'"),
        (lambda: gdp([1.0], [1.0], grid=10), ValueError, "takes no grid"),
        (lambda: gdp([1.0], [1.0], weights="uniform", grid=1), ValueError, "at least 2 points"),
        (lambda: gdp([1.0], [1.0], weights="density", reference=True), ValueError, "leave weights='density' out"),
        (lambda: demographic_parity([1.0, 2.0, 3.0], [1, 2, 3]), ValueError, "more than two values"),
        (lambda: demographic_parity([1.0, 2.0], [1, 1]), ValueError, "s has a single value"),
        (lambda: demographic_parity([1.0], [[1, 2]]), ValueError, "s has 2 columns"),
    ],
)
def test_errors_say_what_to_do(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_demographic_parity_masks_weights_and_missing_groups():
    y = torch.tensor([0.0, 1.0, 0.5, 0.5], dtype=torch.float64)
    s = torch.tensor([-1.0, 2.0, -1.0, 2.0], dtype=torch.float64)
    assert demographic_parity(y, s, mask=[1, 1, 0, 0]).item() == 1.0
    assert demographic_parity(y, s, sample_weight=[3, 3, 1, 1]).item() == pytest.approx(0.75)
    assert demographic_parity(y, torch.ones(4), check_finite=False).item() == 0.0
