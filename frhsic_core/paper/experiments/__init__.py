"""The experiments: one module or folder for each chapter that reports measurements.

A module holds a whole experiment: its plan, what it measures, its tables, and the queries of the ledger that it
answers. A folder is used where one file would be too long: the plan and the measurement stand in ``__init__``, the
tables and queries in ``tables``, calculations with torch in a module named after them. ``paired`` and ``pareto`` have
what several experiments need.

The experiment has the name of its module. It has one stored table or several: ``def plan()`` plans the table of the
same name, ``def plan_NAME()`` the table NAME. ``measure`` and ``measure_unit`` are named in the same way.
Experiments are found by these lines of their source: there is no list to extend, and nothing is imported before it is
needed. Plans and the keys of stored rows contain the name of a table, and ``module_of`` turns it into code.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace

__all__ = ["homes", "module_of", "query_modules", "tables_by_experiment"]

_PLAN = re.compile(r"^def plan(?:_(\w+))?\(", re.MULTILINE)
# ``frhsic run all`` runs these first, since others read their tables. The remaining modules follow by name.
_FIRST = ("main", "variants")
_QUERY = re.compile(r"^@query\b", re.MULTILINE)


@cache
def _sources() -> dict[str, str]:
    """Return the source text of every module of this folder by its dotted name."""
    root = Path(__file__).parent
    found = {}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        text = path.read_text(encoding="utf-8")
        found[".".join((__name__, *parts)).removesuffix(".__init__")] = text
    return found


@cache
def homes() -> dict[str, str]:
    """Return the dotted module of every stored table by name, in the order in which ``frhsic run all`` runs them.

    Examples
    --------
    >>> homes()["multi_sensitive"]
    'frhsic_core.paper.experiments.equal_opportunity'
    """
    found = {}
    for module in sorted(_sources(), key=_rank):
        for name in _PLAN.findall(_sources()[module]):
            found[name or _short(module)] = module
    return found


def _short(module: str) -> str:
    return module.rpartition(".")[2]


def _rank(module: str) -> tuple[int, str]:
    name = _short(module)
    return (_FIRST.index(name) if name in _FIRST else len(_FIRST), name)


def tables_by_experiment() -> dict[str, tuple[str, ...]]:
    """Return the names of the stored tables of every experiment, in the order of :func:`homes`.

    Examples
    --------
    >>> tables_by_experiment()["equal_opportunity"]
    ('equal_opportunity', 'multi_sensitive')
    """
    found: dict[str, list[str]] = {}
    for table, module in homes().items():
        found.setdefault(_short(module), []).append(table)
    return {name: tuple(tables) for name, tables in found.items()}


def query_modules() -> list[str]:
    """Return the dotted names of the modules that answer queries of the ledger."""
    return [module for module, text in _sources().items() if _QUERY.search(text)]


def module_of(name: str) -> ModuleType | SimpleNamespace:
    """Return ``plan``, ``measure`` and ``measure_unit`` of a table as attributes of one object.

    Examples
    --------
    >>> module_of("transfer").__name__
    'frhsic_core.paper.experiments.transfer'
    >>> module_of("multi_sensitive").plan.__name__
    'plan_multi_sensitive'
    """
    module = import_module(homes().get(name, f"{__name__}.{name}"))
    parts = {part: getattr(module, f"{part}_{name}", None) for part in ("plan", "measure", "measure_unit")}
    return SimpleNamespace(**parts) if parts["plan"] else module
