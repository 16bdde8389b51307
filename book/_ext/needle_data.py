"""The scores, points and gauges of the running example that the picture on the first page draws."""

from __future__ import annotations

from functools import cache
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd

from frhsic_core.paper.experiments.running_example import PENALTIES, clouds, gauges
from frhsic_core.paper.figures.strip import smoothed_mean
from frhsic_core.paper.stored import stored_rows

PEOPLE = 300  # enough to see a shape, few enough for a phone
STILL = 3  # the λ of the picture without JavaScript: HSIC has fallen, and the probe predicts the age best
GRID = np.arange(20.0, 71.0)  # ages at which the curve of the mean score is drawn
GAUGES = {
    "normalized_hsic": "normalized HSIC",
    "nonlinear_r2": "R² of a probe for age",
    "accuracy": "accuracy",
}


@cache
def needle_data() -> dict[str, Any]:
    """Return the people's ages and colors, and a frame for every form of the penalty and every λ."""
    rows = stored_rows("running_example")
    measured = gauges(rows)
    points = clouds(rows, people=PEOPLE)
    ages = _of_model(rows, "paper", 0.0)["age"].head(PEOPLE)
    viridis = mpl.colormaps["viridis"]
    forms: dict[str, list[dict[str, Any]]] = {}
    for form, (_, lams) in PENALTIES.items():
        forms[form] = []
        for lam in lams:
            frame = _frame(_of_model(rows, form, lam), points[form, lam])
            numbers = measured.loc[form, lam][list(GAUGES)].round(3)
            forms[form].append({"lam": lam, **frame, **numbers.to_dict()})
    return {
        "forms": forms,
        "ages": ages.round(1).tolist(),
        "colors": [mpl.colors.to_hex(viridis((age - 20) / 50)) for age in ages],
        "grid": GRID.tolist(),
    }


def _of_model(rows: pd.DataFrame, form: str, lam: float) -> pd.DataFrame:
    """Return the people as one model scores and places them."""
    return rows[(rows["form"] == form) & (rows["lam"] == lam)].sort_values("person")


def _frame(model: pd.DataFrame, views: dict[str, np.ndarray]) -> dict[str, Any]:
    """Return what the picture draws of one model.

    Scores and stretched points are in hundredths. ``squeeze`` has the entries (1, 1), (1, 2) and
    (2, 2) of the symmetric matrix that gives the stretched points their true proportions again,
    with the largest spread one. The curve and the mean are those of all people, of whom the picture
    shows some.
    """
    curve = smoothed_mean(model["age"].to_numpy(), model["score"].to_numpy(), GRID)
    stretched = views["stretched"]
    return {
        "scores": (100 * model["score"].head(PEOPLE)).round().astype(int).tolist(),
        "curve": curve.round(3).tolist(),
        "mean": round(float(model["score"].mean()), 3),
        "points": (100 * stretched).round().astype(int).tolist(),
        "squeeze": _squeeze(stretched, views["as it is"]),
    }


def _squeeze(stretched: np.ndarray, own: np.ndarray) -> list[float]:
    change, *_ = np.linalg.lstsq(stretched, own, rcond=None)  # a squeeze and then a rotation
    axes, spread, _ = np.linalg.svd(change)
    squeeze = (axes * spread) @ axes.T
    return [float(round(squeeze[i, j], 3)) for i, j in ((0, 0), (0, 1), (1, 1))]


def static_picture() -> str:
    """Return three stretched clouds as SVG, for readers without JavaScript and for print."""
    data = needle_data()
    paper, whitened = data["forms"]["paper"], data["forms"]["recommended"]
    shown = {"No penalty": paper[0], "Paper": paper[STILL], "Whitened": whitened[STILL]}
    pictures = [_still(name, frame, data["colors"]) for name, frame in shown.items()]
    return f'<div class="still">{"".join(pictures)}</div>'


def _still(name: str, frame: dict[str, Any], colors: list[str]) -> str:
    """Return one stretched cloud with its numbers."""
    dots = ""
    for (x, y), fill in zip(frame["points"], colors, strict=True):
        if abs(x) < 320 and abs(y) < 320:
            place = f'cx="{120 + 0.36 * x:.0f}" cy="{130 - 0.36 * y:.0f}"'
            dots += f'<circle {place} r="2.4" fill="{fill}"/>'
    words = (
        f"{name}, λ = {frame['lam']:g}: accuracy {frame['accuracy']:.2f}",
        f"normalized HSIC {frame['normalized_hsic']:.2f}, R² of age {frame['nonlinear_r2']:.2f}",
    )
    style = 'x="120" text-anchor="middle" font-size="16" fill="currentColor"'
    lines = ""
    for i, text in enumerate(words):
        lines += f'<text y="{264 + 20 * i}" {style}>{text}</text>'
    label = "Held-out people in a two-dimensional representation, colored by age; " + "; ".join(
        words
    )
    return f'<svg role="img" aria-label="{label}" viewBox="0 0 240 292">{dots}{lines}</svg>'
