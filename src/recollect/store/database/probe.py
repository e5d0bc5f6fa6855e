"""Check on a connection outside of the pool whether the database answers, and whether its schema and our role fit."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import psycopg
from psycopg import errors

from recollect.core.text.variants import CARRIED, NEWEST, not_carried
from recollect.errors import SchemaError, SetupError, UnavailableError
from recollect.models.service import EmbeddingSpace
from recollect.store.database.migrate import (
    JOB_ENGINE,
    Migration,
    check_origin,
    job_engine_migrations,
    number_of,
    own_migrations,
)
from recollect.store.database.pool import Connection, load_queries
from recollect.store.database.refusals import connect, reach
from recollect.store.database.translation import translated_errors

QUERIES = load_queries(__file__)
NOT_MIGRATED = (errors.UndefinedTable, errors.UndefinedColumn, errors.InsufficientPrivilege)
UNSETTLED = (
    "This database was restored from a backup, and what was erased since may still be in it: let `recollect backup "
    "restore` end, or run `recollect backup replay`."
)
UNREADABLE = "The database has no schema that this program can read: run `recollect migrate`."


@dataclass(frozen=True, slots=True)
class Applied:
    """A migration as a database has it: the checksum of its text, and the oldest program that it admits."""

    checksum: str
    oldest_program: int | None = None


class Probe:
    """A connection that serves no request, so that a busy pool does not delay it."""

    def __init__(self, dsn: str, connection: Connection) -> None:
        self._dsn = dsn
        self._connection = connection
        self._turn = asyncio.Lock()
        self.text_version = NEWEST
        """By which version new scopes fold texts, as of the last check; others follow when they are rewritten."""
        self._known = [*own_migrations(), *job_engine_migrations()]

    @classmethod
    async def open(cls, dsn: str, wait_seconds: float = 0) -> Probe:
        """Connect, or say why the database cannot be used; one that does not answer yet is waited for."""
        probe = cls(dsn, await reach(dsn, wait_seconds=wait_seconds))
        try:
            await probe.check()
            await probe.check_role()
        except BaseException:
            await probe.close()
            raise
        return probe

    async def close(self) -> None:
        """Close the connection."""
        await self._connection.close()

    @property
    def postgresql(self) -> str:
        """Say which version the server has."""
        return self._connection.info.parameter_status("server_version") or ""

    @property
    def schema(self) -> str:
        """Name the newest migration that this program knows; the database has it, or this would not be open."""
        return max(step.name for step in own_migrations())

    async def check(self) -> None:
        """Raise UnavailableError unless the database answers, and SchemaError unless its schema fits this program."""
        async with self._turn:
            with translated_errors():
                applied = await self._read_applied()
            check_schema(self._known, applied)
            with translated_errors():
                row = await (await self._connection.execute(QUERIES["text_version"])).fetchone()
        if row is not None and not row["begun"]:
            raise SchemaError(UNSETTLED)
        self.text_version = row["version"] if row else 0
        if self.text_version not in CARRIED:
            raise SchemaError(not_carried(self.text_version))

    async def _read_applied(self) -> dict[str, Applied]:
        """Read which migrations the database has, over a new connection if the old one was lost."""
        with suppress(psycopg.OperationalError):
            return await read_applied(self._connection)
        if not self._connection.closed:
            raise UnavailableError("The database does not tell its schema; try again.")
        self._connection = await connect(self._dsn)
        return await read_applied(self._connection)

    async def active_space(self) -> EmbeddingSpace | None:
        """Read which space recall reads."""
        async with self._turn:
            with translated_errors():
                return await read_active(self._connection)

    async def check_role(self) -> None:
        """Raise SetupError if row-level security does not bind our role."""
        with translated_errors():
            row = await (await self._connection.execute(QUERIES["role"])).fetchone()
        if row is not None and (row["passes"] or row["owns"]):
            raise SetupError(
                f"Row-level security does not bind the role {row['name']}, which is a superuser, has BYPASSRLS or owns "
                "the tables: name the role recollect_service of deploy/roles.sql in RECOLLECT_DATABASE_URL."
            )


async def find_active_space(dsn: str, wait_seconds: float = 0) -> EmbeddingSpace | None:
    """Read which space recall reads, before anything is opened; a database that has no schema yet has none."""
    connection = await reach(dsn, wait_seconds=wait_seconds)
    try:
        with translated_errors(), suppress(*NOT_MIGRATED):
            return await read_active(connection)
    finally:
        await connection.close()
    return None


async def read_active(connection: Connection) -> EmbeddingSpace | None:
    """Read which space is active."""
    row = await (await connection.execute(QUERIES["active_space"])).fetchone()
    return None if row is None else EmbeddingSpace(**row)


async def read_applied(connection: Connection) -> dict[str, Applied]:
    """Read which migrations a database has."""
    try:
        answer = await connection.execute(QUERIES["applied"])
    except NOT_MIGRATED:
        raise SchemaError(UNREADABLE) from None
    return {row["name"]: Applied(row["checksum"], row["oldest_program"]) for row in await answer.fetchall()}


def check_schema(known: Sequence[Migration], applied: Mapping[str, Applied]) -> None:
    """Compare the migrations that a program knows with those that a database has; raise SchemaError if it must not run.

    A program is as old as its newest migration. One that the program does not know says how old a program may be.
    """
    own = [step for step in known if not step.name.startswith(JOB_ENGINE)]
    check_origin(own, {name: each.checksum for name, each in applied.items()})
    missing = [step.name for step in known if step.name not in applied]
    if missing:
        raise SchemaError(
            f"The schema of the database is older than this program, it lacks {len(missing)} migrations from "
            f"{missing[0]} on: run `recollect migrate`."
        )
    program = max((number_of(step.name) for step in own), default=0)
    for name in sorted(applied.keys() - {step.name for step in known}):
        if name.startswith(JOB_ENGINE):
            continue
        oldest = applied[name].oldest_program
        if (number_of(name) if oldest is None else oldest) > program:
            raise SchemaError(
                f"The schema of the database is newer than this program, which does not fit {name}: update the program."
            )
