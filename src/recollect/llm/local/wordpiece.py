"""The tokenizer of uncased BERT models, in pure Python."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence

UNKNOWN, FIRST, LAST = "[UNK]", "[CLS]", "[SEP]"
MAX_WORD_LENGTH = 100
"""A longer word is one unknown token, as in the models' training."""
CHARACTERS_PER_TOKEN = 32
"""Text beyond this many characters per token is not read, to limit the cost of huge texts."""
IDEOGRAPHS = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


class _Cleaning(dict[int, str | None]):
    """For str.translate: remove control characters, normalize blanks, separate ideographs."""

    def __missing__(self, codepoint: int) -> str | None:
        character = chr(codepoint)
        result: str | None = character
        if character in "\t\n\r":
            result = " "
        elif codepoint == 0xFFFD or unicodedata.category(character).startswith("C"):
            result = None
        elif character.isspace():
            result = " "
        elif any(low <= codepoint <= high for low, high in IDEOGRAPHS):
            result = f" {character} "
        self[codepoint] = result
        return result


class _Folding(dict[int, str | None]):
    """For str.translate after decomposition: remove accents, separate punctuation, lowercase the rest."""

    def __missing__(self, codepoint: int) -> str | None:
        character = chr(codepoint)
        category = unicodedata.category(character)
        result: str | None
        if category == "Mn":
            result = None
        elif category.startswith("P") or (codepoint < 128 and category.startswith("S")):
            result = f" {character} "
        else:
            # One character at a time: str.lower on a word would choose the final sigma.
            result = character.lower()
        self[codepoint] = result
        return result


class WordPiece:
    """Converts texts to token IDs: word by word, the longest known piece first."""

    def __init__(self, vocabulary: Sequence[str], room: int) -> None:
        self._ids = {token: number for number, token in enumerate(vocabulary)}
        self._room = room
        self._longest = max(map(len, vocabulary))
        self._unknown, self._first, self._last = (self._ids[token] for token in (UNKNOWN, FIRST, LAST))
        self._cleaning, self._folding = _Cleaning(), _Folding()

    def encode(self, text: str) -> list[int]:
        """Return the token IDs of the text's beginning, with the first and the last special token."""
        ids = [self._first]
        for word in self._split(text[: self._room * CHARACTERS_PER_TOKEN]):
            ids.extend(self._pieces(word))
            if len(ids) >= self._room:
                break
        return [*ids[: self._room - 1], self._last]

    def _split(self, text: str) -> list[str]:
        decomposed = unicodedata.normalize("NFD", text.translate(self._cleaning))
        return decomposed.translate(self._folding).split()

    def _pieces(self, word: str) -> list[int]:
        if (whole := self._ids.get(word)) is not None:
            return [whole]
        found = list(self._cut(word)) if len(word) <= MAX_WORD_LENGTH else [None]
        return [self._unknown] if None in found else [piece for piece in found if piece is not None]

    def _cut(self, word: str) -> Iterator[int | None]:
        """Yield the pieces from left to right; yield None and stop if no known piece fits."""
        start = 0
        while start < len(word):
            mark = "##" if start else ""
            for end in range(min(len(word), start + self._longest), start, -1):
                if (piece := self._ids.get(mark + word[start:end])) is not None:
                    yield piece
                    start = end
                    break
            else:
                yield None
                return
