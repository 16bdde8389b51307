"""Checkpoints of a training: its state, and the data and settings that it belongs to."""

from __future__ import annotations

import os
from typing import Any

from frhsic_core.learning.state_file import read_state, write_state

Trainer = Any  # the module of the trainer imports this one


def write_checkpoint(path: str | os.PathLike[str], trainer: Trainer) -> None:
    """Write the state of a training, so that :func:`read_checkpoint` continues it as if it had not stopped."""
    write_state(path, {"belongs_to": _identity(trainer), **_state(trainer)})


def read_checkpoint(path: str | os.PathLike[str], trainer: Trainer) -> None:
    """Set a trainer to the state in a checkpoint.

    Raises
    ------
    ValueError
        The file is not an undamaged checkpoint, or it belongs to other data or settings; the message names them.
    """
    advice = "delete it to start again"
    step = trainer.step
    state = read_state(path, what="a checkpoint", advice=advice, map_location=step.device)
    missing = [name for name in ("belongs_to", *_state(trainer)) if name not in state]
    if missing:
        raise ValueError(f"the checkpoint {path} has no {', '.join(missing)}: {advice}.")
    differ = _differences(_identity(trainer), state["belongs_to"])
    if differ:
        raise ValueError(
            f"the checkpoint {path} belongs to another training: {'; '.join(differ)}. Use another file, or {advice}."
        )
    step.model.load_state_dict(state["model"])
    step.penalty.load_state_dict(state["penalty"])
    step.optimizer.load_state_dict(state["optimizer"])
    if step.adversary_optimizer is not None:
        step.adversary_optimizer.load_state_dict(state["adversary"])
    step.sums.copy_(state["sums"])
    step.recapture()
    trainer.history.load_state_dict(state["history"])
    trainer.epoch = state["epoch"]
    trainer.batch = state["batch"]
    trainer.escaped = state["escaped"]


def _state(trainer: Trainer) -> dict[str, Any]:
    """Return everything that a training changes."""
    step = trainer.step
    adversary = step.adversary_optimizer
    return {
        "model": step.model.state_dict(),
        "penalty": step.penalty.state_dict(),
        "optimizer": step.optimizer.state_dict(),
        "adversary": None if adversary is None else adversary.state_dict(),
        "sums": step.sums,
        "history": trainer.history.state_dict(),
        "epoch": trainer.epoch,
        "batch": trainer.batch,
        "escaped": trainer.escaped,
    }


def _identity(trainer: Trainer) -> dict[str, Any]:
    """Return everything that influences a training, as plain values: its settings and a fingerprint of its data.

    The number of epochs is not part of it, so that a training can be extended, and neither is the device. A function,
    such as a kernel of your own, is compared by its name.
    """
    step = trainer.step
    encoder = step.model.encoder
    return {
        **trainer.data.fingerprint,
        "task": trainer.data.task,
        "lam": trainer.lam.tolist(),
        "seeds": list(trainer.seeds),
        "dataset": trainer.dataset.tolist(),
        "batch_size": step.batch_size,
        "learning_rate": step.learning_rate,
        "widths": list(encoder.widths),
        "activation": encoder.activation,
        "activate_output": encoder.activate_output,
        "penalty": type(step.penalty).__qualname__,
        **({"decay": True} if trainer.decay else {}),
        **{f"penalty.{name}": value for name, value in step.penalty.settings().items()},
    }


def _differences(now: dict[str, Any], then: dict[str, Any]) -> list[str]:
    """Return each difference in words; of lists of equal length, the first entry that differs."""
    found = []
    for name in {**now, **then}:
        new, old = now.get(name), then.get(name)
        if isinstance(new, list) and isinstance(old, list) and len(new) == len(old) and new != old:
            first = next(i for i, pair in enumerate(zip(new, old, strict=True)) if pair[0] != pair[1])
            name, new, old = f"{name}[{first}]", new[first], old[first]
        if new != old:
            found.append(f"{name} is {new}, but was {old}")
    return found
