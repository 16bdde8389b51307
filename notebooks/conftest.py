"""Compare the figures of a notebook with the stored ones when nbval runs it; nbval itself compares only texts.

Kernels are copies of one process that has imported the large libraries, and nothing of this project. Importing them in
every kernel took a quarter of the time of all notebooks.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.provisioning import local_provisioner

LIBRARIES = ("ipykernel.kernelapp", "matplotlib.pyplot", "pandas", "scipy.stats", "sklearn.linear_model", "torch")
PATH = Path(__file__).resolve().parents[1] / "tests" / "figure_check.py"


def figures(outputs: Iterable[Any]) -> list[str]:
    """Return the images among the outputs of a cell, in order."""
    return [output["data"]["image/png"] for output in outputs if "image/png" in output.get("data", ())]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: Any) -> Generator[None, Any, Any]:
    """Fail a cell whose texts agree but whose figures do not."""
    result = yield
    if hasattr(item, "test_outputs") and item.options["check"]:
        stored, drawn = figures(item.cell.outputs), figures(item.test_outputs or ())
        if len(stored) != len(drawn):
            item.raise_cell_error(f"{len(drawn)} figures were drawn, but {len(stored)} are stored")
        if stored:
            specification = importlib.util.spec_from_file_location("figure_check", PATH)
            module = importlib.util.module_from_spec(specification)
            specification.loader.exec_module(module)
            for number, pair in enumerate(zip(stored, drawn, strict=True), start=1):
                if why := module.difference(*pair):
                    advice = "If this is meant, run `make notebooks` and look at the new figure."
                    item.raise_cell_error(f"Figure {number} of the cell has changed: {why}. {advice}")
    return result


class Kernel:
    """A kernel that another process has started, with what ``jupyter_client`` asks of ``subprocess.Popen``."""

    stdin = stdout = stderr = None
    parent: subprocess.Popen[str] | None = None

    def __init__(self, command: list[str], *, env: dict[str, str], cwd: str | None = None, **_: Any) -> None:
        if Kernel.parent is None:
            variables = os.environ | {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}
            pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
            Kernel.parent = subprocess.Popen([sys.executable, __file__], env=variables, **pipes)
        assert Kernel.parent.stdin is not None
        assert Kernel.parent.stdout is not None
        print(json.dumps([command[command.index("-f") :], env, cwd]), file=Kernel.parent.stdin, flush=True)
        self.pid = int(Kernel.parent.stdout.readline())

    def poll(self) -> int | None:
        """Return None while the kernel runs."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return 0
        return None

    wait = poll

    def send_signal(self, number: int) -> None:
        """Send a signal to the kernel."""
        os.kill(self.pid, number)


local_provisioner.launch_kernel = Kernel


def pytest_sessionfinish() -> None:
    """End the process that starts kernels."""
    if Kernel.parent is not None:
        Kernel.parent.communicate()
        Kernel.parent = None


def serve() -> None:
    """Start a kernel for each line of the standard input, and print its process."""
    os.environ["JPY_PARENT_PID"] = str(os.getpid())  # ipykernel reads it when imported: kernels end with this process
    for name in LIBRARIES:
        importlib.import_module(name)

    def remove(*_: Any) -> None:
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass

    signal.signal(signal.SIGCHLD, remove)  # a kernel that has ended leaves nothing behind, and its time is counted
    for line in sys.stdin:
        arguments, variables, folder = json.loads(line)
        started, ready = os.pipe()
        if pid := os.fork():
            os.close(ready)
            os.read(started, 1)  # the kernel is the leader of a process group of its own from here on
            os.close(started)
            print(pid, flush=True)
            continue
        os.setsid()
        os.close(ready)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nothing, stream)
        os.environ.clear()
        os.environ.update(variables)
        os.chdir(folder or ".")
        sys.argv = ["ipykernel_launcher", *arguments]
        sys.modules["ipykernel.kernelapp"].launch_new_instance()
        os._exit(0)


if __name__ == "__main__":
    serve()
