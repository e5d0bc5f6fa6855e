"""Look after several servers: add them to the catalog, and list their tenants."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Annotated, Any, TypeVar

import typer
from rich.markup import escape
from rich.table import Column, Table

from recollect.doors.cli.terminal import out
from recollect.errors import InvalidInputError
from recollect.mind.operators.placements import TenantPlacements
from recollect.mind.operators.shards import Shards
from recollect.models.shards import ServerAddresses
from recollect.settings import Settings
from recollect.wiring import find_tenants, register_shard, require_catalog

commands = typer.Typer()
shard_app = typer.Typer(no_args_is_help=True, help="Manage shards: several PostgreSQL servers that share the tenants.")
Name = Annotated[str, typer.Argument(help="Shard name.")]
Done = TypeVar("Done")


def run_on_shards(work: Callable[[Shards], Coroutine[Any, Any, Done]]) -> Done:
    """Do something with the shards of the catalog."""
    return asyncio.run(work(Shards(require_catalog(Settings()))))


@shard_app.command("add")
def add_shard(
    name: Name,
    service: Annotated[str, typer.Option(help="DSN of the service role, through the pooler if there is one.")],
    owner: Annotated[str, typer.Option(help="DSN of the table owner.")],
    direct: Annotated[str, typer.Option(help="DSN that bypasses the pooler.")] = "",
) -> None:
    """Migrate a server and add it to the catalog, or change its addresses."""
    addresses = ServerAddresses(service, owner, direct)
    tell: Callable[[str], None] = lambda step: out.print(f"applied {step}", highlight=False)  # noqa: E731
    asyncio.run(register_shard(Settings(), name, addresses, tell))
    out.print(f"{name} is in the catalog, and open for tenants.")


@shard_app.command("list")
def list_shards() -> None:
    """List shards with their tenants and buckets."""
    table = Table("shard", "state", Column("tenants", justify="right"), Column("buckets", justify="right"))
    for each in run_on_shards(lambda shards: shards.list()):
        table.add_row(each.name, each.state, f"{each.tenants:,}", f"{each.buckets:,}")
    out.print(table if table.row_count else "There is no shard yet: add one with `recollect admin shard add`.")


@shard_app.command("place")
def place(
    tenant: Annotated[str, typer.Argument(metavar="TENANT", help="Name of the tenant.")],
    on: Annotated[str, typer.Option(metavar="NAME", help="Shard that serves the tenant.", show_default=False)] = "",
    spread: Annotated[
        str, typer.Option(metavar="NAMES", help="Shards of a new tenant, as north,south.", show_default=False)
    ] = "",
) -> None:
    """Place a new tenant, or place a suspended tenant on a shard that has no rows of it."""
    if bool(on) == bool(spread):
        raise InvalidInputError("name --on one shard, or --spread over several")
    asyncio.run(TenantPlacements(find_tenants(Settings())).place(tenant, [on] if on else spread.split(",")))
    out.print(f"{tenant} is placed on {on or spread}.", highlight=False)


@shard_app.command("check")
def check(
    repair: Annotated[bool, typer.Option("--repair", help="First make the catalog again from the shards.")] = False,
    without: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Shard that is lost. Its tenants get no place. Repeatable.")
    ] = None,
    start: Annotated[
        str, typer.Option("--from", metavar="DSN", help="Owner's address of any shard, for an empty catalog.")
    ] = "",
) -> None:
    """Compare the catalog with the shards. Exits with 1 if anything differs."""
    if repair:
        plan = run_on_shards(lambda shards: shards.repair(start, without or ()))
        out.print(f"The catalog has {len(plan.shards)} shards and {len(plan.tenants):,} tenants.")
        for tenant in plan.unplaced:
            out.print(f"{tenant} gets no place until all of its shards answer.", highlight=False)
    elif without or start:
        raise InvalidInputError("--without and --from need --repair")
    table, differences = Table("shard", "found", "what to do"), run_on_shards(lambda shards: shards.check())
    for each in differences:
        table.add_row(each.shard, escape(each.found), each.advice)
    out.print(table if differences else "The catalog and the shards agree.")
    if any(not each.harmless for each in differences):
        raise typer.Exit(1)


@shard_app.command("open")
def reopen(name: Name) -> None:
    """Allow new tenants on a shard again."""
    run_on_shards(lambda shards: shards.open(name))
    out.print(f"{name} is open for tenants.", highlight=False)


@shard_app.command("drain")
def drain(name: Name) -> None:
    """Place no more tenants on a shard; the tenants that it serves stay."""
    run_on_shards(lambda shards: shards.drain(name))
    out.print(f"{name} gets no more tenants.", highlight=False)


commands.add_typer(shard_app, name="shard")
