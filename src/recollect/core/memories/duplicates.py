"""Check whether a memory is already known: equal normalized text, or nearly the same terms."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from recollect.core.text.names import normalize_name
from recollect.core.text.similarity import NEAR_DUPLICATE_RATIO, fold_text, is_same
from recollect.core.text.terms import analyse
from recollect.errors import InvalidInputError
from recollect.models.memories import IfNew, Kind, NewMemory

MAX_TERMS = 256
"""Maximum number of terms to search for."""
NUMBERS = re.compile(r"\d+")
NEGATIONS = re.compile(r"\b(?:not|no|never|none|nor|neither|without|cannot)\b|n['\u2019]t\b|[不没沒无無未非别別莫勿]")


@dataclass(frozen=True, slots=True)
class FoldedMemory:
    """A memory in the normalized form for comparisons."""

    kind: Kind
    speaker: str
    text: str
    terms: frozenset[str] = field(repr=False)

    @property
    def marks(self) -> tuple[list[str], int]:
        """Return features that change the meaning of equal terms: the numbers, and the count of negations."""
        return sorted(NUMBERS.findall(self.text)), len(NEGATIONS.findall(self.text))


def normalize(memory: NewMemory) -> FoldedMemory:
    """Convert a new memory to its form for comparisons."""
    return normalize_as(memory.kind, normalize_name(memory.speaker), memory.content)


def normalize_as(kind: Kind, speaker: str, content: str) -> FoldedMemory:
    """Convert a text to its form for comparisons; the speaker is already normalized."""
    return FoldedMemory(kind, speaker, fold_text(content), frozenset(analyse(content)))


def is_known(new: FoldedMemory, old: FoldedMemory, if_new: IfNew) -> bool:
    """Return whether an old memory equals a new one, with the same kind and speaker."""
    if (new.kind, new.speaker) != (old.kind, old.speaker):
        return False
    if new.text == old.text:
        return True
    return if_new == "near" and bool(new.terms) and is_same(new.terms, old.terms) and new.marks == old.marks


@dataclass(frozen=True, slots=True)
class TermSearch:
    """The terms to search for: every similar text has one of `rare`, and at least `fewest` of all terms."""

    terms: Sequence[str]
    rare: Sequence[str]
    fewest: int


def search_by(wording: FoldedMemory, if_new: IfNew) -> TermSearch:
    """Choose the terms to search for, the longest first, because they are the rarest."""
    chosen = sorted(wording.terms, key=lambda term: (-len(term), term))[:MAX_TERMS]
    missing = len(wording.terms) - math.ceil(NEAR_DUPLICATE_RATIO * len(wording.terms)) if if_new == "near" else 0
    return TermSearch(chosen, chosen[: missing + 1], max(len(chosen) - missing, 1))


def check_if_new(if_new: str) -> None:
    """Refuse unknown values of `if_new`."""
    if if_new not in {"", "same", "near"}:
        raise InvalidInputError('if_new must be "", "same" or "near"')
