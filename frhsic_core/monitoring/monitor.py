"""Count the rows of a model period by period, and keep what is needed in one small file."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from operator import methodcaller
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from frhsic_core._atomic_files import claim, write_atomically
from frhsic_core.bounds.result import check_count, check_delta
from frhsic_core.inputs.columns import Column, read_column
from frhsic_core.monitoring.history import History, history_of
from frhsic_core.monitoring.windows import ALARM, Batch

FORMAT = 1
MOST_GROUPS = 1000
_KEY = "sha256"
ASSUMPTIONS = (
    "The rows between two certain changes are independent draws from one distribution.",
    "The model was fixed before these rows were seen, so not trained, chosen or tuned on them.",
    "No row is counted twice.",
)


@dataclass(frozen=True)
class Settings:
    """What is fixed before the first row, and never changes.

    Attributes
    ----------
    model : str
        Name and version of the model.
    score, sensitive : str
        What the scores and the attribute are called.
    planned_rows : int
        The number of rows for which the guarantee is tightest.
    delta : float
        Largest probability that any statement is ever wrong.
    edges : tuple of float
        Inner edges of bins of the attribute; without them each value is a group.
    lowest, highest : float
        Smallest and largest possible score.
    every : str
        The length of a period, or ``"file"``.
    row_id : str
        The column that names a row, or empty.
    """

    model: str
    score: str = "score"
    sensitive: str = "attribute"
    planned_rows: int = 10_000
    delta: float = 0.05
    edges: tuple[float, ...] = ()
    lowest: float = 0.0
    highest: float = 1.0
    every: str = "month"
    row_id: str = ""

    def __post_init__(self) -> None:
        check_delta(self.delta, 1)
        check_count("planned_rows", self.planned_rows)
        if not self.model.strip():
            raise ValueError("model is empty: name the model and its version.")
        if not self.lowest < self.highest:
            raise ValueError(
                f"the range is {self.lowest:g} to {self.highest:g}: give the smallest and the "
                "largest possible score."
            )

    @property
    def unit(self) -> float:
        """The length of the range of the scores."""
        return self.highest - self.lowest

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must hold; the guarantee claims nothing if one of them fails."""
        tuned = (
            f"The guarantee is tuned to {self.planned_rows:,} rows and the alarms to "
            f"{max(2, self.planned_rows // ALARM):,}, numbers that were fixed before the first row "
            "was seen."
        )
        if not self.edges:
            return (*ASSUMPTIONS, tuned)
        bins = "The edges of the bins were fixed before these rows were seen."
        return (*ASSUMPTIONS, bins, tuned)

    def require(self, other: Settings, name: str) -> None:
        """Raise an error that names the first setting in which another monitor differs."""
        for key, value in asdict(self).items():
            given = asdict(other)[key]
            if given != value:
                raise ValueError(
                    f"{name} was begun with {key} = {value!r}, and now it is {given!r}: a guarantee "
                    "holds for one model and one plan. Name another state file for this one."
                )


