"""Commands for what becomes of conversations: list and move them, see what is due, and scrub the data files."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Annotated

import typer
from rich.filesize import decimal
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table

from recollect.doors.terminal import Agent, Tenant, User, err, out, run, with_mind
from recollect.errors import UnavailableError
from recollect.mind.conversations import ConversationView
from recollect.mind.mind import Mind
from recollect.mind.service import Recollect
from recollect.models.conversations import Conversation, ConversationState, PurgeReceipt
from recollect.models.knowledge import StoredSegment

app = typer.Typer(help="Look after conversations, from the first word to the last.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(help="The conversation's id.")]
State = Annotated[
    ConversationState | None,
    typer.Option(help="active, archived, deleted or purging.", show_default="active, archived"),
]
Limit = Annotated[int, typer.Option(help="Most to show.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")]


@app.command("list")
def list_conversations(
    agent: Agent, user: User = "", state: State = None, limit: Limit = 50, tenant: Tenant = "default"
) -> None:
    """List a scope's conversations, the latest first."""
    found = with_mind(agent, user, tenant, lambda mind: mind.conversations(state, limit=limit))
    table = Table("conversation", "name", "state", "messages", "last message", "in this state since")
    for each in found.conversations:
        times = (f"{each.updated_at:%F %R}", f"{each.changed_at:%F %R}")
        table.add_row(each.id, escape(each.name), each.state, str(each.message_count), *times)
    out.print(table if table.row_count else "nothing found")


@app.command()
def show(conversation: Name, agent: Agent, user: User = "", tenant: Tenant = "default") -> None:
    """Show what is known of one conversation, whatever its state."""
    found = with_mind(agent, user, tenant, lambda mind: mind.conversation(conversation).read())
    table = Table("conversation", escape(found.id))
    table.add_row("name", escape(found.name))
    table.add_row("state", f"{found.state} since {found.changed_at:%F %T}")
    table.add_row("messages", str(found.message_count))
    table.add_row("begun", f"{found.created_at:%F %T}")
    table.add_row("last message", f"{found.updated_at:%F %T}")
    table.add_row("metadata", escape(json.dumps(dict(found.metadata), ensure_ascii=False)))
    out.print(table)


@app.command()
def segments(
    conversation: Name,
    agent: Agent,
    user: User = "",
    close: Annotated[bool, typer.Option("--close", help="End the topic that is still running.")] = False,  # noqa: FBT002
    tenant: Tenant = "default",
) -> None:
    """Show where a conversation's topics ended, and what became of each."""

    async def work(mind: Mind) -> list[StoredSegment]:
        talk = mind.conversation(conversation)
        return await (talk.close_segment() if close else talk.segments())

    table = Table("messages", "label", "ended by", "state", "closed")
    for each in with_mind(agent, user, tenant, work):
        state = f"{each.state}: {each.reason}" if each.reason else each.state
        numbers = f"{each.first_number}-{each.last_number}"
        table.add_row(numbers, escape(each.label), each.ending, escape(state), f"{each.closed_at:%F %R}")
    out.print(table if table.row_count else "No topic has ended yet.")


@app.command()
def archive(conversation: Name, agent: Agent, user: User = "", tenant: Tenant = "default") -> None:
    """Take a conversation out of recall; it stays readable, and the next message brings it back."""
    tell(move(agent, user, tenant, conversation, ConversationView.archive))


@app.command()
def restore(conversation: Name, agent: Agent, user: User = "", tenant: Tenant = "default") -> None:
    """Bring an archived or deleted conversation back as it was."""
    tell(move(agent, user, tenant, conversation, ConversationView.restore))


@app.command()
def delete(conversation: Name, agent: Agent, user: User = "", tenant: Tenant = "default") -> None:
    """Make a conversation invisible, with all that was derived from it; it can be restored until it is purged."""
    tell(move(agent, user, tenant, conversation, ConversationView.delete))


