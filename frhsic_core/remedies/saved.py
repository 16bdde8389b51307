"""Write a fitted adjustment of scores as JSON with a seal, and read it without running code in it.

The file has the format, the SHA-256 of its content, and the content. The seal shows damage and
changes by hand. Then every part is checked: its names, kinds, sizes and ranges. No part names a
class or a function.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from frhsic_core.remedies.adjust import ADJUSTMENTS, MeanAdjustment, RankAdjustment
from frhsic_core.remedies.attributes import BASES, AttributeBasis
from frhsic_core.remedies.links import LINKS
from frhsic_core.remedies.ranges import ScoreRange
from frhsic_core.remedies.ranks import SHARES, ConditionalRanks

FORMAT = "frhsic adjustment of scores 6"
_LARGEST_FILE = 256 * 2**20


def written(adjuster: Any) -> str:
    """Return the text of a file."""
    if adjuster.adjustment_ is None:
        raise ValueError("the adjuster was fitted without attributes: there is nothing to save.")
    before, after = adjuster.expected_
    content = {
        "parameters": adjuster.get_params(),
        "adjustment": _adjustment(adjuster.adjustment_),
        "expected": {"before": before.tolist(), "after": after.tolist()},
    }
    text = _canonical(content)
    seal = hashlib.sha256(text.encode()).hexdigest()
    return f'{{"format": "{FORMAT}", "sha256": "{seal}", "content": {text}}}\n'


def read_saved(kind: type[Any], path: str | os.PathLike[str]) -> Any:
    """Return the adjuster of a file."""
    try:
        content = _content(Path(path))
        return _adjuster(kind, content)
    except (_Refused, KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        reason = str(error) if isinstance(error, _Refused) else "it is damaged"
        raise ValueError(
            f"{path} is not a saved adjustment of scores ({reason}): save the adjustment again."
        ) from None


class _Refused(Exception):
    """A reason why a file is refused."""


def _require(holds: bool, reason: str) -> None:
    if not holds:
        raise _Refused(reason)


def _canonical(content: Any) -> str:
    """Return JSON whose text depends on the content alone; NaN and infinity are an error."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _no_constant(word: str) -> float:
    raise _Refused(f"it has the number {word}")


def _content(path: Path) -> dict[str, Any]:
    """Return the content of a file after a check of its seal."""
    _require(path.stat().st_size <= _LARGEST_FILE, "it is too large")
    try:
        found = json.loads(path.read_text(encoding="utf-8"), parse_constant=_no_constant)
    except RecursionError:
        raise _Refused("its parts are nested too deeply") from None
    except ValueError:
        raise _Refused("it is no JSON text") from None
    _require(isinstance(found, dict), "it is no table of parts")
    _require(
        found.get("format") == FORMAT,
        f"its format is {str(found.get('format'))[:40]!r} and not {FORMAT!r}",
    )
    _require(set(found) == {"format", "sha256", "content"}, "parts are missing or added")
    seal = hashlib.sha256(_canonical(found["content"]).encode()).hexdigest()
    _require(seal == found["sha256"], "its seal does not fit: the content was changed")
    return _part(found["content"], "content", "parameters", "adjustment", "expected")


# Each part: how it is written, and how it is checked and read ---------------------------------------


def _adjuster(kind: type[Any], content: dict[str, Any]) -> Any:
    adjuster = kind()
    names = sorted(adjuster.get_params())
    parameters = _part(content["parameters"], "parameters", *names)
    adjuster.set_params(**parameters)
    try:
        adjuster._validate_params()
    except ValueError:
        raise _Refused("its parameters are unknown") from None
    adjuster.adjustment_ = _read_adjustment(content["adjustment"], parameters["method"])
    expected = _part(content["expected"], "expected", "before", "after")
    before = _numbers(expected["before"], "before", increasing=True)
    after = _numbers(expected["after"], "after", rising=True, size=len(before))
    adjuster.expected_ = (before, after)
    return adjuster


