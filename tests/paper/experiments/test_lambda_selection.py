"""The choice of λ: each null law against another computation, each rule against sweeps where the answer is known."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from frhsic_core.joint import hsic_test
from frhsic_core.joint.contraction import center
from frhsic_core.kernels import Gaussian, median_bandwidth
from frhsic_core.paper.experiments.lambda_selection import (
    accepted,
    chosen_elsewhere,
    permuted_statistics,
    released_moments,
    released_threshold,
    selected,
    summary_of,
    thresholds,
)


def pair(n: int, d: int, *, draws: int = 3, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(draws, n, d, generator=generator, dtype=torch.float64)
    return z, torch.rand(draws, n, generator=generator, dtype=torch.float64)


def test_released_moments_are_sums_over_pairs_of_different_rows() -> None:
    z, s = pair(9, 2)
    k, l = Gaussian(1.0)(z), Gaussian(0.5)(s.unsqueeze(-1))
    mean, variance = released_moments(k, l)
    n, pairs = 9, list(permutations(range(9), 2))
    for b in range(3):
        sums = [
            sum(float(g[b, i, j]) ** power for i, j in pairs) for g in (k, l) for power in (1, 2)
        ]
        assert float(mean[b]) == pytest.approx(sums[0] * sums[2] / (n * 8 * 7 * 6))
        assert float(variance[b]) == pytest.approx(2 * sums[1] * sums[3] / (n * 8 * 7 * 6 * 5 * 4))
    law = stats.gamma(a=(mean**2 / variance).numpy(), scale=(variance / mean).numpy())
    assert released_threshold(k, l).numpy() == pytest.approx(law.ppf(0.95), rel=1e-9)


def test_shuffled_statistics_are_n_hsic_of_shuffled_rows() -> None:
    z, s = pair(30, 2)
    k, l = Gaussian(1.0)(z), Gaussian(0.3)(s.unsqueeze(-1))
    found = permuted_statistics(
        center(k), center(l), permutations=4, generator=torch.Generator().manual_seed(7)
    )
    generator = torch.Generator().manual_seed(7)
    for b in range(4):
        order = torch.randperm(30, generator=generator)
        direct = hsic_test(z, s[:, order], kernel_z=Gaussian(1.0), kernel_s=Gaussian(0.3)).statistic
        assert found[:, b].numpy() == pytest.approx(direct.numpy(), rel=1e-9)


def test_thresholds_are_those_of_the_library_at_the_bandwidths_of_the_first_rows() -> None:
    z, s = pair(520, 3, draws=1)
    found = thresholds(z, s, permutations=39)
    kernel_z, kernel_s = (Gaussian(median_bandwidth(v[:, :500])) for v in (z, s.unsqueeze(-1)))
    direct = hsic_test(z, s, method="gamma", kernel_z=kernel_z, kernel_s=kernel_s)
    assert found["statistic"].numpy() == pytest.approx(direct.statistic.numpy(), rel=1e-9)
    assert found["threshold_gamma"].numpy() == pytest.approx(direct.threshold.numpy(), rel=1e-9)
    # 39 permutations: the critical value is the second largest, α(B + 1) = 2.
    null = permuted_statistics(
        center(kernel_z(z)), center(kernel_s(s.unsqueeze(-1))), permutations=39,
        generator=torch.Generator().manual_seed(0),
    )  # fmt: skip
    assert found["threshold_permutation"].numpy() == pytest.approx(
        null.sort(-1).values[:, -2].numpy(), rel=1e-9
    )
    above = (null > found["threshold_released"].unsqueeze(-1)).double().mean(-1)
    assert found["level_released"].numpy() == pytest.approx(above.numpy())


def test_a_constant_representation_is_never_rejected() -> None:
    z, s = torch.zeros(1, 60, 4), torch.rand(1, 60, generator=torch.Generator().manual_seed(0))
    found = thresholds(z, s, permutations=19)
    for test in ("released", "gamma", "permutation"):
        assert bool((found["statistic"] <= found[f"threshold_{test}"]).all())


LAMS = (0.1, 1.0, 10.0)


def sweep_rows(*, splits: int = 2) -> pd.DataFrame:
    """Return rows whose statistic falls below 1 at λ = 1 on even splits, never on odd ones; λ = 10 costs 5 %."""
    lines = []
    for split in range(splits):
        common = {
            "dataset": "adult",
            "task": "classification",
            "split": split,
            "constant": 0.6,
            "nonlinear_r2": 0.2,
        }
        common |= {"validation_rows": 100.0, "threshold_released": 1.0, "gdp_sample": 0.1}
        lines.append(common | {"method": "unfair", "lam": 0.0, "performance": 0.8, "gdp_reference": 1.0,
                               "statistic": 9.0, "validation_performance": 0.8,
                               "validation_gdp_reference": 1.0})  # fmt: skip
        for lam, accuracy, gdp in zip(LAMS, (0.8, 0.796, 0.76), (0.9, 0.5, 0.1), strict=True):
            statistic = 2.0 if split % 2 else {0.1: 2.0, 1.0: 0.5, 10.0: 3.0}[lam]
            lines.append(common | {"method": "frhsic", "lam": lam, "performance": accuracy, "gdp_reference": gdp,
                                   "statistic": statistic, "validation_performance": accuracy,
                                   "validation_gdp_reference": gdp})  # fmt: skip
    return pd.DataFrame(lines)


def test_the_rule_takes_the_smallest_lambda_accepted_or_the_largest_of_all() -> None:
    table = selected(sweep_rows(), test="released").set_index("split")
    assert table["lam"].to_dict() == {0: 1.0, 1: 10.0}
    assert table["satisfied"].to_dict() == {0: True, 1: False}
    assert table["kept"].to_dict() == {0: True, 1: False}
    assert not table["constant"].any()
    # HSIC = statistic/100: below .025 everywhere, so the practical rule takes the first.
    practical = selected(sweep_rows(), test="released", epsilon=0.025)
    assert practical["lam"].tolist() == [0.1, 0.1]
    assert accepted(sweep_rows(), test="released", epsilon=0.006).sum() == 1


def test_a_split_without_a_selection_is_counted_apart() -> None:
    table = selected(sweep_rows(splits=4), test="released")
    found = summary_of(table)
    # The odd splits select nothing; their fallback, λ = 10, must not enter the means.
    assert (found["selected"], found["none"], found["found"], found["kept"]) == ("1 ×2", 2, 2, 2)
    assert (
        found["gdp"]
        == table.loc[table["lam"] == 1.0, "gdp_reference"].mean()
        != table["gdp_reference"].mean()
    )
    nothing = summary_of(table[~table["satisfied"]])
    assert (nothing["selected"], nothing["none"], nothing["kept"]) == ("–", 2, 0)
    assert np.isnan(nothing["gdp"])


def test_choosing_and_reporting_on_one_part_is_the_ordinary_matched_point() -> None:
    rng = np.random.default_rng(0)
    rows = sweep_rows(splits=4)
    swept = rows["method"] != "unfair"
    for column in ("performance", "gdp_reference"):
        rows.loc[swept, column] += 0.02 * rng.normal(size=int(swept.sum()))
        rows[f"validation_{column}"] = rows[column]
    line = chosen_elsewhere(rows).iloc[0]
    assert (line["outside"], line["same"]) == (0.0, 1.0)


def test_a_misleading_validation_part_shows() -> None:
    """On the validation part the largest λ looks free and fair; on the test part it loses accuracy."""
    rows = sweep_rows()
    last = rows["lam"] == max(LAMS)
    rows.loc[last, ["validation_performance", "validation_gdp_reference"]] = (0.9, 0.0)
    line = chosen_elsewhere(rows).iloc[0]
    assert (line["outside"], line["same"]) == (1.0, 0.0)
