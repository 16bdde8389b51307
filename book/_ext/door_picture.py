"""Draw the picture of the README and of the social card from the stored results of the running example.

Usage: ``python book/_ext/door_picture.py``. It writes ``book/_static/needle.png``. The file holds a hash of the numbers
that it shows, so that a test notices when the stored results have changed.
"""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from needle_data import STILL, needle_data
from PIL import Image
from PIL.PngImagePlugin import PngInfo

PICTURE = Path(__file__).resolve().parents[1] / "_static" / "needle.png"
TITLE = "The model never saw your age. Can you see it in the score?"
LESSON = "Each point is an invented person, colored by age. R² says how well a second model finds the age."
WIDTH, HEIGHT = 1200, 630  # what pages that show a link as a card expect
DOTS_PER_INCH = 100
COLORS = 64  # enough for dots and letters, at a third of the size
EDGE = 330  # hundredths of a standard deviation: a few people lie farther out


def shown() -> dict[str, dict[str, Any]]:
    """Return the three frames of the picture, by their titles."""
    forms = needle_data()["forms"]
    paper, whitened = forms["paper"], forms["recommended"]
    return {
        "No penalty": paper[0],
        "The paper's penalty": paper[STILL],
        "The whitened penalty": whitened[STILL],
    }


def digest() -> str:
    """Return a hash of everything that the picture shows."""
    content = [TITLE, LESSON, needle_data()["colors"], shown()]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def draw() -> None:
    """Write the picture."""
    figure, axes = plt.subplots(
        1, 3, figsize=(WIDTH / DOTS_PER_INCH, HEIGHT / DOTS_PER_INCH), dpi=DOTS_PER_INCH
    )
    figure.subplots_adjust(left=0.03, right=0.97, top=0.80, bottom=0.24, wspace=0.08)
    figure.suptitle(TITLE, fontsize=25, y=0.95)
    figure.text(0.5, 0.04, LESSON, fontsize=13, ha="center", color="#444444")
    for axis, (title, frame) in zip(axes, shown().items(), strict=True):
        points = np.array(frame["points"])
        axis.scatter(*points.T, s=16, c=needle_data()["colors"])
        axis.set(xlim=(-EDGE, EDGE), ylim=(-EDGE, EDGE), xticks=[], yticks=[])
        axis.set_title(f"{title}, λ = {frame['lam']:g}", fontsize=16)
        axis.spines[:].set_color("#cccccc")
        hsic, r2 = frame["normalized_hsic"], frame["nonlinear_r2"]
        axis.set_xlabel(f"normalized HSIC {hsic:.2f}\nR² of age {r2:.2f}", fontsize=16)
    drawn = io.BytesIO()
    figure.savefig(drawn)
    plt.close(figure)
    notes = PngInfo()
    notes.add_text("Description", digest())
    with Image.open(drawn) as image:
        image.convert("RGB").quantize(COLORS).save(PICTURE, optimize=True, pnginfo=notes)


if __name__ == "__main__":
    draw()
    print(PICTURE)
