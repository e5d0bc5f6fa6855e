"""Look after mirrors of the record in other engines: build, fill again, compare, drop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, TypeVar

import typer
from rich.progress import Progress
from rich.table import Table

from recollect.doors.cli.terminal import Yes, err, out, run
from recollect.doors.greeting import translate
from recollect.mind.operators.mirrors import Mirrors
from recollect.models.outside import MirrorStatus

commands = typer.Typer()
mirror_app = typer.Typer(no_args_is_help=True, help="Manage the OpenSearch and Neo4j mirrors.")
Name = Annotated[str, typer.Argument(help="`opensearch` or `neo4j`.")]
Done = TypeVar("Done")


def with_progress(step: str, work: Callable[[Mirrors, Callable[[int], None]], Awaitable[Done]]) -> Done:
    """Do something with all scopes, and show how many are done."""
    with Progress(console=err) as progress:
        task = progress.add_task(step, total=None)

        async def count_first(mirrors: Mirrors) -> Done:
            progress.update(task, total=await mirrors.count_scopes())
            return await work(mirrors, lambda done: progress.update(task, completed=done))

        return run(lambda recollect: count_first(recollect.operator.mirrors))


@mirror_app.command("build")
def build(name: Name) -> None:
    """Build a mirror. Resumes an interrupted build."""
    format_mirror_ready(with_progress("filling", lambda mirrors, report: mirrors.build(name, report)))


@mirror_app.command("rebuild")
def rebuild(name: Name) -> None:
    """Build a mirror again next to the active one, then switch to it."""
    format_mirror_ready(with_progress("filling", lambda mirrors, report: mirrors.rebuild(name, report)))


def format_mirror_ready(made: Sequence[MirrorStatus]) -> None:
    """Print that a mirror is in use from now on, for every shard."""
    for each in made:
        of_shard = f" of {each.shard}" if each.shard else ""
        counted = f"{each.scopes} scopes, {each.behind} behind"
        out.print(f"{each.name}{of_shard} answers from generation {each.generation}: {counted}.")


@mirror_app.command("status")
def show_status() -> None:
    """Show the content, lag and health of every mirror."""
    table = Table("mirror", "shard", "generation", "state", "scopes", "behind", "lag", "answers")
    for each in run(lambda recollect: recollect.operator.mirrors.status()):
        answers = "no address" if each.answers is None else "yes" if each.answers else "no"
        lag = f"{each.lag_seconds:,.1f} s"
        counted = (str(each.scopes), str(each.behind))
        table.add_row(each.name, each.shard, str(each.generation), each.state, *counted, lag, answers)
    out.print(table)


@mirror_app.command("verify")
def verify(name: Name, mend: Annotated[bool, typer.Option("--mend", help="Repair differences.")] = False) -> None:
    """Compare a mirror with the database by checksum. Exits with status 1 if they still differ."""
    found = with_progress("comparing", lambda mirrors, report: mirrors.verify(name, report, mend=mend))
    counted = f"{found.missing} missing, {found.changed} changed, {found.extra} extra"
    out.print(f"{found.scopes} scopes compared: {counted}{', mended' if found.differing and mend else ''}.")
    if found.differing and not mend:
        raise typer.Exit(1)


@mirror_app.command("drop")
def drop(name: Name, yes: Yes = False) -> None:
    """Delete a mirror and its content. Receipts waiting for it are completed with a note."""
    if not yes:
        typer.confirm(f"Drop the mirror {name}?", abort=True)
    ended, removed = run(lambda recollect: recollect.operator.mirrors.drop(name))
    out.print(translate("dropped"))
    out.print(f"{ended} waiting receipts have a note of it.")
    if not removed:
        out.print("The engine did not answer: what it holds is still there, and has to be removed by hand.")


commands.add_typer(mirror_app, name="mirror")
