"""The supremum over encoders: against the library's HSIC on real samples, finer grids, and random networks."""

from __future__ import annotations

import pytest
import torch

from frhsic_core.joint import hsic
from frhsic_core.paper.statements.encoder_suprema import (
    any_class,
    linear_class,
    mlp_class,
    parameter_grid,
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
    drawn = law.draw(1000, 400, generator=generator)
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
    frequencies = law.draw(60, 20, generator=generator)
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


def test_ascent_beats_random_networks_and_stays_below_the_bound_for_any_class(generator: torch.Generator) -> None:
    law = two_column_inputs(points=3)
    frequencies = law.draw(100, 5, generator=generator)
    found = mlp_class(law, frequencies, radius=3.0, generator=generator)
    assert (found.lower <= found.upper).all()
    inner = torch.randn(300, 2, 4, generator=generator, dtype=torch.float64)
    outer = torch.randn(300, 4, 1, generator=generator, dtype=torch.float64)
    inner, outer = (3.0 * p / torch.linalg.matrix_norm(p, keepdim=True).clamp_min(3.0) for p in (inner, outer))
    gram = law.kernel_z(torch.tanh(law.x @ inner) @ outer)
    gaps = torch.einsum("gij,bij->bg", gram, law.contrast(frequencies)).abs()
    assert (gaps.amax(1) <= found.lower * 1.02).all()
    assert (gaps.amax(1) <= found.upper).all()
