"""Settings every test shares: one thread, repeatable property-based search, and a report of what was not tested."""

from __future__ import annotations

import gc
import inspect
import os
import pickle
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Generator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import MagicMock

# Before torch is imported: on a small machine the default thread count makes small tensors up to ninety times slower.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")

import pytest
from records import Records

try:
    import fcntl
except ModuleNotFoundError:  # Windows: there a value may be computed by two workers
    fcntl = None  # type: ignore[assignment]

try:
    from hypothesis import HealthCheck, settings
except ModuleNotFoundError:  # only the property tests need it
    pass
else:
    settings.register_profile(
        "repeatable",
        derandomize=True,
        deadline=None,
        max_examples=60,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.differing_executors],
    )
    settings.load_profile("repeatable")


def chromium() -> str | None:
    """Return the path of chromium, if it is installed."""
    return next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )


class Part(NamedTuple):
    """Tests that need something which not every machine has: what they test, what they need, and whether it is here."""

    tests: str
    missing: str
    present: str
    available: Callable[[], bool]


# By the marker of the tests.
PARTS = {
    "cuda": Part(
        "captured CUDA steps and fused kernels",
        "no NVIDIA GPU",
        "an NVIDIA GPU is present",
        lambda: import_module("torch").cuda.is_available(),
    ),
    "data": Part(
        "the real datasets",
        "FRHSIC_DATA is not set",
        "FRHSIC_DATA is set",
        lambda: bool(os.environ.get("FRHSIC_DATA")),
    ),
    "browser": Part(
        "the built book in a browser",
        "chromium is not installed",
        "chromium is installed",
        lambda: chromium() is not None,
    ),
}


BOOKS = {"book", "built_book", "written_pages"}
# The files that take longest, the longest first; two of them build the book, whole and without pages of modules.
LONGEST = (
    "tests/book/test_browser.py",
    "notebooks/which_remedy.ipynb",
    "tests/book/test_pages.py",
    "tests/paper/experiments/test_recomputed.py",
    "tests/test_contributing.py",
    "notebooks/watch_frhsic.ipynb",
    "tests/test_mistakes.py",
    "tests/learning/test_estimators.py",
    "tests/paper/runs/test_runner.py",
    "tests/paper/runs/test_damage.py",
)


