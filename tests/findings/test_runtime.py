"""Guards the sentences of the chapter on run time."""

from __future__ import annotations

import pandas as pd
import pytest

from frhsic_core.paper.claims.stored import stored_answer
from frhsic_core.paper.experiments.cost import CASES, NOT_CAPTURED
from frhsic_core.paper.experiments.cost.tables import counted_exponent, loglog_exponent, seconds_table, speed_up
from frhsic_core.paper.runs.stored import stored_rows

PRINTED = 100.7 / 2.82
LOOP, FEW, PLAIN = "loop, all anchors", "loop, 32 anchors", "plain, centred"
PRODUCT, FEW_PRODUCT, LIBRARY = "library, all anchors", "library, 32 anchors", "library"
GPU, CAPTURED, CPU = ("cuda", "eager"), ("cuda", "captured"), ("cpu", "eager")


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return stored_rows("cost")


@pytest.fixture(scope="module")
def times(rows) -> pd.DataFrame:
    return seconds_table(rows)


@pytest.fixture(scope="module")
def medians(times) -> pd.Series:
    return times.set_index(["device", "mode", "method", "form", "n"])["median"].sort_index()


@pytest.fixture(scope="module")
def ratio(rows):
    """Return the median epoch of FREM in one form over that of FRHSIC in another."""

    def of(frem: str, frhsic: str, place: tuple[str, str], n: int = 20_000) -> float:
        device, mode = place
        return speed_up(rows, ("frem", frem), ("frhsic", frhsic), at={"n": n}, device=device, mode=mode)[0]

    return of


def test_the_forms_with_a_loop_are_not_captured(times) -> None:
    captured = times[(times["device"] == "cuda") & (times["mode"] == "captured")]
    possible = {case for case in CASES if case[1] not in NOT_CAPTURED}
    assert set(zip(captured["method"], captured["form"], strict=True)) == possible
    assert len(captured) == 9 * 6


def test_capturing_is_more_than_ten_times_as_fast(medians) -> None:
    captured = medians[CAPTURED].xs(20_000, level="n")
    eager = medians[GPU].xs(20_000, level="n").loc[captured.index]
    assert (eager > 10 * captured).all()


def test_captured_epochs_of_large_samples_hardly_vary(times) -> None:
    large = times[(times["mode"] == "captured") & (times["device"] == "cuda") & (times["n"] >= 5000)]
    assert (large["sd"] < 0.05 * large["mean"]).all()


def test_step_by_step_a_gpu_is_seldom_faster_than_one_cpu_thread(medians) -> None:
    eager = medians.xs("eager", level="mode").xs(20_000, level="n").unstack("device")
    assert (eager["cpu"] < 1.05 * eager["cuda"]).mean() > 0.7


def test_the_printed_ratio_is_reproduced_on_a_gpu_plain_against_plain(rows) -> None:
    low, high = speed_up(rows, ("frem", LOOP), ("frhsic", PLAIN), at={"n": 20_000}, device="cuda")[1]
    assert low < PRINTED < high


def test_the_authors_stored_run_has_a_smaller_ratio_and_so_has_one_thread(ratio) -> None:
    assert stored_answer("epochs_by_size", "n == 20000", "frem / frhsic").values["any"] < PRINTED
    assert ratio(LOOP, PLAIN, CPU) < 0.6 * PRINTED


def test_with_32_anchors_the_loop_costs_about_a_sixth(ratio) -> None:
    assert 5 < ratio(LOOP, PLAIN, GPU) / ratio(FEW, PLAIN, GPU) < 8
    assert 4.5 < ratio(LOOP, PLAIN, CPU) / ratio(FEW, PLAIN, CPU) < 7


def test_library_against_library_little_is_left_on_the_gpu(rows, ratio) -> None:
    assert 1 < ratio(PRODUCT, LIBRARY, GPU) < 1.15
    low, high = speed_up(rows, ("frem", PRODUCT), ("frhsic", LIBRARY), at={"n": 20_000}, device="cuda")[1]
    assert low < 1 < high
    assert 1.1 < ratio(PRODUCT, LIBRARY, CAPTURED) < 1.25


def test_library_against_library_frem_takes_about_twice_as_long_on_one_thread(ratio) -> None:
    assert 1.7 < ratio(PRODUCT, LIBRARY, CPU) < 2.3
    assert 1 < ratio(FEW_PRODUCT, LIBRARY, CPU) < 1.25


@pytest.mark.parametrize("place", [GPU, CAPTURED, CPU])
def test_plain_frhsic_takes_longer_than_reg_gdp(medians, place: tuple[str, str]) -> None:
    assert medians[(*place, "frhsic", PLAIN, 20_000)] > 1.15 * medians[(*place, "reg_gdp", LIBRARY, 20_000)]


def test_in_library_form_reg_gdp_and_frhsic_take_about_as_long_as_each_other(medians) -> None:
    def over_reg_gdp(place: tuple[str, str]) -> float:
        return medians[(*place, "frhsic", LIBRARY, 20_000)] / medians[(*place, "reg_gdp", LIBRARY, 20_000)]

    assert over_reg_gdp(GPU) == pytest.approx(1, abs=0.06)
    assert over_reg_gdp(CPU) == pytest.approx(1, abs=0.06)
    assert 1.1 < over_reg_gdp(CAPTURED) < 1.25  # captured, Reg-GDP is a little faster


@pytest.mark.parametrize("place", [GPU, CAPTURED, CPU])
def test_seconds_per_epoch_grow_like_n_or_slower(medians, place: tuple[str, str]) -> None:
    forms = [("frem", LOOP), ("frhsic", PLAIN), ("frem", PRODUCT), ("frhsic", LIBRARY)]
    timed = [form for form in forms if place != CAPTURED or form[1] not in NOT_CAPTURED]
    assert timed
    for method, form in timed:
        part = medians[(*place, method, form)].sort_index()
        slope, _ = loglog_exponent(part.index.tolist(), part.tolist())
        assert slope < 0.8 if place == CAPTURED else 0.75 < slope < 1.05


def test_the_ratio_hardly_moves_with_n_on_the_gpu(ratio) -> None:
    for frem, frhsic, place in ((LOOP, PLAIN, GPU), (PRODUCT, LIBRARY, GPU), (PRODUCT, LIBRARY, CAPTURED)):
        assert 0.8 < ratio(frem, frhsic, place) / ratio(frem, frhsic, place, 500) < 1.1


def test_the_ratio_grows_by_more_than_half_for_plain_code_on_the_cpu(ratio) -> None:
    assert 1.4 < ratio(LOOP, PLAIN, CPU) / ratio(LOOP, PLAIN, CPU, 500) < 1.9
    assert 1.1 < ratio(PRODUCT, LIBRARY, CPU) / ratio(PRODUCT, LIBRARY, CPU, 500) < 1.6


@pytest.mark.parametrize(
    ("form", "order"), [("hsic", 2), ("hsic_trace", 3), ("eipm_loop", 3), ("eipm_product", 3), ("eipm_product_32", 2)]
)
def test_the_counts_have_the_orders_of_the_paper(rows, form: str, order: int) -> None:
    assert counted_exponent(rows, form) == pytest.approx(order, abs=0.05)
