"""What is wrong with a fit that ends without an error but is probably not what the user wanted.

Each function returns a message, or None if there is nothing to say; the estimator gives it as a
:class:`~frhsic_core.inputs.fitting.FitWarning`. ``lam`` and ``learning_rate`` are those of the model, for
the advice.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit

FLAT = 1e-2  # outputs (standardized) with a smaller standard deviation count as constant
# Steps × learning rate is about how far Adam can move a weight. Below these values, models on five
# datasets were still far from their final state. A penalty needs more steps, because it first makes
# Z constant.
SHORT_PENALIZED = 1.0
SHORT_UNPENALIZED = 0.3
CHANCE = 1.645  # standard errors of a one-sided test at 5 %
LEAST_GAIN = 0.01  # share of a constant's error that a model must save
# Samples of a class with fewer of which a standard error of the AUC is about .07 or more.
FEW_OF_A_CLASS = 30
FEWEST_ROWS = 16  # with fewer samples in a mini-batch a measure of dependence is mostly noise
LARGE_RATE = 0.1  # learning rate of Adam at which one step undoes what was learned

LARGER_LAMBDAS = (
    "Pass larger values as selection={'lams': ...}, use the rule 'tradeoff', or set lam to a "
    "number."
)
ROUND_S = (
    "Most samples have a value of S of their own, so hardly any λ can meet this: round S to fewer "
    "values, or use the rule 'tradeoff'."
)


def is_constant(output: np.ndarray, *, classes: bool) -> np.ndarray:
    """Return whether outputs ``(..., n)`` have no spread or, as logits, give one class alone."""
    flat = output.std(-1) < FLAT
    if not classes:
        return flat
    return flat | (output > 0).all(-1) | (output <= 0).all(-1)


def _advice(lam: float, learning_rate: float) -> str:
    """Return what to try when a model has learned nothing."""
    if learning_rate >= LARGE_RATE:
        return (
            f"a smaller learning_rate ({learning_rate:g} is large for Adam; the default is 0.005)"
        )
    if lam > 0:
        return "a lower lam (such as a tenth of it), or more epochs"
    return "more epochs, or a larger learning_rate"


def constant_prediction(
    output: np.ndarray, *, classes: bool, lam: float, learning_rate: float, tried: np.ndarray | None
) -> str | None:
    """Report a model that predicts the same for every training sample.

    ``output`` are logits, or standardized predictions of a regression, ``(n,)``. For an estimator
    of classes, one class for all samples is enough. ``tried`` are the outputs of every model that
    ``lam="auto"`` tried, ``(models, n)``.
    """
    if not is_constant(output, classes=classes):
        return None
    if classes:
        low, high = expit([output.min(), output.max()])
        what = f"one class for every training sample (probabilities from {low:.2f} to {high:.2f})"
        last = " For a rare class, look at the probabilities instead."
    else:
        spread = output.std()
        what = f"almost one value for every training sample (a standard deviation of {spread:.1g})"
        last = ""
    others = ""
    if tried is not None and is_constant(tried, classes=classes).all():
        others = ", and so does the model of every other λ that was tried"
    advice = _advice(lam, learning_rate)
    return f"the model (λ = {lam:g}) predicts {what}{others}. Try {advice}.{last}"


def no_gain(
    output: np.ndarray, y: np.ndarray, *, task: str, lam: float, learning_rate: float
) -> str | None:
    """Report a model that is no better on its training samples than a constant, within chance.

    The errors of the model and of the constant (the majority class, or the mean) are compared
    sample by sample. The mean saving must exceed 1.645 of its standard errors and one percent of
    the constant's error. ``output`` and ``y`` are logits and 0 or 1, or predictions and numbers,
    ``(n,)``.
    """
    if task == "classification":
        majority = float(y.mean() > 0.5)
        constant = (y != majority).astype(float)
        own = ((output > 0) != (y > 0.5)).astype(float)
        shown = (
            f"accuracy {1 - own.mean():.3f}; the larger class alone has {1 - constant.mean():.3f}"
        )
    else:
        constant = (y - y.mean()) ** 2
        own = (y - output) ** 2
        shown = f"R² {1 - own.mean() / max(constant.mean(), 1e-300):.3f}"
    saved = constant - own
    by_chance = CHANCE * saved.std() / np.sqrt(len(saved))
    too_little = LEAST_GAIN * constant.mean()
    if saved.mean() > max(by_chance, too_little):
        return None
    return (
        f"the model (λ = {lam:g}) is no better than a constant on its own training samples "
        f"({shown}), so its low dependence on the attribute means nothing. Try "
        f"{_advice(lam, learning_rate)}."
    )


def undertrained(
    *, epochs: int, steps_per_epoch: int, learning_rate: float, penalized: bool
) -> str | None:
    """Report that steps × learning rate is below 1, or without a penalty below 0.3."""
    if penalized:
        least = SHORT_PENALIZED
        looks = " and looks fairer than it will be"
    else:
        least = SHORT_UNPENALIZED
        looks = ""
    steps = epochs * steps_per_epoch
    if steps * learning_rate >= least:
        return None
    needed = int(np.ceil(least / (learning_rate * steps_per_epoch)))
    return (
        f"{steps} steps with learning rate {learning_rate:g} are too few: the model is hardly "
        f"trained{looks}. Use epochs={needed} or more ({needed * steps_per_epoch} steps), or "
        "epochs='auto'."
    )


def small_batch(rows: float, *, batch_size: int) -> str | None:
    """Report that fewer than 16 samples of a mini-batch count on average."""
    if rows >= FEWEST_ROWS:
        return None
    return (
        f"with batch_size={batch_size} the penalty uses about {rows:.2g} samples of a mini-batch, "
        f"and below {FEWEST_ROWS} it is mostly noise. Use 128 or more if there are enough samples."
    )


def few_of_a_class(rarer: int) -> str | None:
    """Report that few samples of the rarer class judged the models of ``lam="auto"``."""
    if rarer >= FEW_OF_A_CLASS:
        return None
    return (
        f"lam='auto' judged the models on samples of which {rarer} belong to the rarer class, and "
        f"with fewer than {FEW_OF_A_CLASS} their performance is mostly chance. Use more samples, "
        "or set lam to a number."
    )


def unwanted_choice(choice: Any, certificate: Any) -> str | None:
    """Report that ``lam="auto"`` met no rule, or chose zero."""
    if not choice.satisfied:
        advice = LARGER_LAMBDAS
        if certificate is not None and certificate.own_values:
            advice = ROUND_S
        return (
            f"lam='auto' took λ = {choice.lam:g} although {choice.reason}. {advice} See "
            "lambda_choice_.table."
        )
    if choice.lam == 0 and choice.rule != "guarantee":
        return (
            "lam='auto' chose λ = 0, which means no penalty: every larger λ of the grid cost too "
            "much performance on the validation samples (see lambda_choice_.table). Set lam to a "
            "number, use more samples or epochs, or pass a larger selection={'tolerance': ...}."
        )
    return None
