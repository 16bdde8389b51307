"""The table at the end of ``.ci/run``: each part, its seconds, its tests, and what was skipped and why."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TESTS = """...
1 failed, 1234 passed, 3 skipped, 5 deselected, 2 warnings in 300.51s (0:05:00)
Not tested here:
  2 tests of the real datasets (FRHSIC_DATA is not set)
  1 other test (for another reason)
.venv/bin/python -m pytest -q -m slow tests
16 passed in 12.00s
"""
PORTABLE = """== an old processor: OPENBLAS_CORETYPE=Prescott
800 passed in 90.00s
This processor has no AVX-512: not tested as a new processor.
"""
EXPECTED = """
part                                seconds    tests  skipped  status
lint                                     40                    ok
proofs                                    2                    ok
      THE PROOFS WERE NOT CHECKED: coqc is missing.
tests                                   313                    failed (2)
  pytest, run 1                         301    1,235        3  1 failed
      not tested: 2 tests of the real datasets (FRHSIC_DATA is not set)
      not tested: 1 other test (for another reason)
  pytest, run 2                          12       16        0
other processors                         95                    ok
  an old processor                       90      800        0
      This processor has no AVX-512: not tested as a new processor.
"""


def test_the_table_has_every_part_and_every_reason(tmp_path: Path) -> None:
    outputs = {
        "lint": ("40", "0", "All checks passed!\n"),
        "proofs": ("2", "0", "THE PROOFS WERE NOT CHECKED: coqc is missing.\n"),
        "tests": ("313", "2", TESTS),
        "other processors": ("95", "0", PORTABLE),
    }
    lines = []
    for name, (seconds, status, output) in outputs.items():
        log = tmp_path / f"{name}.log"
        log.write_text(output, encoding="utf-8")
        lines.append("\t".join([name, seconds, status, str(log)]))
    parts = tmp_path / "parts"
    parts.write_text("\n".join(lines) + "\n", encoding="utf-8")
    command = [sys.executable, str(ROOT / ".ci" / "summary"), str(parts)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == EXPECTED


def test_a_part_that_fails_ends_the_run_with_the_table(tmp_path: Path) -> None:
    """The commands of the run are replaced: `make lint` fails, and nothing after it is run."""
    shutil.copytree(ROOT / ".ci", tmp_path / ".ci")
    programs = tmp_path / "programs"
    programs.mkdir()
    make = programs / "make"
    make.write_text('#!/bin/sh\necho "make $@"\n[ "$1" != lint ]\n', encoding="utf-8")
    make.chmod(0o755)
    (programs / "chromium").symlink_to("/bin/true")
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", ".ci/run"], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode != 0
    setup, lint = [line.split() for line in done.stdout.splitlines()[-2:]]
    assert (setup[0], setup[2:]) == ("setup", ["ok"])
    assert (lint[0], lint[2:]) == ("lint", ["failed", "(1)"])
