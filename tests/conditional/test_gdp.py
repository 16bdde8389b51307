"""GDP: the same number from every function, against closed forms and loops; the authors' and the stored conventions."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import torch

from frhsic_core import audit, audit_representation, gdp, gdp_curve
from frhsic_core.auditing import gdp_score
from frhsic_core.laws import GaussianPair
from frhsic_core.paper import stored_gdp
from frhsic_core.paper.stored_gdp import authors_gdp, smoothed_gdp
from frhsic_core.remedies.dependence import dependence_of

ESTIMATES = [gdp, authors_gdp]


def sample(generator, *shape):
    s = torch.rand(*shape, generator=generator, dtype=torch.float64)
    y = torch.sin(4 * s) + torch.randn(*shape, generator=generator, dtype=torch.float64)
    return y, s


def tables() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return five tables of scores and an attribute: ties, few values, heavy tails, two values, many rows."""
    generator = np.random.default_rng(0)
    age = np.round(generator.gamma(6, 5, 400) + 17)
    income = np.exp(1.2 * generator.normal(size=300)) * 1e4
    five = generator.integers(0, 5, 250).astype(float)
    sex = generator.integers(0, 2, 200).astype(float)
    many = generator.standard_cauchy(5000)
    return {
        "ages": (1 / (1 + np.exp(2 - 0.04 * age)) + 0.1 * generator.random(400), age),
        "incomes": (np.tanh(income / 3e4) + 0.3 * generator.normal(size=300), income),
        "five values": ((generator.random(250) < 0.2 + 0.1 * five).astype(float), five),
        "two values": (generator.random(200) + 0.2 * sex, sex),
        "many rows": (generator.random(5000) + 0.05 * np.tanh(many), many),
    }


@pytest.mark.parametrize("name", tables())
def test_every_way_to_gdp_gives_one_number(name: str) -> None:
    f, s = tables()[name]
    expected = gdp(f, s)
    assert isinstance(expected, float)
    audited = audit(f, sensitive_features=pd.Series(s, name="s"))
    representation = audit_representation(f[:, None], s, predictions=f)
    verdict = audited.check("gdp=0.45")[0]
    found = {
        "tensor": gdp(torch.tensor(f), torch.tensor(s)).item(),
        "batch": gdp(np.stack([f, f]), s)[1],
        "curve": gdp_curve(f, s).gdp,
        "audit": audited.gdp,
        "attribute": audited["s"].numbers["gdp"].value,
        "table": audited.table().set_index("measure").loc["gdp", "value"],
        "json": audited.as_dict()["attributes"][0]["numbers"]["gdp"]["value"],
        "gate": verdict.estimate,
        "representation": representation.gdp,
        "metric": gdp_score(None, f, sensitive_features=s),
        "remedies": dependence_of(f, s[:, None])["gdp"],
    }
    assert {key: value / expected for key, value in found.items()} == {
        key: pytest.approx(1.0, abs=1e-9) for key in found
    }
    curve = gdp_curve(f, s, random_state=np.int64(0))
    assert audited.interval == (curve.gdp_low, curve.gdp_high) == (verdict.low, verdict.high)


def test_a_linear_head_of_a_gaussian_pair() -> None:
    """ρ√(2/π) for f = z: the mean of 20 samples is within four standard errors, and most intervals contain it."""
    law = GaussianPair(0.5)
    truth = 0.5 * math.sqrt(2 / math.pi)
    z, s = (x.squeeze(-1).numpy() for x in law.sample(20 * 1000, random_state=0))
    curves = [gdp_curve(z[k::20], s[k::20], random_state=k) for k in range(20)]
    values = np.array([curve.gdp for curve in curves])
    assert abs(values.mean() - truth) < 4 * values.std() / math.sqrt(20) + 0.01
    assert sum(curve.gdp_low <= truth <= curve.gdp_high for curve in curves) >= 17


def test_few_values_are_group_means_and_two_values_are_demographic_parity(generator) -> None:
    for ones in (1, 7, 10):
        s = (torch.arange(20) < ones).double()
        y = torch.randn(20, generator=generator, dtype=torch.float64)
        p = ones / 20
        torch.testing.assert_close(
            gdp(y, s), 2 * p * (1 - p) * (y[:ones].mean() - y[ones:].mean()).abs()
        )


def test_a_few_people_with_different_values_are_smoothed() -> None:
    """Without smoothing each of twelve people would be a group, and GDP the mean deviation of pure noise."""
    generator = np.random.default_rng(0)
    noise = generator.normal(size=(200, 12))
    alone = np.abs(noise - noise.mean(1, keepdims=True)).mean(1)
    assert gdp(noise, np.arange(12.0)).mean() < 0.75 * alone.mean()


