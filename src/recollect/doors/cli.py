"""The command line: start it, look after it, talk to it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import UUID

try:
    import typer
    from rich.markup import escape
    from rich.progress import Progress
    from rich.table import Column, Table
except ImportError:  # the extra is not installed
    sys.exit("The command line needs `pip install '.[server]'` in a checkout of Recollect.")

from pydantic import ValidationError

from recollect.doors import (
    agents,
    blocks,
    carry,
    chat,
    conversations,
    costs,
    enrich,
    fading,
    graph,
    knowledge,
    later,
    readers,
    recall,
    timing,
    topics,
    why,
)
from recollect.doors.mcp import command as mcp
from recollect.doors.terminal import Agent, Tenant, User, err, out, run, with_mind, with_options
from recollect.errors import RecollectError
from recollect.loading import load
from recollect.mind.service import Recollect
from recollect.models.memories import Kind, NewMemory
from recollect.models.service import ApiKey, Bounds, Right
from recollect.settings import Settings, find_misspelt
from recollect.wiring import set_up

app = typer.Typer(help="The memory of AI agents on PostgreSQL.", no_args_is_help=True, add_completion=False)
key_app = typer.Typer(help="Make, list and revoke API keys.", no_args_is_help=True)
space_app = typer.Typer(help="Look after embedding spaces: the vectors of one model each.", no_args_is_help=True)
app.add_typer(key_app, name="key")
app.add_typer(space_app, name="space")
app.add_typer(readers.app, name="reader")
app.command()(mcp.mcp)
app.add_typer(carry.import_app, name="import")
app.add_typer(carry.export_app, name="export")
app.command()(recall.recall)
app.command()(blocks.block)
app.command()(blocks.resolve)
app.command()(chat.chat)
app.command()(later.reflect)
app.add_typer(later.jobs_app, name="jobs")
app.command()(agents.associate)
app.command()(agents.overview)
app.command()(agents.profile)
app.command()(agents.tune)
app.add_typer(conversations.app, name="conversations")
app.command()(fading.fade)
app.command()(knowledge.facts)
app.command()(knowledge.entities)
app.add_typer(graph.app, name="graph")
app.add_typer(topics.app, name="topics")
app.command()(enrich.enrich)
app.command()(costs.ledger)
app.add_typer(costs.tenants_app, name="tenants")
app.command()(conversations.scrub)
app.command()(why.recalls)
app.command()(why.why)
app.command()(why.replay)


def main() -> None:
    """Run the command line; an error of ours is one line, not a stack of them."""
    for sentence in find_misspelt():
        err.print(escape(sentence), highlight=False, soft_wrap=True)
    try:
        app()
    except RecollectError as problem:
        complain(problem.code, str(problem))
    except ValidationError as problem:
        first = problem.errors(include_input=False)[0]
        complain("setup", f"RECOLLECT_{'_'.join(map(str, first['loc'])).upper()}: {first['msg']}")
    except OSError as problem:
        complain("setup", f"{problem.filename or ''}: {problem.strerror or problem}")


def complain(code: str, message: str) -> None:
    """Say what went wrong in one line, and end."""
    err.print(f"[red]{code}[/red]: {escape(message)}", highlight=False, soft_wrap=True)
    sys.exit(1)


@app.command()
def up(tenant: Tenant = "default") -> None:
    """Start everything on this machine: PostgreSQL, migrations, API, worker, a first API key."""
    service = load("recollect.doors.service")  # the web framework takes a while to load
    service.run(service.up(Settings(), tenant, out))


@app.command()
def serve() -> None:
    """Serve the HTTP API; run `recollect worker` beside it."""
    service = load("recollect.doors.service")
    service.run(service.serve(Settings()))


@app.command()
def worker(concurrency: Annotated[int, typer.Option(help="Jobs at a time.")] = 4) -> None:
    """Run background jobs until stopped."""
    service = load("recollect.doors.service")
    service.run(service.work(Settings(), concurrency))


@app.command()
def migrate() -> None:
    """Bring the database to the newest schema."""
    asyncio.run(set_up(Settings(), lambda name: out.print(f"applied {name}", highlight=False)))
    out.print("The database is up to date.")


@key_app.command("create")
def create_key(
    name: Annotated[str, typer.Argument(help="Shown as the origin of what the key remembers.")],
    right: Annotated[list[Right] | None, typer.Option(help="read, write or admin; repeat for more.")] = None,
    trust: Annotated[int, typer.Option(help="0 to 100: how far its memories are trusted.")] = 50,
    tenant: Tenant = "default",
    agent: Annotated[str | None, typer.Option(help="The only agent it may name.", show_default="any")] = None,
    user: Annotated[
        str | None, typer.Option(help="The only user of it; '' for the agent alone.", show_default="any")
    ] = None,
) -> None:
    """Make an API key and show its secret, this once; bound to an agent, or to one of its users, if they are named."""

    async def work(recollect: Recollect) -> str:
        caller, rights = await recollect.operator.act_for(tenant), right or [Right.READ, Right.WRITE]
        return (await recollect.create_key(caller, name, rights, trust, Bounds(agent, user)))[1]

    out.print(run(work), highlight=False)


@key_app.command("list")
def list_keys(tenant: Tenant = "default") -> None:
    """List a tenant's keys."""
    table = Table(Column("id", no_wrap=True, min_width=36), "name", "rights", "trust", "bound to", "made", "revoked")

    async def work(recollect: Recollect) -> None:
        for key in await recollect.list_keys(await recollect.operator.act_for(tenant)):
            revoked = f"{key.revoked_at:%F %T}" if key.revoked_at else ""
            rights, bound = " ".join(sorted(key.rights)), escape(tell_bounds(key))
            made = f"{key.created_at:%F %T}"
            table.add_row(str(key.id), escape(key.name), rights, str(key.trust), bound, made, revoked)

    run(work)
    out.print(table)


