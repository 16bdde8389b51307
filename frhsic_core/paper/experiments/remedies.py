"""Compare our remedies with those of other packages on four small real tables, held out, over ten splits.

A unit is one dataset, one split and one group of methods. ``ours`` are the remedies of :mod:`frhsic_core.remedies`; the
other groups belong to the packages fairlearn (correlation remover), concept-erasure (LEACE), maxcorr and fairret
(penalties of a small network). These packages are needed to measure their own units only. The comparison is at about
equal quality, and the setting of a family is chosen on the other splits.
"""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from frhsic_core.paper.experiments import every_method
from frhsic_core.paper.experiments.shared.paired import corrected_t, holm, mean_of_others
from frhsic_core.paper.runs.plan import Study, units_of
from frhsic_core.registry import DATASETS as DATASET_ROWS
from frhsic_core.registry import OKABE_ITO, titles

if TYPE_CHECKING:
    import torch
    from matplotlib.figure import Figure

DATASETS = ("diabetes", "wage", "affairs", "pension")
TEST_SHARE = 0.3
STRENGTHS = (0.5, 1.0)
FINER = (0.5, 0.75, 1.0)  # of adjusted scores, which are fitted once for all strengths
BINS = 10
MOST_ROWS = 2500  # of a table; larger ones are drawn from once, so that the study takes minutes
# Label, color and marker of each family of remedies in a figure.
FAMILIES = {
    "ours": ("this library", "blue", "o"),
    "fairlearn": ("fairlearn", "orange", "v"),
    "concept_erasure": ("concept-erasure (LEACE)", "bluish green", "s"),
    "maxcorr": ("maxcorr", "reddish purple", "D"),
    "fairret": ("fairret", "vermillion", "^"),
}


def plan(preset: str) -> Study:
    """Return one unit for each dataset, split and group; ``smoke`` has our remedies on one split of the smallest."""
    if preset == "smoke":
        return Study("remedies_smoke", "remedies", units_of(split=0, dataset="diabetes", group="ours"))
    units = units_of(split=tuple(range(10)), dataset=DATASETS, group=tuple(FAMILIES))
    return Study("remedies", "remedies", units)


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
    from frhsic_core.remedies.comparison import measured

    X, y, s, task = sample(unit["dataset"])
    stratify = y if task == "classification" else None
    train, test = train_test_split(
        np.arange(len(y)), test_size=TEST_SHARE, random_state=unit["split"], stratify=stratify
    )
    known = (X[train], y[train], s[train]), (X[test], s[test])
    frame = read_attributes(s[test], len(test))
    scale = float(y[train].std())
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for labels, predicted, seconds in _GROUPS[unit["group"]](*known, task, unit["split"]):
            found = measured(predicted, y[test], frame, task=task, scale=scale)
            found["gdp"] = _smoothed(predicted / (scale if task == "regression" else 1.0), attribute_matrix(frame))
            numbers = {name: round(value, 6) for name, value in found.items()}
            columns = dict(zip(("method", "learner", "strength", "needs_s"), labels, strict=True))
            rows.append(columns | {"cpu_seconds": seconds} | numbers | {"task": task})
    return rows


Predictions = Iterator[tuple[tuple[str, str, float, bool], np.ndarray, float]]
Known = tuple[np.ndarray, ...]  # X, y and s of the training part, or X and s of the test part


def _ours(train: Known, test: Known, task: str, seed: int) -> Predictions:
    from frhsic_core.remedies.attributes import read_attributes
    from frhsic_core.remedies.comparison import ADJUSTED, LEARNERS, REMEDIES, fit_predict

    given = tuple((*part[:-1], read_attributes(part[-1], len(part[-1]))) for part in (train, test))
    for key, (_, needs_s) in REMEDIES.items():
        for learner in LEARNERS:
            # The random features of the kernel eraser are made for linear models, and boosting on them is slow.
            if key == "encoder" or (key, learner) == ("kernel_eraser", "boosting"):
                continue
            grid = {"none": (0.0,)}.get(key, FINER if key in ADJUSTED else STRENGTHS)
            for strength, predicted, seconds in fit_predict(key, learner, grid, *given, task=task):
                yield (key, learner, strength, needs_s), predicted, seconds


