"""The rules that choose a λ from a table of models that were judged on samples held out.

The paper (``sec:adaptive_lambda``) goes up a grid and stops at the first λ whose representation an
independence test does not reject. "Not rejected" does not mean "independent": with few samples the
test has little power, and with many samples it rejects dependence that is too small to matter. The
other rules take this into account. Nothing here needs PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from sklearn.isotonic import isotonic_regression
from sklearn.utils._param_validation import Interval, StrOptions, validate_parameter_constraints

from frhsic_core._choices import one_of

if TYPE_CHECKING:
    from torch import Tensor

RULES = ("independence", "practical", "tradeoff", "guarantee")
LEAST_TOLERANCE = 0.01  # tolerance="auto" always allows this much
MOST_OF = 0.8  # of the possible reduction in dependence is enough for the rule "tradeoff"
ENOUGH_ROWS = 2000  # validation samples that validation_fraction="auto" and the splits aim at
MOST_SPLITS = 3
LEAST_HELD_OUT = 0.15  # shares of the samples between which validation_fraction="auto" stays
MOST_HELD_OUT = 0.3
_SHARE = Interval(Real, 0, 1, closed="neither")
_COUNT = Interval(Integral, 1, None, closed="left")
_LIMITS: dict[str, Any] = {
    "alpha": [_SHARE],
    "epsilon": [Interval(Real, 0, None, closed="neither")],
    "tolerance": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
    # 0.5 is the largest GDP of probabilities.
    "guaranteed_gdp": [Interval(Real, 0, 0.5, closed="right")],
    "delta": [_SHARE],
    "validation_fraction": [_SHARE, StrOptions({"auto"})],
    "max_rows": [_COUNT],
    "n_permutations": [_COUNT],
}


def require_lambdas(
    values: Sequence[Any], *, given: Any, name: str = "lam", alternative: str = ""
) -> list[float]:
    """Return the values of λ as floats, or raise ``ValueError`` unless each is finite and ≥ 0.

    The message shows the argument as it was given, its name, and an alternative such as
    ``", or 'auto'"``.
    """
    numbers = [value.item() if hasattr(value, "item") else value for value in values]
    for number in numbers:
        if not isinstance(number, Real) or not 0 <= float(number) < math.inf:
            raise ValueError(
                f"{name} is {given!r}: λ must be a finite number that is zero or "
                f"positive{alternative}."
            )
    return [float(number) for number in numbers]


@dataclass(frozen=True)
class LambdaSelection:
    """How λ is chosen: the grid, the rule and the validation, all checked when it is created.

    The rules are:

    * ``"independence"`` (the paper's): the smallest λ at which the test does not reject, p > α. A
      larger α asks for more.
    * ``"practical"`` (its variant): the smallest λ with HSIC < ε or p > α. A smaller ε asks for
      more.
    * ``"tradeoff"``: the smallest λ that has four fifths of the reduction in dependence that is
      possible within ``tolerance`` of the performance at the smallest λ. The last fifth often needs
      a λ many times as large, and chance would decide how many times. The dependence is the mean of
      the normalized HSIC of Z and of GDP, each relative to that at the smallest λ and at most 1.
      Both curves are first made monotone in λ by isotonic regression, so that one lucky model does
      not decide. With fewer than 2,000 validation samples, up to three splits with disjoint
      validation parts are averaged. A larger tolerance never gives a smaller λ.
    * ``"guarantee"``: the smallest λ whose upper bound on GDP (:func:`frhsic_core.gdp_bound`,
      corrected for the number of λ) is at most ``guaranteed_gdp``. The chosen model is the one that
      was trained without the samples held out, so it keeps the guarantee. It is for probabilities
      and one attribute, without sample weights.

    Parameters
    ----------
    lams : sequence of float
        The grid of λ, in any order.
    rule : {"tradeoff", "independence", "practical", "guarantee"}
        The rule above.
    alpha : float
        Level of the independence test. α(B + 1) should be a whole number for B permutations.
    epsilon : float
        Limit of HSIC for the rule ``"practical"``.
    tolerance : float or "auto"
        Performance (AUC or R²) that the rule ``"tradeoff"`` may give up. ``"auto"`` is two
        standard errors of the difference between the two models' performances on the same samples,
        and at least 0.01.
    guaranteed_gdp : float
        Largest GDP for the rule ``"guarantee"``.
    delta : float
        Largest probability that the guarantee does not hold.
    validation_fraction : float or "auto"
        Share of the samples that is held out, at random. ``"auto"`` holds out 2,000 samples, but at
        least 15 % and at most 30 % of all.
    max_rows : int
        Number of validation samples, evenly spaced, for HSIC and its test. GDP and the performance
        use all.
    n_permutations : int
        Number of permutations B of the test.

    Examples
    --------
    >>> LambdaSelection(lams=[3, 0, 1]).lams
    (0.0, 1.0, 3.0)
    """

    lams: Sequence[float] = (0.0, 1 / 3, 1.0, 3.0, 9.0, 27.0, 81.0)
    rule: str = "tradeoff"
    alpha: float = 0.05
    epsilon: float = 1e-3
    tolerance: float | str = "auto"
    guaranteed_gdp: float = 0.1
    delta: float = 0.05
    validation_fraction: float | str = "auto"
    max_rows: int = 1000
    n_permutations: int = 199

    def __post_init__(self) -> None:
        if isinstance(self.lams, str) or not np.iterable(self.lams) or not len(self.lams):
            raise ValueError(
                f"lams is {self.lams!r}: give a list of numbers, such as [0, 0.3, 1, 3]."
            )
        grid = require_lambdas(self.lams, given=self.lams, name="lams")
        object.__setattr__(self, "lams", tuple(sorted(grid)))
        one_of("rule", self.rule, RULES)
        validate_parameter_constraints(_LIMITS, vars(self), caller_name="LambdaSelection")

    @classmethod
    def of(cls, selection: LambdaSelection | Mapping[str, Any] | None, **changes: Any) -> Self:
        """Return a selection from a dictionary, another selection or nothing, with some changes."""
        if isinstance(selection, cls):
            return replace(selection, **changes)
        if selection is not None and not isinstance(selection, Mapping):
            raise ValueError(
                f"selection is {selection!r}: give a dictionary, such as {{'rule': 'tradeoff'}}, a "
                "LambdaSelection or None."
            )
        values = {**(selection or {}), **changes}
        known = [each.name for each in fields(cls)]
        unknown = sorted(str(name) for name in values if name not in known)
        if unknown:
            raise ValueError(f"selection has no option {unknown}: choose from {', '.join(known)}.")
        return cls(**values)

    def held_out(self, rows: int, *, random_state: int) -> list[Tensor]:
        """Return the samples that each split holds out, which no two splits share."""
        import torch

        share = self._share_held_out(rows)
        size = max(1, int(share * rows))
        splits = min(self._splits_wanted(size), int(1 / share))
        generator = torch.Generator().manual_seed(random_state)
        parts = torch.randperm(rows, generator=generator).split(size)
        return [part.sort().values for part in parts[:splits]]

    def _share_held_out(self, rows: int) -> float:
        if not isinstance(self.validation_fraction, str):
            return self.validation_fraction
        return min(MOST_HELD_OUT, max(LEAST_HELD_OUT, ENOUGH_ROWS / rows))

    def _splits_wanted(self, size: int) -> int:
        # A guarantee and a test are about one model, and other splits train models of their own.
        if self.rule != "tradeoff":
            return 1
        return min(MOST_SPLITS, math.ceil(ENOUGH_ROWS / size))


@dataclass(frozen=True)
class LambdaChoice:
    """The chosen λ and everything that was tried.

    Attributes
    ----------
    lam : float
        The chosen λ.
    rule : str
        One of the rules of :class:`LambdaSelection`.
    satisfied : bool
        False if no λ met the rule, so that the largest one was taken.
    reason : str
        Why this λ was chosen, in a sentence.
    table : DataFrame
        One row for each λ (``validation_table``), with a column ``chosen``.
    """

    lam: float
    rule: str
    satisfied: bool
    reason: str
    table: pd.DataFrame = field(repr=False)


def pooled_table(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Average the tables of several splits with disjoint validation parts.

    The standard error is that of the mean, √(Σ SE²)/R for R parts, because the parts share no
    samples. The test (``statistic``, ``threshold``, ``pvalue``) is that of the first part.
    """
    pooled = tables[0].copy()
    for name in ("performance", "hsic", "normalized_hsic", "gdp"):
        pooled[name] = np.mean([table[name] for table in tables], axis=0)
    errors = np.array([table["standard_error"] for table in tables])
    pooled["standard_error"] = np.sqrt((errors**2).sum(0)) / len(tables)
    return pooled


def choose_lambda(
    table: pd.DataFrame,
    *,
    selection: LambdaSelection | Mapping[str, Any] | None = None,
    **changes: Any,
) -> LambdaChoice:
    """Choose a λ from a validation table by one of the rules of :class:`LambdaSelection`.

    If no λ meets the rule, the largest λ is taken and ``satisfied`` is False.

    Parameters
    ----------
    table : DataFrame
        Columns ``lam``, ``performance`` (larger is better) and what the rule needs of ``hsic``,
        ``pvalue``, ``normalized_hsic``, ``gdp``, ``gdp_bound`` and, for ``tolerance="auto"``,
        ``standard_error`` (0 without it).
    selection : LambdaSelection or dict, optional
        The rule and its limits.
    **changes
        Values of :class:`LambdaSelection` (``rule``, ``alpha``, ...), which replace those of
        ``selection``.

    Examples
    --------
    >>> table = pd.DataFrame({"lam": [0.0, 1.0, 10.0], "performance": [0.85, 0.845, 0.80],
    ...                       "hsic": [0.02, 0.002, 5e-4], "pvalue": [0.005, 0.005, 0.40],
    ...                       "normalized_hsic": [0.2, 0.1, 0.01], "gdp": [0.1, 0.06, 0.01]})
    >>> [choose_lambda(table, rule=rule).lam for rule in ("independence", "practical", "tradeoff")]
    [10.0, 10.0, 1.0]
    >>> choose_lambda(table.assign(standard_error=[0.0, 0.01, 0.03])).lam
    10.0
    """
    selection = LambdaSelection.of(selection, **changes)
    table = table.sort_values("lam", ignore_index=True)
    if selection.rule == "tradeoff":
        satisfied = True
        index, reason = _tradeoff(table, selection.tolerance)
    else:
        met, wanted = _requirement(table, selection)
        satisfied = bool(met.any())
        if satisfied:
            index = int(met.argmax())
            reason = f"the smallest λ with {wanted}"
        else:
            index = len(table) - 1
            reason = f"no λ of the grid has {wanted}: the largest is taken"
    table["chosen"] = np.arange(len(table)) == index
    return LambdaChoice(
        lam=float(table["lam"].iloc[index]),
        rule=selection.rule,
        satisfied=satisfied,
        reason=reason,
        table=table,
    )


def _requirement(table: pd.DataFrame, selection: LambdaSelection) -> tuple[np.ndarray, str]:
    """Return which rows meet a rule of the form "the smallest λ with", and what it asks for."""
    if selection.rule == "guarantee":
        met = table["gdp_bound"].to_numpy() <= selection.guaranteed_gdp
        return met, f"a GDP that is guaranteed to be at most {selection.guaranteed_gdp:g}"
    accepted = table["pvalue"].to_numpy() > selection.alpha
    wanted = f"p > {selection.alpha:g}"
    if selection.rule == "independence":
        return accepted, wanted
    small = table["hsic"].to_numpy() < selection.epsilon
    return accepted | small, f"{wanted} or HSIC < {selection.epsilon:g}"


def _tradeoff(table: pd.DataFrame, tolerance: float | str) -> tuple[int, str]:
    """Return the row of the chosen λ and the reason."""
    performance = isotonic_regression(table["performance"].to_numpy(dtype=float), increasing=False)
    curve = _dependence(table)
    allowed, shown = _allowed_loss(table, tolerance)
    good_enough = performance >= performance[0] - allowed
    lowest = curve[good_enough].min()
    most_of_it = curve[0] - MOST_OF * (curve[0] - lowest)
    index = int((curve <= most_of_it).argmax())
    return index, (
        f"{MOST_OF:.0%} of the reduction in dependence that is possible within {shown} of the "
        f"performance at λ = {table['lam'].iloc[0]:g}"
    )


def _dependence(table: pd.DataFrame) -> np.ndarray:
    """Return the mean of both measures relative to the first row, made to fall with λ."""
    measures = table[["normalized_hsic", "gdp"]].to_numpy(dtype=float)
    first = np.maximum(measures[0], np.finfo(float).tiny)
    # A measure that only chance gives, such as the HSIC of few samples, must not outweigh the other
    # by rising.
    relative = np.minimum(measures / first, 1.0)
    return isotonic_regression(relative.mean(1), increasing=False)


def _allowed_loss(table: pd.DataFrame, tolerance: float | str) -> tuple[np.ndarray, str]:
    """Return how much performance each λ may give up, and this limit in words."""
    if tolerance != "auto":
        return np.full(len(table), float(tolerance)), f"{tolerance:g}"
    error = np.zeros(len(table))
    if "standard_error" in table:
        error = table["standard_error"].to_numpy(dtype=float)
    allowed = np.maximum(2.0 * error, LEAST_TOLERANCE)
    return allowed, f"two standard errors (at least {LEAST_TOLERANCE:g})"
