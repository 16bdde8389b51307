"""Read parquet files and folders of parquet files; pyarrow is needed for nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

_MAGIC = b"PAR1"
SUFFIXES = (".parquet", ".pq")


def is_parquet(path: Path) -> bool:
    """Return whether a path is a folder, or a file that is called parquet or begins like one."""
    if path.is_dir() or path.suffix.lower() in SUFFIXES:
        return True
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def parts_of(
    path: Path, wanted: Sequence[str], require: Callable[[Sequence[str]], None]
) -> Iterator[pd.DataFrame]:
    """Yield the wanted columns of one part of the rows after another."""
    with _opened(path) as dataset:
        _check(dataset, wanted, require)
        for batch in dataset.to_batches(columns=list(wanted)):
            yield batch.to_pandas(ignore_metadata=True)


def whole_table(path: Path, wanted: Sequence[str], require: Callable[[Sequence[str]], None]) -> Any:
    """Return everything as a table of pyarrow, which keeps an index, kinds and metadata."""
    with _opened(path) as dataset:
        _check(dataset, wanted, require)
        return dataset.to_table()


def columns_of(table: Any, wanted: Sequence[str]) -> pd.DataFrame:
    """Return the wanted columns of such a table."""
    return table.select(list(wanted)).to_pandas(ignore_metadata=True)


def _check(dataset: Any, wanted: Sequence[str], require: Callable[[Sequence[str]], None]) -> None:
    """Refuse a dataset that lacks a wanted column or has it in another kind."""
    require(dataset.schema.names)
    _require_plain(dataset.schema, wanted)
    _require_in_every_file(dataset, wanted)


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    try:
        import pyarrow.dataset
        import pyarrow.lib
    except ImportError as error:
        raise ValueError(
            f"{path.name} is a parquet file: pip install pyarrow, or save CSV ({error})."
        ) from None
    try:
        dataset = pyarrow.dataset.dataset(path, format="parquet", partitioning="hive")
        if not dataset.schema.names:
            raise ValueError(
                f"{path} is a folder without parquet files: pass a CSV file or a folder of "
                "parquet files."
            )
        yield dataset
    except pyarrow.lib.ArrowException as error:
        reason = str(error).strip().partition("\n")[0].rstrip(".")
        raise ValueError(
            f"{path.name} could not be read as parquet ({reason}): check the file."
        ) from error


def _require_plain(schema: Any, wanted: Sequence[str]) -> None:
    """Refuse columns whose cells are neither numbers nor words nor dates."""
    import pyarrow.types as kinds

    for name in wanted:
        kind = schema.field(name).type
        if kinds.is_nested(kind) or kinds.is_binary(kind) or kinds.is_time(kind):
            raise ValueError(
                f"{name!r} has cells of the kind {kind}: an audit needs one number or one word in "
                "each row."
            )


def _require_in_every_file(dataset: Any, wanted: Sequence[str]) -> None:
    """Refuse a folder in which a file lacks a column, whose cells would be read as missing."""
    import pyarrow.dataset

    for fragment in dataset.get_fragments():
        # The names of folders such as year=2020 are columns, too.
        keys = pyarrow.dataset.get_partition_keys(fragment.partition_expression)
        names = {*fragment.physical_schema.names, *keys}
        for name in wanted:
            if name not in names:
                raise ValueError(
                    f"{Path(fragment.path).name} has no column {name!r}, which other files of the "
                    "folder have: add it, or remove the file."
                )


def write(table: Any, name: str, values: np.ndarray, file: Any) -> None:
    """Write a table of pyarrow with one more column of numbers."""
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(table.append_column(name, pyarrow.array(values)), file)


def write_csv(table: Any, name: str, values: np.ndarray, file: Any) -> None:
    """Write a table of pyarrow as CSV with one more column of numbers."""
    frame = table.to_pandas()
    if not isinstance(frame.index, pd.RangeIndex):
        frame = frame.reset_index()
    frame.assign(**{name: values}).to_csv(file, index=False)
