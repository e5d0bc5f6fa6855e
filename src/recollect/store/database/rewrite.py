"""Rewrite all tables that can hold content, so that erased content leaves the data files, too."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from psycopg import AsyncConnection, errors, sql
from psycopg.rows import DictRow

from recollect.store.database.ownership import owning
from recollect.store.database.pool import load_queries

QUERIES = load_queries(__file__)
MAX_ATTEMPTS = 20
"""Maximum number of rewrites of a table while an open transaction still sees erased rows."""
PAUSE_SECONDS = 0.5
NUMBER = re.compile(r"\d+")
COPIER = "copy_table_data"
"""The server's function that reports how many rows it copied: texts are in the server's language."""
OLD_STATISTICS = 180_000
NOT_ALLOWED = "this role may not; run it as a superuser"


@dataclass(frozen=True, slots=True)
class Table:
    """A table and its size on disk, including indexes and large values."""

    name: str
    bytes: int


@dataclass(frozen=True, slots=True)
class RewriteResult:
    """The rewritten tables, and the tables that failed with their reasons."""

    tables: tuple[Table, ...]
    left: tuple[tuple[str, str], ...]


Report: TypeAlias = Callable[[Table], None]


async def rewrite_tables(dsn: str, report: Report, *, dry_run: bool = False) -> RewriteResult:
    """Rewrite each table under a lock, then write a checkpoint; a dry run only lists the tables."""
    left: list[tuple[str, str]] = []
    async with owning(dsn) as connection:
        rows = await (await connection.execute(QUERIES["tables"])).fetchall()
        for row in rows:
            table = Table(row["name"], row["bytes"])
            if not dry_run and (problem := await rewrite(connection, row)):
                left.append((table.name, problem))
            report(table)
        if not dry_run and (problem := await write_checkpoint(connection)):
            left.append(("checkpoint", problem))
    return RewriteResult(tuple(Table(row["name"], row["bytes"]) for row in rows), tuple(left))


async def rewrite(connection: AsyncConnection[DictRow], table: DictRow) -> str:
    """Rewrite one table and its statistics; return why erased content may be left, or an empty text."""
    problem = "" if table["catalog"] else await forget_samples(connection, table["name"])
    query = sql.SQL(QUERIES["rewrite_catalog" if table["catalog"] else "rewrite"])
    name = sql.SQL(".").join(sql.Identifier(part) for part in table["name"].strip('"').split("."))
    kept = 0
    for _ in range(MAX_ATTEMPTS):
        notices = Notices()
        connection.add_notice_handler(notices.read_notice)
        try:
            await connection.execute(query.format(table=name))
        except errors.InsufficientPrivilege:
            return NOT_ALLOWED
        finally:
            connection.remove_notice_handler(notices.read_notice)
        if notices.refused:
            return NOT_ALLOWED
        if not (kept := notices.kept):
            return problem
        # A transaction that began before the erasure still sees erased rows: the next rewrite removes them.
        await asyncio.sleep(PAUSE_SECONDS)
    return f"{kept} erased rows are still seen by an open transaction, a standby or a slot"


async def forget_samples(connection: AsyncConnection[DictRow], name: str) -> str:
    """Delete the planner's samples of a table's columns."""
    old = connection.info.server_version < OLD_STATISTICS
    try:
        await connection.execute(QUERIES["forget_samples_before_18" if old else "forget_samples"], {"name": name})
    except errors.InsufficientPrivilege:
        return f"samples of its columns are kept in pg_statistic: {NOT_ALLOWED}"
    return ""


async def write_checkpoint(connection: AsyncConnection[DictRow]) -> str:
    """Write a checkpoint, so that the replaced files are removed now."""
    try:
        await connection.execute(QUERIES["checkpoint"])
    except errors.InsufficientPrivilege:
        return "the replaced files are removed at the next checkpoint: this role may not start one"
    return ""


class Notices:
    """The notices of the server while it rewrites a table."""

    def __init__(self) -> None:
        self.kept = 0
        self.refused = False

    def read_notice(self, diagnostic: errors.Diagnostic) -> None:
        """Read a warning, or the number of erased rows that were kept: the first number of the detail."""
        if diagnostic.severity_nonlocalized == "WARNING":
            self.refused = True
        elif diagnostic.source_function == COPIER:
            number = NUMBER.search(diagnostic.message_detail or "")
            self.kept += int(number[0]) if number else 0
