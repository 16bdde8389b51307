"""Describe the raw files of datasets, and find, download and verify them.

A file is searched in the user's folder (``FRHSIC_DATA``) and in the cache, and is then downloaded.
Every file is verified before it is used. A wrong file in the user's folder is left unchanged and
not used. A wrong file in the cache is removed and downloaded again. This part is our own beside
pooch, which downloads: pooch knows one hash for one address, and no files whose structure is
checked because their hash is not known in advance.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

from frhsic_core._atomic_files import write_atomically

CONNECT_SECONDS = 5.0
READ_SECONDS = 30.0


@dataclass(frozen=True)
class FileRecord:
    """A verified raw file: its name, its sha256, a description of where it was found, and its path."""

    name: str
    sha256: str
    origin: str
    path: Path


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
        Accepted hashes (a file may exist with two kinds of line end). If the hash is not known in
        advance, the tuple is empty, ``check`` verifies the structure, and the hash is recorded at
        first use.
    links : tuple of Link
        Official sources, tried in order. Empty for a file that must be placed by hand.
    check : callable, optional
        A function of a path that raises `CorruptFile` if the structure of the file is wrong.
    by_hand : str
        Where a user finds the file, for the error message.
    """

    dataset: str
    name: str
    sha256: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()
    check: Callable[[Path], None] | None = None
    by_hand: str = ""

    def under(self, folder: Path) -> Path:
        """Return the file's path under a data folder or a cache."""
        return folder / self.dataset / self.name


@dataclass(frozen=True)
class Folders:
    """The folder with the user's own files, which is only read, and the cache for downloads."""

    data: Path | None
    cache: Path

    @classmethod
    def from_environment(cls) -> Folders:
        """Return the folders ``FRHSIC_DATA``, and ``FRHSIC_CACHE`` or the system's cache."""
        data = os.environ.get("FRHSIC_DATA")
        cache = os.environ.get("FRHSIC_CACHE")
        if not cache:
            # The folder that pooch.os_cache returns; importing pooch would also import tqdm, which
            # warns in notebooks.
            import platformdirs

            cache = platformdirs.user_cache_dir("frhsic-core")
        return cls(Path(data).expanduser() if data else None, Path(cache).expanduser())


# Verifying ----------------------------------------------------------------------------------------


