"""What a process loads: the SDK without the engine, the help without a command, every public name when asked for."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import recollect
from recollect import models
from values import list_values

ROOT = Path(__file__).parents[2]
ENGINE = {"numpy", "pgvector", "procrastinate", "psycopg", "psycopg_pool", "pydantic_settings", "Stemmer", "tiktoken"}
MOST_PACKAGES = 15


def loaded_by(program: str) -> set[str]:
    """Run a program in a separate process, and return the modules that it loads."""
    script = f"import sys\n{program}\nsys.stdout = sys.__stdout__\nprint(*sys.modules)"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(ended.stdout.split())


@pytest.mark.parametrize(
    "program",
    [
        "import recollect",
        "from recollect.client import Client",
        "from recollect import sync; sync.connect('http://localhost', 'key').mind('ada').topics",
        "from recollect import NewMemory, RecollectError, connect; connect('http://localhost', 'key')",
    ],
)
def test_the_sdk_loads_nothing_of_the_engine(program):
    loaded = loaded_by(program)
    assert loaded & ENGINE == set()
    assert "recollect.wiring" not in loaded


def test_the_help_loads_no_command():
    program = """
import io
sys.argv, sys.stdout = ["recollect", "--help"], io.StringIO()
from recollect.doors.cli.main import main
try:
    main()
except SystemExit:
    assert "remember" in sys.stdout.getvalue()
"""
    loaded = loaded_by(program)
    assert {name for name in loaded if name.startswith("recollect.doors.cli.")} == {"recollect.doors.cli.main"}
    assert loaded & (ENGINE | {"fastapi", "pydantic", "mcp"}) == set()


def test_the_package_has_sixteen_names():
    listed = (
        "open connect Recollect Mind Conversation Memory NewMemory Message NewMessage Filter RecallResult Hit Context"
    )
    assert set(recollect.__all__) == {*listed.split(), "Settings", "RecollectError"}


@pytest.mark.parametrize(("package", "names"), [(recollect, recollect.__all__), (models, list_values())])
def test_every_public_name_is_there_when_it_is_asked_for(package, names):
    for name in names:
        assert getattr(package, name) is not None
    with pytest.raises(AttributeError, match="no_such_name"):
        package.no_such_name  # noqa: B018 - the test is to read it


def test_the_sdk_installs_few_packages():
    packages = {each["name"]: each for each in tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))["package"]}
    needed, waiting = set(), ["recollect-memory"]
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed.add(name)
            waiting += [each["name"] for each in packages[name].get("dependencies", ())]
    assert {"httpx", "pydantic"} <= needed
    assert len(needed) <= MOST_PACKAGES, needed


@pytest.mark.parametrize("program", ["recollect.open", "from recollect import sync; sync.open().__enter__()"])
def test_who_lacks_the_engine_is_told_how_to_install_it(program):
    script = f"import sys; sys.modules['psycopg'] = None; import recollect; {program}"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "psycopg is not installed; run: pip install 'recollect-memory[engine]'" in ended.stderr


def lazy_uses(function: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield (module, attribute) for each use of a module that a function loads with `load`: no type checker sees it."""
    nodes = list(ast.walk(function))
    lazily = {}
    for node in nodes:
        if isinstance(node, ast.Assign):
            pairs = (
                zip(node.targets[0].elts, node.value.elts, strict=False)
                if isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple)
                else [(node.targets[0], node.value)]
            )
            lazily |= {target.id: value for target, value in pairs if isinstance(target, ast.Name)}
    for node in nodes:
        if isinstance(node, ast.Attribute):
            value = lazily.get(node.value.id) if isinstance(node.value, ast.Name) else node.value
            match value:
                case ast.Call(func=ast.Name(id="load"), args=[ast.Constant(value=str(name)), *_]):
                    yield name, node.attr


def test_names_used_of_lazily_loaded_modules_exist():
    used = {
        use
        for path in (ROOT / "src").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for use in lazy_uses(node)
    }
    assert ("recollect.doors.mcp.stdio", "serve") in used
    assert [f"{module}.{name}" for module, name in sorted(used) if not hasattr(import_module(module), name)] == []
