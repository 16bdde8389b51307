"""Choosing λ on a validation part: by an independence test, as the paper proposes, and by performance and GDP.

70 % of the rows train, 15 % choose, 15 % report. Every method of the main table is trained, so that the comparison of
methods, which the paper makes at the λ that is best on the *test* part, can be made at the λ chosen on the validation
part instead. The paper's rule is for FRHSIC; its tests are applied to every method. The study ``lambda_levels`` says
how often each test rejects independent samples at 5 %, at the sizes of the paper's validation parts of Crime and COMPAS
(299 and 925); Z has one dimension, as an output has, or fifty, as the paper's representation has.

The tables answer two questions. Which λ does the paper's rule take when its test is the released one, the corrected
gamma fit, or a calibrated one? And what becomes of a matched λ that is chosen on the validation part, instead of the
part that also reports, as in the paper's main table?
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from frhsic_core.paper.claims.answers import DRAWS, PROTOCOLS, TAIL, Answer, NotRun, Spread, query, rows_of
from frhsic_core.paper.experiments.presets import DATASETS, GRIDS, LIVE, METHODS, smoke
from frhsic_core.paper.experiments.shared.pareto import BAND, Frontiers, keeps, matched_chosen
from frhsic_core.paper.runs.plan import Experiment, Study, Task, units_of

if TYPE_CHECKING:
    from torch import Tensor

    from frhsic_core.data.dataset import Dataset
    from frhsic_core.learning.stack import TrainedStack
    from frhsic_core.paper.splits import SplitStack

FRACTIONS = (0.7, 0.15, 0.15)
# The paper's experiment has the first three of them.
SPLITS = tuple(range(42, 52))
# The released test looks at 1,000 random validation rows, or at all where there are fewer.
TEST_ROWS = 1000
PERMUTATIONS = 199

# Draws by sample size: a unit of the larger one takes a minute or two on a CPU.
LEVEL_DRAWS = {"smoke": {60: 40}, "full": {299: 600, 925: 200}}
DIMENSIONS = {60: (1, 8), 299: (1, 5, 50), 925: (1, 50)}
# The permutation test has its level by construction; a few draws of the smaller samples show it.
_PERMUTED_DRAWS = 200
_PERMUTED_ROWS = 299
_PERMUTATIONS = 99


def plan(preset: str) -> Experiment:
    """Return eight methods on five datasets, and FRHSIC on three datasets in the text's protocol as well."""
    reference = tuple(Task(name, "reference", "reference") for name in DATASETS)
    if preset == "smoke":
        return smoke(_sweep(reference, ("unfair", "frhsic")))
    text = tuple(Task(name, "text", "text") for name in ("crime", "compas", "adult"))
    # FRHSIC on a small sample of the synthetic law, for a cell of the chapter that trains again.
    live = replace(_sweep((LIVE,), ("frhsic",)), lams=(1.0, 50.0), epochs=40)
    return replace(_sweep(reference, METHODS), also=(_sweep(text, ("unfair", "frhsic")), live))


def _sweep(tasks: tuple[Task, ...], methods: tuple[str, ...]) -> Experiment:
    name = "lambda_selection"
    return Experiment(name, tasks, methods, GRIDS["full"], SPLITS, fractions=FRACTIONS, measure=name)


