"""A run of the tests ends with what it did not test, and fails in continuous integration if it could have."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # each test starts pytest in a process of its own
TESTS = """
import pytest

@pytest.mark.cuda
def test_on_a_gpu():
    pytest.importorskip("no_such_module_for_gpus")

@pytest.mark.data
@pytest.mark.parametrize("case", [1, 2])
def test_of_data(case):
    pass

@pytest.mark.browser
def test_in_a_browser():
    pytest.importorskip("no_such_module")

def test_of_something_else():
    pytest.skip("for another reason")

def test_that_passes():
    pass

@pytest.mark.slow
def test_that_takes_long():
    pass
"""
SETTINGS = (
    "[pytest]\naddopts = -ra -p no:cacheprovider\nmarkers =\n  cuda\n  data\n  browser\n  slow\n"
)


def last_lines(folder: Path, *options: str, **environment: str) -> tuple[int, list[str]]:
    """Run the tests above on a machine without GPU, data and chromium; return the status and what ends the output."""
    for name in ("conftest.py", "records.py"):
        shutil.copy(Path(__file__).with_name(name), folder)
    (folder / "test_parts.py").write_text(TESTS)
    (folder / "pytest.ini").write_text(SETTINGS)
    bare = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("FRHSIC_", "PYTEST_"))
    }
    bare |= {"PATH": str(folder), "CUDA_VISIBLE_DEVICES": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    words = [sys.executable, "-m", "pytest", "-q", *options, "."]
    done = subprocess.run(
        words, cwd=folder, env=bare | environment, capture_output=True, text=True, check=False
    )
    lines = done.stdout.splitlines()
    return done.returncode, lines[
        next(i for i, line in enumerate(lines) if line.startswith("Not tested here")) :
    ]


@pytest.mark.parametrize("options", [(), ("-p", "xdist", "-n", "2")])
@pytest.mark.parametrize("slow", [(), ("-m", "not slow")])
def test_the_last_lines_name_the_parts(
    tmp_path: Path, options: tuple[str, ...], slow: tuple[str, ...]
) -> None:
    status, lines = last_lines(tmp_path, *options, *slow, FRHSIC_CI="1")
    assert status == 0
    assert lines == [
        "Not tested here:",
        "  2 tests of the real datasets (FRHSIC_DATA is not set)",
        "  1 test of the built book in a browser (chromium is not installed)",
        "  1 test of captured CUDA steps and fused kernels (no NVIDIA GPU)",
        "  1 other test (for another reason)",
        *["  what takes long and rarely fails (run `make test-all`)"] * bool(slow),
    ]


@pytest.mark.parametrize("strict", [True, False])
def test_a_skip_that_can_be_avoided_fails(tmp_path: Path, strict: bool) -> None:
    (tmp_path / "chromium").write_text("#!/bin/sh\n")
    (tmp_path / "chromium").chmod(0o755)
    status, lines = last_lines(
        tmp_path, FRHSIC_DATA=str(tmp_path), **({"FRHSIC_CI": "1"} if strict else {})
    )
    assert status == int(strict)
    assert not any("datasets" in line for line in lines)
    named = "test_in_a_browser" in lines[-1] and "although chromium is installed" in lines[-1]
    assert named == strict


def test_every_test_belongs_to_one_of_the_two_commands() -> None:
    """Continuous integration runs both, strictly; the second starts with the first, which make then runs once."""
    root = Path(__file__).parents[1]
    assert "FRHSIC_CI=1 make test test-all" in (root / ".ci" / "run").read_text(encoding="utf-8")
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    assert (
        "--dist loadfile --no-loadscope-reorder" in makefile
    )  # workers keep the order of conftest.py
    rules = dict(re.findall(r"^(test(?:-all)?: \w+) .*\n\t(.*)$", makefile, re.MULTILINE))
    assert '-m "not slow" tests frhsic_core' in rules["test: setup"]
    assert rules["test-all: test"].endswith("-m slow tests")
