"""Thin matrices against sums over all pairs: every form, gradients, and the samples on which a rank is too large."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from samples import normal

from frhsic_core import (
    Categorical,
    Distance,
    Gaussian,
    InverseMultiquadric,
    Laplacian,
    MultiScale,
    hsic,
    normalized_hsic,
)
from frhsic_core.joint import factors
from frhsic_core.joint.contraction import center, dependence
from frhsic_core.joint.engines import WITHOUT_PAIRS, solve, thin
from frhsic_core.joint.factors import factor, thin_pair
from frhsic_core.joint.problem import Problem
from frhsic_core.laws import FiniteLaw, GaussianPair

N = 1200


def pair(seed: int = 0, strength: float = 0.4) -> tuple[torch.Tensor, torch.Tensor]:
    s = normal(seed, N, 1)
    return strength * s.square() + normal(seed + 1, N, 1), s


SAMPLES = {
    "normal": pair(),
    "independent": pair(strength=0.0),
    "ages": (pair()[0], (20 * pair()[1]).round()),
    "two values": (pair()[0], (pair()[1] > 0).double()),
    "heavy tails": (pair()[0], pair()[1].sinh()),
    "far from the origin": (pair()[0] + 1e6, pair()[1] - 1e6),
}
KERNELS = {
    "gaussian": lambda scale: Gaussian(0.7 * scale),
    "wide": lambda scale: Gaussian(20.0 * scale),
    "imq": lambda scale: InverseMultiquadric(scale),
    "multi_scale": lambda scale: MultiScale(1.5 * scale),
    "laplacian": lambda scale: Laplacian(scale.item()),
}
FORMS = {"biased": {}, "unbiased": {"estimator": "unbiased"}, "normalized": {"normalized": True}}


def without_pairs(z: torch.Tensor, s: torch.Tensor, form: str, **kernels) -> torch.Tensor | None:
    estimator = "unbiased" if form == "unbiased" else "biased"
    problem = Problem(z, s, **kernels, estimator=estimator, normalized=form == "normalized")
    return solve(problem, WITHOUT_PAIRS)


def on_all_pairs(z: torch.Tensor, s: torch.Tensor, *, kernel_z, kernel_s) -> list[float]:
    """Return the forms from Gram matrices, without their constant: in a wide kernel it would leave rounding only."""
    k, l = (
        torch.expm1(kernel(x - x.mean(0)).log()) for kernel, x in ((kernel_z, z), (kernel_s, s))
    )
    return [
        dependence(z, s, **form, kernel_z=lambda _: k, kernel_s=lambda _: l).item()
        for form in FORMS.values()
    ]


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("sample", SAMPLES)
def test_every_form_is_the_sum_over_all_pairs(sample: str, name: str) -> None:
    z, s = SAMPLES[sample]
    kernels = {"kernel_z": KERNELS[name](z.std()), "kernel_s": KERNELS[name](s.std())}
    found = [without_pairs(z, s, form, **kernels) for form in FORMS]
    if (sample, name) == ("heavy tails", "imq"):  # the rank is too large
        assert found == [None] * 3
        return
    # The Gram matrix of a wide kernel is itself rounded: its entries differ from one by 1e-3.
    rel = 1e-10 if name != "wide" else 1e-8
    assert [value.item() for value in found] == pytest.approx(
        on_all_pairs(z, s, **kernels), rel=rel
    )


@pytest.mark.parametrize(
    "kernels", [(Distance(), Gaussian(0.7)), (Gaussian(0.7), Distance()), (Distance(),) * 2]
)
def test_two_columns_keep_their_own_kernels(kernels) -> None:
    z, s = SAMPLES["ages"]
    named = dict(zip(("kernel_z", "kernel_s"), kernels, strict=True))
    assert hsic(z, s, **named).item() == pytest.approx(dependence(z, s, **named).item(), rel=1e-10)


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (0.5, 2.0), (2.0, 0.7)])
def test_weighted_rows_of_a_law_have_its_closed_form(a: float, b: float) -> None:
    """The rows are all nodes of a Gauss–Hermite rule, exact up to rounding, and all cells of a finite law."""
    nodes, masses = map(torch.as_tensor, np.polynomial.hermite_e.hermegauss(80))
    z, noise = (x.reshape(-1, 1) for x in torch.meshgrid(nodes, nodes, indexing="ij"))
    weights = torch.outer(masses, masses).flatten() / masses.sum().square()
    kernels = {"kernel_z": Gaussian(a), "kernel_s": Gaussian(b)}
    found = thin.value(Problem(z, 0.6 * z + 0.8 * noise, weights=weights, **kernels))
    assert found.item() == pytest.approx(GaussianPair(0.6).hsic(*kernels.values()), rel=1e-10)
    law = FiniteLaw.random(40, 30, random_state=1)
    z, s = (
        torch.as_tensor(np.asarray(x)).double().reshape(-1, 1) for x in (law.z_points, law.s_points)
    )
    rows = z.repeat_interleave(len(s), 0), s.repeat(len(z), 1)
    weights = torch.as_tensor(law.probabilities.astype(float)).flatten()
    found = thin.value(Problem(*rows, weights=weights, **kernels))
    assert found.item() == pytest.approx(float(law.hsic(*kernels.values())), rel=1e-10)


def test_worst_rows_become_pivots(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rare category that is not among the first candidates is found in the pass over all rows."""
    monkeypatch.setattr(factors, "_CANDIDATES", 16)
    code = torch.zeros(N, 1, dtype=torch.float64)
    code[[3, 700]] = 1.0
    found = factor(Categorical(), code)
    assert found is not None
    features = found(code)
    torch.testing.assert_close(features @ features.mT, Categorical()(code), rtol=0.0, atol=1e-12)


