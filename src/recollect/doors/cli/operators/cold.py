"""Look after scopes in object storage: how many there are, send some out, bring some back, change the master key."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

import typer
from rich.progress import Progress
from rich.table import Table

from recollect.doors.cli.terminal import Tenant, err, out, run
from recollect.mind.service import Recollect
from recollect.models.outside import Moved

commands = typer.Typer()
cold_app = typer.Typer(no_args_is_help=True, help="Look after scopes that lie in object storage.")
OfAgent = Annotated[str, typer.Option(help="Of which agent.")]
OfUser = Annotated[str | None, typer.Option(help="With which user; all of them if not given.", show_default="all")]
MEGABYTE = 1_000_000


def move(step: str, work: Callable[[Recollect, Callable[[int], None]], Awaitable[Moved]]) -> Moved:
    """Move scopes, and show how many are done."""
    with Progress(console=err) as progress:
        task = progress.add_task(step, total=None)
        return run(lambda recollect: work(recollect, lambda done: progress.update(task, completed=done)))


@cold_app.command("status")
def show_status(tenant: Tenant = "default") -> None:
    """Show how many scopes lie in object storage over all tenants, and list those of one tenant."""

    async def read(recollect: Recollect) -> None:
        standing = await recollect.operator.cold.standing()
        table = Table("agent", "user", "memories", "tier", "since")
        for each in await recollect.operator.cold.list(await recollect.operator.act_for(tenant)):
            since = f"{each.since:%Y-%m-%d %H:%M}" if each.since else ""
            table.add_row(each.agent, each.user, str(each.memories), each.tier.value, since)
        out.print(
            f"{standing.cold} cold scopes, {standing.bytes / MEGABYTE:,.1f} MB; {standing.leaving} about to leave; "
            f"{standing.unneeded} objects to be removed."
        )
        out.print(table)

    run(read)


@cold_app.command("out")
def send_out(agent: OfAgent, user: OfUser = None, tenant: Tenant = "default") -> None:
    """Send scopes of an agent to object storage now; one that somebody asks for meanwhile stays."""

    async def work(recollect: Recollect, report: Callable[[int], None]) -> Moved:
        return await recollect.operator.cold.out(await recollect.operator.act_for(tenant), agent, user, report)

    moved = move("sending out", work)
    out.print(f"{moved.moved} scopes are out, {moved.bytes / MEGABYTE:,.1f} MB; {moved.skipped} stayed or were out.")


@cold_app.command("back")
def bring_back(agent: OfAgent, user: OfUser = None, tenant: Tenant = "default") -> None:
    """Bring scopes of an agent back now; each comes back by itself when it is asked for."""

    async def work(recollect: Recollect, report: Callable[[int], None]) -> Moved:
        return await recollect.operator.cold.back(await recollect.operator.act_for(tenant), agent, user, report)

    moved = move("bringing back", work)
    out.print(f"{moved.moved} scopes are back; {moved.skipped} were here.")


@cold_app.command("rewrap")
def rewrap() -> None:
    """Wrap the tenants' keys by RECOLLECT_COLD_KEY in place of RECOLLECT_COLD_KEY_BEFORE; no object is changed."""
    out.print(f"{run(lambda recollect: recollect.operator.cold.rewrap())} keys are wrapped by the new master key.")


@cold_app.command("tidy")
def tidy() -> None:
    """Remove objects that nothing needs any more now, and not by a worker."""
    out.print(f"{run(lambda recollect: recollect.operator.cold.tidy())} objects removed.")


commands.add_typer(cold_app, name="cold")
