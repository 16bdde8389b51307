"""Choosing λ: the rules against hand-made tables, the table against brute force, the path against separate runs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from samples import classified
from sklearn.metrics import roc_auc_score

from frhsic_core import gdp, hsic, normalized_hsic
from frhsic_core.joint import hsic_test
from frhsic_core.learning import LambdaSelection, Trainer, TrainingData, make_penalty
from frhsic_core.learning.performance import judge_classes, judge_numbers
from frhsic_core.learning.rules import choose_lambda
from frhsic_core.learning.selection import select_lambda, validation_table

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


# Rules --------------------------------------------------------------------------------------------


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
    assert (
        choose_lambda(table(), rule="practical", epsilon=1e-9).lam == 10.0
    )  # then it is the paper's rule
    assert choice.table["chosen"].to_list() == [False, False, True, False]


def test_the_tradeoff_has_most_of_the_reduction_within_the_tolerance() -> None:
    """The relative dependences are 1, 0.65, 0.25 and 0.075."""
    assert choose_lambda(table()).lam == 1.0
    assert choose_lambda(table(), tolerance=0.001).lam == 0.1
    assert (
        choose_lambda(table(), tolerance=1.0).lam == 1.0
    )  # 0.75 of 0.925 is more than four fifths
    assert (
        choose_lambda(table(gdp=[0.1, 0.08, 0.05, 0.01]), tolerance=1.0).lam == 10.0
    )  # 0.7 of 0.925 is less
    assert choose_lambda(table(), tolerance=0.0).lam == 0.0
    # A plateau of the dependence is not worth a larger λ, and both measures count.
    flat = table(
        performance=[0.85] * 4, normalized_hsic=[0.2, 0.02, 0.02, 0.02], gdp=[0.1, 0.01, 0.01, 0.01]
    )
    assert choose_lambda(flat).lam == 0.1
    assert choose_lambda(flat.assign(gdp=[0.1, 0.1, 0.1, 0.01])).lam == 10.0
    assert (
        choose_lambda(flat.assign(gdp=0.0)).lam == 0.1
    )  # no gap at all: the other measure decides
    rising = flat.assign(normalized_hsic=[0.01, 0.02, 0.03, 0.03], gdp=[0.1, 0.1, 0.1, 0.01])
    assert (
        choose_lambda(rising).lam == 10.0
    )  # HSIC that rises from next to nothing does not hide that GDP falls


def test_the_tolerance_is_two_standard_errors_where_they_are_larger() -> None:
    """Two standard errors of the paired difference, each λ its own; never below one point."""
    steep = {"normalized_hsic": [0.2, 0.19, 0.18, 0.01], "gdp": [0.1, 0.095, 0.09, 0.01]}
    noisy = table(standard_error=[0.0, 0.01, 0.01, 0.0249], **steep)
    assert choose_lambda(noisy).lam == 1.0  # 0.05 lost
    assert choose_lambda(noisy.assign(standard_error=[0.0, 0.01, 0.01, 0.0251])).lam == 10.0
    assert (
        choose_lambda(noisy.assign(standard_error=0.0)).lam
        == choose_lambda(noisy, tolerance=0.01).lam
    )
    assert "within two standard errors (at least 0.01)" in choose_lambda(noisy).reason


def test_one_lucky_model_does_not_decide() -> None:
    lucky = table(performance=[0.85, 0.80, 0.855, 0.80])  # a collapse on either side of it
    assert choose_lambda(lucky, tolerance=0.01).lam == 0.0
    assert (
        choose_lambda(table().sample(frac=1, random_state=1)).lam == 1.0
    )  # the order of the rows is no matter


unit = st.floats(0.0, 1.0, allow_nan=False)


@given(
    st.lists(st.tuples(unit, unit, unit, unit, unit), min_size=1, max_size=8),
    st.tuples(unit, unit),
    st.sampled_from(["independence", "practical", "tradeoff"]),
)
def test_asking_for_more_never_gives_a_smaller_lambda(rows: list, levels: tuple, rule: str) -> None:
    columns = np.array(rows)
    data = pd.DataFrame(
        columns, columns=["performance", "hsic", "normalized_hsic", "gdp", "pvalue"]
    )
    data["lam"] = np.arange(len(rows), dtype=float)
    low, high = sorted(0.001 + 0.99 * np.array(levels))
    if rule == "independence":
        stricter, looser = {"alpha": high}, {"alpha": low}
    elif rule == "practical":
        stricter, looser = {"epsilon": low}, {"epsilon": high}
    else:
        stricter, looser = {"tolerance": high}, {"tolerance": low}
    assert (
        choose_lambda(data, rule=rule, **stricter).lam
        >= choose_lambda(data, rule=rule, **looser).lam
    )


def test_a_selection_is_checked_when_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a mistyped option is refused before anything is trained."""
    assert LambdaSelection(lams=[3, 0, 0.5]).lams == (0.0, 0.5, 3.0)
    assert LambdaSelection.of({"alpha": 0.1}, rule="independence") == LambdaSelection(
        alpha=0.1, rule="independence"
    )
    assert LambdaSelection.of(LambdaSelection(alpha=0.1), epsilon=0.5).alpha == 0.1
    assert LambdaSelection.of(None) == LambdaSelection()

    def never(*_: object, **__: object) -> None:
        raise AssertionError("training was begun")

    monkeypatch.setattr(Trainer, "__init__", never)
    for wrong, text in (
        ({"rule": "trade-off"}, "rule is 'trade-off'"),
        (
            {"validation_fraction": 1.5},
            r"'validation_fraction' parameter .* a str among {'auto'}. Got 1\.5",
        ),
        ({"alpha": 0.0}, r"'alpha' parameter .* \(0.0, 1.0\)"),
        ({"alpha": "auto"}, "'alpha' parameter"),
        ({"delta": 1.0}, r"'delta' parameter .* \(0.0, 1.0\)"),
        ({"tolerance": -1.0}, r"'tolerance' parameter .* \[0.0, inf\) or a str among {'auto'}"),
        ({"epsilon": 0.0}, r"'epsilon' parameter .* \(0.0, inf\)"),
        ({"lams": 2.0}, "lams is 2.0"),
        ({"lams": "auto"}, "lams is 'auto'"),
        ({"lams": [-1.0]}, "lams is"),
        ({"lams": [0.0, float("inf")]}, "lams is .*finite"),
        ({"n_permutations": 0}, "'n_permutations' parameter"),
        ({"max_rows": 2.5}, "'max_rows' parameter"),
    ):
        with pytest.raises(ValueError, match=text):
            select_lambda(*classified(0, 400, d=3), **wrong, **OPTIONS)
    with pytest.raises(ValueError, match=r"\['lambdas'\]"):
        LambdaSelection.of({"lambdas": [1.0]})


