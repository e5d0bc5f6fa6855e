"""Commands that start what lives long: everything on one machine, the API, the worker; and the one that migrates."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated

import typer

from recollect.doors.cli.terminal import Tenant, err, out
from recollect.doors.greeting import translate
from recollect.loading import load
from recollect.settings import PREFIX, Settings
from recollect.tracing import tracing

commands = typer.Typer()

Host = Annotated[str | None, typer.Option(help="Address to listen on.", show_default="127.0.0.1")]
Port = Annotated[int | None, typer.Option(min=0, max=65535, help="Port to listen on.", show_default="7077")]
DataDir = Annotated[
    Path | None,
    typer.Option(help="Data folder of the embedded PostgreSQL.", show_default="`recollect doctor` shows it"),
]
SIGINT_CODE = 130


def load_settings(**given: str | int | Path | None) -> Settings:
    """Read the settings. Options take precedence, also in processes that this process starts."""
    os.environ |= {f"{PREFIX}{name.upper()}": str(value) for name, value in given.items() if value is not None}
    return Settings()


def stopwatch() -> Callable[[str], None]:
    """Return a function that prints a step with the seconds since the start."""
    began = time.monotonic()
    return lambda step: err.print(f"{time.monotonic() - began:5.1f} s  {step}", highlight=False, soft_wrap=True)


@commands.command("up")
def start_up(host: Host = None, port: Port = None, data_dir: DataDir = None, tenant: Tenant = "default") -> None:
    """Start PostgreSQL, the API, the worker and the console on this machine, and print an API key."""
    report = stopwatch()
    report(translate("starting Recollect"))
    settings = load_settings(host=host, port=port, data_dir=data_dir)
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
    workers: Annotated[int, typer.Option(min=1, help="Number of server processes.")] = 1,
) -> None:
    """Run the HTTP API. Run `recollect worker` alongside it."""
    settings = load_settings(host=host, port=port, data_dir=data_dir)
    server = load("recollect.doors.cli.server")
    server.serve(settings, workers)


@commands.command("worker")
def start_worker(
    concurrency: Annotated[int, typer.Option(help="Number of concurrent jobs.")] = 4, data_dir: DataDir = None
) -> None:
    """Run background jobs until stopped."""
    settings = load_settings(data_dir=data_dir)
    server = load("recollect.doors.cli.server")
    with traced(settings, "worker"):
        server.run(server.work(settings, concurrency))


def traced(settings: Settings, role: str) -> AbstractContextManager[None]:
    """Send traces as the settings say."""
    return tracing(settings.operations.traces_url, settings.operations.traces_ratio, role)


@commands.command()
def migrate(
    first_block: Annotated[
        int | None,
        typer.Option(min=0, max=8191, help="First block of 1,024 tenant numbers; unique per server."),
    ] = None,
) -> None:
    """Create or upgrade the database schema."""
    settings, report = Settings(), lambda name: out.print(f"applied {name}", highlight=False)
    asyncio.run(load("recollect.wiring").set_up(settings, report, first_block))
    out.print(translate("The database is up to date."))
