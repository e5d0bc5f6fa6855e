"""Recall by topic: memories under the topics of a cue, and under related ones."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from psycopg import AsyncCursor, sql
from psycopg.rows import DictRow

from recollect.channels.channel import SKIPPED, Answer, Proposal, skipped
from recollect.core.recall.columns import Candidates, to_candidates
from recollect.core.recall.cues import ParsedCue
from recollect.core.topics.paths import encode, encode_label, find_topics
from recollect.core.topics.rating import PARENT_TAKEN, RELATED_TAKEN, TopicMatch, rank
from recollect.models.filters import Filter
from recollect.models.topics import LinkStrength, TopicSource
from recollect.store.database.filter import Columns, Lookup, bind, restrict
from recollect.store.database.pool import Connection, load_queries
from recollect.store.service.scopes import ScopeHandle

QUERIES = load_queries(__file__)
COLUMNS = Columns("topic_links", id="memory_id", lookup=Lookup.BY_SET)
MAX_LINKS = 500
"""Maximum number of links to read for one topic, and for all topics below, the newest."""
MAX_TOPICS_BY_WORDS = 8
"""Maximum number of topics that match only by words of the cue."""
UNNAMED = "no topic in the query"
UNKNOWN = "unknown topic"


class TopicChannel:
    """Propose memories under topics, their related topics and parents; and subtopics on request."""

    name = "topic"

    async def send_query(self, connection: Connection, place: ScopeHandle, reading: ParsedCue, limit: int) -> Answer:
        """Send the search."""
        asked = find_topics(reading.facets.topics)
        labels = [] if asked else find_labels(reading.facets.keywords)
        if place.scope_id is None or not (asked or labels):
            return skipped(UNNAMED)
        if not place.has_topics:
            return skipped(UNKNOWN if asked else UNNAMED)
        parameters = {
            "scope_id": place.scope_id,
            "paths": [encode(names) for names in asked],
            "parents": [encode(names[:-1]) for names in asked if len(names) > 1],
            "labels": labels,
            "most_worded": MAX_TOPICS_BY_WORDS,
            "below": reading.below,
            "related_taken": RELATED_TAKEN,
            "parent_taken": PARENT_TAKEN,
            "most": MAX_LINKS,
            **bind(reading.filter),
        }
        query = compose(reading.filter, worded=not asked)
        missing = UNKNOWN if asked else UNNAMED
        return partial(read_topic_candidates, await connection.execute(query, parameters), reading.now, limit, missing)


def find_labels(keywords: Sequence[str]) -> list[str]:
    """Return the labels of topics whose names are words or phrases of the cue."""
    return [label for keyword in keywords if (label := encode_label(keyword))]


def compose(only: Filter, *, worded: bool = False) -> sql.Composed:
    """Return the query.

    Links that are not proposed still lead to related topics, if they are trusted and valid at the time.
    """
    leads = Filter(min_trust=only.min_trust, as_of=only.as_of, at=only.at)
    outward, conditions = restrict(leads, COLUMNS), restrict(only, COLUMNS)
    own = sql.SQL(QUERIES["same" if outward == conditions else "own"]).format(filter=conditions)
    given = sql.SQL(QUERIES["worded" if worded else "written"])
    return sql.SQL(QUERIES["collect"]).format(given=given, outward=outward, own=own, filter=conditions)


async def read_topic_candidates(answer: AsyncCursor[DictRow], now: datetime, limit: int, missing: str) -> Proposal:
    """Read the links and rate them."""
    rows = await answer.fetchall()
    if not rows[0]["known"]:
        return Proposal(Candidates(), SKIPPED + missing)
    found = [to_found(row) for row in rows if row["memory_id"]]
    return Proposal(to_candidates(rank(found, now, limit)), "approximate" if rows[0]["cut"] else "exact")


def to_found(row: DictRow) -> TopicMatch:
    """Convert a row to a link and the way it was found."""
    reach = LinkStrength(row["activation"], row["diffusion"], row["independence"])
    return TopicMatch(row["memory_id"], TopicSource(row["source"]), row["occurred_at"], reach)
