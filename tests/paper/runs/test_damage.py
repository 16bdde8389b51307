"""Damaged and lost files: no wrong value is ever used, and a kill at any moment needs no repair by hand."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from frhsic_core.paper.claims import settings
from frhsic_core.paper.runs import store as store_module
from frhsic_core.paper.runs.plan import Experiment, Study, Unit, units_of
from frhsic_core.paper.runs.result_files import read_part, read_results
from frhsic_core.paper.runs.store import Part, ResultStore, StoreError
from frhsic_core.paper.runs.stored import book_folder, stored_provenance, stored_rows

ROOT = Path(__file__).parents[3]
KINDS = ("models", "units")
STUDY = Study("tiny", "nothing", units_of(n=(3, 1, 2)))


def unit_part(unit: Unit) -> Part:
    n = dict(unit.settings)["n"]
    rows = pd.DataFrame({"n": n, "repeat": [0, 1], "value": [n / 7, n / 3]})
    return Part(unit, rows, {"seconds": 1.0, "environment": {"torch": "2"}, "rows": 2})


@pytest.fixture
def parts(request: pytest.FixtureRequest, tiny: Experiment, part_of: Callable[..., Part]) -> list[Part]:
    """Return the parts of a sweep or of a study, as the parameter ``kind`` says."""
    if request.getfixturevalue("kind") == "models":
        return [part_of(job) for job in tiny.jobs()]
    return [unit_part(unit) for unit in STUDY.jobs()]


def filled(root: Path, parts: list[Part], *, compacted: int = 0) -> ResultStore:
    """Return a store with some compacted parts; the others are left as they are."""
    store = ResultStore(root, "tiny", say=lambda line: None)
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
    places = np.random.default_rng(0).choice(8 * len(data), size=min(count, 8 * len(data)), replace=False)
    for place in places.tolist():
        flipped = bytearray(data)
        flipped[place // 8] ^= 1 << place % 8
        yield bytes(flipped)


# One bit --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("file", ["table", "sidecar"])
def test_a_flipped_bit_is_an_error_or_changes_nothing(tmp_path, kind, file, parts) -> None:
    store = filled(tmp_path, parts, compacted=len(parts))
    rows, provenance = store.read(), store.provenance()
    path = getattr(store, file)
    good = path.read_bytes()
    messages: list[str] = []
    for data in one_bit_flips(good):
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
    assert len(messages) == 300 if file == "table" else len(messages) > 290
    assert all(str(path) in message and "Restore it" in message for message in messages)


@pytest.mark.parametrize("kind", KINDS)
def test_a_part_with_a_flipped_bit_is_left_out(tmp_path, kind, parts) -> None:
    said: list[str] = []
    store = filled(tmp_path, parts[:2])
    path = store.write(parts[0])
    good = path.read_bytes()
    kept = filled(tmp_path / "kept", parts[1:2]).read()
    for i, data in enumerate(one_bit_flips(good)):
        path.write_bytes(data)
        with pytest.raises(StoreError, match=path.name):
            read_part(path)
        if i % 30 == 0:
            store = ResultStore(tmp_path, "tiny", say=said.append)
            assert store.done() == keys_of_parts(parts[1:2])
            pd.testing.assert_frame_equal(store.read(), kept, check_exact=True)
            assert path.with_name(f"{path.name}.damaged").read_bytes() == data
    assert len(said) == 10
    assert all(str(path) in line for line in said)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("content", [b"", b"half", b"[]\n{}\n", b"\0" * 100])
def test_a_part_that_is_no_part_is_set_aside_once(tmp_path, kind, parts, content) -> None:
    filled(tmp_path, parts[:2])
    path = ResultStore(tmp_path, "tiny").write(parts[0])
    path.write_bytes(content)
    with pytest.warns(UserWarning, match=f"{path.name} is damaged.*renamed to {path.name}.damaged"):
        assert ResultStore(tmp_path, "tiny").done() == keys_of_parts(parts[1:2])
    again = ResultStore(tmp_path, "tiny")
    again.write(parts[0])
    again.compact()
    assert again.done() == keys_of_parts(parts[:2])


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_part_in_a_folder_that_can_only_be_read_is_left_out(tmp_path, kind, parts, monkeypatch) -> None:
    store = filled(tmp_path, parts[:2])
    path = store.write(parts[0])
    path.write_bytes(path.read_bytes()[:-1])

    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "replace", refuse)
    said: list[str] = []
    store = ResultStore(tmp_path, "tiny", say=said.append)
    for _ in range(2):
        assert store.done() == keys_of_parts(parts[1:2])
    assert len(said) == 1
    assert "left out" in said[0]


# Lost and truncated files ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_a_lost_table_are_computed_again(tmp_path, kind, parts) -> None:
    before = filled(tmp_path, parts, compacted=len(parts))
    rows, table = before.read(), before.table
    table.unlink()
    said: list[str] = []
    store = ResultStore(tmp_path, "tiny", say=said.append)
    assert store.done() == set()
    assert store.done() == set()
    assert [str(table) in line and "missing" in line for line in said] == [True]
    with pytest.raises(StoreError, match=f"{table.name} is missing.*frhsic run"):
        store.read()
    assert store.compact() == table
    assert not table.exists()
    # What is computed again is there; the records of what is not were dropped.
    store.write(parts[1])
    assert store.done() == set(parts[1].job.keys)
    store.compact()
    assert store.done() == set(parts[1].job.keys)
    assert len(store.read()) == len(parts[1].rows)
    for part in parts:
        store.write(part)
    store.compact()
    pd.testing.assert_frame_equal(sorted_rows(store.read()), sorted_rows(rows))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_truncated_file_is_named(tmp_path, kind, parts, share) -> None:
    store = filled(tmp_path, parts, compacted=len(parts))
    for path in (store.table, store.sidecar):
        good = path.read_bytes()
        path.write_bytes(good[: int(share * len(good))])
        for reading in (store.done, store.read, store.provenance, store.compact):
            with pytest.raises(StoreError, match=re.escape(f"{path} is damaged")):
                reading()
        path.write_bytes(good)
    assert store.done() == keys_of_parts(parts)


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_without_its_json_file_is_not_trusted(tmp_path, kind, parts) -> None:
    store = filled(tmp_path, parts, compacted=len(parts))
    store.sidecar.unlink()
    with pytest.raises(StoreError, match=r"tiny\.json is missing.*cannot be verified"):
        store.read()
    with pytest.raises(StoreError, match="cannot be verified"):
        store.done()


@pytest.mark.parametrize("content", ["{half", "[]", "{}", '{"experiment": "tiny", "stacks": []}'])
def test_a_json_file_without_its_checksum_is_refused(tmp_path, content) -> None:
    store = ResultStore(tmp_path, "tiny")
    store.sidecar.write_text(content, encoding="utf-8")
    with pytest.raises(StoreError, match="no checksum"):
        store.done()


@pytest.mark.parametrize("kind", KINDS)
def test_another_table_is_not_accepted(tmp_path, kind, parts) -> None:
    """A table of an older state is whole, but it is not the one that the json file describes."""
    store = filled(tmp_path, parts[:1], compacted=1)
    old = store.table.read_bytes()
    filled(tmp_path, parts[:2], compacted=2)
    store.table.write_bytes(old)
    with pytest.raises(StoreError, match="is damaged"):
        store.done()


def test_line_ends_and_white_space_of_a_json_file_do_not_matter(tmp_path, tiny: Experiment, part_of) -> None:
    store = filled(tmp_path, [part_of(job) for job in tiny.jobs()], compacted=4)
    rows = store.read()
    store.sidecar.write_text(json.dumps(json.loads(store.sidecar.read_text())).replace(", ", ",\r\n"))
    pd.testing.assert_frame_equal(store.read(), rows)


def test_git_leaves_stored_results_as_they_are() -> None:
    attributes = (ROOT / ".gitattributes").read_text(encoding="utf-8").splitlines()
    assert "book/results/* -text" in attributes


# Kills ----------------------------------------------------------------------------------------------------------------

KILL = """
import os, shutil, signal, sys
from pathlib import Path
import pyarrow.parquet
from frhsic_core.paper.runs.store import ResultStore

