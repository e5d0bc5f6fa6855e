"""Whether something is known already: the same text after folding, or nearly the same terms."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from recollect.core.text.names import normalise_name
from recollect.core.text.similar import NEARLY, fold_text, is_same
from recollect.core.text.terms import analyse
from recollect.errors import InvalidInputError
from recollect.models.memories import IfNew, Kind, NewMemory

MOST_TERMS = 256
"""So many of its terms a text is looked for by."""
NUMBERS = re.compile(r"\d+")
NEGATIONS = re.compile(r"\b(?:not|no|never|none|nor|neither|without|cannot)\b|n['\u2019]t\b|[不没沒无無未非别別莫勿]")


@dataclass(frozen=True, slots=True)
class FoldedMemory:
    """What a memory says, in the form in which it is compared."""

    kind: Kind
    speaker: str
    text: str
    terms: frozenset[str] = field(repr=False)

    @property
    def marks(self) -> tuple[list[str], int]:
        """Give what turns a statement into another one though its terms stay: its numbers, how often it negates."""
        return sorted(NUMBERS.findall(self.text)), len(NEGATIONS.findall(self.text))


def word(memory: NewMemory) -> FoldedMemory:
    """Bring a new memory to the form in which it is compared."""
    return word_as(memory.kind, normalise_name(memory.speaker), memory.content)


def word_as(kind: Kind, speaker: str, content: str) -> FoldedMemory:
    """Bring what was said, by a speaker as names are compared, to the form in which it is compared."""
    return FoldedMemory(kind, speaker, fold_text(content), frozenset(analyse(content)))


def is_known(new: FoldedMemory, old: FoldedMemory, if_new: IfNew) -> bool:
    """Tell whether an old memory says what a new one does: of the same kind, by the same speaker."""
    if (new.kind, new.speaker) != (old.kind, old.speaker):
        return False
    if new.text == old.text:
        return True
    return if_new == "near" and bool(new.terms) and is_same(new.terms, old.terms) and new.marks == old.marks


@dataclass(frozen=True, slots=True)
class TermSearch:
    """By which terms a text is looked for: whatever is like it has one of `rare`, and `fewest` of all of them."""

    terms: Sequence[str]
    rare: Sequence[str]
    fewest: int


def search_by(wording: FoldedMemory, if_new: IfNew) -> TermSearch:
    """Choose the terms to look for; the longest first, because they are the rarest."""
    chosen = sorted(wording.terms, key=lambda term: (-len(term), term))[:MOST_TERMS]
    missing = len(wording.terms) - math.ceil(NEARLY * len(wording.terms)) if if_new == "near" else 0
    return TermSearch(chosen, chosen[: missing + 1], max(len(chosen) - missing, 1))


def check_if_new(if_new: str) -> None:
    """Refuse another measure."""
    if if_new not in {"", "same", "near"}:
        raise InvalidInputError("if_new must be empty, `same` or `near`")
