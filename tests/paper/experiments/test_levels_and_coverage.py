"""Levels, power and coverage: rejections and coverage are counted; test_smoke.py has the record of the samples."""

from __future__ import annotations

import zlib

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from frhsic_core.joint import distance_correlation, hsic_test
from frhsic_core.kernels import Gaussian, median_bandwidth
from frhsic_core.paper.experiments import levels_and_coverage as study
from frhsic_core.paper.runs.stored import stored_rows


def test_distance_correlation_has_the_p_value_of_its_own_permutations() -> None:
    z, s = study._sample("linear", 30, 1)
    found = study._pvalues("dcor", z[None], s[None], 199, torch.Generator().manual_seed(2))
    generator = torch.Generator().manual_seed(3)
    null = torch.stack([distance_correlation(z, s[torch.randperm(30, generator=generator)]) for _ in range(400)])
    expected = (null >= distance_correlation(z, s)).double().mean()
    assert found.item() == pytest.approx(expected.item(), abs=0.1)


def test_information_ranks_the_sample_among_its_permutations() -> None:
    z = torch.linspace(-1, 1, 60, dtype=torch.float64).reshape(1, 60, 1)
    found = study._information(z, z**2, 39, torch.Generator().manual_seed(0))
    assert found.tolist() == [1 / 40]
    assert study._information(z, torch.zeros_like(z), 39, torch.Generator().manual_seed(0)).item() > 0.02


def test_units_share_their_samples_and_count_rejections(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def fake(test, z, s, permutations, generator):
        seen.append(z.clone())
        return torch.tensor([0.05, 0.051, 0.049, 1.0])[: len(z)]

    monkeypatch.setattr(study, "_pvalues", fake)
    unit = {"kind": "level", "law": "normal", "n": 20, "draws": 4, "permutations": 19}
    rows = [study.measure_unit_levels_and_power(unit | {"test": test}, "cpu") for test in ("gamma", "aggregated")]
    assert rows[0] == [{"rejected": 2, "rate": 0.5}]
    assert torch.equal(seen[0], seen[1])


def test_one_kernel_for_each_pair_of_bandwidths_is_the_permutation_test() -> None:
    """The same generator gives the same permutations, so the rejections of both halves are equal, pair by pair."""
    unit = {"kind": "power", "law": "sin 2", "n": 200, "test": "one kernel", "draws": 4, "permutations": 39}
    rows = pd.DataFrame(study.measure_unit_levels_and_power(unit, "cpu")).set_index(["width_z", "width_s"])
    assert len(rows) == len(study.WIDTHS) ** 2
    samples = [study._sample("sin 2", 200, zlib.crc32(b"power sin 2 200") + draw) for draw in range(4)]
    for pair in ((1.0, 1.0), (0.25, 0.5), (8.0, 0.0625)):
        generator = torch.Generator().manual_seed(1)
        found = []
        for z, s in samples:
            kernels = [Gaussian(width * median_bandwidth(x)) for width, x in zip(pair, (z, s), strict=True)]
            options = {"method": "permutation", "n_permutations": 39, "random_state": generator}
            found.append(hsic_test(z, s, kernel_z=kernels[0], kernel_s=kernels[1], **options).pvalue <= study.ALPHA)
        assert rows.loc[pair, ["rejected", "elsewhere"]].tolist() == [sum(found[:2]), sum(found[2:])]
    assert 0 < rows["rejected"].sum() < 2 * len(rows)


def test_one_combination_alone_covers_too_rarely_beyond_chance() -> None:
    rows = stored_rows("audit_coverage").set_index(["law", "shape", "score", "n"])
    assert set(rows.index.get_level_values("n")) == {200, 2000, 20_000}
    chance = stats.binom.cdf(rows["band"], rows["draws"], study.COVERAGE) * len(rows)
    assert list(rows.index[chance < 0.05]) == [("log-normal", "wave", "probability", 200)]


@pytest.mark.parametrize("groups", [2, 30])
def test_the_truth_of_the_bounds_is_the_mean_of_many_draws(groups: int) -> None:
    """With 200,000 rows the estimate is within four standard errors, of at most .5/√n each, plus its upward bias."""
    unit = {"measure": "gdp", "law": "slope", "score": "hard", "groups": groups, "n": 200_000}
    f, s = study.bound_sample(unit, np.random.default_rng(0))
    means = pd.Series(f).groupby(s).transform("mean")
    bias = 0.5 * np.sqrt(groups / 200_000)
    assert np.abs(means - f.mean()).mean() == pytest.approx(study.bound_truth(unit), abs=2 / np.sqrt(200_000) + bias)
