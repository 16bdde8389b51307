"""Guards the sentences of the chapter on paired tests."""

from __future__ import annotations

import pandas as pd
import pytest

from frhsic_core.paper.experiments.paired_tests import (
    CONVENTIONS,
    SUMMARIES,
    equivalence,
    headline,
    main_family,
    main_rows,
)

PROTOCOLS = ("text", "reference")
OF_GDP = list(CONVENTIONS)[:3]
OF_REPRESENTATION = list(CONVENTIONS)[3:]


@pytest.fixture(scope="module")
def counts() -> dict[str, pd.DataFrame]:
    return {protocol: headline(protocol) for protocol in PROTOCOLS}


@pytest.fixture(scope="module")
def by_naup(counts) -> dict[str, pd.DataFrame]:
    return {protocol: found.xs("naup", level="summary") for protocol, found in counts.items()}


def test_by_naup_of_gdp_the_two_protocols_point_in_opposite_directions(by_naup) -> None:
    text, reference = by_naup["text"].loc[OF_GDP], by_naup["reference"].loc[OF_GDP]
    assert (text["ahead_corrected"] > text["behind_corrected"]).all()
    assert (reference["ahead_corrected"] < reference["behind_corrected"]).all()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_by_naup_of_gdp_more_than_half_of_the_comparisons_are_not_significant(by_naup, protocol: str) -> None:
    assert (by_naup[protocol].loc[OF_GDP, "undecided_corrected"] > 15).all()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_by_what_can_be_read_from_the_representation_frhsic_is_ahead_more_often(by_naup, protocol: str) -> None:
    found = by_naup[protocol].loc[OF_REPRESENTATION]
    assert (found["ahead_corrected"] > found["behind_corrected"]).all()


def test_by_what_can_be_read_from_the_representation_it_is_behind_in_none_in_the_reference(by_naup) -> None:
    assert (by_naup["reference"].loc[OF_REPRESENTATION, "behind_corrected"] == 0).all()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_by_the_matched_dependence_nearly_every_comparison_by_gdp_is_open(counts, protocol: str) -> None:
    matched = counts[protocol].xs("matched", level="summary").loc[OF_GDP]
    assert (matched["undecided_corrected"] >= 28).all()
    assert (matched["behind"] > matched["ahead"]).all()


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("summary", SUMMARIES)
@pytest.mark.parametrize("measure", CONVENTIONS)
def test_the_two_tests_never_contradict_each_other(protocol: str, summary: str, measure: str) -> None:
    found = main_family(protocol, measure=measure, summary=summary)
    cautious = found[found["verdict_corrected"] != "undecided"]
    assert (cautious["verdict"] == cautious["verdict_corrected"]).all()


@pytest.fixture(scope="module")
def equivalent() -> dict[str, pd.DataFrame]:
    return {protocol: equivalence(main_rows(protocol)) for protocol in PROTOCOLS}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_range_to_expect_by_chance_exceeds_the_papers_margins(equivalent, protocol: str) -> None:
    expected = equivalent[protocol]["expected_range"]
    assert (expected["performance"] > 0.01).all()
    assert (expected["dependence"].drop("crime") > 0.05).all()
    assert expected["dependence", "crime"] < 0.05


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_pair_is_within_the_margin_of_accuracy_and_few_differ(equivalent, protocol: str) -> None:
    accuracy = equivalent[protocol].loc["performance"]
    assert (accuracy["within"] == accuracy["pairs"]).all()
    assert (accuracy["resolved_corrected"] == 0).all()
    assert (accuracy["resolved"] <= 10).all()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_on_compas_and_crime_most_pairs_are_within_the_margin_of_gdp_and_half_of_them_differ(
    equivalent, protocol: str
) -> None:
    near = equivalent[protocol].loc["dependence"].loc[["compas", "crime"]]
    assert (near["within"] >= 0.85 * near["pairs"]).all()
    assert (near["resolved"] > near["within"] / 2).all()
    assert (near["resolved_corrected"] < near["within"] / 2).all()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_on_adult_and_meps_few_pairs_are_within_the_margin_of_gdp(equivalent, protocol: str) -> None:
    assert (equivalent[protocol].loc["dependence"].loc[["adult", "meps"], "within"] <= 5).all()
