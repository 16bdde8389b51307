"""The mutation script notices what it must, and every stored mutant can be applied."""

from __future__ import annotations

import ast
import json
import re
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # each test starts pytest several times
SCRIPT = Path(__file__).with_name("run.py")


sys.path.insert(0, str(SCRIPT.parent))

import draw  # noqa: E402
import run as script  # noqa: E402

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
        "tests/mutants/written.toml": "".join(mutants),
        "pyproject.toml": "[tool.pytest.ini_options]\naddopts = ['-ra']\n",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


NULL = MUTANT.format(old="# twice", new="# two times", about="Nothing changes.")
WRONG = MUTANT.format(old="2 * x", new="3 * x", about="The factor is wrong.")
CRASH = MUTANT.format(old="import time", new="import no_such_module", about="The import fails.")
ENDLESS = MUTANT.format(old="return 2 * x", new="time.sleep(1e6)", about="It never ends.")
STARTED = MUTANT.format(
    old="return 2 * x", new="open({started!r}, 'w').close(); time.sleep(1e6)", about="It says that it runs."
)


def test_every_stored_mutant_can_be_applied() -> None:
    assert script.load()


def test_null_survives_and_others_are_killed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = tree(tmp_path, NULL, WRONG, CRASH)
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    out = tmp_path / "elsewhere" / "out.json"
    assert script.main(["--jobs", "2", "--out", str(out)], root) == 1  # 67 % are fewer than 92 %
    shown = capsys.readouterr().out
    assert (
        "Survived: frhsic_core/code.py:5: Nothing changes.\n  - return 2 * x  # twice\n  + return 2 * x  # two" in shown
    )
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
    """A first result is in the file before the second mutant, which waits for ever, is interrupted."""
    started = tmp_path / "started"
    root = tree(tmp_path, WRONG, STARTED.replace("{started!r}", repr(str(started))))
    out = tmp_path / "out.json"
    # A process that was started in the background may ignore the signal, and its children inherit this.
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    code += f"import sys; from pathlib import Path; sys.path.insert(0, {str(SCRIPT.parent)!r}); import run; "
    # The time limit of a mutant follows from the unchanged tests; here it must not end the mutant.
    code += "pytest = run.Runner.pytest; "
    code += "run.Runner.pytest = lambda self, copy, tests, limit: pytest(self, copy, tests, 1e6); "
    code += f"sys.exit(run.main(['--jobs', '2', '--out', {str(out)!r}], Path({str(root)!r})))"
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
    while not (started.exists() and out.exists() and json.loads(out.read_text())["mutants"]):
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    assert process.returncode == 130
    assert "resumes" in errors
    assert [record["outcome"] for record in json.loads(out.read_text())["mutants"].values()] == ["killed"]


CODE = """
def f(x, y=1.5, *, flag=True):
    # ü is two bytes; a < b is a comment
    ok = "ü" in x and not x.empty(7, y, scale=0.25)
    if ok or x.n >= 3:
        raise ValueError(f"wrong by {x.n - 1}")
    if x.cuda:
        return x + 1
    return g(
        key=x.a / y,
    )
"""
CHANGED = {
    "comparison": ['ok = "ü" not in x and', "if ok or x.n > 3:"],
    "arithmetic": ["key=x.a * y,"],
    "constant": ["y=3.0, *, flag=True", "y=1.5, *, flag=False", "empty(8, y", "scale=0.5)", "x.n >= 4:"],
    "boolean": ['"ü" in x or not', "in x and x.empty(", "if ok and x.n"],
    "branch": ["if False:\n        raise"],
    "swap": ["x.empty(y, 7, scale"],
    "keyword": ["x.empty(7, y, )", "return g(\n        \n    )"],
}


def test_every_kind_of_change_is_drawn_and_nothing_else() -> None:
    found: dict[str, list[str]] = {}
    for change in draw.places("frhsic_core/code.py", CODE):
        found.setdefault(change.kind, []).append(change.apply(CODE))
        assert draw.is_code(found[change.kind][-1])
        assert change.function == "f"
    assert {kind: len(texts) for kind, texts in found.items()} == {kind: len(new) for kind, new in CHANGED.items()}
    for kind, texts in found.items():
        for part in CHANGED[kind]:
            assert sum(part in text for text in texts) == 1, part


def test_a_draw_depends_on_its_seed_alone() -> None:
    first = draw.draw(script.ROOT, seed=3, count=30, only="frhsic_core/laws")
    assert first == draw.draw(script.ROOT, seed=3, count=30, only="frhsic_core/laws")
    assert first != draw.draw(script.ROOT, seed=4, count=30, only="frhsic_core/laws")
    assert len(set(first)) == 30
    assert {change.kind for change in first} == set(draw.KINDS)
    for change in first:
        text = (script.ROOT / change.file).read_text(encoding="utf-8")
        assert ast.dump(ast.parse(change.apply(text))) != ast.dump(ast.parse(text))


def test_drawn_mutants_run_the_tests_of_their_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The module's test file comes first, and an equivalent mutant is neither run nor counted."""
    root = tree(tmp_path)
    code = "def is_large(x):\n    return x > 3\n\n\ndef unused(x):\n    return x + 5\n"
    for name, text in {
        "frhsic_core/part/__init__.py": "",
        "frhsic_core/part/size.py": code,
        "tests/part/test_first.py": "def test_nothing():\n    pass\n",
        "tests/part/test_size.py": "from frhsic_core.part.size import is_large\n\n\n"
        "def test_it():\n    assert [x for x in range(9) if is_large(x)] == [4, 5, 6, 7, 8]\n",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    changes = draw.draw(root, seed=1, count=9, only="part")
    assert len(changes) == 4
    assert draw.tests_of(root, changes[0]) == (
        "frhsic_core/part/size.py", "tests/part/test_size.py", "tests/part/test_first.py",
    )  # fmt: skip
    assert draw.folder_of(root, changes[0]) == ("tests/part", "frhsic_core/part")
    words = ["--seed", "1", "--count", "9", "--only", "part", "--jobs", "2"]
    assert script.main(words, root) == 1
    shown = capsys.readouterr().out
    assert "2 of 4 mutants" in shown
    survivors = re.findall(r"Survived: frhsic_core/part/size.py:6: (\w+)\n  - return x \+ 5\n  \+ (.*)", shown)
    assert sorted(survivors) == [("arithmetic", "return x - 5"), ("constant", "return x + 6")]
    table = (
        '[[equivalent]]\nfile = "frhsic_core/part/size.py"\nbefore = "return x + 5"\nafter = "{}"\nreason = "Unused."\n'
    )
    tables = [table.format(after) for _, after in survivors]
    (root / "tests/mutants/equivalent.toml").write_text("\n".join(tables))
    assert script.main(words, root) == 0
    shown = capsys.readouterr().out
    assert "2 of 2 mutants" in shown
    assert shown.count("Unused.") == 2


def test_every_equivalent_mutant_is_still_a_change_of_the_code() -> None:
    """A table whose line has changed would never be used again."""
    path = SCRIPT.with_name("equivalent.toml")
    for table in tomllib.loads(path.read_text(encoding="utf-8")).get("equivalent", []):
        assert set(table) == {"file", "before", "after", "reason"}
        text = (script.ROOT / table["file"]).read_text(encoding="utf-8")
        known = set()
        for change in draw.places(table["file"], text):
            mutant = script.Mutant(change.file, change.old, change.new, (), change.kind, change.start)
            known.add(mutant.lines(text)[1:])
        assert (script.tidy(table["before"]), script.tidy(table["after"])) in known, table
