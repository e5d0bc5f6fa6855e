"""Manage scopes in object storage: count them, move scopes there and back, change the master key."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

import typer
from rich.progress import Progress
from rich.table import Table

from recollect.doors.cli.terminal import Tenant, err, out, run
from recollect.mind.service import Recollect
from recollect.models.outside import MoveResult

commands = typer.Typer()
cold_app = typer.Typer(no_args_is_help=True, help="Manage scopes in object storage.")
OfAgent = Annotated[str, typer.Option(help="Agent.")]
OfUser = Annotated[str | None, typer.Option(help="User. All users if omitted.", show_default="all")]
MEGABYTE = 1_000_000


def move(step: str, work: Callable[[Recollect, Callable[[int], None]], Awaitable[MoveResult]]) -> MoveResult:
    """Move scopes, and show how many are done."""
    with Progress(console=err) as progress:
        task = progress.add_task(step, total=None)
        return run(lambda recollect: work(recollect, lambda done: progress.update(task, completed=done)))


@cold_app.command("status")
def show_status(tenant: Tenant = "default") -> None:
    """Show how many scopes are in object storage, and list those of one tenant."""

    async def print_cold_status(recollect: Recollect) -> None:
        standing = await recollect.operator.cold.stats()
        table = Table("agent", "user", "memories", "tier", "since")
        for each in await recollect.operator.cold.list(await recollect.operator.act_for(tenant)):
            since = f"{each.since:%Y-%m-%d %H:%M}" if each.since else ""
            table.add_row(each.agent, each.user, str(each.memories), each.tier.value, since)
        out.print(
            f"{standing.cold} cold scopes, {standing.bytes / MEGABYTE:,.1f} MB; {standing.leaving} about to leave; "
            f"{standing.unneeded} objects to be removed."
        )
        out.print(table)

    run(print_cold_status)


@cold_app.command("out")
def send_out(agent: OfAgent, user: OfUser = None, tenant: Tenant = "default") -> None:
    """Move an agent's scopes to object storage now. Scopes in use stay."""

    async def move_to_cold(recollect: Recollect, report: Callable[[int], None]) -> MoveResult:
        return await recollect.operator.cold.out(await recollect.operator.act_for(tenant), agent, user, report)

    moved = move("sending out", move_to_cold)
    out.print(f"{moved.moved} scopes are out, {moved.bytes / MEGABYTE:,.1f} MB; {moved.skipped} stayed or were out.")


@cold_app.command("back")
def restore_scope(agent: OfAgent, user: OfUser = None, tenant: Tenant = "default") -> None:
    """Restore an agent's scopes now. A scope is also restored when it is used."""

    async def restore_from_cold(recollect: Recollect, report: Callable[[int], None]) -> MoveResult:
        return await recollect.operator.cold.back(await recollect.operator.act_for(tenant), agent, user, report)

    moved = move("bringing back", restore_from_cold)
    out.print(f"{moved.moved} scopes are back; {moved.skipped} were here.")


@cold_app.command("rewrap")
def rewrap() -> None:
    """Re-encrypt tenant keys with RECOLLECT_COLD__KEY instead of RECOLLECT_COLD__PREVIOUS_KEY.

    Objects do not change.
    """
    out.print(f"{run(lambda recollect: recollect.operator.cold.rewrap())} keys are wrapped by the new master key.")


@cold_app.command("tidy")
def tidy() -> None:
    """Delete unused objects now instead of waiting for the worker."""
    out.print(f"{run(lambda recollect: recollect.operator.cold.remove_unused())} objects removed.")


commands.add_typer(cold_app, name="cold")
