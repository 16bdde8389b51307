"""Equal opportunity on Adult and COMPAS, and two sensitive attributes on Adult: options of FRHSIC at equal λ.

**Equal opportunity.** The paper's table (``tab:eo``) compares FRHSIC on all rows (DP) with FRHSIC on the rows with
y = 1 (EO). In the released code the two differ in the bandwidths as well: medians in one, σ = 1 on both sides in the
other. Here both rules are trained on both sets of rows, so that the two changes can be separated.

**Several attributes.** The paper's table (``tab:multi_s``) has one run of each form on age and hours per week. "Joint"
is called a product kernel there; the released code has one Gaussian on the vector with one bandwidth, which is a
product of two Gaussians of equal bandwidth. The sum adds two criteria, each with its own median: at equal λ about twice
the penalty; half of λ is trained as well.

An *option* is a departure from the protocol (which rows the penalty uses, which kernel it has), and its name is stored
in the rows. Options are compared λ by λ over the same splits. Lower is better in every column but ``performance``. The
spread that matters for a table of single runs is that of one run; for the question which option is better, that of a
mean over splits. Where the paper printed a single run, the interval of a query is that of one run: for GDP, which is
skewed, the range over our splits.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from frhsic_core.paper.claims.answers import PROTOCOLS, Answer, mean_of_runs, query, rows_of
from frhsic_core.paper.claims.relevance import RELEVANT
from frhsic_core.paper.experiments.main import shared_noise
from frhsic_core.paper.experiments.presets import LIVE, SPLITS, smoke
from frhsic_core.paper.experiments.shared.paired import compare_all, corrected_scale, t_interval
from frhsic_core.paper.experiments.shared.pareto import BAND
from frhsic_core.paper.runs.plan import Experiment, Settings, Task
from frhsic_core.paper.runs.stored import printed_cells

if TYPE_CHECKING:
    from torch import Tensor

    from frhsic_core.data.dataset import Dataset
    from frhsic_core.learning.stack import TrainedStack
    from frhsic_core.paper.splits import SplitStack

# Median distance of Z, in bandwidths, beyond which the guard of the training loop warns.
ESCAPE = 3.0
# The text names four λ. The released script of equal opportunity has 5 as well, that of several attributes all seven.
GRIDS = {"text": (0.1, 1.0, 10.0, 50.0), "full": (0.1, 1.0, 5.0, 10.0, 50.0, 100.0, 500.0)}
DATASETS = ("compas", "adult")
_BIASED: Settings = (("estimator", "biased"), ("scale", None))
_MEDIANS: Settings = (*_BIASED, ("bandwidth", "reference"), ("bandwidth_s", "first_1000"))
_UNIT: Settings = (*_BIASED, ("bandwidth", 1.0), ("bandwidth_s", 1.0))
_TEXT: Settings = (*_BIASED, ("bandwidth", "every_20_epochs"), ("bandwidth_s", "median"))
# The released EO penalty is zero in a batch with ten positives or fewer.
_POSITIVES: Settings = (("condition", "positives"), ("minimum_rows", 11))
#: Rows that the penalty uses × bandwidth rule, reference protocol. ``dp`` and ``eo`` are the paper's.
OPTIONS: dict[str, Settings] = {
    "dp": _MEDIANS,
    "eo": (*_UNIT, *_POSITIVES),
    "eo_medians": (*_MEDIANS, *_POSITIVES),
    "dp_unit": _UNIT,
}
# The text states one bandwidth rule and no other for EO.
TEXT_OPTIONS: dict[str, Settings] = {"dp": _TEXT, "eo": (*_TEXT, *_POSITIVES)}

PAIR: Settings = (("sensitive", ("age", "hours-per-week")),)
ATTRIBUTES = ("joint", "product", "sum")


def plan_equal_opportunity(preset: str) -> Experiment:
    """Return both options, and in ``full`` both bandwidth rules on both sets of rows; Unfair beside them."""
    tasks = tuple(Task(name, "text", "text") for name in DATASETS)
    reference = tuple(Task(name, "reference", "reference") for name in DATASETS)
    name = "equal_opportunity"
    if preset == "smoke":
        return smoke(_trained(name, reference, OPTIONS, (), ()))
    if preset == "text":
        return _trained(name, tasks, TEXT_OPTIONS, GRIDS["text"], SPLITS["text"])
    text = _trained(name, tasks, TEXT_OPTIONS, GRIDS["full"], SPLITS["full"])
    # The two options of the paper's table four times more on its λ and five splits, from other initial weights.
    again = Experiment(
        name, reference, ("frhsic",), GRIDS["text"], SPLITS["text"], repeats=(1, 2, 3, 4),
        options=tuple((option, OPTIONS[option]) for option in ("dp", "eo")), measure=name,
    )  # fmt: skip
    # Two options on a small sample of the synthetic law, for a cell of the chapter that trains again.
    few = {option: OPTIONS[option] for option in ("dp", "eo_medians")}
    live = _trained(name, (LIVE,), few, (1.0,), SPLITS["full"], epochs=40)
    return _trained(name, reference, OPTIONS, GRIDS["full"], SPLITS["full"], also=(text, live, again))


def plan_multi_sensitive(preset: str) -> Experiment:
    """Return joint, product and sum; in ``full`` the sum also at half of every λ."""
    name = "multi_sensitive"
    text_forms, forms = (
        {form: (*settings, ("attributes", form)) for form in ATTRIBUTES} for settings in (_TEXT, _MEDIANS)
    )
    text, reference = ((Task("adult", protocol, protocol, PAIR),) for protocol in ("text", "reference"))
    if preset == "smoke":
        return smoke(_trained(name, reference, forms, (), ()), sensitive=("s", "x2"))
    if preset == "text":
        return _trained(name, text, text_forms, GRIDS["text"], SPLITS["text"])
    halves = tuple(lam / 2 for lam in GRIDS["full"] if lam / 2 not in GRIDS["full"])
    half = Experiment(
        name, reference, ("frhsic",), halves, SPLITS["full"], options=(("sum", forms["sum"]),), measure=name
    )
    also = (half, _trained(name, text, text_forms, GRIDS["text"], SPLITS["full"]))
    return _trained(name, reference, forms, GRIDS["full"], SPLITS["full"], also=also)


def _trained(
    name: str,
    tasks: tuple[Task, ...],
    options: dict[str, Settings],
    lams: tuple[float, ...],
    splits: tuple[int, ...],
    *,
    epochs: int = 200,
    also: tuple[Experiment, ...] = (),
) -> Experiment:
    """Return an experiment that trains every option, and Unfair."""
    unfair = Experiment(name, tasks, ("unfair",), lams, splits, epochs=epochs, measure=name)
    return Experiment(
        name, tasks, ("frhsic",), lams, splits, options=tuple(options.items()), epochs=epochs, measure=name,
        also=(unfair, *also),
    )  # fmt: skip


def _on_test_part(trained: TrainedStack, splits: SplitStack) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return Z, the output, S and whether a model is finite; one that is not gets zeros in place of Z and output."""
    import torch

    z, output = trained.forward(splits.x_test)
    alive = torch.isfinite(z).all(-1).all(-1) & torch.isfinite(output).all(-1)
    z = torch.where(alive[:, None, None], z, 0.0)
    output = torch.where(alive[:, None], output, 0.0).double()
    return z, output, splits.s_test[list(trained.dataset)].double(), alive


