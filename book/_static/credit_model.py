"""Audit a fitted credit model along age, adjust it if necessary, audit it again on other people, and save it.

    python credit_model.py                              # invented applicants; the script first trains a model
    python credit_model.py applicants.csv               # your applicants; it first trains a model on a third of them
    python credit_model.py applicants.csv model.joblib  # your applicants and your model, a scikit-learn classifier

The file has one row for each applicant, with the age and the outcome but without identifiers. Your model must have been
fitted on a DataFrame with the same names of columns, and not on these people. Write the names of your table into the
lines below. The script needs frhsic_core, and it writes to the current folder.
"""

from __future__ import annotations

import sys
import textwrap
from typing import Any

import joblib
import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from frhsic_core import AdjustedClassifier, audit

AGE, OUTCOME, BAD = "age", "default", "yes"  # two columns, and the outcome whose probability p the model predicts
LIMIT = 0.05  # adjust the model unless the whole interval of GDP, the mean gap along age, is below
APPROVED = 0.7  # share of the applicants who get a credit


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
    columns = make_column_transformer((words, make_column_selector(dtype_exclude="number")), remainder="passthrough")
    trees = HistGradientBoostingClassifier(learning_rate=0.05, random_state=0)
    return make_pipeline(columns, trees).fit(people.drop(columns=[AGE, OUTCOME]), people[OUTCOME])


def good_score(model: Any, people: pd.DataFrame) -> np.ndarray:
    """Return 1 − p, so that a high score is good and people above a threshold are approved."""
    p = model.predict_proba(people[list(model.feature_names_in_)])
    return 1 - p[:, list(model.classes_).index(BAD)]


def describe(name: str, model: Any, people: pd.DataFrame) -> tuple[float, float]:
    """Write a report, print what the model does to these people, and return its AUC and its calibration error."""
    score, repaid = good_score(model, people), (people[OUTCOME] != BAD).astype(int)
    cut = np.quantile(score, 1 - APPROVED)  # each model needs its own
    found = audit(score, sensitive_features=people[AGE], y_true=repaid, threshold=cut, model=name)
    found.save(f"audit_{name}.html")
    (low, high), auc, error = found.interval, found.performance["auc"], found[AGE].numbers["calibration"].value
    young, old = people[AGE] < people[AGE].quantile(0.25), people[AGE] > people[AGE].quantile(0.75)
    ok = score >= cut
    print(f"{name} GDP {found.gdp:.2f} ({low:.2f} to {high:.2f}), AUC {auc:.2f}, calibration error {error:.3f}")
    rates = f"{ok[young].mean():.0%} of the youngest quarter, {ok[old].mean():.0%} of the oldest"
    print(f"{name} approved {ok.mean():.0%} ({rates}); {1 - repaid[ok].mean():.1%} of the approved default")
    return auc, error


def main(table_file: str | None = None, model_file: str | None = None) -> None:
    """Audit, adjust, audit again, and save."""
    table = invented_applicants() if table_file is None else pd.read_csv(table_file)
    if not {AGE, OUTCOME} <= set(table) or BAD not in set(table[OUTCOME]):
        sys.exit(f"Set AGE, OUTCOME and BAD at the top of this script. The columns are: {', '.join(table)}.")
    table = table.dropna(subset=[AGE, OUTCOME]).sample(frac=1, random_state=0)
    if model_file is None:
        model_file, third = "credit_model.joblib", len(table) // 3
        joblib.dump(train(table[:third]), model_file)
        table = table[third:]  # people whom the model has not seen
    model = joblib.load(model_file)  # load only files that you trust
    first, others = table[: len(table) // 2], table[len(table) // 2 :]

    (verdict,) = audit(good_score(model, first), sensitive_features=first[AGE]).check(f"gdp={LIMIT}")
    print(verdict)
    if verdict.outcome == "below":
        print("No adjustment is necessary.")
        return

    adjusted = AdjustedClassifier(model, method="project", cv="prefit")  # later it needs no age of an applicant
    adjusted.fit(first[list(model.feature_names_in_)], first[OUTCOME], sensitive_features=first[AGE])

    print(f"On {len(others):,} people on whom nothing was fitted:")
    auc, error = describe("original", model, others)
    new_auc, new_error = describe("adjusted", adjusted, others)
    joblib.dump(adjusted, "adjusted_model.joblib")
    scores = {"score": good_score(model, others), "adjusted_score": good_score(adjusted, others)}
    others.assign(**scores).to_csv("scored.csv", index=False)
    print("Written: adjusted_model.joblib, scored.csv, audit_original.html, audit_adjusted.html\n")
    meaning = (
        f"What it means. The AUC changes from {auc:.2f} to {new_auc:.2f}. The AUC is the probability that a person who "
        "repays scores higher than one who defaults, so a lower AUC is a worse ranking. The calibration error, the "
        f"mean distance along age between the score and the share of people who repay, changes from {error:.3f} to "
        f"{new_error:.3f}. If defaults depend on age, a score with the same mean at every age cannot be calibrated at "
        "every age. So use the adjusted score to rank and approve people, and the original p for prices and provisions."
    )
    print(textwrap.fill(meaning, 100))


if __name__ == "__main__":
    main(*sys.argv[1:])
