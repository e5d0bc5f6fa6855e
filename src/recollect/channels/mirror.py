"""Recall through a mirror in another engine: it proposes ids, and the record says all the rest about them.

It is asked only where a cue or a profile names it, and only while it is not far behind the record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from uuid import UUID

import numpy as np
from psycopg import AsyncCursor, sql
from psycopg.rows import DictRow

from recollect.channels.channel import SKIPPED, Answer, Proposal, skipped
from recollect.core.knowledge.graph import spot_names
from recollect.core.mirrors.questions import MirrorQuestion, MirrorStanding
from recollect.core.mirrors.rows import MirroredTable
from recollect.core.recall.columns import Candidates, to_ids
from recollect.core.recall.cues import Reading
from recollect.errors import MirrorError
from recollect.models.memories import Kind
from recollect.models.recall import Filter
from recollect.store.database.filter import SCOPE_ID, bind, find_allowed
from recollect.store.database.pool import Connection, load_queries
from recollect.store.mirrors.generations import Generation
from recollect.store.mirrors.mirror import Mirror
from recollect.store.service.scopes import BEGINNING, Place

QUERIES = load_queries(__file__)
MOST_ADMITTED = 10_000
"""A filter that admits more is not one that a mirror can be asked under: it would be cut before it is filtered."""
LOST = "the mirror has lost changes that it had acknowledged, and is mended"


class MirrorChannel:
    """Propose what a mirror finds, without scores of its own."""

    def __init__(self, mirror: Mirror, most_seconds: float) -> None:
        self.name = mirror.name
        self._mirror = mirror
        self._most_seconds = most_seconds
        """So many seconds behind the record, it is not asked."""

    async def ask(self, connection: Connection, place: Place, reading: Reading, limit: int) -> Answer:
        """Ask the record how the mirror stands and which memories the filter admits; the mirror is asked after that."""
        if place.scope_id is None or reading.blank:
            return skipped("the cue has no text")
        if reason := explain_unfit(self._mirror, reading.filter):
            return skipped(reason)
        parameters = {"scope_id": place.scope_id, "mirror": self.name, "most": MOST_ADMITTED + 1}
        standing = await connection.execute(QUERIES["standing"], parameters)
        admitted: AsyncCursor[DictRow] | None = None
        if reading.filter.named:
            query = sql.SQL(QUERIES["admitted"]).format(allowed=find_allowed(reading.filter, SCOPE_ID))
            admitted = await connection.execute(query, parameters | bind(reading.filter))
        return partial(self._read, standing, admitted, pose(place, reading, limit))

    async def _read(
        self, standing: AsyncCursor[DictRow], admitted: AsyncCursor[DictRow] | None, question: MirrorQuestion
    ) -> Proposal:
        """Ask the mirror, unless it is too far behind; an answer that is not whole is none."""
        row = await standing.fetchone()
        if row is None:
            return give_up("the mirror is not built")
        known = MirrorStanding(row["position"], row["change_number"], row["same_record"], row["behind_seconds"])
        if reason := known.explain(self._most_seconds):
            return give_up(reason)
        allowed = None if admitted is None else [each["id"] for each in await admitted.fetchall()]
        if allowed is not None and len(allowed) > MOST_ADMITTED:
            return give_up(f"the filter admits more than {MOST_ADMITTED} memories")
        known_there = {"incarnation": BEGINNING, "space": None, "beats": 0, "shard": row["shard"]}
        generation = Generation(self.name, row["generation"], ready=True, **known_there)
        try:
            found = await self._mirror.ask(generation, restrict(question, allowed, same_space=row["same_space"]))
        except MirrorError as problem:
            return give_up(str(problem))
        if found.position < (known.position or 0):
            return give_up(LOST)
        return Proposal(Candidates(to_ids(found.ids), np.ones(len(found.ids))), known.tell(), unscored=True)


def explain_unfit(mirror: Mirror, only: Filter) -> str:
    """Say why a mirror holds nothing that a filter admits; empty if it may."""
    if only.outside:
        return "the mirror holds what takes part in recall alone"
    if MirroredTable.FACTS in mirror.tables:
        return "it finds facts only" if only.kinds and Kind.FACT not in only.kinds else ""
    return "the mirror holds the present alone" if only.past else ""


def pose(place: Place, reading: Reading, limit: int) -> MirrorQuestion:
    """Write the question that a cue puts to a mirror."""
    now = datetime.now(UTC)
    as_of = reading.filter.as_of
    return MirrorQuestion(
        scope_id=place.scope_id or 0,
        text=reading.text,
        vector=reading.vector,
        names=[each.name for each in spot_names(reading.text)],
        limit=limit,
        at=reading.filter.at or as_of or now,
        as_of=as_of or now,
    )


def restrict(question: MirrorQuestion, allowed: Sequence[UUID] | None, *, same_space: bool) -> MirrorQuestion:
    """Add to a question what the record has said of it."""
    return replace(question, allowed=allowed, vector=question.vector if same_space else None)


def give_up(reason: str) -> Proposal:
    """Propose nothing, and say why."""
    return Proposal(Candidates(), SKIPPED + reason)
