"""Choosing λ on a validation part: by an independence test, as the paper proposes, and by performance and GDP.

70 % of the rows train, 15 % choose, 15 % report. Every method of the main table is trained, so that the comparison of
methods, which the paper makes at the λ that is best on the *test* part, can be made at the λ chosen on the validation
part instead. The paper's rule is for FRHSIC; its tests are applied to every method. The study ``lambda_levels`` says
how often each test rejects independent samples at 5 %, at the sizes of the paper's validation parts of Crime and COMPAS
(299 and 925); Z has one dimension, as an output has, or fifty, as the paper's representation has.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from frhsic_core.paper.experiments.presets import DATASETS, GRIDS, LIVE, METHODS, smoke
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
DRAWS = {"smoke": {60: 40}, "text": {299: 200, 925: 200}, "full": {299: 600, 925: 200}}
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
    return replace(_sweep(reference, METHODS, SPLITS["full"]), also=(text, live_sweep()))


def live_sweep(splits: tuple[int, ...] = SPLITS["full"]) -> Experiment:
    """Return FRHSIC on a small sample of the synthetic law: what the chapter's live cell repeats."""
    return replace(_sweep((LIVE,), ("frhsic",), splits), lams=(1.0, 50.0), epochs=40)


def _sweep(tasks: tuple[Task, ...], methods: tuple[str, ...], splits: tuple[int, ...]) -> Experiment:
    name = "lambda_selection"
    return Experiment(name, tasks, methods, GRIDS["full"], splits, fractions=FRACTIONS, measure=name)


def measure(trained: TrainedStack, splits: SplitStack, data: Dataset) -> dict[str, Tensor]:
    """Apply the tests of :func:`.critical_values.thresholds` to Z and S on the validation part.

    Its names are for ``TEST_ROWS`` random rows (``validation_rows`` is their number). On all rows the names have the
    suffix ``_all``, without permutations, and ``validation_rows_all`` is the number.
    """
    import torch

    from frhsic_core.paper.experiments.lambda_selection.critical_values import thresholds

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
        unit for rows, draws in DRAWS[preset].items() for unit in units_of(n=rows, d=DIMENSIONS[rows], draws=draws)
    ]
    return Study(name, "lambda_levels", tuple(units))


def measure_unit_lambda_levels(unit: dict[str, Any], device: str) -> list[dict[str, Any]]:
    """Return for each test how many of its ``draws`` it rejected, and its mean critical value."""
    import torch

    from frhsic_core.paper.experiments.lambda_selection.critical_values import thresholds

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
