"""Train FRHSIC on Adult at λ = 500 in every form and with every bandwidth policy, on ten splits.

The chapter on the bandwidth trap counts how often Z leaves the range of its kernel (the median distance of Z in
bandwidths, ``ratio``, is outside [1/3, 3]) and how often the model becomes constant.
"""

from __future__ import annotations

import warnings
from typing import Any

from frhsic_core.paper.runs.plan import Study, units_of

LAM = 500.0
SPLITS = tuple(range(42, 52))
POLICIES = ("fixed", "every_20_epochs", "reference", "every_batch", "moving_average")
FORMS: dict[str, dict[str, Any]] = {
    "biased": {"estimator": "biased", "scale": None, "on": "representation"},
    "unbiased": {"estimator": "unbiased", "scale": None, "on": "representation"},
    "normalized": {"estimator": "normalized", "scale": None, "on": "representation"},
    "normalized, Z standardised": {"estimator": "normalized", "scale": "standardize", "on": "representation"},
    "normalized, Z whitened": {"estimator": "normalized", "scale": "whiten", "on": "representation"},
    # The default when this was measured. Today's has the biased estimator.
    "the estimators' default": {"estimator": "normalized", "scale": "whiten", "on": "both"},
}
ESTIMATORS_DEFAULT = "the estimators' default"
AUDIT_ROWS = 1_500


def plan(preset: str) -> Study:
    """Return one unit for each form and policy; its splits are one stack."""
    if preset == "smoke":
        units = units_of(
            dataset="synthetic", variant="text", form=tuple(FORMS), policy="moving_average", n=300, splits=2, epochs=2
        )
        return Study("bandwidth_policies_smoke", "bandwidth_policies", units)
    adult = {"dataset": "adult", "variant": "reference"}
    others = tuple(form for form in FORMS if form != ESTIMATORS_DEFAULT)
    units = (
        *units_of(**adult, form=others, policy=POLICIES),
        *units_of(**adult, form=ESTIMATORS_DEFAULT, policy=("every_batch", "moving_average")),
    )
    return Study("bandwidth_policies", "bandwidth_policies", units)


def measure_unit(unit: dict[str, Any], device: str) -> list[dict[str, Any]]:
    """Train one form with one policy and return one row for each split."""
    import torch

    from frhsic_core.auditing import audit_representation
    from frhsic_core.conditional import gdp
    from frhsic_core.joint.contraction import RIDGE
    from frhsic_core.learning import FRHSIC, EscapeWarning, Trainer
    from frhsic_core.paper.datasets import load_variant
    from frhsic_core.paper.splits import stack_splits

    seeds = list(SPLITS[: unit.get("splits")])
    options = {"n": unit["n"]} if "n" in unit else {}
    splits = stack_splits(load_variant(unit["dataset"], unit["variant"], **options), seeds=seeds, device=device)
    penalty = FRHSIC(bandwidth=unit["policy"], **FORMS[unit["form"]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EscapeWarning)  # whether Z escapes is what is measured
        trained = Trainer(
            splits.x_train,
            splits.y_train,
            splits.s_train,
            penalty=penalty,
            protocol="reference",
            lam=LAM,
            seeds=seeds,
            epochs=unit.get("epochs", 200),
            widths=(50, 4) if unit["form"] == ESTIMATORS_DEFAULT else (50, 50),
            device=device,
        ).fit()
    z, logits = trained.forward(splits.x_test)
    audit = audit_representation(z, splits.s_test, predictions=torch.sigmoid(logits), max_rows=AUDIT_ROWS)
    at_median = audit.bandwidths.index(1.0)
    columns = {
        "ratio": trained.history["ratio"][-1],
        "peak_ratio": trained.history["ratio"].amax(0),
        "accuracy": ((logits > 0) == (splits.y_test > 0.5)).double().mean(-1),
        "normalized_hsic": audit.normalized_hsic[:, at_median],
        "floor": audit.floor[:, at_median],
        "probe_r2": audit.nonlinear_r2,
        "gdp_reference": gdp(logits.double(), splits.s_test.double(), estimator="authors"),
    }
    ridge = RIDGE if penalty.scale == "whiten" else float("nan")
    return [
        {"split": seed, **{name: round(values[i].item(), 5) for name, values in columns.items()}, "ridge": ridge}
        for i, seed in enumerate(seeds)
    ]
