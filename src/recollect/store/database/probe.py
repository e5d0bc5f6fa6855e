"""Check outside of the pool whether the database answers, and whether its schema and our role fit."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import psycopg
from psycopg import errors

from recollect.errors import SchemaError, SetupError, UnavailableError
from recollect.models.service import EmbeddingSpace
from recollect.models.shards import ServerIdentity
from recollect.store.database.connect_errors import connect, reach
from recollect.store.database.errors import translated_errors
from recollect.store.database.identity import check_identity
from recollect.store.database.migrate import (
    JOB_ENGINE,
    Migration,
    check_origin,
    job_engine_migrations,
    list_migrations,
    number_of,
)
from recollect.store.database.pool import Connection, load_queries

QUERIES = load_queries(__file__)
NOT_MIGRATED = (errors.UndefinedTable, errors.UndefinedColumn, errors.InsufficientPrivilege)
UNSETTLED = (
    "This database was restored from a backup and may contain erased data. Finish `recollect admin backup restore`, "
    "or run `recollect admin backup replay`."
)
UNREADABLE = "The database has no schema that this program can read. Run `recollect admin migrate`."


@dataclass(frozen=True, slots=True)
class AppliedMigration:
    """An applied migration of a database: the checksum of its text, and the oldest program that it allows."""

    checksum: str
    oldest_program: int | None = None


class Probe:
    """A connection that serves no request, so that a busy pool does not delay it."""

    def __init__(self, place: tuple[str, ServerIdentity | None], connection: Connection) -> None:
        self.place = place
        """The address of the server, and its expected identity if there are several."""
        self._connection = connection
        self._turn = asyncio.Lock()
        self._known = [*list_migrations(), *job_engine_migrations()]

    @classmethod
    async def open(cls, dsn: str, wait_seconds: float = 0, expected: ServerIdentity | None = None) -> Probe:
        """Connect, waiting until the database answers; raise an error if it cannot be used."""
        probe = cls((dsn, expected), await reach(dsn, wait_seconds=wait_seconds))
        try:
            await probe.check()
            await probe.check_role()
        except BaseException:
            await probe.disconnect()
            raise
        return probe

    async def disconnect(self) -> None:
        """Close the connection."""
        await self._connection.close()

    @property
    def postgresql(self) -> str:
        """Return the version of the server."""
        return self._connection.info.parameter_status("server_version") or ""

    @property
    def schema(self) -> str:
        """Return the name of the newest migration that this program knows; the database has it."""
        return max(step.name for step in list_migrations())

    async def check(self) -> None:
        """Raise UnavailableError unless the database answers, and SchemaError unless its schema fits this program."""
        async with self._turn:
            with translated_errors():
                applied = await self._read_applied()
            check_schema(self._known, applied)
            with translated_errors():
                row = await (await self._connection.execute(QUERIES["begun"])).fetchone()
        if row is not None and not row["begun"]:
            raise SchemaError(UNSETTLED)

    async def _read_applied(self) -> dict[str, AppliedMigration]:
        """Read the applied migrations, over a new connection if the old one was lost."""
        with suppress(psycopg.OperationalError):
            return await self._ask_applied()
        if not self._connection.closed:
            raise UnavailableError("Cannot read the schema version. Try again.")
        self._connection = await connect(self.place[0])
        return await self._ask_applied()

    async def _ask_applied(self) -> dict[str, AppliedMigration]:
        if self.place[1] is not None:
            await check_identity(self._connection, self.place[1])
        return await read_applied(self._connection)

    async def active_space(self) -> EmbeddingSpace | None:
        """Read the active embedding space, which recall reads."""
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
    """Read the active embedding space before a pool is opened; None if the database has no schema."""
    connection = await reach(dsn, wait_seconds=wait_seconds)
    try:
        with translated_errors(), suppress(*NOT_MIGRATED):
            return await read_active(connection)
    finally:
        await connection.close()
    return None


async def read_active(connection: Connection) -> EmbeddingSpace | None:
    """Read the active embedding space."""
    row = await (await connection.execute(QUERIES["active_space"])).fetchone()
    return None if row is None else EmbeddingSpace(**row)


async def read_applied(connection: Connection) -> dict[str, AppliedMigration]:
    """Read the applied migrations of a database."""
    try:
        answer = await connection.execute(QUERIES["applied"])
    except NOT_MIGRATED:
        raise SchemaError(UNREADABLE) from None
    return {row["name"]: AppliedMigration(row["checksum"], row["oldest_program"]) for row in await answer.fetchall()}


def check_schema(known: Sequence[Migration], applied: Mapping[str, AppliedMigration]) -> None:
    """Compare the migrations that a program knows with those of a database; raise SchemaError if it must not run.

    A program is as old as its newest migration. A migration that the program does not know names the oldest program
    that may run.
    """
    own = [step for step in known if not step.name.startswith(JOB_ENGINE)]
    check_origin(own, {name: each.checksum for name, each in applied.items()})
    missing = [step.name for step in known if step.name not in applied]
    if missing:
        raise SchemaError(
            f"The schema of the database is older than this program, it lacks {len(missing)} migrations from "
            f"{missing[0]} on. Run `recollect admin migrate`."
        )
    program = max((number_of(step.name) for step in own), default=0)
    for name in sorted(applied.keys() - {step.name for step in known}):
        if name.startswith(JOB_ENGINE):
            continue
        oldest = applied[name].oldest_program
        if (number_of(name) if oldest is None else oldest) > program:
            raise SchemaError(f"The database schema is newer than this program ({name}). Upgrade Recollect.")
