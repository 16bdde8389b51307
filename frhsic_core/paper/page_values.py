"""Compute the numbers that the hand-written pages of the book show.

The pages write ``{{ ledger.agree }}``, a MyST substitution. The book's configuration fills the substitutions with
:func:`page_values`, so no result is typed by hand, and a name that does not exist fails the build.
"""

from __future__ import annotations

import math
from typing import Any

from frhsic_core.paper.claims import headline, ledger
from frhsic_core.paper.claims.stored import authors_file, recorded
from frhsic_core.paper.experiments import every_method, simple_remedies
from frhsic_core.paper.experiments.main import main_family, main_rows, pareto_table
from frhsic_core.paper.experiments.running_example import gauges
from frhsic_core.paper.experiments.variants import CANDIDATES, CHOICE_DATASETS, RECOMMENDED, comparisons, verdicts
from frhsic_core.paper.runs.stored import stored_rows
from frhsic_core.paper.statements.overview import counts, formally_proved
from frhsic_core.paper.statements.registry import statements

PROTOCOLS = ("text", "reference")
# The first page has room for two of the ten measures: the authors' GDP and the R² of a nonlinear probe.
MEASURES = {"gdp": "gdp_reference", "probe": "nonlinear_r2"}


def certificate_values(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Count the checks, the theorems that hold, and the sentences of the paper that fail."""
    found = counts(rows)
    return {
        "certificates": {"total": len(rows)},
        "theorems": {"total": found["theorems"], "hold": found["theorems that hold"]},
        "sentences": {"fail": found["sentence"], "reading": found["reading"]},
    }


def rank_values() -> dict[str, Any]:
    """Return FRHSIC's mean rank by nAUP over the datasets, for two protocols and two measures."""
    values: dict[str, Any] = {}
    for protocol in PROTOCOLS:
        rows = main_rows(protocol)
        values["datasets"] = rows["dataset"].nunique()
        values["grid"] = rows["lam"].nunique() - 1  # without the penalty, λ = 0, there is nothing to choose
        values[protocol] = {}
        for name, measure in MEASURES.items():
            table = pareto_table(rows, dependence=measure, resamples=1)
            areas = table.set_index(["dataset", "method"])["naup"].dropna()
            ranks = areas.groupby(level="dataset").rank(ascending=False, method="min").xs("frhsic", level="method")
            values[protocol][name] = f"{ranks.mean():.1f}"
            values["methods"] = areas.index.get_level_values("method").nunique()
    return {"runs": values}


def _verdict_counts(table: Any) -> dict[str, int]:
    """Count verdicts of the corrected t-test, and those of the signed-rank test under names that end in ``_plain``."""
    values = {}
    for verdict in ("better", "worse", "not_significant"):
        values[verdict] = int((table["verdict_corrected"] == verdict).sum())
        values[f"{verdict}_plain"] = int((table["verdict"] == verdict).sum())
    return values


def paired_values() -> dict[str, Any]:
    """Compare FRHSIC with six rivals on five datasets by nAUP, for two protocols and two measures.

    All tests are Holm-corrected.
    """
    values: dict[str, Any] = {}
    for protocol in PROTOCOLS:
        values[protocol] = {}
        for name, measure in MEASURES.items():
            table = main_family(protocol, measure=measure)
            values[protocol][name] = _verdict_counts(table)
            values["comparisons"] = len(table)
            values["rivals"] = table["rival"].nunique()
            values["splits"] = int(table["splits"].min())
    return {"paired": values}


def recommended_values() -> dict[str, Any]:
    """Compare the recommended form with the six rivals on five datasets by nAUP over 25 splits.

    ``published``: the rivals as published; ``narrow``: their Z has as few dimensions as the recommended form's;
    ``searched``: each rival in the form that the same search chose. ``simple``: against simple remedies at equal
    performance. The counts are those of the corrected test with Holm's correction; ``unseen``: on the datasets that
    took no part in the choice.
    """
    form = next(candidate for candidate in CANDIDATES if candidate.name == RECOMMENDED)
    own = comparisons()
    counts = verdicts(own)
    values: dict[str, Any] = {
        "candidates": len(CANDIDATES),
        "choice_datasets": len(CHOICE_DATASETS),
        "dimensions": form.dimension,
        "comparisons": len(own) // len(counts),
        "worse": int((own["verdict_corrected"] == "worse").sum()),
    }
    for short, against in (("published", "published"), ("narrow", "four dimensions"), ("searched", "searched")):
        values[short] = {
            name: {
                "better": int(counts.loc[(against, measure), "better"]),
                "worse": int(counts.loc[(against, measure), "worse"]),
                "unseen": int(counts.loc[(against, measure), "better, unseen"]),
            }
            for name, measure in MEASURES.items()
        }
    matched = every_method.matched(simple_remedies.stored_sides(), simple_remedies.MEASURE)
    simple = simple_remedies.compared(matched)
    found = list(simple.loc[simple["trained"] == every_method.WHITENED, "verdict"])
    values["simple"] = {"comparisons": len(found), "better": found.count("better"), "worse": found.count("worse")}
    return {"recommended": values}


def proof_values() -> dict[str, Any]:
    """Count the statements, those that a proof assistant checked, and the strengths of recorded certificates."""
    strengths = {certificate["evidence"] for certificate in recorded()}
    counted = {"all": len(statements()), "statements": len(formally_proved()), "strengths": len(strengths)}
    return {"proofs": counted}


def example_values() -> dict[str, Any]:
    """Compare the paper's penalty at λ = 10 on the running example with no penalty: HSIC and the probe's R²."""
    measured = gauges(stored_rows("running_example")).loc["paper"]
    before, after = measured.loc[0.0], measured.loc[10.0]
    return {
        "example": {
            "fell": f"{1 - after['normalized_hsic'] / before['normalized_hsic']:.0%}".replace("%", " %"),
            "before": f"{before['nonlinear_r2']:.2f}",
            "after": f"{after['nonlinear_r2']:.2f}",
        }
    }


def runtime_values() -> dict[str, Any]:
    """Divide the epoch time of FREM by that of FRHSIC at n = 20,000, in the same form.

    ``loop``: as in the released code (FREM loops over all rows); ``product``: both in this library's form.
    """
    rows = stored_rows("cost")
    rows = rows[(rows["part"] == "epoch") & (rows["mode"] == "eager") & (rows["n"] == 20_000)]
    seconds = rows.groupby(["device", "method", "form"])["seconds"].median()
    gpu = seconds["cuda"]
    cpu = seconds["cpu"]
    ratios = {
        "loop": f"{gpu['frem', 'loop, all anchors'] / gpu['frhsic', 'plain, centred']:.0f}",
        "product": f"{gpu['frem', 'library, all anchors'] / gpu['frhsic', 'library']:.1f}",
        "product_cpu": f"{cpu['frem', 'library, all anchors'] / cpu['frhsic', 'library']:.1f}",
    }
    theirs = authors_file("runtime")
    means = theirs[theirs["n"] == 20_000].groupby("method")["epoch_seconds"].mean()
    return {"runtime": ratios | {"stored": f"{means['frem'] / means['frhsic']:.0f}"}}


def ledger_values() -> dict[str, Any]:
    """Return the headline of the ledger: measured lines, each question once, and the claims that fail by name.

    ``verdicts`` has the verdict of every line by its id, for sentences about one of them.
    """
    table = ledger()
    found = headline(table)
    lines = [f"{words}." for words in found.pop("failing")]
    code = found.pop("code")
    # Rounded up, because a page says "at most".
    false = {name: f"{math.ceil(10 * found.pop(name)) / 10:.1f}" for name in ("false_agree", "false_disagree")}
    return {
        "ledger": {
            "lines": len(table),
            **found,
            **false,
            **{f"code_{verdict}": count for verdict, count in code.items()},
            "failing": len(lines),
            **{f"fails_{number}": line for number, line in enumerate(lines, start=1)},
        },
        "verdicts": dict(zip(table["id"], table["verdict"], strict=True)),
    }


def page_values() -> dict[str, Any]:
    """Return every number that a page may name, as nested dictionaries."""
    return {
        **certificate_values(recorded()),
        **rank_values(),
        **paired_values(),
        **recommended_values(),
        **runtime_values(),
        **example_values(),
        **ledger_values(),
        **proof_values(),
    }
