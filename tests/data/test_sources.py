"""Where bytes come from, and all that can go wrong on the way. A small server on this machine plays the network."""

from __future__ import annotations

import errno
import hashlib
import http.server
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import raw_formats as raw

from frhsic_core.data import (
    CorruptFile,
    DataUnavailable,
    _acs_income,
    _files,
    _loading,
    _meps,
    load_dataset,
)
from frhsic_core.data._files import Folders, Link, RawFile, locate

GOOD = b"a,b\n1,2\n" * 20_000
SHA = hashlib.sha256(GOOD).hexdigest()


class _Server(http.server.ThreadingHTTPServer):
    """Knows what it was asked for."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.served: list[str] = []
        self.stop_waiting = threading.Event()
        self.archive = b""


class _Handler(http.server.BaseHTTPRequestHandler):
    """Serves GOOD, error pages, half answers and one answer that never ends."""

    server: _Server

    def do_GET(self) -> None:
        body, status, claimed = GOOD, 200, None
        if self.path == "/page":
            body = raw.ERROR_PAGE
        elif self.path == "/gone":
            body, status = raw.ERROR_PAGE, 404
        elif self.path == "/half":
            body = GOOD[: len(GOOD) // 2]
        elif self.path == "/cut":
            body, claimed = GOOD[: len(GOOD) // 2], len(GOOD)
        elif self.path == "/zip":
            body = self.server.archive
        self.server.served.append(self.path)
        self.send_response(status)
        self.send_header("Content-Length", str(claimed or len(body)))
        self.end_headers()
        if self.path == "/slow":
            self.wfile.write(
                body[:70_000]
            )  # more than one chunk of the downloader, so that a partial file exists
            self.wfile.flush()
            self.server.stop_waiting.wait(20)
            return
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Stay silent."""


@pytest.fixture
def server() -> Iterator[_Server]:
    """Run a server that sends the good file and several bad ones."""
    with _Server() as running:
        thread = threading.Thread(
            target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )
        thread.start()
        yield running
        running.stop_waiting.set()
        running.shutdown()
        thread.join()


def _file(server: _Server, *paths: str, **options: Any) -> RawFile:
    links = tuple(Link(f"http://127.0.0.1:{server.server_address[1]}{path}") for path in paths)
    return RawFile(
        "toy", "toy.csv", **{"sha256": (SHA,), "links": links, "by_hand": "ask", **options}
    )


def _folders(tmp_path: Path, *, data: bool = False) -> Folders:
    return Folders(tmp_path / "data" if data else None, tmp_path / "cache")


def _left(tmp_path: Path) -> list[str]:
    return sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file())


def _put(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_order_is_data_folder_then_cache_then_network(tmp_path: Path, server: _Server) -> None:
    file = _file(server, "/good")
    folders = _folders(tmp_path, data=True)
    assert locate([file], folders, what="toy").origin.endswith("/good")
    assert _left(tmp_path) == ["cache/toy/toy.csv"]
    assert locate([file], folders, what="toy").origin == "the cache"
    _put(file.under(tmp_path / "data"), GOOD)
    assert locate([file], folders, what="toy").origin == "the folder FRHSIC_DATA"
    assert server.served == ["/good"]


def test_a_wrong_file_of_the_user_is_left_alone_and_not_used(
    tmp_path: Path, server: _Server
) -> None:
    file = _file(server)
    mine = _put(file.under(tmp_path / "data"), GOOD[:-1])
    with pytest.raises(
        DataUnavailable, match=r"in the data folder is not usable and was left unchanged.*sha256"
    ):
        locate([file], _folders(tmp_path, data=True), what="toy")
    assert mine.read_bytes() == GOOD[:-1]


def test_a_wrong_file_in_the_cache_is_removed_and_fetched_again(
    tmp_path: Path, server: _Server
) -> None:
    file = _file(server, "/good")
    mine = _put(file.under(tmp_path / "cache"), GOOD[:-1])
    found = locate([file], _folders(tmp_path), what="toy")
    assert found.sha256 == SHA
    assert mine.read_bytes() == GOOD
    mine.write_bytes(b"")
    with pytest.raises(DataUnavailable, match=r"has been removed: toy\.csv is empty"):
        locate([file], _folders(tmp_path), what="toy", download=False)
    assert not mine.exists()


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/page", "is a web page, not data"),
        ("/half", "is not the published file"),
        ("/cut", "could not be reached|is not the published file"),
        ("/gone", "HTTP status 404"),
    ],
)
def test_a_bad_answer_is_named_never_used_never_left(
    tmp_path: Path, server: _Server, path: str, why: str
) -> None:
    with pytest.raises(DataUnavailable, match=why):
        locate([_file(server, path)], _folders(tmp_path), what="toy")
    assert _left(tmp_path) == []
    assert locate([_file(server, path, "/good")], _folders(tmp_path), what="toy").sha256 == SHA


