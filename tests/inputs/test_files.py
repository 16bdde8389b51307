"""Reading tables: delimiters, compression, parquet, names, samples of long files, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from frhsic_core.inputs import csv_files, files
from frhsic_core.inputs.files import read_table

FRAME = pd.DataFrame({"p": [0.1, 0.2, 0.3], "age": [20, 30, 40], "other": ["a", "b", "c"]})


@pytest.mark.parametrize(("name", "options"), [
    ("a.csv", {}), ("a.csv", {"sep": ";"}), ("a.tsv", {"sep": "\t"}), ("a.csv.gz", {}),
    ("a.csv", {"encoding": "utf-8-sig"}), ("a.csv", {"lineterminator": ",\n"}),
])  # fmt: skip
def test_every_kind_of_csv(tmp_path: Path, name: str, options: dict[str, str]) -> None:
    FRAME.to_csv(tmp_path / name, index=False, **options)
    table = read_table(tmp_path / name, ["age", "p"])
    pd.testing.assert_frame_equal(table.data, FRAME[["age", "p"]])
    assert (table.rows, table.notes) == (3, ())


def test_parquet_files(tmp_path: Path) -> None:
    """A file, and a folder: the files in the order of their names, with the names of partitions as columns."""
    for year, part in ((2020, FRAME), (2021, FRAME.assign(age=FRAME["age"] + 40))):
        (tmp_path / f"year={year}").mkdir()
        part.to_parquet(tmp_path / f"year={year}" / "part.parquet")
    file = tmp_path / "year=2020" / "part.parquet"
    pd.testing.assert_frame_equal(read_table(file, ["p", "age"]).data, FRAME[["p", "age"]])
    (tmp_path / "_SUCCESS").write_text("")
    table = read_table(tmp_path, ["age", "year"])
    data = table.data
    assert (table.rows, data["age"].tolist()) == (6, [20, 30, 40, 60, 70, 80])
    assert data["year"].tolist() == [2020] * 3 + [2021] * 3


def test_a_long_file_is_sampled_evenly_in_bounded_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_files, "PART", 500)
    pd.DataFrame({"k": np.arange(20_000), "wide": "x" * 50}).to_csv(
        tmp_path / "long.csv", index=False
    )
    held = []
    smallest = files._smallest
    monkeypatch.setattr(
        files,
        "_smallest",
        lambda kept, *rest: held.append(sum(map(len, kept))) or smallest(kept, *rest),
    )
    table = read_table(tmp_path / "long.csv", ["k"], max_rows=2000)
    assert table.rows == 20_000
    kept = table.data["k"].to_numpy()
    assert len(np.unique(kept)) == 2000
    assert kept.mean() == pytest.approx(10_000, abs=500)
    assert (np.diff(kept) > 0).all()
    assert max(held) <= 3500
    again = read_table(tmp_path / "long.csv", ["k"], max_rows=2000).data
    np.testing.assert_array_equal(again["k"], kept)
    other = read_table(tmp_path / "long.csv", ["k"], max_rows=2000, random_state=1).data
    assert set(other["k"]) != set(kept)
