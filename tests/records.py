"""Compare results with a JSON file beside the test: words exactly, numbers up to the tolerance that the test names.

If a change is meant, run ``pytest --record`` with the test's file. It writes the record again: read the difference.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


def differences(
    now: Any, before: Any, place: str = "", *, rel: Any = 0.0, abs_: Any = 0.0, **how: Any
) -> list[str]:
    """Return what differs between nested results.

    A number may differ by the larger of ``rel`` times the one on record and ``abs_``, both numbers or functions of the
    place; with ``of_largest`` the latter is a part of the largest number in the same list. With ``texts`` the numbers
    in words may differ as much, or as a function of both allows.
    """

    def close(new: Any, old: Any) -> bool:
        part, least = (one(place) if callable(one) else one for one in (rel, abs_))
        near = abs(float(new) - float(old)) <= max(part * abs(float(old)), least) < float("inf")
        return near or float(new) == float(old) or (new != new and old != old)

    kinds, texts = {type(now), type(before)}, how.get("texts")
    if kinds in ({dict}, {list}):
        new, old = (dict(enumerate(one)) if isinstance(one, list) else one for one in (now, before))
        if new.keys() != old.keys():
            return [
                f"{place}: on record alone {old.keys() - new.keys()}, now alone {new.keys() - old.keys()}"
            ]
        if how.get("of_largest") and kinds == {list}:
            abs_ *= max(map(abs, before), default=0.0)
        parts = (
            differences(new[key], old[key], f"{place}/{key}", rel=rel, abs_=abs_, **how)
            for key in old
        )
        return [line for part in parts for line in part]
    if kinds == {str} and texts:
        pairs = zip(NUMBER.findall(now), NUMBER.findall(before), strict=False)
        same = NUMBER.sub("#", now) == NUMBER.sub("#", before)
        same = same and all((texts if callable(texts) else close)(*pair) for pair in pairs)
    else:
        same = close(now, before) if kinds <= {int, float} else len(kinds) == 1 and now == before
    return [] if same else [f"{place}: was {before!r}, now {now!r}"]


class Records:
    """The records in a folder."""

    def __init__(self, folder: Path, *, write: bool) -> None:
        self.folder, self.write = folder, write

    def read(self, file: str = "recorded.json") -> Any:
        return json.loads((self.folder / file).read_text(encoding="utf-8"))

    def __call__(
        self, found: Any, file: str = "recorded.json", *, part: str = "", **tolerance: Any
    ) -> None:
        """Compare what was found with a file, or with one part of it; write it before if asked to."""
        # JSON has no word for arrays, here lists, and for calls and others, here their names.
        found = json.loads(
            json.dumps(
                found, default=lambda x: x.tolist() if hasattr(x, "tolist") else x.__qualname__
            )
        )
        if self.write:
            text = json.dumps(
                self.read(file) | {part: found} if part else found, indent=0, ensure_ascii=False
            )
            (self.folder / file).write_text(text + "\n", encoding="utf-8")
        wrong = differences(found, self.read(file)[part] if part else self.read(file), **tolerance)
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
