"""The server that commands ask: the one that RECOLLECT_URL names, or the one that `recollect up` runs here."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

from recollect.errors import SetupError
from recollect.settings import Settings

URL, KEY = "RECOLLECT_URL", "RECOLLECT_KEY"
ADDRESS_FILE = "command-line.json"
"""In the data folder, readable by its user alone, who can read the database itself as well."""
LOCK_SECONDS, PAUSE_SECONDS = 1.0, 0.02
LOCAL = {"localhost", "127.0.0.1", "::1"}
ANY_ADDRESS = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared, not bound
DEFAULT_TENANT = "default"


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server, and the key with which commands ask it."""

    url: str
    key: str
    tenant: str


def choose_server(settings: Settings, tenant: str) -> RunningServer | None:
    """Return the server to ask for a tenant; None where the database is to be opened in this process."""
    url, key = os.environ.get(URL, ""), os.environ.get(KEY, "")
    if not url:
        running = find_running(settings)
        return running if running and running.tenant == tenant else None
    if not key:
        raise SetupError(f"Set {KEY} to an API key for {url}, or unset {URL} to use the local database.")
    if tenant != DEFAULT_TENANT:
        raise SetupError(f"The API key determines the tenant: omit --tenant, or unset {URL}.")
    return RunningServer(url, key, tenant)


def find_running(settings: Settings) -> RunningServer | None:
    """Return the server that `recollect up` runs on the embedded database; None if none does."""
    server, locked = read_address(settings.data_folder) if settings.embedded else (None, False)
    return server if locked else None


def read_address(folder: Path) -> tuple[RunningServer | None, bool]:
    """Read the address that the last `recollect up` stored in a data folder; return it, and whether it still runs."""
    try:
        with (folder / ADDRESS_FILE).open(encoding="utf-8") as file:
            running = not try_lock(file.fileno(), fcntl.LOCK_SH)
            return RunningServer(**json.load(file)), running
    except (OSError, ValueError, TypeError):
        return None, False


@contextmanager
def announced(folder: Path, server: RunningServer) -> Iterator[None]:
    """Store a server's address and key in its data folder, and lock the file while the server runs.

    The system releases the lock however the process ends, so an address without a lock is out of date. If another
    server of the same folder holds the lock, commands continue to use that server.
    """
    descriptor = os.open(folder / ADDRESS_FILE, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "r+", encoding="utf-8") as file:
        os.fchmod(file.fileno(), 0o600)
        if hold_lock(file.fileno()):
            file.truncate()
            json.dump(asdict(server), file)
            file.flush()
        yield


def hold_lock(descriptor: int) -> bool:
    """Lock a file. Commands lock it briefly to see whether a server runs, so retry for a short time."""
    limit = time.monotonic() + LOCK_SECONDS
    while not try_lock(descriptor, fcntl.LOCK_EX):
        if time.monotonic() > limit:
            return False
        time.sleep(PAUSE_SECONDS)
    return True


def try_lock(descriptor: int, kind: int) -> bool:
    """Lock a file without waiting; return whether that was possible."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def to_url(host: str, port: int) -> str:
    """Write the address of a server as a program on the same machine asks it."""
    reached = ANY_ADDRESS.get(host, host)
    return f"http://[{reached}]:{port}" if ":" in reached else f"http://{reached}:{port}"


def check_local(settings: Settings) -> None:
    """Refuse to work on a database of this machine if the environment names a server on another one."""
    url = os.environ.get(URL, "")
    if url and settings.embedded and urlsplit(url).hostname not in LOCAL:
        raise SetupError(
            f"This command needs the database, but {URL} points to a server. Run it there, set "
            f"RECOLLECT_DATABASE_URL, or unset {URL}."
        )
