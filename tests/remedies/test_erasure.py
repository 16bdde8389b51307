"""LEACE, its kernel form and the correlation remover against reference packages and brute force."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline

from frhsic_core import hsic
from frhsic_core.kernels import Linear
from frhsic_core.remedies import AttributeEraser, KernelEraser, kernel_eraser
from frhsic_core.remedies.attributes import read_attributes
from frhsic_core.remedies.basis import BASES, AttributeBasis
from frhsic_core.remedies.leace import leace_projection, noise_correlation


@pytest.fixture
def sample() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    age = rng.uniform(20, 70, 400)
    X = rng.normal(size=(400, 5))
    X[:, 0] += age / 10
    X[:, 1] += ((age - 45) / 15) ** 2
    X[:, 2] = X[:, 0] - X[:, 1]  # a singular covariance
    return X * [1, 10, 1, 1000, 0.01], age


def r2(x: np.ndarray, y: Any) -> float:
    """Return R² of a linear regression that leaves out what erasing leaves by rounding.

    Of k erased directions only rounding is left, 1e-16 of the others. A regression that scales it up would fit noise,
    R² = k/n; whether scikit-learn does so depends on its version.
    """
    x, y = x - x.mean(0), np.asarray(y) - np.mean(y)
    return 1.0 - np.square(y - x @ np.linalg.lstsq(x, y, rcond=1e-9)[0]).sum() / np.square(y).sum()


def test_leace_agrees_with_its_package() -> None:
    package = pytest.importorskip("concept_erasure")
    rng = np.random.default_rng(1)
    x = rng.normal(size=(300, 6)) @ rng.normal(size=(6, 6))
    phi = np.column_stack([x[:, 0] + rng.normal(size=300), (x[:, 1] > 0).astype(float)])
    fitter = package.LeaceFitter.fit(
        torch.tensor(x), torch.tensor(phi), svd_tol=1e-10, shrinkage=False
    )
    projection, _ = leace_projection(x, phi)
    expected = fitter.eraser(torch.tensor(x)).numpy()
    np.testing.assert_allclose(x - (x - x.mean(0)) @ projection.T, expected, atol=1e-6)
    ours = AttributeEraser("linear", min_correlation=0.0).fit(x, sensitive_features=phi)
    # Scaling columns first leaves LEACE's condition but changes what "smallest change" means, unless they are equal.
    scaled = x / x.std(0)
    fitter = package.LeaceFitter.fit(
        torch.tensor(scaled), torch.tensor(phi), svd_tol=1e-10, shrinkage=False
    )
    expected = fitter.eraser(torch.tensor(scaled)).numpy() * x.std(0)
    np.testing.assert_allclose(ours.transform(x), expected, atol=1e-6)


@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize("values", [2, 3, 5, 400])
def test_no_covariance_with_the_basis_is_left(sample: Any, basis: str, values: int) -> None:
    X, age = sample
    age = np.floor(values * (age - 20) / 50) if values < 400 else age
    frame = read_attributes(age, len(X))
    phi = AttributeBasis(basis).fit(frame).transform(frame)
    before = (X - X.mean(0)).T @ (phi - phi.mean(0))
    tolerance = 1e-6 * abs(before).max()
    after = AttributeEraser(basis, min_correlation=0.0).fit_transform(X, sensitive_features=age)
    np.testing.assert_allclose((after - after.mean(0)).T @ phi, 0.0 * before, atol=tolerance)
    np.testing.assert_allclose(after.mean(0), X.mean(0), rtol=1e-7, atol=1e-9)


def test_no_affine_map_that_erases_changes_less(sample: Any) -> None:
    """Brute force: add to LEACE any map that keeps the covariance zero; the change never gets smaller."""
    X, age = sample
    X = (X - X.mean(0)) / X.std(0)
    projection, _ = leace_projection(X, age[:, None])
    change = (X @ projection.T).var(0).sum()
    rng = np.random.default_rng(0)
    covariance = X.T @ (age - age.mean())
    for _ in range(200):
        other = rng.normal(size=(5, 5)) * 0.05
        other -= np.outer(other @ covariance, covariance) / (covariance @ covariance)
        assert (X @ (projection + other).T).var(0).sum() >= change - 1e-9


def test_a_linear_model_on_erased_features_is_flat_along_the_basis(sample: Any) -> None:
    X, age = sample
    y = X[:, 0] + 0.1 * X[:, 1] + age / 5
    model = make_pipeline(AttributeEraser(min_correlation=0.0), LinearRegression())
    model.fit(X, y, attributeeraser__sensitive_features=age)
    powers = np.vander((age - 45) / 25, 4)  # a cubic is a combination of cubic splines
    means = [LinearRegression().fit(powers, p).predict(powers) for p in (model.predict(X), y)]
    assert np.ptp(means[0]) < 1e-6 < 1 < np.ptp(means[1])


def test_noise_is_left_alone_by_default() -> None:
    rng = np.random.default_rng(3)
    X, s = rng.normal(size=(500, 6)), rng.normal(size=500)
    eraser = AttributeEraser("spline").fit(X, sensitive_features=s)
    assert eraser.n_erased_ == 0
    assert (
        AttributeEraser("spline", min_correlation=0.0).fit(X, sensitive_features=s).n_erased_ == 6
    )
    mixed = AttributeEraser("spline").fit(X + 2 * s[:, None], sensitive_features=s)
    assert mixed.n_erased_ == 1
    # The largest canonical correlation of independent samples lies about the edge.
    found = [
        leace_projection(rng.normal(size=(400, 20)), rng.normal(size=(400, 10)))[1][0]
        for _ in range(20)
    ]
    assert abs(np.mean(found) / noise_correlation(400, 20, 10) - 1) < 0.1


def test_kernel_eraser_removes_what_a_square_knows() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1000, 2))
    s = x[:, 0] ** 2
    eraser = KernelEraser("spline", min_correlation=0.0).fit(x, sensitive_features=s)
    kernel, features = eraser.transform(x), eraser._features_of(x)
    frame = read_attributes(s, 1000)
    phi = AttributeBasis("spline").fit(frame).transform(frame)
    before, after = (
        float(hsic(z, phi, kernel_z=Linear(), kernel_s=Linear())) for z in (features, kernel)
    )
    assert after < 1e-12 < 1e-3 < before
    assert r2(features, s) > 0.9
    assert r2(kernel, s) < 1e-6


def one_hot(n: int = 800) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return X with dependent columns, S, and new people off the span of X, the first of an unseen category.

    Both one-hot groups sum to one, and the second group repeats in part what the first says.
    """
    rng = np.random.default_rng(0)
    s = rng.uniform(20, 70, n)
    first = rng.integers(0, 12, n)
    second = np.where(rng.random(n) < 0.5, first % 6, rng.integers(0, 6, n))
    numbers = np.column_stack([s / 10 + rng.normal(size=n), rng.normal(size=(n, 2))])
    X = np.column_stack([numbers, np.eye(13)[first], np.eye(6)[second]])
    new = np.column_stack([numbers[:6], np.eye(13)[[12, 0, 1, 2, 3, 4]], np.eye(6)])
    new[-1, 3:] = 1.0  # every category at once, as a table with several answers may have
    return X, s, new


