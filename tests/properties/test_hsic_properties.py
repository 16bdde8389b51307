"""Properties that hold for every sample, searched by hypothesis."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from frhsic_core import Gaussian, Laplacian, hsic, normalized_hsic

BANDWIDTHS = st.sampled_from([1e-3, 0.3, 1.0, 7.0, 1e3])
# Few distinct values make ties, the case that integer ages bring.
VALUES = st.one_of(st.integers(-3, 3).map(float), st.floats(-5, 5, allow_nan=False, width=32))


@st.composite
def samples(draw: st.DrawFn, min_rows: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    n = draw(st.integers(min_rows, 12))
    z = draw(arrays(np.float64, (n, draw(st.integers(1, 3))), elements=VALUES))
    s = draw(arrays(np.float64, (n, draw(st.integers(1, 2))), elements=VALUES))
    return torch.from_numpy(z), torch.from_numpy(s)


@given(samples(1), BANDWIDTHS, BANDWIDTHS)
def test_biased_is_not_negative_and_at_most_one(pair, a, b) -> None:
    value = hsic(*pair, kernel_z=Gaussian(a), kernel_s=Laplacian(b)).item()
    assert -1e-14 <= value <= 1.0


@given(samples(1))
def test_normalised_lies_in_the_unit_interval(pair) -> None:
    assert 0.0 <= normalized_hsic(*pair).item() <= 1.0
