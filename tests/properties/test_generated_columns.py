"""Every call on generated columns: the textbook's number, or a clear error.

Each test draws columns of every kind (see ``generated_columns.py``) and passes them to the public
statistics, metrics, estimators and commands. Where the textbook has a short formula, the number is
compared with it, in float64 and by brute force; elsewhere with the number of the same call for the
plain float64 array, from its median and in its unit. An error is clear if this library raised it,
not NumPy, pandas or torch on their own, and if it says more than a word.

``make test`` draws about 1,300 calls with a fixed seed, and the slow tests many more of the
statistics. ``FRHSIC_DRAWS=8`` draws eight times as many of all others, from another seed. Such long
draws still find faults: bfloat16 in an eraser has an unclear error, and where the offset of a score
is a trillion times its spread, or ordered words are audited, results agree to fewer digits.

It was proven able to fail on a copy of the tree in which one repair after the other was taken back:
one odd cell makes categories (``columns._require_words`` is not called); S is cast to the dtype of
Z (``_arrays.as_pair``); hidden values of a masked array are used (``arrays._without_mask``); squares
are expanded with a far row (``kernels.needs_differences`` is False); a numeric kernel takes words
(``kernels.require_kernel_of_codes``); ordered categories are their codes
(``columns._read_categories``); round thousands and, in files, "None" and "NA" are misread
(``cells.may_have_thousands``, ``csv_files._parse``); a comma at the end of lines shifts columns;
tiny units reach the solvers (``columns.SMALLEST``); an odd cell makes a column of X categories.
"""

from __future__ import annotations

import os
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import textbook
import torch
from generated_columns import LEVELS, Array, Drawn, draw_numbers, draw_words, exactly

import frhsic_core as fc
from frhsic_core.auditing import gdp_score
from frhsic_core.remedies import AdjustedClassifier, AdjustedRegressor, AttributeEraser

LIBRARY = str(Path(fc.__file__).parent)
SINGLE_DIGITS = (
    2e-4  # float32 has 6e-8, and sums of squares over some hundred pairs lose a few digits
)
DIGITS = 1e-8


# Outcomes ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """What a call returned, or its error."""

    value: Array | None
    error: Exception | None = None

    @property
    def is_clear(self) -> bool:
        """Whether the error was written for a user: by this library, in a sentence."""
        if not isinstance(self.error, ValueError | TypeError | MemoryError):
            return False
        raised_in = traceback.extract_tb(self.error.__traceback__)[-1].filename
        text = str(self.error)
        # scikit-learn's own checks of X and y speak to users, too.
        own = raised_in.startswith(LIBRARY) or "sklearn/utils" in raised_in
        return own and len(text) > 25 and "could not be converted" not in text


def outcome(call: Callable[[], Any]) -> Outcome:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = call()
        except Exception as error:
            return Outcome(None, error)
    if isinstance(found, torch.Tensor):
        found = found.detach().double().numpy()
    return Outcome(np.asarray(found, dtype=np.float64))


def agree(found: Array, expected: Array, *, digits: float, size: float = 1.0) -> bool:
    """Return whether two results agree up to rounding; ``size`` is that of the sums behind them."""
    found, expected = np.asarray(found), np.asarray(expected)
    if found.shape != expected.shape and found.size != expected.size:
        return False
    return bool(np.allclose(found.ravel(), expected.ravel(), rtol=digits, atol=digits * size))


