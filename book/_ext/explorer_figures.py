"""Static figures of the explorers, for print and for readers without scripts, drawn from the library's closed forms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

BLUE, ORANGE, GREEN, PINK, GREY = "#0072b2", "#b34e00", "#007a59", "#a34d7d", "#8a8f96"


@dataclass(frozen=True)
class StaticFigure:
    """What a picture shows, in words, and how to draw it."""

    alt: str
    paint: Callable[[Any], None]

    def draw(self, path: Path) -> None:
        """Write the figure as SVG, the same bytes every time."""
        import matplotlib
        from matplotlib.figure import Figure

        with matplotlib.rc_context({"svg.hashsalt": "frhsic", "font.size": 9}):
            figure = Figure(figsize=(8.4, 3.2), layout="constrained")
            self.paint(figure)
            figure.savefig(path, format="svg", metadata={"Date": None})


def _law(rho: float) -> Any:
    from frhsic_core.laws import GaussianPair

    return GaussianPair(rho)


def _kernel(bandwidth: float) -> Any:
    from frhsic_core.kernels import Gaussian

    return Gaussian(bandwidth)


def paint_routes(figure: Any) -> None:
    """MMD² against s, and the bound of Theorem 4.5 against m."""
    from frhsic_core.paper.statements.spectral import upper_bounds

    left, right = figure.subplots(1, 2)
    law, kernel = _law(0.5), _kernel(1.0)
    s = np.linspace(-3, 3, 200)
    hsic, squared = law.hsic(kernel, kernel), law.expected_squared_mmd(kernel)
    left.plot(s, law.conditional_mmd(kernel, s) ** 2, color=BLUE, label="MMD²(s)")
    left.axhline(squared, color=GREEN, linestyle="--", label="E MMD²")
    left.axhline(hsic, color=ORANGE, label="HSIC")
    left.set(xlabel="s", title="ρ = 0.5, σ = 1: the conditional route")
    left.legend(frameon=False)
    bounds = upper_bounds(law, kernel_z=kernel, kernel_s=kernel, m=8)
    right.semilogy(np.arange(1, 9), bounds, "o", color=PINK, label="HSIC/λₘ + tail")
    right.axhline(squared, color=GREEN, linestyle="--", label="E MMD²")
    right.axhline(law.expected_mmd(kernel) ** 2, color=BLUE, linestyle=":", label="(E MMD)²")
    right.axhline(hsic, color=ORANGE, label="HSIC")
    right.set(xlabel="m", title="the bound of Theorem 4.5")
    right.legend(frameon=False)


def paint_spectrum(figure: Any) -> None:
    """Eigenfunctions, and Δ in their basis."""
    left, right = figure.subplots(1, 2)
    law, kernel = _law(0.5), _kernel(1.0)
    system = law.mercer(kernel)
    s = np.linspace(-3.5, 3.5, 300)
    for l, (values, colour) in enumerate(zip(system.eigenfunctions(s, 4).T, (BLUE, ORANGE, GREEN, PINK), strict=True)):
        left.plot(s, values, color=colour, label=f"ψ{l + 1}")
    left.set(xlabel="s", title="eigenfunctions of the kernel on S, σ = 1")
    left.legend(frameon=False)
    energies, l = law.delta_coefficients(kernel, kernel, m=8), np.arange(1, 9)
    right.bar(l - 0.2, energies, 0.38, color=GREEN, label="‖Δ_ℓ‖²")
    right.bar(l + 0.2, energies * system.eigenvalues(8), 0.38, color=ORANGE, label="λ_ℓ‖Δ_ℓ‖²")
    right.set(xlabel="ℓ", yscale="log", ylim=(1e-10, 0.3), title="Δ in their basis, ρ = 0.5")
    right.legend(frameon=False)


def paint_trap(figure: Any) -> None:
    """Penalty and pull against the ratio of spread and bandwidth, and the kernel beside the distances."""
    from scipy.stats import norm

    left, right = figure.subplots(1, 2)
    median, step = np.sqrt(2) * norm.ppf(0.75), 1e-4
    ratios = np.logspace(-2, 2.5, 150)
    penalty = [_law(0.5).hsic(_kernel(median / r), _kernel(1.0)) for r in ratios]
    pull = [
        (
            _law(0.5 + step).hsic(_kernel(median / r), _kernel(1.0))
            - _law(0.5 - step).hsic(_kernel(median / r), _kernel(1.0))
        )
        / (2 * step)
        for r in ratios
    ]
    left.semilogx(ratios, penalty, color=ORANGE, label="penalty HSIC")
    left.semilogx(ratios, pull, color=BLUE, linestyle="--", label="pull ∂HSIC/∂ρ")
    left.axvspan(1 / 3, 3, color=GREEN, alpha=0.14)
    left.set(xlabel="median |z − z′| / σ_Z", title="ρ = 0.5 throughout")
    left.legend(frameon=False)
    d = np.linspace(0, 4.2, 400)
    right.plot(d, np.exp(-(d**2) / 4), color=GREY, label="density of distances (scaled)")
    for ratio, style in ((0.05, ":"), (1.0, "-"), (45.0, "--")):
        right.plot(d, np.exp(-0.5 * (d * ratio / median) ** 2), style, color=PINK, label=f"kernel, ratio {ratio:g}")
    right.set(xlabel="distance |z − z′|", title="why")
    right.legend(frameon=False)


def paint_frontier(figure: Any) -> None:
    """Utility against dependence, one panel for each dataset, on the λ that all methods share."""
    from frontier_data import frontier_data

    data = frontier_data()
    assert data is not None
    source = next(iter(data["sources"].values()))
    metric = next(iter(source["metrics"]))
    axes = figure.subplots(1, len(source["datasets"]), squeeze=False)[0]
    colours = [BLUE, GREEN, PINK, GREY, "#000000", "#56b4e9", "#e69f00"]
    for axis, (name, part) in zip(axes, source["datasets"].items(), strict=True):
        grids = [{point["lam"] for point in points} for points in part["methods"].values()]
        shared = set.intersection(*grids)
        rivals = [key for key in part["methods"] if key != "frhsic"]
        for key, colour in [*zip(rivals, colours, strict=False), ("frhsic", ORANGE)]:
            points = [p for p in part["methods"][key] if p["lam"] in shared and p[metric] is not None]
            axis.plot([p[metric] for p in points], [p["perf"] for p in points], "o-" if key == "frhsic" else ".",
                      color=colour, markersize=3, linewidth=1, label=data["names"].get(key, key))  # fmt: skip
        axis.set_title(data["titles"].get(name, name), fontsize=8)
        axis.tick_params(labelsize=6)
    axes[0].legend(frameon=False, fontsize=5)
    figure.supxlabel(f"{source['metrics'][metric]}; {source['title']}", fontsize=8)


FIGURES = {
    "routes": StaticFigure(
        "Left: squared MMD between the conditional and the marginal law grows with the distance of s from zero; its "
        "mean lies above HSIC. Right: the spectral bound has a minimum at small m and grows after it; HSIC, the "
        "squared expected MMD and the expected squared MMD lie below it in this order.",
        paint_routes,
    ),
    "spectrum": StaticFigure(
        "Left: the first four eigenfunctions, one more sign change each. Right: the parts of the conditional MMD "
        "integral along them fall with the number, and their parts of HSIC fall faster.",
        paint_spectrum,
    ),
    "trap": StaticFigure(
        "Left: penalty and its derivative are large only while the median distance is near the bandwidth, and vanish "
        "on both sides though the correlation stays the same. Right: a kernel much narrower or wider than the "
        "distances is nearly zero or nearly one for all of them.",
        paint_trap,
    ),
    "frontier": StaticFigure(
        "Utility against remaining dependence for every method and dataset, one point for each weight of the penalty.",
        paint_frontier,
    ),
}
