"""The MCP door over standard input and output: on a Recollect of this process, or in front of another one."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from mcp.server.stdio import stdio_server

from recollect.client.client import Client
from recollect.doors.cli.terminal import stop_on_signals
from recollect.doors.mcp.arguments import AnyMind, Asked, OpenMind, choose_names
from recollect.doors.mcp.server import build_server, silence_library_logs
from recollect.models.service import KeyBinding
from recollect.settings import Settings
from recollect.wiring import open_recollect


async def serve(minds: AbstractAsyncContextManager[OpenMind]) -> None:
    """Answer until the client leaves or a signal comes; nothing but the protocol goes to standard output."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    silence_library_logs()
    signalled = asyncio.Event()
    stop_on_signals(signalled.set)
    async with minds as open_mind:
        answering, stopping = asyncio.create_task(answer(open_mind)), asyncio.create_task(signalled.wait())
        await asyncio.wait({answering, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if answering.done():
            stopping.cancel()
            await answering
    if signalled.is_set():
        # Everything is closed but standard input: a thread waits for its next line, and would block the exit.
        os._exit(0)


async def answer(open_mind: OpenMind) -> None:
    """Answer messages until the input ends."""
    async with stdio_server() as (requests, answers):
        server = build_server(open_mind)
        await server.run(requests, answers, server.create_initialization_options())


@asynccontextmanager
async def open_here(settings: Settings, tenant: str, bounds: KeyBinding) -> AsyncIterator[OpenMind]:
    """Open minds of a Recollect in this process, with full trust like the operator's own commands."""
    async with open_recollect(settings, work=False) as recollect:

        async def open_mind(_ctx: Asked, agent: str, user: str) -> AnyMind:
            return await recollect.mind(*choose_names(bounds, agent, user), tenant=tenant)

        yield open_mind


@asynccontextmanager
async def open_remote_minds(url: str, key: str, bounds: KeyBinding) -> AsyncIterator[OpenMind]:
    """Open minds of a server, as far as its key reaches."""
    # The server has its own deadline, and reports when it is over.
    async with Client(url, key, timeout_seconds=Settings().request_timeout_seconds + 5) as client:

        async def open_mind(_ctx: Asked, agent: str, user: str) -> AnyMind:
            return await client.mind(*choose_names(bounds, agent, user))

        yield open_mind
