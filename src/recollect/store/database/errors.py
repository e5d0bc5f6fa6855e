"""Turn the driver's errors into ours."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import errors
from psycopg_pool import PoolTimeout

from recollect.errors import (
    ConflictError,
    InvalidInputError,
    RecollectError,
    SchemaError,
    ScopeMovedError,
    ScopeRestoringError,
    StatementTimeoutError,
    UnavailableError,
)
from recollect.store.database.driver import LOST, is_changed

UNAVAILABLE = (
    psycopg.OperationalError,
    PoolTimeout,
    errors.IdleInTransactionSessionTimeout,
    errors.ReadOnlySqlTransaction,
)
UNKNOWN = (errors.UndefinedTable, errors.UndefinedFunction, errors.UndefinedColumn, errors.UndefinedObject)
OF_SPACE = re.compile(r"\bvectors_\d+\b")
"""Names of a dropped embedding space, which a concurrent reader may still use between two round trips."""
COLD = "RC003"
"""The SQLSTATE for a scope that is not hot; the detail is its number."""
REFUSED: Mapping[str, Callable[[], RecollectError]] = {
    "RC001": lambda: ScopeMovedError("The scope has moved to another server. Try again."),
    "RC002": lambda: UnavailableError("An operator suspended the writes of this tenant; reads work. Try again later."),
}
"""Errors raised by our own database functions."""
TAKEN = {
    "messages_by_external_id": "The conversation has a message with this external_id already.",
    "beliefs_said_once": "An equal fact is already valid at an overlapping time. Read the facts, then change that one.",
    "beliefs_one_at_a_time": "The fact was changed at the same time by another call. Read it again, then retry.",
}


@contextmanager
def translated_errors() -> Iterator[None]:
    """Turn the driver's errors into ours, without their texts, which may quote content."""
    try:
        with ColdScopeTranslator():
            yield
    except (psycopg.Error, PoolTimeout) as problem:
        ours = translate(problem)
        if ours is None:
            raise
        raise ours from None


class ColdScopeTranslator:
    """Turn the error for a scope that is not hot into ours; a later error of the pipeline may hide it."""

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, _kind: object, problem: BaseException | None, _trace: object) -> None:
        """Raise our error instead."""
        for each in (problem, problem.__context__) if problem else ():
            if isinstance(each, psycopg.Error) and each.sqlstate == COLD:
                raise ScopeRestoringError(scope_id=int(each.diag.message_detail or 0)) from None


def translate(problem: psycopg.Error | PoolTimeout) -> RecollectError | None:
    """Translate an error of the driver; None if only a bug of ours can have caused it."""
    ours: RecollectError | None = None
    match problem:
        case psycopg.DatabaseError(sqlstate="RC001" | "RC002" as code):
            ours = REFUSED[code]()
        case errors.UniqueViolation() | errors.ExclusionViolation():
            ours = ConflictError(TAKEN.get(problem.diag.constraint_name or "", "This is stored already."))
        case psycopg.DataError():
            ours = InvalidInputError(f"The database cannot store this value ({describe_database_error(problem)}).")
        case _ if isinstance(problem, UNAVAILABLE):
            ours = database_unavailable_error(problem)
        case _ if isinstance(problem, LOST) or is_changed(problem):
            ours = UnavailableError(f"A prepared statement was lost ({describe_database_error(problem)}); try again.")
        case _ if isinstance(problem, UNKNOWN):
            ours = undefined_object_error(problem)
    return ours


def database_unavailable_error(problem: Exception) -> UnavailableError:
    """Return an error that explains why the database is unavailable: disk, timeout or connection."""
    if isinstance(problem, errors.DiskFull):
        return UnavailableError(
            f"The disk of the database is full ({describe_database_error(problem)}); try again when it has room."
        )
    kind = StatementTimeoutError if is_overdue(problem) else UnavailableError
    return kind(f"The database is not available ({describe_database_error(problem)}); try again.")


def undefined_object_error(problem: psycopg.Error) -> RecollectError:
    """Return an error for an unknown name: a dropped embedding space, or another schema."""
    if OF_SPACE.search(problem.diag.message_primary or ""):
        return UnavailableError(f"The embedding space was dropped ({describe_database_error(problem)}); try again.")
    return SchemaError(
        f"The database schema does not match this program ({describe_database_error(problem)}). Run `recollect "
        "admin migrate`, or update the program if the schema is newer."
    )


def is_overdue(problem: Exception) -> bool:
    """Return whether a time limit ended a statement: the error may come from a later one of the pipeline."""
    return isinstance(problem, errors.QueryCanceled) or isinstance(problem.__context__, errors.QueryCanceled)


def describe_database_error(problem: Exception) -> str:
    """Describe an error by class and code only."""
    state: Any = getattr(problem, "sqlstate", None)
    return f"{type(problem).__name__} {state}" if state else type(problem).__name__
