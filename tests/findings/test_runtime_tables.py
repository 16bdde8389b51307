"""What the chapter ``runtime`` states about the stored results of its tables."""

from __future__ import annotations

import pytest

from frhsic_core.paper.experiments import runtime
from frhsic_core.paper.experiments.runtime.plain_forms import (
    FORMS,
)
from frhsic_core.paper.experiments.runtime.tables import (
    cost_exponents,
    counted_exponent,
    loglog_exponent,
    seconds_table,
    speed_up,
)
from frhsic_core.paper.runs.stored import stored_rows


def test_stored_times_say_what_the_chapter_says() -> None:
    rows = stored_rows("runtime")
    assert not rows.empty
    epochs = rows[rows["part"] == "epoch"]
    table = seconds_table(rows)
    for device in epochs["device"].unique():
        plain = ("frhsic", "plain, centred")
        loop, _ = speed_up(rows, ("frem", "loop, all anchors"), plain, at={"n": 20_000}, device=device)
        few, _ = speed_up(rows, ("frem", "loop, 32 anchors"), plain, at={"n": 20_000}, device=device)
        product, _ = speed_up(rows, ("frem", "library, all anchors"), plain, at={"n": 20_000}, device=device)
        assert loop > 5
        assert few < loop / 3
        assert product < min(2.5, loop / 3)
        mine = table[(table["device"] == device) & (table["form"] == "loop, all anchors") & (table["mode"] == "eager")]
        slope, _ = loglog_exponent(mine["n"].tolist(), mine["median"].tolist())
        assert 0.8 < slope < 1.2
    for form, order in (("hsic", 2), ("hsic_trace", 3), ("eipm_loop", 3), ("eipm_product", 3), ("eipm_product_32", 2)):
        assert counted_exponent(rows, form) == pytest.approx(order, abs=0.05)
    full = cost_exponents(rows).set_index(["device", "form"])
    assert set(full.index) == {(device, form) for device in ("cuda", "cpu") for form in FORMS}
    # On a GPU the loop is so many rounds of launches; on a CPU it is work.
    assert full.loc[("cuda", "eipm_loop"), "seconds"] < 1.3
    assert full.loc[("cpu", "eipm_loop"), "seconds"] > 2.5


def test_stored_captured_times_are_like_with_like() -> None:
    rows = stored_rows("runtime")
    captured = rows[rows["mode"] == "captured"]
    assert set(captured["device"]) == {"cuda"}
    assert not set(captured["form"]) & set(runtime.NOT_CAPTURED)
    possible = {case for case in runtime.CASES if case[1] not in runtime.NOT_CAPTURED}
    assert set(map(tuple, captured.loc[captured["part"] == "epoch", ["method", "form"]].to_numpy())) == possible
    places = (("cuda", "eager", 0.9, 1.3), ("cuda", "captured", 1.0, 1.3), ("cpu", "eager", 1.5, 2.5))
    for device, mode, low, high in places:
        value, _ = speed_up(
            rows, ("frem", "library, all anchors"), ("frhsic", "library"), at={"n": 20_000}, device=device, mode=mode
        )
        assert low < value < high
