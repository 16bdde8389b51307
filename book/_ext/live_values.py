"""Numbers and chapters in prose, looked up when the book is built: no result is typed by hand.

* ``{live}`certificates.total``` is a value of :func:`named_values`; ``{live}`claims/verdicts.json#0.slack|.3g``` walks
  into a JSON file under ``book/`` and formats what it finds. What does not exist yet reads "not yet run".
* ```` ```{when-live} NAME ```` keeps its content only when the value exists.
* ```` ````{headlines} ```` makes one list of the lists in it, those of ``when-live`` among them.
* ``{chapter}`parity_gap``` links to a chapter by the name of its notebook, or names it as "to come".
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from chapter_facts import link
from docutils import nodes
from sphinx.util.docutils import SphinxDirective, SphinxRole

ROOT = Path(__file__).resolve().parents[2]
BOOK = ROOT / "book"
MISSING = "not yet run"
PROTOCOLS = ("text", "reference")
# What a first page can carry of the ten measures: GDP as the authors compute it, and what a nonlinear probe reads.
MEASURES = {"gdp": "gdp_reference", "probe": "nonlinear_r2"}


def verdict_rows(book: Path = BOOK) -> list[dict[str, Any]]:
    """Return the recorded certificates, or none."""
    path = book / "claims" / "verdicts.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []


def certificate_values(rows: list[dict[str, Any]]) -> dict[str, str]:
    """Count checks, and what they say of the paper: its theorems, and the sentences of each class that fail."""
    if not rows:
        return {}
    from frhsic_core.paper.statements.sentences import counts

    values = {"certificates.total": str(len(rows)), "statements.total": str(len({row["statement"] for row in rows}))}
    found = counts(rows)
    names = {"theorems": "total", "theorems that hold": "hold", "numbered statement": "fail"}
    values |= {f"theorems.{name}": str(found[key]) for key, name in names.items()}
    return values | {"sentences.fail": str(found["sentence"]), "sentences.reading": str(found["reading"])}


def reference_values() -> dict[str, str]:
    """The Gaussian pair of every reference digit: ρ = 1/2, unit bandwidths."""
    from frhsic_core.kernels import Gaussian
    from frhsic_core.laws import GaussianPair
    from frhsic_core.paper.statements.spectral import best_m

    law, kernel = GaussianPair(0.5), Gaussian(1.0)
    m, bound = best_m(law, kernel_z=kernel, kernel_s=kernel)
    rows = 256
    hsic, floor = law.hsic(kernel, kernel), law.null_mean(kernel, kernel, n=rows) / rows
    return {
        "gaussian.hsic": f"{hsic:.4f}",
        "gaussian.squared_expected_mmd": f"{law.expected_mmd(kernel) ** 2:.4f}",
        "gaussian.expected_squared_mmd": f"{law.expected_squared_mmd(kernel):.4f}",
        "gaussian.bound": f"{bound:.4f}",
        "gaussian.m": str(m),
        "floor.value": f"{floor:.4f}",
        "floor.share": f"{100 * floor / hsic:.0f} %",
        "gaussian.smoothed_eipm": f"{law.eipm_limit(kernel, bandwidth=0.5):.3f}",
        "gaussian.eipm": f"{law.expected_mmd(kernel):.3f}",
    }


def sweep_values(book: Path = BOOK) -> dict[str, str]:
    """The authors' stored sweep: how many λ each method was given, and who has the lowest matched dependence."""
    path = book / "claims" / "reference" / "sweep.csv"
    if not path.is_file():
        return {}
    grid: dict[tuple[str, str], set[float]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            grid.setdefault((row["dataset"], row["method"]), set()).add(float(row["lambda"]))
    ours = max(len(lams) for (_, method), lams in grid.items() if method == "frhsic")
    rivals = max(len(lams) for (_, method), lams in grid.items() if method not in ("frhsic", "unfair"))
    return {"sweep.frhsic_grid": str(ours), "sweep.rival_grid": str(rivals)}


def rank_values() -> dict[str, str]:
    """FRHSIC's mean rank by nAUP over the datasets of the book's own runs, in two protocols, by two measures."""
    from frhsic_core.paper.experiments.tables.families import main_rows
    from frhsic_core.paper.experiments.tables.main_table import pareto_table
    from frhsic_core.paper.runs.reference import stored_rows

    if stored_rows("main").empty:
        return {}
    values = {}
    for protocol in PROTOCOLS:
        rows = main_rows(protocol)
        values |= {"runs.datasets": str(rows["dataset"].nunique()), "runs.grid": str(rows["lam"].nunique() - 1)}
        for name, measure in MEASURES.items():
            areas = (
                pareto_table(rows, dependence=measure, resamples=1).set_index(["dataset", "method"])["naup"].dropna()
            )
            places = areas.groupby(level="dataset").rank(ascending=False, method="min").xs("frhsic", level="method")
            values[f"runs.{protocol}.{name}"] = f"{places.mean():.1f}"
            values["runs.methods"] = str(areas.index.get_level_values("method").nunique())
    return values


def paired_values() -> dict[str, str]:
    """Who beats whom over the splits, by nAUP: FRHSIC against six rivals on five datasets, two protocols and measures.

    ``paired.text.gdp.ahead`` counts by the corrected resampled t-test, ``paired.text.gdp.ahead_plain`` by the plain
    signed-rank test, both after Holm.
    """
    from frhsic_core.paper.experiments.tables.families import main_family
    from frhsic_core.paper.runs.reference import stored_rows

    if stored_rows("main").empty:
        return {}
    values = {}
    for protocol in PROTOCOLS:
        for name, measure in MEASURES.items():
            table = main_family(protocol, measure=measure, summary="naup")
            for verdict in ("ahead", "behind", "undecided"):
                values[f"paired.{protocol}.{name}.{verdict}"] = str((table["verdict_corrected"] == verdict).sum())
                values[f"paired.{protocol}.{name}.{verdict}_plain"] = str((table["verdict"] == verdict).sum())
            values["paired.comparisons"], values["paired.splits"] = str(len(table)), str(table["splits"].min())
    return values


def variant_values() -> dict[str, str]:
    """Where the picked variant and the estimators' default stand against the six rivals, by nAUP over 25 splits.

    ``variant.published.gdp.ahead`` counts by the corrected test against the rivals as published,
    ``variant.retuned.gdp.ahead`` with two of them retuned; ``default.narrow.probe.ahead`` against rivals whose Z is as
    narrow as the default's. With ``_plain`` at the end, the signed-rank test; all after Holm.
    """
    from frhsic_core.paper.experiments.tables.families import family
    from frhsic_core.paper.experiments.tables.variants import rivals_of
    from frhsic_core.paper.experiments.variants import DEFAULT
    from frhsic_core.paper.experiments.variants_best import BEST, best_rows

    rows = best_rows()
    if rows.empty:
        return {}
    values = {}
    for short, name, against, measure in (
        ("variant", BEST[0], "published", "gdp"),
        ("variant", BEST[0], "published", "probe"),
        ("variant", BEST[0], "retuned", "gdp"),
        ("default", DEFAULT.name, "published", "probe"),
        ("default", DEFAULT.name, "narrow", "probe"),
    ):
        compared = (name, *rivals_of(against))
        table = family(rows, measure=MEASURES[measure], summary="naup", method=name, methods=compared)
        for verdict in ("ahead", "behind"):
            place = f"{short}.{against}.{measure}.{verdict}"
            values[place] = str((table["verdict_corrected"] == verdict).sum())
            values[f"{place}_plain"] = str((table["verdict"] == verdict).sum())
        values["variant.comparisons"] = str(len(table))
    return values


def runtime_values() -> dict[str, str]:
    """How many times an epoch of FRHSIC one of FREM takes at n = 20,000, like with like.

    As the released code has them (FREM a loop over all rows, FRHSIC by autograd), and both in this library's form.
    """
    from frhsic_core.paper.runs.reference import stored_rows

    rows = stored_rows("runtime")
    if rows.empty:
        return {}
    rows = rows[(rows["part"] == "epoch") & (rows["mode"] == "eager") & (rows["n"] == 20_000)]
    seconds = rows.groupby(["device", "method", "form"])["seconds"].median()
    gpu, cpu = seconds["cuda"], seconds["cpu"]
    return {
        "runtime.loop": f"{gpu['frem', 'loop, all anchors'] / gpu['frhsic', 'plain, centred']:.0f}",
        "runtime.product": f"{gpu['frem', 'library, all anchors'] / gpu['frhsic', 'library']:.1f}",
        "runtime.product_cpu": f"{cpu['frem', 'library, all anchors'] / cpu['frhsic', 'library']:.1f}",
    }


@cache
def named_values() -> dict[str, str]:
    """Return every named value that can be computed now."""
    sources: list[Callable[[], dict[str, str]]] = [
        lambda: certificate_values(verdict_rows()),
        reference_values,
        sweep_values,
        rank_values,
        paired_values,
        variant_values,
        runtime_values,
    ]
    return {name: value for source in sources for name, value in source().items()}


def lookup(text: str, book: Path = BOOK) -> str | None:
    """Return the value that ``NAME`` or ``FILE.json#a.b.0|FORMAT`` stands for; None where nothing is stored yet."""
    if "#" not in text:
        return named_values().get(text)
    place, _, layout = text.partition("|")
    file, _, keys = place.partition("#")
    path = book / file
    if not path.is_file():
        return None
    value = json.loads(path.read_text(encoding="utf-8"))
    for key in keys.split("."):
        try:
            value = value[int(key)] if isinstance(value, list) else value[key]
        except (KeyError, IndexError, ValueError, TypeError):
            return None
    return format(value, layout) if layout else str(value)


class LiveRole(SphinxRole):
    """One value, in the text."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return the value, or words that say it is not there."""
        self.env.note_reread()  # what is looked up changes without the page
        value = lookup(self.text)
        return [nodes.inline(value or MISSING, value or MISSING, classes=["live" if value else "live-missing"])], []


class WhenLive(SphinxDirective):
    """Content that needs a value."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the content, or nothing."""
        self.env.note_reread()
        return self.parse_content_to_nodes() if lookup(self.arguments[0]) is not None else []


class Headlines(SphinxDirective):
    """One list, whose points may each wait for their value."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the content with neighbouring lists joined."""
        joined: list[nodes.Node] = []
        for node in self.parse_content_to_nodes():
            if joined and isinstance(node, nodes.bullet_list) and isinstance(joined[-1], nodes.bullet_list):
                joined[-1] += node.children
            else:
                joined.append(node)
        return joined


class ChapterRole(SphinxRole):
    """A chapter by the name of its notebook."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return a link to the chapter when the book has it, else its name."""
        self.env.note_reread()
        document = f"notebooks/{self.text}"
        if document in self.env.found_docs:
            return [link(document, self.env.docname)], []
        words = f"{self.text.replace('_', ' ')} (to come)"
        return [nodes.emphasis(words, words)], []


def setup(app: Any) -> dict[str, bool]:
    """Register the roles and the directive."""
    app.add_role("live", LiveRole())
    app.add_role("chapter", ChapterRole())
    app.add_directive("when-live", WhenLive)
    app.add_directive("headlines", Headlines)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
