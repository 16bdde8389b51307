"""The variants: their plan, the rule that ranks them, rare values of S, and what the stored rows say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from frhsic_core.learning.protocols import make_penalty
from frhsic_core.paper.experiments import variants
from frhsic_core.paper.experiments.presets import GRIDS, experiment_for
from frhsic_core.paper.experiments.variants import (
    BASE,
    CELLS,
    FEWEST,
    PUBLISHED,
    RARE,
    VARIANTS,
    cell_statistics,
    sweep_of,
    variant_rows,
)
from frhsic_core.paper.experiments.variants.tables import (
    MEASURES,
    best,
    factor_table,
    ranking,
    variant_areas,
)
from frhsic_core.paper.runs.plan import Task
from frhsic_core.paper.runs.runner import run_experiment
from frhsic_core.paper.runs.store import ResultStore


def test_every_variant_is_one_departure_with_all_settings_said() -> None:
    """Names are unique, penalties can be built, and nothing is left to a default."""
    assert len({(v.method, v.option) for v in VARIANTS}) == len(VARIANTS)
    for v in VARIANTS:
        assert make_penalty(v.method, protocol="reference", **dict(v.settings)).key == v.method
        if v.method == "frhsic":
            assert set(dict(v.settings)) == set(BASE)
            changed = sum(dict(v.settings)[name] != BASE[name] for name in BASE)
            changed += (v.batch_size != 256) + bool(v.widths)
            expected = {"base": 0, "published, every batch": 3}
            assert changed == expected.get(v.factor, 1)


def test_the_rivals_published_settings_are_those_of_the_protocol() -> None:
    """The main sweep's rows may stand for them."""
    for v in PUBLISHED[1:]:
        said = make_penalty(v.method, protocol="reference", **dict(v.settings)).settings()
        assert said == make_penalty(v.method, protocol="reference").settings()


def test_plan_has_equal_grids_and_the_papers_splits() -> None:
    """Two datasets, nine λ, five splits."""
    plan = experiment_for("variants", "full")
    jobs = plan.jobs()
    assert len(jobs) == 2 * len(VARIANTS) - sum(bool(v.datasets) for v in VARIANTS)
    assert {job.lams for job in jobs} == {GRIDS["full"]}
    assert {job.splits for job in jobs} == {(42, 43, 44, 45, 46)}
    sizes = {(job.recipe.batch_size, job.recipe.network) for job in jobs}
    assert {64, 256, 1024} == {size for size, _ in sizes}
    assert any(network == (("widths", (50, 8)),) for _, network in sizes)


def test_smoke_end_to_end(tmp_path: Path) -> None:
    """A few variants are trained, stored, joined with Unfair, compared and ranked."""
    few = (*VARIANTS[:3], next(v for v in VARIANTS if v.batch_size == 64), next(v for v in VARIANTS if v.widths))
    task = Task("synthetic", "text", "reference", (("n", 300),))
    plan = sweep_of(few, "variants_smoke", (task,), (1.0, 100.0), (42, 43), epochs=2)
    store = ResultStore(tmp_path, "variants_smoke")
    report = run_experiment(plan, store, device="cpu")
    assert (report.jobs, report.failed) == (6, [])
    rows = store.read()
    joined = variant_rows(rows, rows[rows["method"] == "unfair"])
    assert set(joined["name"]) == {"unfair"} | {v.name for v in few}
    assert variant_areas(joined).notna().all().all()
    table = ranking(joined)
    assert list(table["score"]) == sorted(table["score"])
    assert best(joined, count=2) == tuple(table["name"][:2])
    assert len(factor_table(joined, method="frhsic")) == 5


def synthetic_rows(points: dict[str, list[tuple[float, float]]]) -> pd.DataFrame:
    """Rows of one dataset: for each name, performance and dependence along two λ."""
    base = {"dataset": "d", "variant": "reference", "protocol": "reference", "task": "classification", "split": 42}
    base |= {"constant": 0.5, "ratio": np.nan}
    lines = [{**base, "name": "unfair", "method": "unfair", "lam": 0.0, "performance": 0.9, "value": 1.0}]
    for name, sweep in points.items():
        for lam, (performance, value) in zip((1.0, 10.0), sweep, strict=True):
            lines.append(
                {**base, "name": name, "method": "frhsic", "lam": lam, "performance": performance, "value": value}
            )
    rows = pd.DataFrame(lines)
    return rows.assign(**dict.fromkeys(MEASURES, rows["value"]))


