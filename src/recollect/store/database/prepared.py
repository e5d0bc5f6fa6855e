"""Prepare statements under names made of what they say, as long as whatever lies before the server keeps them."""

from __future__ import annotations

import json
import logging
from hashlib import blake2b

from psycopg import errors
from psycopg._preparing import Prepare, PrepareManager
from psycopg._queries import PostgresQuery

LOG = logging.getLogger("recollect.database")
SETTING = "RECOLLECT_PREPARE_STATEMENTS"
PREFIX = b"recollect_"
MOST_PREPARED = 200
"""So many statements a connection keeps prepared; the one that was not used for longest makes room."""
LOST = (errors.InvalidSqlStatementName, errors.DuplicatePreparedStatement)
"""How a server answers that lacks a statement, or has it from somebody else: a pooler has put it in place of ours."""
CHANGED = "RevalidateCachedQuery"
"""The function of the server that refuses a prepared statement whose columns were changed meanwhile."""


class Preparing:
    """Whether the connections of a pool prepare their statements; once that was given up, it stays so."""

    def __init__(self, *, wanted: bool) -> None:
        self.wanted = wanted

    def give_up(self, sign: str) -> None:
        """Prepare nothing from now on, and say so once, with the setting that makes it the rule."""
        if self.wanted:
            self.wanted = False
            told = {"event": "statements_unprepared", "sign": sign, "setting": f"{SETTING}=false"}
            LOG.warning(json.dumps(told))


class NamedStatements(PrepareManager):
    """The prepared statements of one connection.

    The name of each is made from its text and the types of its parameters: a server connection that a pooler exchanged
    can lack it, but never runs another one in its place. The driver's own number follows, so that a statement whose
    preparation failed is never in the way.
    """

    # From the first time on. Counting first, the driver takes a statement for prepared whose pipeline broke before it.
    prepare_threshold: int | None = 0
    prepared_max: int = MOST_PREPARED

    def __init__(self, preparing: Preparing) -> None:
        super().__init__()
        self._preparing = preparing

    def get(self, query: PostgresQuery, prepare: bool | None = None) -> tuple[Prepare, bytes]:  # noqa: FBT001 - the driver's signature
        """Tell whether a statement is prepared or should be, and under which name."""
        if not self._preparing.wanted:
            self.prepare_threshold = None
        state, name = super().get(query, prepare)
        return state, name_statement(query) + name if state is Prepare.SHOULD else name

    def clear(self) -> bool:
        """Keep everything after a rollback: the service changes no table, and what it prepared outlives it."""
        return False


def name_statement(query: PostgresQuery) -> bytes:
    """Make a name of a statement's text and the types of its parameters."""
    said = query.query + repr(query.types).encode()
    return PREFIX + blake2b(said, digest_size=16).hexdigest().encode()


def is_changed(problem: Exception) -> bool:
    """Tell whether a prepared statement gives other columns than before, because the schema was changed meanwhile."""
    return isinstance(problem, errors.FeatureNotSupported) and problem.diag.source_function == CHANGED
