"""The validation on synthetic data and the ablations: λ from 0 to 50, kernels on Z and S, and the dimension of Z.

The paper has one run of each on one sample of 5,000 rows. Here a run is repeated on new samples: every model has its
own sample, not only its own split. Draw 42 is the authors' sample, row for row, cut as they cut it (the first four
fifths train). X and S are used as drawn: the text names no scaling for this law and the released script does none. A
second law has a label that can be predicted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from frhsic_core.paper.experiments.presets import settings
from frhsic_core.paper.runs.jobs import Samples, run_job
from frhsic_core.paper.runs.plan import Job, Recipe, Settings, Study, Task

if TYPE_CHECKING:
    from torch import Tensor

    from frhsic_core.data.dataset import Dataset
    from frhsic_core.learning.stack import TrainedStack
    from frhsic_core.paper.splits import SplitStack

SIGNALS = ("paper", "strong")
ROWS = 5000
DRAWS = 25
FIRST_DRAW = 42
TRAIN_SHARE = 0.8


@dataclass(frozen=True)
class Arm:
    """How a stack is trained."""

    protocol: str  # whose penalty and encoder end are taken
    hidden: tuple[int, ...]  # widths of the encoder; the dimension of Z comes after them
    activation: str
    epochs: int
    settings: Settings = ()  # where the penalty departs from the protocol's


LAMS = (0.0, 0.1, 0.5, 1.0, 5.0, 10.0, 50.0)
DIMENSION = 8
ABLATION_LAM = 5.0
KERNELS = ("gaussian", "laplacian", "imq")
DIMENSIONS = (2, 8, 32, 64)

# The released script fixes σ_Z at the median of the untrained encoder on its first 1,000 rows; ``"fixed"`` takes the
# first mini-batch, 256 random rows. σ_S is that of the first 1,000 rows in both.
_FIXED = settings(bandwidth="fixed", bandwidth_s="first_1000")
_NORMALISED = settings(estimator="normalized", scale="standardize", bandwidth="every_batch", bandwidth_s="first_1000")
ARMS = {
    "text": Arm("text", (64,), "selu", 200),
    "reference": Arm("reference", (64, 64), "relu", 100, _FIXED),
    # Not in the paper: a penalty that neither shrinking nor rescaling Z can lower, with the reference's network.
    "normalised": Arm("reference", (64, 64), "relu", 100, _NORMALISED),
}

# The text names no network for the ablations: its arm is that of the synthetic validation. The released script has one
# hidden layer of 50, 80 epochs, and bandwidths of the untrained encoder (here: of its first mini-batch) throughout.
ABLATION_ARMS = {"text": Arm("text", (64,), "selu", 200), "reference": Arm("reference", (50,), "selu", 80, _FIXED)}


def cells() -> tuple[tuple[str, str, int], ...]:
    """Return kernel on Z, kernel on S and dimension: all pairs at the default dimension, then the other dimensions.

    Examples
    --------
    >>> len(cells()), cells()[-1]
    (12, ('gaussian', 'gaussian', 64))
    """
    others = [dimension for dimension in DIMENSIONS if dimension != DIMENSION]
    return (
        *((kz, ks, DIMENSION) for kz, ks in product(KERNELS, KERNELS)),
        *(("gaussian", "gaussian", dimension) for dimension in others),
    )


def plan_synthetic(preset: str) -> Study:
    """Return one unit for each arm: 2 laws × 25 draws × 7 λ. ``text`` trains the text's arm only."""
    return _study("synthetic", ARMS, preset, [()])


def plan_ablation(preset: str) -> Study:
    """Return one unit for each arm and cell: 2 laws × 25 draws. ``text`` trains the text's arm only."""
    chosen = cells()[::3] if preset == "smoke" else cells()
    named = [settings(kernel_z=kz, kernel_s=ks, dimension=dimension) for kz, ks, dimension in chosen]
    return _study("ablation", ABLATION_ARMS, preset, named)


def _study(name: str, arms: Mapping[str, Arm], preset: str, cells: Sequence[Settings]) -> Study:
    small = preset == "smoke"
    units = tuple(
        (
            ("arm", arm),
            *cell,
            ("n", 300 if small else ROWS),
            ("draws", 2 if small else DRAWS),
            ("epochs", 2 if small else arms[arm].epochs),
        )
        for arm in (("text",) if preset == "text" else arms)
        for cell in cells
    )
    return Study(f"{name}_smoke" if small else name, name, units)


def measure_unit_synthetic(unit: dict[str, Any], device: str) -> list[dict[str, Any]]:
    """Train one arm on every draw of both laws."""
    return _measured(unit, ARMS, device, lams=LAMS, dimension=DIMENSION)


def measure_unit_ablation(unit: dict[str, Any], device: str) -> list[dict[str, Any]]:
    """Train one cell of the tables on every draw of both laws; with Gaussian kernels also without the penalty."""
    gaussian = unit["kernel_z"] == unit["kernel_s"] == "gaussian"
    lams = (0.0, ABLATION_LAM) if gaussian else (ABLATION_LAM,)
    kernels = settings(kernel=unit["kernel_z"], kernel_s=unit["kernel_s"])
    return _measured(unit, ABLATION_ARMS, device, lams=lams, dimension=unit["dimension"], departures=kernels)


