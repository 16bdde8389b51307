"""What goes in: every accepted form gives the same tensor, every other one an error that says what to do."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
import torch

import frhsic_core as fc
from frhsic_core import Gaussian, Product, _arrays, gdp, hsic, hsic_test, median_bandwidth
from frhsic_core._arrays import (
    RowLabelWarning,
    as_pair,
    as_sample,
    as_seed,
    as_tensor,
    binary_scale,
    free_memory,
    require_memory,
    row_weights,
)
from frhsic_core.joint import conditional_hsic


@pytest.mark.parametrize(
    "x",
    [
        [[1, 2], [3, 4]],
        np.array([[1, 2], [3, 4]], dtype=np.int32),
        pd.DataFrame({"a": [1, 2], "b": [3, 4]}).T,
        torch.tensor([[1, 2], [3, 4]]),
    ],
    ids=["list", "int array", "frame", "int tensor"],
)
def test_everything_becomes_float64(x: object) -> None:
    assert torch.equal(as_tensor(x), torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64))


def test_bool_float32_and_series() -> None:
    assert as_tensor(np.array([True, False])).tolist() == [1.0, 0.0]
    assert as_tensor(torch.tensor([True])).dtype == torch.float64
    kept = torch.zeros(2, dtype=torch.float32, requires_grad=True)
    assert as_tensor(kept) is kept
    assert as_sample(pd.Series([1, 2, 3])).shape == (3, 1)


def test_a_seed_repeats_what_it_was_drawn_from() -> None:
    for make in (
        np.random.default_rng,
        np.random.RandomState,
        lambda seed: torch.Generator().manual_seed(seed),
    ):
        assert as_seed(make(3)) == as_seed(make(3)) != as_seed(make(4))


def test_numpy_in_gives_numpy_out_and_tensors_stay_tensors() -> None:
    z = np.random.default_rng(0).normal(size=(2, 20, 1))
    one, both, tensor = hsic(z[0], z[1]), hsic(z, z[1]), hsic(torch.as_tensor(z), z[1])
    assert type(one) is type(hsic_test(z[0], z[1]).pvalue) is float
    assert isinstance(both, np.ndarray)
    assert isinstance(tensor, torch.Tensor)
    assert both.tolist() == pytest.approx(tensor.tolist(), rel=1e-12)
    assert both[0] == pytest.approx(one, rel=1e-12)


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda: as_tensor(["a", "b"], name="s"), ValueError, "'s' has words, such as 'a', where numbers are needed"),
    (lambda: as_tensor(torch.zeros(2, dtype=torch.complex64), name="s"), TypeError, "s is complex"),
    (lambda: as_tensor(np.zeros(2, dtype=complex), name="s"), TypeError, "s is complex"),
    (lambda: as_seed(True), TypeError, "random_state is True"),
    (lambda: hsic([1.0, 2.0], pd.DataFrame({"a": ["x", None]})), ValueError, "1 missing values"),
    (lambda: hsic([1.0, 2.0], [1.0, 2.0], sample_weight=["a", "b"]), ValueError, "'sample_weight' has words"),
    (lambda: as_pair(np.zeros((4, 2)), np.zeros(3)), ValueError, r"s has 3 rows but z has 4: both need one row per sa"),
    (lambda: as_pair(np.zeros((3, 5, 2)), np.zeros((4, 5))), ValueError, "s has 4 rows but z has 5"),
    (lambda: as_pair(pd.Series([0.1, 0.9], index=[5, 3]), pd.Series([20.0])), ValueError, "s has 1 rows but z has 2"),
    (lambda: as_pair([1.0, math.nan], [1.0, 2.0]), ValueError, r"z has 1 NaN or infinite values: drop those rows fir"),
    (lambda: as_pair([1.0, 2.0], [math.inf, -math.inf]), ValueError, "s has 2 NaN or infinite"),
    (lambda: as_pair(np.zeros((0, 2)), np.zeros(0)), ValueError, r"z has 0 rows: at least 1 are needed\."),
    (lambda: as_pair(np.zeros(3), np.zeros(3), min_rows=4), ValueError, r"z has 3 rows: at least 4 are needed\."),
    (lambda: as_pair(np.zeros((3, 0)), np.zeros(3)), ValueError, "no columns"),
    (lambda: as_pair(1.0, [1.0]), ValueError, "single number"),
    (lambda: as_sample(1.0), ValueError, "single number"),
    (lambda: as_pair(np.zeros((2, 5, 1)), np.zeros((3, 5, 1))), ValueError, "dimensions must be equal or broadcast"),
    (lambda: row_weights(torch.zeros(3, 1), [2, 0, 1], None), ValueError, "values other than 0 and 1"),
    (lambda: row_weights(torch.zeros(3, 1), [True], None), ValueError, "one value for each of the 3 rows"),
    (lambda: row_weights(torch.zeros(3, 1), None, [-1, 1, 1]), ValueError, "negative"),
    (lambda: row_weights(torch.zeros(3, 1), None, [0, 0, 0]), ValueError, "sums to zero"),
    (lambda: row_weights(torch.zeros(3, 1), None, [1, 1]), ValueError, "one weight for each"),
    (lambda: row_weights(torch.zeros(3, 1), None, [1, math.nan, 1]), ValueError, "sample_weight has 1 NaN"),
    (lambda: Product([]), ValueError, "no factors"),
    (lambda: Product([Gaussian(1.0)] * 2)(torch.zeros(4, 3)), ValueError, "3 columns but Product has 2 factors"),
    (lambda: median_bandwidth([1.0, 2.0], max_points=1), ValueError, "at least 2"),
    (lambda: median_bandwidth([1.0, math.nan]), ValueError, "NaN"),
])  # fmt: skip
def test_errors_say_what_to_do(
    call: Callable[[], object], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        call()


def test_values_at_the_ends_of_the_range_are_refused() -> None:
    """Finite values whose sum overflows, or that are subnormal, have their own message; 1e30 and 1e-30 are ordinary."""
    for dtype in (torch.float32, torch.float64):
        limits = torch.finfo(dtype)
        for sign in (1, -1):
            with pytest.raises(ValueError, match="too large"):
                as_sample(torch.full((4,), sign * 0.9 * limits.max, dtype=dtype))
        with pytest.raises(ValueError, match="too small"):
            as_sample(torch.full((4,), 0.1 * limits.tiny, dtype=dtype))
        for ordinary in (limits.max / 1e8, limits.tiny * 1e8, 0.0):
            assert as_sample(torch.full((4,), ordinary, dtype=dtype)).shape == (4, 1)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_becomes_float32_and_keeps_its_gradient(dtype: torch.dtype) -> None:
    half = torch.tensor([1.0, 2.0], dtype=dtype, requires_grad=True)
    assert as_tensor(half).dtype == torch.float32
    assert {x.dtype for x in as_pair(half, half)} == {torch.float32}
    assert {x.dtype for x in as_pair(half, torch.zeros(2, dtype=torch.float64))} == {torch.float64}
    as_tensor(half).sum().backward()
    assert half.grad is not None
    assert half.grad.dtype == dtype


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_binary_scale_is_the_power_of_two_below_the_largest(dtype: torch.dtype) -> None:
    limits = torch.finfo(dtype)
    values = [1.0, 1.5, 2.0, 5.0, 0.3, limits.max, limits.tiny]
    for value in values:
        scale = binary_scale(torch.tensor([[0.1 * value], [-value]], dtype=dtype)).item()
        assert math.frexp(scale)[0] == 0.5
        assert scale <= torch.tensor(value, dtype=dtype).item() < 2 * scale
    assert binary_scale(torch.zeros(2, 3, dtype=dtype)).item() == 1.0
    columns = torch.tensor([[1.0, 8.0], [3.0, 0.0]], dtype=dtype)
    assert binary_scale(columns, dim=-2).tolist() == [[2.0, 8.0]]


def test_shapes_of_s() -> None:
    """Only a vector for each batch element lacks its last dimension."""
    z = np.zeros((3, 5, 2))
    assert as_pair(z, np.zeros((3, 5)))[1].shape == (3, 5, 1)
    assert as_pair(z, np.zeros((3, 5, 4)))[1].shape == (3, 5, 4)
    assert as_pair(z, np.zeros((5, 4)))[1].shape == (5, 4)
    assert as_pair(z, np.zeros(5))[1].shape == (5, 1)
    assert as_pair(np.zeros(5), np.zeros(5))[0].shape == (5, 1)


def test_one_dtype() -> None:
    """The wider dtype of the two: a partner in float32 takes no digits from the other column."""
    single = torch.zeros(4, 2)
    assert {x.dtype for x in as_pair(single, single[:, 0])} == {torch.float32}
    assert {x.dtype for x in as_pair(single, np.zeros(4))} == {torch.float64}
    assert {x.dtype for x in as_pair(np.zeros(4), single)} == {torch.float64}
    double = torch.zeros(4, dtype=torch.float64)
    assert (
        {x.dtype for x in as_pair(single, double)}
        == {x.dtype for x in as_pair(double, single[:, 0])}
        == {double.dtype}
    )


def test_masks_and_weights() -> None:
    z = torch.zeros(3, 1)
    assert row_weights(z, [1, 0, 1], [1, 1, 3]).tolist() == [0.25, 0.0, 0.75]
    assert row_weights(z, None, None) is None
    assert row_weights(z, [0, 0, 0], None, check_finite=False).tolist() == [0.0, 0.0, 0.0]
    assert row_weights(z, None, [1, 1, 2]).tolist() == [0.25, 0.25, 0.5]


# Rows that have labels -----------------------------------------------------------------------------------------------


def test_the_same_labels_in_another_order_are_refused() -> None:
    frame = pd.DataFrame({"p": [0.1, 0.9, 0.4], "age": [20.0, 70.0, 40.0]}, index=[5, 3, 8])
    sorted_age = frame["age"].sort_index()
    advice = r"same row labels in another order \(first rows: 5 and 3\).*s\.loc\[.*\.index\], or pass \.to_numpy\(\)"
    for statistic in (hsic, gdp):
        with pytest.raises(ValueError, match=advice):
            statistic(frame["p"], sorted_age)
        aligned = statistic(frame["p"], sorted_age.loc[frame.index])
        assert aligned == statistic(frame["p"].to_numpy(), frame["age"].to_numpy())
        statistic(frame["p"].to_numpy(), sorted_age)  # only one has labels: nothing to contradict
    with pytest.raises(ValueError, match="s and mask have the same row labels in another order"):
        gdp(frame["p"], frame["age"], mask=(sorted_age > 30))


def test_other_labels_are_reported_and_taken_by_position() -> None:
    p, age = pd.Series([0.1, 0.9, 0.4], index=[5, 3, 8]), pd.Series([20.0, 70.0, 40.0])
    with pytest.warns(
        RowLabelWarning, match=r"different row labels \(first rows: 5 and 0\).*by position"
    ) as caught:
        found = gdp(p, age)
    assert caught[0].filename == __file__  # the caller's line, not ours
    assert found == gdp(p.to_numpy(), age.to_numpy())
    with pytest.warns(
        RowLabelWarning, match=r"rows 1: 1 and 2"
    ):  # every label of the first is one of the second
        gdp(p.set_axis([1, 1, 2]), age.set_axis([1, 2, 3]))


def test_dates_are_numbers_and_a_missing_date_is_not() -> None:
    days = pd.Series(pd.to_datetime(["1990-01-01", "1990-01-03", None]))
    for values in (days, days.to_frame(), days - days[0]):
        read = as_tensor(values).flatten()
        assert read[2].isnan()
        assert read[1] > read[0]
        with pytest.raises(
            ValueError, match="s has 1 NaN or infinite values: drop those rows first"
        ):
            as_pair([1.0, 2.0, 3.0], values)


# A large sample is computed block by block, or refused with the number of rows that fit and advice --------------------


@pytest.fixture
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend that 1.6 MB are free: two matrices of 316 rows in float64."""
    monkeypatch.setattr(_arrays, "_SMALL", 0)
    monkeypatch.setattr(_arrays, "free_memory", lambda device: 1.6e6)


