"""FRHSIC given labels or control features: its value, gradient and stacks, and the estimators."""

from __future__ import annotations

import inspect
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from samples import batch_of, normal, prepared
from torch import Tensor

from frhsic_core import FairClassifier, hsic, hsic_test
from frhsic_core.joint import conditional_hsic
from frhsic_core.joint.given import Given, read_given
from frhsic_core.kernels import Categorical, Gaussian, Linear, Product
from frhsic_core.learning import FRHSIC, Trainer
from frhsic_core.learning.data import Batch, TrainingData
from frhsic_core.learning.selection import validation_table

SETTINGS = {"scale": None, "bandwidth": 1.0, "bandwidth_s": 0.5, "on": "representation"}
FORMS = ("biased", "normalized")


def data(
    n: int = 30, *, control: Given | None = None, task: str = "classification"
) -> TrainingData:
    y = (
        normal(1, 1, n)
        if task == "regression"
        else (torch.arange(n) % 3 == 0).double().unsqueeze(0)
    )
    rows = None
    if control is not None:
        rows = torch.as_tensor(control.rows.numpy()).unsqueeze(0)
    return TrainingData(normal(2, 1, n, 2), y, normal(3, 1, n, 1), None, task, rows)


def batch(source: TrainingData, z: Tensor, weights: Tensor | None = None) -> Batch:
    return batch_of(source, z, z.sum(-1), weights=weights)


CONTROLS = {
    "groups": read_given(["a", "b", "c"] * 10, 30),
    "numbers": read_given(normal(4, 30), 30),
    "both": read_given(pd.DataFrame({"g": ["a", "b"] * 15, "x": normal(5, 30).numpy()}), 30),
}


CASES = [(form, weighted, "classification") for form in FORMS for weighted in (False, True)]


@pytest.mark.parametrize(("form", "weighted", "task"), [*CASES, ("biased", False, "regression")])
def test_labels_are_the_criterion_given_y(form: str, weighted: bool, task: str) -> None:
    """The target of a regression is continuous."""
    source, z = data(task=task), normal(6, 2, 30, 2)
    given = source.y[0] if task == "regression" else source.y[0].long()
    weights = normal(7, 2, 30).abs() if weighted else None
    found = prepared(FRHSIC(estimator=form, condition="labels", **SETTINGS), source)(
        batch(source, z, weights), refresh=True
    )
    kernels = {"kernel_z": Gaussian(1.0), "kernel_s": Gaussian(0.5)}
    for i in range(2):
        own = {} if weights is None else {"sample_weight": weights[i]}
        expected = conditional_hsic(z[i], source.s[0], given, estimator=form, **kernels, **own)
        torch.testing.assert_close(found[i], expected)


@pytest.mark.parametrize("name", CONTROLS)
def test_controls_are_the_criterion_given_them(name: str) -> None:
    source, z = data(control=CONTROLS[name]), normal(8, 2, 30, 2)
    found = prepared(FRHSIC(estimator="normalized", condition="controls", **SETTINGS), source)(
        batch(source, z), refresh=True
    )
    kernels = {"kernel_z": Gaussian(1.0), "kernel_s": Gaussian(0.5)}
    expected = [
        conditional_hsic(x, source.s[0], CONTROLS[name], estimator="normalized", **kernels)
        for x in z
    ]
    torch.testing.assert_close(found, torch.stack(expected))


def test_a_mini_batch_has_the_controls_of_its_rows() -> None:
    source, z = data(control=CONTROLS["groups"]), normal(14, 1, 15, 2)
    rows = torch.randperm(30, generator=torch.Generator().manual_seed(0))[:15]
    part = Batch(z, z.sum(-1), source.s[:, rows], source.y[:, rows], None, rows.unsqueeze(0))
    found = prepared(
        FRHSIC(estimator="biased", condition="controls", **SETTINGS), source, models=1
    )(part, refresh=True)
    codes = [f"group {code}" for code in CONTROLS["groups"].codes[rows].tolist()]
    expected = conditional_hsic(
        z[0], source.s[0, rows], codes, kernel_z=Gaussian(1.0), kernel_s=Gaussian(0.5)
    )
    torch.testing.assert_close(found[0], expected)


@pytest.mark.parametrize("form", ["biased", "normalized"])
def test_the_output_has_a_linear_kernel(form: str) -> None:
    source, z = data(), normal(10, 1, 30, 2)
    penalty = prepared(
        FRHSIC(estimator=form, condition="labels", **SETTINGS | {"on": "output"}), source, models=1
    )
    output = z[0].sum(-1, keepdim=True)
    expected = conditional_hsic(
        output,
        source.s[0],
        source.y[0].long(),
        estimator=form,
        kernel_z=Linear(),
        kernel_s=Gaussian(0.5),
    )
    torch.testing.assert_close(penalty(batch(source, z), refresh=True)[0], expected)
    # A far output is centered first: its entries keep 2^-53 · 10^6 ≈ 1e-10, its square of 10^12
    # would keep 1e-4.
    torch.testing.assert_close(penalty(batch(source, z + 5e5))[0], expected, rtol=1e-7, atol=0)


