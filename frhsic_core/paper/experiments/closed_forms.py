"""Rivals in closed form: they train no network with a penalty, but change X, Z or a ridge regression.

Each is a function ``(split, strength) -> (z, output)`` of a stack with one split that returns a representation and an
output for the test part. ``CLOSED_FORMS`` lists them. The data, the splits and the measures are those of the reference
protocol, so a row can be read beside the rows of ``main``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from frhsic_core.paper.splits import SplitStack

Fitted = tuple[np.ndarray, np.ndarray]
_FEATURES = 300


def evaluated(z: np.ndarray, output: np.ndarray, splits: SplitStack) -> dict[str, float]:
    """Return the measures of the main sweep for one model; ``output`` are logits for a classification."""
    import torch

    from frhsic_core.paper.runs.metrics import evaluate

    parts = [torch.from_numpy(np.ascontiguousarray(part, dtype=np.float64)).unsqueeze(0) for part in (z, output)]
    # What ``evaluate`` reads of a trained stack, with a representation and an output that are already computed.
    model = SimpleNamespace(task=splits.task, dataset=[0], models=1, history={"ratio": ()}, forward=lambda x: parts)
    found = evaluate(model, splits)  # type: ignore[arg-type]
    return {name: float(value[0]) for name, value in found.items() if name != "ratio"}


def _arrays(splits: SplitStack) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return X, y and s of the training part, and X and s of the test part, as float64 arrays."""
    parts = (splits.x_train, splits.y_train, splits.s_train, splits.x_test, splits.s_test)
    x, y, s, new, new_s = (part[0].double().cpu().numpy() for part in parts)
    return x, y, s, new, new_s


def _head(z: np.ndarray, y: np.ndarray, new: np.ndarray, *, task: str) -> Fitted:
    """Return new samples and the output of a linear model on Z for them (logits of a classification)."""
    from sklearn.linear_model import LogisticRegression, RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = RidgeCV(np.logspace(-3, 3, 13)) if task == "regression" else LogisticRegression(max_iter=1000)
    fitted = make_pipeline(StandardScaler(), model).fit(z, y)
    return new, np.asarray(fitted.predict(new) if task == "regression" else fitted.decision_function(new))


def linear_model(splits: SplitStack, strength: float) -> Fitted:
    """Fit a linear model on X, without a remedy."""
    x, y, _, new, _ = _arrays(splits)
    return _head(x, y, new, task=splits.task)


_UNFAIR: dict[tuple[str, int], Any] = {}


def leace_on_z(splits: SplitStack, strength: float) -> Fitted:
    """Train the Unfair network of the reference protocol, erase φ(S) from its Z by LEACE, and fit a new head."""
    from frhsic_core.learning import Trainer, make_penalty
    from frhsic_core.remedies import AttributeEraser

    x, y, s, new, _ = _arrays(splits)
    key = (splits.name, splits.seeds[0])
    if key not in _UNFAIR:
        _UNFAIR.clear()  # the strengths of one split come one after the other
        _UNFAIR[key] = Trainer(
            splits.x_train, splits.y_train, None,
            penalty=make_penalty("unfair", protocol="reference"), lam=0.0, seeds=splits.seeds[0], task=splits.task,
            protocol="reference", epochs=200, batch_size=256, device="cpu",
        ).fit()  # fmt: skip
    own, other = (_UNFAIR[key].encode(part.astype("float32"))[0].double().numpy() for part in (x, new))
    eraser = AttributeEraser("spline", strength=strength).fit(own, sensitive_features=s)
    return _head(eraser.transform(own), y, eraser.transform(other), task=splits.task)


def remover_on_x(splits: SplitStack, strength: float) -> Fitted:
    """Remove the correlation with S from X, with S of the test samples, and fit a linear model."""
    x, y, s, new, new_s = _arrays(splits)
    s, new_s = (part.reshape(len(part), -1) - s.reshape(len(s), -1).mean(0) for part in (s, new_s))
    slopes = strength * np.linalg.lstsq(s, x - x.mean(0), rcond=None)[0]
    own, other = x - s @ slopes, new - new_s @ slopes
    return _head(own, y, other, task=splits.task)


def kernel_null_space(splits: SplitStack, strength: float) -> Fitted:
    """Project random features of X onto the null space of their covariance with φ(S), and fit a linear model."""
    from frhsic_core.remedies import KernelEraser

    x, y, s, new, _ = _arrays(splits)
    eraser = KernelEraser(strength=strength, random_state=splits.seeds[0])
    eraser.fit(x, sensitive_features=s)
    return _head(eraser.transform(x), y, eraser.transform(new), task=splits.task)


