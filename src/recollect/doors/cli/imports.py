"""The commands `recollect mind import` and `recollect mind export`, with a sub-command for each format."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, BinaryIO, cast

import typer
from rich.progress import Progress
from rich.table import Column, Table

from recollect.doors.cli.terminal import (
    FILTER_OPTIONS,
    Agent,
    ProgressBars,
    Tenant,
    User,
    err,
    out,
    read_filter,
    run,
    with_mind,
    with_options,
)
from recollect.doors.greeting import translate
from recollect.doors.imports import dify, exports, jsonl
from recollect.doors.imports.generative_agents.folder import find_name
from recollect.doors.imports.generative_agents.transfer import FolderExport, FolderReport, export_folder, import_folder
from recollect.mind.service import Recollect
from recollect.models.filters import Filter
from recollect.models.imports import ExportReport, ExportRequest, ImportOptions, ImportResult

commands = typer.Typer()

import_app = typer.Typer(help="Import memories.", no_args_is_help=True)
export_app = typer.Typer(help="Export memories.", no_args_is_help=True)
NamedByFolder = Annotated[str, typer.Option(help="Agent. Default: the folder name.")]
ExportFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="Path of the export file.", exists=True, dir_okay=False)
]
OtherAgent = Annotated[str | None, typer.Option(help="Target agent. Default: as in the file.")]
OtherUser = Annotated[str | None, typer.Option(help="Target user. Default: as in the file.")]
ImportName = Annotated[str, typer.Option(help="Import name, stored as the origin of the memories.")]
AsNew = Annotated[bool, typer.Option("--as-new", help="Import as new memories. The scope may already hold memories.")]
EXPORT_OPTIONS: dict[str, object] = {
    "all_agents": Annotated[bool | None, typer.Option("--all-agents", help="Export the user's scopes of all agents.")],
    "all_scopes": Annotated[bool | None, typer.Option("--all-scopes", help="Export all scopes of the tenant.")],
    "vectors": Annotated[
        list[str] | None, typer.Option(help="Include the vectors of this model, or `all`. Repeatable.")
    ],
}
import_app.command("dify")(dify.import_dify)
exports.add_commands(import_app)


@import_app.command("jsonl")
def import_lines(path: Path, agent: Agent, user: User = "", tenant: Tenant = "default") -> None:
    """Import memories from a JSON Lines file. Each line needs `content`."""
    with Progress(console=err) as progress:
        task = progress.add_task(f"importing {path.name}", total=path.stat().st_size)
        report: Callable[[int], None] = lambda size: progress.advance(task, size)  # noqa: E731
        total = with_mind(agent, user, tenant, lambda mind: jsonl.import_lines(mind, path, report))
    said = "{count} memories imported; `recollect up` or `recollect worker` makes vectors that they lack."
    out.print(translate(said, count=total))


@export_app.command("jsonl")
@with_options(**FILTER_OPTIONS)
def export_lines(
    path: Path,
    agent: Agent,
    user: User = "",
    tenant: Tenant = "default",
    **given: Any,  # noqa: ANN401 - what `with_options` names
) -> None:
    """Export memories as JSON Lines, all or filtered."""
    only = Filter(**read_filter(given))
    with Progress(console=err) as progress:
        task = progress.add_task(f"exporting to {path.name}", total=None)
        report: Callable[[int], None] = lambda count: progress.advance(task, count)  # noqa: E731

        async def write_lines_file(recollect: Recollect) -> tuple[int, str]:
            mind = await recollect.mind(agent, user, tenant=tenant)
            total = await jsonl.export_lines(mind, path, report, only)
            _, others = await recollect.operator.read_inventory(mind)
            return total, jsonl.explain_omitted(others)

        total, left_out = run(write_lines_file)
    out.print(translate("{count} memories exported.", count=total))
    if left_out:
        err.print(f"{left_out} `recollect mind export scope` writes all of it.", highlight=False, soft_wrap=True)


@import_app.command("scope")
def import_export(
    path: ExportFile,
    agent: OtherAgent = None,
    user: OtherUser = None,
    tenant: Tenant = "default",
    name: ImportName = "",
    as_new: AsNew = False,
) -> None:
    """Restore a file written by `mind export scope` into empty scopes, with IDs, origins, trust and times."""
    order = ImportOptions(name or path.stem, agent, user, as_new=as_new)
    with Progress(console=err) as progress, path.open("rb") as file:
        steps = ProgressBars(progress)

        async def import_whole_export(recollect: Recollect) -> ImportResult:
            caller = await recollect.operator.act_for(tenant)
            return await recollect.operator.exports.import_export_file(caller, order, file, steps, limited=False)

        outcome = run(import_whole_export)
    print_sections({"stored": outcome.lines, "left out": outcome.left_out})
    for remark in outcome.remarks:
        err.print(remark, highlight=False, markup=False, soft_wrap=True)
    if outcome.waiting:
        out.print(f"{outcome.waiting} memories wait for vectors; `recollect up` or `recollect worker` makes them.")
    out.print(f"{count_scopes(outcome.scopes)} {'restored' if outcome.restored else 'brought as new memories'}.")


@export_app.command("scope")
@with_options(**EXPORT_OPTIONS)
def export_scope(
    path: Path,
    agent: Agent = "",
    user: User = "",
    tenant: Tenant = "default",
    **given: Any,  # noqa: ANN401 - what `with_options` names
) -> None:
    """Export a complete scope: memories, conversations, versions, evidence, facts, topics and items."""
    if not agent and not given["all_agents"] and not given["all_scopes"]:
        raise typer.BadParameter("use --agent, --all-agents or --all-scopes")
    if (given["all_scopes"] and (agent or user or given["all_agents"])) or (given["all_agents"] and agent):
        raise typer.BadParameter(
            "--all-agents and --all-scopes take no agent (RECOLLECT_AGENT); --all-scopes takes no user"
        )
    of_all = bool(given["all_scopes"])
    order = ExportRequest(agent or None, None if of_all else user, tuple(given["vectors"] or ()))
    with Progress(console=err) as progress:
        steps = ProgressBars(progress)

        async def write_scope_export(recollect: Recollect) -> ExportReport:
            caller = await recollect.operator.act_for(tenant)
            with replacing(path) as file:
                return await recollect.operator.exports.write_export_file(caller, order, file, steps)

        written = run(write_scope_export)
    print_sections({"exported": written.lines})
    out.print(f"{count_scopes(written.scopes)} exported to {path}.", highlight=False, markup=False, soft_wrap=True)


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Write a temporary file in the same folder, and move it to the path when it is complete."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        beside = Path(file.name)
        try:
            yield cast("BinaryIO", file)
        except BaseException:
            beside.unlink()
            raise
    beside.replace(path)


def print_sections(columns: Mapping[str, Mapping[str, int]]) -> None:
    """Print how many lines of each section there were."""
    names = dict.fromkeys(name for counted in columns.values() for name in counted)
    table = Table("section", *(Column(title, justify="right") for title in columns))
    for name in names:
        table.add_row(name, *(str(counted.get(name, 0)) for counted in columns.values()))
    out.print(table)


def count_scopes(number: int) -> str:
    """Return the number of scopes with its noun."""
    return "1 scope" if number == 1 else f"{number} scopes"


@import_app.command("generative-agents")
def import_saved_mind(path: Path, agent: NamedByFolder = "", user: User = "", tenant: Tenant = "default") -> None:
    """Import a saved Generative Agents persona into an empty scope."""
    name = agent or find_name(path)
    with Progress(console=err) as progress:
        steps = ProgressBars(progress)

        async def import_saved_folder(recollect: Recollect) -> FolderReport:
            mind = await recollect.mind(name, user, tenant=tenant)
            return await import_folder(recollect, mind, path, steps)

        arrival = run(import_saved_folder)
    table = Table("", *(Column(name, justify="right") for name in ("in the folder", "stored", "differ")))
    for line in arrival.lines:
        table.add_row(line.thing, str(line.in_folder), str(line.stored), str(line.differ))
    out.print(table)
    if arrival.unembedded:
        err.print(f"Not embedded: {arrival.unembedded}", highlight=False, markup=False, soft_wrap=True)
    out.print(f"{name} is imported.", highlight=False, markup=False)


@export_app.command("generative-agents")
def export_saved_mind(path: Path, agent: NamedByFolder = "", user: User = "", tenant: Tenant = "default") -> None:
    """Export an agent in the folder format of Generative Agents."""
    name = agent or find_name(path)
    with Progress(console=err) as progress:
        steps = ProgressBars(progress)

        async def export_saved_folder(recollect: Recollect) -> FolderExport:
            mind = await recollect.mind(name, user, tenant=tenant)
            return await export_folder(recollect.operator, mind, path, steps)

        written = run(export_saved_folder)
    out.print(translate("{count} memories exported.", count=len(written.memories)))
    if written.left_out:
        err.print(f"{written.left_out} memories of other kinds than event, thought and chat are left out.")
    if written.unembedded:
        err.print(
            f"{written.unembedded} of their texts have no vector of the original's model, which it needs to load them."
        )


commands.add_typer(import_app, name="import")
commands.add_typer(export_app, name="export")
