"""Look after several servers: enter them in the catalog, see what they hold, move tenants between them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Annotated, Any, TypeVar

import typer
from rich.progress import Progress
from rich.table import Column, Table

from recollect.doors.cli.terminal import Steps, err, out
from recollect.errors import InvalidInputError
from recollect.mind.operators.shards import Shards
from recollect.models.shards import LAST_BUCKET, ServerAddresses
from recollect.settings import Settings
from recollect.wiring import enter_shard, require_catalog

commands = typer.Typer()
shard_app = typer.Typer(no_args_is_help=True, help="Look after several PostgreSQL servers that share the tenants.")
Name = Annotated[str, typer.Argument(help="What the shard is called.")]
TenantName = Annotated[str, typer.Argument(metavar="TENANT", help="Which tenant.")]
Done = TypeVar("Done")


def look_after(work: Callable[[Shards], Coroutine[Any, Any, Done]]) -> Done:
    """Do something with the shards of the catalog."""
    return asyncio.run(work(Shards(require_catalog(Settings()))))


@shard_app.command("add")
def add(
    name: Name,
    service: Annotated[str, typer.Option(help="DSN of the service's role; of a pooler, if there is one.")],
    owner: Annotated[str, typer.Option(help="DSN of the owner of its tables.")],
    direct: Annotated[str, typer.Option(help="DSN of the service's role past the pooler.")] = "",
    replica: Annotated[list[str] | None, typer.Option(help="DSN of a replica that may read; repeat for more.")] = None,
) -> None:
    """Bring a server to the newest schema and enter it in the catalog, or change its addresses there."""
    addresses = ServerAddresses(service, owner, direct, tuple(replica or ()))
    tell: Callable[[str], None] = lambda step: out.print(f"applied {step}", highlight=False)  # noqa: E731
    asyncio.run(enter_shard(Settings(), name, addresses, tell))
    out.print(f"{name} is in the catalog, and open for tenants.")


@shard_app.command("list")
def list_shards() -> None:
    """List the shards, with what each holds."""
    table = Table("shard", "state", Column("tenants", justify="right"), Column("buckets", justify="right"))
    for each in look_after(lambda shards: shards.list()):
        table.add_row(each.name, each.state, f"{each.tenants:,}", f"{each.buckets:,}")
    out.print(table if table.row_count else "There is no shard yet: add one with `recollect shard add`.")


@shard_app.command("move")
def move(
    tenant: TenantName,
    to: Annotated[str, typer.Option(help="The shard that it goes to.")],
    buckets: Annotated[
        str, typer.Option(help="Only these of its 4,096 buckets, as 2048-4095.", show_default="all")
    ] = "",
) -> None:
    """Move a tenant, or a part of it, to another shard while it is used; go on with a move that was broken off."""
    wanted = read_buckets(buckets) if buckets else None
    with Progress(console=err) as progress:
        moved = look_after(lambda shards: shards.move(tenant, to, Steps(progress), wanted))
    for first, last in moved:
        out.print(f"Buckets {first} to {last} of {tenant} are served by {to}.", highlight=False)
    if not moved:
        out.print(f"{tenant} is served by {to} already.", highlight=False)


def read_buckets(written: str) -> tuple[int, int]:
    """Read a range of buckets."""
    first, _, last = written.partition("-")
    if not (first.isdecimal() and last.isdecimal() and int(first) <= int(last) <= LAST_BUCKET):
        raise InvalidInputError(f"buckets must be a range between 0 and {LAST_BUCKET}, as 2048-{LAST_BUCKET}")
    # What belongs to the tenant itself goes with its first bucket.
    return int(first) or -1, int(last)


@shard_app.command("stop")
def stop(tenant: TenantName) -> None:
    """Give up the move of a tenant that is under way; where it came from stays in charge."""
    look_after(lambda shards: shards.stop(tenant))
    out.print("stopped")


@shard_app.command("drain")
def drain(name: Name) -> None:
    """Place no more tenants on a shard, and move all that it has to the others."""
    with Progress(console=err) as progress:
        moved = look_after(lambda shards: shards.drain(name, Steps(progress)))
    out.print(f"{moved} parts of tenants were moved; {name} serves nothing any more.", highlight=False)


@shard_app.command("open")
def reopen(name: Name) -> None:
    """Let new tenants be placed on a shard again."""
    look_after(lambda shards: shards.open(name))
    out.print(f"{name} is open for tenants.", highlight=False)


@shard_app.command("clean")
def clean() -> None:
    """Remove what moves left behind more than 24 hours ago; run it once a day."""
    removed = look_after(lambda shards: shards.clean())
    out.print(f"{removed} parts of tenants that have moved were removed.", highlight=False)


commands.add_typer(shard_app, name="shard")