def measure(trained: TrainedStack, splits: SplitStack, data: Dataset) -> dict[str, Tensor]:
    """Apply the tests of ``critical_values.thresholds`` to Z and S on the validation part.

    Its names are for ``TEST_ROWS`` random rows (``validation_rows`` is their number). On all rows the names have the
    suffix ``_all``, without permutations, and ``validation_rows_all`` is the number.
    """
    import torch

    from frhsic_core.paper.experiments.critical_values import thresholds

    assert splits.x_validation is not None
    assert splits.s_validation is not None
    which = torch.tensor(trained.dataset, device=splits.x_validation.device)
    z = trained.encode(splits.x_validation)
    alive = torch.isfinite(z).all(-1).all(-1)
    z = torch.where(alive[:, None, None], z, 0.0)
    s = splits.s_validation[which]
    n = z.shape[-2]
    # One random order for each split: the rows tested first are the released test's.
    orders = [torch.randperm(n, generator=torch.Generator().manual_seed(seed)) for seed in splits.seeds]
    order = torch.stack(orders).to(z.device)[which]
    z = torch.take_along_dim(z, order.unsqueeze(-1), 1)
    s = torch.take_along_dim(s, order, 1)
    rows = min(TEST_ROWS, n)
    found = thresholds(z[:, :rows], s[:, :rows], permutations=PERMUTATIONS)
    found |= {f"{name}_all": value for name, value in thresholds(z, s).items()}
    found = {name: torch.where(alive.cpu(), value, torch.nan) for name, value in found.items()}
    sizes = {"validation_rows": rows, "validation_rows_all": n}
    return found | {name: torch.full((len(z),), float(value)) for name, value in sizes.items()}


def plan_lambda_levels(preset: str) -> Study:
    """Return samples of independent normal Z and uniform S; ``smoke`` has small ones."""
    name = "lambda_levels_smoke" if preset == "smoke" else "lambda_levels"
    units = [
        unit
        for rows, draws in LEVEL_DRAWS[preset].items()
        for unit in units_of(n=rows, d=DIMENSIONS[rows], draws=draws)
    ]
    return Study(name, "lambda_levels", tuple(units))


def measure_unit_lambda_levels(unit: dict[str, Any], device: str) -> list[dict[str, Any]]:
    """Return for each test how many of its ``draws`` it rejected, and its mean critical value."""
    import torch

    from frhsic_core.paper.experiments.critical_values import thresholds

    n = unit["n"]
    d = unit["d"]
    draws = unit["draws"]
    generator = torch.Generator().manual_seed(1000 * d + n)
    z = torch.randn(draws, n, d, generator=generator, dtype=torch.float64).to(device)
    s = torch.rand(draws, n, generator=generator, dtype=torch.float64).to(device)
    parts = dict.fromkeys(("released", "gamma", "spectral"), thresholds(z, s))
    if n <= _PERMUTED_ROWS:
        parts["permutation"] = thresholds(z[:_PERMUTED_DRAWS], s[:_PERMUTED_DRAWS], permutations=_PERMUTATIONS)
    return [
        {
            "test": test,
            "draws": len(part["statistic"]),
            "rejected": int((part["statistic"] > part[f"threshold_{test}"]).sum()),
            "threshold": float(part[f"threshold_{test}"].mean()),
            "statistic": float(part["statistic"].mean()),
        }
        for test, part in parts.items()
    ]


# Tables and queries --------------------------------------------------------------------------------------------------

KEYS = ["dataset", "method", "split"]


def accepted(rows: pd.DataFrame, *, test: str, all_rows: bool = False, epsilon: float | None = None) -> pd.Series:
    """Return whether a test does not reject each model; with ``epsilon``, also where HSIC_b is below it.

    ``all_rows`` uses every validation row instead of 1,000. ``epsilon`` is the paper's practical variant.
    """
    end = "_all" if all_rows else ""
    statistic = rows[f"statistic{end}"]
    kept = statistic <= rows[f"threshold_{test}{end}"]
    if epsilon is not None:
        kept |= statistic / rows[f"validation_rows{end}"] < epsilon
    return kept


