"""The statements of the paper and the checks that certify them.

A module of this folder takes part by decorating functions with :func:`check`:

.. code-block:: python

    @check("Theorem 4.5")
    def two_sided_on_laws(*, quick: bool) -> list[Certificate]:
        return [inequality("HSIC is at most the integral", middle=..., upper=..., evidence="exact")]

The name is the printed number (a row of ``statements.csv``). The decorator writes it, with the
paper's label, on every certificate that the function returns. ``quick`` may shrink grids, draws and
searches, and a check that has nothing to shrink leaves it out. It must not change which
certificates come back, because recorded verdicts are compared by statement and claim; therefore a
claim never mentions a size. :func:`checks` imports the modules of the folder when it is first
called.
"""

from __future__ import annotations

import csv
import functools
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources

from frhsic_core.paper.statements.certificate import Certificate

Check = Callable[..., list[Certificate]]

_PACKAGE = __name__.rpartition(".")[0]
_REGISTERED: list[tuple[str, Check]] = []


@dataclass(frozen=True)
class Statement:
    """One row of ``statements.csv``: a numbered statement of the paper.

    Attributes
    ----------
    number : str
        As printed, e.g. ``"Theorem 4.5"``.
    label : str
        The paper's own label.
    what : str
        What it says, in a few of our words.
    needs_verdict : bool
        Definitions need none; they are implemented.
    short : str
        Two or three words for the picture of all statements.
    chapter, anchor : str
        The chapter of the book that states it, and the label of its box there.
    builds_on : tuple of str
        Numbers of the statements that its proof in the paper uses, without those that another of
        them builds on.
    paper_proof : {"yes", "no", "cites another paper", "definition"}
        Whether the paper proves it.
    place : tuple of int
        Column and row of its box in the picture of all statements.
    """

    number: str
    label: str
    what: str
    needs_verdict: bool
    short: str
    chapter: str
    anchor: str
    builds_on: tuple[str, ...]
    paper_proof: str
    place: tuple[int, ...] = ()


@dataclass(frozen=True)
class Result:
    """A certificate with its origin, the module and the function that made it."""

    certificate: Certificate
    module: str
    check: str

    @property
    def key(self) -> tuple[str, str]:
        """What identifies a verdict between two runs, statement and claim."""
        return self.certificate.statement, self.certificate.claim


@cache
def statements() -> dict[str, Statement]:
    """Return the paper's statements by printed number, in the order of the paper.

    Examples
    --------
    >>> len(statements()), statements()["Theorem 4.5"].label
    (24, 'cor:hsic-mmd-equivalence')
    """
    folder = resources.files("frhsic_core.paper.statements")
    text = folder.joinpath("statements.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines())
    return {row["number"]: statement_of(row) for row in rows}


def statement_of(row: Mapping[str, str]) -> Statement:
    """Return the statement of one row of ``statements.csv``."""
    builds_on: tuple[str, ...] = ()
    if row["builds_on"]:
        builds_on = tuple(row["builds_on"].split("; "))
    return Statement(
        number=row["number"],
        label=row["label"],
        what=row["what"],
        needs_verdict=row["verdict_needed"].startswith("yes"),
        short=row["short"],
        chapter=row["chapter"],
        anchor=row["anchor"],
        builds_on=builds_on,
        paper_proof=row["paper_proof"],
        place=tuple(int(number) for number in (row["place"] or "").split()),
    )


def find_statement(name: str) -> Statement:
    """Return a statement by its number or label.

    Numbers run through all kinds of statement, so the number alone ("4.5") names one too.

    Raises
    ------
    KeyError
        If there is no such statement; the message lists those that exist.

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
    raise KeyError(f"There is no statement {name!r}: choose one of {', '.join(statements())}.")


def check(*numbers: str, name: str | None = None) -> Callable[[Check], Check]:
    """Register the decorated function as a check of a statement, or of several that say the same.

    Parameters
    ----------
    *numbers : str
        Printed numbers of the statements, rows of ``statements.csv``.
    name : str, optional
        Name of the check in the record; by default the name of the function.

    Returns
    -------
    callable
        The check of the first statement. It takes ``quick`` (keyword, default False) even if the
        function does not.

    Raises
    ------
    ValueError
        If a number is not in ``statements.csv``.
    """
    for number in numbers:
        if number not in statements():
            raise ValueError(
                f"{number!r} is not a row of statements.csv: add it there, or correct the number."
            )

    def decorate(function: Check) -> Check:
        takes_quick = "quick" in inspect.signature(function).parameters

        def stamped(number: str) -> Check:
            label = statements()[number].label

            @functools.wraps(function)
            def run(*, quick: bool = False) -> list[Certificate]:
                found = function(quick=quick) if takes_quick else function()
                return [replace(one, statement=number, label=label) for one in found]

            run.__name__ = name or function.__name__
            _REGISTERED.append((number, run))
            return run

        checks_of_numbers = [stamped(number) for number in numbers]
        return checks_of_numbers[0]

    return decorate


@cache
def checks() -> dict[str, tuple[Check, ...]]:
    """Return the checks of every statement, in the order of the paper.

    Examples
    --------
    >>> [one.__name__ for one in checks()["Theorem 3.2"]]
    ['disintegration', 'formal_proof']
    """
    package = importlib.import_module(_PACKAGE)
    for info in pkgutil.iter_modules(package.__path__, prefix=f"{_PACKAGE}."):
        importlib.import_module(info.name)
    # Sorted by module, since modules also import each other; within a module the order is that of
    # the file.
    ordered = sorted(_REGISTERED, key=lambda entry: entry[1].__module__)
    found: dict[str, list[Check]] = {number: [] for number in statements()}
    for number, one in ordered:
        found[number].append(one)
    return {number: tuple(own) for number, own in found.items()}


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
    if numbers is None:
        numbers = statements()
    for number in numbers:
        for one in checks()[number]:
            if before is not None:
                before(number, one)
            module = one.__module__.rpartition(".")[2]
            for certificate in one(quick=quick):
                yield Result(certificate, module, one.__name__)
