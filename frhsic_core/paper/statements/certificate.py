"""The certificate that every check returns, and the functions that build one.

A certificate is made without the number and label of its statement;
:func:`frhsic_core.paper.statements.registry.check` supplies both.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Required, TypedDict, Unpack

Evidence = Literal["proof", "exact", "interval", "deterministic", "statistical"]
Verdict = Literal["holds", "fails as stated", "holds as corrected", "ours: holds", "inconclusive"]

EVIDENCE: tuple[Evidence, ...] = ("proof", "exact", "interval", "deterministic", "statistical")


@dataclass(frozen=True)
class Certificate:
    """The result of one check of a statement: both sides, the slack between them and the verdict.

    Attributes
    ----------
    statement : str
        Number as the paper prints it, e.g. ``"Theorem 4.5"``. Empty until a check supplies it.
    label : str
        The paper's own label, e.g. ``"cor:hsic-mmd-equivalence"``.
    claim : str
        What was checked, in our words, one line.
    relation : str
        ``"<="``, ``"=="``, ``"<"`` or, for a two-sided bound, ``"<= <="``.
    lower, middle, upper : float
        The sides. ``lower`` is ``nan`` for a one-sided statement ``middle <= upper``.
    slack : float
        How far the worst side is from breaking: positive means room, negative means violated. For
        an equality the relative difference, which must stay below ``tolerance``.
    tolerance : float
        Rounding allowed before a negative slack (or a difference) counts as a violation.
    evidence : {"proof", "exact", "interval", "deterministic", "statistical"}
        Strength: a proof that a proof assistant has checked; rational arithmetic or closed form on
        a finite law; rigorous ball arithmetic; an inequality that must hold for every sample,
        searched for counterexamples; a probability statement with an exact binomial interval.
    verdict : {"holds", "fails as stated", "holds as corrected", "ours: holds", "inconclusive"}
        Computed by the functions that build certificates, never typed. "ours" is a result that the
        paper does not have.
    assumptions : tuple of str
        The assumptions this check verified for its instance.
    details : mapping
        Everything else worth keeping: parameters, sizes, the counterexample.
    """

    statement: str
    label: str
    claim: str
    relation: str
    middle: float
    upper: float
    slack: float
    tolerance: float
    evidence: Evidence
    verdict: Verdict
    lower: float = math.nan
    assumptions: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        """Whether the relation that was checked is true for this instance."""
        return self.verdict in ("holds", "holds as corrected", "ours: holds")

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON; what is not finite becomes ``None``."""
        text = json.dumps(asdict(self), default=float)
        values: dict[str, Any] = json.loads(text, parse_constant=lambda _: None)
        return values


class Options(TypedDict, total=False):
    """What every kind of certificate may be given besides its sides."""

    evidence: Required[Evidence]
    corrected: bool
    ours: bool
    assumptions: tuple[str, ...]
    details: Mapping[str, Any]


def inequality(
    claim: str,
    *,
    middle: float,
    upper: float,
    lower: float = math.nan,
    tolerance: float = 1e-12,
    **options: Unpack[Options],
) -> Certificate:
    """Certify ``lower <= middle <= upper`` within a relative ``tolerance``, or two of the sides.

    Parameters
    ----------
    claim : str
        What is checked, in one line. It identifies the certificate in the record.
    middle, upper, lower : float
        The sides.
    tolerance : float
        Rounding that is allowed, relative to the largest side (and to one).
    **options
        ``evidence`` (required), ``assumptions`` and ``details`` of the :class:`Certificate`;
        ``corrected=True`` where the paper's sentence was changed so that it holds, ``ours=True``
        for a result of this book.

    Examples
    --------
    >>> inequality("one is at most two", middle=1.0, upper=2.0, evidence="exact").verdict
    'holds'
    >>> inequality("two is at most one", middle=2.0, upper=1.0, evidence="exact").verdict
    'fails as stated'
    >>> inequality("an undefined side", middle=math.nan, upper=1.0, evidence="exact").verdict
    'inconclusive'
    """
    relation = "<="
    slack = upper - middle
    unit = max(1.0, abs(middle), abs(upper))
    if not math.isnan(lower):
        relation = "<= <="
        slack = min(slack, middle - lower)
        unit = max(unit, abs(lower))
    return _certificate(
        claim,
        relation=relation,
        sides=(lower, middle, upper),
        slack=slack,
        tolerance=tolerance,
        ok=slack >= -tolerance * unit,
        **options,
    )


