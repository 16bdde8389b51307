"""Check the trainer against the authors' stored runs: Adult, their settings, their five splits.

Accuracy and GDP (in the authors' convention) are compared with the means and standard deviations of the authors' stored
sweep. A mean agrees if it lies within two of the authors' standard deviations.
"""

from __future__ import annotations

from typing import Any

from frhsic_core.paper.runs.plan import Job, Recipe, Study, Task, units_of

LAMS = {"unfair": (0.0,), "frhsic": (10.0, 50.0), "frem": (100.0,), "reg_gdp": (1.0,)}
SPLITS = (42, 43, 44, 45, 46)
_ROUNDING = 5e-5  # the authors' numbers are stored with four digits


def plan(preset: str) -> Study:
    """Return one unit for each method: all its λ and splits are one stack."""
    if preset == "smoke":
        units = units_of(dataset="synthetic", variant="text", method=tuple(LAMS), n=300, epochs=2)
        return Study("reference_check_smoke", "reference_check", units)
    return Study(
        "reference_check", "reference_check", units_of(dataset="adult", variant="reference", method=tuple(LAMS))
    )


def measure_unit(unit: dict[str, Any], device: str) -> list[dict[str, Any]]:
    """Train one method and return one row for each λ: ours, the authors' and whether they agree."""
    from frhsic_core.paper.runs.jobs import run_job
    from frhsic_core.paper.runs.stored import reference_sweep

    method = unit["method"]
    options = (("n", unit["n"]),) if "n" in unit else ()
    task = Task(unit["dataset"], unit["variant"], "reference", options)
    job = Job(Recipe(task, method, epochs=unit.get("epochs", 200)), LAMS[method], SPLITS)
    part = run_job(job, device=device)
    authors = reference_sweep(dense=False)
    authors = authors[(authors["dataset"] == "adult") & (authors["method"] == method)].set_index("lam")
    rows = []
    for lam, ours in part.rows.groupby("lam"):
        row: dict[str, Any] = {
            "run": f"{method} λ={lam:g}",
            "seconds": part.provenance["seconds_training"],
            "models": len(part.rows),
        }
        for name, column in (("acc", "performance"), ("gdp", "gdp_reference")):
            value = float(ours[column].mean())
            mean = float(authors.loc[lam, column])
            spread = float(authors.loc[lam, f"{column}_sd"])
            row |= {
                name: round(value, 5),
                f"{name}_sd": round(float(ours[column].std(ddof=0)), 5),
                f"{name}_stored": mean,
                f"{name}_stored_sd": spread,
                f"{name}_within_2sd": abs(value - mean) <= 2 * spread + _ROUNDING,
            }
        rows.append(row)
    return rows
