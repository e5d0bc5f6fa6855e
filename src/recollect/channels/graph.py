"""Recall by names: facts about the entities that a cue names or means, and about their neighbors."""

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
from recollect.core.recall.cues import ParsedCue
from recollect.models.memories import Kind
from recollect.models.recall import Candidate
from recollect.store.database.filter import MEMORIES, bind, restrict
from recollect.store.database.pool import Connection, load_queries
from recollect.store.memories.embeddings import to_half
from recollect.store.recall.columns import read_first_hits, tag_cue
from recollect.store.service.scopes import ScopeHandle

QUERIES = load_queries(__file__)
HOPS = 2
BEAM = 100
MAX_START_ENTITIES = 10
"""If there are more entities, those with the longest names in the cue are used."""
FLOOR = 0.4
"""Minimum cosine of an entity and a cue. With the local model, entities in a cue have 0.41 to 0.75, and others at most
0.34."""
MIN_NAME_SCORE = 0.5
"""A start with a lower score is not named in the cue, not even misspelled."""
WITHHELD = ["archived", "deleted", "to_rederive", "faded"]
"""States that exclude facts; whether a fact is past depends only on the times of the cue."""
ALL = sql.SQL("true")
UNNAMED = "no entity in the query"
HITS = read_first_hits()


class GraphChannel:
    """Propose facts by their distance in hops from entities of the cue; ties come newest first."""

    name = "graph"

    async def send_query(self, connection: Connection, place: ScopeHandle, reading: ParsedCue, limit: int) -> Answer:
        """Send the search for names and the walk from them as one query."""
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
            "most": MAX_START_ENTITIES,
            "spelled": spot_spellings(reading.text),
            "space": place.space.id if place.space else None,
            "vector": None if place.space is None or reading.vector is None else to_half(reading.vector),
            "floor": FLOOR,
            "shares": [BY_MEANING, BY_HIT],
            "cue": tag_cue(reading),
            "named": MIN_NAME_SCORE,
            "hops": HOPS,
            "beam": BEAM,
            "hidden": WITHHELD,
            **bind(only),
        }
        # The walk continues over filtered facts; it handles the kind and the times itself.
        others = replace(only, kinds=(), as_of=None, at=None)
        allowed = sql.SQL(QUERIES["allowed"]).format(filter=restrict(others, MEMORIES)) if others.named else ALL
        query = sql.SQL(QUERIES["reach"]).format(allowed=allowed, hits=HITS)
        return partial(read_graph_candidates, await connection.execute(query, parameters), limit)


async def read_graph_candidates(answer: AsyncCursor[DictRow], limit: int) -> Proposal:
    """Read the facts, and rate them by their hops from the starts."""
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
