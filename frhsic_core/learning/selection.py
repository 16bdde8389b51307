"""Choosing λ: the whole path trained as one stack, judged on rows held out, by a rule that is named.

The paper's appendix (``sec:adaptive_lambda``) goes up a grid and stops at the first λ whose representation an
independence test does not reject. It asks the gamma approximation; here the test is by permutation, which has its
level for every n, kernel and dimension of Z. "Not rejected" is not "independent": on few rows the test sees little, on
many it sees what does not matter. The other two rules answer that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.isotonic import isotonic_regression

from frhsic_core.arrays import ArrayLike, as_pair, as_tensor
from frhsic_core.learning.penalties import Penalty
from frhsic_core.learning.protocols import make_penalty
from frhsic_core.learning.trained import TrainedStack
from frhsic_core.learning.trainer import Trainer
from frhsic_core.learning.validation import FEWEST_ROWS, validation_table

__all__ = ["LambdaChoice", "LambdaPath", "choose_lambda", "select_lambda"]

LAMBDAS = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
RULES = ("independence", "practical", "tradeoff")


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


@dataclass(frozen=True)
class LambdaPath:
    """A choice, the stack of models behind it (in the order of the table) and the rows held out."""

    choice: LambdaChoice
    stack: TrainedStack
    validation_rows: np.ndarray

    @property
    def index(self) -> int:
        """Which model of the stack was chosen."""
        return int(self.choice.table["chosen"].to_numpy().argmax())


def choose_lambda(
    table: pd.DataFrame,
    *,
    rule: str = "tradeoff",
    alpha: float = 0.05,
    epsilon: float = 1e-3,
    tolerance: float = 0.01,
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
    rule, alpha, epsilon, tolerance, dependence
        See above; ``tolerance`` is in units of performance (accuracy or R²).

    Examples
    --------
    >>> table = pd.DataFrame({"lam": [0.0, 1.0, 10.0], "performance": [0.85, 0.845, 0.80], "hsic": [0.02, 0.002, 5e-4],
    ...                       "pvalue": [0.005, 0.005, 0.40], "normalized_hsic": [0.2, 0.02, 0.01]})
    >>> [choose_lambda(table, rule=rule).lam for rule in ("independence", "practical", "tradeoff")]
    [10.0, 10.0, 1.0]
    """
    if rule not in RULES:
        raise ValueError(f"rule is {rule!r}: choose one of {', '.join(map(repr, RULES))}.")
    if not 0 < alpha < 1 or not epsilon > 0 or not tolerance >= 0:
        raise ValueError(
            f"alpha is {alpha}, epsilon {epsilon} and tolerance {tolerance}: a level in (0, 1), a positive number and "
            "a number that is not negative are needed."
        )
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


def _tradeoff(table: pd.DataFrame, tolerance: float, dependence: str) -> tuple[int, str]:
    if dependence not in table:
        raise ValueError(f"dependence is {dependence!r}: the table has {', '.join(map(repr, table.columns))}.")
    performance = isotonic_regression(table["performance"].to_numpy(dtype=float), increasing=False)
    curve = isotonic_regression(table[dependence].to_numpy(dtype=float), increasing=False)
    eligible = performance >= performance[0] - tolerance
    lowest = curve[eligible].min()
    place = int((eligible & (curve <= lowest)).argmax())
    return place, f"the lowest {dependence} within {tolerance:g} of the performance at λ = {table['lam'].iloc[0]:g}"


def select_lambda(
    x: ArrayLike,
    y: ArrayLike,
    s: ArrayLike,
    *,
    lams: Sequence[float] = LAMBDAS,
    penalty: str | Penalty = "frhsic",
    rule: str = "tradeoff",
    alpha: float = 0.05,
    epsilon: float = 1e-3,
    tolerance: float = 0.01,
    dependence: str = "normalized_hsic",
    validation_fraction: float = 0.15,
    max_rows: int = 1000,
    n_permutations: int = 199,
    sample_weight: ArrayLike | None = None,
    seed: int = 0,
    callback: Callable[..., Any] | None = None,
    **training: Any,
) -> LambdaPath:
    """Hold a part of the training data out, train every λ on the rest as one stack, and choose.

    The caller's test part has no share in any of it. Time: one training of ``len(lams)`` stacked models.

    Parameters
    ----------
    x, y, s : array_like
        Training data, scaled.
    lams : sequence of float
        The grid; sorted here.
    penalty : str or Penalty
        As in :class:`Trainer`.
    rule, alpha, epsilon, tolerance, dependence
        See :func:`choose_lambda`.
    validation_fraction : float
        Share of the rows held out, at random.
    max_rows, n_permutations
        See :func:`frhsic_core.learning.validation.validation_table`.
    sample_weight : array_like, optional
        For training and for the performance.
    seed : int
        Of the split, of the models (all start alike) and of the test.
    callback : callable, optional
        Passed to :meth:`Trainer.fit`.
    **training
        Passed to :class:`Trainer`: ``task``, ``protocol``, ``epochs``, ``batch_size``, ``device``, ...

    Returns
    -------
    LambdaPath
        ``.choice`` (λ, reason, table), ``.stack``, ``.validation_rows``.
    """
    if len(lams) == 0 or any(not lam >= 0 for lam in lams):
        raise ValueError(f"lams is {tuple(lams)}: give at least one value, all zero or positive.")
    if not 0 < validation_fraction < 1:
        raise ValueError(f"validation_fraction is {validation_fraction}: a share strictly between 0 and 1 is needed.")
    x, s = as_pair(x, s, names=("X", "s"))
    y = as_tensor(y, name="y").reshape(-1)
    n = len(x)
    held = int(validation_fraction * n)
    if held < FEWEST_ROWS:
        raise ValueError(
            f"{n} rows leave {held} for validation: at least {FEWEST_ROWS} are needed to choose λ; give lam a number, "
            "or raise validation_fraction."
        )
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    validation, train = order[:held].sort().values, order[held:].sort().values
    weight = None if sample_weight is None else as_tensor(sample_weight, name="sample_weight").reshape(-1)
    protocol = training.get("protocol", "recommended")
    penalty = make_penalty(penalty, protocol=protocol) if isinstance(penalty, str) else penalty
    trainer = Trainer(
        x[train],
        y[train],
        s[train],
        penalty=penalty,
        lam=sorted(float(lam) for lam in lams),
        seeds=seed,
        sample_weight=None if weight is None else weight[train],
        **training,
    )
    stack = trainer.fit(callback=callback)
    table = validation_table(
        stack,
        x[validation],
        y[validation],
        s[validation],
        sample_weight=None if weight is None else weight[validation],
        condition=penalty.condition,
        max_rows=max_rows,
        n_permutations=n_permutations,
        alpha=alpha,
        seed=seed,
    )
    choice = choose_lambda(table, rule=rule, alpha=alpha, epsilon=epsilon, tolerance=tolerance, dependence=dependence)
    return LambdaPath(choice, stack, validation.numpy())
