"""Commands for operators: tenants with their budgets, limits and suspension, and API keys."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer
from rich.markup import escape
from rich.table import Column

from recollect.doors.cli.service import describe_budget
from recollect.doors.cli.terminal import Tenant, out, printing, run, table_of, with_options
from recollect.doors.greeting import translate
from recollect.models.service import DEFAULT_STREAMS, ApiKey, DailyBudget, KeyBinding, Limits, Right

if TYPE_CHECKING:
    from recollect.mind.service import Recollect

commands = typer.Typer()
tenants_app = typer.Typer(help="Limit, suspend and export tenants.", no_args_is_help=True)
keys_app = typer.Typer(help="Manage API keys.", no_args_is_help=True)
OPTIONS: dict[str, Any] = {
    "requests_per_second": Annotated[float | None, typer.Option(min=0, help="Requests per second; 0 = unlimited.")],
    "burst": Annotated[int | None, typer.Option(min=0, help="Burst size in requests; 0 = one second's worth.")],
    "bytes_per_minute": Annotated[int | None, typer.Option(min=0, help="Request bytes per minute; 0 = unlimited.")],
    "largest_body": Annotated[int | None, typer.Option(min=0, help="Maximum body size in bytes; 0 = unlimited.")],
    "change_streams": Annotated[
        int | None, typer.Option(min=0, help=f"Open streams of changes; 0 for {DEFAULT_STREAMS} a key.")
    ],
}


@tenants_app.callback()
def tenants() -> None:
    """Limit, suspend and export tenants."""


@tenants_app.command("budget")
def budget(
    tenant: Annotated[str, typer.Argument(metavar="TENANT", help="Tenant.")],
    tokens: Annotated[int | None, typer.Argument(help="Tokens per UTC day; 0 = unlimited.", min=0)] = None,
    usual: Annotated[bool, typer.Option("--usual", help="Reset to RECOLLECT_DAILY_TOKEN_LIMIT.")] = False,
) -> None:
    """Show or set a tenant's daily token budget. Waiting enrichment resumes at once."""

    async def set_budget(recollect: Recollect) -> DailyBudget | None:
        if tokens is None and not usual:
            return (await recollect.ledger(days=1, tenant=tenant)).budget
        return await recollect.ledger.allow(tenant, None if usual else tokens)

    out.print(describe_budget(run(set_budget)), highlight=False)


@tenants_app.command("suspend")
def suspend(tenant: Annotated[str, typer.Argument(metavar="TENANT", help="Tenant.")]) -> None:
    """Refuse the writes of a tenant from every process and job, until `resume`; reads work."""
    run(lambda recollect: recollect.operator.placements.suspend(tenant))
    out.print(f"The writes of {tenant} are suspended.", highlight=False)


@tenants_app.command("resume")
def resume(tenant: Annotated[str, typer.Argument(metavar="TENANT", help="Tenant.")]) -> None:
    """Accept the writes of a tenant again, if no rows are missing after a move."""
    run(lambda recollect: recollect.operator.placements.resume(tenant))
    out.print(f"The writes of {tenant} are accepted.", highlight=False)


@tenants_app.command("export")
def export(
    tenant: Annotated[str, typer.Argument(metavar="TENANT", help="Tenant.")],
    path: Annotated[Path, typer.Argument(help="File to write.")],
) -> None:
    """Write what a tenant has outside its scopes: hashes of keys, limits, profiles, receipts of erasures."""
    path.touch(mode=0o600)
    path.chmod(0o600)
    with path.open("w", encoding="utf-8") as file:
        count = run(lambda recollect: recollect.operator.placements.export(tenant, file.write))
    out.print(f"{count} rows written", highlight=False)


@tenants_app.command("import")
def import_(
    tenant: Annotated[str, typer.Argument(metavar="TENANT", help="Tenant.")],
    path: Annotated[Path, typer.Argument(help="File that `admin tenants export` wrote.")],
) -> None:
    """Store what `recollect admin tenants export` wrote; rows that are stored already stay as they are."""
    lines = path.read_text(encoding="utf-8").splitlines()
    count = run(lambda recollect: recollect.operator.placements.import_lines(tenant, lines))
    out.print(f"{count} rows read", highlight=False)


