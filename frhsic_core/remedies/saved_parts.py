"""The parts of a saved file: check that each is the kind of thing that it should be."""

from __future__ import annotations

from typing import Any

import numpy as np


class Refused(Exception):
    """A reason why a file is refused."""


def require(holds: bool, reason: str) -> None:
    if not holds:
        raise Refused(reason)


def part_of(found: Any, name: str, *keys: str) -> dict[str, Any]:
    """Return a table of named parts; with ``keys`` it has exactly these."""
    require(isinstance(found, dict), f"{name} is no table of parts")
    if keys:
        require(set(found) == set(keys), f"parts of {name} are missing or added")
    return found


def list_of(found: Any, name: str, size: int | None = None) -> list[Any]:
    require(isinstance(found, list), f"{name} is no list")
    require(size is None or len(found) == size, f"{name} has another size")
    return found


def words_of(found: Any, name: str, *, distinct: bool = True) -> list[str]:
    words = list_of(found, name)
    require(all(isinstance(word, str) for word in words), f"{name} are not words")
    require(not distinct or len(set(words)) == len(words), f"{name} occur twice")
    return words


def number_of(found: Any, name: str) -> float:
    return float(numbers_of([found], name)[0])


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def numbers_of(
    found: Any,
    name: str,
    *,
    size: int | None = None,
    least: float | None = None,
    rising: bool = False,
    increasing: bool = False,
) -> np.ndarray:
    """Return finite numbers, of this size, at least this large, and in this order."""
    listed = list_of(found, name, size)
    require(all(map(_is_number, listed)), f"{name} are not numbers")
    try:
        values = np.array(listed, dtype=np.float64)
    except OverflowError:
        raise Refused(f"{name} are too large") from None
    require(bool(np.isfinite(values).all()), f"{name} are not finite")
    require(least is None or not (values < least).any(), f"{name} are below {least}")
    steps = np.diff(values)
    require(not rising or bool((steps >= 0).all()), f"{name} do not rise")
    require(not increasing or bool((steps > 0).all()), f"{name} do not increase")
    require(not increasing or len(values) > 0, f"{name} are missing")
    return values


def table_of(found: Any, name: str, rows: int, columns: int) -> np.ndarray:
    lines = list_of(found, name, rows)
    return np.array([numbers_of(line, name, size=columns) for line in lines]).reshape(rows, columns)