def _prepared(change: Callable[..., Any], train: Known, test: Known, task: str) -> Iterator[tuple[str, Any, float]]:
    """Yield the predictions of each learner on columns that ``change(x, s, new, new_s)`` prepares."""
    from frhsic_core.remedies.comparison import LEARNERS
    from frhsic_core.remedies.comparison import learner as make

    x, y, s = train
    for learner in LEARNERS:
        start = time.process_time()
        seen, new = change(x, s, *test)
        model = make(learner, task).fit(seen, y)
        predicted = model.predict(new) if task == "regression" else model.predict_proba(new)[:, 1]
        yield learner, predicted, time.process_time() - start


def _fairlearn(train: Known, test: Known, task: str, seed: int) -> Predictions:
    from fairlearn.preprocessing import CorrelationRemover

    def change(x: np.ndarray, s: np.ndarray, new: np.ndarray, new_s: np.ndarray) -> tuple[np.ndarray, ...]:
        fitted = CorrelationRemover(sensitive_feature_ids=[0], alpha=alpha).fit(np.column_stack([s, x]))
        return tuple(fitted.transform(np.column_stack([b, a])) for a, b in ((x, s), (new, new_s)))

    for alpha in STRENGTHS:
        for learner, predicted, seconds in _prepared(change, train, test, task):
            yield ("fairlearn", learner, alpha, True), predicted, seconds


def _concept_erasure(train: Known, test: Known, task: str, seed: int) -> Predictions:
    import torch
    from concept_erasure import LeaceFitter

    def change(x: np.ndarray, s: np.ndarray, new: np.ndarray, new_s: np.ndarray) -> tuple[np.ndarray, ...]:
        concept = bins_of(s, BINS) if name == "leace_bins" else s[:, None]
        mean, scale = x.mean(0), np.where(x.std(0) > 0, x.std(0), 1.0)
        parts = [torch.tensor((part - mean) / scale) for part in (x, new)]
        fitter = LeaceFitter.fit(parts[0], torch.tensor((concept - concept.mean(0)) / concept.std(0)))
        return tuple(fitter.eraser(part).numpy() for part in parts)

    for name in ("leace", "leace_bins"):
        for learner, predicted, seconds in _prepared(change, train, test, task):
            yield (name, learner, 1.0, False), predicted, seconds


