"""Compare results with a JSON file beside the test.

Words are compared exactly, and numbers up to the tolerance that the test names. If a change is
meant, run ``pytest --record`` with the test's file. It writes the record again: read the
difference.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


def differences(
    now: Any, before: Any, place: str = "", *, rel: Any = 0.0, abs_: Any = 0.0, **how: Any
) -> list[str]:
    """Return what differs between nested results.

    A number may differ by the larger of ``rel`` times the one on record and ``abs_``, both numbers
    or functions of the place; with ``of_largest`` the latter is a part of the largest number in the
    same list. With ``texts`` the numbers in words may differ as much, or as a function of both
    allows.
    """
    kinds = {type(now), type(before)}
    if kinds == {list}:
        if how.get("of_largest"):
            abs_ *= max(map(abs, before), default=0.0)
        now = dict(enumerate(now))
        before = dict(enumerate(before))
        kinds = {dict}
    if kinds == {dict}:
        if now.keys() != before.keys():
            lost = before.keys() - now.keys()
            new = now.keys() - before.keys()
            return [f"{place}: on record alone {lost}, now alone {new}"]
        found = []
        for key in before:
            inside = f"{place}/{key}"
            found += differences(now[key], before[key], inside, rel=rel, abs_=abs_, **how)
        return found

    def close(new: Any, old: Any) -> bool:
        part = rel(place) if callable(rel) else rel
        least = abs_(place) if callable(abs_) else abs_
        return are_close(new, old, part=part, least=least)

    texts = how.get("texts")
    if kinds == {str} and texts:
        same = same_words(now, before, texts if callable(texts) else close)
    elif kinds <= {int, float}:
        same = close(now, before)
    else:
        same = len(kinds) == 1 and now == before
    if same:
        return []
    return [f"{place}: was {before!r}, now {now!r}"]


def are_close(new: Any, old: Any, *, part: float, least: float) -> bool:
    """Return whether two numbers, or texts of numbers, are as near as a tolerance allows."""
    if float(new) == float(old):
        return True
    if new != new and old != old:  # both are NaN
        return True
    allowed = max(part * abs(float(old)), least)
    return abs(float(new) - float(old)) <= allowed < float("inf")


def same_words(now: str, before: str, close: Callable[[str, str], bool]) -> bool:
    """Return whether two texts differ in their numbers alone, and those are close."""
    if NUMBER.sub("#", now) != NUMBER.sub("#", before):
        return False
    pairs = zip(NUMBER.findall(now), NUMBER.findall(before), strict=False)
    return all(close(new, old) for new, old in pairs)


def as_json(value: Any) -> Any:
    """Return what JSON has no word for: a list for an array, and a name for a function."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return value.__qualname__


class Records:
    """The records in a folder."""

    def __init__(self, folder: Path, *, write: bool) -> None:
        self.folder = folder
        self.write = write

    def read(self, file: str = "recorded.json") -> Any:
        return json.loads((self.folder / file).read_text(encoding="utf-8"))

    def __call__(
        self, found: Any, file: str = "recorded.json", *, part: str = "", **tolerance: Any
    ) -> None:
        """Compare what was found with a file, or a part of it; write it before if asked to."""
        found = json.loads(json.dumps(found, default=as_json))
        if self.write:
            whole = self.read(file) | {part: found} if part else found
            text = json.dumps(whole, indent=0, ensure_ascii=False)
            (self.folder / file).write_text(text + "\n", encoding="utf-8")
        before = self.read(file)
        if part:
            before = before[part]
        wrong = differences(found, before, **tolerance)
        assert not wrong, "\n".join(wrong[:20])

    def text(self, found: str, file: str, **tolerance: Any) -> None:
        """Compare a text with a file, line by line; write it before if asked to."""
        path = self.folder / file
        if self.write:
            path.parent.mkdir(exist_ok=True)
            path.write_text(found, encoding="utf-8")
        before = path.read_text(encoding="utf-8").splitlines()
        wrong = differences(found.splitlines(), before, **tolerance)
        assert not wrong, "\n".join(wrong[:20])