base, out = map(Path, sys.argv[1:])
ended, moment = False, 0
while not ended:
    moment += 1
    folder = out / str(moment)
    shutil.copytree(base, folder)
    process = os.fork()
    if process == 0:
        calls = 0
        def counted(function):
            def call(*args, **options):
                global calls
                calls += 1
                if calls == moment:
                    os.kill(os.getpid(), signal.SIGKILL)
                return function(*args, **options)
            return call
        for name in ("fsync", "replace", "unlink", "rmdir"):
            setattr(os, name, counted(getattr(os, name)))
        ResultStore(folder, "tiny").compact()
        os._exit(0)
    ended = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("compacted", [0, 2])
def test_a_kill_at_any_moment_of_compaction_loses_nothing(tmp_path, kind, parts, compacted) -> None:
    parts = parts[:3]
    expected = filled(tmp_path / "whole", parts, compacted=compacted)
    rows = sorted_rows(expected.read())
    shutil.copytree(tmp_path / "whole", tmp_path / "base")
    expected.compact()
    (tmp_path / "out").mkdir()
    command = [sys.executable, "-c", KILL, str(tmp_path / "base"), str(tmp_path / "out")]
    subprocess.run(command, check=True, timeout=120)
    folders = sorted((tmp_path / "out").iterdir())
    # Three files are written with two calls each, then the parts and their folder are removed; the last run ends.
    assert len(folders) == 3 * 2 + len(parts) - compacted + 1 + 1
    for folder in folders:
        store = ResultStore(folder, "tiny")
        assert store.done() == keys_of_parts(parts)
        pd.testing.assert_frame_equal(sorted_rows(store.read()), rows, check_exact=True)
        store.compact()
        assert store.table.read_bytes() == expected.table.read_bytes()
        assert store.sidecar.read_bytes() == expected.sidecar.read_bytes()
        for left in folder.glob(".*"):
            os.utime(left, (0, 0))
        store.compact()
        assert {path.name for path in folder.iterdir()} == {store.table.name, "tiny.json"}


