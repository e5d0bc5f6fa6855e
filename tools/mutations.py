"""Make mutants: copies of a module that differ in one place, each as a statement, and a function also as code.

Left as they are: docstrings, annotations, defaults of parameters, bodies of classes outside methods, and what an error
says to people. A mutant of one of these is either equivalent or breaks every import. So are tables of words and numbers
with more than twenty entries: a test of each entry would be the same table again.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType

COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
    ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr, ast.BitXor: ast.BitOr,
    ast.Pow: ast.Mult,
}  # fmt: skip
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
FUTURE = annotations.compiler_flag
MOST_ENTRIES = 20
COLLECTIONS = {"frozenset", "tuple", "dict"}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one module."""

    path: Path
    function: str
    """The outermost function that contains it, with its class; or the name of a constant."""
    line: int
    first_line: int
    """Where the function begins, with its decorators: its code says the same."""
    before: str
    after: str
    statement: str
    """The whole statement that makes the function or the constant."""
    code: CodeType | None = None
    """The function's code; none of a constant."""

    @property
    def name(self) -> str:
        """Name it by what does not change with lines above."""
        return f"{self.path.as_posix().partition('recollect/')[2]}: {self.function}: {self.before} -> {self.after}"


def list_mutants(path: Path) -> list[Mutant]:
    """Make every mutant of a module."""
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    made = (make(path, owner, *changed) for owner in list_places(tree) for changed in list_changes(owner[1]))
    return [mutant for mutant in made if mutant is not None]


def list_places(tree: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    """Yield functions, methods and constants of a module, each with its name."""
    for node in tree.body:
        if isinstance(node, FUNCTIONS):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from ((f"{node.name}.{each.name}", each) for each in node.body if isinstance(each, FUNCTIONS))
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value and not is_table(node.value):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name):
                yield target.id, node


def is_table(node: ast.expr) -> bool:
    """Return whether a value only lists words and numbers, many of them."""
    entries = sum(isinstance(each, ast.Constant) for each in ast.walk(node))
    made = [each.func for each in ast.walk(node) if isinstance(each, ast.Call)]
    return entries > MOST_ENTRIES and all(isinstance(each, ast.Name) and each.id in COLLECTIONS for each in made)


def list_changes(owner: ast.stmt) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Yield each node that can change, and its replacement."""
    roots = owner.body if isinstance(owner, FUNCTIONS) else [owner.value]  # type: ignore[attr-defined]
    for root in roots:
        yield from ((node, changed) for node in walk(root) for changed in change(node))


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """Walk through what matters: no annotations, no docstrings, and nothing that is said to people."""
    if isinstance(node, ast.Raise | ast.JoinedStr):
        return
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return
    yield node
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns", "decorator_list", "defaults", "kw_defaults"}:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from walk(child)


def change(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the replacements of a node."""
    if isinstance(node, ast.Compare):
        for number, operator in enumerate(node.ops):
            yield with_operator(node, number, COMPARED[type(operator)]())
    elif isinstance(node, ast.BinOp | ast.AugAssign):
        yield from change_computation(node)
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield node.operand
    elif isinstance(node, ast.Constant):
        yield from change_constant(node)
    elif isinstance(node, ast.stmt):
        yield from change_statement(node)


def change_computation(node: ast.BinOp | ast.AugAssign) -> Iterator[ast.AST]:
    other = COMPUTED.get(type(node.op))
    if other and isinstance(node, ast.AugAssign):
        yield ast.AugAssign(node.target, other(), node.value)
    elif other and isinstance(node, ast.BinOp) and not is_text(node.left) and not is_text(node.right):
        yield ast.BinOp(node.left, other(), node.right)


def change_statement(node: ast.stmt) -> Iterator[ast.AST]:
    if isinstance(node, ast.If | ast.While):
        yield type(node)(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
    elif isinstance(node, ast.Return):
        if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
            yield ast.Return(ast.Constant(None))
    elif isinstance(node, ast.Break | ast.Continue):
        yield ast.Continue() if isinstance(node, ast.Break) else ast.Break()
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call | ast.Await):
        yield ast.Pass()


def change_constant(node: ast.Constant) -> Iterator[ast.AST]:
    value = node.value
    if isinstance(value, bool):
        yield ast.Constant(not value)
    elif isinstance(value, int | float):
        yield ast.Constant(value + 1)
    elif isinstance(value, str):
        yield ast.Constant(f"{value}XX")


def is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def with_operator(node: ast.Compare, number: int, operator: ast.cmpop) -> ast.Compare:
    return ast.Compare(node.left, [*node.ops[:number], operator, *node.ops[number + 1 :]], node.comparators)


def make(path: Path, owner: tuple[str, ast.stmt], place: ast.AST, after: ast.AST) -> Mutant | None:
    """Compile a function or a constant with one node changed."""
    name, node = owner
    mutated = copy.deepcopy(node, {id(place): ast.copy_location(copy.deepcopy(after), place)})
    was, becomes = (ast.unparse(ast.fix_missing_locations(each)).partition("\n")[0] for each in (place, after))
    line = getattr(place, "lineno", node.lineno)
    first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])
    statement = ast.unparse(mutated)
    if not isinstance(node, FUNCTIONS):
        return Mutant(path, name, line, first, was, becomes, statement)
    try:
        code = find_code(compile(surround(name, mutated), str(path), "exec", FUTURE), name, first)
    except (SyntaxError, ValueError):
        return None
    return Mutant(path, name, line, first, was, becomes, statement, code) if code else None


def surround(name: str, function: ast.stmt) -> ast.Module:
    """Put a function where its full name says it is, in a module without anything else."""
    owner = name.rpartition(".")[0]
    held = [ast.ClassDef(owner, [], [], [function], [])] if owner else [function]
    return ast.fix_missing_locations(ast.Module(held, []))


def find_code(code: CodeType, name: str, first_line: int) -> CodeType | None:
    """Find the code of a function within that of its module."""
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            if inner.co_qualname == name and inner.co_firstlineno == first_line:
                return inner
            if found := find_code(inner, name, first_line):
                return found
    return None
