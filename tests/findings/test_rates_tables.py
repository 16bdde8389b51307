"""What the chapter ``rates`` states about the stored results of its tables."""

from __future__ import annotations

import numpy as np
import pytest

from frhsic_core.kernels import Gaussian
from frhsic_core.laws import GaussianPair
from frhsic_core.paper.experiments.convergence import slope_interval
from frhsic_core.paper.runs.stored import stored_rows

LAW = GaussianPair(0.5)
KERNEL = Gaussian(1.0)


def test_stored_estimates_converge_where_the_chapter_says() -> None:
    rows = stored_rows("convergence")
    assert not rows.empty
    exact = rows[rows["part"] == "exact"]
    sizes = sorted(exact["n"].unique())
    assert sizes[-1] == 20_000

    def slope(name: str, target: float) -> tuple[float, tuple[float, float]]:
        return slope_interval(sizes, [(exact.loc[exact["n"] == n, name] - target).abs().to_numpy() for n in sizes])

    limit, truth = LAW.eipm_limit(KERNEL, bandwidth=1.0), LAW.expected_mmd(KERNEL)
    for name, target in (("hsic_unbiased", LAW.hsic(KERNEL, KERNEL)), ("eipm_1", limit)):
        low, high = slope(name, target)[1]
        assert low - 0.03 < -0.5 < high + 0.03
    assert slope("eipm_1", truth)[0] > -0.1
    # With γ = n^(−1/5) the rate is that of the smoothing bias, and told from the root.
    low, high = slope("eipm_n", truth)[1]
    assert -0.5 < low < -0.4 < high
    last = exact[exact["n"] == max(sizes)]
    assert last["eipm_1"].mean() == pytest.approx(limit, abs=4 * last["eipm_1"].std() / np.sqrt(len(last)))
    printed = rows[rows["part"] == "printed"]
    assert len(printed) == 1000
    # One study of 20 replications cannot tell −1/2 from −2/5.
    assert printed["slope_eipm"].quantile(0.975) > -0.4 > -0.5 > printed["slope_eipm"].quantile(0.025)
