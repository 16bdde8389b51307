"""Read what the book stores. No other module of the package opens a file of its folder.

Our rows, their provenance, the recorded certificates and the summaries of the data; the authors'
stored runs; the numbers that the paper prints. An installed package contains none of them, and
:func:`book_folder` says what to do.
"""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

import frhsic_core
from frhsic_core.paper.runs.store import ResultStore


def book_folder(*parts: str) -> Path:
    """Return a folder of the book.

    The book is the folder that ``FRHSIC_BOOK`` names; or a folder ``book`` with ``claims`` and ``results`` in the
    current folder or one of its parents; or that of the source tree of an editable install.

    Raises
    ------
    FileNotFoundError
        If there is none. An installed package has no results: work in a clone, or set ``FRHSIC_BOOK``.
    """
    given = os.environ.get("FRHSIC_BOOK")
    if given:
        root = Path(given).expanduser()
        if not root.is_dir():
            raise FileNotFoundError(
                f"FRHSIC_BOOK is {given}, which is not a folder: set it to the book folder of a clone."
            )
        return root.joinpath(*parts)
    here = Path.cwd()
    for folder in (here, *here.parents, Path(frhsic_core.__file__).parents[1]):
        if all((folder / "book" / part).is_dir() for part in ("claims", "results")):
            return folder.joinpath("book", *parts)
    raise FileNotFoundError(
        f"There is no book folder with stored results in {here} or above: change to a clone of the repository, or set "
        "FRHSIC_BOOK to the book folder of a clone."
    )


# What we measured ----------------------------------------------------------------------------------


def results_folder() -> Path:
    """Return the folder of our stored rows."""
    return book_folder("results")


def result_store(experiment: str = "main") -> ResultStore:
    """Return the store of an experiment: its rows and how they were computed."""
    return ResultStore(results_folder(), experiment)


def stored_rows(experiment: str = "main") -> pd.DataFrame:
    """Return the stored rows of an experiment: one for each trained model, or those that a study measured.

    The table is empty if the experiment was never run. If a file is damaged or lost, the error names it.
    """
    return result_store(experiment).read()


def data_summary(dataset: str, variant: str) -> dict[str, Any]:
    """Return the stored summary of a variant of a dataset: sizes, the range of S, and where it is from.

    Examples
    --------
    >>> data_summary("compas", "text")["n"]
    6172
    """
    path = book_folder("data_summaries", f"{dataset}-{variant}.json")
    summary: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return summary


# What was proved and checked -----------------------------------------------------------------------


def verdicts_file() -> Path:
    """Return the file of the recorded certificates."""
    return book_folder("claims", "verdicts.json")


@cache
def recorded_certificates() -> list[dict[str, Any]]:
    """Return the recorded certificates."""
    found: list[dict[str, Any]] = json.loads(verdicts_file().read_text(encoding="utf-8"))
    return found


def proofs_folder() -> Path:
    """Return the folder of the formal proofs."""
    return book_folder("proofs")


def chapters_folder() -> Path:
    """Return the folder of the chapters, which lies beside the book's."""
    return book_folder().parent / "notebooks"


# What the authors stored, and what the paper prints ------------------------------------------------


def authors_file(name: str) -> pd.DataFrame:
    """Return one of the copied files: ``"sweep"``, or a side experiment."""
    folder = "reference" if name.startswith("sweep") else "authors"
    return pd.read_csv(book_folder("claims", folder, f"{name}.csv"))


def reference_sweep() -> pd.DataFrame:
    """Return the authors' stored means with the column names of our store; their mean over splits is one row.

    FRHSIC on Adult has the 18 λ of the file behind the printed nAUP.

    Examples
    --------
    >>> len(reference_sweep())
    365
    """
    # The ledger calls this some hundred times, and each caller may change its copy.
    return _sweep(book_folder()).copy()


@cache
def _sweep(folder: Path) -> pd.DataFrame:
    sweep = authors_file("sweep")
    replaced = (sweep["dataset"] == "adult") & (sweep["method"] == "frhsic")
    dense = authors_file("sweep_adult_frhsic_dense")
    sweep = pd.concat([sweep[~replaced], dense], ignore_index=True)
    return pd.DataFrame(
        {
            "dataset": sweep["dataset"],
            "variant": "reference",
            "protocol": "authors",
            "task": sweep["perf_name"].map({"acc": "classification"}).fillna("regression"),
            "method": sweep["method"],
            "option": "",
            "lam": sweep["lambda"],
            "split": 0,
            "performance": sweep["perf_mean"],
            "performance_sd": sweep["perf_std"],
            "gdp_reference": sweep["gdp_mean"],
            "gdp_reference_sd": sweep["gdp_std"],
        }
    )


def _printed(name: str) -> pd.DataFrame:
    return pd.read_csv(book_folder("claims", f"{name}.csv"), dtype=str, keep_default_na=False)


def printed_numbers() -> pd.DataFrame:
    """Return a row for each number that the paper prints, with the columns of both files as texts.

    ``source`` says whether the number stands in the text or in a table. A column that one of the two
    files lacks is empty.
    """
    text = _printed("claims").assign(source="text")
    tables = _printed("cells").assign(source="table")
    return pd.concat([text, tables], ignore_index=True).fillna("")


def paper_table(label: str) -> pd.DataFrame:
    """Return a printed table, one row for each dataset and method: ``performance``, ``dependence``, ``naup``.

    Mean squared errors, which the paper prints × 100, are divided by 100. A dash becomes NaN.

    Examples
    --------
    >>> float(paper_table("tab:real_data").loc[("adult", "frhsic"), "naup"])
    0.786
    """
    cells = _printed("cells")
    cells = cells[cells["place"] == label]
    # A claim of a cell reads "dataset, method, quantity, setting".
    words = cells["claim"].str.split(", ", expand=True)
    keys = [words[0].rename("dataset"), words[1].rename("method")]
    value = pd.to_numeric(cells["value"], errors="coerce")
    value = value.where(cells["quantity"] != "mse_x100", value / 100.0)
    names = {"acc": "performance", "mse_x100": "performance", "gdp": "dependence"}
    quantity = cells["quantity"].replace(names)
    table = value.groupby([*keys, quantity], sort=False).first().unstack("quantity")
    return table.reindex(columns=["performance", "dependence", "naup"])
