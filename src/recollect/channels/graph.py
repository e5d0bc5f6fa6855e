"""Recall by names: facts about the entities that a cue names, means or leads to, and about their neighbours."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from psycopg import AsyncCursor, sql
from psycopg.rows import DictRow

from recollect.channels.channel import SKIPPED, Answer, Proposal, skipped
from recollect.core.knowledge.graph import (
    BY_HIT,
    BY_MEANING,
    FollowedFact,
    is_whole,
    rate,
    spot_names,
    spot_spellings,
    spread,
)
from recollect.core.recall.columns import Candidates, to_candidates
from recollect.core.recall.cues import Reading
from recollect.models.memories import Kind
from recollect.models.recall import Candidate
from recollect.store.database.filter import MEMORIES, bind, restrict
from recollect.store.database.pool import Connection, load_queries
from recollect.store.memories.embeddings import to_half
from recollect.store.recall.columns import read_first_hits, tag_cue
from recollect.store.service.scopes import Place

QUERIES = load_queries(__file__)
HOPS = 2
BEAM = 100
MOST_STARTS = 10
"""If there are more entities, those with the longest names in the cue are taken."""
FLOOR = 0.4
"""The least cosine of an entity and a cue. With the local model, what a cue speaks of has 0.41 to 0.75, and the nearest
of what it does not speak of at most 0.34."""
LEAST_NAMED = 0.5
"""A start that counts less is not named, not even misspelt."""
WITHHELD = ["archived", "deleted", "to_rederive", "faded"]
"""What takes no part in recall; whether a fact is past depends on the times of the cue only."""
ALL = sql.SQL("true")
UNNAMED = "the cue names no entity"
HITS = read_first_hits()


class GraphChannel:
    """Propose facts by how few hops they are from what the cue names or means, the newest first among equals."""

    name = "graph"

    async def ask(self, connection: Connection, place: Place, reading: Reading, limit: int) -> Answer:
        """Send the search for names and the walk from them, as one query."""
        only = reading.filter
        if only.kinds and Kind.FACT not in only.kinds:
            return skipped("it finds facts only")
        if not place.has_names or not (reading.text or reading.vector is not None):
            return skipped(UNNAMED)
        named = spot_names(reading.text)
        parameters = {
            "scope_id": place.scope_id,
            "names": [each.name for each in named],
            "firsts": [each.first for each in named],
            "lasts": [each.last for each in named],
            "most": MOST_STARTS,
            "spelled": spot_spellings(reading.text),
            "space": place.space.id if place.space else None,
            "vector": None if place.space is None or reading.vector is None else to_half(reading.vector),
            "floor": FLOOR,
            "shares": [BY_MEANING, BY_HIT],
            "cue": tag_cue(reading),
            "named": LEAST_NAMED,
            "hops": HOPS,
            "beam": BEAM,
            "hidden": WITHHELD,
            **bind(only),
        }
        # The walk continues over filtered facts; the kind and the times are the walk's own.
        others = replace(only, kinds=(), as_of=None, at=None)
        allowed = sql.SQL(QUERIES["allowed"]).format(filter=restrict(others, MEMORIES)) if others.named else ALL
        query = sql.SQL(QUERIES["reach"]).format(allowed=allowed, hits=HITS)
        return partial(read, await connection.execute(query, parameters), limit)


async def read(answer: AsyncCursor[DictRow], limit: int) -> Proposal:
    """Read the facts and rate them by their hops from where the walk started."""
    rows = await answer.fetchall()
    starts = dict(zip(rows[0]["starts"], rows[0]["weights"], strict=True))
    if not starts:
        return Proposal(Candidates(), SKIPPED + UNNAMED)
    found = [(row, FollowedFact(row["id"], row["hop"], row["source"], row["target"])) for row in rows if row["hop"]]
    steps = [step for _, step in found]
    near = spread(starts, steps)
    rated = [
        Candidate(step.memory_id, rate(near[step.source], near[step.target])) for row, step in found if row["allowed"]
    ]
    rated.sort(key=lambda candidate: (candidate.score, candidate.id), reverse=True)
    return Proposal(to_candidates(rated[:limit]), "exact" if is_whole(list(starts), steps, BEAM) else "approximate")
