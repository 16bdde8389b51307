"""The drawn ideas show the numbers that they stand for."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest

from frhsic_core import hsic
from frhsic_core.kernels import Categorical, Gaussian
from frhsic_core.paper.figures.diagrams import draw_gram_matrices, draw_two_orders


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def test_the_two_arrows_end_at_the_two_orders() -> None:
    """A table with three columns whose two orders differ: the row means are .1, .2, −.1, the columns' largest .5."""
    rows = {"a": (0.5, -0.5, 0.3), "b": (0.1, 0.5, 0.0), "c": (-0.4, -0.4, 0.5)}
    axis, other = draw_two_orders({"one": rows, "two": dict(list(rows.items())[:2])}, columns=("x", "y", "z")).axes
    shown = {text.get_text(): text for text in axis.texts if text.get_size() > 12}
    assert set(shown) == {"+0.20", "+0.50"}
    assert shown["+0.20"].get_position()[1] < shown["+0.50"].get_position()[1]  # down, and to the right
    assert {text.get_text() for text in other.texts if text.get_size() > 12} == {"+0.20", "+0.43"}
    framed = [patch for patch in axis.patches if patch.get_linewidth() > 1.5]
    assert len(framed) == 3  # one largest entry in each column
    assert [text.get_text() for text in axis.texts if text.get_text() == "−0.40"] == ["−0.40"] * 2


def test_small_matrices_print_their_entries_and_hsic_is_the_mean_of_the_last() -> None:
    z, s = np.array([1.0, 1.0, 0.0, 1.0]), np.array([0.0, 0.0, 1.0, 1.0])
    axes = draw_gram_matrices(z, s).axes
    assert len(axes) == 3
    printed = [[float(text.get_text().replace("−", "-")) for text in axis.texts] for axis in axes]
    assert np.mean(printed[2]) == pytest.approx(hsic(z, s, kernel_z=Categorical(), kernel_s=Categorical()))
    assert np.multiply(printed[0], printed[1]) == pytest.approx(printed[2])
    assert axes[2].get_title().endswith("mean 0.0625")


def test_many_people_are_sorted_by_s_and_drawn_beside_the_matrices() -> None:
    rng = np.random.default_rng(0)
    s = rng.normal(size=30)
    z = s**2
    axes = draw_gram_matrices(z, s, sigma_z=0.5, sigma_s=0.7).axes
    assert len(axes) == 4
    points = axes[0].collections[0].get_offsets()
    assert (np.diff(points[:, 0]) >= 0).all()
    wanted = hsic(z, s, kernel_z=Gaussian(0.5), kernel_s=Gaussian(0.7))
    assert axes[3].get_title().endswith(f"mean {wanted:.4f}")
    assert axes[3].images[0].get_array().mean() == pytest.approx(wanted, rel=1e-9)
