"""Serve one address by several processes: start them, restart those that die, and stop them together."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from tempfile import TemporaryDirectory

import typer
from prometheus_client.multiprocess import mark_process_dead

from recollect.doors.cli.terminal import stop_on_signals
from recollect.doors.http.metrics import FOLDER_VARIABLE

LOG = logging.getLogger("recollect.service")
PROGRAM = "from recollect.doors.cli.main import main; main()"
RESTART_SECONDS = 1.0
READY = b"ready"


@dataclass(slots=True)
class Supervisor:
    """The processes that serve, and whether they must stop."""

    port: int
    folder: str
    running: set[asyncio.subprocess.Process] = field(default_factory=set[asyncio.subprocess.Process])
    stopping: bool = False

    def stop(self) -> None:
        """Let every process finish its requests and end; on a second call, end them at once."""
        for process in self.running:
            with suppress(ProcessLookupError):
                (process.kill if self.stopping else process.terminate)()
        self.stopping = True

    async def keep(self, started: asyncio.Event) -> None:
        """Keep one process serving; if the first cannot start, it has said why, and no other could."""
        while not self.stopping:
            code = await self.run(started)
            if self.stopping:
                return
            if not started.is_set():
                self.stopping = True
                raise typer.Exit(code or 1)
            LOG.warning(json.dumps({"event": "server_restarts", "code": code}))
            await asyncio.sleep(RESTART_SECONDS)

    async def run(self, started: asyncio.Event) -> int:
        """Run one process to its end, and set the event when it has started; return its exit code."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)  # noqa: FBT003 - it takes no name
        with ours:
            with theirs:
                process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-c", PROGRAM, "serve", "--supervisor", str(theirs.fileno())),
                    pass_fds=[theirs.fileno()],
                    env=os.environ | {FOLDER_VARIABLE: self.folder, "RECOLLECT_PORT": str(self.port)},
                    # Ctrl-C must reach the supervisor alone: a second signal would cut off running requests.
                    start_new_session=True,
                )
            self.running.add(process)
            watching = asyncio.create_task(await_ready(ours, started))
            try:
                return await process.wait()
            finally:
                watching.cancel()
                self.running.discard(process)
                mark_process_dead(process.pid, self.folder)  # type: ignore[no-untyped-call]


async def await_ready(connection: socket.socket, ready: asyncio.Event) -> None:
    """Set the event when a process reports that it is ready."""
    if await asyncio.get_running_loop().sock_recv(connection, len(READY)):
        ready.set()


async def serve_together(count: int, port: int) -> None:
    """Serve by so many processes until stopped."""
    with TemporaryDirectory(prefix="recollect-metrics-") as folder:
        supervisor, started = Supervisor(port, folder), asyncio.Event()
        stop_on_signals(supervisor.stop)
        # The first alone: if it cannot start, that is said once, and what it prepares the others find.
        tasks = [asyncio.create_task(supervisor.keep(started))]
        waiting = asyncio.create_task(started.wait())
        await asyncio.wait([*tasks, waiting], return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if not supervisor.stopping:
            tasks += [asyncio.create_task(supervisor.keep(started)) for _ in range(count - 1)]
        await asyncio.gather(*tasks)


@contextmanager
def supervised(supervisor: int | None, stop: Callable[[], object]) -> Iterator[Callable[[], None]]:
    """Stop when the supervisor is gone; yield a function that reports that we are ready."""
    if supervisor is None:
        yield lambda: None
        return
    loop = asyncio.get_running_loop()
    with socket.socket(fileno=supervisor) as connection:
        connection.setblocking(False)  # noqa: FBT003 - it takes no name
        loop.add_reader(connection, stop)
        try:
            yield lambda: report_ready(connection)
        finally:
            loop.remove_reader(connection)


def report_ready(connection: socket.socket) -> None:
    """Report that we are ready; if the supervisor is gone, we are about to stop."""
    with suppress(OSError):
        connection.send(READY)
