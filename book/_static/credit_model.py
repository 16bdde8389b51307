"""Audit a model of risk along age; unless GDP is below your limit, adjust it, audit it on other people, and save it.

    python credit_model.py                              # invented applicants; the script first trains a model
    python credit_model.py applicants.csv               # your applicants; it first trains a model on a third of them
    python credit_model.py applicants.csv model.joblib  # your applicants and your model, a scikit-learn classifier
    python credit_model.py applicants.csv model.joblib --age alter --outcome status --bad late --limit 0.04

The file has one row for each applicant, with the age and the outcome but without identifiers. Leave the outcome empty
where it is unknown, for example of people whom you rejected: the script corrects and approves their scores, too. Your
model must have been fitted on a DataFrame with the same names of columns, and not on these people. The options name the
columns and the bad outcome. The script needs frhsic_core, and it writes to the current folder.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from frhsic_core import AdjustedClassifier, audit, gdp, gdp_curve

OPTIONS = argparse.Namespace(
    age="age",
    outcome="default",
    bad="yes",  # the outcome whose probability p the model predicts
    measure="gdp",  # the mean gap along age; "gdp_over_sd" divides it by the standard deviation of the scores
    limit=0.05,  # your own choice: the model is adjusted unless the whole interval of the measure is below
    approve=0.7,  # your own choice: share of the applicants who get the credit
    blend=None,  # save (1 − t) · original + t · adjusted; None: the smallest of BLENDS that is below the limit
)
NAMES = {"gdp": "GDP", "gdp_over_sd": "GDP / sd"}
BLENDS = tuple(np.arange(1, 21) / 20)
TEXTS = 100  # different values of a column of words, at most
# GDP of other people differs by chance. Let σ be its standard error: the interval ends at 1.96 σ above it, and two
# estimates differ by less than 1.28 · √2 σ in nine of ten cases. So choose with this share of 1.96 σ left.
MARGIN = 1.28 * 2**0.5 / 1.96


def read_options(arguments: Sequence[str]) -> tuple[str | None, str | None]:
    """Read the options, and return the names of the table and of the model."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("table", nargs="?", help="CSV file with one row for each applicant")
    parser.add_argument(
        "model", nargs="?", help="fitted scikit-learn classifier, saved with joblib"
    )
    parser.add_argument("--age", help="column of the age")
    parser.add_argument("--outcome", help="column of the outcome")
    parser.add_argument(
        "--bad", help="value of the bad outcome, whose probability the model predicts"
    )
    parser.add_argument(
        "--measure", choices=list(NAMES), help="what the limit is for (now %(default)s)"
    )
    parser.add_argument(
        "--limit", type=float, help="largest value that you accept (now %(default)s)"
    )
    parser.add_argument(
        "--approve", type=float, help="share of the applicants that you approve (now %(default)s)"
    )
    parser.add_argument(
        "--blend",
        type=float,
        help="weight t of the adjusted score (otherwise the script chooses it)",
    )
    parser.set_defaults(**vars(OPTIONS))
    found = parser.parse_args(arguments)
    if found.blend is not None and not 0 < found.blend <= 1:
        parser.error(f"--blend is {found.blend:g}: give a weight above 0, at most 1")
    if not 0 < found.approve < 1:
        parser.error(f"--approve is {found.approve:g}: give a share between 0 and 1")
    vars(OPTIONS).update((name, getattr(found, name)) for name in vars(OPTIONS))
    return found.table, found.model


def invented_applicants(n: int = 9000) -> pd.DataFrame:
    """Return a table in which older people default less often, and two columns follow the age."""
    rng = np.random.default_rng(4)
    age = rng.uniform(21, 75, n)
    table = pd.DataFrame({"age": age, "income": rng.lognormal(10, 0.5, n)})
    table["years_at_address"] = (age - 20) * rng.random(n)
    table["job"] = np.where(age + 10 * rng.normal(size=n) > 62, "retired", "employed")
    risk = 1.5 - 0.06 * age + 2 * (10 - np.log(table["income"]))
    table["default"] = np.where(rng.logistic(size=n) < risk, "yes", "no")
    table.loc[rng.random(n) < 0.2, ["years_at_address", "job"]] = None  # unknown
    return table


