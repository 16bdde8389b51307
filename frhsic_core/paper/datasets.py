"""Load the paper's datasets as its text describes them, or as its released code prepares them, and split them.

The two differ for Adult (rows with missing values), Crime (the sensitive attribute) and MEPS (the panel). The keys of
the variants, ``"text"`` and ``"reference"``, are part of stored rows. The ``"text"`` variant is what
:func:`frhsic_core.load_dataset` loads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from frhsic_core._choices import one_of
from frhsic_core.data import _adult, _crime, _meps
from frhsic_core.data._files import RawFile
from frhsic_core.data._loading import RECIPES, available_datasets, load_recipe
from frhsic_core.data._recipes import Dataset, Provenance, Recipe, Source, Table, numeric
from frhsic_core.data._synthetic import log_odds
from frhsic_core.registry import DATASETS

if TYPE_CHECKING:
    import torch

REFERENCE_SEEDS = (42, 43, 44, 45, 46)
TRAIN_TEST = (0.8, 0.2)
Rows = dict[str, np.ndarray]
VARIANTS = {
    "text": "the data as the paper describes them",
    "reference": "the data as the authors' released code prepares them",
}

# --- MEPS as the released code prepares it -------------------------------------------------------------------------
# The released code takes the whole file HC-181, but its education variable (EDUCYR) is -1 for nearly all of Panel 19,
# so that its 13,283 rows are almost all from Panel 20. The two-panel extract comes closest to these rows; the official
# file gives them exactly.

TWO_PANEL_FEATURES = (
    "SEX",
    "RACEV1X",
    "MARRY15X",
    "EDUCYR",
    "INSCOV15",
    *_meps.DIAGNOSES,
    "FAMINC15",
)
#: What the released code's "first column with that prefix" finds in the official file.
REFERENCE_FEATURES = (
    "SEX", "RACEV1X", "MARRY31X", "EDUCYR", "REGION31", "POVCAT15", "INSCOV15", *_meps.DIAGNOSES, "TTLP15X", "FAMINC15",
)  # fmt: skip
VISITS_IN_EXTRACT = ("OBTOTV15", "OPTOTV15", "ERTOT15", "IPDIS15", "HHTOTD15")
TWO_PANELS = RawFile(
    dataset="meps",
    name="meps_hc181_2015_eco637_extract.csv.gz",
    sha256=("b1043a4864dceeb49f16f2fe387c222affa3b6af43f5d4087a3a8620f027c154",),
)


def read_two_panels(path: Path) -> Table:
    """Read the two-panel extract, the closest to the released code that this file allows: 16 features."""
    raw = pd.read_csv(path)
    visits = numeric(raw[list(VISITS_IN_EXTRACT)], file=path.name).fillna(0.0).sum(axis=1)
    return _meps.complete_table(
        raw,
        (visits >= _meps.VISITS_CUT).to_numpy(),
        TWO_PANEL_FEATURES,
        file=path.name,
        source="both panels of MEPS HC-181, an extract",
        steps=[("rows of both panels", len(raw))],
        notes=[
            "The released code has 13,283 rows and 19 features from the full file; this extract lacks region, poverty "
            "and person income, hence more complete rows and 16 features.",
            "Inpatient discharges stand for inpatient nights, which the extract lacks; on Panel 19 this label agrees "
            "with the exact one in 99.5 % of rows.",
            "Nearly all complete rows are Panel 20: EDUCYR is -1 for most of Panel 19.",
        ],
    )


def read_both_panels(path: Path) -> Table:
    """Read all rows of the official file with the columns of the released code."""
    raw, visits = _meps.read_transport_file(path, REFERENCE_FEATURES)
    return _meps.complete_table(
        raw,
        (visits >= _meps.VISITS_CUT).to_numpy(),
        REFERENCE_FEATURES,
        file="h181.ssp",
        source="the official file MEPS HC-181",
        steps=[("rows of HC-181", len(raw))],
        notes=["As the released code: no panel filter, the first column with each prefix."],
    )


# --- the variants --------------------------------------------------------------------------------------------------

#: What the released code prepares otherwise than the text.
REFERENCE: dict[str, Recipe] = {
    "adult": replace(
        _adult.RECIPE,
        sources=(
            Source(
                "official", _adult.FILE, partial(_adult.read, keep_missing=True), (32_561,), 107
            ),
        ),
    ),
    # The code takes the column at position 6; racepctblack is the next one and stays among the features.
    "crime": replace(
        _crime.RECIPE,
        sensitive="householdsize",
        sources=(
            Source(
                "official",
                _crime.FILE,
                partial(_crime.read, sensitive="householdsize"),
                (1_994,),
                99,
            ),
        ),
    ),
    "meps": replace(
        _meps.RECIPE,
        sources=(
            Source("official", _meps.OFFICIAL, read_both_panels, (_meps.OFFICIAL_ROWS, 13_283), 19),
            Source("extract", TWO_PANELS, read_two_panels, (_meps.OFFICIAL_ROWS, 13_707), 16),
        ),
    ),
}
_CRIME = (
    "The paper's text names racial composition as S; its released code uses householdsize and leaves racepctblack in "
    "X. variant='text' and variant='reference' are these two."
)
#: Differences between the paper's text, its code and the data.
NOTES = {
    (
        "adult",
        "text",
    ): "The paper prints d = 107 for the complete rows; they have 103 columns (107 belongs to all rows).",
    ("adult", "reference"): (
        'The released code meant to drop rows with "?" but its marker never matches, so all rows stay.'
    ),
    ("crime", "text"): _CRIME,
    ("crime", "reference"): _CRIME,
}


def recipe_of(name: str, variant: str = "text") -> Recipe:
    """Return the recipe of a variant of a dataset."""
    one_of("dataset", name, available_datasets())
    one_of("variant", variant, VARIANTS)
    recipes = RECIPES | (REFERENCE if variant == "reference" else {})
    return recipes[name]


def sources_of(name: str, variant: str = "text") -> tuple[Source, ...]:
    """Return the files that give a variant, the preferred one first; none for a law."""
    return recipe_of(name, variant).sources


def variants_of(name: str) -> tuple[str, ...]:
    """Return both variants of a dataset of the paper, and ``"text"`` alone for any other."""
    return tuple(VARIANTS) if DATASETS[name].paper else ("text",)


def load_variant(name: str, variant: str = "text", **options: Any) -> Dataset:
    """Load a variant of a dataset.

    Parameters
    ----------
    name : str
        One of :func:`frhsic_core.data.available_datasets`.
    variant : {"text", "reference"}
        The data as the paper describes them, or as its released code prepares them.
    **options
        As in :func:`frhsic_core.load_dataset`.

    Examples
    --------
    >>> load_variant("synthetic", "reference", n=100).provenance.variant
    'reference'
    """
    data = load_recipe(name, recipe_of(name, variant), title=f"{name} ({variant})", **options)
    note = NOTES.get((name, variant))
    notes = data.provenance.notes if note is None else (note, *data.provenance.notes)
    return replace(data, provenance=replace(data.provenance, variant=variant, notes=notes))


def as_dict(provenance: Provenance) -> dict[str, Any]:
    """Return a provenance as plain lists and strings, ready for JSON."""
    return {
        "dataset": provenance.dataset,
        "variant": provenance.variant,
        "source": provenance.source,
        "files": [{"name": f.name, "sha256": f.sha256} for f in provenance.files],
        "steps": [[what, rows] for what, rows in provenance.steps],
        "notes": list(provenance.notes),
    }


def accuracy_levels(signal: str = "paper") -> dict[str, float]:
    r"""Return the best possible accuracies of the classification task, computed by a Riemann sum to four digits.

    ``majority`` belongs to the best constant, ``bayes`` to the best predictor, and ``parity`` to the best predictor
    g(X) ∈ {0, 1} with P(g = 1 | S = s) the same for every s. Since P(g = 1 | S = s) is P(g = 1 | X₁ = ·) convolved
    with a Gaussian, and that is injective, it is constant only if P(g = 1 | X₁ = ·) is. The odds rise in X₂, so the
    best such g is a threshold on X₂ alone, or a constant if the label does not depend on X₂.

    Examples
    --------
    >>> {name: round(value, 3) for name, value in accuracy_levels().items()}
    {'majority': 0.618, 'parity': 0.618, 'bayes': 0.629}
    """
    from scipy.special import expit, ndtr

    x1, x2 = np.linspace(-2.0, 3.0, 1001), np.linspace(-8.0, 8.0, 1601)
    # X₁ is uniform plus noise of standard deviation 0.3.
    first, second = ndtr(x1 / 0.3) - ndtr((x1 - 1.0) / 0.3), np.exp(-0.5 * x2**2)
    first, second = first / first.sum(), second / second.sum()
    odds = expit(log_odds(x1[:, None], x2[None, :], signal=signal)) + np.zeros((1, x2.size))
    mean = first @ odds  # P(Y = 1 | X₂)
    # A threshold on X₂: Y = 1 above it, Y = 0 below.
    above = np.concatenate([[0.0], np.cumsum((second * mean)[::-1])])
    below = np.concatenate([[0.0], np.cumsum((second * (1.0 - mean))[::-1])])
    share = float(second @ mean)
    return {
        "majority": max(share, 1.0 - share),
        "parity": float((above + (1.0 - share) - below).max()),
        "bayes": float(first @ np.maximum(odds, 1.0 - odds) @ second),
    }


# --- splits ----------------------------------------------------------------------------------------------------------


def split_indices(
    n: int, *, random_state: int = 42, fractions: Sequence[float] = TRAIN_TEST
) -> Rows:
    """Split n rows as the authors do: permute them, then cut at int(fraction · n).

    Parameters
    ----------
    n : int
        Number of rows.
    random_state : int
        Seed of NumPy's legacy generator; the paper's five splits are 42 to 46.
    fractions : sequence of float
        Two (train, test) or three (train, validation, test) shares that sum to one.

    Returns
    -------
    dict
        The row numbers of ``"train"``, ``"validation"`` (of three parts) and ``"test"``; each row is in one part.

    Examples
    --------
    >>> split = split_indices(10, random_state=42)
    >>> split["train"].tolist(), split["test"].tolist()
    ([8, 1, 5, 0, 7, 2, 9, 4], [3, 6])
    """
    sizes = [int(fraction * n) for fraction in fractions[:-1]]
    order = np.random.RandomState(random_state).permutation(n)
    names = ("train", "validation", "test") if len(fractions) == 3 else ("train", "test")
    return dict(zip(names, np.split(order, np.cumsum(sizes)), strict=True))


@dataclass(frozen=True, eq=False)
class SplitStack:
    """Several splits of one dataset as tensors with a leading dimension, one entry per split.

    ``x_*`` is (splits, n, d), ``s_*`` is (splits, n) or (splits, n, p), ``y_*`` is (splits, n). Without a validation
    part its tensors are None.
    """

    x_train: torch.Tensor
    s_train: torch.Tensor
    y_train: torch.Tensor
    x_test: torch.Tensor
    s_test: torch.Tensor
    y_test: torch.Tensor
    seeds: tuple[int, ...]
    task: str
    name: str
    x_validation: torch.Tensor | None = None
    s_validation: torch.Tensor | None = None
    y_validation: torch.Tensor | None = None

    def __len__(self) -> int:
        return len(self.seeds)


def stack_splits(
    dataset: Dataset,
    *,
    seeds: Iterable[int] = REFERENCE_SEEDS,
    fractions: Sequence[float] = TRAIN_TEST,
    device: torch.device | str | None = None,
) -> SplitStack:
    """Split a dataset once per seed and return all splits as one stack of tensors on a device.

    Each column of X and S is mapped to (x - min) / (max - min) with the minimum and maximum of the training rows of
    each split, so that test values may lie outside [0, 1]. A column that is constant on these rows is shifted but not
    divided. Time and memory O(splits · n · d); the scaling is done in float64, one split at a time.

    Parameters
    ----------
    dataset : Dataset
        A dataset from `load_dataset`.
    seeds : iterable of int
        One seed for each split; the paper uses 42 to 46.
    fractions : sequence of float
        See `split_indices`.
    device : optional
        Device of the tensors (default CPU); their precision is float32, as in the paper.

    Examples
    --------
    >>> from frhsic_core.data import load_dataset
    >>> stack = stack_splits(load_dataset("synthetic", n=1000), seeds=range(3))
    >>> tuple(stack.x_train.shape), tuple(stack.s_test.shape)
    ((3, 800, 2), (3, 200))
    >>> float(stack.s_train.min()), float(stack.s_train.max())
    (0.0, 1.0)
    """
    import torch

    seeds = tuple(int(seed) for seed in seeds)
    x, s, y = tensors_of(dataset, device=device)
    splits = [split_indices(dataset.n, random_state=seed, fractions=fractions) for seed in seeds]
    tensors: dict[str, list[torch.Tensor]] = {
        f"{key}_{part}": [] for key in "xsy" for part in splits[0]
    }
    for split in splits:
        rows = {part: torch.as_tensor(numbers, device=x.device) for part, numbers in split.items()}
        for key, values in {
            "x": _scaled(x, rows["train"]),
            "s": _scaled(s, rows["train"]),
            "y": y,
        }.items():
            for part, numbers in rows.items():
                tensors[f"{key}_{part}"].append(values[numbers].float())
    stacked = {name: torch.stack(found) for name, found in tensors.items()}
    return SplitStack(**stacked, seeds=seeds, task=dataset.task, name=dataset.name)


def tensors_of(
    dataset: Dataset, *, device: torch.device | str | None = None
) -> tuple[torch.Tensor, ...]:
    """Return x, s and y as new tensors in float64."""
    import torch

    return tuple(
        torch.tensor(part, dtype=torch.float64, device=device)
        for part in (dataset.X, dataset.s, dataset.y)
    )


def _scaled(values: torch.Tensor, train: torch.Tensor) -> torch.Tensor:
    low = values[train].amin(dim=0)
    width = values[train].amax(dim=0) - low
    return (values - low) / width.where(width > 0, 1.0)
