"""What an estimator says after a fit that a user may not have meant."""

from __future__ import annotations

import warnings

import numpy as np

__all__ = [
    "ConstantPredictionWarning",
    "InterruptedWarning",
    "MissingAttributeWarning",
    "UndertrainedWarning",
    "UnpenalisedWarning",
    "warn_if_constant",
    "warn_if_undertrained",
]

FLAT = 1e-2  # a spread of the (standardised) outputs below it is none
SHORT = 0.1  # what Adam can move a weight by before a network has learnt anything to speak of


class MissingAttributeWarning(UserWarning):
    """λ is positive but there is no attribute: the model was trained without a penalty."""


class InterruptedWarning(UserWarning):
    """Ctrl-C ended the training early; the model as it stood was kept."""


class UnpenalisedWarning(UserWarning):
    """``lam="auto"`` chose λ = 0: the model depends on the attribute as much as any."""


class ConstantPredictionWarning(UserWarning):
    """The fitted model predicts the same for every training row."""


class UndertrainedWarning(UserWarning):
    """The steps were so few that the weights are still about where they began."""


def is_constant(output: np.ndarray, *, classes: bool) -> np.ndarray:
    """Whether outputs ``(..., n)`` have no spread or, of a classifier, are one class for all rows."""
    flat = output.std(-1) < FLAT
    return flat | (output > 0).all(-1) | (output <= 0).all(-1) if classes else flat


def warn_if_constant(
    output: np.ndarray, *, classes: bool, lam: float, tried: np.ndarray | None, stacklevel: int
) -> bool:
    """Warn (:class:`ConstantPredictionWarning`) when the model predicts the same for every training row.

    Parameters
    ----------
    output : ndarray
        Logits, or standardised predictions of a regression, ``(n,)``.
    classes : bool
        Whether the estimator predicts classes: then one class for all rows is enough to warn.
    lam : float
        The λ of the model.
    tried : ndarray, optional
        With ``lam="auto"``, the outputs of every model tried, ``(models, n)``.
    stacklevel : int
        As in :func:`warnings.warn`, for the caller of this function.
    """
    if not is_constant(output, classes=classes):
        return False
    if classes:
        low, high = 1.0 / (1.0 + np.exp(-np.array([output.min(), output.max()])))
        what = f"one class for every training row (probabilities from {low:.2f} to {high:.2f})"
    else:
        what = f"almost one value for every training row (a standard deviation of {output.std():.1g})"
    others = "; so did every λ tried" if tried is not None and is_constant(tried, classes=classes).all() else ""
    advice = "a lower lam (a tenth of it, say), or more epochs" if lam > 0 else "more epochs, or a larger learning_rate"
    rare = " For a rare class, judge the probabilities instead." if classes else ""
    warnings.warn(
        f"the model (λ = {lam:g}) predicts {what}{others}. Try {advice}.{rare}",
        ConstantPredictionWarning,
        stacklevel=stacklevel + 1,
    )
    return True


def warn_if_undertrained(*, steps: int, learning_rate: float, stacklevel: int) -> bool:
    """Warn (:class:`UndertrainedWarning`) when steps × learning rate is below 0.1: Adam moves no weight further."""
    reach = steps * learning_rate
    if reach >= SHORT:
        return False
    needed = int(np.ceil(SHORT / learning_rate))
    warnings.warn(
        f"{steps} steps of learning rate {learning_rate:g} move a weight by at most about {reach:.2g}: the model is "
        f"hardly trained. Raise epochs (here {needed} steps would be the least), lower batch_size, or raise "
        "learning_rate.",
        UndertrainedWarning,
        stacklevel=stacklevel + 1,
    )
    return True
