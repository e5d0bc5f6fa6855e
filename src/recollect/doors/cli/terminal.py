"""Parts that every command shares: options, the two consoles, tables and JSON, and a server or database to ask."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from datetime import UTC, datetime
from functools import wraps
from inspect import Parameter, Signature, signature
from types import GenericAlias
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast
from uuid import UUID

import typer
from pydantic_core import to_json
from rich.console import Console
from rich.table import Column, Table

from recollect.client.client import Client
from recollect.client.transport import BlockingTransport, SyncRunner
from recollect.doors.local_server import RunningServer, check_local, choose_server
from recollect.loading import load
from recollect.models.filters import FILTER_FIELDS, FilterField
from recollect.settings import Settings

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from recollect.mind.mind import Mind
    from recollect.mind.service import Recollect

T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., Any])
KEYWORD = Parameter.KEYWORD_ONLY
STOPS = (signal.SIGINT, signal.SIGTERM)
out, err = Console(), Console(stderr=True)
SHORT_ID = 8
"""How many characters of an id tables show; `recollect get` and others take them back."""
WAIT_SECONDS = 5.0
"""How long to wait for an answer beyond the server's own deadline."""

Agent = Annotated[str, typer.Option(envvar="RECOLLECT_AGENT", help="Agent.")]
User = Annotated[str, typer.Option(envvar="RECOLLECT_USER", help="User. Omit for the agent's own memory.")]
Tenant = Annotated[str, typer.Option(help="Tenant.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
MemoryId = Annotated[str, typer.Argument(metavar="ID", help="Memory ID, full or short.")]
MemoryIds = Annotated[list[str], typer.Argument(metavar="ID...", help="Memory IDs, full or short.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]


def describe_option(each: FilterField) -> object:
    """Return the option for a field of the filter."""
    option = f"--{each.name.replace('_', '-')}"
    if each.many:
        return Annotated[GenericAlias(list, each.type) | None, typer.Option(help=f"{each.help} Repeatable.")]
    if each.type is datetime:
        return Annotated[datetime | None, typer.Option(help=f"{each.help} In UTC.")]
    if each.type is bool:
        names = f"{option}/--not-{each.name}" if each.optional else option
        return Annotated[bool | None, typer.Option(names, help=each.help)]
    return Annotated[each.type | None, typer.Option(help=each.help)]


FILTER_OPTIONS: Mapping[str, object] = {each.name: describe_option(each) for each in FILTER_FIELDS}
MOMENTS = tuple(each.name for each in FILTER_FIELDS if each.type is datetime)
"""Options with a time without an offset, which means UTC."""


class ProgressBars:
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
    """Open Recollect on its database for one command."""
    settings = Settings()
    check_local(settings)

    async def opened() -> T:
        async with load("recollect.wiring").open_recollect(settings, work=False) as recollect:
            return await work(recollect)

    return asyncio.run(opened())


def run_on_each(work: Callable[[Recollect], Awaitable[T]]) -> list[T]:
    """Open Recollect for one command on each server alone: what the owner of the tables does is done on all of them."""
    check_local(Settings())

    async def opened() -> list[T]:
        wiring, outcomes = load("recollect.wiring"), list[T]()
        for settings in await wiring.list_servers(Settings()):
            async with wiring.open_recollect(settings, work=False) as recollect:
                outcomes.append(await work(recollect))
        return outcomes

    return asyncio.run(opened())


def with_mind(
    agent: str, user: str, tenant: str, work: Callable[[Mind], Coroutine[Any, Any, T]], *, here: bool = False
) -> T:
    """Open one scope for one command: on the server that runs, else on the database, as always where `here`."""

    async def opened(recollect: Recollect) -> T:
        return await work(await recollect.mind(agent, user, tenant=tenant))

    return with_service(tenant, lambda client: ask_mind(client, agent, user, work), opened, here=here)


def with_service(
    tenant: str,
    remote: Callable[[Client], Awaitable[T]],
    local: Callable[[Recollect], Awaitable[T]],
    *,
    here: bool = False,
) -> T:
    """Run one command on the server that runs, else on the database, as always where `here`."""
    settings = Settings()
    server = None if here else choose_server(settings, tenant)
    return run(local) if server is None else ask_server(server, settings, remote)


def on_mind(command: Callable[..., Coroutine[Any, Any, T]]) -> Callable[..., T]:
    """Add the options that name a mind to a command, and run it with this mind as its first argument."""
    for name in ("mind", "return"):  # Their types may not be loaded, and no option is made of them.
        command.__annotations__.pop(name)

    @wraps(command)
    def call(*, agent: str, user: str, tenant: str, **named: object) -> T:
        return with_mind(agent, user, tenant, lambda mind: command(mind, **named))

    own = [each.replace(kind=KEYWORD) for each in list_parameters(command) if each.name != "mind"]
    chosen = [Parameter("agent", KEYWORD, annotation=Agent), Parameter("user", KEYWORD, default="", annotation=User)]
    tenant = Parameter("tenant", KEYWORD, default="default", annotation=Tenant)
    call.__dict__["__signature__"] = Signature([*chosen, *own, tenant])
    return call


def ask_server(server: RunningServer, settings: Settings, work: Callable[[Client], Awaitable[T]]) -> T:
    """Ask a server, in this thread and without an event loop."""
    seconds = settings.request_timeout_seconds + WAIT_SECONDS
    client = Client(server.url, server.key, timeout_seconds=seconds, transport=BlockingTransport)
    loop = SyncRunner()
    with loop.wrap_async_context_manager(client):
        return loop.call(work, client)


async def ask_mind(client: Client, agent: str, user: str, work: Callable[[Mind], Awaitable[T]]) -> T:
    """Ask a mind on a server, which has the same methods as one in this process."""
    return await work(cast("Mind", await client.mind(agent, user)))


def printing(show: Callable[[T], None]) -> Callable[[Callable[..., T | None]], Callable[..., None]]:
    """Add the option `--json` to a command that returns a value. Without it, the value is shown; None is not shown."""
    added = Parameter("json", KEYWORD, default=False, annotation=AsJson)

    def extend(command: Callable[..., T | None]) -> Callable[..., None]:
        command.__annotations__.pop("return", None)  # Its type may not be loaded, and no option is made of it.

        @wraps(command)
        def call(*arguments: object, json: bool = False, **named: object) -> None:
            found = command(*arguments, **named)
            if json and found is not None:
                print_json(found)
            elif found is not None:
                show(found)

        call.__dict__["__signature__"] = Signature([*list_parameters(command), added])
        return call

    return extend


def list_parameters(command: Callable[..., Any]) -> list[Parameter]:
    """Return the parameters of a command, without `**named`."""
    declared = signature(command, eval_str=True).parameters.values()
    return [each for each in declared if each.kind is not Parameter.VAR_KEYWORD]


def print_json(value: object, indent: int | None = 2) -> None:
    """Print a value as JSON, as the HTTP API writes it."""
    text = to_json(value, indent=indent).decode()
    out.print(text, highlight=False, markup=False, soft_wrap=True)


def table_of(*columns: str | Column, **more: Any) -> Table:  # noqa: ANN401 - what a table takes
    """Make a table that wraps text of every script to the width of the terminal, and cuts none."""
    made = [each if isinstance(each, Column) else Column(each) for each in columns]
    for each in made:
        each.overflow = "fold"
    return Table(*made, **more)


def id_column(name: str) -> Column:
    """Make a column of short ids, which are never broken."""
    return Column(name, no_wrap=True, min_width=SHORT_ID + 1)


def shorten_id(memory_id: UUID) -> str:
    """Write the end of a memory's id, as blocks do."""
    return f"m{memory_id.hex[-SHORT_ID:]}"


async def find_id(mind: Mind, written: str) -> UUID:
    """Read the id of a memory, whole or short."""
    try:
        return UUID(written)
    except ValueError:
        return (await mind.get(written)).id


async def find_ids(mind: Mind, written: list[str] | None) -> list[UUID]:
    """Read ids of memories, whole or short."""
    return [await find_id(mind, each) for each in written or ()]


def with_options(**options: object) -> Callable[[Command], Command]:
    """Add options to a command beyond its parameters; the given ones are passed by name, the others as None."""
    added = [Parameter(name, KEYWORD, default=None, annotation=kind) for name, kind in options.items()]

    def extend(command: Command) -> Command:
        command.__dict__["__signature__"] = Signature([*list_parameters(command), *added])
        return command

    return extend


def read_filter(given: Mapping[str, Any]) -> dict[str, Any]:
    """Convert options to fields of a filter; options that are not given have their defaults."""
    chosen = {name: given[name] for name in FILTER_OPTIONS if given.get(name) not in (None, [])}
    moments = {name: chosen[name].replace(tzinfo=UTC) for name in MOMENTS if name in chosen}
    return {name: tuple(each) if isinstance(each, list) else each for name, each in chosen.items()} | moments


def stop_on_signals(stop: Callable[[], object]) -> None:
    """Call `stop` on SIGINT and SIGTERM, inside the running loop."""
    for number in STOPS:
        asyncio.get_running_loop().add_signal_handler(number, stop)


def restore_signal_handlers() -> None:
    """Restore the default effect of SIGINT and SIGTERM: they end the process."""
    for number in STOPS:
        asyncio.get_running_loop().remove_signal_handler(number)