class Tally:
    """Count outcomes, and keep what is wrong or unclear."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.faults: list[str] = []

    def add(self, about: str, found: Outcome, expected: Any, **options: float) -> None:
        """Count one call; without an expected number only a clear error is right."""
        if found.error is not None:
            if found.is_clear:
                self.counts["clear errors"] += 1
            else:
                self.fault("unclear", f"{about}: {type(found.error).__name__}: {found.error}")
        elif expected is None:
            self.fault("wrong", f"{about}: {found.value} where no number is right")
        elif agree(found.value, expected, **options):
            self.counts["equal"] += 1
        else:
            self.fault("wrong", f"{about}: {found.value} instead of {expected}")

    def fault(self, kind: str, text: str) -> None:
        self.counts[kind] += 1
        self.faults.append(f"{kind}: {text[:300]}")

    def require_none(self, *, equal: float) -> None:
        """Raise an error for any fault, and if fewer than a share of the calls gave numbers."""
        assert not self.faults, "\n".join([str(dict(self.counts)), *self.faults[:20]])
        assert self.counts["equal"] >= equal * self.counts.total(), dict(self.counts)


MORE = int(os.environ.get("FRHSIC_DRAWS", "1"))  # how many times as many draws


def calls(quick: int, long: int | None = None) -> Any:
    """Return seeds: a quick fixed one, and with ``long`` a slow one with many more draws."""
    cases = [pytest.param(7 if MORE == 1 else 8, quick * MORE, id="quick")]
    if long is not None:
        cases.append(pytest.param(8, long, id="long", marks=pytest.mark.slow))
    return pytest.mark.parametrize(("seed", "draws"), cases)


# Statistics with a formula ----------------------------------------------------------------------


@dataclass(frozen=True)
class Pair:
    """Two complete columns of numbers, as they were passed and as the truth."""

    z: Drawn
    s: Drawn

    @property
    def width(self) -> dict[str, float]:
        """Bandwidths near the size of the data; powers of two."""
        return {"z": spread(self.z.truth), "s": spread(self.s.truth)}

    @property
    def exact(self) -> tuple[Array, Array]:
        return self.z.truth / self.width["z"], self.s.truth / self.width["s"]

    @property
    def kernels(self) -> dict[str, Any]:
        return {
            "kernel_z": fc.Gaussian(2.0 * self.width["z"]),
            "kernel_s": fc.Laplacian(self.width["s"]),
        }

    @property
    def grams(self) -> tuple[Array, Array]:
        z, s = self.exact
        return textbook.gaussian(z, 2.0), textbook.laplacian(s, 1.0)

    @property
    def defaults(self) -> tuple[Array, Array]:
        z, s = self.exact
        return (
            textbook.gaussian(z, textbook.median_distance(z)),
            textbook.gaussian(s, textbook.median_distance(s)),
        )


def spread(values: Array) -> float:
    """Return the power of two near the median distance from the median; that of the unit if it is zero."""
    distance = np.abs(values - np.median(values))
    typical = np.median(distance[distance > 0]) if (distance > 0).any() else 1.0
    return float(2.0 ** np.clip(np.floor(np.log2(typical)), -1000, 1000))


@dataclass(frozen=True)
class Formula:
    """A call and the textbook's number for it, from a number of rows on."""

    call: Callable[[Pair], Any]
    number: Callable[[Pair], float]
    least: int = 1

    def expected(self, drawn: Pair) -> float | None:
        """Return the right number; None if only an error is right."""
        if not (drawn.z.complete and drawn.s.complete) or len(drawn.z.truth) < self.least:
            return None
        return self.number(drawn)


FORMULAS = {
    "hsic": Formula(
        lambda p: fc.hsic(p.z.given, p.s.given, **p.kernels),
        lambda p: textbook.hsic(*p.grams),
    ),
    "hsic, default kernels": Formula(
        lambda p: fc.hsic(p.z.given, p.s.given),
        lambda p: textbook.hsic(*p.defaults),
    ),
    "hsic, unbiased": Formula(
        lambda p: fc.hsic(p.z.given, p.s.given, estimator="unbiased", **p.kernels),
        lambda p: textbook.unbiased(*p.grams),
        least=4,
    ),
    "normalized_hsic": Formula(
        lambda p: fc.normalized_hsic(p.z.given, p.s.given),
        lambda p: textbook.normalized(*p.defaults),
    ),
    "normalized_hsic, linear": Formula(
        lambda p: fc.normalized_hsic(p.z.given, p.s.given, kernel_z="linear", kernel_s="linear"),
        lambda p: textbook.normalized(*[textbook.linear(x) for x in p.exact]),
    ),
    "HSICLoss": Formula(
        lambda p: fc.HSICLoss(1.0, **p.kernels)(p.z.given, p.s.given),
        lambda p: textbook.hsic(*p.grams),
    ),
    "distance_correlation": Formula(
        lambda p: fc.distance_correlation(p.z.given, p.s.given),
        lambda p: textbook.distance_correlation(*p.exact),
    ),
    "coco": Formula(
        lambda p: fc.coco(p.z.given, p.s.given, **p.kernels),
        lambda p: textbook.coco(*p.grams),
    ),
    "khgr": Formula(
        lambda p: fc.khgr(p.z.given, p.s.given, ridge=0.1, **p.kernels),
        lambda p: textbook.khgr(*p.grams, 0.1),
    ),
    "eipm": Formula(
        lambda p: fc.eipm(
            p.z.given,
            p.s.given,
            kernel_z=fc.Gaussian(2.0 * p.width["z"]),
            bandwidth=4.0 * p.width["s"],
        ),
        lambda p: textbook.eipm(p.grams[0], p.exact[1], 4.0),
        least=2,
    ),
    "hsic_bound, estimate": Formula(
        lambda p: fc.hsic_bound(p.z.given, p.s.given, **p.kernels).estimate,
        lambda p: textbook.hsic(*p.grams),
        least=2,
    ),
}
ROWS = (1, 2, 3, 5, 12, 30, 60)


