"""Levels, power and coverage: the samples are those that are named, and rejections and coverage are counted."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from frhsic_core import gdp_curve
from frhsic_core.joint import distance_correlation, hsic_test
from frhsic_core.kernels import Gaussian, median_bandwidth
from frhsic_core.paper.experiments import audit_examples, experiment_for
from frhsic_core.paper.experiments import levels_and_coverage as study
from frhsic_core.paper.runs.jobs import run_job

PHI = stats.norm.cdf
# Of each law: functions of (z, s) and their expectations.
EXPECTED: dict[str, list[tuple[Callable[..., np.ndarray], float]]] = {
    "normal": [(lambda z, s: z * z, 1), (lambda z, s: s * s, 1), (lambda z, s: z * s, 0)],
    "cauchy": [(lambda z, s: abs(z) < 1, 1 / 2), (lambda z, s: (abs(s) < 1) & (z > 0), 1 / 4)],
    "discrete": [
        (lambda z, s: z == 0, 2 * PHI(2 / 3) - 1),
        (lambda z, s: z == 3, 2 * PHI(-2)),
        (lambda z, s: s == 0, 2 * PHI(0.5 / 1.2) - 1),
        (lambda z, s: s == 2, PHI(-1.5 / 1.2)),
    ],
    "lognormal": [(lambda z, s: z < np.e, PHI(1)), (lambda z, s: (s > np.e) & (z > 1), PHI(-1) / 2)],
    "linear": [(lambda z, s: z * s, 0.2), (lambda z, s: z * z, 1)],
    "heteroscedastic": [(lambda z, s: z * z, 1.49 + 1.4 * np.sqrt(2 / np.pi)), (lambda z, s: z * s, 0)],
    "circle": [(lambda z, s: z * z, 0.66), (lambda z, s: (z * s) ** 2, 1 / 8 + 0.16 + 0.0256)],
    "high-dimensional": [(lambda z, s: z * s, 0.4), (lambda z, s: z * z, 1)],
} | {
    f"sin {k}": [
        (lambda z, s, k=k: np.sin(k * z) * np.sin(k * s), 1 / 4),
        (lambda z, s, k=k: np.sin((k + 1) * z) * np.sin((k + 1) * s), 0),
    ]
    for k in (1, 2, 3, 4)
}  # fmt: skip


@pytest.mark.parametrize("law", [*study.LAWS, *study.ALTERNATIVES])
def test_laws_have_their_expectations(law: str) -> None:
    """Means of 100,000 draws are within five standard errors of closed forms; Z has 1 or 20 columns."""
    pairs = [study._sample(law, 500, seed) for seed in range(200)]
    z, s = (torch.stack(part).reshape(100_000, -1).numpy() for part in zip(*pairs, strict=True))
    assert (z.shape[1], s.shape[1]) == (20 if law == "high-dimensional" else 1, 1)
    for function, expected in EXPECTED[law]:
        values = function(z[:, 0], s[:, 0]).astype(float)
        assert values.mean() == pytest.approx(expected, abs=5 * values.std() / np.sqrt(len(values)))
    assert np.square(z[:, -1]).mean() == pytest.approx(1, abs=0.03) or law != "high-dimensional"


def test_distance_correlation_has_the_p_value_of_its_own_permutations() -> None:
    z, s = study._sample("linear", 30, 1)
    found = study._pvalues("dcor", z[None], s[None], 199, torch.Generator().manual_seed(2))
    generator = torch.Generator().manual_seed(3)
    null = torch.stack(
        [distance_correlation(z, s[torch.randperm(30, generator=generator)]) for _ in range(400)]
    )
    expected = (null >= distance_correlation(z, s)).double().mean()
    assert found.item() == pytest.approx(expected.item(), abs=0.1)


def test_information_ranks_the_sample_among_its_permutations() -> None:
    z = torch.linspace(-1, 1, 60, dtype=torch.float64).reshape(1, 60, 1)
    found = study._information(z, z**2, 39, torch.Generator().manual_seed(0))
    assert found.tolist() == [1 / 40]
    assert (
        study._information(z, torch.zeros_like(z), 39, torch.Generator().manual_seed(0)).item()
        > 0.02
    )


def test_units_share_their_samples_and_count_rejections(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def fake(test, z, s, permutations, generator):
        seen.append(z.clone())
        return torch.tensor([0.05, 0.051, 0.049, 1.0])[: len(z)]

    monkeypatch.setattr(study, "_pvalues", fake)
    unit = {"kind": "level", "law": "normal", "n": 20, "draws": 4, "permutations": 19}
    rows = [
        study.measure_unit_levels_and_power(unit | {"test": test}, "cpu")
        for test in ("gamma", "aggregated")
    ]
    assert rows[0] == [{"rejected": 2, "rate": 0.5}]
    assert torch.equal(seen[0], seen[1])


def test_one_kernel_for_each_pair_of_bandwidths_is_the_permutation_test() -> None:
    """The same generator gives the same permutations, so the rejections of both halves are equal, pair by pair."""
    unit = {
        "kind": "power",
        "law": "sin 2",
        "n": 200,
        "test": "one kernel",
        "draws": 4,
        "permutations": 39,
    }
    rows = pd.DataFrame(study.measure_unit_levels_and_power(unit, "cpu")).set_index(
        ["width_z", "width_s"]
    )
    assert len(rows) == len(study.WIDTHS) ** 2
    samples = [
        study._sample("sin 2", 200, zlib.crc32(b"power sin 2 200") + draw) for draw in range(4)
    ]
    for pair in ((1.0, 1.0), (0.25, 0.5), (8.0, 0.0625)):
        generator = torch.Generator().manual_seed(1)
        found = []
        for z, s in samples:
            kernels = [
                Gaussian(width * median_bandwidth(x)) for width, x in zip(pair, (z, s), strict=True)
            ]
            options = {"method": "permutation", "n_permutations": 39, "random_state": generator}
            found.append(
                hsic_test(z, s, kernel_z=kernels[0], kernel_s=kernels[1], **options).pvalue
                <= study.ALPHA
            )
        assert rows.loc[pair, ["rejected", "elsewhere"]].tolist() == [
            sum(found[:2]),
            sum(found[2:]),
        ]
    assert 0 < rows["rejected"].sum() < 2 * len(rows)


# Of the laws given C: E[Z | C], E[S | C], and a function of the residuals (r, q) with its expectation.
ROOT = np.sqrt(2 / np.pi)
LABEL = 2 * PHI(-0.5 / 1.2)  # the share of labels that are not zero
GIVEN: dict[str, tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any], float]] = {
    "labels": (lambda c: 2 * c, lambda c: 2 * c, lambda r, q, c: c * c, LABEL),
    "linear": (lambda c: c, lambda c: c, lambda r, q, c: r * q, 0),
    "sine": (lambda c: np.sin(2 * c), lambda c: np.sin(2 * c), lambda r, q, c: r * r + q * q, 0.18),
    "heteroscedastic": (lambda c: c, lambda c: c, lambda r, q, c: r * r + q * q, 2.5 + 2 * ROOT),
    "three columns": (lambda *c: sum(c), lambda a, b, c: a * b + c, lambda r, q, *c: r * q, 0),
    "skewed": (np.log, lambda c: np.log(c) ** 2, lambda r, q, c: r * q, 0),
    "mixed": (lambda c, g: c * (1 - 2 * g), lambda c, g: c * (1 - 2 * g), lambda r, q, c, g: g, 0.4),
    "labels alike": (lambda c: 2 * c, lambda c: 2 * c, lambda r, q, c: r * q, 0.35),
    "labels opposite": (lambda c: 2 * c, lambda c: 2 * c, lambda r, q, c: r * q * c, 0.7 * LABEL),
    "alike": (lambda c: c, lambda c: c, lambda r, q, c: r * q, 0.35),
    "opposite": (lambda c: c, lambda c: c, lambda r, q, c: r * q * c, 0.6),
    "square": (lambda c: c, lambda c: c, lambda r, q, c: r * r * q, 1.5),
    "wave": (lambda c: c, lambda c: c, lambda r, q, c: np.sin(3 * r) * q, 0.5),
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "law"), [(kind, law) for kind, laws in study.GIVEN.items() for law in laws]
)
def test_samples_given_c_have_their_expectations(kind: str, law: str) -> None:
    """Z − E[Z|C] and S − E[S|C] are uncorrelated in every power where Z ⟂ S | C, and not where it is not."""
    z, s, c = (part.numpy().T for part in study._sample_given(law, 40_000, 1))
    mean_z, mean_s, function, expected = GIVEN[law]
    r, q = z[0] - mean_z(*c), s[0] - mean_s(*c)
    values = function(r, q, *c)
    assert values.mean() == pytest.approx(expected, abs=5 * values.std() / np.sqrt(len(values)))
    products = [r * q, r * q * c[0], r**2 * q, np.sin(3 * r) * q]
    largest = max(abs(p.mean()) / p.std() * np.sqrt(len(p)) for p in products)
    assert (largest > 8) == (kind == "given power")


@pytest.mark.parametrize("groups", [2, 30])
def test_the_truth_of_the_bounds_is_the_mean_of_many_draws(groups: int) -> None:
    """With 200,000 rows the estimate is within four standard errors, of at most .5/√n each, plus its upward bias."""
    unit = {"measure": "gdp", "law": "slope", "score": "hard", "groups": groups, "n": 200_000}
    f, s = study.bound_sample(unit, np.random.default_rng(0))
    means = pd.Series(f).groupby(s).transform("mean")
    bias = 0.5 * np.sqrt(groups / 200_000)
    assert np.abs(means - f.mean()).mean() == pytest.approx(
        study.bound_truth(unit), abs=2 / np.sqrt(200_000) + bias
    )


# The audits of the example datasets: a smoke run, and the curve that comes back from its rows -------------------------


def test_a_small_audit_comes_back_from_its_rows() -> None:
    (unit,) = experiment_for("audit_examples", "smoke").jobs
    curve = audit_examples.stored_curve(run_job(unit, device="cpu").rows, "synthetic")
    assert curve.rows.min() >= audit_examples.LEAST_ROWS
    assert curve.n == 30


def test_joined_bins_keep_every_row() -> None:
    generator = np.random.default_rng(0)
    s = np.round(generator.normal(40, 15, 700))
    curve = gdp_curve(np.tanh(s / 50), s)
    joined = audit_examples.joined(curve)
    # A bin ends with the row that makes it large enough; the last one takes what is left.
    below = np.cumsum(curve.rows)
    ends = [int(below.searchsorted(20))]
    while (end := int(below.searchsorted(below[ends[-1]] + 20))) < len(below):
        ends.append(end)
    assert np.cumsum(joined.rows)[:-1].tolist() == below[ends[:-1]].tolist()
    assert joined.rows.sum() == 700
    assert joined.share.sum() == pytest.approx(1.0)
    assert joined.share @ joined.mean == pytest.approx(curve.share @ curve.mean)
    assert joined.gdp == curve.gdp