@pytest.mark.parametrize("estimate", ESTIMATES)
def test_batch_is_a_loop(generator, estimate):
    y, s = sample(generator, 2, 3, 25)
    mask = torch.rand(2, 3, 25, generator=generator) < 0.7
    for extra in ({}, {"mask": mask}, {"sample_weight": s}):
        values = estimate(y, s, **extra)
        assert values.shape == (2, 3)
        for a in range(2):
            for b in range(3):
                one = estimate(y[a, b], s[a, b], **{k: v[a, b] for k, v in extra.items()})
                torch.testing.assert_close(values[a, b], one, rtol=1e-11, atol=1e-13)
    shared = estimate(y, s[0, 0])
    torch.testing.assert_close(shared[1, 2], estimate(y[1, 2], s[0, 0]))


@pytest.mark.parametrize("estimate", ESTIMATES)
def test_a_mask_is_the_subset(generator, estimate):
    y, s = sample(generator, 60)
    keep = torch.arange(60) % 3 != 0
    keep[[int(s.argmin()), int(s.argmax())]] = False  # a grid spans the rows kept
    expected = estimate(y[keep], s[keep])
    torch.testing.assert_close(estimate(y, s, mask=keep), expected)
    torch.testing.assert_close(
        estimate(y, s, sample_weight=3.0 * keep), expected, rtol=1e-9, atol=0.0
    )
    weights = torch.linspace(0.5, 2.0, 60, dtype=torch.float64)
    weighted = estimate(y, s, sample_weight=weights, mask=keep)
    torch.testing.assert_close(
        weighted, estimate(y[keep], s[keep], sample_weight=3.0 * weights[keep])
    )
    assert not torch.allclose(weighted, expected, rtol=1e-4)


def test_units_do_not_matter(generator):
    y, s = sample(generator, 80)
    value = gdp(y, s)
    order = torch.randperm(80, generator=generator)
    torch.testing.assert_close(gdp(y[order], s[order]), value)
    torch.testing.assert_close(gdp(y + 100.0, 8.0 * s), value, rtol=1e-9, atol=0.0)
    torch.testing.assert_close(gdp(-5.0 * y, s), 5.0 * value)
    torch.testing.assert_close(gdp(2.0**900 * y, s), 2.0**900 * value)


@pytest.mark.parametrize("estimate", ESTIMATES)
def test_degenerate_samples_have_a_value(estimate):
    s = torch.linspace(0, 1, 30, dtype=torch.float64)
    tolerance = 1e-9  # the authors' constant leaves 1e-10
    assert estimate(torch.full((30,), 2.0).double(), s).item() == pytest.approx(0.0, abs=tolerance)
    assert estimate(s, torch.full((30,), 0.1).double()).item() == pytest.approx(0.0, abs=tolerance)
    assert estimate([1.0], [0.3]) == pytest.approx(0.0, abs=tolerance)


