"""Run the long-lived processes: the API, the worker, or both on one machine."""

from __future__ import annotations

import asyncio
import errno
import gc
import json
import logging
import socket
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from itertools import chain
from typing import Any, cast

import uvicorn
from fastapi import FastAPI
from rich.console import Console
from rich.markup import escape

from recollect.doors.cli.terminal import err, restore_signal_handlers, stop_on_signals
from recollect.doors.greeting import GREETING, translate
from recollect.doors.http.app import create_app
from recollect.doors.http.console import OneTimeLinks, is_loopback
from recollect.doors.http.server.capacity import KEEP_SECONDS
from recollect.doors.http.server.protocol import BoundedProtocol
from recollect.doors.http.server.workers import follow_supervisor, serve_with_workers
from recollect.doors.local_server import RunningServer, announced, read_address, to_url
from recollect.doors.logs import log_to_stderr, report
from recollect.errors import RecollectError, SetupError, UnauthenticatedError
from recollect.loading import load, package_version
from recollect.mind.service import Recollect
from recollect.models.service import Right
from recollect.settings import Settings
from recollect.tracing import tracing
from recollect.wiring import open_recollect

LOG = logging.getLogger("recollect.service")
COMMAND_LINE, FULL_TRUST = "command line", 100
"""The key with which commands ask the server that `recollect up` runs."""
USUAL, SHARED = (socket.SO_REUSEADDR,), (socket.SO_REUSEADDR, socket.SO_REUSEPORT)
"""Socket options of one process, and of each of several: the system spreads connections over them."""


def run(work: Coroutine[Any, Any, None]) -> None:
    """Run until done, on the faster event loop if it is installed."""
    factory = None
    if find_spec("uvloop"):  # not made for every platform
        factory = load("uvloop").new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(work)


class Server(uvicorn.Server):
    """A server that ends by returning: uvicorn's own would raise the signal again, without cleaning up."""

    announces = False
    """Whether to print a message when the server stops."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop serving on SIGINT and SIGTERM; a second one ends the process at once."""
        stop_on_signals(self.stop)
        try:
            yield
        finally:
            restore_signal_handlers()

    def stop(self) -> None:
        """Stop serving."""
        if not self.should_exit and self.announces:
            err.print(translate("Stopping; what runs is finished first. Ctrl-C again ends it at once."))
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End answers that would never end, then wait for the others."""
        cast("FastAPI", self.config.app).state.draining.set()
        await super().shutdown(sockets)


async def up(
    settings: Settings, tenant: str, console: Console, report_step: Callable[[str], None] = lambda _: None
) -> None:
    """Run everything in this process until stopped, or until the worker fails."""
    log_to_stderr(settings.log_level)
    with bound_sockets(settings) as sockets:
        waiting = settings.postgres.start_timeout_seconds
        async with open_recollect(settings, work=False, wait_seconds=waiting, report=report_step) as recollect:
            secret = await recollect.operator.first_key(tenant)
            server = build_server(settings, recollect)
            server.announces = True
            link = make_link(server, settings, tenant)
            worker = asyncio.create_task(recollect.work())
            worker.add_done_callback(lambda _: setattr(server, "should_exit", True))
            with ExitStack() as stack:
                welcome = FirstLogin(secret, link, tenant)
                greeter = asyncio.create_task(print_greeting(server, recollect, welcome, console, stack, report_step))
                greeter.add_done_callback(report_failure)
                try:
                    await listen(server, sockets, settings)
                finally:
                    greeter.cancel()
                    await asyncio.gather(greeter, return_exceptions=True)
                    await end_worker(worker)


def report_failure(task: asyncio.Task[None]) -> None:
    """Log the error of a task that nobody waits for."""
    if not task.cancelled() and (problem := task.exception()):
        report(LOG, "greeting_failed", problem)


async def end_worker(worker: asyncio.Task[None]) -> None:
    """Stop the worker; if it has ended by an error before, log it and raise it as our own."""
    worker.cancel()
    try:
        await worker
    except asyncio.CancelledError:
        pass
    except Exception as problem:
        report(LOG, "worker_failed", problem)
        reason = str(problem) if isinstance(problem, RecollectError) else type(problem).__name__
        raise RecollectError(f"Stopped: the worker failed ({reason}).") from None


@dataclass(frozen=True, slots=True)
class FirstLogin:
    """What lets the first visitor in: a new key, if there was none, and a link that works once."""

    secret: str | None
    link: str
    tenant: str


def make_link(server: uvicorn.Server, settings: Settings, tenant: str) -> str:
    """Make a link that signs in to the console once, if the server can be reached only from this machine."""
    if settings.console == "off" or not is_loopback(settings.host):
        return ""
    links: OneTimeLinks = cast("FastAPI", server.config.app).state.links
    return links.make(tenant)


async def publish_address(recollect: Recollect, url: str, tenant: str, stack: ExitStack) -> None:
    """Publish the server's address for commands of this user, with the key of the last server if it is still valid."""
    settings = recollect.settings
    if not settings.embedded:
        return
    last, _ = read_address(settings.data_folder)
    key = last.key if last and last.tenant == tenant else ""
    try:
        await recollect.authenticate(key, "cli")
    except UnauthenticatedError:
        caller = await recollect.operator.act_for(tenant)
        _, key = await recollect.create_key(caller, COMMAND_LINE, tuple(Right), FULL_TRUST)
    stack.enter_context(announced(settings.data_folder, RunningServer(url, key, tenant)))


