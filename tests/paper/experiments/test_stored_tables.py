"""Every stored table is written by an experiment, has provenance, and lacks nothing of the plan of a study."""

from __future__ import annotations

from pathlib import Path

import pytest

from frhsic_core.paper.experiments import variants
from frhsic_core.paper.experiments.presets import PLANS, PRESETS, experiment_for
from frhsic_core.paper.runs.runner import run_experiment
from frhsic_core.paper.runs.store import ResultStore
from frhsic_core.paper.runs.stored import book_folder, stored_rows

TABLES = sorted(path.stem for path in book_folder("results").iterdir() if path.suffix in (".csv", ".parquet"))


def test_every_stored_table_belongs_to_an_experiment() -> None:
    planned = {experiment_for(name, preset).name for name in PLANS for preset in PRESETS}
    assert set(TABLES) <= planned


@pytest.mark.parametrize("name", TABLES)
def test_every_stored_row_has_provenance(name: str) -> None:
    store = ResultStore(book_folder("results"), name)
    side = store.provenance()
    study = "study" in side
    records = side["units" if study else "stacks"]
    for record in records:
        assert {"code", "device"} <= set(side["environments"][record["environment"]])
    if study:
        stored = store.read()["unit"].value_counts().to_dict()
        assert stored == {record["key"]: record["rows"] for record in records}


@pytest.mark.parametrize("name", ["bandwidth_policies"])
def test_a_smoke_run_has_the_stored_columns(name: str, tmp_path: Path) -> None:
    smoke = experiment_for(name, "smoke")
    store = ResultStore(tmp_path, smoke.name)
    report = run_experiment(smoke, store, device="cpu")
    assert not report.failed
    rows = store.read()
    stored = stored_rows(experiment_for(name).name)
    measured = {"split", "ratio", "peak_ratio", "accuracy", "probe_r2"}
    assert measured < set(rows.columns) <= set(stored.columns) | {"n", "epochs", "splits"}
    assert rows[sorted(measured)].notna().all(axis=None)


def test_every_form_and_policy_is_a_stack_of_ten_splits() -> None:
    rows = stored_rows("bandwidth_policies")
    counts = rows.groupby(["form", "policy"])["split"].agg(tuple)
    assert set(counts) == {variants.POLICY_SPLITS}
    assert set(rows["form"]) == set(variants.PENALTIES)
    assert set(rows["policy"]) == set(variants.POLICIES)
