"""Back up and restore the embedded server, and repeat the erasures since the backup."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from recollect.doors.cli.terminal import err, out
from recollect.models.outside import RestoreReport
from recollect.settings import Settings
from recollect.wiring import make_backup, replay_erasures, restore_backup

commands = typer.Typer()
backup_app = typer.Typer(
    no_args_is_help=True, help="Back up and restore the embedded server, and replay erasures on any server."
)


def print_restored(done: RestoreReport) -> None:
    """Print the erasures that were repeated in a restored database."""
    lines = [
        f"{done.logged} erasures are newer than the backup; {done.applied} of them had something to erase in it, and "
        f"{done.finished} scopes had purges to finish.",
        *([f"The old server is in {done.aside}."] if done.aside else []),
        f"The database may be served again, as incarnation {done.incarnation}.",
    ]
    out.print("\n".join(lines), highlight=False, soft_wrap=True)


@backup_app.command("make")
def make(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder for the dump and its manifest.")],
) -> None:
    """Dump the embedded server's database while it is used, and print the file."""
    with err.status("dumping"):
        file = asyncio.run(make_backup(Settings(), folder))
    out.print(str(file), highlight=False, soft_wrap=True)


@backup_app.command("restore")
def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A dump by `admin backup make`, next to its manifest.")],
    without_log: Annotated[
        bool, typer.Option("--without-log", help="Restore without the erasure log. Erased memories will reappear.")
    ] = False,
) -> None:
    """Restore a dump as the embedded server, without memories erased since. The old server is moved aside."""
    with err.status("restoring"):
        done = asyncio.run(restore_backup(Settings(), file, logged=not without_log))
    print_restored(done)


@backup_app.command("replay")
def replay(
    since: Annotated[datetime, typer.Option(help="Time of the restored copy, in UTC, or earlier.")],
) -> None:
    """Repeat the erasures since a time, in a database that was restored by other means."""
    with err.status("erasing"):
        done = asyncio.run(replay_erasures(Settings(), since.replace(tzinfo=UTC)))
    print_restored(done)


commands.add_typer(backup_app, name="backup")