def _adjustment(adjustment: MeanAdjustment) -> dict[str, Any]:
    ranks = getattr(adjustment, "ranks", None)
    kept = adjustment.range
    return {
        "link": adjustment.link.name,
        "keep_range": adjustment.keep_range,
        "beta": adjustment.beta.tolist(),
        "limits": None if kept.limits is None else list(kept.limits),
        "shift": kept.shift,
        "basis": _basis(adjustment.basis),
        "ranks": None if ranks is None else _ranks(ranks),
    }


def _read_adjustment(found: Any, method: str) -> MeanAdjustment:
    names = ("link", "keep_range", "beta", "limits", "shift", "basis", "ranks")
    part = _part(found, "adjustment", *names)
    _require(isinstance(part["link"], str) and part["link"] in LINKS, "its link is unknown")
    _require(isinstance(part["keep_range"], bool), "keep_range is not true or false")
    adjustment = ADJUSTMENTS[method](LINKS[part["link"]], keep_range=part["keep_range"])
    adjustment.basis = _read_basis(part["basis"])
    adjustment.beta = _numbers(part["beta"], "beta", size=1 + adjustment.basis.size)
    limits = None
    if part["limits"] is not None:
        low, high = _numbers(part["limits"], "limits", size=2, rising=True)
        limits = (float(low), float(high))
    adjustment.range = ScoreRange(limits, _number(part["shift"], "shift"))
    _require((part["ranks"] is not None) == (method == "rank"), "its ranks do not fit its method")
    if isinstance(adjustment, RankAdjustment):
        adjustment.ranks = _read_ranks(part["ranks"], adjustment.basis)
    return adjustment


def _basis(basis: AttributeBasis) -> dict[str, Any]:
    splines = []
    for spline in basis.splines:
        plain = None
        if spline is not None:
            plain = {"degree": spline[0], "knots": spline[1].tolist()}
        splines.append(plain)
    return {
        "kind": basis.kind,
        "names": basis.names,
        "numeric": basis.numeric,
        "levels": basis.levels,
        "shares": {name: share.tolist() for name, share in basis.shares.items()},
        "origin": basis.origin.tolist(),
        "mean": basis.mean.tolist(),
        "scale": basis.scale.tolist(),
        "low": basis.low.tolist(),
        "high": basis.high.tolist(),
        "splines": splines,
    }


def _read_basis(found: Any) -> AttributeBasis:
    columns = ("origin", "mean", "scale", "low", "high")
    part = _part(
        found, "basis", "kind", "names", "numeric", "levels", "shares", "splines", *columns
    )
    _require(part["kind"] in BASES, "the kind of its basis is unknown")
    basis = AttributeBasis(part["kind"])
    basis.names = _words(part["names"], "names")
    basis.numeric = _words(part["numeric"], "numeric")
    levels = _part(part["levels"], "levels")
    shares = _part(part["shares"], "shares", *levels)
    together = [*basis.numeric, *levels]
    _require(sorted(together) == sorted(basis.names), "the names of its attributes do not fit")
    _require(len(basis.names) > 0, "it has no attribute")
    # The functions stand in the order of the attributes, whatever the order in the file.
    text = [name for name in basis.names if name in levels]
    basis.levels = {name: _words(levels[name], "levels") for name in text}
    basis.shares = {}
    for name in text:
        size = len(basis.levels[name])
        share = _numbers(shares[name], "shares", size=size, least=0.0)
        _require(size > 0 and abs(share.sum() - 1.0) < 1e-9, "shares do not sum to one")
        basis.shares[name] = share
    size = len(basis.numeric)
    for name in columns:
        setattr(basis, name, _numbers(part[name], name, size=size))
    _require(bool((basis.scale > 0).all()), "scale is not positive")
    _require(bool((basis.low <= basis.high).all()), "low is above high")
    splines = _list(part["splines"], "splines", size=size)
    basis.splines = [None if spline is None else _read_spline(spline) for spline in splines]
    return basis


