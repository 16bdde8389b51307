"""What was claimed, what was found: the record every check returns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = ["Certificate", "Evidence", "Verdict", "equality", "inequality", "strict_inequality"]

Evidence = Literal["exact", "interval", "deterministic", "statistical"]
Verdict = Literal["holds", "fails as stated", "holds as corrected", "inconclusive"]

EVIDENCE: tuple[Evidence, ...] = ("exact", "interval", "deterministic", "statistical")


@dataclass(frozen=True)
class Certificate:
    """One statement, checked once: both sides, the slack between them, and the verdict that follows.

    Attributes
    ----------
    statement : str
        Number as the paper prints it, e.g. ``"Theorem 4.5"``.
    label : str
        The paper's own label, e.g. ``"cor:hsic-mmd-equivalence"``.
    claim : str
        What was checked, in our words, one line.
    relation : str
        ``"<="``, ``"=="``, ``"<"`` or, for a two-sided bound, ``"<= <="``.
    lower, middle, upper : float
        The sides. ``lower`` is ``nan`` for a one-sided statement ``middle <= upper``.
    slack : float
        How far the worst side is from breaking: positive means room, negative means violated. For an equality the
        relative difference, which must stay below ``tolerance``.
    tolerance : float
        Rounding allowed before a negative slack (or a difference) counts as a violation.
    evidence : {"exact", "interval", "deterministic", "statistical"}
        Strength: rational arithmetic or closed form on a finite law; rigorous ball arithmetic; an inequality that must
        hold for every sample, searched for counterexamples; a probability statement with an exact binomial interval.
    verdict : {"holds", "fails as stated", "holds as corrected", "inconclusive"}
        Computed by the functions that build certificates, never typed.
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
        return self.verdict in ("holds", "holds as corrected")

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON; ``nan`` becomes ``None``."""

        def plain(value: Any) -> Any:
            if isinstance(value, Mapping):
                return {str(key): plain(item) for key, item in value.items()}
            if isinstance(value, (list, tuple)):
                return [plain(item) for item in value]
            if isinstance(value, bool) or value is None or isinstance(value, (str, int)):
                return value
            number = float(value)
            return number if math.isfinite(number) else None

        return {name: plain(getattr(self, name)) for name in self.__dataclass_fields__}


def inequality(
    statement: str,
    label: str,
    claim: str,
    *,
    middle: float,
    upper: float,
    evidence: Evidence,
    lower: float = math.nan,
    tolerance: float = 1e-12,
    corrected: bool = False,
    assumptions: tuple[str, ...] = (),
    details: Mapping[str, Any] | None = None,
) -> Certificate:
    """Certify ``lower <= middle <= upper`` (``lower`` may be left out) within a relative ``tolerance``.

    Examples
    --------
    >>> inequality("Theorem 0.0", "thm:x", "one is at most two", middle=1.0, upper=2.0, evidence="exact").verdict
    'holds'
    >>> inequality("Theorem 0.0", "thm:x", "two is at most one", middle=2.0, upper=1.0, evidence="exact").verdict
    'fails as stated'
    """
    slack = upper - middle
    if not math.isnan(lower):
        slack = min(slack, middle - lower)
    scale = max(1.0, *(abs(side) for side in (lower, middle, upper) if math.isfinite(side)))
    ok = slack >= -tolerance * scale  # False for NaN sides: an undefined bound certifies nothing
    return Certificate(
        statement=statement,
        label=label,
        claim=claim,
        relation="<=" if math.isnan(lower) else "<= <=",
        lower=lower,
        middle=middle,
        upper=upper,
        slack=slack,
        tolerance=tolerance,
        evidence=evidence,
        verdict=_verdict(ok, corrected),
        assumptions=assumptions,
        details=dict(details or {}),
    )


def equality(
    statement: str,
    label: str,
    claim: str,
    *,
    left: float,
    right: float,
    evidence: Evidence,
    tolerance: float = 1e-10,
    corrected: bool = False,
    assumptions: tuple[str, ...] = (),
    details: Mapping[str, Any] | None = None,
) -> Certificate:
    """Certify ``left == right`` up to a relative difference of ``tolerance`` (zero for rational arithmetic)."""
    scale = max(abs(left), abs(right))
    difference = abs(left - right) / scale if scale > 0 else 0.0
    return Certificate(
        statement=statement,
        label=label,
        claim=claim,
        relation="==",
        middle=left,
        upper=right,
        slack=difference,
        tolerance=tolerance,
        evidence=evidence,
        verdict=_verdict(difference <= tolerance, corrected),
        assumptions=assumptions,
        details=dict(details or {}),
    )


def strict_inequality(
    statement: str,
    label: str,
    claim: str,
    *,
    middle: float,
    upper: float,
    evidence: Evidence,
    margin: float = 1e-6,
    corrected: bool = False,
    assumptions: tuple[str, ...] = (),
    details: Mapping[str, Any] | None = None,
) -> Certificate:
    """Certify ``middle < upper`` by more than ``margin``: two things that are *not* equal, with the gap as slack.

    For what breaks when an assumption is dropped. The tolerance of the certificate is minus the margin.

    Examples
    --------
    >>> strict_inequality("Theorem 0.0", "thm:x", "one below one", middle=1.0, upper=1.0, evidence="exact").holds
    False
    """
    slack = upper - middle
    return Certificate(
        statement=statement,
        label=label,
        claim=claim,
        relation="<",
        middle=middle,
        upper=upper,
        slack=slack,
        tolerance=-margin,
        evidence=evidence,
        verdict=_verdict(slack > margin, corrected),
        assumptions=assumptions,
        details=dict(details or {}),
    )


def _verdict(ok: bool, corrected: bool) -> Verdict:
    if not ok:
        return "fails as stated"
    return "holds as corrected" if corrected else "holds"
