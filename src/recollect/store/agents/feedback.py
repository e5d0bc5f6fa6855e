"""Store feedback on hits, and read it for all scopes of an agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from uuid import UUID

import numpy as np
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from recollect.core.agents.default_tuning import UsualRecall
from recollect.core.agents.tuning import MarkedRecall
from recollect.errors import InvalidInputError
from recollect.models.agents import Feedback
from recollect.models.recall import Script
from recollect.models.service import Scope
from recollect.store.database.pool import Database, load_queries
from recollect.store.service.scopes import names

QUERIES = load_queries(__file__)


async def store_feedback(
    database: Database, scope: Scope, recall_id: UUID, feedback: Feedback, unweighed: Sequence[Mapping[str, float]]
) -> int:
    """Store or change the marks of one recall, all or none; every memory must be in this scope."""
    marks = feedback.marks
    parameters = {
        **names(scope),
        "recall_id": recall_id,
        "candidates": feedback.candidates,
        "ids": [mark.memory_id for mark in marks],
        "useful": [mark.useful for mark in marks],
        "ranks": [mark.factors and mark.factors.rank for mark in marks],
        "similarities": [mark.factors and mark.factors.similarity for mark in marks],
        "importances": [mark.factors and mark.factors.importance for mark in marks],
        "unweighed": [Jsonb(dict(each)) for each in unweighed],
        "script": feedback.script.value,
    }
    async with database.transaction(scope.tenant_id) as connection:
        stored = await (await connection.execute(QUERIES["store"], parameters)).fetchall()
        if len(stored) < len(marks):
            raise InvalidInputError("feedback must refer to existing memories of this scope")
    return len(stored)


async def read_of_agent(database: Database, scope: Scope, limit: int) -> tuple[list[MarkedRecall], list[UsualRecall]]:
    """Read the newest marks in all scopes of a scope's agent: recalls that the stream ranked, and other recalls."""
    async with database.listing(scope.tenant_id) as connection:
        found = await connection.execute(QUERIES["of_agent"], {"agent": scope.agent, "limit": limit})
    by_recall = [list(rows) for _, rows in groupby(sorted(await found.fetchall(), key=recall_of), recall_of)]
    streamed = [[row for row in rows if row["rank"] is not None] for rows in by_recall]
    usual = [[row for row in rows if row["unweighed"]] for rows in by_recall]
    return [to_judged(rows) for rows in streamed if rows], [to_usual(rows) for rows in usual if rows]


def recall_of(row: DictRow) -> UUID:
    """Return the recall that a mark belongs to."""
    recall_id: UUID = row["recall_id"]
    return recall_id


def to_judged(rows: Sequence[DictRow]) -> MarkedRecall:
    """Collect the marks of one recall that the stream ranked."""
    return MarkedRecall(
        recall_of(rows[0]),
        rows[0]["candidates"],
        useful=np.array([row["useful"] for row in rows], dtype=np.bool_),
        ranks=np.array([row["rank"] for row in rows], dtype=np.float64),
        similarity=np.array([row["similarity"] for row in rows], dtype=np.float64),
        importance=np.array([row["importance"] for row in rows], dtype=np.float64),
    )


def to_usual(rows: Sequence[DictRow]) -> UsualRecall:
    """Collect the marks of one recall that the stream did not rank."""
    told = dict.fromkeys(name for row in rows for name in row["unweighed"])
    return UsualRecall(
        recall_of(rows[0]),
        Script(rows[0]["script"]),
        useful=np.array([row["useful"] for row in rows], dtype=np.bool_),
        values={name: np.array([row["unweighed"].get(name, 0.0) for row in rows]) for name in told},
    )
