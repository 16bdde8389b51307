"""What an estimator says of a fit that a user may not have meant."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.special import expit

__all__ = [
    "ConstantPredictionWarning",
    "InterruptedWarning",
    "MissingAttributeWarning",
    "NoGainWarning",
    "PositiveClassWarning",
    "SmallBatchWarning",
    "UndertrainedWarning",
    "UnmetRuleWarning",
    "UnpenalisedWarning",
    "warn_if_constant",
    "warn_if_no_gain",
    "warn_if_small_batch",
    "warn_if_undertrained",
    "warn_of_choice",
    "warn_of_missing_attribute",
]

FLAT = 1e-2  # a spread of the (standardised) outputs below it is none
# Steps × learning rate, about how far Adam can move a weight. Below these, models on five sets of data were still far
# from where they ended: with a penalty (which first makes Z constant) below 1, without one below 0.3.
SHORT, SHORT_UNPENALISED = 1.0, 0.3
CHANCE = 1.645  # standard errors: one-sided, 5 %
LEAST_GAIN = 0.01  # share of a constant's error that a model must save to be any better
FEWEST_ROWS = 16  # in a batch: below it a measure of dependence is mostly noise
LARGE_RATE = 0.1  # of Adam: a step of this size in every weight undoes what was learnt


class MissingAttributeWarning(UserWarning):
    """λ is positive but there is no attribute: the model was trained without a penalty."""


class InterruptedWarning(UserWarning):
    """Ctrl-C ended the training early; the model as it stood was kept."""


class UnpenalisedWarning(UserWarning):
    """``lam="auto"`` chose λ = 0: the model depends on the attribute as much as any."""


class UnmetRuleWarning(UserWarning):
    """``lam="auto"`` found no λ that meets the rule, and took the largest."""


class ConstantPredictionWarning(UserWarning):
    """The fitted model predicts the same for every training row."""


class NoGainWarning(UserWarning):
    """The fitted model is no better on its own training rows than a constant."""


class UndertrainedWarning(UserWarning):
    """The steps were so few that the model is not what it would become."""


class SmallBatchWarning(UserWarning):
    """So few rows of a batch count that the penalty is mostly noise."""


class PositiveClassWarning(UserWarning):
    """Equal opportunity protects one class, and the labels do not say which is the favourable one."""


def warn_of_missing_attribute(name: str, *, lam: float | str, stacklevel: int) -> None:
    """Warn (:class:`MissingAttributeWarning`) that a penalty was asked for and there is nothing to penalise."""
    warnings.warn(
        f"sensitive_features is missing: {name}(lam={lam!r}) is trained WITHOUT a penalty and depends on the attribute "
        "as much as any model. Pass fit(X, y, sensitive_features=s), or lam=0.",
        MissingAttributeWarning,
        stacklevel=stacklevel + 1,
    )


def is_constant(output: np.ndarray, *, classes: bool) -> np.ndarray:
    """Whether outputs ``(..., n)`` have no spread or, of a classifier, are one class for all rows."""
    flat = output.std(-1) < FLAT
    return flat | (output > 0).all(-1) | (output <= 0).all(-1) if classes else flat


def _advice(lam: float, learning_rate: float) -> str:
    if learning_rate >= LARGE_RATE:
        return f"a smaller learning_rate ({learning_rate:g} is large for Adam; 0.001 is the default)"
    return "a lower lam (a tenth of it, say), or more epochs" if lam > 0 else "more epochs, or a larger learning_rate"


def warn_if_constant(
    output: np.ndarray, *, classes: bool, lam: float, learning_rate: float, tried: np.ndarray | None, stacklevel: int
) -> bool:
    """Warn (:class:`ConstantPredictionWarning`) when the model predicts the same for every training row.

    Parameters
    ----------
    output : ndarray
        Logits, or standardised predictions of a regression, ``(n,)``.
    classes : bool
        Whether the estimator predicts classes: then one class for all rows is enough to warn.
    lam, learning_rate : float
        Of the model, for the advice.
    tried : ndarray, optional
        With ``lam="auto"``, the outputs of every model tried, ``(models, n)``.
    stacklevel : int
        As in :func:`warnings.warn`, for the caller of this function.
    """
    if not is_constant(output, classes=classes):
        return False
    if classes:
        low, high = expit([output.min(), output.max()])
        what = f"one class for every training row (probabilities from {low:.2f} to {high:.2f})"
    else:
        what = f"almost one value for every training row (a standard deviation of {output.std():.1g})"
    others = "; so did every λ tried" if tried is not None and is_constant(tried, classes=classes).all() else ""
    rare = " For a rare class, judge the probabilities instead." if classes else ""
    warnings.warn(
        f"the model (λ = {lam:g}) predicts {what}{others}. Try {_advice(lam, learning_rate)}.{rare}",
        ConstantPredictionWarning,
        stacklevel=stacklevel + 1,
    )
    return True


def warn_if_no_gain(
    output: np.ndarray, y: np.ndarray, *, task: str, lam: float, learning_rate: float, stacklevel: int
) -> bool:
    """Warn (:class:`NoGainWarning`) when a constant does as well on the training rows, within chance.

    The errors of model and constant (the majority class, or the mean) are compared row by row; the mean saving must
    exceed 1.645 of its standard errors and one per cent of the constant's error.

    Parameters
    ----------
    output, y : ndarray
        Logits and 0 or 1, or predictions and numbers, ``(n,)``.
    task : {"classification", "regression"}
        Which.
    lam, learning_rate, stacklevel
        As in :func:`warn_if_constant`.
    """
    if task == "classification":
        majority = float(y.mean() > 0.5)
        constant, own = (y != majority).astype(float), ((output > 0) != (y > 0.5)).astype(float)
        shown = f"accuracy {1 - own.mean():.3f}, the larger class alone {1 - constant.mean():.3f}"
    else:
        constant, own = (y - y.mean()) ** 2, (y - output) ** 2
        shown = f"R² {1 - own.mean() / max(constant.mean(), 1e-300):.3f}"
    saved = constant - own
    if saved.mean() > max(CHANCE * saved.std() / np.sqrt(len(saved)), LEAST_GAIN * constant.mean()):
        return False
    warnings.warn(
        f"on its own training rows the model (λ = {lam:g}) is no better than a constant ({shown}): that it depends "
        f"little on the attribute then says nothing. Try {_advice(lam, learning_rate)}.",
        NoGainWarning,
        stacklevel=stacklevel + 1,
    )
    return True


def warn_if_undertrained(
    *, epochs: int, steps_per_epoch: int, learning_rate: float, penalised: bool, stacklevel: int
) -> bool:
    """Warn (:class:`UndertrainedWarning`) when steps × learning rate is below 1, or without a penalty below 0.3."""
    steps, least = epochs * steps_per_epoch, SHORT if penalised else SHORT_UNPENALISED
    if steps * learning_rate >= least:
        return False
    needed = int(np.ceil(least / (learning_rate * steps_per_epoch)))
    looks = ", and looks fairer than it will be" if penalised else ""
    warnings.warn(
        f"{steps} steps of learning rate {learning_rate:g} are few: the model is hardly trained{looks}. Give "
        f"epochs={needed} or more ({needed * steps_per_epoch} steps), or leave epochs='auto'.",
        UndertrainedWarning,
        stacklevel=stacklevel + 1,
    )
    return True


def warn_if_small_batch(rows: float, *, batch_size: int, stacklevel: int) -> None:
    """Warn (:class:`SmallBatchWarning`) when fewer than 16 rows of a batch count on average."""
    if rows < FEWEST_ROWS:
        warnings.warn(
            f"batch_size={batch_size} leaves about {rows:.2g} rows of a batch to the penalty, which is mostly noise "
            f"below {FEWEST_ROWS}: use 128 or more, as far as there are rows.",
            SmallBatchWarning,
            stacklevel=stacklevel + 1,
        )


def warn_of_choice(choice: Any, *, stacklevel: int) -> None:
    """Warn when ``lam="auto"`` met no rule (:class:`UnmetRuleWarning`) or chose zero (:class:`UnpenalisedWarning`)."""
    if not choice.satisfied:
        warnings.warn(
            f"lam='auto' took λ = {choice.lam:g} although {choice.reason}. Give selection={{'lams': ...}} larger "
            "values, an easier rule ('tradeoff'), or lam a number; lambda_choice_.table shows what was tried.",
            UnmetRuleWarning,
            stacklevel=stacklevel + 1,
        )
    elif choice.lam == 0:
        warnings.warn(
            "lam='auto' chose λ = 0, no penalty: no larger λ of the grid was worth its price on the rows held out "
            "(lambda_choice_.table shows what was tried). Give lam a number, more rows or epochs, or "
            "selection={'tolerance': ...} a larger number.",
            UnpenalisedWarning,
            stacklevel=stacklevel + 1,
        )
