"""Commands for operators: tenants with their budgets and limits, and API keys."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer
from rich.markup import escape
from rich.table import Column

from recollect.doors.cli.service import describe
from recollect.doors.cli.terminal import Tenant, out, printing, run, table_of, with_options
from recollect.doors.words import translate
from recollect.models.service import ApiKey, Bounds, DailyBudget, Limits, Right

if TYPE_CHECKING:
    from recollect.mind.service import Recollect

commands = typer.Typer()
tenants_app = typer.Typer(help="Say what a tenant may use and ask.", no_args_is_help=True)
key_app = typer.Typer(help="Make, list, limit and revoke API keys.", no_args_is_help=True)
OPTIONS: dict[str, Any] = {
    "requests_per_second": Annotated[float | None, typer.Option(min=0, help="Requests a second; 0 for no limit.")],
    "burst": Annotated[int | None, typer.Option(min=0, help="Requests at once; 0 for as many as in a second.")],
    "bytes_per_minute": Annotated[int | None, typer.Option(min=0, help="Bytes of bodies a minute; 0 for no limit.")],
    "largest_body": Annotated[int | None, typer.Option(min=0, help="Bytes of one body; 0 for no limit.")],
    "change_streams": Annotated[int | None, typer.Option(min=0, help="Open streams of changes; 0 for no limit.")],
}


@tenants_app.callback()
def tenants() -> None:
    """Say what a tenant may use and ask."""


@tenants_app.command("budget")
def budget(
    tenant: Annotated[str, typer.Argument(metavar="TENANT", help="Which tenant's.")],
    tokens: Annotated[int | None, typer.Argument(help="Tokens a UTC day; 0 for no limit.", min=0)] = None,
    usual: Annotated[bool, typer.Option("--usual", help="Go by RECOLLECT_TOKENS_PER_DAY again.")] = False,
) -> None:
    """Show a tenant's budget, or set it; enrichment that waits for more goes on at once."""

    async def work(recollect: Recollect) -> DailyBudget | None:
        if tokens is None and not usual:
            return (await recollect.ledger(days=1, tenant=tenant)).budget
        return await recollect.ledger.allow(tenant, None if usual else tokens)

    out.print(describe(run(work)), highlight=False)


@key_app.command("create")
@with_options(
    agent=Annotated[str | None, typer.Option(help="The only agent it may name.", show_default="any")],
    user=Annotated[str | None, typer.Option(help="The only user of it; '' for the agent alone.", show_default="any")],
    hours=Annotated[
        float | None, typer.Option(min=0.01, max=876_000, help="It expires after so many hours.", show_default="never")
    ],
)
def create_key(
    name: Annotated[str, typer.Argument(help="Shown as the origin of what the key remembers.")],
    right: Annotated[list[Right] | None, typer.Option(help="read, write, admin or delegate; repeat.")] = None,
    trust: Annotated[int, typer.Option(help="0 to 100: how far its memories are trusted.")] = 50,
    tenant: Tenant = "default",
    **more: Any,  # noqa: ANN401 - what `with_options` names
) -> None:
    """Make an API key and show its secret, this once; bound to an agent, or to one of its users, if they are named."""

    async def work(recollect: Recollect) -> str:
        caller, rights = await recollect.operator.act_for(tenant), right or [Right.READ, Right.WRITE]
        bounds, hours = Bounds(more.get("agent"), more.get("user")), more.get("hours")
        expires_at = None if hours is None else datetime.now(UTC) + timedelta(hours=hours)
        return (await recollect.create_key(caller, name, rights, trust, bounds, expires_at))[1]

    out.print(run(work), highlight=False)


def show_keys(keys: list[ApiKey]) -> None:
    """Show keys: names and ids, what they may do, and their dates."""
    table = table_of(Column("key", no_wrap=True, min_width=36), "may do", "dates")
    for key in keys:
        rights = [f"{' '.join(sorted(key.rights))}, trust {key.trust}"]
        rights += [f"bound to {escape(tell_bounds(key))}"] if key.agent is not None else []
        rights += [tell(key.limits)] if key.limits != Limits() else []
        dates = {"made": key.created_at, "expires": key.expires_at, "revoked": key.revoked_at}
        told = "\n".join(f"{name} {moment:%F %R}" for name, moment in dates.items() if moment)
        told += f"\nused {key.last_used_at:%F}" if key.last_used_at else ""
        table.add_row(f"{escape(key.name)}\n{key.id}", "\n".join(rights), told)
    out.print(table)


@key_app.command("list")
@printing(show_keys)
def list_keys(tenant: Tenant = "default") -> list[ApiKey]:
    """List a tenant's keys; of those that other keys made, only what is still valid."""

    async def work(recollect: Recollect) -> list[ApiKey]:
        return await recollect.list_keys(await recollect.operator.act_for(tenant))

    return run(work)


def tell_bounds(key: ApiKey) -> str:
    """Write what a key may name: `ada` with any user, `ada/li` alone, `ada/` without a user."""
    return "" if key.agent is None else key.agent if key.user is None else f"{key.agent}/{key.user}"


@key_app.command("revoke")
def revoke_key(key_id: UUID, tenant: Tenant = "default") -> None:
    """Revoke a key."""

    async def work(recollect: Recollect) -> None:
        await recollect.revoke_key(await recollect.operator.act_for(tenant), key_id)

    run(work)
    out.print(translate("revoked"))


@key_app.command("limit")
@with_options(**OPTIONS)
def limit_key(key_id: UUID, tenant: Tenant = "default", **named: Any) -> None:  # noqa: ANN401 - what `with_options` names
    """Show what a key may ask of one process, or set what is named; keys that it made count as it."""

    async def work(recollect: Recollect) -> Limits:
        limits = recollect.operator.limits
        found, chosen = await limits.of_key(tenant, key_id), given(named)
        return await limits.of_key(tenant, key_id, change(found, chosen)) if chosen else found

    out.print(tell(run(work)), highlight=False)


@tenants_app.command("limit")
@with_options(**OPTIONS)
def limit_tenant(
    tenant: Annotated[str, typer.Argument(metavar="TENANT", help="Which tenant's.")],
    **named: Any,  # noqa: ANN401 - what `with_options` names
) -> None:
    """Show what all keys of a tenant together may ask of one process, or set what is named."""

    async def work(recollect: Recollect) -> Limits:
        limits = recollect.operator.limits
        found, chosen = await limits.of_tenant(tenant), given(named)
        return await limits.of_tenant(tenant, change(found, chosen)) if chosen else found

    out.print(tell(run(work)), highlight=False)


def given(named: dict[str, Any]) -> dict[str, Any]:
    """Return the options that were given."""
    return {name: value for name, value in named.items() if value is not None}


def change(limits: Limits, named: dict[str, Any]) -> Limits:
    """Set the limits that are named; 0 takes one away."""
    return replace(limits, **{name: value or None for name, value in named.items()})


def tell(limits: Limits) -> str:
    """Write the limits in one line."""
    there = [f"{name.replace('_', ' ')} {value:,.12g}" for name, value in asdict(limits).items() if value is not None]
    return ", ".join(there) or translate("There is no limit.")


commands.add_typer(tenants_app, name="tenants")
commands.add_typer(key_app, name="key")
