"""Compare two drawings of one figure: another font renderer passes, another content fails.

nbval compares the texts of a notebook but not its images. A comparison of bytes would fail with
every new version of matplotlib or of its font renderer. Here a pixel of the page may have any color
between those that occur in the other drawing within a few pixels, which allows for moved letters
and smoothed edges. Pixels without such a counterpart are counted. The pixels are compared rather
than the drawn data, because the stored notebooks contain only these.
"""

from __future__ import annotations

import base64
import io
from typing import NamedTuple

import numpy as np
from PIL import Image


class Tolerance(NamedTuple):
    """How far a detail may move, and how many pixels may differ: colored ones, and all.

    Lines, bars and points are colored. Texts and axes are gray, and their edges change with the
    renderer.
    """

    reach: int
    colored: int
    total: int


# Two drawings by one version of matplotlib, which contains its own fonts and renderer, differ by
# rounding alone.
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
    before = _opened(stored)
    now = _opened(drawn)
    same_version = before.info.get("Software") == now.info.get("Software")
    allowed = SAME_VERSION if same_version else OTHER_VERSION
    first = pixels(before)
    second = pixels(now)
    _, height, width, _ = first.shape
    _, new_height, new_width, _ = second.shape
    if not (_similar(height, new_height) and _similar(width, new_width)):
        return f"it has {new_width} x {new_height} pixels instead of {width} x {height}"
    common = np.maximum(first.shape, second.shape)
    first = _padded(first, common)
    second = _padded(second, common)
    missing = _alone(first, second, allowed)
    if missing:
        return f"something is missing {missing}"
    new = _alone(second, first, allowed)
    if new:
        return f"something is new {new}"
    return ""


def _opened(image: str) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(image)))


def _similar(size: int, other: int) -> bool:
    """Return whether two heights or widths are those of the same figure."""
    return abs(size - other) <= max(4, SIZE * size)


def _alone(one: np.ndarray, other: np.ndarray, allowed: Tolerance) -> str:
    """Say where ``one`` has more pixels without a counterpart than are allowed, or nothing."""
    alone = _without_counterpart(one, other, allowed.reach)
    is_colored = np.ptp(one[0], axis=-1) > COLORED
    colored = int((alone & is_colored).sum())
    total = int(alone.sum())
    if colored <= allowed.colored and total <= allowed.total:
        return ""
    rows, columns = np.nonzero(alone)
    place = f"around x = {int(columns.mean())}, y = {int(rows.mean())}"
    return f"{place} ({total} pixels, {colored} of them colored)"


def pixels(image: Image.Image) -> np.ndarray:
    """Return an image on white as an array (3, height, width, 3) of colors in [0, 1].

    A figure is stored at twice its size, so that four pixels are one of the page: their mean,
    lowest and highest color.
    """
    white = Image.new("RGBA", image.size, "white")
    flat = np.asarray(Image.alpha_composite(white, image.convert("RGBA")).convert("RGB"))
    height, width, _ = flat.shape
    even = _padded(flat, np.array([height + height % 2, width + width % 2, 3]), 255)
    four = np.stack([even[::2, ::2], even[::2, 1::2], even[1::2, ::2], even[1::2, 1::2]])
    return np.stack([four.mean(0, dtype=np.float32), four.min(0), four.max(0)]) / np.float32(255)


def _padded(values: np.ndarray, shape: np.ndarray, white: float = 1.0) -> np.ndarray:
    missing = [(0, int(more)) for more in shape - values.shape]
    return np.pad(values, missing, constant_values=white)


def _without_counterpart(one: np.ndarray, other: np.ndarray, reach: int) -> np.ndarray:
    """Return which pixels have a color in ``one`` outside the range of colors of ``other`` nearby.

    The range is that of the stored pixels: a thin line that lies on one or on two pixels of the
    page has the same. Most pixels have a counterpart at their own place, so only the others look
    around.
    """

    def outside(mean: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        return ((mean < low - SLACK) | (mean > high + SLACK)).any(-1)

    alone = outside(one[0], other[1], other[2])
    y, x = np.nonzero(alone)
    around = np.pad(other[1:], [(0, 0), (reach, reach), (reach, reach), (0, 0)], mode="edge")
    window = (2 * reach + 1, 2 * reach + 1)
    low, high = np.lib.stride_tricks.sliding_window_view(around, window, axis=(1, 2))
    alone[y, x] = outside(one[0, y, x], low[y, x].min((-2, -1)), high[y, x].max((-2, -1)))
    return alone
