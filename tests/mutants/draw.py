"""Draw changes of the library at random from its syntax trees.

A change is one of eight kinds: a comparison, an arithmetic operator, a constant, a boolean operator, a branch that is
never taken, two arguments swapped, a keyword argument dropped, and a step (a call by itself) left out. A kind is drawn
first, then one of its places, so that tables of numbers do not outweigh everything else. The draw depends on the seed
and on the sources alone. The book's extensions are drawn only where they are asked for, by a part of their path such as
``book/_ext``: what tests them is the strict build of the book and the tests in a browser, which a mutant does not run.

Left out is what no test on a CPU can or should notice: Triton code, branches and functions for CUDA, annotations,
decorators, the words of errors, warnings and other texts (also the name that a check of an argument prints), the number
of threads, how much is held at once, and the look of figures (the notebooks compare it).
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

KINDS = ("comparison", "arithmetic", "constant", "boolean", "branch", "swap", "keyword", "step")
NOT_DRAWN = ("/_fused", "/figures/")
ON_CUDA = {  # only a GPU runs them
    "CapturedSteps", "_beside", "_fused_output", "_fused_terms", "_fuses", "_no_collection", "_wait", "fused",
    "shared_gpu"}  # fmt: skip

# How much is held at once: time and memory, not the sum.
AT_ONCE = {
    "CHUNK",
    "_CHUNK",
    "BLOCK",
    "_BLOCK",
    "_ENTRIES",
    "_FEATURE_ROWS",
    "_INDEXED",
    "_NUMBERS",
}

# Operators as they are written, and what replaces them.
NEGATION = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
NEGATION |= {"is": "is not", "is not": "is", "in": "not in", "not in": "in"}
BOUNDARY = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
ARITHMETIC = {"+": "-", "-": "+", "*": "/", "/": "*", "//": "/", "%": "*", "**": "*"}
ASSIGNMENT = {"+=": "-=", "-=": "+=", "*=": "/=", "/=": "*="}
BOOLEAN = {"and": "or", "or": "and"}
OPERATOR = re.compile(r"[<>=!*/+%-]+|\b(?:is not|not in|is|in|and|or)\b")
# The order of their arguments does not matter, or a swap is an error on every call.
SYMMETRIC = {
    "max",
    "min",
    "maximum",
    "minimum",
    "hypot",
    "allclose",
    "isclose",
    "logaddexp",
    "isinstance",
    "hasattr",
}
# Keyword arguments that decide no result on a CPU: `strict` turns a mistake of the library into an error, `fused` and
# `chunk_size` change the order of sums, the others are words and the look of a figure or of a terminal.
WORDS = {
    "stacklevel",
    "help",
    "title",
    "caption",
    "n_jobs",
    "device",
    "strict",
    "fused",
    "chunk_size",
    "highlight",
}
WORDS |= {"frameon", "ncols", "loc", "ha", "va", "layout", "rotation", "bbox_to_anchor"}
WORDS |= {
    "color",
    "fontsize",
    "linewidth",
    "elinewidth",
    "linestyle",
    "marker",
    "markersize",
    "text_anchor",
    "figsize",
}
# Calls that change nothing but the look of a figure: its ticks and its frame.
LOOK = {"tick_params", "set_visible"}
# What the paper's modules say together: small runs, the answers of the ledger, and the numbers in hand-written pages.
RECORDS = (
    "paper/experiments/test_smoke.py",
    "paper/claims/test_recorded.py",
    "paper/test_display.py",
)


@dataclass(frozen=True)
class Change:
    """Replace ``old`` at a position of the text of ``file`` by ``new``."""

    file: str
    kind: str
    function: str
    start: int
    old: str
    new: str
    statement: tuple[int, int] = (0, 0)  # where the changed statement, or its head, begins and ends

    def apply(self, text: str) -> str:
        """Return the changed text."""
        end = self.start + len(self.old)
        if text[self.start : end] != self.old:
            raise ValueError(f"{self.file} has changed since the mutants were drawn")
        return text[: self.start] + self.new + text[end:]

    def lines(self, text: str) -> tuple[int, str, str]:
        """Return the number of the first changed line, and these lines before and after.

        They have no indentation.
        """
        first = text.rfind("\n", 0, self.start) + 1
        last = text.find("\n", self.start + len(self.old)) % (len(text) + 1)
        after = text[first : self.start] + self.new + text[self.start + len(self.old) : last]
        return text.count("\n", 0, first) + 1, tidy(text[first:last]), tidy(after)

    def statements(self, text: str) -> tuple[str, str]:
        """Return the changed statement before and after, as :func:`normal` writes them.

        Where a statement has a body, they are its head alone. Line breaks, quotes and comments of
        the source have no influence, so a formatter changes neither of the two.
        """
        start, end = self.statement
        longer = len(self.new) - len(self.old)
        return normal(text[start:end]), normal(self.apply(text)[start : end + longer])


def tidy(lines: str) -> str:
    """Return lines of code without their indentation, so that they can be found again when they are moved."""
    return "\n".join(line.strip() for line in lines.strip().splitlines())


def normal(code: str) -> str:
    """Return one statement, or the head of one, as Python writes its syntax tree.

    Text that is no statement is returned as it is.

    Examples
    --------
    >>> normal('x = f("a",  # why\\n    b)'), normal("elif x:  # why")
    ("x = f('a', b)", 'if x:')
    """
    code = code.strip()
    if code.startswith("elif "):
        code = code.removeprefix("el")
    for ending in ("", "\n    pass"):
        if is_code(code + ending):
            return ast.unparse(ast.parse(code + ending)).removesuffix("\n    pass")
    return tidy(code)


class _Places:
    """Collect the changes that one module allows."""

    def __init__(self, file: str, text: str):
        self.file = file
        self.text = text
        # The syntax tree counts bytes of UTF-8 within a line; positions here count characters of the file.
        self.lines = text.splitlines(keepends=True)
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line))
        self.found: list[Change] = []
        self.function = ""
        self.statement = (0, 0)

    def position(self, line: int, column: int) -> int:
        return self.starts[line - 1] + len(self.lines[line - 1].encode()[:column].decode())

    def span(self, node: ast.AST) -> tuple[int, int]:
        return self.position(node.lineno, node.col_offset), self.position(
            node.end_lineno, node.end_col_offset
        )

    def source(self, node: ast.AST) -> str:
        start, end = self.span(node)
        return self.text[start:end]

    def add(self, kind: str, start: int, end: int, new: str) -> None:
        old = self.text[start:end]
        self.found.append(Change(self.file, kind, self.function, start, old, new, self.statement))

    def head_of(self, statement: ast.stmt) -> tuple[int, int]:
        """Return where a statement begins and ends, or its head if it has a body."""
        start, end = self.span(statement)
        body = getattr(statement, "body", [])
        return (start, self.span(body[0])[0]) if body else (start, end)

    def between(self, left: ast.AST, right: ast.AST, kind: str, table: dict[str, str]) -> None:
        """Replace the operator between two operands, if the table has it and no comment stands there."""
        start, end = self.span(left)[1], self.span(right)[0]
        found = list(OPERATOR.finditer(self.text, start, end))
        if len(found) == 1 and found[0][0] in table:
            self.add(kind, *found[0].span(), table[found[0][0]])

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.Raise | ast.JoinedStr) or (
            isinstance(node, ast.Call) and self.called(node) == "warn"
        ):
            return
        if isinstance(node, ast.keyword) and node.arg in WORDS:
            return
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") in AT_ONCE:
            return
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Call)
            and self.called(node.value) in LOOK
        ):
            return
        if isinstance(node, ast.If | ast.IfExp | ast.While):
            test = self.source(node.test)
            if "cuda" in test or "TYPE_CHECKING" in test or "__name__" in test:
                return
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and (
            "cuda" in node.name or node.name in ON_CUDA
        ):
            return
        outer = self.function, self.statement
        if isinstance(node, ast.stmt):
            self.statement = self.head_of(node)
        if isinstance(node, ast.FunctionDef):
            self.function = node.name
        if method := getattr(self, f"_{type(node).__name__.lower()}", None):
            method(node)
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    self.visit(child)
        self.function, self.statement = outer

    @staticmethod
    def called(node: ast.Call) -> str:
        return getattr(node.func, "attr", getattr(node.func, "id", ""))

    @staticmethod
    def is_text(node: ast.AST) -> bool:
        return isinstance(node, ast.JoinedStr | ast.List | ast.Tuple | ast.ListComp) or (
            isinstance(node, ast.Constant) and isinstance(node.value, str)
        )

    @staticmethod
    def is_integer(node: ast.AST) -> bool:
        return isinstance(node, ast.Constant) and type(node.value) is int

    def _compare(self, node: ast.Compare) -> None:
        operands = [node.left, *node.comparators]
        for left, right in pairwise(operands):
            # A boundary is moved only beside an integer: for real numbers equality has probability zero.
            whole = self.is_integer(left) or self.is_integer(right)
            self.between(left, right, "comparison", NEGATION | BOUNDARY if whole else NEGATION)

    def _binop(self, node: ast.BinOp) -> None:
        # Joined texts, lists and paths are no arithmetic: the changed code would only raise an error.
        if not self.is_text(node.left) and not self.is_text(node.right):
            self.between(node.left, node.right, "arithmetic", ARITHMETIC)

    def _augassign(self, node: ast.AugAssign) -> None:
        if not self.is_text(node.value):
            self.between(node.target, node.value, "arithmetic", ASSIGNMENT)

    def _constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, bool):
            new = str(not value)
        elif isinstance(value, int):
            new = str(value + 1)
        elif isinstance(value, float):
            new = repr(2 * value) if value else "0.5"
        else:
            return
        self.add("constant", *self.span(node), new)

    def _boolop(self, node: ast.BoolOp) -> None:
        for left, right in pairwise(node.values):
            self.between(left, right, "boolean", BOOLEAN)

    def _unaryop(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            start, _ = self.span(node)
            self.add("boolean", start, self.span(node.operand)[0], "")

    def _if(self, node: ast.If) -> None:
        self.add("branch", *self.span(node.test), "False")

    _ifexp = _if

    def _expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            self.add("step", *self.span(node), "pass")

    def _call(self, node: ast.Call) -> None:
        name = self.called(node)
        arguments = node.args
        if (
            len(arguments) > 1
            and name not in SYMMETRIC
            and not any(isinstance(a, ast.Starred) for a in arguments[:2])
        ):
            (start, middle), (resume, end) = self.span(arguments[0]), self.span(arguments[1])
            first, second = self.text[start:middle], self.text[resume:end]
            if first != second:
                self.add("swap", start, end, second + self.text[middle:resume] + first)
        for keyword in node.keywords:
            names_an_error = keyword.arg == "name" and name.startswith(
                ("as_", "require_", "check_")
            )
            if keyword.arg and keyword.arg not in WORDS and not names_an_error:
                start, end = self.span(keyword)
                # With the comma that follows, or without one before the closing bracket.
                rest = self.text[end:]
                comma = len(rest) - len(rest.lstrip())
                self.add("keyword", start, end + comma + 1 if rest[comma] == "," else end, "")


def places(file: str, text: str) -> list[Change]:
    """Return every change that the module allows, in the order of the tree."""
    found = _Places(file, text)
    found.visit(ast.parse(text))
    return found.found


def all_places(root: Path, only: str = "") -> Iterator[Change]:
    """Yield every change, module by module: of the library, or of the book's extensions if ``only`` names them."""
    for path in sorted(
        (root / "book" / "_ext" if only.startswith("book") else root / "frhsic_core").rglob("*.py")
    ):
        file = path.relative_to(root).as_posix()
        if only in file and not any(name in file for name in NOT_DRAWN):
            yield from places(file, path.read_text(encoding="utf-8"))


