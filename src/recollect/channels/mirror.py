"""Recall through a mirror in another engine: it proposes IDs, and the database has all their data.

It is used only if a cue or a profile names it, and only if it is not far behind the database.
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
from recollect.core.mirrors.questions import MirrorLag, MirrorQuestion
from recollect.core.mirrors.rows import MirroredTable
from recollect.core.recall.columns import Candidates, to_ids
from recollect.core.recall.cues import ParsedCue
from recollect.errors import MirrorError
from recollect.models.filters import Filter
from recollect.models.memories import Kind
from recollect.store.database.filter import SCOPE_ID, bind, find_allowed
from recollect.store.database.pool import Connection, load_queries
from recollect.store.mirrors.generations import Generation
from recollect.store.mirrors.mirror import Mirror
from recollect.store.service.scopes import BEGINNING, ScopeHandle

QUERIES = load_queries(__file__)
MAX_FILTER_MATCHES = 10_000
"""Maximum number of memories that a filter may admit: a mirror would cut a longer list before filtering."""
LOST = "the mirror lost acknowledged changes and is being repaired"


class MirrorChannel:
    """Propose the results of a mirror, without scores."""

    def __init__(self, mirror: Mirror, most_seconds: float) -> None:
        self.name = mirror.name
        self._mirror = mirror
        self._most_seconds = most_seconds
        """Maximum lag of the mirror in seconds; beyond it, the mirror is not used."""

    async def send_query(self, connection: Connection, place: ScopeHandle, reading: ParsedCue, limit: int) -> Answer:
        """Query the state of the mirror and the memories that the filter admits; the mirror is queried later."""
        if place.scope_id is None or reading.blank:
            return skipped("the cue has no text")
        if reason := explain_unfit(self._mirror, reading.filter):
            return skipped(reason)
        parameters = {"scope_id": place.scope_id, "mirror": self.name, "most": MAX_FILTER_MATCHES + 1}
        standing = await connection.execute(QUERIES["standing"], parameters)
        admitted: AsyncCursor[DictRow] | None = None
        if reading.filter.named:
            query = sql.SQL(QUERIES["admitted"]).format(allowed=find_allowed(reading.filter, SCOPE_ID))
            admitted = await connection.execute(query, parameters | bind(reading.filter))
        return partial(self._read, standing, admitted, build_query(place, reading, limit))

    async def _read(
        self, standing: AsyncCursor[DictRow], admitted: AsyncCursor[DictRow] | None, question: MirrorQuestion
    ) -> Proposal:
        """Query the mirror, unless it is too far behind; an incomplete result is not used."""
        row = await standing.fetchone()
        if row is None:
            return skip("the mirror is not built")
        known = MirrorLag(row["position"], row["change_number"], row["same_record"], row["behind_seconds"])
        if reason := known.explain_unusable(self._most_seconds):
            return skip(reason)
        allowed = None if admitted is None else [each["id"] for each in await admitted.fetchall()]
        if allowed is not None and len(allowed) > MAX_FILTER_MATCHES:
            return skip(f"the filter admits more than {MAX_FILTER_MATCHES} memories")
        known_there = {"incarnation": BEGINNING, "space": None, "beats": 0, "shard": row["shard"]}
        generation = Generation(self.name, row["generation"], ready=True, **known_there)
        try:
            found = await self._mirror.search_mirror(
                generation, restrict(question, allowed, same_space=row["same_space"])
            )
        except MirrorError as problem:
            return skip(str(problem))
        if found.position < (known.position or 0):
            return skip(LOST)
        return Proposal(Candidates(to_ids(found.ids), np.ones(len(found.ids))), known.describe_lag(), unscored=True)


def explain_unfit(mirror: Mirror, only: Filter) -> str:
    """Return why a mirror cannot have memories that a filter admits; empty if it can."""
    if only.outside:
        return "the mirror holds what takes part in recall alone"
    if MirroredTable.FACTS in mirror.tables:
        return "it finds facts only" if only.kinds and Kind.FACT not in only.kinds else ""
    return "the mirror holds the present alone" if only.past else ""


def build_query(place: ScopeHandle, reading: ParsedCue, limit: int) -> MirrorQuestion:
    """Return the query for a mirror."""
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
    """Add the results from the database to a query."""
    return replace(question, allowed=allowed, vector=question.vector if same_space else None)


def skip(reason: str) -> Proposal:
    """Return an empty proposal with the reason."""
    return Proposal(Candidates(), SKIPPED + reason)