def test_the_rule_by_hand() -> None:
    """Places by nAUP, plus the number of variants times the share that collapsed."""
    rows = synthetic_rows(
        {
            "frhsic:good": [(0.88, 0.3), (0.85, 0.1)],
            "frhsic:weak": [(0.80, 0.6), (0.70, 0.4)],
            "frhsic:collapses": [(0.89, 0.3), (0.50, 0.0)],
        }
    )
    table = ranking(rows).set_index("name")
    # By nAUP alone: "good" reaches .85 at a budget of .1, "collapses" waits for .3.
    assert table["rank"].to_dict() == {"frhsic:good": 1.0, "frhsic:collapses": 2.0, "frhsic:weak": 3.0}
    assert table.loc["frhsic:collapses", "score"] == pytest.approx(2.0 + 3 * 0.5)
    assert best(rows, count=2) == ("frhsic:good", "frhsic:weak")


def brute(f: np.ndarray, right: np.ndarray, s: np.ndarray) -> dict[str, float]:
    """Compute the statistics of one model with loops."""
    width = (s.max() - s.min()) / CELLS
    cell = np.minimum(((s - s.min()) / width).astype(int), CELLS - 1)
    gaps = {c: abs(f[cell == c].mean() - f.mean()) for c in set(cell) if (cell == c).sum() >= FEWEST}
    sizes = {c: int((cell == c).sum()) for c in range(CELLS)}
    rare, held = [], 0
    for c in sorted(sizes, key=lambda c: (sizes[c], c)):
        held += sizes[c]
        if held > RARE * len(s):
            break
        rare.append(c)
    among = np.isin(cell, rare)
    below, upto = np.array([(s < v).sum() for v in s]), np.array([(s <= v).sum() for v in s])
    tenth = (10 * 0.5 * (below + upto) / len(s)).astype(int)
    return {
        "cell_gap": float(np.mean(list(gaps.values()))),
        "people_gap": sum(gaps[c] * sizes[c] for c in gaps) / sum(sizes[c] for c in gaps),
        "worst_gap": max(abs(f[tenth == t].mean() - f.mean()) for t in set(tenth)),
        "rare_gap": abs(f[among].mean() - f.mean()),
        "rare_performance": right[among].mean(),
        "rare_share": among.mean(),
    }


def test_statistics_of_rare_values_by_loops() -> None:
    """Skewed integer S, as ages are."""
    rng = np.random.default_rng(0)
    s = np.floor(rng.gamma(2.0, 8.0, 600)) + 18.0
    f, right = rng.random((3, 600)), (rng.random((3, 600)) > 0.3).astype(float)
    found = cell_statistics(torch.tensor(f), torch.tensor(right), torch.tensor(s))
    for i in range(3):
        for name, value in brute(f[i], right[i], s).items():
            assert found[name][i].item() == pytest.approx(value), name


def test_minority_end_to_end(tmp_path: Path) -> None:
    """Both references are trained; the columns are there for every row."""
    store = ResultStore(tmp_path, "minority_smoke")
    assert not run_experiment(variants.plan_minority("smoke"), store, device="cpu").failed
    rows = store.read()
    assert set(rows["option"]) == {"", *(name for name, _ in variants._REFERENCES)}
    assert rows[["cell_gap", "worst_gap", "rare_gap", "rare_performance"]].notna().all().all()


def test_text_and_full_plans_differ_in_the_grid_alone() -> None:
    """The paper's five λ are among the nine."""
    text, full = variants.plan("text"), variants.plan("full")
    assert {job.recipe.key for job in text.jobs()} == {job.recipe.key for job in full.jobs()}
    assert set(text.lams) < set(full.lams)
