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
    sys.exit("The command line needs more: run pip install 'recollect-memory[server]'")

from recollect.errors import RecollectError
from recollect.loading import load, own_version

MCP = "recollect.doors.mcp.command"
ROOMS: Mapping[str, Mapping[str, str]] = {
    "start": {
        "up": "Start everything on this machine: PostgreSQL, migrations, API, worker, a first API key.",
        "serve": "Serve the HTTP API; run `recollect worker` beside it.",
        "worker": "Run background jobs until stopped.",
        "migrate": "Bring the database to the newest schema.",
    },
    "operators.doctor": {
        "doctor": "Say what runs, where the data lies, which versions there are, what is missing, and what to do.",
    },
    "memories": {
        "remember": "Remember one thing.",
        "get": "Show one memory with all its fields.",
        "browse": "List the memories of a scope, the newest first.",
        "pin": "Let every context show memories, before what is recalled; or no longer.",
        "revise": "Add a version of a memory in place of the current one, or show its versions.",
        "forget": "Delete memories for good, by their ids or all that the options admit, with all that was derived "
        "from them.",
    },
    "recall": {
        "recall": "Show what a cue reminds of, best first, and why.",
        "block": "Show what a cue reminds of as text for a prompt, within a budget in tokens.",
        "resolve": "Show the memory that a short id of a block stands for, and what it was made from.",
    },
    "explain": {
        "recalls": "List the recalls that were kept, the latest first.",
        "explain": "Say why a recall answered as it did: what each channel proposed and added, and what came of it.",
        "replay": "Rank what a recall found again, by other weights if they are named; or ask it again as of a moment.",
        "evaluate": "Measure how well recall finds what your own questions expect; nothing is changed.",
    },
    "conversations": {
        "chat": "Chat, and see how each prompt is assembled: what is recalled, how much history, and what each costs.",
        "conversations": "Look after conversations, from the first word to the last.",
    },
    "agents": {
        "associate": "Show which events and thoughts something perceived reminds of, by the keywords they share.",
        "overview": "Show what a scope holds in numbers, its strongest keywords, and its agent's settings.",
        "changes": "Follow what changes in a scope as it happens, until Ctrl-C; then say from where to follow on.",
        "profile": "Show an agent's default settings, and change what is given.",
        "tune": "Learn an agent's weights from feedback, and show before and after on feedback that was held out.",
    },
    "knowledge": {
        "state": "State a fact.",
        "facts": "Show facts, each with when it is true and since when it is believed.",
        "entities": "Show whom and what facts speak of, with what else they are called.",
        "graph": "Follow facts from entity to entity.",
        "enrich": "Read history again with another model or prompt, beside what stands, and switch to it at once.",
    },
    "topics": {
        "topics": "Show what memories are about, and put it in order.",
    },
    "imports": {
        "import": "Load memories into a scope.",
        "export": "Write a scope's memories to files.",
    },
    "operators.bench": {
        "bench": "Time this installation: writes and recalls in a scope of its own, which is emptied afterwards.",
    },
    "operators.rewrites": {
        "rewrite-tables": "Rewrite every table that can hold content, so that no erased byte stays in the data files.",
        "rewrite-terms": "Fold terms, keywords, names and topics by the newest rules, where older ones folded them.",
    },
    "operators.fading": {
        "fade": "Let what has decayed or expired leave recall, and show why; all of it can be revived.",
    },
    "operators.mirrors": {
        "mirror": "Look after mirrors of the record in OpenSearch and Neo4j.",
    },
    "operators.shards": {
        "shard": "Look after several PostgreSQL servers that share the tenants.",
    },
    "operators.backups": {
        "backup": "Make backups, look through them, and restore them.",
    },
    "operators.cold": {
        "cold": "Look after scopes that lie in object storage.",
    },
    MCP: {
        "mcp": "Serve the memory to an MCP client over standard input and output, until the client leaves.",
    },
    "operators.plan": {
        "plan": "Say which disk, RAM and cores an installation needs, and when to use shards or replicas.",
    },
    "operators.tenants": {
        "key": "Make, list, limit and revoke API keys.",
        "tenants": "Say what a tenant may use and ask.",
    },
    "operators.models": {
        "model": "Pull embedding models that run in this process, and use them.",
    },
    "service": {
        "reflect": "Think about what has gathered, now and not by a worker; show the questions and the thoughts.",
        "status": "Show which models the service uses, and what it still has to do for a tenant.",
        "ledger": "Show what models cost by day, step and model, and what is left of today's budget.",
        "jobs": "See what waits, runs or has failed, and let it be tried again.",
        "space": "Look after embedding spaces: the vectors of one model each.",
        "index": "Give the few largest scopes an approximate vector index each.",
        "reader": "Make, list and drop roles that read a tenant's memories by SQL.",
    },
}
"""Which rooms have which commands, each with its help line; a test compares them."""
HOMES = {name: room for room, commands in ROOMS.items() for name in commands}
HELP = {name: line for commands in ROOMS.values() for name, line in commands.items()}


class Commands(TyperGroup):
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


app = typer.Typer(cls=Commands, no_args_is_help=True, add_completion=True)


def print_version(wanted: bool) -> None:
    """Print the version, and end."""
    if wanted:
        print(own_version())  # noqa: T201 - a console is not needed
        raise typer.Exit


@app.callback()
def describe(
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
        complain(problem.code, str(problem))
    except OSError as problem:
        complain("setup", f"{problem.filename or ''}: {problem.strerror or problem}")


def complain(code: str, message: str) -> None:
    """Say what went wrong in one line, and end."""
    Console(stderr=True).print(f"[red]{code}[/red]: {escape(message)}", highlight=False, soft_wrap=True)
    sys.exit(1)
