"""Compute the numbers that the hand-written pages of the book show.

The pages write ``{{ ledger.agree }}``, a MyST substitution. The book's configuration fills the substitutions with
:func:`page_values`, so no result is typed by hand, and a name that does not exist fails the build.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable
from typing import Any

from frhsic_core.paper.claims import headline, ledger
from frhsic_core.paper.claims.answers import PROTOCOLS
from frhsic_core.paper.experiments import matched_points
from frhsic_core.paper.experiments.cost import frem_speed_up, speed_up
from frhsic_core.paper.experiments.main import main_family
from frhsic_core.paper.experiments.running_example import gauges
from frhsic_core.paper.experiments.variants import comparisons
from frhsic_core.paper.statements.overview import formally_proved
from frhsic_core.paper.statements.registry import statements
from frhsic_core.paper.stored import chapters_folder, recorded_certificates, stored_rows

# The measure of the written pages; the chapter of results has the others.
MEASURE = "gdp_reference"


def _verdict_counts(verdicts: Iterable[str]) -> dict[str, int]:
    found = list(verdicts)
    return {verdict: found.count(verdict) for verdict in ("better", "worse")}


def main_values() -> dict[str, Any]:
    """Compare FRHSIC with each rival on the paper's datasets by nAUP, with Holm-corrected tests."""
    paired: dict[str, Any] = {}
    for protocol in PROTOCOLS:
        tests = main_family(protocol, measure=MEASURE)
        paired |= {"comparisons": len(tests), "datasets": tests["dataset"].nunique()}
        paired[protocol] = {"gdp": _verdict_counts(tests["verdict_corrected"])}
    return {"paired": paired}


def recommended_values() -> dict[str, Any]:
    """Compare the recommended form with the six rivals on five datasets by nAUP over 25 splits.

    ``published``: the rivals as published; ``searched``: each rival in the form that the same search chose; ``simple``:
    against simple remedies at equal performance. The counts are those of the corrected test with Holm's correction.
    """
    own = comparisons()
    own = own[own["measure"] == MEASURE]
    values: dict[str, Any] = {"comparisons": len(own) // own["against"].nunique()}
    for against in ("published", "searched"):
        values[against] = {
            "gdp": _verdict_counts(own.loc[own["against"] == against, "verdict_corrected"])
        }
    simple = matched_points.compared(
        matched_points.matched(matched_points.stored_sides(), matched_points.MEASURE)
    )
    found = simple.loc[simple["trained"] == matched_points.WHITENED, "verdict"]
    values["simple"] = {"comparisons": len(found), **_verdict_counts(found)}
    return {"recommended": values}


def proof_values() -> dict[str, Any]:
    """Count the statements, those that a proof assistant checked, and the strengths of recorded certificates."""
    strengths = {certificate["evidence"] for certificate in recorded_certificates()}
    counted = {
        "all": len(statements()),
        "statements": len(formally_proved()),
        "strengths": len(strengths),
    }
    return {"proofs": counted}


def example_values() -> dict[str, Any]:
    """Compare penalties with none: the running example, with R² for the age and its distance from 45, and Adult."""
    rows = stored_rows("running_example").query("lam in (0.0, 0.3, 10.0)")
    measured = gauges(rows)
    before, after = measured.loc[("paper", 0.0)], measured.loc[("paper", 10.0)]
    distance = gauges(rows.assign(age=(rows["age"] - 45.0).abs()))["nonlinear_r2"]
    adult = stored_rows("main").query(
        "dataset == 'adult' and protocol == 'text' and method in ('unfair', 'frhsic')"
    )
    r2 = adult.groupby("lam")["nonlinear_r2"].median()
    return {
        "adult": {
            "before": f"{r2[0.0]:.2f}",
            "after": f"{r2[50.0]:.2f}",
            "splits": adult["split"].nunique(),
        },
        "example": {
            "fell": f"{1 - after['normalized_hsic'] / before['normalized_hsic']:.0%}".replace(
                "%", " %"
            ),
            "recommended": f"{measured.loc[('recommended', 0.3), 'nonlinear_r2']:.2f}",
            "distance_before": f"{distance['recommended', 0.0]:.2f}",
            "distance_after": f"{distance['recommended', 0.3]:.2f}",
        },
    }


def printed_line(chapter: str, start: str) -> str:
    """Return what follows ``start`` in the one line of an executed chapter that begins with it."""
    path = chapters_folder() / f"{chapter}.ipynb"
    found = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        for output in cell.get("outputs", ()):
            lines = "".join(output.get("text", ())).splitlines()
            found += [line.removeprefix(start) for line in lines if line.startswith(start)]
    if len(found) != 1:
        raise ValueError(f"{path} prints {len(found)} lines that begin with {start!r}: need one.")
    return found[0].strip()


def seed_values() -> dict[str, Any]:
    """Return the probe's R² for the age of five models without a penalty, and of five with it.

    A headline rests on all seeds: with the first one alone R² rises, and the median hardly changes.
    """
    values: dict[str, Any] = {}
    for name, lam in (("before", 0), ("after", 10)):
        shown = printed_line("watch_frhsic", f"R² of age, λ = {lam}:")
        numbers = [float(number) for number in shown.split(",")]
        values[name] = shown
        values[f"median_{name}"] = f"{statistics.median(numbers):.2f}"
    return {"seeds": values}


def runtime_values() -> dict[str, Any]:
    """Divide the epoch time of FREM by that of FRHSIC at n = 20,000, in the same form.

    ``loop``: FREM loops over all rows, as released; ``few``: over 32, as printed; ``product``: both in library form.
    """
    few, loop = (frem_speed_up(20_000).values[protocol] for protocol in PROTOCOLS)
    pair = ("frem", "library, all anchors"), ("frhsic", "library")
    product, _ = speed_up(stored_rows("cost"), *pair, at={"n": 20_000}, device="cuda")
    return {"runtime": {"loop": f"{loop:.0f}", "few": f"{few:.1f}", "product": f"{product:.1f}"}}


def ledger_values() -> dict[str, Any]:
    """Return the numbers of the headline of the ledger: measured lines, each question once."""
    found = {
        name: value for name, value in headline(ledger()).items() if name not in ("failing", "code")
    }
    # Rounded up, because a page says "at most".
    false = {
        name: f"{math.ceil(10 * found[name]) / 10:.1f}"
        for name in ("false_agree", "false_disagree")
    }
    return {"ledger": found | false}


PARTS = (
    main_values,
    recommended_values,
    runtime_values,
    example_values,
    seed_values,
    ledger_values,
    proof_values,
)


def page_values() -> dict[str, Any]:
    """Return every number that a page names, as nested dictionaries."""
    values: dict[str, Any] = {}
    for part in PARTS:
        values |= part()
    return values
