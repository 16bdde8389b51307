"""Splits against scikit-learn's scaler and the arithmetic of the released code."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.preprocessing import MinMaxScaler

from frhsic_core.data import Dataset, Provenance, load_dataset
from frhsic_core.paper.datasets import REFERENCE_SEEDS, split_indices, stack_splits


def _data(n: int = 200, *, p: int = 1, weights: bool = False, seed: int = 0) -> Dataset:
    rng = np.random.RandomState(seed)
    x = np.column_stack([rng.normal(1e6, 1e5, n), rng.randint(0, 3, n), rng.uniform(size=n), np.full(n, 3.0)])
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


@given(st.integers(10, 500), st.integers(0, 2**32 - 1), st.sampled_from([(0.8, 0.2), (0.7, 0.15, 0.15), (0.5, 0.5)]))
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
    changed = Dataset("toy", x, data.s, data.y, "classification", data.feature_names, ("s",), data.provenance)
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
