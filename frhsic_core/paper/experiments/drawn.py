"""Stacks of small models on fresh draws of the synthetic law: every model has its own sample, not only its own split.

The validation on synthetic data and the ablations of the paper are one run each, on one sample of 5,000 rows. Here a
run is repeated on new samples; draw 42 is the authors' sample, row for row, cut as they cut it (the first four fifths
train). X and S are used as drawn: the text names no scaling for this law and the released script does none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from frhsic_core.paper.runs.plan import Settings

if TYPE_CHECKING:
    from frhsic_core.data.splits import SplitStack

__all__ = ["FIRST_DRAW", "Arm", "drawn_splits", "train_draws"]

FIRST_DRAW = 42
TRAIN_SHARE = 0.8


@dataclass(frozen=True)
class Arm:
    """How a stack is trained.

    Parameters
    ----------
    protocol : str
        Whose penalty and encoder end are taken.
    hidden : tuple of int
        Hidden widths of the encoder; the dimension of Z comes after them.
    activation : str
        Between the layers.
    epochs : int
        Of training.
    settings : tuple of pairs
        Where the penalty departs from the protocol's.
    """

    protocol: str
    hidden: tuple[int, ...]
    activation: str
    epochs: int
    settings: Settings = ()


def drawn_splits(signals: Sequence[str], draws: Sequence[int], *, n: int, device: str) -> SplitStack:
    """Draw n rows for each signal and seed; the first four fifths train, the rest tests. Signals run slowest.

    Examples
    --------
    >>> stack = drawn_splits(["paper"], [42, 43], n=100, device="cpu")
    >>> tuple(stack.x_train.shape), tuple(stack.s_test.shape), stack.seeds
    ((2, 80, 2), (2, 20), (42, 43))
    """
    import torch

    from frhsic_core.data import load_dataset
    from frhsic_core.data.splits import SplitStack

    parts = [load_dataset("synthetic", n=n, seed=seed, signal=signal).tensors() for signal in signals for seed in draws]
    x, s, y = (torch.stack(values).to(device, torch.float32) for values in zip(*(p[:3] for p in parts), strict=True))
    cut = int(TRAIN_SHARE * n)
    return SplitStack(
        x_train=x[:, :cut],
        s_train=s[:, :cut],
        y_train=y[:, :cut],
        x_test=x[:, cut:],
        s_test=s[:, cut:],
        y_test=y[:, cut:],
        x_validation=None,
        s_validation=None,
        y_validation=None,
        weights_train=None,
        weights_validation=None,
        weights_test=None,
        seeds=tuple(draws) * len(signals),
        task="classification",
        name="synthetic",
    )


def train_draws(
    arm: Arm,
    *,
    dimension: int,
    lams: Sequence[float],
    signals: Sequence[str],
    draws: Sequence[int],
    n: int,
    device: str,
    epochs: int | None = None,
    settings: Settings = (),
) -> list[dict[str, Any]]:
    """Train FRHSIC at each λ on each draw as one stack, and measure every model on the test part of its own draw.

    λ = 0 is the unpenalised model. The seed of a model is that of its draw, so the models of a draw start alike.

    Returns
    -------
    list of dict
        ``signal``, ``draw``, ``lam``, what :func:`frhsic_core.paper.runs.metrics.evaluate` measures, ``hsic_unit``
        (biased HSIC on the test rows with both bandwidths one, as the paper's figure shows it) and ``bayes`` (accuracy
        of the Bayes rule on the same test rows).
    """
    import torch

    from frhsic_core.data.synthetic import log_odds
    from frhsic_core.joint import hsic
    from frhsic_core.kernels import Gaussian
    from frhsic_core.learning import Trainer, make_penalty
    from frhsic_core.paper.runs.metrics import evaluate

    splits = drawn_splits(signals, draws, n=n, device=device)
    labels: list[dict[str, Any]] = [
        {"signal": signal, "draw": draw, "lam": float(lam)} for signal in signals for draw in draws for lam in lams
    ]
    dataset = [i for i in range(len(splits)) for _ in lams]
    trainer = Trainer(
        splits.x_train,
        splits.y_train,
        splits.s_train,
        penalty=make_penalty("frhsic", protocol=arm.protocol, **dict(arm.settings), **dict(settings)),
        lam=[label["lam"] for label in labels],
        seeds=[label["draw"] for label in labels],
        dataset=dataset,
        task="classification",
        protocol=arm.protocol,
        epochs=epochs or arm.epochs,
        widths=(*arm.hidden, dimension),
        activation=arm.activation,
        device=device,
    )
    trained = trainer.fit()
    metrics = {name: values.tolist() for name, values in evaluate(trained, splits).items()}
    z, which = trained.encode(splits.x_test), torch.tensor(dataset, device=device)
    unit = Gaussian(1.0)
    metrics["hsic_unit"] = [
        value
        for part, of in zip(z.split(32), which.split(32), strict=True)
        for value in hsic(part.double(), splits.s_test[of].double(), kernel_z=unit, kernel_s=unit).tolist()
    ]
    x, y = splits.x_test.cpu().double().numpy(), splits.y_test.cpu().numpy()
    rules = [
        float(((log_odds(x[i, :, 0], x[i, :, 1], signal=signals[i // len(draws)]) > 0) == (y[i] > 0.5)).mean())
        for i in range(len(splits))
    ]
    metrics["bayes"] = [rules[i] for i in dataset]
    return [
        {**label, **{name: float(f"{values[i]:.6g}") for name, values in metrics.items()}}
        for i, label in enumerate(labels)
    ]
