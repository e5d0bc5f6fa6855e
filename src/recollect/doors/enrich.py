"""The command that reads history anew: what it would cost, then the doing of it, with a bar for every scope."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.progress import Progress
from rich.table import Column, Table

from recollect.doors.terminal import Steps, Tenant, err, out, run, with_options
from recollect.mind.service import Recollect
from recollect.models.knowledge import Cost, Reread, Rerun, RerunPlan

Agent = Annotated[str, typer.Option(help="Whose memory it is.", show_default="all of the tenant's")]
User = Annotated[str | None, typer.Option(help="Whom it is about or with.", show_default="all of the agent's")]
Since = Annotated[datetime | None, typer.Option(help="Only what was said since then, in UTC.", show_default="ever")]
Model = Annotated[str, typer.Option(help="Another model of the endpoint.", show_default="RECOLLECT_CHAT_MODEL")]
COSTS = ("calls", "prompt", "completion", "price")


@with_options(
    dry_run=Annotated[bool | None, typer.Option("--dry-run", help="Only show what it would cost.")],
    yes=Annotated[bool | None, typer.Option("--yes", help="Do not ask before spending.")],
    ignore_budget=Annotated[bool | None, typer.Option("--ignore-budget", help="Go on beyond the tokens of the day.")],
)
def enrich(
    agent: Agent = "",
    user: User = None,
    since: Since = None,
    model: Model = "",
    tenant: Tenant = "default",
    **options: Any,  # noqa: ANN401 - what `with_options` names
) -> None:
    """Read history anew with another model or prompt, beside what stands, and switch to it at once."""
    moment = since.replace(tzinfo=UTC) if since and since.tzinfo is None else since
    wanted = Rerun(agent, user, moment, model, bool(options["ignore_budget"]), tenant)

    async def work(recollect: Recollect) -> None:
        plans = await recollect.reruns.plan(wanted)
        out.print(show_plans(plans) if plans else "There is nothing to read anew.")
        if not plans or options["dry_run"]:
            return
        if not options["yes"]:
            typer.confirm("Read it anew?", abort=True)
        with Progress(console=err) as progress:
            done = await recollect.reruns.run(wanted, Steps(progress))
        out.print(show_done(plans, done))

    run(work)


def show_plans(plans: Sequence[RerunPlan]) -> Table:
    """Lay out what each scope would cost, and all of them together."""
    table = tabulate("agent", "user", "segments", "messages", *COSTS)
    for plan in plans:
        numbers = (f"{plan.segments:,}", f"{plan.messages:,}", *show_cost(plan.cost))
        table.add_row(escape(plan.agent), escape(plan.user), *numbers)
    table.add_section()
    counts = (sum(plan.segments for plan in plans), sum(plan.messages for plan in plans))
    total = add_up([plan.cost for plan in plans])
    table.add_row("all, estimated", "", *(f"{each:,}" for each in counts), *show_cost(total))
    return table


def show_done(plans: Sequence[RerunPlan], done: Sequence[Reread]) -> Table:
    """Lay out what came of each scope and what the ledger says, beside what was estimated."""
    table = tabulate("agent", "user", "read anew", "left", "facts replaced", *COSTS)
    for each in done:
        numbers = (f"{each.segments:,}", f"{each.left:,}", f"{each.replaced:,}", *show_cost(each.cost))
        table.add_row(escape(each.agent), escape(each.user), *numbers)
    table.add_section()
    table.add_row("all, by the ledger", *[""] * 4, *show_cost(add_up([each.cost for each in done])))
    table.add_row("all, estimated", *[""] * 4, *show_cost(add_up([plan.cost for plan in plans])))
    return table


def tabulate(agent: str, user: str, *numbers: str) -> Table:
    """Make a table of names and numbers."""
    return Table(agent, user, *(Column(name, justify="right") for name in numbers))


def add_up(costs: Sequence[Cost]) -> Cost:
    """Add costs up; there is a price if any of them has one."""
    prices = [cost.price for cost in costs if cost.price is not None]
    tokens = (sum(cost.prompt_tokens for cost in costs), sum(cost.completion_tokens for cost in costs))
    return Cost(sum(cost.calls for cost in costs), *tokens, sum(prices) if prices else None)


def show_cost(cost: Cost) -> tuple[str, ...]:
    """Write a cost as cells."""
    price = "" if cost.price is None else f"{cost.price:,.4f}"
    return (f"{cost.calls:,}", f"{cost.prompt_tokens:,}", f"{cost.completion_tokens:,}", price)
