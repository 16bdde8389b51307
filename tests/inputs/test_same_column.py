"""The same column gives the same number, or the same error, in everything that takes it.

The attribute is passed to every entry point as more than fifty kinds of one column. A statistic of
samples takes it as S; a metric, an audit, a bound and an estimator as ``sensitive_features``.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from column_kinds import dates, labels, numbers, words

import frhsic_core as fc
from frhsic_core.auditing import gdp_score
from frhsic_core.joint import conditional_hsic
from frhsic_core.remedies import AdjustedClassifier, AdjustedRegressor, AttributeEraser

N = 60
RNG = np.random.default_rng(0)
AGES = RNG.integers(18, 90, N)
X = RNG.normal(size=(N, 3)) + AGES[:, None] / 50
P = np.clip(AGES / 200 + RNG.uniform(size=N) / 2, 0, 1)
Y = (P + RNG.normal(size=N) / 5 > np.median(P)).astype(int)
GROUPS = [f"group {value % 4}" for value in AGES.tolist()]
SHORT = {"epochs": 1, "batch_size": 60, "random_state": 0, "device": "cpu"}
KERNELS = {"kernel_z": fc.Gaussian(1.0), "kernel_s": fc.Gaussian(10.0)}
Entry = Callable[[Any], Any]


def fitted(estimator: Any, y: Any = Y) -> Entry:
    return lambda s: estimator.fit(X, y, sensitive_features=s).predict(X)


def erased(eraser: Any) -> Entry:
    return lambda s: eraser.fit(X, sensitive_features=s).transform(X)


def adjusted(kind: Any, y: Any) -> Entry:
    from sklearn.linear_model import LinearRegression, LogisticRegression

    model = LogisticRegression() if kind is AdjustedClassifier else LinearRegression()

    def call(s: Any) -> Any:
        found = kind(model).fit(X, y, sensitive_features=s)
        return found.predict(X, sensitive_features=s)

    return call


# Statistics that take an attribute of numbers only.
OF_NUMBERS: dict[str, Entry] = {
    "distance_correlation": lambda s: fc.distance_correlation(X, s),
    "coco": lambda s: fc.coco(X, s),
    "khgr": lambda s: fc.khgr(X, s, ridge=0.1),
    "mutual_information": lambda s: fc.mutual_information(X, s),
    "eipm": lambda s: fc.eipm(X, s),
    "gdp": lambda s: fc.gdp(P, s),
    "gdp_curve": lambda s: fc.gdp_curve(P, s).gdp_high,
    "conditional_hsic": lambda s: conditional_hsic(X, s, Y, **KERNELS),
    "hsic_bound": lambda s: fc.hsic_bound(X, s, **KERNELS).bound,
    "audit_representation": lambda s: fc.audit_representation(X, s, features=20).nonlinear_r2,
}
# Those that take categories too.
OF_ANY: dict[str, Entry] = {
    "hsic": lambda s: fc.hsic(X, s),
    "normalized_hsic": lambda s: fc.normalized_hsic(X, s),
    "HSICLoss": lambda s: fc.HSICLoss(1.0)(X, s),
    "hsic_test": lambda s: fc.hsic_test(X, s).pvalue,
    "hsic_test, aggregated": lambda s: (
        fc.hsic_test(X, s, method="aggregated", n_permutations=19).statistic
    ),
    "gdp_bound": lambda s: fc.gdp_bound(P, sensitive_features=s).bound,
    "audit": lambda s: fc.audit(P, sensitive_features=s, y_true=Y).attributes[0].gdp,
    "gdp_score": lambda s: gdp_score(Y, P, sensitive_features=s),
    "adjust_scores": lambda s: fc.adjust_scores(P, sensitive_features=s),
    "AttributeEraser": erased(AttributeEraser()),
    "KernelEraser": erased(fc.KernelEraser()),
    "AdjustedClassifier": adjusted(AdjustedClassifier, Y),
    "AdjustedRegressor": adjusted(AdjustedRegressor, P),
    "FairClassifier": fitted(fc.FairClassifier(1.0, **SHORT)),
    "FairRegressor": fitted(fc.FairRegressor(1.0, **SHORT), P),
    "FairEncoder": lambda s: (
        fc.FairEncoder(1.0, **SHORT).fit(X, Y, sensitive_features=s).transform(X)
    ),
}
# A variable that is given, which is a group where it was passed as labels.
GIVEN: dict[str, Entry] = {
    "conditional_hsic, given": lambda s: conditional_hsic(X, P, s, **KERNELS),
    "hsic_test, given": lambda s: fc.hsic_test(X, P, given=s, n_permutations=19).statistic,
    "audit, control": lambda s: (
        fc.audit(P, sensitive_features=Y, control_features=s)
        .attributes[0]
        .numbers["gdp_given"]
        .value
    ),
    "FairClassifier, control": lambda s: (
        fc.FairClassifier(1.0, **SHORT)
        .fit(X, Y, sensitive_features=P, control_features=s)
        .predict_proba(X)
    ),
}
ENTRIES = {**OF_NUMBERS, **OF_ANY}


def outcome(entry: Entry, given: Any) -> Any:
    """Return the numbers of a call, or its error without the name of the column."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = entry(given)
        except (TypeError, ValueError) as error:
            text = re.sub(r"^('\w+'|\w+) ", "S ", str(error))
            return re.sub(r" \(column \w+\)", "", text)
    if isinstance(found, torch.Tensor):
        found = found.detach().numpy()
    return np.asarray(found, dtype=np.float64)


