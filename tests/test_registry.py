"""Walk the registry and fail when a method, a dataset, a measure or one of their names was forgotten or typed again."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from pyarrow.parquet import read_schema
from pyarrow.types import is_floating

import frhsic_core.data
import frhsic_core.learning.penalties
from frhsic_core import registry
from frhsic_core.data import _loading as loading
from frhsic_core.data import available_datasets
from frhsic_core.data._recipes import Recipe
from frhsic_core.learning import make_penalty
from frhsic_core.learning.penalties import METHODS, PROTOCOLS, Penalty, architecture
from frhsic_core.paper.datasets import sources_of
from frhsic_core.paper.figures.plots import DATASET_TITLES, STYLES

ROOT = Path(__file__).resolve().parents[1]
TABLES = {"methods": registry.METHODS, "datasets": registry.DATASETS, "measures": registry.MEASURES}


def objects(package: ModuleType) -> Iterator[tuple[str, object]]:
    """Yield every public object that a module of the package defines."""
    for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        for name, value in vars(importlib.import_module(found.name)).items():
            if not name.startswith("_"):
                yield f"{found.name}:{name}", value


# --- nothing is forgotten ------------------------------------------------------------------------------------------


def test_every_penalty_has_a_row() -> None:
    classes = {
        value for _, value in objects(frhsic_core.learning.penalties) if inspect.isclass(value)
    }
    penalties = {
        c for c in classes if issubclass(c, Penalty) and c is not Penalty and "key" in vars(c)
    }
    registered = {pkgutil.resolve_name(row.penalty): key for key, row in registry.METHODS.items()}
    assert penalties == set(registered), "add a row to METHODS in frhsic_core/registry.py"
    assert {penalty.key: key for penalty, key in registered.items()} == {
        key: key for key in registry.METHODS
    }


def test_every_recipe_has_a_row() -> None:
    defined = {id(value) for _, value in objects(frhsic_core.data) if isinstance(value, Recipe)}
    registered = {id(pkgutil.resolve_name(row.recipe)) for row in registry.DATASETS.values()}
    assert defined == registered, "add a row to DATASETS in frhsic_core/registry.py"
    assert set(available_datasets()) == set(registry.DATASETS) == set(loading.CARDS)


@pytest.mark.parametrize("method", registry.METHODS)
@pytest.mark.parametrize("protocol", registry.PROTOCOLS)
def test_every_method_can_be_built_in_every_protocol(method: str, protocol: str) -> None:
    assert isinstance(make_penalty(method, protocol=protocol), Penalty)
    assert set(registry.METHODS[method].settings) <= set(registry.PROTOCOLS)


def test_a_protocol_sets_the_arguments_of_the_penalty_and_the_encoder() -> None:
    assert make_penalty("dcor", protocol="reference").form == "covariance"
    assert make_penalty("dcor", protocol="reference", form="correlation").form == "correlation"
    assert architecture("text") == {"activate_output": True}
    assert architecture("recommended") == architecture("reference") == {"activate_output": False}


@pytest.mark.parametrize("name", registry.PAPER_DATASETS)
def test_the_size_of_a_dataset_is_what_its_recipe_promises(name: str) -> None:
    promised = {source.counts[-1] for source in sources_of(name, "reference")}
    assert registry.DATASETS[name].rows in promised


# Columns that say which model a row is about, or that only one experiment has and draws under its own names.
NOT_MEASURES = ("lam",)
# Columns of earlier code, which nothing reads.
EARLIER = {
    "loss",
    "spread",
    "hsic_floor_1",
    "gdp_uniform",
    "gdp_density",
    "normalized_hsic_0.5",
    "normalized_hsic_2",
}
OF_ONE_EXPERIMENT = {"gdp_mixed", "mi_reference", "mi_standardised", "mi_probe"}
PARTS = (
    ("eo_", "validation_", "linear_", "mlp_", "forest_", "svm_"),
    ("_age", "_hours", "_pair", "_zero"),
)


def measure_of(column: str) -> str:
    """Return the measure that a column repeats for a part of the samples, a head or an attribute."""
    for prefix in PARTS[0]:
        if column not in registry.MEASURES:
            column = column.removeprefix(prefix)
    for suffix in PARTS[1]:
        column = column.removesuffix(suffix)
    return column


def test_every_measure_of_the_stored_sweeps_has_a_row() -> None:
    main = read_schema(ROOT / "book" / "results" / "main.parquet")
    numbers = {column.name for column in main if is_floating(column.type)} - set(NOT_MEASURES)
    everywhere = set(registry.MEASURES) - OF_ONE_EXPERIMENT
    assert numbers - EARLIER == everywhere, "add a row to MEASURES in frhsic_core/registry.py"
    kinds = (
        "gdp_",
        "mi_",
        "linear_r2",
        "nonlinear_r2",
        "normalized_hsic",
        "distance_correlation",
        "performance",
    )
    for path in (ROOT / "book" / "results").glob("*.parquet"):
        for column in map(measure_of, read_schema(path).names):
            if column.startswith(kinds) and column not in EARLIER:
                assert column in registry.MEASURES, f"{path.name}: {column}"


# --- names, colors and markers -------------------------------------------------------------------------------------


def test_figures_read_the_registry() -> None:
    assert list(METHODS) == list(registry.METHODS)
    assert list(STYLES) == [*registry.METHODS, *registry.DATASETS]
    assert registry.labels(registry.DATASETS) == DATASET_TITLES
    assert tuple(registry.PROTOCOLS) == PROTOCOLS
    for key, row in (registry.METHODS | registry.DATASETS).items():
        assert tuple(STYLES[key]) == (row.label, row.color, row.marker)


@pytest.mark.parametrize(
    ("table", "paper"),
    [(registry.METHODS, registry.PAPER_METHODS), (registry.DATASETS, registry.PAPER_DATASETS)],
    ids=["methods", "datasets"],
)
def test_no_two_rows_look_alike(table: dict[str, registry.Method], paper: tuple[str, ...]) -> None:
    assert len({row.marker for row in table.values()}) == len(table)
    assert len({table[key].color for key in paper}) == len(paper)
    assert {row.color for row in table.values()} <= set(registry.OKABE_ITO.values())


def test_no_two_rows_share_a_name() -> None:
    for table in TABLES.values():
        names = set(registry.labels(table).values())
        assert "" not in names
        assert len(names) == len(table)


def test_the_lists_of_the_paper() -> None:
    assert registry.PAPER_METHODS[0] == registry.BASELINE == "unfair"
    assert registry.MAIN_METHODS == ("frhsic", "frem", "reg_gdp", "adv", "mmd_binned", "laftr")
    assert (*registry.MAIN_METHODS, "dcor") == registry.PARETO_METHODS
    assert registry.TRANSFER_METHODS == ("frhsic", "frem", "reg_gdp", "adv")
    assert registry.SWEEP_DATASETS == ("crime", "compas", "meps", "acs_income", "adult")


# --- no second list ------------------------------------------------------------------------------------------------


def second_lists(tree: ast.AST) -> Iterator[str]:
    """Yield the code of dictionaries that name or weigh registered rows, and of lists of methods or datasets."""
    known = {key for table in TABLES.values() for key in table}
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            values = {
                k.value: v.value
                for k, v in pairs
                if isinstance(k, ast.Constant) and isinstance(v, ast.Constant)
            }
            named = [
                key for key, value in values.items() if key in known and isinstance(value, str)
            ]
            # A number for each of six rows is a fact of the registry; one for each of five datasets may be a setting.
            if len(named) >= 2 or any(
                len(values.keys() & table.keys()) >= 6 for table in TABLES.values()
            ):
                yield ast.unparse(node)
        elif isinstance(node, ast.Tuple | ast.List | ast.Set):
            listed = {item.value for item in node.elts if isinstance(item, ast.Constant)}
            if len(listed & set(registry.METHODS)) >= 5 or listed >= set(registry.PAPER_DATASETS):
                yield ast.unparse(node)


def test_the_search_for_second_lists_finds_them() -> None:
    for line in (
        "NAMES = {'frhsic': 'FRHSIC', 'frem': 'FREM'}",
        "TITLES = {'adult': 'Adult', 'acs_income': 'ACS'}",
        "LABELS = {'gdp_sample': 'GDP', 'linear_r2': 'R2'}",
        "METHODS = ('unfair', 'frhsic', 'frem', 'reg_gdp', 'adv')",
        "DATASETS = ['crime', 'compas', 'meps', 'acs_income', 'adult']",
        "COST = {'unfair': 1, 'frhsic': 4, 'frem': 4, 'reg_gdp': 1.5, 'adv': 2, 'laftr': 2}",
    ):
        assert len(list(second_lists(ast.parse(line)))) == 1
    assert (
        list(
            second_lists(
                ast.parse("A = {'adult': 10.0, 'crime': 1.0}; B = ('unfair', 'frhsic', 'adv')")
            )
        )
        == []
    )


def test_methods_datasets_and_measures_are_listed_once() -> None:
    found = []
    for path in [*(ROOT / "frhsic_core").rglob("*.py"), *(ROOT / "book" / "_ext").glob("*.py")]:
        name = path.relative_to(ROOT).as_posix()
        if name == "frhsic_core/registry.py":
            continue
        for statement in ast.parse(path.read_text(encoding="utf-8")).body:
            found += [f"{name}: {code}" for code in second_lists(statement)]
    assert found == [], "read these names from frhsic_core/registry.py"
