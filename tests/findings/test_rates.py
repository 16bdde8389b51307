"""Guards the checked sentences of the chapter on rates."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from frhsic_core.paper.experiments.convergence import scaled_errors
from frhsic_core.paper.runs.stored import stored_rows
from frhsic_core.paper.statements.rates import KERNEL, LAW, rmse_slope


@pytest.mark.parametrize("rate", [-1 / 2, -2 / 5])
def test_the_printed_slope_is_within_two_deviations_of_both_rates(rate: float) -> None:
    studies = stored_rows("convergence")["slope_eipm"].dropna()
    assert abs(-0.44 - rate) < 2 * studies.std()


@pytest.fixture(scope="module")
def rules() -> pd.DataFrame:
    rows = stored_rows("convergence")
    return rows[rows["part"] == "bandwidth"]


@pytest.mark.parametrize("name", ["eipm_third", "eipm_n"])
def test_off_the_null_each_rule_has_its_own_rate(rules: pd.DataFrame, name: str) -> None:
    """√n·RMSE at n^(−1/3) and n^(2/5)·RMSE at n^(−1/5) stay within a tenth of their mean."""
    found = scaled_errors(rules[rules["rho"] == 0.5], LAW.expected_mmd(KERNEL))[name]
    values = np.array(list(found.values()))
    assert list(found) == [100, 200, 400, 800, 1600, 3200]
    assert np.abs(values / values.mean() - 1).max() < 0.1


def test_the_faster_rule_has_the_smaller_error_from_a_few_thousand_samples(rules: pd.DataFrame) -> None:
    last = rules[(rules["rho"] == 0.5) & (rules["n"] == 3200)]
    rmse = {name: np.sqrt(((last[name] - LAW.expected_mmd(KERNEL)) ** 2).mean()) for name in ("eipm_third", "eipm_n")}
    assert rmse["eipm_third"] < rmse["eipm_n"]


@pytest.mark.parametrize(("name", "rate"), [("eipm_n", -0.4), ("eipm_third", -1 / 3)])
def test_at_independence_the_faster_rule_is_the_slower_one(rules: pd.DataFrame, name: str, rate: float) -> None:
    null = rules[rules["rho"] == 0.0].pivot(index="n", columns="replicate", values=name)
    slope, _ = rmse_slope(null.index.to_numpy(float), null.to_numpy())
    assert slope == pytest.approx(rate, abs=0.05)