def _read_spline(found: Any) -> tuple[int, np.ndarray]:
    part = _part(found, "spline", "degree", "knots")
    degree = part["degree"]
    _require(type(degree) is int and 0 < degree <= 3, "the degree of a spline is not 1, 2 or 3")
    knots = _numbers(part["knots"], "knots", increasing=True)
    _require(len(knots) >= 2, "a spline has fewer than two knots")
    return degree, knots


def _ranks(ranks: ConditionalRanks) -> dict[str, Any]:
    return {
        "width": ranks.width.tolist(),
        "step": ranks.step,
        "places": ranks.places.tolist(),
        "words": ranks.words.tolist(),
        "levels": ranks.levels.tolist(),
        "counts": ranks.counts.tolist(),
        "quantiles": ranks.quantiles.tolist(),
    }


def _read_ranks(found: Any, basis: AttributeBasis) -> ConditionalRanks:
    part = _part(
        found, "ranks", "width", "step", "places", "words", "levels", "counts", "quantiles"
    )
    ranks = ConditionalRanks()
    ranks.basis = basis
    ranks.width = _numbers(part["width"], "width", size=len(basis.numeric))
    ranks.step = _number(part["step"], "step")
    _require(bool((ranks.width > 0).all()) and ranks.step > 0, "width or step is not positive")
    ranks.words = np.array(_words(part["words"], "words", distinct=False), dtype=object)
    rows = len(ranks.words)
    _require(rows > 0, "it has no places")
    ranks.places = _table(part["places"], "places", rows, len(basis.numeric))
    ranks.levels = _numbers(part["levels"], "levels", increasing=True)
    ranks.counts = _table(part["counts"], "counts", rows, len(ranks.levels))
    _require(bool((ranks.counts >= 0).all()), "counts are negative")
    _require(bool((ranks.counts.sum(1) > 0).all()), "a place has no people")
    ranks.quantiles = _numbers(part["quantiles"], "quantiles", size=len(SHARES), rising=True)
    return ranks


# Kinds --------------------------------------------------------------------------------------------


def _part(found: Any, name: str, *keys: str) -> dict[str, Any]:
    """Return a table of named parts; with ``keys`` it has exactly these."""
    _require(isinstance(found, dict), f"{name} is no table of parts")
    if keys:
        _require(set(found) == set(keys), f"parts of {name} are missing or added")
    return found


def _list(found: Any, name: str, size: int | None = None) -> list[Any]:
    _require(isinstance(found, list), f"{name} is no list")
    _require(size is None or len(found) == size, f"{name} has another size")
    return found


def _words(found: Any, name: str, *, distinct: bool = True) -> list[str]:
    words = _list(found, name)
    _require(all(isinstance(word, str) for word in words), f"{name} are not words")
    _require(not distinct or len(set(words)) == len(words), f"{name} occur twice")
    return words


def _number(found: Any, name: str) -> float:
    return float(_numbers([found], name)[0])


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _numbers(
    found: Any,
    name: str,
    *,
    size: int | None = None,
    least: float | None = None,
    rising: bool = False,
    increasing: bool = False,
) -> np.ndarray:
    """Return finite numbers, of this size, at least this large, and in this order."""
    listed = _list(found, name, size)
    _require(all(map(_is_number, listed)), f"{name} are not numbers")
    try:
        values = np.array(listed, dtype=np.float64)
    except OverflowError:
        raise _Refused(f"{name} are too large") from None
    _require(bool(np.isfinite(values).all()), f"{name} are not finite")
    _require(least is None or not (values < least).any(), f"{name} are below {least}")
    steps = np.diff(values)
    _require(not rising or bool((steps >= 0).all()), f"{name} do not rise")
    _require(not increasing or bool((steps > 0).all()), f"{name} do not increase")
    _require(not increasing or len(values) > 0, f"{name} are missing")
    return values


def _table(found: Any, name: str, rows: int, columns: int) -> np.ndarray:
    lines = _list(found, name, rows)
    return np.array([_numbers(line, name, size=columns) for line in lines]).reshape(rows, columns)