@pytest.mark.parametrize("estimate", ESTIMATES)
@pytest.mark.parametrize("n", [8, 40])
def test_gradients(generator, estimate, n):
    y, s = sample(generator, n)
    s[3] = s[5]
    y.requires_grad_()
    keep = torch.arange(n) % 4 != 2
    assert torch.autograd.gradcheck(lambda y: estimate(y, s), y)
    assert torch.autograd.gradcheck(lambda y: estimate(y, s, mask=keep), y)
    constant = torch.ones(n, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(estimate(constant, s), constant)
    assert bool(torch.isfinite(gradient).all())


@pytest.mark.parametrize("estimate", ESTIMATES)
def test_an_empty_mask_is_zero_without_checks_and_an_error_with_them(generator, estimate):
    y, s = sample(generator, 2, 10)
    y.requires_grad_()
    mask = torch.tensor([[True], [False]]).expand(2, 10)
    value = estimate(y, s, mask=mask, check_finite=False)
    torch.testing.assert_close(value[0], estimate(y[0], s[0]))
    assert value[1].item() == 0.0
    (gradient,) = torch.autograd.grad(value.sum(), y)
    assert bool(torch.isfinite(gradient).all())
    assert bool((gradient[1] == 0).all())
    with pytest.raises(ValueError, match="mask keeps no row"):
        estimate(y, s, mask=mask)


def test_the_same_kind_comes_out_as_goes_in(generator):
    y, s = sample(generator, 2, 30)
    value = gdp(y, s)
    for given_y, given_s in ((y.numpy(), s.numpy()), (y.tolist(), s.tolist())):
        np.testing.assert_allclose(gdp(given_y, given_s), value.numpy(), rtol=1e-12)
    one = gdp(pd.Series(y[0].numpy()), pd.Series(s[0].numpy()))
    assert isinstance(one, float)
    assert one == pytest.approx(value[0].item(), rel=1e-12)
    torch.testing.assert_close(gdp(y[0][:, None], s[0][:, None]), value[0])
    single = gdp(y.float(), s.numpy())
    assert single.dtype == torch.float64  # that of s: no column is cast down
    torch.testing.assert_close(single, value, rtol=1e-4, atol=0.0)
    assert isinstance(gdp([True, False, True], [1, 2, 3]), float)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: gdp([1.0, 2.0], [1.0, 2.0, 3.0]), ValueError, "s has 3 rows but y_pred has 2"),
        (
            lambda: gdp(torch.ones(4, 3), torch.ones(4)),
            ValueError,
            "put several outputs in a leading dimension",
        ),
        (lambda: gdp([1.0, math.inf], [1.0, 2.0]), ValueError, "y_pred has 1 NaN or infinite"),
        (lambda: gdp(1.0, [1.0]), ValueError, "y_pred is a single number"),
        (lambda: gdp(["a"], [1.0]), ValueError, "'y_pred' has words, such as 'a'"),
        (lambda: gdp([1.0], [[1.0, 2.0]]), ValueError, "s has 2 columns"),
        (lambda: gdp_curve([1.0, 2.0], [1.0, 2.0], alpha=95), ValueError, "alpha is 95"),
        (lambda: gdp_curve(np.ones((2, 3)), np.ones(3)), ValueError, "one model"),
        (lambda: gdp_curve(np.ones(3), np.ones((3, 2))), ValueError, "s has 2 columns"),
    ],
)
def test_errors_say_what_to_do(call, error, text):
    with pytest.raises(error, match=text):
        call()


# The conventions of the paper ----------------------------------------------------------------------------------------


def loop_gdp(y, s, *, h, points, constant=0.0):
    """One value at a time, as the formula reads."""
    y, s = np.asarray(y), np.asarray(s)
    gaps = []
    for point in np.asarray(points):
        kernel = np.exp(-0.5 * ((s - point) / h) ** 2)
        gaps.append(abs((kernel * y).sum() / (kernel.sum() + constant) - y.mean()))
    return np.mean(gaps)


def test_the_smoothed_gdp_equals_the_loop(generator, monkeypatch):
    y, s = sample(generator, 40)
    silverman = s.std().item() * (3 * 40 / 4) ** (-1 / 5)
    for block in (stored_gdp._BLOCK, 150):
        monkeypatch.setattr(stored_gdp, "_BLOCK", block)
        for options, h in (
            ({}, 0.1),
            ({"bandwidth": 0.2}, 0.2),
            ({"bandwidth": "silverman"}, silverman),
        ):
            assert smoothed_gdp(y, s, **options).item() == pytest.approx(
                loop_gdp(y, s, h=h, points=s), rel=1e-11
            )


def test_the_authors_estimator_equals_the_loop_with_its_constant(generator):
    y, s = sample(generator, 40)
    # A hole in S wide enough that the authors' 1e-10 rules the conditional mean inside it.
    s = torch.cat([0.1 * s, 2.0 + s])
    y = torch.cat([y, y + 1.0])
    points = np.linspace(s.min().item(), s.max().item(), 50)
    found = authors_gdp(y, s).item()
    assert found == pytest.approx(loop_gdp(y, s, h=0.1, points=points, constant=1e-10), rel=1e-10)
    assert abs(loop_gdp(y, s, h=0.1, points=points) - found) > 1e-3
    keep = torch.arange(80) % 4 != 0  # the constant counts the rows kept
    subset = authors_gdp(y[keep], s[keep])
    torch.testing.assert_close(authors_gdp(y, s, mask=keep), subset, rtol=1e-11, atol=0.0)


def test_several_attributes_have_product_weights(generator):
    s = torch.randn(20, 2, generator=generator, dtype=torch.float64)
    y = torch.randn(20, generator=generator, dtype=torch.float64)
    h = (0.5, 0.8)
    gaps = []
    for i in range(20):
        kernel = torch.exp(-0.5 * (((s - s[i]) / torch.tensor(h)) ** 2).sum(-1))
        gaps.append(((kernel * y).sum() / kernel.sum() - y.mean()).abs())
    torch.testing.assert_close(smoothed_gdp(y, s, bandwidth=h), torch.stack(gaps).mean())
