"""A server in the process of the test."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import uvicorn


@asynccontextmanager
async def serving(app, **options):
    """Serve an application on a free port, in this event loop; give its address."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, **options))
    task = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - the server tells nobody when it has started
        await asyncio.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        await task