def hsic_kernel_ridge(splits: SplitStack, strength: float) -> Fitted:
    """Fit kernel ridge regression with an HSIC penalty on its prediction, on random features.

    The labels of a classification are taken as ±1: the sign of the prediction is the class. Z is the prediction.
    """
    x, y, s, new, _ = _arrays(splits)
    rng = np.random.default_rng(splits.seeds[0])
    few = x[:500]
    distances = ((few[:, None] - few[None]) ** 2).sum(-1)[np.triu_indices(len(few), 1)]
    frequencies = rng.normal(size=(x.shape[1], _FEATURES)) / np.sqrt(np.median(distances))
    phases = rng.uniform(0, 2 * np.pi, _FEATURES)
    own, other = (np.hstack([part, np.cos(part @ frequencies + phases)]) for part in (x, new))
    s = s.reshape(len(s), -1)
    s = (s - s.mean(0)) / s.std(0)
    some = s[np.linspace(0, len(s) - 1, min(len(s), 500)).astype(int)]
    gaps = np.sqrt(((some[:, None] - some[None]) ** 2).sum(-1))
    rng = np.random.default_rng(0)
    waves = s @ (rng.normal(size=(s.shape[1], 30)) / np.median(gaps[gaps > 0]))
    psi = np.hstack([s, np.cos(waves + rng.uniform(0, 2 * np.pi, 30))])
    target = y if splits.task == "regression" else 2.0 * y - 1.0
    mean = own.mean(0)
    w = hsic_ridge(own - mean, target - target.mean(), psi, penalty=strength)
    output = (other - mean) @ w + target.mean()
    return output[:, None], output


def hsic_ridge(
    features: np.ndarray, y: np.ndarray, psi: np.ndarray, *, penalty: float, ridge: float = 1e-3
) -> np.ndarray:
    r"""Return the coefficients of least squares with a ridge and an HSIC penalty, in closed form.

    .. math:: \min_w\; \tfrac1n\|y - \Phi w\|^2 + \rho\|w\|^2 + \eta\,\mathrm{HSIC}(\Phi w, S),\qquad
        \mathrm{HSIC}(f, S) = \tfrac1{n^2} f^\top H\Psi\Psi^\top H f

    with the linear kernel on the prediction and the kernel ΨΨᵀ on S (Pérez-Suay et al., 2017; Li et al., 2022). With
    random features Φ it is kernel ridge regression. Columns of Φ are centered, and the mean of y is added by the
    caller. O(n(m + k)² + m³) for m features.

    Parameters
    ----------
    features, psi : ndarray
        Φ ``(n, m)``, and features Ψ ``(n, k)`` of S.
    y : ndarray
        ``(n,)`` or ``(n, t)``, centered.
    penalty, ridge : float
        η and ρ.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> s, x = rng.normal(size=(2, 500))
    >>> features = np.column_stack([s, x])
    >>> w = hsic_ridge(features - features.mean(0), s + x, s[:, None], penalty=1e6)
    >>> bool(abs(w[0]) < 0.2), round(float(w[1]), 1)
    (True, 1.0)
    """
    n = len(features)
    cross = features.T @ (psi - psi.mean(0)) / n
    system = features.T @ features / n + ridge * np.eye(features.shape[1]) + penalty * cross @ cross.T
    return np.linalg.solve(system, features.T @ y / n)


@dataclass(frozen=True)
class ClosedForm:
    """A rival in closed form: its label, its function, the grid of its strength, and what it needs."""

    label: str
    fit: Callable[[SplitStack, float], Fitted]
    strengths: tuple[float, ...] = (0.5, 1.0)  # stored in the column ``lam``
    needs_s: bool = False  # of the samples that it predicts


#: By the name that stored rows hold. No name is that of a trained method.
CLOSED_FORMS = {
    "linear": ClosedForm("linear model", linear_model, (0.0,)),
    "leace_z": ClosedForm("LEACE on Z", leace_on_z, (0.0, 0.5, 1.0)),
    "remover_x": ClosedForm("correlation remover on X", remover_on_x, needs_s=True),
    "kernel_null": ClosedForm("kernel null space", kernel_null_space),
    "hsic_krr": ClosedForm("HSIC kernel ridge", hsic_kernel_ridge, (1.0, 10.0, 100.0, 1000.0)),
}