def measure_equal_opportunity(trained: TrainedStack, splits: SplitStack, data: Dataset) -> dict[str, Tensor]:
    """Measure what equal opportunity requires of every model, on the test rows with y = 1.

    ``eo_gdp_reference`` (logits, 50 equally spaced values: the paper's), ``eo_gdp_uniform`` and ``eo_gdp_sample``
    (probabilities; the last is the definition), ``eo_positive`` the share of them predicted positive, and, of as many
    of them as every split has, the probes, distance correlation and normalised HSIC of
    :func:`frhsic_core.audit_representation` under the prefix ``eo_``.
    """
    import torch

    from frhsic_core.auditing import audit_representation
    from frhsic_core.conditional import gdp
    from frhsic_core.paper.smoothed_gdp import smoothed_gdp

    with torch.no_grad():
        z, output, s, alive = _on_test_part(trained, splits)
        kept = splits.y_test[list(trained.dataset)] > 0.5
        probability = torch.sigmoid(output)
        found = {
            "eo_gdp_reference": gdp(output, s, estimator="authors", mask=kept, check_finite=False),
            "eo_gdp_uniform": smoothed_gdp(probability, s, average="uniform", bandwidth=0.1, mask=kept),
            "eo_gdp_sample": smoothed_gdp(probability, s, bandwidth=0.1, mask=kept),
            "eo_positive": ((output > 0) & kept).double().sum(-1) / kept.sum(-1).clamp_min(1),
        }
        rows = kept.double().argsort(dim=-1, descending=True, stable=True)[:, : positives_in(data, s.shape[-1])]
        audit = audit_representation(
            torch.take_along_dim(z, rows.unsqueeze(-1), 1),
            torch.take_along_dim(s, rows, 1).unsqueeze(-1),
            max_rows=1000,
            chunk_size=64 if z.device.type == "cuda" else 8,
        ).as_dict()
        for name in ("linear_r2", "nonlinear_r2", "distance_correlation", "normalized_hsic_1"):
            found[f"eo_{name}"] = torch.tensor(audit[name])
        return {name: torch.where(alive.cpu(), value.double().cpu(), torch.nan) for name, value in found.items()}


