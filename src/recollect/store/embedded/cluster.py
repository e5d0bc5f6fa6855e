"""An embedded PostgreSQL in a folder, shared by processes; the last one that leaves stops it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Self

from psycopg.conninfo import make_conninfo

from recollect.errors import ConflictError, SetupError, UnavailableError
from recollect.store.embedded.account import Account, choose_account, reachable_programs
from recollect.store.embedded.postmaster import PORT, Postmaster

SMALL_MACHINE: Mapping[str, str] = MappingProxyType(
    {
        "shared_buffers": "256MB",
        "max_connections": "200",
        "max_wal_size": "2GB",
        "wal_level": "replica",
        "random_page_cost": "1.1",
        "jit": "off",
        "timezone": "UTC",
        "log_timezone": "UTC",
        "log_line_prefix": "%m [%p] ",
        # Content must not reach the log: neither statements, nor parameters, nor error texts.
        "log_min_messages": "log",
        "log_min_error_statement": "panic",
        "log_error_verbosity": "terse",
        "log_parameter_max_length": "0",
        "log_parameter_max_length_on_error": "0",
    }
)
_OWN_SETTINGS = frozenset({"listen_addresses", "port", "unix_socket_directories", "unix_socket_permissions"})
_MAX_SOCKET_FOLDER_LENGTH = 80
_PAUSE = 0.02
TURN_SECONDS = 60.0


class Membership:
    """Membership of one user of a cluster, stored as locks that the system releases when it dies."""

    def __init__(self, folder: Path, account: Account) -> None:
        self._folder = folder
        self._account = account
        self._joined: int | None = None
        self._process = 0

    @contextlib.contextmanager
    def turn(self, deadline: float) -> Iterator[None]:
        """Hold the exclusive right to start or stop the server."""
        descriptor = self._account.open(self._folder / "turn.lock")
        try:
            while not _try_lock(descriptor):
                if time.monotonic() > deadline:
                    raise UnavailableError(f"another process is still starting or stopping {self._folder}")
                time.sleep(_PAUSE)
            yield
        finally:
            os.close(descriptor)

    def joined(self) -> bool:
        """Return whether this process has joined; False in a fork of a joined process."""
        return self._joined is not None and self._process == os.getpid()

    def join(self) -> None:
        """Join as a user of the cluster."""
        if not self.joined():
            self.release_lock()
            self._joined, self._process = self._account.open(self._folder / "users.lock"), os.getpid()
            fcntl.flock(self._joined, fcntl.LOCK_SH)

    def alone(self) -> bool:
        """Return whether nobody else has joined. Call it only while holding the exclusive right."""
        if self._joined is None:
            return False
        alone = _try_lock(self._joined)
        fcntl.flock(self._joined, fcntl.LOCK_SH)
        return alone

    def release_lock(self) -> None:
        """Leave; close the file, because unlocking would also unlock a forking parent."""
        if self._joined is not None:
            os.close(self._joined)
            self._joined = None


class SocketFolder:
    """The folder of a server's socket, which only its user may enter."""

    def __init__(self, path: Path, account: Account) -> None:
        self.path = path
        self._account = account

    def prepare(self) -> None:
        """Create it; refuse a folder of another user."""
        if len(str(self.path)) > _MAX_SOCKET_FOLDER_LENGTH:
            raise SetupError(f"{self.path} is too long for a socket; set TMPDIR to a shorter folder")
        self.path.mkdir(mode=0o700, exist_ok=True)
        self._account.claim(self.path)
        # No server uses the folder: its files are from a dead server, whose process ID another process may have.
        for left in self.path.glob(".s.PGSQL.*"):
            left.unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove it, unless a server still listens in it or it belongs to another user."""
        with contextlib.suppress(OSError):
            if self.path.lstat().st_uid == self._account.uid:
                self.path.rmdir()


class Cluster:
    """An embedded PostgreSQL; without `port` it is reachable only by a socket private to its user."""

    def __init__(self, data: Path, port: int | None = None, settings: Mapping[str, str] = MappingProxyType({})) -> None:
        if taken := _OWN_SETTINGS & settings.keys():
            raise SetupError(f"the cluster itself sets {', '.join(sorted(taken))}; use `port` to listen on TCP")
        self.data = Path(data).expanduser().resolve()
        self.port = port
        self._settings = {**SMALL_MACHINE, **settings}
        self._account = choose_account()
        self._directory = self.data / "postgres"
        self._server = Postmaster(self._directory, self.data / "server.log", self._account)
        checksum = sha256(str(self.data).encode()).hexdigest()[:8]
        place = Path(tempfile.gettempdir()) / f"recollect-{self._account.uid}-{checksum}"
        self._sockets = SocketFolder(place, self._account)
        self._membership = Membership(self.data, self._account)

    def start(self, timeout: float = 120) -> Self:
        """Create the cluster if it is new, start or adopt its server, and wait until it answers."""
        deadline = time.monotonic() + timeout
        self._prepare_folder()
        with self._membership.turn(deadline):
            self._membership.join()
            try:
                self._start_server(deadline)
            except BaseException:
                self._sockets.remove()
                self._membership.release_lock()
                raise
        return self

    def stop(self, timeout: float = 60) -> None:
        """Leave the cluster; the last process that leaves stops the server."""
        if self._membership.joined():
            deadline = time.monotonic() + timeout
            with self._membership.turn(deadline):
                if self._membership.alone():
                    self._server.stop_fast(deadline)
                    self._sockets.remove()
                self._membership.release_lock()

    def kill(self) -> None:
        """Kill all processes of the server at once, like a power cut; start() recovers."""
        self._server.kill()

    def dsn(self, database: str = "postgres", user: str = "postgres") -> str:
        """Return the DSN: TCP with the password if a port was given, else the socket."""
        if self.port is None:
            folder, number = self._server.socket()
            place = str(folder or self._sockets.path)
            return make_conninfo(host=place, port=number, dbname=database, user=user)
        # Other roles have different passwords, or none.
        password = (self.data / "password").read_text().strip() if user == "postgres" else None
        return make_conninfo(host="127.0.0.1", port=self.port, dbname=database, user=user, password=password)

    def check_stopped(self) -> None:
        """Raise ConflictError while the server runs."""
        if self._server.processes():
            raise ConflictError(f"PostgreSQL is running in {self.data}. Stop the programs that use it.")

    def clear(self) -> None:
        """Remove the server with all its files; refuse while a process uses it."""
        if not (self.data / "turn.lock").exists():
            return  # It was not our process.
        with self._membership.turn(time.monotonic() + TURN_SECONDS):
            self._membership.join()
            try:
                if not self._membership.alone():
                    raise ConflictError(f"{self.data} is in use.")
                self._server.kill()
                shutil.rmtree(self.data, ignore_errors=True)
            finally:
                self._membership.release_lock()

    def take_over_files(self, other: Cluster, first: Callable[[], None] = lambda: None) -> str:
        """Move the files of another, stopped cluster here; move ours aside, and return where to.

        `first` runs before the new files are in place, so before any process finds the server.
        """
        self._prepare_folder()
        with self._membership.turn(time.monotonic() + TURN_SECONDS):
            self.check_stopped()
            first()
            aside = self._directory.with_name(f"postgres.replaced-{datetime.now(UTC):%Y%m%dT%H%M%S.%f}")
            moved = self._directory.exists()
            if moved:
                self._directory.rename(aside)
            other._directory.rename(self._directory)
        return str(aside) if moved else ""

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _start_server(self, deadline: float) -> None:
        wanted = self._configuration()
        if self._server.answers():
            if self._written_configuration() == wanted:
                return
            if not self._membership.alone():
                self._accept_running()
                return
            self._server.stop_fast(deadline)
        launched = False
        while not self._server.answers():
            if launched and self._server.failed():
                raise SetupError(f"PostgreSQL in {self.data} did not start\n{self._server.tail()}")
            if time.monotonic() > deadline:
                raise UnavailableError(f"PostgreSQL in {self.data} does not answer yet\n{self._server.tail()}")
            if not launched and not self._server.processes():
                self._launch(wanted)
                launched = True
            time.sleep(_PAUSE)

    def _launch(self, configuration: str) -> None:
        programs = reachable_programs(self._account, self.data)
        if not self._directory.exists():
            self._create(programs)
        self._sockets.prepare()
        self._account.replace_file(self._directory / "recollect.conf", configuration)
        self._server.launch(programs)

    def _create(self, programs: Path) -> None:
        # Created with another name, so that an interrupted initdb is never used as a cluster.
        draft = self._directory.with_suffix(".part")
        if draft.exists():
            shutil.rmtree(draft)
        password = self.data / "password"
        self._account.replace_file(password, secrets.token_urlsafe(32) + "\n")
        done = self._account.run(
            *(programs / "initdb", "-D", draft, "--username=postgres", f"--pwfile={password}"),
            *("--auth-local=trust", "--auth-host=scram-sha-256"),
            *("--encoding=UTF8", "--locale=C.UTF-8", "--data-checksums", "--no-instructions"),
        )
        if done.returncode:
            raise SetupError(f"initdb could not create {self._directory}\n{done.stdout[-2000:]}")
        main = draft / "postgresql.conf"
        self._account.replace_file(main, main.read_text() + "\ninclude 'recollect.conf'\n")
        draft.rename(self._directory)

    def _configuration(self) -> str:
        own = {
            "listen_addresses": "" if self.port is None else "127.0.0.1",
            "port": str(PORT if self.port is None else self.port),
            "unix_socket_directories": str(self._sockets.path),
            "unix_socket_permissions": "0700",
        }
        return "".join(f"{name} = {_quote(value)}\n" for name, value in {**self._settings, **own}.items())

    def _written_configuration(self) -> str:
        with contextlib.suppress(OSError):
            return (self._directory / "recollect.conf").read_text()
        return ""

    def _accept_running(self) -> None:
        # Other processes use the server unchanged; only a missing port makes it useless here.
        _, number = self._server.socket()
        if self.port not in {None, number}:
            raise SetupError(f"{self.data} is already served without port {self.port}; stop its other users first")

    def _prepare_folder(self) -> None:
        try:
            self.data.mkdir(mode=0o700, parents=True, exist_ok=True)
            strange = any(self.data.iterdir()) and not (self.data / "turn.lock").exists()
        except OSError as error:
            raise SetupError(f"cannot use {self.data} as data folder: {error}") from error
        if strange:
            raise SetupError(f"{self.data} contains other files. Choose an empty folder.")
        self._account.claim(self.data)
        closed = self._account.closed_folder(self.data)
        if closed is not None:
            raise SetupError(
                f"{closed} is closed to {self._account.name}, the user that runs PostgreSQL: choose a data "
                f"folder outside it (RECOLLECT_DATA_DIR), or open it with `chmod o+x {closed}`"
            )


def _quote(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "''").replace("\n", "\\n")
    return f"'{escaped}'"


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
