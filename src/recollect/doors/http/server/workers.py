"""Serve one address by several processes: start them, restart those that die, and stop them together."""

from __future__ import annotations

import asyncio
import json
import logging
import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from tempfile import TemporaryDirectory

from prometheus_client.multiprocess import mark_process_dead

from recollect.doors.http.metrics import FOLDER_VARIABLE

LOG = logging.getLogger("recollect.service")
SPAWN = multiprocessing.get_context("spawn")
RESTART_SECONDS = 1.0


def serve_with_workers(count: int, serve: Callable[[], None]) -> None:
    """Keep `count` processes serving until SIGINT or SIGTERM; a second signal ends them at once."""
    running: list[SpawnProcess] = []
    stopping = False

    def stop(*_: object) -> None:
        nonlocal stopping
        for each in running:
            (each.kill if stopping else each.terminate)()
        stopping = True

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    with TemporaryDirectory(prefix="recollect-metrics-") as folder:
        os.environ[FOLDER_VARIABLE] = folder
        while running or not stopping:
            while len(running) < count and not stopping:
                process = SPAWN.Process(target=serve)
                process.start()
                running.append(process)
                if stopping:  # the signal came before the process was known
                    process.terminate()
            wait([each.sentinel for each in running])
            codes = remove_ended(running, folder)
            if codes and not stopping:
                LOG.warning(json.dumps({"event": "server_process_restarted", "codes": codes}))
                time.sleep(RESTART_SECONDS)


def remove_ended(running: list[SpawnProcess], folder: str) -> list[int | None]:
    """Remove processes that have ended, and their gauges; return their exit codes."""
    ended = [each for each in running if each.exitcode is not None]
    for each in ended:
        running.remove(each)
        mark_process_dead(each.pid, folder)  # type: ignore[no-untyped-call]
    return [each.exitcode for each in ended]


def follow_supervisor(stop: Callable[[], object]) -> None:
    """Stop when the process that started this one is gone; leave Ctrl-C to it, which stops all of them."""
    if supervisor := multiprocessing.parent_process():
        os.setsid()
        asyncio.get_running_loop().add_reader(supervisor.sentinel, stop)