def positives_in(data: Dataset, rows: int) -> int:
    """Return a lower bound of the positives in a random part: four standard deviations below their mean number.

    A number that depends on the data alone, so that what is measured of a model does not depend on its neighbours.
    """
    share = float((data.y > 0.5).mean())
    return max(10, int(rows * share - 4.0 * (rows * share * (1.0 - share)) ** 0.5))


def measure_multi_sensitive(trained: TrainedStack, splits: SplitStack, data: Dataset) -> dict[str, Tensor]:
    """Measure the dependence on each attribute and on the pair, on the test part.

    ``gdp_reference_NAME``, ``gdp_uniform_NAME``, ``gdp_sample_NAME``, ``gdp_density_NAME`` (conventions of
    :func:`frhsic_core.paper.runs.metrics.gdp_conventions`), ``linear_r2_NAME`` and ``nonlinear_r2_NAME`` for each
    attribute, NAME being the first word of its name; ``gdp_sample_pair`` smooths over both at once, so that it
    includes their interactions.
    """
    import torch

    from frhsic_core.auditing._representation import linear_features, probe_r2, random_features
    from frhsic_core.paper.runs.metrics import gdp_conventions
    from frhsic_core.paper.smoothed_gdp import smoothed_gdp

    with torch.no_grad():
        z, output, s, alive = _on_test_part(trained, splits)
        names = [name.split("-")[0] for name in data.sensitive_names]
        found: dict[str, Tensor] = {}
        for a, name in enumerate(names):
            values = gdp_conventions(output, s[..., a], task=trained.task)
            found |= {f"{convention}_{name}": value for convention, value in values.items()}
        found["gdp_sample_pair"] = smoothed_gdp(torch.sigmoid(output), s, bandwidth=0.1)
        parts: dict[str, list[Tensor]] = {}
        for block in torch.arange(len(z)).split(64 if z.device.type == "cuda" else 8):
            part = z[block].double()
            for kind, features in (("linear", linear_features(part)), ("nonlinear", random_features(part))):
                for a, name in enumerate(names):
                    column = s[block][..., a : a + 1]
                    parts.setdefault(f"{kind}_r2_{name}", []).append(probe_r2(features, column).cpu())
        found |= {name: torch.cat(values) for name, values in parts.items()}
        return {name: torch.where(alive.cpu(), value.double().cpu(), torch.nan) for name, value in found.items()}


# Tables and queries --------------------------------------------------------------------------------------------------


@cache
def option_rows(experiment: str, *, dataset: str, protocol: str) -> pd.DataFrame:
    """Return the stored rows of one dataset and protocol, with the option ``"unfair"`` for Unfair.

    Repeats of a split from other initial weights are left out.
    """
    rows = rows_of(experiment)
    rows = rows[(rows["dataset"] == dataset) & (rows["protocol"] == protocol) & (rows["seed"] == rows["split"])]
    return rows.assign(option=rows["option"].where(rows["method"] != "unfair", "unfair"))


def values_at(rows: pd.DataFrame, option: str, lam: float, column: str) -> pd.Series:
    """Return a column of one option at one λ, indexed by split; Unfair has λ = 0 alone, whatever ``lam`` is."""
    part = rows[rows["option"] == option]
    part = part if option == "unfair" else part[np.isclose(part["lam"], lam)]
    if part.empty:
        known = ", ".join(map(str, sorted(set(rows["option"]))))
        raise ValueError(f"There are no rows of {option!r} at λ = {lam:g}: the options are {known}.")
    return part.groupby("split")[column].mean().astype(float)


