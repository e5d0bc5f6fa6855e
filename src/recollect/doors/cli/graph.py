"""The commands of `recollect graph`: follow facts from entity to entity, and say which entities are one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer
from rich.markup import escape
from rich.tree import Tree

from recollect.doors.cli.terminal import Agent, Tenant, User, err, out, printing, table_of, with_mind, with_options
from recollect.doors.words import translate
from recollect.errors import NotFoundError
from recollect.models.knowledge import (
    FactPath,
    GraphFormat,
    MergeProposal,
    Neighbourhood,
    Relation,
    Timeline,
)

if TYPE_CHECKING:
    from recollect.mind.mind import Mind

commands = typer.Typer(help="Follow facts from entity to entity.", no_args_is_help=True)
Limit = Annotated[int, typer.Option(help="Most to show.", min=1, max=200)]
Whom = Annotated[str, typer.Argument(metavar="ENTITY", help="Its name, or its id.")]
AsOf = Annotated[datetime | None, typer.Option(help="What was believed then, in UTC.", show_default="now")]
At = Annotated[datetime | None, typer.Option(help="What was true then, in UTC.", show_default="--as-of, or now")]
LONG_PAGE = 200


def print_neighbours(found: Neighbourhood) -> None:
    """Print what facts lead to, as a tree."""
    out.print(grow(found))
    if not found.whole:
        err.print("There may be more: the beam was too narrow for all of it.")


@commands.command("neighbours")
@with_options(as_of=AsOf, at=At)
@printing(print_neighbours)
def show_neighbours(
    entity: Whom,
    agent: Agent,
    user: User = "",
    hops: Annotated[int, typer.Option(help="How many facts to follow one after the other.", min=1, max=3)] = 1,
    beam: Annotated[int, typer.Option(help="Most facts to follow in one hop.", min=1, max=500)] = 100,
    tenant: Tenant = "default",
    **times: Any,  # noqa: ANN401 - what `with_options` names
) -> Neighbourhood:
    """Show what facts lead to from an entity, as a tree."""

    async def work(mind: Mind) -> Neighbourhood:
        return await mind.knowledge.neighbours(await find(mind, entity), hops, beam, **in_utc(times))

    return with_mind(agent, user, tenant, work)


def print_connections(found: list[FactPath]) -> None:
    """Print paths, the shortest first."""
    table = table_of("hops", "path", "facts")
    for path in found:
        names = " - ".join(escape(entity.name) for entity in path.entities)
        table.add_row(str(len(path.relations)), names, "\n".join(escape(relation.text) for relation in path.relations))
    out.print(table if found else translate("no path found"))


@commands.command("connections")
@with_options(as_of=AsOf, at=At)
@printing(print_connections)
def show_connections(
    ends: Annotated[tuple[str, str], typer.Argument(metavar="START END", help="Two entities, by name or id.")],
    agent: Agent,
    user: User = "",
    hops: Annotated[int, typer.Option(help="Most facts on a path.", min=1, max=6)] = 4,
    limit: Annotated[int, typer.Option(help="Most paths to show.", min=1, max=50)] = 10,
    tenant: Tenant = "default",
    **times: Any,  # noqa: ANN401 - what `with_options` names
) -> list[FactPath]:
    """Show how two entities are joined, the shortest path first."""

    async def work(mind: Mind) -> list[FactPath]:
        start, end = [await find(mind, name) for name in ends]
        return await mind.knowledge.connections(start, end, hops, limit, **in_utc(times))

    return with_mind(agent, user, tenant, work)


def print_timeline(found: Timeline) -> None:
    """Print versions of facts."""
    table = table_of("true", "fact", "version", "believed")
    for each in found.relations:
        true, believed = tell(each.valid_at, each.invalid_at), tell(each.created_at, each.superseded_at)
        table.add_row(true, escape(each.text), str(each.version), believed)
    out.print(table)
    if found.next_cursor:
        out.print(translate("There are more than {limit}.", limit=len(found.relations)))


@commands.command("timeline")
@with_options(as_of=AsOf)
@printing(print_timeline)
def show_timeline(
    entity: Whom,
    agent: Agent,
    user: User = "",
    limit: Annotated[int, typer.Option(help="Most versions to show.", min=1, max=LONG_PAGE)] = 50,
    tenant: Tenant = "default",
    **times: Any,  # noqa: ANN401 - what `with_options` names
) -> Timeline:
    """Show all versions of the facts about an entity, in the order in which they came true."""

    async def work(mind: Mind) -> Timeline:
        as_of = in_utc(times).get("as_of")
        return await mind.knowledge.timeline(await find(mind, entity), as_of=as_of, limit=limit)

    return with_mind(agent, user, tenant, work)


@commands.command("export")
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


@commands.command("merge")
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


def print_proposals(proposals: list[MergeProposal]) -> None:
    """Print pairs of entities with their ids."""
    table = table_of("entity", "may be the same as", "why", "alike", "confirmed")
    for each in proposals:
        kept, absorbed = (f"{escape(one.name)} ({one.type})\n{one.id}" for one in (each.kept, each.absorbed))
        said = "" if each.confirmed is None else "yes" if each.confirmed else "no"
        table.add_row(kept, absorbed, each.reason, f"{each.alike:.2f}", said)
    out.print(table if proposals else "No two entities look like one.")


@commands.command("proposals")
@printing(print_proposals)
def propose_merges(
    agent: Agent,
    user: User = "",
    tenant: Tenant = "default",
    judge: Annotated[bool, typer.Option(help="Ask the chat model which of them surely are one.")] = False,
) -> list[MergeProposal]:
    """List which entities may be one, with the ids for `recollect graph merge`."""

    async def work(mind: Mind) -> list[MergeProposal]:
        page = await mind.knowledge.proposed_merges(judge=judge)
        found = [*page.proposals]
        while page.next_cursor:
            page = await mind.knowledge.proposed_merges(judge=judge, cursor=page.next_cursor)
            found += page.proposals
        return found

    return with_mind(agent, user, tenant, work)


@commands.command("split")
def split_entity(
    absorbed: Annotated[UUID, typer.Argument(metavar="ABSORBED", help="The id of the absorbed one.")],
    agent: Agent,
    user: User = "",
    tenant: Tenant = "default",
) -> None:
    """Take back that an entity was absorbed, with the facts that it had."""
    entity = with_mind(agent, user, tenant, lambda mind: mind.knowledge.split(absorbed))
    out.print(f"{escape(entity.name)} stands for itself again.")


def tell(begins: datetime | None, ends: datetime | None) -> str:
    """Write a span of time; a missing beginning or end is left out."""
    written = (f"{moment.astimezone(UTC):%F %R}" if moment else "" for moment in (begins, ends))
    return " - ".join(written).strip()


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
