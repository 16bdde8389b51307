"""Audit a model without a penalty (Unfair) on Adult, COMPAS and Crime, for the chapter "Audit your own model".

Each unit trains one model on half of the rows and audits its predictions for the other half. The stored rows are the
bins of the curves, with the numbers of the audit repeated in each row, so that the chapter runs without the data.
Neighboring bins are joined until each has at least 20 rows: no small cell of a dataset is published.
"""

from __future__ import annotations

from dataclasses import asdict, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from frhsic_core.paper.runs.plan import Experiment, units_of

if TYPE_CHECKING:
    from frhsic_core.auditing import AttributeAudit
    from frhsic_core.conditional import Curve

LEAST_ROWS = 20
_EXAMPLES = (("adult", "education-num"), ("compas", "priors_count"), ("crime", ""))
CONTROLS = dict(_EXAMPLES)
_EFFECTS = ("normalized_hsic", "distance_correlation", "khgr", "linear_r2", "nonlinear_r2")


def plan() -> Experiment:
    """Return one unit for each dataset."""
    name = "audit_examples"
    return Experiment(name, units_of(name, dataset=tuple(CONTROLS), epochs=60, seed=0))


def predictions(unit: dict[str, Any]) -> dict[str, Any]:
    """Return what an audit needs of a model that never saw the audited half."""
    from frhsic_core.data import load_dataset
    from frhsic_core.learning import FairClassifier, FairRegressor

    data = load_dataset(unit["dataset"], n=unit.get("n"))
    order = np.random.default_rng(unit["seed"]).permutation(data.n)
    train, test = np.array_split(order, 2)
    classify = data.task == "classification"
    model = (FairClassifier if classify else FairRegressor)(
        0.0, epochs=unit["epochs"], random_state=unit["seed"], device="cpu"
    )
    y = data.y.astype(int) if classify else data.y
    model.fit(data.X[train], y[train], sensitive_features=data.s[train])
    x = data.X[test]
    score = model.predict_proba(x)[:, 1] if classify else np.ravel(model.predict(x))
    control = CONTROLS.get(unit["dataset"])
    given = None
    if control:
        given = pd.Series(x[:, list(data.feature_names).index(control)], name=control)
    return {
        "y_pred": pd.Series(score, name="prediction"),
        "sensitive_features": pd.Series(np.ravel(data.s[test]), name=data.sensitive_name),
        "y_true": pd.Series(data.y[test], name="label"),
        "control_features": given,
    }


def measure_unit(unit: dict[str, Any], device: str) -> list[dict[str, Any]]:
    """Return a row for each bin of each curve of the audit."""
    from frhsic_core import audit

    (attribute,) = audit(**predictions(unit)).attributes
    names = {"gdp": "score", "gdp_given": "given"}
    return [
        row
        for name, curve in attribute.curves.items()
        for row in _rows(attribute, names.get(name, name), curve)
    ]


def _rows(attribute: AttributeAudit, kind: str, curve: Curve) -> list[dict[str, Any]]:
    measured = attribute.numbers
    numbers = {"pvalue": attribute.pvalue, "test_rows": measured["pvalue"].rows}
    numbers |= {name: measured[name].value for name in _EFFECTS}
    numbers["pvalue_given"] = (
        measured["pvalue_given"].value if "pvalue_given" in measured else np.nan
    )
    curve = joined(curve)
    values = asdict(curve)
    scalars = {name: value for name, value in values.items() if not isinstance(value, np.ndarray)}
    arrays = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
    return [
        {"curve": kind}
        | {name: array[k].item() for name, array in arrays.items()}
        | scalars
        | numbers
        for k in range(len(curve.s))
    ]


def joined(curve: Curve) -> Curve:
    """Return the curve with neighboring bins joined until each has ``LEAST_ROWS`` rows."""
    below = np.cumsum(curve.rows)
    # A bin ends where the rows since the last end are enough; what is left at the end joins the last bin.
    ends: list[int] = []
    last = 0.0
    for k, count in enumerate(below):
        if count - last >= LEAST_ROWS:
            ends.append(k)
            last = count
    starts = np.array([0, *[end + 1 for end in ends[:-1]]])
    total = np.add.reduceat(curve.share, starts)
    changes: dict[str, Any] = {"share": total, "rows": np.add.reduceat(curve.rows, starts)}
    changes["inside"] = np.logical_and.reduceat(curve.inside, starts)
    for name in ("s", "mean", "low", "high", "gap", "gap_low", "gap_high"):
        changes[name] = np.add.reduceat(curve.share * getattr(curve, name), starts) / total
    return replace(curve, **changes)


def stored_curve(rows: pd.DataFrame, dataset: str, kind: str = "score") -> Curve:
    """Return a curve from its stored rows; the people beyond its band are not stored."""
    from frhsic_core.conditional import Curve

    part = rows[(rows["dataset"] == dataset) & (rows["curve"] == kind)].sort_values("s")
    if "alpha" not in part:  # measured when the column had the coverage
        part = part.assign(alpha=1.0 - part["level"])
    values: dict[str, Any] = {}
    for entry in fields(Curve):
        if entry.name == "ends":
            continue
        column = part[entry.name].to_numpy()
        scalar = entry.type in ("float", "int", "bool")
        values[entry.name] = column[0].item() if scalar else column
    return Curve(**values)
