"""Saved estimators: the same predictions after loading, no code, and a message for each kind of damage."""

from __future__ import annotations

import json
import os
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from frhsic_core.learning import FairClassifier, FairEncoder, FairRegressor, LambdaSelection
from frhsic_core.learning.state_file import read_state, write_state

# The fits below are short on purpose.
pytestmark = [
    pytest.mark.filterwarnings(f"ignore::frhsic_core.learning.estimators.{name}Warning")
    for name in ("Undertrained", "NoGain", "SmallBatch")
]
QUICK = {"widths": (8, 3), "epochs": 4, "batch_size": 64, "device": "cpu", "random_state": 0}


def test_save_and_load(toy: Any, tmp_path: Path) -> None:
    X, y, s = toy
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    selection = {"lams": (0.0, 1.0), "n_permutations": 19}
    model = FairClassifier("auto", selection=selection, **QUICK)
    model.fit(frame, y, sensitive_features=s).save(tmp_path / "model.pt")
    loaded = FairClassifier.load(tmp_path / "model.pt")
    np.testing.assert_array_equal(loaded.predict_proba(frame), model.predict_proba(frame))
    np.testing.assert_array_equal(loaded.predict(frame), model.predict(frame))
    assert loaded.classes_.tolist() == ["no", "yes"]
    assert loaded.get_params() == model.get_params()
    pd.testing.assert_frame_equal(loaded.history_, model.history_)
    pd.testing.assert_frame_equal(loaded.lambda_choice_.table, model.lambda_choice_.table)
    loaded.save(tmp_path / "again.pt")
    assert FairClassifier.load(tmp_path / "again.pt").lam_ == model.lam_


def test_the_selection_as_an_object_is_saved_too(toy: Any, tmp_path: Path) -> None:
    X, y, s = toy
    options = {"lams": (0.0, 1.0), "n_permutations": 19, "tolerance": 0.5}
    by_object = FairClassifier("auto", selection=LambdaSelection(**options), **QUICK).fit(X, y, sensitive_features=s)
    by_dict = FairClassifier("auto", selection=options, **QUICK).fit(X, y, sensitive_features=s)
    np.testing.assert_array_equal(by_object.transform(X), by_dict.transform(X))
    by_object.save(tmp_path / "model.pt")
    assert FairClassifier.load(tmp_path / "model.pt").selection == LambdaSelection(**options)
    assert clone(by_object).selection == by_object.selection


def test_save_and_load_regressor_and_encoder(toy: Any, tmp_path: Path) -> None:
    X, y, s = toy
    regressor = FairRegressor(**QUICK).fit(X, 7 + X[:, 1], sensitive_features=s)
    regressor.save(tmp_path / "r.pt")
    np.testing.assert_array_equal(FairRegressor.load(tmp_path / "r.pt").predict(X), regressor.predict(X))
    encoder = FairEncoder(**QUICK).fit(X, y, sensitive_features=s)
    encoder.save(tmp_path / "e.pt")
    np.testing.assert_array_equal(FairEncoder.load(tmp_path / "e.pt").transform(X), encoder.transform(X))
    with pytest.raises(ValueError, match="FairEncoder, not FairClassifier"):
        FairClassifier.load(tmp_path / "e.pt")


class _Payload:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("touch executed",)


def test_loading_runs_no_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_state(tmp_path / "evil.pt", {"json": _Payload(), "tensors": {}})
    with pytest.raises(ValueError, match=r"evil.pt is not a saved estimator \(UnpicklingError\)"):
        FairClassifier.load(tmp_path / "evil.pt")
    assert not (tmp_path / "executed").exists()
    with pytest.raises(FileNotFoundError):
        FairClassifier.load(tmp_path / "nothing.pt")


def test_what_cannot_be_saved_says_so(toy: Any, tmp_path: Path) -> None:
    X, y, s = toy
    with pytest.raises(NotFittedError):
        FairClassifier().save(tmp_path / "a.pt")
    options = {**QUICK, "random_state": np.random.RandomState(0)}
    with pytest.raises(TypeError, match=r"plain data.*random_state"):
        FairClassifier(**options).fit(X, y, sensitive_features=s).save(tmp_path / "a.pt")
    assert not list(tmp_path.iterdir())


# Damage ---------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file with a saved regressor of two columns."""
    X = np.random.default_rng(0).normal(size=(80, 2))
    path = tmp_path_factory.mktemp("saved") / "regressor.pt"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        FairRegressor(**QUICK).fit(X, X[:, 1], sensitive_features=X[:, 0]).save(path)
    return path