def compare_options(
    rows: pd.DataFrame, first: str, second: str, *, column: str, lams: Sequence[float], second_scale: float = 1.0
) -> pd.DataFrame:
    """Compare two options split by split at each λ, Holm over the λ; ``rows`` are from :func:`option_rows`.

    ``second_scale`` is the λ of the second option in units of the first's: 0.5 compares a sum of two criteria at equal
    weight. A line has both means, the fields of :class:`~frhsic_core.paper.experiments.shared.paired.Paired`,
    ``p_holm`` and ``verdict``, which is the better option at 5 % after Holm, or ``"not_significant"``;
    ``p_corrected_holm`` is the same adjustment of the corrected resampled t-test, which allows for splits that share
    rows and is the stricter of the two.
    """
    pairs = []
    for lam in lams:
        a = values_at(rows, first, lam, column)
        b = values_at(rows, second, second_scale * lam, column)
        both = sorted(set(a.index) & set(b.index))
        a, b = a[both], b[both]
        pairs.append(({"lam": lam, "first": a.mean(), "second": b.mean()}, a.to_numpy(), b.to_numpy()))
    table = compare_all(pairs, higher=False)
    better = np.where(table["effect"] > 0, first, second)
    return table.assign(verdict=np.where(table["p_holm"] < 0.05, better, "not_significant"))


def order_share(rows: pd.DataFrame, first: str, second: str, *, lam: float, columns: Sequence[str]) -> dict[str, float]:
    """Return the share of splits in which the first option is lower, by each column, and by all of them (``"all"``)."""
    lower = pd.DataFrame({c: values_at(rows, first, lam, c) < values_at(rows, second, lam, c) for c in columns})
    return {**lower.mean().to_dict(), "all": float(lower.all(axis=1).mean())}


def fall_shares(rows: pd.DataFrame, option: str, *, columns: Sequence[str], lams: Sequence[float]) -> pd.DataFrame:
    """Return for each column whether its mean never rises along ``lams``, and the share of splits where it does not."""
    lines = {}
    for column in columns:
        paths = pd.concat({lam: values_at(rows, option, lam, column) for lam in lams}, axis=1)
        steps = np.diff(paths.to_numpy(), axis=1)
        lines[column] = {
            "mean falls": bool((np.diff(paths.mean().to_numpy()) <= 0).all()),
            "share of splits": float((steps <= 0).all(axis=1).mean()),
        }
    return pd.DataFrame(lines).T


def printed_options(label: str) -> pd.DataFrame:
    """Return a printed table of options: a line for each dataset, option and λ, a column for each quantity.

    Examples
    --------
    >>> float(printed_options("tab:eo").loc[("adult", "eo", 50.0), "eo_gdp"])
    0.352
    """
    cells = printed_cells(label)
    options = cells["method"].str.removeprefix("frhsic_")
    lams = cells["setting"].str.removeprefix("lambda=").astype(float)
    cells = cells.assign(option=options, lam=lams)
    return cells.set_index(["dataset", "option", "lam", "quantity"])["value"].unstack("quantity")


@query
def option_point(experiment: str, dataset: str, option: str | dict[str, str], measure: str, lam: float = 0.0) -> Answer:
    """Return one option at one λ; ``option`` may differ between the protocols. The paper's number is a single run."""
    values = {}
    prints = {}
    means = {}
    note = ""
    for protocol in PROTOCOLS:
        rows = option_rows(experiment, dataset=dataset, protocol=protocol)
        name = option if isinstance(option, str) else option[protocol]
        found = values_at(rows, name, lam, measure)
        kind = "performance" if measure == "performance" else "gdp_reference"
        shared = shared_noise(dataset, protocol, kind)
        values[protocol], prints[protocol], means[protocol] = mean_of_runs(found.to_numpy(), runs=1, shared=shared)
        note = f"split 42 alone, reference protocol: {found.iloc[0]:.4g}; {len(found)} splits"
        escaped = int((values_at(rows, name, lam, "ratio") > ESCAPE).sum()) if name != "unfair" else 0
        note += f", Z beyond {ESCAPE:g} bandwidths at the end in {escaped} of them" if escaped else ""
    measure = "performance" if measure == "performance" else "gdp"
    return Answer(values, prints, means, note=note, measure=measure, runs=1, splits=len(found))


