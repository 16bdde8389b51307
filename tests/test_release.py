"""The files of a release, made from a small site and empty archives."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
VERSION = "1.2.3"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Write what a release is made from: version, changelog, two archives and a built site."""
    (tmp_path / "frhsic_core").mkdir()
    (tmp_path / "frhsic_core" / "__init__.py").write_text(f'__version__ = "{VERSION}"\n')
    words = f"# Changelog\n\n## {VERSION} (2027-01-01)\n\nNew words.\n\n## 1.2.2\n\nOld words.\n"
    (tmp_path / "CHANGELOG.md").write_text(words)
    (tmp_path / "dist").mkdir()
    for name in (f"frhsic_core-{VERSION}-py3-none-any.whl", f"frhsic_core-{VERSION}.tar.gz"):
        (tmp_path / "dist" / name).write_bytes(name.encode())
    static = tmp_path / "_build" / "html" / "_static"
    static.mkdir(parents=True)
    (static / "chapters.zip").write_bytes(b"chapters")
    (static.parent / "index.html").write_text("<html></html>")
    return tmp_path


def make(repository: Path, tag: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / ".ci" / "release-files"), tag, "--only-pack"]
    return subprocess.run([*command, "--root", str(repository)], capture_output=True, text=True)


def test_a_release_has_all_its_files_and_their_sums(repository: Path) -> None:
    done = make(repository, f"v{VERSION}")
    assert done.returncode == 0, done.stderr
    release = repository / "_build" / "release"
    assert {path.name for path in release.iterdir()} == {
        f"frhsic_core-{VERSION}-py3-none-any.whl",
        f"frhsic_core-{VERSION}.tar.gz",
        f"frhsic-book-{VERSION}.zip",
        "chapters.zip",
        "NOTES.md",
        "SHA256SUMS",
    }
    assert (release / "NOTES.md").read_text(encoding="utf-8") == "New words.\n"
    sums = (release / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    assert len(sums) == 5
    for line in sums:
        digest, name = line.split("  ")
        assert hashlib.sha256((release / name).read_bytes()).hexdigest() == digest
    with zipfile.ZipFile(release / f"frhsic-book-{VERSION}.zip") as site:
        assert "index.html" in site.namelist()


def test_a_wrong_tag_makes_nothing(repository: Path) -> None:
    done = make(repository, "v1.2.4")
    assert done.returncode == 1
    assert "The tag is v1.2.4" in done.stderr
    assert not (repository / "_build" / "release").exists()


def test_a_version_without_notes_is_not_released(repository: Path) -> None:
    (repository / "CHANGELOG.md").write_text("# Changelog\n")
    done = make(repository, f"v{VERSION}")
    assert done.returncode == 1
    assert "no section" in done.stderr


def test_old_archives_are_not_released(repository: Path) -> None:
    shutil.rmtree(repository / "dist")
    assert "dist/ must have" in make(repository, f"v{VERSION}").stderr


def test_this_version_has_its_notes() -> None:
    import frhsic_core

    assert f"\n## {frhsic_core.__version__} " in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
