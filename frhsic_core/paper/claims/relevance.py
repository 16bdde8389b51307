"""Which difference from a printed number would matter: one table, by measure, with the reason for each.

A printed number *agrees* only if our value excludes a difference of this size. The table was fixed before the verdicts
were counted. Where the paper itself says which differences are small, its words decide.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


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


RELEVANT: dict[str, Relevant] = {
    "performance": Relevant(
        "accuracy or error of a model",
        share=0.01,
        reason="the paper calls a performance preserved within 1 %",
    ),
    "matched performance": Relevant(
        "accuracy or error at a matched point",
        share=0.005,
        reason="the point is selected within 1 % of Unfair, so only less than that band can tell two points apart",
    ),
    "gdp": Relevant(
        "GDP, and its spread over heads",
        absolute=0.05,
        share=0.2,
        reason="the paper calls GDP equivalent within .05; on Crime and COMPAS that exceeds the whole range, so it is "
        "never more than a fifth of the print",
    ),
    "naup": Relevant(
        "area under the frontier (nAUP)",
        absolute=0.05,
        share=0.2,
        reason="one twentieth of its scale from 0 to 1, as for GDP",
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
        reason="a fifth of the print; the smallest reduction that the text reports as an effect is 30 %",
    ),
}