@pytest.mark.parametrize(
    ("kernel", "x"),
    [
        (Gaussian(1e-3), normal(9, N, 1)),
        (Gaussian(0.5), torch.tan(1.57 * torch.linspace(-1, 1, N, dtype=torch.float64))[:, None]),
        (Gaussian(1.0), normal(9, N, 12)),
        (Laplacian(1.0), normal(9, N, 2)),
        (Categorical(), normal(9, N, 1)),
    ],
    ids=["narrow", "Cauchy", "many columns", "laplacian of two columns", "no two rows alike"],
)
def test_a_rank_that_is_too_large_goes_to_the_sum_over_all_pairs(kernel, x) -> None:
    assert factor(kernel, x) is None
    z, _ = pair(9)
    options = {"kernel_z": Gaussian(1.0), "kernel_s": kernel}
    assert thin.value(Problem(z, x, **options)) is None
    torch.testing.assert_close(
        hsic(z, x, **options), dependence(z, x, **options), rtol=1e-10, atol=1e-16
    )


@pytest.mark.parametrize("form", ["biased", "normalized"])
def test_constants_have_no_dependence(form: str) -> None:
    z, _ = pair(11)
    constant = torch.full_like(z, 0.7)
    for left, right in ((z, constant), (constant, z), (constant, constant)):
        found = without_pairs(left, right, form, kernel_z=Gaussian(1.0), kernel_s=Gaussian(1.0))
        assert found.item() == 0.0


def test_the_public_functions_use_thin_matrices(monkeypatch: pytest.MonkeyPatch) -> None:
    """No Gram matrix of all rows is computed; the value of float32 samples is that of float64."""
    z, s = pair(13)
    options = {"kernel_z": Gaussian(1.0), "kernel_s": Gaussian(0.8)}
    expected = on_all_pairs(z, s, **options)
    whole = Gaussian.__call__

    def few_rows(kernel, x, *others):
        assert len(x) < N, "a Gram matrix was computed"
        return whole(kernel, x, *others)

    monkeypatch.setattr(Gaussian, "__call__", few_rows)
    found = [
        hsic(z, s, **options),
        hsic(z, s, estimator="unbiased", **options),
        normalized_hsic(z, s, **options),
    ]
    assert [value.item() for value in found] == pytest.approx(expected, rel=1e-10)
    single = hsic(z.float(), s.float(), **options)
    assert single.dtype == torch.float32
    assert single.item() == pytest.approx(expected[0], rel=1e-6)
    batch = hsic(
        torch.stack([z, z]), s, kernel_z=Gaussian(torch.tensor([1.0, 2.0])), kernel_s=Gaussian(0.8)
    )
    assert batch[0].item() == pytest.approx(expected[0], rel=1e-10)
    assert batch[1] != batch[0]


def test_blocks_of_rows_do_not_change_the_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    z, s = pair(15)
    expected = thin_pair(z, s, Gaussian(1.0), Gaussian(0.5)).product()
    monkeypatch.setattr(factors, "_BLOCK", 100)
    found = thin_pair(z, s, Gaussian(1.0), Gaussian(0.5)).product()
    torch.testing.assert_close(found, expected, rtol=0.0, atol=1e-12 * expected.abs().max().item())
    k, l = (center(kernel(x)) for kernel, x in ((Gaussian(1.0), z), (Gaussian(0.5), s)))
    assert expected.square().sum().item() == pytest.approx((k * l).sum().item(), rel=1e-10)


@pytest.mark.parametrize("bandwidth", [20.0, 1.0])
def test_squares_of_the_entries_have_a_factor(bandwidth: float) -> None:
    """A wide kernel has few features, whose products are listed; of a narrow one the squares are interpolated."""
    z, s = pair()
    kernel = Gaussian(bandwidth)
    centered = thin_pair(z, s, kernel, Gaussian(1.0)).factor_z
    features = factors.squared_factor(centered, z)(z)
    # Features are exact to 1e-10 of the largest entry, by the documentation of `factor`.
    expected = center(kernel(z - z.mean(0))).square()
    torch.testing.assert_close(
        features @ features.mT, expected, rtol=0, atol=1e-9 * float(expected.max())
    )
    assert (centered.rank <= factors._FEW_PAIRS) == (bandwidth > 1)


def test_a_collapsed_sample_has_a_gradient_of_zero_at_every_size() -> None:
    for n in (50, 900):
        z = torch.full((n, 1), 0.1, dtype=torch.float64, requires_grad=True)
        hsic(z, torch.linspace(0.0, 1.0, n, dtype=torch.float64)).backward()
        assert not z.grad.any()