def selected(
    rows: pd.DataFrame, *, test: str, all_rows: bool = False, epsilon: float | None = None, band: float = BAND
) -> pd.DataFrame:
    """Return what the paper's rule selects on each split of each dataset, and what that model is like on the test part.

    The smallest λ accepted; where none is, the largest, and ``satisfied`` is False. ``kept``: performance within
    ``band`` of that of Unfair; ``constant``: within half a point of accuracy (or 1 % of the error) of the best constant
    prediction.
    """
    unfair = rows[rows["method"] == "unfair"].set_index(["dataset", "split"])["performance"]
    swept = rows[rows["method"] != "unfair"]
    ok = accepted(swept, test=test, all_rows=all_rows, epsilon=epsilon)
    # The smallest λ of those accepted, or else the largest of all.
    swept = swept.assign(satisfied=ok, order=swept["lam"].where(ok, -swept["lam"]))
    chosen = swept.sort_values(["satisfied", "order"], ascending=[False, True]).drop_duplicates(KEYS).sort_values(KEYS)
    # Stored values are float32; limits and means are computed in double precision.
    measures = ["gdp_reference", "gdp_sample", "nonlinear_r2"]
    chosen = chosen.astype(dict.fromkeys(["performance", "constant", *measures], float))
    p, constant, regression = chosen["performance"], chosen["constant"], chosen["task"] == "regression"
    base = unfair.loc[pd.MultiIndex.from_frame(chosen[["dataset", "split"]])].to_numpy(float)
    table = chosen[[*KEYS, "lam", "satisfied", "performance"]].assign(
        unfair=base,
        kept=keeps(p, base, higher=~regression, band=band),
        constant=np.where(regression, p >= 0.99 * constant, (p - constant).abs() < 0.005),
    )
    return table.join(chosen[measures]).reset_index(drop=True)


def counted(table: pd.DataFrame) -> str:
    """Return the λ that were selected and on how many splits; splits without one are not among them.

    Examples
    --------
    >>> counted(pd.DataFrame({"lam": [5.0, 0.5, 5.0, 500.0], "satisfied": [True, True, True, False]}))
    '0.5 ×1, 5 ×2'
    """
    found = table.loc[table["satisfied"], "lam"].value_counts().sort_index()
    return ", ".join(f"{lam:g} ×{n}" for lam, n in found.items()) or "–"


def summary_of(table: pd.DataFrame) -> dict[str, float | int | str]:
    """Return what a rule selects, from :func:`selected`; ``none`` counts the splits on which it selects nothing.

    ``kept`` and ``constant`` count the models of the ``found`` splits with a selection, and the means of ``gdp`` and
    ``nonlinear_r2`` are over these alone: the largest λ, which the paper's rule falls back on, is no selection.
    """
    met = table[table["satisfied"]]
    return {
        "selected": counted(table),
        "none": len(table) - len(met),
        "found": len(met),
        "kept": int(met["kept"].sum()),
        "constant": int(met["constant"].sum()),
        "gdp": float(met["gdp_reference"].mean()),
        "nonlinear_r2": float(met["nonlinear_r2"].mean()),
    }


def chosen_elsewhere(rows: pd.DataFrame) -> pd.DataFrame:
    """Return, for each dataset and method, what becomes of the matched λ that is chosen on the validation part.

    Means over splits: ``gdp_test`` and ``gdp_validation`` are the test GDP at the matched λ chosen on either part,
    ``outside`` is the share of splits in which the λ chosen on the validation part loses more than 1 % on the test
    part, and ``same`` the share in which both parts choose the same λ.
    """
    tables = []
    for dataset, part in rows.groupby("dataset"):
        validation = Frontiers.from_rows(
            part, dependence="validation_gdp_reference", performance="validation_performance"
        )
        test = Frontiers.from_rows(part)
        honest = matched_chosen(validation, test)
        best = matched_chosen(test, test)
        columns = {
            "gdp_test": best["dependence"].mean(0),
            "gdp_validation": honest["dependence"].mean(0),
            "outside": (honest["loss"] > BAND).mean(0),
            "same": (honest["lam"] == best["lam"]).mean(0),
        }
        tables.append(pd.DataFrame({"dataset": dataset, "method": test.methods, **columns}))
    return pd.concat(tables, ignore_index=True)