def sha256_of(path: Path) -> str:
    """Return the sha256 of a file, in O(1) memory."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def looks_like_html(path: Path) -> bool:
    """Return whether a file starts like a web page, as when a server answers with an error page and status 200."""
    with path.open("rb") as handle:
        head = handle.read(1024).lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    return head.startswith((b"<!doctype html", b"<html", b"<head", b"<?xml")) or b"<html" in head


def verify(path: Path, file: RawFile) -> str:
    """Return the sha256 of ``path`` if it is ``file``; raise `CorruptFile` otherwise."""
    if not path.is_file():
        raise CorruptFile(f"{file.name} is not a regular file.")
    size = path.stat().st_size
    if size == 0:
        raise CorruptFile(f"{file.name} is empty.")
    digest = sha256_of(path)
    if digest in file.sha256:
        return digest
    if looks_like_html(path):
        raise CorruptFile(
            f"{file.name} ({size:,} bytes) is a web page, not data: the server refused the request."
        )
    if file.sha256:
        raise CorruptFile(
            f"{file.name} ({size:,} bytes) is not the published file: sha256 {digest}, expected {file.sha256[0]}."
        )
    if file.check is not None:
        file.check(path)
    return digest


def _match_record(file: RawFile, folders: Folders, digest: str) -> None:
    """Compare a hash that is not known in advance with the one recorded at first use, or record it."""
    if file.sha256:
        return
    record = file.under(folders.cache).with_name(Path(file.name).name + ".sha256")
    if record.exists():
        recorded = record.read_text(encoding="ascii", errors="replace").strip()
        if recorded != digest:
            raise CorruptFile(
                f"{file.name} has sha256 {digest}, but {recorded} was recorded at first use. If the new file is "
                f"correct, delete {record}."
            )
        return
    # The provenance contains the hash too, so a readable file is used even if the cache cannot be
    # written.
    with contextlib.suppress(OSError):
        write_atomically({record: lambda handle: handle.write(f"{digest}\n".encode("ascii"))})


# Finding ------------------------------------------------------------------------------------------


def find_local(file: RawFile, folders: Folders, tried: list[str]) -> FileRecord | None:
    """Return the verified file from the data folder or the cache, or None; append the reasons to ``tried``."""
    places = [(folders.cache, "cache", "the cache")]
    if folders.data is not None:
        places.insert(0, (folders.data, "data folder", "the folder FRHSIC_DATA"))
    for folder, where, origin in places:
        path = file.under(folder)
        if not path.exists():
            tried.append(f"{file.name}: not in the {where} ({path})")
            continue
        try:
            digest = verify(path, file)
            _match_record(file, folders, digest)
            return FileRecord(file.name, digest, origin, path)
        except CorruptFile as error:
            done = "is not usable and was left unchanged"
            if where == "cache":
                path.unlink()
                done = "was not usable and has been removed"
            tried.append(f"{file.name}: the copy in the {where} {done}: {error}")
    return None


def locate(
    files: Sequence[RawFile], folders: Folders, *, what: str, download: bool = True
) -> FileRecord:
    """Return the first of ``files`` that exists locally, or else the first that can be downloaded.

    Parameters
    ----------
    files : sequence of RawFile
        Files that give the same dataset, the preferred one first.
    folders : Folders
        Where to search, and where to keep downloads.
    what : str
        The name of the dataset, for the error message.
    download : bool
        Whether missing files may be downloaded.

    Raises
    ------
    DataUnavailable
        If no file could be found. The message lists every attempt, what to download by hand and
        where to put it.
    """
    tried = [] if folders.data is not None else ["no data folder: FRHSIC_DATA is not set"]
    for file in files:
        if (found := find_local(file, folders, tried)) is not None:
            return found
    if not download:
        tried.append("no download: download is False")
    else:
        for file in files:
            if (found := fetch(file, folders, tried)) is not None:
                return found
    target = folders.data or folders.cache
    by_hand = [f"  - {f.by_hand} → {f.under(target)}" for f in files if f.by_hand]
    raise DataUnavailable(
        f"The dataset {what} could not be loaded. These sources were tried:\n"
        + "\n".join(f"  - {line}" for line in tried)
        + "\nDownload one of these files by hand and save it at the path shown"
        + (", " if folders.data else ", or set FRHSIC_DATA to a folder with the same layout, ")
        + "then try again:\n"
        + "\n".join(by_hand)
        + '\nload_dataset("people") needs no files.'
    )


# Downloading --------------------------------------------------------------------------------------


def fetch(file: RawFile, folders: Folders, tried: list[str]) -> FileRecord | None:
    """Download the file, verify it and move it to the cache; return None if no source worked."""
    import requests

    path = file.under(folders.cache)
    for link in file.links:
        try:
            # In a folder of its own: whatever ends the process, the cache has the whole file or
            # none.
            with tempfile.TemporaryDirectory() as folder:
                sent = Path(folder) / path.name
                _download(link, sent)
                digest = verify(sent, file)
                with sent.open("rb") as whole:
                    write_atomically({path: partial(shutil.copyfileobj, whole)})
            _match_record(file, folders, digest)
            return FileRecord(file.name, digest, link.url, path)
        except CorruptFile as error:
            tried.append(f"{file.name}: {link.url} sent another file: {error}")
        except requests.RequestException as error:
            # The full text of a connection error repeats the URL three times.
            why = (
                type(error).__name__
                if error.response is None
                else f"HTTP status {error.response.status_code}"
            )
            tried.append(f"{file.name}: {link.url} could not be reached ({why})")
        except OSError as error:
            tried.append(
                f"{file.name}: the cache cannot be written: {error} Or set FRHSIC_CACHE to another folder."
            )
    return None


def _download(link: Link, path: Path) -> None:
    import pooch

    downloader = pooch.HTTPDownloader(chunk_size=1 << 16, timeout=(CONNECT_SECONDS, READ_SECONDS))
    sent = path if link.member is None else path.with_name("archive.zip")
    downloader(link.url, str(sent), None)
    if link.member is not None:
        with open_archive(sent) as archive:
            path.write_bytes(archive.read(member_of(archive, link.member)))


# Archives -----------------------------------------------------------------------------------------


def member_of(archive: zipfile.ZipFile, name: str) -> zipfile.ZipInfo:
    """Return the only member whose path ends in ``name``; where it would be extracted to does not matter."""
    wanted = PurePosixPath(name).parts
    files = [info for info in archive.infolist() if not info.is_dir()]
    found = [info for info in files if PurePosixPath(info.filename).parts[-len(wanted) :] == wanted]
    if len(found) != 1:
        listed = ", ".join(archive.namelist()[:8])
        raise CorruptFile(
            f"The archive has {len(found)} members named {name!r}, but exactly one is needed. It contains {listed}."
        )
    return found[0]


@contextlib.contextmanager
def open_archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open a zip archive; raise `CorruptFile` if it is not one, is truncated or fails its checksum."""
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except (zipfile.BadZipFile, EOFError, zlib.error) as error:
        what = (
            "a web page, not a zip archive"
            if looks_like_html(path)
            else f"not a complete zip archive ({error})"
        )
        raise CorruptFile(f"{path.name} is {what}.") from error
