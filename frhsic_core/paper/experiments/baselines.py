"""Measure closed-form rivals on the paper's datasets, by the measures of the main sweep.

The methods of the main sweep are stacks of networks with a penalty. These rivals are not: each is a function of one
split that returns a representation and an output for the test part, and ``registry.CLOSED_FORMS`` lists them. The data,
the splits and the measures are those of the reference protocol, so a row can be read beside the rows of ``main``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from frhsic_core.paper.runs.plan import Settings, Study, units_of
from frhsic_core.registry import CLOSED_FORMS, SWEEP_DATASETS, resolve

if TYPE_CHECKING:
    import pandas as pd
    import torch

    from frhsic_core.paper.splits import SplitStack

Fitted = tuple[np.ndarray, np.ndarray]
SPLITS = tuple(range(42, 47))
FEATURES = 300
_REGRESSION = ("crime",)


def plan(preset: str) -> Study:
    """Return one unit for each dataset, split and method, the small datasets first; ``smoke`` has 500 samples."""
    if preset == "smoke":
        return Study("baselines_smoke", "baselines", units_of(dataset="synthetic", split=42, method="remover_x"))
    units: tuple[Settings, ...] = ()
    for dataset in SWEEP_DATASETS:
        methods = tuple(k for k, row in CLOSED_FORMS.items() if dataset in _REGRESSION or not row.regression_only)
        units += units_of(dataset=dataset, split=SPLITS, method=methods)
    return Study("baselines", "baselines", units)


def measure_unit(unit: dict[str, Any], device: str) -> list[dict[str, Any]]:
    """Return a row for each strength of a method on one split, with the columns of the main sweep."""
    from frhsic_core.paper.datasets import load_variant
    from frhsic_core.paper.splits import stack_splits

    synthetic = unit["dataset"] == "synthetic"
    data = load_variant(unit["dataset"], "text" if synthetic else "reference", n=500 if synthetic else None)
    splits = stack_splits(data, seeds=(unit["split"],))
    row = CLOSED_FORMS[unit["method"]]
    fit = resolve(row.fit)
    rows = []
    for strength in row.strengths:
        z, output = fit(splits, 0, strength)
        known = {"task": data.task, "needs_s": row.needs_s, "lam": strength}
        rows.append(known | evaluated(z, output, splits))
    return rows


class _Computed:
    """A representation and an output that are already computed, in the form that ``metrics.evaluate`` reads."""

    def __init__(self, z: np.ndarray, output: np.ndarray, task: str) -> None:
        import torch

        self.z = torch.from_numpy(np.ascontiguousarray(z, dtype=np.float64)).unsqueeze(0)
        self.out = torch.from_numpy(np.ascontiguousarray(output, dtype=np.float64)).unsqueeze(0)
        self.task = task
        self.dataset = [0]
        self.models = 1
        self.history: dict[str, tuple[()]] = {"ratio": ()}

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the stored tensors, whatever the samples."""
        return self.z, self.out


def evaluated(z: np.ndarray, output: np.ndarray, splits: SplitStack) -> dict[str, float]:
    """Return the measures of the main sweep for one model; ``output`` are logits for a classification."""
    from frhsic_core.paper.runs.metrics import evaluate

    found = evaluate(_Computed(z, output, splits.task), splits)  # type: ignore[arg-type]
    return {name: float(value[0]) for name, value in found.items() if name != "ratio"}


