"""The scikit-learn estimators: scikit-learn's own checks, the trainer they stand on, bad input."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
import torch
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from frhsic_core import gdp, normalized_hsic
from frhsic_core.auditing import audit_representation
from frhsic_core.learning import (
    FRHSIC,
    FairClassifier,
    FairEncoder,
    FairRegressor,
    MissingAttributeWarning,
    Trainer,
)

# Most fits below are short on purpose.
pytestmark = pytest.mark.filterwarnings("ignore::frhsic_core.learning.FitWarning")
# Full batches and float64: weighting a row then is repeating it, to rounding, as scikit-learn asks.
SMALL = {"widths": (8, 2), "device": "cpu", "random_state": 0}
CHECKED = SMALL | {"epochs": 25, "batch_size": 1000, "learning_rate": 2e-2, "dtype": "float64"}
LONGER = CHECKED | {"epochs": 60}
QUICK = SMALL | {"widths": (8, 3), "epochs": 4, "batch_size": 64}
WITHOUT_CUDA = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")


@pytest.fixture
def toy() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    s = rng.uniform(20, 70, size=400)
    X = np.column_stack(
        [s / 25 + 0.5 * rng.normal(size=400), 3 * rng.normal(size=400), rng.normal(size=400)]
    )
    y = np.where(X[:, 0] + X[:, 1] / 3 + 0.3 * rng.normal(size=400) > 2, "yes", "no")
    return X, y, s


@pytest.mark.filterwarnings("ignore::frhsic_core.learning.MissingAttributeWarning")
@parametrize_with_checks(
    [FairClassifier(**CHECKED), FairRegressor(**LONGER), FairEncoder(**CHECKED)]
)
def test_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


def test_is_the_trainer_on_scaled_data(toy: Any) -> None:
    X, y, s = toy
    model = FairClassifier(lam=2.0, dtype="float64", **QUICK | {"random_state": 3}).fit(
        X, y, sensitive_features=s
    )
    low, middle, high = np.quantile(X, [0.25, 0.5, 0.75], axis=0, method="inverted_cdf")
    x = np.arcsinh((X - middle) * 1.349 / (2 * (high - low)))
    scaled = (s - s.min()) / (s.max() - s.min())
    trained = Trainer(
        x, y == "yes", scaled, penalty=FRHSIC(), lam=2.0, seeds=3, epochs=4, batch_size=64, learning_rate=5e-3,
        decay=True, widths=(8, 3), dtype=torch.float64, device="cpu",
    ).fit()  # fmt: skip
    np.testing.assert_allclose(
        model.decision_function(X), trained.output(x)[0].numpy(), rtol=1e-9, atol=1e-12
    )
    np.testing.assert_allclose(
        model.transform(X), trained.encode(x)[0].numpy(), rtol=1e-9, atol=1e-12
    )
    np.testing.assert_allclose(model.history_["loss"], trained.history["loss"][:, 0], rtol=1e-12)


def test_a_penalty_lowers_the_dependence(toy: Any) -> None:
    X, y, s = toy
    options = {"epochs": 60, "learning_rate": 5e-3, "random_state": 0, "device": "cpu"}
    before = FairClassifier(lam=0.0, **options).fit(X, y)
    after = FairClassifier(lam=2.0, **options).fit(X, y, sensitive_features=s)
    for measure in (
        lambda m: normalized_hsic(m.transform(X), s),
        lambda m: gdp(m.predict_proba(X)[:, 1], s),
    ):
        assert measure(after) < 0.6 * measure(before)


def test_regressor_predicts_on_the_scale_of_y(toy: Any) -> None:
    X, _, s = toy
    y = 1000 + 50 * X[:, 1]
    model = FairRegressor(lam=0.1, epochs=150, learning_rate=1e-2, random_state=0, device="cpu")
    assert model.fit(X, y, sensitive_features=s).score(X, y) > 0.9


def test_without_attribute_it_warns_and_trains_without_penalty(toy: Any) -> None:
    X, y, s = toy
    with pytest.warns(
        MissingAttributeWarning, match=r"sensitive_features is missing.*WITHOUT a penalty"
    ):
        model = FairClassifier(lam=5.0, **QUICK).fit(X, y)
    plain = FairClassifier(lam=0.0, **QUICK).fit(X, y)
    unfair = FairClassifier(lam=5.0, method="unfair", **QUICK).fit(X, y, sensitive_features=s)
    np.testing.assert_array_equal(model.predict_proba(X), plain.predict_proba(X))
    np.testing.assert_array_equal(unfair.predict_proba(X), plain.predict_proba(X))
    assert model.lam_ == 0.0


def test_pandas_and_several_attributes(toy: Any) -> None:
    X, y, s = toy
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    both = pd.DataFrame({"age": s, "income": X[:, 1]})
    model = FairClassifier(**QUICK).fit(frame, pd.Series(y), sensitive_features=both)
    plain = FairClassifier(**QUICK).fit(X, y, sensitive_features=both.to_numpy())
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(model.transform(frame), plain.transform(X))
    summed = FairClassifier(penalty_settings={"attributes": "sum"}, **QUICK).fit(
        frame, y, sensitive_features=both
    )
    assert not np.allclose(summed.transform(frame), model.transform(frame))


@pytest.mark.parametrize(
    "batch_size", [64, 97, 100, 199, 397]
)  # last batches of 16, 12, 100, 2 and 3 rows
def test_equal_opportunity_is_a_setting(toy: Any, batch_size: int) -> None:
    X, y, s = toy
    options = QUICK | {
        "lam": 3.0,
        "batch_size": batch_size,
        "penalty_settings": {"condition": "positives"},
    }
    options |= {"positive_class": "yes"}
    model = FairClassifier(**options).fit(X, y, sensitive_features=s)
    noise = s.copy()
    noise[y == "no"] = np.random.default_rng(0).permutation(noise[y == "no"])
    again = FairClassifier(**options).fit(X, y, sensitive_features=noise)
    # Shuffling S among the negatives changes nothing that counts: sigma_S, a median over all rows,
    # stays the same set.
    np.testing.assert_allclose(model.transform(X), again.transform(X), atol=1e-4)


def test_sample_weight_zero_is_absence(toy: Any) -> None:
    X, y, s = toy
    weight = (np.arange(400) < 300).astype(float)
    weighted = FairClassifier(**QUICK).fit(X, y, sensitive_features=s, sample_weight=weight)
    absent = FairClassifier(**QUICK).fit(
        X[:300], y[:300], sensitive_features=s[:300], sample_weight=np.ones(300)
    )
    np.testing.assert_array_equal(weighted.predict_proba(X), absent.predict_proba(X))


def test_the_target_is_standardized_with_weights(toy: Any) -> None:
    X, _, s = toy
    weight = np.linspace(0.1, 3.0, 400)
    model = FairRegressor(**QUICK).fit(X, X[:, 0], sensitive_features=s, sample_weight=weight)
    mean = np.average(X[:, 0], weights=weight)
    assert model.target_offset_ == pytest.approx(mean)
    assert model.target_scale_ == pytest.approx(
        np.sqrt(np.average((X[:, 0] - mean) ** 2, weights=weight))
    )


def test_own_settings_win_over_the_default_place(toy: Any) -> None:
    """The penalty acts on Z and on the output, unless the settings say otherwise."""
    X, y, s = toy
    default, representation, both = (
        FairClassifier(penalty_settings=settings, **QUICK)
        .fit(X, y, sensitive_features=s)
        .transform(X)
        for settings in (None, {"on": "representation"}, {"on": "both"})
    )
    np.testing.assert_array_equal(default, both)
    assert not np.array_equal(both, representation)


def test_pipeline_and_grid_search_route_the_attribute(toy: Any) -> None:
    X, y, s = toy

    def less_gap(y_true: Any, y_pred: Any, *, sensitive_features: Any) -> float:
        return np.mean(y_true == y_pred) - gdp((y_pred == "yes").astype(float), sensitive_features)

    with sklearn.config_context(enable_metadata_routing=True):
        model = FairClassifier(**QUICK).set_fit_request(sensitive_features=True)
        pipeline = make_pipeline(StandardScaler(), model)
        scorer = make_scorer(less_gap).set_score_request(sensitive_features=True)
        search = GridSearchCV(pipeline, {"fairclassifier__lam": [0.0, 1.0]}, cv=2, scoring=scorer)
        with warnings.catch_warnings():
            warnings.simplefilter("error", MissingAttributeWarning)  # a lost attribute would warn
            search.fit(X, y, sensitive_features=s)
    assert search.best_params_["fairclassifier__lam"] in (0.0, 1.0)
    assert search.best_estimator_[-1].lam_ == search.best_params_["fairclassifier__lam"]


# Choosing λ ---------------------------------------------------------------------------------------


def test_auto_chooses_from_the_grid_and_refits_on_all_rows(toy: Any) -> None:
    X, y, s = toy
    selection = {"lams": (0.1, 5.0), "rule": "tradeoff", "tolerance": 0.05, "n_permutations": 39}
    model = FairClassifier("auto", selection=selection, **QUICK).fit(X, y, sensitive_features=s)
    assert model.lambda_choice_.table["lam"].to_list() == [0.1, 5.0]
    assert model.lam_ == model.lambda_choice_.lam
    by_hand = FairClassifier(model.lam_, **QUICK).fit(X, y, sensitive_features=s)
    np.testing.assert_allclose(model.predict_proba(X), by_hand.predict_proba(X), atol=1e-6)


# Bad input ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong", [np.ones(399), np.ones((400, 1)), -np.ones(400), np.zeros(400), np.full(400, np.nan)]
)
def test_weights_that_cannot_be_used(toy: Any, wrong: np.ndarray) -> None:
    X, y, s = toy
    with pytest.raises(ValueError, match=r"[Ss]ample.weight"):
        FairClassifier(**QUICK).fit(X, y, sensitive_features=s, sample_weight=wrong)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"y": np.repeat("no", 400)}, r"one class only \(.*no.*\)"),
        ({"X": np.full((400, 3), np.nan)}, r"column 0 .*NaN.*drop it"),
        (
            {"X": np.full((400, 3), "a")},
            r"text in column 0 \(first: .*a.*\), column 1 .*could not convert",
        ),
        ({"X": np.zeros((399, 3))}, "inconsistent numbers of samples"),
        ({"lam": None}, "lam is None"),
        ({"lam": float("nan")}, "lam is nan"),
        ({"lam": "more"}, "lam is 'more'.* or 'auto'"),
        ({"dtype": "float16"}, "'dtype' parameter .* Got 'float16'"),
        ({"epochs": "10"}, r"'epochs' parameter .* \[1, inf\) or a str among {'auto'}. Got '10'"),
        ({"batch_size": 0}, r"'batch_size' parameter .* \[1, inf\)"),
        ({"learning_rate": 0.0}, r"'learning_rate' parameter .* \(0.0, inf\)"),
        ({"device": "gpu"}, "device is 'gpu': choose 'auto', 'cpu', 'cuda' or 'cuda:0'"),
        ({"device": None}, "'device' parameter"),
        pytest.param({"device": "cuda"}, "no CUDA device", marks=WITHOUT_CUDA),
        ({"widths": 8}, "'widths' parameter .* array-like"),
        ({"widths": ()}, r"widths is \(\): give positive"),
        ({"widths": (50, 4.0)}, r"widths is \(50, 4.0\): give positive whole numbers"),
        ({"random_state": "0"}, "'random_state' parameter"),
        ({"penalty_settings": "positives"}, "'penalty_settings' parameter .*'dict'"),
        ({"selection": "tradeoff"}, "selection is 'tradeoff'"),
    ],
)
def test_bad_input_is_named(toy: Any, change: dict[str, Any], text: str) -> None:
    X, y, s = toy
    data = {"X": X, "y": y, "s": s} | {key: value for key, value in change.items() if key in "Xys"}
    options = {**QUICK, **{key: value for key, value in change.items() if key not in "Xys"}}
    with pytest.raises(ValueError, match=text):
        FairClassifier(**options).fit(data["X"], data["y"], sensitive_features=data["s"])


def test_an_attribute_that_varies_only_where_nothing_counts(toy: Any) -> None:
    X, y, s = toy
    same = np.where(np.arange(400) < 200, 1.0, s)
    with pytest.raises(ValueError, match=r"constant \(column 0\)"):
        FairClassifier(**QUICK).fit(
            X, y, sensitive_features=same, sample_weight=np.arange(400) < 200
        )


def test_a_batch_larger_than_the_data_is_the_data(toy: Any) -> None:
    X, y, s = toy
    options = {**QUICK, "batch_size": 400}
    whole = FairClassifier(**options).fit(X, y, sensitive_features=s)
    larger = FairClassifier(**{**options, "batch_size": 10**6}).fit(X, y, sensitive_features=s)
    np.testing.assert_array_equal(whole.transform(X), larger.transform(X))


def test_progress_is_drawn_only_when_asked(toy: Any, capsys: pytest.CaptureFixture[str]) -> None:
    X, y, s = toy
    FairClassifier(**QUICK).fit(X, y, sensitive_features=s)
    assert capsys.readouterr().out == ""
    FairClassifier(verbose=True, **QUICK).fit(X, y, sensitive_features=s)
    assert "epoch 4/4" in capsys.readouterr().out


@pytest.mark.cuda
@pytest.mark.parametrize("lam", [1.0, "auto"])
def test_cuda_is_the_cpu(toy: Any, lam: float | str) -> None:
    """The captured step, whitening included, against the eager one; predictions are on the CPU either way."""
    X, y, s = toy
    options = QUICK | {
        "dtype": "float64",
        "epochs": 6,
        "selection": {"lams": (0.5, 1.0), "n_permutations": 19},
    }
    cpu = FairClassifier(lam, **options).fit(X, y, sensitive_features=s)
    cuda = FairClassifier(lam, **{**options, "device": "cuda"}).fit(X, y, sensitive_features=s)
    assert cuda.lam_ == cpu.lam_
    np.testing.assert_allclose(cuda.predict_proba(X), cpu.predict_proba(X), atol=1e-7)


@pytest.mark.cuda
def test_the_audit_on_cuda_is_that_of_the_cpu(toy: Any) -> None:
    X, _, s = toy
    z = torch.tensor(X).expand(3, -1, -1)
    cpu = audit_representation(z, s, predictions=z[..., 0]).as_dict()
    cuda = audit_representation(z.cuda(), s, predictions=z[..., 0].cuda()).as_dict()
    for name, value in cpu.items():
        np.testing.assert_allclose(cuda[name], value, atol=1e-6)
