"""Writing results so that a crash, a full disk or a second runner does no harm."""

from __future__ import annotations

import errno
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

__all__ = ["StoreError", "atomically", "claimed", "explained", "locked", "require_writable", "sweep_up"]


class StoreError(OSError):
    """The store cannot be read or written; says why and what to do."""


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn an error of the operating system into a :class:`StoreError` that says what to do."""
    try:
        yield
    except StoreError:
        raise
    except OSError as error:
        advice = {
            errno.ENOSPC: "the disk is full: free some space",
            errno.EDQUOT: "the quota is used up: free some space",
            errno.EROFS: "the place is read-only: choose another with --store",
            errno.EACCES: "writing there is not allowed: choose another with --store",
            errno.EPERM: "writing there is not allowed: choose another with --store",
        }.get(error.errno or 0, f"{error.strerror or error}: mend that")
        raise StoreError(
            error.errno, f"Results cannot be written to {path}: {advice} and run again. Finished stacks are kept."
        ) from error


def require_writable(folder: Path) -> None:
    """Raise :class:`StoreError` where a file of 4 KiB cannot be written to ``folder``, which is made."""
    with explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=".probe.", dir=folder)
        try:
            os.write(handle, b"\0" * 4096)
        finally:
            os.close(handle)
            os.unlink(name)


@contextmanager
def claimed(path: Path) -> Iterator[bool]:
    """Give True to the one process that holds the lock file ``path``; it is freed however that process ends."""
    with explained(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "ab") as file:
        held = flock(file.fileno(), wait=False)
        try:
            yield held
        finally:
            if held:
                path.unlink(missing_ok=True)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Let one process in at a time; the folder itself is locked, so no file is left behind."""
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    try:
        flock(handle, wait=True)
        yield
    finally:
        os.close(handle)


def sweep_up(folder: Path) -> None:
    """Remove what killed runners left: locks nobody holds, unfinished files older than an hour, an empty folder."""
    for path in folder.glob("*.lock"):
        with open(path, "ab") as file:
            if flock(file.fileno(), wait=False):
                path.unlink(missing_ok=True)
    for path in folder.glob(".*.*.*"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > 3600:
                path.unlink()
    with suppress(OSError):
        folder.rmdir()


def flock(handle: int, *, wait: bool) -> bool:
    """Lock an open file until it is closed or its process ends; True where there are no such locks (Windows)."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


def atomically(path: Path, write: Callable[[Any], Any]) -> None:
    """Write beside ``path``, flush to the disk, rename: the old file or the new one, never half."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
