"""Property-based search beside the batched one: samples chosen to be awkward, then shrunk when they break something."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from frhsic_core.kernels import Gaussian
from frhsic_core.paper.statements.khgr import STEPS as KHGR_STEPS
from frhsic_core.paper.statements.khgr import sandwich
from frhsic_core.paper.statements.parity_gap import STEPS, gap_spectrum

numbers = st.one_of(st.integers(-2, 2).map(float), st.floats(-10, 10, allow_nan=False, width=32))
bandwidths = st.floats(-3, 3).map(lambda exponent: 10.0**exponent)


@st.composite
def samples(draw) -> dict:
    n = draw(st.integers(2, 7))
    column = st.lists(numbers, min_size=n, max_size=n)
    z, s, coefficients = (torch.tensor(draw(column), dtype=torch.float64) for _ in range(3))
    return {
        "z": z.unsqueeze(-1),
        "s": s,
        "coefficients": coefficients + 1e-3,
        "kernel_z": Gaussian(draw(bandwidths)),
        "kernel_s": Gaussian(draw(bandwidths)),
    }


@given(samples())
def test_every_step_of_theorem_4_7(sample: dict) -> None:
    z, s = sample.pop("z"), sample.pop("s")
    for centered in (True, False):
        found = gap_spectrum(z, s, anchors=z, centered=centered, **sample)
        for name, step in STEPS.items():
            assert step(found).max() < 1e-12, name


@given(samples(), bandwidths, bandwidths)
def test_the_khgr_sandwich(sample: dict, ridge_z: float, ridge_s: float) -> None:
    del sample["coefficients"]
    found = sandwich(sample.pop("z"), sample.pop("s"), ridge=(ridge_z, ridge_s), **sample)
    for name, step in KHGR_STEPS.items():
        assert step(found).max() / max(1.0, found.ridges) < 1e-12, name
