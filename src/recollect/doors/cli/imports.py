"""The commands `recollect import` and `recollect export`, with a sub-command for each format."""

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
from recollect.doors.imports import dify, exports, jsonl
from recollect.doors.imports.generative_agents.folder import find_name
from recollect.doors.imports.generative_agents.journey import FolderReport, Gathered, export_folder, import_folder
from recollect.doors.words import translate
from recollect.mind.service import Recollect
from recollect.models.imports import ExportImport, ExportOrder, ExportReport, ImportOrder
from recollect.models.recall import Filter

commands = typer.Typer()

import_app = typer.Typer(help="Load memories into a scope.", no_args_is_help=True)
export_app = typer.Typer(help="Write a scope's memories to files.", no_args_is_help=True)
NamedByFolder = Annotated[str, typer.Option(help="Whose memory it is; the folder's name unless given.")]
ExportFile = Annotated[Path, typer.Argument(metavar="FILE", help="The export.", exists=True, dir_okay=False)]
OtherAgent = Annotated[str | None, typer.Option(help="Whose memory it becomes; as in the file unless given.")]
OtherUser = Annotated[str | None, typer.Option(help="Whom it is about or with; as in the file unless given.")]
WhichAgent = Annotated[str, typer.Option(help="Whose memory it is.")]
ImportName = Annotated[str, typer.Option(help="What the import is called in the origin of new memories.")]
AsNew = Annotated[bool, typer.Option("--as-new", help="Bring the memories as new ones, also into a filled scope.")]
EXPORT_OPTIONS: dict[str, object] = {
    "all_agents": Annotated[bool | None, typer.Option("--all-agents", help="The user's scopes of all agents.")],
    "all_scopes": Annotated[bool | None, typer.Option("--all-scopes", help="All scopes of the tenant.")],
    "vectors": Annotated[
        list[str] | None, typer.Option(help="With the vectors of this model, or `all`; repeat for more.")
    ],
}
import_app.command("dify")(dify.import_dify)
exports.add_commands(import_app)


@import_app.command("jsonl")
def import_lines(path: Path, agent: Agent, user: User = "", tenant: Tenant = "default") -> None:
    """Load a file of JSON Lines into a scope; each line has at least `content`."""
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
    out.print(translate("{count} memories exported.", count=total))
    if left_out:
        err.print(f"{left_out} `recollect export scope` writes all of it.", highlight=False, soft_wrap=True)


@import_app.command("scope")
def import_export(
    path: ExportFile,
    agent: OtherAgent = None,
    user: OtherUser = None,
    tenant: Tenant = "default",
    name: ImportName = "",
    as_new: AsNew = False,
) -> None:
    """Restore what `export scope` wrote, in scopes that are empty, as it was: with ids, origin, trust and times."""
    order = ImportOrder(name or path.stem, agent, user, as_new=as_new)
    with Progress(console=err) as progress, path.open("rb") as file:
        steps = Steps(progress)

        async def work(recollect: Recollect) -> ExportImport:
            return await recollect.operator.exports.read(await recollect.operator.act_for(tenant), order, file, steps)

        outcome = run(work)
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
    agent: WhichAgent = "",
    user: User = "",
    tenant: Tenant = "default",
    **given: Any,  # noqa: ANN401 - what `with_options` names
) -> None:
    """Write a scope with everything it holds to a file: conversations, versions, evidence, facts, topics, items."""
    if not agent and not given["all_agents"] and not given["all_scopes"]:
        raise typer.BadParameter("name --agent, or choose --all-agents or --all-scopes")
    if (given["all_scopes"] and (agent or user or given["all_agents"])) or (given["all_agents"] and agent):
        raise typer.BadParameter("--all-agents and --all-scopes cannot be narrowed further")
    of_all = bool(given["all_scopes"])
    order = ExportOrder(agent or None, None if of_all else user, tuple(given["vectors"] or ()))
    with Progress(console=err) as progress:
        steps = Steps(progress)

        async def work(recollect: Recollect) -> ExportReport:
            caller = await recollect.operator.act_for(tenant)
            with replacing(path) as file:
                return await recollect.operator.exports.write(caller, order, file, steps)

        written = run(work)
    print_sections({"exported": written.lines})
    out.print(f"{count_scopes(written.scopes)} exported to {path}.", highlight=False, markup=False, soft_wrap=True)


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Write a file beside the path, and put it there when it is complete."""
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
    """Say how many scopes there are."""
    return "1 scope" if number == 1 else f"{number} scopes"


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
    out.print(translate("{count} memories exported.", count=len(written.memories)))
    if written.left_out:
        err.print(f"{written.left_out} memories of other kinds than event, thought and chat are left out.")
    if written.unembedded:
        err.print(
            f"{written.unembedded} of their texts have no vector of the original's model, which it needs to load them."
        )


commands.add_typer(import_app, name="import")
commands.add_typer(export_app, name="export")
