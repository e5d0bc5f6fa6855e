"""Rate memories under a topic and around it, for recall at a given time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from recollect.core.topics.paths import encode, find_topics, parse_topic, prefixes, show_topic
from recollect.models.recall import Candidate
from recollect.models.topics import DEFAULT_LINK_STRENGTH, LinkStrength, TopicLink, TopicSource

PARENT_TAKEN = RELATED_TAKEN = 2
"""Maximum number of newest links to use of a parent topic, and of every related topic."""
DAY = timedelta(days=1)
RECENCIES = ((1, 0.30), (3, 0.22), (7, 0.15), (30, 0.08))
"""The value of a link up to an age in whole days; an older link has 0."""
SHARES: Mapping[TopicSource, tuple[float, float]] = {
    TopicSource.PRIMARY: (1.00, 0.30),
    TopicSource.DESCENDANT: (0.80, 0.30),
    TopicSource.RELATED: (0.65, 1.00),
    TopicSource.PARENT: (0.45, 0.20),
}
"""The value of each way to find a link, and the factor of its diffusion."""
ALONE_DIFFUSION, SHORT_LOSS = 0.45, 0.05


@dataclass(frozen=True, slots=True)
class TopicMatch:
    """A link that a recall by topic found, and how it was found."""

    memory_id: UUID
    source: TopicSource
    occurred_at: datetime
    reach: LinkStrength


def make_reach(
    activation: float | None = None, diffusion: float | None = None, independence: float | None = None
) -> LinkStrength:
    """Limit the strength of a link to 0..1; missing values get their defaults."""
    return LinkStrength(
        _clamp(activation, DEFAULT_LINK_STRENGTH.activation),
        _clamp(diffusion, DEFAULT_LINK_STRENGTH.diffusion),
        _clamp(independence, DEFAULT_LINK_STRENGTH.independence),
    )


def _clamp(value: float | None, usual: float) -> float:
    return usual if value is None or math.isnan(value) else min(1.0, max(0.0, value))


def damp_link(reach: LinkStrength, related: int, messages: int) -> LinkStrength:
    """Reduce the diffusion of a link without related topics, and the activation of a link with few messages."""
    diffusion = reach.diffusion if related else min(reach.diffusion, ALONE_DIFFUSION)
    activation = reach.activation if messages > 1 else max(0.0, reach.activation - SHORT_LOSS)
    return replace(reach, activation=activation, diffusion=diffusion)


def rate(found: TopicMatch, now: datetime) -> float:
    """Return the rating of a link at a given time."""
    share, relation = SHARES[found.source]
    reach = found.reach
    recency = rate_recency(found.occurred_at, now)
    return share + recency + 0.50 * reach.activation + 0.30 * reach.independence + 0.20 * relation * reach.diffusion


def rate_recency(occurred_at: datetime, now: datetime) -> float:
    """Return the rating of a link's age; a time in the future counts as new."""
    days = max(now - occurred_at, timedelta(0)) // DAY
    return next((worth for most, worth in RECENCIES if days <= most), 0.0)


def rank(found: Iterable[TopicMatch], now: datetime, limit: int) -> list[Candidate]:
    """Sort links best first, ties newest first; for each memory the best link counts."""
    best: dict[UUID, tuple[float, datetime]] = {}
    for each in found:
        rated = (rate(each, now), each.occurred_at)
        best[each.memory_id] = max(rated, best.get(each.memory_id, rated))
    # Among complete ties, the memory that was written first comes first.
    ordered = sorted(sorted(best), key=best.__getitem__, reverse=True)
    return [Candidate(memory_id, best[memory_id][0]) for memory_id in ordered[:limit]]


def update_link(links: Sequence[TopicLink], new: TopicLink) -> list[TopicLink]:
    """Add a link of a memory; an existing link to the topic gets the new time and strength, and more relations."""
    same = [link for link in links if _is_same(link, new)]
    written = [path for link in (*same, new) for path in link.related]
    related = [show_topic(names) for names in find_topics(written) if encode(names) != _key(new.path)]
    kept = [link for link in links if not _is_same(link, new)]
    return [*kept, replace(new, related=tuple(related))]


def collect(
    links: Sequence[TopicLink], path: str, now: datetime, limit: int, *, descendants: bool = False
) -> list[Candidate] | None:
    """Recall by one topic from links alone, as the store's channel does; None if the topic does not exist."""
    asked = parse_topic(path)
    key, above = encode(asked), encode(asked[:-1])
    written = [each for link in links for each in (link.path, *link.related)]
    known = {encode(names) for each in written for names in prefixes(parse_topic(each))}
    if key not in known:
        return None
    primary = [link for link in links if _key(link.path) == key]
    near = {_key(each): None for link in primary if link.reach.diffusion > 0 for each in link.related}
    found = [_find(link, TopicSource.PRIMARY) for link in primary]
    found += [_find(link, TopicSource.RELATED) for each in near for link in _newest(links, each, RELATED_TAKEN)]
    found += [_find(link, TopicSource.PARENT) for link in _newest(links, above, PARENT_TAKEN)]
    if descendants:
        found += [_find(link, TopicSource.DESCENDANT) for link in links if _key(link.path).startswith(key + ".")]
    return rank(found, now, limit)


def _find(link: TopicLink, source: TopicSource) -> TopicMatch:
    return TopicMatch(link.memory_id, source, link.occurred_at, link.reach)


def _newest(links: Sequence[TopicLink], key: str, most: int) -> list[TopicLink]:
    own = sorted((link for link in links if key and _key(link.path) == key), key=lambda link: link.memory_id)
    return sorted(own, key=lambda link: link.occurred_at, reverse=True)[:most]


def _is_same(one: TopicLink, other: TopicLink) -> bool:
    return one.memory_id == other.memory_id and _key(one.path) == _key(other.path)


def _key(path: str) -> str:
    return encode(parse_topic(path))
