"""Commands for memories: remember, list, show, update and forget them."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer
from rich.markup import escape
from rich.progress import Progress
from rich.table import Column, Table

from recollect.doors.cli.terminal import (
    FILTER_OPTIONS,
    Agent,
    MemoryId,
    ProgressBars,
    Tenant,
    User,
    Yes,
    err,
    find_id,
    find_ids,
    id_column,
    on_mind,
    out,
    printing,
    read_filter,
    run,
    shorten_id,
    table_of,
    with_mind,
    with_options,
)
from recollect.doors.greeting import translate
from recollect.models.filters import Filter
from recollect.models.memories import (
    IfNew,
    Kind,
    Memory,
    MemoryOrder,
    MemoryPage,
    NewMemory,
    Receipt,
    UpdateResult,
)

if TYPE_CHECKING:
    from recollect.mind.mind import Mind
    from recollect.mind.service import Recollect
    from recollect.models.imports import UserErasure

commands = typer.Typer()


class DedupMode(StrEnum):
    """How to decide whether a memory is new."""

    SAME = "same"
    NEAR = "near"


def show_receipt(receipt: Receipt) -> None:
    """Show the id of a memory, and how far it has come."""
    out.print(f"{receipt.id} {'known' if receipt.known else receipt.progress}", highlight=False)


@commands.command()
@with_options(
    expires_at=Annotated[
        datetime | None, typer.Option(help="Exclude from recall after this time (UTC).", show_default="never")
    ],
    pin=Annotated[bool, typer.Option("--pin", help="Include it in every prompt.")],
    if_new=Annotated[
        DedupMode | None,
        typer.Option(help="Skip duplicates: `same` text, or `near` the same words."),
    ],
)
@printing(show_receipt)
@on_mind
async def remember(
    mind: Mind,
    content: Annotated[str, typer.Argument(help="Text of the memory.")],
    kind: Annotated[Kind, typer.Option(help="Kind of memory.")] = Kind.EVENT,
    importance: Annotated[float | None, typer.Option(help="1 to 10. Estimated if omitted.")] = None,
    **chosen: Any,  # noqa: ANN401 - what `with_options` names
) -> Receipt:
    """Store a memory."""
    expiry = chosen["expires_at"].replace(tzinfo=UTC) if chosen["expires_at"] else None
    memory = NewMemory(content, kind, importance=importance, expires_at=expiry, pinned=bool(chosen["pin"]))
    if_new: IfNew = chosen["if_new"].value if chosen["if_new"] else ""
    return (await mind.remember(memory, if_new=if_new))[0]


def show_memory(memory: Memory) -> None:
    """Show one memory, one line per field; empty fields are left out."""
    table = table_of("", "", show_header=False)
    fields = {
        "id": memory.id,
        "memory": memory.content,
        "kind": memory.kind,
        "speaker": memory.speaker,
        "conversation": memory.conversation,
        "happened": f"{memory.occurred_at:%F %T %Z}",
        "written": f"{memory.created_at:%F %T %Z}",
        "importance": f"{memory.importance:g}",
        "keywords": ", ".join(memory.keywords),
        "trust": f"{memory.trust}, by {memory.origin}",
        "state": f"{memory.state}{', pinned' if memory.pinned else ''}",
        "progress": memory.progress,
        "made from": ", ".join(map(shorten_id, memory.evidence)),
        "metadata": dict(memory.metadata) or "",
    }
    for name, value in fields.items():
        if value:
            table.add_row(name, escape(str(value)))
    out.print(table)


@commands.command("get")
@printing(show_memory)
@on_mind
async def get_memory(mind: Mind, memory_id: MemoryId) -> Memory:
    """Show a memory with all its fields."""
    return await mind.get(memory_id)


def show_page(page: MemoryPage) -> None:
    """Show one page of memories, and the cursor of the next page."""
    if not page.memories:
        out.print(translate("nothing found"))
        return
    table = table_of(id_column("id"), "kind", "when", "memory")
    for each in page.memories:
        pinned = "pinned: " if each.pinned else ""
        table.add_row(shorten_id(each.id), each.kind, f"{each.occurred_at:%F %R}", pinned + escape(each.content))
    out.print(table)
    if page.next_cursor:
        out.print(translate("There are more: --after {cursor}", cursor=shorten_id(page.next_cursor)), highlight=False)


@commands.command("list")
@with_options(
    after=Annotated[str | None, typer.Option(help="Start after this memory.", metavar="ID")],
    oldest=Annotated[bool | None, typer.Option("--oldest", help="Oldest first.", show_default="the newest")],
    **FILTER_OPTIONS,
)
@printing(show_page)
@on_mind
async def list_memories(
    mind: Mind,
    words: Annotated[str, typer.Argument(help="Only memories that contain these words.", show_default="all")] = "",
    limit: Annotated[int, typer.Option(help="Maximum number of results.", min=1, max=200)] = 20,
    **given: Any,  # noqa: ANN401 - what `with_options` names
) -> MemoryPage:
    """List memories, newest first."""
    only, order = Filter(**read_filter(given)), MemoryOrder.OLDEST if given["oldest"] else MemoryOrder.NEWEST
    cursor = await find_id(mind, given["after"]) if given["after"] else None
    return await mind.list(filter=only, words=words, order=order, limit=limit, cursor=cursor)


def show_updated(found: UpdateResult | tuple[Memory, ...]) -> None:
    """Show what an update did, or the versions of a memory."""
    if isinstance(found, UpdateResult):
        said = "contested" if found.contested else found.progress if found.changed else "unchanged"
        out.print(f"{found.id} {said}", highlight=False)
        return
    table = table_of(id_column("version"), "written", "until", "trust", "content")
    for each in found:
        until = "contested" if each.contested else f"{each.superseded_at:%F %T}" if each.superseded_at else ""
        table.add_row(shorten_id(each.id), f"{each.created_at:%F %T}", until, str(each.trust), escape(each.content))
    out.print(table)


@commands.command()
@with_options(
    importance=Annotated[float | None, typer.Option(help="1 to 10.", show_default="as it is")],
    keyword=Annotated[list[str] | None, typer.Option(help="Keyword; replaces the existing ones. Repeatable.")],
    topic=Annotated[str | None, typer.Option(help="Topic; replaces the existing ones.", show_default="as it is")],
)
@printing(show_updated)
@on_mind
async def update(
    mind: Mind,
    memory_id: MemoryId,
    content: Annotated[str, typer.Argument(help="New text.")] = "",
    pin: Annotated[bool | None, typer.Option("--pin/--unpin", help="Include it in every prompt, or not.")] = None,
    versions: Annotated[bool, typer.Option("--versions", help="Only show the versions.")] = False,
    **chosen: Any,  # noqa: ANN401 - what `with_options` names
) -> UpdateResult | tuple[Memory, ...]:
    """Update a memory, or show its versions."""
    found, keywords = await find_id(mind, memory_id), tuple(chosen["keyword"]) if chosen["keyword"] else None
    if versions:
        return (await mind.evidence(found)).versions
    return await mind.update(
        found,
        content=content or None,
        importance=chosen["importance"],
        keywords=keywords,
        topic=chosen["topic"],
        pinned=pin,
    )


@commands.command()
@with_options(
    yes=Yes,
    all_agents=Annotated[
        bool | None, typer.Option("--all-agents", help="Delete everything about the user, for all agents.")
    ],
    everything=Annotated[bool | None, typer.Option("--everything", "--all", help="All the agent has of the user.")],
    **FILTER_OPTIONS,
)
def forget(
    agent: Agent = "",
    ids: Annotated[list[str] | None, typer.Argument(help="Memory IDs. Omit to use a filter.")] = None,
    user: User = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count what would be deleted.")] = False,
    tenant: Tenant = "default",
    **given: Any,  # noqa: ANN401 - what `with_options` names
) -> None:
    """Delete memories permanently, by ID or filter, with everything derived from them."""
    only = Filter(**read_filter(given))
    if given["all_agents"]:
        if agent or ids or only.named:
            raise typer.BadParameter("--all-agents erases the user: it takes no agent (RECOLLECT_AGENT), ids or filter")
        erase_user(user, tenant, dry_run=dry_run, yes=bool(given["yes"]))
        return
    if not agent:
        raise typer.BadParameter("use --agent, or --user with --all-agents")
    if given["everything"] and (ids or only.named):
        raise typer.BadParameter("--everything erases the whole scope: it takes no ids or filter")
    if not (dry_run or given["yes"]):
        whole = f"Erase everything that {agent} has of {user or 'no user'}, for good?"
        typer.confirm(whole if given["everything"] else translate("Delete them for good?"), abort=True, err=True)
    if given["everything"]:
        erased = with_mind(agent, user, tenant, lambda mind: mind.forget_everything(dry_run=dry_run))
        show_erasure(erased, dry_run=dry_run)
        return

    async def forget_memories(mind: Mind) -> list[UUID]:
        return await mind.forget(await find_ids(mind, ids), filter=only, dry_run=dry_run)

    gone = with_mind(agent, user, tenant, forget_memories)
    said = "{count} memories would be forgotten." if dry_run else "{count} memories are forgotten."
    out.print(translate(said, count=len(gone)), highlight=False)


def erase_user(user: str, tenant: str, *, dry_run: bool, yes: bool) -> None:
    """Erase a user over all agents, or only count what would go, and show the receipt."""
    if not (dry_run or yes):
        typer.confirm(f"Erase everything of {user}, over all agents, for good?", abort=True, err=True)
    with Progress(console=err) as progress:
        steps = ProgressBars(progress)

        async def erase_user_memories(recollect: Recollect) -> UserErasure:
            caller = await recollect.operator.act_for(tenant)
            return await recollect.operator.erasures.forget_user(caller, user, steps, dry_run=dry_run)

        erased = run(erase_user_memories)
    show_erasure(erased, dry_run=dry_run)


def show_erasure(erased: UserErasure, *, dry_run: bool) -> None:
    """Show the receipt of an erasure, or what a dry run counted."""
    table = Table("table", Column("rows", justify="right"))
    for name, rows in erased.removed.items():
        table.add_row(name, str(rows))
    out.print(table)
    where = "1 scope" if erased.scopes == 1 else f"{erased.scopes} scopes"
    done = f"is erased from {where}" if erased.erased_at else f"is erased from {where} so far, and a worker goes on"
    told = f"would be erased from {where}." if dry_run else f"{done}; receipt {erased.id}."
    told = told if erased.id or erased.scopes else "has nothing to erase."
    named = ", ".join(filter(None, (erased.agent, erased.user)))
    out.print(f"{named} {told}", highlight=False, markup=False)
