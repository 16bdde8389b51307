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

from frhsic_core.remedies.basis import BASES, AttributeBasis
from frhsic_core.remedies.links import LINKS
from frhsic_core.remedies.mean_adjustment import MeanAdjustment
from frhsic_core.remedies.ranges import ScoreRange
from frhsic_core.remedies.rank_adjustment import ADJUSTMENTS, RankAdjustment
from frhsic_core.remedies.ranks import SHARES, ConditionalRanks
from frhsic_core.remedies.saved_parts import (
    Refused,
    list_of,
    number_of,
    numbers_of,
    part_of,
    require,
    table_of,
    words_of,
)

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
    except (Refused, KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        reason = str(error) if isinstance(error, Refused) else "it is damaged"
        raise ValueError(
            f"{path} is not a saved adjustment of scores ({reason}): save the adjustment again."
        ) from None


def _canonical(content: Any) -> str:
    """Return JSON whose text depends on the content alone; NaN and infinity are an error."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _no_constant(word: str) -> float:
    raise Refused(f"it has the number {word}")


def _content(path: Path) -> dict[str, Any]:
    """Return the content of a file after a check of its seal."""
    require(path.stat().st_size <= _LARGEST_FILE, "it is too large")
    try:
        found = json.loads(path.read_text(encoding="utf-8"), parse_constant=_no_constant)
    except RecursionError:
        raise Refused("its parts are nested too deeply") from None
    except ValueError:
        raise Refused("it is no JSON text") from None
    require(isinstance(found, dict), "it is no table of parts")
    require(
        found.get("format") == FORMAT,
        f"its format is {str(found.get('format'))[:40]!r} and not {FORMAT!r}",
    )
    require(set(found) == {"format", "sha256", "content"}, "parts are missing or added")
    seal = hashlib.sha256(_canonical(found["content"]).encode()).hexdigest()
    require(seal == found["sha256"], "its seal does not fit: the content was changed")
    return part_of(found["content"], "content", "parameters", "adjustment", "expected")


# Each part: how it is written, and how it is checked and read ---------------------------------------


def _adjuster(kind: type[Any], content: dict[str, Any]) -> Any:
    adjuster = kind()
    names = sorted(adjuster.get_params())
    parameters = part_of(content["parameters"], "parameters", *names)
    adjuster.set_params(**parameters)
    try:
        adjuster._validate_params()
    except ValueError:
        raise Refused("its parameters are unknown") from None
    adjuster.adjustment_ = _read_adjustment(content["adjustment"], parameters["method"])
    expected = part_of(content["expected"], "expected", "before", "after")
    before = numbers_of(expected["before"], "before", increasing=True)
    after = numbers_of(expected["after"], "after", rising=True, size=len(before))
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
    part = part_of(found, "adjustment", *names)
    require(isinstance(part["link"], str) and part["link"] in LINKS, "its link is unknown")
    require(isinstance(part["keep_range"], bool), "keep_range is not true or false")
    adjustment = ADJUSTMENTS[method](LINKS[part["link"]], keep_range=part["keep_range"])
    adjustment.basis = _read_basis(part["basis"])
    adjustment.beta = numbers_of(part["beta"], "beta", size=1 + adjustment.basis.size)
    limits = None
    if part["limits"] is not None:
        low, high = numbers_of(part["limits"], "limits", size=2, rising=True)
        limits = (float(low), float(high))
    adjustment.range = ScoreRange(limits, number_of(part["shift"], "shift"))
    require((part["ranks"] is not None) == (method == "rank"), "its ranks do not fit its method")
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
    part = part_of(
        found, "basis", "kind", "names", "numeric", "levels", "shares", "splines", *columns
    )
    require(part["kind"] in BASES, "the kind of its basis is unknown")
    basis = AttributeBasis(part["kind"])
    basis.names = words_of(part["names"], "names")
    basis.numeric = words_of(part["numeric"], "numeric")
    levels = part_of(part["levels"], "levels")
    shares = part_of(part["shares"], "shares", *levels)
    together = [*basis.numeric, *levels]
    require(sorted(together) == sorted(basis.names), "the names of its attributes do not fit")
    require(len(basis.names) > 0, "it has no attribute")
    # The functions stand in the order of the attributes, whatever the order in the file.
    text = [name for name in basis.names if name in levels]
    basis.levels = {name: words_of(levels[name], "levels") for name in text}
    basis.shares = {}
    for name in text:
        size = len(basis.levels[name])
        share = numbers_of(shares[name], "shares", size=size, least=0.0)
        require(size > 0 and abs(share.sum() - 1.0) < 1e-9, "shares do not sum to one")
        basis.shares[name] = share
    size = len(basis.numeric)
    for name in columns:
        setattr(basis, name, numbers_of(part[name], name, size=size))
    require(bool((basis.scale > 0).all()), "scale is not positive")
    require(bool((basis.low <= basis.high).all()), "low is above high")
    splines = list_of(part["splines"], "splines", size=size)
    basis.splines = [None if spline is None else _read_spline(spline) for spline in splines]
    return basis


def _read_spline(found: Any) -> tuple[int, np.ndarray]:
    part = part_of(found, "spline", "degree", "knots")
    degree = part["degree"]
    require(type(degree) is int and 0 < degree <= 3, "the degree of a spline is not 1, 2 or 3")
    knots = numbers_of(part["knots"], "knots", increasing=True)
    require(len(knots) >= 2, "a spline has fewer than two knots")
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
    part = part_of(
        found, "ranks", "width", "step", "places", "words", "levels", "counts", "quantiles"
    )
    ranks = ConditionalRanks()
    ranks.basis = basis
    ranks.width = numbers_of(part["width"], "width", size=len(basis.numeric))
    ranks.step = number_of(part["step"], "step")
    require(bool((ranks.width > 0).all()) and ranks.step > 0, "width or step is not positive")
    ranks.words = np.array(words_of(part["words"], "words", distinct=False), dtype=object)
    rows = len(ranks.words)
    require(rows > 0, "it has no places")
    ranks.places = table_of(part["places"], "places", rows, len(basis.numeric))
    ranks.levels = numbers_of(part["levels"], "levels", increasing=True)
    ranks.counts = table_of(part["counts"], "counts", rows, len(ranks.levels))
    require(bool((ranks.counts >= 0).all()), "counts are negative")
    require(bool((ranks.counts.sum(1) > 0).all()), "a place has no people")
    ranks.quantiles = numbers_of(part["quantiles"], "quantiles", size=len(SHARES), rising=True)
    return ranks
