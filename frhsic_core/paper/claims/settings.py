"""Queries of the ledger on settings: what the stored runs, the protocols and the data really are.

Settings of training and of penalties, grids and splits are read from the provenance of the stored runs, which was
written by the objects that trained them, or from the stored rows; never from a plan of what to run. What the provenance
does not record (the encoder, the optimizer, constants of a measurement) is read from the code that ran; the first two
load torch. These lines say that we *implemented* the paper as printed, and are no evidence for it. Only the facts about
datasets are measured.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import re
from functools import cache
from typing import Any

import pandas as pd

from frhsic_core.paper.claims.answers import PROTOCOLS, Answer, computed, query, rows_of
from frhsic_core.paper.claims.formulas import selected, value_of
from frhsic_core.paper.stored import data_summary, result_store


@cache
def provenance(experiment: str = "main") -> dict[str, Any]:
    """Return how the stored rows of an experiment were computed: recipes or settings, code, libraries and devices."""
    return result_store(experiment).provenance()


def _value_of(text: str) -> Any:
    """Return a stored setting: a literal, the number that a bandwidth policy was given, or the policy as written."""
    stored = ast.parse(text, mode="eval").body
    if not isinstance(stored, ast.Call):
        return ast.literal_eval(text)
    given = {argument.arg: ast.literal_eval(argument.value) for argument in stored.keywords}
    number = given.get("value") or given.get("epochs")
    return text if number is None else float(number)


@cache
def stacks(experiment: str = "main") -> pd.DataFrame:
    """Return a line for each stack of a stored sweep: its recipe, the settings of its penalty, and percent of rows."""
    lines = []
    for stack in provenance(experiment)["stacks"]:
        made = provenance(experiment)["recipes"][stack["recipe"]]
        shares = (
            made["fractions"]
            if len(made["fractions"]) == 3
            else (made["fractions"][0], 0.0, made["fractions"][1])
        )
        percent = dict(
            zip(
                ("train", "validation", "test"),
                (round(100 * share, 9) for share in shares),
                strict=True,
            )
        )
        penalty = {name: _value_of(text) for name, text in stack["penalty"].items()}
        # The stored sweeps have the encoder that is built when no widths are given.
        lines.append(
            {
                **made,
                **percent,
                **penalty,
                "protocol": made["task"]["protocol"],
                "dimension": _widths()[-1],
            }
        )
    return pd.DataFrame(lines)


def _only(values: pd.Series) -> Any:
    """Return the one value that all rows share, the different ones in order, or None if there is none."""
    different = list(dict.fromkeys(values.dropna()))
    return None if not different else different[0] if len(different) == 1 else tuple(different)


@query
def stack_setting(
    formula: str = "", rows: str = "", experiment: str = "main", form: str = ""
) -> Answer:
    """Return a setting of the training over some stacks of a stored sweep: a formula of their columns, or a text.

    ``form`` is a text with columns in braces. Open where no penalty has such a setting.
    """
    table = stacks(experiment)
    chosen = selected(table, rows)
    values: dict[str, Any] = {}
    for protocol in [name for name in PROTOCOLS if (table["protocol"] == name).any()]:
        part = chosen[chosen["protocol"] == protocol]
        named = {name: _only(part[name]) for name in re.findall(r"{(\w+)", form)}
        if form:
            values[protocol] = form.format(**named)
        else:
            values[protocol] = _only(value_of(part, formula))
    absent = [protocol for protocol, value in values.items() if value is None]
    if len(absent) == len(values):
        # Neither the text's formula nor the released code has it: there is nothing to compare.
        return Answer(
            values,
            why="the penalty, by the formula in the text and in the released code, has no such setting",
        )
    note = f"no such setting in the {' and '.join(absent)} protocol" if absent else ""
    return Answer(values if len(values) > 1 else {"any": next(iter(values.values()))}, note=note)


@query
def row_setting(experiment: str, formula: str, rows: str = "", note: str = "") -> Answer:
    """Return a formula over the stored rows of an experiment, such as ``n.max()``; ``rows`` selects some of them.

    Where the rows are of two protocols, each of them has its value.
    """
    stored = selected(rows_of(experiment), rows)
    parts = (
        {name: stored[stored["protocol"] == name] for name in PROTOCOLS}
        if "protocol" in stored
        else {}
    )
    if any(part.empty for part in parts.values()) or not parts:
        parts = {"any": stored}
    return Answer({name: computed(part, formula) for name, part in parts.items()}, note=note)


@query
def constant(path: str, scale: float = 1.0, shift: float = 0.0, form: str = "") -> Answer:
    """Return a constant of the code: ``module:NAME``, an entry ``NAME[key]``, or a default ``function(argument)``.

    ``form`` is a text with the entries of a tuple in braces, and their number as ``{n}``.
    """
    module, _, names = path.partition(":")
    value: Any = importlib.import_module(
        module if module.startswith("torch") else f"frhsic_core.{module}"
    )
    for kind, name in re.findall(r"([.(\[]?)([^.()\[\]]+)[)\]]?", names):
        if kind == "(":
            value = inspect.signature(value).parameters[name].default
        elif kind == "[":
            value = value[int(name) if re.fullmatch(r"-?\d+", name) else name]
        else:
            value = getattr(value, name)
    if form:
        return Answer({"any": form.format(*value, n=len(value))})
    return Answer({"any": value if isinstance(value, tuple) else shift + scale * float(value)})


@query
def dataset_fact(dataset: str, what: str) -> Answer:
    """Return rows, features or the range of S of a dataset in both variants; open where our source lacks columns."""
    values = {}
    lacking = []
    for variant in PROTOCOLS:
        summary = data_summary(dataset, variant)
        values[variant] = {
            "n": summary["n"],
            "d": summary["d"],
            "range": (summary["s"]["min"], summary["s"]["max"]),
            "panel": _first(r"Panel (\d+)", json.dumps(summary["provenance"]["steps"])),
            "missing_cut": _first(
                r"columns over (\d+) % missing", json.dumps(summary["provenance"]["steps"])
            ),
        }[what]
        lacking += [
            note
            for note in summary["provenance"]["notes"]
            if re.search(r"extract lacks|not in this extract", note)
        ]
    why = "our source lacks columns of the paper's" if lacking and what in ("n", "d") else ""
    return Answer(values, why=why)


def _first(pattern: str, text: str) -> float | None:
    found = re.search(pattern, text)
    return float(found[1].replace(",", "")) if found else None


@cache
def _widths() -> tuple[int, ...]:
    from frhsic_core.learning.stack import ModelStack

    return tuple(inspect.signature(ModelStack).parameters["widths"].default)


@query
def adversary(method: str, what: str) -> Answer:
    """Return, for a tiny training, adversary steps for each encoder step, or the number of the adversary's outputs."""
    import torch

    from frhsic_core.learning import Trainer, make_penalty

    values: dict[str, Any] = {}
    for protocol in PROTOCOLS:
        generator = torch.Generator().manual_seed(0)
        x = torch.rand(1, 64, 3, generator=generator)
        s = torch.rand(1, 64, generator=generator)
        trainer = Trainer(
            x, (s > 0.5).float(), s, penalty=make_penalty(method, protocol=protocol), lam=[1.0], seeds=[0], epochs=2,
            batch_size=32, device="cpu", protocol=protocol,
        )  # fmt: skip
        trainer.fit()
        adams: list[Any] = [trainer.step.adversary_optimizer, trainer.step.optimizer]
        theirs, ours = (next(iter(adam.state.values()))["step"] for adam in adams)
        outputs = list(trainer.penalty.parameters())[-1].shape[-1]
        values[protocol] = f"{float(theirs / ours):g}:1" if what == "ratio" else outputs
    return Answer(values)


@query
def training_range() -> Answer:
    """Return the smallest and largest training value of X and S after scaling, on a draw of the synthetic law."""
    from frhsic_core.data import load_dataset
    from frhsic_core.paper.datasets import stack_splits

    stack = stack_splits(load_dataset("synthetic", n=200), seeds=(42,))
    low = min(float(stack.x_train.min()), float(stack.s_train.min()))
    return Answer({"any": (low, max(float(stack.x_train.max()), float(stack.s_train.max())))})


@query
def noise_spread(column: str, power: int = 1) -> Answer:
    """Return the spread (its ``power``) of the noise in a feature of the synthetic law, from 200,000 draws."""
    from frhsic_core.data._recipes import numpy_generator
    from frhsic_core.data._synthetic import classification

    columns = classification(200_000, numpy_generator(42)).columns
    noise = columns["x1"] - columns["s"] if column == "x1" else columns["x2"]
    return Answer({"any": float(noise.std()) ** power})


@query
def not_comparable(why: str) -> Answer:
    """Return no value, and why there is nothing to compare."""
    return Answer(why=why)
