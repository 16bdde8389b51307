"""Early stopping: keep the model with the lowest objective, with the task loss on samples that were held out.

This part is our own, because the objective includes the penalty, which scikit-learn's estimators do not have.
"""

from __future__ import annotations

import copy
from typing import Any

import torch

from frhsic_core.learning.data import Batch, TrainingData
from frhsic_core.learning.history import Progress
from frhsic_core.learning.trainer import Callback, Trainer

FRACTION = 0.1  # share of the samples that is held out
FEWEST_ROWS = 100  # samples that must be held out: with fewer the loss is mostly noise
CHECKS = 20  # about how often the objective is computed
PATIENCE = 5  # checks without a new lowest value after which the training stops
WARM_UP = 0.3  # share of the epochs before the first check: a penalized model first becomes constant


def hold_out(data: TrainingData, *, seed: int) -> tuple[TrainingData, TrainingData]:
    """Return the training part and the held-out tenth of a dataset.

    Raises
    ------
    ValueError
        Fewer than 100 samples would be held out.
    """
    held = int(FRACTION * data.n)
    if held < FEWEST_ROWS:
        raise ValueError(
            f"early_stopping holds out {FRACTION:.0%} of the samples, {held} of {data.n}, and at least {FEWEST_ROWS} "
            "are needed: use early_stopping=False."
        )
    order = torch.randperm(data.n, generator=torch.Generator().manual_seed(seed))
    train = data.part(order[held:].sort().values)
    train.require_variation()
    return train, data.part(order[:held].sort().values)


class EarlyStopping:
    """A callback of ``Trainer.fit`` for one model: it stops the training, and restores the best state afterwards.

    The objective is the task loss on the held-out samples + λ · the penalty of the last epoch. The penalty of the
    training samples is used because a statistic of a low-dimensional Z hardly overfits, and a task does.
    """

    def __init__(self, trainer: Trainer, held_out: TrainingData, *, then: Callback | None = None) -> None:
        self.trainer = trainer
        self.data = held_out
        self.then = then
        self.every = max(1, trainer.epochs // CHECKS)
        self.best = float("inf")
        self.best_epoch = 0
        self._waited = 0
        self._state: dict[str, Any] | None = None

    def __call__(self, progress: Progress) -> bool:
        if self.then is not None:
            self.then(progress)
        if progress.epoch < WARM_UP * progress.epochs or progress.epoch % self.every:
            return False
        value = self.objective()
        if value < self.best:
            self.best, self.best_epoch, self._waited = value, progress.epoch, 0
            self._state = copy.deepcopy(self.trainer.model.state_dict())
        else:
            self._waited += 1
        return self._waited >= PATIENCE

    @torch.no_grad()
    def objective(self) -> float:
        """Return the objective of the current state."""
        data = self.data
        z, output = self.trainer.model(data.x)
        none = z.new_zeros(1, data.n, 0)
        batch = Batch(z, output, none, data.y, data.sample_weight, none.long())
        penalty = self.trainer.history["penalty"][-1].to(self.trainer.lam)
        return float(self.trainer.step._task_loss(batch) + self.trainer.lam * penalty)

    def restore(self) -> None:
        """Set the model to the state with the lowest objective."""
        if self._state is not None:
            self.trainer.model.load_state_dict(self._state)
