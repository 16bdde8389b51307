"""Levels, power and coverage: the samples are those that are named, and rejections and coverage are counted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from frhsic_core.joint import distance_correlation, mutual_information
from frhsic_core.paper.experiments import levels_and_coverage as study
from frhsic_core.paper.runs.plan import Study
from frhsic_core.paper.runs.runner import run_experiment
from frhsic_core.paper.runs.store import ResultStore
from frhsic_core.paper.runs.stored import stored_rows


def stacked(law: str, n: int, draws: int = 40) -> tuple[np.ndarray, np.ndarray]:
    pairs = [study._sample(law, n, seed) for seed in range(draws)]
    return np.stack([z.numpy() for z, _ in pairs]), np.stack([s.numpy() for _, s in pairs])


@pytest.mark.parametrize("law", study.LAWS)
def test_laws_of_the_level_are_independent(law: str) -> None:
    z, s = stacked(law, 200)
    assert z.shape == s.shape == (40, 200, 1)
    assert abs(stats.spearmanr(z.ravel(), s.ravel()).statistic) < 4 / np.sqrt(z.size)
    distinct = len(np.unique(s))
    assert distinct == (5 if law == "discrete" else s.size)


@pytest.mark.parametrize("law", study.ALTERNATIVES)
def test_alternatives_are_dependent(law: str) -> None:
    z, s = stacked(law, 100)
    assert z.shape == (40, 100, 20 if law == "high-dimensional" else 1)
    assert s.shape == (40, 100, 1)
    assert mutual_information(z.reshape(4000, -1)[:, :1], s.reshape(4000, 1)) > 0.01


@pytest.mark.parametrize("omega", [1, 3])
def test_waves_have_their_density(omega: int) -> None:
    """E[sin(ωx) sin(ωy)] is a quarter for its own frequency and zero for another."""
    x, y = (part.ravel() for part in stacked(f"sin {omega}", 400))
    assert np.mean(np.sin(omega * x) * np.sin(omega * y)) == pytest.approx(0.25, abs=0.02)
    assert np.mean(np.sin(2 * x) * np.sin(2 * y)) == pytest.approx(0.0, abs=0.02)


def test_distance_correlation_has_the_p_value_of_its_own_permutations() -> None:
    z, s = study._sample("linear", 30, 1)
    found = study._pvalues("dcor", z[None], s[None], 199, torch.Generator().manual_seed(2))
    generator = torch.Generator().manual_seed(3)
    null = torch.stack([distance_correlation(z, s[torch.randperm(30, generator=generator)]) for _ in range(400)])
    expected = (null >= distance_correlation(z, s)).double().mean()
    assert found.item() == pytest.approx(expected.item(), abs=0.1)


def test_information_ranks_the_sample_among_its_permutations() -> None:
    z = torch.linspace(-1, 1, 60, dtype=torch.float64).reshape(1, 60, 1)
    found = study._information(z, z**2, 39, torch.Generator().manual_seed(0))
    assert found.tolist() == [1 / 40]
    assert study._information(z, torch.zeros_like(z), 39, torch.Generator().manual_seed(0)).item() > 0.02


def test_units_share_their_samples_and_count_rejections(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def fake(test, z, s, permutations, generator):
        seen.append(z.clone())
        return torch.tensor([0.05, 0.051, 0.049, 1.0])[: len(z)]

    monkeypatch.setattr(study, "_pvalues", fake)
    unit = {"kind": "level", "law": "normal", "n": 20, "draws": 4, "permutations": 19}
    rows = [study.measure_unit_levels_and_power(unit | {"test": test}, "cpu") for test in ("gamma", "aggregated")]
    assert rows[0] == [{"rejected": 2, "rate": 0.5}]
    assert torch.equal(seen[0], seen[1])


@pytest.mark.parametrize(("kind", "law"), [(kind, law) for kind, laws in study.GIVEN.items() for law in laws])
def test_samples_given_c_are_what_they_are_called(kind: str, law: str) -> None:
    """Z − E[Z|C] and S − E[S|C] are uncorrelated in every power where Z ⟂ S | C, and not where it is not."""
    z, s, c = study._sample_given(law, 20000, 1)
    means = {"sine": torch.sin(2 * c), "labels": 2 * c, "labels alike": 2 * c, "labels opposite": 2 * c}
    mean_z = means.get(law, c[:, :1])
    mean_s = mean_z
    if law == "three columns":
        mean_z, mean_s = c.sum(1, keepdim=True), c[:, :1] * c[:, 1:2] + c[:, 2:]
    elif law == "skewed":
        mean_z, mean_s = c.log(), c.log() ** 2
    elif law == "mixed":
        mean_z = mean_s = c[:, :1] * (1 - 2 * c[:, 1:])
    r, q = (z - mean_z).numpy().ravel(), (s - mean_s).numpy().ravel()
    weight = c[:, :1].numpy().ravel()
    products = [r * q, r * q * weight, r**2 * q, np.sin(3 * r) * q]
    largest = max(abs(p.mean()) / p.std() * np.sqrt(len(p)) for p in products)
    assert (largest > 8) == (kind == "given power")


def test_the_full_plan_has_every_cell() -> None:
    cells = pd.DataFrame([dict(settings) for settings in study.plan_levels_and_power("full").units])
    assert (cells[cells["kind"] == "level"]["draws"] >= 2000).all()
    laws = cells.groupby("kind")["law"].nunique().to_dict()
    assert laws == {"level": 4, "power": 8, "given level": 7, "given power": 6}


def smoke_rows(plan: Study, folder: Path) -> pd.DataFrame:
    store = ResultStore(folder, plan.name)
    assert not run_experiment(plan, store, device="cpu").failed
    return store.read()


def test_a_smoke_run_of_the_tests(tmp_path: Path) -> None:
    rows = smoke_rows(study.plan_levels_and_power("smoke"), tmp_path)
    assert list(study.rates(rows, "level").columns) == ["gamma", "spectral", "permutation", "aggregated"]
    assert list(study.rates(rows, "power").index) == [("linear", 40), ("sin 2", 40)]
    assert list(study.rates(rows, "given level").index) == [("labels", 40), ("linear", 40)]


def test_a_smoke_run_of_the_audit(tmp_path: Path) -> None:
    found = study.coverage(smoke_rows(study.plan_audit_coverage("smoke"), tmp_path))
    assert found[["band", "interval"]].isin([0.0, 0.25, 0.5, 0.75, 1.0]).all(axis=None)
    assert list(found["law"]) == ["Cauchy", "ages"]


def test_one_combination_alone_covers_too_rarely_beyond_chance() -> None:
    rows = stored_rows("audit_coverage").set_index(["law", "shape", "score", "n"])
    assert set(rows.index.get_level_values("n")) == {200, 2000, 20_000}
    chance = stats.binom.cdf(rows["band"], rows["draws"], study.COVERAGE) * len(rows)
    assert list(rows.index[chance < 0.05]) == [("log-normal", "wave", "probability", 200)]


def test_a_smoke_run_of_the_bounds(tmp_path: Path) -> None:
    found = study.bound_table(smoke_rows(study.plan_bound_coverage("smoke"), tmp_path))
    assert list(found["settings"]) == [2, 1, 1]
    assert (found["coverage"] == 1).all()
    assert (found["ratio"] > 1).all()


@pytest.mark.parametrize("groups", [2, 30])
def test_the_truth_of_the_bounds_is_the_mean_of_many_draws(groups: int) -> None:
    """With 200,000 rows the estimate is within four standard errors, of at most .5/√n each, plus its upward bias."""
    unit = {"measure": "gdp", "law": "slope", "score": "hard", "groups": groups, "n": 200_000}
    f, s = study.bound_sample(unit, np.random.default_rng(0))
    means = pd.Series(f).groupby(s).transform("mean")
    bias = 0.5 * np.sqrt(groups / 200_000)
    assert np.abs(means - f.mean()).mean() == pytest.approx(study.bound_truth(unit), abs=2 / np.sqrt(200_000) + bias)
