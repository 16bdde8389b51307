"""A saved adjustment is refused if anything in it was changed: by its seal, and then by its parts."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from frhsic_core import ScoreAdjuster
from frhsic_core.remedies.saved import _canonical

ONE_SENTENCE = r"is not a saved adjustment of scores \(.+\): save the adjustment again\.$"


def saved(folder: Path, method: str = "rank") -> tuple[Path, ScoreAdjuster, np.ndarray, Any]:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.uniform(20, 70, 300), "sex": rng.choice(["f", "m"], 300)})
    score = 1 / (1 + np.exp(-(frame["age"] - 45) / 20 - rng.normal(size=300)))
    adjuster = ScoreAdjuster(method).fit(score, sensitive_features=frame)
    path = folder / "age.adjustment"
    adjuster.save(path)
    return path, adjuster, score.to_numpy(), frame


def sealed(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the content and seal it anew, as someone who knows the format can."""
    found = json.loads(path.read_text())
    change(found["content"])
    try:
        text = _canonical(found["content"])
    except ValueError:  # NaN
        text = json.dumps(found["content"], sort_keys=True, separators=(",", ":"))
    found["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    path.write_text(json.dumps(found))


@pytest.mark.parametrize("method", ["rank", "mean"])
def test_what_is_read_is_what_was_written(tmp_path: Path, method: str) -> None:
    path, adjuster, score, frame = saved(tmp_path, method)
    loaded = ScoreAdjuster.load(path)
    expected = adjuster.transform(score, sensitive_features=frame)
    np.testing.assert_array_equal(loaded.transform(score, sensitive_features=frame), expected)
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again").read_text() == path.read_text()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"beta":[', '"beta":[1e2,'),
        ('"method":"rank"', '"method":"mean"'),
        ('"link":"logit"', '"link":"identity"'),
        ('"step":0.', '"step":1.'),
    ],
)
def test_a_change_by_hand_breaks_the_seal(tmp_path: Path, old: str, new: str) -> None:
    path, *_ = saved(tmp_path)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(ValueError, match="its seal does not fit: the content was changed"):
        ScoreAdjuster.load(path)


def _set(*keys: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(content: dict[str, Any]) -> None:
        for key in keys[:-1]:
            content = content[key]
        content[keys[-1]] = value

    return change


def _reverse(*keys: str) -> Callable[[dict[str, Any]], None]:
    def change(content: dict[str, Any]) -> None:
        for key in keys:
            content = content[key]
        content.reverse()  # type: ignore[attr-defined]

    return change


def _remove(*keys: str) -> Callable[[dict[str, Any]], None]:
    def change(content: dict[str, Any]) -> None:
        for key in keys[:-1]:
            content = content[key]
        del content[keys[-1]]

    return change


CHANGES = {
    "NaN": _set("adjustment", "beta", value=[math.nan] * 10),
    "infinity": _set("adjustment", "shift", value=math.inf),
    "a word for a number": _set("adjustment", "shift", value="0"),
    "true for a number": _set("adjustment", "shift", value=True),
    "a huge integer": _set("adjustment", "shift", value=10**400),
    "reversed quantiles": _reverse("adjustment", "ranks", "quantiles"),
    "reversed levels": _reverse("adjustment", "ranks", "levels"),
    "fewer quantiles": _set("adjustment", "ranks", "quantiles", value=[0.0, 1.0]),
    "no ranks": _set("adjustment", "ranks", value=None),
    "a missing part": _remove("adjustment", "basis"),
    "a missing part of a part": _remove("adjustment", "basis", "knots"),
    "an added part": _set("adjustment", "more", value=1),
    "null for a part": _set("adjustment", "basis", value=None),
    "an unknown method": _set("parameters", "method", value="zzz"),
    "another method": _set("parameters", "method", value="mean"),
    "an unknown link": _set("adjustment", "link", value="probit"),
    "a link that is a list": _set("adjustment", "link", value=["logit"]),
    "fewer coefficients": _set("adjustment", "beta", value=[0.0]),
    "a zero scale": _set("adjustment", "basis", "scale", value=[0.0]),
    "ends that are crossed": _set("adjustment", "basis", "low", value=[1e6]),
    "another attribute": _set("adjustment", "basis", "names", value=["age", "town"]),
    "shares above one": _set("adjustment", "basis", "shares", value={"sex": [0.9, 0.9]}),
    "a spline of degree 9": _set(
        "adjustment", "basis", "splines", value=[{"degree": 9, "knots": [0.0, 1.0]}]
    ),
    "negative counts": _set("adjustment", "ranks", "counts", value=[[-1.0]]),
    "people that are gone": _set("expected", "before", value=[]),
    "parameters that are gone": _set("parameters", value={}),
    "a list of parameters": _set("parameters", value=[]),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_with_a_new_seal_is_refused(tmp_path: Path, name: str) -> None:
    path, *_ = saved(tmp_path)
    try:
        sealed(path, CHANGES[name])
    except KeyError:
        sealed(path, _remove("adjustment", "basis", "origin"))
    with pytest.raises(ValueError, match=ONE_SENTENCE):
        ScoreAdjuster.load(path)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        "not json",
        '{"format": "frhsic adjustment of scores 5"}',
        "[" * 100_000,
        '{"format": ' + "9" * 5000 + "}",
        '{"format": "frhsic adjustment of scores 6"}',
        '{"format": "frhsic adjustment of scores 6", "sha256": "", "content": NaN}',
        '{"format": "frhsic adjustment of scores 6", "sha256": "", "content": '
        + "[" * 5000
        + "]" * 5000
        + "}",
    ],
    ids=lambda text: text[:40],
)
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "other"
    path.write_text(text)
    with pytest.raises(ValueError, match=ONE_SENTENCE):
        ScoreAdjuster.load(path)
    path.write_bytes(b"\x80\x04\x95")  # a pickle
    with pytest.raises(ValueError, match=ONE_SENTENCE):
        ScoreAdjuster.load(path)


def test_truncated_files_are_refused(tmp_path: Path) -> None:
    path, *_ = saved(tmp_path)
    text = path.read_text()
    for size in np.linspace(1, len(text) - 3, 20).astype(int):
        path.write_text(text[:size])
        with pytest.raises(ValueError, match=ONE_SENTENCE):
            ScoreAdjuster.load(path)
