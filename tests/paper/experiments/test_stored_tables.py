"""Every stored table is written by an experiment, has provenance, and lacks nothing of the plan of a study."""

from __future__ import annotations

import pytest

from frhsic_core.paper.experiments import PLANS
from frhsic_core.paper.runs.store import ResultStore
from frhsic_core.paper.runs.stored import book_folder

TABLES = sorted(path.stem for path in book_folder("results").iterdir() if path.suffix in (".csv", ".parquet"))


def test_every_stored_table_belongs_to_an_experiment() -> None:
    assert set(TABLES) == {plan().name for plan in PLANS.values()}


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