def differences(entry: Entry, kinds: dict[str, Any], expected: Any) -> dict[str, Any]:
    """Return the kinds of a column for which the outcome is another one."""
    found = {kind: outcome(entry, given) for kind, given in kinds.items()}
    return {kind: value for kind, value in found.items() if not same(value, expected)}


def same(a: Any, b: Any) -> bool:
    if isinstance(a, str) or isinstance(b, str):
        return isinstance(a, str) and isinstance(b, str) and a == b
    return a.shape == b.shape and bool(np.allclose(a, b, rtol=1e-9, atol=1e-12))


FEW = ("list", "Decimal", "Int64", "masked", "torch.bfloat16", "table of pyarrow", "text")
LONG = {
    *(name for name in ENTRIES if name.startswith(("Fair", "Adjusted", "audit"))),
    "AttributeEraser",
    "KernelEraser",
    "adjust_scores",
    "gdp_curve",
    "hsic_test, aggregated",
}


def test_there_are_more_than_fifty_kinds() -> None:
    assert len(numbers(AGES)) > 50
    assert len(labels(AGES)) > 10
    assert len(words(GROUPS)) > 15


def some(kinds: dict[str, Any], name: str) -> dict[str, Any]:
    """Return all kinds for a short call, and a few for a long one."""
    return {k: v for k, v in kinds.items() if k in FEW} if name in LONG else kinds


@pytest.mark.parametrize("name", ENTRIES)
def test_numbers_are_the_same_numbers_everywhere(name: str) -> None:
    expected = outcome(ENTRIES[name], AGES.astype(np.float64))
    assert not isinstance(expected, str)
    kinds = some({**numbers(AGES), **labels(AGES)}, name)
    assert not differences(ENTRIES[name], kinds, expected)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(LONG))
def test_numbers_are_the_same_numbers_in_long_calls(name: str) -> None:
    expected = outcome(ENTRIES[name], AGES.astype(np.float64))
    assert not differences(ENTRIES[name], {**numbers(AGES), **labels(AGES)}, expected)


@pytest.mark.parametrize("name", OF_ANY)
def test_words_are_the_same_categories_everywhere(name: str) -> None:
    expected = outcome(ENTRIES[name], np.array(GROUPS, dtype=object))
    assert not isinstance(expected, str)
    kinds = words(GROUPS)
    if name in LONG:
        kinds = {kind: kinds[kind] for kind in ("array", "bytes", "categories", "DataFrame")}
    assert not differences(ENTRIES[name], kinds, expected)


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_words_are_refused_alike_where_numbers_are_needed(name: str) -> None:
    expected = "S has words, such as 'group 0', where numbers are needed."
    assert not differences(ENTRIES[name], words(GROUPS), expected)


