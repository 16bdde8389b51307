"""Compare remedies with those of other packages on four small real tables, held out, over ten splits.

A unit is one dataset, one split and one group of methods. ``ours`` are the remedies of :mod:`frhsic_core.remedies`; the
other groups belong to the packages fairlearn (correlation remover), concept-erasure (LEACE), maxcorr and fairret
(penalties of a small network). These packages are needed to measure their own units only.
"""

from __future__ import annotations

import copy
import time
import warnings
from typing import Any

import numpy as np

from frhsic_core.paper.runs.plan import Study, units_of
from frhsic_core.registry import DATASETS as DATASET_ROWS

DATASETS = ("diabetes", "wage", "affairs", "pension")
TITLES = {"diabetes": "Diabetes"}
SPLITS = tuple(range(10))
TEST_SHARE = 0.3
STRENGTHS = (0.5, 1.0)
FINER = (0.5, 0.75, 1.0)  # of adjusted scores, which are fitted once for all strengths
PENALTIES = (0.3, 1.0)
GROUPS = ("ours", "fairlearn", "concept_erasure", "maxcorr", "fairret")
BINS = 10
MOST_ROWS = 2500  # of a table; larger ones are drawn from once, so that the study takes minutes


def plan(preset: str) -> Study:
    """Return one unit for each dataset, split and group; ``smoke`` has our remedies on one split of the smallest."""
    if preset == "smoke":
        return Study("remedies_smoke", "remedies", units_of(split=0, dataset="diabetes", group="ours"))
    return Study("remedies", "remedies", units_of(split=SPLITS, dataset=DATASETS, group=GROUPS))


def sample(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, str]:
    """Return X, y, age and the task of a table."""
    if name == "diabetes":
        from sklearn.datasets import load_diabetes

        data = load_diabetes(scaled=False)
        return data.data[:, 1:], data.target.astype(float), data.data[:, 0], "regression"
    from frhsic_core.data import load_dataset

    table = load_dataset(name, n=min(MOST_ROWS, DATASET_ROWS[name].rows), random_state=0)
    return table.X, table.y, table.s, table.task


def _smoothed(predicted: np.ndarray, s: np.ndarray) -> float:
    """Return the stored GDP: by kernel smoothing at Silverman's bandwidth, of at most 2,000 samples."""
    from frhsic_core.paper.smoothed_gdp import smoothed_gdp

    if predicted.std() <= 1e-12 * max(1.0, float(np.abs(predicted).max())):
        return 0.0
    rows = np.linspace(0, len(s) - 1, min(len(s), 2000)).round().astype(int)
    return max(smoothed_gdp(predicted[rows], column[rows]).item() for column in s.T if np.ptp(column[rows]) > 0)


def measure_unit(unit: dict[str, Any], device: str) -> list[dict[str, Any]]:
    """Return a row for each method, learner and strength of one group on one split."""
    from sklearn.model_selection import train_test_split

    from frhsic_core.remedies.attributes import attribute_matrix, read_attributes
    from frhsic_core.remedies.comparison import ADJUSTED, LEARNERS, REMEDIES, fit_predict, measured

    X, y, s, task = sample(unit["dataset"])
    stratify = y if task == "classification" else None
    train, test = train_test_split(
        np.arange(len(y)), test_size=TEST_SHARE, random_state=unit["split"], stratify=stratify
    )
    frames = [read_attributes(s[rows], len(rows)) for rows in (train, test)]
    rows = []

    def add(method: str, learner: str, strength: float, needs_s: bool, predicted: np.ndarray, seconds: float) -> None:
        row = {"method": method, "learner": learner, "strength": strength, "needs_s": needs_s, "cpu_seconds": seconds}
        scale = float(y[train].std())
        found = measured(predicted, y[test], frames[1], task=task, scale=scale)
        found["gdp"] = _smoothed(predicted / (scale if task == "regression" else 1.0), attribute_matrix(frames[1]))
        rows.append(row | {name: round(value, 6) for name, value in found.items()} | {"task": task})

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if unit["group"] == "ours":
            for key, (_, needs_s) in REMEDIES.items():
                if key == "encoder":
                    continue
                for learner in LEARNERS:
                    if (key, learner) == ("kernel_eraser", "boosting"):
                        continue  # its random features are made for linear models, and boosting on them is slow
                    grid = {"none": (0.0,)}.get(key, FINER if key in ADJUSTED else STRENGTHS)
                    given = (X[train], y[train], frames[0]), (X[test], frames[1])
                    for strength, predicted, seconds in fit_predict(key, learner, grid, *given, task=task):
                        add(key, learner, strength, needs_s, predicted, seconds)
        elif unit["group"] in ("maxcorr", "fairret"):
            for strength in PENALTIES:
                start = time.process_time()
                predicted = penalized_network(
                    unit["group"], strength, X[train], y[train], s[train], X[test], task=task, seed=unit["split"]
                )
                add(unit["group"], "network", strength, False, predicted, time.process_time() - start)
        else:
            for name, strength, needs_s, change in preparations(unit["group"]):
                for learner in LEARNERS:
                    start = time.process_time()
                    predicted = prepared(change, learner, (X, y, s), train, test, task=task)
                    add(name, learner, strength, needs_s, predicted, time.process_time() - start)
    return rows


