"""Reading tables: delimiters, compression, parquet, names, samples of long files, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from frhsic_core.inputs import csv_files, files
from frhsic_core.inputs.cells import may_have_thousands
from frhsic_core.inputs.files import read_table, read_whole_table

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


READERS = [read_table, read_whole_table]


def notes_of(found: Any) -> tuple[str, ...]:
    return found.notes if hasattr(found, "notes") else found.table.notes


@pytest.mark.parametrize("read", READERS)
def test_points_that_separate_thousands(tmp_path: Path, read: Any) -> None:
    path = tmp_path / "t.csv"
    for cells in (["950", "1.200", "3.450"], ["950", "29.000", "3.000"]):
        path.write_text("\n".join(["income", *cells, ""]))
        with pytest.raises(ValueError, match=r"such as '[\d.]+' beside '950': write (1200|29000)"):
            read(path, ["income"])
    path.write_text("income\n1.200\n3.450\n")
    (note,) = notes_of(read(path, ["income"]))
    assert note.endswith("if the points separate thousands, write 1200.")
    path.write_text("income\n1.2\n950\n\n17.123\n")
    assert notes_of(read(path, ["income"])) == ()


def test_only_three_digits_can_be_thousands() -> None:
    assert may_have_thousands(pd.Series([950.123, 17.0]))
    assert not may_have_thousands(pd.Series([950.1234, 17.0]))
    assert not may_have_thousands(pd.Series([950, 17]))
    assert not may_have_thousands(pd.Series([0.5, 17.0]))
    assert not may_have_thousands(pd.Series([np.nan, np.inf]))


@pytest.mark.parametrize("read", READERS)
def test_a_table_without_rows_or_with_lists_is_refused(tmp_path: Path, read: Any) -> None:
    (tmp_path / "t.csv").write_text("p,age\n")
    FRAME[:0].to_parquet(tmp_path / "empty.parquet")
    for name in ("t.csv", "empty.parquet"):
        with pytest.raises(ValueError, match="no rows"):
            read(tmp_path / name, ["p", "age"])
    FRAME.assign(age=[[1], [2], [3]]).to_parquet(tmp_path / "lists.parquet")
    with pytest.raises(ValueError, match="'age' has cells of the kind list"):
        read(tmp_path / "lists.parquet", ["p", "age"])


def test_a_table_is_written_as_it_was_read(tmp_path: Path) -> None:
    text = 'p;age;"a; b"\r\n0.10;020;"x; y"\r\n0.2;30;\r\n'
    (tmp_path / "t.csv").write_text(text, newline="")
    whole = read_whole_table(tmp_path / "t.csv", ["p", "age"])
    with (tmp_path / "o.csv").open("wb") as file:
        whole.write_csv("new", np.array([1.5, np.nan]), file)
    written = (tmp_path / "o.csv").read_bytes().decode()
    assert written == 'p;age;"a; b";new\r\n0.10;020;"x; y";1.5\r\n0.2;30;;\r\n'
