"""A study: units are measured once, survive kills and compaction, and are read back as they were."""

from __future__ import annotations

import sys
import types

import pytest

from frhsic_core.paper.runs.jobs import run_job
from frhsic_core.paper.runs.plan import Experiment, units_of
from frhsic_core.paper.runs.runner import run_experiment
from frhsic_core.paper.runs.store import ResultStore

STUDY = Experiment("squares", units_of("squares_for_tests", n=(3, 1, 2), kind="whole"))


@pytest.fixture(autouse=True)
def squares(monkeypatch):
    """Install a module that measures squares and counts how often it is asked."""
    module = types.ModuleType("frhsic_core.paper.experiments.squares_for_tests")
    module.asked = []

    def measure_unit(unit: dict, device: str) -> list[dict]:
        module.asked.append(unit["n"])
        if unit["n"] in getattr(module, "broken", ()):
            raise FileNotFoundError("no such file")
        return [{"repeat": i, "square": unit["n"] ** 2 + i / 8} for i in range(2)]

    module.measure_unit = measure_unit
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


def test_units_are_measured_once_and_read_in_the_order_of_the_study(tmp_path, squares) -> None:
    store = ResultStore(tmp_path, "squares")
    report = run_experiment(STUDY, store, device="cpu")
    assert (report.jobs, report.rows, report.left) == (3, 6, 0)
    before = store.read().sort_values(["n", "repeat"]).reset_index(drop=True)
    store.compact(STUDY)
    rows = store.read()
    assert rows["n"].tolist() == [3, 3, 1, 1, 2, 2]
    assert rows["square"].tolist() == [9, 9.125, 1, 1.125, 4, 4.125]
    assert rows.sort_values(["n", "repeat"]).reset_index(drop=True).equals(before[rows.columns])
    assert run_experiment(STUDY, store, device="cpu").jobs == 0
    assert squares.asked == [3, 1, 2]
    assert {unit["rows"] for unit in store.provenance()["units"]} == {2}


def test_a_broken_unit_costs_only_itself_and_is_tried_again(tmp_path, squares) -> None:
    store = ResultStore(tmp_path, "squares")
    squares.broken = (1,)
    report = run_experiment(STUDY, store, device="cpu")
    assert (report.left, report.stopped) == (1, "")
    assert "no such file" in report.failed[0]
    store.compact(STUDY)
    squares.broken = ()
    assert run_experiment(STUDY, store, device="cpu").left == 0
    store.compact(STUDY)
    assert store.read()["n"].tolist() == [3, 3, 1, 1, 2, 2]


def test_units_that_are_not_planned_any_more_come_last(tmp_path) -> None:
    store = ResultStore(tmp_path, "squares")
    run_experiment(STUDY, store, device="cpu")
    store.compact(Experiment("squares", units_of("squares_for_tests", n=(2, 3), kind="whole")))
    assert store.read()["n"].tolist() == [2, 2, 3, 3, 1, 1]
    assert [record["unit"]["n"] for record in store.provenance()["units"]] == [2, 3, 1]


def test_a_unit_that_is_measured_again_replaces_its_rows(tmp_path, squares) -> None:
    store = ResultStore(tmp_path, "squares")
    run_experiment(STUDY, store, device="cpu")
    store.compact(STUDY)
    first = STUDY.jobs[0]
    store.write(run_job(first, device="cpu"))
    for _ in range(2):
        assert sorted(store.read()["n"]) == [1, 1, 2, 2, 3, 3]
        assert len(store.provenance()["units"]) == 3
        store.compact(STUDY)
