"""Interactive pictures: ```` ```{explorer} NAME ```` writes native inputs and empty charts.

The script in ``_static/explorers`` draws the charts, on screen and for print. A test compares its
formulas with those of the library.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import bundle_explorers
from docutils import nodes
from frontier_data import frontier_data
from needle_data import needle_data, static_picture
from sphinx.util.docutils import SphinxDirective

Slider = tuple[
    str, str, float, float, float, float, bool
]  # name, label, least, most, step, start, on a log scale
RHO = ("rho", "correlation ρ", 0.0, 0.95, 0.01, 0.5, False)
M = ("m", "directions m", 1, 12, 1, 2, False)
RATIO = ("ratio", "median distance over σ<sub>Z</sub>", -2, 2.5, 0.02, 0.0, True)


def keys(*pairs: tuple[str, str]) -> str:
    """Return a legend that does not need color alone: dashes and words."""
    return ", ".join(f'<span class="key {name}"></span>{text}' for name, text in pairs)


@dataclass(frozen=True)
class Spec:
    """What an explorer has besides its charts' script: sliders, buttons that set them, charts with legends, values."""

    title: str
    charts: dict[str, str]
    values: dict[str, str] = field(default_factory=dict)
    said: str = "{sentence}"
    inputs: tuple[Slider, ...] = ()
    buttons: dict[str, dict[str, float | str]] = field(default_factory=dict)
    adds: bool = False  # a button changes its inputs only, where others start again first


