"""hyppo and causal-learn as independent references, in one file: their imports are slow; skipped without them."""

from __future__ import annotations

import math
import warnings
from typing import Any

import pytest
import torch

from frhsic_core import Gaussian, distance_correlation, hsic, hsic_test
from frhsic_core.paper.experiments.levels_and_coverage import _kci, _sample_given


@pytest.fixture
def hyppo(uncompiled: None) -> Any:
    with warnings.catch_warnings(action="ignore"):
        return pytest.importorskip("hyppo.independence")


@pytest.fixture
def pair(generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    z = torch.randn(50, 2, generator=generator, dtype=torch.float64)
    return z, torch.randn(50, 1, generator=generator, dtype=torch.float64) + z[:, :1]


@pytest.mark.parametrize("estimator", ["biased", "unbiased"])
def test_hsic(hyppo: Any, estimator: str, pair: tuple[torch.Tensor, torch.Tensor]) -> None:
    z, s = pair

    def ours(a: torch.Tensor, b: torch.Tensor) -> float:
        return float(
            hsic(a, b, kernel_z=Gaussian(1.0), kernel_s=Gaussian(1.0), estimator=estimator)
        )

    correlation = ours(z, s) / math.sqrt(ours(z, z) * ours(s, s))
    theirs = hyppo.Hsic(bias=estimator == "biased", gamma=0.5).statistic(z.numpy(), s.numpy())
    # hyppo reports a correlation, and its square root for the biased form only.
    assert theirs == pytest.approx(
        math.sqrt(correlation) if estimator == "biased" else correlation, rel=1e-10
    )


def test_distance_correlation(hyppo: Any, pair: tuple[torch.Tensor, torch.Tensor]) -> None:
    z, s = pair
    biased = hyppo.Dcorr(bias=True).statistic(z.numpy(), s.numpy())
    unbiased = hyppo.Dcorr(bias=False).statistic(z.numpy(), s.numpy())
    # The biased form is rooted there, the unbiased one is not.
    assert float(distance_correlation(z, s)) == pytest.approx(float(biased), rel=1e-8)
    ours = float(distance_correlation(z, s, squared=True, estimator="unbiased"))
    assert ours == pytest.approx(float(unbiased), rel=1e-8)


# causal-learn's kernel conditional independence test (KCI) ------------------------------------------------------------


@pytest.fixture(scope="module")
def causallearn() -> Any:
    with warnings.catch_warnings(action="ignore"):
        return pytest.importorskip("causallearn.utils.KCI.KCI")


@pytest.mark.parametrize(("law", "dependent"), [("linear", False), ("alike", True)])
def test_both_tests_decide_alike(causallearn: Any, law: str, dependent: bool) -> None:
    """On clear samples both reject, or neither does."""
    for seed in range(2):
        z, s, c = (part.unsqueeze(0) for part in _sample_given(law, 250, 10 + seed))
        ours = float(hsic_test(z[0], s[0], given=c[0], n_permutations=199).pvalue)
        theirs = _kci(z, s, c).item()
        assert (ours <= 0.05, theirs <= 0.05) == (dependent, dependent)


def test_the_gamma_fit_of_residual_products_is_theirs(causallearn: Any) -> None:
    """Mean tr(M) and variance 2 tr(M²) of the null distribution, on the residual matrices of KCI itself."""
    from frhsic_core.joint.independence.residual import _fitted

    z, s, c = _sample_given("linear", 60, 3)
    test = causallearn.KCI_CInd()
    kx, ky, kzx, kzy = test.kernel_matrix(z.numpy(), s.numpy(), c.numpy())
    statistic, kxr, kyr = test.KCI_V_statistic(kx, ky, kzx, kzy)
    products, _ = test.get_uuprod(kxr, kyr)
    shape, scale = test.get_kappa(products)
    matrix = torch.as_tensor(kxr * kyr)
    mean, variance = matrix.diagonal().sum().item(), 2 * matrix.square().sum().item()
    assert shape * scale == pytest.approx(mean, rel=1e-2)
    assert shape * scale**2 == pytest.approx(variance, rel=1e-2)
    from scipy import stats

    ours = _fitted(matrix.sum(), matrix, "gamma", 0.05)[0].item()
    assert ours == pytest.approx(1 - stats.gamma.cdf(statistic, shape, scale=scale), abs=1e-3)
