"""Evaluate the expressions of ``claims.csv`` over the columns of a table.

A claim selects rows of a table, and a number of them, with expressions such as
``method == 'frem' and n == 20000`` and ``gdp.std(ddof=0)``. They look like those of pandas, but they
are data, which anybody may edit. So an expression is only parsed, and its parts are computed one by
one: columns, numbers and texts, arithmetic, comparisons, and the functions and methods of two lists.
Everything else is an error.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import pandas as pd

#: Functions of a column, and methods that end with a number, with yes or no, or with a new column.
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "abs": np.abs,
    "exp": np.exp,
    "log": np.log,
    "log10": np.log10,
}
METHODS = (
    "all", "any", "diff", "isin", "isna", "max", "mean", "median", "min", "nunique", "std", "sum", "unique",
)  # fmt: skip

_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.And: operator.and_,
    ast.Or: operator.or_,
    ast.USub: operator.neg,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda column, values: column.isin(values),
    ast.NotIn: lambda column, values: ~column.isin(values),
}
# A column whose name is a word of Python, such as `lambda`, stands in backquotes.
_QUOTED = re.compile("`(.*?)`")
_PREFIX = "quoted_"


def value_of(rows: pd.DataFrame, formula: str) -> Any:
    """Return the value of an expression over the columns of a table: a column, a number, or yes or no.

    Raises
    ------
    ValueError
        If the expression names no column of the table, or contains what is not in the lists above.

    Examples
    --------
    >>> rows = pd.DataFrame({"n": [20, 10, 10], "lambda": [0.5, 1.0, 3.0]})
    >>> int(value_of(rows, "n.max()")), bool(value_of(rows, "(`lambda` < 1).any()"))
    (20, True)
    >>> value_of(rows, "open('/etc/passwd')")
    Traceback (most recent call last):
    ...
    ValueError: open('/etc/passwd') cannot be computed: it contains open('/etc/passwd').
    """
    try:
        parsed = ast.parse(_QUOTED.sub(rf"{_PREFIX}\1", formula), mode="eval")
        return _Formula(rows, formula).visit(parsed.body)
    except SyntaxError as error:
        raise ValueError(f"{formula} cannot be computed: {error.msg}.") from None


def selected(rows: pd.DataFrame, condition: str) -> pd.DataFrame:
    """Return the rows that meet a condition; all of them if it is empty.

    Examples
    --------
    >>> rows = pd.DataFrame({"n": [20, 10, 10], "method": ["frem", "frem", "unfair"]})
    >>> len(selected(rows, "method in ['frem', 'adv'] and n == 10")), len(selected(rows, ""))
    (1, 3)
    """
    return rows[value_of(rows, condition)] if condition else rows


class _Formula(ast.NodeVisitor):
    """Compute the parts of one expression over the columns of one table."""

    def __init__(self, rows: pd.DataFrame, formula: str) -> None:
        self.rows = rows
        self.formula = formula

    def generic_visit(self, node: ast.AST) -> Any:
        raise ValueError(f"{self.formula} cannot be computed: it contains {ast.unparse(node)}.")

    def visit_Constant(self, node: ast.Constant) -> Any:
        if not isinstance(node.value, bool | int | float | str):
            self.generic_visit(node)
        return node.value

    def visit_List(self, node: ast.List) -> list[Any]:
        return [self.visit(entry) for entry in node.elts]

    def visit_Name(self, node: ast.Name) -> pd.Series:
        name = node.id.removeprefix(_PREFIX)
        if name not in self.rows:
            columns = ", ".join(map(str, self.rows))
            raise ValueError(
                f"{self.formula} names {name}, which is no column. The columns are: {columns}."
            )
        return self.rows[name]

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        return self._operator(node.op, node)(self.visit(node.left), self.visit(node.right))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        return self._operator(node.op, node)(self.visit(node.operand))

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        return reduce(self._operator(node.op, node), map(self.visit, node.values))

    def visit_Compare(self, node: ast.Compare) -> Any:
        if len(node.ops) > 1:  # a < b < c
            self.generic_visit(node)
        compare = self._operator(node.ops[0], node)
        return compare(self.visit(node.left), self.visit(node.comparators[0]))

    def visit_Call(self, node: ast.Call) -> Any:
        arguments = [self.visit(argument) for argument in node.args]
        options = {str(option.arg): self.visit(option.value) for option in node.keywords}
        if isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS:
            return FUNCTIONS[node.func.id](*arguments, **options)
        if isinstance(node.func, ast.Attribute) and node.func.attr in METHODS:
            column = self.visit(node.func.value)
            return getattr(column, node.func.attr)(*arguments, **options)
        return self.generic_visit(node)

    def _operator(self, kind: ast.AST, node: ast.AST) -> Callable[..., Any]:
        if type(kind) not in _OPERATORS:
            self.generic_visit(node)
        return _OPERATORS[type(kind)]
