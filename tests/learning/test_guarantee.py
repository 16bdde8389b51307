"""A guarantee from training: the bound holds out samples, is corrected for the candidates, and can be refused."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest

from frhsic_core import gdp_bound
from frhsic_core.learning import (
    FairClassifier,
    FairEncoder,
    FairRegressor,
    FitWarning,
    LambdaSelection,
)
from frhsic_core.learning.rules import choose_lambda

LAMS = (0.0, 1.0, 30.0)
Data = tuple[np.ndarray, np.ndarray, np.ndarray]


@pytest.fixture(scope="module")
def data() -> Data:
    """Return X, y and ages in whole years; the label depends on age and on a second feature."""
    rng = np.random.default_rng(0)
    n = 4000
    age = rng.integers(20, 60, n)
    x = np.column_stack([(age - 40) / 12 + 0.3 * rng.normal(size=n), rng.normal(size=n)])
    return x, (x.sum(1) + 0.5 * rng.normal(size=n) > 0).astype(int), age


def model(lam: Any = "auto", *, kind: Any = FairClassifier, **selection: Any) -> Any:
    chosen = {
        "rule": "guarantee",
        "lams": LAMS,
        "guaranteed_gdp": 0.1,
        "validation_fraction": 0.5,
    } | selection
    return kind(
        lam,
        epochs=12,
        batch_size=128,
        widths=(8, 2),
        random_state=3,
        device="cpu",
        selection=chosen,
    )


def fitted(given: Data, **selection: Any) -> Any:
    x, y, s = given
    with warnings.catch_warnings(
        action="ignore"
    ):  # too few epochs, and an unmet rule where a test asks for one
        return model(**selection).fit(x, y, sensitive_features=s)


def held_out(n: int, **selection: Any) -> np.ndarray:
    return (
        LambdaSelection(rule="guarantee", validation_fraction=0.5, **selection)
        .held_out(n, random_state=3)[0]
        .numpy()
    )


@pytest.fixture(scope="module")
def found(data: Data) -> Any:
    return fitted(data)


def test_the_rule_is_the_smallest_lambda_below_the_wanted_gdp() -> None:
    table = pd.DataFrame(
        {"lam": [0.0, 1.0, 3.0], "gdp_bound": [0.2, 0.1, 0.05], "performance": 0.8}
    )
    assert choose_lambda(table, rule="guarantee", guaranteed_gdp=0.1).lam == 1.0
    assert choose_lambda(table, rule="guarantee", guaranteed_gdp=0.0999).lam == 3.0
    unmet = choose_lambda(table, rule="guarantee", guaranteed_gdp=0.01)
    assert (unmet.lam, unmet.satisfied) == (3.0, False)


def test_the_certificate_is_the_bound_of_the_model_on_the_samples_held_out(
    found, data: Data
) -> None:
    x, _, s = data
    rows = held_out(len(s))
    expected = gdp_bound(
        found.predict_proba(x[rows])[:, 1], sensitive_features=s[rows], candidates=len(LAMS)
    )
    assert found.certificate_.bound == pytest.approx(expected.bound, rel=1e-12)
    assert found.certificate_.candidates == 3
    assert found.certificate_.n == 2000
    assert found.certificate_.bound <= 0.1
    table = found.lambda_choice_.table
    assert (table["gdp_bound"] > 0.1).to_list() == (table["lam"] < found.lam_).to_list()
    assert found.lam_ > 0  # without a penalty this model depends on age


def test_the_model_with_a_certificate_never_saw_the_samples_of_the_certificate(data: Data) -> None:
    """Spoil these samples: the model stays as it is. With another rule it changes, so this test can fail."""
    given = x, y, s = tuple(part[:800] for part in data)
    rows = held_out(len(s))
    spoiled = x.copy(), y.copy(), s.copy()
    spoiled[0][rows] *= 100.0
    spoiled[1][rows] = 1 - y[rows]
    spoiled[2][rows] += 7
    for rule, same in (("guarantee", True), ("tradeoff", False)):
        one, two = (fitted(part, lams=[1.0], rule=rule) for part in (given, spoiled))
        assert np.array_equal(one.offset_, two.offset_) == same
        equal = [
            bool((a == b).all())
            for a, b in zip(one.encoder_.parameters(), two.encoder_.parameters(), strict=True)
        ]
        assert all(equal) == same


def test_a_guarantee_that_cannot_be_met_is_said_and_the_bound_is_kept(data: Data) -> None:
    x, y, s = data
    with pytest.warns(FitWarning, match="guaranteed to be at most 0.01.*Pass larger"):
        unmet = model(guaranteed_gdp=0.01).fit(x, y, sensitive_features=s)
    assert unmet.lam_ == LAMS[-1]
    assert unmet.certificate_.bound > 0.01
    with pytest.warns(FitWarning, match="value of S of their own.* round S to fewer values"):
        model(guaranteed_gdp=0.01, lams=[1.0]).fit(
            x, y, sensitive_features=s + np.linspace(0.0, 0.5, len(s))
        )


def test_more_candidates_cost_more(found, data: Data) -> None:
    more = fitted(data, lams=(*LAMS, 40.0, 90.0))
    assert more.lambda_choice_.table["gdp_bound"][0] > found.lambda_choice_.table["gdp_bound"][0]


def test_without_the_rule_there_is_no_certificate(data: Data) -> None:
    assert (
        fitted(tuple(part[:400] for part in data), rule="tradeoff", lams=[1.0]).certificate_ is None
    )


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"lam": 1.0}, "cannot guarantee anything"),
        ({"kind": FairRegressor}, "no probabilities"),
        ({"kind": FairEncoder}, "no probabilities"),
        ({"guaranteed_gdp": 0.7}, "guaranteed_gdp"),
        ({"delta": 0.0}, "delta"),
    ],
)
def test_what_cannot_be_guaranteed_is_refused_with_the_reason(
    data: Data, changes: dict, word: str
) -> None:
    x, y, s = data
    with pytest.raises(ValueError, match=word):
        model(**changes).fit(x, y, sensitive_features=s)


def test_weights_and_several_attributes_are_refused(data: Data) -> None:
    x, y, s = data
    with pytest.raises(ValueError, match="sample_weight"):
        model().fit(x, y, sensitive_features=s, sample_weight=np.ones(len(y)) + (y == 1))
    with pytest.raises(ValueError, match="one attribute"):
        model().fit(x, y, sensitive_features=np.column_stack([s, s**2]))


def test_a_saved_model_keeps_its_certificate(found, tmp_path: Path) -> None:
    joblib.dump(found, tmp_path / "model")
    assert joblib.load(tmp_path / "model").certificate_ == found.certificate_
