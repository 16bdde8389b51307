"""Guards the sentences of the chapter on speed."""

from __future__ import annotations

import pandas as pd
import pytest

from frhsic_core.paper.experiments.how_fast import FORMS, OURS, TRACE, ratios, smallest_seconds
from frhsic_core.paper.runs.stored import stored_rows

MILLION = 1_000_000
GRADIENT = f"{OURS}, with gradient"


@pytest.fixture(scope="module")
def cpu() -> pd.DataFrame:
    return stored_rows("bench_cpu")


@pytest.fixture(scope="module")
def gpu() -> pd.DataFrame:
    return stored_rows("bench_gpu")


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


def test_the_trace_takes_more_than_eight_times_as_long(cpu) -> None:
    found = ratios(cpu, "gradient").set_index(["n", "implementation"])["ratio"]
    assert found[1024, TRACE] > 8.0
    assert found[1024, TRACE] > found[256, TRACE] > 3.0


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


def test_the_forms_of_a_training_step(cpu, gpu) -> None:
    many = ratios(gpu, "training", to=next(iter(FORMS))).set_index("implementation")["ratio"]
    assert (many.drop(["FRHSIC, whitened", "FRHSIC, whitened, on Z and output"]) < 2.0).all()
    assert many.max() < 3.0
    # What whitening adds, beside all that this form adds.
    assert (many["FRHSIC, whitened"] - many["FRHSIC, standardized"]) / (many["FRHSIC, whitened"] - 1.0) > 1 / 3
    one = ratios(cpu, "training", to=next(iter(FORMS)))
    assert {4, 50} == set(one["d"])
    assert (one["ratio"] < 4.0).all()
