"""A file that is loaded by name is checked, and a subsample of it keeps its rows together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import raw_formats as raw

from frhsic_core.data import adult, load_dataset, loading
from frhsic_core.data.fetching import Folders
from frhsic_core.data.files import FormatError, sha256_of
from frhsic_core.data.recipes import Source, both


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folders:
    """Return a data folder with an invented adult.data, which the recipe for all rows expects."""
    (tmp_path / "adult").mkdir()
    path = raw.adult(tmp_path / "adult" / "adult.data")
    file = replace(adult.FILE, sha256=(sha256_of(path),))
    d = adult.read(path, "reference").columns.shape[1] - 1
    source = Source("official", file, adult.read, (4,), d)
    monkeypatch.setitem(loading.REAL, "adult", replace(adult.RECIPE, sources=both((source,))))
    return Folders(tmp_path, tmp_path / "cache")


def test_a_subsample_is_that_of_its_seed_and_keeps_rows_together(folders: Folders) -> None:
    whole = load_dataset("adult", "reference", folders=folders, download=False)
    np.testing.assert_array_equal(whole.weights, [1000, 2000, 3000, 1500])
    for seed in range(3):
        part = load_dataset("adult", "reference", folders=folders, download=False, n=3, random_state=seed)
        rows = np.random.RandomState(seed).choice(4, 3, replace=False)
        for name in ("X", "s", "y", "weights"):
            np.testing.assert_array_equal(getattr(part, name), getattr(whole, name)[rows])


def test_a_file_with_other_rows_than_its_recipe_expects_is_refused(folders: Folders) -> None:
    """The text variant drops two of the four rows."""
    with pytest.raises(FormatError, match="expected 4 rows"):
        load_dataset("adult", "text", folders=folders, download=False)
