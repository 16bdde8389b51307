"""KSG mutual information against closed forms, loops and scikit-learn, with and without ties."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from samples import correlated
from scipy.special import digamma
from sklearn.feature_selection import mutual_info_regression
from sklearn.metrics import mutual_info_score

from frhsic_core.joint.information import mutual_information


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_gaussian_closed_form(rho: float, d: int) -> None:
    z, s = correlated(1, 400, rho, d, batch=(10,))
    values = mutual_information(z, s)
    exact = -0.5 * math.log(1 - rho**2)
    error = values.std() / 10**0.5
    # Four standard errors, and the bias these estimators have at n = 400: a few hundredths, more in two dimensions.
    assert abs(values.mean() - exact) < 4 * error + (0.02 if d == 1 else 0.1)


def brute_force(z: np.ndarray, s: np.ndarray, k: int, closed: bool) -> float:
    n = len(z)
    dz = np.abs(z[:, None] - z[None]).max(-1)
    ds = np.abs(s[:, None] - s[None]).max(-1)
    joint = np.maximum(dz, ds)
    total = 0.0
    for i in range(n):
        others = [j for j in range(n) if j != i]
        nearest = sorted(others, key=lambda j: joint[i, j])[:k]
        radius = joint[i, nearest[-1]]
        nz, ns = (
            sum(a[i, j] <= radius if closed else a[i, j] < radius for j in others) for a in (dz, ds)
        )
        total += digamma(k) + digamma(n) - digamma(nz + 1) - digamma(ns + 1)
    return total / n


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("k", [1, 3])
def test_equals_a_loop_over_points(k: int, ties: bool, closed: bool) -> None:
    z, s = correlated(2, 40, 0.6, d=3, batch=(2,))
    s = s.round() if ties else s
    values = mutual_information(z, s, k=k, standardize=False, closed=closed)
    expected = [brute_force(x.numpy(), y.numpy(), k, closed) for x, y in zip(z, s, strict=True)]
    assert values.tolist() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("rho", [0.3, 0.8])
def test_agrees_with_scikit_learn(rho: float) -> None:
    z, s = correlated(4, 500, rho)
    reference = mutual_info_regression(z.numpy(), s.numpy()[:, 0], n_neighbors=5, random_state=0)[0]
    assert mutual_information(z, s).item() == pytest.approx(reference, abs=1e-6)


def test_agrees_with_scikit_learn_on_integer_ages() -> None:
    z, s = correlated(5, 500, 0.6)
    ages = (40 + 12 * s).round()
    reference = mutual_info_regression(
        z.numpy(), ages.numpy()[:, 0], n_neighbors=5, random_state=0
    )[0]
    # Neighbours one year older and one year younger tie at exactly one year: there the two jitters choose differently.
    assert mutual_information(z, ages).item() == pytest.approx(reference, abs=0.02)
    assert mutual_information(z, ages).item() == pytest.approx(-0.5 * math.log(1 - 0.36), abs=0.1)


def test_two_discrete_variables() -> None:
    z, s = (x.sign() for x in correlated(6, 2000, 0.8))
    plug_in = mutual_info_score(z.numpy()[:, 0], s.numpy()[:, 0])
    assert mutual_information(z, s).item() == pytest.approx(plug_in, abs=0.06)


def test_ties_have_no_effect_at_independence() -> None:
    g = torch.Generator().manual_seed(7)
    z = torch.randint(0, 5, (20, 300, 1), generator=g)
    s = torch.randint(17, 90, (20, 300, 1), generator=g)
    values = mutual_information(z, s)
    assert abs(values.mean()) < 4 * values.std() / 20**0.5 + 0.02


@given(st.integers(0, 10_000), st.floats(0.1, 50), st.floats(-100, 100))
def test_does_not_depend_on_units_order_or_sides(seed: int, scale: float, shift: float) -> None:
    z, s = correlated(seed, 25, 0.5, d=2)
    value = mutual_information(z, s).item()
    assert mutual_information(scale * z + shift, s).item() == pytest.approx(value, abs=1e-9)
    assert mutual_information(s, z).item() == pytest.approx(value, abs=1e-9)
    order = torch.randperm(25, generator=torch.Generator().manual_seed(seed))
    assert mutual_information(z[order], s[order]).item() == pytest.approx(value, abs=1e-9)


def test_batch_shape_dtype_and_broadcast() -> None:
    z, s = correlated(10, 30, 0.5, batch=(2, 3))
    values = mutual_information(z, s)
    assert values.shape == (2, 3)
    assert values[1, 2].item() == pytest.approx(
        mutual_information(z[1, 2], s[1, 2]).item(), abs=1e-12
    )
    assert mutual_information(z, s[0, 0]).shape == (2, 3)
    assert mutual_information(z.float(), s.float()).dtype == torch.float32


def test_constants_carry_no_information() -> None:
    _, s = correlated(12, 20, 0.5)
    beside = torch.cat([s, torch.full_like(s, 7.7)], -1)
    z = s + s**2
    assert mutual_information(z, beside) == mutual_information(z, s)
    constants = torch.tensor([1.0, 2.0]).expand(20, 2)
    assert mutual_information(z, constants) == mutual_information(constants, z) == 0.0