def in_turn(items: list[pytest.Item]) -> list[pytest.Item]:
    """Return the tests in an order in which several workers end at about the same time.

    A worker runs whole files. The longest come first, then the other notebooks, then the short files. Files that read
    the built book come last: earlier, they would wait until another worker has built it.
    """
    root = Path(__file__).resolve().parents[1]
    turns = {root / name: turn - len(LONGEST) for turn, name in enumerate(LONGEST)}
    readers = {item.path for item in items if BOOKS & set(getattr(item, "fixturenames", ()))}

    def turn(item: pytest.Item) -> int:
        return turns.get(
            item.path, 2 if item.path in readers else int(item.path.suffix != ".ipynb")
        )

    return sorted(items, key=turn)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that writes records."""
    parser.addoption(
        "--record",
        action="store_true",
        help="write the records of the tests again; see tests/records.py",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Use one thread, and let the notebooks of a worker share their imports."""
    if config.getoption("numprocesses", default=None) and not hasattr(config, "workerinput"):
        return  # this process runs no tests, and the workers need not wait until it has imported torch
    import_module("torch").set_num_threads(1)
    if hasattr(config, "workerinput") and config.getoption("nbval", default=False):
        import forked_kernels

        forked_kernels.install()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what this machine cannot run, note the part of the project, and put the tests of workers in turn."""
    if hasattr(config, "workerinput"):
        items[:] = in_turn(items)
        gc.freeze()  # what was imported and collected stays to the end; a thirtieth of the time went into visiting it
    available = {name: part.available() for name, part in PARTS.items()}
    for item in items:
        for name, part in PARTS.items():
            if item.get_closest_marker(name):
                item.user_properties.append(("part", (name, available[name])))
                if not available[name]:
                    item.add_marker(pytest.mark.skip(reason=part.missing))


# Outermost, so that the report comes after everything that pytest prints itself.
@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, None, None]:
    """Say which parts of the project were not tested; with FRHSIC_CI set, fail if they could have been."""
    yield
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    if terminal is None or hasattr(session.config, "workerinput"):
        return
    counts: Counter[tuple[str, str]] = Counter()
    avoidable = []
    for report in terminal.stats.get("skipped", []):
        reason = str(report.longrepr[2]).removeprefix("Skipped: ")
        name, available = dict(getattr(report, "user_properties", ())).get("part", ("", False))
        counts[PARTS[name].tests if name else "", reason] += 1
        if available:
            avoidable.append(f"  {report.nodeid} ({reason}, although {PARTS[name].present})")
    without_slow = "not slow" in session.config.option.markexpr
    if counts or without_slow:
        terminal.write_line("Not tested here:")
    for (tests, reason), count in sorted(counts.items(), reverse=True):
        which = (
            f"{count} {'' if tests else 'other '}test{'s' * (count > 1)}{tests and f' of {tests}'}"
        )
        terminal.write_line(f"  {which} ({reason})")
    if without_slow:
        terminal.write_line("  what takes long and rarely fails (run `make test-all`)")
    if avoidable and os.environ.get("FRHSIC_CI"):
        terminal.write_line("These tests must not be skipped:", red=True)
        terminal.write_line("\n".join(avoidable))
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a temporary folder that all workers of this run share."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base


@pytest.fixture(scope="session")
def once(shared_folder: Path) -> Callable[[str, Callable[[], Any]], Any]:
    """Return a function that computes what takes long once for all workers: ``once(name, function)``.

    The first worker computes and stores the value; the others wait for it and load it.
    """

    def load_or_compute(name: str, function: Callable[[], Any]) -> Any:
        path = shared_folder / f"{name}.once"
        with path.with_suffix(".lock").open("w") as lock:
            if fcntl is not None:
                fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.is_file():
                unfinished = path.with_suffix(f".{os.getpid()}")
                unfinished.write_bytes(pickle.dumps(function()))
                os.replace(unfinished, path)
        return pickle.loads(path.read_bytes())

    return load_or_compute


@pytest.fixture(scope="session")
def full_ledger(once: Callable[[str, Callable[[], Any]], Any]) -> Any:
    """Return the table of all verdicts."""
    from frhsic_core.paper.claims import ledger

    return once("ledger", ledger)


@pytest.fixture(autouse=True)
def _private_folders(request: pytest.FixtureRequest) -> None:
    """Hide the user's folders from tests of data and commands; those marked ``data`` see the real data."""
    if request.path.parent in (Path(__file__).parent / "cli", Path(__file__).parent / "data"):
        monkeypatch, folder = map(request.getfixturevalue, ("monkeypatch", "tmp_path"))
        monkeypatch.setenv("FRHSIC_CACHE", str(folder / "cache"))
        if request.node.get_closest_marker("data") is None:
            monkeypatch.delenv("FRHSIC_DATA", raising=False)


@pytest.fixture
def recorded(request: pytest.FixtureRequest) -> Records:
    """Return the records beside the test."""
    return Records(request.path.parent, write=request.config.getoption("--record"))


@pytest.fixture(scope="module")
def browser() -> Generator[Any, None, None]:
    """Return a running chromium."""
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as play:
        arguments = ["--disable-gpu", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
        running = play.chromium.launch(executable_path=chromium(), args=arguments)
        yield running
        running.close()


@pytest.fixture
def uncompiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let dcor and hyppo run as plain Python: numba is replaced by decorators that return the function they get.

    Compiling takes most of a minute, the statistics of some hundred rows do not. On ARM the compiler can also abort a
    process: LLVM wants its sections within 4 GB of each other (numba's issue 9001).
    """

    def decorator(*given: Any, **_: Any) -> Any:
        return given[0] if given and inspect.isfunction(given[0]) else lambda function: function

    numba = MagicMock(njit=decorator, jit=decorator, prange=range)
    monkeypatch.setitem(sys.modules, "numba", numba)
    monkeypatch.setitem(sys.modules, "numba.types", numba.types)


@pytest.fixture
def generator() -> Any:
    """Return a generator of torch with a fixed seed, fresh for each test."""
    return import_module("torch").Generator().manual_seed(20260101)
