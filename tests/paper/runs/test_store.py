"""The store: whole jobs or nothing, the same bytes in any order of writing, clear errors if it cannot write."""

from __future__ import annotations

import errno
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from frhsic_core import atomic_files
from frhsic_core.paper.runs.plan import Experiment, Recipe, Stack, Task
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
    line = loose[(loose["method"] == "frhsic") & (loose["lam"] == 100.0) & (loose["split"] == 43)].iloc[0]
    assert line["performance"] == np.float32(0.1 + 43)
    assert store.done() == tiny.keys()
    side = json.loads(store.sidecar.read_text())
    assert len(side["stacks"]) == 4
    assert len(side["environments"]) == 1
    assert side["stacks"][0]["environment"] == 0
    assert side["data"] == {"synthetic/text": {"source": "a law"}}


def test_order_and_repetition_of_writing_do_not_change_a_byte(tmp_path, tiny: Experiment, part_of) -> None:
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


def test_the_last_version_of_a_row_wins_and_is_recorded_once(tmp_path, tiny: Experiment, part_of) -> None:
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


def test_an_export_that_cannot_be_written_is_explained(tmp_path, tiny: Experiment, monkeypatch, part_of) -> None:
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
    with mine.claim(job) as held:
        assert held
        with yours.claim(job) as second:
            assert not second
        with yours.claim(other) as third:
            assert third
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
    keys = {recipe.key, replace(recipe, epochs=100).key, replace(recipe, settings=(("estimator", "unbiased"),)).key}
    keys.add(replace(recipe, task=Task("compas", "reference", "text")).key)
    assert len(keys) == 4
