"""The curve, its band and its GDP against closed forms, brute force and the library's own statistic."""

from __future__ import annotations

import numpy as np
import pytest
from records import Records
from scipy.stats import binom

from frhsic_core import gdp, gdp_curve
from frhsic_core.conditional._curve import BINS, Smoother, local_polynomial
from frhsic_core.paper.experiments import levels_and_coverage as study
from frhsic_core.paper.stored_gdp import authors_gdp, smoothed_gdp


def test_a_smoother_is_a_weighted_least_squares_fit() -> None:
    generator = np.random.default_rng(0)
    t = np.sort(generator.random(40))
    mass = generator.random(40)
    y = generator.random(40)
    fit = local_polynomial(t, mass, np.full(40, 0.35), 2) @ y
    for k in (0, 17, 39):
        kernel = np.maximum(0.0, 1 - ((t - t[k]) / 0.35) ** 2) * mass
        root = np.sqrt(kernel)
        coefficients = np.linalg.lstsq(
            root[:, None] * np.vander(t - t[k], 3), root * y, rcond=None
        )[0]
        assert fit[k] == pytest.approx(coefficients[-1], abs=1e-6)


def test_levels_are_group_means_and_gdp_is_their_mean_distance() -> None:
    generator = np.random.default_rng(1)
    s = generator.integers(0, 5, 300).astype(float)
    f = generator.random(300) + s
    w = generator.random(300)
    curve = gdp_curve(f, s, sample_weight=w)
    means = np.array([np.average(f[s == k], weights=w[s == k]) for k in range(5)])
    np.testing.assert_allclose(curve.mean, means)
    overall = np.average(f, weights=w)
    assert curve.center == pytest.approx(overall)
    assert curve.gdp == pytest.approx(np.average(np.abs(means[s.astype(int)] - overall), weights=w))


def test_integer_weights_are_repeated_rows() -> None:
    generator = np.random.default_rng(2)
    s = generator.normal(size=150)
    f = np.sin(s)
    w = generator.integers(1, 4, 150).astype(float)
    weighted = gdp_curve(f, s, sample_weight=w)
    repeated = gdp_curve(np.repeat(f, w.astype(int)), np.repeat(s, w.astype(int)))
    assert weighted.gdp == pytest.approx(repeated.gdp, abs=0.01)
    assert weighted.center == pytest.approx(repeated.center)
    assert weighted.n == 150
    np.testing.assert_allclose(weighted.share.sum(), 1.0)


@pytest.mark.parametrize("law", ["ages", pytest.param("Cauchy", marks=pytest.mark.slow)])
@pytest.mark.parametrize("shape", ["flat", "slope"])
def test_band_and_interval_cover(law: str, shape: str) -> None:
    """A small part of the stored study: 40 draws; a coverage of .95 gives fewer than this once in 10,000 tries."""
    unit = {
        "kind": "curve",
        "law": law,
        "shape": shape,
        "score": "probability",
        "n": 300,
        "draws": 40,
    }
    found = study.measure_unit_audit_coverage(unit, "cpu")[0]
    least = binom.ppf(1e-4, 40, 0.95)
    assert found["band"] >= least
    assert found["interval"] >= least
    assert found["width"] < 0.12


def test_the_true_gdp_of_the_study() -> None:
    generator = np.random.default_rng(0)
    for law in study.ATTRIBUTES:
        s = study.attribute(law, 400_000, generator)
        mean = study.conditional_mean(law, "slope", s)
        assert np.abs(mean - mean.mean()).mean() == pytest.approx(
            study.true_gdp(law, "slope"), rel=0.01
        )


