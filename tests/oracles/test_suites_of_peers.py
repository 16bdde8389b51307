"""Run the test cases that dcor and hyppo ship, with this library behind their names.

An adapter gives a peer's function its name and its words; the values are ours. Left out are cases
of functions that we do not have, and of internals.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
import warnings
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from frhsic_core import Distance, Gaussian, distance_correlation, hsic, hsic_test, normalized_hsic
from frhsic_core.kernels import median_bandwidth

pytestmark = pytest.mark.slow


# dcor -----------------------------------------------------------------------------------------------


class StrictArray(np.ndarray):
    """An array of a library that is not NumPy, as in dcor's tests of the array API."""


def strict_namespace() -> ModuleType:
    """Return what stands in for ``array_api_strict``, which dcor's tests import."""
    module = ModuleType("array_api_strict")
    module.float64 = np.float64
    module.asarray = lambda values, dtype=None: np.asarray(values, dtype=dtype).view(StrictArray)
    module.ones = lambda count: np.ones(count).view(StrictArray)
    return module


def in_kind_of(value: float, x: Any, *, rooted: bool) -> Any:
    """Return a value as dcor does, in the type of the numbers of x; a root is no fraction."""
    if isinstance(x, StrictArray):
        return np.asarray(value).view(StrictArray)
    kind = type(np.asarray(x).flat[0])
    if kind is Decimal or (kind is Fraction and not rooted):
        return kind(value)
    return value


def covariance(x: Any, y: Any, *, estimator: str = "biased", **_: Any) -> Any:
    x_numbers, y_numbers = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    distances = {"kernel_z": Distance(), "kernel_s": Distance()}
    value = 4.0 * hsic(x_numbers, y_numbers, estimator=estimator, **distances)
    return in_kind_of(value, x, rooted=False)


def correlation(x: Any, y: Any, *, estimator: str = "biased", **_: Any) -> Any:
    x_numbers, y_numbers = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    value = distance_correlation(x_numbers, y_numbers, squared=True, estimator=estimator)
    return in_kind_of(value, x, rooted=True)


def rooted_covariance(x: Any, y: Any, **_: Any) -> Any:
    return covariance(x, y) ** 0.5


def rooted_correlation(x: Any, y: Any, **_: Any) -> Any:
    value = distance_correlation(np.asarray(x, dtype=float), np.asarray(y, dtype=float))
    return in_kind_of(value, x, rooted=True)


