"""B_n: the formula, the trivial bound and its attainment, scaling."""

from __future__ import annotations

import math

import pytest
import torch

from frhsic_core.joint import hsic
from frhsic_core.kernels import Gaussian
from frhsic_core.paper.statements import concentration
from frhsic_core.paper.statements.concentration import Constants, informative_size, trivial_bound, uniform_bound


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
    assert hsic(coin, coin, kernel_z=Delta(), kernel_s=Delta()).item() == trivial_bound()
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

    value = hsic(s, s, kernel_z=Scaled(), kernel_s=Scaled()).item()
    assert value == pytest.approx(factor**2 / 16 * (2 - 2 * math.exp(-4.5)) ** 2)
    noise = torch.randn(4000, n, generator=torch.Generator().manual_seed(0))
    best = 3.0 * noise.clamp_min(0.0).mean(1).mean().item()
    assert best == pytest.approx(concentration.ScaledExample().complexity, rel=0.01)


def test_certificates() -> None:
    verdicts = {
        check.__name__: [c.verdict for c in check(quick=True)]
        for checks in concentration.CHECKS.values()
        for check in checks
    }
    assert verdicts == {
        "when_informative": ["holds", "holds"],
        "broken_by_scaling": ["fails as stated"],
        "scaled_kernels": ["fails as stated", "holds as corrected", "holds as corrected"],
        "rate": ["holds"],
    }


def test_delta_must_be_a_probability() -> None:
    with pytest.raises(ValueError, match=r"delta is 0\.0"):
        uniform_bound(10, complexity=0.0, delta=0.0)
