"""Count tokens exactly as the model families do, offline: by vocabularies that this package or an extra carries.

Every family named here is a byte-pair encoding, so tiktoken runs them all; a vocabulary is read when its first text is
counted, once in a process, and only if its checksum is right. Text that looks like a special token counts as text.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Protocol

from recollect.core.text.tokens import ESTIMATE, TOKENIZERS, estimate
from recollect.errors import SetupError
from recollect.llm.tokens.vocabulary import VOCABULARIES, find_vocabulary, load_vocabulary

REACH = 64
"""How far beyond the last token that fits a longer prefix is searched: another ending may need fewer tokens."""
MOST_RECOUNTED = 200_000
"""Characters counted again at most while searching, so that a text without a joint is cut in bounded time too."""
JOINT = re.compile(r"(?<=[a-z\u4e00-\u9fa5])[ \n,.;:!?，。；：！？、]")
"""No token reaches across such a place, so what is before it counts the same with any continuation."""
MOST_AT_ONCE = 200_000
"""Characters passed to tiktoken at once: its patterns fail on a run of a million blanks."""


class Tokenizer(Protocol):
    """Count and cut a text by the tokens of one family of models."""

    @property
    def name(self) -> str:
        """Name the tokenizer, as RECOLLECT_TOKENIZERS does."""
        ...

    @property
    def frame(self) -> int:
        """Say how many tokens each chat message costs in addition to its text, the role included."""
        ...

    @property
    def naming(self) -> int:
        """Say how many tokens a message's name costs in addition to its text."""
        ...

    @property
    def priming(self) -> int:
        """Say how many tokens a prompt costs once, for the answer to begin."""
        ...

    def count(self, text: str) -> int:
        """Count the tokens of a text."""
        ...

    def cut(self, text: str, most: int) -> str:
        """Return the longest prefix of at most so many tokens, never half a character."""
        ...


class BytePairs:
    """Count by a vocabulary, which is read at the first count."""

    def __init__(self, name: str) -> None:
        vocabulary = VOCABULARIES[name]
        self.name = name
        self.frame, self.naming, self.priming = vocabulary.frame, vocabulary.naming, vocabulary.priming
        self._composed = vocabulary.composed

    def count(self, text: str) -> int:
        """Count the tokens of a text."""
        return len(self._encode(text))

    def cut(self, text: str, most: int) -> str:
        """Return the longest prefix of at most so many tokens, as far as REACH characters tell."""
        if most <= 0 or len(tokens := self._encode(text)) <= most:
            return text if most > 0 else ""
        end = self._place(text, len(load_vocabulary(self.name).decode(tokens[:most], errors="ignore")))
        joint = _last_joint(text, end)
        room = most - self.count(text[:joint])
        farthest = min(len(text), end + min(REACH, MOST_RECOUNTED // (end - joint + 1)))
        fitting = (end for end in range(farthest, joint - 1, -1) if self.count(text[joint:end]) <= room)
        return text[: next(fitting, 0)]

    def _encode(self, text: str) -> list[int]:
        if self._composed:
            text = unicodedata.normalize("NFC", text)
        encoding = load_vocabulary(self.name)
        if len(text) <= MOST_AT_ONCE:
            return encoding.encode_ordinary(text)
        return [token for part in _parts(text) for token in encoding.encode_ordinary(part)]

    def _place(self, text: str, length: int) -> int:
        """Find the end of the prefix that has this length once its characters are composed."""
        if not self._composed or unicodedata.is_normalized("NFC", text):
            return length
        ends = range(len(text) + 1)
        return bisect_right(ends, length, key=lambda end: len(unicodedata.normalize("NFC", text[:end]))) - 1


class Estimate:
    """Estimate by rules that hold for models of any family, rather too many than too few."""

    name = ESTIMATE
    # The most expensive of the known chat templates is Llama 3's.
    frame, naming, priming = 5, 1, 5

    def count(self, text: str) -> int:
        """Count the tokens of a text, too many rather than too few."""
        return estimate(text)

    def cut(self, text: str, most: int) -> str:
        """Return the longest prefix of at most so many tokens."""
        if most <= 0 or estimate(text) <= most:
            return text if most > 0 else ""
        return text[: bisect_right(range(len(text)), most, key=lambda end: estimate(text[:end])) - 1]


def load_tokenizers(names: Sequence[str]) -> tuple[Tokenizer, ...]:
    """Return the named tokenizers in this order; raise now if one is missing, and read vocabularies when needed."""
    return tuple(_choose(name) for name in dict.fromkeys(names))


def _choose(name: str) -> Tokenizer:
    if name == ESTIMATE:
        return Estimate()
    if name not in VOCABULARIES:
        raise SetupError(f"there is no tokenizer `{name}`; RECOLLECT_TOKENIZERS may name: {', '.join(TOKENIZERS)}")
    find_vocabulary(name)
    return BytePairs(name)


def _parts(text: str) -> Iterator[str]:
    """Split a huge text at joints, so that the parts count as the whole; a text without joints is cut anywhere."""
    start = 0
    while len(text) - start > MOST_AT_ONCE:
        end = start + MOST_AT_ONCE
        joint = _last_joint(text, end)
        end = joint if joint > start else end
        yield text[start:end]
        start = end
    yield text[start:]


def _last_joint(text: str, end: int) -> int:
    for width in (200, 2_000, 20_000, MOST_AT_ONCE):
        joints = [found.start() for found in JOINT.finditer(text, max(0, end - width), end)]
        if joints:
            return joints[-1]
    return 0
