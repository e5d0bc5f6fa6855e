"""Commands for facts, entities and their graph, and for learning them from conversations."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.progress import Progress
from rich.table import Column, Table

from recollect.doors.cli import graph
from recollect.doors.cli.graph import AsOf, At, Limit, Whom, find_entity_id, format_span, in_utc
from recollect.doors.cli.terminal import (
    ProgressBars,
    Tenant,
    err,
    find_id,
    find_ids,
    id_column,
    on_mind,
    out,
    printing,
    run,
    shorten_id,
    table_of,
    with_options,
)
from recollect.doors.greeting import translate
from recollect.models.knowledge import (
    Cost,
    EnrichPlan,
    EnrichRequest,
    EnrichResult,
    EntityOrder,
    EntityPage,
    EntityType,
    Fact,
    FactPage,
    NewFact,
)

if TYPE_CHECKING:
    from recollect.mind.mind import Mind
    from recollect.mind.service import Recollect

commands = typer.Typer()
facts_app = typer.Typer(no_args_is_help=True, help="List, add and trace facts.")

ChosenAgent = Annotated[str, typer.Option(help="Agent.", show_default="all of the tenant's")]
ChosenUser = Annotated[
    str | None, typer.Option(help="User. Omit for the agent's own memory.", show_default="all of the agent's")
]
Since = Annotated[datetime | None, typer.Option(help="Only messages since this time (UTC).", show_default="ever")]
Model = Annotated[str, typer.Option(help="Chat model to use.", show_default="RECOLLECT_CHAT_MODEL")]
WIDE = 120
"""Where a table has room for whole ids."""
COSTS = ("calls", "prompt", "completion", "price")


def show_facts(page: FactPage) -> None:
    """List facts with the time they are true and when they were recorded."""
    if not page.facts:
        out.print(translate("nothing known"))
        return
    table = table_of(id_column("id"), "version", "fact", "true", "believed")
    for fact in page.facts:
        believed = format_span(fact.created_at, fact.superseded_at)
        true = format_span(fact.span.valid_at, fact.span.invalid_at)
        table.add_row(shorten_id(fact.memory_id or fact.id), str(fact.version), escape(fact.text), true, believed)
    out.print(table)
    if page.next_cursor is not None:
        out.print(translate("There are more than {limit}.", limit=len(page.facts)))


@facts_app.command("list")
@printing(show_facts)
@on_mind
async def list_facts(
    mind: Mind,
    entity: Annotated[str, typer.Option(help="Only facts about this entity, by name or id.")] = "",
    predicate: Annotated[str, typer.Option(help="Only facts of this predicate.")] = "",
    limit: Limit = 50,
    as_of: AsOf = None,
    at: At = None,
) -> FactPage:
    """List facts with the time they are true and when they were recorded."""
    about = await find_entity_id(mind, entity) if entity else None
    return await mind.knowledge.facts(about, predicate, as_of=in_utc(as_of), at=in_utc(at), limit=limit)


@facts_app.command("timeline")
@printing(show_facts)
@on_mind
async def show_timeline(mind: Mind, entity: Whom, limit: Limit = 50, as_of: AsOf = None) -> FactPage:
    """List every version of the facts about an entity in chronological order."""
    about = await find_entity_id(mind, entity)
    return await mind.knowledge.facts(about, as_of=in_utc(as_of), at="any", limit=limit)


@facts_app.command("versions")
@printing(show_facts)
@on_mind
async def list_versions(
    mind: Mind, fact_id: Annotated[str, typer.Argument(metavar="ID", help="Fact ID, full or short.")], limit: Limit = 50
) -> FactPage:
    """List all versions of a fact."""
    return await mind.knowledge.facts(await find_id(mind, fact_id), at="any", limit=limit)


def show_stated(fact: Fact) -> None:
    """Show the id of a fact, and the fact."""
    out.print(f"{fact.id} {escape(fact.text)}", highlight=False, soft_wrap=True)


@facts_app.command("add")
@printing(show_stated)
@on_mind
async def add_fact(
    mind: Mind,
    parts: Annotated[
        tuple[str, str, str],
        typer.Argument(
            metavar="SUBJECT PREDICATE OBJECT", help="Subject, predicate and object, for example: Li works_at Globex"
        ),
    ],
    since: Annotated[datetime | None, typer.Option(help="True since (UTC).", show_default="now")] = None,
    until: Annotated[datetime | None, typer.Option(help="True until (UTC).", show_default="open")] = None,
    replaces: Annotated[
        list[str] | None, typer.Option(help="ID of a fact that this one replaces. Repeatable.", metavar="ID")
    ] = None,
    text: Annotated[str, typer.Option(help="The fact as a sentence.", show_default="its three parts")] = "",
) -> Fact:
    """Add a fact."""
    replaced = tuple(await find_ids(mind, replaces))
    stated = NewFact(*parts, text=text, valid_at=in_utc(since), invalid_at=in_utc(until), replaces=replaced)
    return (await mind.knowledge.add(stated))[0]


def show_entities(page: EntityPage) -> None:
    """Show entities with their aliases; also their IDs if the terminal is wide enough."""
    if not page.entities:
        out.print(translate("nobody known"))
        return
    wide = out.width >= WIDE
    ids = [Column("entity", no_wrap=True, min_width=36)] if wide else []
    table = table_of(*ids, "name", "type", "also called", "description")
    for entity in page.entities:
        cells = (escape(entity.name), entity.type, ", ".join(map(escape, entity.aliases)), escape(entity.description))
        table.add_row(*([str(entity.id)] if wide else []), *cells)
    out.print(table)
    if page.next_cursor is not None:
        out.print(translate("There are more than {limit}.", limit=len(page.entities)))


@commands.command()
@printing(show_entities)
@on_mind
async def entities(
    mind: Mind,
    search: Annotated[
        str, typer.Argument(help="Part of a name, or a text for --order meaning.", show_default="all")
    ] = "",
    type: Annotated[EntityType | None, typer.Option(help="Only entities of this type.", show_default="all")] = None,  # noqa: A002
    limit: Limit = 50,
    order: Annotated[
        EntityOrder, typer.Option(help="facts: most facts first; meaning: like the text.")
    ] = EntityOrder.AGE,
    as_of: Annotated[
        datetime | None, typer.Option(help="Entities as they were merged at this time (UTC).", show_default="now")
    ] = None,
) -> EntityPage:
    """List entities and their aliases."""
    return await mind.knowledge.entities(search, type=type, order=order, as_of=in_utc(as_of), limit=limit)


@commands.command()
@with_options(
    dry_run=Annotated[bool | None, typer.Option("--dry-run", help="Only estimate the cost.")],
    yes=Annotated[bool | None, typer.Option("--yes", help="Do not ask before spending tokens.")],
    ignore_budget=Annotated[bool | None, typer.Option("--ignore-budget", help="Ignore the daily token budget.")],
)
def enrich(
    agent: ChosenAgent = "",
    user: ChosenUser = None,
    since: Since = None,
    model: Model = "",
    tenant: Tenant = "default",
    **options: Any,  # noqa: ANN401 - what `with_options` names
) -> None:
    """Re-run extraction with another model or prompt, then switch to the new result atomically."""
    wanted = EnrichRequest(agent, user, in_utc(since), model, bool(options["ignore_budget"]), tenant)

    async def enrich_again(recollect: Recollect) -> None:
        plans = await recollect.reruns.plan(wanted)
        out.print(show_plans(plans) if plans else "There is nothing to read again.")
        if not plans or options["dry_run"]:
            return
        if not options["yes"]:
            typer.confirm("Read it again?", abort=True)
        with Progress(console=err) as progress:
            done = await recollect.reruns.run(wanted, ProgressBars(progress))
        out.print(show_done(plans, done))

    run(enrich_again)


def show_plans(plans: Sequence[EnrichPlan]) -> Table:
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


def show_done(plans: Sequence[EnrichPlan], done: Sequence[EnrichResult]) -> Table:
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
commands.add_typer(facts_app, name="facts")