@pytest.mark.parametrize("condition", ["labels", "groups", "numbers", "both"])
@pytest.mark.parametrize("scale", [None, "whiten"])
def test_gradient(condition: str, scale: str | None) -> None:
    control = CONTROLS.get(condition)
    source = data(control=control)
    name = "labels" if control is None else "controls"
    settings = SETTINGS | {"scale": scale, "on": "both"}
    penalty = prepared(FRHSIC(condition=name, **settings), source, models=1)
    z = normal(11, 1, 30, 2)
    penalty(batch(source, z), refresh=True)
    assert torch.autograd.gradcheck(lambda x: penalty(batch(source, x)), (z.requires_grad_(),))


@pytest.mark.parametrize("name", ["groups", "both"])
def test_stacked_and_separate_training_agree(name: str) -> None:
    source = data(control=CONTROLS[name])
    options = {
        "epochs": 4,
        "batch_size": 16,
        "widths": (4, 2),
        "device": "cpu",
        "dtype": torch.float64,
    }

    def outputs(seeds: list[int]) -> Tensor:
        trainer = Trainer(
            source, penalty=FRHSIC(condition="controls"), lam=1.0, seeds=seeds, **options
        )
        return trainer.fit().output(source.x[0])

    together = outputs([5, 6])
    alone = torch.cat([outputs([5]), outputs([6])])
    torch.testing.assert_close(together, alone, rtol=1e-9, atol=1e-9)


def test_the_settings_are_those_of_the_constructor() -> None:
    """Neither tensors nor private attributes are settings; the bandwidth's policy is named after what it is."""
    names = set(inspect.signature(FRHSIC).parameters) - {"bandwidth", "categorical"}
    assert set(prepared(FRHSIC(), data()).settings()) == names | {"policy", "weighted"}
    assert FRHSIC(condition="labels").settings()["condition"] == "'labels'"


def test_estimators_condition_on_labels_and_controls() -> None:
    """S reaches y only through C. A penalty given C leaves the prediction alone; one without C does not."""
    rng = np.random.default_rng(0)
    c = rng.integers(0, 2, size=300)
    s = 2.0 * c + rng.normal(size=300)
    X = np.column_stack([c + 0.3 * rng.normal(size=300), rng.normal(size=300)])
    y = c == 1
    common = {"lam": 5.0, "epochs": 60, "learning_rate": 1e-2, "random_state": 0, "device": "cpu"}
    with_controls = FairClassifier(**common).fit(X, y, sensitive_features=s, control_features=c)
    labels = FairClassifier(penalty_settings={"condition": "labels"}, **common).fit(
        X, y, sensitive_features=s
    )
    assert with_controls.score(X, y) > 0.9
    assert labels.score(X, y) > 0.9
    assert (
        not hsic_test(with_controls.predict_proba(X)[:, 1], s, given=c, n_permutations=99).pvalue
        <= 0.01
    )


def test_models_are_judged_given_the_condition() -> None:
    """What ``lam="auto"`` looks at is the dependence given y, or given the control features."""
    source = data(60, control=read_given(["a", "b", "c"] * 20, 60))
    for condition in ("labels", "controls"):
        options = {
            "lam": [0.1, 1.0],
            "epochs": 1,
            "batch_size": 60,
            "widths": (4, 2),
            "dtype": torch.float64,
        }
        stack = Trainer(source, penalty=FRHSIC(condition=condition), device="cpu", **options).fit()
        table = validation_table(stack, source, condition=condition, n_permutations=19)
        z = stack.forward(source.x[0])[0]
        given = source.y[0].long() if condition == "labels" else Given.of_rows(source.control[0])
        expected = [
            float(conditional_hsic(x, source.s[0], given, estimator="normalized")) for x in z
        ]
        np.testing.assert_allclose(table["normalized_hsic"], expected, rtol=1e-6)


def test_age_and_sex_are_one_mixed_attribute() -> None:
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"age": rng.uniform(20, 70, 300), "sex": rng.choice(["f", "m"], 300)})
    z = (frame["age"] - 45) / 15 * np.where(frame["sex"] == "f", 1.0, -1.0) + rng.normal(size=300)
    X = np.column_stack([z, rng.normal(size=300)])
    model = FairClassifier(lam=0.1, epochs=60, learning_rate=1e-2, random_state=0, device="cpu")
    model.fit(X, z > 0, sensitive_features=frame)
    assert model.score(X, z > 0) > 0.6


def test_the_penalty_of_a_mixed_attribute_has_a_product_kernel() -> None:
    source, z = data(), normal(13, 1, 30, 2)
    codes = (torch.arange(30) % 2).double().reshape(1, 30, 1)
    source = replace(source, s=torch.cat([source.s, codes], -1))
    settings = SETTINGS | {"estimator": "biased", "attributes": "product", "categorical": (1,)}
    penalty = prepared(FRHSIC(**settings), source, models=1)
    kernel = Product([Gaussian(0.5), Categorical()])
    expected = hsic(z[0], source.s[0], kernel_z=Gaussian(1.0), kernel_s=kernel)
    torch.testing.assert_close(penalty(batch(source, z), refresh=True)[0], expected)


def test_a_part_has_its_controls() -> None:
    assert data(control=CONTROLS["numbers"]).part(torch.arange(5)).control.shape == (1, 5, 2)
