"""Damaged and lost files: no wrong value is ever used, and a kill at any moment needs no repair by hand."""

from __future__ import annotations

import json
import os
import pickle
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from frhsic_core.paper.claims import settings
from frhsic_core.paper.runs import store as store_module
from frhsic_core.paper.runs.plan import Experiment, Unit, units_of
from frhsic_core.paper.runs.store import Part, ResultStore, StoreError, read_exported
from frhsic_core.paper.stored import book_folder, stored_rows

ROOT = Path(__file__).parents[3]
STUDY = Experiment("tiny", units_of("nothing", n=(3, 1, 2)))


def unit_part(unit: Unit) -> Part:
    n = dict(unit.settings)["n"]
    rows = pd.DataFrame({"n": n, "repeat": [0, 1], "value": [n / 7, n / 3]})
    return Part(unit, rows, {"seconds": 1.0, "environment": {"torch": "2"}, "rows": 2})


@pytest.fixture(params=["models", "units"])
def parts(
    request: pytest.FixtureRequest, tiny: Experiment, part_of: Callable[..., Part]
) -> list[Part]:
    """Return the parts of a sweep, and those of a study."""
    if request.param == "models":
        return [part_of(job) for job in tiny.jobs]
    return [unit_part(unit) for unit in STUDY.jobs]


def filled(root: Path, parts: list[Part], *, compacted: int = 0) -> ResultStore:
    """Return a store with some compacted parts; the others are left as they are."""
    store = ResultStore(root, "tiny")
    for i, part in enumerate(parts):
        if i == compacted > 0:
            store.compact()
        store.write(part)
    if compacted == len(parts) > 0:
        store.compact()
    return store


def keys_of_parts(parts: list[Part]) -> set:
    return {key for part in parts for key in part.job.keys}


