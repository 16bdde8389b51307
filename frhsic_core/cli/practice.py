"""Define the commands of practice: ``frhsic audit`` and ``frhsic adjust``."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import methodcaller
from pathlib import Path
from typing import Annotated, Any

import typer

from frhsic_core._atomic_files import is_special, write_atomically
from frhsic_core._choices import one_of
from frhsic_core.cli import outputs
from frhsic_core.cli.terminal import echo, waiting
from frhsic_core.data._loading import load_dataset
from frhsic_core.inputs.files import Source, Table, read_table, read_whole_table, source

Sensitive = Annotated[
    list[str] | None, typer.Option(help="Column of a sensitive attribute. Can be repeated.")
]


# The audit ------------------------------------------------------------------------------------


WITHOUT_ATTRIBUTE = ("empty", "refuse", "leave", "expected")
NoOverwrite = Annotated[
    bool,
    typer.Option("--no-overwrite", help="Refuse to replace files that exist."),
]


def audit(
    predictions: Annotated[
        Path | None,
        typer.Argument(
            help="CSV file, parquet file, folder of parquet files or pipe; one row a person."
        ),
    ] = None,
    score: Annotated[list[str] | None, typer.Option(help="Column of the predictions.")] = None,
    sensitive: Sensitive = None,
    label: Annotated[str | None, typer.Option(help="Column of the true labels.")] = None,
    control: Annotated[
        list[str] | None,
        typer.Option(help="Column of a legitimate factor to adjust for. Can be repeated."),
    ] = None,
    weight: Annotated[str | None, typer.Option(help="Column of the weights of the rows.")] = None,
    positive_class: Annotated[
        str | None,
        typer.Option(help="The label (or hard prediction) that counts as 1, if it is a word."),
    ] = None,
    counts: Annotated[
        bool,
        typer.Option(
            "--counts", help="The labels are counts and the scores their expected numbers."
        ),
    ] = False,
    threshold: Annotated[
        float | None,
        typer.Option(
            help="Select people with at least this score: selection rates and impact ratios."
        ),
    ] = None,
    model: Annotated[str, typer.Option(help="Name and version of the model, for the report.")] = "",
    demo: Annotated[
        bool, typer.Option("--demo", help="Audit invented people; their table is written too.")
    ] = False,
    out: Annotated[
        Path, typer.Option(help="The report. JSON and Markdown are written beside it.")
    ] = Path("audit.html"),
    no_overwrite: NoOverwrite = False,
    fail_above: Annotated[
        list[str] | None,
        typer.Option(
            help="Threshold for a gate, such as gdp=0.05 or gdp\\[age]=0.05. Can be repeated."
        ),
    ] = None,
    guaranteed: Annotated[
        bool,
        typer.Option(
            "--guaranteed",
            help="Pass only if the guaranteed bound on GDP is below the threshold. It holds for "
            "rows that did not train or choose the model, and the command cannot recognize those "
            "that did.",
        ),
    ] = False,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Do not pass if a verdict has a doubt: people were left out who differ from the "
            "others, rows are copies of others, or a control is nearly the attribute.",
        ),
    ] = False,
    min_group: Annotated[
        int, typer.Option(min=2, help="People of a group for the threshold of max_gap.")
    ] = 50,
    unit: Annotated[str, typer.Option(help="What a row is, for the sentences.")] = "people",
    max_rows: Annotated[
        int, typer.Option(min=100, help="Audit a random sample of a larger file.")
    ] = 5_000_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
) -> None:
    """Measure how much predictions depend on age, income or another attribute, and write a report.

    The attribute is not cut into groups. The report says in sentences how the predictions change
    along the attribute, for whom the gap is largest, and whether it is more than chance.

    Exit status: 0 done, and no number is above its threshold; 1 a number is above its threshold
    with its whole interval, or with --strict a verdict has a doubt; 2 the command is wrong, or a
    file cannot be read or written; 3 an interval contains its threshold, or with --guaranteed the
    bound is above it, so the data cannot decide.
    """
    thresholds = fail_above or []
    for option, given in (("--guaranteed", guaranteed), ("--strict", strict)):
        if given and not thresholds:
            raise ValueError(f"{option} needs a threshold: add --fail-above gdp=0.05.")
    report = outputs.report_files(out)
    people = [out.with_name(f"{out.stem}_people.csv")] if demo else []
    written = outputs.Files([*report, *people], overwrite=not no_overwrite)
    roles = _Roles(score, sensitive, label, control, weight)
    if demo:
        predictions = people[0]
        roles, threshold = _Roles(["p"], ["age"], "hired"), 0.5
        _write_people(predictions)
        call = _command("audit", predictions, *roles.options(), "--threshold", "0.5")
        echo(f"The table of invented people is {predictions}. This is: {call}")
    if predictions is None:
        raise ValueError("name a CSV or parquet file, or try it with --demo.")
    if not demo:
        written.require_none_of(predictions)
    table, found = _read(predictions, roles, max_rows=max_rows, seed=seed)
    with waiting(f"Auditing {len(table.data):,} rows ..."):
        from frhsic_core.auditing import audit as measure

        _use_one_thread()
        result = measure(
            **roles.arguments(table.data),
            positive_class=positive_class,
            counts=counts,
            threshold=threshold,
            min_group=min_group,
            unit=unit,
            model=model,
            random_state=seed,
        )
        about = {"file": found.name, "size": f"{found.size:,} bytes", "sha256": found.sha256}
        result = replace(
            result,
            notes=(*_about_sample(table, seed), *table.notes, *result.notes),
            provenance=result.provenance | about,
        )
        verdicts = result.check(*thresholds, guaranteed=guaranteed, strict=strict)
        result = replace(result, verdicts=tuple(verdicts))
    if no_overwrite:
        outputs.require_new(report)
    if is_special(out):
        write_atomically({out: methodcaller("write", result.to_html().encode())})
    else:
        result.save(out)
    sentences = result.sentences
    for sentence in sentences:
        echo(f"- {sentence}")
    for status in result.status:
        if status.text not in sentences:
            echo(f"- {status}")
    echo(f"Report: {', '.join(str(path) for path in report)}")
    written.say_replaced()
    raise typer.Exit(_exit_status(result.verdicts))


@dataclass(frozen=True)
class _Roles:
    """The columns that the options of an audit name."""

    score: Sequence[str] | None
    sensitive: Sequence[str] | None
    label: str | None = None
    control: Sequence[str] | None = None
    weight: str | None = None

    def by_option(self) -> dict[str, list[str]]:
        """Return the columns of each option, without repetitions."""
        return {
            "--score": _distinct(self.score),
            "--sensitive": _distinct(self.sensitive),
            "--label": _distinct([self.label] if self.label else []),
            "--control": _distinct(self.control),
            "--weight": _distinct([self.weight] if self.weight else []),
        }

    def columns(self) -> list[str]:
        """Return the columns to read; none if one of the two that are needed is missing.

        Then the reader answers with the names of the columns.
        """
        named = _different(self.by_option())
        return named if self.score and self.sensitive else []

    def arguments(self, data: Any) -> dict[str, Any]:
        """Return the arguments of :func:`frhsic_core.audit`."""
        found = self.by_option()
        arguments = {
            "y_pred": data[found["--score"]],
            "sensitive_features": data[found["--sensitive"]],
        }
        if self.label:
            arguments["y_true"] = data[self.label]
        if self.control:
            arguments["control_features"] = data[found["--control"]]
        if self.weight:
            arguments["sample_weight"] = data[self.weight]
        return arguments

    def options(self) -> list[str]:
        """Return the options of a command with these columns."""
        words = []
        for option, names in self.by_option().items():
            for name in names:
                words += [option, name]
        return words


def _distinct(names: Sequence[str] | None) -> list[str]:
    return list(dict.fromkeys(names or []))


def _different(roles: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the columns that the options name; a column that two of them name is an error."""
    seen: dict[str, str] = {}
    for option, names in roles.items():
        for name in names:
            if seen.setdefault(name, option) != option:
                raise ValueError(
                    f"{name!r} is named by {seen[name]} and by {option}: "
                    "name two different columns."
                )
    return list(seen)