def _paired(rows: pd.DataFrame, first: str, second: str, column: str, lam: float) -> tuple[float, float, float]:
    """Return the mean of first − second over splits, and its 95 % interval for splits that share rows."""
    difference = (values_at(rows, first, lam, column) - values_at(rows, second, lam, column)).dropna().to_numpy()
    mean, half = t_interval(difference)
    reach = half * corrected_scale(len(difference))
    return mean, mean - reach, mean + reach


@query
def option_lower(
    experiment: str, dataset: str, options: dict[str, list[str]], lam: float, measures: list[str]
) -> Answer:
    """Return whether the first option is lower than the second at one λ in every measure; paired over splits."""
    values: dict[str, Any] = {}
    notes = []
    for protocol in PROTOCOLS:
        rows = option_rows(experiment, dataset=dataset, protocol=protocol)
        first, second = options[protocol]
        found = [_paired(rows, first, second, column, lam) for column in measures]
        lower = order_share(rows, first, second, lam=lam, columns=measures)["all"]
        shown = ", ".join(f"{mean:+.3f} ({low:+.3f} to {high:+.3f})" for mean, low, high in found)
        notes.append(f"{protocol}: {first} − {second} {shown}, lower in all of {lower:.0%} of splits")
        if any(low > 0 for _, low, _ in found):
            values[protocol] = False
        else:
            decided = all(high < 0 for _, _, high in found)
            values[protocol] = True if decided else "the splits leave open which one is lower"
    return Answer(values, note="; ".join(notes))


@query
def option_not_worse(experiment: str, dataset: str, first: str, second: str, measure: str, lams: list[float]) -> Answer:
    """Return whether the first option is at most a relevant difference worse than the second at every λ.

    A test of non-inferiority: the upper end of the paired interval must be below the relevant difference. That a test
    finds no difference is not enough.
    """
    values: dict[str, Any] = {}
    notes = []
    for protocol in PROTOCOLS:
        rows = option_rows(experiment, dataset=dataset, protocol=protocol)
        worse = []
        open_at = []
        for lam in lams:
            _, low, high = _paired(rows, first, second, measure, lam)
            margin = RELEVANT["gdp"].difference(float(values_at(rows, second, lam, measure).mean()))
            if low > margin:
                worse.append(f"{lam:g}")
            elif high > margin:
                open_at.append(f"{lam:g}")
        if worse:
            values[protocol] = False
            notes.append(f"{protocol}: worse by a relevant difference at λ = {', '.join(worse)}")
        elif open_at:
            values[protocol] = f"at λ = {', '.join(open_at)} the splits do not exclude that it is relevantly worse"
            notes.append(f"{protocol}: open at λ = {', '.join(open_at)}")
        else:
            values[protocol] = True
            notes.append(f"{protocol}: at most a relevant difference worse at every λ")
    return Answer(values, note="; ".join(notes))


@query
def attributes_fall(lams: list[float], forms: dict[str, list[str]], band: float = BAND) -> Answer:
    """Return whether GDP of each attribute falls along ``lams`` in every form, accuracy within ``band`` of Unfair."""
    values = {}
    notes = []
    columns = ["gdp_reference_age", "gdp_reference_hours"]
    for protocol in PROTOCOLS:
        rows = option_rows("multi_sensitive", dataset="adult", protocol=protocol)
        unfair = float(values_at(rows, "unfair", 0.0, "performance").mean())
        met = []
        for form in forms[protocol]:
            falls = fall_shares(rows, form, columns=columns, lams=lams)
            accuracy = min(float(values_at(rows, form, lam, "performance").mean()) for lam in lams)
            met.append(bool(falls["mean falls"].all()) and accuracy >= (1 - band) * unfair)
            kept = f"accuracy down by at most {1 - accuracy / unfair:.1%}"
            share = f"in {float(falls['share of splits'].min()):.0%} of single splits"
            notes.append(f"{form}, {protocol}: {'falls' if falls['mean falls'].all() else 'rises'} ({share}), {kept}")
        values[protocol] = all(met)
    return Answer(values, note="; ".join(notes))
