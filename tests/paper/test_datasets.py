"""The variants of the paper's datasets: rows, columns and sensitive attribute of the text and of the released code.

Splits are compared with scikit-learn's scaler and the arithmetic of the released code.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import raw_formats as raw
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.preprocessing import MinMaxScaler

from frhsic_core.data import Dataset, Provenance, _crime, _meps, load_dataset
from frhsic_core.paper import datasets
from frhsic_core.paper.datasets import (
    REFERENCE_SEEDS,
    VARIANTS,
    load_variant,
    recipe_of,
    split_indices,
    stack_splits,
)
from frhsic_core.paper.experiments.cost import ATTRIBUTES
from frhsic_core.paper.summaries import live_summary, load_summary, summarize
from frhsic_core.registry import PAPER_DATASETS

SHAPES = {
    ("adult", "text"): (30_162, 103),
    ("adult", "reference"): (32_561, 107),
    ("acs_income", "text"): (20_000, 9),
    ("acs_income", "reference"): (20_000, 9),
    ("meps", "text"): (11_276, 18),
    ("meps", "reference"): (13_707, 16),
    ("crime", "text"): (1_994, 99),
    ("crime", "reference"): (1_994, 99),
    ("compas", "text"): (6_172, 16),
    ("compas", "reference"): (6_172, 16),
}


@pytest.mark.data
@pytest.mark.parametrize(("name", "variant"), list(SHAPES))
def test_the_real_data_are_what_the_recipes_promise(name: str, variant: str) -> None:
    source = "auto" if name not in ("acs_income", "meps") else "extract"
    data = load_variant(name, variant, download=False, source=source)
    assert (data.n, data.d) == SHAPES[name, variant]
    assert data.s.shape == (data.n,)
    assert data.sensitive_name not in data.feature_names
    assert data.provenance.steps[-1][1] == data.n
    assert len(data.provenance.files[0].sha256) == 64
    assert (data.weights is None) == (name in ("acs_income", "crime", "compas"))
    assert data.task == ("regression" if name == "crime" else "classification")


@pytest.mark.data
@pytest.mark.parametrize("name", ["adult", "acs_income", "meps", "crime", "compas"])
def test_the_text_is_what_a_user_loads(name: str) -> None:
    plain, text = load_dataset(name, download=False), load_variant(name, download=False)
    for part in ("X", "s", "y"):
        np.testing.assert_array_equal(getattr(plain, part), getattr(text, part))
    assert (plain.provenance.variant, text.provenance.variant) == ("", "text")


@pytest.mark.data
def test_the_reference_takes_crime_by_position_and_we_by_name() -> None:
    frame = pd.read_csv(
        Path(os.environ["FRHSIC_DATA"]) / "crime" / "communities.data", header=None, na_values="?"
    )
    np.testing.assert_array_equal(load_variant("crime", "reference", download=False).s, frame[6])
    np.testing.assert_array_equal(load_variant("crime", "text", download=False).s, frame[7])


@pytest.mark.data
def test_sensitive_columns_of_the_experiments_with_several_attributes() -> None:
    two = load_variant("adult", "reference", sensitive=("age", "hours-per-week"), download=False)
    assert two.s.shape == (32_561, 2)
    assert two.d == 106
    assert two.sensitive_name == "age + hours-per-week"
    text = load_variant("adult", sensitive=ATTRIBUTES, download=False)
    assert text.d == 100


def test_crime_variants_differ_in_the_sensitive_attribute_only(tmp_path: Path) -> None:
    path = raw.crime_file(tmp_path / "communities.data", raw.crime_table())
    text, reference = (
        datasets.sources_of("crime", variant)[0].read(path) for variant in datasets.VARIANTS
    )
    attributes = [datasets.recipe_of("crime", variant).sensitive for variant in datasets.VARIANTS]
    assert attributes == ["racepctblack", "householdsize"]
    pd.testing.assert_frame_equal(text.columns, reference.columns)
    # the position that the released code uses, and its neighbour
    assert _crime.COLUMNS[6] == "householdsize"
    assert _crime.COLUMNS[7] == "racepctblack"
    assert len(_crime.COLUMNS) == len(set(_crime.COLUMNS)) == 128


def test_meps_two_panels_uses_discharges_and_counts_codes_as_the_label_does(tmp_path: Path) -> None:
    frame = raw.meps_frame()
    table = datasets.read_two_panels(raw.gzipped_csv(tmp_path / "two.csv.gz", frame))
    wanted = frame[(frame[[*datasets.TWO_PANEL_FEATURES, _meps.SENSITIVE]] >= 0).all(axis=1)]
    np.testing.assert_array_equal(
        table.y, wanted[list(datasets.VISITS_IN_EXTRACT)].sum(axis=1) >= 10
    )
    assert table.columns.shape == (len(wanted), 17)


def test_meps_official_transport_file(tmp_path: Path) -> None:
    frame = raw.meps_frame()
    table = datasets.read_both_panels(raw.meps_zip(tmp_path / "h181ssp.zip", frame))
    features = datasets.REFERENCE_FEATURES
    wanted = frame[(frame[[*features, _meps.SENSITIVE]] >= 0).all(axis=1)]
    np.testing.assert_array_equal(
        table.columns.to_numpy(), wanted[[_meps.SENSITIVE, *features]].to_numpy()
    )
    np.testing.assert_array_equal(table.y, wanted[_meps.EXACT_LABEL])
    assert table.columns.shape[1] == 20


def test_a_wrong_variant_is_an_error() -> None:
    with pytest.raises(ValueError, match="variant is 'paper'"):
        load_variant("adult", "paper")


# Splits ---------------------------------------------------------------------------------------------------------------


def _data(n: int = 200, *, p: int = 1, weights: bool = False, seed: int = 0) -> Dataset:
    rng = np.random.RandomState(seed)
    x = np.column_stack(
        [rng.normal(1e6, 1e5, n), rng.randint(0, 3, n), rng.uniform(size=n), np.full(n, 3.0)]
    )
    s = rng.randint(17, 91, size=n) if p == 1 else rng.normal(size=(n, p))
    return Dataset(
        "toy", x, s, rng.randint(0, 2, n), "classification", tuple("abcd"), tuple(f"s{i}" for i in range(p)),
        Provenance("toy", "made"), weights=rng.uniform(size=n) if weights else None,
    )  # fmt: skip


def test_the_split_is_that_of_the_released_code() -> None:
    for repeat, seed in enumerate(REFERENCE_SEEDS):
        np.random.seed(42 + repeat)  # noqa: NPY002 - the very calls of the released code
        order = np.random.permutation(1994)  # noqa: NPY002
        split = split_indices(1994, random_state=seed)
        np.testing.assert_array_equal(split["train"], order[: int(0.8 * 1994)])
        np.testing.assert_array_equal(split["test"], order[int(0.8 * 1994) :])
        assert list(split) == ["train", "test"]
    order = np.random.RandomState(43).permutation(6172)
    three = split_indices(6172, random_state=43, fractions=(0.7, 0.15, 0.15))
    assert len(three["validation"]) == 925  # the rows of the paper's test of independence on COMPAS
    np.testing.assert_array_equal(np.concatenate(list(three.values())), order)


@given(
    st.integers(10, 500),
    st.integers(0, 2**32 - 1),
    st.sampled_from([(0.8, 0.2), (0.7, 0.15, 0.15), (0.5, 0.5)]),
)
def test_parts_are_disjoint_and_complete(n: int, seed: int, fractions: tuple[float, ...]) -> None:
    split = split_indices(n, random_state=seed, fractions=fractions)
    np.testing.assert_array_equal(np.sort(np.concatenate(list(split.values()))), np.arange(n))


@pytest.mark.parametrize("p", [1, 2])
def test_a_stack_equals_each_split_scaled_by_scikit_learn(p: int) -> None:
    data = _data(p=p)
    stack = stack_splits(data, seeds=(42, 7, 9), fractions=(0.6, 0.2, 0.2))
    assert stack.x_train.dtype == torch.float32
    assert len(stack) == 3
    for index, seed in enumerate((42, 7, 9)):
        split = split_indices(data.n, random_state=seed, fractions=(0.6, 0.2, 0.2))
        for key, array in (("x", data.X), ("s", data.s.reshape(data.n, -1))):
            scaler = MinMaxScaler().fit(array[split["train"]])
            for part, rows in split.items():
                wanted = scaler.transform(array[rows])
                got = getattr(stack, f"{key}_{part}")[index].reshape(wanted.shape)
                # Both scale in double precision; the stack is then rounded to float32, by at most half of 2^-23.
                np.testing.assert_allclose(got.numpy(), wanted, rtol=2**-23, atol=1e-9)
        np.testing.assert_array_equal(stack.y_train[index].numpy(), data.y[split["train"]])
    assert stack.s_train.shape == ((3, 120) if p == 1 else (3, 120, 2))


def test_scaling_never_sees_the_test_part() -> None:
    data = _data()
    rows = split_indices(data.n, random_state=42)["test"]
    x = data.X.copy()
    x[rows[0], 2] = 1e9
    changed = Dataset(
        "toy", x, data.s, data.y, "classification", data.feature_names, ("s",), data.provenance
    )
    before, after = stack_splits(data, seeds=(42,)), stack_splits(changed, seeds=(42,))
    assert torch.equal(before.x_train, after.x_train)
    assert float(after.x_test[0, 0, 2]) > 1e8


def test_a_constant_column_is_shifted_not_stretched() -> None:
    stack = stack_splits(_data())
    assert torch.equal(stack.x_train[..., 3], torch.zeros_like(stack.x_train[..., 3]))
    assert torch.isfinite(stack.x_test).all()


@pytest.mark.cuda
def test_a_stack_on_cuda_is_that_of_the_cpu() -> None:
    data = load_dataset("synthetic")
    cpu, cuda = stack_splits(data), stack_splits(data, device="cuda")
    assert cuda.x_train.is_cuda
    torch.testing.assert_close(cuda.x_train.cpu(), cpu.x_train, rtol=0, atol=1e-7)


# Summaries, which the book shows instead of the data ------------------------------------------------------------------


STORED = Path(__file__).parents[2] / "book" / "data_summaries"
CASES = [(name, variant) for name in PAPER_DATASETS for variant in VARIANTS]


def test_a_summary_against_plain_numpy() -> None:
    rng = np.random.RandomState(0)
    s = rng.randint(18, 60, size=500)
    x = np.column_stack([s + rng.normal(0, 5, 500), rng.normal(size=500), np.ones(500)])
    y = (rng.uniform(size=500) < s / 80).astype(float)
    summary = summarize(
        Dataset("toy", x, s, y, "classification", tuple("abc"), ("s",), Provenance("toy", "made"))
    )
    assert summary["correlation"] == pytest.approx(
        ((s - s.mean()) * (y - y.mean())).mean() / s.std() / y.std(), abs=1e-4
    )
    expected = {"min": 18, "max": 59, "mean": s.mean(), "sd": s.std(), "distinct": len(set(s))}
    assert summary["s"] == pytest.approx(expected, abs=1e-4)
    assert (summary["n"], summary["d"], summary["y"]["mean"]) == (500, 3, pytest.approx(y.mean()))


@pytest.mark.parametrize(("name", "variant"), CASES)
def test_every_summary_is_stored(name: str, variant: str) -> None:
    summary = load_summary(name, variant, folder=STORED)
    assert (summary["name"], summary["variant"]) == (name, variant)
    assert summary["sensitive"] == recipe_of(name, variant).sensitive


@pytest.mark.data
@pytest.mark.parametrize(("name", "variant"), CASES)
def test_stored_summaries_are_those_of_the_data(name: str, variant: str) -> None:
    live = live_summary(name, variant)
    assert live is not None
    stored = load_summary(name, variant, folder=STORED)
    for key in ("s", "y"):
        assert stored.pop(key) == pytest.approx(live.pop(key), abs=2e-4)
    assert stored.pop("correlation") == pytest.approx(live.pop("correlation"), abs=2e-4)
    assert stored == live
