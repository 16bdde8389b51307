"""The points and gauges of the running example that the picture on the first page draws."""

from __future__ import annotations

from functools import cache
from typing import Any

import matplotlib as mpl
import numpy as np

from frhsic_core.paper.experiments.running_example import PENALTIES, clouds, gauges
from frhsic_core.paper.runs.stored import stored_rows

PEOPLE = 300  # enough to see a shape, few enough for a phone
OPENS_AT = (
    3  # the λ of the paper's penalty at which HSIC has fallen and the probe predicts the age best
)
GAUGES = {
    "normalized_hsic": "normalized HSIC",
    "nonlinear_r2": "R² of a probe for age",
    "accuracy": "accuracy",
}


@cache
def representation_data() -> dict[str, Any]:
    """Return colors by age, and for every form and λ the stretched points (in hundredths) and the gauges.

    ``squeeze`` has the entries (1, 1), (1, 2) and (2, 2) of the symmetric matrix that gives the stretched points their
    true scale again, with the largest spread one.
    """
    rows = stored_rows("running_example")
    measured = gauges(rows)
    points = clouds(rows, people=PEOPLE)
    ages = (
        rows[(rows["form"] == "paper") & (rows["lam"] == 0.0)]
        .sort_values("person")["age"]
        .head(PEOPLE)
    )
    color = mpl.colormaps["viridis"]
    forms = {}
    for form, (_, lams) in PENALTIES.items():
        forms[form] = [
            {
                "lam": lam,
                "points": (100 * points[form, lam]["stretched"]).round().astype(int).tolist(),
                "squeeze": _squeeze(points[form, lam]["stretched"], points[form, lam]["as it is"]),
                **measured.loc[(form, lam), list(GAUGES)].round(3).to_dict(),
            }
            for lam in lams
        ]
    colors = [mpl.colors.to_hex(color((age - 20) / 50)) for age in ages]
    scale = [mpl.colors.to_hex(color(i / 10)) for i in range(11)]
    return {"forms": forms, "colors": colors, "scale": scale, "gauges": GAUGES}


def _squeeze(stretched: np.ndarray, own: np.ndarray) -> list[float]:
    change, *_ = np.linalg.lstsq(stretched, own, rcond=None)  # a squeeze and then a rotation
    axes, spread, _ = np.linalg.svd(change)
    squeeze = (axes * spread) @ axes.T
    return [float(round(squeeze[i, j], 3)) for i, j in ((0, 0), (0, 1), (1, 1))]


def static_picture() -> str:
    """Return the three clouds as SVG, for readers without JavaScript and for print."""
    data = representation_data()
    paper, recommended = data["forms"]["paper"], data["forms"]["recommended"]
    shown = {"No penalty": paper[0], "Paper": paper[OPENS_AT], "Recommended": recommended[OPENS_AT]}
    parts = []
    for name, frame in shown.items():
        dots = "".join(
            f'<circle cx="{120 + 0.36 * x:.0f}" cy="{130 - 0.36 * y:.0f}" r="2.4" fill="{fill}"/>'
            for (x, y), fill in zip(frame["points"], data["colors"], strict=True)
            if abs(x) < 320 and abs(y) < 320
        )
        words = (
            f"{name}, λ = {frame['lam']:g}: accuracy {frame['accuracy']:.2f}",
            f"normalized HSIC {frame['normalized_hsic']:.2f}, R² of age {frame['nonlinear_r2']:.2f}",
        )
        place = 'x="120" text-anchor="middle" font-size="16" fill="currentColor"'
        lines = "".join(
            f'<text y="{264 + 20 * i}" {place}>{text}</text>' for i, text in enumerate(words)
        )
        label = f"Held-out people in a two-dimensional representation, colored by age; {'; '.join(words)}"
        parts.append(
            f'<svg role="img" aria-label="{label}" viewBox="0 0 240 292">{dots}{lines}</svg>'
        )
    return f'<div class="still">{"".join(parts)}</div>'
