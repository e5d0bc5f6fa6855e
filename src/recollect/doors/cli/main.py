"""The command line: which commands there are, and where; each is loaded when it is run."""

from __future__ import annotations

import gc
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

try:
    import typer
    from rich.console import Console
    from rich.markup import escape
    from typer.core import TyperCommand, TyperGroup
except ImportError:  # the extra is not installed
    sys.exit("The command line needs an extra: pip install 'recollect-memory[server]'")

from recollect.errors import RecollectError
from recollect.loading import load, package_version

MCP = "recollect.doors.mcp.command"
COMMAND_MODULES: Mapping[str, Mapping[str, str]] = {
    "start": {
        "up": "Start PostgreSQL, the API, the worker and the console on this machine, and print an API key.",
        "serve": "Run the HTTP API. Run `recollect worker` alongside it.",
        "worker": "Run background jobs until stopped.",
        "admin migrate": "Create or upgrade the database schema.",
    },
    MCP: {
        "mcp": "Run an MCP server over stdio.",
    },
    "operators.doctor": {
        "doctor": "Check the installation and suggest fixes.",
    },
    "memories": {
        "remember": "Store a memory.",
        "list": "List memories, newest first.",
        "get": "Show a memory with all its fields.",
        "update": "Update a memory, or show its versions.",
        "forget": "Delete memories permanently, by ID or filter, with everything derived from them.",
    },
    "recall": {
        "recall": "Search memories. Shows the best match first, with reasons, or all as prompt text (`--prompt`).",
    },
    "conversations": {
        "chat": "Chat in the terminal and see how each prompt is built.",
        "mind conversations": "Manage conversations.",
    },
    "knowledge": {
        "mind facts": "List, add and trace facts.",
        "mind entities": "List entities and their aliases.",
        "mind graph": "Explore the knowledge graph.",
        "admin enrich": "Re-run extraction with another model or prompt, then switch to the new result atomically.",
    },
    "topics": {
        "mind topics": "Show and edit the topic tree.",
    },
    "agents": {
        "mind associate": "Find events and thoughts that share keywords with an observation.",
        "mind overview": "Show statistics, top keywords and agent settings of a scope.",
        "mind watch": "Stream changes of a scope until Ctrl-C, then print the cursor to resume from.",
        "mind profile": "Show or change an agent's default settings.",
        "mind tune": "Learn an agent's ranking weights from feedback and show the effect on held-out feedback.",
    },
    "service": {
        "mind reflect": "Reflect on recent memories now, without a worker. Show the questions and the thoughts.",
        "admin costs": "Show model costs by day, step and model, and the rest of today's budget.",
        "admin jobs": "Show and retry background jobs.",
        "admin embeddings": "Manage embedding spaces, one per embedding model.",
        "admin sql-reader": "Manage SQL roles that can read a tenant's memories.",
    },
    "operators.fading": {
        "mind fade": "Remove decayed and expired memories from recall and show why. You can restore them.",
    },
    "explain": {
        "mind recalls": "List, explain and replay saved recalls.",
        "mind evaluate": "Measure recall quality on your own questions. Changes nothing.",
    },
    "imports": {
        "mind import": "Import memories.",
        "mind export": "Export memories.",
    },
    "operators.tenants": {
        "admin keys": "Manage API keys.",
        "admin tenants": "Limit, suspend and export tenants.",
    },
    "operators.backups": {
        "admin backup": "Back up and restore the embedded server, and replay erasures on any server.",
    },
    "operators.models": {
        "admin model": "Download and use local embedding models.",
    },
    "operators.shards": {
        "admin shard": "Manage shards: several PostgreSQL servers that share the tenants.",
    },
    "operators.mirrors": {
        "admin mirror": "Manage the OpenSearch and Neo4j mirrors.",
    },
    "operators.cold": {
        "admin cold": "Manage scopes in object storage.",
    },
    "operators.maintenance": {
        "admin retention": "Apply retention rules.",
        "admin vacuum-erased": "Rewrite all tables so that no erased content remains in the data files.",
    },
    "operators.plan": {
        "admin sizing": "Compute the disk, RAM and cores that an installation needs, and when to use shards.",
    },
    "operators.bench": {
        "admin bench": "Measure the speed of writes and recalls in a temporary scope.",
    },
}
"""Which module has which commands, each with its help line; a test compares them."""
HOMES = {path: module for module, commands in COMMAND_MODULES.items() for path in commands}
HELP = {path: line for commands in COMMAND_MODULES.values() for path, line in commands.items()}
GROUPS: Mapping[str, str] = {
    "mind": "Look into, tune, import and export a mind: the memory of one agent about one user.",
    "admin": "Operate the installation: schema, keys, tenants, jobs, costs, models and backups.",
}
PANELS: Mapping[str, Sequence[str]] = {
    "Run": ("up", "serve", "worker", "mcp", "doctor"),
    "Memories": ("remember", "recall", "list", "get", "update", "forget"),
    "Conversations": ("chat",),
    "More": tuple(GROUPS),
}
"""The first screen."""
OLD_NAMES: Mapping[str, str] = {
    "block": "recall --prompt",
    "browse": "list",
    "changes": "mind watch",
    "conversations retain": "admin retention run",
    "explain": "mind recalls explain",
    "index": "admin embeddings index",
    "key": "admin keys",
    "ledger": "admin costs",
    "pin": "update --pin",
    "plan": "admin sizing",
    "reader": "admin sql-reader",
    "replay": "mind recalls replay",
    "resolve": "get",
    "revise": "update",
    "rewrite-tables": "admin vacuum-erased",
    "space": "admin embeddings",
    "state": "mind facts add",
    "status": "doctor",
}
"""Commands of before the first release, by the commands that replace them."""