def _each_protocol(datasets: list[str], answer: Callable[[pd.DataFrame], tuple[Any, Any, str]]) -> Answer:
    """Answer from the rows of FRHSIC and Unfair in each protocol that has all of the datasets."""
    values = {}
    spreads = {}
    notes = []
    rows = rows_of("lambda_selection")
    rows = rows[rows["method"].isin(["unfair", "frhsic"]) & rows["dataset"].isin(datasets)]
    for protocol in PROTOCOLS:
        part = rows[rows["protocol"] == protocol]
        if set(part.loc[part["method"] == "frhsic", "dataset"]) != set(datasets):
            notes.append(f"{protocol}: not trained yet")
            continue
        value, ends, note = answer(part)
        values[protocol] = value
        if ends is not None:
            spreads[protocol] = Spread(ends[0], value, ends[1])
        notes.append(f"{protocol}, {part['split'].nunique()} splits: {note}")
    if not values:
        raise NotRun(f"not run yet (no stored rows of 'lambda_selection' on {', '.join(datasets)})")
    return Answer(values, spreads, spreads, note="; ".join(notes), measure="grid value")


@query
def selected_end(datasets: list[str], end: str, splits: int = 3, test: str = "released") -> Answer:
    """Return the smallest or largest λ that the paper's rule selects; the interval is that of three splits."""

    def answer(rows: pd.DataFrame) -> tuple[float, tuple[float, float], str]:
        table = selected(rows, test=test)
        reduce = np.nanmin if end == "min" else np.nanmax
        # A split on which nothing is accepted selects nothing; an experiment in which none does has no end.
        lams = [part["lam"].where(part["satisfied"]).to_numpy() for _, part in table.groupby("dataset")]
        rng = np.random.default_rng(0)
        drawn = np.concatenate([lam[rng.integers(0, len(lam), (DRAWS, splits))] for lam in lams], axis=1)
        ends = reduce(drawn[~np.isnan(drawn).all(1)], axis=1)
        low, high = np.quantile(ends, [TAIL, 1.0 - TAIL], method="nearest")
        counts = table["lam"].where(table["satisfied"]).value_counts(dropna=False).sort_index()
        shown = ", ".join(f"{'none' if np.isnan(lam) else f'{lam:g}'} ×{n}" for lam, n in counts.items())
        return float(np.quantile(ends, 0.5, method="nearest")), (float(low), float(high)), f"selected {shown}"

    return _each_protocol(datasets, answer)


@query
def selected_keeps(datasets: list[str], test: str = "released", band: float = BAND) -> Answer:
    """Return whether every model that the paper's rule selects keeps the performance of Unfair within ``band``."""

    def answer(rows: pd.DataFrame) -> tuple[bool, None, str]:
        table = selected(rows, test=test, band=band)
        met = table[table["satisfied"]]
        note = f"{int(met['kept'].sum())} of {len(met)} selections keep it, {int(met['constant'].sum())} are constant"
        return bool(met["kept"].all()), None, note

    return _each_protocol(datasets, answer)


@query
def rejects_everywhere(dataset: str, test: str = "released") -> Answer:
    """Return whether the test rejects at every λ on every split."""

    def answer(rows: pd.DataFrame) -> tuple[bool, None, str]:
        part = rows[rows["method"] == "frhsic"]
        kept = accepted(part, test=test)
        shares = [f"{name} {int((~accepted(part, test=name)).sum())}" for name in ("released", "gamma", "permutation")]
        note = f"rejected of {len(part)}: {', '.join(shares)}"
        return not bool(kept.any()), None, note

    return _each_protocol([dataset], answer)


@query
def selection_gdp_near_zero(dataset: str, lam: float, limit: float = 0.05) -> Answer:
    """Return whether mean GDP at one λ is at most ``limit``, the tolerance used for the authors' stored runs."""

    def answer(rows: pd.DataFrame) -> tuple[bool, None, str]:
        part = rows[(rows["method"] == "frhsic") & np.isclose(rows["lam"], lam)]
        gdp = part["gdp_reference"].astype(float)
        return bool(gdp.mean() <= limit), None, f"mean {gdp.mean():.3f}, from {gdp.min():.3f} to {gdp.max():.3f}"

    return _each_protocol([dataset], answer)
