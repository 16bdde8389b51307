"""Figures show what they are given, with the names that readers know, and drawn ideas the numbers they stand for."""

from __future__ import annotations

import matplotlib
import matplotlib.pyplot
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from frhsic_core import hsic
from frhsic_core.kernels import Categorical, Gaussian
from frhsic_core.paper.figures import plots
from frhsic_core.paper.figures.diagrams import draw_gram_matrices, draw_two_orders

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def _close():
    yield
    matplotlib.pyplot.close("all")


def verdicts() -> pd.DataFrame:
    """One family of four comparisons; the rivals have a low-dimensional Z."""
    lines = [
        ("adult", "frem:narrow", 25, 0, "better"),
        ("adult", "reg_gdp:narrow", 6, 19, "not_significant"),
        ("acs_income", "frem:narrow", 13, 12, "not_significant"),
        ("acs_income", "reg_gdp:narrow", 0, 25, "worse"),
    ]
    return pd.DataFrame(lines, columns=["dataset", "rival", "wins", "losses", "verdict_corrected"])


def test_a_tile_has_the_color_of_its_verdict_and_the_splits_of_its_pair() -> None:
    figure = plots.draw_verdicts({"text": verdicts(), "code": verdicts()[::-1]}, title="Who wins")
    for axis in figure.axes:
        tiles = {
            (patch.get_x() + 0.5, patch.get_y() + 0.5): to_hex(patch.get_facecolor())
            for patch in axis.patches
        }
        shown = {text.get_position(): text.get_text() for text in axis.texts}
        colors = {word: to_hex(color) for word, color in plots.VERDICT_COLORS.items()}
        assert tiles[0, 0] == colors["better"]
        assert tiles[1, 1] == colors["worse"]
        assert tiles[0, 1] == tiles[1, 0] == colors["not_significant"]
        assert shown == {(0, 0): "25:0", (0, 1): "6:19", (1, 0): "13:12", (1, 1): "0:25"}
        assert [text.get_text() for text in axis.get_xticklabels()] == ["Adult", "ACS Income"]
        assert axis.get_title().endswith("1 better, 1 worse, 2 not significant")
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == ["FREM", "Reg-GDP"]


def test_letters_keep_their_size_on_the_page() -> None:
    """A figure wider than the column is shrunk with its letters; at 719 pixels nine points shall stay eleven pixels."""
    figure = plots.draw_verdicts({"text": verdicts()}, title="Who wins")
    points = 72 * figure.get_figwidth()
    sizes = [
        text.get_fontsize()
        for text in figure.findobj(matplotlib.text.Text)
        if text.get_text().strip()
    ]
    assert min(sizes) * 719 / points >= 10.5


def test_names_in_pictures_are_those_of_readers() -> None:
    """No stored key is shown: not of a method or an option."""
    shown = plots.draw_verdicts({"text": verdicts()}).findobj(matplotlib.text.Text)
    assert [
        text.get_text() for text in shown if "_" in text.get_text() or ":narrow" in text.get_text()
    ] == []


def test_the_two_arrows_end_at_the_two_orders() -> None:
    """A table with three columns whose two orders differ: the row means are .1, .2, −.1, the columns' largest .5."""
    rows = {"a": (0.5, -0.5, 0.3), "b": (0.1, 0.5, 0.0), "c": (-0.4, -0.4, 0.5)}
    axis, other = draw_two_orders(
        {"one": rows, "two": dict(list(rows.items())[:2])}, columns=("x", "y", "z")
    ).axes
    shown = {text.get_text(): text for text in axis.texts if text.get_size() > 12}
    assert set(shown) == {"+0.20", "+0.50"}
    assert (
        shown["+0.20"].get_position()[1] < shown["+0.50"].get_position()[1]
    )  # down, and to the right
    assert {text.get_text() for text in other.texts if text.get_size() > 12} == {"+0.20", "+0.43"}
    framed = [patch for patch in axis.patches if patch.get_linewidth() > 1.5]
    assert len(framed) == 3  # one largest entry in each column
    assert [text.get_text() for text in axis.texts if text.get_text() == "−0.40"] == ["−0.40"] * 2


def test_small_matrices_print_their_entries_and_hsic_is_the_mean_of_the_last() -> None:
    z, s = np.array([1.0, 1.0, 0.0, 1.0]), np.array([0.0, 0.0, 1.0, 1.0])
    axes = draw_gram_matrices(z, s).axes
    assert len(axes) == 3
    printed = [[float(text.get_text().replace("−", "-")) for text in axis.texts] for axis in axes]
    assert np.mean(printed[2]) == pytest.approx(
        hsic(z, s, kernel_z=Categorical(), kernel_s=Categorical())
    )
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