SHAPES = ("line", "wave", "circle", "fan", "two groups", "cloud", "empty sheet")
EXPLORERS = {
    "needle": Spec(
        title="A model that never saw the age",
        inputs=(("step", "weight of the penalty, λ", 0, 7, 1, 0, False),),
        buttons={"λ = 10": {"step": 3}, "look closer": {"view": "stretched"}},
        adds=True,
        charts={
            "The score along age: 300 of 1,000 invented applicants, and the mean of all.": "",
            "The same people where the network puts them.": "",
            "What three judges say; a mark is the verdict without a penalty.": "",
        },
    ),
    "scatter": Spec(
        title="Draw your own points",
        inputs=(("noise", "noise", 0.0, 1.0, 0.02, 0.16, False),),
        buttons={shape: {"shape": i} for i, shape in enumerate(SHAPES)},
        charts={
            "A point is a person: S to the right, Z upwards. Press to add a point, drag to draw a trail, press a point "
            "to remove it. With the keyboard, arrows move a cross, Enter adds and Delete removes.": "",
            "What each measure says. The bars of the two gaps end at 4.5, the others at 1.": "",
        },
    ),
    "hiring": Spec(
        title="The two orders in the hiring table",
        inputs=(
            ("young", "hired young people, %", 0, 100, 1, 60, False),
            ("old", "hired old people, %", 0, 100, 1, 40, False),
            ("share", "share of young people, %", 5, 95, 1, 50, False),
            ("similarity", "similarity of the ages in the kernel", 0.0, 1.0, 0.01, 0.5, False),
        ),
        buttons={
            "independent": {"old": 60},
            "few young people": {"share": 10},
            "the kernel is blind": {"similarity": 1},
        },
        charts={
            "The contrast of g at each age: the share of hired people there minus the share among all.": "",
            "Average and take the largest, in both orders.": "",
        },
    ),
    "waves": Spec(
        title="Hiring in waves over age",
        inputs=(
            ("waves", "waves between 20 and 70", 1, 8, 1, 1, False),
            ("bandwidth", "bandwidth of the kernel on age, years", 0.3, 1.9, 0.02, 1.18, True),
            M,
        ),
        buttons={
            "fast waves": {"waves": 6},
            "fast waves, narrow kernel": {"waves": 6, "bandwidth": 3},
        },
        charts={
            "Share of hired people at each age.": keys(
                ("three", "all of it"), ("four dashed", "first m directions")
            ),
            "The parts of E MMD² and HSIC in each direction; press or drag to choose m.": keys(
                ("three block", "part of E MMD²"), ("two block", "part of HSIC")
            )
            + "; shaded: the tail",
        },
        values={"hsic": "HSIC", "squared": "E MMD²", "bound": "HSIC/λₘ + tail", "tail": "tail"},
    ),
    "people": Spec(
        title="Four people and the bound for a head",
        inputs=(
            ("first", "score at 20", 0.0, 1.0, 0.01, 0.2, False),
            ("second", "score at 30", 0.0, 1.0, 0.01, 0.4, False),
            ("third", "score at 40", 0.0, 1.0, 0.01, 0.6, False),
            ("fourth", "score at 50", 0.0, 1.0, 0.01, 0.8, False),
            ("m", "directions m", 1, 3, 1, 1, False),
        ),
        buttons={
            "zigzag": {"first": 0.3, "second": 0.7, "third": 0.3, "fourth": 0.7},
            "bend": {"first": 0.7, "second": 0.3, "third": 0.3, "fourth": 0.7},
        },
        charts={
            "The scores.": keys(("three", "people"), ("one dashed", "what m directions resolve")),
            "The three sides of Theorem 4.7 for each m.": keys(
                ("four", "squared mean gap"),
                ("one", "resolved gap"),
                ("two", "bound"),
                ("faint dashed", "variance"),
            ),
        },
        values={
            "absolute": "squared mean gap",
            "square": "resolved gap",
            "bound": "HSIC/λ̂ₘ",
            "variance": "variance",
        },
    ),
    "samples": Spec(
        title="How many people a bound needs",
        inputs=(
            ("n", "people n", 1, 7, 0.02, 3, True),
            ("k", "encoders to choose from", 0, 6, 0.1, 0, True),
            ("delta", "probability of failure δ", -4, -0.3, 0.02, -1.3, True),
            ("value", "HSIC on the sample", 0.0, 0.1, 0.001, 0.01, False),
        ),
        buttons={"a million encoders": {"k": 1e6}, "HSIC is zero on the sample": {"value": 0}},
        charts={
            "Upper bounds on HSIC, and HSIC on the sample; press or drag to choose n.": keys(
                ("two", "paper's constants"),
                ("four", "better constants"),
                ("one", "root of HSIC"),
                ("three", "HSIC on the sample"),
            )
        },
        values={
            "printed": "paper's constants",
            "proved": "better constants",
            "root": "root of HSIC",
        },
    ),
    "promise": Spec(
        title="What can be promised",
        inputs=(
            ("n", "people n", 1.7, 6, 0.02, 4, True),
            ("groups", "groups", 0.3011, 3, 0.01, 0.7, True),
            ("looks", "looks", 0, 3, 0.02, 0, True),
        ),
        buttons={
            "a look each month for two years": {"looks": 24},
            "a look each day": {"looks": 730},
            "200 groups": {"groups": 200},
        },
        charts={
            "Fair coins that do not depend on the group. Press or drag to choose n.": keys(
                ("three", "estimate"),
                ("two", "guarantee at each of these looks"),
                ("one", "guarantee at every look"),
                ("faint", "guarantee for one look"),
                ("four dashed", "limit of all guarantees"),
            )
        },
        values={
            "estimate": "estimate (mean)",
            "once": "guarantee for one look",
            "divided": "guarantee with δ shared by these looks",
            "always": "guarantee at every look",
            "limit": "no valid guarantee is below (median)",
        },
    ),
    "trap": Spec(
        title="The kernel trap",
        inputs=(RATIO, RHO),
        buttons={
            "median bandwidth": {"ratio": 1},
            "Z blown up": {"ratio": 45},
            "Z squeezed": {"ratio": 0.05},
        },
        charts={
            "Penalty and pull as Z is rescaled under a fixed bandwidth; press or drag to move.": keys(
                ("two", "penalty HSIC"), ("one dashed", "pull ∂HSIC/∂ρ")
            )
            + "; shaded: ratio between ⅓ and 3",
            "Why: the kernel against the distances between rows.": keys(
                ("four", "kernel k"), ("faint", "density of distances (scaled)")
            ),
        },
        values={
            "penalty": "penalty",
            "pull": "pull towards less ρ",
            "share": "of the penalty at ratio 1",
            "floor": "floor of a biased batch of 256",
        },
        said="{state} The correlation is {rho}, whatever the penalty says.",
    ),
    "frontier": Spec(
        title="Frontiers and ranks",
        charts={
            "Utility against remaining dependence, one point for each λ.": keys(
                ("chosen", "chosen method (± standard deviation over splits)"),
                ("four", "Unfair (no penalty)"),
            )
            + "; the other methods in their colors"
        },
        values={"rank": "rank of the chosen method", "perf": "utility"},
        said="{note}",
    ),
}


