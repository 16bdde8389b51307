"""Write numbers and names as a reader of a report wants to see them."""

from __future__ import annotations

import math

_NAME = 60  # characters of a name


def number(value: float, *, unit: float | None = None, digits: int = 3) -> str:
    """Return a number with so many digits, or with as many decimals as its ``unit`` has then.

    Examples
    --------
    >>> number(0.12345), number(1234567.0), number(0.0000123), number(25.0)
    ('0.123', '1,234,567', '1.23e-05', '25')
    >>> number(0.12345, digits=2), number(0.00012, unit=0.05, digits=2)
    ('0.12', '0.000')
    """
    if not math.isfinite(value):
        return "not known"
    if unit is not None and unit > 0:
        decimals = max(0, digits - 1 - math.floor(math.log10(unit)))
        if decimals > 6:
            return f"{value:.{digits}g}"
        return f"{value:,.{decimals}f}"
    if abs(value) < 1e-12:
        return "0"
    if not 1e-4 <= abs(value) < 1e9:
        return f"{value:.{digits}g}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{decimals}f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return text


def rounded(value: float, *, unit: float | None = None) -> str:
    """Return a number with two digits, as the sentences of a report write it.

    Examples
    --------
    >>> rounded(0.136), rounded(1234.5), rounded(612.4, unit=33.0)
    ('0.14', '1,234', '612')
    """
    if unit is not None and abs(value) < 1e-12:
        value = 0.0  # without a sign
    return number(value, unit=unit, digits=2)


def with_interval(value: float, low: float, high: float, level: str) -> str:
    """Return a number with its interval, all with the same number of decimals.

    Examples
    --------
    >>> with_interval(0.1364, 0.1211, 0.1508, "95%")
    '0.14 (95% interval 0.12 to 0.15)'
    >>> with_interval(0.0004, 0.0, 0.0213, "95%")
    '0.000 (95% interval 0.000 to 0.021)'
    >>> with_interval(0.853, 0.48, 1.0, "95%")
    '0.85 (95% interval 0.48 to 1.00)'
    """
    # An end of 1.0 shall not take a digit from 0.85.
    unit = max(abs(value), abs(low) / 1.1, abs(high) / 1.1)
    ends = f"{rounded(low, unit=unit)} to {rounded(high, unit=unit)}"
    return f"{rounded(value, unit=unit)} ({level} interval {ends})"


def at_most(value: float, *, digits: int = 3) -> str:
    """Return a number as :func:`number` does, but never below ``value``: for an upper bound.

    Examples
    --------
    >>> number(0.12341), at_most(0.12341), at_most(0.1), at_most(0.00001234)
    ('0.123', '0.124', '0.1', '1.24e-05')
    >>> at_most(0.12341, digits=2)
    '0.13'
    """
    text = number(value, digits=digits)
    if not math.isfinite(value) or float(text.replace(",", "")) >= value:
        return text
    last_digit = 10.0 ** (math.floor(math.log10(abs(value))) + 1 - digits)
    if last_digit > 1.0 and value < 1e9:
        last_digit = 1.0  # these are written without a fraction, to the last digit
    return number(value + 0.500001 * last_digit, digits=digits)


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
