"""The decision tree of the remedies: questions, one remedy at each leaf, and one number of evidence for each remedy."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from frhsic_core.paper.experiments import every_method
from frhsic_core.paper.experiments.remedies.tables import DRAWN, chosen, means
from frhsic_core.registry import METHODS, OKABE_ITO

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Leaf:
    """A remedy: its key in the stored rows, what a user types, and whether its evidence is about linear models only."""

    method: str
    call: str
    linear: bool = False

    @property
    def color(self) -> str:
        """The color of the remedy in the other figures of the chapter, or that of FRHSIC for a trained encoder."""
        found = [OKABE_ITO[color] for methods, color, _ in DRAWN.values() if self.method in methods]
        return found[0] if found else METHODS["frhsic"].color


@dataclass(frozen=True)
class Question:
    """A question and its answers, each of which leads to another question or to a remedy."""

    text: str
    answers: dict[str, Question | Leaf]


ENCODER = "encoder"
TREE = Question(
    "What do you hand over?",
    {
        "scores of one model": Question(
            "May a score use the person's S?",
            {
                "yes": Question(
                    "What must not change with S?",
                    {
                        "all scores": Leaf("adjust_rank", 'Adjusted… method="rank"'),
                        "their mean": Leaf("adjust_mean", 'Adjusted… method="mean"'),
                    },
                ),
                "no": Leaf("project", 'Adjusted… method="project"'),
            },
        ),
        "data, for other models": Question(
            "Are all other models linear?",
            {
                "yes": Question(
                    "Will S be known for new people?",
                    {
                        "yes": Leaf("correlation_remover", "CorrelationRemover", linear=True),
                        "no": Leaf("kernel_eraser", "KernelEraser", linear=True),
                    },
                ),
                "no": Leaf(ENCODER, "FairEncoder"),
            },
        ),
    },
)


def leaves(node: Question | Leaf = TREE) -> list[Leaf]:
    """Return the remedies from top to bottom."""
    if isinstance(node, Leaf):
        return [node]
    return [leaf for answer in node.answers.values() for leaf in leaves(answer)]


def evidence(rows: pd.DataFrame, study: pd.DataFrame) -> dict[str, float]:
    """Return for each remedy how many percent of the dependence are left, the mean over datasets.

    A remedy is judged by the distance correlation on the four small tables (``rows`` of ``remedies``), at the setting
    that loses at most 0.03 of the quality and is chosen on the other splits. The trained encoder is judged by the
    boosting probe on the datasets of the paper (``study``, rows of ``every_method``), where it loses at most 1 %.
    """
    found = {}
    for leaf in leaves():
        if leaf.method == ENCODER:
            probe = every_method.strongest(study)["boosting_r2"]
            shares = list(probe.loc[every_method.WHITENED] / probe.loc["unfair"])
        else:
            own = rows[(rows["method"] == "none") | ((rows["method"] == leaf.method) & (rows["group"] == "ours"))]
            own = own[own["learner"] == "linear"] if leaf.linear else own
            shares = []
            for _, part in own.groupby("dataset"):
                plain = means(part[part["method"] == "none"])
                shares.append(chosen(part)["dcor"].mean() / plain.loc[plain["score"].idxmax(), "dcor"])
        found[leaf.method] = 100 * float(np.mean(shares))
    return found


def sentence(leaf: Leaf, found: dict[str, float]) -> str:
    """Return the evidence of a remedy in words."""
    what = "what boosting finds" if leaf.method == ENCODER else "the dependence"
    return f"{found[leaf.method]:.0f} % of {what} is left"


def text(found: dict[str, float], node: Question = TREE, *, indent: int = 0) -> str:
    """Return the tree as an indented list: the same content as the figure, for readers who cannot see it."""
    lines = [" " * indent + node.text]
    for answer, following in node.answers.items():
        start = f"{' ' * indent}- {answer}:"
        if isinstance(following, Leaf):
            lines.append(f"{start} {following.call}. {sentence(following, found)}.")
        else:
            lines += [start, text(found, following, indent=indent + 4)]
    return "\n".join(lines)


def draw(found: dict[str, float]) -> Figure:
    """Draw the tree from left to right, with a box for each question and a box in its color for each remedy."""
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(8.2, 4.3), layout="constrained")
    across = (0.0, 1.15, 2.35, 3.95)  # of the questions, and of the remedies at the right
    places = iter(range(len(leaves())))

    def add(node: Question | Leaf, depth: int) -> tuple[float, float]:
        """Draw a node and what follows from it; return where it is."""
        if isinstance(node, Leaf):
            x, y = across[-1], -float(next(places))
            for words, up, weight in ((node.call, "bottom", "bold"), (sentence(node, found), "top", "normal")):
                axis.text(x - 0.6, y, words, fontsize=8.5, weight=weight, va=up, linespacing=1.4)
            axis.plot([x - 0.66, x - 0.66], [y - 0.3, y + 0.3], color=node.color, linewidth=5, solid_capstyle="butt")
            return x - 0.66, y
        ends = [add(following, depth + 1) for following in node.answers.values()]
        x, y = across[depth], float(np.mean([end[1] for end in ends]))
        for answer, (right, height) in zip(node.answers, ends, strict=True):
            axis.plot([x, right], [y, height], color="0.6", linewidth=1.2, zorder=0)
            share = 0.62 / (right - x)  # the answer stands on its line, at the same distance from the question
            axis.text(x + 0.62, y + share * (height - y), textwrap.fill(answer, 10), fontsize=8.5, style="italic",
                      ha="center", va="center", bbox={"facecolor": "white", "edgecolor": "none", "pad": 1})  # fmt: skip
        axis.text(x, y, textwrap.fill(node.text, 14), fontsize=9, ha="center", va="center",
                  bbox={"boxstyle": "round,pad=0.4", "facecolor": "0.94", "edgecolor": "0.6"})  # fmt: skip
        return x, y

    add(TREE, 0)
    axis.set_xlim(-0.45, across[-1] + 0.75)
    axis.set_ylim(0.5 - len(leaves()), 0.5)
    axis.axis("off")
    return figure
