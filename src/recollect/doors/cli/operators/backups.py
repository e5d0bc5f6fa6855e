"""Make backups, look through them, and restore them without what was erased since."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from recollect.doors.cli.terminal import Steps, err, out
from recollect.models.outside import BackupKind, BackupReport, RestoreReport
from recollect.settings import Settings
from recollect.wiring import make_backup, replay_erasures, restore_backup, verify_backup

commands = typer.Typer()
backup_app = typer.Typer(no_args_is_help=True, help="Make backups, look through them, and restore them.")
Address = Annotated[str, typer.Argument(metavar="BACKUP", help="A backup: a folder, or s3://bucket/path.")]
Done = TypeVar("Done")
MEGABYTE = 1_000_000


def show(work: Callable[[Steps], Coroutine[Any, Any, Done]]) -> Done:
    """Do something that takes long, and show how far it has come."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"))
    with Progress(*columns, TimeElapsedColumn(), console=err) as progress:
        return asyncio.run(work(Steps(progress)))


def tell_backup(found: BackupReport, verb: str) -> None:
    """Say what a backup holds."""
    out.print(f"{found.name}", highlight=False, soft_wrap=True)
    size = f"{found.bytes / MEGABYTE:,.1f} MB"
    rows = f", {found.rows:,} rows" if found.rows else ""
    indexes = f", {found.indexes} indexes" if found.indexes else ""
    out.print(f"{verb}: {found.kind}, {found.made_at:%Y-%m-%d %H:%M} UTC, {size}{rows}{indexes}.", highlight=False)
    for remark in found.remarks:
        out.print(remark, highlight=False)


def tell_restored(done: RestoreReport) -> None:
    """Say what a restored record lacks that its backup had."""
    again = done.reapplied
    out.print(
        f"{again.logged} erasures are newer than the backup; {again.applied} of them had something to erase in it, and "
        f"{again.finished} scopes had purges to finish.",
        highlight=False,
        soft_wrap=True,
    )
    out.print(f"The record may be served again, as incarnation {done.incarnation}.", highlight=False, soft_wrap=True)


@backup_app.command("make")
def make(
    place: Annotated[str, typer.Argument(metavar="PLACE", help="A folder, or s3://bucket/path, for all backups.")],
    kind: Annotated[
        BackupKind | None,
        typer.Option(help="All files of the server, or one database.", show_default="base if embedded, else dump"),
    ] = None,
) -> None:
    """Make a backup while everything is used, and say where it is."""
    tell_backup(show(lambda steps: make_backup(Settings(), place, kind, steps)), "made")


@backup_app.command("verify")
def verify(backup: Address) -> None:
    """Compare a backup's checksums, restore it for a while, count its rows and check its indexes."""
    tell_backup(show(lambda steps: verify_backup(Settings(), backup, steps)), "verified")


@backup_app.command("restore")
def restore(
    backup: Address,
    replace: Annotated[bool, typer.Option("--replace", help="Move the embedded server aside that is there.")] = False,
    without_log: Annotated[
        bool, typer.Option("--without-log", help="Restore although the erasure log is lost: erased memories come back.")
    ] = False,
) -> None:
    """Restore a backup, erase again what was erased since, and only then let it be served."""
    tell_restored(
        show(lambda steps: restore_backup(Settings(), backup, steps, replace=replace, logged=not without_log))
    )


@backup_app.command("replay")
def replay(
    since: Annotated[datetime, typer.Option(help="When the copy was made that was restored, in UTC, or before.")],
) -> None:
    """Erase again what was erased since a moment, in a database that was restored by other means."""
    tell_restored(show(lambda steps: replay_erasures(Settings(), since.replace(tzinfo=UTC), steps)))


commands.add_typer(backup_app, name="backup")