def _maxcorr(train: Known, test: Known, task: str, seed: int) -> Predictions:
    """Penalize HGR of the output and age (kernels of degree 3)."""
    import maxcorr
    import torch

    indicator = maxcorr.hgr(algorithm="sk", backend="torch")
    s = train[2]
    age = torch.tensor((s - s.mean()) / s.std(), dtype=torch.float32)

    def penalty(output: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        return indicator.compute(torch.sigmoid(output) if task == "classification" else output, age[rows])

    return _networks_with(penalty, "maxcorr", train, test, task, seed)


def _fairret(train: Known, test: Known, task: str, seed: int) -> Predictions:
    """Penalize the norm of the gaps of the positive rate over ten bins of age; a regression's outputs as logits."""
    import torch
    from fairret.loss import NormLoss
    from fairret.statistic import PositiveRate

    bins = torch.tensor(bins_of(train[2], BINS), dtype=torch.float32)
    norm = NormLoss(PositiveRate())
    return _networks_with(
        lambda output, rows: norm(output.unsqueeze(-1), bins[rows]), "fairret", train, test, task, seed
    )


_GROUPS = {
    "ours": _ours,
    "fairlearn": _fairlearn,
    "concept_erasure": _concept_erasure,
    "maxcorr": _maxcorr,
    "fairret": _fairret,
}


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


def _networks_with(
    penalty: Callable[..., torch.Tensor], name: str, train: Known, test: Known, task: str, seed: int
) -> Predictions:
    for strength in (0.3, 1.0):
        start = time.process_time()
        predicted = penalized_network(penalty, strength, train[:2], test[0], task=task, seed=seed)
        yield (name, "network", strength, False), predicted, time.process_time() - start


def penalized_network(
    penalty: Callable[..., torch.Tensor], strength: float, train: Known, new: np.ndarray, *, task: str, seed: int
) -> np.ndarray:
    """Train a small network on quantile-scaled columns with ``penalty(output, rows)``, and predict new samples.

    A fifth of the samples decides when to stop: the network with the smallest sum of loss and penalty there is kept.
    """
    import torch
    from sklearn.preprocessing import QuantileTransformer
    from torch.nn import functional as F

    x, y = train
    torch.manual_seed(seed)
    scaler = QuantileTransformer(n_quantiles=min(200, len(x)), output_distribution="normal").fit(x)
    parts = [torch.tensor(scaler.transform(part), dtype=torch.float32) for part in (x, new)]
    mean, spread = (y.mean(), y.std()) if task == "regression" else (0.0, 1.0)
    target = torch.tensor((y - mean) / spread, dtype=torch.float32)
    network = torch.nn.Sequential(
        torch.nn.Linear(x.shape[1], 32), torch.nn.ReLU(), torch.nn.Linear(32, 16), torch.nn.ReLU(),
        torch.nn.Linear(16, 1),
    )  # fmt: skip
    order = torch.randperm(len(x))
    held, own = order[: len(x) // 5], order[len(x) // 5 :]
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01, weight_decay=1e-4)
    task_loss = F.mse_loss if task == "regression" else F.binary_cross_entropy_with_logits
    best = float("inf")
    kept = copy.deepcopy(network.state_dict())
    for step in range(150):
        rows = own[torch.randint(len(own), (256,))]
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


# Tables --------------------------------------------------------------------------------------------------------------

#: How far below the best unadjusted score a remedy may lie.
TOLERANCE = 0.03
#: Other tolerances, which show what of the conclusion depends on this one.
TOLERANCES = (0.01, 0.02, 0.03, 0.05, 0.1)
# The labels of the methods of other packages.
LABELS = {
    "fairlearn": "fairlearn's correlation remover",
    "leace_bins": "LEACE on bins of S",
    "maxcorr": "network with maxcorr",
    "fairret": "network with fairret",
    "concept_erasure": "LEACE (concept-erasure)",
}
RIVALS = {True: ("fairlearn",), False: ("concept_erasure", "maxcorr", "fairret")}


def title(dataset: str) -> str:
    """Return the title of a table of this study."""
    return "Diabetes" if dataset == "diabetes" else titles((dataset,))[dataset]


def complete(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the splits that every dataset and group has."""
    cells = rows.groupby("split")[["dataset", "group"]].apply(lambda part: len(part.drop_duplicates()))
    return rows[rows["split"].isin(cells.index[cells == cells.max()])]


def means(rows: pd.DataFrame) -> pd.DataFrame:
    """Return means over splits for each dataset, group, method, learner and strength."""
    keys = ["dataset", "task", "group", "method", "learner", "strength", "needs_s"]
    columns = ["score", "dcor", "gdp", "linear_r2", "nonlinear_r2", "cpu_seconds"]
    return rows.groupby(keys, sort=False)[columns].mean().reset_index()


def chosen(rows: pd.DataFrame, *, tolerance: float = TOLERANCE) -> pd.DataFrame:
    """Return, for each split, what a family reaches when its method and strength are chosen on the other splits.

    ``rows`` are those of one dataset and family, and of the method ``"none"``, which is always a choice and sets the
    score to keep. The choice is the least dependent of those whose mean score on the other splits is high enough.
    """
    indexed = rows.set_index(["method", "learner", "strength", "split"], drop=False)
    wide = {name: indexed[name].unstack("split") for name in ("score", "dcor")}
    score, dependence = (mean_of_others(values.to_numpy().T) for values in wide.values())
    plain = wide["score"].index.get_level_values("method") == "none"
    enough = score >= score[:, plain].max(1, keepdims=True) - tolerance
    places = np.where(enough, dependence, np.inf).argmin(1)
    keys = [(*wide["score"].index[place], split) for place, split in zip(places, wide["score"].columns, strict=True)]
    return indexed.loc[keys].reset_index(drop=True)


def families(rows: pd.DataFrame, *, needs_s: bool) -> dict[str, pd.DataFrame]:
    """Return the rows of each family of one dataset, with those of ``"none"``: ours first, then each rival."""
    plain = rows[rows["method"] == "none"]
    allowed = rows[(rows["needs_s"] == needs_s) & (rows["method"] != "none")]
    found = {"ours": allowed[allowed["group"] == "ours"]}
    found |= {group: allowed[allowed["group"] == group] for group in RIVALS[needs_s]}
    return {name: pd.concat([part, plain]) for name, part in found.items()}


def at_equal_score(rows: pd.DataFrame, *, tolerance: float = TOLERANCE) -> pd.DataFrame:
    """Return the dependence of each family at equal score and the corrected test of ours against each rival.

    One row for each dataset, need of S and family: mean score and distance correlation over the splits, the difference
    to ours (positive: ours depends less), its p-value by the corrected resampled t-test, and that after Holm's method
    over all rows.
    """
    from frhsic_core.remedies.comparison import REMEDIES

    names = {key: label for key, (label, _) in REMEDIES.items()} | LABELS
    lines = []
    for dataset in [name for name in DATASETS if (rows["dataset"] == name).any()]:
        for needs_s in (False, True):
            parts = families(rows[rows["dataset"] == dataset], needs_s=needs_s)
            picked = {name: chosen(part, tolerance=tolerance) for name, part in parts.items()}
            ours = picked["ours"]["dcor"].to_numpy()
            for name, part in picked.items():
                difference = part["dcor"].to_numpy() - ours
                p = 1.0 if name == "ours" else corrected_t(difference, test_share=TEST_SHARE)[1]
                usual = part.groupby(["method", "learner", "strength"]).size().idxmax()
                lines.append(
                    {
                        "dataset": dataset,
                        "needs_s": needs_s,
                        "family": name,
                        "choice": f"{names[usual[0]]}, {usual[1]}, {usual[2]:g}",
                        "score": part["score"].mean(),
                        "dcor": part["dcor"].mean(),
                        "gdp": part["gdp"].mean(),
                        "cpu_seconds": part["cpu_seconds"].mean(),
                        "difference": difference.mean(),
                        "p": p,
                        "splits": len(part),
                    }
                )
    table = pd.DataFrame(lines)
    rivals = table["family"] != "ours"
    table.loc[rivals, "p_holm"] = holm(table.loc[rivals, "p"].to_numpy())
    return table


def settings_of(rows: pd.DataFrame) -> pd.Series:
    """Return the number of settings (method, learner and strength) of each family, by need of S and family."""
    settings = rows[rows["method"] != "none"][["needs_s", "group", "method", "learner", "strength"]]
    return settings.drop_duplicates().groupby(["needs_s", "group"]).size()


def verdicts(table: pd.DataFrame) -> pd.Series:
    """Return for each comparison whether ours depends ``"less"``, ``"more"``, or does not differ significantly."""
    significant = table["p_holm"] < 0.05
    return pd.Series(
        np.where(significant, np.where(table["difference"] > 0, "less", "more"), "no difference"), index=table.index
    )[table["family"] != "ours"]


def by_tolerance(rows: pd.DataFrame, tolerances: tuple[float, ...] = TOLERANCES) -> pd.DataFrame:
    """Count the verdicts for several tolerances of the score.

    ``smallest_p`` is the smallest p-value, before Holm's correction, of the comparisons in which a rival depends less.
    """
    lines = []
    for tolerance in tolerances:
        table = at_equal_score(rows, tolerance=tolerance)
        counts = verdicts(table).value_counts()
        other = table[(table["family"] != "ours") & (table["difference"] < 0)]
        lines.append(
            {
                "tolerance": tolerance,
                **{word: int(counts.get(word, 0)) for word in ("less", "no difference", "more")},
                "smallest_p": other["p"].min() if len(other) else np.nan,
            }
        )
    return pd.DataFrame(lines)


def draw_equal(table: pd.DataFrame, rows: pd.DataFrame) -> Figure:
    """Draw :func:`at_equal_score`: for each table the dependence that each family leaves, without S and with S.

    A filled marker of another package means that ours depends significantly less.
    """
    import matplotlib.pyplot as plt

    plain = means(rows[rows["method"] == "none"])
    names = [name for name in DATASETS if (table["dataset"] == name).any()][::-1]
    verdict = verdicts(table)
    figure, axes = plt.subplots(2, 1, figsize=(5.6, 5.6), sharex=True, sharey=True, layout="constrained")
    for axis, needs_s in zip(axes, (False, True), strict=True):
        own = table[table["needs_s"] == needs_s]
        for place, name in enumerate(names):
            part = plain[plain["dataset"] == name]
            before = float(part.loc[part["score"].idxmax(), "dcor"])
            ours = float(own[(own["dataset"] == name) & (own["family"] == "ours")]["dcor"].iloc[0])
            axis.plot([ours, before], [place, place], color="0.85", linewidth=7, zorder=0, solid_capstyle="butt")
            axis.plot(before, place, "|", color="black", markersize=16, markeredgewidth=2)
        for number, (family, (_, color, marker)) in enumerate(FAMILIES.items()):
            part = own[own["family"] == family]
            shift = 0.0 if family == "ours" else 0.11 * (number - 2.5)
            for index, line in part.iterrows():
                filled = family == "ours" or verdict[index] == "less"
                axis.plot(line["dcor"], names.index(line["dataset"]) + shift, marker, color=OKABE_ITO[color],
                          markersize=9 if family == "ours" else 6.5, zorder=3 if family == "ours" else 2,
                          markerfacecolor=OKABE_ITO[color] if filled else "white")  # fmt: skip
        axis.set_title("S is used to predict" if needs_s else "S is not used to predict", fontsize=11)
        axis.set_yticks(range(len(names)), [title(name) for name in names])
        axis.set_ylim(-0.6, len(names) - 0.4)
    axes[0].set_xlim(left=0)
    axes[1].set_xlabel("dependence on age at equal quality (dCor)")
    handles = [axes[0].plot([], [], "|", color="black", markersize=14, markeredgewidth=2)[0]]
    labels = ["no remedy"]
    for label, color, marker in FAMILIES.values():
        handles.append(axes[0].plot([], [], marker, color=OKABE_ITO[color], markersize=7)[0])
        labels.append(label)
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    return figure


# The decision tree: questions, one remedy at each leaf, and one number of evidence for each remedy -----------------


@dataclass(frozen=True)
class Leaf:
    """A remedy: its key in the stored rows, what a user types, its color, and whether its evidence is linear only."""

    method: str
    call: str
    color: str
    linear: bool = False


@dataclass(frozen=True)
class Question:
    """A question and its answers, each of which leads to another question or to a remedy."""

    text: str
    answers: dict[str, Question | Leaf]


ENCODER = "encoder"
TREE = Question(
    "What do you hand over?",
    {
        "the scores of one model": Question(
            "May a score use the person's S?",
            {
                "yes": Question(
                    "What must not change with S?",
                    {
                        "all scores": Leaf("adjust_rank", 'adjust_scores, method="rank"', "bluish green"),
                        "their mean": Leaf("adjust_mean", 'adjust_scores, method="mean"', "bluish green"),
                    },
                ),
                "no": Leaf("project", 'AdjustedClassifier, method="project"', "blue"),
            },
        ),
        "data for other models": Question(
            "Are all other models linear?",
            {
                "yes": Question(
                    "Is S known for new people?",
                    {
                        "yes": Leaf("correlation_remover", "CorrelationRemover", "orange", linear=True),
                        "no": Leaf("kernel_eraser", "KernelEraser", "sky blue", linear=True),
                    },
                ),
                "no": Leaf(ENCODER, "FairEncoder", "vermillion"),
            },
        ),
    },
)


def leaves(node: Question | Leaf = TREE) -> list[Leaf]:
    """Return the remedies from top to bottom."""
    if isinstance(node, Leaf):
        return [node]
    return [leaf for answer in node.answers.values() for leaf in leaves(answer)]


def evidence(rows: pd.DataFrame, study: pd.DataFrame) -> dict[str, float]:
    """Return for each remedy how many percent of the dependence are left, the mean over datasets.

    A remedy is judged by the distance correlation on the four small tables (``rows`` of ``remedies``), at the setting
    that loses at most 0.03 of the quality and is chosen on the other splits. The trained encoder is judged by the
    boosting probe on the datasets of the paper (``study``, rows of ``every_method``), where it loses at most 1 %.
    """
    found = {}
    for leaf in leaves():
        if leaf.method == ENCODER:
            probe = every_method.strongest(study)["boosting_r2"]
            shares = list(probe.loc[every_method.WHITENED] / probe.loc["unfair"])
        else:
            own = rows[(rows["method"] == "none") | ((rows["method"] == leaf.method) & (rows["group"] == "ours"))]
            own = own[own["learner"] == "linear"] if leaf.linear else own
            shares = []
            for _, part in own.groupby("dataset"):
                plain = means(part[part["method"] == "none"])
                shares.append(chosen(part)["dcor"].mean() / plain.loc[plain["score"].idxmax(), "dcor"])
        found[leaf.method] = 100 * float(np.mean(shares))
    return found


def sentence(leaf: Leaf, found: dict[str, float]) -> str:
    """Return the evidence of a remedy in words."""
    what = "what boosting finds" if leaf.method == ENCODER else "the dependence"
    return f"{found[leaf.method]:.0f} % of {what} is left"


def tree_text(found: dict[str, float], node: Question = TREE, *, indent: int = 0) -> str:
    """Return the tree as an indented list: the same content as the figure, for readers who cannot see it."""
    lines = [" " * indent + node.text]
    for answer, following in node.answers.items():
        start = f"{' ' * indent}- {answer}:"
        if isinstance(following, Leaf):
            lines.append(f"{start} {following.call}. {sentence(following, found)}.")
        else:
            lines += [start, tree_text(found, following, indent=indent + 4)]
    return "\n".join(lines)


def draw_tree(found: dict[str, float]) -> Figure:
    """Draw the tree as an indented list, narrow enough for a phone, with a bar in its color before each remedy."""
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(5.4, 5.8), layout="constrained")
    end = [0.0]

    def add(node: Question | Leaf, depth: int, answer: str) -> float:
        """Draw a node below the last one and what follows from it; return its height."""
        y = end[0]
        end[0] -= 1.65 if isinstance(node, Leaf) else 1.25
        if answer:
            axis.text(depth, y, f"  {answer}", style="italic", va="center")
        if isinstance(node, Leaf):
            axis.plot([depth + 0.1] * 2, [y - 0.3, y - 1.15], color=OKABE_ITO[node.color], lw=5, solid_capstyle="butt")
            axis.text(depth + 0.25, y - 0.5, node.call, weight="bold", va="center")
            axis.text(depth + 0.25, y - 0.98, sentence(node, found), va="center")
            return y
        axis.text(depth + 0.1, y - 0.55, node.text, va="center",
                  bbox={"boxstyle": "round,pad=0.25", "facecolor": "0.94", "edgecolor": "0.6"})  # fmt: skip
        for next_answer, following in node.answers.items():
            height = add(following, depth + 1, next_answer)
            axis.plot([depth + 0.4, depth + 0.4, depth + 1], [y - 0.9, height, height], color="0.6", lw=1.2, zorder=0)
        return y

    add(TREE, 0, "")
    axis.set_xlim(-0.1, 6.2)
    axis.set_ylim(end[0], 0)
    axis.axis("off")
    return figure
