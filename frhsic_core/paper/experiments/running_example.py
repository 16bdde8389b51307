"""Train the running example, ``load_dataset("people")``, with a two-dimensional Z at eight values of λ.

The picture on the first page and the chapter on training draw the held-out people in Z. A row is one person in one
model: what the encoder and the head make of the person, and the label.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from frhsic_core.paper.runs.plan import Experiment, units_of

#: The forms of the penalty by name, with the λ that take each of them from no effect to a large one.
PENALTIES: dict[str, tuple[dict[str, Any], tuple[float, ...]]] = {
    "paper": (
        {"protocol": "text"},
        (0.0, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0),
    ),
    "recommended": ({}, (0.0, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)),
}
#: Names of the forms for readers.
TITLES = {"paper": "the paper's penalty", "recommended": "whitened FRHSIC"}
PEOPLE = 1_000


def plan() -> Experiment:
    """Return one unit for each form; its λ are one stack."""
    return Experiment("running_example", units_of("running_example", form=tuple(PENALTIES)))


def measure_unit(unit: dict[str, Any], device: str) -> list[dict[str, Any]]:
    """Train one form at all its λ and return one row for each λ and each held-out person."""
    import warnings

    import torch

    from frhsic_core.data import load_dataset
    from frhsic_core.learning import EscapeWarning, Trainer, make_penalty

    n = unit.get("n", PEOPLE)
    people, others = (load_dataset("people", n=n, random_state=seed) for seed in (0, 1))
    settings, lams = PENALTIES[unit["form"]]
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", EscapeWarning
        )  # that Z leaves the range of a kernel is part of the picture
        trained = Trainer(
            people.X,
            people.y,
            people.s,
            penalty=make_penalty("frhsic", **settings),
            lam=list(lams),
            seeds=0,
            epochs=unit.get("epochs", 60),
            learning_rate=5e-3,
            widths=(50, 2),
            dtype=torch.float64,
            device=device,
        ).fit()
    z, logits = trained.forward(others.X)
    scores = torch.sigmoid(logits)
    rows = []
    for i, lam in enumerate(lams):
        for person in range(n):
            rows.append(
                {
                    "lam": lam,
                    "person": person,
                    "age": round(float(others.s[person]), 2),
                    "label": int(others.y[person]),
                    "z_1": float(f"{z[i, person, 0].item():.5g}"),
                    "z_2": float(f"{z[i, person, 1].item():.5g}"),
                    "score": round(scores[i, person].item(), 4),
                }
            )
    return rows


def gauges(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the accuracy and the dependence of every model, indexed by form and λ, from the rows of the people.

    ``normalized_hsic`` is at the median bandwidth, ``linear_r2`` and ``nonlinear_r2`` say how well age can be predicted
    from Z, and ``gdp`` is how far the score moves with age.
    """
    import torch

    from frhsic_core.auditing import audit_representation

    frames = []
    for form, models in rows.groupby("form"):
        lams = sorted(models["lam"].unique())
        models = models.sort_values(["lam", "person"])
        stacked = {
            name: torch.tensor(models[name].to_numpy()).reshape(len(lams), -1)
            for name in models.columns[1:-1]
        }
        z = torch.stack([stacked["z_1"], stacked["z_2"]], dim=-1)
        audit = audit_representation(z, stacked["age"][0], predictions=stacked["score"])
        assert audit.gdp is not None  # because predictions were given
        right = (stacked["score"] > 0.5) == (stacked["label"] == 1)
        measured = {
            "accuracy": right.double().mean(-1),
            "normalized_hsic": audit.normalized_hsic[:, audit.bandwidths.index(1.0)],
            "gdp": audit.gdp,
            "linear_r2": audit.linear_r2.clamp_min(0.0),
            "nonlinear_r2": audit.nonlinear_r2.clamp_min(0.0),
        }
        frames.append(
            pd.DataFrame(
                {"form": form, "lam": lams} | {name: x.numpy() for name, x in measured.items()}
            )
        )
    return pd.concat(frames).set_index(["form", "lam"])


def clouds(
    rows: pd.DataFrame, *, people: int = PEOPLE
) -> dict[tuple[str, float], dict[str, np.ndarray]]:
    """Return the points of every model in two views, ``(people, 2)`` each, by form and λ.

    ``"as it is"`` is Z with its mean removed and its largest spread set to one. ``"stretched"`` has variance one in
    every direction, so that a thin direction becomes visible. Rotations and reflections of a stretched cloud mean the
    same, so each cloud is turned to fit the one of the λ before it.
    """
    found = {}
    for form, models in rows.groupby("form"):
        before = None
        for lam, part in models.groupby("lam"):
            z = part[["z_1", "z_2"]].to_numpy()
            z = z - z.mean(0)
            _, spread, axes = np.linalg.svd(z / np.sqrt(len(z)), full_matrices=False)
            # The solver chooses the sign of an axis; the larger entry of each is made positive.
            axes = axes * np.sign(np.take_along_axis(axes, np.abs(axes).argmax(1)[:, None], 1))
            stretched = z @ axes.T / spread
            if before is None:
                before = _by_age(stretched, part["age"].to_numpy())
            left, _, right = np.linalg.svd(stretched.T @ before)
            stretched = stretched @ left @ right
            before = stretched
            found[str(form), float(lam)] = {
                "as it is": (z / spread[0])[:people],
                "stretched": stretched[:people],
            }
    return found


def _by_age(points: np.ndarray, age: np.ndarray) -> np.ndarray:
    """Turn stretched points so that age rises along the second axis as far as it can."""
    direction = points.T @ (age - age.mean())
    direction = direction / np.linalg.norm(direction)
    return points @ np.column_stack([[direction[1], -direction[0]], direction])
