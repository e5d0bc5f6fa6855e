"""Refuse invalid cues."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from recollect.core.dates.periods import find_zone
from recollect.core.memories.conditions import read_condition
from recollect.core.recall.extra_scopes import check_also
from recollect.core.recall.preferences import DIVERSITY
from recollect.core.recall.weights import EVERY_CHANNEL, NAMES
from recollect.core.text.checks import MAX_CUE_LENGTH, check_limit, check_line, check_moment, check_text
from recollect.core.topics.paths import read_topic
from recollect.errors import InvalidInputError
from recollect.models.filters import MAX_CONDITIONS, Filter
from recollect.models.recall import Cue, StreamWeights
from recollect.models.service import IDENTIFIER

MAX_TOPICS = 16
MAX_NAMES = 64
MAX_WEIGHT = 1_000


def check_cue(cue: Cue, channels: Collection[str] = ()) -> None:
    """Check a cue; `channels` are additional channel names."""
    check_text("text", cue.text, MAX_CUE_LENGTH)
    if cue.limit is not None:
        check_limit(cue.limit)
    check_weighing(cue.weighing)
    if cue.now is not None:
        check_moment("now", cue.now)
    check_filter(cue)
    check_also(cue.also)
    if cue.topics_only and not cue.topics:
        raise InvalidInputError("topics_only requires topics")
    check_relevance(cue)
    find_zone(cue.zone)
    check_weights(cue.weights, channels)


def check_relevance(cue: Cue) -> None:
    """Refuse an invalid minimum relevance, or one that cannot be computed."""
    if cue.min_relevance is None:
        return
    if not 0 <= cue.min_relevance <= 1:
        raise InvalidInputError("min_relevance must be between 0 and 1")
    topics_first = cue.topics and not cue.topics_only
    if cue.min_relevance and (cue.blank or (len({*cue.channels}) == 1 and not topics_first)):
        raise InvalidInputError("min_relevance requires a query or an embedding, and more than one channel")


def check_channels(named: Collection[str], known: Collection[str]) -> None:
    """Refuse an unknown channel."""
    if unknown := sorted({*named} - {*known}):
        raise InvalidInputError(f"there is no channel {unknown[0]!r}; there are: {', '.join(sorted(known))}")


def check_topics(topics: Sequence[str]) -> None:
    """Refuse invalid topic paths."""
    if len(topics) > MAX_TOPICS:
        raise InvalidInputError(f"topics must hold at most {MAX_TOPICS} items")
    for path in topics:
        read_topic(path, "topics")


def check_weights(weights: Mapping[str, float], channels: Collection[str] = ()) -> None:
    """Check that weights have known names; negative weights count against a memory."""
    known = {*NAMES, *channels}
    if unknown := sorted(weights.keys() - known):
        # Only a valid name is repeated in the message, because it may be any text.
        named = f" {unknown[0]!r}" if IDENTIFIER.fullmatch(unknown[0]) else " of such a name"
        raise InvalidInputError(f"there is no weight{named}; there are: {', '.join(sorted(known))}")
    for name, weight in weights.items():
        least = 0 if name in {*EVERY_CHANNEL, *channels, DIVERSITY} else -MAX_WEIGHT
        if not least <= weight <= MAX_WEIGHT:
            raise InvalidInputError(f"weights: {name} must be between {least} and {MAX_WEIGHT}")


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
    if len(only.where) > MAX_CONDITIONS:
        raise InvalidInputError(f"where must hold at most {MAX_CONDITIONS} items")
    for condition in only.where:
        read_condition(condition)


def check_times(only: Filter) -> None:
    """Refuse a time without an offset, and a period that ends before it begins."""
    for field in ("as_of", "at", "since", "until"):
        if (moment := getattr(only, field)) is not None:
            check_moment(field, moment)
    if only.since is not None and only.until is not None and only.since >= only.until:
        raise InvalidInputError("since must be before until")


def check_names(field: str, names: Sequence[str]) -> None:
    """Refuse too many names, or invalid ones."""
    if len(names) > MAX_NAMES:
        raise InvalidInputError(f"{field} must hold at most {MAX_NAMES} items")
    for name in names:
        check_line(field, name)


def check_weighing(weighing: StreamWeights) -> None:
    """Check that the weights of the three factors and their decay are within the limits of scoring."""
    if weighing.gains is not None and len(weighing.gains) != 3:
        raise InvalidInputError("multipliers must be three numbers: recency, similarity, importance")
    weights = (("recency", weighing.recency), ("similarity", weighing.similarity), ("importance", weighing.importance))
    for field, value in (*weights, *(("gains", gain) for gain in weighing.gains or ())):
        if value is not None and not 0 <= value <= MAX_WEIGHT:
            raise InvalidInputError(f"{field} must be between 0 and {MAX_WEIGHT}")
    if weighing.decay is not None and not 0 < weighing.decay <= 1:
        raise InvalidInputError("decay must be above 0 and at most 1")
