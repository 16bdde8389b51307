r"""The rule of the ledger: from a printed value and ours to *agrees*, *disagrees* or *open*.

The rule was written down before it was applied to any line; the commit that adds this text comes before the commit
that computes the verdicts, and it fixes ``HELD_OUT_SEED``, by which the lines that other code recomputes are drawn.

1. *Whose runs.* The text's protocol decides what the paper's text says. The verdict of the released code's protocol
   stands beside it in a column of its own and never changes the first. A line on ACS Income or MEPS, where our rows are
   not those of the authors, is *other data*: it is shown, and it counts in no total.
2. *Same splits.* The printed means are over the splits with seeds 42 to 46, which we have too. How much of the noise
   two runs on one split share is measured on all cells of the authors' stored sweep, for each dataset, protocol and
   measure: the 90 % quantile of the distances between their cell and our mean over the same five splits, in units of
   the standard deviation that two independent means over five splits would have, divided by 1.645 and at most 1. True
   differences can only raise this ratio r. With ρ = 1 − r² the printed mean is expected at our mean over all splits
   plus ρ times the deviation of our mean over these five, with √(1 − ρ²) of the noise of a mean over five splits.
3. *Agrees* is a test of equivalence: our value, with the error of its mean over our 25 splits, lies within the margin
   of the print (``RELEVANT``), which is never less than its rounding. *Disagrees* is a
   test of difference: a mean over as many runs as the paper's would not come as far from ours as the print, rounding
   allowed. A limit ("at most", a range) is tested on its own side. A line for which both tests reject agrees: its
   difference is real and too small to matter.
4. *Errors.* Each of the two families of p-values, over all measured lines that have them, is tested by the two-stage
   procedure of Benjamini, Krieger and Yekutieli (2006) at a false discovery rate of 5 %. The expected number of false
   verdicts is therefore at most 5 % of either count, and stands beside it. The rule first had the one stage of
   Benjamini and Hochberg. The simulated papers alone decided the change, before its effect on any line was known.
5. *Open* is the remainder, with the number of splits that would decide it: of ours where our value is within the
   margin, of the paper's where it is not.
6. *Once.* Lines that ask the same question and print the same number count once in every total. Equal questions have
   equal rules: a setting is the printed one or it is not.

Statements without a number (an order, a rank, a trend) have rules of their own below, which return True, False, or a
sentence that says why repeated runs would give both answers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from frhsic_core.paper.claims.answers import TAIL, Spread

Decision = bool | str
# Which lines other code recomputes (tests/paper/claims): forty measured ones, drawn by this seed before any verdict.
HELD_OUT_SEED = 20261116
# What `certified` returns for a statement that needs a condition that the paper leaves unsaid.
CORRECTED = "holds as corrected"
Rule = Callable[[str, Any, Spread | None], Decision]
# The rate of false discoveries, in each of the two families of tests.
FALSE_DISCOVERIES = 0.05


@dataclass(frozen=True)
class Relevant:
    """The smallest difference that matters: the lesser of an absolute one and a share of the printed value."""

    what: str
    share: float
    reason: str
    absolute: float = math.inf

    def difference(self, printed: float) -> float:
        """Return the difference for one printed value, in its unit.

        Examples
        --------
        >>> RELEVANT["gdp"].difference(0.749), round(RELEVANT["gdp"].difference(0.03), 4)
        (0.05, 0.006)
        """
        return min(self.absolute, self.share * abs(printed))


# Which difference from a printed number would matter, by measure, with the reason for each. The table was fixed before
# the verdicts were counted. Where the paper itself says which differences are small, its words decide.
RELEVANT: dict[str, Relevant] = {
    "performance": Relevant(
        "accuracy or error of a model",
        share=0.01,
        reason="the paper calls a performance preserved within 1 %",
    ),
    "matched performance": Relevant(
        "accuracy or error at a matched point",
        share=0.005,
        reason="the point is selected within 1 % of Unfair, so only a margin below 1 % tells two points apart",
    ),
    "gdp": Relevant(
        "GDP, and its spread over heads",
        absolute=0.05,
        share=0.2,
        reason="the paper calls GDP equivalent within .05; on Crime and COMPAS that exceeds the whole range, so it is "
        "never more than a fifth of the printed number",
    ),
    "naup": Relevant(
        "area under the frontier (nAUP)",
        absolute=0.05,
        share=0.2,
        reason="one twentieth of the scale from 0 to 1; the share as for GDP",
    ),
    "slope": Relevant(
        "slope of an error against n",
        absolute=0.05,
        share=math.inf,
        reason="half the distance between the two rates that the paper compares, -1/2 and -2/5",
    ),
    "grid value": Relevant(
        "a selected weight of the penalty",
        share=0.5,
        reason="neighbours on the grid differ by a factor of two or more",
    ),
    "other": Relevant(
        "times, ratios, information and everything else",
        share=0.2,
        reason="a fifth of the printed number; the smallest reduction that the text reports as an effect is 30 %",
    ),
}


def parsed(printed: str) -> Any:
    """Return what a printed text means: a number, a tuple of numbers (a grid, a range), or the text itself.

    Examples
    --------
    >>> parsed("<=.849"), parsed("{0.1,1}"), parsed("17-90"), parsed("42..44"), parsed("80; 20"), parsed("d_X-50-50")
    (0.849, (0.1, 1.0), (17.0, 90.0), (42.0, 43.0, 44.0), (80.0, 20.0), 'd_X-50-50')
    """
    text = printed.strip().removeprefix("<=")
    if re.fullmatch(r"[{\[].*[}\]]", text):
        return tuple(float(part) for part in text[1:-1].split(","))
    if found := re.fullmatch(r"(\d+)\.\.(\d+)", text):
        return tuple(float(n) for n in range(int(found[1]), int(found[2]) + 1))
    if found := re.fullmatch(r"(\d+)\s*[-/;]\s*(\d+)", text):
        return float(found[1]), float(found[2])
    try:
        return float(text)
    except ValueError:
        return text


def half_unit(printed: str) -> float:
    """Return half a unit of the last printed digit: what rounding may have changed.

    Examples
    --------
    >>> half_unit("<=.849"), half_unit("1.91"), half_unit("36"), half_unit("1e-3")
    (0.0005, 0.005, 0.5, 0.0005)
    """
    mantissa, _, exponent = printed.strip().removeprefix("<=").lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    return 0.5 * 10.0 ** (int(exponent or 0) - decimals)


def equal(printed: str, value: Any, prints: Spread | None) -> Decision:
    """Check for the same number, grid, range or text, without rounding."""
    wanted = parsed(printed)
    value = parsed(value) if isinstance(value, str) else value
    if isinstance(wanted, tuple):
        given = tuple(value) if isinstance(value, (list, tuple)) else (value,)
        return len(given) == len(wanted) and all(
            math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-12)
            for a, b in zip(wanted, given, strict=True)
        )
    if isinstance(wanted, float):
        return isinstance(value, (int, float)) and math.isclose(
            wanted, value, rel_tol=1e-6, abs_tol=1e-9
        )
    return wanted == str(value)


# How far a number may be from one that the paper calls approximate.
APPROXIMATE = 0.05
# An order of magnitude is the nearest power of ten: within half a decade.
HALF_DECADE = 0.5


def approximately(printed: str, value: Any, prints: Spread | None) -> Decision:
    """Check that our number is within 5 % of one that is printed as approximate."""
    wanted = float(parsed(printed))
    return value is not None and abs(value - wanted) <= APPROXIMATE * abs(wanted)


def magnitude(printed: str, value: Any, prints: Spread | None) -> Decision:
    """Check that the printed power of ten is the one nearest to ours."""
    return bool(abs(math.log10(value / float(parsed(printed)))) < HALF_DECADE)


def _rounding(printed: str) -> float:
    # A hair more than half a unit: values stored with one digit more than printed lie exactly on the edge.
    return 1.02 * half_unit(printed)


def within_spread(printed: str, value: Any, prints: Spread | None) -> Decision:
    """Check that a stored value is the printed one, up to rounding; with a spread, :func:`p_values` tests instead."""
    return (
        value is not None
        and not math.isnan(value)
        and abs(value - float(parsed(printed))) <= _rounding(printed)
    )


def at_most(printed: str, value: Any, prints: Spread | None) -> Decision:
    """Check that ours is at most the printed number."""
    return bool(value <= float(parsed(printed)) + half_unit(printed))


def at_least(printed: str, value: Any, prints: Spread | None) -> Decision:
    """Check that ours, or every one of our values, is at least the printed number; 'several' is at least two."""
    return bool(np.min(value) >= (2.0 if printed == "several" else float(parsed(printed))))


def between(printed: str, value: Any, prints: Spread | None) -> Decision:
    """Check that ours lies in the printed range."""
    low, high = parsed(printed)
    return bool(low <= value <= high)


# The rules that are tests where an answer has spreads.
TESTED = ("within_spread", "at_most", "between")


def margin(printed: str, rule: str, measure: str) -> float:
    """Return the difference from the print that matters: zero beyond a limit, and never less than the rounding."""
    if rule != "within_spread":
        return half_unit(printed) if rule == "at_most" else 0.0
    return max(RELEVANT[measure].difference(float(parsed(printed))), _rounding(printed))


def p_values(
    printed: str, rule: str, measure: str, prints: Spread, means: Spread
) -> tuple[float, float]:
    """Return the p-values of the test of difference and of the test of equivalence.

    The first is small if a number of the paper would not come as far from ours as the print (rounding allowed), the
    second if our expected value lies within the margin.

    Examples
    --------
    >>> prints, means = Spread(0.46, 0.5, 0.54), Spread(0.48, 0.5, 0.52)
    >>> [round(p, 3) for p in p_values(".52", "within_spread", "gdp", prints, means)]
    [0.456, 0.001]
    >>> [round(p, 3) for p in p_values(".57", "within_spread", "gdp", prints, means)]
    [0.001, 0.977]
    """
    reach = margin(printed, rule, measure)
    if rule == "within_spread":
        low = high = float(parsed(printed))
        rounding = _rounding(printed)
    else:
        low, high = (-math.inf, float(parsed(printed))) if rule == "at_most" else parsed(printed)
        rounding = reach
    differs = 1.0
    if not low - rounding <= prints.middle <= high + rounding:
        edge = low - rounding if prints.middle < low else high + rounding
        differs = prints.beyond(edge) * (1.0 if rule == "at_most" else 2.0)
    sides = []
    for limit, inside in (
        (low - reach, means.middle > low - reach),
        (high + reach, means.middle < high + reach),
    ):
        if math.isfinite(limit):
            sides.append(means.beyond(limit) if inside else 1.0 - means.beyond(limit))
    return differs, max(sides)


def threshold(p: np.ndarray, rate: float = FALSE_DISCOVERIES) -> float:
    """Return the largest p-value that the two-stage procedure rejects; −1 if it rejects none.

    The second stage is as strict as needed for the hypotheses that the first one left: the others are probably false.

    Examples
    --------
    >>> threshold(np.array([0.001, 0.02, 0.03, 0.9])), threshold(np.array([0.2, 0.9]))
    (0.03, -1.0)
    """
    ordered = np.sort(np.asarray(p, float))
    places = np.arange(1, ordered.size + 1)
    left, level = ordered.size, rate / (1.0 + rate)
    for _ in range(2):
        count = int(places[ordered * left <= level * places].max(initial=0))
        left = max(ordered.size - count, 1)
    return float(ordered[count - 1]) if count else -1.0


def rank(printed: str, value: Any, prints: Spread | None) -> Decision:
    """Check for the same rank; not decided where the ranks of repeated runs include others beside the printed one."""
    wanted = float(parsed(printed))
    low, high = (prints.low, prints.high) if prints else (value, value)
    if low == high == wanted:
        return True
    if low <= wanted <= high:
        return f"number {value:g} over all splits, but repeated runs would give any rank from {low:g} to {high:g}"
    return bool(value == wanted)


def dash(printed: str, value: Any, prints: Spread | None) -> Decision:
    """Check that, as the paper prints a dash, nearly all five-split means have no value."""
    if 2.0 * TAIL <= value <= 1.0 - 2.0 * TAIL:
        return f"{value:.0%} of five-split means have no value, the others have one"
    return bool(value > 0.5)


def true(printed: str, value: Any, prints: Spread | None) -> Decision:
    """Check that the answer of the query is yes; a sentence is an answer that is neither yes nor no."""
    return value if isinstance(value, str) else bool(value)


def certified(printed: str, value: Any, prints: Spread | None) -> Decision:
    """Check that no cited certificate found a counterexample to the statement as printed, and that none is open.

    ``CORRECTED`` where the statement holds under a condition that the paper leaves unsaid.
    """
    if "inconclusive" in value:
        return "a certificate is inconclusive"
    if CORRECTED in value:
        return CORRECTED
    return "fails as stated" not in value


def order(printed: str, value: Any, prints: Spread | None) -> Decision:
    """Check that the exponents of a cost such as O(n_anchor*n^2) are ours, each within a tenth.

    A factor without an exponent has one; several costs ("O(n^2) vs O(n^3)") are read one after the other.
    """
    factors = [
        factor for cost in re.findall(r"O\(([^)]*)\)", printed) for factor in cost.split("*")
    ]
    wanted = [float(factor.partition("^")[2] or 1) for factor in factors]
    return len(wanted) == len(value) and all(
        abs(a - b) <= 0.1 for a, b in zip(wanted, value, strict=True)
    )


_ALL = (
    equal, approximately, magnitude, within_spread, at_most, at_least, between, rank, dash, true, certified,
    order,
)  # fmt: skip
RULES: dict[str, Rule] = {rule.__name__: rule for rule in _ALL}
