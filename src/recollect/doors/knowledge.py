"""Commands for what is known: facts as believed and true at a moment, and whom they speak of, as tables."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import UUID

import typer
from rich.markup import escape
from rich.table import Column, Table

from recollect.doors.terminal import Agent, Tenant, User, out, with_mind, with_options
from recollect.mind.mind import Mind
from recollect.models.knowledge import EntityType, Fact

Limit = Annotated[int, typer.Option(help="Most to show.", min=1, max=200)]


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
        out.print("nothing known")
        return
    table = Table(Column("fact", no_wrap=True, min_width=36), "version", "text", "true", "believed")
    for fact in found:
        believed = tell(fact.created_at, fact.superseded_at)
        true = tell(fact.span.valid_at, fact.span.invalid_at)
        table.add_row(str(fact.id), str(fact.version), escape(fact.text), true, believed)
    out.print(table)
    if more:
        out.print(f"There are more than {limit}.")


def entities(
    agent: Agent,
    search: Annotated[str, typer.Argument(help="Part of a name.", show_default="all")] = "",
    user: User = "",
    type: Annotated[EntityType | None, typer.Option(help="Only of this type.", show_default="all")] = None,  # noqa: A002
    limit: Limit = 50,
    tenant: Tenant = "default",
) -> None:
    """Show whom and what facts speak of, with what else they are called."""
    page = with_mind(agent, user, tenant, lambda mind: mind.knowledge.entities(search, type=type, limit=limit))
    if not page.entities:
        out.print("nobody known")
        return
    table = Table(Column("entity", no_wrap=True, min_width=36), "name", "type", "also called", "description")
    for entity in page.entities:
        also = ", ".join(map(escape, entity.aliases))
        table.add_row(str(entity.id), escape(entity.name), entity.type, also, escape(entity.description))
    out.print(table)
    if page.next_cursor is not None:
        out.print(f"There are more than {limit}.")


def tell(begins: datetime | None, ends: datetime | None) -> str:
    """Write a span of time; what has no beginning or no end says so by leaving it out."""
    written = (f"{moment.astimezone(UTC):%F %R}" if moment else "" for moment in (begins, ends))
    return " - ".join(written).strip()