def slider(explorer: str, spec: Slider) -> str:
    """Return a labelled native range input; on a log scale it moves the exponent."""
    name, label, low, high, step, value, log = spec
    place = f"{explorer}-{name}"
    scale = ' data-scale="log"' if log else ""
    shown = f"{float(f'{10**value:.1e}') if log else value:g}"  # two digits of a power, as in the script
    return f"""<div><label for="{place}"><span>{label}</span><output for="{place}">{shown}</output></label>
<input type="range" id="{place}" name="{name}" min="{low}" max="{high}" step="{step}" value="{value}"{scale}></div>"""


def choice(explorer: str, name: str, label: str, options: dict[str, str]) -> str:
    """Return a labelled native select."""
    items = "".join(
        f'<option value="{escape(key)}">{escape(text)}</option>' for key, text in options.items()
    )
    return f"""<div><label for="{explorer}-{name}">{label}</label>
<select id="{explorer}-{name}" name="{name}">{items}</select></div>"""


def embedded(data: dict[str, Any]) -> str:
    """Return data as a script element; no "<" is written, because "</script>" or "<!--" would end or change it."""
    written = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    return f'<script type="application/json">{written}</script>'


def needle_parts() -> tuple[str, str]:
    """Return the choices of the view and of the penalty, and the data of the running example."""
    views = {"true": "in true proportions", "stretched": "stretched to equal width"}
    forms = {"paper": "the paper's penalty", "recommended": "whitened FRHSIC"}
    choices = choice("needle", "view", "positions", views) + choice(
        "needle", "form", "penalty", forms
    )
    return choices, embedded(needle_data())


def scatter_parts() -> tuple[str, str]:
    """Return the select of the shapes to draw, which the buttons set, and no data."""
    return choice(
        "scatter", "shape", "shape", {str(i): shape for i, shape in enumerate(SHAPES)}
    ), ""


def frontier_parts() -> tuple[str, str]:
    """Return the five choices of the frontier explorer, and its data with an empty table of ranks."""
    data = frontier_data()
    first = next(iter(data["sources"].values()))
    methods = next(iter(first["datasets"].values()))["methods"]
    grids = {
        "common": "the same λ for all",
        "text": "the λ of the paper's text",
        "all": "every stored λ",
    }
    inputs = (
        choice(
            "frontier",
            "source",
            "runs",
            {key: part["title"] for key, part in data["sources"].items()},
        )
        + choice(
            "frontier",
            "dataset",
            "dataset",
            {key: data["titles"][key] for key in first["datasets"]},
        )
        + choice("frontier", "metric", "dependence measured by", first["metrics"])
        + choice("frontier", "grid", "λ grid", grids)
        + choice("frontier", "method", "method", {key: data["names"][key] for key in methods})
    )
    head = "".join(f'<th scope="col">{text}</th>' for text in ("rank", "method", "nAUP", "points"))
    table = f"""
<table class="plain"><caption>Area under the envelope</caption><thead><tr>{head}</tr></thead><tbody></tbody></table>"""
    return inputs, embedded(data) + table


