"""The decision tree of the remedies: few leaves, the same content in the figure and in the text, and its evidence."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from frhsic_core.paper.experiments import every_method
from frhsic_core.paper.experiments.remedies import tree

FOUND = {leaf.method: 10.0 + place for place, leaf in enumerate(tree.leaves())}


def test_the_figure_and_the_text_have_the_same_content() -> None:
    figure = tree.draw(FOUND)
    drawn = [text.get_text().replace("\n", " ") for text in figure.axes[0].texts]
    plt.close(figure)
    written = tree.text(FOUND)
    assert len(tree.leaves()) <= 7
    assert len(drawn) == 5 + 10 + 2 * len(FOUND)  # questions, answers, and two lines for each remedy
    assert all(words in written for words in drawn)
    assert f"{FOUND['project']:.0f} % of" in written


def test_the_evidence_is_the_share_that_is_left() -> None:
    """By hand: a full adjustment loses too much quality, so half of the strength leaves 0.2 of 0.4."""
    lines = []
    for dataset in ("a", "b"):
        for split in range(3):
            lines.append((dataset, "ours", "none", 0.0, split, 0.80, 0.4))
            for leaf in tree.leaves():
                lines.append((dataset, "ours", leaf.method, 0.5, split, 0.79, 0.2))
                lines.append((dataset, "ours", leaf.method, 1.0, split, 0.70, 0.0))
            lines.append((dataset, "other", "project", 0.5, split, 0.80, 0.1))  # of another package: not counted
    rows = pd.DataFrame(lines, columns=["dataset", "group", "method", "strength", "split", "score", "dcor"])
    rows = rows.assign(task="classification", learner="linear", needs_s=False)
    rows = rows.assign(gdp=0.0, linear_r2=0.0, nonlinear_r2=0.0, cpu_seconds=0.0)
    study = pd.DataFrame(
        [(every_method.WHITENED, "a", 1.0, 0.1), ("unfair", "a", 0.0, 0.4), (every_method.WHITENED, "b", 1.0, 0.3),
         ("unfair", "b", 0.0, 0.4)], columns=["method", "dataset", "lam", "boosting_r2"],
    )  # fmt: skip
    study = study.assign(performance=0.8, gdp_sample=0.0, linear_r2=0.0, nonlinear_r2=0.0, cpu_seconds=1.0)
    found = tree.evidence(rows, study)
    assert found.pop("encoder") == pytest.approx(50)
    assert found == pytest.approx(dict.fromkeys(found, 50.0))
    assert len(found) == 5
