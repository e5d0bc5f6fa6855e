"""Refuse invalid cues."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from recollect.core.dates.periods import find_zone
from recollect.core.memories.conditions import read_condition
from recollect.core.recall.beside import check_also
from recollect.core.recall.preferences import DIVERSITY
from recollect.core.recall.weights import EVERY_CHANNEL, NAMES
from recollect.core.text.checks import LONGEST_CUE, check_limit, check_line, check_moment, check_text
from recollect.core.topics.paths import read_topic
from recollect.errors import InvalidInputError
from recollect.models.recall import MOST_CONDITIONS, Cue, Filter, Weighing
from recollect.models.service import IDENTIFIER

MOST_TOPICS = 16
MOST_NAMES = 64
HEAVIEST = 1_000


def check_cue(cue: Cue, channels: Collection[str] = ()) -> None:
    """Check a cue; `channels` are those in addition to ours."""
    check_text("text", cue.text, LONGEST_CUE)
    if cue.limit is not None:
        check_limit(cue.limit)
    check_weighing(cue.weighing)
    if cue.now is not None:
        check_moment("now", cue.now)
    check_filter(cue)
    check_also(cue.also)
    if cue.topics_only and not cue.topics:
        raise InvalidInputError("topics_only needs topics")
    check_relevance(cue)
    find_zone(cue.zone)
    check_weights(cue.weights, channels)


def check_relevance(cue: Cue) -> None:
    """Refuse a least relevance that is none, or that nothing tells."""
    if cue.min_relevance is None:
        return
    if not 0 <= cue.min_relevance <= 1:
        raise InvalidInputError("min_relevance must be between 0 and 1")
    topics_first = cue.topics and not cue.topics_only
    if cue.min_relevance and (cue.blank or (len({*cue.channels}) == 1 and not topics_first)):
        raise InvalidInputError("min_relevance needs a text or an embedding, and more than one channel")


def check_channels(named: Collection[str], known: Collection[str]) -> None:
    """Refuse a channel that there is not."""
    if unknown := sorted({*named} - {*known}):
        raise InvalidInputError(f"there is no channel {unknown[0]!r}; there are: {', '.join(sorted(known))}")


def check_topics(topics: Sequence[str]) -> None:
    """Refuse an invalid path of a topic."""
    if len(topics) > MOST_TOPICS:
        raise InvalidInputError(f"topics must hold at most {MOST_TOPICS} items")
    for path in topics:
        read_topic(path, "topics")


def check_weights(weights: Mapping[str, float], channels: Collection[str] = ()) -> None:
    """Accept weights of known channels and preferences; below 0 for what speaks against a memory."""
    known = {*NAMES, *channels}
    if unknown := sorted(weights.keys() - known):
        # Only what looks like a name is repeated in the message: it may be anything.
        named = f" {unknown[0]!r}" if IDENTIFIER.fullmatch(unknown[0]) else " of such a name"
        raise InvalidInputError(f"there is no weight{named}; there are: {', '.join(sorted(known))}")
    for name, weight in weights.items():
        least = 0 if name in {*EVERY_CHANNEL, *channels, DIVERSITY} else -HEAVIEST
        if not least <= weight <= HEAVIEST:
            raise InvalidInputError(f"weights: {name} must be between {least} and {HEAVIEST}")


def check_filter(only: Filter) -> None:
    """Refuse an invalid filter."""
    if not only.named:
        return
    if not 0 <= only.min_trust <= 100:
        raise InvalidInputError("min_trust must be between 0 and 100")
    if not 0 <= only.min_importance <= 10:
        raise InvalidInputError("min_importance must be between 0 and 10")
    check_times(only)
    for field in ("conversations", "roles", "speakers", "origins"):
        check_names(field, getattr(only, field))
    check_topics(only.topics)
    if len(only.where) > MOST_CONDITIONS:
        raise InvalidInputError(f"where must hold at most {MOST_CONDITIONS} items")
    for condition in only.where:
        read_condition(condition)


def check_times(only: Filter) -> None:
    """Refuse a moment without an offset, and a period that ends before it begins."""
    for field in ("as_of", "at", "since", "until"):
        if (moment := getattr(only, field)) is not None:
            check_moment(field, moment)
    if only.since is not None and only.until is not None and only.since >= only.until:
        raise InvalidInputError("since must be before until")


def check_names(field: str, names: Sequence[str]) -> None:
    """Refuse too many names, or what can be none."""
    if len(names) > MOST_NAMES:
        raise InvalidInputError(f"{field} must hold at most {MOST_NAMES} items")
    for name in names:
        check_line(field, name)


def check_weighing(weighing: Weighing) -> None:
    """Limit the weights of the three factors and their decay to what scoring can compute with."""
    if weighing.gains is not None and len(weighing.gains) != 3:
        raise InvalidInputError("gains must be three numbers, for recency, similarity and importance")
    weights = (("recency", weighing.recency), ("similarity", weighing.similarity), ("importance", weighing.importance))
    for field, value in (*weights, *(("gains", gain) for gain in weighing.gains or ())):
        if value is not None and not 0 <= value <= HEAVIEST:
            raise InvalidInputError(f"{field} must be between 0 and {HEAVIEST}")
    if weighing.decay is not None and not 0 < weighing.decay <= 1:
        raise InvalidInputError("decay must be above 0 and at most 1")
