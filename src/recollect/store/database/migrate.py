"""Migrate a database to the newest schema: numbered .sql files, forward only, one migrator at a time."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import LiteralString, cast

from procrastinate.schema import SchemaManager
from psycopg import AsyncConnection
from psycopg.rows import DictRow

from recollect.errors import SchemaError, SetupError
from recollect.store.database.connect_errors import OWNER_VARIABLE, reach
from recollect.store.database.pool import load_queries

QUERIES = load_queries(__file__)
FOLDER = Path(__file__).parent / "migrations"
MIN_POSTGRESQL_VERSION = 16
OUTSIDE_TRANSACTION = "-- no-transaction"
ADMITS = re.compile(r"^-- admits programs from: (\d{4})$", re.MULTILINE)
JOB_ENGINE = "procrastinate/"
LATEST = 1_000_000
UNRELEASED = (
    "This database was created by an unreleased version. Start with an empty one (--data-dir or RECOLLECT_DATA_DIR)."
)


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema: its name, its text, and a checksum that detects a later edit."""

    name: str
    text: LiteralString

    @property
    def checksum(self) -> str:
        """Return the checksum of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def oldest_program(self) -> int | None:
        """Read the oldest program that may run after this step; None means only programs that know the step."""
        named = ADMITS.search(self.text)
        return int(named[1]) if named else None


async def migrate(dsn: str, report: Callable[[str], None] = lambda _: None) -> list[str]:
    """Apply missing steps in order, and return their names; safe to call from many processes at once."""
    async with await reach(dsn, OWNER_VARIABLE) as connection:
        await check_server(connection)
        await connection.execute(QUERIES["lock"])
        await connection.execute(QUERIES["prepare"])
        applied = {row["name"]: row["checksum"] for row in await fetch(connection, "applied")}
        if not (await fetch(connection, "has_job_engine"))[0]["present"]:
            await apply_job_engine(connection)
            applied |= {migration.name: migration.checksum for migration in job_engine_migrations()}
        check_origin(list_migrations(), applied)
        missing = [step for step in [*job_engine_migrations(), *list_migrations()] if is_missing(step, applied)]
        for migration in missing:
            report(migration.name)
            await apply(connection, migration)
        await connection.execute(QUERIES["show"])
        return [migration.name for migration in missing]


def list_migrations() -> list[Migration]:
    """List our steps in order."""
    return read_folder(FOLDER, "")


def job_engine_migrations() -> list[Migration]:
    """List the steps of the installed job engine, so that its upgrades are applied, too."""
    return read_folder(Path(SchemaManager.get_migrations_path()), JOB_ENGINE)


def read_folder(folder: Path, prefix: str) -> list[Migration]:
    """Read .sql files in the order of their names; they ship with packages, so they count as literals."""
    return [
        Migration(prefix + path.stem, cast("LiteralString", path.read_text(encoding="utf-8")))
        for path in sorted(folder.glob("*.sql"))
    ]


def number_of(name: str) -> int:
    """Return the number at the beginning of a step's name; a name without one is later than every program."""
    number = name.partition("_")[0]
    return int(number) if number.isdigit() else LATEST


def check_origin(known: Sequence[Migration], applied: Mapping[str, str]) -> None:
    """Raise SchemaError if a database has different steps under numbers that a program knows.

    Until the first release the files are edited in place: a database with earlier texts cannot be migrated.
    """
    texts = {step.name: step.checksum for step in known}
    newest = max((number_of(name) for name in texts), default=0)
    for name, checksum in applied.items():
        if not name.startswith(JOB_ENGINE) and number_of(name) <= newest and texts.get(name) != checksum:
            raise SchemaError(UNRELEASED)


def is_missing(migration: Migration, applied: dict[str, str]) -> bool:
    """Return whether a step must still run; raise SetupError if it was edited after it ran."""
    known = applied.get(migration.name)
    if known is not None and known != migration.checksum:
        raise SetupError(f"Migration {migration.name} was changed after it had been applied: restore its text.")
    return known is None


async def apply(connection: AsyncConnection[DictRow], migration: Migration) -> None:
    """Run one step and record it, in one transaction if PostgreSQL allows it."""
    record = to_record(migration)
    if migration.text.startswith(OUTSIDE_TRANSACTION):
        await connection.execute(migration.text)
        await connection.execute(QUERIES["record"], record)
        return
    async with connection.transaction():
        await connection.execute(migration.text)
        await connection.execute(QUERIES["record"], record)


def to_record(migration: Migration) -> dict[str, str | int | None]:
    """Return the record of an applied step."""
    return {
        "name": migration.name,
        "checksum": migration.checksum,
        "oldest_program": migration.oldest_program,
    }


async def apply_job_engine(connection: AsyncConnection[DictRow]) -> None:
    """Install the job engine's whole schema and record all its steps as done."""
    async with connection.transaction():
        await connection.execute(SchemaManager.get_schema())
        for migration in job_engine_migrations():
            await connection.execute(QUERIES["record"], to_record(migration))


async def check_server(connection: AsyncConnection[DictRow]) -> None:
    """Refuse a server that is too old before anything is changed."""
    major = (await fetch(connection, "version"))[0]["major"]
    if major < MIN_POSTGRESQL_VERSION:
        raise SetupError(f"Recollect needs PostgreSQL {MIN_POSTGRESQL_VERSION} or newer; this server is {major}.")


async def fetch(connection: AsyncConnection[DictRow], name: str) -> list[DictRow]:
    """Run a named query without parameters."""
    return await (await connection.execute(QUERIES[name])).fetchall()
