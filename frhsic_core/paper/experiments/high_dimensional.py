"""A vector S: what it does to the estimators, to the power of a test, and to what training reaches.

The paper's appendix on high-dimensional attributes (``sec:highdim_S``) compares times (they are in
:mod:`frhsic_core.paper.experiments.runtime`, part ``dimension``) and says that the conditional route loses
statistically. Units of part

- ``error``: estimators of HSIC and of the conditional integral against exact values, S Gaussian with p coordinates;
- ``power``: permutation tests at equal n;
- ``columns``: how much each of the paper's columns of Adult adds to a distance;
- ``training``: Adult, S made of d named columns: what is left of each attribute, over splits.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from frhsic_core.paper.experiments.runtime import ADULT_ROWS, DIMENSIONS, LAM, SIGMA_S, SMOOTHING, attributes
from frhsic_core.paper.runs.study import Study, units_of

if TYPE_CHECKING:
    from frhsic_core.learning.penalties import Penalty

__all__ = ["CASES", "GAMMAS", "measure_unit", "plan"]

COORDINATES = (1, 2, 3, 4, 5, 8, 12)
#: Rows of a sample, and how many samples: one estimate of EIPM takes n² exponentials for each of its bandwidths.
SIZES = {256: 200, 500: 100, 1_000: 48, 2_000: 24}
#: Smoothing bandwidths that EIPM may choose from.
GAMMAS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.4, 2.0)
LAMS = (1.0, LAM["dimension"])
TEST_ROWS = 2_000
NAMES = ("age", "capital-gain", "capital-loss", "hours-per-week")
# Fixed bandwidths are those of the appendix; normalised is the form recommended here.
CASES = ("unfair", "frhsic, fixed", "frem, fixed", "frhsic, normalised")


def penalty_of(case: str) -> Penalty:
    """Return the penalty of a case of the training part."""
    from frhsic_core.learning.penalties import FREM, FRHSIC, Unfair

    if case == "unfair":
        return Unfair()
    if case == "frem, fixed":
        return FREM(smoothing=SMOOTHING, anchors=32, power=1, bandwidth=1.0, scale=None)
    if case == "frhsic, fixed":
        return FRHSIC(estimator="biased", scale=None, bandwidth=1.0, bandwidth_s=SIGMA_S)
    return FRHSIC(estimator="normalized", scale="standardise", bandwidth="every_batch", bandwidth_s="median")


def train(
    case: str, d: int, *, lams: tuple[float, ...], splits: tuple[int, ...], epochs: int, device: str
) -> list[dict]:
    """Train on ``ADULT_ROWS`` rows of each split, S having d columns, and measure on ``TEST_ROWS`` others."""
    import torch

    from frhsic_core.conditional import gdp
    from frhsic_core.learning import Trainer
    from frhsic_core.learning.audit import audit_representation
    from frhsic_core.learning.probes import linear_features, probe_r2, random_features

    data, named = attributes(d, n=None), attributes(len(NAMES), n=None)
    x, s, y, _ = data.tensors(dtype=torch.float64, device=device)
    every = named.tensors(dtype=torch.float64, device=device).s
    s = s.unsqueeze(-1) if s.ndim == 1 else s
    orders = [np.random.RandomState(seed).permutation(data.n) for seed in splits]
    inside, outside = (
        torch.as_tensor(np.stack([order[a:b] for order in orders]), device=device)
        for a, b in ((0, ADULT_ROWS), (ADULT_ROWS, ADULT_ROWS + TEST_ROWS))
    )

    def scaled(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        fitted = values[inside]
        low, width = fitted.amin(1, keepdim=True), fitted.amax(1, keepdim=True) - fitted.amin(1, keepdim=True)
        width = torch.where(width > 0, width, 1.0)
        return (fitted - low) / width, (values[outside] - low) / width

    (x_train, x_test), (s_train, s_test), (_, every_test) = scaled(x), scaled(s), scaled(every)
    grid = lams if case != "unfair" else (0.0,)
    models = [(lam, i) for lam in grid for i in range(len(splits))]
    which = [i for _, i in models]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trained = Trainer(
            x_train, y[inside], s_train, penalty=penalty_of(case), lam=[lam for lam, _ in models],
            seeds=[splits[i] for i in which], dataset=which, epochs=epochs, protocol="reference", device=device,
        ).fit()  # fmt: skip
    z, output = trained.forward(x_test.float())
    labels, s_seen, all_seen = y[outside][which], s_test[which], every_test[which]
    chunk = 64 if device.startswith("cuda") else 8
    audit = audit_representation(z, s_seen, max_rows=500, features=100, chunk=chunk)
    accuracy = ((output > 0) == (labels > 0.5)).double().mean(-1)
    share = labels.mean(-1)
    columns: dict[str, dict[str, torch.Tensor]] = {
        "all": {
            "accuracy": accuracy,
            "constant": torch.maximum(share, 1.0 - share),
            "normalized_hsic": audit.normalized_hsic[..., 1],
            "floor": audit.floor[..., 1],
            "distance_correlation": audit.distance_correlation,
        }
    }
    linear = linear_features(z.double())
    curved = random_features(z.double(), features=200)
    for a, name in enumerate(NAMES):
        own = all_seen[..., a]
        columns[name] = {
            "gdp_reference": gdp(output.double(), own, reference=True),
            "gdp_sample": gdp(torch.sigmoid(output.double()), own, weights="sample", bandwidth=0.1),
            "linear_r2": probe_r2(linear, own.unsqueeze(-1)),
            "nonlinear_r2": probe_r2(curved, own.unsqueeze(-1)),
        }
    return [
        {"lam": lam, "split": splits[i], "attribute": attribute,
         **{name: float(f"{value[m].item():.5g}") for name, value in found.items()}}
        for attribute, found in columns.items()
        for m, (lam, i) in enumerate(models)
    ]  # fmt: skip


def column_shares() -> list[dict[str, Any]]:
    """Say what each scaled column adds to the squared distance of two people, and how often they agree in it."""
    data = attributes(5, n=None)
    s = (data.s - data.s.min(0)) / (data.s.max(0) - data.s.min(0))
    # The mean squared difference of two draws is twice the variance.
    variance = s.var(axis=0)
    return [
        {
            "attribute": name,
            "share": float(f"{variance[a] / variance.sum():.4g}"),
            "sd": float(f"{variance[a] ** 0.5:.4g}"),
            "agree": float(f"{((np.unique(s[:, a], return_counts=True)[1] / data.n) ** 2).sum():.4g}"),
        }
        for a, name in enumerate(data.sensitive_names)
    ]


def measure_unit(unit: dict[str, Any], device: str) -> list[dict[str, Any]]:
    """Measure a unit."""
    if unit["part"] == "columns":
        return column_shares()
    if unit["part"] == "training":
        splits = tuple(range(42, 42 + unit["splits"]))
        return train(unit["case"], unit["d"], lams=LAMS, splits=splits, epochs=unit["epochs"], device=device)
    from frhsic_core.paper.experiments import vector_attribute

    if unit["part"] == "power":
        return vector_attribute.power(
            unit["rho"], unit["p"], unit["n"], replications=unit["replications"],
            permutations=unit["permutations"], device=device,
        )  # fmt: skip
    return vector_attribute.errors(
        unit["rho"], unit["p"], unit["n"], replications=unit["replications"], gammas=GAMMAS, device=device
    )


def plan(preset: str) -> Study:
    """Return the units; ``text`` is the training of the paper's columns alone."""
    if preset == "smoke":
        units = (
            *units_of(part="error", rho=0.5, p=(1, 3), n=64, replications=4),
            *units_of(part="power", rho=0.3, p=2, n=32, replications=5, permutations=19),
        )
        return Study("high_dimensional_smoke", "high_dimensional", units)
    # The ends and the middle first, so that a run that was cut short shows the whole range.
    order = tuple(sorted(DIMENSIONS, key=lambda d: d % 2 == 0))
    training = units_of(part="columns") + units_of(part="training", d=order, case=CASES, splits=5, epochs=200)
    if preset == "text":
        return Study("high_dimensional", "high_dimensional", training)
    # The null shows the floor of each estimator.
    errors = [
        unit
        for n, replications in SIZES.items()
        for unit in units_of(part="error", rho=(0.5, 0.0), p=COORDINATES, n=n, replications=replications)
    ]
    tests = units_of(part="power", rho=(0.3, 0.0), p=COORDINATES, n=128, replications=400, permutations=99)
    return Study("high_dimensional", "high_dimensional", (*errors, *tests, *training))
