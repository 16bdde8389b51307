"""The variants of the paper's datasets: rows, columns and sensitive attribute of the text and of the released code."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from frhsic_core.data import crime, load_dataset, meps
from frhsic_core.paper import datasets
from frhsic_core.paper.datasets import load_variant
from frhsic_core.paper.experiments.cost import ATTRIBUTES

sys.path.insert(0, str(Path(__file__).parents[1] / "data"))
import raw_formats as raw

SHAPES = {
    ("adult", "text"): (30_162, 103),
    ("adult", "reference"): (32_561, 107),
    ("acs_income", "text"): (20_000, 9),
    ("acs_income", "reference"): (20_000, 9),
    ("meps", "text"): (11_276, 18),
    ("meps", "reference"): (13_707, 16),
    ("crime", "text"): (1_994, 99),
    ("crime", "reference"): (1_994, 99),
    ("compas", "text"): (6_172, 16),
    ("compas", "reference"): (6_172, 16),
}


@pytest.mark.data
@pytest.mark.parametrize(("name", "variant"), list(SHAPES))
def test_the_real_data_are_what_the_recipes_promise(name: str, variant: str) -> None:
    source = "auto" if name not in ("acs_income", "meps") else "extract"
    data = load_variant(name, variant, download=False, source=source)
    assert (data.n, data.d) == SHAPES[name, variant]
    assert data.s.shape == (data.n,)
    assert data.sensitive_name not in data.feature_names
    assert data.provenance.steps[-1][1] == data.n
    assert len(data.provenance.files[0].sha256) == 64
    assert (data.weights is None) == (name in ("acs_income", "crime", "compas"))
    assert data.task == ("regression" if name == "crime" else "classification")


@pytest.mark.data
@pytest.mark.parametrize("name", ["adult", "acs_income", "meps", "crime", "compas"])
def test_the_text_is_what_a_user_loads(name: str) -> None:
    plain, text = load_dataset(name, download=False), load_variant(name, download=False)
    for part in ("X", "s", "y"):
        np.testing.assert_array_equal(getattr(plain, part), getattr(text, part))
    assert (plain.provenance.variant, text.provenance.variant) == ("", "text")


@pytest.mark.data
def test_the_reference_takes_crime_by_position_and_we_by_name() -> None:
    frame = pd.read_csv(Path(os.environ["FRHSIC_DATA"]) / "crime" / "communities.data", header=None, na_values="?")
    np.testing.assert_array_equal(load_variant("crime", "reference", download=False).s, frame[6])
    np.testing.assert_array_equal(load_variant("crime", "text", download=False).s, frame[7])


@pytest.mark.data
def test_sensitive_columns_of_the_experiments_with_several_attributes() -> None:
    two = load_variant("adult", "reference", sensitive=("age", "hours-per-week"), download=False)
    assert two.s.shape == (32_561, 2)
    assert two.d == 106
    assert two.sensitive_name == "age + hours-per-week"
    text = load_variant("adult", sensitive=ATTRIBUTES, download=False)
    assert text.d == 100


def test_crime_variants_differ_in_the_sensitive_attribute_only(tmp_path: Path) -> None:
    path = raw.crime_file(tmp_path / "communities.data", raw.crime_table())
    text, reference = (datasets.sources_of("crime", variant)[0].read(path) for variant in datasets.VARIANTS)
    attributes = [datasets.recipe_of("crime", variant).sensitive for variant in datasets.VARIANTS]
    assert attributes == ["racepctblack", "householdsize"]
    pd.testing.assert_frame_equal(text.columns, reference.columns)
    # the position that the released code uses, and its neighbour
    assert crime.COLUMNS[6] == "householdsize"
    assert crime.COLUMNS[7] == "racepctblack"
    assert len(crime.COLUMNS) == len(set(crime.COLUMNS)) == 128


def test_meps_two_panels_uses_discharges_and_counts_codes_as_the_label_does(tmp_path: Path) -> None:
    frame = raw.meps_frame()
    table = datasets.read_two_panels(raw.gzipped_csv(tmp_path / "two.csv.gz", frame))
    wanted = frame[(frame[[*datasets.TWO_PANEL_FEATURES, meps.SENSITIVE]] >= 0).all(axis=1)]
    np.testing.assert_array_equal(table.y, wanted[list(datasets.VISITS_IN_EXTRACT)].sum(axis=1) >= 10)
    assert table.columns.shape == (len(wanted), 17)


def test_meps_official_transport_file(tmp_path: Path) -> None:
    frame = raw.meps_frame()
    table = datasets.read_both_panels(raw.meps_zip(tmp_path / "h181ssp.zip", frame))
    features = datasets.REFERENCE_FEATURES
    wanted = frame[(frame[[*features, meps.SENSITIVE]] >= 0).all(axis=1)]
    np.testing.assert_array_equal(table.columns.to_numpy(), wanted[[meps.SENSITIVE, *features]].to_numpy())
    np.testing.assert_array_equal(table.y, wanted[meps.EXACT_LABEL])
    assert table.columns.shape[1] == 20


def test_a_wrong_variant_is_an_error() -> None:
    with pytest.raises(ValueError, match="variant is 'paper'"):
        load_variant("adult", "paper")
