"""Saved estimators: the same predictions after loading, no code, and a message for each kind of damage."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from frhsic_core.learning import FairClassifier, FairEncoder, FairRegressor, LambdaSelection

# The fits below are short on purpose.
pytestmark = [
    pytest.mark.filterwarnings(f"ignore::frhsic_core.learning.estimators.{name}Warning")
    for name in ("Undertrained", "NoGain", "SmallBatch")
]
QUICK = {"widths": (8, 3), "epochs": 4, "batch_size": 64, "device": "cpu", "random_state": 0}
STORED = Path(__file__).parent / "saved"


@pytest.mark.parametrize("protocol", ["recommended", "text"])
def test_save_and_load(toy: Any, tmp_path: Path, protocol: str) -> None:
    X, y, s = toy
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    selection = {"lams": (0.0, 1.0), "n_permutations": 19}
    model = FairClassifier("auto", selection=selection, protocol=protocol, **QUICK)
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
    torch.save({"json": _Payload(), "tensors": {}}, tmp_path / "evil.pt")
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


# Other versions -------------------------------------------------------------------------------------------------------


def test_models_of_the_first_version_load() -> None:
    """The files and the predictions are those of version 0.1."""
    X = np.array([[0.5, -1.0], [1.0, 0.3], [2.0, 1.5]])
    probabilities = [0.419375793216918, 0.42908719070164236, 0.4456636377864266]
    classifier = FairClassifier.load(STORED / "classifier_format_1.pt")
    np.testing.assert_allclose(classifier.predict_proba(X)[:, 1], probabilities, rtol=1e-12)
    assert classifier.predict(X).tolist() == ["no", "no", "no"]
    assert classifier.lambda_choice_.table["lam"].to_list() == [0.0, 1.0]
    regressor = FairRegressor.load(STORED / "regressor_format_1.pt")
    np.testing.assert_allclose(
        regressor.predict(X), [6.835462157380549, 6.995689720915297, 7.138737508342211], rtol=1e-12
    )


@pytest.mark.parametrize(
    ("format", "text"),
    [
        (3, "newer version"),
        (2, "lost its checksum"),
        (0, "format 0, but this version reads format 1"),
        ("1", "format number"),
        (None, "format"),
    ],
)
def test_another_format_is_refused(tmp_path: Path, format: Any, text: str) -> None:
    state = torch.load(STORED / "regressor_format_1.pt", weights_only=True) | {"format": format}
    torch.save(state, tmp_path / "model.pt")
    with pytest.raises(ValueError, match=text):
        FairRegressor.load(tmp_path / "model.pt")


# Damage ---------------------------------------------------------------------------------------------------------------


def test_every_flipped_bit_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "flipped.pt"
    FairClassifier.load(STORED / "classifier_format_1.pt").save(path)
    FairClassifier.load(path)
    whole = path.read_bytes()
    for bit in np.random.default_rng(0).choice(8 * len(whole), 300, replace=False):
        data = bytearray(whole)
        data[bit // 8] ^= 1 << (bit % 8)
        path.write_bytes(data)
        with pytest.raises(ValueError, match=r"flipped.pt is (not a saved estimator|damaged|truncated)"):
            FairClassifier.load(path)


def test_a_flipped_bit_of_an_old_file_is_an_error_or_changes_nothing(tmp_path: Path) -> None:
    """Some flips fall on padding and dates of the archive, which carry no value."""
    whole = (STORED / "classifier_format_1.pt").read_bytes()
    X = np.linspace(-2, 3, 40).reshape(20, 2)
    expected = FairClassifier.load(STORED / "classifier_format_1.pt").predict_proba(X)
    path = tmp_path / "flipped.pt"
    refused = []
    for bit in np.random.default_rng(0).choice(8 * len(whole), 300, replace=False):
        data = bytearray(whole)
        data[bit // 8] ^= 1 << (bit % 8)
        path.write_bytes(data)
        try:
            loaded = FairClassifier.load(path)
        except ValueError as error:
            refused.append(str(error))
        else:
            np.testing.assert_array_equal(loaded.predict_proba(X), expected)
    assert len(refused) > 100
    assert all("flipped.pt is" in message for message in refused)


def test_a_record_marked_as_a_folder_is_damage(tmp_path: Path) -> None:
    """The checksum of a record of an old file does not cover its attributes, but torch reads a folder as empty."""
    data = bytearray((STORED / "regressor_format_1.pt").read_bytes())
    entry = data.rindex(b"archive/data/7") - 46
    assert data[entry : entry + 4] == b"PK\x01\x02"
    data[entry + 38] ^= 0x10
    (tmp_path / "model.pt").write_bytes(data)
    with pytest.raises(ValueError, match="damaged"):
        FairRegressor.load(tmp_path / "model.pt")


def test_each_damage_has_a_message(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    FairRegressor.load(STORED / "regressor_format_1.pt").save(path)
    whole, old = path.read_bytes(), (STORED / "regressor_format_1.pt").read_bytes()
    for content, text in (
        (b"", "not a saved estimator"),
        (whole[:30], "truncated|damaged"),
        (whole[: len(whole) // 2], "truncated"),
        (whole[:-1], "truncated"),
        (whole + b"\0", "damaged .*checksum"),
        (whole[:500] + b"\0" * 64 + whole[564:], "damaged .*checksum"),
        (b"PK\x03\x04 not the rest", "truncated"),
        (old[: len(old) // 2], "truncated"),
        (old[:-1], "truncated"),
        (old[:500] + b"\0" * 64 + old[564:], "damaged .*checksum"),
    ):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=rf"{text}.*a file that save\(\) wrote"):
            FairRegressor.load(path)


def changed(tmp_path: Path, **changes: Any) -> Path:
    """Write the stored regressor with other values: None removes one; the others replace entries of its JSON."""
    state = torch.load(STORED / "regressor_format_1.pt", weights_only=True)
    record = json.loads(state["json"])
    for name, value in changes.items():
        for part in (state, state["tensors"], record, record["parameters"], record["fitted"]):
            if name in part and value is None:
                del part[name]
            elif name in part:
                part[name] = value
    if "json" in state and "json" not in changes:
        state["json"] = json.dumps(record)
    torch.save(state, tmp_path / "model.pt")
    return tmp_path / "model.pt"


@pytest.mark.parametrize(
    "name",
    ["json", "tensors", "kind", "class", "parameters", "fitted", "n_features_in_", "offset_", "scale_", "task_", "lam_",
     "target_offset_", "target_scale_", "encoder_.0.weight", "encoder_.2.bias", "head_.weight"],
)  # fmt: skip
def test_what_is_missing_is_named(tmp_path: Path, name: str) -> None:
    key = name.partition(".")[2] or name
    with pytest.raises(ValueError, match=rf"not a whole saved estimator.*{key}"):
        FairRegressor.load(changed(tmp_path, **{name: None}))


def test_classes_are_needed_by_a_classifier(tmp_path: Path) -> None:
    state = torch.load(STORED / "classifier_format_1.pt", weights_only=True)
    state["json"] = state["json"].replace("positive_class_", "positive_classes_")
    torch.save(state, tmp_path / "model.pt")
    with pytest.raises(ValueError, match="no 'positive_class_'"):
        FairClassifier.load(tmp_path / "model.pt")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"json": "{"}, "not a whole saved estimator"),
        ({"json": "[]"}, "not a whole saved estimator"),
        ({"kind": "another program"}, "load it with the class that saved it"),
        ({"widths": [3, 5]}, "not a whole saved estimator .*size mismatch"),
        ({"parameters": {"lambda": 1.0}}, "not a whole saved estimator .*lambda"),
        ({"head_.bias": torch.tensor([torch.nan])}, "NaN or infinite values in head_.bias"),
        ({"scale_": torch.tensor([1.0, torch.inf])}, "NaN or infinite values in scale_"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path: Path, change: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        FairRegressor.load(changed(tmp_path, **change))
    FairRegressor.load(changed(tmp_path))


def test_an_old_file_keeps_its_scaling(tmp_path: Path) -> None:
    """Files from before there was a choice are of models with min-max scaling; saving them again keeps that."""
    old = FairClassifier.load(STORED / "classifier_format_1.pt")
    assert old.scaling == "minmax"
    old.save(tmp_path / "again.pt")
    X = np.linspace(-1, 1, 5 * old.n_features_in_).reshape(5, -1)
    again = FairClassifier.load(tmp_path / "again.pt")
    np.testing.assert_array_equal(again.predict_proba(X), old.predict_proba(X))
    with torch.no_grad():
        by_hand = old.encoder_(torch.from_numpy((X - old.offset_) / old.scale_)).numpy()
    np.testing.assert_allclose(old.transform(X), by_hand)
