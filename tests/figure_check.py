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
from scipy import ndimage


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
    height, width = first.shape[:2]
    if any(abs(a - b) > max(4, SIZE * a) for a, b in zip((height, width), second.shape[:2], strict=True)):
        return f"it has {second.shape[1]} x {second.shape[0]} pixels instead of {width} x {height}"
    common = np.maximum(first.shape, second.shape)
    first, second = _padded(first, common), _padded(second, common)
    for one, other, what in ((first, second, "is missing"), (second, first, "is new")):
        alone = _without_counterpart(one, other, allowed.reach)
        colored = int((alone & (np.ptp(one.mean(2), axis=-1) > COLORED)).sum())
        if colored > allowed.colored or alone.sum() > allowed.total:
            y, x = (int(place.mean()) for place in np.nonzero(alone))
            return f"something {what} around x = {x}, y = {y} ({int(alone.sum())} pixels, {colored} of them colored)"
    return ""


def pixels(image: Image.Image) -> np.ndarray:
    """Return an image on white as an array (height, width, 4, 3): four pixels, in [0, 1], are one pixel of the page."""
    white = Image.new("RGBA", image.size, "white")
    flat = np.asarray(Image.alpha_composite(white, image.convert("RGBA")).convert("RGB"), dtype=np.float32) / 255
    even = _padded(flat, flat.shape + np.array([1, 1, 0]))  # a figure is stored at twice its size
    corners = [even[y:, x:][: len(flat) : 2, : flat.shape[1] : 2] for y in (0, 1) for x in (0, 1)]
    return np.stack(corners, axis=2)


def _padded(values: np.ndarray, shape: np.ndarray) -> np.ndarray:
    return np.pad(values, [(0, int(a - b)) for a, b in zip(shape, values.shape, strict=True)], constant_values=1.0)


def _without_counterpart(one: np.ndarray, other: np.ndarray, reach: int) -> np.ndarray:
    """Return which pixels of the page have a color in ``one`` that is outside the range of colors of ``other`` nearby.

    The range is that of the stored pixels: a thin line that lies on one or on two pixels of the page has the same.
    """
    window = (2 * reach + 1, 2 * reach + 1, 1)
    low, high = ndimage.minimum_filter(other.min(2), window), ndimage.maximum_filter(other.max(2), window)
    return ((one.mean(2) < low - SLACK) | (one.mean(2) > high + SLACK)).any(-1)
