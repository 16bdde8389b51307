"""Equal opportunity on Adult and COMPAS, and two sensitive attributes on Adult: options of FRHSIC at equal λ.

**Equal opportunity.** The paper's table (``tab:eo``) compares FRHSIC on all rows (DP) with FRHSIC on the rows with
y = 1 (EO). In the released code the two differ in the bandwidths as well: medians in one, σ = 1 on both sides in the
other. Here both rules are trained on both sets of rows, so that the two changes can be separated.

**Several attributes.** The paper's table (``tab:multi_s``) has one run of each form on age and hours per week. "Joint"
is called a product kernel there; the released code has one Gaussian on the vector with one bandwidth, which is a
product of two Gaussians of equal bandwidth. The sum adds two criteria, each with its own median: at equal λ about twice
the penalty; half of λ is trained as well.

An *option* is a departure from the protocol (which rows the penalty uses, which kernel it has), and its name is stored
in the rows. Options are compared λ by λ over the same splits. Where the paper printed a single run, the interval of a
query is that of one run: for GDP, which is skewed, the range over our splits.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from frhsic_core.paper.claims.answers import PROTOCOLS, Answer, answer_of_runs, query, rows_of
from frhsic_core.paper.claims.rules import RELEVANT
from frhsic_core.paper.experiments import SPLITS
from frhsic_core.paper.experiments.comparison import BAND, t_interval
from frhsic_core.paper.experiments.main import shared_noise
from frhsic_core.paper.runs.plan import Experiment, Settings, Stack, Task, stacks_of

if TYPE_CHECKING:
    from torch import Tensor

    from frhsic_core.data._recipes import Dataset
    from frhsic_core.learning.stack import TrainedStack
    from frhsic_core.paper.datasets import SplitStack

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


def plan_equal_opportunity() -> Experiment:
    """Return both bandwidth rules on both sets of rows, in the text's protocol both options; Unfair beside them."""
    name = "equal_opportunity"
    text, reference = (
        [Task(data, protocol, protocol) for data in DATASETS] for protocol in ("text", "reference")
    )
    return Experiment(name, _trained(name, reference, OPTIONS) + _trained(name, text, TEXT_OPTIONS))


def plan_multi_sensitive() -> Experiment:
    """Return joint, product and sum, and the sum also at half of every λ."""
    name = "multi_sensitive"
    text_forms, forms = (
        {form: (*settings, ("attributes", form)) for form in ATTRIBUTES}
        for settings in (_TEXT, _MEDIANS)
    )
    text, reference = (
        [Task("adult", protocol, protocol, PAIR)] for protocol in ("text", "reference")
    )
    halves = tuple(lam / 2 for lam in GRIDS["full"] if lam / 2 not in GRIDS["full"])
    half = stacks_of(
        reference, ["frhsic"], halves, SPLITS["full"], options={"sum": forms["sum"]}, measure=name
    )
    return Experiment(
        name,
        _trained(name, reference, forms) + half + _trained(name, text, text_forms, GRIDS["text"]),
    )


def _trained(
    name: str,
    tasks: list[Task],
    options: dict[str, Settings],
    lams: tuple[float, ...] = GRIDS["full"],
) -> tuple[Stack, ...]:
    """Return the stacks of Unfair and of every option."""
    unfair = stacks_of(tasks, ["unfair"], lams, SPLITS["full"], measure=name)
    return unfair + stacks_of(
        tasks, ["frhsic"], lams, SPLITS["full"], options=options, measure=name
    )


