"""Figures are drawn from stored rows without torch, and each has a text."""

from __future__ import annotations

import subprocess
import sys

import matplotlib
import matplotlib.pyplot
import numpy as np
import pandas as pd
import pytest

from frhsic_core.paper.experiments.main import pareto_table
from frhsic_core.paper.experiments.shared.paired import corrected_half_width
from frhsic_core.paper.figures import comparisons as plots_comparisons
from frhsic_core.paper.figures import plots
from frhsic_core.paper.runs.plan import Experiment
from frhsic_core.paper.runs.stored import reference_sweep
from frhsic_core.registry import DATASETS, MAIN_METHODS, PARETO_METHODS

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def _close():
    yield
    matplotlib.pyplot.close("all")


def test_frontiers_show_the_means_of_the_rows() -> None:
    rows = reference_sweep()
    figure = plots.draw_frontiers(rows)
    titles = [axis.get_title() for axis in figure.axes if axis.axison]
    assert titles == ["Adult", "ACS Income", "MEPS", "Crime", "COMPAS"]
    adult = figure.axes[0]
    line = next(c for c in adult.lines if c.get_label() == "FREM")
    expected = rows[(rows["dataset"] == "adult") & (rows["method"] == "frem")].sort_values("lam")
    np.testing.assert_allclose(np.asarray(line.get_xdata(orig=False), float), expected["gdp_reference"])
    np.testing.assert_allclose(np.asarray(line.get_ydata(orig=False), float), expected["performance"])
    crime = figure.axes[3]
    assert crime.yaxis_inverted()
    assert not adult.yaxis_inverted()
    with pytest.raises(ValueError, match="rows"):
        plots.draw_frontiers(rows.iloc[:0])


def test_areas_show_the_numbers_of_the_table() -> None:
    table = pareto_table(reference_sweep(), methods=MAIN_METHODS, unequal_grids=True, resamples=5)
    figure = plots.draw_areas({"ours": table, "paper": table.drop(columns=["naup_low", "naup_high"])})
    marks = {round(float(x), 4) for axis in figure.axes for line in axis.lines for x in line.get_xdata()}
    assert {round(value, 4) for value in table["naup"].dropna()} <= marks


def test_names_in_pictures_are_those_of_readers() -> None:
    """No stored key is shown: not of a method, a dataset or an option."""
    rows = reference_sweep().assign(option="")
    figure = plots.draw_frontiers(rows)
    shown = [text.get_text() for axis in figure.axes for text in axis.findobj(matplotlib.text.Text)]
    assert {"FRHSIC", "Reg-GDP", "MMD (binned)", "ACS Income"} <= set(shown)
    assert [text for text in shown if "_" in text] == []
    assert plots.style_of("frhsic:estimator unbiased").label == "FRHSIC, unbiased"
    assert plots.style_of("frhsic:where representation").label == "FRHSIC, no head term"
    assert plots.dataset_title("acs_income") == "ACS Income"


def test_letters_keep_their_size_on_the_page() -> None:
    """A figure wider than the column is shrunk with its letters; at 719 pixels nine points shall stay eleven pixels."""
    rows = reference_sweep()
    table = pareto_table(rows, methods=MAIN_METHODS, unequal_grids=True, resamples=1)
    unit = {"text": dict.fromkeys(DATASETS, 1.0)}
    drawn = [
        plots.draw_frontiers(rows), plots.draw_areas({"ours": table, "paper": table}),
        plots_comparisons.draw_forest({"text": verdicts()}, scale=unit, xlabel="GDP"),
        plots_comparisons.draw_counts({"text": {"GDP": verdicts()}}),
    ]  # fmt: skip
    for figure in drawn:
        points = 72 * figure.get_figwidth()
        sizes = [text.get_fontsize() for text in figure.findobj(matplotlib.text.Text) if text.get_text().strip()]
        assert min(sizes) * 719 / points >= 10.5


def verdicts() -> pd.DataFrame:
    """One family: decided by both tests, by one, by none."""
    lines = [
        ("adult", "frem", 0.2, "better", "better"),
        ("adult", "reg_gdp", -0.1, "worse", "not_significant"),
        ("acs_income", "frem", 0.05, "not_significant", "not_significant"),
        ("acs_income", "reg_gdp", -0.3, "worse", "worse"),
    ]
    table = pd.DataFrame(lines, columns=["dataset", "rival", "median", "verdict", "verdict_corrected"])
    return table.assign(mean=table["median"], sd=0.1, splits=25)


def test_a_forest_shows_scaled_means_and_what_is_significant() -> None:
    scale = {"text": {"adult": 0.5, "acs_income": 1.0}}
    figure = plots_comparisons.draw_forest({"text": verdicts()}, scale=scale, xlabel="GDP")
    assert [axis.get_title(loc="left") for axis in figure.axes] == ["text: Adult", "text: ACS Income"]
    marks = [[bar.lines[0] for bar in axis.containers] for axis in figure.axes]
    places = [[float(mark.get_xdata()[0]) for mark in part] for part in marks]
    assert places == [[0.4, -0.2], [0.05, -0.3]]
    full = [[mark.get_markerfacecolor() != "white" for mark in part] for part in marks]
    assert full == [[True, False], [False, True]]
    low, high = figure.axes[0].containers[0].lines[2][0].get_segments()[0][:, 0]
    assert (high - low) / 2 == pytest.approx(corrected_half_width(0.1, 25) / 0.5)


