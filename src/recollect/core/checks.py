"""Refuse what can not be stored or asked, before any of it comes near the database."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime

from recollect.core.names import CONTROL
from recollect.core.preferences import DIVERSITY
from recollect.core.topics import check_filing, read_topic
from recollect.core.weights import EVERY_CHANNEL, NAMES
from recollect.core.zones import find_zone
from recollect.errors import InvalidInputError
from recollect.models.agents import Profile
from recollect.models.memories import NewMemory
from recollect.models.recall import Cue, Times, Weighing

MOST_MEMORIES = 1_000
LONGEST_CONTENT = 32_000
MOST_CHARACTERS = 250_000
LONGEST_CUE = 8_000
LONGEST_NAME = 200
LONGEST_PART = 500
MOST_KEYWORDS = 64
MOST_EVIDENCE = 256
MOST_HITS = 200
MOST_TOPICS = 16
HEAVIEST = 1_000
HIGHEST_THRESHOLD = 1_000_000
MOST_DAYS = 36_500
MOST_MINUTES = 525_600
DAYS = ("archive_after_days", "delete_after_days", "purge_after_days", "fading_days", "fading_fact_days")
LARGEST_METADATA = 16_384
DEEPEST_METADATA = 8
MOST_DIMENSIONS = 4_096
LONGEST_KEY = 255
IDENTIFIER = re.compile(r"[A-Za-z0-9._:@-]{1,128}")
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
MOST_NAMES = 20
EARLIEST, LATEST = datetime(2, 1, 1, tzinfo=UTC), datetime(9998, 12, 31, tzinfo=UTC)


def check_scope(agent: str, user: str) -> None:
    """Accept plain ASCII identifiers only, so that no two scopes look alike; the user may be empty."""
    for field, value in (("agent", agent), ("user", user)):
        if not (IDENTIFIER.fullmatch(value) or (field == "user" and value == "")):
            raise InvalidInputError(f"{field} must be 1 to 128 characters of A-Z a-z 0-9 . _ : @ -")


def check_new_memories(memories: Sequence[NewMemory]) -> None:
    """Check everything one call wants remembered."""
    if not 1 <= len(memories) <= MOST_MEMORIES:
        raise InvalidInputError(f"memories must hold 1 to {MOST_MEMORIES} items")
    if sum(map(count_characters, memories)) > MOST_CHARACTERS:
        raise InvalidInputError(f"memories must hold at most {MOST_CHARACTERS} characters together")
    for memory in memories:
        check_new_memory(memory)


def count_characters(memory: NewMemory) -> int:
    """Count all that will be analysed or embedded of a memory."""
    triple = memory.triple
    texts = (memory.content, memory.embedding_text, triple.subject, triple.predicate, triple.object, *memory.keywords)
    return sum(map(len, texts))


def check_new_memory(memory: NewMemory) -> None:
    """Check one memory; embeddings are checked against the active space where it is known."""
    check_text("content", memory.content, LONGEST_CONTENT)
    if not memory.content.strip():
        raise InvalidInputError("content must not be blank")
    check_line("speaker", memory.speaker)
    for field in ("subject", "predicate", "object"):
        check_line(field, getattr(memory.triple, field), LONGEST_PART)
    check_text("embedding_text", memory.embedding_text, LONGEST_CUE)
    if not 1 <= memory.importance <= 10:
        raise InvalidInputError("importance must be between 1 and 10")
    if len(memory.keywords) > MOST_KEYWORDS:
        raise InvalidInputError(f"keywords must hold at most {MOST_KEYWORDS} items")
    for keyword in memory.keywords:
        check_line("keywords", keyword, LONGEST_PART)
    if len(memory.evidence) > MOST_EVIDENCE:
        raise InvalidInputError(f"evidence must hold at most {MOST_EVIDENCE} items")
    if memory.occurred_at is not None:
        check_moment("occurred_at", memory.occurred_at)
    check_expiry(memory)
    check_filing(memory.topic, memory.related_topics, memory.reach)
    check_metadata(memory.metadata)


def check_expiry(memory: NewMemory) -> None:
    """Refuse a memory that would have expired before it happened."""
    if memory.expires_at is None:
        return
    check_moment("expires_at", memory.expires_at)
    if memory.occurred_at is not None and memory.expires_at <= memory.occurred_at:
        raise InvalidInputError("expires_at must be after occurred_at")


def check_cue(cue: Cue, channels: Collection[str] = ()) -> None:
    """Check what a recall asks for; the channels are those that there are beside ours."""
    check_text("text", cue.text, LONGEST_CUE)
    if not cue.text.strip() and cue.embedding is None:
        raise InvalidInputError("a recall needs text or an embedding")
    if cue.limit is not None:
        check_limit(cue.limit)
    check_weighing(cue.weighing)
    if cue.now is not None:
        check_moment("now", cue.now)
    if not 0 <= cue.min_trust <= 100:
        raise InvalidInputError("min_trust must be between 0 and 100")
    check_times(cue.times)
    check_period(cue)
    check_topics(cue.topics)
    check_weights(cue.weights, channels)


def check_period(cue: Cue) -> None:
    """Refuse a zone that nobody knows, and a period that ends before it begins."""
    find_zone(cue.zone)
    for field, moment in (("since", cue.since), ("until", cue.until)):
        if moment is not None:
            check_moment(field, moment)
    if cue.since is not None and cue.until is not None and cue.since >= cue.until:
        raise InvalidInputError("since must be before until")


def check_topics(topics: Sequence[str]) -> None:
    """Refuse what is no path of a topic."""
    if len(topics) > MOST_TOPICS:
        raise InvalidInputError(f"topics must hold at most {MOST_TOPICS} items")
    for path in topics:
        read_topic(path, "topics")


def check_weights(weights: Mapping[str, float], channels: Collection[str] = ()) -> None:
    """Accept weights of channels and preferences that are known; what speaks against a memory weighs less than 0."""
    known = {*NAMES, *channels}
    if unknown := sorted(weights.keys() - known):
        # Only what looks like a name is repeated: it may be anything.
        named = f" {unknown[0]!r}" if IDENTIFIER.fullmatch(unknown[0]) else " of such a name"
        raise InvalidInputError(f"there is no weight{named}; there are: {', '.join(sorted(known))}")
    for name, weight in weights.items():
        least = 0 if name in {*EVERY_CHANNEL, *channels, DIVERSITY} else -HEAVIEST
        if not least <= weight <= HEAVIEST:
            raise InvalidInputError(f"weights: {name} must be between {least} and {HEAVIEST}")


def check_times(times: Times) -> None:
    """Refuse moments that no read can be bound to."""
    for field, moment in (("as_of", times.as_of), ("at", times.at)):
        if moment is not None:
            check_moment(field, moment)


def check_weighing(weighing: Weighing) -> None:
    """Keep the weights of the three factors and their decay within what scoring can reckon with."""
    if weighing.gains is not None and len(weighing.gains) != 3:
        raise InvalidInputError("gains must be three numbers, for recency, relevance and importance")
    weights = (("recency", weighing.recency), ("relevance", weighing.relevance), ("importance", weighing.importance))
    for field, value in (*weights, *(("gains", gain) for gain in weighing.gains or ())):
        if value is not None and not 0 <= value <= HEAVIEST:
            raise InvalidInputError(f"{field} must be between 0 and {HEAVIEST}")
    if weighing.decay is not None and not 0 < weighing.decay <= 1:
        raise InvalidInputError("decay must be above 0 and at most 1")


def check_names(names: Collection[str]) -> None:
    """Check what those are called whose memory it is."""
    if len(names) > MOST_NAMES:
        raise InvalidInputError(f"names must hold at most {MOST_NAMES} items")
    for name in names:
        check_line("names", name)


def check_profile(profile: Profile) -> None:
    """Check what an agent is to go by."""
    check_weighing(profile.weighing)
    if len(set(profile.kinds)) != len(profile.kinds):
        raise InvalidInputError("kinds must not name a kind twice")
    if profile.limit is not None:
        check_limit(profile.limit)
    check_names(profile.names)
    for field in ("fading_threshold", "topic_threshold"):
        share = getattr(profile, field)
        if share is not None and not 0 <= share <= 1:
            raise InvalidInputError(f"{field} must be between 0 and 1")
    most = {"reflection_threshold": HIGHEST_THRESHOLD, "idle_minutes": MOST_MINUTES} | dict.fromkeys(DAYS, MOST_DAYS)
    for field, highest in most.items():
        value = getattr(profile, field)
        if value is not None and not 0 <= value <= highest:
            raise InvalidInputError(f"{field} must be between 0 and {highest}; 0 means never")


def check_limit(limit: int) -> None:
    """Keep the number of results asked for within what one answer may hold."""
    if not 1 <= limit <= MOST_HITS:
        raise InvalidInputError(f"limit must be between 1 and {MOST_HITS}")


def check_text(field: str, value: str, longest: int) -> None:
    """Refuse text that is too long or that PostgreSQL cannot store."""
    if len(value) > longest:
        raise InvalidInputError(f"{field} must be at most {longest} characters long")
    if UNSTORABLE.search(value):
        raise InvalidInputError(f"{field} must not contain NUL characters or lone surrogates")


def check_line(field: str, value: str, longest: int = LONGEST_NAME) -> None:
    """Refuse a short text that is too long or spans lines."""
    if len(value) > longest or CONTROL.search(value):
        raise InvalidInputError(f"{field} must be one line of at most {longest} characters")


def check_idempotency_key(key: str) -> None:
    """Accept printable ASCII of bounded length."""
    if len(key) > LONGEST_KEY or not (key.isascii() and key.isprintable()):
        raise InvalidInputError(f"Idempotency-Key must be at most {LONGEST_KEY} printable ASCII characters")


def check_moment(field: str, moment: datetime) -> None:
    """Accept only moments with an offset, in years that every clock can express."""
    if moment.tzinfo is None:
        raise InvalidInputError(f"{field} must carry a time zone offset, as in 2026-01-31T12:00:00+08:00")
    if not EARLIEST <= moment <= LATEST:
        raise InvalidInputError(f"{field} must lie between the years 2 and 9998")


def check_metadata(metadata: object) -> None:
    """Accept a JSON object of the size that metadata may have."""
    check_json("metadata", metadata, LARGEST_METADATA, DEEPEST_METADATA)


def check_json(field: str, value: object, largest: int, deepest: int) -> int:
    """Accept a JSON object of bounded size and depth whose every text can be stored; return its size in bytes."""
    if not isinstance(value, dict):
        raise InvalidInputError(f"{field} must be a JSON object")
    for text in walk_texts(value, deepest, f"{field} must be at most {deepest} levels deep"):
        if UNSTORABLE.search(text):
            raise InvalidInputError(f"{field} must not contain U+0000 or lone surrogates: PostgreSQL cannot store them")
    try:
        size = len(json.dumps(value, allow_nan=False, ensure_ascii=False).encode())
    except (TypeError, ValueError) as problem:
        raise InvalidInputError(f"{field} must be plain JSON without NaN or infinity") from problem
    if size > largest:
        raise InvalidInputError(f"{field} must be at most {largest} bytes of JSON")
    return size


def walk_texts(value: object, left: int, complaint: str) -> Iterable[str]:
    """Yield every text in a JSON value, names of fields included; complain if it goes further down than is left."""
    if left < 0:
        raise InvalidInputError(complaint)
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, part in value.items():
            if not isinstance(name, str):
                raise InvalidInputError("JSON must have texts as names of its fields")
            yield name
            yield from walk_texts(part, left - 1, complaint)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from walk_texts(part, left - 1, complaint)
