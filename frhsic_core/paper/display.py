"""Tables and names as the chapters show them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from frhsic_core.registry import MEASURES, METHODS, PAPER_DATASETS, labels

if TYPE_CHECKING:
    from IPython.display import HTML

DATASET_TITLES = labels((*PAPER_DATASETS, "synthetic"))
METHOD_LABELS = labels(METHODS)
NAMES = DATASET_TITLES | METHOD_LABELS
#: Words for the columns of the paper's datasets that are sensitive attributes.
ATTRIBUTE_NAMES = dict.fromkeys(("age", "AGEP", "AGE15X"), "age") | {
    "racepctblack": "share of Black residents",
    "householdsize": "household size",
}
KERNEL_NAMES = {"gaussian": "Gaussian", "laplacian": "Laplacian", "imq": "inverse multiquadric"}
# Keys inside a sentence. "Synthetic" and measures without an underscore are ordinary words as well.
_IN_TEXT = {key: name for key, name in NAMES.items() if key != "synthetic"}
_IN_TEXT |= {key: label for key, label in MEASURES.items() if "_" in key}
_KEY = re.compile(
    r"(?<![\w.])(" + "|".join(sorted(_IN_TEXT, key=len, reverse=True)) + r")(?![\w.]*\w)"
)
# Parts of the claims about cells of the paper's tables.
_PARTS = {
    "acc": "accuracy",
    "gdp": "GDP",
    "naup": "nAUP",
    "mse_x100": "100 times the MSE",
    "eo_gdp": "GDP among Y = 1",
    "gdp_age": "GDP for age",
    "gdp_hours": "GDP for hours",
    "sd_gdp_over_4_heads": "SD of GDP over 4 heads",
    "frhsic_dp": "FRHSIC-DP",
    "frhsic_eo": "FRHSIC-EO",
    "frhsic_joint": "FRHSIC-Joint",
    "frhsic_sum": "FRHSIC-Sum",
    "synthetic": "Synthetic",
}
_SETTINGS = {
    "kz": "kernel of Z: {}",
    "ks": "kernel of S: {}",
    "dz": "dimension of Z: {}",
    "lambda": "λ = {}",
}


def in_words(text: str) -> str:
    """Return a sentence with the names of methods, datasets and measures in place of their keys.

    Examples
    --------
    >>> in_words("mi_reference: lower than reg_gdp on acs_income")
    'MI, as released: lower than Reg-GDP on ACS Income'
    """
    return _KEY.sub(lambda match: _IN_TEXT[match[1]], text)


def claim_in_words(claim: str) -> str:
    """Return a claim of the ledger in words. Claims about cells of tables are lists of keys.

    Examples
    --------
    >>> claim_in_words("synthetic, frhsic, acc, kz=gaussian;ks=imq;lambda=5")
    'Synthetic, FRHSIC, accuracy, kernel of Z: Gaussian, kernel of S: inverse multiquadric, λ = 5'
    >>> claim_in_words("lambda for Adult transfer, at lambda=50")
    'λ for Adult transfer, at λ = 50'
    """
    parts = [part for listed in claim.split(", ") for part in listed.split(";")]
    return ", ".join(_part_in_words(part) for part in parts)


def _part_in_words(part: str) -> str:
    if part in _PARTS:
        return _PARTS[part]
    key, _, value = part.partition("=")
    if value and key in _SETTINGS:
        return _SETTINGS[key].format(KERNEL_NAMES.get(value, value))
    return re.sub(
        r"\blambda\b(?!_)=?",
        lambda match: "λ = " if match[0].endswith("=") else "λ",
        in_words(part),
    )


def table(
    rows: pd.DataFrame | Iterable[Any],
    columns: Sequence[Any] | None = None,
    *,
    names: Mapping[Any, str] | None = None,
    digits: int | None = None,
) -> HTML:
    """Return rows as an HTML table without borders; a cell or a title can contain ``<br>`` or a link.

    The index is shown only if it has a name, and its name is not shown.

    Parameters
    ----------
    rows : DataFrame or iterable
        A frame, or rows that :class:`pandas.DataFrame` accepts.
    columns : sequence, optional
        The titles of the columns, if ``rows`` is not a frame.
    names : mapping, optional
        Words for labels of the index and of the columns, for example ``NAMES``.
    digits : int, optional
        Decimal places of the numbers that are floats.

    Examples
    --------
    >>> "<th>GDP<br>of age</th>" in table([("Adult", 0.25)], ["data", "GDP<br>of age"]).data
    True
    >>> frame = pd.DataFrame({"adult": [0.25]}, index=pd.Index(["frhsic"], name="method"))
    >>> shown = table(frame, names=NAMES, digits=1).data
    >>> [word in shown for word in ("Adult", "FRHSIC", "0.2", "method")]
    [True, True, True, False]
    """
    # Only notebooks need IPython: the package can be imported without it.
    from IPython.display import HTML

    frame = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(rows, columns=columns)
    if digits is not None:
        frame = frame.map(
            lambda value: f"{value:.{digits}f}" if isinstance(value, float) else value
        )
    if names is not None:
        frame = frame.rename(index=names, columns=names)
    has_index = frame.index.name is not None
    return HTML(frame.to_html(border=0, escape=False, index=has_index, index_names=False))
