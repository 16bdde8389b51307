"""The supremum over encoders: against the library's HSIC on real samples, finer grids, and random networks."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from frhsic_core.joint import hsic
from frhsic_core.kernels import Gaussian
from frhsic_core.paper.statements import uniform_coverage
from frhsic_core.paper.statements.concentration import Constants, linear_complexity, proved_bound, uniform_bound
from frhsic_core.paper.statements.parity_gap import gap_spectrum
from frhsic_core.paper.statements.uniform_coverage import (
    _coverage,
    all_tables,
    any_class,
    class_complexity,
    learned_encoder,
    linear_class,
    moved_covariance,
    moved_hsic,
    parameter_grid,
    projected_gap,
    root_hsic,
    two_column_inputs,
)


def test_contrast_is_the_difference_of_two_hsics(generator: torch.Generator) -> None:
    law = two_column_inputs()
    rows = torch.randint(50, (80,), generator=generator)
    frequencies = torch.bincount(rows, minlength=50).double().unsqueeze(0) / 80
    w = torch.tensor([[0.7, -1.1]], dtype=torch.float64)
    z, s = law.x[rows] @ w.T, law.s[rows]
    empirical = hsic(z, s, kernel_z=law.kernel_z, kernel_s=law.kernel_s)
    population = hsic(law.x @ w.T, law.s, kernel_z=law.kernel_z, kernel_s=law.kernel_s)  # uniform law: its own sample
    difference = (law.encoded_gram(w) * law.contrast(frequencies)).sum()
    assert torch.allclose(difference, empirical - population, atol=1e-15)


def test_frequencies_have_the_right_mean_and_size(generator: torch.Generator) -> None:
    law = two_column_inputs(columns=1)
    drawn = law.draw(1000, 400, random_state=generator)
    assert torch.allclose(drawn.sum(1), torch.ones(400, dtype=torch.float64))
    assert torch.allclose((drawn * 1000).round(), drawn * 1000)
    assert (drawn.mean(0) - law.probabilities).abs().max() < 5 * (0.1 * 0.9 / 400_000) ** 0.5


@pytest.mark.parametrize("columns", [1, 2])
def test_the_grid_covers_the_ball(columns: int, generator: torch.Generator) -> None:
    grid, reach = parameter_grid(columns, radius=1.0, step=0.1)
    w = torch.randn(5000, columns, generator=generator, dtype=torch.float64)
    w = w / w.norm(dim=-1, keepdim=True) * torch.rand(5000, 1, generator=generator, dtype=torch.float64)
    nearest = torch.minimum(torch.cdist(w, grid).amin(1), torch.cdist(-w, grid).amin(1))
    assert nearest.max() <= reach + 1e-12
    with pytest.raises(ValueError, match="3 parameters"):
        parameter_grid(3, radius=1.0, step=0.1)


@pytest.mark.parametrize("columns", [1, 2])
def test_the_bracket_holds_a_finer_grid_and_random_encoders(columns: int, generator: torch.Generator) -> None:
    law = two_column_inputs(columns=columns, points=4)
    frequencies = law.draw(60, 20, random_state=generator)
    coarse = linear_class(law, frequencies, radius=1.5, step=0.1)
    fine = linear_class(law, frequencies, radius=1.5, step=0.02)
    assert (coarse.lower <= fine.upper).all()
    assert (fine.lower <= coarse.upper).all()
    assert ((fine.upper - fine.lower) < (coarse.upper - coarse.lower)).all()
    w = torch.randn(500, columns, generator=generator, dtype=torch.float64)
    w = 1.5 * w / w.norm(dim=-1, keepdim=True).clamp_min(1.5)
    gaps = (law.encoded_gram(w).flatten(1) @ law.contrast(frequencies).flatten(1).T).abs()
    assert (gaps <= fine.upper).all()
    assert (fine.upper <= any_class(law, frequencies)).all()


def test_coverage_refuses_a_bound_that_cannot_fail() -> None:
    with pytest.raises(ValueError, match="cannot fail"):
        _coverage("x", torch.zeros(10), 0.25)


def test_projected_gap_is_that_of_the_sample(generator: torch.Generator) -> None:
    law = two_column_inputs(points=3)
    rows = torch.randint(18, (1, 40), generator=generator)
    frequencies = torch.bincount(rows[0], minlength=18).double().unsqueeze(0) / 40
    z = law.x[:, :1] - 0.5 * law.x[:, 1:]
    head = law.kernel_z(z, torch.zeros(1, 1, dtype=torch.float64)).squeeze(-1)
    found = gap_spectrum(
        z[rows[0]],
        law.s[rows[0]],
        anchors=torch.zeros(1, 1),
        coefficients=torch.ones(1),
        kernel_z=law.kernel_z,
        kernel_s=law.kernel_s,
    )
    for m in (1, 2, 3):
        expected = found.mean_squares[m - 1] * found.eigenvalues[m - 1] / found.squared_norm
        assert torch.allclose(projected_gap(head.unsqueeze(0), law.gram_s, frequencies, m=m)[0], expected, atol=1e-14)


def test_coverage_fails_for_a_bound_that_is_too_small(generator: torch.Generator) -> None:
    law = two_column_inputs(columns=1)
    gaps = linear_class(law, law.draw(100, 200, random_state=generator), radius=2.0, step=0.01).upper
    small = _coverage("x", gaps, torch.quantile(gaps, 0.8).item())
    assert small.verdict == "fails as stated"
    # 95 of 100 hits do not show a coverage of 95 %: the lower end of the interval decides.
    assert _coverage("x", gaps, torch.quantile(gaps, 0.95).item()).verdict == "fails as stated"
    assert _coverage("x", gaps, gaps.max().item()).verdict == "holds"


def test_complexity_of_the_class_is_that_of_the_rows(generator: torch.Generator) -> None:
    law = two_column_inputs()
    frequencies = law.draw(40, 1, random_state=generator)
    rows = law.x.repeat_interleave((frequencies[0] * 40).round().long(), 0)
    expected = linear_complexity(rows, radius=2.0, dimension=1).item()
    assert class_complexity(law, frequencies, n=40) == pytest.approx(expected, rel=1e-12)


def test_the_adversary_is_the_worst_choice(generator: torch.Generator) -> None:
    law = two_column_inputs()
    frequencies = law.draw(100, 50, random_state=generator)
    gaps = {}
    for choose in ("objective", "worst"):
        empirical, population = learned_encoder(law, frequencies, choose=choose, step=0.2)
        gaps[choose] = population - empirical
    assert (gaps["worst"] >= gaps["objective"] - 1e-15).all()
    assert (gaps["worst"] <= linear_class(law, frequencies, radius=2.0, step=0.2).upper).all()
    # The objective pays for dependence: its encoder has no larger HSIC_n than w = (1, 1), which has no loss. It is that
    # encoder in some samples, and then the two sums differ by rounding.
    empirical, _ = learned_encoder(law, frequencies, choose="objective", step=0.2)
    free = law.encoded_gram(torch.ones(1, 2, dtype=torch.float64))
    without_penalty = (free * law.empirical(frequencies)).sum((-2, -1))
    assert (empirical <= without_penalty + 1e-15).all()
    assert (empirical < without_penalty).double().mean() > 0.9
    with pytest.raises(ValueError, match="choose is 'best'"):
        learned_encoder(law, frequencies, choose="best", step=0.2)


def test_the_bound_for_any_class_is_reached_by_the_entries_of_one_sign(generator: torch.Generator) -> None:
    law = two_column_inputs(points=3)
    frequencies = law.draw(100, 5, random_state=generator)
    positive = law.contrast(frequencies).clamp_min(0.0).sum((-2, -1))
    assert torch.allclose(any_class(law, frequencies), positive, atol=1e-14)


def test_a_coarse_grid_still_brackets(generator: torch.Generator) -> None:
    law = two_column_inputs(columns=1, points=6, bandwidth=0.2)
    frequencies = law.draw(60, 20, random_state=generator)
    coarse = linear_class(law, frequencies, radius=2.0, step=0.5)
    fine = linear_class(law, frequencies, radius=2.0, step=0.01)
    assert (fine.lower <= coarse.upper).all()
    # Every point of this grid lies in the ball, so that the bracket is the Lipschitz constant times half a step. The
    # steepest part of the kernel is found by differences.
    distances = torch.linspace(0.0, 1.0, 100_001, dtype=torch.float64).unsqueeze(-1)
    values = law.kernel_z(distances, torch.zeros(1, 1, dtype=torch.float64)).squeeze(-1)
    steepest = values.diff().abs().max() * 100_000
    moved = (law.contrast(frequencies).abs() * torch.cdist(law.x, law.x)).sum((-2, -1))
    torch.testing.assert_close(coarse.upper - coarse.lower, 0.25 * steepest * moved, rtol=1e-4, atol=0.0)


def test_the_bridge_looks_at_population_above_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    def chosen(_law, frequencies, **_options):
        return torch.zeros(len(frequencies)), torch.full((len(frequencies),), 0.2)  # the root is .45

    monkeypatch.setattr(uniform_coverage, "learned_encoder", chosen)
    assert {c.verdict for c in uniform_coverage.learned_encoders(quick=True)} == {"fails as stated"}


def test_coverage_is_counted_with_the_bound_of_the_theorem() -> None:
    """Coverage cannot notice a bound that is a little too small; its value can."""
    constants = Constants(1.0, 1.0, 2.0, 2.0)  # Gaussian kernels of bandwidth one half
    for certificate in uniform_coverage.linear_encoders(quick=True):
        bound = uniform_bound if "printed" in certificate.claim else proved_bound
        details = certificate.details
        expected = bound(details["n"], complexity=details["complexity"], delta=0.05, constants=constants)
        assert details["bound"] == pytest.approx(expected, rel=1e-12)


def test_the_projected_test_gap_counts_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """Coverage cannot notice a left side that is too small; its quantile can."""
    quantiles = []
    for level in (0.0, 0.1):
        monkeypatch.setattr(
            uniform_coverage, "projected_gap", lambda head, *_, m, level=level: level + 0.0 * head[:, 0]
        )
        _, gap = uniform_coverage.train_to_test(quick=True)
        quantiles.append(gap.details["quantile of the supremum"])
    assert quantiles[1] - quantiles[0] == pytest.approx(0.1, abs=1e-12)


def test_the_inputs_are_those_of_the_docstring() -> None:
    law = two_column_inputs(points=3)
    noise = law.s[:, 0] - law.x[:, 0] - 0.5 * law.x[:, 1] ** 2
    assert noise.tolist() == pytest.approx([-0.25, 0.25] * 9)
    assert torch.unique(law.x, dim=0).tolist() == [[a, b] for a in (-1.0, 0.0, 1.0) for b in (-1.0, 0.0, 1.0)]


@pytest.mark.parametrize("n", [2, 3, 8])
def test_a_replaced_row_moves_what_features_move(n: int, generator: torch.Generator) -> None:
    """The covariance and HSIC written out with features, whose Gram matrices are those that are passed."""
    phi, psi = torch.randn(2, n + 1, 4, generator=generator, dtype=torch.float64)

    def covariance(kept: slice) -> torch.Tensor:
        a, b = (features[kept] - features[kept].mean(0) for features in (phi, psi))
        return torch.einsum("ia,ib->ab", a, b) / n

    old, new = covariance(slice(0, n)), covariance(slice(1, n + 1))
    found = moved_covariance(phi @ phi.mT, psi @ psi.mT)
    assert torch.allclose(found, n * (old - new).square().sum().sqrt(), atol=1e-10)
    change = n * (old.square().sum() - new.square().sum()).abs()
    assert torch.allclose(moved_hsic(phi @ phi.mT, psi @ psi.mT), change, atol=1e-10)


def test_a_smaller_constant_than_root_six_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = uniform_coverage.moved_covariance
    monkeypatch.setattr(uniform_coverage, "moved_covariance", lambda k, l: 1.1 * right(k, l))
    verdicts = [c.verdict for c in uniform_coverage.bounded_difference(quick=True)]
    assert verdicts[:2] == ["fails as stated", "fails as stated"]


def test_the_root_of_a_table_is_that_of_hsic(generator: torch.Generator) -> None:
    counts = all_tables(5)
    assert len(counts) == math.comb(8, 3)
    assert (counts.sum(1) == 5).all()
    for table in counts[::7]:
        cells = np.repeat(np.array([[0, 0], [1, 0], [0, 1], [1, 1]]), table, axis=0)
        z, s = (torch.tensor(column, dtype=torch.float64).unsqueeze(-1) for column in cells.T)
        value = hsic(1e3 * z, 1e3 * s, kernel_z=Gaussian(1.0), kernel_s=Gaussian(1.0))  # far apart: 1[x = y]
        assert root_hsic(table / 5) == pytest.approx(math.sqrt(max(value.item(), 0.0)), abs=1e-12)


@pytest.mark.parametrize(("slack", "factor", "broken"), [(0.2, 1.0, 2), (1.0, 0.98, 0)])
def test_a_root_bound_that_is_too_small_is_caught(monkeypatch, slack: float, factor: float, broken: int) -> None:
    right, roots = uniform_coverage.root_slack, uniform_coverage.root_hsic
    monkeypatch.setattr(uniform_coverage, "root_slack", lambda n, **options: slack * right(n, **options))
    monkeypatch.setattr(uniform_coverage, "root_hsic", lambda table: roots(table) * (factor if table.ndim == 2 else 1))
    assert uniform_coverage.root_certificate(quick=True)[broken].verdict == "fails as stated"


def test_the_chosen_encoder_has_the_smallest_objective(generator: torch.Generator) -> None:
    """Loss plus ten times HSIC_n of every encoder of the grid, from samples written out row by row."""
    law = two_column_inputs(points=3)
    frequencies = law.draw(30, 6, random_state=generator)
    empirical, _ = learned_encoder(law, frequencies, choose="objective", step=0.5)
    grid, _ = parameter_grid(2, radius=2.0, step=0.5)
    grid = grid[grid.norm(dim=-1) <= 2.0]
    for one, chosen in zip(frequencies, empirical, strict=True):
        rows = torch.arange(18).repeat_interleave((30 * one).round().long())
        x, s = law.x[rows], law.s[rows]
        values = torch.stack([hsic(x @ w.unsqueeze(-1), s, kernel_z=law.kernel_z, kernel_s=law.kernel_s) for w in grid])
        losses = torch.stack([(x @ w - x.sum(-1)).square().mean() for w in grid])
        assert chosen == pytest.approx(values[(losses + 10 * values).argmin()].item(), abs=1e-12)
