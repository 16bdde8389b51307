"""Choosing λ: the rules against hand-made tables, the table against brute force, the path against separate runs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.stats
import torch
from hypothesis import given
from hypothesis import strategies as st

from frhsic_core import gdp, hsic, normalized_hsic
from frhsic_core.joint import hsic_test
from frhsic_core.learning import LambdaSelection, Trainer, make_penalty
from frhsic_core.learning.selection import choose_lambda, select_lambda, validation_table

OPTIONS = {"epochs": 6, "batch_size": 64, "widths": (8, 2), "device": "cpu", "dtype": torch.float64}


def table(**columns: list[float]) -> pd.DataFrame:
    given = {
        "lam": [0.0, 0.1, 1.0, 10.0],
        "performance": [0.85, 0.849, 0.842, 0.80],
        "hsic": [2e-2, 8e-3, 9e-4, 5e-4],
        "normalized_hsic": [0.2, 0.1, 0.02, 0.01],
        "gdp": [0.1, 0.08, 0.04, 0.01],
        "pvalue": [0.005, 0.005, 0.01, 0.3],
    }
    return pd.DataFrame({**given, **columns})


def toy(n: int = 400, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(n, 2, generator=generator, dtype=torch.float64)
    s, rest = torch.rand(n, 3, generator=generator, dtype=torch.float64).split([1, 2], dim=1)
    x = torch.cat([s + 0.3 * noise[:, :1], rest], dim=1)
    y = (x[:, 0] + x[:, 1] + 0.2 * noise[:, 1] > 1).double()
    return x, y, s


# Rules ---------------------------------------------------------------------------------------------------------------


def test_the_papers_rule_is_the_first_lambda_not_rejected() -> None:
    assert choose_lambda(table(), rule="independence").lam == 10.0
    assert choose_lambda(table(pvalue=[0.005, 0.06, 0.01, 0.3]), rule="independence").lam == 0.1
    none = choose_lambda(table(pvalue=[0.005] * 4), rule="independence")
    assert none.lam == 10.0
    assert not none.satisfied
    assert "no λ of the grid has p > 0.05: the largest is taken" in none.reason


def test_the_practical_variant_also_stops_at_a_small_hsic() -> None:
    choice = choose_lambda(table(), rule="practical")
    assert choice.lam == 1.0
    assert choice.satisfied
    assert choose_lambda(table(), rule="practical", epsilon=1e-9).lam == 10.0  # then it is the paper's rule
    assert choice.table["chosen"].to_list() == [False, False, True, False]


def test_the_tradeoff_has_most_of_the_reduction_within_the_tolerance() -> None:
    """The relative dependences are 1, 0.65, 0.25 and 0.075."""
    assert choose_lambda(table()).lam == 1.0
    assert choose_lambda(table(), tolerance=0.001).lam == 0.1
    assert choose_lambda(table(), tolerance=1.0).lam == 1.0  # 0.75 of 0.925 is more than four fifths
    assert choose_lambda(table(gdp=[0.1, 0.08, 0.05, 0.01]), tolerance=1.0).lam == 10.0  # 0.7 of 0.925 is less
    assert choose_lambda(table(), tolerance=0.0).lam == 0.0
    # A plateau of the dependence is not worth a larger λ, and both measures count.
    flat = table(performance=[0.85] * 4, normalized_hsic=[0.2, 0.02, 0.02, 0.02], gdp=[0.1, 0.01, 0.01, 0.01])
    assert choose_lambda(flat).lam == 0.1
    assert choose_lambda(flat.assign(gdp=[0.1, 0.1, 0.1, 0.01])).lam == 10.0
    assert choose_lambda(flat.assign(gdp=0.0)).lam == 0.1  # no gap at all: the other measure decides


def test_the_tolerance_is_two_standard_errors_where_they_are_larger() -> None:
    """Two standard errors of the paired difference, each λ its own; never below one point."""
    steep = {"normalized_hsic": [0.2, 0.19, 0.18, 0.01], "gdp": [0.1, 0.095, 0.09, 0.01]}
    noisy = table(standard_error=[0.0, 0.01, 0.01, 0.0249], **steep)
    assert choose_lambda(noisy).lam == 1.0  # 0.05 lost
    assert choose_lambda(noisy.assign(standard_error=[0.0, 0.01, 0.01, 0.0251])).lam == 10.0
    assert choose_lambda(noisy.assign(standard_error=0.0)).lam == choose_lambda(noisy, tolerance=0.01).lam
    assert "within two standard errors (at least 0.01)" in choose_lambda(noisy).reason


def test_one_lucky_model_does_not_decide() -> None:
    lucky = table(performance=[0.85, 0.80, 0.855, 0.80])  # a collapse on either side of it
    assert choose_lambda(lucky, tolerance=0.01).lam == 0.0
    assert choose_lambda(table().sample(frac=1, random_state=1)).lam == 1.0  # the order of the rows is no matter


unit = st.floats(0.0, 1.0, allow_nan=False)


@given(
    st.lists(st.tuples(unit, unit, unit, unit, unit), min_size=1, max_size=8),
    st.tuples(unit, unit),
    st.sampled_from(["independence", "practical", "tradeoff"]),
)
def test_asking_for_more_never_gives_a_smaller_lambda(rows: list, levels: tuple, rule: str) -> None:
    columns = np.array(rows)
    data = pd.DataFrame(columns, columns=["performance", "hsic", "normalized_hsic", "gdp", "pvalue"])
    data["lam"] = np.arange(len(rows), dtype=float)
    low, high = sorted(0.001 + 0.99 * np.array(levels))
    if rule == "independence":
        stricter, looser = {"alpha": high}, {"alpha": low}
    elif rule == "practical":
        stricter, looser = {"epsilon": low}, {"epsilon": high}
    else:
        stricter, looser = {"tolerance": high}, {"tolerance": low}
    assert choose_lambda(data, rule=rule, **stricter).lam >= choose_lambda(data, rule=rule, **looser).lam


def test_a_typo_is_refused_before_anything_is_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y, s = toy()

    def never(*_: object, **__: object) -> None:
        raise AssertionError("training was begun")

    monkeypatch.setattr(Trainer, "__init__", never)
    for wrong, text in (
        ({"rule": "trade-off"}, "rule is 'trade-off'"),
        ({"validation_fraction": 1.5}, r"validation_fraction is 1\.5"),
        ({"tolerance": "small"}, "tolerance is 'small'"),
        ({"lams": 2.0}, "lams is 2.0"),
        ({"lams": "auto"}, "lams is 'auto'"),
        ({"lams": [0.0, float("inf")]}, "lams is .*finite"),
        ({"alpha": 0.0}, "alpha is 0"),
        ({"n_permutations": 0}, "n_permutations is 0"),
    ):
        with pytest.raises(ValueError, match=text):
            select_lambda(x, y, s, **wrong, **OPTIONS)


def test_a_selection_is_checked_when_it_is_made() -> None:
    assert LambdaSelection(lams=[3, 0, 0.5]).lams == (0.0, 0.5, 3.0)
    assert LambdaSelection.of({"alpha": 0.1}, rule="independence") == LambdaSelection(alpha=0.1, rule="independence")
    assert LambdaSelection.of(LambdaSelection(alpha=0.1), epsilon=0.5).alpha == 0.1
    assert LambdaSelection.of(None) == LambdaSelection()
    for wrong, text in (
        ({"lams": [-1.0]}, "lams is"),
        ({"epsilon": 0.0}, "epsilon is"),
        ({"tolerance": -1.0}, "tolerance is"),
        ({"max_rows": 2.5}, "max_rows is"),
        ({"lambdas": [1.0]}, r"\['lambdas'\]"),
    ):
        with pytest.raises(ValueError, match=text):
            LambdaSelection.of(wrong)


def test_options_may_come_as_one_object() -> None:
    x, y, s = toy()
    selection = LambdaSelection(lams=[1.0, 0.0], n_permutations=19)
    one = select_lambda(x, y, s, selection=selection, random_state=3, **OPTIONS)
    other = select_lambda(x, y, s, lams=[1.0, 0.0], n_permutations=19, random_state=3, **OPTIONS)
    pd.testing.assert_frame_equal(one.choice.table, other.choice.table)
    with pytest.raises(ValueError, match="one dataset"):
        select_lambda(x.unsqueeze(0).repeat(2, 1, 1), y, s, **OPTIONS)


def test_too_few_rows_are_refused() -> None:
    x, y, s = toy()
    with pytest.raises(ValueError, match="60 rows leave 18 for validation"):
        select_lambda(x[:60], y[:60], s[:60], **OPTIONS)


# The table and the path ----------------------------------------------------------------------------------------------


def test_the_path_is_one_stack_and_sees_no_validation_row() -> None:
    x, y, s = toy()
    path = select_lambda(x, y, s, lams=[1.0, 0.0], random_state=3, n_permutations=19, **OPTIONS)
    held = path.validation_rows
    assert len(held) == 120
    assert path.choice.table["lam"].to_list() == [0.0, 1.0]
    train = np.setdiff1d(np.arange(400), held)
    for i, lam in enumerate([0.0, 1.0]):
        alone = Trainer(x[train], y[train], s[train], penalty="frhsic", lam=lam, seeds=3, **OPTIONS).fit()
        torch.testing.assert_close(path.stack.output(x)[i], alone.output(x)[0], rtol=0, atol=1e-9)
    # Whatever stands in the validation rows, the models are the same.
    other_y, other_x = y.clone(), x.clone()
    other_y[held], other_x[held] = 1 - y[held], 0.5
    again = select_lambda(other_x, other_y, s, lams=[1.0, 0.0], random_state=3, n_permutations=19, **OPTIONS)
    torch.testing.assert_close(again.stack.output(x), path.stack.output(x), rtol=0, atol=0)


def test_several_splits_are_averaged_over_disjoint_parts() -> None:
    """By hand: three paths, each the first split of the same order rotated."""
    x, y, s = toy()
    training = OPTIONS | {"epochs": 20, "learning_rate": 1e-2}
    options = training | {"lams": [0.0, 10.0], "random_state": 3, "n_permutations": 19, "validation_fraction": 0.15}
    got = select_lambda(x, y, s, **options).choice.table
    order = torch.randperm(400, generator=torch.Generator().manual_seed(3))
    found = []
    for part in range(3):
        held = order[60 * part : 60 * part + 60].sort().values
        train = torch.tensor(np.setdiff1d(np.arange(400), held))
        stack = Trainer(x[train], y[train], s[train], penalty="frhsic", lam=[0.0, 10.0], seeds=3, **training).fit()
        found.append(validation_table(stack, x[held], y[held], s[held], n_permutations=19, random_state=3))
    for name in ("performance", "normalized_hsic", "gdp"):
        np.testing.assert_allclose(got[name], np.mean([each[name] for each in found], axis=0), rtol=1e-6)
    errors = np.array([each["standard_error"] for each in found])
    assert (errors[:, 1] > 0).all()
    np.testing.assert_allclose(got["standard_error"], np.sqrt((errors**2).sum(0)) / 3, rtol=1e-6)
    for name in ("pvalue", "threshold"):
        np.testing.assert_allclose(got[name], found[0][name], rtol=1e-9)
    once = select_lambda(x, y, s, rule="independence", **options).choice.table
    np.testing.assert_allclose(once["performance"], found[0]["performance"])


@pytest.mark.parametrize(
    ("rows", "options", "sizes"),
    [
        (1000, {}, [300, 300, 300]),
        (5000, {}, [1500, 1500]),
        (10_000, {}, [2000]),
        (100_000, {}, [15_000]),
        (1000, {"validation_fraction": 0.4}, [400, 400]),
        (1000, {"validation_fraction": 0.6}, [600]),
        (1000, {"rule": "independence"}, [300]),
        (1000, {"rule": "guarantee"}, [300]),
    ],
)
def test_how_much_is_held_out(rows: int, options: dict, sizes: list[int]) -> None:
    parts = LambdaSelection(**options).held_out(rows, random_state=0)
    assert [len(part) for part in parts] == sizes
    assert len(torch.cat(parts).unique()) == sum(sizes)


def test_the_table_against_each_statistic_by_itself() -> None:
    x, y, s = toy()
    stack = Trainer(x, y, s, lam=[0.0, 3.0], **OPTIONS).fit()
    x, y, s = toy(200, seed=1)
    got = validation_table(stack, x, y, s, n_permutations=99, random_state=5)
    same = torch.Generator().manual_seed(5)
    test = hsic_test(stack.encode(x), s, method="permutation", n_permutations=99, random_state=same)
    for i in range(2):
        z, logits = stack.encode(x)[i], stack.output(x)[i]
        row = got.iloc[i]
        assert row["performance"] == pytest.approx(np.mean((logits.numpy() > 0) == y.numpy()))
        assert row["hsic"] == pytest.approx(float(hsic(z, s)), rel=1e-9)
        assert row["statistic"] == pytest.approx(200 * row["hsic"])
        assert row["normalized_hsic"] == pytest.approx(float(normalized_hsic(z, s)), rel=1e-9)
        assert row["gdp"] == pytest.approx(gdp(torch.sigmoid(logits), s).item(), rel=1e-9)
        assert (row["pvalue"] <= 0.05) == (row["statistic"] > row["threshold"])
    right = ((stack.output(x) > 0) == (y > 0.5)).double().numpy()
    assert got["standard_error"][0] == 0.0
    assert got["standard_error"][1] == pytest.approx(scipy.stats.sem(right[1] - right[0]))
    np.testing.assert_allclose(got["threshold"], test.threshold, rtol=1e-9)
    np.testing.assert_array_equal(got["pvalue"], test.pvalue)
    weights = torch.arange(200.0)
    weighted = validation_table(stack, x, y, s, n_permutations=9, sample_weight=weights)
    right = ((stack.output(x)[0] > 0) == (y > 0.5)).numpy()
    assert weighted["performance"][0] == pytest.approx(np.average(right, weights=weights.numpy()))


def test_weights_count_in_the_choice() -> None:
    """Weights reach the training of the grid and the performance, and a weight of two is a row twice."""
    x, y, s = toy()
    weights = torch.linspace(0.0, 2.0, 400, dtype=torch.float64)
    options = OPTIONS | {"lams": [0.0, 1.0], "random_state": 3, "n_permutations": 9, "validation_fraction": 0.6}
    path = select_lambda(x, y, s, sample_weight=weights, **options)
    held = path.validation_rows
    train = np.setdiff1d(np.arange(400), held)
    alone = Trainer(
        x[train], y[train], s[train], sample_weight=weights[train], lam=[0.0, 1.0], seeds=3, **OPTIONS
    ).fit()
    torch.testing.assert_close(path.stack.output(x), alone.output(x))
    right = ((alone.output(x[held]) > 0) == (y[held] > 0.5)).numpy()
    expected = np.average(right, axis=1, weights=weights[held].numpy())
    np.testing.assert_allclose(path.choice.table["performance"], expected, rtol=1e-12)
    assert (np.abs(expected - right.mean(1)) > 1e-3).all()


def test_weights_in_r2_and_its_standard_error() -> None:
    """R² of repeated rows; the standard error of a weighted mean with n_eff = 1/Σw² samples."""
    x, _, s = toy()
    target = x[:, 1]
    stack = Trainer(x, target, s, task="regression", lam=[0.0, 3.0], **OPTIONS).fit()
    weights = torch.ones(400, dtype=torch.float64)
    weights[:100], weights[300:] = 2.0, 0.0
    rows = torch.cat([torch.arange(100), torch.arange(300)])
    got = validation_table(stack, x, target, s, sample_weight=weights, n_permutations=9)
    repeated = validation_table(stack, x[rows], target[rows], s[rows], n_permutations=9)
    np.testing.assert_allclose(got["performance"], repeated["performance"], rtol=1e-12)
    share = (weights / weights.sum()).numpy()
    error = ((stack.output(x) - target) ** 2).numpy()
    change = (error[1] - error[0]) / np.average((target - np.average(target, weights=share)) ** 2, weights=share)
    change -= np.average(change, weights=share)
    count = 1 / (share**2).sum()
    expected = np.sqrt((share**2 * change**2).sum() * count / (count - 1))
    assert got["standard_error"][1] == pytest.approx(expected)


def test_the_choice_judges_the_rows_of_the_condition() -> None:
    """With a penalty on the positives the validation table measures the dependence among the positives."""
    x, y, s = toy()
    penalty = make_penalty("frhsic", condition="positives")
    path = select_lambda(x, y, s, penalty=penalty, lams=[1.0], n_permutations=9, validation_fraction=0.6, **OPTIONS)
    held = path.validation_rows[(y[path.validation_rows] > 0.5).numpy()]
    expected = hsic(path.stack.encode(x[held])[0], s[held])
    np.testing.assert_allclose(path.choice.table["hsic"], expected.item(), rtol=1e-9)


def test_the_order_of_the_stack_does_not_matter() -> None:
    """Standard errors are those of the difference from the smallest λ, wherever it is in the stack."""
    x, y, s = toy()
    longer = OPTIONS | {"epochs": 25, "learning_rate": 1e-2}
    up, down = (Trainer(x, y, s, lam=lams, **longer).fit() for lams in ([0.0, 30.0], [30.0, 0.0]))
    first, second = (validation_table(stack, x, y, s, n_permutations=9) for stack in (up, down))
    assert first["standard_error"][1] > 0
    np.testing.assert_allclose(first["standard_error"], second["standard_error"][::-1])


def test_the_test_uses_at_most_max_rows() -> None:
    """HSIC and its test use evenly spaced rows; GDP and the performance use all."""
    x, y, s = toy()
    stack = Trainer(x, y, s, lam=[0.0], **OPTIONS).fit()
    table, whole = (validation_table(stack, x, y, s, n_permutations=9, max_rows=rows) for rows in (50, 1000))
    rows = np.linspace(0, 399, 50).round().astype(int)
    assert table["hsic"][0] == pytest.approx(float(hsic(stack.encode(x)[0][rows], s[rows])), rel=1e-9)
    assert table["statistic"][0] == pytest.approx(50 * table["hsic"][0])
    assert (table["gdp"][0], table["performance"][0]) == (whole["gdp"][0], whole["performance"][0])


def test_the_gap_is_that_of_the_worst_attribute() -> None:
    x, y, s = toy()
    both = torch.cat([s, torch.rand(400, 1, generator=torch.Generator().manual_seed(1), dtype=torch.float64)], dim=1)
    stack = Trainer(x, y, both, lam=[0.0], **OPTIONS | {"epochs": 20}).fit()
    gaps = [gdp(stack.probabilities(x)[0], both[:, a]).item() for a in range(2)]
    assert gaps[0] > 1.5 * gaps[1]
    assert validation_table(stack, x, y, both, n_permutations=9)["gdp"][0] == pytest.approx(gaps[0])


def test_regression_reports_r2_and_equal_opportunity_counts_positives_only() -> None:
    x, y, s = toy()
    target = x[:, 1]
    stack = Trainer(x, target, s, task="regression", lam=[0.0], **OPTIONS).fit()
    prediction = stack.output(x)[0].numpy()
    expected = 1 - np.mean((prediction - target.numpy()) ** 2) / target.numpy().var()
    got = validation_table(stack, x, target, s, n_permutations=9)
    assert got["performance"][0] == pytest.approx(expected)
    pair = Trainer(x, target, s, task="regression", lam=[0.0, 3.0], **OPTIONS).fit()
    gain = (pair.output(x)[0] - target).square() - (pair.output(x)[1] - target).square()
    got = validation_table(pair, x, target, s, n_permutations=9)
    assert got["standard_error"][1] == pytest.approx(scipy.stats.sem(gain.numpy()) / target.numpy().var())

    penalty = make_penalty("frhsic", condition="positives")
    stack = Trainer(x, y, s, penalty=penalty, lam=[1.0], **{**OPTIONS, "batch_size": 100}).fit()
    got = validation_table(stack, x, y, s, condition="positives", n_permutations=9)
    kept = y > 0.5
    assert got["hsic"][0] == pytest.approx(float(hsic(stack.encode(x)[0][kept], s[kept])), rel=1e-9)
    few = torch.zeros_like(y)
    few[:5] = 1
    with pytest.raises(ValueError, match="5 rows that count"):
        validation_table(stack, x, few, s, condition="positives")


def test_the_calibrated_test_accepts_a_representation_that_knows_nothing() -> None:
    """60 independent stacks of one: the rejection rate at 5 % is consistent with 5 % (binomial, far tail)."""
    x, y, s = toy(120)
    stack = Trainer(x, y, s, lam=[0.0] * 60, seeds=list(range(60)), **{**OPTIONS, "epochs": 1}).fit()
    generator = torch.Generator().manual_seed(4)
    noise = torch.rand(120, 1, generator=generator, dtype=torch.float64)
    rejected = (validation_table(stack, x[:, :], y, noise, n_permutations=39)["pvalue"] <= 0.05).sum()
    assert rejected <= 30  # the 60 share one sample of S, so the count is not binomial: half is the far tail
