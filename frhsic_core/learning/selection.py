"""Choosing λ: train the grid as one stack, judge it on samples held out, and apply a rule.

The rules are in :mod:`frhsic_core.learning.rules`. The paper (``sec:adaptive_lambda``) uses the
gamma approximation of the independence test. Here it is a permutation test, which keeps its level
for every n, kernel and dimension of Z.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from frhsic_core._arrays import ArrayLike, as_pair, as_tensor, require_same_rows
from frhsic_core.bounds import gdp_bound
from frhsic_core.conditional import gdp
from frhsic_core.joint import hsic_test, normalized_hsic
from frhsic_core.joint.given import Given, conditional_hsic
from frhsic_core.learning.data import TrainingData
from frhsic_core.learning.penalties import Penalty, make_penalty
from frhsic_core.learning.performance import Judged, judge_classes, judge_numbers
from frhsic_core.learning.rules import LambdaChoice, LambdaSelection, choose_lambda, pooled_table
from frhsic_core.learning.stack import TrainedStack, cpu_threads
from frhsic_core.learning.trainer import Trainer, TrainingSettings, resolve_device

FEWEST_ROWS = 20  # with fewer validation samples a test has almost no power


@dataclass(frozen=True)
class LambdaPath:
    """A choice of λ, the models that were compared (in the table's order) and the validation rows.

    ``rarer`` is the number of samples of the rarer class that judged the models of all splits.
    """

    choice: LambdaChoice
    stack: TrainedStack
    validation_rows: np.ndarray
    rarer: int

    @property
    def index(self) -> int:
        """Index of the chosen model in the stack."""
        return int(self.choice.table["chosen"].to_numpy().argmax())


def select_lambda(
    x: ArrayLike | TrainingData,
    y: ArrayLike | None = None,
    s: ArrayLike | None = None,
    *,
    selection: LambdaSelection | Mapping[str, Any] | None = None,
    penalty: str | Penalty = "frhsic",
    settings: TrainingSettings | None = None,
    random_state: int = 0,
    callback: Callable[..., Any] | None = None,
    **changes: Any,
) -> LambdaPath:
    """Hold out a part of the training data, train every λ on the remainder, and choose.

    The models of all λ are one stack. The test part of the caller takes no part in this. Each split
    trains ``len(lams)`` stacked models once.

    Parameters
    ----------
    x, y, s : array_like
        Training data, scaled: ``(n, d)``, ``(n,)`` and ``(n,)`` or ``(n, p)``. A
        :class:`~frhsic_core.learning.TrainingData` as ``x`` is used without further checks; its
        weights also count in the performance.
    selection : LambdaSelection or dict, optional
        Grid, rule and validation.
    penalty : str or Penalty
        As in ``Trainer``.
    settings : TrainingSettings, optional
        As in ``Trainer``.
    random_state : int
        Seed of the split, of the models (all start with the same weights) and of the test.
    callback : callable, optional
        Function that is passed to ``Trainer.fit``.
    **changes
        Values of :class:`~frhsic_core.learning.LambdaSelection` (``lams``, ``rule``, ...), which replace those of
        ``selection``, and of ``TrainingSettings`` (``epochs``, ``widths``, ...), which replace
        those of ``settings``.

    Returns
    -------
    LambdaPath
        ``.choice`` (λ, reason, table), and ``.stack`` and ``.validation_rows`` of the first split.
    """
    names = {each.name for each in fields(LambdaSelection)}
    of_selection = {name: value for name, value in changes.items() if name in names}
    of_training = {name: value for name, value in changes.items() if name not in names}
    selection = LambdaSelection.of(selection, **of_selection)
    settings = TrainingSettings.of(settings, **of_training)
    require_same_rows(x, s, names=("X", "s"))
    data = x
    if not isinstance(data, TrainingData):
        data = TrainingData.from_arrays(x, y, s, dtype=torch.float64, device="cpu")
    parts = selection.held_out(data.n, random_state=random_state)
    if data.datasets != 1:
        raise ValueError(
            f"X has shape {tuple(data.x.shape)}: λ is chosen for one dataset, (n, d), at a time."
        )
    if len(parts[0]) < FEWEST_ROWS:
        raise ValueError(
            f"{data.n} rows leave {len(parts[0])} for validation: at least {FEWEST_ROWS} are "
            "needed "
            "to choose λ. Give lam a number, or raise validation_fraction."
        )
    if isinstance(penalty, str):
        penalty = make_penalty(penalty, protocol=settings.protocol)
    stacks: list[TrainedStack] = []
    tables: list[pd.DataFrame] = []
    device = resolve_device(settings.device)
    for held in parts:
        train = _without(data, held).to(dtype=settings.dtype, device=device)
        train.require_variation()
        trainer = Trainer(
            train, penalty=penalty, lam=selection.lams, seeds=random_state, settings=settings
        )
        stack = trainer.fit(callback=callback)
        table = validation_table(
            stack,
            data.part(held),
            condition=penalty.condition,
            random_state=random_state,
            **asdict(selection),
        )
        stacks.append(stack)
        tables.append(table)
    choice = choose_lambda(pooled_table(tables), selection=selection)
    judged = data.y[0, torch.cat(parts)]
    positive = int((judged > 0.5).sum())
    rarer = min(positive, len(judged) - positive)
    return LambdaPath(choice, stacks[0], parts[0].numpy(), rarer)


def _without(data: TrainingData, held: Tensor) -> TrainingData:
    """Return the samples that are not held out."""
    trains = torch.ones(data.n, dtype=torch.bool)
    trains[held] = False
    return data.part(trains.nonzero().flatten())


@torch.no_grad()
def validation_table(
    stack: TrainedStack,
    x: ArrayLike | TrainingData,
    y: ArrayLike | None = None,
    s: ArrayLike | None = None,
    *,
    condition: str | None = None,
    random_state: int = 0,
    **options: Any,
) -> pd.DataFrame:
    """Judge every model of a stack on samples that it was not trained on; one row for each model.

    The columns are ``lam``, ``performance`` (AUC or R²), ``standard_error`` (of the difference
    between this performance and that of the smallest λ on the same samples), ``hsic`` (biased),
    ``normalized_hsic``, ``gdp`` (of probabilities or predictions), ``statistic`` = n·HSIC,
    ``threshold`` on the same scale and ``pvalue``. The rule ``"guarantee"`` adds ``gdp_bound``. The
    cost is O(B r²) for each model with r samples and B permutations.

    Parameters
    ----------
    stack : TrainedStack
        One model for each λ.
    x, y, s : array_like
        The validation part, scaled in the same way as the training part. A
        :class:`~frhsic_core.learning.TrainingData` as ``x`` is used without further checks; its
        weights count in the performance.
    condition : {None, "positives", "labels", "controls"}
        ``"positives"`` measures the dependence among samples with y = 1 only (equal opportunity).
        ``"labels"`` and ``"controls"`` measure ``hsic``, ``normalized_hsic`` and the test given y
        or given the control features of a TrainingData; ``gdp`` is still that of all samples.
    random_state : int
        Seed of the permutations.
    **options
        Options of the test: ``max_rows``, ``n_permutations`` and ``alpha`` of
        :class:`~frhsic_core.learning.LambdaSelection`.
    """
    selection = LambdaSelection.of(None, **options)
    data = x
    if not isinstance(data, TrainingData):
        data = _validation_data(x, y, s, task=stack.task)
    assert data.s is not None
    z, output = stack.forward(data.x[0])
    z = z.double().cpu()
    output = output.double().cpu()
    s = data.s[0].double().cpu()
    target = data.y[0].double().cpu()
    prediction = output
    if data.task == "classification":
        prediction = torch.sigmoid(output)
    rows = torch.arange(len(target))
    if condition == "positives":
        rows = (target > 0.5).nonzero().flatten()
    if len(rows) < FEWEST_ROWS:
        raise ValueError(
            f"the validation part has {len(rows)} rows that count: at least {FEWEST_ROWS} are "
            "needed to judge dependence. Raise validation_fraction, or give lam a number."
        )
    spaced = torch.linspace(0, len(rows) - 1, min(len(rows), selection.max_rows))
    keep = rows[spaced.round().long()]
    given = _given(data, target, keep, condition)
    tested = z[:, keep]
    with cpu_threads(len(z) * len(keep) ** 2):
        test = hsic_test(
            tested,
            s[keep],
            given=given,
            method="permutation",
            n_permutations=selection.n_permutations,
            alpha=selection.alpha,
            random_state=torch.Generator().manual_seed(random_state),
        )
        attribute = s[keep].expand(len(z), -1, -1)
        if given is None:
            normalized = normalized_hsic(tested, attribute)
        else:
            normalized = conditional_hsic(tested, attribute, given, estimator="normalized")
        gaps = [gdp(prediction[:, rows], s[rows, a]) for a in range(s.shape[-1])]
    judged = _judged(data, output, target, first=int(stack.lam.cpu().argmin()))
    table = pd.DataFrame(
        {
            # 0.1, not its neighbor in single precision.
            "lam": [float(f"{lam:.7g}") for lam in stack.lam.cpu().numpy()],
            "performance": judged.performance,
            "standard_error": judged.standard_error,
            "hsic": test.hsic.numpy(),
            "normalized_hsic": normalized.numpy(),
            "gdp": torch.stack(gaps).amax(0).numpy(),
            "statistic": test.statistic.numpy(),
            "threshold": test.threshold.numpy(),
            "pvalue": test.pvalue.numpy(),
        }
    )
    if selection.rule == "guarantee":
        table["gdp_bound"] = _guarantees(data, prediction, s, delta=selection.delta)
    return table


def _validation_data(x: ArrayLike, y: ArrayLike, s: ArrayLike, *, task: str) -> TrainingData:
    """Return arrays as one dataset without weights."""
    features, attribute = as_pair(x, s, names=("X", "s"), torch=True)
    target = as_tensor(y, name="y").reshape(1, -1)
    return TrainingData(
        features.unsqueeze(0), target, attribute.unsqueeze(0), sample_weight=None, task=task
    )


def _given(
    data: TrainingData, target: Tensor, keep: Tensor, condition: str | None
) -> Tensor | Given | None:
    """Return what the dependence of these rows is measured given: y, the controls or nothing."""
    if condition == "labels":
        if data.task == "classification":
            return target[keep].long()
        return target[keep]
    if condition == "controls":
        assert data.control is not None
        return Given.of_rows(data.control[0, keep.to(data.control.device)])
    return None


def _guarantees(
    data: TrainingData, probabilities: Tensor, s: Tensor, *, delta: float
) -> list[float]:
    """Return the bound on GDP of each model, corrected for the number of models."""
    if data.task != "classification" or s.shape[-1] != 1 or data.sample_weight is not None:
        raise ValueError(
            "rule is 'guarantee': it is for probabilities and one attribute, without sample_weight."
        )
    bounds = []
    for scores in probabilities:
        found = gdp_bound(scores, sensitive_features=s, delta=delta, candidates=len(probabilities))
        bounds.append(found.bound)
    return bounds


def _judged(data: TrainingData, output: Tensor, target: Tensor, *, first: int) -> Judged:
    """Return AUC or R² of every model, and the standard error of its change from ``first``."""
    weight = torch.ones_like(target)
    if data.sample_weight is not None:
        weight = data.sample_weight[0].cpu().to(target)
    judge = judge_classes if data.task == "classification" else judge_numbers
    return judge(output.numpy(), target.numpy(), weight.numpy(), first=first)