def train(people: pd.DataFrame) -> Any:
    """Return a fitted pipeline: indicators of words, then boosted trees, which read missing numbers."""
    words = OneHotEncoder(handle_unknown="ignore", min_frequency=20, sparse_output=False)
    columns = make_column_transformer(
        (words, make_column_selector(dtype_exclude="number")), remainder="passthrough"
    )
    trees = HistGradientBoostingClassifier(learning_rate=0.05, random_state=0)
    X = people.drop(columns=[OPTIONS.age, OPTIONS.outcome])
    return make_pipeline(columns, trees).fit(X, people[OPTIONS.outcome])


def check(table: pd.DataFrame, model: Any) -> None:
    """Stop with a sentence that says what to change. The model is None if the script has yet to train it."""
    for option, name in (("age", OPTIONS.age), ("outcome", OPTIONS.outcome)):
        if name not in table:
            sys.exit(
                f"There is no column {name!r}: name yours with --{option}. There are {[*table]}."
            )
    if len(table.columns) < 3:
        sys.exit("A model needs more columns than the age and the outcome.")
    known, needed = (
        table.dropna(subset=[OPTIONS.age, OPTIONS.outcome]),
        200 if model is None else 150,
    )
    ages, outcomes = known[OPTIONS.age], known[OPTIONS.outcome]
    counts = outcomes.value_counts().to_dict()
    OPTIONS.bad = next(
        (v for v in counts if OPTIONS.bad in (str(v), str(v).removesuffix(".0"))), OPTIONS.bad
    )
    if OPTIONS.bad not in counts or len(counts) != 2:
        sys.exit(
            f"Set --bad, now {OPTIONS.bad!r}: {OPTIONS.outcome!r} needs two values and has {list(counts)[:9]}."
        )
    if len(known) < needed or min(counts.values()) < 30:
        sys.exit(
            f"Add people: {needed} with known age and outcome, 30 with each outcome. Now there are {counts}."
        )
    if not pd.api.types.is_numeric_dtype(ages) or ages.nunique() < 2:
        sys.exit(
            f"Write different numbers without units into the column {OPTIONS.age!r}. It has {ages.iloc[0]}."
        )
    read = table.drop(columns=[OPTIONS.age, OPTIONS.outcome]) if model is None else table
    for name in read if model is None else getattr(model, "feature_names_in_", ()):
        if (
            name in read
            and not pd.api.types.is_numeric_dtype(read[name])
            and read[name].nunique() > TEXTS
        ):
            sys.exit(
                f"Drop the column {name!r} or group its values: it has {read[name].nunique()} different texts."
            )
    if model is None:
        return
    if lacking := [
        name for name in ("predict_proba", "feature_names_in_") if not hasattr(model, name)
    ]:
        sys.exit(
            f"Fit a classifier that predicts probabilities, on a DataFrame: your model has no {lacking[0]}."
        )
    if missing := set(model.feature_names_in_) - set(table):
        sys.exit(
            f"Add the columns that the model reads and the table does not have: {', '.join(sorted(missing))}."
        )
    if set(model.classes_) != set(counts):
        sys.exit(
            f"Write the outcomes as the model has them, {model.classes_.tolist()}. Yours are {list(counts)}."
        )


def good_score(model: Any, people: pd.DataFrame) -> np.ndarray:
    """Return 1 − p, so that a high score is good and people above a threshold are approved."""
    p = model.predict_proba(people[list(model.feature_names_in_)])
    return 1 - p[:, list(model.classes_).index(OPTIONS.bad)]


def bad_share(good: Any, approved: Any) -> str:
    """Return how many of the approved people have the bad outcome."""
    return f"{1 - np.nanmean(good[approved]):.1%} of the approved have {OPTIONS.outcome} = {OPTIONS.bad}"


