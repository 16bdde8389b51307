"""Write and lock files so that a crash, a full disk or a second process does no harm."""

from __future__ import annotations

import errno
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

_OLD = 3600.0  # seconds after which an unfinished file belongs to no living process


def write_atomically(files: Mapping[Path, Callable[[Any], Any]]) -> None:
    """Call a function on a new binary file for each path, and move the files there when all of them are complete.

    A file is written in the folder of its path, flushed to the disk and renamed. A reader or a crash therefore finds
    the old file or the whole new one, and a disk that is full after the first file leaves all of the old files.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_atomically({Path(folder) / "a.txt": lambda file: file.write(b"whole")})
    ...     [path.read_text() for path in Path(folder).iterdir()]
    ['whole']
    """
    unfinished: dict[str, Path] = {}
    try:
        for path, write in files.items():
            if path.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
            unfinished[name] = path
            with os.fdopen(handle, "wb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(name, 0o644)  # a temporary file is readable by its owner only
        for name, path in unfinished.items():
            os.replace(name, path)
    except BaseException as error:
        for name in unfinished:
            Path(name).unlink(missing_ok=True)
        if isinstance(error, OSError):
            why = f"{path} could not be written ({error.strerror or error}): free some space, or choose another folder."
            raise OSError(error.errno, f"{why} No file was changed.") from None
        raise


@contextmanager
def claim(path: Path) -> Iterator[bool]:
    """Yield True to the one process that holds the lock file ``path``.

    The operating system frees the lock when that process ends, however it ends. On systems without such locks (Windows)
    every process holds it.
    """
    with _opened(path) as file:
        held = True
        with suppress(ImportError):
            import fcntl

            try:
                fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                held = False
        try:
            yield held
        finally:
            if held:
                path.unlink(missing_ok=True)


def _opened(path: Path) -> BinaryIO:
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            return open(path, "ab")
        except FileNotFoundError:  # another process has just removed the empty folder
            continue


def remove_leftovers(folder: Path) -> None:
    """Remove free locks, unfinished files older than an hour and, if it is then empty, the folder itself."""
    for path in folder.glob("*.lock"):
        with suppress(OSError), claim(path):
            pass  # who holds a lock removes it at the end
    remove_unfinished(folder, ".*.*")
    with suppress(OSError):
        folder.rmdir()


def remove_unfinished(folder: Path, pattern: str) -> None:
    """Remove the files that match ``pattern`` and are older than an hour; younger ones may be in use."""
    for path in folder.glob(pattern):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > _OLD:
                path.unlink()