def test_options_may_come_as_one_object() -> None:
    x, y, s = classified(0, 400, d=3)
    selection = LambdaSelection(lams=[1.0, 0.0], n_permutations=19)
    one = select_lambda(x, y, s, selection=selection, random_state=3, **OPTIONS)
    other = select_lambda(x, y, s, lams=[1.0, 0.0], n_permutations=19, random_state=3, **OPTIONS)
    pd.testing.assert_frame_equal(one.choice.table, other.choice.table)
    with pytest.raises(ValueError, match="one dataset"):
        select_lambda(x.unsqueeze(0).repeat(2, 1, 1), y, s, **OPTIONS)
    with pytest.raises(ValueError, match="60 rows leave 18 for validation"):
        select_lambda(x[:60], y[:60], s[:60], **OPTIONS)


# The table and the path ---------------------------------------------------------------------------


def test_the_path_is_one_stack_and_sees_no_validation_row() -> None:
    x, y, s = classified(0, 400, d=3)
    path = select_lambda(x, y, s, lams=[1.0, 0.0], random_state=3, n_permutations=19, **OPTIONS)
    held = path.validation_rows
    assert len(held) == 120
    assert path.choice.table["lam"].to_list() == [0.0, 1.0]
    train = np.setdiff1d(np.arange(400), held)
    for i, lam in enumerate([0.0, 1.0]):
        alone = Trainer(
            x[train], y[train], s[train], penalty="frhsic", lam=lam, seeds=3, **OPTIONS
        ).fit()
        torch.testing.assert_close(path.stack.output(x)[i], alone.output(x)[0], rtol=0, atol=1e-9)
    # Whatever stands in the validation rows, the models are the same.
    other_y, other_x = y.clone(), x.clone()
    other_y[held], other_x[held] = 1 - y[held], 0.5
    again = select_lambda(
        other_x, other_y, s, lams=[1.0, 0.0], random_state=3, n_permutations=19, **OPTIONS
    )
    torch.testing.assert_close(again.stack.output(x), path.stack.output(x), rtol=0, atol=0)


