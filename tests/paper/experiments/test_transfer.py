"""Fresh heads on frozen representations: each head against its library or a plain loop, the tables, the experiment."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.svm import SVC, SVR
from torch import nn

from frhsic_core.learning.data import random_order
from frhsic_core.paper.experiments import fresh_heads, transfer
from frhsic_core.paper.experiments.fresh_heads import forest_head, neural_heads, svm_head
from frhsic_core.paper.experiments.transfer import (
    HEADS,
    LAMS,
    at_paper_lambda,
    spread_table,
)


@pytest.fixture(scope="module")
def frozen() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(2, 400, 6, generator=generator)
    chance = torch.sigmoid(2 * z[..., 0] - z[..., 1])
    y = (torch.rand(2, 400, generator=generator) < chance).float()
    return z[:, :300], y[:, :300], z[:, 300:]


def alone(
    head: nn.Module, z: torch.Tensor, y: torch.Tensor, *, seed: int, epochs: int, task: str
) -> None:
    """Train one plain PyTorch head on the same rows in the same order."""
    adam = torch.optim.Adam(head.parameters(), lr=fresh_heads.LEARNING_RATE)
    loss = nn.BCEWithLogitsLoss() if task == "classification" else nn.MSELoss()
    for epoch in range(epochs):
        order = random_order(torch.tensor([seed]), epoch=epoch, n=len(z))[0]
        for rows in order.split(fresh_heads.BATCH_SIZE):
            adam.zero_grad()
            loss(head(z[rows]).squeeze(-1), y[rows]).backward()
            adam.step()


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_stacked_heads_are_heads_trained_alone(frozen, task: str) -> None:
    z, y, z_new = frozen
    found = neural_heads(z, y, z_new, seeds=(7, 8), task=task, epochs=6)
    for i, seed in enumerate((7, 8)):
        torch.manual_seed(seed)
        linear = nn.Linear(6, 1)
        mlp = nn.Sequential(
            nn.Linear(6, fresh_heads.HIDDEN), nn.ReLU(), nn.Linear(fresh_heads.HIDDEN, 1)
        )
        for name, head in (("linear", linear), ("mlp", mlp)):
            alone(head, z[i], y[i], seed=seed, epochs=6, task=task)
            with torch.no_grad():
                expected = head(z_new[i]).squeeze(-1).double()
            assert torch.allclose(found[name].score[i], expected, atol=1e-5)
            probability = torch.sigmoid(expected) if task == "classification" else expected
            assert torch.allclose(found[name].probability[i], probability, atol=1e-5)


def test_forest_and_svm_are_the_library_with_its_defaults(frozen) -> None:
    z, y, z_new = frozen
    forest, svm = (head(z, y, z_new, task="classification") for head in (forest_head, svm_head))
    for i in range(2):
        data = z[i].numpy(), y[i].numpy().astype(int)
        trees = RandomForestClassifier(n_estimators=100, random_state=42).fit(*data)
        assert np.allclose(
            forest.probability[i].numpy(), trees.predict_proba(z_new[i].numpy())[:, 1]
        )
        assert (forest.score[i].numpy() == trees.predict(z_new[i].numpy())).all()
        machine = SVC().fit(*data)
        assert (svm.score[i].numpy() == machine.predict(z_new[i].numpy())).all()
        # The logit is a line in the decision value, and the curve is fitted to values of three held-out folds.
        decision = machine.decision_function(z_new[i].numpy())
        slope, level = np.polyfit(decision, torch.logit(svm.probability[i]).numpy(), 1)
        unseen = cross_val_predict(SVC(), *data, cv=KFold(3), method="decision_function")
        gap = 1 / (1 + np.exp(-slope * unseen - level)) - data[1]
        # The gradient of the likelihood is zero, up to the prior of the slope. L-BFGS stops when the mean loss, at most
        # log 2, falls by less than 64 eps of itself. With two columns of mean square one its curvature is at most 1/2,
        # so that its gradient is at most √(2 · 1/2 · 64 eps · log 2) = 1e-7, and the sum is n times that.
        rest = 1e-7 * len(unseen)
        scale = unseen.std() + abs(unseen.mean())  # the curve is fitted to standardized values
        assert gap.sum() == pytest.approx(0, abs=rest)
        assert (gap * unseen).sum() == pytest.approx(
            -1e-3 * slope * unseen.std() ** 2, abs=rest * scale
        )


def test_regressions_too(frozen) -> None:
    z, _, z_new = frozen
    y = z[..., 0] * 0.3
    forest, svm = (head(z, y, z_new, task="regression") for head in (forest_head, svm_head))
    assert np.allclose(
        svm.score[1].numpy(), SVR().fit(z[1].numpy(), y[1].numpy()).predict(z_new[1].numpy())
    )
    trees = RandomForestRegressor(n_estimators=100, random_state=42).fit(z[1].numpy(), y[1].numpy())
    assert np.allclose(forest.score[1].numpy(), trees.predict(z_new[1].numpy()))


def test_the_svm_sees_its_first_rows_only(frozen) -> None:
    z, y, z_new = frozen
    part = svm_head(z, y, z_new, task="classification", rows=100)
    assert torch.equal(
        part.score, svm_head(z[:, :100], y[:, :100], z_new, task="classification").score
    )


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_columns_are_the_gdp_of_each_head(monkeypatch, looped_gdp, task: str) -> None:
    """Two models with given predictions: every column against a loop; the second model has a Z that is not finite."""
    rng = np.random.default_rng(1)
    s = rng.uniform(size=(2, 200))
    score = 3 * s - 1 + rng.normal(size=s.shape)
    head = fresh_heads.Prediction(*map(torch.tensor, (score, 1 / (1 + np.exp(-score)))))
    forest = fresh_heads.Prediction(*(part[:1] for part in head))
    monkeypatch.setattr(fresh_heads, "neural_heads", lambda *_, **__: {"linear": head, "mlp": head})
    monkeypatch.setattr(fresh_heads, "svm_head", lambda *_, **__: head)
    monkeypatch.setattr(
        fresh_heads, "forest_head", lambda z, *_, **__: forest if len(z) == 1 else head
    )
    monkeypatch.setattr(transfer, "FOREST_ROWS", 4)
    encoded = torch.zeros(2, 5, 3)
    trained = SimpleNamespace(
        dataset=[0, 1], models=2, seeds=[0, 1], lam=torch.tensor(LAMS), encode=lambda x: encoded
    )
    splits = SimpleNamespace(
        s_test=torch.tensor(s), y_train=torch.zeros(2, 5), x_train=None, x_test=None
    )
    found = transfer.measure(trained, splits, SimpleNamespace(task=task))
    assert set(found) == {f"{h}_{what}" for h in HEADS for what in ("gdp_mixed", "gdp_sample")}
    for i in range(2):
        assert found["svm_gdp_mixed"][i] == pytest.approx(looped_gdp(score[i], s[i]))
        probability = head.probability[i].numpy()
        assert found["linear_gdp_sample"][i] == pytest.approx(looped_gdp(probability, s[i], s[i]))
    # More rows than a forest may have: it is fitted at the first λ only.
    for what in ("gdp_mixed", "gdp_sample"):
        assert found[f"forest_{what}"][0] == pytest.approx(found[f"svm_{what}"][0], rel=1e-12)
        assert np.isnan(found[f"forest_{what}"][1])
    encoded[1, 0, 0] = torch.nan
    dead = transfer.measure(trained, splits, SimpleNamespace(task=task))
    assert all(np.isnan(values[1]) and values[0] == found[name][0] for name, values in dead.items())


def test_tables_by_hand() -> None:
    heads = {
        "unfair": (0.4, 0.4, 0.1, 0.1),
        "frhsic": (0.2, 0.1, np.nan, 0.3),
        "frem": (0.3, 0.3, 0.1, 0.1),
    }
    performance = {"unfair": 0.85, "frhsic": 0.848, "frem": 0.8}
    lines = [
        {"dataset": "adult", "task": "classification", "method": name, "split": split, "gdp_sample": 0.05,
         "lam": 0.0 if name == "unfair" else 10.0, "performance": performance[name] + shift}
        | {f"{head}_gdp_sample": value + shift for head, value in zip(HEADS, heads[name], strict=True)}
        for name in heads for split, shift in ((42, 0.0), (43, 0.001))
    ]  # fmt: skip
    rows = pd.DataFrame(lines)
    found = at_paper_lambda(spread_table(rows)).loc["adult"]
    assert found.loc["unfair", ["sd", "between"]].tolist() == pytest.approx([0.15, 1.0])
    assert found.loc["frem", ["worst", "excess", "sd"]].tolist() == pytest.approx(
        [0.3005, 0.2505, 0.1]
    )
    assert np.isnan(found.loc["frhsic", "sd"])
    assert found.loc["frhsic", "worst"] == pytest.approx(0.3005)  # of the heads that were fitted
    assert found["kept"].to_dict() == {"frem": False, "frhsic": True, "unfair": True}
    errors = at_paper_lambda(
        spread_table(rows.assign(task="regression", performance=1 - rows["performance"]))
    )
    assert errors.loc["adult", "kept"].to_dict() == {"frem": False, "frhsic": False, "unfair": True}
