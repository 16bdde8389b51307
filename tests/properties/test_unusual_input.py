"""Every public statistic on few rows, constants, ties, missing values, empty batches, and at the ends of the range.

``book/unusual_input.md`` shows what is computed here. After a change of behavior run this file as a
script: it writes the tables of the page again.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from torch import Tensor

import frhsic_core as fc
from frhsic_core import Gaussian, Laplacian, hsic, normalized_hsic
from frhsic_core._arrays import as_tensor
from frhsic_core._lazy import homes_in
from frhsic_core.paper.stored_gdp import smoothed_gdp

PAGE = Path(__file__).resolve().parents[2] / "book" / "unusual_input.md"
Statistic = Callable[[Tensor, Tensor], Tensor]


def first_column(function: Statistic) -> Statistic:
    return lambda z, s: function(z[..., 0], s)


def two_groups(s: Tensor) -> Tensor:
    """Return the smallest and the largest value of S where it is below and above its mean."""
    if s.shape[-2] == 0 or not s.isfinite().all():
        return s
    low, high = s.amin(-2, keepdim=True), s.amax(-2, keepdim=True)
    return torch.where(s > s.mean(-2, keepdim=True), high, low)


def upper_end(y: Tensor, s: Tensor) -> Tensor:
    """Return the upper end of the interval of GDP, which takes one sample."""
    if y.shape[:-1].numel() == 0:
        return y.new_zeros(y.shape[:-1])
    return torch.tensor(fc.gdp_curve(y, s).gdp_high, dtype=as_tensor(y).dtype)


def audit(z: Tensor, s: Tensor) -> Tensor:
    result = fc.audit_representation(z, s, predictions=s[..., 0] > s[..., 0].mean(-1, keepdim=True))
    kernel = torch.cat([result.normalized_hsic, result.floor], -1).sum(-1)
    assert result.gdp is not None
    return (
        kernel + result.distance_correlation + result.linear_r2 + result.nonlinear_r2 + result.gdp
    )


# The name on the page, the call, and the powers of the units of z and s that the result has.
STATISTICS: dict[str, tuple[Statistic, float, float]] = {
    "hsic": (fc.hsic, 0, 0),
    "hsic, unbiased": (lambda z, s: fc.hsic(z, s, estimator="unbiased"), 0, 0),
    "hsic, kernel_s='product'": (lambda z, s: fc.hsic(z, s, kernel_s="product"), 0, 0),
    "HSICLoss": (lambda z, s: fc.HSICLoss(1.0)(z, s), 0, 0),
    "normalized_hsic": (fc.normalized_hsic, 0, 0),
    "normalized_hsic, Linear and Distance": (
        lambda z, s: fc.normalized_hsic(z, s, kernel_z=fc.Linear(), kernel_s=fc.Distance()),
        0,
        0,
    ),
    "hsic_test, gamma p-value": (lambda z, s: fc.hsic_test(z, s, method="gamma").pvalue, 0, 0),
    "coco": (fc.coco, 0, 0),
    "khgr, ridge=0.1": (lambda z, s: fc.khgr(z, s, ridge=0.1), 0, 0),
    "hsic, Distance on both": (
        lambda z, s: fc.hsic(z, s, kernel_z="distance", kernel_s="distance"),
        1,
        1,
    ),
    "distance_correlation": (fc.distance_correlation, 0, 0),
    "mutual_information, k=1": (lambda z, s: fc.mutual_information(z, s, k=1), 0, 0),
    "eipm": (fc.eipm, 0, 0),
    "eipm, anchors=5": (lambda z, s: fc.eipm(z, s, anchors=5), 0, 0),
    "gdp": (first_column(fc.gdp), 1, 0),
    "gdp, two values": (first_column(lambda y, s: fc.gdp(y, two_groups(s))), 1, 0),
    "gdp_curve, upper end": (first_column(upper_end), 1, 0),
    "median_bandwidth": (lambda z, s: fc.median_bandwidth(z), 1, 0),
    "audit_representation, sum": (audit, 0, 0),
}


def sample(n: int = 40, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(7)
    z = torch.randn(n, 2, generator=generator, dtype=torch.float64)
    s = (
        z[:, :1] ** 2
        + 0.5 * z[:, 1:]
        + 0.3 * torch.randn(n, 1, generator=generator, dtype=torch.float64)
    )
    return z.to(dtype), s.to(dtype)


def unusual() -> dict[str, tuple[Tensor, Tensor]]:
    z, s = sample()
    missing, infinite = z.clone(), s.clone()
    missing[3, 0] = torch.nan
    infinite[5] = torch.inf
    return {
        "no rows": (z[:0], s[:0]),
        "one row": (z[:1], s[:1]),
        "two rows": (z[:2], s[:2]),
        "four rows": (z[:4], s[:4]),
        "constant z": (torch.full_like(z, 0.7), s),
        "constant s": (z, torch.full_like(s, 0.7)),
        "ties": (z.round(), s.round()),
        "NaN": (missing, s),
        "infinity": (z, infinite),
        "empty batch": (z.expand(0, 40, 2), s.expand(0, 40, 1)),
    }


SCALES = {
    "1": (torch.float64, 1.0),
    "1e-300": (torch.float64, 1e-300),
    "1e300": (torch.float64, 1e300),
    "1, float32": (torch.float32, 1.0),
    "1e-30, float32": (torch.float32, 1e-30),
    "1e30, float32": (torch.float32, 1e30),
    "1, float16": (torch.float16, 1.0),
    "1, bfloat16": (torch.bfloat16, 1.0),
}


def cell(statistic: Statistic, z: Tensor, s: Tensor) -> str:
    try:
        value = statistic(z, s)
    except ValueError as error:
        return short_name_of(str(error))
    if value.numel() == 0:
        return "empty"
    number = value.double().item()
    # Rounding of a true zero differs between machines.
    return "0" if abs(number) < 1e-7 and z.detach().abs().max() > 1e-20 else f"{number:.3g}"


def short_name_of(message: str) -> str:
    """Return the short form of an error; what has none is not a message for users, and fails here."""
    forms = {
        r"at least (\d+) (?:are|is) needed": "needs {} rows",
        r"NaN or infinite values": "error: NaN",
        r"leaves the range": "error: range",
        r"s is constant": "error: constant",
        r"k is 1 but there are 1 rows": "needs 2 rows",
    }
    for pattern, form in forms.items():
        if found := re.search(pattern, message):
            return form.format(*found.groups()).replace("needs 1 rows", "needs 1 row")
    raise AssertionError(f"no short form for {message!r}")


def table(columns: dict[str, tuple[Tensor, Tensor]]) -> str:
    lines = ["| statistic | " + " | ".join(columns) + " |", "|---|" + "---|" * len(columns)]
    for name, (statistic, _, _) in STATISTICS.items():
        lines.append(
            f"| `{name}` | "
            + " | ".join(cell(statistic, *pair) for pair in columns.values())
            + " |"
        )
    return "\n".join(lines)


def at_scale(dtype: torch.dtype, scale: float) -> tuple[Tensor, Tensor]:
    z, s = sample(dtype=dtype)
    return z * scale, s * scale


def tables() -> dict[str, str]:
    return {
        "inputs": table(unusual()),
        "scales": table({name: at_scale(*scale) for name, scale in SCALES.items()}),
    }


def with_tables(page: str) -> str:
    for name, text in tables().items():
        pattern = rf"(<!-- table {name} -->\n).*?(\n<!-- end -->)"
        page, count = re.subn(
            pattern, lambda found, text=text: f"{found[1]}{text}{found[2]}", page, flags=re.DOTALL
        )
        assert count == 1
    return page


def test_the_page_shows_what_is_computed() -> None:
    page = PAGE.read_text(encoding="utf-8")
    computed = with_tables(page).splitlines()
    for shown, found in zip(page.splitlines(), computed, strict=True):
        assert shown == found, "run this file as a script"


def test_every_exported_statistic_is_covered() -> None:
    homes = homes_in(Path(fc.__file__).with_suffix(".pyi"))
    measuring = {f"frhsic_core.{package}" for package in ("joint", "conditional", "auditing")}
    names = {name for name, home in homes.items() if home in measuring}
    covered = {name.split(",")[0] for name in STATISTICS}
    # gdp_score is gdp with the arguments of a metric.
    assert names - covered == {"RepresentationAudit", "audit", "gdp_score"}


@pytest.mark.parametrize("name", STATISTICS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_units_do_not_matter(name: str, dtype: torch.dtype) -> None:
    """The same data in other units have the same value, or that value in its own unit."""
    statistic, power_z, power_s = STATISTICS[name]
    z, s = sample(dtype=dtype)
    base = statistic(z, s).double().item()
    extreme = 1e300 if dtype == torch.float64 else 1e30
    for scale_z, scale_s in (
        (extreme, 1.0),
        (1.0, extreme),
        (1 / extreme, 1.0),
        (1 / extreme, extreme),
    ):
        unit = scale_z**power_z * scale_s**power_s
        value = statistic(z * scale_z, s * scale_s).double().item() / unit
        assert value == pytest.approx(base, rel=1e-9 if dtype == torch.float64 else 1e-3), (
            scale_z,
            scale_s,
        )


@pytest.mark.parametrize("name", STATISTICS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(name: str, dtype: torch.dtype) -> None:
    statistic, _, _ = STATISTICS[name]
    z, s = sample(dtype=dtype)
    value = statistic(z, s)
    wide = name.startswith("audit") or "p-value" in name
    assert value.dtype == (torch.float64 if wide else torch.float32)
    torch.testing.assert_close(value, statistic(z.float(), s.float()))


@pytest.mark.parametrize("scale", [1e-100, 1e100])
@pytest.mark.parametrize(
    "name",
    ["hsic", "hsic, unbiased", "normalized_hsic", "coco", "khgr, ridge=0.1", "eipm", "distance_correlation"],
)  # fmt: skip
def test_gradients_have_the_inverse_unit(name: str, scale: float) -> None:
    z, s = sample(12)
    gradients = []
    for factor in (1.0, scale):
        x = (z * factor).requires_grad_()
        gradients.append(torch.autograd.grad(STATISTICS[name][0](x, s), x)[0] * factor)
    assert gradients[0].abs().max() > 1e-4
    torch.testing.assert_close(gradients[1], gradients[0], rtol=1e-7, atol=1e-12)


def test_explicit_bandwidths_have_units_too() -> None:
    z, s = sample()
    for kind in (fc.Gaussian, fc.Laplacian, fc.InverseMultiquadric):
        base = fc.hsic(z, s, kernel_z=kind(1.3), kernel_s=kind(0.7))
        for scale in (1e-300, 1e300):
            for wrap in (float, torch.tensor):
                kernels = {"kernel_z": kind(wrap(1.3 * scale)), "kernel_s": kind(0.7)}
                if wrap is torch.tensor:
                    kernels["kernel_z"] = kind(torch.tensor(1.3 * scale, dtype=torch.float64))
                torch.testing.assert_close(fc.hsic(scale * z, s, **kernels), base)
                torch.testing.assert_close(
                    fc.hsic(s, scale * z, kernel_z=kind(0.7), kernel_s=kernels["kernel_z"]), base
                )


def test_what_leaves_the_range_is_an_error() -> None:
    z, s = sample()
    for statistic in (fc.hsic, fc.coco, fc.eipm):
        with pytest.raises(ValueError, match=f"{statistic.__name__} leaves the range"):
            statistic(1e300 * z, s, kernel_z=fc.Linear())
    with pytest.raises(ValueError, match="hsic leaves the range"):
        fc.hsic(1e300 * z, 1e300 * s, kernel_z="distance", kernel_s="distance")
    # A bandwidth far below the spread of several attributes is none: infinite distances have weight
    # zero.
    both = torch.cat([s, s + z[:, :1]], -1)
    assert 0.1 < smoothed_gdp(z[:, 0], 1e300 * both, bandwidth=0.1).item() < 1.0


def test_biased_hsic_of_a_constant_is_never_negative() -> None:
    """Rounding of a constant sample is neither negative nor a correlation, however large the constant is."""
    s = sample()[1]
    for value in (0.1, 0.3, 0.7, 3.3, 0.7e300):
        for kernel in (None, fc.Laplacian(1.3), fc.Linear(), fc.Distance()):
            constant = torch.full((40, 3), value, dtype=torch.float64)
            for options in ({}, {"sample_weight": s[:, 0].abs()}):
                rounding = 1e-6 if options else 0.0  # sums that cancel leave more than a projection
                assert (
                    fc.normalized_hsic(constant, s, kernel_z=kernel, **options).item() <= rounding
                )
                assert (
                    fc.normalized_hsic(s, constant, kernel_s=kernel, **options).item() <= rounding
                )
                if value < 10 or kernel is None:
                    assert fc.hsic(constant, s, kernel_z=kernel, **options).item() >= 0.0


def test_a_loss_in_mixed_precision_is_that_of_float32() -> None:
    z, s = sample(dtype=torch.float32)
    for estimator in ("biased", "unbiased", "normalized"):
        loss = fc.HSICLoss(1.0, estimator=estimator)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert torch.equal(loss(z, s), loss.forward(z, s))
            mixed = loss(z, s)
        assert torch.equal(mixed, loss(z, s))


# Properties that hold for every sample, searched by hypothesis.
BANDWIDTHS = st.sampled_from([1e-3, 0.3, 1.0, 7.0, 1e3])
# Few distinct values make ties, the case that integer ages bring.
VALUES = st.one_of(st.integers(-3, 3).map(float), st.floats(-5, 5, allow_nan=False, width=32))


@st.composite
def samples(draw: st.DrawFn) -> tuple[torch.Tensor, torch.Tensor]:
    n = draw(st.integers(1, 12))
    z = draw(arrays(np.float64, (n, draw(st.integers(1, 3))), elements=VALUES))
    s = draw(arrays(np.float64, (n, draw(st.integers(1, 2))), elements=VALUES))
    return torch.from_numpy(z), torch.from_numpy(s)


@given(samples(), BANDWIDTHS, BANDWIDTHS)
def test_biased_and_normalized_hsic_lie_in_the_unit_interval(pair, a, b) -> None:
    assert -1e-14 <= hsic(*pair, kernel_z=Gaussian(a), kernel_s=Laplacian(b)).item() <= 1.0
    assert 0.0 <= normalized_hsic(*pair).item() <= 1.0


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
