"""Equal opportunity on Adult and COMPAS, and two sensitive attributes on Adult: variants of FRHSIC at equal λ.

**Equal opportunity.** The paper's table (``tab:eo``) compares FRHSIC on all rows (DP) with FRHSIC on the rows with
y = 1 (EO). In the released code the two differ in the bandwidths as well: medians in one, σ = 1 on both sides in the
other. Here both rules are trained on both sets of rows, so that the two changes can be separated.

**Several attributes.** The paper's table (``tab:multi_s``) has one run of each form on age and hours per week. "Joint"
is called a product kernel there; the released code has one Gaussian on the vector with one bandwidth, which is a
product of two Gaussians of equal bandwidth. The sum adds two criteria, each with its own median: at equal λ about twice
the penalty; half of λ is trained as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from frhsic_core.paper.experiments.presets import LIVE, SPLITS, smoke
from frhsic_core.paper.runs.plan import Experiment, Settings, Task

if TYPE_CHECKING:
    from torch import Tensor

    from frhsic_core.data.dataset import Dataset
    from frhsic_core.learning.stack import TrainedStack
    from frhsic_core.paper.splits import SplitStack

# The text names four λ. The released script of equal opportunity has 5 as well, that of several attributes all seven.

GRIDS = {"text": (0.1, 1.0, 10.0, 50.0), "full": (0.1, 1.0, 5.0, 10.0, 50.0, 100.0, 500.0)}

DATASETS = ("compas", "adult")
_BIASED: Settings = (("estimator", "biased"), ("scale", None))
_MEDIANS: Settings = (*_BIASED, ("bandwidth", "reference"), ("bandwidth_s", "first_1000"))
_UNIT: Settings = (*_BIASED, ("bandwidth", 1.0), ("bandwidth_s", 1.0))
_TEXT: Settings = (*_BIASED, ("bandwidth", "every_20_epochs"), ("bandwidth_s", "median"))
# The released EO penalty is zero in a batch with ten positives or fewer.
_POSITIVES: Settings = (("condition", "positives"), ("minimum_rows", 11))
#: Rows that the penalty uses × bandwidth rule, reference protocol. ``dp`` and ``eo`` are the arms of the paper's table.
ARMS: dict[str, Settings] = {
    "dp": _MEDIANS,
    "eo": (*_UNIT, *_POSITIVES),
    "eo_medians": (*_MEDIANS, *_POSITIVES),
    "dp_unit": _UNIT,
}
# The text states one bandwidth rule and no other for EO.
TEXT_ARMS: dict[str, Settings] = {"dp": _TEXT, "eo": (*_TEXT, *_POSITIVES)}

PAIR: Settings = (("sensitive", ("age", "hours-per-week")),)
FORMS = ("joint", "product", "sum")


def plan_equal_opportunity(preset: str) -> Experiment:
    """Return both arms, and in ``full`` both bandwidth rules on both sets of rows; Unfair beside them."""
    tasks = tuple(Task(name, "text", "text") for name in DATASETS)
    reference = tuple(Task(name, "reference", "reference") for name in DATASETS)
    name = "equal_opportunity"
    if preset == "smoke":
        return smoke(_trained(name, reference, ARMS, (), ()))
    if preset == "text":
        return _trained(name, tasks, TEXT_ARMS, GRIDS["text"], SPLITS["text"])
    text = _trained(name, tasks, TEXT_ARMS, GRIDS["full"], SPLITS["full"])
    # The two arms of the paper's table four times more on its λ and five splits, from other initial weights.
    again = Experiment(
        name, reference, ("frhsic",), GRIDS["text"], SPLITS["text"], repeats=(1, 2, 3, 4),
        options=tuple((arm, ARMS[arm]) for arm in ("dp", "eo")), measure=name,
    )  # fmt: skip
    also = (text, live_arms(), again)
    return _trained(name, reference, ARMS, GRIDS["full"], SPLITS["full"], also=also)


def live_arms(splits: tuple[int, ...] = SPLITS["full"]) -> Experiment:
    """Return two arms on a small sample of the synthetic law: what the chapter's live cell repeats."""
    arms = {name: ARMS[name] for name in ("dp", "eo_medians")}
    return _trained("equal_opportunity", (LIVE,), arms, (1.0,), splits, epochs=40)


def plan_multi_sensitive(preset: str) -> Experiment:
    """Return joint, product and sum; in ``full`` the sum also at half of every λ."""
    name = "multi_sensitive"
    text_forms, forms = ({form: (*settings, ("attributes", form)) for form in FORMS} for settings in (_TEXT, _MEDIANS))
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
    arms: dict[str, Settings],
    lams: tuple[float, ...],
    splits: tuple[int, ...],
    *,
    epochs: int = 200,
    also: tuple[Experiment, ...] = (),
) -> Experiment:
    """Return an experiment that trains every arm, and Unfair."""
    unfair = Experiment(name, tasks, ("unfair",), lams, splits, epochs=epochs, measure=name)
    return Experiment(
        name, tasks, ("frhsic",), lams, splits, options=tuple(arms.items()), epochs=epochs, measure=name,
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
