"""Commands that start what lives long: everything on one machine, the API, the worker; and the one that migrates."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated

import typer

from recollect.doors.cli.terminal import Tenant, err, out
from recollect.doors.words import translate
from recollect.loading import load
from recollect.settings import PREFIX, Settings
from recollect.tracing import tracing

commands = typer.Typer()

Host = Annotated[str | None, typer.Option(help="Address to listen on.", show_default="127.0.0.1")]
Port = Annotated[int | None, typer.Option(min=0, max=65535, help="Port to listen on.", show_default="7077")]
DataDir = Annotated[
    Path | None, typer.Option(help="Folder of the embedded PostgreSQL.", show_default="`recollect doctor` shows it")
]
SIGINT_CODE = 130


def choose(**given: str | int | Path | None) -> Settings:
    """Read the settings; what was given as an option goes before, for processes that this one starts, too."""
    os.environ |= {f"{PREFIX}{name.upper()}": str(value) for name, value in given.items() if value is not None}
    return Settings()


def stopwatch() -> Callable[[str], None]:
    """Return a function that prints a step with the seconds since the start."""
    began = time.monotonic()
    return lambda step: err.print(f"{time.monotonic() - began:5.1f} s  {step}", highlight=False, soft_wrap=True)


@commands.command("up")
def start_up(host: Host = None, port: Port = None, data_dir: DataDir = None, tenant: Tenant = "default") -> None:
    """Start everything on this machine: PostgreSQL, migrations, API, worker, a first API key."""
    report = stopwatch()
    report(translate("starting Recollect"))
    settings = choose(host=host, port=port, data_dir=data_dir)
    server = load("recollect.doors.cli.server")
    try:
        with traced(settings, "up"):
            server.run(server.up(settings, tenant, out, lambda step: report(translate(step))))
    except KeyboardInterrupt:
        err.print(translate("Stopped before it was ready."))
        raise typer.Exit(SIGINT_CODE) from None
    kept = translate("The data stays in {folder}.", folder=settings.data_folder) if settings.embedded else ""
    err.print(f"{translate('Stopped.')} {kept}", highlight=False, soft_wrap=True)


@commands.command("serve")
def start_serving(
    host: Host = None,
    port: Port = None,
    data_dir: DataDir = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes that serve together.")] = 1,
    supervisor: Annotated[int | None, typer.Option(hidden=True, help="File descriptor of who started us.")] = None,
) -> None:
    """Serve the HTTP API; run `recollect worker` beside it."""
    settings = choose(host=host, port=port, data_dir=data_dir)
    server = load("recollect.doors.cli.server")
    with nullcontext() if workers > 1 else traced(settings, "serve"):
        server.run(server.serve(settings, workers, supervisor))


@commands.command("worker")
def start_worker(
    concurrency: Annotated[int, typer.Option(help="Jobs at a time.")] = 4, data_dir: DataDir = None
) -> None:
    """Run background jobs until stopped."""
    settings = choose(data_dir=data_dir)
    server = load("recollect.doors.cli.server")
    with traced(settings, "worker"):
        server.run(server.work(settings, concurrency))


def traced(settings: Settings, role: str) -> AbstractContextManager[None]:
    """Send traces as the settings say."""
    return tracing(settings.traces_url, settings.traces_share, role)


@commands.command()
def migrate(
    first_block: Annotated[
        int | None,
        typer.Option(min=0, max=8191, help="Number tenants from this block of 1,024 on: another for each server."),
    ] = None,
) -> None:
    """Bring the database to the newest schema."""
    settings, report = Settings(), lambda name: out.print(f"applied {name}", highlight=False)
    asyncio.run(load("recollect.wiring").set_up(settings, report, first_block))
    out.print(translate("The database is up to date."))
