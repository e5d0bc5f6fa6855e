"""Write the clients from the list of operations: the async one, the blocking one, and the table that both go by.

uv run python tools/clients.py [--check]

It also writes docs/reference/operations.md, the table of all operations and the doors that show them.

Signatures and descriptions are those of the methods in src/recollect/mind that declare the operations. Methods that
send more than one request are written by hand, in client/special.py and client/items.py.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from recollect.client import special
from recollect.core.items.verbs import ItemVerbs
from recollect.mind import agents, conversations, items, knowledge, memories, recall, topics
from recollect.mind.mind import OPERATIONS, Mind
from recollect.mind.operations import CONVERSATION
from values import list_values

ROOT = Path(__file__).parents[1]
CLIENT, SYNC = ROOT / "src/recollect/client", ROOT / "src/recollect/sync"
ROOMS = (agents, conversations, items, knowledge, memories, recall, topics)
NAMES = {
    "MemoryVerbs": "Memories",
    "RecallVerbs": "Recall",
    "AgentVerbs": "Agent",
    "BlockView": "Blocks",
    "RecallsView": "Recalls",
    "Conversation": "Conversation",
    "ItemsView": "Items",
    "KnowledgeView": "Knowledge",
    "TopicsView": "Topics",
    "Mind": "Mind",
}
"""What the classes of the facade are called in the clients, after `Remote` or `Sync`."""
BASES = {"Conversation": "ConversationPart", "ItemsView": "RemoteView, ItemVerbs"}
READ = {"items.batch": "list[dict[str, Any]]"}
"""The type of an answer, if the method makes something else of it."""
UNREAD = {"changes", "knowledge.export"}
WRITTEN = "Written by tools/clients.py: change the methods of recollect.mind that declare the operations, and run it."
OPERATIONS_PAGE = ROOT / "docs/reference/operations.md"
PAGE = """# Operations

All that a caller can ask of a mind, in one table. [Python](python.md) has it as a method, [HTTP](http.md) as a request.
Some are commands of the [command line](cli.md), or tools of the [MCP server](../howto/mcp.md).

Written by `python tools/clients.py`; `tests/unit/service/test_facades.py` compares.
"""
FUTURE = "from __future__ import annotations"
TABLE = f'''"""The list of operations, as a client needs it.

