"""Every statement of the paper and the checks that certify it.

A module of :mod:`frhsic_core.paper.statements` takes part by defining one table,

.. code-block:: python

    CHECKS: dict[str, list[Check]] = {"Theorem 4.5": [two_sided_on_laws, two_sided_search]}

where the key is the number as printed (a row of ``statements.csv``) and each check is a function

.. code-block:: python

    def two_sided_on_laws(*, quick: bool) -> list[Certificate]: ...

``quick`` may shrink grids, draws and searches; it must not change which certificates come back, since recorded verdicts
are compared by statement and claim. So a claim never mentions a size. Modules are found by name in the package
folder when :func:`checks` is first called: nothing is imported before, and a module that is not there breaks nothing.
"""

from __future__ import annotations

import csv
import importlib
import pkgutil
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources

from frhsic_core.paper.statements.certificate import Certificate

__all__ = ["Check", "Result", "Statement", "checks", "find_statement", "run_checks", "statements"]

Check = Callable[..., list[Certificate]]

# What stands in the folder without checking a statement.
NOT_CHECKS = frozenset({"certificate", "registry", "sentences"})


@dataclass(frozen=True)
class Statement:
    """One row of ``statements.csv``: a numbered statement of the paper.

    Attributes
    ----------
    number : str
        As printed, e.g. ``"Theorem 4.5"``.
    label : str
        The paper's own label.
    tex_line : int
        Where it stands in the source of the paper.
    what : str
        What it says, in a few of our words.
    needs_verdict : bool
        Definitions need none; they are implemented.
    """

    number: str
    label: str
    tex_line: int
    what: str
    needs_verdict: bool


@dataclass(frozen=True)
class Result:
    """A certificate with its origin: the module and function that made it, and the seconds of that whole check."""

    certificate: Certificate
    module: str
    check: str
    seconds: float

    @property
    def key(self) -> tuple[str, str]:
        """What identifies a verdict between two runs, statement and claim."""
        return self.certificate.statement, self.certificate.claim

    @property
    def test(self) -> str:
        """The test file of the module, by convention."""
        return f"tests/paper/statements/test_{self.module}.py"


@cache
def statements() -> dict[str, Statement]:
    """Return the paper's statements by printed number, in the order of the paper.

    Examples
    --------
    >>> len(statements()), statements()["Theorem 4.5"].label
    (24, 'cor:hsic-mmd-equivalence')
    """
    text = resources.files("frhsic_core.paper.statements").joinpath("statements.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines())
    return {
        row["number"]: Statement(
            number=row["number"],
            label=row["label"],
            tex_line=int(row["tex_line"]),
            what=row["what"],
            needs_verdict=row["verdict_needed"].startswith("yes"),
        )
        for row in rows
    }


def find_statement(name: str) -> Statement:
    """Return a statement by number or label; an unknown name is an error that lists the known ones.

    Numbers run through all kinds of statement, so the bare number names one too.

    Examples
    --------
    >>> find_statement("thm:hsic_gdp").number, find_statement("4.5").number
    ('Theorem 4.7', 'Theorem 4.5')
    """
    wanted = name.strip().lower()
    for statement in statements().values():
        number = statement.number.lower()
        if wanted in (number, statement.label.lower(), number.rpartition(" ")[2]):
            return statement
    raise KeyError(f"there is no statement {name!r}: choose one of {', '.join(statements())}.")


@cache
def checks() -> dict[str, tuple[Check, ...]]:
    """Return the checks of every statement, from the ``CHECKS`` tables of all modules of this folder.

    Raises
    ------
    ValueError
        When a table names a statement that is not in ``statements.csv``.
    """
    import frhsic_core.paper.statements as package

    table: dict[str, tuple[Check, ...]] = dict.fromkeys(statements(), ())
    for info in sorted(pkgutil.iter_modules(package.__path__), key=lambda info: info.name):
        if info.name in NOT_CHECKS:
            continue
        module = importlib.import_module(f"{package.__name__}.{info.name}")
        for number, functions in getattr(module, "CHECKS", {}).items():
            if number not in table:
                raise ValueError(f"{module.__name__} checks {number!r}, which is no row of statements.csv.")
            table[number] += tuple(functions)
    return table


def run_checks(
    numbers: Iterable[str] | None = None,
    *,
    quick: bool = False,
    before: Callable[[str, Check], None] | None = None,
) -> Iterator[Result]:
    """Run the checks of the given statements (all by default) and yield their results as they come.

    Parameters
    ----------
    numbers : iterable of str, optional
        Printed numbers.
    quick : bool
        Small sizes.
    before : callable, optional
        Called with the number and the check before each one: a place to show progress.
    """
    for number in statements() if numbers is None else numbers:
        for check in checks()[number]:
            if before is not None:
                before(number, check)
            started = time.perf_counter()
            certificates = check(quick=quick)
            seconds = time.perf_counter() - started
            for certificate in certificates:
                yield Result(certificate, check.__module__.rsplit(".", 1)[-1], check.__name__, seconds)