def _measured(unit: dict[str, Any], arms: Mapping[str, Arm], device: str, **how: Any) -> list[dict[str, Any]]:
    draws = range(FIRST_DRAW, FIRST_DRAW + unit["draws"])
    arm = arms[unit["arm"]]
    return train_draws(arm, signals=SIGNALS, draws=draws, n=unit["n"], epochs=unit["epochs"], device=device, **how)


def drawn_splits(signals: Sequence[str], draws: Sequence[int], *, n: int, device: str) -> SplitStack:
    """Draw n rows for each signal and seed; the first four fifths train, the others test. Signals run slowest.

    Examples
    --------
    >>> stack = drawn_splits(["paper"], [42, 43], n=100, device="cpu")
    >>> tuple(stack.x_train.shape), tuple(stack.s_test.shape), stack.seeds
    ((2, 80, 2), (2, 20), (42, 43))
    """
    import torch

    from frhsic_core.data import load_dataset
    from frhsic_core.paper.splits import SplitStack, tensors_of

    parts = []
    for signal in signals:
        parts += [tensors_of(load_dataset("synthetic", n=n, random_state=seed, signal=signal)) for seed in draws]
    x, s, y = (torch.stack(values).to(device, torch.float32) for values in zip(*(p[:3] for p in parts), strict=True))
    cut = int(TRAIN_SHARE * n)
    return SplitStack(
        x_train=x[:, :cut],
        s_train=s[:, :cut],
        y_train=y[:, :cut],
        x_test=x[:, cut:],
        s_test=s[:, cut:],
        y_test=y[:, cut:],
        seeds=tuple(draws) * len(signals),
        task="classification",
        name="synthetic",
    )


class _Draws(Samples):
    """Gives each split of a stack a draw of its own instead of a part of one sample."""

    def splits(self, job: Job) -> SplitStack:
        """Return the draws of a stack on the device."""
        options = dict(job.recipe.task.options)
        return drawn_splits([options["signal"]], job.splits, n=options["n"], device=self.device)


def measure_synthetic(trained: TrainedStack, splits: SplitStack, data: Dataset) -> dict[str, Tensor]:
    """Measure ``hsic_unit``: biased HSIC on the test rows with both bandwidths one, as the paper's figure shows it."""
    import torch

    from frhsic_core.joint import hsic
    from frhsic_core.kernels import Gaussian

    z = trained.encode(splits.x_test)
    which = torch.tensor(trained.dataset, device=splits.x_test.device)
    unit = Gaussian(1.0)
    parts = [
        hsic(part.double(), splits.s_test[of].double(), kernel_z=unit, kernel_s=unit)
        for part, of in zip(z.split(32), which.split(32), strict=True)
    ]
    return {"hsic_unit": torch.cat(parts).cpu()}


def train_draws(
    arm: Arm,
    *,
    dimension: int,
    lams: Sequence[float],
    signals: Sequence[str],
    draws: Sequence[int],
    n: int,
    device: str,
    epochs: int | None = None,
    departures: Settings = (),
) -> list[dict[str, Any]]:
    """Train FRHSIC at each λ on each draw, a stack for each law, and measure every model on the test part of its draw.

    λ = 0 is the unpenalized model. The seed of a model is that of its draw, so the models of a draw start alike. A row
    has ``signal``, ``draw``, ``lam``, what :func:`frhsic_core.paper.runs.metrics.evaluate` measures, ``hsic_unit``
    (:func:`measure_synthetic`) and ``bayes`` (accuracy of the Bayes rule on the same test rows); ``notes`` where the
    training warned.
    """
    from frhsic_core.data.synthetic import log_odds

    rows: list[dict[str, Any]] = []
    samples = _Draws(device)
    for signal in signals:
        recipe = Recipe(
            Task("synthetic", "text", arm.protocol, (("n", n), ("signal", signal))),
            "frhsic",
            settings=(*arm.settings, *departures),
            epochs=epochs or arm.epochs,
            network=(("widths", (*arm.hidden, dimension)), ("activation", arm.activation)),
            measure="synthetic",
        )
        job = Job(recipe, tuple(map(float, lams)), tuple(draws))
        part = run_job(job, samples=samples)
        tests = samples.splits(job)
        x = tests.x_test.cpu().double().numpy()
        y = tests.y_test.cpu().numpy() > 0.5
        right = ((log_odds(x[..., 0], x[..., 1], signal=signal) > 0) == y).mean(1)
        bayes = dict(zip(job.splits, right, strict=True))
        notes = {"notes": "; ".join(part.provenance["notes"])} if part.provenance["notes"] else {}
        models = sorted(enumerate(job.models), key=lambda line: line[1][1])  # the λ of a draw together
        for i, (lam, draw, _) in models:
            found = {name: values[i] for name, values in part.metrics.items()} | {"bayes": bayes[draw]}
            label: dict[str, Any] = {"signal": signal, "draw": draw, "lam": lam}
            rows.append(label | {name: float(f"{value:.6g}") for name, value in found.items()} | notes)
    return rows
