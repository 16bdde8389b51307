"""What a practitioner gets wrong first, and what she is told."""

from __future__ import annotations

from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from frhsic_core import AdjustedClassifier, AdjustedRegressor, FairClassifier, audit_representation
from frhsic_core.arrays import RowLabelWarning
from frhsic_core.learning import FairEncoder, FairRegressor, FitWarning


def rows(n: int = 200) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x, s = rng.normal(size=(n, 3)), rng.uniform(size=n)
    return x, (x[:, 0] + s > 0.5).astype(int), s


def fit(**parameters: object) -> FairClassifier:
    x, y, s = rows()
    settings = {"epochs": 25, "learning_rate": 5e-2, "widths": (8, 2), "random_state": 0, "device": "cpu", **parameters}
    return FairClassifier(**settings).fit(x, y, sensitive_features=s)


def test_two_columns_of_probabilities() -> None:
    x, _, s = rows()
    with pytest.raises(ValueError, match=r"predictions has shape \(200, 2\)"):
        audit_representation(x, s, predictions=np.zeros((200, 2)))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_no_cuda_device() -> None:
    with pytest.raises(ValueError, match="no CUDA device"):
        fit(device="cuda")


def test_auto_says_when_it_chose_no_penalty() -> None:
    with pytest.warns(FitWarning, match="chose λ = 0"):
        model = fit(lam="auto", selection={"lams": [0.0], "n_permutations": 19})
    assert model.lam_ == 0.0


def test_the_chosen_lambda_is_the_number_of_the_grid() -> None:
    model = fit(lam="auto", selection={"lams": [0.1], "n_permutations": 19})
    assert model.lam_ == 0.1


# Models that are none ------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::frhsic_core.learning.EscapeWarning")  # Z collapses, so its scale is rounding noise
def test_constant_predictions_are_reported() -> None:
    """A λ that outweighs the task gives one class for every sample; the warning has the range of probabilities."""
    x, y, s = rows(400)
    y = (x[:, 1] + s > 1.2).astype(int)  # the smaller class has a third of the rows
    options = {"epochs": 200, "learning_rate": 1e-2, "widths": (8, 2), "random_state": 0, "device": "cpu"}
    settings = {"estimator": "biased", "scale": None, "bandwidth": "every_batch"}
    with pytest.warns(FitWarning, match=r"λ = 10000\) predicts one class .* from 0\.\d\d to .*a lower lam"):
        model = FairClassifier(1e4, penalty_settings=settings, **options).fit(x, y, sensitive_features=s)
    assert len(np.unique(model.predict(x))) == 1
    assert len(np.unique(FairClassifier(0.0, **options).fit(x, y, sensitive_features=s).predict(x))) == 2  # silent


def test_constant_predictions_of_a_regression_and_of_every_lambda() -> None:
    x, _, s = rows(400)
    flat = {"epochs": 50, "learning_rate": 1e-2, "widths": (8, 2), "random_state": 0, "device": "cpu"}
    noise = np.random.default_rng(1).normal(size=400)
    heavy = {"method": "reg_gdp", "lam": 1e6}
    with pytest.warns(FitWarning, match=r"almost one value .*a lower lam"):
        FairRegressor(**heavy, **{**flat, "epochs": 400, "learning_rate": 2e-3}).fit(x, noise, sensitive_features=s)
    rare = (np.arange(400) < 12).astype(int)  # 3 % positives, nothing to predict them by
    selection = {"lams": [0.1, 1.0], "n_permutations": 19}
    with pytest.warns(FitWarning, match=r"one class .*every other λ.*rare class"):
        FairClassifier("auto", selection=selection, **flat).fit(x, rare, sensitive_features=s)


@pytest.mark.parametrize("lam", [0.5, "auto"])
def test_too_few_steps_are_reported(lam: float | str) -> None:
    selection = {"lams": [0.5], "n_permutations": 19}
    text = "2 steps .*looks fairer.* epochs=1000 or more"
    with pytest.warns(FitWarning, match=text):
        fit(lam=lam, epochs=2, learning_rate=1e-3, selection=selection)
    with pytest.warns(FitWarning, match="epochs=300 or more"):
        fit(lam=0.0, epochs=200, learning_rate=1e-3)


# The first mistakes with fit -----------------------------------------------------------------------------------------


def test_text_is_named_with_its_column() -> None:
    x, y, s = rows()
    frame = pd.DataFrame(x, columns=["a", "b", "c"]).assign(sex=["Male", "Female"] * 100, code=["1", "2"] * 100)
    values = frame[["a", "b", "sex"]].to_numpy()
    with pytest.raises(ValueError, match=r"text in column 2 \(first: 'Male'\)"):
        FairClassifier().fit(values, y, sensitive_features=s)


def test_a_third_positional_argument_is_refused() -> None:
    x, y, s = rows()
    for estimator in (FairClassifier(), FairEncoder(), FairRegressor()):
        with pytest.raises(TypeError, match="sensitive_features=s"):
            estimator.fit(x, y, s)


