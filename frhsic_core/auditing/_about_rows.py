"""The sentences of an audit about all rows, about an adjustment, and about how to read numbers."""

from __future__ import annotations

from typing import Any

from frhsic_core.auditing._results import Missing
from frhsic_core.auditing._sentences import chance, level, size
from frhsic_core.auditing._words import percent, rounded, short
from frhsic_core.conditional import Curve

Audit = Any  # the result as a whole; its module imports this one
LIMITS = (
    "A number below a threshold does not make a decision fair. The audit describes these rows and "
    "attributes only."
)
_ADJUSTED = {
    "others": "It is now {}. If these rows fitted the adjustment, too, this looks too good.",
    "half": "Fitted on one half of the rows, the adjustment leaves {} in the other half (in the "
    "picture); fitted on all rows, as here, it usually leaves less.",
    "itself": "It is now {}. This looks too good: these rows fitted the adjustment; no half could "
    "be left out.",
}


def other_sentences(audit: Audit) -> list[str]:
    """Return the sentences about the scores, all attributes together, missing values and notes."""
    found = [*_performance(audit), *_together(audit)]
    found += [_missing(audit, entry) for entry in audit.missing]
    return [*found, *audit.notes]


def _performance(audit: Audit) -> list[str]:
    """Return how good the scores are, and how many people they select."""
    measured = audit.performance
    found = []
    if "auc" in measured:
        found.append(
            f"The AUC of the scores is {rounded(measured['auc'])}{_reversed(measured)}."
            f"{_accuracy(measured)} The mean score is {rounded(measured['mean_score'])}, and the "
            f"share of label 1 is {rounded(measured['mean_label'])}."
        )
    if "selection_rate" in measured:
        found.append(f"{percent(measured['selection_rate'])} of all {audit.unit} are selected.")
    return found


def _reversed(measured: dict[str, float]) -> str:
    """Return a question if scores and labels go opposite ways."""
    if measured["auc"] >= 0.5:
        return ""
    return ": lower scores go with label 1. Is its meaning right?"


def _accuracy(measured: dict[str, float]) -> str:
    if "accuracy" not in measured:
        return ""
    return f" At the threshold the accuracy is {rounded(measured['accuracy'])}."


def _together(audit: Audit) -> list[str]:
    """Return the dependence on all attributes together."""
    if audit.joint is None:
        return []
    strength = audit.joint.numbers.get("distance_correlation")
    amount = ""
    if strength is not None:
        amount = f"; the distance correlation is {rounded(strength.value)}"
    return [
        f"Taken together, the dependence on {short(audit.joint.name)} "
        f"{chance(audit.joint.numbers['pvalue'])}{amount}."
    ]


def _missing(audit: Audit, entry: Missing) -> str:
    """Return how many values of a column are missing, and how these people are scored."""
    found = (
        f"{short(entry.column)} is missing or infinite in {entry.missing:,} of {audit.rows:,} "
        "rows, which are left out where it is needed."
    )
    if entry.mean_missing is not None and entry.mean_known is not None:
        found += (
            f" Their mean is {rounded(entry.mean_missing)}; that of the other rows is "
            f"{rounded(entry.mean_known)}."
        )
    return found


def rows_used(audit: Audit, source: str = "") -> str:
    """Return the number of rows, and if some are left out how many each attribute uses."""
    found = f"{audit.rows:,} rows{source}"
    if all(attribute.rows == audit.rows for attribute in audit.attributes):
        return found
    used = []
    for attribute in audit.attributes:
        left_out = audit.rows - attribute.rows
        used.append(f"{short(attribute.name)}: {attribute.rows:,} used, {left_out:,} left out")
    return f"{found} ({'; '.join(used)})"


def adjusted(name: str, old: Curve, new: Curve, *, fitted_on: str) -> str:
    """Return the gap before and after an adjustment; ``fitted_on`` as in ``change_report``."""
    now = _ADJUSTED[fitted_on].format(size(new))
    return f"The mean gap along {name} was {size(old)}. {now}"


def method(audit: Audit) -> list[str]:
    """Return how the numbers of a report are to be read."""
    weights = f" Rows are weighted by {short(audit.weight)}." if audit.weight else ""
    return [
        "The mean gap, GDP in the tables (for generalized demographic parity), is "
        "E|E[f | S] − E f|: the distance between the mean prediction at a person's value of the "
        "attribute and the overall mean, averaged over all rows. It has the unit of the "
        f"predictions. The attribute is not cut into groups.{weights}",
        "The two values that are compared are those whose difference is most certain. The band "
        "holds for all values at once, so the interval is right although the data chose them.",
        "The curve is a local quadratic fit; an attribute with at most 20 values or with "
        "categories is not smoothed. The band contains the whole curve between the first and the "
        f"last percent of the attribute with a probability of about {level(audit)}. The interval "
        "of the mean gap takes into account that it is overestimated near zero.",
        "The test is exact under independence. With many rows every dependence is significant, so "
        "read the effect sizes: each is shown beside the value that chance alone gives. In a large "
        "table some of them, and the test of an attribute with several columns, use a random "
        "sample of the rows; the tables say of how many.",
        "Given control features, the part of the predictions that they explain (cross-fitted "
        "splines, added) is subtracted first. The conditional test asks whether predictions and "
        "attribute are independent given them.",
        LIMITS,
    ]