def _gdp_of_finite(
    trained: TrainedStack,
    splits: SplitStack,
    *,
    attribute: int | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return GDP as the paper computes it, of logits on the test part; NaN for a model that is not finite.

    ``attribute`` is one of several attributes; ``mask`` are the samples that count.
    """
    import torch

    from frhsic_core.paper.stored_gdp import authors_gdp

    with torch.no_grad():
        output = trained.forward(splits.x_test)[1].double()
        alive = torch.isfinite(output).all(-1)
        output = torch.where(alive[:, None], output, 0.0)
        s = splits.s_test[list(trained.dataset)].double()
        s = s if attribute is None else s[..., attribute]
        value = authors_gdp(output, s, mask=mask, check_finite=False)
        return torch.where(alive, value, torch.nan).double().cpu()


def measure_equal_opportunity(
    trained: TrainedStack, splits: SplitStack, data: Dataset
) -> dict[str, Tensor]:
    """Measure EO-GDP of every model, ``eo_gdp_reference``: GDP of the test samples with y = 1."""
    kept = splits.y_test[list(trained.dataset)] > 0.5
    return {"eo_gdp_reference": _gdp_of_finite(trained, splits, mask=kept)}


def measure_multi_sensitive(
    trained: TrainedStack, splits: SplitStack, data: Dataset
) -> dict[str, Tensor]:
    """Measure GDP of each attribute, ``gdp_reference_NAME``, NAME being the first word of its name."""
    found = {}
    for a, name in enumerate(data.sensitive_names):
        value = _gdp_of_finite(trained, splits, attribute=a)
        found[f"gdp_reference_{name.split('-')[0]}"] = value
    return found


# Tables and queries --------------------------------------------------------------------------------------------------


@cache
def option_rows(experiment: str, *, dataset: str, protocol: str) -> pd.DataFrame:
    """Return the stored rows of one dataset and protocol, with the option ``"unfair"`` for Unfair.

    Repeats of a split from other initial weights, which nothing reads, are left out.
    """
    rows = rows_of(experiment)
    rows = rows[
        (rows["dataset"] == dataset)
        & (rows["protocol"] == protocol)
        & (rows["seed"] == rows["split"])
    ]
    return rows.assign(option=rows["option"].where(rows["method"] != "unfair", "unfair"))


def values_at(rows: pd.DataFrame, option: str, lam: float, column: str) -> pd.Series:
    """Return a column of one option at one λ, indexed by split; Unfair has λ = 0 alone, whatever ``lam`` is."""
    part = rows.loc[
        rows["option"] == option, ["lam", "split", column]
    ]  # dozens of columns would be copied
    part = part if option == "unfair" else part[np.isclose(part["lam"], lam)]
    if part.empty:
        known = ", ".join(map(str, sorted(set(rows["option"]))))
        raise ValueError(
            f"There are no rows of {option!r} at λ = {lam:g}: the options are {known}."
        )
    return part.groupby("split")[column].mean().astype(float)


@query
def option_point(
    experiment: str, dataset: str, option: str | dict[str, str], measure: str, lam: float = 0.0
) -> Answer:
    """Return one option at one λ; ``option`` may differ between the protocols. The paper's number is a single run."""
    values = {}
    for protocol in PROTOCOLS:
        rows = option_rows(experiment, dataset=dataset, protocol=protocol)
        name = option if isinstance(option, str) else option[protocol]
        values[protocol] = values_at(rows, name, lam, measure).to_numpy()
    # The loop ends with the reference protocol.
    note = f"split 42 alone, reference protocol: {values[protocol][0]:.4g}; {len(values[protocol])} splits"
    escaped = int((values_at(rows, name, lam, "ratio") > ESCAPE).sum()) if name != "unfair" else 0
    note += f", Z beyond {ESCAPE:g} bandwidths at the end in {escaped} of them" if escaped else ""
    noise, kind = ("performance",) * 2 if measure == "performance" else ("gdp_reference", "gdp")
    shared = {protocol: shared_noise(dataset, protocol, noise) for protocol in PROTOCOLS}
    return answer_of_runs(values, runs=1, shared=shared, note=note, measure=kind)


def _paired(
    rows: pd.DataFrame, first: str, second: str, column: str, lam: float
) -> tuple[float, float, float]:
    """Return the mean of first − second over splits, and its 95 % interval for splits that share rows."""
    difference = (
        (values_at(rows, first, lam, column) - values_at(rows, second, lam, column))
        .dropna()
        .to_numpy()
    )
    mean, half = t_interval(difference, test_share=0.2)
    return mean, mean - half, mean + half


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
        lower = [
            values_at(rows, first, lam, column) < values_at(rows, second, lam, column)
            for column in measures
        ]
        share = np.all(lower, axis=0).mean()
        shown = ", ".join(f"{mean:+.3f} ({low:+.3f} to {high:+.3f})" for mean, low, high in found)
        notes.append(
            f"{protocol}: {first} − {second} {shown}, lower in all of {share:.0%} of splits"
        )
        if any(low > 0 for _, low, _ in found):
            values[protocol] = False
        else:
            decided = all(high < 0 for _, _, high in found)
            values[protocol] = True if decided else "the splits leave open which one is lower"
    return Answer(values, note="; ".join(notes))


@query
def option_not_worse(
    experiment: str, dataset: str, first: str, second: str, measure: str, lams: list[float]
) -> Answer:
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
            values[protocol] = (
                f"at λ = {', '.join(open_at)} the splits do not exclude that it is relevantly worse"
            )
            notes.append(f"{protocol}: open at λ = {', '.join(open_at)}")
        else:
            values[protocol] = True
            notes.append(f"{protocol}: at most a relevant difference worse at every λ")
    return Answer(values, note="; ".join(notes))


@query
def attributes_fall(lams: list[float], forms: dict[str, list[str]]) -> Answer:
    """Return whether GDP of each attribute falls along ``lams`` in every form, accuracy within 1 % of Unfair's."""
    values = {}
    notes = []
    columns = ["gdp_reference_age", "gdp_reference_hours"]
    for protocol in PROTOCOLS:
        rows = option_rows("multi_sensitive", dataset="adult", protocol=protocol)
        unfair = float(values_at(rows, "unfair", 0.0, "performance").mean())
        met = []
        for form in forms[protocol]:
            paths = np.array(
                [[values_at(rows, form, lam, column) for lam in lams] for column in columns]
            )
            falls = bool((np.diff(paths.mean(-1), axis=1) <= 0).all())
            single = (np.diff(paths, axis=1) <= 0).all(1).mean(-1).min()
            accuracy = min(float(values_at(rows, form, lam, "performance").mean()) for lam in lams)
            met.append(falls and accuracy >= (1 - BAND) * unfair)
            kept = f"accuracy down by at most {1 - accuracy / unfair:.1%}"
            share = f"in {single:.0%} of single splits"
            notes.append(f"{form}, {protocol}: {'falls' if falls else 'rises'} ({share}), {kept}")
        values[protocol] = all(met)
    return Answer(values, note="; ".join(notes))