def rows(rng: np.random.Generator) -> int:
    return int(rng.choice(ROWS, p=(0.02, 0.03, 0.05, 0.1, 0.2, 0.3, 0.3)))


def pair(rng: np.random.Generator, n: int) -> Pair:
    return Pair(draw_numbers(rng, n), draw_numbers(rng, n))


@calls(quick=80, long=1500)
@pytest.mark.parametrize("name", FORMULAS)
def test_a_statistic_is_the_textbooks_number(name: str, seed: int, draws: int) -> None:
    formula = FORMULAS[name]
    rng = np.random.default_rng([seed, len(name)])
    tally = Tally()
    for _ in range(draws):
        drawn = pair(rng, rows(rng))
        found = outcome(lambda drawn=drawn: formula.call(drawn))
        with np.errstate(over="ignore"):
            expected = formula.expected(drawn)
        single = drawn.z.single and drawn.s.single
        digits = SINGLE_DIGITS if single else DIGITS
        tally.add(f"{name}: {drawn.z.about} | {drawn.s.about}", found, expected, digits=digits)
    tally.require_none(equal=0.15)


# Everything that takes an attribute ---------------------------------------------------------------

N = 40
PEOPLE = np.random.default_rng(0)
X = PEOPLE.normal(size=(N, 3))
P = np.round(PEOPLE.uniform(0.05, 0.95, N), 3)
Y = (P + PEOPLE.normal(size=N) / 5 > 0.5).astype(int)
AGES = np.round(20.0 + 60.0 * P + 5.0 * PEOPLE.normal(size=N))
SHORT = {"epochs": 1, "batch_size": N, "random_state": 0, "device": "cpu"}


@dataclass(frozen=True)
class Entry:
    """A call with an attribute, whose unit and offset change nothing.

    Attributes
    ----------
    call : callable
        Takes the attribute, and the rows that are used.
    digits : float
        To how many digits results agree: a trained network computes in float32, and the p-value of
        random permutations may differ by one of them.
    words : bool
        Whether it takes words.
    skips : bool
        Whether rows without a value are left out; otherwise they are an error.
    """

    call: Callable[[Any, Any], Any]
    digits: float = 1e-6
    words: bool = True
    skips: bool = False


def fitted(estimator: Any, y: Array) -> Callable[[Any, Any], Any]:
    def call(s: Any, rows: Any) -> Any:
        return estimator.fit(X[rows], y[rows], sensitive_features=s).predict(X[rows])

    return call


def erased(eraser: Any) -> Callable[[Any, Any], Any]:
    return lambda s, rows: eraser.fit(X[rows], sensitive_features=s).transform(X[rows])


def adjusted(estimator: Any, y: Array) -> Callable[[Any, Any], Any]:
    def call(s: Any, rows: Any) -> Any:
        estimator.fit(X[rows], y[rows], sensitive_features=s)
        return estimator.predict(X[rows], sensitive_features=s)

    return call


def audited(s: Any, rows: Any) -> Any:
    numbers = fc.audit(P[rows], sensitive_features=s, y_true=Y[rows]).attributes[0].numbers
    return [numbers["gdp"].value, numbers["gdp"].high, numbers["gdp_over_sd"].value]


def linear_models() -> tuple[Any, Any]:
    from sklearn.linear_model import LinearRegression, LogisticRegression

    return AdjustedClassifier(LogisticRegression()), AdjustedRegressor(LinearRegression())