def arrays(splits: SplitStack, index: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return X, y and s of the training part, and X and s of the test part, as float64 arrays."""
    parts = (splits.x_train, splits.y_train, splits.s_train, splits.x_test, splits.s_test)
    x, y, s, new, new_s = (part[index].double().cpu().numpy() for part in parts)
    return x, y, s, new, new_s


def head(z: np.ndarray, y: np.ndarray, new: np.ndarray, *, task: str) -> np.ndarray:
    """Return the output of a ridge or logistic regression on Z for new samples (logits of a classification)."""
    from sklearn.linear_model import LogisticRegression, RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if task == "regression":
        model = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 3, 13))).fit(z, y)
        return np.asarray(model.predict(new))
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(z, y)
    return np.asarray(model.decision_function(new))


def linear_model(splits: SplitStack, index: int, strength: float) -> Fitted:
    """Fit a linear model on X, without a remedy."""
    x, y, _, new, _ = arrays(splits, index)
    return new, head(x, y, new, task=splits.task)


def leace_on_z(splits: SplitStack, index: int, strength: float) -> Fitted:
    """Train the Unfair network of the reference protocol, erase φ(S) from its Z by LEACE, and fit a new head."""
    from frhsic_core.learning import Trainer, make_penalty
    from frhsic_core.remedies import AttributeEraser

    x, y, s, new, _ = arrays(splits, index)
    key = (splits.name, splits.seeds[index])
    if key not in _UNFAIR:
        _UNFAIR.clear()  # the strengths of one split come one after the other
        seed = splits.seeds[index]
        _UNFAIR[key] = Trainer(
            splits.x_train[index : index + 1], splits.y_train[index : index + 1], None,
            penalty=make_penalty("unfair", protocol="reference"), lam=0.0, seeds=seed, task=splits.task,
            protocol="reference", epochs=200, batch_size=256, device="cpu",
        ).fit()  # fmt: skip
    own, other = (
        _UNFAIR[key].encode(part)[0].double().numpy() for part in (x.astype("float32"), new.astype("float32"))
    )
    eraser = AttributeEraser("spline", strength=strength).fit(own, sensitive_features=s)
    z = eraser.transform(other)
    return z, head(eraser.transform(own), y, z, task=splits.task)


_UNFAIR: dict[tuple[str, int], Any] = {}


def remover_on_x(splits: SplitStack, index: int, strength: float) -> Fitted:
    """Remove the correlation with S from X, with S of the test samples, and fit a linear model."""
    from frhsic_core.remedies import CorrelationRemover

    x, y, s, new, new_s = arrays(splits, index)
    remover = CorrelationRemover(strength=strength).fit(x, sensitive_features=s)
    z = remover.transform(new, sensitive_features=new_s)
    return z, head(remover.transform(x, sensitive_features=s), y, z, task=splits.task)


def kernel_null_space(splits: SplitStack, index: int, strength: float, *, rounds: int = 1) -> Fitted:
    """Project random features of X onto the null space of their covariance with φ(S), and fit a linear model."""
    from frhsic_core.remedies import KernelEraser

    x, y, s, new, _ = arrays(splits, index)
    eraser = KernelEraser(strength=strength, rounds=rounds, random_state=splits.seeds[index])
    own = eraser.fit(x, sensitive_features=s).transform(x)
    z = eraser.transform(new)
    return z, head(own, y, z, task=splits.task)


def iterative_eraser(splits: SplitStack, index: int, strength: float) -> Fitted:
    """Erase three times, each time from new random features of what is left."""
    return kernel_null_space(splits, index, strength, rounds=3)


def hsic_kernel_ridge(splits: SplitStack, index: int, strength: float) -> Fitted:
    """Fit kernel ridge regression with an HSIC penalty on its prediction, on random features.

    The labels of a classification are taken as ±1: the sign of the prediction is the class. Z is the prediction.
    """
    from frhsic_core.remedies.attributes import AttributeBasis, read_attributes
    from frhsic_core.remedies.ridge import hsic_ridge

    x, y, s, new, _ = arrays(splits, index)
    rng = np.random.default_rng(splits.seeds[index])
    width = float(
        np.sqrt(np.median(((x[:500, None] - x[None, :500]) ** 2).sum(-1)[np.triu_indices(min(len(x), 500), 1)]))
    )
    frequencies = rng.normal(size=(x.shape[1], FEATURES)) / width
    phases = rng.uniform(0, 2 * np.pi, FEATURES)
    own, other = (np.hstack([part, np.cos(part @ frequencies + phases)]) for part in (x, new))
    frame = read_attributes(s, len(s))
    psi = AttributeBasis("fourier", 30).fit(frame).transform(frame)
    target = y if splits.task == "regression" else 2.0 * y - 1.0
    mean = own.mean(0)
    w = hsic_ridge(own - mean, target - target.mean(), psi, penalty=strength)
    output = (other - mean) @ w + target.mean()
    return output[:, None], output


def bounded_r2(splits: SplitStack, index: int, strength: float) -> Fitted:
    """Fit the ridge regression whose share of S in the explained variance is at most ``strength``."""
    from frhsic_core.remedies.ridge import bounded_ridge

    x, y, s, new, new_s = arrays(splits, index)
    s, new_s = (part.reshape(len(part), -1) for part in (s, new_s))
    means = x.mean(0), y.mean(), s.mean(0)
    a, b = bounded_ridge(x - means[0], y - means[1], s - means[2], bound=strength)
    coefficients = np.linalg.lstsq(s - means[2], x - means[0], rcond=None)[0]
    residual = new - means[0] - (new_s - means[2]) @ coefficients
    output = means[1] + (new_s - means[2]) @ a + residual @ b
    # The prediction beside the residuals would reveal S exactly, so the representation is the prediction alone.
    return output[:, None], output


def summary(rows: pd.DataFrame, measures: tuple[str, ...] = ("performance", "gdp_sample", "nonlinear_r2")) -> Any:
    """Return means over splits: a row for each dataset, method and strength."""
    return rows.groupby(["dataset", "method", "lam"], sort=False)[list(measures)].mean()