@dataclass
class Monitor:
    """The rows of one model so far, as sums.

    Attributes
    ----------
    settings : Settings
        What was fixed in advance.
    batches : list of Batch
        Two for each period and look: the first shows where the gap is, the second measures it.
    seen : ndarray
        Hashes of the rows that were counted, sorted.
    files : list of dict
        Name and hash of each file that was counted.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> monitor = Monitor(Settings("credit 3", planned_rows=6000))
    >>> for month in ("2025-01", "2025-02", "2025-03"):
    ...     age = rng.integers(0, 3, 2000)
    ...     monitor.add(rng.beta(2 + age, 4), age, period=month)
    >>> history = monitor.history()
    >>> [period.name for period in history.periods], history.changes
    (['2025-01', '2025-02', '2025-03'], ())
    >>> truth = (0.0873 + 0.0079 + 0.0794) / 3  # the mean scores are 2/6, 3/7 and 4/8
    >>> history.last.at_least < truth < history.last.guarantee
    True
    """

    settings: Settings
    batches: list[Batch] = field(default_factory=list)
    seen: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))
    files: list[dict[str, Any]] = field(default_factory=list)
    words: bool | None = None

    @property
    def rows(self) -> int:
        """Number of rows that were counted."""
        return sum(batch.rows for batch in self.batches)

    def add(self, scores: Any, attribute: Any, *, period: str) -> None:
        """Count rows that were not counted before.

        Parameters
        ----------
        scores, attribute : array_like
            ``(n,)``. The order of the rows does not matter: a random half shows where the gap is.
        period : str
            A new period, or the latest one.
        """
        if self.batches and period != self.batches[-1].period:
            earlier = {batch.period for batch in self.batches}
            if period in earlier:
                raise ValueError(
                    f"the period {period} is over: its rows count in {self.batches[-1].period}."
                )
        settings = self.settings
        column = read_column(pd.Series(attribute), name=settings.sensitive)
        if column.missing:
            raise ValueError(
                f"{settings.sensitive} has {column.missing} missing values: drop those rows first."
            )
        words = bool(column.categories)
        if self.words is not None and words != self.words:
            raise ValueError(
                f"{settings.sensitive} has words in some periods and numbers in others: write it in "
                "one way."
            )
        if words and settings.edges:
            raise ValueError(f"{settings.sensitive} has words: bins need numbers.")
        f = _scaled(scores, settings)
        if len(f) != len(column.values):
            raise ValueError(f"there are {len(f)} scores but {len(column.values)} attributes.")
        labels = _labels(column, settings.edges)
        known = {group for batch in self.batches for group in batch.counts}
        if len(known | set(labels.tolist())) > MOST_GROUPS:
            raise ValueError(
                f"{settings.sensitive} has more than {MOST_GROUPS} values: with so many groups no "
                "guarantee is useful. Round it, or pass the edges of bins."
            )
        self.words = words
        numbers = np.full(len(f), math.nan) if words else column.values
        # The split must not depend on the rows: it may depend on how many there were.
        second = np.random.default_rng([len(self.batches), len(f)]).permutation(len(f)) % 2 == 1
        for rows in (~second, second):
            if rows.any():
                self.batches.append(_batch(period, f[rows], labels[rows], numbers[rows]))

    def history(self) -> History:
        """Return what was known at the end of each period."""
        if not self.batches:
            raise ValueError("no row was counted yet: add some.")
        settings = self.settings
        return history_of(
            self.batches,
            delta=settings.delta,
            planned_rows=settings.planned_rows,
            low=settings.lowest,
            unit=settings.unit,
        )

    def new_rows(self, hashes: np.ndarray) -> np.ndarray:
        """Return which rows have a hash that is neither known nor that of an earlier one of them."""
        _, first = np.unique(hashes, return_index=True)
        fresh = np.zeros(len(hashes), dtype=bool)
        fresh[first] = True
        return fresh & ~np.isin(hashes, self.seen)

    def remember(self, hashes: np.ndarray) -> None:
        """Remember that the rows with these hashes were counted."""
        self.seen = np.union1d(self.seen, np.asarray(hashes, dtype=np.uint64))

    # The file --------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        packed = base64.b85encode(zlib.compress(self.seen.astype("<u8").tobytes()))
        return {
            "format": FORMAT,
            "settings": asdict(self.settings),
            "words": self.words,
            "files": self.files,
            "batches": [_without_nan(asdict(batch)) for batch in self.batches],
            "seen": packed.decode("ascii"),
        }

    @classmethod
    def from_dict(cls, given: dict[str, Any]) -> Monitor:
        """Return the monitor of :meth:`to_dict`."""
        settings = dict(given["settings"])
        settings["edges"] = tuple(settings["edges"])
        packed = zlib.decompress(base64.b85decode(given["seen"]))
        batches = []
        for batch in given["batches"]:
            attribute = math.nan if batch["attribute"] is None else batch["attribute"]
            batches.append(Batch(**{**batch, "attribute": attribute}))
        seen = np.frombuffer(packed, dtype="<u8").astype(np.uint64)
        return cls(Settings(**settings), batches, seen, list(given["files"]), given["words"])

    def to_bytes(self) -> bytes:
        """Return the content of the file, with a hash of it."""
        content = self.to_dict()
        return json.dumps({**content, _KEY: _digest(content)}, indent=1).encode()

    def save(self, path: Path) -> None:
        """Write the file as a whole or not at all."""
        write_atomically({path: methodcaller("write", self.to_bytes())})

    @classmethod
    def load(cls, path: Path) -> Monitor:
        """Read the file, and refuse one that is damaged or of another program."""
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            digest = content.pop(_KEY)
            if content["format"] != FORMAT:
                raise ValueError(f"{path} was written by another version of frhsic.")
            if digest != _digest(content):
                raise ValueError(f"{path} was changed: take the file that frhsic monitor wrote.")
            return cls.from_dict(content)
        except (KeyError, TypeError, AttributeError, UnicodeDecodeError, zlib.error) as error:
            raise ValueError(f"{path} is no state of frhsic monitor.") from error
        except json.JSONDecodeError as error:
            raise ValueError(f"{path} is no state of frhsic monitor.") from error


