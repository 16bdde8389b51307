"""Choosing λ on a validation part: by an independence test, as the paper proposes, and by performance and GDP.

70 % of the rows train, 15 % choose, 15 % report. Every method of the main table is trained, so that the comparison of
methods, which the paper makes at the λ that is best on the *test* part, can be made at the λ chosen on the validation
part instead. The paper's rule is for FRHSIC; its tests are applied to every method. The study ``lambda_levels`` says
how often each test rejects independent samples at 5 %, at the sizes of the paper's validation parts of Crime and COMPAS
(299 and 925); Z has one dimension, as an output has, or fifty, as the paper's representation has.

The tables answer two questions. Which λ does the paper's rule take when its test is the released one, the corrected
gamma fit, or a calibrated one? And how much better do methods look when λ is chosen on the part that also reports, as
in the paper's main table, than when it is chosen on a validation part?
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from frhsic_core.paper.claims.answers import DRAWS, PROTOCOLS, TAIL, Answer, NotRun, Spread, query, rows_of
from frhsic_core.paper.experiments.presets import DATASETS, GRIDS, LIVE, METHODS, smoke
from frhsic_core.paper.experiments.shared.pareto import BAND, GRID, Frontiers, by_split, keeps, matched_chosen
from frhsic_core.paper.runs.plan import Experiment, Study, Task, units_of

if TYPE_CHECKING:
    from torch import Tensor

    from frhsic_core.data.dataset import Dataset
    from frhsic_core.learning.stack import TrainedStack
    from frhsic_core.paper.splits import SplitStack

FRACTIONS = (0.7, 0.15, 0.15)
# The paper's experiment has three splits, 42 to 44.
SPLITS = {"text": tuple(range(42, 45)), "full": tuple(range(42, 52))}
# The released test looks at 1,000 random validation rows, or at all where there are fewer.
TEST_ROWS = 1000
PERMUTATIONS = 199

# Draws by sample size: a unit of the larger one takes a minute or two on a CPU.
LEVEL_DRAWS = {"smoke": {60: 40}, "text": {299: 200, 925: 200}, "full": {299: 600, 925: 200}}
DIMENSIONS = {60: (1, 8), 299: (1, 5, 50), 925: (1, 50)}
# The permutation test has its level by construction; a few draws of the smaller samples show it.
_PERMUTED_DRAWS = 200
_PERMUTED_ROWS = 299
_PERMUTATIONS = 99


def plan(preset: str) -> Experiment:
    """Return FRHSIC on the paper's three datasets and splits (``text``), or eight methods, five datasets, ten splits.

    ``full`` trains the reference protocol, and FRHSIC on the paper's three datasets in the text's as well.
    """
    tasks = tuple(Task(name, "text", "text") for name in ("crime", "compas", "adult"))
    text = _sweep(tasks, ("unfair", "frhsic"), SPLITS["text" if preset == "text" else "full"])
    if preset == "text":
        return text
    reference = tuple(Task(name, "reference", "reference") for name in DATASETS)
    if preset == "smoke":
        return smoke(_sweep(reference, ("unfair", "frhsic"), ()))
    # FRHSIC on a small sample of the synthetic law, for a cell of the chapter that trains again.
    live = replace(_sweep((LIVE,), ("frhsic",), SPLITS["full"]), lams=(1.0, 50.0), epochs=40)
    return replace(_sweep(reference, METHODS, SPLITS["full"]), also=(text, live))


def _sweep(tasks: tuple[Task, ...], methods: tuple[str, ...], splits: tuple[int, ...]) -> Experiment:
    name = "lambda_selection"
    return Experiment(name, tasks, methods, GRIDS["full"], splits, fractions=FRACTIONS, measure=name)


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


def acceptance(rows: pd.DataFrame, *, test: str) -> pd.DataFrame:
    """Return the share of splits accepted at each λ, a line for each dataset; ``monotone``: splits that never go back.

    Going back is to accept a λ and to reject a larger one.
    """
    rows = rows[rows["method"] != "unfair"]
    rows = rows.assign(accepted=accepted(rows, test=test).to_numpy())
    shares = rows.groupby(["dataset", "lam"])["accepted"].mean().unstack("lam")
    paths = rows.set_index(["dataset", "split", "lam"])["accepted"].unstack("lam").sort_index(axis=1)
    never_back = pd.Series((np.diff(paths.to_numpy().astype(int), axis=1) >= 0).all(axis=1), index=paths.index)
    return shares.assign(monotone=never_back.groupby("dataset").mean())


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


def sweep_pair(rows: pd.DataFrame) -> tuple[Frontiers, Frontiers]:
    """Return the sweeps of one dataset measured on the validation part and on the test part."""
    dependence = "validation_gdp_reference"
    validation = Frontiers.from_rows(rows, dependence=dependence, performance="validation_performance")
    return validation, Frontiers.from_rows(rows)


def area_chosen(choosing: Frontiers, reporting: Frontiers) -> tuple[np.ndarray, np.ndarray]:
    r"""Return nAUP of the models that one part would choose, reported on another; ``(splits, methods)`` each.

    The choosing part keeps the models that none of the same method dominates and prefers those of higher utility; the
    reporting part measures:

    .. math:: \int_0^1 u^{\text{test}}_{\lambda(g)}\,dg,\qquad \lambda(g) = \arg\max\{u^{\text{val}}_\lambda :
        \lambda \text{ kept},\ g^{\text{test}}_\lambda \le g\},

    utilities normalised on the reporting part as in :func:`frhsic_core.paper.experiments.shared.pareto.naup`. It is at
    most nAUP of the reporting part, and nAUP with the same part twice. The second array is what a budget promised on
    the choosing part is exceeded by on the other, ∫ max(g^test − g, 0) dg with λ(g) chosen by g^val ≤ g, over the
    budgets for which there is a model.
    """
    sign = 1.0 if reporting.higher else -1.0
    u_choose = sign * by_split(choosing.performance)
    u = sign * by_split(reporting.performance)
    everything = np.concatenate([u.reshape(len(u), -1), sign * reporting.unfair_performance[:, None]], axis=1)
    low = everything.min(1)[:, None, None]
    high = everything.max(1)[:, None, None]
    u = (u - low) / np.where(high > low, high - low, 1.0)

    def budget(sweep: Frontiers) -> np.ndarray:
        scale = np.where(sweep.unfair_dependence > 0, sweep.unfair_dependence, 1.0)
        return np.clip(by_split(sweep.dependence) / scale[:, None, None], 0.0, 1.0)

    g = by_split(choosing.dependence)
    lower = g[..., None, :] <= g[..., :, None]
    better = u_choose[..., None, :] >= u_choose[..., :, None]
    strictly = (g[..., None, :] < g[..., :, None]) | (u_choose[..., None, :] > u_choose[..., :, None])
    kept = np.asarray(~(lower & better & strictly).any(-1))
    trapezium = np.full(GRID.size, GRID[1] - GRID[0])
    trapezium[[0, -1]] /= 2

    def chosen(within: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the preferred model for each budget, and whether there is one."""
        return np.where(within, u_choose[..., None], -np.inf).argmax(-2), np.asarray(within.any(-2))

    place, found = chosen((budget(reporting)[..., None] <= GRID) & kept[..., None])
    area = (np.where(found, np.take_along_axis(u, place, -1), 0.0) * trapezium).sum(-1)
    place, found = chosen(budget(choosing)[..., None] <= GRID)
    over = np.maximum(np.take_along_axis(budget(reporting), place, -1) - GRID, 0.0)
    return area, (np.where(found, over, 0.0) * trapezium).sum(-1) / np.maximum((found * trapezium).sum(-1), 1e-12)


