"""A run says which data it fetches, from where and to where, before the network is asked."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from frhsic_core.data import fetching
from frhsic_core.paper.runs.arriving import bring
from frhsic_core.paper.runs.plan import Experiment, Task
from frhsic_core.paper.runs.store import ResultStore
from frhsic_core.paper.runs.study import Study, StudyStore, run_study, units_of
from frhsic_core.paper.runs.sweep import run_experiment


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Empty data folders, and what the run says; the network is asked only after the run has spoken."""
    said: list[str] = []

    def refuse(*_: object) -> None:
        assert said, "the network was asked in silence"
        raise fetching._Unreachable("no network in this test")

    monkeypatch.setenv("FRHSIC_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(fetching, "_download", refuse)
    monkeypatch.setattr(fetching, "_from_wheel", refuse)
    monkeypatch.delenv("FRHSIC_DATA", raising=False)
    return said


def test_what_cannot_be_had_is_said_once(lines: list[str], tmp_path: Path) -> None:
    bring([("synthetic", "text"), ("compas", "text"), ("compas", "reference")], say=lines.append)
    assert lines[0] == "compas (text) is not here and is fetched now:"
    assert "compas-scores-two-years.csv from https://" in lines[1]
    assert lines[1].endswith(str(tmp_path / "cache" / "compas" / "compas-scores-two-years.csv"))
    assert "frhsic data fetch compas says what was tried" in lines[2]
    assert len(lines) == 3


def test_runs_and_studies_say_it(lines: list[str], tmp_path: Path) -> None:
    sweep = Experiment("crime", (Task("crime", "text", "text"),), ("unfair",), (1.0,), (42,), epochs=1)
    report = run_experiment(sweep, ResultStore(tmp_path, "crime"), device="cpu", say=lines.append)
    assert len(report.failed) == 1
    assert lines[1] == "crime (text) is not here and is fetched now:"
    lines.clear()
    units = units_of(what="smallest", dataset="crime", variant="text", n=12, sigma=1.0)
    run_study(Study("s", "bandwidth_scaling", units), StudyStore(tmp_path, "s"), device="cpu", say=lines.append)
    assert lines[1] == "crime (text) is not here and is fetched now:"


@pytest.mark.data
def test_what_arrives_is_said_with_its_size(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    source = Path(os.environ["FRHSIC_DATA"]) / "compas" / "compas-scores-two-years.csv"
    monkeypatch.delenv("FRHSIC_DATA")
    monkeypatch.setenv("FRHSIC_CACHE", str(tmp_path))

    def serve(link: object, path: Path, progress: object) -> None:
        progress.total = source.stat().st_size
        shutil.copy(source, path)

    monkeypatch.setattr(fetching, "_download", serve)
    said: list[str] = []
    bring([("compas", "text"), ("compas", "reference")], say=said.append)
    assert said[2:] == ["  2.5 MB to come", "  here now and verified: 2.5 MB, n = 6,172"]
    said.clear()
    bring([("compas", "text")], say=said.append)
    assert said == []
