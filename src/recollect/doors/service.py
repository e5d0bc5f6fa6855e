"""Run the long-lived processes: the API, the worker, or both on one machine."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import Any

import uvicorn
from rich.console import Console
from rich.markup import escape

from recollect.doors.http.app import create_app
from recollect.doors.terminal import stop_on_signals
from recollect.settings import Settings
from recollect.wiring import Recollect, open_recollect

GREETING = """[bold]Recollect is up[/bold] at {url}  (documentation: {url}/docs)
embedder: {embedder}
{key}
Programs want to know: export RECOLLECT_URL={url} RECOLLECT_KEY=rec_...
Try, in another terminal:
  recollect remember --agent ada "Ann bought green apples at the market"
  recollect recall --agent ada "what did Ann buy"
Stop with Ctrl-C."""


def run(work: Coroutine[Any, Any, None]) -> None:
    """Run until done, on the faster event loop where there is one."""
    factory = None
    if find_spec("uvloop"):  # not made for every platform
        import uvloop

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(work)


class Server(uvicorn.Server):
    """A server that ends by returning: uvicorn's own would raise the signal again, and nobody could clean up."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop serving on SIGINT and SIGTERM."""
        stop_on_signals(lambda: setattr(self, "should_exit", True))
        yield


async def up(settings: Settings, tenant: str, console: Console) -> None:
    """Run everything in this process until stopped."""
    log_to_stderr()
    async with open_recollect(settings) as recollect:
        secret = await recollect.operator.first_key(tenant)
        server = build_server(settings, recollect)
        freeze()
        worker = asyncio.create_task(recollect.work())
        greeter = asyncio.create_task(greet(server, recollect, secret, console))
        try:
            await server.serve()
        finally:
            for task in (worker, greeter):
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task


async def greet(server: uvicorn.Server, recollect: Recollect, secret: str | None, console: Console) -> None:
    """Say how to use it, once it answers."""
    while not server.started:  # noqa: ASYNC110 - the server tells nobody when it has started
        await asyncio.sleep(0.02)
    port = server.servers[0].sockets[0].getsockname()[1]
    embedder = recollect.parts.embedder
    key = (
        f"API key (shown this once): [bold]{secret}[/bold]"
        if secret
        else "An API key exists already. Make another: recollect key create NAME"
    )
    model = embedder.model if embedder else "none (recall by words only)"
    active = [space.model for space, _ in await recollect.operator.list_spaces() if space.state == "active"]
    if embedder and embedder.model not in active:
        model += f", but recall reads {' '.join(active)}: run `recollect space change`"
    url = f"http://{recollect.settings.host}:{port}"
    console.print(GREETING.format(url=url, embedder=escape(model), key=key), highlight=False, soft_wrap=True)


async def serve(settings: Settings) -> None:
    """Serve the API until stopped."""
    log_to_stderr()
    async with open_recollect(settings) as recollect:
        server = build_server(settings, recollect)
        freeze()
        await server.serve()


async def work(settings: Settings, concurrency: int) -> None:
    """Run jobs until SIGINT or SIGTERM; what was begun is finished first."""
    log_to_stderr()
    async with open_recollect(settings) as recollect:
        task = asyncio.create_task(recollect.work(concurrency))
        stop_on_signals(task.cancel)
        with suppress(asyncio.CancelledError):
            await task


def build_server(settings: Settings, recollect: Recollect) -> uvicorn.Server:
    """Put the application behind a socket."""
    config = uvicorn.Config(
        create_app(recollect=recollect),
        host=settings.host,
        port=settings.port,
        access_log=False,
        log_config=None,
        server_header=False,
    )
    return Server(config)


def freeze() -> None:
    """Let the garbage collector pass over what stays for good: a look at all of it would hold every request up."""
    gc.collect()
    gc.freeze()


def log_to_stderr() -> None:
    """Log our own events as lines of JSON, and warnings of others."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    logging.getLogger("recollect").setLevel(logging.INFO)
