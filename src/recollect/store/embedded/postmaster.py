"""One PostgreSQL data directory and its processes: find, query, launch, stop, kill."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

import psycopg
from psycopg.conninfo import make_conninfo

from recollect.errors import UnavailableError
from recollect.store.database.pool import load_queries
from recollect.store.embedded.account import Account

QUERIES = load_queries(__file__)
PORT = 5432
_PROCESSES = Path("/proc")
_PAUSE = 0.02
_LOG_LIMIT = 10_000_000


class Postmaster:
    """The server of one data directory, started by any process."""

    def __init__(self, directory: Path, log: Path, account: Account) -> None:
        self.directory = directory
        self.log = log
        self._account = account
        self._child: subprocess.Popen[bytes] | None = None

    def launch(self, programs: Path) -> None:
        """Start a server as a child of this process; its output goes to the log."""
        self._drop_recycled_pid()
        if self.log.exists() and self.log.stat().st_size > _LOG_LIMIT:
            self.log.replace(self.log.with_suffix(".old"))
        descriptor = self._account.open(self.log)
        try:
            self._child = self._account.launch(programs / "postgres", "-D", self.directory, log=descriptor)
        finally:
            os.close(descriptor)

    def failed(self) -> bool:
        """Return whether the server that this process launched has ended."""
        return self._child is not None and self._child.poll() is not None

    def answers(self) -> bool:
        """Return whether a server for this directory answers on a private socket."""
        folder, port = self.socket()
        try:
            if folder is None or folder.is_symlink() or folder.stat().st_uid != self._account.uid:
                return False
            place = make_conninfo(host=str(folder), port=port, dbname="postgres", user="postgres")
            with psycopg.connect(place, connect_timeout=2, autocommit=True) as connection:
                row = connection.execute(QUERIES["identify"]).fetchone()
        except (OSError, psycopg.Error):
            return False
        return row is not None and Path(str(row[0])) == self.directory

    def socket(self) -> tuple[Path | None, int]:
        """Return the folder and the number of the server's socket, from its pid file."""
        lines = self._pid_file()
        if len(lines) < 5 or not lines[3].isdigit() or not lines[4]:
            return None, PORT
        return Path(lines[4]), int(lines[3])

    def processes(self) -> list[int]:
        """List the running processes that serve this directory, including orphans."""
        if not _PROCESSES.joinpath("self").exists():
            pid = self._written_pid()
            return [pid] if pid and _exists(pid) else []
        return [int(entry.name) for entry in _PROCESSES.iterdir() if entry.name.isdigit() and self._serves(entry)]

    def stop_fast(self, deadline: float) -> None:
        """Stop the server fast: roll back open transactions, write a checkpoint, end."""
        pid = self._written_pid()
        if pid in self.processes():
            os.kill(pid, signal.SIGINT)
        while not self.failed() and self.processes():
            if time.monotonic() > deadline:
                raise UnavailableError(f"PostgreSQL in {self.directory} does not stop\n{self.tail()}")
            time.sleep(_PAUSE)
        self._child = None

    def kill(self) -> None:
        """Kill all processes of the server at once, like a power cut."""
        first = self._written_pid()
        if first in self.processes():
            # A stopped postmaster cannot replace killed children.
            _send(first, signal.SIGSTOP)
        while pids := self.processes():
            for pid in sorted(pids, key=lambda pid: pid == first):
                _send(pid, signal.SIGKILL)
            if self._child is not None:
                self._child.poll()
            time.sleep(_PAUSE)
        if self._child is not None:
            self._child.wait()
            self._child = None

    def tail(self) -> str:
        """Read the last lines of the log."""
        with contextlib.suppress(OSError), self.log.open("rb") as file:
            file.seek(max(0, self.log.stat().st_size - 4000))
            return "\n".join(file.read().decode(errors="replace").splitlines()[-20:])
        return ""

    def _serves(self, entry: Path) -> bool:
        # Server processes work in their data directory, so a reused process ID is not mistaken for one.
        try:
            program = (entry / "exe").readlink().name
            return program.startswith("postgres") and (entry / "cwd").readlink() == self.directory
        except OSError:
            return False

    def _drop_recycled_pid(self) -> None:
        # PostgreSQL refuses to start while the process ID in its file belongs to a running process.
        pid = self._written_pid()
        if pid and pid not in self.processes() and _exists(pid):
            (self.directory / "postmaster.pid").unlink(missing_ok=True)

    def _written_pid(self) -> int:
        lines = self._pid_file()
        return int(lines[0]) if lines and lines[0].strip().isdigit() else 0

    def _pid_file(self) -> list[str]:
        try:
            return (self.directory / "postmaster.pid").read_text().splitlines()
        except OSError:
            return []


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