@app.command()
def purge(
    conversation: Name,
    agent: Agent,
    user: User = "",
    yes: Yes = False,  # noqa: FBT002 - a flag
    tenant: Tenant = "default",
) -> None:
    """Erase a conversation for good and show the receipt; nothing brings it back."""
    if not yes:
        typer.confirm(f"Erase {conversation} for good?", abort=True, err=True)

    async def finish(talk: ConversationView) -> Conversation:
        before = await talk.read()
        await talk.purge()
        return before

    move(agent, user, tenant, conversation, finish)
    receipts(agent, user, conversation, 1, tenant)


@app.command()
def receipts(
    agent: Agent,
    user: User = "",
    conversation: Annotated[str, typer.Option(help="Only of this conversation.", show_default="all")] = "",
    limit: Limit = 50,
    tenant: Tenant = "default",
) -> None:
    """List what purges removed, the latest first."""
    found: list[PurgeReceipt] = with_mind(
        agent, user, tenant, lambda mind: mind.conversation(conversation).receipts(limit)
    )
    table = Table("conversation", "asked by", "begun", "finished", "removed")
    for each in found:
        finished = f"{each.finished_at:%F %T}" if each.finished_at else "under way"
        removed = ", ".join(f"{count} {what}" for what, count in sorted(each.removed.items()) if count)
        table.add_row(each.conversation, escape(each.asked_by), f"{each.begun_at:%F %T}", finished, removed)
    out.print(table if table.row_count else "nothing was purged")


@app.command()
def retain(dry_run: DryRun = False) -> None:  # noqa: FBT002 - a flag
    """Move on, in every tenant, what nobody used for as long as the rules say, now and not by a worker."""

    async def work(recollect: Recollect) -> None:
        due = await recollect.operator.retain(dry_run=True)
        table = Table("agent", "user", "conversation", "is", "becomes", "messages", "idle since")
        for each in due:
            place = (escape(each.agent), escape(each.user), each.conversation)
            numbers = (str(each.message_count), f"{each.idle_since:%F %R}")
            table.add_row(*place, each.state, each.becomes, *numbers)
        out.print(table if due else "Nothing is due.")
        if due and not dry_run:
            with Progress(console=err) as progress:
                task = progress.add_task("moving on", total=len(due))
                await recollect.operator.retain(lambda done: progress.update(task, completed=done))

    run(work)


def scrub(dry_run: DryRun = False) -> None:  # noqa: FBT002 - a flag
    """Rewrite every table that can hold content, so that no erased byte is left in the data files.

    Each table is locked while it is rewritten: whoever reads or writes it waits. A plain vacuum would not do: it only
    marks the place of erased rows as free, and their bytes stay there until something else is written over them.
    """

    async def work(recollect: Recollect) -> None:
        listed = await recollect.operator.scrub(lambda _: None, dry_run=True)
        table = Table("table", "size")
        for each in listed.tables:
            table.add_row(each.name, decimal(each.bytes))
        out.print(table)
        if dry_run:
            return
        with Progress(console=err) as progress:
            task = progress.add_task("rewriting", total=len(listed.tables))
            done = await recollect.operator.scrub(lambda _: progress.advance(task))
        for name, problem in done.left:
            err.print(f"{name}: {problem}", highlight=False, soft_wrap=True)
        if done.left:
            raise UnavailableError("Erased content may be left in the data files; mend the above and scrub again.")
        out.print("Scrubbed. The write-ahead log, backups and replicas are yours to see to.")

    run(work)


def move(
    agent: str,
    user: str,
    tenant: str,
    conversation: str,
    verb: Callable[[ConversationView], Awaitable[Conversation]],
) -> Conversation:
    """Change a conversation's state, and stay until its memories have followed."""

    async def work(recollect: Recollect) -> Conversation:
        mind = await recollect.mind(agent, user, tenant=tenant)
        found = await verb(mind.conversation(conversation))
        with Progress(console=err, transient=True) as progress:
            task = progress.add_task("moving memories", total=None)
            await recollect.operator.settle(mind, lambda messages: progress.advance(task, messages))
        return found

    return run(work)


def tell(found: Conversation) -> None:
    """Say where a conversation stands."""
    out.print(f"{found.id} is {found.state}", highlight=False)
