"""The state of a training: what a checkpoint holds, and what must agree for it to be resumed."""

from __future__ import annotations

from typing import Any

from frhsic_core.learning.history import History
from frhsic_core.learning.step import StackedStep

__all__ = ["ResumableStep"]


class ResumableStep(StackedStep):
    """A step that knows how far its training is, and can be written down and taken up again."""

    seeds: list[int]
    epoch: int
    history: History
    _escaped: bool

    def settings(self) -> dict[str, Any]:
        """Everything that must agree for a checkpoint to be resumed, as plain values."""
        return {
            "penalty": self.penalty.key,
            "penalty_settings": self.penalty.settings(),
            "lam": self.lam.tolist(),
            "seeds": list(self.seeds),
            "dataset": self.dataset.tolist(),
            "shape": list(self.data.x.shape),
            "batch_size": self.batch_size,
            "learning_rate": self.learning_rate,
            "task": self.data.task,
            "dtype": str(self.data.x.dtype),
            "widths": [list(parameter.shape) for parameter in self._parameters],
        }

    def state(self) -> dict[str, Any]:
        """Return the whole state of the training, for ``write_checkpoint``."""
        adversary = self._adversary_optimiser
        return {
            "settings": self.settings(),
            "model": self.model.state_dict(),
            "penalty": self.penalty.state_dict(),
            "optimiser": self._optimiser.state_dict(),
            "adversary": None if adversary is None else adversary.state_dict(),
            "history": self.history.state_dict(),
            "sums": self._sums,
            "epoch": self.epoch,
            "step": self.step,
            "escaped": self._escaped,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from ``state``; settings that differ are an error that names them."""
        mine = self.settings()
        differ = [name for name, value in mine.items() if state["settings"].get(name) != value]
        if differ:
            raise ValueError(
                f"the checkpoint was written with other settings ({', '.join(differ)}): use another file, or delete it."
            )
        self.model.load_state_dict(state["model"])
        self.penalty.load_state_dict(state["penalty"])
        self._optimiser.load_state_dict(state["optimiser"])
        if self._adversary_optimiser is not None:
            self._adversary_optimiser.load_state_dict(state["adversary"])
        self.history.load_state_dict(state["history"])
        self._sums.copy_(state["sums"])
        self._run = self._runner()  # the optimiser has new tensors: what was captured updates the old ones
        self.epoch, self.step, self._escaped = state["epoch"], state["step"], state["escaped"]
