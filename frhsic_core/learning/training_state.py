"""The state of a training: what a checkpoint holds, and what must agree for it to be resumed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from frhsic_core.learning.trainer import Trainer

__all__ = ["restore", "settings_of", "state_of"]


def settings_of(trainer: Trainer) -> dict[str, Any]:
    """Everything that must agree for a checkpoint to be resumed, as plain values."""
    return {
        "penalty": trainer.penalty.key,
        "penalty_settings": trainer.penalty.settings(),
        "lam": trainer.lam.tolist(),
        "seeds": list(trainer.seeds),
        "dataset": trainer.dataset.tolist(),
        "shape": list(trainer.data.x.shape),
        "batch_size": trainer.batch_size,
        "learning_rate": trainer.learning_rate,
        "task": trainer.data.task,
        "dtype": str(trainer.data.x.dtype),
        "widths": [list(parameter.shape) for parameter in trainer._parameters],
    }


def state_of(trainer: Trainer) -> dict[str, Any]:
    """Return the whole state of the training, for :func:`write_checkpoint`."""
    adversary = trainer._adversary_optimiser
    return {
        "settings": trainer.settings(),
        "model": trainer.model.state_dict(),
        "penalty": trainer.penalty.state_dict(),
        "optimiser": trainer._optimiser.state_dict(),
        "adversary": None if adversary is None else adversary.state_dict(),
        "history": trainer.history.state_dict(),
        "sums": trainer._sums,
        "epoch": trainer.epoch,
        "step": trainer.step,
        "escaped": trainer._escaped,
    }


def restore(trainer: Trainer, state: dict[str, Any]) -> None:
    """Go on from ``state``; settings that differ are an error that names them."""
    mine = trainer.settings()
    differ = [name for name, value in mine.items() if state["settings"].get(name) != value]
    if differ:
        raise ValueError(
            f"the checkpoint was written with other settings ({', '.join(differ)}): use another file, or delete it."
        )
    trainer.model.load_state_dict(state["model"])
    trainer.penalty.load_state_dict(state["penalty"])
    trainer._optimiser.load_state_dict(state["optimiser"])
    if trainer._adversary_optimiser is not None:
        trainer._adversary_optimiser.load_state_dict(state["adversary"])
    trainer.history.load_state_dict(state["history"])
    trainer._sums.copy_(state["sums"])
    trainer._run = trainer._runner()  # the optimiser has new tensors: what was captured updates the old ones
    trainer.epoch, trainer.step, trainer._escaped = state["epoch"], state["step"], state["escaped"]
