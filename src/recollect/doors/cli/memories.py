"""Commands for memories: remember, show, revise, pin and forget them."""

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
    MemoryIds,
    Steps,
    Tenant,
    User,
    Yes,
    err,
    find_id,
    find_ids,
    id_column,
    out,
    printing,
    read_filter,
    run,
    shorten_id,
    table_of,
    with_mind,
    with_options,
)
from recollect.doors.words import translate
from recollect.models.memories import IfNew, Kind, Memory, MemoryOrder, NewMemory, Page, Receipt, Revised, Revision
from recollect.models.recall import Filter

if TYPE_CHECKING:
    from recollect.mind.mind import Mind
    from recollect.mind.service import Recollect
    from recollect.models.imports import UserErasure

commands = typer.Typer()


class NewBy(StrEnum):
    """How to tell whether something is new."""

    SAME = "same"
    NEAR = "near"


def show_receipt(receipt: Receipt) -> None:
    """Show the id of a memory, and how far it has come."""
    out.print(f"{receipt.id} {'known' if receipt.known else receipt.progress}", highlight=False)


@commands.command()
@with_options(
    expires_at=Annotated[
        datetime | None, typer.Option(help="When to recall it no more, in UTC.", show_default="never")
    ],
    pin=Annotated[bool, typer.Option("--pin", help="Let every context show it.")],
    if_new=Annotated[
        NewBy | None, typer.Option(help="Only if it is not known: by the same text, or also by nearly the same terms.")
    ],
)
@printing(show_receipt)
def remember(
    content: Annotated[str, typer.Argument(help="What to remember.")],
    agent: Agent,
    user: User = "",
    kind: Annotated[Kind, typer.Option(help="What sort of thing it is.")] = Kind.EVENT,
    importance: Annotated[float | None, typer.Option(help="1 to 10; by rules if left out.")] = None,
    tenant: Tenant = "default",
    **chosen: Any,  # noqa: ANN401 - what `with_options` names
) -> Receipt:
    """Remember one thing."""
    expiry = chosen["expires_at"].replace(tzinfo=UTC) if chosen["expires_at"] else None
    memory = NewMemory(content, kind, importance=importance, expires_at=expiry, pinned=bool(chosen["pin"]))
    if_new: IfNew = chosen["if_new"].value if chosen["if_new"] else ""
    [receipt] = with_mind(agent, user, tenant, lambda mind: mind.remember(memory, if_new=if_new))
    return receipt


def show_memory(memory: Memory) -> None:
    """Show one memory, a field a line; what is empty is left out."""
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
def get_memory(memory_id: MemoryId, agent: Agent, user: User = "", tenant: Tenant = "default") -> Memory:
    """Show one memory with all its fields."""

    async def work(mind: Mind) -> Memory:
        return await mind.get(await find_id(mind, memory_id))

    return with_mind(agent, user, tenant, work)


def show_page(page: Page) -> None:
    """Show one page of memories, and how to go on."""
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


@commands.command("browse")
@with_options(
    after=Annotated[str | None, typer.Option(help="Go on behind this memory.", metavar="ID")],
    oldest=Annotated[bool | None, typer.Option("--oldest", help="The oldest first.", show_default="the newest")],
    **FILTER_OPTIONS,
)
@printing(show_page)
def browse_memories(
    agent: Agent,
    words: Annotated[str, typer.Argument(help="Only memories with these words.", show_default="all")] = "",
    user: User = "",
    limit: Annotated[int, typer.Option(help="Most to show.", min=1, max=200)] = 20,
    tenant: Tenant = "default",
    **given: Any,  # noqa: ANN401 - what `with_options` names
) -> Page:
    """List the memories of a scope, the newest first."""
    only, order = Filter(**read_filter(given)), MemoryOrder.OLDEST if given["oldest"] else MemoryOrder.NEWEST

    async def work(mind: Mind) -> Page:
        cursor = await find_id(mind, given["after"]) if given["after"] else None
        return await mind.browse(cursor, limit, only, order=order, words=words)

    return with_mind(agent, user, tenant, work)