async def print_greeting(
    server: uvicorn.Server,
    recollect: Recollect,
    welcome: FirstLogin,
    console: Console,
    stack: ExitStack,
    report_step: Callable[[str], None],
) -> None:
    """Print how to use the server, once it answers."""
    await call_when_started(server, lambda: report_step("ready"))
    log_ready(recollect, address=address_of(server, recollect.settings))
    await publish_address(recollect, address_of(server, recollect.settings), welcome.tenant, stack)
    embedder = recollect.parts.embedder
    key = (
        translate("API key (shown this once): [bold]{secret}[/bold]", secret=welcome.secret)
        if welcome.secret
        else translate("An API key exists already. Make another: recollect admin keys create NAME")
    )
    model = embedder.model if embedder else translate("none (recall by words only)")
    active = [space.model for space, _ in await recollect.operator.spaces.list() if space.state == "active"]
    if embedder and embedder.model not in active:
        model += f", but recall reads {' '.join(active)}: run `recollect admin embeddings change`"
    url = address_of(server, recollect.settings)
    if welcome.link:
        # After `#`, which no browser sends: neither into a server's log nor to another page.
        address = f"{url}/console#link={welcome.link}"
        key += "\n" + translate(
            "See it in a browser (this link works once, for ten minutes): {address}", address=address
        )
    console.print(translate(GREETING, url=url, embedder=escape(model), key=key), highlight=False, soft_wrap=True)


def serve(settings: Settings, workers: int) -> None:
    """Serve the API until stopped, by this process or by several."""
    if workers == 1:
        serve_alone(settings)
        return
    log_to_stderr(settings.log_level)
    with bound_sockets(settings):
        pass  # Refuse an address that is taken: sockets that share one would not notice.
    with bound_sockets(settings, SHARED) as sockets:
        asyncio.run(check_opening(settings))
        chosen = settings.model_copy(update={"port": sockets[0].getsockname()[1]})
        serve_with_workers(workers, partial(serve_alone, chosen, SHARED))


async def check_opening(settings: Settings) -> None:
    """Find out once, before several processes start, whether they could."""
    async with open_recollect(settings, work=False, wait_seconds=settings.postgres.start_timeout_seconds):
        pass


def serve_alone(settings: Settings, options: Sequence[int] = USUAL) -> None:
    """Serve the API by this process until stopped."""
    log_to_stderr(settings.log_level)
    chosen = settings.operations
    with tracing(chosen.traces_url, chosen.traces_ratio, "serve"), bound_sockets(settings, options) as sockets:
        run(serve_on(settings, sockets))


