"""B_n: the formula, the trivial bound and its attainment, scaling."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from frhsic_core.joint import hsic
from frhsic_core.kernels import Categorical, Gaussian, Laplacian
from frhsic_core.laws import FiniteLaw
from frhsic_core.paper.statements import concentration, parity_gap
from frhsic_core.paper.statements.concentration import (
    TABLES,
    TRIVIAL,
    all_tables,
    bound_certificates,
    coverage,
    drawn_suprema,
    linear_complexity,
    proved_bound,
    root_hsic,
    uniform_bound,
    with_one_row_replaced,
)


def test_the_formulas_term_by_term() -> None:
    root = math.sqrt(math.log(2 / 0.1) / 400)
    for scale, printed, corrected in ((1.0, 1.0, 1.0), (4.0, 8.0, 16.0)):
        first = scale**2 * (8 * math.sqrt(2) * root + 4 / 400)
        for flag, last in ((False, printed), (True, corrected)):
            expected = first + 48 * math.sqrt(math.pi) * last * 0.2
            found = uniform_bound(400, complexity=0.2, delta=0.1, scale=scale, homogeneous=flag)
            assert found == pytest.approx(expected, rel=1e-14)
    expected = math.sqrt(3) * root + 2 / 400 + 20 * math.sqrt(math.pi) * 0.2
    assert proved_bound(400, complexity=0.2, delta=0.1) == pytest.approx(expected, rel=1e-14)


def test_the_trivial_bound_is_attained_and_never_exceeded(generator: torch.Generator) -> None:
    coin = FiniteLaw([0, 1], [0, 1], [[0.5, 0.0], [0.0, 0.5]])
    assert coin.hsic(Categorical(), Categorical()) == TRIVIAL
    values = torch.randint(4, (2000, 12, 1), generator=generator).double()
    for kernel in (Gaussian(0.01), Gaussian(0.3), Gaussian(1.0)):
        assert hsic(values, values, kernel_z=kernel, kernel_s=kernel).max() <= TRIVIAL + 1e-15


def test_the_drawn_suprema_bound_every_encoder_and_are_reached_by_signs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The sample of one draw written out row by row: random encoders, and the entries of one sign of M."""
    drawn = []
    right = concentration.contraction_weights

    def keep(gram, *, row_weights):
        drawn.append((gram, row_weights))
        return right(gram, row_weights=row_weights)

    monkeypatch.setattr(concentration, "contraction_weights", keep)
    (found,) = drawn_suprema(60, 1, random_state=3)
    (gram, uniform), (_, frequencies) = drawn
    assert frequencies.sum().item() == pytest.approx(1.0)
    rows = torch.arange(50).repeat_interleave((60 * frequencies[0]).round().long())
    s = torch.linspace(-1.0, 1.0, 50, dtype=torch.float64).unsqueeze(-1)
    generator = torch.Generator().manual_seed(0)
    gaps = []
    for width in (0.1, 1.0):
        h = torch.randn(200, 50, 1, generator=generator, dtype=torch.float64)
        kernels = {"kernel_z": Gaussian(width), "kernel_s": Gaussian(0.5)}
        empirical = hsic(h[:, rows], s[rows].expand(200, -1, -1), **kernels)
        gaps.append((empirical - hsic(h, s.expand(200, -1, -1), **kernels)).abs())
    assert 0 < torch.cat(gaps).max() <= found
    contrast = right(gram, row_weights=frequencies)[0] - right(gram, row_weights=uniform)
    assert found.item() == pytest.approx(contrast.clamp_min(0.0).sum().item(), abs=1e-14)


def test_coverage_is_decided_by_the_lower_end_of_its_interval() -> None:
    gaps = drawn_suprema(2000, 200, random_state=0)
    for share, verdict in ((0.8, "fails as stated"), (0.95, "fails as stated"), (1.0, "holds")):
        found = coverage("x", gaps, torch.quantile(gaps, share).item())
        assert found.verdict == verdict
    assert found.details["fraction of the bound at which coverage breaks"] == pytest.approx(
        (torch.quantile(gaps, 0.95) / gaps.max()).item()
    )
    with pytest.raises(ValueError, match="cannot fail"):
        coverage("x", torch.zeros(10), TRIVIAL)