def _read(path: Path, roles: _Roles, *, max_rows: int, seed: int) -> tuple[Table, Source]:
    """Return the columns of a file, and what the file was when they were read."""
    columns = roles.columns()
    with waiting(f"Reading {path.name} ..."), source(path) as found:
        table = read_table(
            found.path, columns, max_rows=max_rows, random_state=seed, name=found.name
        )
    return table, found


def _about_sample(table: Table, seed: int) -> list[str]:
    if table.rows == len(table.data):
        return []
    sample = f"a random sample of {len(table.data):,} was audited (seed {seed})"
    return [f"The file has {table.rows:,} rows; {sample}."]


_WORST_FIRST = (1, 3, 0)  # above or doubtful, inconclusive, below


def _exit_status(verdicts: Sequence[Any]) -> int:
    """Return the status of the worst verdict, 0 without any."""
    found = {verdict.status for verdict in verdicts}
    return next((status for status in _WORST_FIRST if status in found), 0)


def _use_one_thread() -> None:
    """Let torch use one thread: the matrices are small, and on several the audit takes longer."""
    import torch

    torch.set_num_threads(1)


def _command(*words: object) -> str:
    """Return a command that can be pasted into a shell."""
    return shlex.join(["frhsic", *[str(word) for word in words]])


def _write_people(path: Path) -> None:
    """Write the people of the running example with the scores of a model trained on others."""
    import pandas as pd
    from sklearn.linear_model import LogisticRegression

    train = load_dataset("people", random_state=0)
    others = load_dataset("people", random_state=1)
    model = LogisticRegression().fit(train.X, train.y)
    table = pd.DataFrame(others.X, columns=list(others.feature_names))
    table["age"] = others.s.round()
    table["hired"] = others.y.astype(int)
    table["p"] = model.predict_proba(others.X)[:, 1]
    table.round(4).to_csv(path, index=False)


