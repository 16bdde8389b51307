"""The metrics of a stack against scikit-learn, plain loops and the statistics one model at a time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.metrics import accuracy_score

from frhsic_core.data import Dataset, Provenance, load_dataset
from frhsic_core.joint import distance_correlation, normalized_hsic
from frhsic_core.learning import Trainer, TrainingData
from frhsic_core.paper.datasets import load_variant, stack_splits
from frhsic_core.paper.runs.jobs import evaluate
from frhsic_core.paper.stored_gdp import smoothed_gdp


def pair(n: int) -> Dataset:
    """Return a regression on a Gaussian pair with correlation 0.8."""
    z, noise = np.random.RandomState(42).normal(size=(2, n))
    s = 0.8 * z + 0.6 * noise
    return Dataset(
        "pair", z[:, None], s, z, "regression", ("z",), ("s",), Provenance("pair", "made")
    )


@pytest.fixture(scope="module")
def trained():
    splits = stack_splits(
        load_dataset("synthetic", n=400), seeds=(42, 43), fractions=(0.6, 0.2, 0.2)
    )
    trainer = Trainer(
        splits.x_train, splits.y_train, splits.s_train,
        penalty="mmd_binned", lam=[0.0, 0.0, 10.0], seeds=[1, 2, 3], dataset=[0, 1, 1], epochs=4, device="cpu",
    )  # fmt: skip
    return trainer.fit(), splits


def test_stack_agrees_with_one_model_at_a_time(trained, looped_gdp) -> None:
    stack, splits = trained
    found = evaluate(stack, splits, rows=60)
    assert all(value.shape == (3,) and value.dtype == np.float32 for value in found.values())
    for i, d in enumerate(stack.dataset):
        encoder, head = stack.lone(i)
        with torch.no_grad():
            z = encoder(splits.x_test[d])
            output = head(z).squeeze(-1).double().numpy()
        y, s = splits.y_test[d].numpy(), splits.s_test[d].double().numpy()
        probability = 1 / (1 + np.exp(-output))
        assert found["performance"][i] == pytest.approx(accuracy_score(y, output > 0), abs=1e-6)
        assert found["constant"][i] == pytest.approx(max(y.mean(), 1 - y.mean()), abs=1e-6)
        assert found["positive"][i] == pytest.approx((output > 0).mean(), abs=1e-6)
        assert found["gdp_reference"][i] == pytest.approx(looped_gdp(output, s), abs=1e-5)
        weights = np.exp(-((s[:, None] - s[None]) ** 2) / (2 * 0.1**2))
        conditional = weights @ probability / weights.sum(1)
        assert found["gdp_sample"][i] == pytest.approx(
            np.abs(conditional - probability.mean()).mean(), abs=1e-5
        )
        rows = torch.linspace(0, len(s) - 1, 60).round().long()
        zs = z.double()[rows], torch.as_tensor(s)[rows]
        assert found["normalized_hsic_1"][i] == pytest.approx(float(normalized_hsic(*zs)), abs=1e-5)
        expected = float(distance_correlation(*zs, squared=True, estimator="unbiased"))
        assert found["distance_correlation"][i] == pytest.approx(expected, abs=1e-5)


def test_validation_part_is_measured_on_its_own_rows(trained, looped_gdp) -> None:
    stack, splits = trained
    found = evaluate(stack, splits)
    output = stack.output(splits.x_validation)
    expected = ((output > 0) == (splits.y_validation[list(stack.dataset)] > 0.5)).double().mean(-1)
    np.testing.assert_allclose(found["validation_performance"], expected, atol=1e-6)
    for i, d in enumerate(stack.dataset):
        gap = looped_gdp(output[i].double().numpy(), splits.s_validation[d].double().numpy())
        assert found["validation_gdp_reference"][i] == pytest.approx(gap, abs=1e-5)


def test_the_best_constant_may_be_either_class(trained) -> None:
    stack, splits = trained
    turned = evaluate(stack, replace(splits, y_test=1 - splits.y_test))
    np.testing.assert_allclose(turned["constant"], evaluate(stack, splits)["constant"], atol=1e-6)
    assert (turned["constant"] >= 0.5).all()


def test_a_diverged_model_is_nan_and_its_neighbours_are_not(trained) -> None:
    import copy

    stack, splits = trained
    broken = copy.deepcopy(stack)
    with torch.no_grad():
        broken.model.head.bias[1] = torch.nan
    whole, found = evaluate(stack, splits), evaluate(broken, splits)
    for name in ("performance", "gdp_reference", "linear_r2", "normalized_hsic_1"):
        assert np.isnan(found[name][1])
        np.testing.assert_allclose(found[name][[0, 2]], whole[name][[0, 2]], atol=1e-6)


def test_regression_measures_outputs_as_they_are() -> None:
    splits = stack_splits(pair(300), seeds=(42,))
    data = TrainingData.from_arrays(splits.x_train, splits.y_train, None, task="regression")
    stack = Trainer(data, penalty="unfair", seeds=[0], epochs=3, device="cpu").fit()
    found = evaluate(stack, splits)
    output, y = stack.output(splits.x_test)[0].double(), splits.y_test[0].double()
    assert found["performance"][0] == pytest.approx(((output - y) ** 2).mean().item(), rel=1e-5)
    assert found["constant"][0] == pytest.approx(y.var(correction=0).item(), rel=1e-5)
    assert found["gdp_sample"][0] == pytest.approx(
        smoothed_gdp(output, splits.s_test[0]).item(), rel=1e-4
    )


def test_several_attributes_report_the_worst_parity(looped_gdp) -> None:
    data = load_variant("synthetic", n=300, sensitive=("s", "x2"))
    splits = stack_splits(data, seeds=(42,))
    stack = Trainer(
        splits.x_train, splits.y_train, penalty="unfair", seeds=[0], epochs=2, device="cpu"
    ).fit()
    found = evaluate(stack, splits)
    output = stack.output(splits.x_test)[0].double().numpy()
    each = [looped_gdp(output, splits.s_test[0, :, a].double().numpy()) for a in range(2)]
    assert found["gdp_reference"][0] == pytest.approx(max(each), abs=1e-5)
