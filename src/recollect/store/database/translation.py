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
    BehindError,
    ConflictError,
    InvalidInputError,
    MovedError,
    OverdueError,
    RecollectError,
    SchemaError,
    UnavailableError,
    WakingError,
)
from recollect.store.database.prepared import LOST, is_changed

UNAVAILABLE = (
    psycopg.OperationalError,
    PoolTimeout,
    errors.IdleInTransactionSessionTimeout,
    errors.ReadOnlySqlTransaction,
)
UNKNOWN = (errors.UndefinedTable, errors.UndefinedFunction, errors.UndefinedColumn, errors.UndefinedObject)
OF_SPACE = re.compile(r"\b(vectors|rank_newest|rank_whole|rank_near)_\d+\b")
"""Names of a dropped embedding space, which a concurrent reader may still use between two round trips."""
COLD = "RC003"
"""What the database answers who meets a scope that is not hot; the detail is its number."""
REFUSED: Mapping[str, Callable[[], RecollectError]] = {
    "RC001": lambda: MovedError("The scope is served by another server now; try again."),
    "RC002": lambda: MovedError("The scope is being moved to another server; try again."),
    "RC004": lambda: BehindError("The replica has not come so far."),
}
"""What our own functions refuse."""
TAKEN = {
    "messages_by_external_id": "The conversation has a message with this external_id already.",
    "beliefs_said_once": "Another fact says the same for a common time: read the facts, then state or end that one.",
    "beliefs_one_at_a_time": "The fact was changed at this moment by somebody else: read it again, then try again.",
}


@contextmanager
def translated_errors() -> Iterator[None]:
    """Turn the driver's errors into ours, without their texts, which may quote content."""
    try:
        with MeetingCold():
            yield
    except (psycopg.Error, PoolTimeout) as problem:
        ours = translate(problem)
        if ours is None:
            raise
        raise ours from None


class MeetingCold:
    """Turn the error of who meets a scope that is not hot into ours; it may come from a later one of the pipeline."""

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, _kind: object, problem: BaseException | None, _trace: object) -> None:
        """Raise our error in its place."""
        for each in (problem, problem.__context__) if problem else ():
            if isinstance(each, psycopg.Error) and each.sqlstate == COLD:
                raise WakingError(scope_id=int(each.diag.message_detail or 0)) from None


def translate(problem: psycopg.Error | PoolTimeout) -> RecollectError | None:
    """Say in our words what the driver reports; None if only a mistake of ours can have caused it."""
    ours: RecollectError | None = None
    match problem:
        case psycopg.DatabaseError(sqlstate="RC001" | "RC002" | "RC004" as code):
            ours = REFUSED[code]()
        case errors.UniqueViolation() | errors.ExclusionViolation():
            ours = ConflictError(TAKEN.get(problem.diag.constraint_name or "", "This is stored already."))
        case psycopg.DataError():
            ours = InvalidInputError(f"The database cannot store this value ({describe(problem)}).")
        case _ if isinstance(problem, UNAVAILABLE):
            ours = tell_unavailable(problem)
        case _ if isinstance(problem, LOST) or is_changed(problem):
            ours = UnavailableError(f"A prepared statement was lost ({describe(problem)}); try again.")
        case _ if isinstance(problem, UNKNOWN):
            ours = tell_unknown(problem)
    return ours


def tell_unavailable(problem: Exception) -> UnavailableError:
    """Say why the database does not serve: it has no room, it took too long, or it is away."""
    if isinstance(problem, errors.DiskFull):
        return UnavailableError(f"The disk of the database is full ({describe(problem)}); try again when it has room.")
    kind = OverdueError if is_overdue(problem) else UnavailableError
    return kind(f"The database is not available ({describe(problem)}); try again.")


def tell_unknown(problem: psycopg.Error) -> RecollectError:
    """Say why a name is not known: its space was dropped, or the schema is another one."""
    if OF_SPACE.search(problem.diag.message_primary or ""):
        return UnavailableError(f"The embedding space was dropped ({describe(problem)}); try again.")
    return SchemaError(
        f"The schema of the database does not fit this program ({describe(problem)}): run `recollect migrate`, or "
        "update the program if the schema is newer."
    )


def is_overdue(problem: Exception) -> bool:
    """Tell whether a time limit ended a statement: the error may come from a later one of the pipeline."""
    return isinstance(problem, errors.QueryCanceled) or isinstance(problem.__context__, errors.QueryCanceled)


def describe(problem: Exception) -> str:
    """Name an error by class and code only."""
    state: Any = getattr(problem, "sqlstate", None)
    return f"{type(problem).__name__} {state}" if state else type(problem).__name__
