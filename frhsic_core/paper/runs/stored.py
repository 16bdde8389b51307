"""Read stored results: ours, the authors' sweep and the paper's printed tables, with the same column names."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

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


def stored_rows(experiment: str = "main") -> pd.DataFrame:
    """Return the stored rows of an experiment: one for each trained model, or those that a study measured.

    The table is empty if the experiment was never run. If a file is damaged or lost, the error names it.
    """
    return ResultStore(book_folder("results"), experiment).read()


def reference_sweep() -> pd.DataFrame:
    """Return the authors' stored means with the column names of our store; their mean over splits is one row.

    FRHSIC on Adult has the 18 λ of the file behind the printed nAUP.

    Examples
    --------
    >>> len(reference_sweep())
    365
    """
    # The ledger calls this some hundred times, and each caller may change its copy.
    return _sweep(book_folder("claims", "reference")).copy()


@cache
def _sweep(folder: Path) -> pd.DataFrame:
    sweep = pd.read_csv(folder / "sweep.csv")
    replaced = (sweep["dataset"] == "adult") & (sweep["method"] == "frhsic")
    sweep = pd.concat(
        [sweep[~replaced], pd.read_csv(folder / "sweep_adult_frhsic_dense.csv")], ignore_index=True
    )
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


def paper_table(label: str) -> pd.DataFrame:
    """Return a printed table, one row for each dataset and method: ``performance``, ``dependence``, ``naup``.

    Mean squared errors, which the paper prints × 100, are divided by 100. A dash becomes NaN.

    Examples
    --------
    >>> float(paper_table("tab:real_data").loc[("adult", "frhsic"), "naup"])
    0.786
    """
    cells = pd.read_csv(book_folder("claims", "cells.csv"), dtype=str, keep_default_na=False)
    cells = cells[cells["place"] == label]
    # A claim of a cell reads "dataset, method, quantity, setting".
    keys = [
        part.rename(name) for name, part in cells["claim"].str.split(", ", expand=True).items()
    ][:2]
    value = pd.to_numeric(cells["value"], errors="coerce")
    value = value.where(cells["quantity"] != "mse_x100", value / 100.0)
    names = {"acc": "performance", "mse_x100": "performance", "gdp": "dependence"}
    quantity = cells["quantity"].replace(names)
    table = value.groupby([*keys, quantity], sort=False).first().unstack("quantity")
    return table.rename_axis(["dataset", "method"]).reindex(
        columns=["performance", "dependence", "naup"]
    )
