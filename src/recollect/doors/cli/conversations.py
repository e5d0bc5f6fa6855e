"""Commands for conversations: list them, change their state, and chat with the memory."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import asdict
from functools import partial
from typing import Annotated, Any, TypeVar

import typer
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table

from recollect.client.client import Client
from recollect.doors.cli import recall
from recollect.doors.cli.terminal import (
    Agent,
    Tenant,
    User,
    Yes,
    err,
    on_mind,
    out,
    printing,
    run,
    table_of,
    with_mind,
    with_service,
)
from recollect.doors.greeting import translate
from recollect.errors import ConflictError, NotFoundError, RecollectError
from recollect.mind.conversations import Conversation
from recollect.mind.mind import Mind
from recollect.mind.service import Recollect
from recollect.models.conversations import (
    Context,
    ConversationInfo,
    ConversationPage,
    ConversationState,
    HistoryOptions,
    ListedReceipt,
    NewMessage,
    PurgeReceiptPage,
)
from recollect.models.knowledge import SegmentRecord
from recollect.models.memories import Role
from recollect.models.recall import RecallResult
from recollect.settings import Settings
from recollect.wiring import open_recollect

commands = typer.Typer()

app = typer.Typer(help="Manage conversations.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(help="Conversation ID.")]
State = Annotated[
    ConversationState | None,
    typer.Option(help="active, archived, deleted or purging.", show_default="active, archived"),
]
Limit = Annotated[int, typer.Option(help="Maximum number of results.")]
CountOnly = Annotated[bool, typer.Option("--dry-run", help="Only count what would be deleted.")]
T = TypeVar("T")
Run = Callable[[Coroutine[Any, Any, T]], T]
ARCHIVE, RESTORE = (partial(Conversation.update, state=state) for state in ("archived", "active"))
BAR = 40
MAX_LISTED = 10
HELP = "/history: show the thread; /leaves: list branches; /quit: exit. Anything else is sent as a message."
SILENT = "No chat model is configured (RECOLLECT_CHAT_URL): type the answer yourself, or leave the line empty."


def show_conversations(found: ConversationPage) -> None:
    """Show conversations, the latest first."""
    table = table_of("conversation", "name", "state", "messages", "last message", "in this state since")
    for each in found.conversations:
        times = (f"{each.updated_at:%F %R}", f"{each.changed_at:%F %R}")
        table.add_row(each.id, escape(each.name), each.state, str(each.message_count), *times)
    out.print(table if table.row_count else translate("nothing found"))


@app.command("list")
@printing(show_conversations)
@on_mind
async def list_conversations(mind: Mind, state: State = None, limit: Limit = 50) -> ConversationPage:
    """List conversations, newest first."""
    return await mind.conversations(state, limit=limit)


def show_conversation(found: ConversationInfo) -> None:
    """Show one conversation."""
    table = table_of("conversation", escape(found.id))
    table.add_row("name", escape(found.name))
    table.add_row("state", f"{found.state} since {found.changed_at:%F %T}")
    table.add_row("messages", str(found.message_count))
    table.add_row("begun", f"{found.created_at:%F %T}")
    table.add_row("last message", f"{found.updated_at:%F %T}")
    table.add_row("metadata", escape(json.dumps(dict(found.metadata), ensure_ascii=False)))
    out.print(table)


@app.command()
@printing(show_conversation)
@on_mind
async def show(mind: Mind, conversation: Name) -> ConversationInfo:
    """Show a conversation, whatever its state."""
    return await mind.conversation(conversation).get(0)


def show_segments(found: list[SegmentRecord]) -> None:
    """Show where topics ended."""
    table = table_of("messages", "label", "ended by", "state", "closed")
    for each in found:
        state = f"{each.state}: {each.reason}" if each.reason else each.state
        numbers = f"{each.first_number}-{each.last_number}"
        table.add_row(numbers, escape(each.label), each.ending, escape(state), f"{each.closed_at:%F %R}")
    out.print(table if table.row_count else translate("No topic has ended yet."))


@app.command()
@printing(show_segments)
@on_mind
async def segments(
    mind: Mind,
    conversation: Name,
    close: Annotated[bool, typer.Option("--close", help="Close the open segment.")] = False,
) -> list[SegmentRecord]:
    """List the topic segments of a conversation and their status."""
    view = mind.conversation(conversation)
    if close:
        await view.update(close_segment=True)
    return await view.segments(200)


@app.command()
def archive(conversation: Name, agent: Agent, user: User = "", tenant: Tenant = "default") -> None:
    """Exclude a conversation from recall. It stays readable; a new message reactivates it."""
    describe_state(move(agent, user, tenant, conversation, ARCHIVE))


@app.command()
def restore(conversation: Name, agent: Agent, user: User = "", tenant: Tenant = "default") -> None:
    """Restore an archived or deleted conversation."""
    describe_state(move(agent, user, tenant, conversation, RESTORE))


@app.command()
def delete(
    conversation: Name, agent: Agent, user: User = "", dry_run: CountOnly = False, tenant: Tenant = "default"
) -> None:
    """Delete a conversation and everything derived from it. You can restore it until it is purged."""
    if dry_run:
        found = with_mind(agent, user, tenant, lambda mind: mind.conversation(conversation).delete(dry_run=True))
        print_counts("{counts} would go out of sight.", found.hidden)
        return
    describe_state(move(agent, user, tenant, conversation, Conversation.delete))


@app.command()
def purge(
    conversation: Name,
    agent: Agent,
    user: User = "",
    dry_run: CountOnly = False,
    yes: Yes = False,
    tenant: Tenant = "default",
) -> None:
    """Erase a conversation permanently and show the receipt."""
    if dry_run:
        foreseen = with_mind(agent, user, tenant, lambda mind: mind.conversation(conversation).purge(dry_run=True))
        print_counts("{counts} would be erased.", foreseen.removed)
        return
    if not yes:
        typer.confirm(translate("Erase {conversation} for good?", conversation=conversation), abort=True, err=True)

    async def finish(view: Conversation) -> ConversationInfo:
        before = await view.get(0)
        await view.purge()
        return before

    move(agent, user, tenant, conversation, finish)
    show_receipts(read_receipts(agent, user, tenant, conversation, 1))


def show_receipts(found: Sequence[ListedReceipt]) -> None:
    """Show what purges removed."""
    table = table_of("conversation", "asked by", "begun", "finished", "removed")
    for each in found:
        finished = f"{each.finished_at:%F %T}" if each.finished_at else "under way"
        removed = describe_counts(each.removed)
        table.add_row(each.conversation, escape(each.asked_by), f"{each.begun_at:%F %T}", finished, removed)
    out.print(table if table.row_count else translate("nothing was purged"))


@app.command()
@printing(show_receipts)
def receipts(
    agent: Agent,
    user: User = "",
    conversation: Annotated[str, typer.Option(help="Only receipts of this conversation.", show_default="all")] = "",
    limit: Limit = 50,
    tenant: Tenant = "default",
) -> Sequence[ListedReceipt]:
    """List purge receipts, newest first."""
    return read_receipts(agent, user, tenant, conversation, limit)


def read_receipts(agent: str, user: str, tenant: str, conversation: str, limit: int) -> Sequence[ListedReceipt]:
    """Read receipts on the server that runs, else in the database."""

    async def ask(client: Client) -> PurgeReceiptPage:
        return await client.receipts(agent, user, conversation=conversation, limit=limit)

    async def look(recollect: Recollect) -> PurgeReceiptPage:
        return await recollect.receipts(agent, user, conversation=conversation, limit=limit, tenant=tenant)

    return with_service(tenant, ask, look).receipts


def describe_counts(counts: Mapping[str, int]) -> str:
    """Write how much there is of what, without what there is none of."""
    return ", ".join(f"{count} {what}" for what, count in sorted(counts.items()) if count)


def print_counts(said: str, counts: Mapping[str, int]) -> None:
    """Print the counts of a dry run."""
    out.print(translate(said, counts=describe_counts(counts) or "0"), highlight=False, soft_wrap=True)


def move(
    agent: str,
    user: str,
    tenant: str,
    conversation: str,
    verb: Callable[[Conversation], Awaitable[ConversationInfo]],
) -> ConversationInfo:
    """Change a conversation's state, and wait until its memories have followed."""

    async def move_conversation(recollect: Recollect) -> ConversationInfo:
        mind = await recollect.mind(agent, user, tenant=tenant)
        found = await verb(mind.conversation(conversation))
        with Progress(console=err, transient=True) as progress:
            task = progress.add_task("moving memories", total=None)
            await recollect.operator.sync_states(mind, lambda messages: progress.advance(task, messages))
        return found

    return run(move_conversation)


