"""Start the kernels of notebooks as copies of a process that has imported what most chapters use.

The imports take five seconds on a slow machine, and there are eighteen chapters. The process is the server of
multiprocessing, which does not import the library itself.
"""

from __future__ import annotations

import multiprocessing
import os
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from typing import Any

import pytest
from jupyter_client.provisioning import local_provisioner

CONTEXT = multiprocessing.get_context("forkserver")
IMPORTS = [
    "ipykernel.kernelapp",
    "matplotlib.pyplot",
    "pandas",
    "scipy.stats",
    "sklearn.ensemble",
    "torch",
]


def install() -> None:
    """Let jupyter_client start kernels in this way, and begin the imports."""
    local_provisioner.launch_kernel = Kernel
    CONTEXT.set_forkserver_preload(IMPORTS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")  # as ipykernel does
        forkserver.ensure_running()


def _run(command: list[str], env: dict[str, str], folder: str, ready: Connection) -> None:
    os.setsid()  # first of all: jupyter_client ends the whole group of a kernel
    ready.send(True)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    from ipykernel import kernelapp

    kernelapp.launch_new_instance(command[command.index("-f") :])


class Kernel:
    """What jupyter_client asks of a program that it has started."""

    stdin = stdout = stderr = None

    def __init__(self, command: list[str], **options: Any) -> None:
        here, there = CONTEXT.Pipe()
        self._process = CONTEXT.Process(
            target=_run, args=(command, options["env"], options["cwd"], there)
        )
        self._process.start()
        there.close()
        here.recv()  # an error if it has ended before it leads a group of its own
        self.pid, self.kill, self.terminate = (
            self._process.pid,
            self._process.kill,
            self._process.terminate,
        )

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self) -> int | None:
        self._process.join()
        return self._process.exitcode
