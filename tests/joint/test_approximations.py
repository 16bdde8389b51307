"""Random features and Nyström landmarks against exact HSIC, with measured errors."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck

from frhsic_core.joint.approximations import nystrom_hsic, random_feature_hsic
from frhsic_core.joint.hsic import hsic
from frhsic_core.kernels import Distance, Gaussian, InverseMultiquadric, Laplacian, Linear, Product

SHIFT_INVARIANT = [Gaussian(1.0), Laplacian(1.0), InverseMultiquadric(1.0)]
PAIR = Product([Gaussian(0.7), Laplacian(2.0)])


def sample(seed: int, n: int = 200, d: int = 2, batch: tuple[int, ...] = ()) -> tuple[torch.Tensor, torch.Tensor]:
    g = torch.Generator().manual_seed(seed)
    z = torch.randn(*batch, n, d, generator=g, dtype=torch.float64)
    return z, 0.5 * z[..., :1] + 0.75**0.5 * torch.randn(*batch, n, 1, generator=g, dtype=torch.float64)


@pytest.mark.parametrize("kernel", [*SHIFT_INVARIANT, PAIR], ids=repr)
def test_random_features_average_to_the_biased_hsic(kernel, generator) -> None:
    z, s = sample(0, n=100)
    values = torch.stack(
        [
            random_feature_hsic(z, s, kernel_z=kernel, kernel_s=Gaussian(1.0), features=50, random_state=generator)
            for _ in range(200)
        ]
    )
    exact = hsic(z, s, kernel_z=kernel, kernel_s=Gaussian(1.0))
    error = values.std() / 200**0.5
    assert error < 0.05 * exact
    assert abs(values.mean() - exact) < 4 * error


@pytest.mark.parametrize("kernel", SHIFT_INVARIANT, ids=repr)
def test_the_error_of_random_features_falls_as_the_root(kernel, generator) -> None:
    z, s = sample(1, n=100, d=1)
    exact = hsic(z, s, kernel_z=kernel, kernel_s=kernel)

    def error(features: int) -> float:
        draws = [
            random_feature_hsic(z, s, kernel_z=kernel, kernel_s=kernel, features=features, random_state=generator)
            for _ in range(30)
        ]
        return (torch.stack(draws) / exact - 1).square().mean().sqrt().item()

    coarse, fine = error(16), error(256)
    assert fine < 0.25
    assert 2 < coarse / fine < 8  # √16 = 4


@pytest.mark.parametrize("kernel", [*SHIFT_INVARIANT, Linear(), Distance(), PAIR], ids=repr)
def test_all_rows_as_landmarks_give_the_biased_hsic(kernel) -> None:
    z, s = sample(2, n=60)
    exact = hsic(z, s, kernel_z=kernel, kernel_s=Gaussian(1.0))
    for landmarks in (60, 1000):
        value = nystrom_hsic(z, s, kernel_z=kernel, kernel_s=Gaussian(1.0), landmarks=landmarks)
        torch.testing.assert_close(value, exact, rtol=1e-7, atol=0)
    single = nystrom_hsic(z.float(), s.float(), kernel_z=kernel, kernel_s=Gaussian(1.0), landmarks=60)
    assert single.dtype == torch.float32
    assert single.item() == pytest.approx(exact.item(), rel=2e-3)


@pytest.mark.parametrize(
    ("kernel", "tolerance"), [(Gaussian(1.0), 3e-3), (InverseMultiquadric(1.0), 0.03), (Laplacian(1.0), 0.2)], ids=repr
)
def test_measured_error_of_landmarks(kernel, tolerance: float, generator) -> None:
    z, s = sample(3, n=500, d=1)
    exact = hsic(z, s, kernel_z=kernel, kernel_s=kernel)

    def error(landmarks: int) -> float:
        values = [
            nystrom_hsic(z, s, kernel_z=kernel, kernel_s=kernel, landmarks=landmarks, random_state=generator)
            for _ in range(5)
        ]
        return max(abs(value / exact - 1).item() for value in values)

    assert error(50) < tolerance
    assert error(10) > error(50)


@given(
    values=st.lists(st.tuples(st.integers(-4, 4), st.integers(-4, 4)), min_size=1, max_size=12),
    landmarks=st.integers(1, 12),
    kernel=st.sampled_from([Gaussian(0.8), Laplacian(1.0), Distance()]),
)
def test_landmarks_never_exceed_exact_and_survive_ties(values, landmarks, kernel) -> None:
    z = torch.tensor([[float(a)] for a, _ in values], dtype=torch.float64)
    s = torch.tensor([[float(b)] for _, b in values], dtype=torch.float64)
    value = nystrom_hsic(z, s, kernel_z=kernel, kernel_s=kernel, landmarks=landmarks).item()
    assert 0 <= value <= hsic(z, s, kernel_z=kernel, kernel_s=kernel).item() * (1 + 1e-6) + 1e-12


@pytest.mark.parametrize("approximation", [random_feature_hsic, nystrom_hsic])
def test_batch_equals_loop(approximation) -> None:
    z, s = sample(4, n=20, batch=(2, 3))
    values = approximation(z, s)
    assert values.shape == (2, 3)
    for i in range(2):
        for j in range(3):
            assert approximation(z[i, j], s[i, j]).item() == pytest.approx(values[i, j].item(), rel=1e-6)
    assert approximation(z, s[0, 0]).shape == (2, 3)


def test_batch_of_bandwidths_inside_a_product() -> None:
    z, s = sample(5, n=20, batch=(2,))
    widths = torch.tensor([0.5, 2.0], dtype=torch.float64)
    both = random_feature_hsic(z, s, kernel_z=Product([Gaussian(widths), Laplacian(1.0)]), kernel_s=Gaussian(1.0))
    for i in range(2):
        kernel = Product([Gaussian(widths[i].item()), Laplacian(1.0)])
        alone = random_feature_hsic(z[i], s[i], kernel_z=kernel, kernel_s=Gaussian(1.0))
        assert alone.item() == pytest.approx(both[i].item(), rel=1e-12)


@pytest.mark.parametrize("kernel", [Gaussian(1.0), InverseMultiquadric(1.0)], ids=repr)
def test_gradient_with_repeated_rows(kernel) -> None:
    z, s = sample(6, n=9)
    z[3], z[5] = z[1], z[1]
    s = s.round()
    z.requires_grad_()
    fixed = {"kernel_z": kernel, "kernel_s": Gaussian(1.0)}
    assert gradcheck(lambda a: random_feature_hsic(a, s, features=20, **fixed), (z,))
    for landmarks in (4, 9):
        # The ridge of 1e-10 costs digits in the gradient where landmarks repeat: they enter only through ε.
        assert gradcheck(lambda a, m=landmarks: nystrom_hsic(a, s, landmarks=m, **fixed), (z,), atol=1e-4)


def test_gradient_of_landmarks_approaches_the_exact_one() -> None:
    z, s = sample(7, n=100, d=1)
    z.requires_grad_()
    fixed = {"kernel_z": Gaussian(1.0), "kernel_s": Gaussian(1.0)}
    (exact,) = torch.autograd.grad(hsic(z, s, **fixed), z)
    (mine,) = torch.autograd.grad(nystrom_hsic(z, s, landmarks=40, **fixed), z)
    assert (mine - exact).norm() / exact.norm() < 0.02


@pytest.mark.parametrize("approximation", [random_feature_hsic, nystrom_hsic])
def test_a_constant_gives_zero_and_a_finite_gradient(approximation) -> None:
    ages = torch.tensor([30.0, 41, 41, 52, 60], dtype=torch.float64)
    constant = torch.full((5, 2), 0.3, dtype=torch.float64, requires_grad=True)
    value = approximation(constant, ages)
    (gradient,) = torch.autograd.grad(value, constant)
    assert value.item() == pytest.approx(0.0, abs=1e-20)
    assert gradient.abs().max() < 1e-9
    assert approximation(ages, torch.ones(5)).item() == pytest.approx(0.0, abs=1e-20)


def test_landmarks_without_a_generator_are_spread_over_sorted_rows() -> None:
    z = torch.linspace(-1, 1, 200, dtype=torch.float64)
    assert (nystrom_hsic(z, z**2, landmarks=20) / hsic(z, z**2)).item() == pytest.approx(1.0, abs=1e-4)


def test_repeatable_without_a_generator() -> None:
    z, s = sample(8, n=30)
    assert random_feature_hsic(z, s) == random_feature_hsic(z, s)
    assert nystrom_hsic(z, s, landmarks=5) == nystrom_hsic(z, s, landmarks=5)


def test_bad_input_is_named() -> None:
    z, s = sample(9, n=6)
    with pytest.raises(ValueError, match=r"features is 0: at least 1 frequency is needed"):
        random_feature_hsic(z, s, features=0)
    with pytest.raises(ValueError, match=r"landmarks is 0: at least 1 row is needed"):
        nystrom_hsic(z, s, landmarks=0)
    with pytest.raises(TypeError, match=r"random Fourier features need a Gaussian, .* nystrom_hsic takes any kernel"):
        random_feature_hsic(z, s, kernel_z=Linear())
    with pytest.raises(ValueError, match=r"x has 2 columns but Product has 1 factors"):
        random_feature_hsic(z, s, kernel_z=Product([Gaussian(1.0)]))