def show_revised(found: Revised | list[Memory]) -> None:
    """Show what a revision did, or the versions of a memory."""
    if isinstance(found, Revised):
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
    keyword=Annotated[
        list[str] | None, typer.Option(help="A word to file it under, in place of the others; repeat for more.")
    ],
    topic=Annotated[str | None, typer.Option(help="The topic to file it under.", show_default="as it is")],
    pin=Annotated[bool | None, typer.Option("--pin/--no-pin", help="Whether every context shows it.")],
    versions=Annotated[bool | None, typer.Option("--versions", help="Only show its versions.")],
)
@printing(show_revised)
def revise(
    memory_id: MemoryId,
    agent: Agent,
    content: Annotated[str, typer.Argument(help="What is remembered from now on.")] = "",
    user: User = "",
    tenant: Tenant = "default",
    **chosen: Any,  # noqa: ANN401 - what `with_options` names
) -> Revised | list[Memory]:
    """Add a version of a memory in place of the current one, or show its versions."""
    revision = Revision(
        content or None,
        chosen["importance"],
        keywords=tuple(chosen["keyword"]) if chosen["keyword"] else None,
        topic=chosen["topic"],
        pinned=chosen["pin"],
    )

    async def work(mind: Mind) -> Revised | list[Memory]:
        found = await find_id(mind, memory_id)
        return await mind.versions(found) if chosen["versions"] else await mind.revise(found, revision)

    return with_mind(agent, user, tenant, work)


@commands.command()
def pin(
    ids: MemoryIds,
    agent: Agent,
    user: User = "",
    off: Annotated[bool, typer.Option("--off", help="Let them go again.")] = False,
    tenant: Tenant = "default",
) -> None:
    """Let every context show memories, before what is recalled; or no longer."""

    async def work(mind: Mind) -> list[UUID]:
        return await mind.pin(await find_ids(mind, ids), pinned=not off)

    found = with_mind(agent, user, tenant, work)
    said = "{count} of {all} memories are no longer pinned." if off else "{count} of {all} memories are pinned."
    out.print(translate(said, count=len(found), all=len(ids)), highlight=False)


@commands.command()
@with_options(
    yes=Yes,
    all_agents=Annotated[bool | None, typer.Option("--all-agents", help="All of the user, whatever agent it is of.")],
    **FILTER_OPTIONS,
)
def forget(
    agent: Annotated[str, typer.Option(help="Whose memory it is.")] = "",
    ids: Annotated[list[str] | None, typer.Argument(help="Ids of memories; or none, and a filter.")] = None,
    user: User = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count what would be deleted.")] = False,
    tenant: Tenant = "default",
    **given: Any,  # noqa: ANN401 - what `with_options` names
) -> None:
    """Delete memories for good, by their ids or all that the options admit, with all that was derived from them."""
    only = Filter(**read_filter(given))
    if given["all_agents"]:
        if agent or ids or only.named:
            raise typer.BadParameter("--all-agents erases the user: it takes no agent, ids or filter")
        erase_user(user, tenant, dry_run=dry_run, yes=bool(given["yes"]))
        return
    if not agent:
        raise typer.BadParameter("name --agent, or --user with --all-agents")
    if not (dry_run or given["yes"]):
        typer.confirm(translate("Delete them for good?"), abort=True, err=True)

    async def work(mind: Mind) -> list[UUID]:
        return await mind.forget(await find_ids(mind, ids), only, dry_run=dry_run)

    gone = with_mind(agent, user, tenant, work)
    said = "{count} memories would be forgotten." if dry_run else "{count} memories are forgotten."
    out.print(translate(said, count=len(gone)), highlight=False)


def erase_user(user: str, tenant: str, *, dry_run: bool, yes: bool) -> None:
    """Erase a user over all agents, or only count what would go, and show the receipt."""
    if not (dry_run or yes):
        typer.confirm(f"Erase everything of {user}, over all agents, for good?", abort=True, err=True)
    with Progress(console=err) as progress:
        steps = Steps(progress)

        async def work(recollect: Recollect) -> UserErasure:
            caller = await recollect.operator.act_for(tenant)
            return await recollect.operator.erasures.forget_user(caller, user, steps, dry_run=dry_run)

        erased = run(work)
    table = Table("table", Column("rows", justify="right"))
    for name, rows in erased.removed.items():
        table.add_row(name, str(rows))
    out.print(table)
    where = "1 scope" if erased.scopes == 1 else f"{erased.scopes} scopes"
    done = f"is erased from {where}" if erased.erased_at else f"is erased from {where} so far, and a worker goes on"
    told = f"would be erased from {where}." if dry_run else f"{done}; receipt {erased.id}."
    out.print(f"{user} {told}", highlight=False, markup=False)
