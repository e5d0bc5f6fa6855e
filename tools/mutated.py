"""A plug-in of pytest: runs chosen tests on an engine with one statement changed (`mutants.py` starts it).

The statement is put into the module while it is imported, so that it reaches whatever is made from it, as patterns are.
The variable `MUTANT` names a file with the place, the statement and the tests.
"""

from __future__ import annotations

import ast
import json
import os
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any

import pytest
from hypothesis import Phase, settings

VARIABLE = "MUTANT"


class MutatedLoader(SourceFileLoader):
    """Compiles a module with one of its statements changed."""

    def __init__(self, fullname: str, path: str, statement: str) -> None:
        super().__init__(fullname, path)
        self._changed = ast.parse(statement).body[0]

    def get_code(self, fullname: str) -> CodeType:
        """Compile from the source, never from cached code."""
        tree = ast.parse(self.get_data(self.path), self.path)
        name = name_of(self._changed)
        tree.body = [self._changed if name_of(each) == name else each for each in tree.body]
        return compile(ast.fix_missing_locations(tree), self.path, "exec")


def name_of(statement: ast.stmt) -> str:
    """Name the function or the constant that a statement makes."""
    if isinstance(statement, ast.FunctionDef):
        return statement.name
    made = statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
    return made.id if isinstance(made, ast.Name) else ""


class Finder(MetaPathFinder):
    """Finds the one module that is mutated."""

    def __init__(self, given: dict[str, Any]) -> None:
        self._given = given

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        """Find it as everybody does, and have it loaded differently."""
        spec = PathFinder.find_spec(fullname, path, target) if fullname.startswith("recollect.") else None
        if spec is None or spec.origin != self._given["path"]:
            return None
        spec.loader = MutatedLoader(fullname, self._given["path"], self._given["statement"])
        return spec


def be_brief(item: pytest.Item) -> None:
    """Make hypothesis stop at the first example that fails: nobody reads the smallest one."""
    function = getattr(item, "obj", None)
    if hasattr(function, "hypothesis"):
        own = getattr(function, "_hypothesis_internal_use_settings", None) or settings.default
        held = getattr(function, "__func__", function)
        brief = settings(own, phases=(Phase.explicit, Phase.generate), database=None)
        setattr(held, "_hypothesis_internal_use_settings", brief)  # noqa: B010 - hypothesis has no other way


class Chosen:
    """Runs the tests that were chosen, in their order, and no other."""

    def __init__(self, names: list[str]) -> None:
        self._places = {name: place for place, name in enumerate(names)}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted(
            (each for each in items if each.nodeid in self._places), key=lambda each: self._places[each.nodeid]
        )
        for item in items:
            be_brief(item)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Chosen(_given["tests"]))


_given = json.loads(Path(os.environ[VARIABLE]).read_text(encoding="utf-8")) if VARIABLE in os.environ else {}
if _given:
    sys.meta_path.insert(0, Finder(_given))
