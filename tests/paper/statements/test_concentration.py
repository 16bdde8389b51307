"""B_n: the formula, the trivial bound and its attainment, scaling."""

from __future__ import annotations

import math

import pytest
import torch

from frhsic_core.joint import hsic
from frhsic_core.kernels import Gaussian
from frhsic_core.paper.statements import concentration
from frhsic_core.paper.statements.concentration import (
    Constants,
    informative_size,
    linear_complexity,
    linear_complexity_bound,
    trivial_bound,
    uniform_bound,
)


def test_the_formula_term_by_term() -> None:
    constants = Constants(2.0, 3.0, 0.5, 0.7)
    expected = (
        8 * math.sqrt(2) * 6.0 * math.sqrt(math.log(2 / 0.1) / 400)
        + 4 * 6.0 / 400
        + 48 * math.sqrt(math.pi) * max(2.0 * 0.7, 3.0 * 0.5) * 0.2
    )
    assert uniform_bound(400, complexity=0.2, delta=0.1, constants=constants) == pytest.approx(expected, rel=1e-14)


def test_constants_of_gaussian_kernels() -> None:
    assert Constants.of(Gaussian(0.5), Gaussian(4.0)) == Constants(1.0, 1.0, 2.0, 0.25)


def test_the_trivial_bound_is_attained_and_never_exceeded(generator: torch.Generator) -> None:
    class Delta:
        bound, lipschitz = 1.0, math.inf

        def __call__(self, x: torch.Tensor, y: torch.Tensor | None = None) -> torch.Tensor:
            return (torch.cdist(x, x if y is None else y) == 0).to(x)

    coin = [0.0, 0.0, 1.0, 1.0]
    assert float(hsic(coin, coin, kernel_z=Delta(), kernel_s=Delta())) == trivial_bound()
    values = torch.randint(4, (2000, 12, 1), generator=generator).double()
    for kernel in (Delta(), Gaussian(0.3), Gaussian(1.0)):
        assert hsic(values, values, kernel_z=kernel, kernel_s=kernel).max() <= trivial_bound() + 1e-15


def test_informative_size_is_the_first_one() -> None:
    for root in (0.0, 1.0, math.sqrt(50)):
        n = informative_size(complexity_root_n=root)
        assert uniform_bound(n, complexity=root / math.sqrt(n)) < 0.25
        assert uniform_bound(n - 1, complexity=root / math.sqrt(n - 1)) >= 0.25
    assert informative_size(complexity_root_n=0.0, target=0.02) == 1_180_842


def test_unit_kernels_see_no_difference_between_printed_and_corrected() -> None:
    constants = Constants(lipschitz_z=3.0, lipschitz_s=0.2)
    printed, corrected = (
        uniform_bound(99, complexity=0.1, constants=constants, homogeneous=flag) for flag in (False, True)
    )
    assert printed == corrected


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
    noise = torch.randn(4000, n, generator=torch.Generator().manual_seed(0))
    best = 3.0 * noise.clamp_min(0.0).mean(1).mean().item()
    assert best == pytest.approx(concentration.ScaledExample().complexity, rel=0.01)


def test_the_learned_encoder_of_the_example() -> None:
    # HSIC of a fair coin on {0, 3} with itself, from the definition with expectations over two independent copies.
    values = torch.tensor([0.0, 3.0], dtype=torch.float64)
    gram = Gaussian(1.0)(values.unsqueeze(-1))
    expected = (gram * gram).mean() + gram.mean() ** 2 - 2.0 * (gram.mean(0) ** 2).mean()
    example = concentration.ScaledExample(factor=7.0)
    assert example.learned == pytest.approx(49.0 * expected.item(), rel=1e-12)


def test_the_proved_bound_scales_like_hsic_and_is_smaller() -> None:
    scaled = concentration.Constants().scaled(4.0, 9.0)
    for n, complexity in ((50, 0.0), (1000, 0.1)):
        unit = concentration.proved_bound(n, complexity=complexity)
        assert concentration.proved_bound(n, complexity=complexity, constants=scaled) == pytest.approx(36.0 * unit)
        assert unit < uniform_bound(n, complexity=complexity)
    with pytest.raises(ValueError, match="delta"):
        concentration.proved_bound(10, complexity=0.0, delta=1.0)


def test_delta_must_be_a_probability() -> None:
    with pytest.raises(ValueError, match=r"delta is 0\.0"):
        uniform_bound(10, complexity=0.0, delta=0.0)


@pytest.mark.parametrize(("rows", "dimension"), [(1, 1), (3, 1), (1, 4), (2, 5), (7, 50)])
def test_orthogonal_inputs_have_a_chi_mean(rows: int, dimension: int) -> None:
    # Orthonormal rows: ‖Σξ_i x_iᵀ‖_F is a chi variable with rows·dimension degrees of freedom.
    k = rows * dimension
    expected = math.sqrt(2.0) * math.exp(math.lgamma((k + 1) / 2) - math.lgamma(k / 2)) / rows
    found = linear_complexity(torch.eye(rows, 8, dtype=torch.float64), radius=2.5, dimension=dimension)
    assert found.item() == pytest.approx(2.5 * expected, rel=1e-12)


