"""causal-learn's kernel conditional independence test (KCI) as an independent reference; skipped without it."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch

from frhsic_core import hsic_test
from frhsic_core.paper.experiments.levels_and_coverage import _kci, _sample_given


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