def test_every_flipped_bit_is_noticed(stored: Path, tmp_path: Path) -> None:
    path = tmp_path / "flipped.pt"
    whole = stored.read_bytes()
    for bit in np.random.default_rng(0).choice(8 * len(whole), 300, replace=False):
        data = bytearray(whole)
        data[bit // 8] ^= 1 << (bit % 8)
        path.write_bytes(data)
        with pytest.raises(ValueError, match=r"flipped.pt is (not a saved estimator|damaged|truncated)"):
            FairRegressor.load(path)


def test_each_damage_has_a_message(stored: Path, tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    whole = stored.read_bytes()
    for content, text in (
        (b"", "not a saved estimator"),
        (b"PK\x03\x04 an archive without its first line", "not a saved estimator"),
        (whole[:30], "truncated|damaged"),
        (whole[: len(whole) // 2], "truncated"),
        (whole[:-1], "truncated"),
        (whole + b"\0", "damaged .*checksum"),
        (whole[:500] + b"\0" * 64 + whole[564:], "damaged .*checksum"),
    ):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=rf"{text}.*a file that save\(\) wrote"):
            FairRegressor.load(path)


@pytest.mark.parametrize("number", [1, 3, "2", None])
def test_another_format_is_refused(stored: Path, tmp_path: Path, number: Any) -> None:
    with pytest.raises(ValueError, match="reads format 2"):
        FairRegressor.load(changed(stored, tmp_path, format=number))


def changed(stored: Path, tmp_path: Path, **changes: Any) -> Path:
    """Write the stored regressor with other values: None removes one; the others replace entries of its JSON."""
    state = read_state(stored, what="", advice="")
    record = json.loads(state["json"])
    for name, value in changes.items():
        for part in (state, state["tensors"], record, record["parameters"], record["fitted"]):
            if name in part and value is None:
                del part[name]
            elif name in part:
                part[name] = value
    if "json" in state and "json" not in changes:
        state["json"] = json.dumps(record)
    number = {"format": None} if "format" not in state else {}
    write_state(tmp_path / "model.pt", state | number)
    return tmp_path / "model.pt"


@pytest.mark.parametrize(
    "name",
    ["json", "tensors", "kind", "class", "parameters", "fitted", "n_features_in_", "columns_", "offset_",
     "scale_", "task_", "lam_",
     "target_offset_", "target_scale_", "encoder_.0.weight", "encoder_.2.bias", "head_.weight"],
)  # fmt: skip
def test_what_is_missing_is_named(stored: Path, tmp_path: Path, name: str) -> None:
    key = name.partition(".")[2] or name
    with pytest.raises(ValueError, match=rf"not a whole saved estimator.*{key}"):
        FairRegressor.load(changed(stored, tmp_path, **{name: None}))


def test_classes_are_needed_by_a_classifier(toy: Any, tmp_path: Path) -> None:
    X, y, s = toy
    FairClassifier(**QUICK).fit(X, y, sensitive_features=s).save(tmp_path / "model.pt")
    state = read_state(tmp_path / "model.pt", what="", advice="")
    state["json"] = state["json"].replace("positive_class_", "positive_classes_")
    write_state(tmp_path / "model.pt", state)
    with pytest.raises(ValueError, match="no 'positive_class_'"):
        FairClassifier.load(tmp_path / "model.pt")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"json": "{"}, "not a whole saved estimator"),
        ({"json": "[]"}, "not a whole saved estimator"),
        ({"kind": "another program"}, "load it with the class that saved it"),
        ({"widths": [8, 5]}, "not a whole saved estimator .*size mismatch"),
        ({"parameters": {"lambda": 1.0}}, "not a whole saved estimator .*lambda"),
        ({"head_.bias": torch.tensor([torch.nan])}, "NaN or infinite values in head_.bias"),
        ({"scale_": torch.tensor([1.0, torch.inf])}, "NaN or infinite values in scale_"),
    ],
)
def test_what_does_not_fit_is_refused(stored: Path, tmp_path: Path, change: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        FairRegressor.load(changed(stored, tmp_path, **change))
    FairRegressor.load(changed(stored, tmp_path))


# Interrupted writes ---------------------------------------------------------------------------------------------------


class Failing:
    """A file whose first write stores a part and then fails; later writes succeed, as after Ctrl-C."""

    def __init__(self, file: Any, error: BaseException) -> None:
        self.file = file
        self.error = error
        self.failed = False

    def __enter__(self) -> Failing:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)

    def write(self, data: Any) -> None:
        if self.failed:
            self.file.write(data)
            return
        self.failed = True
        self.file.write(bytes(data)[:100])
        raise self.error


def raising(error: BaseException) -> Callable[..., Any]:
    def function(*_: Any, **__: Any) -> Any:
        raise error

    return function


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError("No space left on device")])
@pytest.mark.parametrize("point", ["torch.save", "mkstemp", "write", "fsync", "replace"])
def test_a_failed_write_leaves_the_old_file(
    point: str, error: BaseException, stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error comes out as it is, the old file stays, and nothing else is left in the folder."""
    path = tmp_path / "model.pt"
    before = stored.read_bytes()
    path.write_bytes(before)
    model = FairRegressor.load(path)
    if point == "torch.save":
        monkeypatch.setattr(torch.serialization, "_save", raising(error))
    elif point == "write":
        fdopen = os.fdopen
        monkeypatch.setattr(os, "fdopen", lambda *args: Failing(fdopen(*args), error))
    else:
        monkeypatch.setattr(tempfile if point == "mkstemp" else os, point, raising(error))
    with pytest.raises(type(error)) as caught:
        model.save(path)
    assert caught.value is error
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["model.pt"]