def describe_state(found: ConversationInfo) -> None:
    """Print the state of a conversation."""
    out.print(f"{found.id} is {found.state}", highlight=False)


@commands.command()
def chat(
    agent: Agent,
    user: User = "",
    conversation: Annotated[str, typer.Option(help="Conversation ID.")] = "chat",
    budget: Annotated[int, typer.Option(help="Token budget of each prompt.")] = 4_000,
    tenant: Tenant = "default",
) -> None:
    """Chat in the terminal and see how each prompt is built."""
    settings = Settings()
    # Lines are awaited outside of the event loop, where Ctrl-C ends the program at once.
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        try:
            recollect = runner.run(stack.enter_async_context(open_recollect(settings, work=False)))
            view = runner.run(recollect.mind(agent, user, tenant=tenant)).conversation(conversation)
            runner.run(check(view))
            told = (HELP,) if settings.chat_url else (HELP, SILENT)
            out.print("\n".join(map(translate, told)), highlight=False)
            while (line := read_input("you")) not in {None, "/quit"}:
                respond(runner.run, view, line or "", budget, answering=bool(settings.chat_url))
        except KeyboardInterrupt:
            out.print()
        finally:
            runner.run(stack.aclose())


async def check(view: Conversation) -> None:
    """Check before the first message whether there can be a chat."""
    with suppress(NotFoundError):
        state = (await view.get(0)).state
        if state in {ConversationState.DELETED, ConversationState.PURGING}:
            raise ConflictError(
                f"This conversation is {state}: restore it with `recollect mind conversations restore`."
            )