def test_bars_count_every_comparison_once() -> None:
    assert plots_comparisons.verdict_segments(verdicts()) == [1, 0, 1, 1, 1]
    figure = plots_comparisons.draw_counts({"text": {"GDP": verdicts()}})
    assert [patch.get_width() for patch in figure.axes[0].patches] == [1, 0, 1, 1, 1]
    with pytest.raises(ValueError, match="corrected test"):
        plots_comparisons.verdict_segments(verdicts().assign(verdict="not_significant"))


def test_a_frontier_ends_below_unfair_and_marks_what_leaves() -> None:
    """On Adult the authors' Reg-GDP collapses: its curve leaves the panel, and an arrow says so."""
    rows = reference_sweep()
    axis = plots.draw_frontiers(rows[rows["dataset"] == "adult"]).axes[0]
    unfair = rows[(rows["dataset"] == "adult") & (rows["method"] == "unfair")]["performance"].mean()
    level = [
        line.get_ydata()[0] for line in axis.lines if len(line.get_ydata()) == 2 and len(set(line.get_ydata())) == 1
    ]
    assert level == pytest.approx([unfair - 0.03])
    named = [text for text in axis.texts if text.get_text()]
    assert sorted(text.get_text() for text in named) == sorted(plots.style_of(m).label for m in PARETO_METHODS)
    arrows = [text for text in axis.texts if not text.get_text() and text.arrowprops["arrowstyle"] == "-|>"]
    assert 0 < len(arrows) < len(named)
    colored = [text.get_text() for text in named if text.get_fontweight() == "bold"]
    assert colored == ["FRHSIC"]


def test_levels_take_the_colors_of_the_registry_and_draw_other_datasets_gray() -> None:
    level = pd.Categorical(["low", "high"] * 2, categories=["low", "high"])
    table = pd.DataFrame({"dataset": ["compas"] * 2 + ["mine"] * 2, "level": level, "mean": 0.5, "sd": 0.1})
    figure = plots_comparisons.draw_levels({"scale": table}, ylabel="nAUP")
    drawn = {bars.get_label(): bars.lines[0].get_color() for bars in figure.axes[0].containers}
    assert drawn == {"COMPAS": DATASETS["compas"].color, "mine": "#777777"}


def test_no_line_leads_to_the_median_and_the_published_level_has_a_band() -> None:
    level = pd.Categorical(["1", "2", "median"], categories=["1", "2", "median"])
    table = pd.DataFrame({"dataset": "compas", "level": level, "mean": [0.1, 0.2, 0.3], "sd": 0.1})
    axis = plots_comparisons.draw_levels({"σ": table}, ylabel="nAUP", published={"σ": "2"}).axes[0]
    lines = [line for line in axis.lines if line.get_linestyle() == "-"]
    assert [list(line.get_ydata()) for line in lines] == [[0.1, 0.2]]
    (band,) = axis.patches
    assert band.get_x() < 1 < band.get_x() + band.get_width()


def test_changes_are_named_in_words_and_keep_the_order_of_the_first_panel() -> None:
    """Settings as one would say them; what needs no other words keeps its own."""
    index = pd.MultiIndex.from_tuples([("where", "representation"), ("batch", "64")])
    table = pd.DataFrame({"mean": [0.2, -0.1], "sd": [0.1, 0.05]}, index=index)
    figure = plots_comparisons.draw_changes({"GDP": table, "probe": table[::-1]}, xlabel="change")
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["no head term", "batch: 64"]
    for axis in figure.axes:
        assert list(axis.containers[0].lines[0].get_xdata()) == [0.2, -0.1]


def test_words_for_a_picture_hold_its_numbers() -> None:
    text = plots.frontier_alt_text(reference_sweep())
    assert "Adult: Unfair at (0.749, 0.849)" in text
    assert "λ = 0.01 to" in text


def test_figures_come_from_the_store_without_torch(tiny: Experiment, tiny_store, tmp_path) -> None:
    script = (
        "import sys, matplotlib; matplotlib.use('Agg')\n"
        "from frhsic_core.paper.runs.store import ResultStore\n"
        "from frhsic_core.paper.experiments.main import pareto_table\n"
        "from frhsic_core.cli import paper as commands\n"
        "from frhsic_core.paper.figures import plots\n"
        "rows = ResultStore(sys.argv[1], 'tiny').read()\n"
        "plots.draw_frontiers(rows).savefig(sys.argv[2] + '/frontiers.png')\n"
        "table = pareto_table(rows, methods=None, resamples=5)\n"
        "plots.draw_areas({'ours': table}).savefig(sys.argv[2] + '/areas.png')\n"
        "assert 'torch' not in sys.modules, 'torch was imported'\n"
    )
    command = [sys.executable, "-c", script, str(tiny_store.root), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "frontiers.png").stat().st_size > 5000