def equality(
    claim: str, *, left: float, right: float, tolerance: float = 1e-10, **options: Unpack[Options]
) -> Certificate:
    """Certify ``left == right`` up to a relative difference of ``tolerance``.

    Pass a tolerance of zero for rational arithmetic.

    Examples
    --------
    >>> equality("one is one", left=1.0, right=1.0 + 1e-12, evidence="exact").verdict
    'holds'
    """
    scale = max(abs(left), abs(right))
    if scale == 0.0:  # with `not scale > 0` a NaN would become a zero
        difference = 0.0
    else:
        difference = abs(left - right) / scale
    return _certificate(
        claim,
        relation="==",
        sides=(math.nan, left, right),
        slack=difference,
        tolerance=tolerance,
        ok=difference <= tolerance,
        **options,
    )


def strict_inequality(
    claim: str, *, middle: float, upper: float, margin: float = 1e-6, **options: Unpack[Options]
) -> Certificate:
    """Certify ``middle < upper`` by more than ``margin``: two numbers that are *not* equal.

    The slack is the gap. It shows what breaks when an assumption is dropped. The tolerance of the
    certificate is minus the margin.

    Examples
    --------
    >>> strict_inequality("one below one", middle=1.0, upper=1.0, evidence="exact").holds
    False
    """
    slack = upper - middle
    return _certificate(
        claim,
        relation="<",
        sides=(math.nan, middle, upper),
        slack=slack,
        tolerance=-margin,
        ok=slack > margin,
        **options,
    )


def enclosed_inequality(
    claim: str, pairs: Iterable[tuple[Any, Any]], **options: Unpack[Options]
) -> Certificate:
    """Certify ``left <= right`` for every pair of balls of python-flint (``flint.arb``).

    It holds only if every number of one ball is at most every number of the other. If the balls
    overlap, the verdict is "inconclusive" and more bits are needed. The sides are those of the
    first pair that does not hold, or of the pair with the least relative slack, which is the lower
    end of the difference.
    """

    def room(pair: tuple[Any, Any]) -> float:
        left, right = pair
        difference = right - left
        if difference >= 0:
            return float(difference.lower()) / float(left.mid())
        return -math.inf

    left, right = min(pairs, key=room)
    difference = right - left
    if difference >= 0:
        ok = True
    elif difference < 0:
        ok = False
    else:  # the balls overlap
        ok = None
    return _certificate(
        claim,
        relation="<=",
        sides=(math.nan, float(left.mid()), float(right.mid())),
        slack=float(difference.lower()),
        tolerance=0.0,
        ok=ok,
        **options,
    )


def _certificate(
    claim: str,
    *,
    relation: str,
    sides: tuple[float, float, float],
    slack: float,
    tolerance: float,
    ok: bool | None,
    **options: Unpack[Options],
) -> Certificate:
    """Build a certificate whose verdict follows from ``ok``.

    None, or a side that is not finite, is "inconclusive"; ``lower`` is NaN where there is none.
    """
    lower, middle, upper = sides
    finite = math.isfinite(middle) and math.isfinite(upper) and not math.isinf(lower)
    verdict: Verdict
    if ok is None or not finite:
        verdict = "inconclusive"
    elif not ok:
        verdict = "fails as stated"
    elif options.get("ours"):
        verdict = "ours: holds"
    elif options.get("corrected"):
        verdict = "holds as corrected"
    else:
        verdict = "holds"
    return Certificate(
        statement="",
        label="",
        claim=claim,
        relation=relation,
        lower=lower,
        middle=middle,
        upper=upper,
        slack=slack,
        tolerance=tolerance,
        evidence=options["evidence"],
        verdict=verdict,
        assumptions=options.get("assumptions", ()),
        details=dict(options.get("details", {})),
    )