def test_young_unfinished_files_and_those_of_other_tables_stay(tmp_path) -> None:
    names = (".tiny.parquet.abc", ".tiny.json.abc", ".other.json.abc", ".tiny.csv.new")
    for name in names:
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (0, 0))
    (tmp_path / ".tiny.csv.new").touch()
    ResultStore(tmp_path, "tiny").compact()
    assert {path.name for path in tmp_path.iterdir()} == {".other.json.abc", ".tiny.csv.new"}


def test_an_unfinished_probe_does_not_keep_the_folder_of_parts(tmp_path, tiny: Experiment, part_of) -> None:
    store = filled(tmp_path, [part_of(job) for job in tiny.jobs()])
    probe = store.parts / ".probe.abc"
    probe.touch()
    os.utime(probe, (0, 0))
    store.compact()
    assert not store.parts.exists()


# Two runners ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("moment", ["read_part", "read_results"])
@pytest.mark.parametrize("reading", ["done", "read", "provenance"])
def test_another_runner_compacts_in_between(tmp_path, kind, parts, monkeypatch, moment, reading) -> None:
    """The other runner adds the last part and compacts just before a file is read."""
    store = filled(tmp_path, parts[:-1], compacted=1)
    real = getattr(store_module, moment)

    def late(*args: object) -> object:
        monkeypatch.setattr(store_module, moment, real)
        filled(tmp_path, parts, compacted=len(parts))
        return real(*args)

    monkeypatch.setattr(store_module, moment, late)
    found = getattr(store, reading)()
    if reading == "done":
        assert found == keys_of_parts(parts)
    elif reading == "read":
        assert len(found) == sum(len(part.rows) for part in parts)
    else:
        assert len(found["stacks" if kind == "models" else "units"]) == len(parts)