def test_several_splits_are_averaged_over_disjoint_parts() -> None:
    """By hand: three paths, each the first split of the same order rotated."""
    x, y, s = classified(0, 400, d=3)
    training = OPTIONS | {"epochs": 20, "learning_rate": 1e-2}
    options = training | {
        "lams": [0.0, 10.0],
        "random_state": 3,
        "n_permutations": 19,
        "validation_fraction": 0.15,
    }
    got = select_lambda(x, y, s, **options).choice.table
    order = torch.randperm(400, generator=torch.Generator().manual_seed(3))
    found = []
    for part in range(3):
        held = order[60 * part : 60 * part + 60].sort().values
        train = torch.tensor(np.setdiff1d(np.arange(400), held))
        stack = Trainer(
            x[train], y[train], s[train], penalty="frhsic", lam=[0.0, 10.0], seeds=3, **training
        ).fit()
        found.append(
            validation_table(stack, x[held], y[held], s[held], n_permutations=19, random_state=3)
        )
    for name in ("performance", "normalized_hsic", "gdp"):
        np.testing.assert_allclose(
            got[name], np.mean([each[name] for each in found], axis=0), rtol=1e-6
        )
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


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_table_against_each_statistic_by_itself(task: str, weighted: bool) -> None:
    """Performance and its standard error are weighted means; HSIC, its test and GDP are those of the library."""
    x, y, s = classified(0, 400, d=3)
    classes = task == "classification"
    train = TrainingData.from_arrays(x, y if classes else x[:, 1], s, task=task)
    stack = Trainer(train, lam=[0.0, 3.0], **OPTIONS).fit()
    x, y, s = classified(1, 200, d=3)
    target = y if classes else x[:, 1]
    weights = np.arange(200.0) if weighted else np.ones(200)
    part = (x, target, s)
    if weighted:
        part = (
            TrainingData.from_arrays(*part, sample_weight=weights, task=task, dtype=torch.float64),
        )
    got = validation_table(stack, *part, n_permutations=99, random_state=5)

    output = stack.output(x)
    judge = judge_classes if classes else judge_numbers
    judged = judge(output.numpy(), target.numpy(), weights, first=0)
    np.testing.assert_array_equal(got["performance"], judged.performance)
    np.testing.assert_array_equal(got["standard_error"], judged.standard_error)

    same = torch.Generator().manual_seed(5)
    test = hsic_test(stack.encode(x), s, method="permutation", n_permutations=99, random_state=same)
    np.testing.assert_allclose(got["threshold"], test.threshold, rtol=1e-9)
    np.testing.assert_array_equal(got["pvalue"], test.pvalue)
    for i, row in got.iterrows():
        z = stack.encode(x)[i]
        assert row["hsic"] == pytest.approx(float(hsic(z, s)), rel=1e-9)
        assert row["statistic"] == pytest.approx(200 * row["hsic"])
        assert row["normalized_hsic"] == pytest.approx(float(normalized_hsic(z, s)), rel=1e-9)
        assert (row["pvalue"] <= 0.05) == (row["statistic"] > row["threshold"])
        predicted = torch.sigmoid(output[i]) if classes else output[i]
        assert row["gdp"] == pytest.approx(gdp(predicted, s).item(), rel=1e-9)