def test_coverage_is_counted_with_the_bound_of_the_theorem(monkeypatch: pytest.MonkeyPatch) -> None:
    """Coverage cannot notice a bound that is a little too small; its value can. A supremum of 1/5 is too large."""
    (one,), (two,) = concentration.any_encoders(quick=True), concentration.train_to_test(quick=True)
    assert one.details["bound"] == uniform_bound(one.details["n"], complexity=0.0)
    assert two.details["bound"] == 2 * uniform_bound(two.details["n"], complexity=0.0)
    monkeypatch.setattr(
        concentration, "drawn_suprema", lambda n, draws, **_: torch.full((draws,), 0.2).double()
    )
    for check in (concentration.any_encoders, concentration.train_to_test):
        assert check(quick=True)[0].verdict == "fails as stated"


@pytest.mark.parametrize("n", [2, 3, 8])
def test_a_replaced_row_moves_what_loops_move(n: int, generator: torch.Generator) -> None:
    phi, psi = torch.randn(2, n + 1, 4, generator=generator, dtype=torch.float64)

    def covariance(rows: range) -> torch.Tensor:
        mean_phi, mean_psi = (sum(x[i] for i in rows) / n for x in (phi, psi))
        return sum(torch.outer(phi[i] - mean_phi, psi[i] - mean_psi) for i in rows) / (n - 1)

    before, after = with_one_row_replaced(phi, psi)
    torch.testing.assert_close(before, n * covariance(range(n)))
    torch.testing.assert_close(after, n * covariance(range(1, n + 1)))


def test_three_values_reach_root_six_and_a_new_group_reaches_two() -> None:
    """The examples of the chapters: all other rows are equal, and one moves from the second value to the third."""
    features = torch.eye(3, dtype=torch.float64)[[1, 0, 0, 0, 2]]
    before, after = with_one_row_replaced(features, features)
    assert torch.linalg.matrix_norm(before - after).item() == pytest.approx(
        math.sqrt(6.0), rel=1e-14
    )
    scores = torch.tensor([[1.0], [0.0], [0.0], [0.0], [1.0]], dtype=torch.float64)
    before, after = with_one_row_replaced(
        scores, torch.eye(2, dtype=torch.float64)[[1, 0, 0, 0, 0]]
    )
    assert (before.abs().sum().item(), after.abs().sum().item()) == (
        pytest.approx(2.0),
        pytest.approx(0.0, abs=1e-15),
    )


@pytest.mark.parametrize("factor", [1.01, 0.98])
@pytest.mark.parametrize("check", [concentration.bounded_difference, parity_gap.gdp_of_groups])
def test_another_change_by_one_row_is_caught(
    monkeypatch: pytest.MonkeyPatch, factor: float, check
) -> None:
    for module in (concentration, parity_gap):
        monkeypatch.setattr(
            module,
            "with_one_row_replaced",
            lambda *given: [factor * part for part in with_one_row_replaced(*given)],
        )
    assert [i for i, c in enumerate(check(quick=True)) if c.verdict == "fails as stated"] == [0]


def test_the_root_of_a_table_is_that_of_hsic() -> None:
    counts = all_tables(5, 4)
    assert len(np.unique(counts, axis=0)) == math.comb(8, 3)
    assert (counts.sum(1) == 5).all()
    for table in counts[::7]:
        joint = table.reshape(2, 2) / 5
        squares = (joint - np.outer(joint.sum(1), joint.sum(0))) ** 2  # HSIC for kernels 1[x = y]
        assert root_hsic(table / 5) == pytest.approx(math.sqrt(squares.sum()), abs=1e-12)


def test_all_samples_have_the_mean_and_the_failures_of_drawn_ones() -> None:
    law, n = (0.3, 0.2, 0.1, 0.4), 9
    truth = 2 * abs(0.3 * 0.4 - 0.2 * 0.1)
    mean, failure = bound_certificates("root", root_hsic, [law], {"": lambda delta: 0.05}, n=n)
    drawn = n / (n - 1) * root_hsic(np.random.default_rng(0).multinomial(n, law, 40_000) / n)
    assert (mean.middle, mean.upper) == (
        pytest.approx(truth),
        pytest.approx(drawn.mean(), abs=4 * drawn.std() / 200),
    )
    assert failure.middle == pytest.approx((drawn + 0.05 < truth).mean(), abs=0.01)
    assert (
        failure.upper == 0.05
    )  # the failures do not depend on δ, so that the smallest δ is the worst


@pytest.mark.parametrize(("share", "factor", "broken"), [(0.05, 1.0, 1), (1.0, 0.98, 0)])
def test_a_bound_that_is_too_small_is_caught(share: float, factor: float, broken: int) -> None:
    def estimate(table: np.ndarray) -> np.ndarray:
        return root_hsic(table) * (
            factor if table.ndim == 2 else 1
        )  # the truth is that of one table

    slacks = {"": lambda delta: share * math.sqrt(3 * math.log(1 / delta) / 40)}
    assert (
        bound_certificates("root", estimate, TABLES, slacks, n=40)[broken].verdict
        == "fails as stated"
    )


