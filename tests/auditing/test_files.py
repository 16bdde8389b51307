"""Reading tables: delimiters, compression, parquet, names, samples of long files, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from frhsic_core.auditing import _input as files
from frhsic_core.auditing._input import read_table

FRAME = pd.DataFrame({"p": [0.1, 0.2, 0.3], "age": [20, 30, 40], "other": ["a", "b", "c"]})


@pytest.mark.parametrize(("name", "options"), [
    ("a.csv", {}), ("a.csv", {"sep": ";"}), ("a.tsv", {"sep": "\t"}), ("a.csv.gz", {}),
    ("a.csv", {"encoding": "utf-8-sig"}), ("a.csv", {"lineterminator": ",\n"}),
])  # fmt: skip
def test_every_kind_of_csv(tmp_path: Path, name: str, options: dict[str, str]) -> None:
    FRAME.to_csv(tmp_path / name, index=False, **options)
    table = read_table(tmp_path / name, ["age", "p"])
    pd.testing.assert_frame_equal(table.data, FRAME[["age", "p"]])
    assert table.rows == 3


def test_parquet(tmp_path: Path) -> None:
    FRAME.to_parquet(tmp_path / "a.parquet")
    pd.testing.assert_frame_equal(read_table(tmp_path / "a.parquet", ["p", "age"]).data, FRAME[["p", "age"]])
    (tmp_path / "b.parquet").write_bytes(b"no parquet")
    with pytest.raises(ValueError, match="could not be read as parquet"):
        read_table(tmp_path / "b.parquet", ["p"])


def test_a_long_file_is_sampled_evenly_in_bounded_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_PART", 500)
    pd.DataFrame({"k": np.arange(20_000), "wide": "x" * 50}).to_csv(tmp_path / "long.csv", index=False)
    held = []
    smallest = files._smallest
    monkeypatch.setattr(
        files, "_smallest", lambda kept, *rest: held.append(sum(map(len, kept))) or smallest(kept, *rest)
    )
    table = read_table(tmp_path / "long.csv", ["k"], max_rows=2000)
    assert table.rows == 20_000
    kept = table.data["k"].to_numpy()
    assert len(np.unique(kept)) == 2000
    assert kept.mean() == pytest.approx(10_000, abs=500)
    assert (np.diff(kept) > 0).all()
    assert max(held) <= 3500
    again = read_table(tmp_path / "long.csv", ["k"], max_rows=2000)
    np.testing.assert_array_equal(again.data["k"], kept)
    other = read_table(tmp_path / "long.csv", ["k"], max_rows=2000, random_state=1)
    assert set(other.data["k"]) != set(kept)


@pytest.mark.parametrize(("text", "fragment"), [
    ("", "could not be read"), ("p,age\n", "no rows"), ("p,age,age\n1,2,3\n", "2 columns named 'age'"),
    ("p, Age\n1,2\n", "did you mean ' Age'"), ("p,ages\n1,2\n", "did you mean 'ages'"),
    ('p,age\n1,"2\n', "could not be read"), ("age,p\n1,200,2\n1,200,3\n", "more cells in a row"),
    ("age,p\n1,2\n1,200,3\n", "line 3"),
])  # fmt: skip
def test_refusals(tmp_path: Path, text: str, fragment: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=fragment):
        read_table(path, ["p", "age"])


def test_files_that_are_no_tables(tmp_path: Path) -> None:
    (tmp_path / "a.xlsx").write_bytes(b"x")
    (tmp_path / "latin.csv").write_bytes("p,age\n1,süß\n".encode("latin-1"))
    for name, fragment in (
        ("missing.csv", "does not exist"),
        (".", "is a folder"),
        ("a.xlsx", "Excel"),
        ("latin.csv", "UTF-8"),
    ):
        with pytest.raises(ValueError, match=fragment):
            read_table(tmp_path / name, ["p", "age"])
