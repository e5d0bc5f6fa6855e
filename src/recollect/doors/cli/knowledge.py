"""Commands for facts, entities and their graph, and for learning them from conversations."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import UUID

import typer
from rich.markup import escape
from rich.progress import Progress
from rich.table import Column, Table

from recollect.doors.cli import graph
from recollect.doors.cli.graph import AsOf, At, Limit, in_utc, tell
from recollect.doors.cli.terminal import Agent, Steps, Tenant, User, err, out, run, with_mind, with_options
from recollect.doors.words import translate
from recollect.mind.mind import Mind
from recollect.mind.service import Recollect
from recollect.models.knowledge import (
    Cost,
    Entities,
    EntityType,
    Fact,
    Reread,
    Rerun,
    RerunPlan,
)

commands = typer.Typer()

ChosenAgent = Annotated[str, typer.Option(help="Whose memory it is.", show_default="all of the tenant's")]
ChosenUser = Annotated[str | None, typer.Option(help="Whom it is about or with.", show_default="all of the agent's")]
Since = Annotated[datetime | None, typer.Option(help="Only what was said since then, in UTC.", show_default="ever")]
Model = Annotated[str, typer.Option(help="Another model of the endpoint.", show_default="RECOLLECT_CHAT_MODEL")]
COSTS = ("calls", "prompt", "completion", "price")


@commands.command()
@with_options(
    entity=Annotated[UUID | None, typer.Option(help="Only facts about this entity.")],
    versions=Annotated[UUID | None, typer.Option(help="All versions of this fact instead.")],
    as_of=AsOf,
    at=At,
)
def facts(
    agent: Agent,
    user: User = "",
    predicate: Annotated[str, typer.Option(help="Only facts of this predicate.")] = "",
    limit: Limit = 50,
    tenant: Tenant = "default",
    **chosen: Any,  # noqa: ANN401 - what `with_options` names
) -> None:
    """Show facts, each with when it is true and since when it is believed."""
    as_of, at = (moment and moment.replace(tzinfo=UTC) for moment in (chosen["as_of"], chosen["at"]))

    async def work(mind: Mind) -> tuple[list[Fact], bool]:
        if chosen["versions"]:
            return await mind.knowledge.fact_versions(chosen["versions"]), False
        page = await mind.knowledge.facts(chosen["entity"], predicate, as_of=as_of, at=at, limit=limit)
        return list(page.facts), page.next_cursor is not None

    found, more = with_mind(agent, user, tenant, work)
    if not found:
        out.print(translate("nothing known"))
        return
    table = Table(Column("fact", no_wrap=True, min_width=36), "version", "text", "true", "believed")
    for fact in found:
        believed = tell(fact.created_at, fact.superseded_at)
        true = tell(fact.span.valid_at, fact.span.invalid_at)
        table.add_row(str(fact.id), str(fact.version), escape(fact.text), true, believed)
    out.print(table)
    if more:
        out.print(translate("There are more than {limit}.", limit=limit))


@commands.command()
@with_options(
    meaning=Annotated[
        str | None, typer.Option(help="The nearest to this text first.", show_default="the oldest first")
    ],
    as_of=Annotated[datetime | None, typer.Option(help="As they were merged then, in UTC.", show_default="now")],
)
def entities(
    agent: Agent,
    search: Annotated[str, typer.Argument(help="Part of a name.", show_default="all")] = "",
    user: User = "",
    type: Annotated[EntityType | None, typer.Option(help="Only of this type.", show_default="all")] = None,  # noqa: A002
    limit: Limit = 50,
    tenant: Tenant = "default",
    **chosen: Any,  # noqa: ANN401 - what `with_options` names
) -> None:
    """Show whom and what facts speak of, with what else they are called."""
    meaning, as_of = chosen["meaning"] or "", in_utc({"as_of": chosen["as_of"]}).get("as_of")

    async def work(mind: Mind) -> Entities:
        return await mind.knowledge.entities(search, type=type, meaning=meaning, as_of=as_of, limit=limit)

    page = with_mind(agent, user, tenant, work)
    if not page.entities:
        out.print(translate("nobody known"))
        return
    table = Table(Column("entity", no_wrap=True, min_width=36), "name", "type", "also called", "description")
    for entity in page.entities:
        also = ", ".join(map(escape, entity.aliases))
        table.add_row(str(entity.id), escape(entity.name), entity.type, also, escape(entity.description))
    out.print(table)
    if page.next_cursor is not None:
        out.print(translate("There are more than {limit}.", limit=limit))


@commands.command()
@with_options(
    dry_run=Annotated[bool | None, typer.Option("--dry-run", help="Only show what it would cost.")],
    yes=Annotated[bool | None, typer.Option("--yes", help="Do not ask before spending.")],
    ignore_budget=Annotated[bool | None, typer.Option("--ignore-budget", help="Go on beyond the tokens of the day.")],
)
def enrich(
    agent: ChosenAgent = "",
    user: ChosenUser = None,
    since: Since = None,
    model: Model = "",
    tenant: Tenant = "default",
    **options: Any,  # noqa: ANN401 - what `with_options` names
) -> None:
    """Read history again with another model or prompt, beside what stands, and switch to it at once."""
    moment = since.replace(tzinfo=UTC) if since and since.tzinfo is None else since
    wanted = Rerun(agent, user, moment, model, bool(options["ignore_budget"]), tenant)

    async def work(recollect: Recollect) -> None:
        plans = await recollect.reruns.plan(wanted)
        out.print(show_plans(plans) if plans else "There is nothing to read again.")
        if not plans or options["dry_run"]:
            return
        if not options["yes"]:
            typer.confirm("Read it again?", abort=True)
        with Progress(console=err) as progress:
            done = await recollect.reruns.run(wanted, Steps(progress))
        out.print(show_done(plans, done))

    run(work)


def show_plans(plans: Sequence[RerunPlan]) -> Table:
    """Tabulate what each scope would cost, and all of them together."""
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
    """Tabulate the result of each scope and the ledger's cost, next to the estimate."""
    table = tabulate("agent", "user", "read again", "left", "facts replaced", *COSTS)
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
    """Sum up costs; there is a price if any of them has one."""
    prices = [cost.price for cost in costs if cost.price is not None]
    tokens = (sum(cost.prompt_tokens for cost in costs), sum(cost.completion_tokens for cost in costs))
    return Cost(sum(cost.calls for cost in costs), *tokens, sum(prices) if prices else None)


def show_cost(cost: Cost) -> tuple[str, ...]:
    """Write a cost as cells."""
    price = "" if cost.price is None else f"{cost.price:,.4f}"
    return (f"{cost.calls:,}", f"{cost.prompt_tokens:,}", f"{cost.completion_tokens:,}", price)


commands.add_typer(graph.commands, name="graph")
