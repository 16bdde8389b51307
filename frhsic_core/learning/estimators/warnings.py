"""Warnings about fits that end without an error but are probably not what the user wanted.

``stacklevel`` is that of :func:`warnings.warn`, counted from the caller of the function. ``lam`` and ``learning_rate``
are those of the model, for the advice. A function ``warn_if_...`` returns whether it warned.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.special import expit

FLAT = 1e-2  # outputs (standardized) with a smaller standard deviation count as constant
# Steps × learning rate is about how far Adam can move a weight. Below these values, models on five datasets were still
# far from their final state. A penalty needs more steps, because it first makes Z constant.
SHORT_PENALIZED = 1.0
SHORT_UNPENALIZED = 0.3
CHANCE = 1.645  # standard errors of a one-sided test at 5 %
LEAST_GAIN = 0.01  # share of a constant's error that a model must save
FEWEST_ROWS = 16  # with fewer samples in a mini-batch a measure of dependence is mostly noise
LARGE_RATE = 0.1  # learning rate of Adam at which one step undoes what was learned
EMPTY = 0.9  # share of a column's range that one gap between neighboring values may take
FEW = 0.05  # share of the samples beyond that gap which still count as outliers


class MissingAttributeWarning(UserWarning):
    """λ is positive but there is no sensitive attribute, so the model was trained without a penalty."""


class InterruptedWarning(UserWarning):
    """Ctrl-C ended the training early; the estimator keeps the model as it was."""


class UnpenalizedWarning(UserWarning):
    """``lam="auto"`` chose λ = 0, so the model depends on the attribute as much as any other model."""


class UnmetRuleWarning(UserWarning):
    """``lam="auto"`` found no λ that meets the rule, and took the largest."""


class ConstantPredictionWarning(UserWarning):
    """The fitted model predicts the same for every training sample."""


class NoGainWarning(UserWarning):
    """The fitted model is no better on its own training samples than a constant."""


class UndertrainedWarning(UserWarning):
    """The training had too few steps to reach its final state."""


class SmallBatchWarning(UserWarning):
    """Too few samples of a mini-batch count for the penalty, which is then mostly noise."""


class PositiveClassWarning(UserWarning):
    """Equal opportunity protects one class, and the labels do not show which class is the favorable one."""


class OutlierWarning(UserWarning):
    """A few values of the attribute lie so far out that scaling to [0, 1] squeezes all others together."""


def warn_of_missing_attribute(name: str, *, lam: float | str, stacklevel: int) -> None:
    """Warn (:class:`MissingAttributeWarning`) that a penalty was requested without a sensitive attribute."""
    warnings.warn(
        f"sensitive_features is missing: {name}(lam={lam!r}) is trained WITHOUT a penalty and may depend on the "
        "attribute as much as any other model. Pass fit(X, y, sensitive_features=s), or use lam=0.",
        MissingAttributeWarning,
        stacklevel=stacklevel + 1,
    )


def is_constant(output: np.ndarray, *, classes: bool) -> np.ndarray:
    """Return whether outputs ``(..., n)`` have no spread or, for a classifier, give one class for all samples."""
    flat = output.std(-1) < FLAT
    return flat | (output > 0).all(-1) | (output <= 0).all(-1) if classes else flat


def _advice(lam: float, learning_rate: float) -> str:
    if learning_rate >= LARGE_RATE:
        return f"a smaller learning_rate ({learning_rate:g} is large for Adam; the default is 0.005)"
    return (
        "a lower lam (such as a tenth of it), or more epochs" if lam > 0 else "more epochs, or a larger learning_rate"
    )


def warn_if_constant(
    output: np.ndarray, *, classes: bool, lam: float, learning_rate: float, tried: np.ndarray | None, stacklevel: int
) -> bool:
    """Warn (:class:`ConstantPredictionWarning`) when the model predicts the same for every training sample.

    ``output`` are logits, or standardized predictions of a regression, ``(n,)``. For an estimator of classes, one class
    for all samples is enough. ``tried`` are the outputs of every model that ``lam="auto"`` tried, ``(models, n)``.
    """
    if not is_constant(output, classes=classes):
        return False
    if classes:
        low, high = expit([output.min(), output.max()])
        what = f"one class for every training sample (probabilities from {low:.2f} to {high:.2f})"
    else:
        what = f"almost one value for every training sample (a standard deviation of {output.std():.1g})"
    alike = tried is not None and is_constant(tried, classes=classes).all()
    others = ", and so does the model of every other λ that was tried" if alike else ""
    rare = " For a rare class, look at the probabilities instead." if classes else ""
    warnings.warn(
        f"the model (λ = {lam:g}) predicts {what}{others}. Try {_advice(lam, learning_rate)}.{rare}",
        ConstantPredictionWarning,
        stacklevel=stacklevel + 1,
    )
    return True


def warn_if_no_gain(
    output: np.ndarray, y: np.ndarray, *, task: str, lam: float, learning_rate: float, stacklevel: int
) -> bool:
    """Warn (:class:`NoGainWarning`) when a constant is as good on the training samples, within chance.

    The errors of the model and of the constant (the majority class, or the mean) are compared sample by sample. The
    mean saving must exceed 1.645 of its standard errors and one percent of the constant's error. ``output`` and ``y``
    are logits and 0 or 1, or predictions and numbers, ``(n,)``.
    """
    if task == "classification":
        majority = float(y.mean() > 0.5)
        constant = (y != majority).astype(float)
        own = ((output > 0) != (y > 0.5)).astype(float)
        shown = f"accuracy {1 - own.mean():.3f}; the larger class alone has {1 - constant.mean():.3f}"
    else:
        constant = (y - y.mean()) ** 2
        own = (y - output) ** 2
        shown = f"R² {1 - own.mean() / max(constant.mean(), 1e-300):.3f}"
    saved = constant - own
    if saved.mean() > max(CHANCE * saved.std() / np.sqrt(len(saved)), LEAST_GAIN * constant.mean()):
        return False
    warnings.warn(
        f"the model (λ = {lam:g}) is no better than a constant on its own training samples ({shown}), so its low "
        f"dependence on the attribute means nothing. Try {_advice(lam, learning_rate)}.",
        NoGainWarning,
        stacklevel=stacklevel + 1,
    )
    return True


def warn_if_undertrained(
    *, epochs: int, steps_per_epoch: int, learning_rate: float, penalized: bool, stacklevel: int
) -> bool:
    """Warn (:class:`UndertrainedWarning`) when steps × learning rate is below 1, or without a penalty below 0.3."""
    steps = epochs * steps_per_epoch
    least = SHORT_PENALIZED if penalized else SHORT_UNPENALIZED
    if steps * learning_rate >= least:
        return False
    needed = int(np.ceil(least / (learning_rate * steps_per_epoch)))
    looks = " and looks fairer than it will be" if penalized else ""
    warnings.warn(
        f"{steps} steps with learning rate {learning_rate:g} are too few: the model is hardly trained{looks}. Use "
        f"epochs={needed} or more ({needed * steps_per_epoch} steps), or epochs='auto'.",
        UndertrainedWarning,
        stacklevel=stacklevel + 1,
    )
    return True


def warn_if_small_batch(rows: float, *, batch_size: int, stacklevel: int) -> None:
    """Warn (:class:`SmallBatchWarning`) when fewer than 16 samples of a mini-batch count on average."""
    if rows < FEWEST_ROWS:
        warnings.warn(
            f"with batch_size={batch_size} the penalty uses about {rows:.2g} samples of a mini-batch, and below "
            f"{FEWEST_ROWS} it is mostly noise. Use 128 or more if there are enough samples.",
            SmallBatchWarning,
            stacklevel=stacklevel + 1,
        )


def warn_of_choice(choice: Any, certificate: Any, *, stacklevel: int) -> None:
    """Warn if ``lam="auto"`` met no rule (:class:`UnmetRuleWarning`) or chose zero (:class:`UnpenalizedWarning`)."""
    if not choice.satisfied:
        advice = "Pass larger values as selection={'lams': ...}, use the rule 'tradeoff', or set lam to a number."
        if certificate is not None and certificate.own_values:
            advice = "Most samples have a value of S of their own, so hardly any λ can meet this: round S to fewer "
            advice += "values, or use the rule 'tradeoff'."
        warnings.warn(
            f"lam='auto' took λ = {choice.lam:g} although {choice.reason}. {advice} See lambda_choice_.table.",
            UnmetRuleWarning,
            stacklevel=stacklevel + 1,
        )
    elif choice.lam == 0 and choice.rule != "guarantee":
        warnings.warn(
            "lam='auto' chose λ = 0, which means no penalty: every larger λ of the grid cost too much performance on "
            "the validation samples (see lambda_choice_.table). Set lam to a number, use more samples or epochs, or "
            "pass a larger selection={'tolerance': ...}.",
            UnpenalizedWarning,
            stacklevel=stacklevel + 1,
        )


def far_values(column: np.ndarray) -> tuple[np.ndarray, float] | None:
    r"""Return the outlying values of a column and the share of its range left to the others, or None.

    The largest gap between neighboring values decides. The values beyond it are outliers if it takes more than nine
    tenths of the range, if at most one sample in twenty lies beyond it, and if the other samples have more than two
    values (a rare category coded as a number is no mistake). This finds a typing error (999999), a code for "unknown"
    (−999) and a wrong unit. It does not report a long tail, whose values fill the range. The cost is O(n log n).

    Examples
    --------
    >>> ages = np.r_[np.arange(20.0, 70.0), 9999.0]
    >>> values, share = far_values(ages)
    >>> values.tolist(), round(share, 3)
    ([9999.0], 0.005)
    >>> far_values(np.r_[np.zeros(99), 1.0]) is None
    True
    """
    values = np.sort(column)
    width = values[-1] - values[0]
    if len(values) < 3 or not width > 0:
        return None
    gaps = np.diff(values)
    cut = int(gaps.argmax()) + 1
    low = values[:cut]
    high = values[cut:]
    others, far = (low, high) if len(high) <= len(low) else (high, low)
    if gaps[cut - 1] <= EMPTY * width or len(far) > max(1, FEW * len(values)) or len(np.unique(others)) <= 2:
        return None
    return np.unique(far), float((others[-1] - others[0]) / width)


def warn_of_outliers(s: np.ndarray, *, stacklevel: int) -> None:
    """Warn (:class:`OutlierWarning`) about the attributes ``(n, p)`` that have values far from all others."""
    found = []
    for number, column in enumerate(s.T):
        outliers = far_values(column)
        if outliers is not None:
            shown = ", ".join(f"{value:g}" for value in outliers[0][:3]) + (" ..." if len(outliers[0]) > 3 else "")
            found.append(f"column {number} ({shown}; the others fill {max(outliers[1], 1e-4):.2%} of the range)")
    if found:
        warnings.warn(
            f"sensitive_features has values far from all others in {', '.join(found)}. Attributes are scaled to [0, 1] "
            "by minimum and maximum, so the other values of such a column become almost equal. Correct, clip or drop "
            "the far values, and put a code for 'unknown' into a column of its own.",
            OutlierWarning,
            stacklevel=stacklevel + 1,
        )
