"""Rules that choose a λ from a table of what was tried.

The paper's appendix (``sec:adaptive_lambda``) goes up a grid and stops at the first λ whose representation an
independence test does not reject. "Not rejected" is not "independent": on few rows the test sees little, on many it
sees what does not matter. The other two rules answer that.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from sklearn.isotonic import isotonic_regression

__all__ = ["LambdaChoice", "check_rule", "choose_lambda"]

RULES = ("independence", "practical", "tradeoff")
LEAST_TOLERANCE = 0.01  # what tolerance="auto" allows in any case


@dataclass(frozen=True)
class LambdaChoice:
    """The λ chosen and everything that was tried.

    Attributes
    ----------
    lam : float
        The choice.
    rule : str
        ``"independence"``, ``"practical"`` or ``"tradeoff"``.
    satisfied : bool
        False when no λ met the rule and the grid's end was taken instead.
    reason : str
        Why, in a sentence.
    table : DataFrame
        One row for each λ (:func:`frhsic_core.learning.validation.validation_table`), and a column ``chosen``.
    """

    lam: float
    rule: str
    satisfied: bool
    reason: str
    table: pd.DataFrame = field(repr=False)


def check_rule(*, rule: str, alpha: float, epsilon: float, tolerance: float | str) -> None:
    """Refuse a rule that is none and limits that are no numbers, before anything is trained."""
    if rule not in RULES:
        raise ValueError(f"rule is {rule!r}: choose one of {', '.join(map(repr, RULES))}.")
    if tolerance == "auto":
        tolerance = 0.0
    elif isinstance(tolerance, str):
        raise ValueError(f"tolerance is {tolerance!r}: give a number that is not negative, or 'auto'.")
    if not 0 < alpha < 1 or not epsilon > 0 or not tolerance >= 0:
        raise ValueError(
            f"alpha is {alpha}, epsilon {epsilon} and tolerance {tolerance}: a level in (0, 1), a positive number and "
            "a number that is not negative are needed."
        )


def choose_lambda(
    table: pd.DataFrame,
    *,
    rule: str = "tradeoff",
    alpha: float = 0.05,
    epsilon: float = 1e-3,
    tolerance: float | str = "auto",
    dependence: str = "normalized_hsic",
) -> LambdaChoice:
    """Choose a λ from a validation table; where no λ meets a rule, the largest is taken and ``satisfied`` is False.

    * ``"independence"`` (the paper's): the smallest λ at which the test does not reject, p > α. Larger α asks for more.
    * ``"practical"`` (its variant): the smallest λ with HSIC < ε or p > α. Smaller ε asks for more.
    * ``"tradeoff"``: among the λ whose performance is within ``tolerance`` of that at the smallest λ, the smallest one
      that reaches the lowest ``dependence``. Both curves are first made monotone in λ by isotonic regression, so that
      one lucky model does not decide. Larger tolerance never gives a smaller λ.

    Parameters
    ----------
    table : DataFrame
        Columns ``lam``, ``performance`` (larger is better), ``hsic``, ``pvalue`` and the one named by ``dependence``.
    rule, alpha, epsilon, dependence
        See above.
    tolerance : float or "auto"
        In units of performance (accuracy or R²). ``"auto"``: one standard error of the difference between the two
        models' performances on the same rows (the column ``standard_error``, where the table has one), and at least
        0.01: the one-standard-error rule, with a price that most would pay.

    Examples
    --------
    >>> table = pd.DataFrame({"lam": [0.0, 1.0, 10.0], "performance": [0.85, 0.845, 0.80], "hsic": [0.02, 0.002, 5e-4],
    ...                       "pvalue": [0.005, 0.005, 0.40], "normalized_hsic": [0.2, 0.02, 0.01]})
    >>> [choose_lambda(table, rule=rule).lam for rule in ("independence", "practical", "tradeoff")]
    [10.0, 10.0, 1.0]
    >>> choose_lambda(table.assign(standard_error=[0.0, 0.01, 0.06])).lam
    10.0
    """
    check_rule(rule=rule, alpha=alpha, epsilon=epsilon, tolerance=tolerance)
    table = table.sort_values("lam", ignore_index=True)
    lams = table["lam"].to_numpy(dtype=float)
    if rule == "tradeoff":
        place, reason = _tradeoff(table, tolerance, dependence)
        satisfied = True
    else:
        met = table["pvalue"].to_numpy() > alpha
        wanted = f"p > {alpha:g}"
        if rule == "practical":
            met = met | (table["hsic"].to_numpy() < epsilon)
            wanted += f" or HSIC < {epsilon:g}"
        satisfied = bool(met.any())
        place = int(met.argmax()) if satisfied else len(lams) - 1
        reason = (
            f"the smallest λ with {wanted}" if satisfied else f"no λ of the grid has {wanted}: the largest is taken"
        )
    table["chosen"] = np.arange(len(table)) == place
    return LambdaChoice(float(lams[place]), rule, satisfied, reason, table)


def _tradeoff(table: pd.DataFrame, tolerance: float | str, dependence: str) -> tuple[int, str]:
    if dependence not in table:
        raise ValueError(f"dependence is {dependence!r}: the table has {', '.join(map(repr, table.columns))}.")
    performance = isotonic_regression(table["performance"].to_numpy(dtype=float), increasing=False)
    curve = isotonic_regression(table[dependence].to_numpy(dtype=float), increasing=False)
    if tolerance == "auto":
        error = table["standard_error"].to_numpy(dtype=float) if "standard_error" in table else np.zeros(len(table))
        allowed, shown = np.maximum(error, LEAST_TOLERANCE), f"one standard error (at least {LEAST_TOLERANCE:g})"
    else:
        allowed, shown = np.full(len(table), float(tolerance)), f"{tolerance:g}"
    eligible = performance >= performance[0] - allowed
    lowest = curve[eligible].min()
    place = int((eligible & (curve <= lowest)).argmax())
    return place, f"the lowest {dependence} within {shown} of the performance at λ = {table['lam'].iloc[0]:g}"