def draw(root: Path, *, seed: int, count: int, only: str = "") -> list[Change]:
    """Return ``count`` different changes, or all of them if there are fewer."""
    source = random.Random(seed)
    by_kind: dict[str, list[Change]] = {kind: [] for kind in KINDS}
    for change in all_places(root, only):
        by_kind[change.kind].append(change)
    for changes in by_kind.values():
        source.shuffle(changes)
    drawn = []
    while len(drawn) < count and any(by_kind.values()):
        kind = source.choice([kind for kind in KINDS if by_kind[kind]])
        change = by_kind[kind].pop()
        if is_code(change.apply((root / change.file).read_text(encoding="utf-8"))):
            drawn.append(change)
    return drawn


def is_code(text: str) -> bool:
    """Whether a text can be compiled: a dropped keyword may leave none."""
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def tests_of(root: Path, change: Change) -> tuple[str, ...]:
    """Return what should notice a change: the test files of the same folder, then the module's doctests.

    The doctests come last: pytest would import a module that it is given first a second time, with other classes. The
    module's own test file comes first, then the files that name the changed function, then the others. A module
    beside packages has the test files beside those of the packages, and those of its name in any folder. An extension
    of the book has the tests that name it. A module of the paper also has the findings and the chapters that import it:
    what only a chapter shows is compared there. The records of the paper come last.
    """
    tests, module = root / "tests", Path(change.file)
    if module.parts[0] == "book":
        named = [
            path
            for path in sorted((tests / "book").glob("test_*.py"))
            if module.stem in path.read_text("utf-8")
        ]
        return tuple(f"tests/book/{path.name}" for path in named) or (
            "tests/book/test_extensions.py",
        )
    module = module.relative_to("frhsic_core")
    folder = module.parent
    while not (tests / folder).is_dir():
        folder = folder.parent
    nested = tests / folder / module.stem  # tests/kernels for kernels.py
    inner = [
        path.name
        for path in (tests / folder).iterdir()
        if path.is_dir() and path.name[0] not in "._"
    ]
    if any(
        (root / "frhsic_core" / folder / name).is_dir() for name in inner
    ):  # neither all tests nor all of the paper
        files = {
            *(tests / folder).glob("test_*.py"),
            *nested.glob("test_*.py"),
            *tests.rglob(f"test_{module.stem}.py"),
        }
    else:
        files = set((tests / folder).rglob("test_*.py"))
    own = {f"test_{'_'.join(module.with_suffix('').parts[k:])}" for k in range(len(module.parts))}
    own.add(f"test_{module.parent.name}")

    def turn(path: Path) -> tuple[int, str]:
        if path.stem in own or path.parent == nested:
            return 0, path.name
        named = change.function and change.function in path.read_text(encoding="utf-8")
        return 1 if named else 2, path.name

    # `from package.module import name` or `from package import module`
    *package, stem = (
        "frhsic_core",
        *(module.parent.parts if module.stem == "__init__" else module.with_suffix("").parts),
    )
    pattern = re.compile(
        rf"from {re.escape('.'.join(package))}(?:\.{stem} import|\s+import\s[^\n]*\b{stem}\b)"
    )
    others = (
        (*tests.glob("findings/test_*.py"), *root.glob("notebooks/*.ipynb"))
        if module.parts[0] == "paper"
        else ()
    )
    using = [
        path
        for path in sorted(others, reverse=True)
        if pattern.search(path.read_text(encoding="utf-8"))
    ]
    ordered = [*sorted(files, key=turn), root / change.file, *using]
    if module.parts[0] == "paper" and module.parts[1] != "statements":
        ordered += [tests / name for name in RECORDS if tests / name not in ordered]
    return tuple(path.relative_to(root).as_posix() for path in ordered)


def elsewhere(root: Path, change: Change) -> tuple[str, ...]:
    """Return the test files of other folders that call a public name of the changed module, and a user's mistakes.

    A name that more than ten files call says little about where a change would be noticed, and is left out.
    """
    tree = ast.parse((root / change.file).read_text(encoding="utf-8"))
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    texts = {}
    for path in (root / "tests").rglob("test_*.py"):
        record = (
            path.with_name("recorded.json") if path.stem == "test_recorded" else path
        )  # it may hold the calls
        texts[path.relative_to(root).as_posix()] = (record if record.is_file() else path).read_text(
            "utf-8"
        )
    calls = (
        {file for file, text in texts.items() if re.search(rf"\b{name}\(", text)} for name in names
    )
    mistakes = {"tests/test_mistakes.py"} & set(texts) if "/paper/" not in change.file else set()
    named = mistakes.union(*(files for files in calls if len(files) <= 10))
    return tuple(
        sorted(
            named - {file for file in named if "/mutants/" in file} - set(tests_of(root, change))
        )
    )
