"""Tests of Z ⟂ S | C: brute-force references, exact and asymptotic levels, power, and what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from samples import normal
from scipy import stats

from frhsic_core._arrays import as_draws
from frhsic_core.backend import as_words
from frhsic_core.joint import conditional_hsic, hsic, hsic_test
from frhsic_core.joint.given import Given, read_given
from frhsic_core.joint.independence.permutation import (
    FACTORS,
    bins_of,
    group_strata,
    random_orders,
    within_kernel,
)
from frhsic_core.joint.independence.residual import RIDGES, SCALES, Regression, fitted
from frhsic_core.kernels import Gaussian, median_bandwidth


def labels(seed: int, n: int, count: int) -> torch.Tensor:
    return torch.randint(0, count, (n,), generator=torch.Generator().manual_seed(seed))


def named(code: torch.Tensor) -> list[str]:
    """Return labels as words: whole numbers with more than two values would be numbers."""
    return [f"group {value}" for value in code.tolist()]


# A discrete C --------------------------------------------------------------------------------------------------------


def test_rows_hold_what_they_were_made_of() -> None:
    given = Given(as_words([1, 0, 2]), as_words(normal(3, 3, 2).numpy()))
    assert given.rows.shape == (3, 3)
    for rows in (given.rows, torch.as_tensor(given.rows.numpy())):
        again = Given.of_rows(rows)
        assert again.codes.tolist() == given.codes.tolist()
        assert again.numbers.tolist() == given.numbers.tolist()


def test_what_is_constant_in_a_group_becomes_zero() -> None:
    """The mean of three times .1 is not .1 in floating point; what is left of it is no dependence."""
    x = torch.cat([torch.full((3, 1), 0.1, dtype=torch.float64), normal(4, 5, 1)])
    groups = [torch.arange(3), torch.arange(3, 8)]
    centered, kernel = within_kernel(None, x, groups)
    expected = torch.cat([torch.zeros(3, 1, dtype=torch.float64), x[3:] - x[3:].mean(0)])
    assert torch.allclose(centered, expected, rtol=0, atol=1e-15)
    assert torch.equal(centered[:3], expected[:3])
    assert kernel.bandwidth == pytest.approx(float(median_bandwidth(expected)))
    assert within_kernel(Gaussian(2.0), x, groups)[0] is x


def both_statistics(
    z: np.ndarray, s: np.ndarray, code: np.ndarray, factor: float, sigmas: tuple[float, float]
):
    """Return n times the two statistics from their definitions, with feature means by group."""
    n = len(z)
    k, l = (
        np.exp(-(np.subtract.outer(x, x) ** 2) / (2 * (factor * sigma) ** 2))
        for x, sigma in zip((z, s), sigmas, strict=True)
    )
    center = np.eye(n)
    for g in np.unique(code):
        member = (code == g).astype(float)
        center -= np.outer(member, member) / member.sum()
    k, l = center @ k @ center, center @ l @ center
    by_value = sum(
        (k * l)[np.ix_(code == g, code == g)].sum() / (code == g).sum() for g in np.unique(code)
    )
    return by_value, (k * l).sum() / n


def test_the_aggregated_test_is_a_loop_over_orders_within_groups() -> None:
    code = labels(1, 18, 3)
    z, s = normal(2, 18) + code, normal(3, 18) + code
    groups = read_given(named(code), 18).groups(like=code)
    strata = group_strata(groups, 18, None, like=code)
    orders = random_orders(19, 18, as_draws(4, like=code), strata, like=code)
    assert all(torch.equal(code[order], code) for order in orders)
    within = [x - torch.stack([x[code == c].mean() for c in code]) for x in (z, s)]
    sigmas = tuple(median_bandwidth(x).item() for x in within)

    def pair(order: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
        return within[0].numpy(), within[1][order].numpy()

    values = np.array([
        np.array([both_statistics(*pair(order), code.numpy(), f, sigmas) for f in FACTORS]).T.ravel()
        for order in orders
    ])  # fmt: skip
    root = np.cbrt(values)
    largest = ((root - root.mean(0)) / root.std(0)).max(1)
    result = hsic_test(
        z, s, given=named(code), n_permutations=19, random_state=torch.Generator().manual_seed(4)
    )
    assert result.method == "aggregated"
    assert result.statistic.item() == pytest.approx(largest[0], rel=1e-6)
    assert result.pvalue.item() == (largest >= largest[0] - 1e-9).mean()
    assert result.hsic.item() == pytest.approx(values[0, FACTORS.index(1.0)] / 18)


def test_the_statistic_is_the_mean_of_the_groups_by_share() -> None:
    code = labels(5, 40, 2)
    z, s = normal(6, 40, 2), normal(7, 40, 1)
    kernels = {"kernel_z": Gaussian(1.3), "kernel_s": Gaussian(0.8)}
    share = [
        (code == g).double().mean() * hsic(z[code == g], s[code == g], **kernels) for g in range(2)
    ]
    for method in ("gamma", "spectral", "permutation", "aggregated"):
        result = hsic_test(z, s, given=code, method=method, n_permutations=19, **kernels)
        assert result.hsic.item() == pytest.approx(sum(share).item())
        if method != "aggregated":
            assert result.statistic.item() == pytest.approx(40 * result.hsic.item())


@pytest.mark.parametrize("rows", [24, 1100])
def test_level_is_exact_within_groups_where_z_and_s_depend_on_the_group(rows: int) -> None:
    """With 19 permutations the level is 1/20; without ``given`` every sample is rejected."""
    draws = 200 if rows == 24 else 20
    code = torch.arange(rows) % 3
    z, s = (
        normal(10, draws, rows, 1) + 3 * code.unsqueeze(-1),
        normal(11, draws, rows, 1) + 3 * code.unsqueeze(-1),
    )
    method = "aggregated" if rows == 24 else "permutation"
    rejected = int(
        hsic_test(z, s, given=named(code), method=method, n_permutations=19).reject.sum()
    )
    low, high = stats.binom.interval(0.99, draws, 0.05)
    assert low <= rejected <= high
    assert bool(hsic_test(z[0], s[0]).reject)


def test_dependence_is_found_if_it_is_alike_or_opposite_in_the_groups() -> None:
    code = torch.arange(150) % 3
    e = normal(12, 150)
    for effect in (0.6 * e, 0.8 * (code - 1) * e):
        assert bool(
            hsic_test(
                code + e, code + effect + normal(13, 150), given=named(code), n_permutations=99
            ).reject
        )


def test_many_small_groups_are_pooled() -> None:
    """Fifty groups of four rows: no group shows anything, but together they do."""
    code = torch.arange(200) // 4
    e = normal(14, 200)
    z, s = 3.0 * normal(15, 50)[code] + e, 3.0 * normal(16, 50)[code] + 0.5 * e + normal(17, 200)
    text = [f"firm {value}" for value in code.tolist()]
    assert bool(hsic_test(z, s, given=text, n_permutations=99).reject)
    assert not bool(hsic_test(z, s, given=text, method="permutation", n_permutations=99).reject)


def test_the_features_of_a_large_sample_give_the_statistics_of_the_gram_matrices() -> None:
    """With the values 0 and 1, K̃ is 2(1 − k(0, 1)) times an outer product, and HSIC is the square of a covariance."""
    n = 1200
    code = labels(18, n, 2)
    z, s = (normal(19, n) > 0).double(), (normal(20, n) + 0.2 * code > 0).double()
    kernels = {"kernel_z": Gaussian(0.9), "kernel_s": Gaussian(1.1)}
    options = {"n_permutations": 199, "random_state": torch.Generator().manual_seed(5)}
    result = hsic_test(z, s, given=code, method="permutation", **kernels, **options)
    groups = read_given(code, n).groups(like=z)
    draws = as_draws(5, like=z)
    sets = bins_of(n, draws, group_strata(groups, n, None, like=z))
    orders = [random_orders(199, len(rows), draws, like=z) for rows in sets]
    expected = []
    for b in range(200):
        moved = s.clone()
        for rows, order in zip(sets, orders, strict=True):
            moved[rows] = s[rows[order[b]]]
        covariances = [np.cov(z[rows], moved[rows], ddof=0)[0, 1] for rows in groups]
        expected.append(sum(len(rows) * c**2 for rows, c in zip(groups, covariances, strict=True)))
    unit = 4 * np.prod([-np.expm1(-1 / (2 * sigma**2)) for sigma in (0.9, 1.1)])
    assert result.statistic.item() == pytest.approx(unit * expected[0], rel=1e-6)
    assert result.threshold.item() == pytest.approx(unit * sorted(expected[1:])[-10], rel=1e-6)


@pytest.mark.parametrize("rows", [40, 1100])
def test_what_is_constant_within_groups_has_p_value_one(rows: int) -> None:
    code = torch.arange(rows) % 2
    result = hsic_test(
        code, normal(51, rows), given=code, kernel_z=Gaussian(1.0), n_permutations=19
    )
    assert (result.statistic.item(), result.threshold.item(), result.pvalue.item()) == (
        0.0,
        0.0,
        1.0,
    )


def test_clusters_are_exchanged_within_groups() -> None:
    code = (torch.arange(60) // 2) % 2
    clusters = torch.arange(60) // 2
    groups = read_given(code, 60).groups(like=code)
    strata = group_strata(groups, 60, clusters.numpy(), like=code)
    order = random_orders(5, 60, as_draws(0, like=code), strata, like=code)
    assert all(torch.equal(code[row], code) for row in order)
    assert all(torch.equal(row.reshape(30, 2)[:, 0] + 1, row.reshape(30, 2)[:, 1]) for row in order)
    assert (
        0
        < hsic_test(
            normal(21, 60), normal(22, 60), given=code, clusters=clusters, n_permutations=19
        ).pvalue
        <= 1
    )


# A continuous C ------------------------------------------------------------------------------------------------------


def test_signs_of_residual_products_by_hand() -> None:
    """The statistic and the p-value from dense matrices: ridge residuals, products, random signs."""
    n = 40
    c, e = normal(23, n, 1), normal(24, n, 1)
    z, s = c + e, c + 0.5 * e + normal(25, n, 1)
    given = read_given(c, n)
    sigmas = (0.9, 1.1)
    u = torch.as_tensor(given.numbers.numpy())
    spread = median_bandwidth(u)

    def residual(k: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        center = torch.eye(n, dtype=torch.float64) - 1.0 / n
        best = (np.inf, k, k)
        for scale in SCALES:
            k_c = center @ Gaussian(scale * spread)(u) @ center
            for ridge in RIDGES:
                smoother = k_c @ torch.linalg.inv(k_c + ridge * torch.eye(n, dtype=torch.float64))
                r = center - smoother
                df = 1 + smoother.trace()
                score = ((r @ k @ r).trace() / (1 - df / n) ** 2).item() if df < n / 2 else np.inf
                if score < best[0]:
                    best = (score, r @ k @ r, (r @ r).diagonal())
        return best[1], best[2]

    k, kept_z = residual(Gaussian(sigmas[0])(z))
    l, kept_s = residual(Gaussian(sigmas[1])(s))
    matrix = k * l * Gaussian(spread)(u) / n
    result = hsic_test(
        z, s, given=c, method="permutation", kernel_z=Gaussian(sigmas[0]), kernel_s=Gaussian(sigmas[1]),
        n_permutations=59, random_state=torch.Generator().manual_seed(5),
    )  # fmt: skip
    assert result.statistic.item() == pytest.approx(matrix.sum().item(), rel=1e-5)
    signs = (
        torch.randint(0, 2, (n, 59), generator=torch.Generator().manual_seed(5)).double() * 2 - 1
    )
    scaled = signs * (kept_z * kept_s).pow(-0.25).unsqueeze(-1)
    null = torch.einsum("ib,ij,jb->b", scaled, matrix, scaled)
    assert result.pvalue.item() == pytest.approx((1 + (null >= matrix.sum()).sum()).item() / 60)
    gamma = hsic_test(
        z, s, given=c, method="gamma", kernel_z=Gaussian(sigmas[0]), kernel_s=Gaussian(sigmas[1])
    )
    corrected = matrix / ((kept_z * kept_s).pow(0.25).unsqueeze(-1) * (kept_z * kept_s).pow(0.25))
    mean, variance = corrected.trace().item(), 2 * corrected.square().sum().item()
    expected = stats.gamma.sf(matrix.sum().item(), mean**2 / variance, scale=variance / mean)
    assert gamma.pvalue.item() == pytest.approx(expected, rel=1e-4)


def test_functions_of_several_columns_are_orthonormal() -> None:
    """Above 1,024 rows they are made of kernel values at landmarks, which are not centered."""
    c = torch.cat([normal(52, 1100, 2), torch.zeros(1100, 1, dtype=torch.float64)], 1)
    every = torch.arange(1100)
    parts = [every[:500], every[500:]]
    regression = Regression(c, False, parts)
    functions = regression(every)
    rounding = 1e-16 / 1e-12  # of the largest sum, where sums down to 1e-12 of it are kept
    assert functions.sum(0).abs().max() < 1100 * rounding
    torch.testing.assert_close(
        functions.mT @ functions, torch.eye(functions.shape[1]).double(), rtol=0, atol=10 * rounding
    )
    fit = fitted([lambda rows: c[rows, :1] + 5.0], regression, parts)[0]
    assert (
        fit.residual(c[:, :1] + 5.0, functions).square().mean() < 0.1
    )  # five would leave 25 of a constant


def test_level_holds_where_z_and_s_follow_a_common_cause() -> None:
    """Forty samples; a plain test rejects nearly all of them. ``levels_and_power`` has many more."""
    c = normal(26, 40, 40, 1)
    z, s = (
        torch.sin(2 * c) + 0.4 * normal(27, 40, 40, 1),
        torch.sin(2 * c) + 0.4 * normal(28, 40, 40, 1),
    )
    rejected = int(hsic_test(z, s, given=c, method="gamma").reject.sum())
    assert rejected <= stats.binom.ppf(0.995, 40, 0.05)
    assert int(hsic_test(z, s).reject.sum()) > 35


@pytest.mark.parametrize("rows", [150, 1200])
def test_dependence_given_a_number_is_found(rows: int) -> None:
    c, e = normal(29, rows), normal(30, rows)
    z = c + e
    method = "aggregated" if rows == 150 else "permutation"
    options = {"given": c, "method": method, "n_permutations": 99}
    assert not bool(hsic_test(z, c + normal(31, rows), **options).reject)
    assert bool(hsic_test(z, c + 0.6 * e + normal(31, rows), **options).reject)
    assert bool(hsic_test(z, c + 1.2 * c * e + normal(31, rows), **options).reject)


def test_each_group_of_a_mixed_condition_has_its_own_regression() -> None:
    """The slope of both on C changes its sign with the group."""
    group = np.array(["a", "b"])[np.arange(160) % 2]
    slope = torch.as_tensor(np.where(group == "a", 2.0, -2.0))
    c = normal(32, 160)
    z, s = slope * c + 0.5 * normal(33, 160), slope * c + 0.5 * normal(34, 160)
    table = pd.DataFrame({"c": c.numpy(), "group": group})
    assert not bool(hsic_test(z, s, given=table, n_permutations=99).reject)
    assert bool(hsic_test(z, s, given=table["c"], n_permutations=99).reject)


def test_units_and_monotone_maps_of_the_condition_change_nothing() -> None:
    c = normal(35, 50)
    z, s = c + normal(36, 50), c + normal(37, 50)
    results = [
        hsic_test(z, s, given=value, n_permutations=19).pvalue for value in (c, 1e6 * c, c.exp())
    ]
    assert results[0] == results[1] == results[2]


# Reading C, and what is refused ------------------------------------------------------------------------------------


def test_what_is_a_label() -> None:
    values = {
        "text": (["a", "b"] * 30, True),
        "bool": ([True, False] * 30, True),
        "category": (pd.Series(["x", "y"] * 30, dtype="category"), True),
        "ordered category": (pd.Categorical(["x", "y", "z"] * 20, ordered=True), True),
        "category of numbers": (pd.Series([1, 2, 3] * 20, dtype="category"), True),
        "numbers as text": (["1", "2", "3"] * 20, True),
        "two numbers": (np.arange(60) % 2 + 0.5, True),
        "three numbers": (np.arange(60) % 3 + 0.5, False),
        "three whole numbers": (torch.arange(60) % 3, False),
        "many numbers": (np.arange(60) / 7, False),
        "dates": (pd.Series(pd.date_range("2020", periods=60)), False),
    }
    for value, discrete in values.values():
        assert read_given(value, 60).discrete is discrete
    table = pd.DataFrame({"a": ["x", "y"] * 30, "b": [0, 0, 1, 1] * 15, "c": np.arange(60) / 7})
    found = read_given(table, 60)
    assert found.codes.unique().tolist() == [0, 1, 2, 3]
    assert found.mixed
    assert found.numbers.shape == (60, 1)


def test_both_functions_read_a_label_alike() -> None:
    """What is discrete for the test is discrete for the criterion, and not where it was numbers."""
    code = labels(61, 60, 3)
    z, s = normal(62, 60, 1), normal(63, 60, 1)
    kernels = {"kernel_z": Gaussian(1.0), "kernel_s": Gaussian(1.0)}
    kinds = [named(code), pd.Categorical(code.numpy()), [str(value) for value in code.tolist()]]
    expected = sum(
        float(hsic(z[code == g], s[code == g], **kernels)) * float((code == g).double().mean())
        for g in range(3)
    )
    for given in kinds:
        assert conditional_hsic(z, s, given, **kernels).item() == pytest.approx(expected)
        tested = hsic_test(z, s, given=given, method="gamma", **kernels)
        assert tested.hsic.item() == pytest.approx(expected)
    for given in (code, code.double(), code.numpy()):
        assert conditional_hsic(z, s, given, **kernels).item() != pytest.approx(expected, rel=1e-3)
        tested = hsic_test(z, s, given=given, method="gamma", **kernels)
        assert tested.hsic.item() != pytest.approx(expected, rel=1e-3)


def test_a_constant_argument_has_p_value_one() -> None:
    code = torch.arange(40) % 2
    for c in (code, normal(38, 40)):
        for method in ("gamma", "spectral", "permutation", "aggregated"):
            result = hsic_test(
                torch.ones(40), normal(39, 40), given=c, method=method, n_permutations=19
            )
            assert (result.pvalue.item(), result.statistic.item()) == (1.0, 0.0)
    scores = torch.as_tensor(read_given(normal(38, 40), 40).numbers.numpy())
    for function, c in (
        (0.1 * code, code),
        (scores, scores),
    ):  # a function of C is constant given C
        assert hsic_test(function, normal(39, 40), given=c, n_permutations=19).pvalue.item() == 1.0


def test_batches_are_loops() -> None:
    z, s = normal(40, 3, 30, 1), normal(41, 3, 30, 1)
    for c in (labels(42, 30, 2), normal(43, 30), normal(44, 3, 30), normal(45, 3, 30, 2)):
        together = hsic_test(z, s, given=c, method="spectral")
        own = c if c.ndim == 1 else None
        alone = [
            hsic_test(z[i], s[i], given=c[i] if own is None else own, method="spectral").pvalue
            for i in range(3)
        ]
        torch.testing.assert_close(together.pvalue, torch.stack(alone))