def repaid(people: pd.DataFrame) -> np.ndarray:
    """Return 1 for the good outcome, 0 for the bad one, and NaN where it is unknown."""
    outcome = people[OPTIONS.outcome]
    return np.where(outcome.isna(), np.nan, outcome != OPTIONS.bad)


def measured(score: np.ndarray, people: pd.DataFrame) -> tuple[float, float]:
    """Return the measure that the limit is for, and the upper end of its interval."""
    curve = gdp_curve(score, people[OPTIONS.age])
    unit = (score.std() or 1.0) if OPTIONS.measure == "gdp_over_sd" else 1.0
    return curve.gdp / unit, curve.gdp_high / unit


def approval_ratio(approved: np.ndarray, age: pd.Series) -> tuple[float, float, float]:
    """Return the ratio of the smaller to the larger share of approved people in the youngest and the oldest quarter."""
    young, old = (
        approved[age <= age.quantile(0.25)].mean(),
        approved[age >= age.quantile(0.75)].mean(),
    )
    return min(young, old) / max(young, old, 1e-9), young, old


def describe(name: str, model: Any, people: pd.DataFrame) -> dict[str, Any]:
    """Write a report, print what the model does, and return its numbers."""
    score, good = good_score(model, people), repaid(people)
    lowest, *higher = np.unique(score)
    cut = max(
        np.quantile(score, 1 - OPTIONS.approve), min(higher, default=lowest)
    )  # each model needs its own
    threshold = cut if higher else None
    found = audit(
        score, sensitive_features=people[OPTIONS.age], y_true=good, threshold=threshold, model=name
    )
    found.save(f"audit_{name}.html")
    numbers, (low, high), auc = found[OPTIONS.age].numbers, found.interval, found.performance["auc"]
    error, share = numbers["calibration"].value, numbers["gdp_over_sd"].value
    along = (
        numbers["impact_ratio"].value if higher else 1.0
    )  # the lowest approval rate at an age over the highest
    ok = score >= cut
    ratio, *rates = approval_ratio(ok, people[OPTIONS.age])
    gap = f"GDP {found.gdp:.3f} ({low:.3f} to {high:.3f}), GDP / sd {share:.2f}"
    print(f"{name} {gap}, AUC {auc:.2f}, calibration error {error:.3f}")
    quarters = (
        f"{rates[0]:.0%} of the youngest quarter, {rates[1]:.0%} of the oldest, ratio {ratio:.2f}"
    )
    print(
        f"{name} approved {ok.mean():.0%} ({quarters}; along age {along:.2f}); {bad_share(good, ok)}"
    )
    if abs(ok.mean() - OPTIONS.approve) > 0.02:
        print(
            f"{name}: people with equal scores are approved together, so the share is not {OPTIONS.approve:.0%}."
        )
    try:
        (verdict,) = found.check(f"{OPTIONS.measure}={OPTIONS.limit}")
    except ValueError as error:  # a limit that no scores could exceed
        sys.exit(f"Choose another --limit: {error}")
    return {
        "verdict": verdict,
        "auc": auc,
        "error": error,
        "share": share,
        "ratio": min(ratio, along),
        "cut": cut,
    }


def smallest_blend(model: Any, adjusted: Any, people: pd.DataFrame) -> float:
    """Return the smallest weight of the adjusted score whose interval is well below the limit, or 1."""
    old, new = good_score(model, people), good_score(adjusted, people)
    for t in BLENDS:
        gap, high = measured((1 - t) * old + t * new, people)
        if high + MARGIN * (high - gap) <= OPTIONS.limit:
            return float(t)
    return 1.0


