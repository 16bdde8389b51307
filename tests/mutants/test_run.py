"""The mutation script notices what it must, and every stored mutant can be applied."""

from __future__ import annotations

import importlib.util
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("run.py")
specification = importlib.util.spec_from_file_location("mutation_script", SCRIPT)
assert specification is not None
assert specification.loader is not None
script = importlib.util.module_from_spec(specification)
sys.modules["mutation_script"] = script
specification.loader.exec_module(script)

MUTANT = """
[[mutant]]
file = "frhsic_core/code.py"
old = "{old}"
new = "{new}"
tests = ["tests/test_code.py"]
about = "{about}"
"""


@pytest.fixture(autouse=True)
def _few_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # the small tree needs none, and they start slowly


def tree(root: Path, *mutants: str) -> Path:
    """Write a small package, its test and its mutants."""
    for name, text in {
        "frhsic_core/__init__.py": "",
        "frhsic_core/code.py": "import time\n\n\ndef double(x):\n    return 2 * x  # twice\n",
        "tests/test_code.py": "from frhsic_core.code import double\n\n\ndef test_it():\n    assert double(3) == 6\n",
        "tests/mutants/own.toml": "".join(mutants),
        "pyproject.toml": "[tool.pytest.ini_options]\naddopts = ['-ra']\n",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


NULL = MUTANT.format(old="# twice", new="# two times", about="Nothing changes.")
WRONG = MUTANT.format(old="2 * x", new="3 * x", about="The factor is wrong.")
CRASH = MUTANT.format(old="import time", new="import no_such_module", about="The import fails.")
ENDLESS = MUTANT.format(old="return 2 * x", new="time.sleep(1e6)", about="It never ends.")


def test_every_stored_mutant_can_be_applied() -> None:
    assert script.load()


def test_null_survives_and_others_are_killed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = tree(tmp_path, NULL, WRONG, CRASH)
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    out = tmp_path / "elsewhere" / "out.json"
    assert script.main(["--jobs", "2", "--out", str(out)], root) == 1  # 67 % are fewer than 92 %
    shown = capsys.readouterr().out
    assert "Survived: frhsic_core/code.py: Nothing changes." in shown
    assert "2 of 3 mutants" in shown
    killers = {record["outcome"]: record["by"] for record in json.loads(out.read_text())["mutants"].values()}
    assert killers["survived"] == ""
    assert killers["killed"].startswith("tests/test_code.py")
    assert {path: path.read_bytes() for path in before} == before
    # A second run takes everything from the file; a changed test makes it run again.
    script.main(["--out", str(out)], root)
    assert "3 of them known" in capsys.readouterr().out
    (root / "tests" / "test_code.py").write_text("def test_nothing():\n    pass\n")
    assert script.main(["--jobs", "1", "--out", str(out)], root) == 1
    assert "0 of 3 mutants" in capsys.readouterr().out


def test_an_equivalent_mutant_is_not_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = tree(tmp_path, NULL + "equivalent = 'It is a comment.'\n", WRONG)
    assert script.main(["--jobs", "1"], root) == 0
    shown = capsys.readouterr().out
    assert "1 of 1 mutants" in shown
    assert "It is a comment." in shown


def test_a_timeout_is_reported_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = tree(tmp_path, ENDLESS)
    assert script.main(["--jobs", "1", "--timeout", "4"], root) == 0
    assert "timed out" in capsys.readouterr().out.split("[1/1] ")[1].splitlines()[0]


@pytest.mark.parametrize(
    ("test", "word"),
    [
        ("def test_wrong():\n    assert 0\n", "failed without a mutant"),
        ("import pytest\n\n\n@pytest.mark.skip\ndef test_none():\n    pass\n", "all skipped"),
    ],
)
def test_tests_that_do_not_pass_are_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], test: str, word: str
) -> None:
    root = tree(tmp_path, WRONG)
    (root / "tests" / "test_code.py").write_text(test)
    assert script.main(["--jobs", "1"], root) == 2
    assert word in capsys.readouterr().err


@pytest.mark.parametrize(
    ("mutant", "word"),
    [
        (MUTANT.format(old="x", new="y", about="Ambiguous."), "occurs"),
        (MUTANT.format(old="missing", new="y", about="Out of date."), "occurs 0 times"),
        (WRONG + WRONG, "written twice"),
        (WRONG + "test = 1\n", "test"),
    ],
)
def test_a_mutant_that_cannot_be_applied_is_named(tmp_path: Path, mutant: str, word: str) -> None:
    with pytest.raises(SystemExit, match=word):
        script.load(tree(tmp_path, mutant))


def test_ctrl_c_keeps_results(tmp_path: Path) -> None:
    """A first result is in the file before the second mutant, which never ends, is interrupted."""
    root = tree(tmp_path, WRONG, ENDLESS)
    out = tmp_path / "out.json"
    code = f"import sys; from pathlib import Path; sys.path.insert(0, {str(SCRIPT.parent)!r}); import run; "
    code += f"sys.exit(run.main(['--jobs', '2', '--out', {str(out)!r}], Path({str(root)!r})))"
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (out.exists() and json.loads(out.read_text())["mutants"]):
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "resumes" in errors
    assert [record["outcome"] for record in json.loads(out.read_text())["mutants"].values()] == ["killed"]
