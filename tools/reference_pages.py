"""Write the reference of the command line, of HTTP and of Python, and the list of decisions, from their sources.

python tools/reference_pages.py [--check]

The text before the generated part comes from tools/introductions.
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import inspect
import itertools
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import recollect
import reference_http
from recollect import errors, models
from recollect.client import Client
from recollect.doors.cli.main import GROUPS, HELP, PANELS, load_command
from recollect.mind.items import ItemsView
from recollect.mind.knowledge import KnowledgeView
from recollect.mind.recall import BlockView, RecallsView, compare_evaluations, evaluate, fit_relevance
from recollect.mind.topics import TopicsView
from values import list_values

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = {name: DOCS / "reference" / name for name in ("cli.md", "http.md", "python.md")} | {
    "decisions.md": DOCS / "adr" / "README.md"
}
"""The path of each page, by the name of its introduction."""
INTRODUCTIONS = ROOT / "tools" / "introductions"
WRITTEN = "Written by `python tools/reference_pages.py`; `tests/house/pages/test_reference.py` compares."
GENERATED = "<!-- generated -->"
RECORD = re.compile(r"^Room: (\w+)\.\n(?:Superseded\s+by\s+(\[\d+\]\(\S+\)))?", re.MULTILINE)
"""The room of a decision, and the decision that supersedes it."""
OWNERS: tuple[type, ...] = (
    *(recollect.Mind, recollect.Conversation, KnowledgeView, TopicsView, BlockView),
    *(ItemsView, RecallsView, recollect.Recollect, Client),
)


def main() -> None:
    differing = [name for name, text in write_pages().items() if PAGES[name].read_text(encoding="utf-8") != text]
    if "--check" in sys.argv:
        raise SystemExit(f"run `python tools/reference_pages.py`: {', '.join(differing)}" if differing else 0)
    for name, text in write_pages().items():
        PAGES[name].write_text(text, encoding="utf-8")
        print(PAGES[name].relative_to(ROOT))


def write_pages() -> dict[str, str]:
    """Return the text of each page by its name."""
    writers: dict[str, Callable[[], Iterator[str]]] = {
        "cli.md": write_commands,
        "http.md": reference_http.write_operations,
        "python.md": write_python,
        "decisions.md": write_decisions,
    }
    return {name: fill(name, "\n".join(writer())) for name, writer in writers.items()}


def fill(name: str, generated: str) -> str:
    """Put the generated part where the introduction has its mark."""
    text = (INTRODUCTIONS / name).read_text(encoding="utf-8")
    if text.count(GENERATED) != 1:
        raise SystemExit(f"tools/introductions/{name} must have the line {GENERATED} once")
    return text.replace(GENERATED, generated.strip()).replace("<!-- written -->", WRITTEN)


def write_decisions() -> Iterator[str]:
    """List the decisions of each room, those in force first."""
    rooms: dict[str, list[tuple[bool, str]]] = {}
    for page in sorted((DOCS / "adr").glob("[0-9]*.md")):
        text = page.read_text(encoding="utf-8")
        number, title = text.partition("\n")[0].removeprefix("# ").split(": ", 1)
        [(room, successor)] = RECORD.findall(text)
        rooms.setdefault(room, []).append((successor != "", f"| {number} | [{title}]({page.name}) | {successor} |"))
    for room, rows in sorted(rooms.items()):
        yield f"## {room.capitalize()}\n\n| number | decision | superseded by |\n|---|---|---|"
        yield from (line for _, line in sorted(rows))
        yield ""


def write_commands() -> Iterator[str]:
    groups = {panel: names for panel, names in PANELS.items() if not {*names} & {*GROUPS}}
    groups |= {f"recollect {name}": [path for path in HELP if path.startswith(f"{name} ")] for name in GROUPS}
    for title, paths in groups.items():
        yield f"## {title}\n"
        for path in paths:
            yield from write_command(f"recollect {path}", load_command(path))


def write_command(path: str, command: Any) -> Iterator[str]:
    """Describe a command with its arguments and options, and those below it."""
    subcommands = getattr(command, "commands", {})
    if not subcommands or command.invoke_without_command:
        told = [each for each in command.params if not getattr(each, "hidden", False) and each.name != "help"]
        arguments = [each for each in told if each.param_type_name == "argument"]
        shown = " ".join([path, *map(show_argument, arguments)])
        yield f"### {path}\n\n`{shown}`\n\n{flow(command.help)}\n"
        rows = [row(*describe_parameter(each)) for each in told]
        yield from ("| argument, option | default | meaning |\n|---|---|---|", *rows, "") if rows else ()
    for name, each in subcommands.items():
        yield from write_command(f"{path} {name}", each)


def show_argument(argument: Any) -> str:
    name = argument.name.upper()
    return (name if argument.required else f"[{name}]") + ("..." if argument.nargs == -1 else "")


def describe_parameter(parameter: Any) -> tuple[str, str, str]:
    """Return the names, the default and the meaning of an argument or option."""
    if parameter.param_type_name == "argument":
        names = [parameter.name.upper()]
    else:
        names = [*parameter.opts, *parameter.secondary_opts]
    said = parameter.show_default if isinstance(parameter.show_default, str) else show_default(parameter.default)
    default = "needed" if parameter.required else said
    return ", ".join(f"`{name}`" for name in names), default, flow(parameter.help or "")


def show_default(value: object) -> str:
    if callable(value) or value is None or value in ("", False, ()):
        return ""
    return f"`{value.value if isinstance(value, enum.Enum) else value}`"


def write_python() -> Iterator[str]:
    for owner in OWNERS:
        yield f"## `{owner.__name__}`\n\n{summary(owner)}\n"
        yield "| method | gives | what it does |\n|---|---|---|"
        yield from (row(*described) for described in describe_members(owner))
        yield ""
    yield "## Functions\n\n| function | gives | what it does |\n|---|---|---|"
    yield from (row(*describe_function(each)) for each in (compare_evaluations, evaluate, fit_relevance))
    yield "\n## Values\n\nAll are frozen. Those that have no table have their fields behind the colon.\n"
    for name in list_values():
        yield from write_value(name, getattr(models, name))
    yield "## Errors\n\n| error | code | when |\n|---|---|---|"
    yield from (
        row(f"`{each.__name__}`", f"`{each.code}`", summary(each)) for each in find_errors(errors.RecollectError)
    )


def find_errors(root: type[errors.RecollectError]) -> Iterator[type[errors.RecollectError]]:
    yield root
    for each in root.__subclasses__():
        if each.__module__ == errors.__name__:
            yield from find_errors(each)


def describe_members(owner: type) -> Iterator[tuple[str, str, str]]:
    """Describe the public methods and properties of a class, in the order of their names."""
    for name, member in inspect.getmembers(owner):
        if name.startswith("_"):
            continue
        if inspect.isfunction(member):
            yield describe_function(member)
        elif isinstance(member, property):
            gives = str(member.fget.__annotations__.get("return", "")) if member.fget else ""
            yield f"`{name}`", code(gives), summary(member)


def describe_function(function: Any) -> tuple[str, str, str]:
    """Return the signature without types, the return type, and the first line of the docstring."""
    signature = inspect.signature(function)
    bare = [each.replace(annotation=inspect.Parameter.empty) for each in signature.parameters.values()]
    kept = [each for each in bare if each.name != "self"]
    shown = str(signature.replace(parameters=kept, return_annotation=inspect.Signature.empty))
    returned = function.__annotations__.get("return", "None")
    return f"`{function.__name__}{tidy(shown)}`", code(str(returned)), summary(function)


def write_value(name: str, value: Any) -> Iterator[str]:
    """Describe a value: an enumeration in one line, a dataclass by a table where its fields say something."""
    if isinstance(value, type) and issubclass(value, enum.Enum):
        yield f"**`{name}`**: {summary(value)} " + ", ".join(f"`{each.name}`" for each in value) + ".\n"
    elif isinstance(value, type) and dataclasses.is_dataclass(value):
        told = read_field_docs(value)
        fields = [each for each in dataclasses.fields(value) if not each.name.startswith("_")]
        if not told:
            shown = ", ".join(f"`{each.name}` ({code(str(each.type))})" for each in fields)
            yield f"**`{name}`**: {summary(value)} {shown}.\n"
        else:
            yield f"**`{name}`**: {summary(value)}\n\n| field | type | default | meaning |\n|---|---|---|---|"
            for each in fields:
                yield row(f"`{each.name}`", code(str(each.type)), field_default(each), told.get(each.name, ""))
            yield ""
    elif inspect.getdoc(value) and inspect.isfunction(value):
        yield f"**`{name}`**: {summary(value)}\n"


def field_default(field: dataclasses.Field[Any]) -> str:
    default = field.default
    if default is dataclasses.MISSING and field.default_factory is not dataclasses.MISSING:
        if inspect.isfunction(made_by := inspect.unwrap(field.default_factory)):
            return code(f"{made_by.__name__}()")  # It depends on the machine.
        default = field.default_factory()
    if default is dataclasses.MISSING:
        return "needed"
    return code(f"{type(default).__name__}()" if dataclasses.is_dataclass(default) else tidy(repr(default)))


def read_field_docs(value: type) -> dict[str, str]:
    """Read the strings below the fields of a class, its bases included."""
    told: dict[str, str] = {}
    for owner in reversed(value.__mro__):
        if owner.__module__.startswith("recollect."):
            body = ast.parse(textwrap.dedent(inspect.getsource(owner))).body[0]
            told |= dict(pair_docs(getattr(body, "body", [])))
    return told


def pair_docs(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    for field, said in itertools.pairwise(body):
        target = field.target if isinstance(field, ast.AnnAssign) else None
        text = said.value if isinstance(said, ast.Expr) else None
        if isinstance(target, ast.Name) and isinstance(text, ast.Constant) and isinstance(text.value, str):
            yield target.id, flow(text.value)


def summary(thing: Any) -> str:
    """Return the first paragraph of a docstring; nothing for a dataclass whose docstring is its signature."""
    text = inspect.getdoc(thing) or ""
    return "" if text.startswith(f"{getattr(thing, '__name__', '')}(") else flow(text.split("\n\n")[0])


def tidy(shown: str) -> str:
    """Show enumerations and functions as they are written in a program."""
    named = re.sub(r"<(\w+\.\w+): [^>]*>|<function (\w+) at \w+>", r"\1\2", shown)
    return named.replace("'", '"')


def code(text: str) -> str:
    return f"`{text}`" if text else ""


def flow(text: str) -> str:
    return " ".join(text.split())


def row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


if __name__ == "__main__":
    main()
