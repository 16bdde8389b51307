"""Compare two drawings of one figure, so that another font passes and another content fails.

nbval compares the texts of a notebook but not its images. A comparison of bytes would fail with every new version of
matplotlib or of its font renderer. Here a pixel may have any color that occurs in the other drawing within a few
pixels, which allows for moved letters and smoothed edges. Pixels without such a counterpart are counted. The pixels
are compared rather than the drawn data, because the stored notebooks contain only these.
"""

from __future__ import annotations

import base64
import io

import numpy as np
from PIL import Image
from scipy import ndimage

# Measured on all figures of the book; see tests/test_figure_check.py.
REACH = 4  # pixels by which a detail may move
SLACK = 0.2  # of the range of a color channel
COLORED = 0.15  # difference between the channels of a pixel that is not gray
SIZE = 0.03  # share by which width and height may differ
LARGEST_COLORED = 60  # pixels; lines, bars and points are colored
LARGEST_TOTAL = 200  # pixels; texts and axes are gray, and their edges change with the font renderer


def difference(stored: str, drawn: str) -> str:
    """Say how a figure differs from the stored one; return an empty text if both show the same.

    Parameters
    ----------
    stored, drawn : str
        PNG images in base64, as in a notebook.
    """
    if stored == drawn:
        return ""
    first, second = _pixels(stored), _pixels(drawn)
    height, width = first.shape[:2]
    if any(abs(a - b) > max(REACH, SIZE * a) for a, b in zip((height, width), second.shape[:2], strict=True)):
        return f"it has {second.shape[1]} x {second.shape[0]} pixels instead of {width} x {height}"
    common = np.maximum(first.shape, second.shape)
    first, second = _padded(first, common), _padded(second, common)
    for one, other, what in ((first, second, "is missing"), (second, first, "is new")):
        alone = _without_counterpart(one, other)
        colored = int((alone & (np.ptp(one, axis=-1) > COLORED)).sum())
        if colored > LARGEST_COLORED or alone.sum() > LARGEST_TOTAL:
            y, x = (int(place.mean()) for place in np.nonzero(alone))
            return f"something {what} around x = {x}, y = {y} ({int(alone.sum())} pixels, {colored} of them colored)"
    return ""


def _pixels(image: str) -> np.ndarray:
    """Return an image on white as an array (height, width, 3) with values in [0, 1]."""
    picture = Image.open(io.BytesIO(base64.b64decode(image))).convert("RGBA")
    white = Image.new("RGBA", picture.size, "white")
    return np.asarray(Image.alpha_composite(white, picture).convert("RGB"), dtype=np.float32) / 255


def _padded(pixels: np.ndarray, shape: np.ndarray) -> np.ndarray:
    return np.pad(pixels, [(0, int(a - b)) for a, b in zip(shape, pixels.shape, strict=True)], constant_values=1.0)


def _without_counterpart(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return which pixels of ``one`` have a color outside the range of colors of ``other`` nearby."""
    window = (2 * REACH + 1, 2 * REACH + 1, 1)
    low, high = ndimage.minimum_filter(other, window), ndimage.maximum_filter(other, window)
    return ((one < low - SLACK) | (one > high + SLACK)).any(-1)
