"""Describe where a result comes from: code, libraries and device."""

from __future__ import annotations

import hashlib
import importlib.metadata
import platform
import subprocess
from functools import cache
from pathlib import Path

import frhsic_core

# The sources that decide the numbers of a trained model. A change of a figure or of a command is not a new version.
_LAYERS = (
    "arrays.py",
    "kernels.py",
    "joint",
    "conditional",
    "auditing",
    "learning",
    "data",
    "paper/runs/metrics.py",
)
_LIBRARIES = ("torch", "numpy", "scipy", "scikit-learn", "pandas")


@cache
def code_version() -> str:
    """Return the version, a hash of the sources that decide the numbers and, in a git repository, the commit.

    The hash is that of the source text, so it is the same for an installed package, a clone and a copy.
    """
    root = Path(frhsic_core.__file__).parent
    digest = hashlib.sha256()
    for layer in _LAYERS:
        path = root / layer
        files = [path] if path.is_file() else sorted(path.rglob("*.py"))
        for file in files:
            digest.update(file.relative_to(root).as_posix().encode() + b"\0" + file.read_bytes())
    commit = _commit(root)
    return f"{frhsic_core.__version__}+{digest.hexdigest()[:12]}" + (f" ({commit})" if commit else "")


def _commit(root: Path) -> str:
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def environment(device: str) -> dict[str, str]:
    """Return the versions of the code, of Python and of the libraries, and the name of the device."""
    versions = {name: importlib.metadata.version(name) for name in _LIBRARIES}
    return {"code": code_version(), "python": platform.python_version(), **versions, "device": _device_name(device)}


def _device_name(device: str) -> str:
    if device.startswith("cuda"):
        import torch

        return torch.cuda.get_device_name(device)
    return f"{device} ({platform.machine()})"
