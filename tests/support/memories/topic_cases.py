"""The golden cases of recall by topic as values: one memory for each reference, times as the cases have them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

from recollect.channels.topic import TopicChannel
from recollect.core.recall.cues import parse_cue
from recollect.core.topics.rating import make_reach
from recollect.models.recall import Cue
from recollect.models.topics import TopicLink
from recollect.store.service.scopes import locate

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def at(milliseconds) -> datetime:
    return EPOCH + timedelta(milliseconds=milliseconds)


def reach_of(profile):
    given = profile or {}
    return make_reach(given.get("activation"), given.get("diffusion"), given.get("context_independence"))


def references(case) -> list[str]:
    return list(dict.fromkeys(binding["ref"] for binding in case["bindings"]))


def links_of(case, ids=None) -> list[TopicLink]:
    """Give the links in the order in which they are made; memories are numbered unless their ids are given."""
    known = ids or {each: UUID(int=number) for number, each in enumerate(references(case), 1)}
    return [
        TopicLink(
            binding["path"],
            known[binding["ref"]],
            at(binding["ts"]),
            reach_of(binding["profile"]),
            tuple(binding["related"]),
        )
        for binding in case["bindings"]
    ]


async def propose(mind, *topics, now, limit=5, **fields):
    """Ask the channel alone, as a recall does: what it proposes is its own, however it is ranked with others."""
    cue = Cue("anything", topics=topics, now=now, **fields)
    place = await locate(mind.access.parts.database, mind.access.scope)
    async with mind.access.parts.database.reading(mind.access.scope.tenant_id) as connection:
        answer = await TopicChannel().send_query(connection, place, parse_cue(cue, None, now=now), limit)
    return await answer()