CLASSIFIER, REGRESSOR = linear_models()
ENTRIES = {
    "hsic": Entry(lambda s, rows: fc.hsic(X[rows], s)),
    "HSICLoss": Entry(lambda s, rows: fc.HSICLoss(1.0)(X[rows], s)),
    "normalized_hsic": Entry(lambda s, rows: fc.normalized_hsic(X[rows], s)),
    "hsic_test, gamma": Entry(lambda s, rows: fc.hsic_test(X[rows], s, method="gamma").pvalue),
    "hsic_test, linear kernels": Entry(
        lambda s, rows: (
            fc.hsic_test(X[rows], s, kernel_z="linear", kernel_s="linear", method="gamma").pvalue
        ),
        words=False,
    ),
    "hsic_test, permutations": Entry(
        lambda s, rows: fc.hsic_test(X[rows], s, n_permutations=99).pvalue, digits=0.02
    ),
    "mutual_information": Entry(lambda s, rows: fc.mutual_information(X[rows], s), words=False),
    "gdp": Entry(lambda s, rows: fc.gdp(P[rows], s), words=False),
    "gdp_curve": Entry(lambda s, rows: fc.gdp_curve(P[rows], s).gdp_high, words=False),
    "gdp_bound": Entry(lambda s, rows: fc.gdp_bound(P[rows], sensitive_features=s).bound),
    "gdp_score": Entry(
        lambda s, rows: gdp_score(Y[rows], P[rows], sensitive_features=s), skips=True
    ),
    "audit": Entry(audited, skips=True),
    "audit_representation": Entry(
        lambda s, rows: fc.audit_representation(X[rows], s, features=20).nonlinear_r2,
        digits=1e-4,
        words=False,
    ),
    "adjust_scores": Entry(lambda s, rows: fc.adjust_scores(P[rows], sensitive_features=s)),
    "adjust_scores, rank": Entry(
        lambda s, rows: fc.adjust_scores(P[rows], sensitive_features=s, method="rank"),
    ),
    "AttributeEraser": Entry(erased(AttributeEraser())),
    "KernelEraser": Entry(erased(fc.KernelEraser()), digits=1e-4),
    "AdjustedClassifier": Entry(adjusted(CLASSIFIER, Y)),
    "AdjustedRegressor": Entry(adjusted(REGRESSOR, P)),
    "FairClassifier": Entry(fitted(fc.FairClassifier(1.0, **SHORT), Y), digits=1e-3),
    "FairRegressor": Entry(fitted(fc.FairRegressor(1.0, **SHORT), P), digits=1e-3),
}
SLOW = ("audit", "audit_representation", "AdjustedClassifier", "adjust_scores, rank")


def plain(drawn: Drawn) -> tuple[Any, Array]:
    """Return the known values of a column as a plain array or list, and their rows."""
    known = np.flatnonzero(np.isfinite(drawn.truth))
    values = drawn.truth[known]
    if drawn.words:
        return [LEVELS[int(code)] for code in values], known
    return exactly(values), known


def expected_of(entry: Entry, drawn: Drawn) -> Any:
    """Return the result for the plain column; None if only an error is right."""
    if drawn.odd or (drawn.words and not entry.words):
        return None
    if not (drawn.complete or entry.skips):
        return None
    found = outcome(lambda: entry.call(*plain(drawn)))
    return found.value