{WRITTEN}
"""

{FUTURE}

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from recollect import models


@dataclass(frozen=True, slots=True)
class RemoteOperation:
    """The request of an operation, and the type of its answer; the type is loaded on first use."""

    method: str
    path: str
    gives: Callable[[], Any] | None = None
    answer: str = ""
    """The field of the body that holds the answer; empty if the whole body is the answer."""
    agent_only: bool = False
    """Whether no user is named."""


OPERATIONS: Mapping[str, RemoteOperation] = {{
'''


def write_table() -> str:
    """Write the list."""
    text = TABLE
    for key, (operation, call) in OPERATIONS.items():
        parts = [f'"{operation.method}"', f'"{operation.path}"']
        if key not in UNREAD:
            given = READ.get(key) or in_models(str(inspect.signature(call).return_annotation))
            parts += [f"lambda: {given}", *([f'answer="{operation.answer}"'] if operation.answer else [])]
        parts += ["agent_only=True"] if operation.agent_only else []
        text += f'    "{key}": RemoteOperation({", ".join(parts)}),\n'
    return text + "}\n"


def in_models(text: str) -> str:
    """Name the values of an annotation as those of `models`, which are loaded at their first use."""
    known = set(list_values())
    return re.sub(r"[A-Za-z_]\w*", lambda found: f"models.{found[0]}" if found[0] in known else found[0], text)


def write_room(module: ModuleType) -> str:
    """Write the views of one room."""
    title = (module.__doc__ or "").split("\n")[0].rstrip(".")
    kinds = [kind for kind in vars(module).values() if inspect.isclass(kind) and kind.__module__ == module.__name__]
    plain, of_values = imports_of(module)
    lines = [f'"""{title}: on a server.\n\n{WRITTEN}\n"""\n', f"{FUTURE}\n", *plain]
    lines += ["from typing import TYPE_CHECKING\n"]
    lines += ["from recollect.client.calls import ConversationPart, RemoteView"]
    lines += ["from recollect.core.items.verbs import ItemVerbs", "from recollect.loading import load\n"]
    lines += ["if TYPE_CHECKING:", *(f"    {line}" for line in of_values)]
    for kind in kinds:
        described = (kind.__doc__ or "").split("\n")[0].replace("One caller's view of ", "").rstrip(".")
        base = BASES.get(kind.__name__, "RemoteView")
        lines += [f"\n\nclass Remote{NAMES[kind.__name__]}({base}):"]
        lines += [f'    """{described[:1].upper()}{described[1:]}, on a server."""\n', "    __slots__ = ()"]
        lines += write_methods(kind)
    return "\n".join(lines)


def imports_of(module: ModuleType) -> tuple[list[str], list[str]]:
    """Return the imports that signatures may need: the cheap ones, and those of values."""
    found = [node for node in ast.parse(inspect.getsource(module)).body if isinstance(node, ast.ImportFrom)]
    plain = [node for node in found if node.module in {"collections.abc", "datetime", "uuid"}]
    of_values = [node for node in found if (node.module or "").startswith(("recollect.models", "recollect.core"))]
    of_values = [node for node in of_values if node.module != ItemVerbs.__module__]
    return [ast.unparse(node) for node in plain], [ast.unparse(node) for node in of_values]


def write_methods(kind: type) -> Iterator[str]:
    """Write the methods that a class has itself, in their order."""
    for name, call in vars(kind).items():
        if inspect.isfunction(call) and not name.startswith("_") and name != CONVERSATION:
            yield write_method(call)


def write_method(call: Callable[..., Any]) -> str:
    """Write one method: its own signature and description, and the request."""
    method = inspect.unwrap(call)
    by_hand = getattr(special, method.__name__, None) if hand_written(method.__name__) else None
    described = textwrap.indent(inspect.getdoc(by_hand or method) or "", "        ").lstrip()
    closing = "\n        " if "\n" in described else ""
    parameters = list(inspect.signature(method).parameters.values())[1:]
    if by_hand is None:
        handed = "".join(f", {each.name}={each.name}" for each in parameters)
        request = f'self.call("{key_of(method)}"{handed})'
    else:
        named = {each.name: each.kind is each.KEYWORD_ONLY for each in parameters}
        handed = "".join(f", {name}={name}" if by_name else f", {name}" for name, by_name in named.items())
        request = f'load("recollect.client.special").{method.__name__}(self{handed})'
    given = str(inspect.signature(method).return_annotation)
    if inspect.isasyncgenfunction(method):
        body = f"async for piece in {request}:\n            yield piece"
    elif given == "None":
        body = f"await {request}"
    else:
        body = f"answer: {given} = await {request}\n        return answer"
    return f'\n{signature(method)}\n        """{described}{closing}"""\n        {body}'


def hand_written(name: str) -> bool:
    """Return whether an operation is more than one request and its answer."""
    found = getattr(special, name, None)
    return inspect.isfunction(found) and found.__module__ == special.__name__


def key_of(method: Callable[..., Any]) -> str:
    """Find the operation that a method carries out."""
    return next(key for key, (_, call) in OPERATIONS.items() if inspect.unwrap(call) is method)


def signature(method: Callable[..., Any]) -> str:
    """Return the source of a signature."""
    source = inspect.getsource(method)
    defined = ast.parse(textwrap.dedent(source)).body[0]
    assert isinstance(defined, ast.AsyncFunctionDef)
    return "\n".join(source.split("\n")[defined.lineno - 1 : defined.body[0].lineno - 1])


def views() -> dict[str, tuple[Callable[..., Any], type]]:
    """Return the properties of a mind that lead to its views, each with the class of the view."""
    found = {name: each for name, each in vars(Mind).items() if isinstance(each, property) or name == CONVERSATION}
    ways = {name: getattr(each, "fget", each) for name, each in found.items()}
    return {name: (way, inspect.get_annotations(way, eval_str=True)["return"]) for name, way in ways.items()}


def write_mind() -> str:
    """Write the way to all views of a scope."""
    plain, of_values = imports_of(sys.modules[Mind.__module__])
    remote = {NAMES[kind.__name__]: home(kind.__module__) for kind in (*Mind.__bases__, *kinds())}
    lines = [f'"""One scope on a server, as one object.\n\n{WRITTEN}\n"""\n', f"{FUTURE}\n", *plain]
    lines += ["from typing import TYPE_CHECKING\n", "from recollect.loading import load"]
    lines += [f"from recollect.client.{room} import Remote{name}" for name, room in remote.items()]
    lines += ["\nif TYPE_CHECKING:", *(f"    {line}" for line in of_values)]
    bases = ", ".join(f"Remote{NAMES[base.__name__]}" for base in Mind.__bases__)
    lines += [f"\n\nclass RemoteMind({bases}):"]
    lines += ['    """One scope on a server."""\n\n    __slots__ = ()', *write_methods(Mind)]
    for name, (way, kind) in views().items():
        made = f"Remote{NAMES[kind.__name__]}"
        given = "self.client, self.agent, self.user" + (f", {CONVERSATION}" if name == CONVERSATION else "")
        lines.append(write_way(name, way, made, f"{made}({given})"))
    return "\n".join(lines)


def home(module: str) -> str:
    """Name the room that a module is."""
    return module.rpartition(".")[2]


def kinds() -> list[type]:
    """List the classes of the views."""
    return [kind for _, kind in views().values()]


def write_way(name: str, way: Callable[..., Any], made: str, value: str) -> str:
    """Write a way to a view: a property, or a method where the view is chosen by a name."""
    head = (
        f"    def {name}(self, {CONVERSATION}: str)" if name == CONVERSATION else f"    @property\n    def {name}(self)"
    )
    return f'\n{head} -> {made}:\n        """{way.__doc__}"""\n        return {value}'


def write_blocking() -> str:
    """Write the same views for callers without an event loop: each method lends its signature from the async client."""
    lines = [f'"""The views of a scope for callers without an event loop, here or on a server.\n\n{WRITTEN}\n"""\n']
    lines += [f"{FUTURE}\n"]
    for kind in (*kinds(), Mind):
        lines.append(f"from recollect.client.{home(kind.__module__)} import Remote{NAMES[kind.__name__]}")
    lines.append("from recollect.sync.portal import Blocking, blocking, blocking_pieces")
    for kind in (*kinds(), Mind):
        name = NAMES[kind.__name__]
        lines.append(f"\n\nclass Sync{name}(Blocking):")
        lines.append(f'    """{name} whose methods return when they are done."""\n')
        for method, call in inspect.getmembers_static(kind, inspect.isfunction):
            wrap = "blocking_pieces" if inspect.isasyncgenfunction(inspect.unwrap(call)) else "blocking"
            lines += [f"    {method} = {wrap}(Remote{name}.{method})"] if is_public(method) else []
    for name, (way, kind) in views().items():
        made, chosen = f"Sync{NAMES[kind.__name__]}", f"({CONVERSATION})" if name == CONVERSATION else ""
        lines.append(write_way(name, way, made, f"{made}(self.inner.{name}{chosen}, self.portal)"))
    return "\n".join(lines)


def is_public(name: str) -> bool:
    """Return whether a member is an operation, or leads to some."""
    return not name.startswith("_") and name != CONVERSATION


def write_page() -> str:
    """Write the page that lists every operation."""
    lines = [PAGE, "| Python | HTTP | right | command | MCP | what it does |\n|---|---|---|---|---|---|"]
    for operation, call in sorted(OPERATIONS.values(), key=lambda each: (each[0].view, each[0].name)):
        named = list(inspect.signature(call).parameters)[1:]
        chosen = "conversation(...)" if operation.view == CONVERSATION else operation.view
        python = f"`{'.'.join(part for part in (chosen, operation.name) if part)}({', '.join(named)})`"
        http = f"`{operation.method} {operation.path}`"
        right = operation.right if "`" in operation.right else f"`{operation.right}`"
        doors = [f"`{door}`" if door else "" for door in (operation.command, operation.tool)]
        lines.append(f"| {' | '.join([python, http, right, *doors, operation.help])} |")
    return "\n".join(lines) + "\n"


def tidy(text: str, path: Path) -> str:
    """Sort imports, drop those that nothing needs, and format, as all code of the project is."""
    for command in (["check", "--select", "I,F401", "--fix", "--quiet"], ["format", "--quiet"]):
        run = ["ruff", *command, "--stdin-filename", str(path), "-"]
        text = subprocess.run(run, input=text, capture_output=True, text=True, check=False, cwd=ROOT).stdout or text
    return text


def write_all() -> dict[Path, str]:
    """Write every file."""
    texts = {CLIENT / f"{home(module.__name__)}.py": write_room(module) for module in ROOMS}
    texts |= {CLIENT / "operations.py": write_table(), CLIENT / "mind.py": write_mind()}
    texts |= {SYNC / "blocking.py": write_blocking()}
    return {path: tidy(text, path) for path, text in texts.items()} | {OPERATIONS_PAGE: write_page()}


def main() -> None:
    """Write the files, or say which of them are not as they would be written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a file differs")
    if parser.parse_args().check:
        differing = [path for path, text in write_all().items() if path.read_text(encoding="utf-8") != text]
        if differing:
            named = ", ".join(str(path.relative_to(ROOT)) for path in differing)
            sys.exit(f"Not as tools/clients.py writes them: {named}. Run it.")
        return
    for path, text in write_all().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
