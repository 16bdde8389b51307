"""The experiments by name: a module for each, and the calculations that only they need.

A module has ``plan(preset)`` and, where more is measured than every trained model gets, ``measure`` or
``measure_unit``. Plans, studies and the keys of stored rows know a module by its bare name; ``module_of`` is the
one place where a name becomes a module. Nothing is imported before it is asked for.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

__all__ = ["module_of"]


def module_of(name: str) -> ModuleType:
    """Return the module of an experiment, imported.

    Examples
    --------
    >>> module_of("transfer").__name__
    'frhsic_core.paper.experiments.transfer'
    """
    return import_module(f"{__name__}.{name}")