@calls(quick=16)
@pytest.mark.parametrize("name", ENTRIES)
def test_unit_offset_and_kind_of_an_attribute_change_nothing(
    name: str, seed: int, draws: int
) -> None:
    entry = ENTRIES[name]
    rng = np.random.default_rng([seed, len(name)])
    tally = Tally()
    for _ in range(draws // 3 if name in SLOW else draws):
        draw = draw_words if rng.random() < 0.2 else draw_numbers
        drawn = draw(rng, N)
        found = outcome(lambda drawn=drawn: entry.call(drawn.given, slice(None)))
        expected = expected_of(entry, drawn)
        tally.add(f"{name}: {drawn.about}", found, expected, digits=entry.digits)
    tally.require_none(equal=0.4)


# Scores, and columns of X -------------------------------------------------------------------------


def standardized(values: Any) -> Array:
    """Return numbers without their unit and their offset."""
    values = np.asarray(values, dtype=np.float64)
    middle = values.mean(0)
    largest = np.abs(values - middle).max(0)
    safe = np.where(largest > 0.0, largest, 1.0)
    moved = (values - middle) / safe
    return moved / np.maximum(moved.std(0), 1e-6)


def gdp_of_scores(f: Any) -> Any:
    attribute = fc.audit(f, sensitive_features=AGES).attributes[0]
    return [attribute.numbers["gdp_over_sd"].value, attribute.pvalue]


SCORES: dict[str, Entry] = {
    "audit": Entry(lambda f, _: gdp_of_scores(f), digits=0.01, words=False),
    "adjust_scores": Entry(
        lambda f, _: standardized(
            fc.adjust_scores(f, sensitive_features=AGES, link="identity", keep_range=False)
        ),
        words=False,
    ),
    "hsic_test": Entry(lambda f, _: fc.hsic_test(f, AGES, method="gamma").pvalue, words=False),
    "distance_correlation": Entry(lambda f, _: fc.distance_correlation(f, AGES), words=False),
}


def table(x: Any) -> pd.DataFrame:
    """Return a table of features with a drawn column, kept in its kind where pandas has it."""
    column = x if isinstance(x, pd.Series) else pd.Series(list(np.asarray(x, dtype=object).ravel()))
    return pd.DataFrame({"drawn": column.to_numpy(), "other": X[:, 0], "third": X[:, 1]})


FEATURES: dict[str, Entry] = {
    "AttributeEraser": Entry(
        lambda x, _: standardized(
            AttributeEraser().fit(table(x), sensitive_features=AGES).transform(table(x))
        ),
        digits=1e-4,
    ),
    "FairClassifier": Entry(
        lambda x, _: (
            fc.FairClassifier(1.0, **SHORT)
            .fit(table(x), Y, sensitive_features=AGES)
            .predict_proba(table(x))
        ),
        digits=1e-3,
    ),
}


@calls(quick=16)
@pytest.mark.parametrize("name", SCORES)
def test_unit_offset_and_kind_of_scores_change_nothing(name: str, seed: int, draws: int) -> None:
    entry = SCORES[name]
    rng = np.random.default_rng([seed, len(name), 1])
    tally = Tally()
    for _ in range(draws):
        drawn = draw_numbers(rng, N)
        if not drawn.complete and not drawn.odd and name == "audit":
            continue  # leaves rows out, and AGES has all of them
        found = outcome(lambda drawn=drawn: entry.call(drawn.given, None))
        expected = None
        if drawn.complete:
            expected = outcome(lambda drawn=drawn: entry.call(exactly(drawn.truth), None)).value
        tally.add(f"{name}: {drawn.about}", found, expected, digits=entry.digits)
    tally.require_none(equal=0.3)


@calls(quick=16)
@pytest.mark.parametrize("name", FEATURES)
def test_unit_offset_and_kind_of_a_feature_change_nothing(name: str, seed: int, draws: int) -> None:
    """A missing number becomes the median, so it may be there; an odd cell may not."""
    entry = FEATURES[name]
    rng = np.random.default_rng([seed, len(name), 2])
    tally = Tally()
    for _ in range(draws):
        drawn = draw_numbers(rng, N)
        if np.ma.isMaskedArray(drawn.given) or np.isinf(np.asarray(drawn.truth)).any():
            continue
        found = outcome(lambda drawn=drawn: entry.call(drawn.given, None))
        expected = None
        if drawn.complete:
            expected = outcome(lambda drawn=drawn: entry.call(exactly(drawn.truth), None)).value
        elif not drawn.odd:
            continue  # infinity is an error, a missing value is filled in
        tally.add(f"{name}: {drawn.about}", found, expected, digits=entry.digits)
    tally.require_none(equal=0.3)


# Commands -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cells:
    """A column as the cells of a CSV file.

    Attributes
    ----------
    text : list of str
        The cells.
    truth : array or list
        The numbers or words that they mean, NaN or None where a cell is empty; None if a column
        like this must be refused.
    about : str
        What was drawn.
    """

    text: list[str]
    truth: Any
    about: str


NUMBER_FORMS = {
    "as they are": "{}",
    "exponents": "{:.17e}",
    "plus signs": "{:+}",
    "spaces": "  {} ",
    "quotes": '"{}"',
}
REFUSED_FORMS = {
    "percent signs": "{} %",
    "units": "{} years",
    "quotes inside": "\"'{}'\"",
    "formulas": '"=""{}"""',
    "a currency": "€{}",
}
MISSING_CELLS = ("", "NA", "null", "n/a", "None", "nan")


def draw_cells(rng: np.random.Generator) -> Cells:
    """Return an attribute as text: numbers in some form, or words."""
    if rng.random() < 0.2:
        words = [LEVELS[code] for code in rng.integers(0, len(LEVELS), N)]
        empty = int(rng.integers(N))
        words[empty] = ""
        return Cells(words, [word or None for word in words], "words")
    ages = rng.integers(18, 90, N) * float(rng.choice([1.0, 1.0, 0.25, 12.0]))
    if rng.random() < 0.15:
        thousands = [f"{1000.0 * age:,.0f}".replace(",", ".") for age in ages]
        thousands[0] = "950"
        return Cells(thousands, None, "thousands")
    if rng.random() < 0.2:
        name = list(REFUSED_FORMS)[int(rng.integers(len(REFUSED_FORMS)))]
        return Cells([REFUSED_FORMS[name].format(age) for age in ages], None, name)
    name = list(NUMBER_FORMS)[int(rng.integers(len(NUMBER_FORMS)))]
    text = [NUMBER_FORMS[name].format(age) for age in ages.tolist()]
    if rng.random() < 0.2:
        text[int(rng.integers(N))] = "60+"
        return Cells(text, None, f"{name}, an open group")
    truth = ages.copy()
    if rng.random() < 0.5:
        row = int(rng.integers(N))
        text[row] = str(rng.choice(MISSING_CELLS))
        truth[row] = np.nan
        name = f"{name}, {text[row]!r}"
    return Cells(text, truth, name)


def write(rng: np.random.Generator, path: Path, cells: Cells) -> str:
    """Write a table with the cells in some dialect, and return its name."""
    delimiter = str(rng.choice([",", ";", "\t"]))
    last = delimiter if rng.random() < 0.3 else ""
    end = str(rng.choice(["\n", "\r\n"]))
    lines = [delimiter.join(["id", "p", "age"])]
    for row, (score, cell) in enumerate(zip(P, cells.text, strict=True)):
        lines.append(delimiter.join([f"P{row}", f"{score}", cell]) + last)
    first = str(rng.choice(["", "", "\n"]))
    path.write_text(first + end.join(lines) + end, encoding="utf-8", newline="")
    return f"{delimiter!r}, end {last!r} {end!r}"


def status_and_text(*words: object) -> tuple[int, str]:
    from typer.testing import CliRunner

    from frhsic_core.cli import command

    done = CliRunner().invoke(command(), [str(word) for word in words])
    return done.exit_code, done.output


def by_audit(path: Path) -> Array:
    out = path.with_name("audit.html")
    status, text = status_and_text(
        "audit", path, "--score", "p", "--sensitive", "age", "--out", out
    )
    if status != 0:
        raise ValueError(text)
    (attribute,) = pd.read_json(out.with_suffix(".json"), typ="series")["attributes"]
    return np.array([attribute["numbers"]["gdp"]["value"]])


def by_adjust(path: Path) -> Array:
    out = path.with_name("adjusted.csv")
    status, text = status_and_text(
        "adjust", path, "--score", "p", "--sensitive", "age", "--out", out
    )
    if status != 0:
        raise ValueError(text)
    table = pd.read_csv(out, sep=None, engine="python", index_col=False)
    assert table["id"].tolist() == [f"P{row}" for row in range(N)]
    assert table["p"].tolist() == P.tolist()
    return table["p_adjusted"].to_numpy()


def true_audit(truth: Any) -> Array:
    return np.array([fc.audit(P, sensitive_features=truth).gdp])


def true_adjustment(truth: Any) -> Array:
    known = ~pd.isna(truth)
    values = pd.Series(truth)[known].to_list()
    scores = np.full(N, np.nan)
    scores[known] = fc.adjust_scores(P[known], sensitive_features=values)
    return scores


COMMANDS = {"audit": (by_audit, true_audit), "adjust": (by_adjust, true_adjustment)}


@calls(quick=14)
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_reads_what_the_cells_mean(
    name: str, seed: int, draws: int, tmp_path: Path
) -> None:
    command, truth = COMMANDS[name]
    rng = np.random.default_rng([seed, len(name), 3])
    counts: Counter[str] = Counter()
    for _ in range(draws):
        cells = draw_cells(rng)
        about = f"{name}: {cells.about}, {write(rng, tmp_path / 't.csv', cells)}"
        found = outcome(lambda: command(tmp_path / "t.csv"))
        if found.error is not None:
            assert cells.truth is None, f"{about}: {found.error}"
            assert isinstance(found.error, ValueError), about
            assert "'age'" in str(found.error), f"{about}: {found.error}"
            assert "Traceback" not in str(found.error), about
            counts["clear errors"] += 1
            continue
        assert cells.truth is not None, f"{about}: {found.value}"
        expected = outcome(lambda cells=cells: truth(cells.truth)).value
        assert np.allclose(found.value, expected, rtol=1e-9, atol=0, equal_nan=True), about
        counts["equal"] += 1
    assert counts["equal"] >= draws / 3, counts