def bins_of(s: np.ndarray, bins: int) -> np.ndarray:
    """Return indicators of the quantile bins of s that have samples.

    Examples
    --------
    >>> bins_of(np.array([1.0, 1.0, 1.0, 2.0]), 4).sum(0).tolist()  # no sample lies below the first edge, which is 1
    [3.0, 1.0]
    """
    edges = np.unique(np.quantile(s, np.linspace(0, 1, bins + 1)[1:-1]))
    groups = np.eye(len(edges) + 1)[np.searchsorted(edges, s, side="right")]
    return groups[:, groups.any(0)]


def preparations(group: str) -> list[tuple[str, float, bool, Any]]:
    """Return the name, strength, need of S and function of each preparation of another package.

    A function takes X and s of the training part and of the test part and returns both parts of X.
    """
    import torch

    def remover(alpha: float) -> Any:
        from fairlearn.preprocessing import CorrelationRemover

        def change(x: np.ndarray, s: np.ndarray, new: np.ndarray, new_s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            fitted = CorrelationRemover(sensitive_feature_ids=[0], alpha=alpha).fit(np.column_stack([s, x]))
            return tuple(fitted.transform(np.column_stack([b, a])) for a, b in ((x, s), (new, new_s)))

        return change

    def leace(bins: int) -> Any:
        from concept_erasure import LeaceFitter

        def change(x: np.ndarray, s: np.ndarray, new: np.ndarray, new_s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            concept = s[:, None]
            if bins:
                concept = bins_of(s, bins)
            mean, scale = x.mean(0), np.where(x.std(0) > 0, x.std(0), 1.0)
            parts = [torch.tensor((part - mean) / scale) for part in (x, new)]
            fitter = LeaceFitter.fit(parts[0], torch.tensor((concept - concept.mean(0)) / concept.std(0)))
            return tuple(fitter.eraser(part).numpy() for part in parts)

        return change

    if group == "fairlearn":
        return [("fairlearn", alpha, True, remover(alpha)) for alpha in STRENGTHS]
    return [("leace", 1.0, False, leace(0)), ("leace_bins", 1.0, False, leace(BINS))]


def prepared(
    change: Any,
    learner: str,
    data: tuple[np.ndarray, np.ndarray, np.ndarray],
    train: np.ndarray,
    test: np.ndarray,
    *,
    task: str,
) -> np.ndarray:
    """Return the predictions of a learner on prepared columns."""
    from frhsic_core.remedies.comparison import learner as make

    X, y, s = data
    seen, new = change(X[train], s[train], X[test], s[test])
    model = make(learner, task).fit(seen, y[train])
    return model.predict(new) if task == "regression" else model.predict_proba(new)[:, 1]


def penalized_network(
    package: str,
    strength: float,
    x: np.ndarray,
    y: np.ndarray,
    s: np.ndarray,
    new: np.ndarray,
    *,
    task: str,
    seed: int,
    steps: int = 150,
    batch: int = 256,
) -> np.ndarray:
    """Train a small network on quantile-scaled columns with a penalty of another package.

    A fifth of the samples decides when to stop: the network with the smallest sum of loss and penalty there is kept.
    maxcorr: HGR of the output and age (kernels of degree 3). fairret: the norm of the gaps of the positive rate over
    ten quantile bins of age; outputs of a regression pass through a sigmoid for the penalty.
    """
    import torch
    from sklearn.preprocessing import QuantileTransformer
    from torch.nn import functional as F

    torch.manual_seed(seed)
    scaler = QuantileTransformer(n_quantiles=min(200, len(x)), output_distribution="normal").fit(x)
    parts = [torch.tensor(scaler.transform(part), dtype=torch.float32) for part in (x, new)]
    mean, spread = (y.mean(), y.std()) if task == "regression" else (0.0, 1.0)
    target = torch.tensor((y - mean) / spread, dtype=torch.float32)
    age = torch.tensor((s - s.mean()) / s.std(), dtype=torch.float32)
    network = torch.nn.Sequential(
        torch.nn.Linear(x.shape[1], 32), torch.nn.ReLU(), torch.nn.Linear(32, 16), torch.nn.ReLU(),
        torch.nn.Linear(16, 1),
    )  # fmt: skip
    if package == "maxcorr":
        import maxcorr

        indicator = maxcorr.hgr(algorithm="sk", backend="torch")

        def penalty(output: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
            return indicator.compute(torch.sigmoid(output) if task == "classification" else output, age[rows])
    else:
        from fairret.loss import NormLoss
        from fairret.statistic import PositiveRate

        bins = torch.tensor(bins_of(s, BINS), dtype=torch.float32)
        norm = NormLoss(PositiveRate())

        def penalty(output: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
            return norm(output.unsqueeze(-1), bins[rows])

    order = torch.randperm(len(x))
    held, own = order[: len(x) // 5], order[len(x) // 5 :]
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01, weight_decay=1e-4)
    task_loss = F.mse_loss if task == "regression" else F.binary_cross_entropy_with_logits
    best = float("inf")
    kept = copy.deepcopy(network.state_dict())
    for step in range(steps):
        rows = own[torch.randint(len(own), (batch,))]
        output = network(parts[0][rows]).squeeze(-1)
        loss = task_loss(output, target[rows])
        if step >= 30:  # a network that has learned nothing yet is constant, where HGR has no gradient
            loss = loss + strength * penalty(output, rows)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 5.0)
        optimizer.step()
        if step >= 30 and step % 10 == 9:
            with torch.no_grad():
                output = network(parts[0][held]).squeeze(-1)
                value = float(task_loss(output, target[held]) + strength * penalty(output, held))
            if value < best:
                best = value
                kept = copy.deepcopy(network.state_dict())
    network.load_state_dict(kept)
    with torch.no_grad():
        output = network(parts[1]).squeeze(-1).double()
        return (torch.sigmoid(output) if task == "classification" else output * spread + mean).numpy()


def plan_attainable(preset: str) -> Study:
    """Return one unit for each table: the attainable frontier of the best model that sees age."""
    names = ("diabetes",) if preset == "smoke" else DATASETS
    name = "attainable_smoke" if preset == "smoke" else "attainable"
    return Study(name, "attainable", units_of(dataset=names, parity="distribution"))


def measure_unit_attainable(unit: dict[str, Any], device: str) -> list[dict[str, Any]]:
    """Return the points of the attainable frontier, from out-of-fold scores of the better of the two learners."""
    from sklearn.model_selection import cross_val_predict

    from frhsic_core.remedies import attainable_frontier
    from frhsic_core.remedies.comparison import LEARNERS, learner
    from frhsic_core.remedies.measures import score_of

    X, y, s, task = sample(unit["dataset"])
    aware = np.column_stack([X, s])
    found = []
    for name in LEARNERS:
        how = "predict" if task == "regression" else "predict_proba"
        scores = cross_val_predict(learner(name, task), aware, y, cv=5, method=how)
        scores = scores if task == "regression" else scores[:, 1]
        found.append((score_of(scores, y, task=task), name, scores))
    _, name, scores = max(found, key=lambda line: line[0])
    frontier = attainable_frontier(
        y, scores, sensitive_features=s, task=task, parity=unit["parity"], strengths=tuple(np.linspace(0, 1, 6))
    )
    return [{"learner": name, **row} for row in frontier.table.round(6).to_dict("records")]
