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
from recollect.doors.greeting import translate
from recollect.errors import NotFoundError
from recollect.models.knowledge import (
    FactPath,
    GraphFormat,
    MergeProposal,
    Neighbors,
    Relation,
    TimelinePage,
)

if TYPE_CHECKING:
    from recollect.mind.mind import Mind

commands = typer.Typer(help="Explore the knowledge graph.", no_args_is_help=True)
Limit = Annotated[int, typer.Option(help="Maximum number of results.", min=1, max=200)]
Whom = Annotated[str, typer.Argument(metavar="ENTITY", help="Entity name or ID.")]
AsOf = Annotated[
    datetime | None, typer.Option(help="Facts as they were recorded at this time (UTC).", show_default="now")
]
At = Annotated[
    datetime | None, typer.Option(help="Facts that were true at this time (UTC).", show_default="--as-of, or now")
]
LONG_PAGE = 200


def print_neighbours(found: Neighbors) -> None:
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
    hops: Annotated[int, typer.Option(help="Number of hops.", min=1, max=3)] = 1,
    beam: Annotated[int, typer.Option(help="Maximum number of facts per hop.", min=1, max=500)] = 100,
    tenant: Tenant = "default",
    **times: Any,  # noqa: ANN401 - what `with_options` names
) -> Neighbors:
    """Show the entities around an entity as a tree."""

    async def fetch_neighbors(mind: Mind) -> Neighbors:
        return await mind.knowledge.neighbours(await find_entity_id(mind, entity), hops, beam, **in_utc(times))

    return with_mind(agent, user, tenant, fetch_neighbors)


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
    ends: Annotated[tuple[str, str], typer.Argument(metavar="START END", help="Two entities, by name or ID.")],
    agent: Agent,
    user: User = "",
    hops: Annotated[int, typer.Option(help="Maximum path length.", min=1, max=6)] = 4,
    limit: Annotated[int, typer.Option(help="Maximum number of paths.", min=1, max=50)] = 10,
    tenant: Tenant = "default",
    **times: Any,  # noqa: ANN401 - what `with_options` names
) -> list[FactPath]:
    """Show how two entities are connected, shortest path first."""

    async def fetch_connections(mind: Mind) -> list[FactPath]:
        start, end = [await find_entity_id(mind, name) for name in ends]
        return await mind.knowledge.connections(start, end, hops, limit, **in_utc(times))

    return with_mind(agent, user, tenant, fetch_connections)


def print_timeline(found: TimelinePage) -> None:
    """Print versions of facts."""
    table = table_of("true", "fact", "version", "believed")
    for each in found.relations:
        true, believed = format_span(each.valid_at, each.invalid_at), format_span(each.created_at, each.superseded_at)
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
    limit: Annotated[int, typer.Option(help="Maximum number of versions.", min=1, max=LONG_PAGE)] = 50,
    tenant: Tenant = "default",
    **times: Any,  # noqa: ANN401 - what `with_options` names
) -> TimelinePage:
    """Show every version of the facts about an entity in chronological order."""

    async def fetch_timeline(mind: Mind) -> TimelinePage:
        as_of = in_utc(times).get("as_of")
        return await mind.knowledge.timeline(await find_entity_id(mind, entity), as_of=as_of, limit=limit)

    return with_mind(agent, user, tenant, fetch_timeline)


@commands.command("export")
@with_options(as_of=AsOf, at=At)
def export(
    file: Annotated[Path, typer.Argument(help="Output file.", dir_okay=False, writable=True)],
    agent: Agent,
    user: User = "",
    format: Annotated[GraphFormat, typer.Option(help="graphml or cypher.")] = GraphFormat.GRAPHML,  # noqa: A002
    tenant: Tenant = "default",
    **times: Any,  # noqa: ANN401 - what `with_options` names
) -> None:
    """Export the graph as GraphML or Cypher."""
    with err.status("writing"), file.open("w", encoding="utf-8", newline="\n") as opened:
        written = with_mind(agent, user, tenant, build_export_task(opened.write, format, in_utc(times)))
    out.print(f"{written:,} characters written to {escape(str(file))}", highlight=False, soft_wrap=True)


def build_export_task(
    put: Callable[[str], int],
    format: GraphFormat,  # noqa: A002
    times: dict[str, datetime],
) -> Callable[[Mind], Any]:
    """Return the task of exporting a graph, piece by piece."""

    async def export_pieces(mind: Mind) -> int:
        return sum([put(piece) async for piece in mind.knowledge.export(format, **times)])

    return export_pieces


async def find_entity_id(mind: Mind, named: str) -> UUID:
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
        raise NotFoundError(f"{how_many} entities have this name. List them with IDs: `recollect entities`.")
    return exact[0]


@commands.command("merge")
def merge_entities(
    entity: Whom,
    absorbed: Annotated[str, typer.Argument(metavar="ABSORBED", help="Name or ID of the duplicate.")],
    agent: Agent,
    user: User = "",
    tenant: Tenant = "default",
) -> None:
    """Merge a duplicate entity into another, with its names and facts."""

    async def merge_named_entities(mind: Mind) -> tuple[UUID, str]:
        other = await find_entity_id(mind, absorbed)
        return other, (await mind.knowledge.merge(await find_entity_id(mind, entity), other)).name

    other, name = with_mind(agent, user, tenant, merge_named_entities)
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
    judge: Annotated[bool, typer.Option(help="Ask the chat model to confirm duplicates.")] = False,
) -> list[MergeProposal]:
    """List entities that may be duplicates, with IDs for `recollect graph merge`."""

    async def fetch_proposals(mind: Mind) -> list[MergeProposal]:
        page = await mind.knowledge.proposed_merges(judge=judge)
        found = [*page.proposals]
        while page.next_cursor:
            page = await mind.knowledge.proposed_merges(judge=judge, cursor=page.next_cursor)
            found += page.proposals
        return found

    return with_mind(agent, user, tenant, fetch_proposals)


@commands.command("split")
def split_entity(
    absorbed: Annotated[UUID, typer.Argument(metavar="ABSORBED", help="ID of the merged entity.")],
    agent: Agent,
    user: User = "",
    tenant: Tenant = "default",
) -> None:
    """Undo a merge."""
    entity = with_mind(agent, user, tenant, lambda mind: mind.knowledge.split(absorbed))
    out.print(f"{escape(entity.name)} stands for itself again.")


def format_span(begins: datetime | None, ends: datetime | None) -> str:
    """Write a span of time; a missing beginning or end is left out."""
    written = (f"{moment.astimezone(UTC):%F %R}" if moment else "" for moment in (begins, ends))
    return " - ".join(written).strip()


def in_utc(times: dict[str, datetime | None]) -> dict[str, datetime]:
    """Return the times that are given, as UTC."""
    return {name: moment.replace(tzinfo=UTC) for name, moment in times.items() if moment is not None}


def grow(found: Neighbors) -> Tree:
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
