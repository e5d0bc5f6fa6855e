"""Talk in a terminal, and see for every line what its prompt was put together from."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack, suppress
from dataclasses import asdict
from typing import Annotated, Any, TypeVar

import typer
from rich.markup import escape
from rich.table import Table

from recollect.doors import recalled
from recollect.doors.terminal import Agent, Tenant, User, err, out
from recollect.errors import ConflictError, NotFoundError, RecollectError
from recollect.mind.conversations import ConversationView
from recollect.models.conversations import Context, ConversationState, NewMessage, Window
from recollect.models.memories import Role
from recollect.models.recall import Recollection
from recollect.settings import Settings
from recollect.wiring import open_recollect

T = TypeVar("T")
Run = Callable[[Coroutine[Any, Any, T]], T]
BAR = 40
MOST_SHOWN = 10
HELP = "/history shows the thread, /leaves where its branches end, /quit ends; everything else is said."
SILENT = "No chat model is configured (RECOLLECT_CHAT_URL): type the answer yourself, or leave the line empty."


def chat(
    agent: Agent,
    user: User = "",
    conversation: Annotated[str, typer.Option(help="Your name for the conversation.")] = "chat",
    budget: Annotated[int, typer.Option(help="Most tokens in a prompt.")] = 4_000,
    tenant: Tenant = "default",
) -> None:
    """Talk, and see how each prompt is assembled: what is recalled, how much history, and what each costs."""
    settings = Settings()
    # Lines are awaited outside of the event loop, where Ctrl-C ends the program at once.
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        try:
            recollect = runner.run(stack.enter_async_context(open_recollect(settings)))
            view = runner.run(recollect.mind(agent, user, tenant=tenant)).conversation(conversation)
            runner.run(check(view))
            out.print(HELP if settings.chat_url else f"{HELP}\n{SILENT}", highlight=False)
            while (line := hear("you")) not in {None, "/quit"}:
                respond(runner.run, view, line or "", budget, answering=bool(settings.chat_url))
        except KeyboardInterrupt:
            out.print()
        finally:
            runner.run(stack.aclose())


async def check(view: ConversationView) -> None:
    """Find out before the first word whether there can be one."""
    with suppress(NotFoundError):
        state = (await view.read()).state
        if state in {ConversationState.DELETED, ConversationState.PURGING}:
            raise ConflictError(f"This conversation is {state}: restore it with `recollect conversations restore`.")


def hear(who: str) -> str | None:
    """Read one line; None at the end of the input."""
    try:
        line = out.input(f"[bold]{who}>[/bold] ")
    except EOFError:
        out.print()
        return None
    if not sys.stdin.isatty():
        out.print(escape(line), highlight=False)
    return line.strip()


def respond(run: Run[Any], view: ConversationView, line: str, budget: int, *, answering: bool) -> None:
    """Do what a line asks for; an error of ours does not end the talk, unless nobody sits there to read it."""
    try:
        obey(run, view, line, budget, answering=answering)
    except NotFoundError:
        out.print("nothing was said yet")
    except RecollectError as problem:
        if not sys.stdin.isatty():
            raise
        err.print(f"[red]{problem.code}[/red]: {escape(str(problem))}", highlight=False, soft_wrap=True)


def obey(run: Run[Any], view: ConversationView, line: str, budget: int, *, answering: bool) -> None:
    """Show what a command asks for; all else is said, and answered by the chat model or by hand."""
    if line == "/history":
        run(show_history(view, budget))
    elif line == "/leaves":
        run(show_leaves(view))
    elif line.startswith("/"):
        out.print(HELP, highlight=False)
    elif line and answering:
        reply = run(view.converse(line, budget, report=show))
        out.print(f"[bold]assistant>[/bold] {escape(reply.answer)}", highlight=False)
    elif line:
        answer_by_hand(run, view, line, budget)


def answer_by_hand(run: Run[Any], view: ConversationView, line: str, budget: int) -> None:
    """Show the prompt, and append what was said with the answer that is typed, if there is one."""
    context: Context = run(view.context(line, budget))
    show(context)
    answer = hear("assistant")
    said = [] if context.asked else [NewMessage(Role.USER, line)]
    said += [NewMessage(Role.ASSISTANT, answer, parent=None if said else context.asked)] if answer else []
    if said:
        run(view.append(said))


def show(context: Context) -> None:
    """Show what a prompt was put together from."""
    spending = asdict(context.spending)
    budget, total = spending.pop("budget"), spending.pop("total")
    table = Table("part", "tokens", "", caption=f"{total} of {budget} tokens, {context.history.tokenizer}")
    for part, tokens in spending.items():
        table.add_row(part, str(tokens), "█" * round(BAR * tokens / budget))
    table.add_row("unused", str(budget - total), "░" * round(BAR * (budget - total) / budget))
    out.print(table)
    if context.hits:
        out.print(recalled.to_table(Recollection(context.hits[:MOST_SHOWN], context.methods)))
    turns = len({message.turn for message in context.history.messages})
    whole = "all of the thread" if context.history.complete else "the newest ones"
    history = f"{turns} turn{'s' * (turns > 1)} of history, {whole}" if turns else "no history"
    summary = "a summary" if context.summary else "no summary"
    best = f", the best {MOST_SHOWN} above" if len(context.hits) > MOST_SHOWN else ""
    out.print(f"{history}; {len(context.hits)} memories{best}; {summary}", highlight=False)


async def show_history(view: ConversationView, budget: int) -> None:
    """Show as much of the thread as fits the budget."""
    history = await view.history(Window(budget, unanswered=True, prefixes=("you", "assistant")))
    out.print(escape(history.text), highlight=False, soft_wrap=True)
    out.print(f"{history.tokens} tokens", highlight=False)


async def show_leaves(view: ConversationView) -> None:
    """Show where the threads end."""
    table = Table("number", "who", "when", "how it begins")
    for leaf in await view.leaves():
        table.add_row(str(leaf.number), leaf.role.value, f"{leaf.occurred_at:%F %R}", escape(leaf.content))
    out.print(table)
