r"""How far the features of a kernel are from each other: what one row can do to their covariance.

A kernel is an inner product of features, k(x, y) = ⟨φ(x), φ(y)⟩. Let r be the largest ‖φ(x) − φ(y)‖²,
and ν the largest k(x, x). Replacing one row changes n/(n−1)·√HSIC_n by at most c/n with

.. math:: c^2 = \min\{\tfrac32r_Zr_S,\; \tfrac92\nu_Zr_S,\; \tfrac92\nu_Sr_Z,\; 16\nu_Z\nu_S\}.

*Proof.* As in the chapter on concentration, the change is 1/n times a ⊗ b − a′ ⊗ b′, where a, a′ are
the features of the old and the new row minus the mean of the others. With A = ‖a‖², A′, B, B′,
d = ‖a − a′‖² and e = ‖b − b′‖², the squared norm of that difference is

½(A − A′)(B − B′) + ½[(A + A′)e + (B + B′)d − de],

linear in each of the six numbers. They lie in [0, r_Z] and [0, r_S], since a mean of features is no
farther from φ(x) than the farthest feature, so the largest value, 3/2·r_Zr_S, is taken where each is
zero or largest. Non-negative kernels have r ≤ 2ν, and then c² = 6ν_Zν_S. For kernels of both signs
the six numbers are not independent: features in a ball of radius √ν give 16ν_Zν_S, which one row
attains for every n, where r = 4ν alone would give 24. (Machine-checked: ``Signed_difference.v``.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from frhsic_core.bounds.result import rounded_up
from frhsic_core.kernels import (
    Categorical,
    Distance,
    Gaussian,
    InverseMultiquadric,
    Kernel,
    Laplacian,
    Linear,
    MultiScale,
    Product,
)

NON_NEGATIVE = (Gaussian, MultiScale, Laplacian, InverseMultiquadric, Categorical)
_ROUNDING = 1e-5  # features of float32 may be this much farther apart
_CHECKED = 1000


@dataclass(frozen=True)
class Features:
    """The largest squared distance of two features, and the largest k(x, x) if it is known."""

    squared_diameter: float
    squared_radius: float = math.inf


@dataclass(frozen=True)
class Bounded:
    """A kernel with a promise about all values that can occur, not only those of the sample.

    Attributes
    ----------
    kernel : Kernel
        For example ``Linear()`` or ``Distance()``.
    squared_diameter : float
        The largest k(x, x) − 2k(x, y) + k(y, y), which is ‖φ(x) − φ(y)‖².
    squared_radius : float
        The largest k(x, x), if it is known. It helps where it is less than a third of the diameter.

    Examples
    --------
    Ages from 18 to 90, with the kernel of the distance covariance:

    >>> Bounded.distance(72.0).squared_diameter
    72.0
    """

    kernel: Kernel
    squared_diameter: float
    squared_radius: float = math.inf

    @classmethod
    def distance(cls, diameter: float) -> Bounded:
        """Return the kernel of distance covariance, for values at most ``diameter`` apart."""
        return cls(Distance(), _positive("diameter", diameter))

    @classmethod
    def linear(cls, diameter: float) -> Bounded:
        """Return the linear kernel, for values at most ``diameter`` apart."""
        return cls(Linear(), _positive("diameter", diameter) ** 2)

    @classmethod
    def linear_ball(cls, radius: float) -> Bounded:
        """Return the linear kernel, for vectors with a norm of at most ``radius``."""
        square = _positive("radius", radius) ** 2
        return cls(Linear(), 4.0 * square, square)

    def __call__(self, x: Any, y: Any = None) -> Any:
        return self.kernel(x, y)


def _positive(name: str, value: float) -> float:
    if not 0.0 < value < math.inf:
        raise ValueError(f"{name} is {value}: it must be a positive finite number.")
    return float(value)


def features_of(name: str, kernel: Kernel) -> Features:
    """Return what is known about the features of a kernel, or raise an error."""
    if isinstance(kernel, Bounded):
        return Features(
            _positive("squared_diameter", kernel.squared_diameter), kernel.squared_radius
        )
    if is_unit(kernel):
        return Features(2.0, 1.0)
    raise TypeError(
        f"{name} is {kernel!r}: the bound needs a kernel object with values in [0, 1] and a "
        "bandwidth that was fixed before these rows were seen, for example Gaussian(1.0), or a "
        "kernel with a promise about its values, for example Bounded.distance(72.0)."
    )


def is_unit(kernel: Kernel) -> bool:
    """Return whether a kernel has values in [0, 1] and k(x, x) = 1."""
    parts = kernel.factors if isinstance(kernel, Product) else (kernel,)
    return all(isinstance(part, NON_NEGATIVE) for part in parts)


def plain(kernel: Kernel) -> Kernel:
    """Return the kernel without its promise, so that the fast engines know it."""
    return kernel.kernel if isinstance(kernel, Bounded) else kernel


def check_promise(name: str, kernel: Kernel, x: Any) -> None:
    """Raise an error if features of these rows are farther apart than was promised.

    A look at some rows, which finds a wrong unit; what other rows may do remains a promise.
    """
    if not isinstance(kernel, Bounded):
        return
    rows = x[:: max(1, len(x) // _CHECKED)]
    gram = kernel(rows)
    own = gram.diagonal()
    farthest = float((own[:, None] + own[None, :] - 2.0 * gram).max())
    if farthest > (1.0 + _ROUNDING) * kernel.squared_diameter:
        raise ValueError(
            f"{name} has rows with features at a squared distance of {rounded_up(farthest)}, which "
            f"is more than squared_diameter, {kernel.squared_diameter:g}: pass the largest value "
            "that can occur."
        )
    if float(own.max()) > (1.0 + _ROUNDING) * kernel.squared_radius:
        raise ValueError(
            f"{name} has a row with k(x, x) = {rounded_up(float(own.max()))}, which is more than "
            f"squared_radius, {kernel.squared_radius:g}: pass the largest value that can occur."
        )


def change_square(z: Features, s: Features) -> float:
    """Return c², where one row changes n/(n − 1)·√HSIC_n by at most c/n.

    Examples
    --------
    >>> unit, signed = Features(2.0, 1.0), Features(4.0, 1.0)
    >>> change_square(unit, unit), change_square(signed, signed), change_square(unit, signed)
    (6.0, 16.0, 9.0)
    """
    return min(
        1.5 * z.squared_diameter * s.squared_diameter,
        4.5 * z.squared_radius * s.squared_diameter,
        4.5 * s.squared_radius * z.squared_diameter,
        16.0 * z.squared_radius * s.squared_radius,
    )


def largest_hsic(z: Features, s: Features, *, unit: bool) -> float:
    """Return the largest HSIC that there can be.

    ‖C‖ is at most the root of E‖φ − E φ‖²·E‖ψ − E ψ‖², and a variance is at most half of a squared
    diameter. For kernels with values in [0, 1] a sharper argument gives 1/4.
    """
    return 0.25 if unit else 0.25 * z.squared_diameter * s.squared_diameter
