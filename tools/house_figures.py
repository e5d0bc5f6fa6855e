"""Print the figures of the house: files, folders, lines, names, cycles, late imports; of this tree or of another.

python tools/house_figures.py [path of a checkout]
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1])
PACKAGE = ROOT / "src" / "recollect"
NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def main() -> None:
    """Print one line for each figure."""
    modules = sorted(PACKAGE.rglob("*.py"))
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in modules}
    classes = Counter(node.name for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    folders = Counter(path.parent for path in modules)
    sql = [path for path in PACKAGE.rglob("*.sql") if "migrations" not in path.parts and path.name != "schema.sql"]
    figures = {
        "modules at the root": folders[PACKAGE],
        "largest folder": max(folders.values()),
        "source files": len(modules),
        "lines of Python": sum(count_code(path, trees[path]) for path in modules),
        "lines of SQL": sum(
            1 for path in sql for line in path.read_text(encoding="utf-8").splitlines() if line.strip()
        ),
        "class names used twice": sum(1 for times in classes.values() if times > 1),
        "imports inside functions": sum(1 for tree in trees.values() for _ in find_late(tree)),
    }
    for name, figure in figures.items():
        print(f"{figure:>7,}  {name}")


def count_code(path: Path, tree: ast.Module) -> int:
    """Count the lines that are neither blank nor a comment nor part of a docstring or a remark."""
    tokens = tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline)
    lines = {line for each in tokens if each.type not in NO_CODE for line in range(each.start[0], each.end[0] + 1)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def find_late(tree: ast.Module) -> Iterator[ast.stmt]:
    """Find the imports that are made inside a function."""
    for function in ast.walk(tree):
        if isinstance(function, FUNCTIONS):
            yield from (node for node in ast.walk(function) if isinstance(node, ast.Import | ast.ImportFrom))


if __name__ == "__main__":
    main()
