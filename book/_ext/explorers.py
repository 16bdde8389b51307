"""Interactive pictures: ```` ```{explorer} NAME ```` writes native inputs, empty charts, and a static figure for print.

The script in ``_static/explorers`` fills the charts; without it, and on paper, the static figure is shown. Both come
from the same formulas: the script's are tested against the library's, the figure is drawn by the library.
"""

from __future__ import annotations

import json
import re
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from explorer_figures import FIGURES
from frontier_data import frontier_data
from sphinx.util.docutils import SphinxDirective

RHO = ("rho", "correlation ρ", 0.0, 0.95, 0.01, 0.5, False)
SIGMA_Z = ("sigma_z", "bandwidth σ_Z", -0.5, 0.7, 0.02, 0.0, True)
SIGMA_S = ("sigma_s", "bandwidth σ_S", -0.5, 0.7, 0.02, 0.0, True)
M = ("m", "eigenfunctions m", 1, 12, 1, 2, False)
RATIO = ("ratio", "median distance over σ_Z", -2, 2.5, 0.02, 0.0, True)

LINE = '<span class="key {0}"></span>{1}'


def keys(*pairs: tuple[str, str]) -> str:
    """Return a legend that does not need colour alone: dashes and words."""
    return ", ".join(LINE.format(name, text) for name, text in pairs)


EXPLORERS: dict[str, dict[str, Any]] = {
    "routes": {
        "title": "Two routes on a Gaussian pair",
        "inputs": [RHO, SIGMA_Z, SIGMA_S, M],
        "buttons": [
            ("independent", {"rho": 0}),
            ("strong dependence", {"rho": 0.9}),
            ("wide kernel on S", {"sigma_s": 4}),
            ("narrow kernel on S", {"sigma_s": 0.4}),
        ],
        "charts": [
            (
                "Squared MMD between the law of Z given S = s and the law of Z, for every s.",
                keys(("one", "MMD²(s)"), ("three dashed", "its mean, E MMD²"), ("two", "HSIC")),
            ),
            (
                "The bound of Theorem 4.5 for every m; press or drag to choose m.",
                keys(("two", "HSIC"), ("one dashed", "(E MMD)²"), ("three dashed", "E MMD²"), ("four", "bound at m")),
            ),
        ],
        "values": [
            ("hsic", "HSIC"),
            ("expected", "(E MMD)²"),
            ("squared", "E MMD²"),
            ("bound", "HSIC/λₘ + tail"),
        ],
        "said": "With m = {m} the bound is {ratio} times what it bounds. Its least value is {least}, at m = {best}.",
    },
    "spectrum": {
        "title": "What HSIC sees of the conditional deviation",
        "inputs": [RHO, SIGMA_Z, SIGMA_S, M],
        "buttons": [
            ("wide kernel on S", {"sigma_s": 4}),
            ("narrow kernel on S", {"sigma_s": 0.4}),
            ("strong dependence", {"rho": 0.9, "sigma_z": 0.4}),
        ],
        "charts": [
            (
                "Eigenfunctions of the kernel on S.",
                keys(("one", "number m"), ("faint", "those before it")),
            ),
            (
                "Δ in their basis; press or drag to choose m.",
                keys(("three block", "‖Δ_ℓ‖², its part of E MMD²"), ("two block", "λ_ℓ‖Δ_ℓ‖², its part of HSIC"))
                + "; shaded: the tail",
            ),
        ],
        "values": [
            ("lambda", "λₘ"),
            ("tail", "tail ρₘ²"),
            ("share", "tail, share of E MMD²"),
            ("total", "E MMD²"),
            ("hsic", "HSIC"),
        ],
        "said": "Direction {m} holds {energy} of the conditional MMD integral and enters HSIC as {weighed}.",
    },
    "trap": {
        "title": "The kernel trap",
        "inputs": [RATIO, RHO],
        "buttons": [
            ("median bandwidth", {"ratio": 1}),
            ("Z blown up", {"ratio": 45}),
            ("Z squeezed", {"ratio": 0.05}),
        ],
        "charts": [
            (
                "Penalty and pull as Z is rescaled under a fixed σ_Z; press or drag to move.",
                keys(("two", "penalty HSIC"), ("one dashed", "pull ∂HSIC/∂ρ")) + "; shaded: ratio between ⅓ and 3",
            ),
            (
                "Why: the kernel against the distances between rows.",
                keys(("four", "kernel k"), ("faint", "density of distances (scaled)")),
            ),
        ],
        "values": [
            ("penalty", "penalty"),
            ("pull", "pull towards less ρ"),
            ("share", "of the penalty at ratio 1"),
            ("floor", "floor of a biased batch of 256"),
        ],
        "said": "{state} The correlation is {rho}, whatever the penalty says.",
    },
    "frontier": {
        "title": "Frontiers and ranks",
        "inputs": [],
        "buttons": [],
        "charts": [
            (
                "Utility against remaining dependence, one point for each λ.",
                keys(("two", "chosen method"), ("faint", "the others"), ("four", "without a penalty")),
            ),
        ],
        "values": [("rank", "rank of the chosen method"), ("perf", "utility")],
        "said": "{note}",
    },
}


class explorer_node(nodes.General, nodes.Element):
    """A placeholder that the HTML writer fills."""


