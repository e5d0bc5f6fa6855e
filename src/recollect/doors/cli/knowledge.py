"""Commands for facts, entities and their graph, and for learning them from conversations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import typer
from rich.markup import escape
from rich.progress import Progress
from rich.table import Column, Table
from rich.tree import Tree

from recollect.doors.cli.terminal import Agent, Steps, Tenant, User, err, out, run, with_mind, with_options
from recollect.doors.words import translate
from recollect.errors import NotFoundError
from recollect.mind.mind import Mind
from recollect.mind.service import Recollect
from recollect.models.knowledge import (
    Cost,
    Entities,
    EntityType,
    Fact,
    FactPath,
    GraphFormat,
    Neighbourhood,
    Relation,
    Reread,
    Rerun,
    RerunPlan,
    Timeline,
)

commands = typer.Typer()

Limit = Annotated[int, typer.Option(help="Most to show.", min=1, max=200)]
graph_app = typer.Typer(help="Follow facts from entity to entity.", no_args_is_help=True)
Whom = Annotated[str, typer.Argument(metavar="ENTITY", help="Its name, or its id.")]
AsOf = Annotated[datetime | None, typer.Option(help="What was believed then, in UTC.", show_default="now")]
At = Annotated[datetime | None, typer.Option(help="What was true then, in UTC.", show_default="--as-of, or now")]
LONG_PAGE = 200
ChosenAgent = Annotated[str, typer.Option(help="Whose memory it is.", show_default="all of the tenant's")]
ChosenUser = Annotated[str | None, typer.Option(help="Whom it is about or with.", show_default="all of the agent's")]
Since = Annotated[datetime | None, typer.Option(help="Only what was said since then, in UTC.", show_default="ever")]
Model = Annotated[str, typer.Option(help="Another model of the endpoint.", show_default="RECOLLECT_CHAT_MODEL")]
COSTS = ("calls", "prompt", "completion", "price")


@commands.command()
@with_options(
    entity=Annotated[UUID | None, typer.Option(help="Only facts about this entity.")],
    versions=Annotated[UUID | None, typer.Option(help="All versions of this fact instead.")],
    as_of=Annotated[datetime | None, typer.Option(help="What was believed then, in UTC.", show_default="now")],
    at=Annotated[datetime | None, typer.Option(help="What was true then, in UTC.", show_default="--as-of, or now")],
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


def tell(begins: datetime | None, ends: datetime | None) -> str:
    """Write a span of time; a missing beginning or end is left out."""
    written = (f"{moment.astimezone(UTC):%F %R}" if moment else "" for moment in (begins, ends))
    return " - ".join(written).strip()


@graph_app.command("neighbours")
@with_options(as_of=AsOf, at=At)
def show_neighbours(
    entity: Whom,
    agent: Agent,
    user: User = "",
    hops: Annotated[int, typer.Option(help="How many facts to follow one after the other.", min=1, max=3)] = 1,
    beam: Annotated[int, typer.Option(help="Most facts to follow in one hop.", min=1, max=500)] = 100,
    tenant: Tenant = "default",
    **times: Any,  # noqa: ANN401 - what `with_options` names
) -> None:
    """Show what facts lead to from an entity, as a tree."""

    async def work(mind: Mind) -> Neighbourhood:
        return await mind.knowledge.neighbours(await find(mind, entity), hops, beam, **in_utc(times))

    found = with_mind(agent, user, tenant, work)
    out.print(grow(found))
    if not found.whole:
        err.print("There may be more: the beam was too narrow for all of it.")


@graph_app.command("connections")
@with_options(as_of=AsOf, at=At)
def show_connections(
    ends: Annotated[tuple[str, str], typer.Argument(metavar="START END", help="Two entities, by name or id.")],
    agent: Agent,
    user: User = "",
    hops: Annotated[int, typer.Option(help="Most facts on a path.", min=1, max=6)] = 4,
    limit: Annotated[int, typer.Option(help="Most paths to show.", min=1, max=50)] = 10,
    tenant: Tenant = "default",
    **times: Any,  # noqa: ANN401 - what `with_options` names
) -> None:
    """Show how two entities are joined, the shortest path first."""

    async def work(mind: Mind) -> list[FactPath]:
        start, end = [await find(mind, name) for name in ends]
        return await mind.knowledge.connections(start, end, hops, limit, **in_utc(times))

    found = with_mind(agent, user, tenant, work)
    table = Table("hops", "path", "facts")
    for path in found:
        names = " - ".join(escape(entity.name) for entity in path.entities)
        table.add_row(str(len(path.relations)), names, "\n".join(escape(relation.text) for relation in path.relations))
    out.print(table if found else translate("no path found"))


@graph_app.command("timeline")
@with_options(as_of=AsOf)
def show_timeline(
    entity: Whom,
    agent: Agent,
    user: User = "",
    limit: Annotated[int, typer.Option(help="Most versions to show.", min=1, max=LONG_PAGE)] = 50,
    tenant: Tenant = "default",
    **times: Any,  # noqa: ANN401 - what `with_options` names
) -> None:
    """Show all versions of the facts about an entity, in the order in which they came true."""

    async def work(mind: Mind) -> Timeline:
        as_of = in_utc(times).get("as_of")
        return await mind.knowledge.timeline(await find(mind, entity), as_of=as_of, limit=limit)

    found = with_mind(agent, user, tenant, work)
    table = Table("true", "fact", "version", "believed")
    for relation in found.relations:
        table.add_row(
            tell(relation.valid_at, relation.invalid_at),
            escape(relation.text),
            str(relation.version),
            tell(relation.created_at, relation.superseded_at),
        )
    out.print(table)
    if found.next_cursor:
        out.print(translate("There are more than {limit}.", limit=limit))


@graph_app.command("export")
@with_options(as_of=AsOf, at=At)
def export(
    file: Annotated[Path, typer.Argument(help="Where to write it.", dir_okay=False, writable=True)],
    agent: Agent,
    user: User = "",
    format: Annotated[GraphFormat, typer.Option(help="graphml or cypher.")] = GraphFormat.GRAPHML,  # noqa: A002
    tenant: Tenant = "default",
    **times: Any,  # noqa: ANN401 - what `with_options` names
) -> None:
    """Write all facts and the entities they join to a file that other programs read."""
    with err.status("writing"), file.open("w", encoding="utf-8", newline="\n") as opened:
        written = with_mind(agent, user, tenant, write(opened.write, format, in_utc(times)))
    out.print(f"{written:,} characters written to {escape(str(file))}", highlight=False, soft_wrap=True)


def write(
    put: Callable[[str], int],
    format: GraphFormat,  # noqa: A002
    times: dict[str, datetime],
) -> Callable[[Mind], Any]:
    """Return the task of exporting a graph, piece by piece."""

    async def work(mind: Mind) -> int:
        return sum([put(piece) async for piece in mind.knowledge.export(format, **times)])

    return work


async def find(mind: Mind, named: str) -> UUID:
    """Find an entity by its id, or by a name if only one is called so."""
    try:
        return UUID(named)
    except ValueError:
        page = await mind.knowledge.entities(named, limit=LONG_PAGE)
    exact = [
        entity.id
        for entity in page.entities
        if named.casefold() in {name.casefold() for name in (entity.name, *entity.aliases)}
    ]
    if len(exact) != 1:
        how_many = "Several entities are" if exact else "No entity is"
        raise NotFoundError(f"{how_many} called so: `recollect entities` lists them with their ids.")
    return exact[0]


@graph_app.command("merge")
def merge_entities(
    entity: Whom,
    absorbed: Annotated[str, typer.Argument(metavar="ABSORBED", help="The name or id of the same one.")],
    agent: Agent,
    user: User = "",
    tenant: Tenant = "default",
) -> None:
    """Let an entity absorb another that is the same, with its names and its facts."""

    async def work(mind: Mind) -> tuple[UUID, str]:
        other = await find(mind, absorbed)
        return other, (await mind.knowledge.merge(await find(mind, entity), other)).name

    other, name = with_mind(agent, user, tenant, work)
    out.print(f"{escape(name)} has absorbed {other}: `recollect graph split` takes it back.")


@graph_app.command("split")
def split_entity(
    absorbed: Annotated[UUID, typer.Argument(metavar="ABSORBED", help="The id of the absorbed one.")],
    agent: Agent,
    user: User = "",
    tenant: Tenant = "default",
) -> None:
    """Take back that an entity was absorbed, with the facts that it had."""
    entity = with_mind(agent, user, tenant, lambda mind: mind.knowledge.split(absorbed))
    out.print(f"{escape(entity.name)} stands for itself again.")


def in_utc(times: dict[str, datetime | None]) -> dict[str, datetime]:
    """Take the given times as UTC."""
    return {name: moment.replace(tzinfo=UTC) for name, moment in times.items() if moment is not None}


def grow(found: Neighbourhood) -> Tree:
    """Draw the path to every neighbour, each fact once."""
    root = Tree(f"{escape(found.entity.name)} ({found.entity.type})")
    relations = {relation.memory_id: relation for relation in found.relations}
    branches = {found.entity.id: root}
    for neighbour in found.neighbours:
        relation = relations.pop(neighbour.led_by)
        source = relation.object if relation.subject.id == neighbour.entity.id else relation.subject
        branches[neighbour.entity.id] = branches[source.id].add(label(relation, neighbour.entity.id))
    for relation in relations.values():
        branches[relation.subject.id].add(f"[dim]{escape(relation.predicate)} {escape(relation.object.name)}[/dim]")
    return root


def label(relation: Relation, reached: UUID) -> str:
    """Write a fact as the path to one of its ends."""
    if relation.object.id == reached:
        return f"{escape(relation.predicate)} → [bold]{escape(relation.object.name)}[/bold]"
    return f"← {escape(relation.predicate)} [bold]{escape(relation.subject.name)}[/bold]"


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


commands.add_typer(graph_app, name="graph")