def sorted_rows(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.sort_values(list(rows.columns), ignore_index=True)


def one_bit_flips(data: bytes, count: int = 300) -> Iterator[bytes]:
    """Yield copies of ``data`` with one bit flipped, at different random places."""
    places = np.random.default_rng(0).choice(
        8 * len(data), size=min(count, 8 * len(data)), replace=False
    )
    for place in places.tolist():
        flipped = bytearray(data)
        flipped[place // 8] ^= 1 << place % 8
        yield bytes(flipped)


# Damaged and lost files -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", ["table", "sidecar"])
def test_a_damaged_or_lost_file_is_named_and_no_value_changes(tmp_path, file, parts) -> None:
    """One bit is flipped, the end is missing, or the whole file."""
    store = filled(tmp_path, parts, compacted=len(parts))
    rows, provenance = store.read(), store.provenance()
    path = getattr(store, file)
    good = path.read_bytes()
    messages: list[str] = []
    damages = (
        *one_bit_flips(good),
        *(good[: int(share * len(good))] for share in (0.0, 0.5, 0.99)),
    )
    for data in damages:
        path.write_bytes(data)
        try:
            found = store.done(), store.read(), store.provenance()
        except StoreError as error:
            messages.append(str(error))
            continue
        assert found[0] == keys_of_parts(parts)
        assert found[2] == provenance
        pd.testing.assert_frame_equal(found[1], rows, check_exact=True)
    # In a json file a bit can turn 1e-05 into 1E-05, which is the same number.
    harmless = len(damages) - len(messages)
    assert harmless == 0 if file == "table" else harmless < 10
    assert all(f"{path} is damaged" in message and "Restore it" in message for message in messages)
    path.unlink()
    for reading in (store.done, store.read, store.provenance, store.compact):
        with pytest.raises(StoreError, match=f"{re.escape(str(path))} is missing.*Restore it"):
            reading()
    for other in (
        store.root / "tiny.json",
        *store.root.glob("tiny.parquet"),
        *store.root.glob("tiny.csv"),
    ):
        other.unlink(missing_ok=True)
    assert store.done() == set()  # what was deleted on purpose is computed again


def test_a_json_file_is_known_by_its_checksum_and_not_by_its_white_space(
    tmp_path, tiny: Experiment, part_of
) -> None:
    parts = [part_of(job) for job in tiny.jobs]
    store = filled(tmp_path, parts[:3], compacted=3)
    table, old = store.table, store.table.read_bytes()
    filled(tmp_path, parts, compacted=4)
    rows, good = store.read(), table.read_bytes()
    store.sidecar.write_text(
        json.dumps(json.loads(store.sidecar.read_text())).replace(", ", ",\r\n")
    )
    pd.testing.assert_frame_equal(store.read(), rows)
    # A table of an older state is whole, but it is not the one that the json file describes.
    table.write_bytes(old)
    with pytest.raises(StoreError, match="is damaged"):
        store.done()
    table.write_bytes(good)
    for content in ("{half", "[]", "{}", '{"experiment": "tiny", "stacks": []}'):
        store.sidecar.write_text(content, encoding="utf-8")
        with pytest.raises(StoreError, match="no checksum"):
            store.done()
    # Git changes no line end either.
    assert (
        "book/results/* -text" in (ROOT / ".gitattributes").read_text(encoding="utf-8").splitlines()
    )


def test_a_flipped_bit_of_the_database_never_changes_a_value(tmp_path, parts) -> None:
    """The rows are those that were written, or the file is named as damaged."""
    store = filled(tmp_path, parts[:2])
    path, rows = store.database, store.read()
    messages: list[str] = []
    for data in one_bit_flips(path.read_bytes(), count=150):
        path.write_bytes(data)
        try:
            assert store.done() == keys_of_parts(parts[:2])
            pd.testing.assert_frame_equal(store.read(), rows, check_exact=True)
        except StoreError as error:
            messages.append(str(error))
    assert len(messages) > 10, "the flips hit nothing that is used"
    assert all(str(path) in message for message in messages)


@pytest.mark.parametrize(
    "content", [b"half", b"[]\n{}\n", b"\0" * 100, b"SQLite format 3\0" + b"\0" * 5000]
)
def test_a_file_that_is_no_database_is_an_error_until_it_is_deleted(tmp_path, content) -> None:
    store = ResultStore(tmp_path, "tiny")
    store.database.write_bytes(content)
    with pytest.raises(StoreError, match=r"tiny\.sqlite is damaged. Delete it"):
        store.done()
    store.database.unlink()
    store.write(unit_part(STUDY.jobs[0]))
    assert store.done() == set(STUDY.jobs[0].keys)


# Kills ----------------------------------------------------------------------------------------------------------------

KILL = """
import os, pickle, shutil, signal, sqlite3, sys
from pathlib import Path
import pyarrow.parquet
from frhsic_core.paper.runs import store as module

base, out, action = map(Path, sys.argv[1:])
part = pickle.loads((base / "part.pickle").read_bytes())
ended, moment = False, 0
while not ended:
    moment += 1
    folder = out / str(moment)
    shutil.copytree(base, folder)
    process = os.fork()
    if process == 0:
        calls = 0
        def count():
            global calls
            calls += 1
            if calls == moment:
                os.kill(os.getpid(), signal.SIGKILL)
        def counted(function):
            def call(*args, **options):
                count()
                return function(*args, **options)
            return call
        connect = sqlite3.connect
        def watched(*args, **options):
            # The handler is called after each instruction of SQLite's virtual machine.
            connection = connect(*args, **options)
            if "uri" not in options:  # a reader changes nothing
                connection.set_progress_handler(count, 1)
            return connection
        store = module.ResultStore(folder, "tiny")
        if action.name == "write":
            module.sqlite3.connect = watched
            store.write(part)
        else:
            for name in ("fsync", "replace", "unlink", "rmdir"):
                setattr(os, name, counted(getattr(os, name)))
            remove = module.ResultStore._written
            def late(self):
                module.sqlite3.connect = watched
                return remove(self)
            module.ResultStore._written = late
            store.compact()
        os._exit(0)
    ended = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0
"""


def killed_at_every_moment(folder: Path, base: Path, part: Part, action: str) -> list[Path]:
    """Return copies of ``base`` in which an action was killed at its first moment, its second, and so on to its end."""
    (folder / "out").mkdir()
    (base / "part.pickle").write_bytes(pickle.dumps(part))
    command = [sys.executable, "-c", KILL, str(base), str(folder / "out"), action]
    subprocess.run(command, check=True, timeout=240)
    copies = sorted((folder / "out").iterdir(), key=lambda path: int(path.name))
    for copy in copies:
        (copy / "part.pickle").unlink()
    return copies


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("compacted", [0, 2])
def test_a_kill_at_any_moment_of_an_export_loses_nothing(tmp_path, parts, compacted) -> None:
    parts = parts[:3]
    expected = filled(tmp_path / "whole", parts, compacted=compacted)
    rows = sorted_rows(expected.read())
    shutil.copytree(tmp_path / "whole", tmp_path / "base")
    expected.compact()
    copies = killed_at_every_moment(tmp_path, tmp_path / "base", parts[0], "compact")
    # Three files are written with two calls each, then the jobs are removed from the SQLite file; the last run ends.
    assert len(copies) > 3 * 2 + 10
    for copy in copies:
        store = ResultStore(copy, "tiny")
        assert store.done() == keys_of_parts(parts)
        pd.testing.assert_frame_equal(sorted_rows(store.read()), rows, check_exact=True)
        store.compact()
        assert store.table.read_bytes() == expected.table.read_bytes()
        assert store.sidecar.read_bytes() == expected.sidecar.read_bytes()
        for left in copy.glob(".*"):
            os.utime(left, (0, 0))
        store.compact()
        assert {path.name for path in copy.iterdir()} == {
            store.table.name,
            "tiny.json",
            "tiny.sqlite",
        }


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("before", [0, 2])
def test_a_kill_at_any_moment_of_a_write_leaves_the_whole_job_or_nothing(
    tmp_path, parts, before
) -> None:
    (tmp_path / "base").mkdir()
    filled(tmp_path / "base", parts[:before])
    kept, all_of_them = keys_of_parts(parts[:before]), keys_of_parts(parts[: before + 1])
    copies = killed_at_every_moment(tmp_path, tmp_path / "base", parts[before], "write")
    found = [ResultStore(copy, "tiny").done() for copy in copies]
    assert len(copies) > 10
    assert all(keys in (kept, all_of_them) for keys in found)
    assert (found[0], found[-1]) == (kept, all_of_them)
    for copy in copies:
        store = ResultStore(copy, "tiny")
        store.write(parts[before])
        assert len(store.read()) == sum(len(part.rows) for part in parts[: before + 1])


# A full disk ----------------------------------------------------------------------------------------------------------


def test_a_full_disk_keeps_what_is_stored(tmp_path, parts, monkeypatch, disk_of) -> None:
    store = filled(tmp_path, parts[:1])
    large = replace(parts[1], provenance={**parts[1].provenance, "notes": ["x" * 50_000]})
    disk_of(-(-store.database.stat().st_size // 4096))
    with pytest.raises(StoreError, match=r"tiny\.sqlite .*disk is full.*free some space.*are kept"):
        store.write(large)
    assert store.done() == keys_of_parts(parts[:1])
    monkeypatch.undo()
    store.write(large)
    assert store.done() == keys_of_parts(parts[:2])


def test_young_unfinished_files_and_those_of_other_tables_stay(tmp_path) -> None:
    names = (".tiny.parquet.abc", ".tiny.json.abc", ".other.json.abc", ".tiny.csv.new")
    for name in names:
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (0, 0))
    (tmp_path / ".tiny.csv.new").touch()
    ResultStore(tmp_path, "tiny").compact()
    assert {path.name for path in tmp_path.iterdir()} == {".other.json.abc", ".tiny.csv.new"}


# Two runners ----------------------------------------------------------------------------------------------------------


def test_another_runner_exports_in_between(tmp_path, parts, monkeypatch) -> None:
    """The other runner adds the last job and exports between a reading of the jobs and of the exported files."""
    store = filled(tmp_path, parts[:-1], compacted=1)

    def late(*args: Any) -> object:
        monkeypatch.setattr(store_module, "read_exported", read_exported)
        filled(tmp_path, parts, compacted=len(parts))
        return read_exported(*args)

    monkeypatch.setattr(store_module, "read_exported", late)
    finished, exported = store._load()
    assert len(finished) == len(parts) - 2
    records = store._provenance(finished, exported)[
        "units" if isinstance(parts[0].job, Unit) else "stacks"
    ]
    assert len(records) == len(parts)
    rows = store._rows(finished, exported.table, exported.rows())
    assert len(rows) == sum(len(part.rows) for part in parts)


def test_nobody_adds_a_job_during_an_export(tmp_path, parts, monkeypatch) -> None:
    """Another runner waits for the end of the export, which would otherwise remove a job that it has not exported."""
    store = filled(tmp_path, parts[:-1])
    merge = ResultStore._merge

    def late(*args: Any) -> None:
        merge(*args)
        monkeypatch.setattr(store_module, "_WAIT", 0.01)
        with pytest.raises(StoreError, match="locked"):
            ResultStore(tmp_path, "tiny").write(parts[-1])

    monkeypatch.setattr(ResultStore, "_merge", late)
    store.compact()
    assert store.done() == keys_of_parts(parts[:-1])
    store.write(parts[-1])
    assert store.done() == keys_of_parts(parts)


def test_a_json_file_read_before_and_a_table_after_compaction_do_not_look_damaged(
    tmp_path, parts, monkeypatch
) -> None:
    store = filled(tmp_path, parts[:-1], compacted=len(parts) - 1)
    table = store.table
    read = Path.read_bytes

    def late(path: Path) -> bytes:
        if path == table:
            monkeypatch.setattr(Path, "read_bytes", read)
            filled(tmp_path, parts, compacted=len(parts))
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", late)
    assert len(store.read()) == sum(len(part.rows) for part in parts)


# What reads stored results --------------------------------------------------------------------------------------------


@pytest.fixture
def book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a folder with copies of a few results, of which one is called main."""
    (tmp_path / "results").mkdir()
    for name in ("live.parquet", "live.json", "audit_coverage.csv", "audit_coverage.json"):
        target = "main" + Path(name).suffix if name.startswith("live") else name
        shutil.copy(book_folder("results", name), tmp_path / "results" / target)
    monkeypatch.setenv("FRHSIC_BOOK", str(tmp_path))
    settings.provenance.cache_clear()
    yield tmp_path / "results"
    settings.provenance.cache_clear()


@pytest.mark.parametrize(
    "name", ["main.parquet", "main.json", "audit_coverage.csv", "audit_coverage.json"]
)
def test_chapters_and_claims_refuse_damaged_results(book: Path, name: str) -> None:
    path = book / name
    readings = [lambda: stored_rows(path.stem), lambda: settings.provenance(path.stem)]
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)
    for reading in readings:
        with pytest.raises(StoreError, match=re.escape(str(path))):
            reading()
    assert stored_rows("never_run").empty


def test_stored_results_are_read_by_one_function() -> None:
    """A chapter that reads a file of results itself would read it without its checksum."""
    sources = [
        *ROOT.glob("notebooks/*.md"),
        *ROOT.glob("book/_ext/*.py"),
        *ROOT.glob("frhsic_core/**/*.py"),
    ]
    direct = re.compile(r"""\("[^"\n]*book/results/\w|book_folder\(\s*"results",|"results"\s*/""")
    assert [path.name for path in sources if direct.search(path.read_text(encoding="utf-8"))] == []