def slider(explorer: str, spec: tuple[str, str, float, float, float, float, bool]) -> str:
    """Return a labelled native range input."""
    name, label, low, high, step, value, log = spec
    identifier = f"{explorer}-{name}"
    scale = ' data-scale="log"' if log else ""
    shown = f"{10**value:g}" if log else f"{value:g}"
    return (
        f'<div><label for="{identifier}"><span>{label}</span><output for="{identifier}">{shown}</output></label>'
        f'<input type="range" id="{identifier}" name="{name}" min="{low}" max="{high}" step="{step}" value="{value}"'
        f"{scale}></div>"
    )


def choice(explorer: str, name: str, label: str, options: dict[str, str]) -> str:
    """Return a labelled native select."""
    identifier = f"{explorer}-{name}"
    items = "".join(f'<option value="{escape(key)}">{escape(text)}</option>' for key, text in options.items())
    return (
        f'<div><label for="{identifier}">{label}</label><select id="{identifier}" name="{name}">{items}</select></div>'
    )


def frontier_inputs(data: dict[str, Any]) -> str:
    """Return the five choices of the frontier explorer; the script changes them with the source."""
    first = next(iter(data["sources"].values()))
    methods = {key: data["names"].get(key, key) for key in next(iter(first["datasets"].values()))["methods"]}
    grids = {"common": "the same λ for all", "text": "the λ of the paper's text", "all": "every stored λ"}
    return (
        choice("frontier", "source", "runs", {key: part["title"] for key, part in data["sources"].items()})
        + choice("frontier", "dataset", "dataset", {key: data["titles"].get(key, key) for key in first["datasets"]})
        + choice("frontier", "metric", "dependence measured by", first["metrics"])
        + choice("frontier", "grid", "λ grid", grids)
        + choice("frontier", "method", "method", methods)
    )


def markup(name: str, static: str) -> str:
    """Return the HTML of one explorer; ``static`` is the path to the folder of static figures."""
    spec = EXPLORERS[name]
    figure = FIGURES[name]
    inputs = "".join(slider(name, item) for item in spec["inputs"])
    extra = ""
    if name == "frontier":
        data = frontier_data()
        assert data is not None
        inputs = frontier_inputs(data)
        extra = f'<script type="application/json">{json.dumps(data, separators=(",", ":"))}</script>'
        head = "".join(f'<th scope="col">{text}</th>' for text in ("rank", "method", "nAUP", "points"))
        caption = "<caption>Area under the envelope</caption>"
        extra += f'<table class="plain">{caption}<thead><tr>{head}</tr></thead><tbody></tbody></table>'
    buttons = "".join(
        f"<button type=\"button\" data-set='{json.dumps(values)}'>{escape(text)}</button>"
        for text, values in spec["buttons"]
    )
    charts = "".join(
        f'<div class="chart"><p>{escape(text)} {legend}</p><svg role="img" aria-label="{escape(text)}"></svg></div>'
        for text, legend in spec["charts"]
    )
    values = "".join(f'<div><dt>{text}</dt><dd data-value="{key}">–</dd></div>' for key, text in spec["values"])
    said = re.sub(r"\{(\w+)\}", r'<b data-value="\1"></b>', escape(spec["said"]))
    return f"""<div class="explorer" data-explorer="{name}" role="group" aria-label="{escape(spec["title"])}">
<div class="live-part"><div class="inputs">{inputs}</div>{f'<div class="buttons">{buttons}</div>' if buttons else ""}
<div class="charts">{charts}</div><dl class="values">{values}</dl><p class="said" role="status">{said}</p>{extra}</div>
<div class="static-part"><img src="{static}/{name}.svg" alt="{escape(figure.alt)}"></div></div>
"""


class Explorer(SphinxDirective):
    """One interactive picture."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the placeholder; words where its data are not there yet."""
        self.env.note_reread()
        name = self.arguments[0]
        if name not in EXPLORERS:
            raise self.error(f"explorer {name!r} is not one of {', '.join(EXPLORERS)}.")
        if name == "frontier" and frontier_data() is None:
            words = "The stored sweeps are not here yet; this picture appears with them."
            return [nodes.paragraph(words, words)]
        return [explorer_node("", name=name)]


def _visit(translator: Any, node: explorer_node) -> None:
    # The single page of the printed book has its addresses relative to the root.
    printed = translator.builder.name == "singlehtml"
    up = "" if printed else "../" * translator.builder.current_docname.count("/")
    translator.body.append(markup(node["name"], f"{up}_static/explorers"))
    raise nodes.SkipNode


def _skip(translator: Any, node: explorer_node) -> None:
    raise nodes.SkipNode


def _scripts(app: Any, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    if doctree is not None and next(iter(doctree.findall(explorer_node)), None) is not None:
        app.add_js_file("explorers/formulas.js", loading_method="defer")
        app.add_js_file("explorers/explorers.js", loading_method="defer")
        app.add_css_file("explorers/explorers.css")


def _figures(app: Any, exception: Exception | None) -> None:
    if exception or app.builder.format != "html":
        return
    folder = Path(app.outdir) / "_static" / "explorers"
    folder.mkdir(parents=True, exist_ok=True)
    for name, figure in FIGURES.items():
        if name != "frontier" or frontier_data() is not None:
            figure.draw(folder / f"{name}.svg")


def setup(app: Any) -> dict[str, bool]:
    """Register the directive, the page scripts and the static figures."""
    app.add_node(explorer_node, html=(_visit, None), latex=(_skip, None), text=(_skip, None))
    app.add_directive("explorer", Explorer)
    app.connect("html-page-context", _scripts)
    app.connect("build-finished", _figures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