def test_against_the_mean_of_direct_maxima(generator: torch.Generator) -> None:
    x = torch.rand(12, 2, generator=generator, dtype=torch.float64)
    noise = torch.randn(20_000, 3, 12, generator=generator, dtype=torch.float64)
    norms = torch.linalg.matrix_norm(noise @ x / 12)
    error = 4.0 * norms.std().item() / math.sqrt(len(norms))
    assert linear_complexity(x, radius=1.0, dimension=3).item() == pytest.approx(norms.mean().item(), abs=error)
    # No W in the ball gives more than the norm, and W = M/‖M‖ gives it.
    w = torch.randn(20_000, 3, 2, generator=generator, dtype=torch.float64)
    w = w / torch.linalg.matrix_norm(w, keepdim=True)
    products = (noise @ x / 12 * w).sum((-2, -1))
    assert (products <= norms + 1e-12).all()


def test_scaling_and_repetition(generator: torch.Generator) -> None:
    x = torch.randn(4, 6, 3, generator=generator, dtype=torch.float64)
    once = linear_complexity(x, radius=1.0, dimension=2)
    assert torch.allclose(linear_complexity(3.0 * x, radius=2.0, dimension=2), 6.0 * once)
    # Repeating every row four times halves the concentration.
    assert torch.allclose(linear_complexity(x.repeat(1, 4, 1), radius=1.0, dimension=2), 0.5 * once)
    assert linear_complexity(torch.zeros(3, 2), radius=1.0, dimension=2) < 1e-100


def test_the_bound_is_reached_in_the_limit() -> None:
    x = torch.eye(1, 1, dtype=torch.float64)
    exact = linear_complexity(x, radius=1.0, dimension=10_000).item()
    assert exact == pytest.approx(linear_complexity_bound(radius=1.0, largest=1.0, dimension=10_000, n=1), rel=1e-4)
    assert exact <= 100.0


def test_a_broken_bound_is_caught() -> None:
    worst = dict.fromkeys(concentration.excesses(torch.ones(1, 1, 1, dtype=torch.float64), 1), -math.inf)
    for x, dimension in concentration.random_inputs(720, random_state=0):
        for name, excess in concentration.excesses(x, dimension).items():
            worst[name] = max(worst[name], excess.max().item())
    assert max(worst.values()) < 1e-12
    # Each right side one percent smaller would be violated by one of these inputs.
    assert all(value > -0.01 for value in worst.values())


def test_the_proved_bound_term_by_term() -> None:
    constants = Constants(2.0, 3.0, 0.5, 0.7)
    expected = (
        math.sqrt(3) * 6.0 * math.sqrt(math.log(2 / 0.1) / 400)
        + 2 * 6.0 / 400
        + 20 * math.sqrt(math.pi) * 3.0 * math.sqrt(2.0) * 0.5 * 0.2
    )
    found = concentration.proved_bound(400, complexity=0.2, delta=0.1, constants=constants)
    assert found == pytest.approx(expected, rel=1e-14)


def test_the_slack_of_the_root_bound() -> None:
    assert concentration.root_slack(500, delta=0.1) == pytest.approx(math.sqrt(3 * math.log(10) / 500), rel=1e-14)
    many = 3 * (math.log(10) + 7 * math.log(1 + 2 * 500 * 4.0)) / 500
    found = concentration.root_slack(500, delta=0.1, parameters=7, reach=4.0)
    assert found == pytest.approx(math.sqrt(many) + 3 / 500, rel=1e-14)


def test_close_encoders_have_close_roots(generator: torch.Generator) -> None:
    """The step from a net to all linear encoders: features that differ by at most 1/n move the roots by 3/n."""
    n = 30
    x = torch.nn.functional.normalize(torch.randn(200, n, 3, generator=generator, dtype=torch.float64), dim=-1)
    s = x[..., :1] + 0.1 * torch.randn(200, n, 1, generator=generator, dtype=torch.float64)
    w = torch.randn(200, 3, 1, generator=generator, dtype=torch.float64)
    step = torch.nn.functional.normalize(torch.randn(200, 3, 1, generator=generator, dtype=torch.float64), dim=1) / n
    kernel = Gaussian(1.0)  # ℓ = 1
    roots = [hsic(x @ one, s, kernel_z=kernel, kernel_s=kernel).sqrt() for one in (w, w + step)]
    moved = n / (n - 1) * (roots[0] - roots[1]).abs().max().item()
    assert 0.1 / n < moved <= 2 / n  # the step is not idle, and within its part of 3/n
