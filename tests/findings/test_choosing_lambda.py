"""Guards the sentences of the chapter on choosing λ; the seven small models are trained once."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import isotonic_regression

from frhsic_core.learning import make_penalty
from frhsic_core.learning.selection import choose_lambda, select_lambda, validation_table

LAMS = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
RULES = ("independence", "practical", "tradeoff")


def people(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    t, skill = rng.uniform(size=n), rng.normal(size=n)
    arc = np.column_stack([np.cos(np.pi * t), np.sin(np.pi * t)]) + 0.2 * rng.normal(size=(n, 2))
    X = np.column_stack([skill + 0.3 * rng.normal(size=n), arc])
    y = skill + 1.5 * (t - 0.5) + 0.5 * rng.normal(size=n) > 0
    return X, y.astype(float), t


@pytest.fixture(scope="module")
def path():
    options = {"epochs": 40, "learning_rate": 5e-3, "widths": (50, 2), "dtype": torch.float64, "device": "cpu"}
    rule = {"rule": "tradeoff", "tolerance": 0.03}
    penalty = make_penalty("frhsic", estimator="normalized", on="representation")
    return select_lambda(*people(1000, seed=0), lams=LAMS, penalty=penalty, validation_fraction=0.4, **rule, **options)


@pytest.fixture(scope="module")
def choices(path):
    """Return what each rule chooses, by the number of validation rows."""
    found = {}
    for n in (60, 250, 2000):
        table = validation_table(path.stack, *people(n, seed=2), n_permutations=199, max_rows=n)
        found[n] = {rule: choose_lambda(table, rule=rule, tolerance=0.03) for rule in RULES}
    return found


def test_dependence_falls_along_lambda(path) -> None:
    assert path.choice.table["normalized_hsic"].is_monotonic_decreasing


def test_the_largest_lambda_whose_smoothed_accuracy_is_above_the_line_is_chosen(path) -> None:
    judged = path.choice.table
    accuracy = isotonic_regression(judged["performance"].to_numpy(), increasing=False).x
    assert judged["lam"][accuracy >= accuracy[0] - 0.03].max() == path.choice.lam


def test_the_more_rows_the_larger_the_lambda_that_the_test_needs(choices) -> None:
    few, some, many = (choices[n]["independence"] for n in (60, 250, 2000))
    assert few.lam < some.lam < many.lam == max(LAMS)
    assert not many.satisfied  # with enough rows more than any grid has


def test_on_few_rows_the_practical_rule_chooses_as_the_test_does_and_then_settles(choices) -> None:
    assert choices[60]["practical"].lam == choices[60]["independence"].lam
    assert choices[250]["practical"].lam == choices[2000]["practical"].lam
    assert choices[2000]["practical"].satisfied


def test_the_trade_off_rule_moves_the_other_way(choices) -> None:
    assert choices[60]["tradeoff"].lam > choices[250]["tradeoff"].lam > choices[2000]["tradeoff"].lam
