"""Read a perceived triple: which keywords it asks for, in our way or in that of Generative Agents."""

from __future__ import annotations

import unicodedata

from recollect.core.keywords import file_under
from recollect.models.memories import Triple


def read_triple(triple: Triple) -> tuple[str, ...]:
    """Ask for all that a triple names, in the form memories are filed under."""
    return file_under((triple.subject, triple.predicate, triple.object))


def read_as_original(triple: Triple) -> tuple[str, ...]:
    """Ask only for what the original finds: it looks names with capitals or places up as written, and in vain."""
    named = (triple.subject, triple.predicate, triple.object)
    return file_under(tuple(name for name in named if name == name.lower() and ":" not in fold_width(name)))


def fold_width(text: str) -> str:
    """Write a text in the width that keywords have, so that its colons can be seen."""
    return unicodedata.normalize("NFKC", text)
