"""The mutation script draws what it should and notices what it must."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # each test starts pytest several times
SCRIPT = Path(__file__).with_name("run.py")


sys.path.insert(0, str(SCRIPT.parent))

import draw  # noqa: E402
import run as script  # noqa: E402

SIZE = """
def is_large(x):
    return x > 3


def unused(x):
    return x + 5
"""
TEST = """
from frhsic_core.part.size import is_large


def test_it():
    assert [x for x in range(9) if is_large(x)] == [4, 5, 6, 7, 8]
"""
WORDS = ["--seed", "1", "--count", "9", "--jobs", "2"]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a small package with its tests."""
    monkeypatch.setenv(
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1"
    )  # the small tree needs none, and they start slowly
    for name, text in {
        "frhsic_core/__init__.py": "",
        "frhsic_core/part/__init__.py": "",
        "frhsic_core/part/size.py": SIZE,
        "tests/part/test_first.py": "def test_nothing():\n    pass\n",
        "tests/part/test_size.py": TEST,
        "pyproject.toml": "[tool.pytest.ini_options]\naddopts = ['-ra']\nmarkers = ['slow: long']\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_drawn_mutants_run_the_tests_of_their_folder(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The module's test file comes first, and an equivalent mutant is neither run nor counted."""
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    changes = draw.draw(root, seed=1, count=9)
    assert len(changes) == 4
    assert draw.tests_of(root, changes[0]) == (
        "tests/part/test_size.py", "tests/part/test_first.py", "frhsic_core/part/size.py",
    )  # fmt: skip
    assert script.main(WORDS, root) == 1
    shown = capsys.readouterr().out
    assert "2 of 4 mutants" in shown
    assert shown.count("Killed by tests/part/test_size.py::test_it") == 2
    survivors = re.findall(
        r"Survived: frhsic_core/part/size.py:7: (\w+)\n  - return x \+ 5\n  \+ (.*)", shown
    )
    assert sorted(survivors) == [("arithmetic", "return x - 5"), ("constant", "return x + 6")]
    assert {path: path.read_bytes() for path in before} == before
    other = root / "tests" / "other" / "test_five.py"
    other.parent.mkdir()
    other.write_text(
        "from frhsic_core.part.size import unused\n\n\ndef test_five():\n    assert unused(1) == 6\n"
    )
    assert script.main(WORDS, root) == 0
    assert capsys.readouterr().out.count("Killed by tests/other/test_five.py::test_five") == 2
    other.unlink()
    table = (
        '[[equivalent]]\nfile = "frhsic_core/part/size.py"\n'
        'before = "return x + 5"\nafter = "{}"\nreason = "Unused."\n'
    )
    (root / "tests" / "mutants").mkdir()
    (root / "tests/mutants/equivalent.toml").write_text(
        "\n".join(table.format(after) for _, after in survivors)
    )
    assert script.main(WORDS, root) == 0
    shown = capsys.readouterr().out
    assert "2 of 2 mutants" in shown
    assert shown.count("Unused.") == 2


def test_chapters_and_findings_that_import_a_module_of_the_paper_are_run() -> None:
    found = draw.tests_of(
        script.ROOT,
        draw.Change("frhsic_core/paper/experiments/cost/__init__.py", "", "", 0, "", ""),
    )
    assert {"tests/findings/test_runtime.py", "notebooks/runtime.ipynb"} <= set(found)
    assert found.index("tests/paper/experiments/test_cost.py") == 0
    assert found[-2:] == ("tests/paper/claims/test_recorded.py", "tests/paper/test_display.py")


def test_a_mutant_that_never_ends_is_noticed(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = "def is_large(x):\n    while x != x:\n        pass\n    return x > 3\n"
    (root / "frhsic_core/part/size.py").write_text(code)
    script.main([*WORDS, "--timeout", "6"], root)
    assert re.search(
        r"Killed by time-out: .*\n  - while x != x:\n  \+ while x == x:", capsys.readouterr().out
    )


@pytest.mark.parametrize(
    ("test", "word"),
    [
        ("def test_wrong():\n    assert 0\n", "failed without a mutant"),
        ("import pytest\n\n\n@pytest.mark.skip\ndef test_none():\n    pass\n", "all skipped"),
    ],
)
def test_tests_that_do_not_pass_are_an_error(
    root: Path, capsys: pytest.CaptureFixture[str], test: str, word: str
) -> None:
    for name in ("first", "size"):
        (root / "tests" / "part" / f"test_{name}.py").write_text(test)
    assert script.main(WORDS, root) == 2
    assert word in capsys.readouterr().err


CODE = """
def f(x, y=1.5, *, flag=True):
    # ü is two bytes; a < b is a comment
    ok = "ü" in x and not x.empty(7, y, scale=0.25)
    if ok or x.n >= 3:
        raise ValueError(f"wrong by {x.n - 1}")
    if x.cuda:
        return x + 1
    def fused(a):
        return a + 1
    x.tick_params(length=2)
    x.sort(strict=True)
    return g(
        key=x.a / y,
    )
"""
CHANGED = {
    "comparison": ['ok = "ü" not in x and', "if ok or x.n > 3:"],
    "arithmetic": ["key=x.a * y,"],
    "constant": [
        "y=3.0, *, flag=True",
        "y=1.5, *, flag=False",
        "empty(8, y",
        "scale=0.5)",
        "x.n >= 4:",
    ],
    "boolean": ['"ü" in x or not', "in x and x.empty(", "if ok and x.n"],
    "branch": ["if False:\n        raise"],
    "swap": ["x.empty(y, 7, scale"],
    "keyword": ["x.empty(7, y, )", "return g(\n        \n    )"],
    "step": ["    pass\n    return g"],
}


def test_every_kind_of_change_is_drawn_and_nothing_else() -> None:
    found: dict[str, list[str]] = {}
    for change in draw.places("frhsic_core/code.py", CODE):
        found.setdefault(change.kind, []).append(change.apply(CODE))
        assert draw.is_code(found[change.kind][-1])
        assert change.function == "f"
    assert {kind: len(texts) for kind, texts in found.items()} == {
        kind: len(new) for kind, new in CHANGED.items()
    }
    for kind, texts in found.items():
        for part in CHANGED[kind]:
            assert sum(part in text for text in texts) == 1, part


def test_a_draw_depends_on_its_seed_alone() -> None:
    folders = [
        {c.file.split("/")[0] for c in draw.draw(script.ROOT, seed=3, count=9, only=o)}
        for o in ("", "book/_ext")
    ]
    assert folders == [{"frhsic_core"}, {"book"}]
    first = draw.draw(script.ROOT, seed=3, count=60, only="frhsic_core/laws")
    assert first == draw.draw(script.ROOT, seed=3, count=60, only="frhsic_core/laws")
    assert first != draw.draw(script.ROOT, seed=4, count=60, only="frhsic_core/laws")
    assert len(set(first)) == 60
    assert {change.kind for change in first} == set(draw.KINDS)
    for change in first:
        text = (script.ROOT / change.file).read_text(encoding="utf-8")
        assert ast.dump(ast.parse(change.apply(text))) != ast.dump(ast.parse(text))


def test_the_parts_of_a_draw_are_the_draw(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two runs on a machine that is lent for minutes run what one run on another machine does."""
    results = []
    for words in (["--part", "1/2"], ["--part", "2/2"], []):
        script.main([*WORDS, *words], root)
        results.append(set(re.findall(r"^(?:Killed by|Survived).*", capsys.readouterr().out, re.M)))
    first, second, both = results
    assert len(both) >= 3
    assert first | second == both
    with pytest.raises(SystemExit):
        script.options().parse_args(["--part", "3/2"])
    assert "write 2/4 for the second of four" in capsys.readouterr().err


def test_every_equivalent_mutant_is_still_a_change_of_the_code() -> None:
    """A table whose statement has changed would never be used again."""
    for file, before, after in script.equivalent(script.ROOT):
        text = (script.ROOT / file).read_text(encoding="utf-8")
        found = {change.statements(text) for change in draw.places(file, text)}
        assert (before, after) in found, f"{file}: {before}"


def test_a_formatter_does_not_change_the_statement_of_a_mutant() -> None:
    """Every line break, quote and comment is different, and every mutant is the same statement."""
    layouts = (CODE, ast.unparse(ast.parse(CODE)))
    first, second = ([c.statements(text) for c in draw.places("code.py", text)] for text in layouts)
    assert first == second
    assert ("if ok or x.n >= 3:", "if ok and x.n >= 3:") in first
    assert ("x.tick_params(length=2)", "pass") not in first
    assert draw.normal("elif a is None:  # why".partition("  #")[0]) == "if a is None:"
