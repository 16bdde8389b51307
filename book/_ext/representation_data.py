"""The points and gauges of the running example that the picture on the first page draws."""

from __future__ import annotations

from functools import cache
from typing import Any

import matplotlib as mpl

from frhsic_core.paper.experiments.running_example import PENALTIES, TITLES, clouds, gauges
from frhsic_core.paper.runs.stored import stored_rows
from frhsic_core.registry import labels

PEOPLE = 300  # enough to see a shape, few enough for a phone
GAUGES = {
    "accuracy": "accuracy of the prediction",
    "normalized_hsic": "normalized HSIC of Z and age",
    "gdp": "GDP: how far the score moves with age",
    **labels(("linear_r2", "nonlinear_r2")),
}


@cache
def representation_data() -> dict[str, Any]:
    """Return colors by age, and for every form and λ the points in two views (in hundredths) and the gauges."""
    rows = stored_rows("running_example")
    measured = gauges(rows)
    points = clouds(rows, people=PEOPLE)
    ages = rows[(rows["form"] == "paper") & (rows["lam"] == 0.0)].sort_values("person")["age"].head(PEOPLE)
    color = mpl.colormaps["viridis"]
    forms = {}
    for form, (_, lams) in PENALTIES.items():
        frames = [
            {
                "lam": lam,
                "views": {name: (100 * z).round().astype(int).tolist() for name, z in points[form, lam].items()},
                **measured.loc[(form, lam)].round(3).to_dict(),
            }
            for lam in lams
        ]
        forms[form] = {"title": TITLES[form], "frames": frames}
    colors = [mpl.colors.to_hex(color((age - 20) / 50)) for age in ages]
    scale = [mpl.colors.to_hex(color(i / 10)) for i in range(11)]
    return {"forms": forms, "colors": colors, "scale": scale, "gauges": GAUGES}


def static_picture() -> str:
    """Return three clouds of the paper's penalty as SVG, for readers without JavaScript and for print."""
    data = representation_data()
    frames = data["forms"]["paper"]["frames"]
    shown = (frames[0], frames[3], frames[5])
    parts = []
    for frame in shown:
        dots = "".join(
            f'<circle cx="{120 + 0.36 * x:.0f}" cy="{130 - 0.36 * y:.0f}" r="2.4" fill="{fill}"/>'
            for (x, y), fill in zip(frame["views"]["stretched"], data["colors"], strict=True)
            if abs(x) < 320 and abs(y) < 320
        )
        words = (
            f"λ = {frame['lam']:g}: accuracy {frame['accuracy']:.2f}",
            f"HSIC {frame['normalized_hsic']:.2f}, R² of age {frame['nonlinear_r2']:.2f}",
        )
        place = 'x="120" text-anchor="middle" font-size="16" fill="currentColor"'
        lines = "".join(f'<text y="{264 + 20 * i}" {place}>{text}</text>' for i, text in enumerate(words))
        label = f"Held-out people in a two-dimensional representation, colored by age; {'; '.join(words)}"
        parts.append(f'<svg role="img" aria-label="{label}" viewBox="0 0 240 292">{dots}{lines}</svg>')
    return f'<div class="still">{"".join(parts)}</div>'
