"""Store feedback on hits, and read it back for all scopes of an agent."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from uuid import UUID

import numpy as np
from psycopg.rows import DictRow

from recollect.core.agents.tuning import MarkedRecall
from recollect.errors import InvalidInputError
from recollect.models.agents import Feedback
from recollect.models.service import Scope
from recollect.store.database.pool import Database, load_queries
from recollect.store.service.scopes import names

QUERIES = load_queries(__file__)


async def store(database: Database, scope: Scope, recall_id: UUID, feedback: Feedback) -> int:
    """Store the marks of one recall, all or none, or change them; every memory must be one of this scope."""
    marks = feedback.marks
    parameters = {
        **names(scope),
        "recall_id": recall_id,
        "candidates": feedback.candidates,
        "ids": [mark.memory_id for mark in marks],
        "useful": [mark.useful for mark in marks],
        "ranks": [mark.factors.rank for mark in marks],
        "similarities": [mark.factors.similarity for mark in marks],
        "importances": [mark.factors.importance for mark in marks],
    }
    async with database.transaction(scope.tenant_id) as connection:
        stored = await (await connection.execute(QUERIES["store"], parameters)).fetchall()
        if len(stored) < len(marks):
            raise InvalidInputError("feedback must name memories of this scope that are not forgotten")
    return len(stored)


async def read_of_agent(database: Database, scope: Scope, limit: int) -> list[MarkedRecall]:
    """Read the newest marks in all scopes of a scope's agent, recall by recall."""
    async with database.reading(scope.tenant_id) as connection:
        found = await connection.execute(QUERIES["of_agent"], {"agent": scope.agent, "limit": limit})
    by_recall = groupby(sorted(await found.fetchall(), key=recall_of), recall_of)
    return [to_judged(recall_id, list(rows)) for recall_id, rows in by_recall]


def recall_of(row: DictRow) -> UUID:
    """Return the recall that a mark belongs to."""
    recall_id: UUID = row["recall_id"]
    return recall_id


def to_judged(recall_id: UUID, rows: Sequence[DictRow]) -> MarkedRecall:
    """Collect the marks of one recall."""
    return MarkedRecall(
        recall_id,
        rows[0]["candidates"],
        useful=np.array([row["useful"] for row in rows], dtype=np.bool_),
        ranks=np.array([row["rank"] for row in rows], dtype=np.float64),
        similarity=np.array([row["similarity"] for row in rows], dtype=np.float64),
        importance=np.array([row["importance"] for row in rows], dtype=np.float64),
    )
