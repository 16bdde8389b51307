"""Every stored table is written by an experiment and has provenance; four experiments that only make such a table."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from frhsic_core.paper.experiments import bandwidth_policies, parity_gap_bounds, reference_check, training_step
from frhsic_core.paper.experiments.presets import PLANS, PRESETS, experiment_for
from frhsic_core.paper.runs import jobs
from frhsic_core.paper.runs.runner import run_experiment
from frhsic_core.paper.runs.store import Part, ResultStore
from frhsic_core.paper.runs.stored import book_folder, reference_sweep, stored_rows

FOUR = ("parity_gap_bounds", "bandwidth_policies", "reference_check", "training_step")
TABLES = sorted(path.stem for path in book_folder("results").iterdir() if path.suffix in (".csv", ".parquet"))


def test_every_stored_table_belongs_to_an_experiment() -> None:
    planned = {experiment_for(name, preset).name for name in PLANS for preset in PRESETS}
    assert set(TABLES) <= planned


@pytest.mark.parametrize("name", TABLES)
def test_every_stored_row_has_provenance(name: str) -> None:
    store = ResultStore(book_folder("results"), name)
    side = store.provenance()
    records = side["units" if store.holds_units else "stacks"]
    for record in records:
        assert {"code", "device"} <= set(side["environments"][record["environment"]])
    if store.holds_units:
        stored = store.read()["unit"].value_counts().to_dict()
        assert stored == {record["key"]: record["rows"] for record in records}


@pytest.mark.parametrize("name", FOUR)
def test_nothing_of_the_four_is_missing(name: str) -> None:
    experiment = experiment_for(name)
    assert experiment.missing(ResultStore(book_folder("results"), experiment.name).done()) == []


@pytest.mark.parametrize("name", FOUR)
def test_a_smoke_run_has_the_stored_columns(name: str, tmp_path: Path) -> None:
    smoke = experiment_for(name, "smoke")
    store = ResultStore(tmp_path, smoke.name)
    report = run_experiment(smoke, store, device="cpu", threads=1)
    assert not report.failed
    rows = store.read()
    stored = stored_rows(experiment_for(name).name)
    only_in_smoke = {"n", "epochs", "splits"}
    assert set(rows.columns) - only_in_smoke == set(stored.columns)
    numbers = stored.select_dtypes("number").columns.difference(["ridge"])
    assert rows[numbers].notna().all(axis=None)


@pytest.mark.data
def test_the_bounds_are_the_stored_ones() -> None:
    unit = {"dataset": "compas", "variant": "text", "rows": parity_gap_bounds.ROWS}
    (row,) = parity_gap_bounds.measure_unit(unit, "cpu")
    stored = stored_rows("parity_gap_bounds").set_index("dataset").loc["compas"]
    for name, value in row.items():
        assert value == pytest.approx(stored[name], rel=2e-5), name


@pytest.mark.parametrize(("shift", "agrees"), [(1.9, True), (-1.9, True), (2.1, False), (-2.1, False)])
def test_agreement_is_two_standard_deviations_of_the_authors(monkeypatch, shift: float, agrees: bool) -> None:
    authors = reference_sweep(dense=False)
    authors = authors[(authors["dataset"] == "adult") & (authors["method"] == "frhsic")].set_index("lam")

    def trained(job, *, device: str) -> Part:
        lams = [lam for lam in job.lams for _ in job.splits]
        columns = {
            name: [authors.loc[lam, name] + shift * authors.loc[lam, f"{name}_sd"] for lam in lams]
            for name in ("performance", "gdp_reference")
        }
        return Part(job, pd.DataFrame({"lam": lams, **columns}), {"seconds_training": 1.0})

    monkeypatch.setattr(jobs, "run_job", trained)
    rows = reference_check.measure_unit({"dataset": "adult", "variant": "reference", "method": "frhsic"}, "cpu")
    assert [row["run"] for row in rows] == ["frhsic λ=10", "frhsic λ=50"]
    assert {row[f"{name}_within_2sd"] for row in rows for name in ("acc", "gdp")} == {agrees}


def test_the_main_sweep_repeats_the_reference_check(monkeypatch) -> None:
    """The main sweep trained the same recipes in another run: its rows lead to the stored comparison."""
    main = stored_rows("main")

    def stored(job, *, device: str) -> Part:
        mine = main[(main["recipe"] == job.recipe.key) & main["lam"].isin(job.lams) & main["split"].isin(job.splits)]
        assert len(mine) == len(job.models)
        return Part(job, mine, {"seconds_training": 1.0})

    monkeypatch.setattr(jobs, "run_job", stored)
    check = stored_rows("reference_check").set_index("run")
    for unit in experiment_for("reference_check").jobs():
        for row in reference_check.measure_unit(dict(unit.settings), "cpu"):
            earlier = check.loc[row["run"]]
            for name in ("acc", "gdp"):
                assert row[f"{name}_within_2sd"] == earlier[f"{name}_within_2sd"]
                assert row[f"{name}_stored"] == earlier[f"{name}_stored"]
                assert row[name] == pytest.approx(earlier[name], abs=0.5 * earlier[f"{name}_stored_sd"])


def test_a_gpu_is_not_timed_on_the_cpu() -> None:
    with pytest.raises(ValueError, match="--device cuda"):
        training_step.measure_unit({"case": "unfair", "models": 25, "mode": "eager"}, "cpu")


def test_every_form_and_policy_is_a_stack_of_ten_splits() -> None:
    rows = stored_rows("bandwidth_policies")
    counts = rows.groupby(["form", "policy"])["split"].agg(tuple)
    assert set(counts) == {bandwidth_policies.SPLITS}
    assert set(rows["form"]) == set(bandwidth_policies.FORMS)
    assert set(rows["policy"]) == set(bandwidth_policies.POLICIES)
