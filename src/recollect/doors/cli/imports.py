"""The commands `recollect import` and `recollect export`, with a sub-command for each format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import Progress
from rich.table import Column, Table

from recollect.doors.cli import jsonl
from recollect.doors.cli.terminal import (
    FILTER_OPTIONS,
    Agent,
    Steps,
    Tenant,
    User,
    err,
    out,
    read_filter,
    run,
    with_mind,
    with_options,
)
from recollect.doors.imports import dify, exports
from recollect.doors.imports.generative_agents.folder import find_name
from recollect.doors.imports.generative_agents.journey import FolderReport, Gathered, export_folder, import_folder
from recollect.mind.service import Recollect
from recollect.models.recall import Filter

commands = typer.Typer()

import_app = typer.Typer(help="Load memories into a scope.", no_args_is_help=True)
export_app = typer.Typer(help="Write a scope's memories to files.", no_args_is_help=True)
NamedByFolder = Annotated[str, typer.Option(help="Whose memory it is; the folder's name unless given.")]
import_app.command("dify")(dify.import_dify)
exports.add_commands(import_app)


@import_app.command("jsonl")
def import_lines(path: Path, agent: Agent, user: User = "", tenant: Tenant = "default") -> None:
    """Load a file of JSON Lines into a scope; each line has at least `content`."""
    with Progress(console=err) as progress:
        task = progress.add_task(f"importing {path.name}", total=path.stat().st_size)
        report: Callable[[int], None] = lambda size: progress.advance(task, size)  # noqa: E731
        total = with_mind(agent, user, tenant, lambda mind: jsonl.import_lines(mind, path, report))
    out.print(f"{total} memories imported; `recollect up` or `recollect worker` makes vectors that they lack.")


@export_app.command("jsonl")
@with_options(**FILTER_OPTIONS)
def export_lines(
    path: Path,
    agent: Agent,
    user: User = "",
    tenant: Tenant = "default",
    **given: Any,  # noqa: ANN401 - what `with_options` names
) -> None:
    """Write a scope's memories to a file of JSON Lines, all of them or those that the options admit."""
    only = Filter(**read_filter(given))
    with Progress(console=err) as progress:
        task = progress.add_task(f"exporting to {path.name}", total=None)
        report: Callable[[int], None] = lambda count: progress.advance(task, count)  # noqa: E731

        async def work(recollect: Recollect) -> tuple[int, str]:
            mind = await recollect.mind(agent, user, tenant=tenant)
            total = await jsonl.export_lines(mind, path, report, only)
            _, others = await recollect.operator.take_stock(mind)
            return total, jsonl.tell_left_out(others)

        total, left_out = run(work)
    out.print(f"{total} memories exported.")
    if left_out:
        err.print(left_out, highlight=False, soft_wrap=True)


@import_app.command("generative-agents")
def import_saved_mind(path: Path, agent: NamedByFolder = "", user: User = "", tenant: Tenant = "default") -> None:
    """Load the folder that Generative Agents saved one of its people in, into an empty scope."""
    name = agent or find_name(path)
    with Progress(console=err) as progress:
        steps = Steps(progress)

        async def work(recollect: Recollect) -> FolderReport:
            mind = await recollect.mind(name, user, tenant=tenant)
            return await import_folder(recollect, mind, path, steps)

        arrival = run(work)
    table = Table("", *(Column(name, justify="right") for name in ("in the folder", "stored", "differ")))
    for line in arrival.lines:
        table.add_row(line.thing, str(line.in_folder), str(line.stored), str(line.differ))
    out.print(table)
    if arrival.unembedded:
        err.print(f"Not embedded: {arrival.unembedded}", highlight=False, markup=False, soft_wrap=True)
    out.print(f"{name} is imported.", highlight=False, markup=False)


@export_app.command("generative-agents")
def export_saved_mind(path: Path, agent: NamedByFolder = "", user: User = "", tenant: Tenant = "default") -> None:
    """Write an agent's memories to a folder as Generative Agents saves its people in."""
    name = agent or find_name(path)
    with Progress(console=err) as progress:
        steps = Steps(progress)

        async def work(recollect: Recollect) -> Gathered:
            mind = await recollect.mind(name, user, tenant=tenant)
            return await export_folder(recollect.operator, mind, path, steps)

        written = run(work)
    out.print(f"{len(written.memories)} memories exported.")
    if written.left_out:
        err.print(f"{written.left_out} memories of other kinds than event, thought and chat are left out.")
    if written.unembedded:
        err.print(
            f"{written.unembedded} of their texts have no vector of the original's model, which it needs to load them."
        )


commands.add_typer(import_app, name="import")
commands.add_typer(export_app, name="export")
