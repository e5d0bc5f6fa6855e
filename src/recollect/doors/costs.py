"""Commands for what models cost: the ledger, and how many tokens a tenant may use on a day."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Column, Table

from recollect.doors.terminal import Tenant, User, out, run
from recollect.mind.service import Recollect
from recollect.models.service import DailyBudget

tenants_app = typer.Typer(help="Say how many tokens a tenant may use on a day.", no_args_is_help=True)
Agent = Annotated[str, typer.Option(help="Whose memory it is.", show_default="all of the tenant's")]
NUMBERS = ("calls", "failed", "salvaged", "prompt", "completion", "seconds", "price")


def ledger(
    agent: Agent = "",
    user: User = "",
    days: Annotated[int, typer.Option(help="How many days to look back, today included.")] = 30,
    tenant: Tenant = "default",
) -> None:
    """Show what models cost by day, step and model, and what is left of today's budget."""
    found = run(lambda recollect: recollect.ledger(agent, user, days=days, tenant=tenant))
    table = Table("day", "step", "model", *(Column(name, justify="right") for name in NUMBERS))
    for each in found.sums:
        counts = (each.calls, each.failed, each.salvaged, each.prompt_tokens, each.completion_tokens)
        spent = (f"{each.milliseconds / 1000:,.1f}", "" if each.price is None else f"{each.price:,.4f}")
        shown = (f"{count:,}" for count in counts)
        table.add_row(f"{each.day:%F}", escape(each.step), escape(each.model), *shown, *spent)
    out.print(table if table.row_count else "No model was asked.")
    out.print(describe(found.budget), highlight=False)


@tenants_app.callback()
def tenants() -> None:
    """Say how many tokens a tenant may use on a day."""


@tenants_app.command("budget")
def budget(
    tenant: Annotated[str, typer.Argument(metavar="TENANT", help="Which tenant's.")],
    tokens: Annotated[int | None, typer.Argument(help="Tokens a UTC day; 0 for no limit.", min=0)] = None,
    usual: Annotated[bool, typer.Option("--usual", help="Go by RECOLLECT_TOKENS_PER_DAY again.")] = False,  # noqa: FBT002
) -> None:
    """Show a tenant's budget, or set it; enrichment that waits for more goes on at once."""

    async def work(recollect: Recollect) -> DailyBudget:
        if tokens is None and not usual:
            return (await recollect.ledger(days=1, tenant=tenant)).budget
        return await recollect.ledger.allow(tenant, None if usual else tokens)

    out.print(describe(run(work)), highlight=False)


def describe(budget: DailyBudget) -> str:
    """Say what is left of the day in one line."""
    if budget.limit is None:
        return f"{budget.used:,} tokens used today; there is no limit."
    waits = f" Enrichment waits until {budget.waits_until:%F %R %Z}." if budget.waits_until else ""
    return f"{budget.used:,} of {budget.limit:,} tokens used today.{waits}"
