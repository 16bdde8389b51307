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
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from chapter_facts import link
from docutils import nodes
from frontier_data import own_runs
from sphinx.util.docutils import SphinxDirective, SphinxRole

ROOT = Path(__file__).resolve().parents[2]
BOOK = ROOT / "book"
MISSING = "not yet run"
VERDICTS = {"holds": "hold", "holds as corrected": "corrected", "fails as stated": "fail", "inconclusive": "open"}


def verdict_rows(book: Path = BOOK) -> list[dict[str, Any]]:
    """Return the recorded certificates, or none."""
    path = book / "claims" / "verdicts.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []


def certificate_values(rows: list[dict[str, Any]]) -> dict[str, str]:
    """Count certificates by verdict and by evidence, and statements by what their certificates say."""
    if not rows:
        return {}
    counts = Counter(row["verdict"] for row in rows)
    values = {f"certificates.{key}": str(counts[name]) for name, key in VERDICTS.items()}
    values["certificates.total"] = str(len(rows))
    by_statement: dict[str, set[str]] = {}
    for row in rows:
        by_statement.setdefault(row["statement"], set()).add(row["verdict"])
    values["statements.total"] = str(len(by_statement))
    failing = {name for name, found in by_statement.items() if "fails as stated" in found}
    values["statements.fail"] = str(len(failing))
    values["statements.hold"] = str(sum(found <= {"holds", "holds as corrected"} for found in by_statement.values()))
    values.update({f"evidence.{name}": str(n) for name, n in Counter(row["evidence"] for row in rows).items()})
    return values


def reference_values() -> dict[str, str]:
    """The Gaussian pair of every reference digit: ρ = 1/2, unit bandwidths."""
    from frhsic_core.kernels import Gaussian
    from frhsic_core.laws import GaussianPair
    from frhsic_core.theory.spectral import best_m

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


def run_values(data: dict[str, Any] | None) -> dict[str, str]:
    """FRHSIC's mean rank by nAUP over the datasets of the book's own runs, by two measures of dependence."""
    if data is None:
        return {}
    import numpy as np

    from frhsic_core.experiments.tables.pareto import naup

    ranks: dict[str, list[int]] = {"gdp_reference": [], "nonlinear_r2": []}
    methods = sorted(set.intersection(*(set(part["methods"]) for part in data["datasets"].values())))
    for part in data["datasets"].values():
        grid = [{point["lam"]: point for point in part["methods"][name]} for name in methods]
        shared = sorted(set.intersection(*(set(points) for points in grid)))
        performance = np.array([[points[lam]["perf"] for lam in shared] for points in grid])
        for metric, found in ranks.items():
            dependence = np.array([[points[lam][metric] for lam in shared] for points in grid], dtype=float)
            unfair = part["unfair"]
            areas = naup(performance, dependence, unfair["perf"], unfair[metric], higher=part["higher"])
            found.append(1 + int((areas > areas[methods.index("frhsic")]).sum()))
    return {
        "runs.datasets": str(len(data["datasets"])),
        "runs.methods": str(len(methods)),
        "runs.rank_gdp": f"{np.mean(ranks['gdp_reference']):.1f}",
        "runs.rank_probe": f"{np.mean(ranks['nonlinear_r2']):.1f}",
    }


def paired_values() -> dict[str, str]:
    """Who beats whom over the splits: FRHSIC against six rivals on five datasets, by two measures of dependence."""
    from frhsic_core.experiments.reference import stored_rows
    from frhsic_core.experiments.tables.families import main_family

    if stored_rows("main").empty:
        return {}
    values = {}
    for name, measure in (("gdp", "gdp_reference"), ("probe", "nonlinear_r2")):
        table = main_family("reference", measure=measure, summary="naup")
        values |= {
            f"paired.{name}_{verdict}": str((table["verdict"] == verdict).sum()) for verdict in ("ahead", "behind")
        }
        values["paired.comparisons"], values["paired.splits"] = str(len(table)), str(table["splits"].min())
    return values


def runtime_values() -> dict[str, str]:
    """How many times an epoch of FRHSIC one of FREM takes on a GPU at n = 20,000: as a loop, and as matrix products."""
    from frhsic_core.experiments.reference import stored_rows

    rows = stored_rows("runtime")
    if rows.empty:
        return {}
    rows = rows[
        (rows["part"] == "epoch") & (rows["device"] == "cuda") & (rows["mode"] == "eager") & (rows["n"] == 20_000)
    ]
    seconds = rows.groupby(["method", "form"])["seconds"].median()
    own = seconds["frhsic", "plain, centred"]
    return {
        "runtime.loop": f"{seconds['frem', 'loop, all anchors'] / own:.0f}",
        "runtime.product": f"{seconds['frem', 'library, all anchors'] / own:.1f}",
    }


@cache
def named_values() -> dict[str, str]:
    """Return every named value that can be computed now."""
    sources: list[Callable[[], dict[str, str]]] = [
        lambda: certificate_values(verdict_rows()),
        reference_values,
        sweep_values,
        lambda: run_values(own_runs()),
        paired_values,
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