@keys_app.command("create")
@with_options(
    agent=Annotated[str | None, typer.Option(help="Bind the key to this agent.", show_default="any")],
    user=Annotated[
        str | None, typer.Option(help="Bind the key to this user; '' = the agent alone.", show_default="any")
    ],
    hours=Annotated[
        float | None, typer.Option(min=0.01, max=876_000, help="Expire after this many hours.", show_default="never")
    ],
)
def create_key(
    name: Annotated[str, typer.Argument(help="Key name, stored as the origin of its memories.")],
    right: Annotated[list[Right] | None, typer.Option(help="read, write, admin or delegate. Repeatable.")] = None,
    trust: Annotated[int, typer.Option(help="Trust of the key's memories, 0 to 100.")] = 50,
    tenant: Tenant = "default",
    **more: Any,  # noqa: ANN401 - what `with_options` names
) -> None:
    """Create an API key and show its secret once. It can be bound to an agent or a user."""

    async def create_bound_key(recollect: Recollect) -> str:
        caller, rights = await recollect.operator.act_for(tenant), right or [Right.READ, Right.WRITE]
        bounds, hours = KeyBinding(more.get("agent"), more.get("user")), more.get("hours")
        expires_at = None if hours is None else datetime.now(UTC) + timedelta(hours=hours)
        return (await recollect.create_key(caller, name, rights, trust, bounds, expires_at))[1]

    out.print(run(create_bound_key), highlight=False)


def show_keys(keys: list[ApiKey]) -> None:
    """Show keys: names and IDs, their rights, and their dates."""
    table = table_of(Column("key", no_wrap=True, min_width=36), "may do", "dates")
    for key in keys:
        rights = [f"{' '.join(sorted(key.rights))}, trust {key.trust}"]
        rights += [f"bound to {escape(format_binding(key))}"] if key.agent is not None else []
        rights += [format_limits(key.limits)] if key.limits != Limits() else []
        dates = {"made": key.created_at, "expires": key.expires_at, "revoked": key.revoked_at}
        told = "\n".join(f"{name} {moment:%F %R}" for name, moment in dates.items() if moment)
        told += f"\nused {key.last_used_at:%F}" if key.last_used_at else ""
        table.add_row(f"{escape(key.name)}\n{key.id}", "\n".join(rights), told)
    out.print(table)


@keys_app.command("list")
@printing(show_keys)
def list_keys(tenant: Tenant = "default") -> list[ApiKey]:
    """List a tenant's API keys. Keys made by other keys are listed while valid."""

    async def fetch_keys(recollect: Recollect) -> list[ApiKey]:
        return await recollect.list_keys(await recollect.operator.act_for(tenant))

    return run(fetch_keys)


def format_binding(key: ApiKey) -> str:
    """Write what a key may name: `ada` with any user, `ada/li` alone, `ada/` without a user."""
    return "" if key.agent is None else key.agent if key.user is None else f"{key.agent}/{key.user}"


@keys_app.command("revoke")
def revoke_key(key_id: UUID, tenant: Tenant = "default") -> None:
    """Revoke an API key."""

    async def revoke_tenant_key(recollect: Recollect) -> None:
        await recollect.revoke_key(await recollect.operator.act_for(tenant), key_id)

    run(revoke_tenant_key)
    out.print(translate("revoked"))


@keys_app.command("limit")
@with_options(**OPTIONS)
def limit_key(key_id: UUID, tenant: Tenant = "default", **named: Any) -> None:  # noqa: ANN401 - what `with_options` names
    """Show or set the rate limits of an API key. Keys made by it share its limits."""

    async def set_key_limits(recollect: Recollect) -> Limits:
        limits = recollect.operator.limits
        found, chosen = await limits.key_limits(tenant, key_id), given(named)
        return await limits.key_limits(tenant, key_id, change(found, chosen)) if chosen else found

    out.print(format_limits(run(set_key_limits)), highlight=False)


@tenants_app.command("limit")
@with_options(**OPTIONS)
def limit_tenant(
    tenant: Annotated[str, typer.Argument(metavar="TENANT", help="Tenant.")],
    **named: Any,  # noqa: ANN401 - what `with_options` names
) -> None:
    """Show or set the rate limits shared by all keys of a tenant."""

    async def set_tenant_limits(recollect: Recollect) -> Limits:
        limits = recollect.operator.limits
        found, chosen = await limits.tenant_limits(tenant), given(named)
        return await limits.tenant_limits(tenant, change(found, chosen)) if chosen else found

    out.print(format_limits(run(set_tenant_limits)), highlight=False)


def given(named: dict[str, Any]) -> dict[str, Any]:
    """Return the options that were given."""
    return {name: value for name, value in named.items() if value is not None}


def change(limits: Limits, named: dict[str, Any]) -> Limits:
    """Set the limits that are named; 0 takes one away."""
    return replace(limits, **{name: value or None for name, value in named.items()})


def format_limits(limits: Limits) -> str:
    """Write the limits in one line."""
    there = [f"{name.replace('_', ' ')} {value:,.12g}" for name, value in asdict(limits).items() if value is not None]
    return ", ".join(there) or translate("There is no limit.")


commands.add_typer(tenants_app, name="tenants")
commands.add_typer(keys_app, name="keys")