def read_input(who: str) -> str | None:
    """Read one line; None at the end of the input."""
    try:
        line = out.input(f"[bold]{who}>[/bold] ")
    except EOFError:
        out.print()
        return None
    if not sys.stdin.isatty():
        out.print(escape(line), highlight=False)
    return line.strip()


def respond(run: Run[Any], view: Conversation, line: str, budget: int, *, answering: bool) -> None:
    """Do what a line asks for; an error of ours does not end the chat, unless the input is not a terminal."""
    try:
        run_chat_command(run, view, line, budget, answering=answering)
    except NotFoundError:
        out.print(translate("nothing was said yet"))
    except RecollectError as problem:
        if not sys.stdin.isatty():
            raise
        err.print(f"[red]{problem.code}[/red]: {escape(str(problem))}", highlight=False, soft_wrap=True)


def run_chat_command(run: Run[Any], view: Conversation, line: str, budget: int, *, answering: bool) -> None:
    """Run a command; any other line is a message, answered by the chat model or by hand."""
    if line == "/history":
        run(show_history(view, budget))
    elif line == "/leaves":
        run(show_leaves(view))
    elif line.startswith("/"):
        out.print(translate(HELP), highlight=False)
    elif line and answering:
        reply = run(view.chat(line, budget, report=show_prompt))
        out.print(f"[bold]assistant>[/bold] {escape(reply.answer)}", highlight=False)
    elif line:
        answer_by_hand(run, view, line, budget)


def answer_by_hand(run: Run[Any], view: Conversation, line: str, budget: int) -> None:
    """Show the prompt, and append the message with the typed answer, if there is one."""
    context: Context = run(view.context(line, budget))
    show_prompt(context)
    answer = read_input("assistant")
    said = [] if context.asked else [NewMessage(Role.USER, line)]
    said += [NewMessage(Role.ASSISTANT, answer, parent=None if said else context.asked)] if answer else []
    if said:
        run(view.append(said))


def show_prompt(context: Context) -> None:
    """Show the parts of a prompt."""
    spending = asdict(context.spending)
    budget, total = spending.pop("budget"), spending.pop("total")
    table = Table("part", "tokens", "", caption=f"{total} of {budget} tokens, {context.history.tokenizer}")
    for part, tokens in spending.items():
        table.add_row(part, str(tokens), "█" * round(BAR * tokens / budget))
    table.add_row("unused", str(budget - total), "░" * round(BAR * (budget - total) / budget))
    out.print(table)
    if context.hits:
        out.print(recall.to_table(RecallResult(context.hits[:MAX_LISTED], context.methods)))
    turns = len({message.turn for message in context.history.messages})
    whole = "all of the thread" if context.history.complete else "the newest ones"
    history = f"{turns} turn{'s' * (turns > 1)} of history, {whole}" if turns else "no history"
    summary = "a summary" if context.summary else "no summary"
    best = f", the best {MAX_LISTED} above" if len(context.hits) > MAX_LISTED else ""
    out.print(f"{history}; {len(context.hits)} memories{best}; {summary}", highlight=False)


async def show_history(view: Conversation, budget: int) -> None:
    """Show as much of the thread as fits the budget."""
    history = await view.history(
        HistoryOptions(budget, unanswered=True, user_prefix="you", assistant_prefix="assistant")
    )
    out.print(escape(history.text), highlight=False, soft_wrap=True)
    out.print(f"{history.tokens} tokens", highlight=False)


async def show_leaves(view: Conversation) -> None:
    """Show the ends of the threads."""
    table = Table("number", "who", "when", "how it begins")
    for leaf in (await view.get()).threads:
        table.add_row(str(leaf.number), leaf.role.value, f"{leaf.occurred_at:%F %R}", escape(leaf.content))
    out.print(table)


commands.add_typer(app, name="conversations")
