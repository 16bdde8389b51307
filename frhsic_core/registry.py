"""List the methods, datasets, measures and protocols, each in one table.

Figures, tables, experiments, explorers and data cards read their names, labels, colors and orders from here, so that
a new method or dataset is one row. The module imports nothing heavy: classes and datasets are named by strings of the
form ``"module:object"`` and imported by ``pkgutil.resolve_name`` on first use.
"""

from __future__ import annotations

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

#: The sets of training settings, and whether the encoder applies its activation after the last layer as well.
PROTOCOLS = {
    "recommended": False,  # the settings that this library recommends
    "text": True,  # those that the paper states
    "reference": False,  # those of the authors' released code
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
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    tables: tuple[str, ...] = ()


# Settings of the penalties in the protocols that depart from the defaults of the class.
_SETTINGS: dict[str, dict[str, dict[str, Any]]] = {
    "frhsic": {
        # Those of the recommended protocol, whitened FRHSIC, are the defaults of the class.
        "text": {"scale": None, "bandwidth": "every_20_epochs", "on": "representation"},
        "reference": {
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
        # Key, label, color, marker, penalty, settings and tables of the paper.
        Method("unfair", "Unfair", _C["black"], "*", f"{_P}:Unfair", {}, _BOTH),
        Method(
            "frhsic", "FRHSIC", _C["vermillion"], "o", f"{_P}:FRHSIC", _SETTINGS["frhsic"], _ALL
        ),
        Method("frem", "FREM", _C["blue"], "s", f"{_P}:FREM", _SETTINGS["frem"], _ALL),
        Method(
            "reg_gdp",
            "Reg-GDP",
            _C["bluish green"],
            "^",
            f"{_P}:RegGDP",
            _SETTINGS["reg_gdp"],
            _ALL,
        ),
        Method("adv", "ADV", _C["reddish purple"], "v", f"{_P}:ADV", _SETTINGS["adv"], _ALL),
        Method(
            "mmd_binned",
            "MMD (binned)",
            _C["orange"],
            "D",
            f"{_P}:MMDBinned",
            _SETTINGS["mmd_binned"],
            _BOTH,
        ),
        Method("laftr", "LAFTR", _C["sky blue"], "P", f"{_P}:LAFTR", {}, _BOTH),
        Method(
            "dcor", "dCor", _C["yellow"], "X", f"{_P}:DCor", _SETTINGS["dcor"], ("pareto_summary",)
        ),
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
    label : str
        The name in figures and tables.
    rows : int
        Number of samples (of the ``"reference"`` variant), used to order and balance jobs.
    recipe : str
        The object that loads it and holds its card, as ``"module:object"``.
    color, marker : str
        How figures draw it. No two datasets share a marker.
    paper : bool
        True for the five real datasets of the paper, which its experiments and tables use.
    """

    key: str
    label: str
    rows: int
    recipe: str
    color: str
    marker: str
    paper: bool = False


_D = "frhsic_core.data"

DATASETS: dict[str, DatasetRow] = {
    row.key: row
    for row in (
        # Key, label, rows, recipe, color and marker; then what differs from the defaults.
        DatasetRow(
            "adult", "Adult", 32_561, f"{_D}._adult:RECIPE", _C["bluish green"], "^", paper=True
        ),
        DatasetRow(
            "acs_income",
            "ACS Income",
            20_000,
            f"{_D}._acs_income:RECIPE",
            _C["blue"],
            "s",
            paper=True,
        ),
        DatasetRow(
            "meps", "MEPS", 13_707, f"{_D}._meps:RECIPE", _C["reddish purple"], "v", paper=True
        ),
        DatasetRow("crime", "Crime", 1_994, f"{_D}._crime:RECIPE", _C["orange"], "D", paper=True),
        DatasetRow(
            "compas", "COMPAS", 6_172, f"{_D}._compas:RECIPE", _C["vermillion"], "o", paper=True
        ),
        DatasetRow("synthetic", "Synthetic", 5_000, f"{_D}._synthetic:RECIPE", _C["black"], "*"),
        DatasetRow("people", "People", 1_000, f"{_D}._people:RECIPE", _C["sky blue"], "1"),
    )
}
#: The five datasets of the paper's experiments.
PAPER_DATASETS = tuple(key for key, row in DATASETS.items() if row.paper)
#: The same from small to large. A sweep takes the cheap ones first, so that a short run gives most of the table.
SWEEP_DATASETS = tuple(sorted(PAPER_DATASETS, key=lambda key: DATASETS[key].rows))

# --- measures ------------------------------------------------------------------------------------------------------


#: The label of each number that is measured of every trained model, by the column of stored rows.
MEASURES: dict[str, str] = {
    "performance": "performance",  # accuracy, or the mean squared error of a regression
    "constant": "constant",  # performance of the best constant prediction
    "positive": "positive",  # share of samples predicted positive
    "ratio": "ratio",  # median distance of Z over the bandwidth at the end of training
    # Measures of the dependence of a model on S, of which less is better.
    # Of logits, averaged over 50 equally spaced values of S. The text defines another number.
    "gdp_reference": "GDP, as the authors' code computes it",
    "gdp_sample": "GDP, as defined",  # of probabilities, averaged over the observed values of S
    "linear_r2": "linear probe R²",  # cross-fitted, of a prediction of S from Z
    "nonlinear_r2": "nonlinear probe R²",
    "distance_correlation": "dCor², bias-corrected",
    "normalized_hsic_1": "HSIC, median",
    # Of one experiment, transfer. As the paper computes it for fresh heads: of the logits of some heads, and of the
    # predicted labels of others.
    "gdp_mixed": "GDP, logits and labels",
    # Of one experiment, mutual_information. KSG on 2 to 5 principal components of Z with closed counts, clipped at 0:
    # as published, and with each component at variance 1.
    "mi_reference": "MI, as released",
    "mi_standardised": "MI, standardized components",
    "mi_probe": "MI of the linear guess",
}


def labels(keys: Iterable[str]) -> dict[str, str]:
    """Return the labels of methods, datasets or measures by key, in the given order.

    Examples
    --------
    >>> labels(("frhsic", "acs_income", "gdp_sample"))
    {'frhsic': 'FRHSIC', 'acs_income': 'ACS Income', 'gdp_sample': 'GDP, as defined'}
    """
    known = MEASURES | {key: row.label for key, row in (METHODS | DATASETS).items()}
    return {key: known[key] for key in keys}
