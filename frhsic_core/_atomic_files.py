"""Write and lock files so that a crash, a full disk or a second process does no harm."""

from __future__ import annotations

import errno
import io
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

_OLD = 3600.0  # seconds after which an unfinished file belongs to no living process
_LONGEST = 200  # bytes of a name that its unfinished file repeats; file systems allow 255

Write = Callable[[Any], Any]


def write_atomically(files: Mapping[Path, Write], *, overwrite: bool = True) -> None:
    """Call a function on a new binary file for each path, and move the files there when complete.

    A file is written in the folder of its path, flushed to the disk and renamed. A reader or a
    crash therefore finds the old file or the whole new one, and a disk that is full after the first
    file leaves all of the old files. Two processes that write the same files leave those of one.

    A new file has the permissions that the user's umask gives, and a file that replaces another has
    those of the old one. A link stays, and the file to which it leads is replaced. What is no
    regular file, such as ``/dev/null`` or a pipe, is written after all others and is not replaced.

    Parameters
    ----------
    files : mapping of path to callable
        What writes each file.
    overwrite : bool
        If False, a file that exists is an error, and no file is written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_atomically({Path(folder) / "a.txt": lambda file: file.write(b"whole")})
    ...     [path.read_text() for path in Path(folder).iterdir()]
    ['whole']
    """
    regular = {path: write for path, write in files.items() if not is_special(path)}
    special = {path: write for path, write in files.items() if is_special(path)}
    if not overwrite:
        _require_new(regular)
    unfinished: dict[Path, Path] = {}
    moved = 0
    try:
        for path, write in regular.items():
            if path.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
            target = Path(os.path.realpath(path))
            target.parent.mkdir(parents=True, exist_ok=True)
            _write_beside(target, write, unfinished)
        with _alone_in({target.parent for target in unfinished.values()}):
            if not overwrite:
                _require_new(regular)
            for name, path in unfinished.items():
                os.replace(name, path)
                moved += 1
        for path, write in special.items():
            _write_into(path, write)
    except FileExistsError:
        _remove(unfinished)
        raise
    except OSError as error:
        _remove(unfinished)
        reason = error.strerror or error
        advice = "free some space, or choose another folder."
        unchanged = "" if moved else " No file was changed."
        why = f"{path} could not be written ({reason}): {advice}{unchanged}"
        raise OSError(error.errno, why) from None
    except BaseException:
        _remove(unfinished)
        raise


def is_special(path: Path) -> bool:
    """Return whether a path is a device, a pipe or a socket, which a new file must not replace."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _require_new(paths: Iterable[Path]) -> None:
    for path in paths:
        if path.exists():
            raise FileExistsError(errno.EEXIST, f"{path} exists: name another file.")


def _write_beside(target: Path, write: Write, unfinished: dict[Path, Path]) -> None:
    """Write a complete file in the folder of its target, with the permissions that it will have."""
    try:
        old = target.stat()
    except OSError:
        old = None
    begin = os.fsdecode(os.fsencode(target.name)[:_LONGEST])
    name = target.with_name(f".{begin}.{secrets.token_hex(4)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    # The system applies the umask to 0o666. Nobody else reads what will replace a private file.
    handle = os.open(name, flags, 0o666 if old is None else 0o600)
    unfinished[name] = target
    with os.fdopen(handle, "wb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())
    if old is not None:
        _take_owner_and_mode(name, old)


def _take_owner_and_mode(name: Path, old: os.stat_result) -> None:
    new = name.stat()
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        with suppress(OSError):  # only an administrator may give files away
            os.chown(name, old.st_uid, old.st_gid)
    os.chmod(name, stat.S_IMODE(old.st_mode))


def _write_into(path: Path, write: Write) -> None:
    """Write into a device or a pipe, which cannot seek."""
    whole = io.BytesIO()
    write(whole)
    with path.open("wb", buffering=0) as file:
        rest = whole.getbuffer()
        while rest:
            rest = rest[file.write(rest) :]


def _remove(unfinished: Iterable[Path]) -> None:
    for name in unfinished:
        name.unlink(missing_ok=True)


@contextmanager
def _alone_in(folders: Iterable[Path]) -> Iterator[None]:
    """Let one process at a time rename files in these folders, so that files of two do not mix."""
    with ExitStack() as stack:
        for folder in sorted(folders):  # in one order, so that two processes cannot block another
            stack.enter_context(_locked(folder))
        yield


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock a folder itself: no file is left, and the system frees the lock if the process ends.

    Windows and some network file systems have no such locks; there the lock does nothing.
    """
    handle = None
    with suppress(ImportError, OSError):
        import fcntl

        handle = os.open(folder, os.O_RDONLY)
        fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)


@contextmanager
def claim(path: Path) -> Iterator[bool]:
    """Yield True to the one process that holds the lock file ``path``.

    The operating system frees the lock when that process ends, however it ends. On systems without
    such locks (Windows) every process holds it.
    """
    held = True
    try:
        with _opened(path) as file:
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
                    _remove_open(path)
    finally:
        if held and os.name == "nt":
            _remove_open(path)


def _remove_open(path: Path) -> None:
    """Remove a file; on Windows one that is open stays."""
    with suppress(PermissionError):
        path.unlink(missing_ok=True)


def _opened(path: Path) -> BinaryIO:
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            return open(path, "ab")
        except FileNotFoundError:  # another process has just removed the empty folder
            continue


def remove_leftovers(folder: Path) -> None:
    """Remove free locks, unfinished files older than an hour and, if it is empty, the folder."""
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
