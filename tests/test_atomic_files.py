"""Files are written whole or not at all, and a lock has one holder."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from frhsic_core._atomic_files import claim, remove_leftovers, remove_unfinished, write_atomically

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
    assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "new").iterdir()} == {0o644}


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
