"""List the methods, datasets, measures and protocols, each in one table.

Figures, tables, experiments, explorers and data cards read their names, labels, colors and orders from here, so that
a new method or dataset is one row. The module imports nothing heavy: classes and datasets are named by strings of the
form ``"module:object"`` and imported by :func:`resolve` on first use.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

#: The palette of Okabe and Ito, which color-blind readers can tell apart, and a gray.
OKABE_ITO = {
    "black": "#000000",
    "orange": "#E69F00",
    "sky blue": "#56B4E9",
    "bluish green": "#009E73",
    "yellow": "#F0E442",
    "blue": "#0072B2",
    "vermillion": "#D55E00",
    "reddish purple": "#CC79A7",
    "gray": "#777777",
}
_C = OKABE_ITO

# --- protocols ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Protocol:
    """A set of training settings for all methods.

    Parameters
    ----------
    key : str
        What a user types, and what stored rows hold.
    meaning : str
        Whose settings they are, in one sentence.
    activate_output : bool
        Whether the encoder applies its activation after the last layer as well.
    """

    key: str
    meaning: str
    activate_output: bool = False


PROTOCOLS: dict[str, Protocol] = {
    row.key: row
    for row in (
        Protocol("recommended", "The settings that this library recommends."),
        Protocol("text", "The settings that the paper states.", activate_output=True),
        Protocol("reference", "The settings of the authors' released code."),
    )
}

# --- methods -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Method:
    """A training method.

    Parameters
    ----------
    key : str
        What a user types, and what stored rows hold.
    label : str
        The name in figures and tables.
    color, marker : str
        How figures draw it. No two methods share a marker, and no two methods of the paper share a color.
    penalty : str
        The penalty class as ``"module:Class"``.
    cost : float
        Time of a training step relative to ``"unfair"``, used to order and balance jobs. A rough value is enough.
    settings : mapping
        Arguments of the penalty class for each protocol, where they differ from the defaults of the class.
    tables : tuple of str
        Tables of the paper that list the method: ``"real_data"``, ``"pareto_summary"``, ``"transfer"``. Empty for a
        method that is not in the paper.
    """

    key: str
    label: str
    color: str
    marker: str
    penalty: str
    cost: float
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    tables: tuple[str, ...] = ()


# Settings of the penalties in the protocols that depart from the defaults of the class.
_SETTINGS: dict[str, dict[str, dict[str, Any]]] = {
    "frhsic": {
        # Whitened FRHSIC, which are the defaults of the class as well.
        "recommended": {"estimator": "biased", "scale": "whiten", "bandwidth": "moving_average", "on": "both"},
        "text": {"estimator": "biased", "scale": None, "bandwidth": "every_20_epochs", "on": "representation"},
        "reference": {
            "estimator": "biased",
            "scale": None,
            "bandwidth": "reference",
            "bandwidth_s": "first_1000",
            "on": "representation",
        },
    },
    "frem": {"text": {"power": 2, "scale": "minmax"}},
    "reg_gdp": {"text": {"grid_range": "training"}},
    "adv": {"text": {"adversary": "hgr"}, "reference": {"adversary": "mse"}},
    "mmd_binned": {
        "text": {"bins": 10, "edges": "width", "scale": "minmax", "bandwidth": 1.0},
        "reference": {"bins": 10, "edges": "quantile", "discrepancy": "means"},
    },
    "dcor": {"reference": {"form": "covariance"}},
}
_P = "frhsic_core.learning.penalties"
_BOTH = ("real_data", "pareto_summary")
_ALL = (*_BOTH, "transfer")

METHODS: dict[str, Method] = {
    row.key: row
    for row in (
        # Key, label, color, marker, penalty, cost, settings and tables of the paper.
        Method("unfair", "Unfair", _C["black"], "*", f"{_P}:Unfair", 1.0, {}, _BOTH),
        Method("frhsic", "FRHSIC", _C["vermillion"], "o", f"{_P}:FRHSIC", 4.0, _SETTINGS["frhsic"], _ALL),
        Method("frem", "FREM", _C["blue"], "s", f"{_P}:FREM", 4.0, _SETTINGS["frem"], _ALL),
        Method("reg_gdp", "Reg-GDP", _C["bluish green"], "^", f"{_P}:RegGDP", 1.5, _SETTINGS["reg_gdp"], _ALL),
        Method("adv", "ADV", _C["reddish purple"], "v", f"{_P}:ADV", 2.0, _SETTINGS["adv"], _ALL),
        Method("mmd_binned", "MMD (binned)", _C["orange"], "D", f"{_P}:MMDBinned", 1.5, _SETTINGS["mmd_binned"], _BOTH),
        Method("laftr", "LAFTR", _C["sky blue"], "P", f"{_P}:LAFTR", 2.0, {}, _BOTH),
        Method("dcor", "dCor", _C["yellow"], "X", f"{_P}:DCor", 6.0, _SETTINGS["dcor"], ("pareto_summary",)),
    )
}

#: The method without a penalty. Every comparison is with it, so most lists below leave it out.
BASELINE = "unfair"


def _methods_of(table: str) -> tuple[str, ...]:
    return tuple(key for key, row in METHODS.items() if table in row.tables and key != BASELINE)


#: Every method of the paper, the baseline first. They are the methods of the main sweep.
PAPER_METHODS = tuple(key for key, row in METHODS.items() if row.tables)
#: The methods of the paper's table of real data, in its order.
MAIN_METHODS = _methods_of("real_data")
#: The methods of the paper's Pareto summary, which has one more.
PARETO_METHODS = _methods_of("pareto_summary")
#: The methods of the paper's table of fresh heads.
TRANSFER_METHODS = _methods_of("transfer")

# --- datasets ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DatasetRow:
    """A dataset.

    Parameters
    ----------
    key : str
        What a user types, and what stored rows hold.
    title : str
        The name in figures and tables.
    rows : int
        Number of samples (of the ``"reference"`` variant), used to order and balance jobs.
    recipe : str
        The object that loads it and holds its card, as ``"module:object"``.
    color, marker : str
        How figures draw it. No two datasets share a marker.
    real : bool
        True for data read from files, False for data drawn from a distribution.
    paper : bool
        True for the five real datasets of the paper, which its experiments and tables use.
    full_title : str
        The name on the dataset's card, where it is longer than the title.
    """

    key: str
    title: str
    rows: int
    recipe: str
    color: str
    marker: str
    real: bool = True
    paper: bool = False
    full_title: str = ""


_D = "frhsic_core.data"

DATASETS: dict[str, DatasetRow] = {
    row.key: row
    for row in (
        # Key, title, rows, recipe, color and marker; then what differs from the defaults.
        DatasetRow("adult", "Adult", 32_561, f"{_D}.adult:RECIPE", _C["bluish green"], "^", paper=True),
        DatasetRow("acs_income", "ACS Income", 20_000, f"{_D}.acs_income:RECIPE", _C["blue"], "s", paper=True),
        DatasetRow("meps", "MEPS", 13_707, f"{_D}.meps:RECIPE", _C["reddish purple"], "v", paper=True),
        DatasetRow(
            "crime",
            "Crime",
            1_994,
            f"{_D}.crime:RECIPE",
            _C["orange"],
            "D",
            paper=True,
            full_title="Communities and Crime",
        ),
        DatasetRow("compas", "COMPAS", 6_172, f"{_D}.compas:RECIPE", _C["vermillion"], "o", paper=True),
        DatasetRow("acs_travel", "ACS Travel Time", 20_000, f"{_D}.acs_travel:RECIPE", _C["gray"], "8"),
        DatasetRow(
            "affairs", "Affairs", 6_366, f"{_D}.affairs:RECIPE", _C["blue"], "<", full_title="Affairs (Fair, 1978)"
        ),
        DatasetRow(
            "pension", "401(k)", 9_275, f"{_D}.pension:RECIPE", _C["bluish green"], ">", full_title="401(k) pensions"
        ),
        DatasetRow(
            "wage", "Wages", 935, f"{_D}.wage:RECIPE", _C["orange"], "d", full_title="Wages of young men (wage2)"
        ),
        DatasetRow(
            "fertility",
            "Fertility",
            4_168,
            f"{_D}.fertility:RECIPE",
            _C["vermillion"],
            "H",
            full_title="Fertility in Botswana",
        ),
        DatasetRow(
            "synthetic",
            "Synthetic",
            5_000,
            f"{_D}.synthetic:LAW",
            _C["black"],
            "*",
            real=False,
            full_title="Synthetic validation",
        ),
        DatasetRow(
            "people",
            "People",
            1_000,
            f"{_D}.people:LAW",
            _C["sky blue"],
            "1",
            real=False,
            full_title="People (the running example)",
        ),
    )
}
#: The datasets that are read from files.
REAL_DATASETS = tuple(key for key, row in DATASETS.items() if row.real)
#: The five datasets of the paper's experiments.
PAPER_DATASETS = tuple(key for key, row in DATASETS.items() if row.paper)
#: The same from small to large. A sweep takes the cheap ones first, so that a short run gives most of the table.
SWEEP_DATASETS = tuple(sorted(PAPER_DATASETS, key=lambda key: DATASETS[key].rows))

# --- measures ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Measure:
    """A number that is measured of every trained model.

    Parameters
    ----------
    key : str
        The column of stored rows.
    label : str
        The name in figures and tables.
    definition : str
        What is computed, in one sentence.
    lower_is_better : bool or None
        None where neither direction is better.
    dependence : bool
        True for a measure of the dependence of a model on S.
    experiment : str
        The experiment that adds the column; empty for columns of every sweep.
    """

    key: str
    label: str
    definition: str
    lower_is_better: bool | None = None
    dependence: bool = False
    experiment: str = ""


def _dependence(key: str, label: str, definition: str, experiment: str = "") -> Measure:
    return Measure(key, label, definition, lower_is_better=True, dependence=True, experiment=experiment)


MEASURES: dict[str, Measure] = {
    row.key: row
    for row in (
        Measure("performance", "performance", "Accuracy of a classifier, mean squared error of a regression."),
        Measure("loss", "loss", "Task loss: cross-entropy or mean squared error.", lower_is_better=True),
        Measure("constant", "constant", "Performance of the best constant prediction."),
        Measure("positive", "positive", "Share of samples predicted positive."),
        Measure("spread", "spread", "Standard deviation of the model's output."),
        Measure("ratio", "ratio", "Median distance of Z divided by the bandwidth at the end of training."),
        Measure(
            "hsic_floor_1", "HSIC, floor", "Normalized HSIC that independence would show, at the median bandwidth."
        ),
        _dependence("gdp_reference", "GDP, as in the paper", "GDP of logits, averaged over 50 equally spaced values."),
        _dependence("gdp_uniform", "GDP, probabilities", "The same of probabilities."),
        _dependence("gdp_sample", "GDP, as defined", "GDP of probabilities, averaged over the observed values of S."),
        _dependence(
            "gdp_density", "GDP, Jiang et al.", "GDP of probabilities with density weights and their bandwidth."
        ),
        _dependence("linear_r2", "linear probe R²", "Cross-fitted R² of a linear prediction of S from Z."),
        _dependence("nonlinear_r2", "nonlinear probe R²", "Cross-fitted R² of a nonlinear prediction of S from Z."),
        _dependence("distance_correlation", "dCor², bias-corrected", "Bias-corrected squared distance correlation."),
        _dependence("normalized_hsic_0.5", "HSIC, half the median", "Normalized HSIC at half the median bandwidth."),
        _dependence("normalized_hsic_1", "HSIC, median", "Normalized HSIC at the median bandwidth."),
        _dependence("normalized_hsic_2", "HSIC, twice the median", "Normalized HSIC at twice the median bandwidth."),
        _dependence(
            "gdp_mixed",
            "GDP, logits and labels",
            "GDP as the paper computes it for fresh heads: logits of some heads, predicted labels of others.",
            "transfer",
        ),
        _dependence(
            "mi_reference",
            "MI, as released",
            "KSG estimate on 2 to 5 principal components of Z with closed counts, clipped at 0.",
            "mutual_information",
        ),
        _dependence(
            "mi_standardised",
            "MI, standardized components",
            "KSG as published, each component with variance 1.",
            "mutual_information",
        ),
        _dependence(
            "mi_probe", "MI of the linear guess", "KSG between the linear guess of S and S.", "mutual_information"
        ),
    )
}
#: Labels of the measures of dependence that every sweep stores, by column.
DEPENDENCE = {key: row.label for key, row in MEASURES.items() if row.dependence and not row.experiment}


def labels(keys: Iterable[str]) -> dict[str, str]:
    """Return the labels of methods or measures by key, in the given order.

    Examples
    --------
    >>> labels(("frhsic", "gdp_sample"))
    {'frhsic': 'FRHSIC', 'gdp_sample': 'GDP, as defined'}
    """
    rows: dict[str, Method | Measure] = {**METHODS, **MEASURES}
    return {key: rows[key].label for key in keys}


def titles(keys: Iterable[str] | None = None) -> dict[str, str]:
    """Return the titles of the named datasets (all of them by default) by key.

    Examples
    --------
    >>> titles(("acs_income", "compas"))
    {'acs_income': 'ACS Income', 'compas': 'COMPAS'}
    """
    return {key: DATASETS[key].title for key in (DATASETS if keys is None else keys)}


def resolve(name: str) -> Any:
    """Import and return the object that ``"module:object"`` names.

    Examples
    --------
    >>> resolve("frhsic_core.registry:BASELINE")
    'unfair'
    """
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)
