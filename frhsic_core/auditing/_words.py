"""Write numbers and names as a reader of a report wants to see them."""

from __future__ import annotations

import math

_NAME = 60  # characters of a name


def number(value: float, *, unit: float | None = None) -> str:
    """Return a number with a useful number of digits: about three, or those of its ``unit``.

    Examples
    --------
    >>> number(0.12345), number(1234567.0), number(0.0000123), number(25.0)
    ('0.123', '1,234,567', '1.23e-05', '25')
    """
    if not math.isfinite(value):
        return "not known"
    if unit is not None and unit > 0:
        digits = max(0, 2 - math.floor(math.log10(unit)))
        return f"{value:,.{digits}f}" if digits <= 6 else f"{value:.3g}"
    if abs(value) < 1e-12:
        return "0"
    if not 1e-4 <= abs(value) < 1e9:
        return f"{value:.3g}"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{digits}f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return text


def at_most(value: float) -> str:
    """Return a number as :func:`number` does, but never below ``value``: for an upper bound.

    Examples
    --------
    >>> number(0.12341), at_most(0.12341), at_most(0.1), at_most(0.00001234)
    ('0.123', '0.124', '0.1', '1.24e-05')
    """
    text = number(value)
    if not math.isfinite(value) or float(text.replace(",", "")) >= value:
        return text
    last_digit = 10.0 ** (math.floor(math.log10(abs(value))) - 2)
    if last_digit > 1.0 and value < 1e9:
        last_digit = 1.0  # these are written without a fraction, to the last digit
    return number(value + 0.500001 * last_digit)


def short(name: str) -> str:
    """Return a name of at most 60 characters on one line."""
    name = " ".join(name.split()) or "(no name)"
    if len(name) <= _NAME:
        return name
    return name[: _NAME - 1] + "…"


def percent(share: float) -> str:
    """Return a share in percent, with one digit below ten percent."""
    if share >= 0.0995 or share == 0:
        return f"{share:.0%}"
    return f"{share:.1%}"
