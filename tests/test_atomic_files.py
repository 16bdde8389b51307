"""Files are written whole or not at all, and a lock has one holder."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest

from frhsic_core._atomic_files import (
    claim,
    is_special,
    remove_leftovers,
    remove_unfinished,
    write_atomically,
)

CONTENTS = {"a.txt": b"first", "b.txt": b"the second"}


def save(folder: Path, **more: Callable[[Any], Any]) -> None:
    files = {
        folder / name: partial(lambda text, file: file.write(text), text)
        for name, text in CONTENTS.items()
    }
    write_atomically(
        files | {folder / name.replace("_", "."): write for name, write in more.items()}
    )


def test_everything_is_on_the_disk_before_anything_is_renamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[object] = []
    rename = os.replace
    monkeypatch.setattr(os, "fsync", lambda handle: done.append(os.fstat(handle).st_size))
    monkeypatch.setattr(os, "replace", lambda old, new: done.append(new.name) or rename(old, new))
    save(tmp_path / "new")
    assert done == [5, 10, "a.txt", "b.txt"]
    assert {path.name: path.read_bytes() for path in (tmp_path / "new").iterdir()} == CONTENTS


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def umask() -> Iterator[Callable[[int], int]]:
    """Set the umask for one test."""
    old = os.umask(0o022)
    yield os.umask
    os.umask(old)


@pytest.mark.skipif(os.name == "nt", reason="permissions")
@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_new_file_has_the_permissions_of_the_umask(
    tmp_path: Path, umask: Callable[[int], int], mask: int, mode: int
) -> None:
    umask(mask)
    save(tmp_path)
    assert {mode_of(path) for path in tmp_path.iterdir()} == {mode}


@pytest.mark.skipif(os.name == "nt", reason="permissions")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
def test_a_file_keeps_its_permissions_when_it_is_replaced(
    tmp_path: Path, umask: Callable[[int], int], mode: int
) -> None:
    (tmp_path / "a.txt").write_text("old")
    (tmp_path / "a.txt").chmod(mode)
    seen: list[int] = []

    def look(file: Any) -> None:
        """Note the permissions of the unfinished file, which others could open."""
        seen.append(stat.S_IMODE(os.fstat(file.fileno()).st_mode))

    write_atomically({tmp_path / "a.txt": look})
    assert mode_of(tmp_path / "a.txt") == mode
    assert seen == [0o600]


def test_a_link_stays_and_its_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "b.txt").write_text("old")
    (tmp_path / "b.txt").symlink_to(tmp_path / "real" / "b.txt")
    (tmp_path / "a.txt").symlink_to("real/new.txt")  # leads nowhere yet
    save(tmp_path)
    assert (tmp_path / "b.txt").is_symlink()
    assert (tmp_path / "real" / "b.txt").read_bytes() == CONTENTS["b.txt"]
    assert (tmp_path / "real" / "new.txt").read_bytes() == CONTENTS["a.txt"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes")
def test_a_pipe_and_a_device_are_written_and_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "b.txt")
    got: list[bytes] = []
    reader = Thread(target=lambda: got.append((tmp_path / "b.txt").read_bytes()))
    reader.start()
    save(tmp_path)
    reader.join()
    assert got == [CONTENTS["b.txt"]]
    assert is_special(tmp_path / "b.txt")
    assert is_special(Path("/dev/null"))
    write_atomically({Path("/dev/null"): lambda file: file.write(b"x")})
    assert is_special(Path("/dev/null"))
    with pytest.raises(OSError, match=r"/dev/full could not be written \(No space left on device"):
        write_atomically({Path("/dev/full"): lambda file: file.write(b"x")})


def test_a_file_that_exists_is_kept_if_asked(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("old")
    files = {tmp_path / name: lambda file: file.write(b"new") for name in CONTENTS}
    with pytest.raises(FileExistsError, match=r"b.txt exists"):
        write_atomically(files, overwrite=False)
    assert [path.name for path in tmp_path.iterdir()] == ["b.txt"]

    # Another process may write it while this one computes its files.
    def late(file: Any) -> None:
        (tmp_path / "c.txt").write_text("of another process")

    with pytest.raises(FileExistsError, match=r"c.txt exists"):
        write_atomically({tmp_path / "c.txt": late}, overwrite=False)
    assert (tmp_path / "c.txt").read_text() == "of another process"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.txt", "c.txt"]


def test_files_of_two_writers_do_not_mix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both have written all of their files before either renames one; the first is interrupted."""
    pytest.importorskip("fcntl")
    ready = Barrier(2)
    rename = os.replace

    def slowly(old: Path, new: Path) -> None:
        if (old.read_text(), new.name) in (("first", "2.txt"), ("second", "0.txt")):
            time.sleep(0.2 if new.name == "2.txt" else 0.1)
        rename(old, new)

    monkeypatch.setattr(os, "replace", slowly)

    def writer(name: str) -> None:
        def last(file: Any) -> None:
            file.write(name.encode())
            ready.wait()

        files = {tmp_path / f"{k}.txt": lambda file: file.write(name.encode()) for k in range(4)}
        write_atomically(files | {tmp_path / "4.txt": last})

    writers = [Thread(target=writer, args=(name,)) for name in ("first", "second")]
    for one in writers:
        one.start()
    for one in writers:
        one.join()
    assert len({path.read_text() for path in tmp_path.iterdir()}) == 1


def test_a_name_may_be_as_long_as_the_system_allows(tmp_path: Path) -> None:
    name = "é" * 120 + ".txt"
    write_atomically({tmp_path / name: lambda file: file.write(b"x")})
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_failure_leaves_the_old_files_alone(tmp_path: Path) -> None:
    def broken(file: object) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "a.txt").write_text("old")
    with pytest.raises(
        OSError,
        match=r"c.txt could not be written \(No space left on device\).*No file was changed",
    ):
        save(tmp_path, c_txt=broken)
    (tmp_path / "d.txt").mkdir()
    with pytest.raises(OSError, match=r"d.txt could not be written \(Is a directory\)"):
        save(tmp_path, d_txt=broken)
    with pytest.raises(ZeroDivisionError):
        save(tmp_path, e_txt=lambda file: 1 / 0)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "d.txt"]
    assert (tmp_path / "a.txt").read_text() == "old"


def test_a_lock_has_one_holder_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "locks" / "job.lock"
    with claim(path) as first, claim(path) as second:
        assert (first, second) == (True, False)
        remove_leftovers(path.parent)
        assert path.exists()  # it is held
    assert not path.exists()
    path.write_text("")  # of a process that was killed
    (path.parent / ".job.txt.x").write_text("young")
    remove_leftovers(path.parent)
    assert [left.name for left in path.parent.iterdir()] == [".job.txt.x"]
    os.utime(path.parent / ".job.txt.x", (1, 1))
    remove_unfinished(path.parent, ".other.*")
    assert path.parent.exists()
    remove_leftovers(path.parent)
    assert not path.parent.exists()
