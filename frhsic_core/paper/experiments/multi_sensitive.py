"""Two sensitive attributes on Adult, age and hours per week: one kernel on the pair, a product, or a sum.

The paper's table (``tab:multi_s``) has one run of each form. "Joint" is called a product kernel there; the released
code has one Gaussian on the vector with one bandwidth, which is a product of two Gaussians of equal bandwidth. The sum
adds two criteria, each with its own median: at equal λ about twice the penalty; half of λ is trained as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from frhsic_core.paper.experiments.presets import SPLITS
from frhsic_core.paper.runs.plan import Experiment, Settings, Task

if TYPE_CHECKING:
    from torch import Tensor

    from frhsic_core.data.dataset import Dataset
    from frhsic_core.data.splits import SplitStack
    from frhsic_core.learning.trained import TrainedStack

__all__ = ["FORMS", "GRIDS", "measure", "plan"]

# The text's four λ; the released script's seven.
GRIDS = {"text": (0.1, 1.0, 10.0, 50.0), "full": (0.1, 1.0, 5.0, 10.0, 50.0, 100.0, 500.0)}
PAIR: Settings = (("sensitive", ("age", "hours-per-week")),)
FORMS = ("joint", "product", "sum")
_BIASED: Settings = (("estimator", "biased"), ("scale", None))
_REFERENCE: Settings = (*_BIASED, ("bandwidth", "reference"), ("bandwidth_s", "first_1000"))
_TEXT: Settings = (*_BIASED, ("bandwidth", "every_20_epochs"), ("bandwidth_s", "median"))


def plan(preset: str) -> Experiment:
    """Joint, product and sum; in ``full`` the sum also at half of every λ."""
    if preset == "smoke":
        task = Task("synthetic", "text", "reference", (("n", 600), ("sensitive", ("s", "x2"))))
        return _forms("multi_sensitive_smoke", task, _REFERENCE, (1.0, 50.0), (42, 43), epochs=2)
    task = Task("adult", "text", "text", PAIR)
    if preset == "text":
        return _forms("multi_sensitive", task, _TEXT, GRIDS["text"], SPLITS["text"])
    text = _forms("", task, _TEXT, GRIDS["text"], SPLITS["full"])
    task = Task("adult", "reference", "reference", PAIR)
    halves = tuple(lam / 2 for lam in GRIDS["full"] if lam / 2 not in GRIDS["full"])
    half = _forms("", task, _REFERENCE, halves, SPLITS["full"], forms=("sum",), unfair=False)
    return _forms("multi_sensitive", task, _REFERENCE, GRIDS["full"], SPLITS["full"], also=(half, text))


def _forms(
    name: str,
    task: Task,
    settings: Settings,
    lams: tuple[float, ...],
    splits: tuple[int, ...],
    *,
    forms: tuple[str, ...] = FORMS,
    epochs: int = 200,
    unfair: bool = True,
    also: tuple[Experiment, ...] = (),
) -> Experiment:
    base = Experiment("", (task,), ("unfair",), lams, splits, epochs=epochs, measure="multi_sensitive")
    return Experiment(
        name,
        (task,),
        ("frhsic",),
        lams,
        splits,
        options=tuple((form, (*settings, ("attributes", form))) for form in forms),
        epochs=epochs,
        measure="multi_sensitive",
        also=(*((base,) if unfair else ()), *also),
    )


def measure(trained: TrainedStack, splits: SplitStack, data: Dataset) -> dict[str, Tensor]:
    """Dependence on each attribute, on the test part, and on the pair.

    ``gdp_reference_NAME``, ``gdp_uniform_NAME``, ``gdp_sample_NAME``, ``gdp_density_NAME`` (conventions of
    :func:`frhsic_core.paper.runs.metrics.gdp_conventions`), ``linear_r2_NAME`` and ``nonlinear_r2_NAME`` for each
    attribute, NAME being the first word of its name; ``gdp_sample_pair`` smooths over both at once, so that it sees
    their interactions too.
    """
    import torch

    from frhsic_core.conditional import gdp
    from frhsic_core.learning.probes import linear_features, probe_r2, random_features
    from frhsic_core.paper.runs.metrics import gdp_conventions

    with torch.no_grad():
        which = torch.tensor(trained.dataset, device=splits.x_test.device)
        z, output = trained.forward(splits.x_test)
        alive = torch.isfinite(z).all(-1).all(-1) & torch.isfinite(output).all(-1)
        z, output = torch.where(alive[:, None, None], z, 0.0), torch.where(alive[:, None], output, 0.0).double()
        s = splits.s_test[which].double()
        names = [name.split("-")[0] for name in data.sensitive_names]
        found: dict[str, Tensor] = {}
        for a, name in enumerate(names):
            values = gdp_conventions(output, s[..., a], task=trained.task)
            found |= {f"{convention}_{name}": value for convention, value in values.items()}
        found["gdp_sample_pair"] = gdp(torch.sigmoid(output), s, bandwidth=0.1, check_finite=False)
        parts: dict[str, list[Tensor]] = {}
        for block in torch.arange(len(z)).split(64 if z.device.type == "cuda" else 8):
            part = z[block].double()
            for kind, features in (("linear", linear_features(part)), ("nonlinear", random_features(part))):
                for a, name in enumerate(names):
                    column = s[block][..., a : a + 1]
                    parts.setdefault(f"{kind}_r2_{name}", []).append(probe_r2(features, column).cpu())
        found |= {name: torch.cat(values) for name, values in parts.items()}
        return {name: torch.where(alive.cpu(), value.double().cpu(), torch.nan) for name, value in found.items()}
