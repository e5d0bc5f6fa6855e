"""File memories under keywords: one form for writing and reading, taken from the triple where none are given."""

from __future__ import annotations

from recollect.core.text.variants import fold_characters
from recollect.models.memories import Kind, Triple

LONGEST_KEYWORD = 500
"""More would not fit an index page in every script."""
IDLE = frozenset({("is", "idle"), ("在", "空闲")})
"""Predicates of a thing that does nothing, in the languages of known simulations."""


def normalise_keyword(text: str) -> str:
    """Normalise a keyword, without the places named before it."""
    segments = fold_characters(text).casefold().split(":")
    words = [segment.split() for segment in segments]
    return " ".join(next((segment for segment in reversed(words) if segment), []))[:LONGEST_KEYWORD]


def keywords_of(triple: Triple, kind: Kind) -> tuple[str, ...]:
    """Take keywords from a triple: its subject and object; of a thought the predicate, too."""
    named = (triple.subject, triple.predicate, triple.object)
    chosen = named if kind is Kind.THOUGHT else (triple.subject, triple.object)
    return file_under(chosen)


def file_under(keywords: tuple[str, ...]) -> tuple[str, ...]:
    """Normalise keywords and drop what is empty or said twice."""
    return tuple(dict.fromkeys(filter(None, map(normalise_keyword, filter(None, keywords)))))


def is_idle(triple: Triple) -> bool:
    """Tell whether a triple says that something does nothing; such events are never in the stream."""
    if not triple.predicate:
        return False
    return (triple.predicate.strip().casefold(), triple.object.strip().casefold()) in IDLE


def strengthens(kind: Kind, triple: Triple) -> bool:
    """Tell whether a memory makes its keywords stronger: events and thoughts do, idle ones do not."""
    return kind in {Kind.EVENT, Kind.THOUGHT} and not is_idle(triple)
