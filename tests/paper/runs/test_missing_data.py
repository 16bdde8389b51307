"""A run reports which data it downloads, from where and to where, before it uses the network."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from frhsic_core.data import fetching
from frhsic_core.paper.runs.plan import Experiment, Study, Task, units_of
from frhsic_core.paper.runs.runner import fetch_missing_data, run_experiment
from frhsic_core.paper.runs.store import ResultStore


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Use empty data folders and return the lines of the run; no download may start before the first line."""
    said: list[str] = []

    def refuse(*_: object) -> None:
        assert said, "a download started before it was announced"
        raise fetching._Unreachable("no network in this test")

    monkeypatch.setenv("FRHSIC_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(fetching, "_download", refuse)
    monkeypatch.setattr(fetching, "_from_wheel", refuse)
    monkeypatch.delenv("FRHSIC_DATA", raising=False)
    return said


def test_a_failed_download_is_reported_once(lines: list[str], tmp_path: Path) -> None:
    fetch_missing_data([("synthetic", "text"), ("compas", "text"), ("compas", "reference")], say=lines.append)
    assert lines[0] == "compas (text) is missing and is downloaded now:"
    assert "compas-scores-two-years.csv from https://" in lines[1]
    assert lines[1].endswith(str(tmp_path / "cache" / "compas" / "compas-scores-two-years.csv"))
    assert "frhsic data fetch compas" in lines[2]
    assert len(lines) == 3


def test_sweeps_and_studies_report_it(lines: list[str], tmp_path: Path) -> None:
    sweep = Experiment("crime", (Task("crime", "text", "text"),), ("unfair",), (1.0,), (42,), epochs=1)
    report = run_experiment(sweep, ResultStore(tmp_path, "crime"), device="cpu", say=lines.append)
    assert len(report.failed) == 1
    assert lines[1] == "crime (text) is missing and is downloaded now:"
    lines.clear()
    units = units_of(what="smallest", dataset="crime", variant="text", n=12, sigma=1.0)
    run_experiment(Study("s", "bandwidth_scaling", units), ResultStore(tmp_path, "s"), device="cpu", say=lines.append)
    assert lines[1] == "crime (text) is missing and is downloaded now:"


@pytest.mark.data
def test_a_download_is_reported_with_its_size(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    source = Path(os.environ["FRHSIC_DATA"]) / "compas" / "compas-scores-two-years.csv"
    monkeypatch.delenv("FRHSIC_DATA")
    monkeypatch.setenv("FRHSIC_CACHE", str(tmp_path))

    def serve(link: object, path: Path, progress: object) -> None:
        progress.total = source.stat().st_size
        shutil.copy(source, path)

    monkeypatch.setattr(fetching, "_download", serve)
    said: list[str] = []
    fetch_missing_data([("compas", "text"), ("compas", "reference")], say=said.append)
    assert said[2:] == ["  2.5 MB to download", "  Downloaded and verified: 2.5 MB, n = 6,172"]
    said.clear()
    fetch_missing_data([("compas", "text")], say=said.append)
    assert said == []
