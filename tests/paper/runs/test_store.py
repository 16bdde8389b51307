"""The store: whole jobs or nothing, the same bytes in any order of writing, clear errors if it cannot write."""

from __future__ import annotations

import errno
import json
import sys
import types
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from frhsic_core import _atomic_files as atomic_files
from frhsic_core.paper.runs.jobs import run_job
from frhsic_core.paper.runs.plan import Experiment, Recipe, Stack, Task, units_of
from frhsic_core.paper.runs.runner import run_experiment
from frhsic_core.paper.runs.store import ResultStore, StoreError


def test_rows_come_back_as_written(tmp_path, tiny: Experiment, part_of) -> None:
    store = ResultStore(tmp_path, "tiny")
    jobs = tiny.jobs
    for job in jobs:
        store.write(part_of(job))
    loose = store.read()
    store.compact()
    pd.testing.assert_frame_equal(store.read(), loose)
    assert len(loose) == 14
    assert loose["performance"].dtype == np.float32
    assert loose["lam"].dtype == np.float64
    assert set(loose["lam"]) == {0.0, 1.0, 100.0}
    line = loose[
        (loose["method"] == "frhsic") & (loose["lam"] == 100.0) & (loose["split"] == 43)
    ].iloc[0]
    assert line["performance"] == np.float32(0.1 + 43)
    assert store.done() == tiny.keys()
    side = json.loads(store.sidecar.read_text())
    assert len(side["stacks"]) == 4
    assert len(side["environments"]) == 1
    assert side["stacks"][0]["environment"] == 0
    assert side["data"] == {"synthetic/text": {"source": "a law"}}


def test_order_and_repetition_of_writing_do_not_change_a_byte(
    tmp_path, tiny: Experiment, part_of
) -> None:
    jobs = tiny.jobs
    one, two = ResultStore(tmp_path / "one", "tiny"), ResultStore(tmp_path / "two", "tiny")
    for job in jobs:
        one.write(part_of(job))
    one.compact()
    for job in reversed(jobs[1:]):
        two.write(part_of(job))
    two.compact()
    for job in jobs[:2]:
        two.write(part_of(job))
    two.compact()
    assert one.table.read_bytes() == two.table.read_bytes()
    before = two.table.stat().st_mtime_ns
    two.compact()
    assert two.table.stat().st_mtime_ns == before


def test_the_last_version_of_a_row_wins_and_is_recorded_once(
    tmp_path, tiny: Experiment, part_of
) -> None:
    store = ResultStore(tmp_path, "tiny")
    job = tiny.jobs[1]
    first = part_of(job)
    second = part_of(job, shift=0.5)
    store.write(first)
    store.compact()
    store.write(second)
    for _ in range(2):
        found = store.read().sort_values(["lam", "split"])["performance"].tolist()
        assert found == second.rows.sort_values(["lam", "split"])["performance"].tolist()
        assert [record["job"] for record in store.provenance()["stacks"]] == [job.key]
        store.compact()


def test_an_export_that_cannot_be_written_is_explained(
    tmp_path, tiny: Experiment, monkeypatch, part_of
) -> None:
    store = ResultStore(tmp_path, "tiny")
    first = tiny.jobs[0]
    store.write(part_of(first))

    def refuse(*args, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(atomic_files.os, "fsync", refuse)
    with pytest.raises(StoreError, match=r"No space left.*--store.*are kept") as caught:
        store.compact()
    assert caught.value.errno == errno.ENOSPC
    monkeypatch.undo()
    assert store.done() == set(first.keys)
    assert not list(tmp_path.glob(".*")), "an unfinished file was left"


def test_a_claim_is_held_by_one_and_given_back(tmp_path, tiny: Experiment) -> None:
    mine, yours = ResultStore(tmp_path, "tiny"), ResultStore(tmp_path, "tiny")
    job, other = tiny.jobs[:2]
    with mine.claim(job) as held, yours.claim(job) as second, yours.claim(other) as third:
        assert (held, second, third) == (True, False, True)
    with yours.claim(job) as again:
        assert again


def test_missing_stacks_are_exactly_what_is_lacking(tmp_path, tiny: Experiment, part_of) -> None:
    store = ResultStore(tmp_path, "tiny")
    for job in tiny.jobs:
        store.write(part_of(replace(job, splits=(42,))))
    left = tiny.missing(store.done())
    assert [job.splits for job in left] == [(43,)] * 4
    frhsic = next(job for job in tiny.jobs if job.recipe.method == "frhsic")
    store.write(part_of(Stack(frhsic.recipe, (100.0,), (43,))))
    left = [job for job in tiny.missing(store.done()) if job.recipe.method == "frhsic"]
    assert [(job.lams, job.splits) for job in left] == [((1.0,), (43,))]
    assert tiny.missing(tiny.keys()) == []


def test_a_recipe_that_differs_has_rows_of_its_own() -> None:
    recipe = Recipe(Task("compas", "text", "text"), "frhsic")
    keys = {
        recipe.key,
        replace(recipe, epochs=100).key,
        replace(recipe, settings=(("estimator", "unbiased"),)).key,
    }
    keys.add(replace(recipe, task=Task("compas", "reference", "text")).key)
    assert len(keys) == 4


# A study: units are measured once, survive kills and compaction, and are read back as they were -----------------------


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
