"""Compare two drawings of one figure, so that another font renderer passes and another content fails.

nbval compares the texts of a notebook but not its images. A comparison of bytes would fail with every new version of
matplotlib or of its font renderer. Here a pixel of the page may have any color between those that occur in the other
drawing within a few pixels, which allows for moved letters and smoothed edges. Pixels without such a counterpart are
counted. The pixels are compared rather than the drawn data, because the stored notebooks contain only these.
"""

from __future__ import annotations

import base64
import io
from typing import NamedTuple

import numpy as np
from PIL import Image


class Tolerance(NamedTuple):
    """How far a detail may move, and how many pixels may differ: colored ones, and all.

    Lines, bars and points are colored. Texts and axes are gray, and their edges change with the renderer.
    """

    reach: int
    colored: int
    total: int


# Two drawings by one version of matplotlib, which contains its own fonts and renderer, differ by rounding alone.
SAME_VERSION = Tolerance(reach=2, colored=20, total=60)
OTHER_VERSION = Tolerance(reach=4, colored=150, total=500)
SLACK = 0.2  # of the range of a color channel
COLORED = 0.15  # difference between the channels of a pixel that is not gray
SIZE = 0.03  # share by which width and height may differ


def difference(stored: str, drawn: str) -> str:
    """Say how a figure differs from the stored one; return an empty text if both show the same.

    Parameters
    ----------
    stored, drawn : str
        PNG images in base64, as in a notebook.
    """
    if stored == drawn:
        return ""
    images = [Image.open(io.BytesIO(base64.b64decode(image))) for image in (stored, drawn)]
    versions = {image.info.get("Software") for image in images}
    allowed = OTHER_VERSION if len(versions) > 1 else SAME_VERSION
    first, second = (pixels(image) for image in images)
    height, width = first.shape[1:3]
    if any(
        abs(a - b) > max(4, SIZE * a)
        for a, b in zip((height, width), second.shape[1:3], strict=True)
    ):
        return f"it has {second.shape[2]} x {second.shape[1]} pixels instead of {width} x {height}"
    common = np.maximum(first.shape, second.shape)
    first, second = _padded(first, common), _padded(second, common)
    for one, other, what in ((first, second, "is missing"), (second, first, "is new")):
        alone = _without_counterpart(one, other, allowed.reach)
        colored = int((alone & (np.ptp(one[0], axis=-1) > COLORED)).sum())
        if colored > allowed.colored or alone.sum() > allowed.total:
            y, x = (int(place.mean()) for place in np.nonzero(alone))
            return f"something {what} around x = {x}, y = {y} ({int(alone.sum())} pixels, {colored} of them colored)"
    return ""


def pixels(image: Image.Image) -> np.ndarray:
    """Return an image on white as an array (3, height, width, 3) of colors in [0, 1].

    A figure is stored at twice its size, so that four pixels are one of the page: their mean, lowest and highest color.
    """
    white = Image.new("RGBA", image.size, "white")
    flat = np.asarray(Image.alpha_composite(white, image.convert("RGBA")).convert("RGB"))
    even = _padded(flat, flat.shape + np.array([flat.shape[0] % 2, flat.shape[1] % 2, 0]), 255)
    four = np.stack([even[y::2, x::2] for y in (0, 1) for x in (0, 1)])
    return np.stack([four.mean(0, dtype=np.float32), four.min(0), four.max(0)]) / np.float32(255)


def _padded(values: np.ndarray, shape: np.ndarray, white: float = 1.0) -> np.ndarray:
    return np.pad(
        values,
        [(0, int(a - b)) for a, b in zip(shape, values.shape, strict=True)],
        constant_values=white,
    )


def _without_counterpart(one: np.ndarray, other: np.ndarray, reach: int) -> np.ndarray:
    """Return which pixels of the page have a color in ``one`` that is outside the range of colors of ``other`` nearby.

    The range is that of the stored pixels: a thin line that lies on one or on two pixels of the page has the same. Most
    pixels have a counterpart at their own place, so only the others look around.
    """

    def outside(mean: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        return ((mean < low - SLACK) | (mean > high + SLACK)).any(-1)

    alone = outside(one[0], other[1], other[2])
    y, x = np.nonzero(alone)
    around = np.pad(other[1:], [(0, 0), (reach, reach), (reach, reach), (0, 0)], mode="edge")
    low, high = np.lib.stride_tricks.sliding_window_view(
        around, (2 * reach + 1, 2 * reach + 1), axis=(1, 2)
    )
    alone[y, x] = outside(one[0, y, x], low[y, x].min((-2, -1)), high[y, x].max((-2, -1)))
    return alone
