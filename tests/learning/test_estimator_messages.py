"""What a practitioner gets wrong first, and what she is told."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from frhsic_core import FairClassifier, audit_representation
from frhsic_core.learning import FairEncoder, FairRegressor
from frhsic_core.learning.estimators import ConstantPredictionWarning, UndertrainedWarning, UnpenalisedWarning


def rows(n: int = 200) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x, s = rng.normal(size=(n, 3)), rng.uniform(size=n)
    return x, (x[:, 0] + s > 0.5).astype(int), s


def fit(**parameters: object) -> FairClassifier:
    x, y, s = rows()
    settings = {"epochs": 25, "learning_rate": 1e-2, "widths": (8, 2), "random_state": 0, "device": "cpu", **parameters}
    return FairClassifier(**settings).fit(x, y, sensitive_features=s)


def test_two_columns_of_probabilities() -> None:
    x, _, s = rows()
    with pytest.raises(ValueError, match=r"predictions has shape \(200, 2\).*predict_proba\(X\)\[:, 1\]"):
        audit_representation(x, s, predictions=np.zeros((200, 2)))


def test_a_file_that_is_no_model_gives_no_advice_to_unpickle(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"give a file that save\(\) wrote") as caught:
        FairClassifier.load(path)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_parameters() -> None:
    with pytest.raises(ValueError, match="lam is None: give a number"):
        fit(lam=None)
    with pytest.raises(ValueError, match=r"selection has no \['lambdas'\]: choose from lams"):
        fit(lam="auto", selection={"lambdas": [0.0, 1.0]})


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_no_cuda_device() -> None:
    with pytest.raises(ValueError, match="there is no CUDA device: use 'cpu' or 'auto'"):
        fit(device="cuda")


def test_auto_says_when_it_chose_no_penalty() -> None:
    with pytest.warns(UnpenalisedWarning, match="chose λ = 0, no penalty"):
        model = fit(lam="auto", selection={"lams": [0.0], "n_permutations": 19})
    assert model.lam_ == 0.0


def test_the_chosen_lambda_is_the_number_of_the_grid() -> None:
    model = fit(lam="auto", selection={"lams": [0.1], "n_permutations": 19})
    assert model.lam_ == 0.1


# Models that are none ------------------------------------------------------------------------------------------------


def test_constant_predictions_are_reported() -> None:
    """A λ that outweighs the task: one class for every row, said with the range of probabilities and what to do."""
    x, y, s = rows(400)
    y = (x[:, 1] + s > 1.2).astype(int)  # the smaller class has a third of the rows
    options = {"epochs": 200, "learning_rate": 1e-2, "widths": (8, 2), "random_state": 0, "device": "cpu"}
    settings = {"estimator": "biased", "scale": None, "bandwidth": "every_batch"}
    with pytest.warns(
        ConstantPredictionWarning, match=r"λ = 10000\) predicts one class .* from 0\.\d\d to .*a lower lam"
    ):
        model = FairClassifier(1e4, penalty_settings=settings, **options).fit(x, y, sensitive_features=s)
    assert len(np.unique(model.predict(x))) == 1
    assert len(np.unique(FairClassifier(0.0, **options).fit(x, y, sensitive_features=s).predict(x))) == 2  # silent


def test_constant_predictions_of_a_regression_and_of_every_lambda() -> None:
    x, _, s = rows(400)
    flat = {"epochs": 10, "learning_rate": 5e-3, "widths": (8, 2), "random_state": 0, "device": "cpu"}
    noise = np.random.default_rng(1).normal(size=400)
    heavy = {"method": "reg_gdp", "lam": 1e6}
    with pytest.warns(ConstantPredictionWarning, match=r"almost one value .*a lower lam"):
        FairRegressor(**heavy, **{**flat, "epochs": 400, "learning_rate": 2e-3}).fit(x, noise, sensitive_features=s)
    rare = (np.arange(400) < 12).astype(int)  # 3 % positives, nothing to predict them by
    selection = {"lams": [0.1, 1.0], "n_permutations": 19}
    with pytest.warns(ConstantPredictionWarning, match=r"one class .*; so did every λ tried. .*For a rare class"):
        FairClassifier("auto", selection=selection, **flat).fit(x, rare, sensitive_features=s)


@pytest.mark.parametrize("lam", [0.5, "auto"])
def test_too_few_steps_are_reported(lam: float | str) -> None:
    selection = {"lams": [0.5], "n_permutations": 19}
    with pytest.warns(UndertrainedWarning, match=r"2 steps of learning rate 0\.001 .* about 0\.002: .*100 steps"):
        fit(lam=lam, epochs=2, learning_rate=1e-3, selection=selection)


# The first mistakes with fit -----------------------------------------------------------------------------------------


def test_text_is_named_with_its_column() -> None:
    x, y, s = rows()
    frame = pd.DataFrame(x, columns=["a", "b", "c"]).assign(sex=["Male", "Female"] * 100, code=["1", "2"] * 100)
    for estimator in (FairClassifier(), FairEncoder(), FairRegressor()):
        with pytest.raises(ValueError, match=r"text in column 'sex' \(first: 'Male'\): could not .*get_dummies"):
            estimator.fit(frame, y, sensitive_features=s)
    values = frame[["a", "b", "sex"]].to_numpy()
    with pytest.raises(ValueError, match=r"text in column 2 \(first: 'Male'\)"):
        FairClassifier().fit(values, y, sensitive_features=s)


def test_a_third_positional_argument_is_refused() -> None:
    x, y, s = rows()
    for estimator in (FairClassifier(), FairEncoder(), FairRegressor()):
        with pytest.raises(TypeError, match=r"write fit\(X, y, sensitive_features=s\) .* sample_weight=w"):
            estimator.fit(x, y, s)


def test_the_attribute_by_name() -> None:
    """A column of a DataFrame, or several; the name alone, without the frame or the column, is refused."""
    x, y, s = rows()
    frame = pd.DataFrame(x, columns=["a", "b", "c"]).assign(age=s)
    options = {"epochs": 100, "learning_rate": 1e-2, "widths": (8, 2), "random_state": 0, "device": "cpu"}
    for names, values in (("age", s), (["age", "a"], frame[["age", "a"]])):
        by_name = FairClassifier(**options).fit(frame, y, sensitive_features=names)
        by_value = FairClassifier(**options).fit(frame, y, sensitive_features=values)
        np.testing.assert_array_equal(by_name.predict_proba(frame), by_value.predict_proba(frame))
    with pytest.raises(ValueError, match="is 'agee': X has no such column, but 'a', 'b', 'c', 'age'"):
        FairClassifier().fit(frame, y, sensitive_features="agee")
    with pytest.raises(TypeError, match="is 'age', a name, and X is no DataFrame: pass the values"):
        FairClassifier().fit(x, y, sensitive_features="age")
