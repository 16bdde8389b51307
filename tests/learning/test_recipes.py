"""The recipes of the book: the penalty under skorch, and the README's ten lines on real data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from samples import classified

from frhsic_core import HSICLoss


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = torch.nn.Sequential(
            torch.nn.Linear(3, 16), torch.nn.SELU(), torch.nn.Linear(16, 2)
        )
        self.head = torch.nn.Linear(2, 1)

    def forward(self, x: torch.Tensor, s: torch.Tensor | None = None) -> torch.Tensor:
        self.z = self.encoder(x)
        return self.head(self.z).squeeze(-1)


@pytest.mark.slow  # importing skorch takes seconds
def test_skorch_takes_the_penalty_through_get_loss() -> None:
    skorch = pytest.importorskip("skorch")
    x, y, s = classified(0, 192, d=3, dtype=torch.float32)
    penalties = []

    class WithHSIC(skorch.NeuralNetBinaryClassifier):
        def get_loss(
            self, y_pred: Any, y_true: Any, X: Any = None, training: bool = False
        ) -> torch.Tensor:
            loss = super().get_loss(y_pred, y_true, X=X, training=training)
            penalty = HSICLoss(3.0, estimator="normalized")(self.module_.z, X["s"])
            penalties.append(penalty.item())
            return loss + penalty

    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = WithHSIC(
            Model,
            max_epochs=40,
            lr=1e-2,
            batch_size=-1,
            optimizer=torch.optim.Adam,
            train_split=None,
            verbose=0,
        )
        net.fit({"x": x, "s": s}, y)
    assert penalties[-1] < 0.5 * penalties[0]
    assert np.isfinite(net.predict_proba({"x": x})).all()


def test_the_average_of_local_penalties_is_not_the_global_one() -> None:
    """Why processes share their rows: the biased floor of four batches of 64 is four times that of one of 256."""
    z = torch.randn(256, 8, generator=torch.Generator().manual_seed(0))
    s = torch.randn(256, generator=torch.Generator().manual_seed(1))
    penalty = HSICLoss(1.0)
    local = torch.stack([penalty(z[i::4], s[i::4]) for i in range(4)]).mean()
    assert 3 < local / penalty(z, s) < 5


@pytest.mark.data
@pytest.mark.slow
def test_the_readme_on_adult() -> None:
    """Less dependence by four measures at under one point of accuracy; fewer rows than the README, same words."""
    from sklearn.model_selection import train_test_split

    from frhsic_core import FairClassifier, load_dataset
    from frhsic_core.auditing import audit_representation

    data = load_dataset("adult")
    X, X_test, y, y_test, s, s_test = train_test_split(
        data.X, data.y, data.s, train_size=12000, random_state=0
    )
    score, audits = [], []
    for lam in (0.0, 1.0):
        model = FairClassifier(lam=lam, epochs=22, random_state=0, device="cpu").fit(
            X, y, sensitive_features=s
        )
        score.append(model.score(X_test, y_test))
        audits.append(
            audit_representation(
                model.transform(X_test),
                s_test,
                predictions=model.predict_proba(X_test)[:, 1],
                max_rows=1000,
            )
        )
    assert score[1] > score[0] - 0.01
    before, after = (audit.as_dict() for audit in audits)
    for name in ("gdp", "normalized_hsic_1", "linear_r2", "nonlinear_r2"):
        assert after[name] < 0.9 * before[name], name
