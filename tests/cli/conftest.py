"""The commands on data see the private folders and the raw formats of the data tests."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "data"))


@pytest.fixture(autouse=True)
def _private_folders(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRHSIC_CACHE", str(tmp_path / "cache"))
    if request.node.get_closest_marker("data") is None:
        monkeypatch.delenv("FRHSIC_DATA", raising=False)