@pytest.mark.parametrize("kind", KINDS)
def test_another_reader_sets_aside_a_part_in_between(tmp_path, kind, parts, monkeypatch) -> None:
    store = filled(tmp_path, parts)
    first = min(store.parts.iterdir())
    first.write_bytes(b"half")

    def late(path: Path) -> object:
        monkeypatch.setattr(store_module, "read_part", read_part)
        ResultStore(tmp_path, "tiny", say=lambda line: None).done()
        return read_part(path)

    monkeypatch.setattr(store_module, "read_part", late)
    assert store.done() == {key for part in parts if not first.name.startswith(part.job.key) for key in part.job.keys}


@pytest.mark.parametrize("kind", KINDS)
def test_a_json_file_read_before_and_a_table_after_compaction_do_not_look_damaged(
    tmp_path, kind, parts, monkeypatch
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


def test_the_first_unit_of_another_runner_does_not_disturb_a_reader(tmp_path, monkeypatch) -> None:
    part = unit_part(STUDY.jobs()[0])
    store = ResultStore(tmp_path, "tiny")

    def late(*args: object) -> object:
        store.write(part)
        return read_results(*args)

    monkeypatch.setattr(store_module, "read_results", late)
    assert store.read().empty
    assert len(store.read()) == 2


# What reads stored results --------------------------------------------------------------------------------------------


@pytest.fixture
def book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a folder with copies of a few results, of which one is called main."""
    (tmp_path / "results").mkdir()
    for name in ("live.parquet", "live.json", "lambda_levels.csv", "lambda_levels.json"):
        target = "main" + Path(name).suffix if name.startswith("live") else name
        shutil.copy(book_folder("results", name), tmp_path / "results" / target)
    monkeypatch.setenv("FRHSIC_BOOK", str(tmp_path))
    settings.provenance.cache_clear()
    yield tmp_path / "results"
    settings.provenance.cache_clear()


@pytest.mark.parametrize("name", ["main.parquet", "main.json", "lambda_levels.csv", "lambda_levels.json"])
@pytest.mark.parametrize("damage", ["flipped", "lost"])
def test_chapters_and_claims_refuse_damaged_results(book: Path, name: str, damage: str) -> None:
    path = book / name
    readings = [lambda: stored_rows(path.stem), lambda: stored_provenance(path.stem)]
    if path.stem == "main":
        readings.append(settings.provenance)
    for reading in readings:
        assert len(reading()) > 0
    settings.provenance.cache_clear()
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.unlink() if damage == "lost" else path.write_bytes(data)
    for reading in readings:
        with pytest.raises(StoreError, match=re.escape(str(path))):
            reading()


def test_nothing_is_stored_is_an_error_for_provenance(book: Path) -> None:
    assert stored_rows("never_run").empty
    with pytest.raises(StoreError, match=r"never_run\.parquet is missing"):
        stored_provenance("never_run")


def test_stored_results_are_read_by_one_function() -> None:
    """A chapter that reads a file of results itself would read it without its checksum."""
    sources = [*ROOT.glob("notebooks/*.md"), *ROOT.glob("book/_ext/*.py"), *ROOT.glob("frhsic_core/**/*.py")]
    direct = re.compile(r"""\("[^"\n]*book/results/\w|book_folder\(\s*"results",|"results"\s*/""")
    assert [path.name for path in sources if direct.search(path.read_text(encoding="utf-8"))] == []