async def serve_on(settings: Settings, sockets: list[socket.socket]) -> None:
    """Serve the API on bound sockets until stopped."""
    async with open_recollect(settings, work=False, wait_seconds=settings.postgres.start_timeout_seconds) as recollect:
        server = build_server(settings, recollect)
        follow_supervisor(lambda: setattr(server, "should_exit", True))
        reporting = asyncio.create_task(
            call_when_started(server, lambda: log_ready(recollect, address=address_of(server, recollect.settings)))
        )
        try:
            await listen(server, sockets, settings)
        finally:
            reporting.cancel()


def log_ready(recollect: Recollect, *, address: str = "") -> None:
    """Log once that a process is ready, and with what."""
    embedder = recollect.parts.embedder
    line = {
        "event": "server_ready",
        "version": package_version(),
        "address": address or None,
        "schema": recollect.probe.schema,
        "embedder": embedder.model if embedder else None,
        "postgresql": recollect.probe.postgresql,
    }
    LOG.info(json.dumps(line))


def address_of(server: uvicorn.Server, settings: Settings) -> str:
    """Return the address at which a started server listens."""
    return to_url(settings.host, server.servers[0].sockets[0].getsockname()[1])


async def call_when_started(server: uvicorn.Server, call: Callable[[], object]) -> None:
    """Call once the server answers."""
    while not server.started:  # noqa: ASYNC110 - the server has no event for its start
        await asyncio.sleep(0.02)
    call()


async def work(settings: Settings, concurrency: int) -> None:
    """Run jobs until SIGINT or SIGTERM; running jobs are finished first."""
    log_to_stderr(settings.log_level)
    async with open_recollect(settings, work=False, wait_seconds=settings.postgres.start_timeout_seconds) as recollect:
        log_ready(recollect)
        task = asyncio.create_task(recollect.work(concurrency))
        stop_on_signals(task.cancel)
        with suppress(asyncio.CancelledError):
            await task


def build_server(settings: Settings, recollect: Recollect) -> Server:
    """Build the server of the application on a socket."""
    config = uvicorn.Config(
        create_app(recollect=recollect),
        host=settings.host,
        port=settings.port,
        http=BoundedProtocol,
        access_log=False,
        log_config=None,
        proxy_headers=False,  # those of the proxies that the settings name are read by the application
        server_header=False,
        timeout_keep_alive=KEEP_SECONDS,
    )
    return Server(config)


@contextmanager
def bound_sockets(settings: Settings, options: Sequence[int] = USUAL) -> Iterator[list[socket.socket]]:
    """Bind the address before anything else is started; nobody can connect before the server listens."""
    find = partial(socket.getaddrinfo, settings.host, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    with ExitStack() as stack:
        try:
            health = settings.operations.health_port
            found = chain(find(settings.port), find(health) if health else ())
            sockets = [
                stack.enter_context(bind(family, address, options)) for family, *_, address in dict.fromkeys(found)
            ]
        except OSError as problem:
            raise refuse_address(settings, problem) from None
        yield sockets


def bind(family: socket.AddressFamily, address: tuple[Any, ...], options: Sequence[int]) -> socket.socket:
    """Bind a socket as asyncio would."""
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        for option in options:
            bound.setsockopt(socket.SOL_SOCKET, option, 1)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        bound.bind(address)
    except OSError:
        bound.close()
        raise
    return bound


async def listen(server: uvicorn.Server, sockets: list[socket.socket], settings: Settings) -> None:
    """Serve on the sockets; if two start at once on one address, the second fails here."""
    # Objects so far stay for good: collecting them would hold up every request.
    gc.collect()
    gc.freeze()
    try:
        await server.serve(sockets=sockets)
    except OSError as problem:
        if server.started:
            raise
        raise refuse_address(settings, problem) from None


def refuse_address(settings: Settings, problem: OSError) -> SetupError:
    """Return an error for an address that cannot be used, with advice."""
    health = settings.operations.health_port
    place = f"{settings.host}:{settings.port}" + (f" or :{health}" if health else "")
    if problem.errno == errno.EADDRINUSE:
        return SetupError(f"{place} is already in use. Check with `recollect doctor`, or choose another --port.")
    return SetupError(f"Cannot listen on {place} ({problem.strerror}): choose another --host or --port.")
