"""Guards the sentences of the chapter on speed."""

from __future__ import annotations

import pandas as pd
import pytest

from frhsic_core.paper.experiments.cost.libraries import OURS, PENALTIES, TRACE
from frhsic_core.paper.experiments.cost.tables import ratios, smallest_seconds
from frhsic_core.paper.experiments.levels_and_coverage import FACTORS, LAWS, level_interval, rates
from frhsic_core.paper.runs.stored import stored_rows

MILLION = 1_000_000
GRADIENT = f"{OURS}, with gradient"


@pytest.fixture(scope="module")
def cpu() -> pd.DataFrame:
    return stored_rows("cost").query("device == 'cpu' and implementation.notna()")


@pytest.fixture(scope="module")
def gpu() -> pd.DataFrame:
    return stored_rows("cost").query("device == 'cuda' and implementation.notna()")


@pytest.fixture(scope="module")
def large(gpu) -> pd.DataFrame:
    kept = gpu[(gpu["part"] == "large") & (gpu["n"] == MILLION)]
    return kept.set_index(["precision", "implementation"])


def test_a_million_samples_on_a_gpu(large) -> None:
    assert large.loc[("tf32x3", OURS), "seconds"] < 1.0
    assert large.loc[("tf32x3", GRADIENT), "seconds"] == pytest.approx(2.5, abs=0.1)
    assert (large["mebibytes"] < 1024).all()


def test_the_share_of_the_limit(large) -> None:
    for precision, share in (("tf32x3", 0.5), ("tf32", 0.7)):
        limits = smallest_seconds(MILLION, precision=precision)
        assert max(limits, key=limits.__getitem__) == "exponentials"
        assert max(limits.values()) / large.loc[(precision, OURS), "seconds"] == pytest.approx(share, abs=0.03)


def test_the_trace_takes_many_times_as_long_and_the_factor_grows(cpu) -> None:
    found = ratios(cpu, "gradient").set_index(["n", "implementation"])["ratio"]
    assert found[1024, TRACE] > 8.0
    assert found[1024, TRACE] > found[256, TRACE] > 3.0
    values = ratios(cpu, "value").set_index(["n", "implementation"])["ratio"].xs(TRACE, level="implementation")
    assert values.is_monotonic_increasing
    assert len(values) > 1


def test_one_thread_and_medians_of_several_rounds(cpu) -> None:
    assert (cpu["threads"] == 1).all()
    assert (cpu.loc[cpu["part"] == "gradient", "repeats"] >= 3).all()


def test_other_libraries_take_longer_and_more_memory(cpu) -> None:
    found = ratios(cpu, "value")
    others = found[(found["n"] == 5_000) & (found["implementation"] != OURS)]
    own = found[found["implementation"] == OURS].set_index("n")["mebibytes"]
    assert {"hyppo", "dcor"} <= set(others["implementation"])
    assert (others["mebibytes"] > 2 * own[5_000]).all()
    assert set(found.loc[found["n"] == 20_000, "implementation"]) == {OURS}


def test_the_trace_on_a_gpu_takes_more_than_200_times_as_long(gpu) -> None:
    found = ratios(gpu, "gradient").set_index(["n", "implementation"])
    assert found.loc[(20_000, TRACE), "ratio"] > 200.0
    assert found.loc[(20_000, TRACE), "mebibytes"] / 1024 == pytest.approx(9.0, abs=0.5)


def test_the_forms_of_a_training_step(cpu, gpu) -> None:
    many = ratios(gpu, "training", to=next(iter(PENALTIES))).set_index(["d", "implementation"])["ratio"]
    whitened = ["FRHSIC, whitened", "FRHSIC, whitened, on Z and output"]
    assert (many[4] < 2.0).all()
    assert (many[50].drop(whitened) < 2.0).all()
    assert many.max() < 3.0
    # Whitening is the largest of the steps from no penalty to this form.
    order = ["no penalty", "FRHSIC, fixed bandwidth", "FRHSIC, bandwidth of every batch", "FRHSIC, standardized"]
    added = many[50][[*order, whitened[0]]].diff()
    assert added.idxmax() == whitened[0]
    one = ratios(cpu, "training", to=next(iter(PENALTIES)))
    assert {4, 50} == set(one["d"])
    assert (one["ratio"] < 4.0).all()


def test_the_time_of_a_test(cpu, gpu) -> None:
    found = gpu[(gpu["part"] == "test") & (gpu["implementation"] == OURS)].set_index("n")
    assert found.loc[100_000, "seconds"] == pytest.approx(3.0, abs=0.3)
    assert found.loc[MILLION, "seconds"] / 60 == pytest.approx(5.0, abs=0.5)
    assert (gpu.loc[gpu["part"] == "test", "mebibytes"] < 2048).all()
    one_thread = ratios(cpu, "test").set_index(["n", "implementation"])
    assert one_thread.loc[(5_000, "hyppo"), "ratio"] > 100.0
    assert (one_thread["permutations"] == 100).all()


@pytest.fixture(scope="module")
def tests_of_independence() -> pd.DataFrame:
    return stored_rows("levels_and_power")


def test_the_level_of_the_aggregated_test(tests_of_independence) -> None:
    low, high = level_interval(2000)
    levels = rates(tests_of_independence, "level")["aggregated"]
    assert levels.between(low, high).all()
    assert {(law, n) for law in LAWS for n in (50, 200, 1000, 2000)} == set(levels.dropna().index)


def test_the_power_of_the_aggregated_test(tests_of_independence) -> None:
    power = rates(tests_of_independence, "power")
    gap = power[["permutation", "dcor", "ksg"]].max(axis=1) - power["aggregated"]
    large, small = power.xs(500, level="n"), power.xs(200, level="n")
    assert len(large) == 8
    assert large["aggregated"].min() >= 0.97
    assert gap.xs(500, level="n").max() <= 0.01 + 1e-9
    assert (large.loc[large["permutation"] < 0.2, "aggregated"] > 0.9).all()
    assert 0.15 < gap.xs(200, level="n").max() <= 0.18
    single = small[["permutation", *(f"factor {f:g}" for f in FACTORS)]].max(axis=1)
    assert single["sin 4"] == pytest.approx(2 / 3, abs=0.02)


def test_the_tests_given_a_third_variable(tests_of_independence) -> None:
    levels, power = (rates(tests_of_independence, kind).xs(100, level="n") for kind in ("given level", "given power"))
    low, high = level_interval(1000)
    assert len(levels) == 7
    assert (levels["aggregated"] <= high).all()
    assert levels.loc["three columns", "aggregated"] < low
    assert levels.loc["sine", "kci"] > 0.2
    assert len(power) == 6
    assert (power["aggregated"] - power["kci"]).abs().max() <= 0.04
