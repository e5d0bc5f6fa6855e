"""Programs that tests start: the command, the environment that they find, and processes to be stopped or killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import httpx

COMMAND = str(Path(sys.executable).with_name("recollect"))
# Our own variables would change what a program does; without bytecode every start would compile all of it again.
APART = ("RECOLLECT_", "PYTHONDONTWRITEBYTECODE")
WAIT_SECONDS = 300
"""No test is about this limit; many programs that start at once on a busy machine take minutes."""


def plain_environment() -> dict[str, str]:
    """Give the variables of this process, as somebody has them who has just installed Recollect."""
    return {name: value for name, value in os.environ.items() if not name.startswith(APART)}


class Program:
    """A command of Recollect in a process of its own, to be stopped, killed and started again."""

    def __init__(self, *words: str, settings: Mapping[str, str], errors: int | None = subprocess.DEVNULL) -> None:
        self._words = words
        self._environment = plain_environment() | dict(settings)
        self._errors = errors
        self.port = int(settings.get("RECOLLECT_PORT", 0))
        self.url = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        """Start the process; it has begun when this returns, no more."""
        self.process = subprocess.Popen(
            [COMMAND, *self._words], env=self._environment, stdin=subprocess.DEVNULL, stderr=self._errors
        )

    def is_ready(self) -> bool:
        """Tell whether it serves."""
        try:
            return httpx.get(f"{self.url}/health/ready", timeout=5, trust_env=False).is_success
        except httpx.TransportError:
            return False

    def wait_until_ready(self) -> None:
        """Return when it serves."""
        until = time.monotonic() + WAIT_SECONDS
        while not self.is_ready():
            if time.monotonic() > until or self.process.poll() is not None:
                raise RuntimeError(f"the server did not come up (exit code {self.process.poll()})")
            time.sleep(0.1)

    def kill(self) -> None:
        """End the process at once, whatever it is doing."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """Ask the process to end, and give its exit code."""
        self.process.terminate()
        return self.process.wait(WAIT_SECONDS)


class Started:
    """A command in a process of its own, with all that it says on either stream; it is killed if it never ends."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self.process = subprocess.Popen(
            command, env=environment, cwd="/", text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        self.said = ""
        self._watchdog = threading.Timer(WAIT_SECONDS, self.process.kill)
        self._watchdog.start()

    def read_until(self, pattern: str) -> re.Match[str]:
        """Read lines until they have this in them."""
        while not (found := re.search(pattern, self.said)):
            line = self.process.stdout.readline()
            assert line, self.said
            self.said += line
        return found

    def stop(self) -> int:
        """Stop it as Ctrl-C does, and give its exit code."""
        self.process.send_signal(signal.SIGINT)
        self.said += self.process.stdout.read()
        self._watchdog.cancel()
        return self.process.wait()
