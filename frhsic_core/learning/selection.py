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
from frhsic_core.learning.validation import DEPENDENCES, FEWEST_ROWS, pooled_table, validation_table

__all__ = ["LambdaChoice", "LambdaPath", "check_selection", "choose_lambda", "select_lambda"]

LAMBDAS = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
MOST_SPLITS, ENOUGH_ROWS = 4, 2000  # of repeats="auto"


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
    repeats: int | str = 1,
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
    counts = {"max_rows": max_rows, "n_permutations": n_permutations, "repeats": 1 if repeats == "auto" else repeats}
    for name, value in counts.items():
        if isinstance(value, str) or int(value) != value or value < 1:
            raise ValueError(f"{name} is {value!r}: it must be a positive whole number.")
    if repeats != "auto" and float(repeats) * validation_fraction > 1:
        raise ValueError(
            f"repeats is {repeats} and validation_fraction {validation_fraction}: together more than all rows; lower "
            "one of them."
        )


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
    repeats: int | str = 1,
    max_rows: int = 1000,
    n_permutations: int = 199,
    sample_weight: ArrayLike | None = None,
    seed: int = 0,
    callback: Callable[..., Any] | None = None,
    **training: Any,
) -> LambdaPath:
    """Hold a part of the training data out, train every λ on the rest as one stack, and choose.

    The caller's test part has no share in any of it. Time: one training of ``len(lams)`` stacked models for each
    repeat.

    Parameters
    ----------
    x, y, s : array_like
        Training data, scaled.
    lams : sequence of float
        The grid; sorted here.
    penalty : str or Penalty
        As in :class:`~frhsic_core.learning.Trainer`.
    rule, alpha, epsilon, tolerance, dependence
        See ``choose_lambda``; checked before anything is trained.
    validation_fraction : float
        Share of the rows held out, at random.
    repeats : int or "auto"
        Splits, with disjoint parts held out, over which performance and dependence are averaged
        (:func:`frhsic_core.learning.validation.pooled_table`). On one small part the choice varies with the
        split, and more rows steady it. ``"auto"`` (the estimators' default): as many as hold 2,000 rows out in
        all, at most four; one for the rules that are a test.
    max_rows, n_permutations
        See :func:`frhsic_core.learning.validation.validation_table`.
    sample_weight : array_like, optional
        For training and for the performance.
    seed : int
        Of the split, of the models (all start alike) and of the test.
    callback : callable, optional
        Passed to ``Trainer.fit``.
    **training
        Passed to ``Trainer``: ``task``, ``protocol``, ``epochs``, ``batch_size``, ``device``, ...

    Returns
    -------
    LambdaPath
        ``.choice`` (λ, reason, table), and of the first split ``.stack`` and ``.validation_rows``.
    """
    check_selection(
        lams=lams, rule=rule, alpha=alpha, epsilon=epsilon, tolerance=tolerance, dependence=dependence,
        validation_fraction=validation_fraction, repeats=repeats, max_rows=max_rows, n_permutations=n_permutations,
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
    if repeats == "auto":
        repeats = min(MOST_SPLITS, -(-ENOUGH_ROWS // held), int(1 / validation_fraction)) if rule == "tradeoff" else 1
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    weight = None if sample_weight is None else as_tensor(sample_weight, name="sample_weight").reshape(-1)
    protocol = training.get("protocol", "recommended")
    penalty = make_penalty(penalty, protocol=protocol) if isinstance(penalty, str) else penalty
    stacks: list[TrainedStack] = []
    tables = []
    for part in range(int(repeats)):
        begin = part * held
        validation = order[begin : begin + held].sort().values
        train = torch.cat([order[:begin], order[begin + held :]]).sort().values
        stack = Trainer(
            x[train],
            y[train],
            s[train],
            penalty=penalty,
            lam=sorted(float(lam) for lam in lams),
            seeds=seed,
            sample_weight=None if weight is None else weight[train],
            **training,
        ).fit(callback=callback)
        if stack.interrupted and stacks:
            stacks[0].interrupted = True  # half-trained models are no evidence: the splits before them decide
            break
        stacks.append(stack)
        tables.append(
            validation_table(
                stack, x[validation], y[validation], s[validation],
                sample_weight=None if weight is None else weight[validation], condition=penalty.condition,
                max_rows=max_rows, n_permutations=n_permutations, alpha=alpha, seed=seed,
            )
        )  # fmt: skip
        if stack.interrupted:
            break
    choice = choose_lambda(
        pooled_table(tables), rule=rule, alpha=alpha, epsilon=epsilon, tolerance=tolerance, dependence=dependence
    )
    return LambdaPath(choice, stacks[0], order[:held].sort().values.numpy())