@pytest.mark.parametrize("constant", [0.0, 0.1])  # the mean of the second has rounding errors
@pytest.mark.parametrize(
    ("eraser", "components"),
    [
        (AttributeEraser(), 0),
        (AttributeEraser("linear", min_correlation=0.0), 0),
        (KernelEraser(), 21),  # of 22 columns, 19 of which are independent
        (KernelEraser(), 40),
        (KernelEraser(min_correlation=0.0), 21),
    ],
)
def test_no_column_of_rounding_errors_is_left(
    eraser: Any, components: int, constant: float, monkeypatch: Any
) -> None:
    """A learner scales columns: errors of 1e-15 that follow S, or that a new person leaves, would become features."""
    monkeypatch.setattr(kernel_eraser, "_COMPONENTS", components)
    X, s, new = one_hot()
    X[:, 15] += constant
    new[:, 15] += constant
    own = eraser.fit(X, sensitive_features=s).transform(X)
    z = eraser.transform(new)
    same = np.ptp(own, axis=0) == 0
    assert same.any()  # the unseen category at least
    np.testing.assert_array_equal(z[:, same], np.broadcast_to(own[0, same], z[:, same].shape))
    scaled = own[:, ~same].std(0)
    assert scaled.min() > 1e-6
    assert (abs(z[:, ~same] - own[:, ~same].mean(0)) / scaled).max() < 1e3
    assert abs(np.corrcoef(own[:, ~same].T, s)[-1, :-1]).max() < 0.1


def test_what_the_training_samples_do_not_have_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, s, new = one_hot()
    scale = np.where(X.std(0) > 0, X.std(0), 1.0)
    values, vectors = np.linalg.eigh(np.cov(((X - X.mean(0)) / scale).T))
    outside = vectors[:, values < 1e-10]
    assert outside.shape[1] == 3  # two groups that sum to one, and a category that nobody has
    moved = new + (np.random.default_rng(0).normal(size=(6, 3)) @ outside.T) * scale
    monkeypatch.setattr(kernel_eraser, "_COMPONENTS", 21)
    reduced = KernelEraser().fit(X, sensitive_features=s)
    np.testing.assert_allclose(reduced.transform(moved), reduced.transform(new), atol=1e-8)
    unseen = new.copy()
    unseen[:, 15] = 7.0
    monkeypatch.setattr(kernel_eraser, "_COMPONENTS", 40)
    whole = KernelEraser().fit(X, sensitive_features=s)
    np.testing.assert_array_equal(whole.transform(unseen), whole.transform(new))


def test_units_do_not_decide_which_columns_exist() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    s = X[:, 0] + rng.normal(size=300)
    found = [
        KernelEraser().fit_transform(X * unit, sensitive_features=s)
        for unit in ([1, 1, 1], [1, 1e12, 1e-12])
    ]
    np.testing.assert_allclose(*found, atol=1e-6)


def test_the_signs_of_eigenvectors_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver may return any sign, and processors differ in this."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    s = X[:, 0] ** 2 + rng.normal(size=300)
    eigh = np.linalg.eigh

    def flipped(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values, vectors = eigh(matrix)
        return values, vectors * np.random.default_rng(len(matrix)).choice([-1.0, 1.0], len(matrix))

    monkeypatch.setattr(kernel_eraser, "_COMPONENTS", 2)
    eraser = KernelEraser()
    before = eraser.fit_transform(X, sensitive_features=s)
    monkeypatch.setattr(np.linalg, "eigh", flipped)
    np.testing.assert_allclose(eraser.fit_transform(X, sensitive_features=s), before, atol=1e-7)


def test_mixed_and_several_attributes(sample: Any) -> None:
    X, age = sample
    rng = np.random.default_rng(0)
    sex = pd.Series(rng.choice(["f", "m"], 400), name="sex")
    X = X + np.where(sex == "f", 1.0, 0.0)[:, None] * [0, 0, 0, 1000, 0]
    both = pd.DataFrame({"age": age, "sex": sex})
    for remedy in (AttributeEraser(min_correlation=0.0), KernelEraser(min_correlation=0.0)):
        erased = remedy.fit(X, sensitive_features=both).transform(X)
        for target in (age, (sex == "f").astype(float)):
            assert r2(erased, target) < 1e-2