def unbiased(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, y, **_: function(x, y, estimator="unbiased")


def stats(x: Any, y: Any, *, estimator: str = "biased", **_: Any) -> tuple[Any, ...]:
    """Return dcor's four: covariance, correlation and both variances."""
    both = covariance(x, y, estimator=estimator), correlation(x, y, estimator=estimator)
    return *both, covariance(x, x, estimator=estimator), covariance(y, y, estimator=estimator)


def covariance_test(x: Any, y: Any, *, num_resamples: int, random_state: Any) -> Any:
    options = {"kernel_z": Distance(), "kernel_s": Distance(), "method": "permutation"}
    return hsic_test(x, y, n_permutations=num_resamples, random_state=random_state, **options)


def as_dcor(real: ModuleType) -> SimpleNamespace:
    """Return this library under dcor's names."""
    return SimpleNamespace(
        CompileMode=real.CompileMode,
        DistanceCovarianceMethod=real.DistanceCovarianceMethod,
        distance_covariance_sqr=covariance,
        distance_covariance=rooted_covariance,
        distance_correlation_sqr=correlation,
        distance_correlation=rooted_correlation,
        distance_correlation_af_inv=rooted_correlation,  # asked of a constant only
        u_distance_covariance_sqr=unbiased(covariance),
        u_distance_correlation_sqr=unbiased(correlation),
        distance_stats_sqr=stats,
        u_distance_stats_sqr=unbiased(stats),
        independence=SimpleNamespace(distance_covariance_test=covariance_test),
    )


@pytest.fixture
def dcor_suites(uncompiled: None, monkeypatch: pytest.MonkeyPatch) -> dict[str, ModuleType]:
    real = pytest.importorskip("dcor")
    if importlib.util.find_spec("dcor.tests") is None:
        pytest.skip("this build of dcor comes without its tests")
    monkeypatch.setitem(sys.modules, "array_api_strict", strict_namespace())
    found = {}
    for name in ("test_dcor", "test_independence"):
        module = importlib.import_module(f"dcor.tests.{name}")
        monkeypatch.setattr(module, "dcor", as_dcor(real))
        found[name] = module
    return found


NOT_OURS = {"test_double_centered", "test_dyad_update"}  # internals of dcor
# Tests of samples in the array API's own kind, for which dcor needs the real package.
SUITES = (
    ("test_dcor", "TestDistanceCorrelation"),
    ("test_dcor", "TestDcorArrayAPI"),
    ("test_independence", "TestDcovTest"),
)


@pytest.mark.parametrize(("suite", "kind"), SUITES)
def test_cases_of_dcor(dcor_suites: dict[str, ModuleType], suite: str, kind: str) -> None:
    cases = getattr(dcor_suites[suite], kind)
    names = [name for name in dir(cases) if name.startswith("test_") and name not in NOT_OURS]
    assert names
    for name in names:
        case = cases(name)
        case.setUp()
        getattr(case, name)()


# hyppo ----------------------------------------------------------------------------------------------


class AsDcorr:
    """hyppo's ``Dcorr``: rooted if biased, squared if not."""

    def __init__(self, bias: bool = False) -> None:
        self.bias = bias

    def statistic(self, x: np.ndarray, y: np.ndarray) -> float:
        if self.bias:
            return distance_correlation(x, y)
        return distance_correlation(x, y, squared=True, estimator="unbiased")

    def test(
        self, x: np.ndarray, y: np.ndarray, reps: int = 1000, random_state: Any = 0
    ) -> tuple[float, float]:
        kernels = {"kernel_z": Distance(), "kernel_s": Distance()}
        result = hsic_test(
            x,
            y,
            method="permutation",
            n_permutations=max(1, reps),
            random_state=random_state,
            **kernels,
        )
        return self.statistic(x, y), result.pvalue


class AsHsic:
    """hyppo's ``Hsic`` at its own bandwidth: the root of the normalized form."""

    def __init__(self, compute_kernel: Any = "gaussian") -> None:
        self.given = compute_kernel is None

    def kernel(self, x: np.ndarray) -> Any:
        return "linear" if self.given else Gaussian(median_bandwidth(x))

    def test(
        self, x: np.ndarray, y: np.ndarray, random_state: Any = 0, auto: bool = True
    ) -> tuple[float, float]:
        kernels = {"kernel_z": self.kernel(x), "kernel_s": self.kernel(y)}
        result = hsic_test(
            x, y, method="permutation", n_permutations=1000, random_state=random_state, **kernels
        )
        return normalized_hsic(x, y, **kernels) ** 0.5, result.pvalue


HYPPO = (
    ("test_dcorr", "TestDcorrStat", "Dcorr", AsDcorr),
    ("test_hsic", "TestHsicStat", "Hsic", AsHsic),
)


def calls_of(function: Callable[..., Any]) -> list[dict[str, Any]]:
    """Return the arguments of each case that a test of hyppo is parametrized with."""
    cases: list[dict[str, Any]] = [{}]
    for mark in getattr(function, "pytestmark", []):
        names = [name.strip() for name in mark.args[0].split(",")]
        rows = [row if len(names) > 1 else (row,) for row in mark.args[1]]
        cases = [case | dict(zip(names, row, strict=True)) for case in cases for row in rows]
    return cases


@pytest.mark.parametrize(("suite", "kind", "name", "adapter"), HYPPO)
def test_cases_of_hyppo(
    uncompiled: None,
    monkeypatch: pytest.MonkeyPatch,
    suite: str,
    kind: str,
    name: str,
    adapter: type,
) -> None:
    with warnings.catch_warnings(action="ignore"):
        pytest.importorskip("hyppo.independence")
        module = importlib.import_module(f"hyppo.independence.tests.{suite}")
    monkeypatch.setattr(module, name, adapter)
    cases = getattr(module, kind)()
    tests = inspect.getmembers(cases, lambda member: callable(member))
    found = [(name, function) for name, function in tests if name.startswith("test_")]
    assert found
    for _, function in found:
        for options in calls_of(function):
            np.random.seed(0)  # noqa: NPY002 (what hyppo draws from)
            function(**options)


@pytest.mark.parametrize("name", ["linear", "spiral", "quadratic", "multimodal_independence"])
def test_values_on_the_simulations_of_hyppo(uncompiled: None, name: str) -> None:
    with warnings.catch_warnings(action="ignore"):
        hyppo = pytest.importorskip("hyppo.independence")
        simulations = importlib.import_module("hyppo.tools")
    for n in (30, 100):
        np.random.seed(n)  # noqa: NPY002 (what hyppo draws from)
        x, y = getattr(simulations, name)(n, 1)
        for bias in (True, False):
            theirs = hyppo.Dcorr(bias=bias).statistic(x, y)
            assert AsDcorr(bias=bias).statistic(x, y) == pytest.approx(theirs, rel=1e-6, abs=1e-9)