def describe_blends(model: Any, adjusted: Any, people: pd.DataFrame, saved: float) -> None:
    """Print what other weights t would give: the score (1 − t) · original + t · fully adjusted."""
    old, new, good = good_score(model, people), good_score(adjusted, people), repaid(people)
    known, age = np.isfinite(good), people[OPTIONS.age]
    for t in sorted({0.25, 0.5, 0.75, 1.0} - {saved}):
        score = (1 - t) * old + t * new
        ok = score >= np.quantile(score, 1 - OPTIONS.approve)
        gap, auc, ratio = (
            gdp(score, age),
            roc_auc_score(good[known], score[known]),
            approval_ratio(ok, age)[0],
        )
        gaps = f"GDP {gap:.3f}, GDP / sd {gap / score.std():.2f}, AUC {auc:.2f}"
        print(f"blend t = {t:g}: {gaps}, ratio of quarters {ratio:.2f}; {bad_share(good, ok)}")


def main(*arguments: str) -> None:
    """Audit, adjust, audit again, and save."""
    table_file, model_file = read_options(arguments)
    if absent := [
        file for file in (table_file, model_file) if file is not None and not Path(file).is_file()
    ]:
        sys.exit(f"There is no file {absent[0]} in this folder.")
    table = invented_applicants() if table_file is None else pd.read_csv(table_file)
    model = (
        None if model_file is None else joblib.load(model_file)
    )  # load only files that you trust
    check(table, model)
    people = len(table)
    table = table.dropna(subset=[OPTIONS.age]).sample(frac=1, random_state=0)
    if len(table) < people:
        print(f"{people - len(table):,} people without age are left out.")
    if unknown := int(table[OPTIONS.outcome].isna().sum()):
        print(
            f"{unknown:,} people have no outcome. AUC, calibration error and bad outcomes are those of the others."
        )
    written = "audit_original (.html, .json, .md)"
    if model is None:
        if Path("credit_model.joblib").exists():
            sys.exit(
                "Remove or rename credit_model.joblib: the script would overwrite it with a new model."
            )
        third, written = len(table) // 3, f"credit_model.joblib, {written}"
        model, table = (
            train(table[:third].dropna(subset=[OPTIONS.outcome])),
            table[third:],
        )  # it has not seen these
        joblib.dump(model, "credit_model.joblib")
    first, second, others = (
        table[k::3] for k in range(3)
    )  # to adjust, to choose a blend, to audit it

    name, scores = NAMES[OPTIONS.measure], good_score(model, first)
    if OPTIONS.measure == "gdp" and OPTIONS.limit > scores.std() / 2:
        print(
            f"GDP is at most {scores.std():.3f}, the standard deviation (sd) of the scores, and your limit is more"
        )
        print(
            "than half of it. If bad outcomes are rare, use --measure gdp_over_sd, and a limit for GDP / sd."
        )
    if measured(scores, first)[1] <= OPTIONS.limit:
        print(f"On {len(first):,} people:")
        ratio = describe("original", model, first)["ratio"]
        print(f"{name} is below your limit, so nothing is adjusted. Written: {written}")
        if ratio < 0.8:
            print(
                f"But the lowest approval rate is about {ratio:.2f} of the highest: see the report."
            )
        return

    X = first[list(model.feature_names_in_)]
    y = first[OPTIONS.outcome].where(
        first[OPTIONS.outcome].notna(), model.predict(X)
    )  # only the names of the classes
    full = AdjustedClassifier(
        model, method="project", cv="prefit"
    )  # later it needs the model's columns only
    full.fit(X, y, sensitive_features=first[OPTIONS.age])
    blend = smallest_blend(model, full, second) if OPTIONS.blend is None else OPTIONS.blend
    both = [
        ("original", FrozenEstimator(model)),
        ("full", FrozenEstimator(full)),
    ]  # frozen: not fitted again
    adjusted = VotingClassifier(both, voting="soft", weights=[1 - blend, blend]).fit(
        X, y
    )  # their weighted mean

    print(
        f"On {len(others):,} people on whom nothing was fitted or chosen (adjusted: the blend t = {blend:g}):"
    )
    old, new = describe("original", model, others), describe("adjusted", adjusted, others)
    describe_blends(model, full, others, blend)
    below = new["verdict"].outcome == "below"
    print(
        f"The adjusted model is {'' if below else 'not shown to be '}below the limit: {new['verdict']}"
    )
    scores = {"score": good_score(model, others), "adjusted_score": good_score(adjusted, others)}
    scores = {
        name + "_of_model" * (name in others): score for name, score in scores.items()
    }  # keep your columns
    others.assign(**scores).to_csv("scored.csv", index=False)
    bad, good = (int((repaid(others) == value).sum()) for value in (0, 1))
    chance = (
        0.5 + ((bad + good) / (3 * bad * good)) ** 0.5
    )  # a random score has a larger AUC in 1 of 40
    usable = below and new["auc"] > chance
    if usable:
        joblib.dump(adjusted, "adjusted_model.joblib")
    saved = " adjusted_model.joblib," if usable else ""
    print(f"Written: {written}, audit_adjusted (.html, .json, .md),{saved} scored.csv\n")
    meaning = (
        f"What it means. The AUC changes from {old['auc']:.2f} to {new['auc']:.2f}. The AUC is the probability that a "
        f"person with {OPTIONS.outcome} = {OPTIONS.bad} scores lower than one without, so a lower AUC is a worse "
        "ranking. The calibration error, the mean distance along age between the score and the share of people with "
        f"the good outcome, changes from {old['error']:.3f} to {new['error']:.3f}. If outcomes depend on age, a score "
        "with the same mean at every age cannot be calibrated at every age. GDP also falls if all scores move closer "
        "together, which changes no decision. So compare GDP divided by the standard deviation (sd) of the scores: it "
        f"changes from {old['share']:.2f} to {new['share']:.2f}. "
    )
    if new["ratio"] < 0.8:
        meaning += f"The lowest approval rate is about {new['ratio']:.2f} of the highest, "
        meaning += "below four fifths. Chance lowers this estimate; the report has its interval. "
    if not below:
        meaning += (
            f"Do not use the adjusted score: {name} is not shown to be below {OPTIONS.limit}. "
        )
        larger = (
            "more people"
            if blend == 1
            else f"--blend {min(1.0, blend + 0.2):.2g} on other people, or more people"
        )
        meaning += f"Try {larger}."
    elif not usable:
        meaning += f"Do not use the adjusted score: the AUC is not above {chance:.2f}, which chance can reach."
    else:
        meaning += "If policy and law allow it, use the adjusted score to rank and approve people. "
        meaning += (
            "Use the original p for provisions. Prices set by it depend on age as much as before."
        )
    if OPTIONS.age in model.feature_names_in_:
        meaning += f" The model reads {OPTIONS.age}, so the adjusted model needs it of every applicant, too."
    print(textwrap.fill(meaning, 100))
    if not usable:
        sys.exit(1)
    deployment = (
        "To deploy the adjusted model, install the same versions of frhsic_core and scikit-learn on the machine that "
        'scores. There, model = joblib.load("adjusted_model.joblib") and '
        f"p = model.predict_proba(t)[:, list(model.classes_).index({OPTIONS.bad!r})] for a table t with the model's "
        f"columns. With {OPTIONS.approve:.0%} approved (--approve changes it), approve people whose 1 − p is at least "
        f"{new['cut']:.3f} (the original model: {old['cut']:.3f}). Every month write the ages "
        "of the new applicants and adjusted_score = 1 − p to a file, and audit it (outcomes are not needed): "
        f"frhsic audit month.csv --score adjusted_score --sensitive {OPTIONS.age} "
        f"--threshold {new['cut']:.3f} --fail-above {OPTIONS.measure}={OPTIONS.limit:g}. "
        f"Look at the share approved, too: it changes if the applicants do."
    )
    print("\n" + textwrap.fill(deployment, 100, break_long_words=False, break_on_hyphens=False))


if __name__ == "__main__":
    main(*sys.argv[1:])
