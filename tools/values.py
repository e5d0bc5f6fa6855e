"""The names of the values of Recollect, as the rooms of `recollect.models` define them."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from importlib import import_module

from recollect import models


def list_values() -> list[str]:
    """List the classes, aliases, constants and functions that every room defines, in the order of their names."""
    return sorted({name for room in models.ROOMS for name in find_definitions(room) if not name.startswith("_")})


def find_definitions(room: str) -> Iterator[str]:
    """Yield the names that a module defines itself."""
    module = import_module(f"{models.__name__}.{room}")
    tree = ast.parse(inspect.getsource(module))
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (target.id for target in targets if isinstance(target, ast.Name))
