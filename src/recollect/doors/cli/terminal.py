"""What every command shares: options, the two consoles, progress bars, and an open Recollect."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from datetime import UTC, datetime
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.progress import Progress, TaskID

from recollect.mind.mind import Mind
from recollect.mind.service import Recollect
from recollect.models.memories import Kind, RecallState, Role
from recollect.settings import Settings
from recollect.wiring import list_servers, open_recollect

T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., None])
STOPS = (signal.SIGINT, signal.SIGTERM)
out, err = Console(), Console(stderr=True)

Agent = Annotated[str, typer.Option(help="Whose memory it is.")]
User = Annotated[str, typer.Option(help="Whom it is about or with.")]
Tenant = Annotated[str, typer.Option(help="Which tenant's.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
MOMENTS = ("since", "until", "as_of", "at")
"""Options with a time without an offset, which means UTC."""
Names = list[str] | None
FILTER_OPTIONS: dict[str, object] = {
    "kinds": Annotated[list[Kind] | None, typer.Option(help="Only this kind; repeat for more.", show_default="all")],
    "conversations": Annotated[Names, typer.Option(help="Only messages of this conversation; repeat for more.")],
    "roles": Annotated[list[Role] | None, typer.Option(help="Only messages of this role; repeat for more.")],
    "speakers": Annotated[Names, typer.Option(help="Only what this one said; repeat for more.")],
    "origins": Annotated[Names, typer.Option(help="Only what came in by this way; repeat for more.")],
    "topics": Annotated[
        Names, typer.Option(help="What is filed under this topic, as travel->Japan, first; repeat for more.")
    ],
    "below": Annotated[bool | None, typer.Option("--below", help="Count what lies below these topics.")],
    "topics_only": Annotated[bool | None, typer.Option("--topics-only", help="Only what is filed under these topics.")],
    "since": Annotated[datetime | None, typer.Option(help="Only what happened then or later, in UTC.")],
    "until": Annotated[datetime | None, typer.Option(help="Only what happened before, in UTC.")],
    "min_trust": Annotated[int | None, typer.Option(help="Only what is trusted so much.", show_default="0")],
    "min_importance": Annotated[float | None, typer.Option(help="Only what is so important.", show_default="0")],
    "as_of": Annotated[datetime | None, typer.Option(help="By what was believed then, in UTC.", show_default="now")],
    "at": Annotated[
        datetime | None, typer.Option(help="By what was true then, in UTC.", show_default="what is not over")
    ],
    "pinned": Annotated[
        bool | None, typer.Option("--pinned/--not-pinned", help="Only what is pinned, or is not.", show_default="both")
    ],
    "state": Annotated[RecallState | None, typer.Option(help="Only what is in this state.", show_default="current")],
    "where": Annotated[
        Names, typer.Option(help="A condition on metadata, as project==alpha; repeat for more.", metavar="CONDITION")
    ],
}


class Steps:
    """Bars that appear as the steps of a command begin."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, step: str, done: int, total: int) -> None:
        """Show the progress of a step."""
        if step not in self._tasks:
            self._tasks[step] = self._progress.add_task(step, total=total)
        self._progress.update(self._tasks[step], completed=done, total=total)


def run(work: Callable[[Recollect], Awaitable[T]]) -> T:
    """Open Recollect for one command."""

    async def opened() -> T:
        async with open_recollect(Settings(), work=False) as recollect:
            return await work(recollect)

    return asyncio.run(opened())


def run_on_each(work: Callable[[Recollect], Awaitable[T]]) -> list[T]:
    """Open Recollect for one command on each server alone: what the owner of the tables does is done on all of them."""

    async def opened() -> list[T]:
        outcomes: list[T] = []
        for settings in await list_servers(Settings()):
            async with open_recollect(settings, work=False) as recollect:
                outcomes.append(await work(recollect))
        return outcomes

    return asyncio.run(opened())


def with_mind(agent: str, user: str, tenant: str, work: Callable[[Mind], Coroutine[Any, Any, T]]) -> T:
    """Open one scope for one command."""

    async def opened(recollect: Recollect) -> T:
        return await work(await recollect.mind(agent, user, tenant=tenant))

    return run(opened)


def with_options(**options: object) -> Callable[[Command], Command]:
    """Give a command options beyond its parameters; those that are given reach it by name, the others as None."""
    added = [Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=kind) for name, kind in options.items()]

    def extend(command: Command) -> Command:
        named = signature(command, eval_str=True).parameters.values()
        own = [parameter for parameter in named if parameter.kind is not Parameter.VAR_KEYWORD]
        command.__dict__["__signature__"] = Signature([*own, *added])
        return command

    return extend


def read_filter(given: Mapping[str, Any]) -> dict[str, Any]:
    """Turn options into fields of a filter; what is not given has its default."""
    chosen = {name: given[name] for name in FILTER_OPTIONS if given.get(name) not in (None, [])}
    moments = {name: chosen[name].replace(tzinfo=UTC) for name in MOMENTS if name in chosen}
    return {name: tuple(each) if isinstance(each, list) else each for name, each in chosen.items()} | moments


def stop_on_signals(stop: Callable[[], object]) -> None:
    """Call `stop` on SIGINT and SIGTERM, inside the running loop."""
    for number in STOPS:
        asyncio.get_running_loop().add_signal_handler(number, stop)


def leave_signals() -> None:
    """Let SIGINT and SIGTERM end the process again."""
    for number in STOPS:
        asyncio.get_running_loop().remove_signal_handler(number)
