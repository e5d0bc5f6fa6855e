"""The command `recollect mcp`: what it takes; the protocol is loaded when it runs."""

from __future__ import annotations

import asyncio
import os
from typing import Annotated

import typer

from recollect.doors.cli.terminal import Tenant
from recollect.errors import SetupError
from recollect.loading import load
from recollect.models.service import Bounds
from recollect.settings import Settings

commands = typer.Typer()


@commands.command()
def mcp(
    agent: Annotated[str | None, typer.Option(help="The only agent that calls may name.", show_default="any")] = None,
    user: Annotated[str | None, typer.Option(help="The only user of it; '' for none.", show_default="any")] = None,
    tenant: Tenant = "default",
    url: Annotated[str, typer.Option(help="A server to ask instead, with the key in RECOLLECT_KEY.")] = "",
) -> None:
    """Serve the memory to an MCP client over standard input and output, until the client leaves."""
    stdio = load("recollect.doors.mcp.stdio")  # the protocol takes a while to load
    bounds, key = Bounds(agent, user), os.environ.get("RECOLLECT_KEY", "")
    if user is not None and agent is None:
        raise SetupError("Name the agent, too: a user alone is no scope.")
    if url and not key:
        raise SetupError("Set RECOLLECT_KEY to an API key of the server.")
    minds = stdio.reach_server(url, key, bounds) if url else stdio.open_here(Settings(), tenant, bounds)
    asyncio.run(stdio.serve(minds))
