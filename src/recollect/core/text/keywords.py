"""Normalize the keywords of memories for writing and reading; the triple supplies missing keywords."""

from __future__ import annotations

from recollect.core.text.variants import fold_characters
from recollect.models.memories import Kind, Triple

MAX_KEYWORD_LENGTH = 500
"""A longer keyword would exceed the size of an index entry in some scripts."""
IDLE = frozenset({("is", "idle"), ("在", "空闲")})
"""Predicates and objects of idle things, in the languages of known simulations."""


def normalise_keyword(text: str) -> str:
    """Normalize a keyword, without the places before its last colon."""
    segments = fold_characters(text).casefold().split(":")
    words = [segment.split() for segment in segments]
    return " ".join(next((segment for segment in reversed(words) if segment), []))[:MAX_KEYWORD_LENGTH]


def keywords_of(triple: Triple, kind: Kind) -> tuple[str, ...]:
    """Return keywords from a triple: subject and object, and for a thought the predicate."""
    named = (triple.subject, triple.predicate, triple.object)
    chosen = named if kind is Kind.THOUGHT else (triple.subject, triple.object)
    return file_under(chosen)


def file_under(keywords: tuple[str, ...]) -> tuple[str, ...]:
    """Normalize keywords; drop empty and repeated ones."""
    return tuple(dict.fromkeys(filter(None, map(normalise_keyword, filter(None, keywords)))))


def is_idle(triple: Triple) -> bool:
    """Return whether a triple means that something is idle; such events are never in the stream."""
    if not triple.predicate:
        return False
    return (triple.predicate.strip().casefold(), triple.object.strip().casefold()) in IDLE


def counts_for_keywords(kind: Kind, triple: Triple) -> bool:
    """Return whether a memory increases the strength of its keywords: events and thoughts, except idle ones."""
    return kind in {Kind.EVENT, Kind.THOUGHT} and not is_idle(triple)