def test_the_variance_of_a_table_is_that_of_its_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound with the variance gets the mean of (1 − k)(1 − l) over all pairs of the rows of each table."""
    given = []
    monkeypatch.setattr(
        concentration, "pair_slack", lambda variance, n, delta: given.append(variance) or variance
    )
    concentration.root_certificate(quick=True)
    for index, table in list(enumerate(all_tables(40, 4)))[::2000]:
        z, s = np.repeat([0, 0, 1, 1], table), np.repeat([0, 1, 0, 1], table)
        both = (z[:, None] != z) & (s[:, None] != s)
        assert given[0][index] == pytest.approx(both.sum() / (40 * 39))


def test_the_scaled_example_is_what_it_says() -> None:
    # A smaller copy of the same construction, with the encoder written out and HSIC computed from the sample.
    n, factor = 400, 7.0
    s = 3.0 * (torch.arange(n) % 2).double().unsqueeze(-1)

    class Scaled:
        bound, lipschitz = factor, math.sqrt(factor)

        def __call__(self, x: torch.Tensor, y: torch.Tensor | None = None) -> torch.Tensor:
            return factor * Gaussian(1.0)(x, y)

    value = float(hsic(s, s, kernel_z=Scaled(), kernel_s=Scaled()))
    assert value == pytest.approx(factor**2 / 16 * (2 - 2 * math.exp(-4.5)) ** 2)
    printed, _ = concentration.broken_by_kernels("x", learned=True, factor=factor)
    assert printed.middle == pytest.approx(value, rel=1e-12)
    # With a million fair coins the share of ones is far from one half with probability 1e-6 only.
    assert 1 - 1e-4 < concentration.broken_by_kernels("x", factor=factor)[0].middle / value < 1
    noise = torch.randn(4000, n, generator=torch.Generator().manual_seed(0))
    best = 3.0 * noise.clamp_min(0.0).mean(1).mean().item()
    assert best == pytest.approx(printed.details["G_n"], rel=0.01)


@pytest.mark.parametrize(("rows", "dimension"), [(1, 1), (3, 1), (1, 4), (2, 5), (7, 50)])
def test_orthogonal_inputs_have_a_chi_mean(rows: int, dimension: int) -> None:
    # Orthonormal rows: ‖Σξ_i x_iᵀ‖_F is a chi variable with rows·dimension degrees of freedom.
    k = rows * dimension
    expected = math.sqrt(2.0) * math.exp(math.lgamma((k + 1) / 2) - math.lgamma(k / 2)) / rows
    found = linear_complexity(
        torch.eye(rows, 8, dtype=torch.float64), radius=2.5, dimension=dimension
    )
    assert found.item() == pytest.approx(2.5 * expected, rel=1e-12)


def test_a_lipschitz_feature_map_in_the_place_of_the_laplacian_one_breaks_nothing(
    monkeypatch,
) -> None:
    """The steepness is computed from the kernel, so another kernel gives another verdict."""
    printed, corrected = concentration.laplacian_feature_map()
    assert (printed.verdict, corrected.verdict) == ("fails as stated", "holds as corrected")
    monkeypatch.setattr(concentration, "Laplacian", lambda _: Gaussian(1e-4))
    printed, corrected = concentration.laplacian_feature_map()
    assert corrected.verdict != "holds as corrected", "this feature map is not Hölder with 1/2"


@pytest.mark.parametrize(("kernel", "exponent"), [(Gaussian(1.0), 1.0), (Laplacian(2.0), 0.5)])
def test_the_steepness_of_a_feature_map(kernel, exponent: float) -> None:
    near, far = (concentration.steepness(kernel, distance) for distance in (1e-4, 1e-2))
    assert 1.0 + math.log(near / far) / math.log(1e-2) == pytest.approx(exponent, abs=2e-3)


def test_other_kernels_do_not_break_the_printed_bound(monkeypatch) -> None:
    """The deviation is HSIC of the library: a kernel that tells no values apart has none."""
    assert concentration.broken_by_kernels("x")[0].verdict == "fails as stated"
    monkeypatch.setattr(concentration, "UNIT", Gaussian(1e6))
    assert concentration.broken_by_kernels("x")[0].verdict == "holds"
