"""Figures show what they are given, with the names that readers know."""

from __future__ import annotations

import matplotlib
import matplotlib.pyplot
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from frhsic_core.paper.figures import plots

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
        tiles = {(patch.get_x() + 0.5, patch.get_y() + 0.5): to_hex(patch.get_facecolor()) for patch in axis.patches}
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
    sizes = [text.get_fontsize() for text in figure.findobj(matplotlib.text.Text) if text.get_text().strip()]
    assert min(sizes) * 719 / points >= 10.5


def test_names_in_pictures_are_those_of_readers() -> None:
    """No stored key is shown: not of a method or an option."""
    shown = plots.draw_verdicts({"text": verdicts()}).findobj(matplotlib.text.Text)
    assert [text.get_text() for text in shown if "_" in text.get_text() or ":narrow" in text.get_text()] == []
