"""What every command shares: options, the two consoles, progress bars, and an open Recollect."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Coroutine
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.progress import Progress, TaskID

from recollect.mind.mind import Mind
from recollect.mind.service import Recollect
from recollect.settings import Settings
from recollect.wiring import open_recollect

T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., None])
STOPS = (signal.SIGINT, signal.SIGTERM)
out, err = Console(), Console(stderr=True)

Agent = Annotated[str, typer.Option(help="Whose memory it is.")]
User = Annotated[str, typer.Option(help="Whom it is about or with.")]
Tenant = Annotated[str, typer.Option(help="Which tenant's.")]


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
        async with open_recollect(Settings()) as recollect:
            return await work(recollect)

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


def stop_on_signals(stop: Callable[[], object]) -> None:
    """Call `stop` on SIGINT and SIGTERM, inside the running loop."""
    for number in STOPS:
        asyncio.get_running_loop().add_signal_handler(number, stop)


def leave_signals() -> None:
    """Let SIGINT and SIGTERM end the process again."""
    for number in STOPS:
        asyncio.get_running_loop().remove_signal_handler(number)
