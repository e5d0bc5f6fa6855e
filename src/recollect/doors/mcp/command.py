"""The command `recollect mcp` and its options; the protocol is loaded when it runs."""

from __future__ import annotations

import asyncio
import os
from typing import Annotated

import typer

from recollect.doors.cli.terminal import Tenant
from recollect.errors import SetupError
from recollect.loading import load
from recollect.models.service import KeyBinding
from recollect.settings import Settings

commands = typer.Typer()


@commands.command()
def mcp(
    agent: Annotated[
        str | None,
        typer.Option(envvar="RECOLLECT_AGENT", help="Agent. Calls cannot use another one.", show_default="any"),
    ] = None,
    user: Annotated[
        str | None,
        typer.Option(
            envvar="RECOLLECT_USER", help="User. Calls cannot use another one; '' = none.", show_default="any"
        ),
    ] = None,
    tenant: Tenant = "default",
    url: Annotated[str, typer.Option(help="Use this server, with the key in RECOLLECT_KEY.")] = "",
) -> None:
    """Run an MCP server over stdio."""
    load("mcp_types", "mcp")  # version 1 of `mcp`, which other frameworks install, does not contain it
    stdio = load("recollect.doors.mcp.stdio")  # the protocol takes a while to load
    bounds, key = KeyBinding(agent, user), os.environ.get("RECOLLECT_KEY", "")
    if user is not None and agent is None:
        raise SetupError("--user requires --agent.")
    if url and not key:
        raise SetupError("Set RECOLLECT_KEY to an API key of the server.")
    minds = stdio.open_remote_minds(url, key, bounds) if url else stdio.open_here(Settings(), tenant, bounds)
    asyncio.run(stdio.serve(minds))