def test_the_cache_is_where_pooch_would_put_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import pooch

    monkeypatch.delenv("FRHSIC_CACHE")
    assert Folders.from_environment().cache == Path(pooch.os_cache("frhsic-core"))
    monkeypatch.setenv("FRHSIC_DATA", "~/mine")
    assert Folders.from_environment().data == Path.home() / "mine"


def test_the_message_says_what_was_tried_and_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DataUnavailable) as caught:
        load_dataset("meps", download=False)
    message = str(caught.value)
    for part in (
        "FRHSIC_DATA is not set",
        "not in the cache",
        "h181ssp.zip",
        "https://meps.ahrq.gov/",
        "by hand",
        'load_dataset("people")',
    ):
        assert part in message
    assert isinstance(caught.value, FileNotFoundError)


def test_every_official_source_is_https_and_every_dataset_can_be_had_by_hand() -> None:
    for name in _loading.REAL:
        sources = _loading.RECIPES[name].sources
        assert any(source.file.by_hand for source in sources)
        for source in sources:
            assert all(link.url.startswith("https://") for link in source.file.links)
            assert source.file.sha256 or source.file.check


def _zipped(path: Path, name: str, content: bytes) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(name, content)


@pytest.mark.parametrize(("read", "write", "why"), [
    (_acs_income.OFFICIAL_ZIP, lambda at: _put(at, raw.ERROR_PAGE), "is a web page, not data"),
    (_acs_income.read_official, lambda at: _put(at, raw.ERROR_PAGE), "a web page"),
    (_acs_income.OFFICIAL_ZIP, lambda at: _put(at, b"PK\x03\x04 cut short"), "not a complete zip"),
    (_acs_income.OFFICIAL_ZIP, lambda at: raw.acs_zip(at, raw.acs_official().drop(columns="RELP")), "no column RELP"),
    (_meps.OFFICIAL, lambda at: _zipped(at, "h181.ssp", b"something else" * 20), "not a SAS transport file"),
    (_meps.OFFICIAL, lambda at: _zipped(at, "other.txt", b""), r"0 members named 'h181.ssp'.*other.txt"),
])  # fmt: skip
def test_a_file_that_is_not_the_official_archive_is_recognised(
    tmp_path: Path, read: Any, write: Any, why: str
) -> None:
    write(tmp_path / "a.zip")
    with pytest.raises(CorruptFile, match=why):
        _files.verify(tmp_path / "a.zip", read) if isinstance(read, RawFile) else read(
            tmp_path / "a.zip"
        )


def test_a_hash_not_known_in_advance_is_recorded_and_held_to(tmp_path: Path) -> None:
    file = _acs_income.OFFICIAL_ZIP
    mine = raw.acs_zip(_put(file.under(tmp_path / "data"), b""), raw.acs_official())
    folders = _folders(tmp_path, data=True)
    first = locate([file], folders, what="acs", download=False)
    record = tmp_path / "cache" / "acs_income" / "csv_pca.zip.sha256"
    assert record.read_text().strip() == first.sha256
    raw.acs_zip(mine, raw.acs_official().iloc[1:])
    with pytest.raises(DataUnavailable, match="recorded at first use"):
        locate([file], folders, what="acs", download=False)
    record.unlink()
    assert locate([file], folders, what="acs", download=False).sha256 != first.sha256


