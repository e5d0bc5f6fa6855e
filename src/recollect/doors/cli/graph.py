"""The commands of `recollect mind graph`: follow facts from entity to entity, and say which entities are one."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer
from rich.markup import escape
from rich.tree import Tree

from recollect.doors.cli.terminal import err, on_mind, out, printing, table_of
from recollect.doors.greeting import translate
from recollect.errors import NotFoundError
from recollect.models.knowledge import FactPath, GraphFormat, MergeProposal, Neighbors, Relation

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


def print_neighbors(found: Neighbors) -> None:
    """Print what facts lead to, as a tree."""
    out.print(grow(found))
    if not found.whole:
        err.print("There may be more: the beam was too narrow for all of it.")


@commands.command("neighbors")
@printing(print_neighbors)
@on_mind
async def show_neighbors(
    mind: Mind,
    entity: Whom,
    hops: Annotated[int, typer.Option(help="Number of hops.", min=1, max=3)] = 1,
    beam: Annotated[int, typer.Option(help="Maximum number of facts per hop.", min=1, max=500)] = 100,
    as_of: AsOf = None,
    at: At = None,
) -> Neighbors:
    """Show the entities around an entity as a tree."""
    found = await find_entity_id(mind, entity)
    return await mind.knowledge.neighbors(found, hops, beam, as_of=in_utc(as_of), at=in_utc(at))


def print_paths(found: list[FactPath]) -> None:
    """Print paths, the shortest first."""
    table = table_of("hops", "path", "facts")
    for path in found:
        names = " - ".join(escape(entity.name) for entity in path.entities)
        table.add_row(str(len(path.relations)), names, "\n".join(escape(relation.text) for relation in path.relations))
    out.print(table if found else translate("no path found"))


@commands.command("paths")
@printing(print_paths)
@on_mind
async def show_paths(
    mind: Mind,
    ends: Annotated[tuple[str, str], typer.Argument(metavar="START END", help="Two entities, by name or ID.")],
    hops: Annotated[int, typer.Option(help="Maximum path length.", min=1, max=6)] = 4,
    limit: Annotated[int, typer.Option(help="Maximum number of paths.", min=1, max=50)] = 10,
    as_of: AsOf = None,
    at: At = None,
) -> list[FactPath]:
    """Show how two entities are connected, shortest path first."""
    start, end = [await find_entity_id(mind, name) for name in ends]
    return await mind.knowledge.paths(start, end, hops, limit, as_of=in_utc(as_of), at=in_utc(at))


@commands.command("export")
@on_mind
async def export(
    mind: Mind,
    file: Annotated[Path, typer.Argument(help="Output file.", dir_okay=False, writable=True)],
    format: Annotated[GraphFormat, typer.Option(help="graphml or cypher.")] = GraphFormat.GRAPHML,  # noqa: A002
    as_of: AsOf = None,
    at: At = None,
) -> None:
    """Export the graph as GraphML or Cypher."""
    pieces = mind.knowledge.export(format, as_of=in_utc(as_of), at=in_utc(at))
    with err.status("writing"), file.open("w", encoding="utf-8", newline="\n") as opened:
        written = sum([opened.write(piece) async for piece in pieces])
    out.print(f"{written:,} characters written to {escape(str(file))}", highlight=False, soft_wrap=True)


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
        raise NotFoundError(f"{how_many} entities have this name. List them with IDs: `recollect mind entities`.")
    return exact[0]


@commands.command("merge")
@on_mind
async def merge_entities(
    mind: Mind,
    entity: Whom,
    absorbed: Annotated[str, typer.Argument(metavar="ABSORBED", help="Name or ID of the duplicate.")],
) -> None:
    """Merge a duplicate entity into another, with its names and facts."""
    other = await find_entity_id(mind, absorbed)
    merged = await mind.knowledge.merge(await find_entity_id(mind, entity), other)
    out.print(f"{escape(merged.name)} has absorbed {other}: `recollect mind graph split` takes it back.")


def print_proposals(proposals: list[MergeProposal]) -> None:
    """Print pairs of entities with their ids."""
    table = table_of("entity", "may be the same as", "why", "alike", "confirmed")
    for each in proposals:
        kept, absorbed = (f"{escape(one.name)} ({one.type})\n{one.id}" for one in (each.kept, each.absorbed))
        said = "" if each.confirmed is None else "yes" if each.confirmed else "no"
        table.add_row(kept, absorbed, each.reason, f"{each.alike:.2f}", said)
    out.print(table if proposals else "No two entities look like one.")


@commands.command("duplicates")
@printing(print_proposals)
@on_mind
async def list_duplicates(
    mind: Mind, judge: Annotated[bool, typer.Option(help="Ask the chat model to confirm duplicates.")] = False
) -> list[MergeProposal]:
    """List entities that may be duplicates, with IDs for `recollect mind graph merge`."""
    page = await mind.knowledge.duplicates(judge=judge)
    found = [*page.proposals]
    while page.next_cursor:
        page = await mind.knowledge.duplicates(judge=judge, cursor=page.next_cursor)
        found += page.proposals
    return found


@commands.command("split")
@on_mind
async def split_entity(
    mind: Mind, absorbed: Annotated[UUID, typer.Argument(metavar="ABSORBED", help="ID of the merged entity.")]
) -> None:
    """Undo a merge."""
    out.print(f"{escape((await mind.knowledge.split(absorbed)).name)} stands for itself again.")


def format_span(begins: datetime | None, ends: datetime | None) -> str:
    """Write a span of time; a missing beginning or end is left out."""
    written = (f"{moment.astimezone(UTC):%F %R}" if moment else "" for moment in (begins, ends))
    return " - ".join(written).strip()


def in_utc(time: datetime | None) -> datetime | None:
    """Return a time that is given, as UTC."""
    return time and time.replace(tzinfo=UTC)


def grow(found: Neighbors) -> Tree:
    """Draw the path to every neighbor, each fact once."""
    root = Tree(f"{escape(found.entity.name)} ({found.entity.type})")
    relations = {relation.memory_id: relation for relation in found.relations}
    branches = {found.entity.id: root}
    for neighbor in found.neighbors:
        relation = relations.pop(neighbor.led_by)
        source = relation.object if relation.subject.id == neighbor.entity.id else relation.subject
        branches[neighbor.entity.id] = branches[source.id].add(label(relation, neighbor.entity.id))
    for relation in relations.values():
        branches[relation.subject.id].add(f"[dim]{escape(relation.predicate)} {escape(relation.object.name)}[/dim]")
    return root


def label(relation: Relation, reached: UUID) -> str:
    """Write a fact as the path to one of its ends."""
    if relation.object.id == reached:
        return f"{escape(relation.predicate)} → [bold]{escape(relation.object.name)}[/bold]"
    return f"← {escape(relation.predicate)} [bold]{escape(relation.subject.name)}[/bold]"
