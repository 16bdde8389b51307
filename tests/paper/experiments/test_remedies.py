"""The decision tree of the remedies: few leaves, the same content in the figure and in the text, and its evidence."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from frhsic_core.paper.experiments import every_method
from frhsic_core.paper.experiments.remedies import draw_tree, evidence, leaves, tree_text

FOUND = {leaf.method: 10.0 + place for place, leaf in enumerate(leaves())}


def test_the_figure_and_the_text_have_the_same_content() -> None:
    figure = draw_tree(FOUND)
    drawn = [words for text in figure.axes[0].texts if (words := text.get_text().strip())]
    plt.close(figure)
    written = tree_text(FOUND)
    assert len(leaves()) <= 7
    assert len(drawn) == 5 + 10 + 2 * len(FOUND)  # questions, answers, and two lines for each remedy
    assert all(words in written for words in drawn)
    assert f"{FOUND['project']:.0f} % of" in written


def test_the_evidence_is_the_share_that_is_left() -> None:
    """By hand: a full adjustment loses too much quality, so half of the strength leaves 0.2 of 0.4."""
    lines = []
    for dataset in ("a", "b"):
        for split in range(3):
            lines.append((dataset, "ours", "none", "linear", 0.0, split, 0.80, 0.4))
            lines.append((dataset, "ours", "none", "boosting", 0.0, split, 0.79, 0.8))  # is not the best
            for leaf in leaves():
                lines.append((dataset, "ours", leaf.method, "linear", 0.5, split, 0.79, 0.2))
                lines.append((dataset, "ours", leaf.method, "linear", 1.0, split, 0.70, 0.0))
                lines.append((dataset, "ours", leaf.method, "boosting", 0.5, split, 0.79, 0.1))
            lines.append((dataset, "other", "project", "linear", 0.7, split, 0.80, 0.0))  # of another package
    columns = ["dataset", "group", "method", "learner", "strength", "split", "score", "dcor"]
    rows = pd.DataFrame(lines, columns=columns).assign(task="classification", needs_s=False)
    rows = rows.assign(gdp=0.0, linear_r2=0.0, nonlinear_r2=0.0, cpu_seconds=0.0)
    study = pd.DataFrame(
        [(every_method.WHITENED, "a", 1.0, 0.1), ("unfair", "a", 0.0, 0.4), (every_method.WHITENED, "b", 1.0, 0.3),
         ("unfair", "b", 0.0, 0.4)], columns=["method", "dataset", "lam", "boosting_r2"],
    )  # fmt: skip
    study = study.assign(performance=0.8, gdp_sample=0.0, linear_r2=0.0, nonlinear_r2=0.0, cpu_seconds=1.0)
    found = evidence(rows, study)
    linear = {leaf.method for leaf in leaves() if leaf.linear}
    assert linear == {"correlation_remover", "kernel_eraser"}
    assert found.pop("encoder") == pytest.approx(50)
    assert found == pytest.approx({method: 50.0 if method in linear else 25.0 for method in found})
    assert len(found) == 5