@pytest.mark.filterwarnings("ignore::frhsic_core.learning.FitWarning")  # "a" is nearly all there is
def test_the_attribute_by_name() -> None:
    """A column of a DataFrame, or several; the name alone, without the frame or the column, is refused."""
    x, y, s = rows()
    frame = pd.DataFrame(x, columns=["a", "b", "c"]).assign(age=s)
    options = {"epochs": 100, "learning_rate": 1e-2, "widths": (8, 2), "random_state": 0, "device": "cpu"}
    for names, values in (("age", s), (["age", "a"], frame[["age", "a"]])):
        by_name = FairClassifier(**options).fit(frame, y, sensitive_features=names)
        by_value = FairClassifier(**options).fit(frame, y, sensitive_features=values)
        np.testing.assert_array_equal(by_name.predict_proba(frame), by_value.predict_proba(frame))
    with pytest.raises(ValueError, match=r"no column 'agee'.*'a', 'b', 'c', 'age'"):
        FairClassifier().fit(frame, y, sensitive_features="agee")
    with pytest.raises(ValueError, match="no column 'bim'"):
        FairClassifier().fit(frame, y, sensitive_features=["age", "bim"])
    for name in ("age", ["age"]):
        with pytest.raises(TypeError, match=r"DataFrame.*fairclassifier__sensitive_features"):
            FairClassifier().fit(x, y, sensitive_features=name)


def test_a_pipeline_takes_the_attribute_by_the_name_of_its_step(tmp_path: Path) -> None:
    x, y, s = rows()
    frame = pd.DataFrame(x, columns=["a", "b", "c"]).assign(age=s)
    options = {"epochs": 30, "learning_rate": 5e-2, "widths": (8, 2), "random_state": 0, "device": "cpu"}
    pipeline = make_pipeline(make_column_transformer((StandardScaler(), ["a", "b", "c"])), FairClassifier(**options))
    pipeline.fit(frame, y, fairclassifier__sensitive_features=frame["age"])
    assert pipeline[-1].lam_ == 1.0
    joblib.dump(pipeline, tmp_path / "pipeline.joblib")
    again = joblib.load(tmp_path / "pipeline.joblib")
    np.testing.assert_array_equal(again.predict_proba(frame), pipeline.predict_proba(frame))
    with pytest.raises(TypeError, match=r"fairclassifier__sensitive_features=X\['age'\]"):
        pipeline.fit(frame, y, fairclassifier__sensitive_features="age")


def test_rows_in_another_order_are_refused() -> None:
    """Series are matched by position: with labels that say otherwise the model would be penalised for noise."""
    x, y, s = rows()
    frame, target, age = pd.DataFrame(x, columns=["a", "b", "c"]), pd.Series(y), pd.Series(s)
    shuffled = age.sample(frac=1, random_state=0)
    for estimator in (FairClassifier(), FairEncoder(), FairRegressor()):
        with pytest.raises(ValueError, match="X and sensitive_features have the same row labels in another order"):
            estimator.fit(frame, y, sensitive_features=shuffled)
        with pytest.raises(ValueError, match="X and y have the same row labels in another order"):
            estimator.fit(frame, target[::-1], sensitive_features=age)
        with pytest.raises(ValueError, match="y and sensitive_features have the same row labels in another order"):
            estimator.fit(x, target, sensitive_features=shuffled)  # behind another step of a pipeline
        with pytest.raises(ValueError, match="X and sample_weight have the same row labels"):
            estimator.fit(frame, y, sensitive_features=age, sample_weight=shuffled)
    options = {"epochs": 25, "learning_rate": 5e-2, "widths": (8, 2), "random_state": 0, "device": "cpu"}
    with pytest.warns(
        RowLabelWarning, match=r"X and sensitive_features have different row labels.*by position"
    ) as told:
        FairClassifier(**options).fit(frame, y, sensitive_features=age.set_axis(range(1000, 1200)))
    assert told[0].filename == __file__


def test_columns_that_are_no_numbers_or_not_alone() -> None:
    x, y, s = rows()
    frame = pd.DataFrame(x, columns=["a", "b", "c"])
    with pytest.raises(ValueError, match="dates in column 'born'"):
        FairClassifier().fit(frame.assign(born=pd.Timestamp("1990-01-01")), y, sensitive_features=s)
    with pytest.raises(ValueError, match="several columns named 'a'"):
        FairClassifier().fit(pd.concat([frame, frame[["a"]]], axis=1), y, sensitive_features=s)
    born = pd.Series(pd.to_datetime(["1980-01-01", "1990-05-05"] * 100))
    born[3] = pd.NaT
    with pytest.raises(ValueError, match="sensitive_features has 1 NaN"):
        FairClassifier().fit(x, y, sensitive_features=born)


@pytest.mark.parametrize("regressor", [FairRegressor, AdjustedRegressor, FairEncoder])
def test_a_regression_needs_numbers(regressor: type) -> None:
    x, _, s = rows(60)
    text = np.array(["low", "middle", "high"] * 20)
    dates = pd.Series(pd.date_range("2020-01-01", periods=60))
    for message, target in (("text .first: 'low'", text), ("dates .first: 2020-01-01", dates)):
        with pytest.raises(ValueError, match=message):
            regressor().fit(x, target, sensitive_features=s)


@pytest.mark.parametrize("classifier", [FairClassifier, AdjustedClassifier, FairEncoder])
def test_a_missing_label_among_text(classifier: type) -> None:
    x, y, s = rows(60)
    labels = np.where(y == 1, "yes", "no").astype(object)
    labels[3] = None
    with pytest.raises(ValueError, match="y has 1 missing"):
        classifier().fit(x, labels, sensitive_features=s)


def test_a_target_that_never_changes() -> None:
    x, _, s = rows()
    for estimator, y in (
        (FairRegressor(), np.full(200, 5.0)), (FairEncoder(), np.ones(200)), (FairEncoder(), ["no"] * 200),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"y is constant \((5|1.0|'no')"):
            estimator.fit(x, y, sensitive_features=s)
