"""Choosing λ: train the whole grid as one stack, judge it on samples that were held out, and apply a rule.

The paper (``sec:adaptive_lambda``) goes up a grid and stops at the first λ whose representation an independence test
does not reject. "Not rejected" does not mean "independent": with few samples the test has little power, and with many
samples it rejects dependence that is too small to matter. The other two rules take this into account. The paper uses
the gamma approximation of the test. Here it is a permutation test, which keeps its level for every n, kernel and
dimension of Z.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
import pandas as pd
import torch
from sklearn.isotonic import isotonic_regression
from sklearn.utils._param_validation import Interval, StrOptions, validate_parameter_constraints
from torch import Tensor

from frhsic_core._arrays import ArrayLike, as_pair, as_tensor, require_same_rows
from frhsic_core._choices import one_of
from frhsic_core.bounds import gdp_bound
from frhsic_core.conditional import gdp
from frhsic_core.joint._given import Given, conditional_hsic
from frhsic_core.joint._hsic import normalized_hsic
from frhsic_core.joint._independence.decision import hsic_test
from frhsic_core.learning._data import TrainingData
from frhsic_core.learning._penalties import Penalty, make_penalty
from frhsic_core.learning._stack import TrainedStack, cpu_threads, require_lambdas
from frhsic_core.learning._trainer import Trainer, TrainingSettings, resolve_device

RULES = ("independence", "practical", "tradeoff", "guarantee")
LEAST_TOLERANCE = 0.01  # tolerance="auto" always allows this much
MOST_OF = 0.8  # of the possible reduction in dependence is enough for the rule "tradeoff"
FEWEST_ROWS = 20  # with fewer validation samples a test has almost no power
ENOUGH_ROWS = (
    2000  # validation samples that validation_fraction="auto" and the number of splits aim at
)
MOST_SPLITS = 3
LEAST_HELD_OUT = 0.15  # shares of the samples between which validation_fraction="auto" stays
MOST_HELD_OUT = 0.3
_SHARE = Interval(Real, 0, 1, closed="neither")
_COUNT = Interval(Integral, 1, None, closed="left")
_LIMITS: dict[str, Any] = {
    "alpha": [_SHARE],
    "epsilon": [Interval(Real, 0, None, closed="neither")],
    "tolerance": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
    "guaranteed_gdp": [
        Interval(Real, 0, 0.5, closed="right")
    ],  # 0.5 is the largest GDP of probabilities
    "delta": [_SHARE],
    "validation_fraction": [_SHARE, StrOptions({"auto"})],
    "max_rows": [_COUNT],
    "n_permutations": [_COUNT],
}


@dataclass(frozen=True)
class LambdaSelection:
    """How λ is chosen: the grid, the rule and the validation. All values are checked when it is created.

    The rules are:

    * ``"independence"`` (the paper's): the smallest λ at which the test does not reject, p > α. A larger α asks for
      more.
    * ``"practical"`` (its variant): the smallest λ with HSIC < ε or p > α. A smaller ε asks for more.
    * ``"tradeoff"``: the smallest λ that has four fifths of the reduction in dependence that is possible within
      ``tolerance`` of the performance at the smallest λ. The last fifth often needs a λ many times as large, and chance
      would decide how many times. The dependence is the mean of the normalized HSIC of Z and of GDP, each relative to
      that at the smallest λ and at most 1. Both curves are first made monotone in λ by isotonic regression, so that one
      lucky model does not decide. With fewer than 2,000 validation samples, up to three splits with disjoint
      validation parts are averaged. A larger tolerance never gives a smaller λ.
    * ``"guarantee"``: the smallest λ whose upper bound on GDP (:func:`frhsic_core.gdp_bound`, corrected for the number
      of λ) is at most ``guaranteed_gdp``. The chosen model is the one that was trained without the samples held out, so
      it keeps the guarantee. It is for probabilities and one attribute, without sample weights.

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
        Performance (accuracy or R²) that the rule ``"tradeoff"`` may give up. ``"auto"`` is two standard errors of the
        difference between the two models' performances on the same samples, and at least 0.01.
    guaranteed_gdp : float
        Largest GDP for the rule ``"guarantee"``.
    delta : float
        Largest probability that the guarantee does not hold.
    validation_fraction : float or "auto"
        Share of the samples that is held out, at random. ``"auto"`` holds out 2,000 samples, but at least 15 % and at
        most 30 % of all.
    max_rows : int
        Number of validation samples, evenly spaced, for HSIC and its test. GDP and the performance use all.
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
        object.__setattr__(
            self, "lams", tuple(sorted(require_lambdas(self.lams, given=self.lams, name="lams")))
        )
        one_of("rule", self.rule, RULES)
        validate_parameter_constraints(_LIMITS, vars(self), caller_name="LambdaSelection")

    @classmethod
    def of(cls, selection: LambdaSelection | Mapping[str, Any] | None, **changes: Any) -> Self:
        """Return a selection from a dictionary, from another selection or from nothing, with some values changed."""
        if isinstance(selection, cls):
            return replace(selection, **changes)
        if selection is not None and not isinstance(selection, Mapping):
            raise ValueError(
                f"selection is {selection!r}: give a dictionary, such as {{'rule': 'tradeoff'}}, a LambdaSelection or "
                "None."
            )
        values = {**(selection or {}), **changes}
        known = [each.name for each in fields(cls)]
        unknown = sorted(str(name) for name in values if name not in known)
        if unknown:
            raise ValueError(f"selection has no option {unknown}: choose from {', '.join(known)}.")
        return cls(**values)

    def held_out(self, rows: int, *, random_state: int) -> list[Tensor]:
        """Return the samples that each split holds out, which no two splits share."""
        order = torch.randperm(rows, generator=torch.Generator().manual_seed(random_state))
        share = self.validation_fraction
        if isinstance(share, str):
            share = min(MOST_HELD_OUT, max(LEAST_HELD_OUT, ENOUGH_ROWS / rows))
        size = int(share * rows)
        # A guarantee and a test are about one model, and the other splits train models of their own.
        wanted = min(MOST_SPLITS, -(-ENOUGH_ROWS // max(size, 1))) if self.rule == "tradeoff" else 1
        return [
            part.sort().values for part in order.split(max(size, 1))[: min(wanted, int(1 / share))]
        ]


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


@dataclass(frozen=True)
class LambdaPath:
    """A choice of λ, the models that were compared (in the order of the table) and the validation samples."""

    choice: LambdaChoice
    stack: TrainedStack
    validation_rows: np.ndarray

    @property
    def index(self) -> int:
        """Index of the chosen model in the stack."""
        return int(self.choice.table["chosen"].to_numpy().argmax())


# Training and judging the grid ----------------------------------------------------------------------------------------


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
    """Hold out a part of the training data, train every λ on the remainder as one stack, and choose.

    The test part of the caller takes no part in this. Each split trains ``len(lams)`` stacked models once.

    Parameters
    ----------
    x, y, s : array_like
        Training data, scaled: ``(n, d)``, ``(n,)`` and ``(n,)`` or ``(n, p)``. A
        :class:`~frhsic_core.learning.TrainingData` as ``x`` is used without further checks; its weights also count in
        the performance.
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
        Values of :class:`LambdaSelection` (``lams``, ``rule``, ...), which replace those of ``selection``, and of
        ``TrainingSettings`` (``epochs``, ``widths``, ...), which replace those of ``settings``.

    Returns
    -------
    LambdaPath
        ``.choice`` (λ, reason, table), and ``.stack`` and ``.validation_rows`` of the first split.
    """
    chosen = {
        each.name: changes.pop(each.name)
        for each in fields(LambdaSelection)
        if each.name in changes
    }
    selection = LambdaSelection.of(selection, **chosen)
    settings = TrainingSettings.of(settings, **changes)
    require_same_rows(x, s, names=("X", "s"))
    data = (
        x
        if isinstance(x, TrainingData)
        else TrainingData.from_arrays(x, y, s, dtype=torch.float64, device="cpu")
    )
    parts = selection.held_out(data.n, random_state=random_state)
    if data.datasets != 1:
        raise ValueError(
            f"X has shape {tuple(data.x.shape)}: λ is chosen for one dataset, (n, d), at a time."
        )
    if len(parts[0]) < FEWEST_ROWS:
        raise ValueError(
            f"{data.n} rows leave {len(parts[0])} for validation: at least {FEWEST_ROWS} are needed to choose λ. Give "
            "lam a number, or raise validation_fraction."
        )
    if isinstance(penalty, str):
        penalty = make_penalty(penalty, protocol=settings.protocol)
    stacks: list[TrainedStack] = []
    tables: list[pd.DataFrame] = []
    judged = asdict(selection) | {"condition": penalty.condition, "random_state": random_state}
    for held in parts:
        trains = torch.ones(data.n, dtype=torch.bool)
        trains[held] = False
        train = data.part(trains.nonzero().flatten()).to(
            dtype=settings.dtype, device=resolve_device(settings.device)
        )
        train.require_variation()
        trainer = Trainer(
            train, penalty=penalty, lam=selection.lams, seeds=random_state, settings=settings
        )
        stacks.append(trainer.fit(callback=callback))
        tables.append(validation_table(stacks[-1], data.part(held), **judged))
    choice = choose_lambda(pooled_table(tables), selection=selection)
    return LambdaPath(choice, stacks[0], parts[0].numpy())


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
    """Judge every model of a stack on samples that it was not trained on; return one row for each model.

    The columns are ``lam``, ``performance`` (accuracy or R²), ``standard_error`` (of the difference between this
    performance and that of the smallest λ on the same samples), ``hsic`` (biased), ``normalized_hsic``, ``gdp`` (of
    probabilities or predictions), ``statistic`` = n·HSIC, ``threshold`` on the same scale and ``pvalue``. The rule
    ``"guarantee"`` adds ``gdp_bound``. The cost is O(B r²) for each model with r samples and B permutations.

    Parameters
    ----------
    stack : TrainedStack
        One model for each λ.
    x, y, s : array_like
        The validation part, scaled in the same way as the training part. A
        :class:`~frhsic_core.learning.TrainingData` as ``x`` is used without further checks; its weights count in
        the performance.
    condition : {None, "positives", "labels", "controls"}
        ``"positives"`` measures the dependence among samples with y = 1 only (equal opportunity). ``"labels"`` and
        ``"controls"`` measure ``hsic``, ``normalized_hsic`` and the test given y or given the control features of a
        TrainingData; ``gdp`` is still that of all samples.
    random_state : int
        Seed of the permutations.
    **options
        Options of the test: ``max_rows``, ``n_permutations`` and ``alpha`` of :class:`LambdaSelection`.
    """
    selection = LambdaSelection.of(None, **options)
    if isinstance(x, TrainingData):
        data = x
    else:
        x, s = as_pair(x, s, names=("X", "s"))
        data = TrainingData(
            x.unsqueeze(0), as_tensor(y, name="y").reshape(1, -1), s.unsqueeze(0), None, stack.task
        )
    assert data.s is not None
    z, output = (part.double().cpu() for part in stack.forward(data.x[0]))
    s = data.s[0].double().cpu()
    target = data.y[0].double().cpu()
    weight = torch.ones_like(target) if data.sample_weight is None else data.sample_weight[0].cpu()
    weight = (weight / weight.sum()).to(target)
    prediction = torch.sigmoid(output) if data.task == "classification" else output
    rows = (
        (target > 0.5).nonzero().flatten()
        if condition == "positives"
        else torch.arange(len(target))
    )
    if len(rows) < FEWEST_ROWS:
        raise ValueError(
            f"the validation part has {len(rows)} rows that count: at least {FEWEST_ROWS} are needed to judge "
            "dependence. Raise validation_fraction, or give lam a number."
        )
    keep = rows[torch.linspace(0, len(rows) - 1, min(len(rows), selection.max_rows)).round().long()]
    given: Tensor | Given | None = None
    if condition == "labels":
        given = target[keep].long() if data.task == "classification" else target[keep]
    elif condition == "controls":
        assert data.control is not None
        given = Given.of_rows(data.control[0, keep.to(data.control.device)])
    with cpu_threads(len(z) * len(keep) ** 2):
        test = hsic_test(
            z[:, keep],
            s[keep],
            given=given,
            method="permutation",
            n_permutations=selection.n_permutations,
            alpha=selection.alpha,
            random_state=torch.Generator().manual_seed(random_state),
        )
        attribute = s[keep].expand(len(z), -1, -1)
        if given is None:
            normalized = normalized_hsic(z[:, keep], attribute)
        else:
            normalized = conditional_hsic(z[:, keep], attribute, given, estimator="normalized")
        gaps = torch.stack([gdp(prediction[:, rows], s[rows, a]) for a in range(s.shape[-1])]).amax(
            0
        )
    performance, error = _performance(
        data.task, output, target, weight, first=int(stack.lam.cpu().argmin())
    )
    table = pd.DataFrame(
        {
            "lam": [
                float(f"{lam:.7g}") for lam in stack.lam.cpu().numpy()
            ],  # 0.1, not its single-precision neighbor
            "performance": performance.numpy(),
            "standard_error": error.numpy(),
            "hsic": test.hsic.numpy(),
            "normalized_hsic": normalized.numpy(),
            "gdp": gaps.numpy(),
            "statistic": test.statistic.numpy(),
            "threshold": test.threshold.numpy(),
            "pvalue": test.pvalue.numpy(),
        }
    )
    if selection.rule == "guarantee":
        if data.task != "classification" or s.shape[-1] != 1 or data.sample_weight is not None:
            raise ValueError(
                "rule is 'guarantee': it is for probabilities and one attribute, without sample_weight."
            )
        bounded: dict[str, Any] = {
            "sensitive_features": s,
            "delta": selection.delta,
            "candidates": len(prediction),
        }
        table["gdp_bound"] = [gdp_bound(scores, **bounded).bound for scores in prediction]
    return table


def pooled_table(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Average the tables of several splits with disjoint validation parts.

    The standard error is that of the mean, √(Σ SE²)/R for R parts, because the parts share no samples. The test
    (``statistic``, ``threshold``, ``pvalue``) is that of the first part.
    """
    pooled = tables[0].copy()
    for name in ("performance", "hsic", "normalized_hsic", "gdp"):
        pooled[name] = np.mean([table[name] for table in tables], axis=0)
    errors = np.array([table["standard_error"] for table in tables])
    pooled["standard_error"] = np.sqrt((errors**2).sum(0)) / len(tables)
    return pooled


def _performance(
    task: str, output: Tensor, target: Tensor, weight: Tensor, *, first: int
) -> tuple[Tensor, Tensor]:
    """Return accuracy or R² of every model, and the standard error of its difference from that of model ``first``."""
    if task == "classification":
        score = ((output > 0) == (target > 0.5)).to(output.dtype)
        performance = (score * weight).sum(-1)
    else:
        mean = (weight * target).sum()
        total = (weight * (target - mean).square()).sum().clamp_min(1e-30)
        score = -(output - target).square() / total
        performance = 1.0 + (weight * score).sum(-1)
    change = score - score[first]
    change = change - (weight * change).sum(-1, keepdim=True)
    # The standard error of a mean with weights that sum to one; with equal weights it is sd/√n.
    rows = 1.0 / weight.square().sum()
    error = (weight.square() * change.square()).sum(-1).sqrt() * (
        rows / (rows - 1.0).clamp_min(1.0)
    ).sqrt()
    return performance, error


# Rules ----------------------------------------------------------------------------------------------------------------


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
        Columns ``lam``, ``performance`` (larger is better) and what the rule needs of ``hsic``, ``pvalue``,
        ``normalized_hsic``, ``gdp``, ``gdp_bound`` and, for ``tolerance="auto"``, ``standard_error`` (0 without it).
    selection : LambdaSelection or dict, optional
        The rule and its limits.
    **changes
        Values of :class:`LambdaSelection` (``rule``, ``alpha``, ...), which replace those of ``selection``.

    Examples
    --------
    >>> table = pd.DataFrame({"lam": [0.0, 1.0, 10.0], "performance": [0.85, 0.845, 0.80], "hsic": [0.02, 0.002, 5e-4],
    ...                       "pvalue": [0.005, 0.005, 0.40], "normalized_hsic": [0.2, 0.1, 0.01],
    ...                       "gdp": [0.1, 0.06, 0.01]})
    >>> [choose_lambda(table, rule=rule).lam for rule in ("independence", "practical", "tradeoff")]
    [10.0, 10.0, 1.0]
    >>> choose_lambda(table.assign(standard_error=[0.0, 0.01, 0.03])).lam
    10.0
    """
    selection = LambdaSelection.of(selection, **changes)
    table = table.sort_values("lam", ignore_index=True)
    lams = table["lam"].to_numpy(dtype=float)
    if selection.rule == "tradeoff":
        index, reason = _tradeoff(table, selection.tolerance)
        satisfied = True
    else:
        if selection.rule == "guarantee":
            met = table["gdp_bound"].to_numpy() <= selection.guaranteed_gdp
            wanted = f"a GDP that is guaranteed to be at most {selection.guaranteed_gdp:g}"
        else:
            met = table["pvalue"].to_numpy() > selection.alpha
            wanted = f"p > {selection.alpha:g}"
        if selection.rule == "practical":
            met = met | (table["hsic"].to_numpy() < selection.epsilon)
            wanted += f" or HSIC < {selection.epsilon:g}"
        satisfied = bool(met.any())
        index = int(met.argmax()) if satisfied else len(lams) - 1
        reason = f"the smallest λ with {wanted}"
        if not satisfied:
            reason = f"no λ of the grid has {wanted}: the largest is taken"
    table["chosen"] = np.arange(len(table)) == index
    return LambdaChoice(float(lams[index]), selection.rule, satisfied, reason, table)


def _tradeoff(table: pd.DataFrame, tolerance: float | str) -> tuple[int, str]:
    """Return the row of the chosen λ and the reason."""
    performance = isotonic_regression(table["performance"].to_numpy(dtype=float), increasing=False)
    measures = table[["normalized_hsic", "gdp"]].to_numpy(dtype=float)
    # A measure that only chance gives, such as the HSIC of few samples, must not outweigh the other by rising.
    relative = np.minimum(measures / np.maximum(measures[0], np.finfo(float).tiny), 1.0)
    curve = isotonic_regression(relative.mean(1), increasing=False)
    if tolerance == "auto":
        error = (
            table["standard_error"].to_numpy(dtype=float)
            if "standard_error" in table
            else np.zeros(len(table))
        )
        allowed = np.maximum(2.0 * error, LEAST_TOLERANCE)
        shown = f"two standard errors (at least {LEAST_TOLERANCE:g})"
    else:
        allowed = np.full(len(table), float(tolerance))
        shown = f"{tolerance:g}"
    lowest = curve[performance >= performance[0] - allowed].min()
    index = int((curve <= curve[0] - MOST_OF * (curve[0] - lowest)).argmax())
    most = f"{MOST_OF:.0%} of the reduction in dependence"
    return (
        index,
        f"{most} that is possible within {shown} of the performance at λ = {table['lam'].iloc[0]:g}",
    )