def test_weights_reach_the_training_of_the_grid() -> None:
    x, y, s = classified(0, 400, d=3)
    weights = torch.linspace(0.0, 2.0, 400, dtype=torch.float64)
    options = OPTIONS | {
        "lams": [0.0, 1.0],
        "random_state": 3,
        "n_permutations": 9,
        "validation_fraction": 0.6,
    }
    data = TrainingData.from_arrays(x, y, s, sample_weight=weights)
    path = select_lambda(data, **options)
    held = path.validation_rows
    train = np.setdiff1d(np.arange(400), held)
    alone = Trainer(data.part(torch.from_numpy(train)), lam=[0.0, 1.0], seeds=3, **OPTIONS).fit()
    torch.testing.assert_close(path.stack.output(x), alone.output(x))
    outputs = alone.output(x[held]).numpy()
    expected = [roc_auc_score(y[held], one, sample_weight=weights[held]) for one in outputs]
    np.testing.assert_allclose(path.choice.table["performance"], expected, rtol=1e-12)


def test_the_choice_judges_the_rows_of_the_condition() -> None:
    """With a penalty on the positives the validation table measures the dependence among the positives."""
    x, y, s = classified(0, 400, d=3)
    penalty = make_penalty("frhsic", condition="positives")
    path = select_lambda(
        x, y, s, penalty=penalty, lams=[1.0], n_permutations=9, validation_fraction=0.6, **OPTIONS
    )
    held = path.validation_rows[(y[path.validation_rows] > 0.5).numpy()]
    expected = hsic(path.stack.encode(x[held])[0], s[held])
    np.testing.assert_allclose(path.choice.table["hsic"], expected.item(), rtol=1e-9)
    few = torch.zeros_like(y)
    few[:5] = 1
    with pytest.raises(ValueError, match="5 rows that count"):
        validation_table(path.stack, x, few, s, condition="positives")


def test_the_order_of_the_stack_does_not_matter() -> None:
    """Standard errors are those of the difference from the smallest λ, wherever it is in the stack."""
    x, y, s = classified(0, 400, d=3)
    longer = OPTIONS | {"epochs": 25, "learning_rate": 1e-2}
    up, down = (Trainer(x, y, s, lam=lams, **longer).fit() for lams in ([0.0, 30.0], [30.0, 0.0]))
    first, second = (validation_table(stack, x, y, s, n_permutations=9) for stack in (up, down))
    assert first["standard_error"][1] > 0
    np.testing.assert_allclose(first["standard_error"], second["standard_error"][::-1])


def test_the_test_uses_at_most_max_rows() -> None:
    """HSIC and its test use evenly spaced rows; GDP and the performance use all."""
    x, y, s = classified(0, 400, d=3)
    stack = Trainer(x, y, s, lam=[0.0], **OPTIONS).fit()
    table, whole = (
        validation_table(stack, x, y, s, n_permutations=9, max_rows=rows) for rows in (50, 1000)
    )
    rows = np.linspace(0, 399, 50).round().astype(int)
    assert table["hsic"][0] == pytest.approx(
        float(hsic(stack.encode(x)[0][rows], s[rows])), rel=1e-9
    )
    assert table["statistic"][0] == pytest.approx(50 * table["hsic"][0])
    assert (table["gdp"][0], table["performance"][0]) == (whole["gdp"][0], whole["performance"][0])


def test_the_gap_is_that_of_the_worst_attribute() -> None:
    x, y, s = classified(0, 400, d=3)
    other = torch.rand(400, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    both = torch.stack([s, other], dim=1)
    stack = Trainer(x, y, both, lam=[0.0], **OPTIONS | {"epochs": 20}).fit()
    gaps = [gdp(stack.probabilities(x)[0], both[:, a]).item() for a in range(2)]
    assert gaps[0] > 1.5 * gaps[1]
    assert validation_table(stack, x, y, both, n_permutations=9)["gdp"][0] == pytest.approx(gaps[0])