class LazyCommands(TyperGroup):
    """The first screen, or a group of it: listing commands loads none, running one loads its module."""

    def __init__(self, **attributes: Any) -> None:  # noqa: ANN401 - those of the library
        super().__init__(**attributes)
        self.prefix = f"{self.name} " if self.name in GROUPS else ""
        stubs = (
            [describe_command(path) for path in HELP if path.startswith(self.prefix)]
            if self.prefix
            else [describe_command(name, panel) for panel in PANELS for name in PANELS[panel]]
        )
        self.commands = {str(each.name): each for each in stubs}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 - the library's names
        """Load the command that is to be run, or suggest the one that was meant."""
        found = self.commands.get(args[0])
        if isinstance(found, LazyCommands):
            return args[0], found, args[1:]
        if found is None:
            if (meant := find_command(args)) and not ctx.resilient_parsing:
                ctx.fail(f"No such command '{args[0]}'. Did you mean 'recollect {meant}'?")
            return super().resolve_command(ctx, args)
        # Loading makes no garbage, and looking for it takes a fifth of the time of a short command.
        gc.disable()
        try:
            for sentence in load("recollect.settings").check_settings():
                Console(stderr=True).print(escape(sentence), highlight=False, soft_wrap=True)
            return args[0], load_command(self.prefix + args[0]), args[1:]
        finally:
            gc.freeze()
            gc.enable()


def describe_command(path: str, panel: str | None = None) -> TyperCommand | LazyCommands:
    """Return what a list of commands shows of a command or group."""
    if path in GROUPS:
        return LazyCommands(name=path, help=GROUPS[path], rich_help_panel=panel, no_args_is_help=True)
    return TyperCommand(path.rpartition(" ")[2], help=HELP[path], rich_help_panel=panel)


def find_command(words: Sequence[str]) -> str:
    """Return the path of the command that was meant most likely; empty if none is near."""
    paths = {path.rpartition(" ")[2]: path for path in HELP}
    near = load("difflib").get_close_matches(words[0], paths, 1)
    return OLD_NAMES.get(" ".join(words[:2])) or OLD_NAMES.get(words[0]) or next((paths[each] for each in near), "")


def load_command(path: str) -> Any:  # noqa: ANN401 - typer's own class
    """Load the module of a command, and return the command."""
    home = HOMES[path]
    module = load(home if home == MCP else f"recollect.doors.cli.{home}")
    return typer.main.get_group(module.commands).commands[path.rpartition(" ")[2]]


app = typer.Typer(cls=LazyCommands, no_args_is_help=True, add_completion=True)


def print_version(wanted: bool) -> None:
    """Print the version, and end."""
    if wanted:
        print(package_version())  # noqa: T201 - a console is not needed
        raise typer.Exit


@app.callback()
def handle_global_options(
    version: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """The memory of AI agents on PostgreSQL."""  # noqa: D401 - it is the first line of the help


def main() -> None:
    """Run the command line; an error of ours is one line, not a traceback."""
    try:
        app()
    except RecollectError as problem:
        fail(problem.code, str(problem))
    except OSError as problem:
        fail("setup", f"{problem.filename or ''}: {problem.strerror or problem}")


def fail(code: str, message: str) -> None:
    """Print an error in one line, and exit."""
    Console(stderr=True).print(f"[red]{code}[/red]: {escape(message)}", highlight=False, soft_wrap=True)
    sys.exit(1)
