"""Fresh heads on frozen representations: each head against its library or a plain loop, the tables, the experiment."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC, SVR
from torch import nn

from frhsic_core.learning.data import random_order
from frhsic_core.paper.experiments import fresh_heads
from frhsic_core.paper.experiments.fresh_heads import forest_head, logistic_curve, neural_heads, svm_head
from frhsic_core.paper.experiments.transfer import (
    CONVENTIONS,
    FOREST_ROWS,
    HEADS,
    LAMS,
    PAPER_LAMS,
    across_heads,
    authors_heads,
    by_head,
    own_and_fresh,
    paired_difference,
    places,
    plan,
    preserving,
    spread_table,
)
from frhsic_core.paper.runs.runner import run_experiment
from frhsic_core.paper.runs.store import ResultStore


@pytest.fixture(scope="module")
def frozen() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(2, 400, 6, generator=generator)
    chance = torch.sigmoid(2 * z[..., 0] - z[..., 1])
    y = (torch.rand(2, 400, generator=generator) < chance).float()
    return z[:, :300], y[:, :300], z[:, 300:]


def alone(head: nn.Module, z: torch.Tensor, y: torch.Tensor, *, seed: int, epochs: int, task: str) -> None:
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
        mlp = nn.Sequential(nn.Linear(6, fresh_heads.HIDDEN), nn.ReLU(), nn.Linear(fresh_heads.HIDDEN, 1))
        for name, head in (("linear", linear), ("mlp", mlp)):
            alone(head, z[i], y[i], seed=seed, epochs=6, task=task)
            with torch.no_grad():
                expected = head(z_new[i]).squeeze(-1).double()
            assert torch.allclose(found[name].score[i], expected, atol=1e-5)
            if task == "classification":
                assert torch.allclose(found[name].probability[i], torch.sigmoid(expected), atol=1e-5)
            else:
                assert torch.equal(found[name].label[i], found[name].score[i])


def test_forest_and_svm_are_the_library_with_its_defaults(frozen) -> None:
    z, y, z_new = frozen
    forest, svm = (head(z, y, z_new, task="classification") for head in (forest_head, svm_head))
    for i in range(2):
        data = z[i].numpy(), y[i].numpy().astype(int)
        trees = RandomForestClassifier(n_estimators=100, random_state=42).fit(*data)
        assert np.allclose(forest.probability[i].numpy(), trees.predict_proba(z_new[i].numpy())[:, 1])
        assert (forest.label[i].numpy() == trees.predict(z_new[i].numpy())).all()
        machine = SVC().fit(*data)
        assert (svm.label[i].numpy() == machine.predict(z_new[i].numpy())).all()
        # A logistic curve of the decision value: increasing in it.
        order = np.argsort(machine.decision_function(z_new[i].numpy()))
        assert (np.diff(svm.probability[i].numpy()[order]) >= 0).all()


def test_regressions_too(frozen) -> None:
    z, _, z_new = frozen
    y = z[..., 0] * 0.3
    forest, svm = (head(z, y, z_new, task="regression") for head in (forest_head, svm_head))
    assert np.allclose(svm.score[1].numpy(), SVR().fit(z[1].numpy(), y[1].numpy()).predict(z_new[1].numpy()))
    trees = RandomForestRegressor(n_estimators=100, random_state=42).fit(z[1].numpy(), y[1].numpy())
    assert np.allclose(forest.score[1].numpy(), trees.predict(z_new[1].numpy()))


def test_the_svm_sees_its_first_rows_only(frozen) -> None:
    z, y, z_new = frozen
    part = svm_head(z, y, z_new, task="classification", rows=100)
    assert torch.equal(part.label, svm_head(z[:, :100], y[:, :100], z_new, task="classification").label)


def test_the_logistic_curve_is_logistic_regression() -> None:
    rng = np.random.default_rng(0)
    x = 3.0 + 0.2 * rng.normal(size=500)
    y = (rng.uniform(size=500) < 1 / (1 + np.exp(-8 * (x - 3.1)))).astype(int)
    slope, level = logistic_curve(x, y)
    library = LogisticRegression(C=1e6, tol=1e-8).fit(x[:, None], y)
    assert slope == pytest.approx(library.coef_[0, 0], rel=1e-2)
    assert level == pytest.approx(library.intercept_[0], rel=1e-2)
    # Values that separate the classes, and one that is constant.
    slope, level = logistic_curve(np.array([-1.0, -0.5, 0.5, 1.0]), np.array([0, 0, 1, 1]))
    assert np.isfinite([slope, level]).all()
    assert slope > 1
    assert logistic_curve(np.zeros(4), np.array([0, 0, 0, 1]))[1] == pytest.approx(np.log(1 / 3), abs=1e-3)


def looped_gdp(f: np.ndarray, s: np.ndarray, *, grid: np.ndarray, constant: float) -> float:
    gaps = []
    for at in grid:
        w = np.exp(-((s - at) ** 2) / (2 * 0.1**2))
        gaps.append(abs((w / (w.sum() + constant) * f).sum() - f.mean()))
    return float(np.mean(gaps))


def test_columns_are_gdp_in_each_convention() -> None:
    from frhsic_core.paper.experiments.fresh_heads import Prediction
    from frhsic_core.paper.experiments.transfer import _columns

    rng = np.random.default_rng(1)
    s = rng.uniform(size=200)
    score = 3 * s - 1 + rng.normal(size=200)
    probability, label = 1 / (1 + np.exp(-score)), (score > 0).astype(float)
    y = (rng.uniform(size=200) < probability).astype(float)
    tensors = [torch.tensor(v)[None] for v in (score, probability, label, y, s)]
    found = _columns(
        "linear", Prediction(*tensors[:3]), tensors[3], tensors[4], "classification", torch.ones(1, dtype=torch.bool)
    )
    grid = np.linspace(s.min(), s.max(), 50)
    expected = {
        "performance": (label == y).mean(),
        "gdp_mixed": looped_gdp(score, s, grid=grid, constant=1e-10),
        "gdp_sample": looped_gdp(probability, s, grid=s, constant=0.0),
        "gdp_uniform": looped_gdp(probability, s, grid=grid, constant=0.0),
        "gdp_label": looped_gdp(label, s, grid=s, constant=0.0),
    }
    for name, value in expected.items():
        assert found[f"linear_{name}"][0] == pytest.approx(value, rel=1e-9), name


def test_the_spread_of_the_authors_values() -> None:
    spread = authors_heads()["sd"].round(3)
    assert spread.loc["adult"].to_dict() == {
        "adv": 0.295, "frem": 0.215, "frhsic": 0.275, "reg_gdp": 0.020, "unfair": 0.426,
    }  # fmt: skip
    # Nearly all of it on Adult is logits against labels.
    assert (authors_heads()["between"].loc["adult"].drop("reg_gdp") > 0.95).all()


def rows_of(values: dict[str, tuple[float, ...]], performance: dict[str, float]) -> pd.DataFrame:
    lines = []
    for name, heads in values.items():
        base = {"dataset": "adult", "task": "classification", "method": name, "option": "", "split": 42}
        base |= {"lam": 0.0 if name == "unfair" else 10.0, "performance": performance[name]}
        for head, value in zip(HEADS, heads, strict=True):
            base |= {f"{head}_performance": 0.8} | {f"{head}_{what}": value for what in CONVENTIONS}
        lines.append(base)
    return pd.DataFrame(lines)


def test_places_count_those_that_keep_performance() -> None:
    values = {
        "unfair": (0.4, 0.4, 0.1, 0.1), "frhsic": (0.2, 0.2, 0.1, 0.1), "frem": (0.3, 0.3, 0.1, 0.1),
        "reg_gdp": (0.1, 0.1, 0.1, 0.1), "adv": (0.15, 0.15, 0.1, 0.1),
    }  # fmt: skip
    rows = rows_of(values, {"unfair": 0.85, "frhsic": 0.848, "frem": 0.847, "reg_gdp": 0.758, "adv": 0.8})
    assert places(rows, "adult").to_dict() == {"frhsic": 1, "frem": 2}
    assert places(rows, "adult", kept_only=False).to_dict() == {"reg_gdp": 1, "adv": 2, "frhsic": 3, "frem": 4}
    found = spread_table(rows).set_index("name")
    assert found.loc["unfair", "sd"] == pytest.approx(0.15)
    assert found.loc["unfair", "between"] == pytest.approx(1.0)
    assert found["kept"].to_dict() == {"adv": False, "frem": True, "frhsic": True, "reg_gdp": False, "unfair": True}
    regression = preserving(rows.assign(task="regression"))["kept"]
    assert not regression["adult", "unfair", 0.0] or regression["adult", "adv", 10.0]
    rows.loc[rows["method"] == "frem", "forest_gdp_mixed"] = np.nan
    assert "frem" not in places(rows, "adult")
    assert across_heads(rows, convention="gdp_mixed", heads=("linear", "mlp", "svm"))["sd"].notna().all()
    assert len(by_head(rows)) == 20


def test_own_and_fresh_is_the_worst_of_the_fitted_heads() -> None:
    values = {"unfair": (0.4, 0.5, 0.6, 0.1), "frhsic": (0.2, 0.1, np.nan, 0.3)}
    rows = rows_of(values, {"unfair": 0.85, "frhsic": 0.85}).assign(gdp_sample=[0.45, 0.05])
    found = own_and_fresh(rows).set_index("name")
    assert found.loc["unfair", ["own", "worst"]].tolist() == [0.45, 0.6]
    assert found.loc["frhsic", ["own", "worst"]].tolist() == [0.05, 0.3]
    assert found.loc["frhsic", "excess"] == pytest.approx(0.25)


def test_the_paired_difference_is_the_library_interval() -> None:
    from scipy.stats import ttest_rel

    rng = np.random.default_rng(0)
    models = (("frhsic", 10.0), ("frem", 10.0), ("frem", 100.0), ("unfair", 0.0))
    lines = [("adult", *model, split, rng.normal()) for split in range(6) for model in models]
    table = pd.DataFrame(lines, columns=["dataset", "name", "lam", "split", "sd"])
    for other, lam in (("frem", 10.0), ("unfair", 0.0)):
        own = table["sd"][(table["name"] == "frhsic") & (table["lam"] == 10.0)]
        theirs = table["sd"][(table["name"] == other) & (table["lam"] == lam)]
        interval = ttest_rel(own.to_numpy(), theirs.to_numpy()).confidence_interval(0.95)
        mean, half = paired_difference(table, "sd", dataset="adult", lam=10.0, other=other)
        assert (mean - half, mean + half) == pytest.approx((interval.low, interval.high))


def test_the_plan_covers_the_papers_points() -> None:
    full = plan("full")
    models = {(job.recipe.task.dataset, job.recipe.method, lam) for job in full.jobs() for lam in job.lams}
    for dataset, lam in PAPER_LAMS.items():
        for method in ("frhsic", "frem", "reg_gdp", "adv"):
            assert (dataset, method, lam) in models
    assert {task.protocol for task in full.tasks} == {"reference"}
    assert dict(full.also[0].options[0][1])["estimator"] == "normalized"


def test_the_smoke_run_end_to_end(tmp_path) -> None:
    smoke = plan("smoke")
    cut = dataclasses.replace(smoke, splits=(42,), also=tuple(dataclasses.replace(p, splits=(42,)) for p in smoke.also))
    store = ResultStore(tmp_path, cut.name)
    report = run_experiment(cut, store, device="cpu")
    assert not report.failed
    rows = store.read()
    assert len(rows) == 1 + 2 * len(LAMS)
    for head in HEADS:
        assert rows[f"{head}_performance"].between(0.3, 1.0).all()
        for name in CONVENTIONS:
            assert rows[f"{head}_{name}"].between(0.0, 3.0).all()
    # Labels are their own score for the last two heads: the paper's convention is that of labels there.
    assert (rows[["forest_gdp_sample", "forest_gdp_label"]].nunique() > 1).all()
    assert set(spread_table(rows)["name"]) == {"unfair", "frhsic", "frhsic:normalised, both"}


def test_a_large_forest_is_left_out_beyond_the_first_lambda(monkeypatch, tmp_path) -> None:
    from frhsic_core.paper.experiments import transfer

    assert FOREST_ROWS > 5000  # COMPAS has its forests
    monkeypatch.setattr(transfer, "FOREST_ROWS", 100)
    cut = dataclasses.replace(plan("smoke"), splits=(42,), methods=("frhsic",), also=())
    store = ResultStore(tmp_path, cut.name)
    run_experiment(cut, store, device="cpu")
    rows = store.read().set_index("lam")
    assert rows["forest_performance"].notna().to_dict() == {10.0: True, 100.0: False}
    assert rows["svm_performance"].notna().all()
