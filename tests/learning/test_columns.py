"""Columns of X that are not plain numbers: categories, missing values, extreme values; many classes."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.multiclass import OneVsRestClassifier

from frhsic_core.inputs.features import (
    columns_of,
    fit_columns,
    fit_scaling,
    quantiles,
    scaled,
)
from frhsic_core.learning import FairClassifier

pytestmark = pytest.mark.filterwarnings("ignore::frhsic_core.learning.FitWarning")
QUICK: dict[str, Any] = {
    "widths": (8, 3),
    "epochs": 6,
    "batch_size": 64,
    "device": "cpu",
    "random_state": 0,
}


def people(n: int = 300) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    s = rng.uniform(20, 70, size=n)
    frame = pd.DataFrame(
        {
            "income": rng.lognormal(size=n),
            "job": rng.choice(["clerk", "nurse", "cook"], size=n),
            "grade": pd.Categorical(
                rng.choice(["low", "high"], size=n), categories=["low", "high", "never"]
            ),
            "member": rng.uniform(size=n) < 0.4,
            "code": rng.choice(["1", "2.5"], size=n),
        }
    )
    return frame, np.where(frame["job"] == "cook", "yes", np.where(s > 60, "yes", "no")), s


def test_columns_by_hand() -> None:
    frame = pd.DataFrame(
        {"a": [1.0, np.nan, 3.0, 5.0], "b": ["x", "y", None, "x"], "c": [True, False, True, True]}
    )
    plan = fit_columns(frame)
    expected = [[1, 0, 1, 0, 0, 1], [3, 1, 0, 1, 0, 0], [3, 0, 0, 0, 1, 1], [5, 0, 1, 0, 0, 1]]
    np.testing.assert_array_equal(columns_of(frame, plan), expected)
    new = pd.DataFrame({"a": [np.nan], "b": ["z"], "c": [False]})
    np.testing.assert_array_equal(columns_of(new, plan), [[3, 1, 0, 0, 0, 0]])
    assert fit_columns(np.ones((3, 2))) is None


def test_the_model_is_that_of_encoded_columns() -> None:
    """Categories by hand give the same model as categories in a DataFrame, in any order of the rows."""
    frame, y, s = people()
    model = FairClassifier(**QUICK).fit(frame, y, sensitive_features=s)
    by_hand = np.column_stack(
        [
            frame["income"],
            *(frame["job"] == level for level in ("clerk", "cook", "nurse")),
            *(frame["grade"] == level for level in ("high", "low")),
            frame["member"],
            frame["code"].astype(float),
        ]
    ).astype(float)
    other = FairClassifier(**QUICK).fit(by_hand, y, sensitive_features=s)
    np.testing.assert_allclose(model.transform(frame), other.transform(by_hand), rtol=1e-12)
    shuffled = frame.sample(frac=1.0, random_state=0)
    np.testing.assert_allclose(
        model.transform(shuffled), model.transform(frame)[shuffled.index], atol=1e-12
    )
    assert model.n_features_in_ == 5
    assert model.feature_names_in_.tolist() == list(frame.columns)


def test_unseen_levels_and_missing_values_at_prediction() -> None:
    frame, y, s = people()
    frame.loc[4, "job"] = None
    model = FairClassifier(**QUICK).fit(frame, y, sensitive_features=s)
    saved = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(saved.transform(frame), model.transform(frame))
    new = frame.iloc[:3].assign(job=["pilot", "nurse", "cook"], income=[np.nan, 1.0, 2.0])
    assert np.isfinite(model.predict_proba(new)).all()
    with pytest.raises(ValueError, match="pass a DataFrame"):
        model.predict(frame.to_numpy())


def test_missing_values_of_an_array() -> None:
    rng = np.random.default_rng(0)
    X, s = rng.normal(size=(300, 3)), rng.uniform(size=300)
    y = X[:, 0] > 0
    X[::7, 1] = np.nan
    model = FairClassifier(**QUICK).fit(X, y, sensitive_features=s)
    gone = np.isnan(X[:, 1])
    filled = np.where(gone, quantiles(X[~gone, 1], (0.5,)), X[:, 1])
    by_hand = np.column_stack([X[:, 0], filled, gone, X[:, 2]])
    other = FairClassifier(**QUICK).fit(by_hand, y, sensitive_features=s)
    np.testing.assert_allclose(model.transform(X), other.transform(by_hand), rtol=1e-12)


def test_what_cannot_be_a_column_is_refused() -> None:
    frame, y, s = people()
    with pytest.raises(ValueError, match=r"'name' of X has 300 different texts.*drop it"):
        FairClassifier(**QUICK).fit(
            frame.assign(name=[f"n{i}" for i in range(300)]), y, sensitive_features=s
        )
    with pytest.raises(ValueError, match=r"'empty' of X has only missing values"):
        FairClassifier(**QUICK).fit(frame.assign(empty=np.nan), y, sensitive_features=s)
    with pytest.raises(
        ValueError, match="infinity"
    ):  # and not a complaint about the columns of text
        FairClassifier(**QUICK).fit(frame.assign(income=np.inf), y, sensitive_features=s)


# Scaling ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("odd", ["unknown", "12,345.67", "45 %"])
@pytest.mark.parametrize("text", [False, True], ids=["numbers", "text"])
def test_one_odd_cell_does_not_make_a_category_of_each_number(odd: str, text: bool) -> None:
    """Forty incomes and one word are fewer levels than the hundred that a category may have."""
    frame, y, s = people(40)
    incomes = frame["income"].astype(str if text else object)
    incomes.iloc[7] = odd
    table = frame.assign(income=incomes)
    with pytest.raises(ValueError, match="column income of X mixes numbers and words"):
        FairClassifier(1.0, **QUICK).fit(table, y, sensitive_features=s)
    as_codes = table.assign(income=incomes.astype("category"))
    FairClassifier(1.0, **QUICK).fit(as_codes, y, sensitive_features=s)


def test_codes_with_an_open_group_are_categories() -> None:
    children = pd.DataFrame({"children": ["0", "1", "2", "3+"] * 5})
    assert columns_of(children, fit_columns(children)).shape == (20, 4)


def test_quantiles_with_weights_are_those_of_repeated_values() -> None:
    rng = np.random.default_rng(0)
    values, weights = rng.normal(size=50), rng.integers(0, 4, size=50)
    shares = (0.1, 0.25, 0.5, 0.75)
    expected = np.quantile(np.repeat(values, weights), shares, method="inverted_cdf")
    np.testing.assert_array_equal(quantiles(values, shares, weights.astype(float)), expected)
    np.testing.assert_array_equal(
        quantiles(values, shares), np.quantile(values, shares, method="inverted_cdf")
    )


def test_the_scale_where_half_of_the_values_are_equal() -> None:
    """Twice the standard deviation, which counts from the mean, also with weights and far from zero."""
    x = np.array([5.0] * 6 + [9.0, 13.0])
    assert quantiles(x, (0.25, 0.75)).tolist() == [5.0, 5.0]
    _, scale = fit_scaling(x[:, None], np.array([1.0] * 7 + [0.0]))
    assert scale.item() == pytest.approx(2.0 * np.sqrt(np.average((x[:7] - 39 / 7) ** 2)))
    assert quantiles(np.arange(4.0), (0.25, 0.5, 0.75)).tolist() == [0.0, 1.0, 2.0]


def test_robust_scaling() -> None:
    """A wrong value moves the others little; a rare column and a constant one stay finite."""
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.normal(10, 3, size=1001), np.arange(1001) < 20, np.full(1001, 7.0)])
    spoilt = x.copy()
    spoilt[0, 0] = 1e9
    u, v = (scaled(each, *fit_scaling(each)) for each in (x, spoilt))
    assert np.abs(u - v)[1:].max() < 0.01
    assert v[0, 0] < 25
    assert 0.4 < u[:, 0].std() < 0.5  # about half a standard normal
    rare = x[:, 1].std()
    np.testing.assert_allclose(np.unique(u[:, 1]), [0.0, np.arcsinh(0.5 / rare)])
    assert (u[:, 2] == 0).all()


# Many classes -------------------------------------------------------------------------------------


def test_many_classes_and_the_advice() -> None:
    """The way that the error names works."""
    frame, _, s = people()
    y = frame.pop("job").to_numpy()
    X = frame[["income"]].to_numpy()
    with sklearn.config_context(enable_metadata_routing=True):
        one = FairClassifier(**QUICK).set_fit_request(sensitive_features=True)
        many = OneVsRestClassifier(one).fit(X, y, sensitive_features=s)
    assert many.predict_proba(X).shape == (300, 3)
    assert all(model.lam_ == 1.0 for model in many.estimators_)