@pytest.mark.usefixtures("little")
def test_the_limit_is_the_number_of_rows_that_fit() -> None:
    like = torch.zeros(1, dtype=torch.float64)
    require_memory(like, 316, copies=2, advice="")
    with pytest.raises(
        MemoryError, match=r"317 rows need .* about 316 rows fit. Do this."
    ) as caught:
        require_memory(like, 317, copies=2, advice="Do this.")
    assert "0 GiB" in str(caught.value)
    require_memory(like.float(), 440, copies=2, advice="")
    with pytest.raises(MemoryError, match="about 158 rows fit"):
        require_memory(like, 200, copies=2, batch=4, advice="")
    with pytest.raises(MemoryError, match="about 10,000 rows fit"):
        require_memory(like, 20_000, width=10, copies=2, advice="")


def test_free_memory_is_known_here_and_small_calls_do_not_ask(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert 2**20 < free_memory(torch.device("cpu")) < 2**60  # bytes, not kilobytes
    monkeypatch.setattr(_arrays, "free_memory", lambda device: 2.0**29)
    small, like = 2**26, torch.zeros(1, dtype=torch.float64)
    assert [_arrays.fits_memory(like, n) for n in (small, small + 1)] == [True, False]
    assert [_arrays.fits_memory(like.float(), n) for n in (2 * small, 2 * small + 1)] == [
        True,
        False,
    ]


@pytest.mark.usefixtures("little")
@pytest.mark.parametrize(
    ("call", "advice"),
    [
        (lambda z, s: fc.khgr(z, s, ridge=0.1), "khgr needs whole matrices"),
        (fc.coco, "coco needs whole matrices"),
        (lambda z, s: conditional_hsic(z, s, s), "mini-batch"),
        (lambda z, s: conditional_hsic(z[:130].expand(2, 130, 2), s[:130], s[:130]), "mini-batch"),
        (fc.eipm, "anchors"),
        (lambda z, s: fc.median_bandwidth(z, max_points=None), "max_points"),
    ],
)
def test_what_does_not_fit_says_what_to_do(call, advice: str) -> None:
    z = torch.randn(600, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    with pytest.raises(MemoryError, match=f"rows fit.*{advice}"):
        call(z, z[:, 0])


def test_what_is_advised_fits_and_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the limits of a small machine the advised calls work, and equal the dense ones with their gradients."""
    z = torch.randn(
        200, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64, requires_grad=True
    )
    s = (z[:, 0] ** 2).detach()
    kernels = {"kernel_z": fc.Gaussian(1.0), "kernel_s": fc.Gaussian(0.5)}
    smoothing = {"kernel_z": fc.Gaussian(1.0), "bandwidth": 0.4}
    calls = {
        "hsic": lambda: fc.hsic(z, s, **kernels),
        "normalized_hsic": lambda: fc.normalized_hsic(z, s, **kernels),
        "distances": lambda: fc.hsic(z, s, kernel_z="distance", kernel_s="distance"),
        "distance_correlation": lambda: fc.distance_correlation(z, s),
        "distance_correlation, unbiased": lambda: fc.distance_correlation(
            z, s, squared=True, estimator="unbiased"
        ),
        "eipm": lambda: fc.eipm(z, s, anchors=8, **smoothing),
    }
    dense = {name: call() for name, call in calls.items()}
    for module in ("joint.engines.dense", "conditional._eipm"):
        monkeypatch.setattr(sys.modules[f"frhsic_core.{module}"], "DENSE_ROWS", 5)
    monkeypatch.setattr(sys.modules["frhsic_core.joint.engines.streamed"], "CHUNK", 64)
    monkeypatch.setattr(sys.modules["frhsic_core.conditional._eipm"], "_BLOCK", 64**2)
    monkeypatch.setattr(_arrays, "_SMALL", 0)
    monkeypatch.setattr(_arrays, "free_memory", lambda device: 200 * 10 * 8 * 6)
    for name, call in calls.items():
        value = call()
        torch.testing.assert_close(value, dense[name], rtol=1e-10, atol=1e-14, msg=name)
        gradients = [torch.autograd.grad(result, z)[0] for result in (value, dense[name])]
        torch.testing.assert_close(*gradients, rtol=1e-8, atol=1e-13, msg=name)