def optimism(rows: pd.DataFrame) -> pd.DataFrame:
    """Return, for each dataset and method, what choosing on the test part adds; means over splits, and places.

    ``gdp_test``/``gdp_validation``: test GDP at the matched λ chosen on either part; ``outside``: share of splits in
    which the λ chosen on the validation part loses more than 1 % on the test part; ``naup_test``/``naup_validation``
    and the places by them; ``overshoot`` of the budget; ``same``: share of splits with the same matched λ.
    """
    tables = []
    for dataset, part in rows.groupby("dataset"):
        validation, test = sweep_pair(part)
        honest = matched_chosen(validation, test)
        best = matched_chosen(test, test)
        area, over = area_chosen(validation, test)
        top, _ = area_chosen(test, test)
        means = {
            "gdp_test": best["dependence"],
            "gdp_validation": honest["dependence"],
            "outside": honest["loss"] > BAND,
            "same": honest["lam"] == best["lam"],
            "naup_test": top,
            "naup_validation": area,
            "overshoot": over,
        }
        columns = {name: values.mean(0) for name, values in means.items()}
        tables.append(pd.DataFrame({"dataset": dataset, "method": test.methods, **columns, "splits": test.splits}))
    table = pd.concat(tables, ignore_index=True)
    places = table.groupby("dataset")
    for name in ("test", "validation"):
        table[f"place_{name}"] = places[f"naup_{name}"].rank(ascending=False, method="min").astype(int)
        table[f"gdp_place_{name}"] = places[f"gdp_{name}"].rank(method="min").astype(int)
    return table


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
