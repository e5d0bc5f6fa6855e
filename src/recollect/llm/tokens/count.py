"""Count tokens exactly like the model families, offline, with vocabularies of this package or of an extra.

All of these families use byte-pair encoding, so tiktoken runs them all. A vocabulary is loaded at its first use in a
process, and only if its checksum is right. Text that looks like a special token counts as text.
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
"""How many characters beyond the last token that fits to search for a longer prefix: another ending may need fewer
tokens."""
MAX_RECOUNTED_CHARACTERS = 200_000
"""Maximum number of characters to count again in a search, so that a text without a joint is also cut in bounded
time."""
JOINT = re.compile(r"(?<=[a-z\u4e00-\u9fa5])[ \n,.;:!?，。；：！？、]")
"""No token crosses such a place, so the text before it has the same count with any continuation."""
MAX_CHUNK_CHARACTERS = 200_000
"""Maximum number of characters to pass to tiktoken: its patterns fail on a run of a million blanks."""


class Tokenizer(Protocol):
    """Counts and cuts texts by the tokens of one family of models."""

    @property
    def name(self) -> str:
        """Return the name of the tokenizer, as in RECOLLECT_TOKENIZERS."""
        ...

    @property
    def frame(self) -> int:
        """Return the tokens of each chat message in addition to its text, including the role."""
        ...

    @property
    def naming(self) -> int:
        """Return the tokens of a message's name in addition to its text."""
        ...

    @property
    def priming(self) -> int:
        """Return the tokens that begin the answer, once per prompt."""
        ...

    def count(self, text: str) -> int:
        """Count the tokens of a text."""
        ...

    def cut(self, text: str, most: int) -> str:
        """Return the longest prefix of at most `most` tokens, never with half a character."""
        ...


class BytePairs:
    """Counts with a vocabulary, which is loaded at the first count."""

    def __init__(self, name: str) -> None:
        vocabulary = VOCABULARIES[name]
        self.name = name
        self.frame, self.naming, self.priming = vocabulary.frame, vocabulary.naming, vocabulary.priming
        self._composed = vocabulary.composed

    def count(self, text: str) -> int:
        """Count the tokens of a text."""
        return len(self._encode(text))

    def cut(self, text: str, most: int) -> str:
        """Return the longest prefix of at most `most` tokens, searching up to REACH characters."""
        if most <= 0 or len(tokens := self._encode(text)) <= most:
            return text if most > 0 else ""
        end = self._place(text, len(load_vocabulary(self.name).decode(tokens[:most], errors="ignore")))
        joint = _last_joint(text, end)
        room = most - self.count(text[:joint])
        farthest = min(len(text), end + min(REACH, MAX_RECOUNTED_CHARACTERS // (end - joint + 1)))
        fitting = (end for end in range(farthest, joint - 1, -1) if self.count(text[joint:end]) <= room)
        return text[: next(fitting, 0)]

    def _encode(self, text: str) -> list[int]:
        if self._composed:
            text = unicodedata.normalize("NFC", text)
        encoding = load_vocabulary(self.name)
        if len(text) <= MAX_CHUNK_CHARACTERS:
            return encoding.encode_ordinary(text)
        return [token for part in _parts(text) for token in encoding.encode_ordinary(part)]

    def _place(self, text: str, length: int) -> int:
        """Return the end of the prefix that has this length after composing its characters."""
        if not self._composed or unicodedata.is_normalized("NFC", text):
            return length
        ends = range(len(text) + 1)
        return bisect_right(ends, length, key=lambda end: len(unicodedata.normalize("NFC", text[:end]))) - 1


class Estimate:
    """Estimates by rules for models of any family, rather too many tokens than too few."""

    name = ESTIMATE
    # The most expensive of the known chat templates is Llama 3's.
    frame, naming, priming = 5, 1, 5

    def count(self, text: str) -> int:
        """Estimate the tokens of a text, too many rather than too few."""
        return estimate(text)

    def cut(self, text: str, most: int) -> str:
        """Return the longest prefix of at most `most` tokens."""
        if most <= 0 or estimate(text) <= most:
            return text if most > 0 else ""
        return text[: bisect_right(range(len(text)), most, key=lambda end: estimate(text[:end])) - 1]


def load_tokenizers(names: Sequence[str]) -> tuple[Tokenizer, ...]:
    """Return the named tokenizers in order; raise if one is missing. Vocabularies are loaded later."""
    return tuple(_choose(name) for name in dict.fromkeys(names))


def _choose(name: str) -> Tokenizer:
    if name == ESTIMATE:
        return Estimate()
    if name not in VOCABULARIES:
        raise SetupError(f"there is no tokenizer `{name}`; RECOLLECT_TOKENIZERS may name: {', '.join(TOKENIZERS)}")
    find_vocabulary(name)
    return BytePairs(name)


def _parts(text: str) -> Iterator[str]:
    """Split a huge text at joints, so that the counts of the parts add up; without joints, anywhere."""
    start = 0
    while len(text) - start > MAX_CHUNK_CHARACTERS:
        end = start + MAX_CHUNK_CHARACTERS
        joint = _last_joint(text, end)
        end = joint if joint > start else end
        yield text[start:end]
        start = end
    yield text[start:]


def _last_joint(text: str, end: int) -> int:
    for width in (200, 2_000, 20_000, MAX_CHUNK_CHARACTERS):
        joints = [found.start() for found in JOINT.finditer(text, max(0, end - width), end)]
        if joints:
            return joints[-1]
    return 0
