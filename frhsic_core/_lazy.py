"""Import the public names of a package on first use, from one list that type checkers read too.

The list is the stub of the package, ``__init__.pyi``: lines such as ``from package.module import
Name as Name``, or ``from package import module as module``. A type checker reads the stub in place
of ``__init__.py``, and :func:`attach_stub` reads the same lines at run time.
"""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

TORCH = 'pip install "frhsic-core[torch]"'


def attach_stub(
    package: str, file: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package from its stub.

    Parameters
    ----------
    package, file : str
        ``__name__`` and ``__file__`` of the package.
    """
    homes = homes_in(Path(file).with_suffix(".pyi"))
    names = sorted(homes)

    def __getattr__(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        full_name = f"{package}.{name}"
        if homes[name] == package:  # a module of the package
            value = import_for(full_name, full_name)
        else:
            value = getattr(import_for(full_name, homes[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    def __dir__() -> list[str]:
        return sorted({*vars(sys.modules[package]), *names})

    return __getattr__, __dir__, names


def homes_in(stub: Path) -> dict[str, str]:
    """Return the module of each name that a stub imports."""
    homes: dict[str, str] = {}
    for node in ast.parse(stub.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module != "__future__":
            for alias in node.names:
                homes[alias.name] = str(node.module)
    return homes


def import_for(name: str, module: str) -> Any:
    """Import a module; without torch, say that the name needs it and how to get it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "torch":
            raise
        raise ImportError(f"{name} needs PyTorch, which is not installed: {TORCH}.") from error
