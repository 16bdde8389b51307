"""Fresh heads on frozen representations: linear and MLP heads of a whole stack at once, forests and SVMs on all cores.

Settings are those of the paper's transfer experiment and of its released code: 100 epochs of Adam with batches of 256
for the linear head and the MLP (64 ReLU units), a random forest of 100 trees, and an SVM with the radial kernel on the
first 3,000 training rows, the last two with the library's defaults. To compare all heads on one scale, the SVM
needs a probability as well: a logistic curve of its decision value, fitted on values that three cross-validation folds
did not use (Platt, 1999). Its slope has a weak prior, so that a value that separates the classes, or one that is
constant, still has an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from frhsic_core.learning.data import random_order
from frhsic_core.learning.stack import StackedLinear, StackedMLP, seeded_generators
from frhsic_core.learning.step import Adam, CapturedSteps

HIDDEN = 64
EPOCHS = 100
BATCH_SIZE = 256
LEARNING_RATE = 1e-3
TREES = 100
SVM_ROWS = 3000
SEED = 42


class Prediction(NamedTuple):
    """The score (a logit) and the probability that a head predicts for the test rows, ``(models, n)`` each.

    A regression has the prediction in both. The score of a forest and of an SVM is the label, as in the paper.
    """

    score: Tensor
    probability: Tensor


def neural_heads(
    z_train: Tensor,
    y_train: Tensor,
    z_test: Tensor,
    *,
    seeds: Sequence[int],
    task: str,
    epochs: int = EPOCHS,
) -> dict[str, Prediction]:
    """Train a linear head and an MLP on every representation, all models in one loop.

    Both heads use the same mini-batches; each minimizes its own loss, so that one Adam over both is one for each. On
    CUDA a step is one graph launch. O(models · n · (d + 64 d)) for each epoch. ``z_train`` is ``(models, n, d)``,
    ``seeds`` are for the initial weights and the order of rows.
    """
    models, n, d = z_train.shape
    device = z_train.device
    heads: dict[str, StackedLinear | StackedMLP] = {
        "linear": StackedLinear(models, d, 1),
        "mlp": StackedMLP(models, (d, HIDDEN, 1), activation="relu"),
    }
    generators = seeded_generators(seeds)
    for head in heads.values():
        head.initialize(generators)
        head.to(device)
    parameters = [p for head in heads.values() for p in head.parameters()]
    adam = Adam(parameters, LEARNING_RATE)
    order = torch.zeros(models, n, dtype=torch.int64, device=device)
    start = torch.zeros((), dtype=torch.int64, device=device)
    offset = (torch.arange(models, device=device) * n).unsqueeze(-1)
    flat_z = z_train.reshape(models * n, d)
    flat_y = y_train.reshape(-1)

    def step(length: int) -> None:
        rows = order.index_select(1, start + torch.arange(length, device=device)).reshape(-1)
        z = flat_z.index_select(0, rows).view(models, length, d)
        y = flat_y.index_select(0, rows).view(models, length)
        loss = sum(_loss(head(z).squeeze(-1), y, task).mean(-1).sum() for head in heads.values())
        assert isinstance(loss, Tensor)
        for parameter, gradient in zip(
            parameters, torch.autograd.grad(loss, parameters), strict=True
        ):
            parameter.grad = gradient
        adam.step()
        start.add_(length)

    run: Callable[[int], None] = CapturedSteps(step, device) if device.type == "cuda" else step
    seed = torch.tensor(list(seeds), device=device)
    for epoch in range(epochs):
        order.copy_(random_order(seed, epoch=epoch, n=n) + offset)
        start.zero_()
        for first in range(0, n, BATCH_SIZE):
            run(min(BATCH_SIZE, n - first))
    with torch.no_grad():
        outputs = {name: head(z_test).squeeze(-1).double() for name, head in heads.items()}
    return {
        name: Prediction(output, torch.sigmoid(output) if task == "classification" else output)
        for name, output in outputs.items()
    }


def _loss(output: Tensor, y: Tensor, task: str) -> Tensor:
    if task == "classification":
        return F.binary_cross_entropy_with_logits(output, y, reduction="none")
    return (output - y).square()


def forest_head(z_train: Tensor, y_train: Tensor, z_test: Tensor, *, task: str) -> Prediction:
    """Fit a random forest of 100 trees on every representation, its trees on all cores."""
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    kind = RandomForestClassifier if task == "classification" else RandomForestRegressor
    found = []
    for z, y, z_new in zip(_arrays(z_train), _targets(y_train, task), _arrays(z_test), strict=True):
        forest = kind(n_estimators=TREES, random_state=SEED, n_jobs=-1).fit(z, y)
        found.append(
            forest.predict_proba(z_new)[:, 1] if task == "classification" else forest.predict(z_new)
        )
    value = torch.tensor(np.stack(found), dtype=torch.float64, device=z_test.device)
    # The library's label at a tie is the first class.
    return Prediction((value > 0.5).double() if task == "classification" else value, value)


def svm_head(
    z_train: Tensor, y_train: Tensor, z_test: Tensor, *, task: str, rows: int = SVM_ROWS
) -> Prediction:
    """Fit an SVM with the radial kernel on the first rows of every representation, models side by side.

    The probability of a classifier comes from a logistic curve.
    """
    from joblib import Parallel, delayed

    jobs = zip(
        _arrays(z_train[:, :rows]), _targets(y_train[:, :rows], task), _arrays(z_test), strict=True
    )
    found = Parallel(n_jobs=-1, prefer="threads")(delayed(_one_svm)(*job, task) for job in jobs)
    value, label = (
        torch.tensor(np.stack(part), dtype=torch.float64, device=z_test.device)
        for part in zip(*found, strict=True)
    )
    return Prediction(label, value)


def _one_svm(
    z: np.ndarray, y: np.ndarray, z_new: np.ndarray, task: str
) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import KFold, cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC, SVR

    if task == "regression":
        value = SVR().fit(z, y).predict(z_new)
        return value, value
    machine = SVC().fit(z, y)
    decision = machine.decision_function(z_new)
    unseen = cross_val_predict(SVC(), z, y, cv=KFold(3), method="decision_function")
    curve = make_pipeline(StandardScaler(), LogisticRegression(C=1e3, tol=1e-10)).fit(
        unseen[:, None], y
    )
    return curve.predict_proba(decision[:, None])[:, 1], (decision > 0).astype(float)


def _arrays(z: Tensor) -> np.ndarray:
    return z.float().cpu().numpy()


def _targets(y: Tensor, task: str) -> Any:
    return y.cpu().numpy().astype(int) if task == "classification" else y.cpu().numpy()
