"""The command line: which commands there are, and where; each is loaded when it is run."""

from __future__ import annotations

import gc
import sys
from collections.abc import Mapping
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
        "migrate": "Create or upgrade the database schema.",
    },
    "operators.doctor": {
        "doctor": "Check the installation and suggest fixes.",
    },
    "memories": {
        "remember": "Store a memory.",
        "get": "Show a memory with all its fields.",
        "browse": "List memories, newest first.",
        "pin": "Pin memories so that every prompt includes them (`--off` to unpin).",
        "revise": "Update a memory, or show its versions.",
        "forget": "Delete memories permanently, by ID or filter, with everything derived from them.",
    },
    "recall": {
        "recall": "Search memories. Shows the best match first, with reasons.",
        "block": "Search memories and print them as prompt text within a token budget.",
    },
    "explain": {
        "recalls": "List saved recalls, newest first.",
        "explain": "Explain the ranking of a saved recall.",
        "replay": "Rank a saved recall again with other weights, or run it again as of an earlier time.",
        "evaluate": "Measure recall quality on your own questions. Changes nothing.",
    },
    "conversations": {
        "chat": "Chat in the terminal and see how each prompt is built.",
        "conversations": "Manage conversations.",
    },
    "agents": {
        "associate": "Find events and thoughts that share keywords with an observation.",
        "overview": "Show statistics, top keywords and agent settings of a scope.",
        "changes": "Stream changes of a scope until Ctrl-C, then print the cursor to resume from.",
        "profile": "Show or change an agent's default settings.",
        "tune": "Learn an agent's ranking weights from feedback and show the effect on held-out feedback.",
    },
    "knowledge": {
        "state": "Add a fact.",
        "facts": "List facts with the time they are true and when they were recorded.",
        "entities": "List entities and their aliases.",
        "graph": "Explore the knowledge graph.",
        "enrich": "Re-run extraction with another model or prompt, then switch to the new result atomically.",
    },
    "topics": {
        "topics": "Show and edit the topic tree.",
    },
    "imports": {
        "import": "Import memories.",
        "export": "Export memories.",
    },
    "operators.bench": {
        "bench": "Measure the speed of writes and recalls in a temporary scope.",
    },
    "operators.maintenance": {
        "rewrite-tables": "Rewrite all tables so that no erased content remains in the data files.",
    },
    "operators.fading": {
        "fade": "Remove decayed and expired memories from recall and show why. You can restore them.",
    },
    "operators.mirrors": {
        "mirror": "Manage the OpenSearch and Neo4j mirrors.",
    },
    "operators.shards": {
        "shard": "Manage shards: several PostgreSQL servers that share the tenants.",
    },
    "operators.backups": {
        "backup": "Back up and restore the embedded server, and replay erasures on any server.",
    },
    "operators.cold": {
        "cold": "Manage scopes in object storage.",
    },
    MCP: {
        "mcp": "Run an MCP server over stdio.",
    },
    "operators.plan": {
        "plan": "Compute the disk, RAM and cores that an installation needs, and when to use shards.",
    },
    "operators.tenants": {
        "key": "Manage API keys.",
        "tenants": "Limit, suspend and export tenants.",
    },
    "operators.models": {
        "model": "Download and use local embedding models.",
    },
    "service": {
        "reflect": "Reflect on recent memories now, without a worker. Show the questions and the thoughts.",
        "ledger": "Show model costs by day, step and model, and the rest of today's budget.",
        "jobs": "Show and retry background jobs.",
        "space": "Manage embedding spaces, one per embedding model.",
        "index": "Build an approximate vector index for the largest scopes.",
        "reader": "Manage SQL roles that can read a tenant's memories.",
    },
}
"""Which rooms have which commands, each with its help line; a test compares them."""
HOMES = {name: room for room, commands in COMMAND_MODULES.items() for name in commands}
HELP = {name: line for commands in COMMAND_MODULES.values() for name, line in commands.items()}


class LazyCommands(TyperGroup):
    """The commands of all rooms: listing them loads none, running one loads its room."""

    def list_commands(self, ctx: object) -> list[str]:  # noqa: ARG002 - the library's name
        """List every command, the usual ones first."""
        return list(HELP)

    def get_command(self, ctx: object, cmd_name: str) -> Any:  # noqa: ANN401, ARG002 - the library's names
        """Return a stub of a command for the list."""
        return TyperCommand(cmd_name, help=HELP[cmd_name]) if cmd_name in HELP else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 - the library's names
        """Load the command that is to be run."""
        if args[0] not in HELP:
            self.commands = dict.fromkeys(HELP, TyperCommand("any"))  # the nearest names are suggested
            return super().resolve_command(ctx, args)
        # Loading makes no garbage, and looking for it takes a fifth of the time of a short command.
        gc.disable()
        try:
            for sentence in load("recollect.settings").check_settings():
                Console(stderr=True).print(escape(sentence), highlight=False, soft_wrap=True)
            return args[0], load_command(args[0]), args[1:]
        finally:
            gc.freeze()
            gc.enable()


def load_command(name: str) -> Any:  # noqa: ANN401 - typer's own class
    """Load the room of a command, and return the command."""
    room = HOMES[name]
    module = load(room if room == MCP else f"recollect.doors.cli.{room}")
    return typer.main.get_group(module.commands).commands[name]


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
