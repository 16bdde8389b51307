"""NumPy in means that NumPy computes, tensors in that torch does: the same code, and the same numbers to rounding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple
from typing import Any

import numpy as np
import pytest
import torch

import frhsic_core as fc
from frhsic_core.joint import conditional_hsic
from frhsic_core.kernels import KERNELS

Sample = dict[str, np.ndarray]
ROWS = (30, 300, 1100)
METHODS = ("gamma", "spectral", "permutation", "aggregated")


def sample(n: int) -> Sample:
    """Return a score f, a representation z with ties, an attribute s, whole ages, a group and weights."""
    rng = np.random.default_rng(n)
    s = rng.normal(size=n)
    z = rng.normal(size=(n, 3))
    z[:, 0] += s
    z[:, 2] = z[:, 2].round()
    return {
        "f": 1.0 / (1.0 + np.exp(-z[:, 0])),
        "z": z,
        "s": s,
        "age": (40.0 + 10.0 * s).round(),
        "group": (z[:, 1] > 0.3).astype(float),
        "weight": rng.uniform(0.5, 2.0, n),
        "kept": np.arange(n) % 3 > 0,
        "stack": np.stack([z, 2.0 * z]),
        "pairs": np.arange(n) // 2,
        "constant": np.full(n, 0.1),
    }


Call = Callable[..., Any]
CALLS: dict[str, Call] = {
    "hsic of a score": lambda f, s, **_: fc.hsic(f, s),
    "hsic of ages": lambda f, age, **_: fc.hsic(f, age),
    "hsic of columns": lambda z, s, **_: fc.hsic(z, s),
    "hsic, unbiased": lambda z, s, **_: fc.hsic(z, s, estimator="unbiased"),
    "hsic, weighted": lambda z, s, weight, **_: fc.hsic(z, s, sample_weight=weight),
    "hsic, masked": lambda f, s, kept, **_: fc.hsic(f, s, mask=kept, estimator="unbiased"),
    "hsic of a batch": lambda stack, s, **_: fc.hsic(stack, s),
    "hsic of a constant": lambda constant, s, **_: fc.hsic(constant, s),
    "normalized_hsic": lambda z, s, **_: fc.normalized_hsic(z, s),
    "normalized_hsic of a score": lambda f, age, **_: fc.normalized_hsic(f, age),
    "distance_correlation": lambda f, s, **_: fc.distance_correlation(f, s),
    "distance_correlation, unbiased": lambda z, s, **_: fc.distance_correlation(
        z, s, squared=True, estimator="unbiased"
    ),
    "khgr": lambda f, s, **_: fc.khgr(f, s, ridge=0.1),
    "coco": lambda z, s, **_: fc.coco(z, s),
    "mutual_information": lambda z, age, **_: fc.mutual_information(z, age),
    "eipm": lambda z, s, **_: fc.eipm(z, s),
    "eipm, anchors": lambda z, s, **_: fc.eipm(z, s, anchors=10, random_state=3),
    "eipm, weighted": lambda z, s, weight, kept, **_: fc.eipm(
        z, s, power=2, sample_weight=weight, mask=kept
    ),
    "gdp": lambda f, age, **_: fc.gdp(f, age),
    "median_bandwidth": lambda z, **_: fc.median_bandwidth(z),
    "median_bandwidth of a column": lambda age, **_: fc.median_bandwidth(age),
    "conditional_hsic": lambda z, s, group, **_: conditional_hsic(z, s, group),
    "conditional_hsic, continuous": lambda f, s, z, **_: conditional_hsic(
        f, s, z[:, 1], estimator="normalized"
    ),
    "test in clusters": lambda f, s, pairs, **_: fc.hsic_test(
        f, s, method="permutation", clusters=pairs, random_state=5
    ),
}
for name in KERNELS:
    if name != "categorical":
        CALLS[f"hsic, {name}"] = lambda z, s, name=name, **_: fc.hsic(
            z, s, kernel_z=name, kernel_s=name
        )
for method in METHODS:
    CALLS[f"test, {method}"] = lambda f, age, method=method, **_: fc.hsic_test(
        f, age, method=method
    )
    CALLS[f"test of columns, {method}"] = lambda z, s, method=method, **_: fc.hsic_test(
        z, s, method=method, random_state=np.random.default_rng(3)
    )
    CALLS[f"test given groups, {method}"] = lambda z, s, group, method=method, **_: fc.hsic_test(
        z, s, method=method, given=group
    )
    CALLS[f"test given numbers, {method}"] = lambda f, s, z, method=method, **_: fc.hsic_test(
        f, s, method=method, given=z[:, 1]
    )


def numbers(found: Any) -> list[Any]:
    """Return the numbers of a result."""
    if isinstance(found, fc.joint.IndependenceTest):
        return [float(part) for part in astuple(found)[:4]]
    return np.asarray(found).ravel().tolist()


@pytest.mark.parametrize("n", ROWS)
@pytest.mark.parametrize("name", CALLS)
def test_the_numbers_are_the_same(name: str, n: int) -> None:
    arrays = sample(n)
    tensors = {key: torch.as_tensor(values) for key, values in arrays.items()}
    found = numbers(CALLS[name](**arrays))
    expected = numbers(CALLS[name](**tensors))
    # Small eigenvalues of a test's features are rounded by each library in its own way, and the
    # tail of a fitted distribution multiplies what is left of it.
    rel = 1e-6 if name.startswith("test") else 1e-11
    assert found == pytest.approx(expected, rel=rel, abs=1e-14)


def test_an_array_gives_arrays_and_floats() -> None:
    arrays = sample(30)
    assert type(fc.hsic(arrays["z"], arrays["s"])) is float
    assert type(fc.hsic(arrays["stack"], arrays["s"])) is np.ndarray
    assert type(fc.hsic_test(arrays["z"], arrays["s"]).pvalue) is float
    assert type(fc.gdp(arrays["f"], arrays["s"])) is float