def tell_bounds(key: ApiKey) -> str:
    """Say what a key may name: `ada` with any user, `ada/li` alone, `ada/` without a user."""
    return "" if key.agent is None else key.agent if key.user is None else f"{key.agent}/{key.user}"


@key_app.command("revoke")
def revoke_key(key_id: UUID, tenant: Tenant = "default") -> None:
    """Revoke a key."""

    async def work(recollect: Recollect) -> None:
        await recollect.revoke_key(await recollect.operator.act_for(tenant), key_id)

    run(work)
    out.print("revoked")


@app.command()
@with_options(
    expires_at=Annotated[datetime | None, typer.Option(help="When to recall it no more, in UTC.", show_default="never")]
)
def remember(
    content: Annotated[str, typer.Argument(help="What to remember.")],
    agent: Agent,
    user: User = "",
    kind: Annotated[Kind, typer.Option(help="What sort of thing it is.")] = Kind.EVENT,
    importance: Annotated[float, typer.Option(help="1 to 10.")] = 5.0,
    tenant: Tenant = "default",
    **clock: Any,  # noqa: ANN401 - what `with_options` names
) -> None:
    """Remember one thing."""
    expiry = clock["expires_at"].replace(tzinfo=UTC) if clock["expires_at"] else None
    memory = NewMemory(content, kind, importance=importance, expires_at=expiry)
    receipts = with_mind(agent, user, tenant, lambda mind: mind.remember(memory))
    out.print(f"{receipts[0].id} {receipts[0].state}", highlight=False)


@app.command()
def bench(memories: Annotated[int, typer.Option(help="How many to write and recall.", min=2)] = 200) -> None:
    """Time this installation: writes and recalls in a scope of its own, which is emptied afterwards."""
    with Progress(console=err) as progress:
        task = progress.add_task("timing", total=2 * memories)
        report: Callable[[], None] = lambda: progress.advance(task)  # noqa: E731
        table = with_mind("bench", "", "bench", lambda mind: timing.measure(mind, memories, report))
    out.print(table)


@space_app.command("list")
def list_spaces() -> None:
    """List the embedding spaces."""
    table = Table("id", "model", "dimensions", "precision", "state")
    for space, _ in run(lambda recollect: recollect.operator.list_spaces()):
        table.add_row(str(space.id), escape(space.model), str(space.dimensions), space.precision, space.state)
    out.print(table)


@space_app.command("change")
def change_model() -> None:
    """Embed everything with the configured model while serving, then switch recall over to it."""
    with Progress(console=err) as progress:
        task = progress.add_task("embedding", total=None)
        report: Callable[[int], None] = lambda done: progress.update(task, completed=done)  # noqa: E731
        space, refused = run(lambda recollect: recollect.operator.change_model(report))
    out.print(f"Recall now reads space {space.id} ({escape(space.model)}).")
    if refused:
        out.print(f"{refused} memories have no vector in it: the model cannot take their text. Words still find them.")


@space_app.command("drop")
def drop_space(space_id: int) -> None:
    """Drop a retired space and its vectors."""
    run(lambda recollect: recollect.operator.drop_space(space_id))
    out.print("dropped")


@app.command("index")
def index_large_scopes(
    at_least: Annotated[int, typer.Option(help="Index scopes with at least this many memories.")] = 100_000,
) -> None:
    """Give the few largest scopes an approximate vector index each."""
    with err.status("building indexes; writers are not blocked"):
        indexed = run(lambda recollect: recollect.operator.index_large_scopes(at_least))
    out.print(f"{len(indexed)} scopes indexed.")