@contextmanager
def resumed(path: Path, settings: Settings) -> Iterator[Monitor]:
    """Yield the monitor of a state file, or a new one; nobody else may use the file meanwhile."""
    with claim(path.with_name(f".{path.name}.lock")) as alone:
        if not alone:
            raise ValueError(f"{path} is in use: another frhsic monitor is running.")
        if not path.exists():
            yield Monitor(settings)
            return
        monitor = Monitor.load(path)
        monitor.settings.require(settings, str(path))
        yield monitor


def row_hashes(columns: Sequence[pd.Series]) -> np.ndarray:
    """Return a number of 64 bits for each row, the same for 34 and 34.0."""
    texts = [_as_text(column) for column in columns]
    found = np.zeros(len(columns[0]), dtype=np.uint64)
    for k, cells in enumerate(zip(*texts, strict=True)):
        digest = hashlib.blake2b("\x1f".join(cells).encode("utf-8", "replace"), digest_size=8)
        found[k] = int.from_bytes(digest.digest(), "little")
    return found


def _as_text(column: pd.Series) -> list[str]:
    if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
        numbers = column.to_numpy(dtype=float, na_value=math.nan)
        if pd.api.types.is_integer_dtype(column) and (np.abs(numbers) >= 2.0**53).any():
            return [str(value) for value in column]  # long numbers of customers stay exact
        return [repr(value) for value in numbers.tolist()]
    return [str(value) for value in column]


def _scaled(scores: Any, settings: Settings) -> np.ndarray:
    """Return the scores on a scale from 0 to 1."""
    column = read_column(pd.Series(scores), name=settings.score)
    if column.categories or column.missing:
        raise ValueError(f"{settings.score} has words or missing values: pass numbers.")
    low, high = float(column.values.min()), float(column.values.max())
    if low < settings.lowest or high > settings.highest:
        raise ValueError(
            f"{settings.score} has values from {low:g} to {high:g}, outside of "
            f"{settings.lowest:g} to {settings.highest:g}: give the smallest and the largest value "
            "that a score can have."
        )
    return (column.values - settings.lowest) / settings.unit


def _labels(column: Column, edges: Sequence[float]) -> np.ndarray:
    """Return the name of the group of each row."""
    if column.categories:
        return np.asarray(column.categories)[column.values.astype(int)]
    if edges:
        return np.searchsorted(np.asarray(edges), column.values, side="right").astype(str)
    return np.array([repr(value) for value in column.values.tolist()])


def _batch(period: str, f: np.ndarray, labels: np.ndarray, numbers: np.ndarray) -> Batch:
    groups, places = np.unique(labels, return_inverse=True)
    counts = np.bincount(places)
    sums = np.bincount(places, f)
    return Batch(
        period,
        len(f),
        float((f**2).sum()),
        dict(zip(groups.tolist(), counts.tolist(), strict=True)),
        dict(zip(groups.tolist(), sums.tolist(), strict=True)),
        float(numbers.sum()),
    )


def _without_nan(values: dict[str, Any]) -> dict[str, Any]:
    if math.isnan(values["attribute"]):
        return {**values, "attribute": None}
    return values


def _digest(content: dict[str, Any]) -> str:
    written = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(written.encode()).hexdigest()