@pytest.mark.parametrize("name", ENTRIES)
def test_dates_are_the_same_numbers_everywhere(name: str) -> None:
    days = 100 * AGES
    expected = outcome(ENTRIES[name], 1970.0 + days / 365.2425)
    assert not isinstance(expected, str)
    kinds = dates(days)
    if name in LONG:
        kinds = {kind: kinds[kind] for kind in ("dates", "Series with a zone", "array of days")}
    assert not differences(ENTRIES[name], kinds, expected)


ODD = [*AGES[:-1].tolist(), "unknown"]
REFUSED: dict[str, tuple[Any, str]] = {
    "one odd cell": (ODD, "S mixes numbers and words: 1 of 60 values are not numbers"),
    "one odd cell in text": ([str(value) for value in ODD], "S mixes numbers and words: 1 of 60"),
    "one odd cell in pandas": (pd.Series(ODD), "S mixes numbers and words: 1 of 60"),
    "percent": ([f"{age} %" for age in AGES], "S has numbers that are written as text"),
    "written dates": ([f"{1900 + age}-01-01" for age in AGES], "S has dates that are written"),
    "identifiers": ([f"P{row}" for row in range(N)], "S has 60 distinct words"),
    "complex": (AGES + 1j, "S is complex"),
    "sparse": (torch.tensor(AGES).to_sparse(), "S is sparse"),
    "cells with lists": (pd.Series([[age] for age in AGES]), "S has lists or other collections"),
    "lost digits": (AGES + 2**60, "S has whole numbers up to"),
}


@pytest.mark.parametrize("name", {**ENTRIES, **GIVEN})
def test_what_could_be_misread_is_refused_alike(name: str) -> None:
    entry = {**ENTRIES, **GIVEN}[name]
    found = {kind: outcome(entry, given) for kind, (given, _) in REFUSED.items()}
    wrong = {k: v for k, v in found.items() if not str(v).startswith(REFUSED[k][1])}
    assert not wrong


MISSING = AGES.astype(np.float64)
MISSING[7] = np.nan
COUNTING = {"audit", "gdp_score"}  # missing values are counted there


@pytest.mark.parametrize("name", [name for name in ENTRIES if name not in COUNTING])
def test_missing_values_are_refused_alike(name: str) -> None:
    lost = np.isnan(MISSING)
    kinds = {
        "NaN": MISSING,
        "None": [None if np.isnan(age) else age for age in MISSING],
        "masked": np.ma.array(AGES, mask=lost),
        "Int64": pd.Series(MISSING, dtype="Int64"),
        "tensor": torch.tensor(MISSING),
    }
    found = {kind: outcome(ENTRIES[name], given) for kind, given in kinds.items()}
    expected = r"S has 1 (NaN|missing) or infinite values( in 60 rows)?: drop those rows"
    assert not {kind: value for kind, value in found.items() if not re.match(expected, str(value))}


@pytest.mark.parametrize("name", GIVEN)
def test_a_variable_that_is_given_is_discrete_by_its_type(name: str) -> None:
    few = 10 * (AGES % 4)
    as_numbers = outcome(GIVEN[name], few.astype(np.float64))
    as_labels = outcome(GIVEN[name], [f"group {value}" for value in few])
    assert not isinstance(as_numbers, str)
    assert not isinstance(as_labels, str)
    kinds = numbers(few)
    assert not differences(GIVEN[name], {kind: kinds[kind] for kind in FEW[:-1]}, as_numbers)
    kinds = {kind: labels(few)[kind] for kind in ("text", "categories", "ordered categories")}
    if name != "audit, control":  # the audit's curves take categories of numbers as numbers
        assert not differences(GIVEN[name], kinds, as_labels)
        assert not same(as_numbers, as_labels)


def test_the_command_reads_the_columns_of_a_table_as_python_does(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from frhsic_core.cli import command

    table = pd.DataFrame({"p": P, "age": AGES})
    # A file has no dates, so dates that are written as 1980-12-31 are dates there.
    for name in ("one odd cell", "percent", "identifiers"):
        given, text = REFUSED[name]
        table.assign(age=given).to_csv(tmp_path / "t.csv", index=False)
        done = CliRunner().invoke(
            command(), ["audit", str(tmp_path / "t.csv"), "--score", "p", "--sensitive", "age"]
        )
        assert done.exit_code == 2
        assert text.removeprefix("S ")[:30] in " ".join(done.output.split())