# The adjustment -------------------------------------------------------------------------------


def adjust(
    scores: Annotated[
        Path, typer.Argument(help="CSV or parquet file with one row for each person, or a pipe.")
    ],
    score: Annotated[str | None, typer.Option(help="Column of the scores.")] = None,
    sensitive: Sensitive = None,
    out: Annotated[Path, typer.Option(help="The same table with one more column.")] = Path(
        "adjusted.csv"
    ),
    save: Annotated[Path | None, typer.Option(help="Save the adjustment to this file.")] = None,
    use: Annotated[
        Path | None, typer.Option(help="Apply a saved adjustment instead of fitting a new one.")
    ] = None,
    missing: Annotated[
        str,
        typer.Option(
            help="People without an attribute: empty cells, refuse, leave their scores as they are, "
            "or give them the score that is expected of people with their score."
        ),
    ] = "empty",
    no_overwrite: NoOverwrite = False,
) -> None:
    """Make scores depend less on age, income or another attribute, from scores and attributes alone.

    No labels and no model are needed. The table is written with one more column of adjusted scores,
    and a picture of the scores before and after stands beside it. People with the same attributes
    keep their order.

    Exit status: 0 done; 2 the command is wrong, or a file cannot be read or written.
    """
    one_of("missing", missing, WITHOUT_ATTRIBUTE)
    roles = _Roles([score] if score else [], sensitive)
    columns = roles.columns()
    form = outputs.table_format(out)
    picture = [] if is_special(out) else [out.with_suffix(".html")]
    written = outputs.Files([out, *picture, *([save] if save else [])], overwrite=not no_overwrite)
    written.require_none_of(scores, *([use] if use else []))
    with waiting(f"Reading {scores.name} ..."), source(scores) as found:
        whole = read_whole_table(found.path, columns, name=found.name)
    added = f"{score}_adjusted"
    if added in whole.names:
        raise ValueError(f"{found.name} already has a column {added!r}: rename or remove it.")
    rows = len(whole.table.data)
    with waiting(f"Adjusting {rows:,} score{'s' * (rows != 1)} ..."):
        from frhsic_core.cli.adjusting import adjusted

        result = adjusted(whole.table.data, columns[0], columns[1:], use=use, missing=missing)
    files: dict[Path, Callable[[Any], Any]] = {out: partial(form, whole, added, result.scores)}
    if picture and result.page:
        files[picture[0]] = methodcaller("write", result.page.encode())
    write_atomically(files, overwrite=not no_overwrite)
    if save is not None:
        result.adjuster.save(save)
    for sentence in [*whole.table.notes, *result.sentences]:
        echo(f"- {sentence}")
    shown = [*files, *([save] if save else [])]
    echo(f"Written: {', '.join(str(path) for path in shown)}")
    written.say_replaced()
    options = _Roles([], columns[1:], "LABEL").options()
    before = _command("audit", out, *options, "--score", columns[0])
    after = _command("--score", added).removeprefix("frhsic ")
    echo(f"What it costs in AUC, if you have labels: {before}, and the same with {after}.")


EXAMPLES: dict[Callable[..., None], str] = {
    audit: "frhsic audit predictions.csv --score p --sensitive age",
    adjust: "frhsic adjust scores.csv --score p --sensitive age",
}
