"""Choosing λ: the whole path trained as one stack, judged on rows held out, by a rule that is named.

The rules are in :mod:`frhsic_core.learning.choice`. The paper's asks the gamma approximation; here the test is by
permutation, which has its level for every n, kernel and dimension of Z.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import torch

from frhsic_core.arrays import ArrayLike, as_pair, as_tensor
from frhsic_core.learning.choice import LambdaChoice, check_rule, choose_lambda
from frhsic_core.learning.penalties import Penalty
from frhsic_core.learning.protocols import make_penalty
from frhsic_core.learning.trained import TrainedStack
from frhsic_core.learning.trainer import Trainer
from frhsic_core.learning.validation import DEPENDENCES, FEWEST_ROWS, validation_table

__all__ = ["LambdaChoice", "LambdaPath", "check_selection", "choose_lambda", "select_lambda"]

LAMBDAS = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)


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


def check_selection(
    *,
    lams: Sequence[float] = LAMBDAS,
    rule: str = "tradeoff",
    alpha: float = 0.05,
    epsilon: float = 1e-3,
    tolerance: float | str = "auto",
    dependence: str = "normalized_hsic",
    validation_fraction: float = 0.15,
    max_rows: int = 1000,
    n_permutations: int = 199,
) -> None:
    """Refuse what :func:`select_lambda` cannot use; O(1), before minutes of training."""
    if isinstance(lams, str) or not np.iterable(lams):
        raise ValueError(f"lams is {lams!r}: give a list of numbers, such as [0, 0.3, 1, 3].")
    if len(lams) == 0 or any(not isinstance(lam, Real) or not 0 <= float(lam) < float("inf") for lam in lams):
        raise ValueError(f"lams is {tuple(lams)}: give at least one value, all zero or positive, and finite.")
    check_rule(rule=rule, alpha=alpha, epsilon=epsilon, tolerance=tolerance)
    if dependence not in DEPENDENCES:
        raise ValueError(f"dependence is {dependence!r}: choose one of {', '.join(map(repr, DEPENDENCES))}.")
    if not 0 < validation_fraction < 1:
        raise ValueError(f"validation_fraction is {validation_fraction}: a share strictly between 0 and 1 is needed.")
    for name, value in (("max_rows", max_rows), ("n_permutations", n_permutations)):
        if int(value) != value or value < 1:
            raise ValueError(f"{name} is {value}: it must be a positive whole number.")


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
    tolerance: float | str = "auto",
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
        See :func:`choose_lambda`; checked before anything is trained.
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
    check_selection(
        lams=lams, rule=rule, alpha=alpha, epsilon=epsilon, tolerance=tolerance, dependence=dependence,
        validation_fraction=validation_fraction, max_rows=max_rows, n_permutations=n_permutations,
    )  # fmt: skip
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