PARTS = {
    "needle": needle_parts,
    "scatter": scatter_parts,
    "frontier": frontier_parts,
}


OWN_FILE = """<div class="explorer" data-explorer="own_file" role="group" aria-label="Your own file">
<noscript><p>This picture needs JavaScript.</p></noscript>
<div class="inputs">
<div><label for="own-file">a CSV file of yours (drop it here, or choose it)</label>
<input type="file" id="own-file" accept=".csv,.tsv,.txt,text/csv"></div>
<div><label for="own-score">score</label><select id="own-score" disabled></select></div>
<div><label for="own-age">along</label><select id="own-age" disabled></select></div>
</div>
<div class="charts"><div class="chart">
<p>The mean score along the attribute, and four groups of people with 95 % intervals.</p>
<svg role="img" aria-label="Mean score along the attribute of your file"></svg></div></div>
<p class="said" role="status"><b data-value="sentence">The file stays in your browser: nothing is sent.</b></p>
<p>The full report: <code></code></p></div>
"""


def markup(name: str) -> str:
    """Return the HTML of one explorer."""
    if name == "own_file":
        return OWN_FILE
    spec = EXPLORERS[name]
    choices, extra = PARTS[name]() if name in PARTS else ("", "")
    inputs = "".join(slider(name, one) for one in spec.inputs) + choices
    still = static_picture() if name == "needle" else "<p>This picture needs JavaScript.</p>"
    keep = " data-keep" if spec.adds else ""
    buttons = "".join(
        f"<button type=\"button\"{keep} data-set='{json.dumps(values)}'>{escape(text)}</button>"
        for text, values in spec.buttons.items()
    )
    buttons += '<button type="button" data-reset>start again</button>'
    charts = "".join(
        f'<div class="chart"><p>{escape(text)} {legend}</p><svg role="img" aria-label="{escape(text)}"></svg></div>'
        for text, legend in spec.charts.items()
    )
    values = "".join(
        f'<div><dt>{text}</dt><dd data-value="{key}">–</dd></div>'
        for key, text in spec.values.items()
    )
    values = f'<dl class="values">{values}</dl>' if values else ""
    said = re.sub(r"\{(\w+)\}", r'<b data-value="\1"></b>', escape(spec.said))
    return f"""<div class="explorer" data-explorer="{name}" role="group" aria-label="{escape(spec.title)}">
<noscript>{still}</noscript>
<div class="inputs">{inputs}</div><div class="buttons">{buttons}</div><div class="charts">{charts}</div>
{values}<p class="said" role="status">{said}</p>{extra}</div>
"""


class Explorer(SphinxDirective):
    """One interactive picture."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the picture as HTML; other formats leave it out."""
        self.env.note_reread()  # its data change without the page
        name = self.arguments[0]
        known = [*EXPLORERS, "own_file"]
        if name not in known:
            raise self.error(
                f"The explorer {name!r} does not exist. Choose one of {', '.join(known)}."
            )
        return [nodes.raw("", markup(name), format="html", classes=["explorer-page"])]


def _scripts(
    app: Any, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Load the scripts on pages with an explorer only."""
    if doctree is not None and any(
        "explorer-page" in node["classes"] for node in doctree.findall(nodes.raw)
    ):
        app.add_js_file("explorers/d3.v5.min.js", loading_method="defer")
        app.add_js_file("explorers/all.js", loading_method="defer")
        app.add_css_file("explorers/explorers.css")


def _bundle(app: Any, exception: Exception | None) -> None:
    """Write the script that the pages load."""
    if not exception and app.builder.format == "html":
        bundle_explorers.write(Path(app.outdir) / "_static" / "explorers")


def setup(app: Any) -> dict[str, bool]:
    """Register the directive, the page scripts and the bundle."""
    app.add_directive("explorer", Explorer)
    app.connect("html-page-context", _scripts)
    app.connect("build-finished", _bundle, priority=800)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