def test_a_member_of_a_downloaded_archive_and_nothing_else_is_kept(
    tmp_path: Path, server: _Server
) -> None:
    with zipfile.ZipFile(tmp_path / "made.zip", "w") as archive:
        archive.writestr("folder/toy.csv", GOOD)
        archive.writestr("../../outside.txt", b"escaped")
        archive.writestr("/absolute.txt", b"escaped")
    server.archive = (tmp_path / "made.zip").read_bytes()
    (tmp_path / "made.zip").unlink()
    link = Link(f"http://127.0.0.1:{server.server_address[1]}/zip", "toy.csv")
    locate([_file(server, links=(link,))], _folders(tmp_path / "deep"), what="toy")
    assert _left(tmp_path) == ["deep/cache/toy/toy.csv"]
    # An archive that is kept whole is checked by its structure, and its hash is recorded.
    server.archive = raw.acs_zip(tmp_path / "made.zip", raw.acs_official()).read_bytes()
    whole = replace(_acs_income.OFFICIAL_ZIP, links=(replace(link, member=None),))
    found = locate([whole], _folders(tmp_path / "deep"), what="acs")
    assert found.sha256 == _files.sha256_of(tmp_path / "made.zip") == _files.sha256_of(found.path)
    assert found.path.with_name("csv_pca.zip.sha256").read_text().strip() == found.sha256


def test_a_cache_that_cannot_be_written_is_named(
    tmp_path: Path, server: _Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    # a file where the folder should be refuses every user, root included
    folders = Folders(None, _put(tmp_path / "cache", b"in the way"))
    with pytest.raises(DataUnavailable, match=r"cannot be written.*set FRHSIC_CACHE"):
        locate([_file(server, "/good")], folders, what="toy")

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(_files.os, "replace", full)
    with pytest.raises(DataUnavailable, match=r"No space left on device.*set FRHSIC_CACHE"):
        locate([_file(server, "/good")], _folders(tmp_path / "other"), what="toy")
    assert _left(tmp_path / "other") == []


def test_an_unwritable_cache_does_not_stop_a_file_in_the_data_folder(tmp_path: Path) -> None:
    file = _acs_income.OFFICIAL_ZIP
    raw.acs_zip(_put(file.under(tmp_path / "data"), b""), raw.acs_official())
    folders = Folders(tmp_path / "data", _put(tmp_path / "cache", b"in the way"))
    assert locate([file], folders, what="acs", download=False).origin == "the folder FRHSIC_DATA"


def test_a_kill_during_a_download_leaves_nothing_in_the_cache(
    tmp_path: Path, server: _Server
) -> None:
    port = server.server_address[1]
    program = textwrap.dedent(
        f"""
        from pathlib import Path
        from frhsic_core.data._files import Folders, Link, RawFile, locate
        file = RawFile("toy", "toy.csv", ("{SHA}",), (Link("http://127.0.0.1:{port}/slow"),))
        locate([file], Folders(None, Path({str(tmp_path / "cache")!r})), what="toy")
        """
    )
    (tmp_path / "temporary").mkdir()
    child = subprocess.Popen(
        [sys.executable, "-c", program], env={**os.environ, "TMPDIR": str(tmp_path / "temporary")}
    )
    deadline = time.monotonic() + 30
    while (
        not any(path.stat().st_size for path in tmp_path.rglob("toy.csv"))
        and time.monotonic() < deadline
    ):
        time.sleep(0.02)
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert [path.name for path in (tmp_path / "temporary").rglob("toy.csv")] == ["toy.csv"]
    assert _left(tmp_path / "cache") == []
    assert locate([_file(server, "/good")], _folders(tmp_path), what="toy").sha256 == SHA
    assert _left(tmp_path / "cache") == ["toy/toy.csv"]