@pytest.mark.parametrize("shape", ["slope", "wave"])
def test_the_curve_has_less_error_than_the_other_estimators(shape: str) -> None:
    """On laws with exact answers: kernel smoothing at Silverman's bandwidth, and the authors' grid."""
    errors: dict[str, list[float]] = {"curve": [], "smoothed": [], "authors": []}
    for law in ("ages", "Cauchy", "log-normal"):
        truth = study.true_gdp(law, shape)
        for draw in range(8):
            f, s = study.scores(
                {"law": law, "shape": shape, "score": "probability", "n": 1000}, draw
            )
            errors["curve"].append(gdp(f, s) - truth)
            errors["smoothed"].append(smoothed_gdp(f, s, bandwidth="silverman").item() - truth)
            errors["authors"].append(authors_gdp(f, (s - s.min()) / np.ptp(s)) - truth)
    size = {name: float(np.sqrt(np.mean(np.square(values)))) for name, values in errors.items()}
    assert size["curve"] < 0.7 * min(size["smoothed"], size["authors"])


def curves() -> dict[str, dict[str, list[float]]]:
    """Return curves of ages, incomes, five values and a few people: with weights, from zero, at another level."""
    rng = np.random.default_rng(8)
    laws = {
        "ages": rng.integers(18, 80, 300),
        "incomes": np.exp(2.0 * rng.normal(size=400)),
        "few": rng.normal(size=14),
    }
    laws |= {
        "five": rng.integers(0, 5, 120),
        "mass": np.where(rng.random(400) < 0.9, 0.0, rng.integers(0, 40, 400)),
    }
    found = {}
    for name, s in laws.items():
        s = s.astype(float)
        f = (1e200 if name == "few" else 1e3) * (
            np.sin(s / 9) + rng.normal(size=len(s)) * (1 + (s > 30))
        )
        for weight in (None, rng.random(len(s)) + 0.1):
            smoother = Smoother(s, weight=weight)
            drawn = {
                "mean": {},
                "zero": {"center": 0.0},
                "level": {"alpha": 0.4, "draws": 300, "random_state": 1},
            }
            for kind, options in drawn.items():
                curve = smoother.curve(f, **options)
                places = np.linspace(0, len(curve.s) - 1, 6).astype(int)
                rows = {
                    key: value[places] if np.ndim(value) else [value]
                    for key, value in vars(curve).items()
                    if key != "ends"
                }
                value, slope = smoother.gdp(f, center=options.get("center"))
                rows |= {"value": [value], "slope": slope[:5], "flat": [curve.is_flat]}
                key = f"{name} {kind} {'plain' if weight is None else 'weighted'}"
                found[key] = {
                    key: np.asarray(value, dtype=float).tolist() for key, value in rows.items()
                }
    return found


def test_curves_are_those_on_record(recorded: Records) -> None:
    """Sums in another order move a number by far less."""
    recorded(curves(), "curves.json", rel=1e-6, abs_=1e-9, of_largest=True)


def test_many_rows_are_binned_and_the_answer_stays() -> None:
    generator = np.random.default_rng(3)
    s = generator.normal(size=20_000)
    curve = gdp_curve(np.tanh(s), s)
    assert len(curve.s) <= BINS
    truth = np.abs(np.tanh(s) - np.tanh(s).mean()).mean()
    assert curve.gdp == pytest.approx(truth, rel=0.01)
    assert curve.rows.sum() == 20_000
    assert curve.explained > 0.99


def test_residuals_are_measured_from_zero() -> None:
    generator = np.random.default_rng(5)
    s = generator.normal(size=500)
    off = Smoother(s).curve(np.full(500, 0.3), center=0.0)
    assert off.gdp == pytest.approx(0.3)
    assert gdp_curve(np.full(500, 0.3), s).gdp == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("levels", [False, True])
def test_a_smaller_coverage_has_a_narrower_band_and_interval(levels: bool) -> None:
    generator = np.random.default_rng(2)
    s = generator.integers(0, 5, 300) if levels else generator.random(300)
    f = s + generator.normal(size=300)
    wide, narrow = (gdp_curve(f, s, alpha=alpha) for alpha in (0.05, 0.5))
    np.testing.assert_array_equal(wide.mean, narrow.mean)
    assert (wide.low < narrow.low)[wide.inside].all()
    assert (wide.high > narrow.high)[wide.inside].all()
    assert wide.gdp_low < narrow.gdp_low < wide.gdp < narrow.gdp_high < wide.gdp_high
