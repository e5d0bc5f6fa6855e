"""Connect to PostgreSQL, explain in one sentence why it is unreachable, and wait while it starts."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from dataclasses import dataclass

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import dict_row

from recollect.errors import SetupError
from recollect.store.database.driver import AbandonableConnection
from recollect.store.database.pool import CONNECTION_TIMEOUTS, Connection

LOG = logging.getLogger("recollect.database")
SERVICE_VARIABLE, OWNER_VARIABLE = "RECOLLECT_DATABASE_URL", "RECOLLECT_OWNER_DATABASE_URL"
PAUSE_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Refusal:
    """A reason why no connection was made."""

    code: str
    signs: tuple[str, ...]
    """Texts that identify it: libpq gives no SQLSTATE for a connection that was never made."""
    sentence: str
    lasting: bool = False
    """True if waiting cannot help."""


REFUSALS = (
    Refusal(
        "password",
        ("password authentication failed", "no password supplied"),
        "PostgreSQL at {place} refuses the role {role} or its password: correct them in {variable}.",
        lasting=True,
    ),
    Refusal(
        "role",
        ('role "{role}" does not exist',),
        "PostgreSQL at {place} has no role {role}: run deploy/roles.sql, or correct the user in {variable}.",
        lasting=True,
    ),
    Refusal(
        "database",
        ('database "{database}" does not exist',),
        "PostgreSQL at {place} has no database {database}: create it, or correct its name in {variable}.",
        lasting=True,
    ),
    Refusal(
        "tls",
        ("server does not support SSL, but SSL was required",),
        "PostgreSQL at {place} does not offer TLS: turn it on there (ssl = on), or take sslmode out of {variable}.",
        lasting=True,
    ),
    Refusal(
        "certificate",
        ("root certificate file", "certificate verify failed", "does not match host name"),
        "The TLS certificate of PostgreSQL at {place} is not trusted: name its CA by sslrootcert in {variable}, and "
        "the host as the certificate does.",
        lasting=True,
    ),
    Refusal(
        "not allowed",
        ("no pg_hba.conf entry", "pg_hba.conf rejects connection"),
        "PostgreSQL at {place} refuses connections of {role} to {database} from here: add sslmode=require to "
        "{variable} if it requires TLS, or allow them in pg_hba.conf.",
        lasting=True,
    ),
    Refusal(
        "not PostgreSQL",
        ("invalid response to SSL negotiation", "expected authentication request from server"),
        "The server at {place} is not PostgreSQL: correct host and port in {variable}.",
        lasting=True,
    ),
    Refusal(
        "starting",
        ("the database system is", "consistent recovery state has not been yet reached"),
        "PostgreSQL at {place} is still starting, recovering or stopping: try again when it accepts connections.",
    ),
    Refusal(
        "host",
        ("failed to resolve host", "could not translate host name"),
        "The host name in {place} cannot be resolved: correct the host in {variable}.",
    ),
    Refusal(
        "refused",
        ("Connection refused", "No such file or directory"),
        "PostgreSQL does not answer at {place}, nothing listens there: start it, or correct host and port in "
        "{variable}.",
    ),
    Refusal(
        "silent",
        ("timeout expired", "Network is unreachable", "No route to host"),
        "PostgreSQL at {place} cannot be reached from here: correct host and port in {variable}, or open the firewall.",
    ),
)
OTHER = Refusal("unknown", (), "PostgreSQL does not answer at {place}, the address in {variable}.")


async def connect(dsn: str) -> Connection:
    """Open a connection outside the pool; it prepares nothing, so a pooler in transaction mode is safe."""
    return await AbandonableConnection.connect(
        dsn, autocommit=True, prepare_threshold=None, row_factory=dict_row, **CONNECTION_TIMEOUTS
    )


async def reach(dsn: str, variable: str = SERVICE_VARIABLE, *, wait_seconds: float = 0) -> Connection:
    """Connect; retry for `wait_seconds` while PostgreSQL does not answer."""
    limit, told = time.monotonic() + wait_seconds, False
    while True:
        try:
            return await connect(dsn)
        except psycopg.OperationalError as problem:
            refusal, names = find_refusal(str(problem), dsn)
            if refusal.lasting or time.monotonic() >= limit:
                raise SetupError(refusal.sentence.format(variable=variable, **names)) from None
        except psycopg.ProgrammingError:
            raise SetupError(f"{variable} is not a valid DSN. Example: postgresql://role:password@host/name") from None
        if not told:
            told = True
            LOG.warning(json.dumps({"event": "waiting_for_database", "reason": refusal.code, "seconds": wait_seconds}))
        await asyncio.sleep(PAUSE_SECONDS)


def find_refusal(text: str, dsn: str) -> tuple[Refusal, dict[str, str]]:
    """Find why a connection failed, and the names for its error message; never the password."""
    given = conninfo_to_dict(dsn)
    host, port = str(given.get("host") or "the local socket"), str(given.get("port") or 5432)
    role = str(given.get("user") or "")
    names = {"place": f"{host}:{port}", "role": role or "of this user", "database": str(given.get("dbname") or role)}
    for refusal in REFUSALS:
        if any(sign.format(**names) in text for sign in refusal.signs):
            return refusal, names
    return OTHER, names
