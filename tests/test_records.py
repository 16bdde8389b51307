"""Records notice every change beyond the tolerance, and are written again on demand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from records import Records, differences

NAN, INFINITY = float("nan"), float("inf")
FIRST = {"rel": lambda place: 0.2 * (place == "/a/0")}
LARGEST = {"abs_": 1e-6, "of_largest": True}
TEXTS = {"rel": 2e-3, "texts": True}


@pytest.mark.parametrize(
    ("before", "close", "other", "tolerance"),
    [
        (1.0, 1.0009, 1.0011, {"rel": 1e-3}),
        (0.0, 0.009, 0.02, {"abs_": 0.01}),
        ({"a": [1.0, 5.0]}, {"a": [1.1, 5.0]}, {"a": [1.0, 5.1]}, FIRST),
        ({"a": [0, 9], "b": [0]}, {"a": [8e-6, 9], "b": [0]}, {"a": [0, 9], "b": [8e-6]}, LARGEST),
        (NAN, NAN, 0.0, {"abs_": 9.0}),
        (INFINITY, INFINITY, 0.0, {"rel": 0.5}),
        (0, 1.0, True, {"abs_": 9.0}),
        (None, None, 0.0, {"abs_": 9.0}),
        ([1], [2], [1, 2], {"abs_": 9.0}),
        ({"a": 1}, {"a": 2}, {"b": 1}, {"abs_": 9.0}),
        ("0.8413 3", "0.8413 3", "0.8412 3", {"rel": 2e-3}),
        ("0.8413 3", "0.8412 3", "0.85 3", TEXTS),
        ("lower on 3", "lower on 4", "higher on 3", TEXTS | {"abs_": 2.0}),
    ],
)
def test_a_change_is_found(before: Any, close: Any, other: Any, tolerance: dict[str, Any]) -> None:
    assert not differences(close, before, **tolerance)
    assert len(differences(other, before, **tolerance)) == 1


def test_a_record_is_written_and_read(tmp_path: Path) -> None:
    write, read, found = (
        Records(tmp_path, write=True),
        Records(tmp_path, write=False),
        {"a": np.arange(2.0), "b": len},
    )
    write(found)
    write(["é"], part="c")
    assert read.read() == {"a": [0.0, 1.0], "b": "len", "c": ["é"]}
    with pytest.raises(AssertionError, match="/a/1: was"):
        read(found | {"a": [0.0, 2.0], "c": ["é"]})
