"""Gloss a text: Chinese becomes English words in the same order, other text stays unchanged."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import TypeAlias

from recollect.core.text.terms import UNSPACED, has_ideographs
from recollect.core.text.variants import fold_variants
from recollect.llm.local.gloss.dictionary import Dictionary
from recollect.llm.local.gloss.words import OWN

Tagged: TypeAlias = Sequence[tuple[str, str]]
"""Words with their parts of speech, in the notation of jieba."""

MAX_WORDS = 256
"""MiniLM reads this number of tokens, and a word has at least one: further words would not be read."""
MAX_CHARACTERS = 8192
MAX_CHINESE_CHARACTERS = 600
"""This number of Chinese characters always fills MiniLM's tokens; further ones are not looked up."""
MAX_PART_LENGTH = 4
REMEMBERED = 1 << 14

_PASSAGES = re.compile(rf"[^\W\d_{UNSPACED}](?:[^{UNSPACED}]*[^\W_{UNSPACED}])?")
"""Text in letters, with the figures and marks between them."""
_FIGURES = re.compile(r"\d+(?:[.,:/-]\d+)*[年月日号点时分秒岁元%]?|[\ud800-\udfff]")
"""Removed before words are split; also lone surrogates, which no tagger accepts."""
_NUMERALS = re.compile("[零〇一二两三四五六七八九十百千万亿几第半多余]+[年月日号点时分秒岁元块]?")
_PAUSE = frozenset(",.!?;:。、\n")
_NAMES = ("nr", "nrt", "nrfg")
_LEFT_OUT = frozenset("eoquxy")
"""Interjections, particles, measure words, and tags that are not words."""


def fold(text: str) -> str:
    """Normalize characters: width, compatibility forms, and variants of Chinese characters."""
    return fold_variants(unicodedata.normalize("NFKC", text))


class Gloss:
    """Glosses texts with a dictionary and a tagger, which splits Chinese into words with parts of speech."""

    def __init__(self, dictionary: Dictionary, tag: Callable[[str], Tagged]) -> None:
        self._dictionary, self._tag = dictionary, tag
        self._find = lru_cache(maxsize=REMEMBERED)(self._look_up)

    def gloss_text(self, text: str) -> str:
        """Return the gloss of a text's beginning; a text without Chinese is returned unchanged."""
        if not has_ideographs(text):
            return text
        words: list[str] = []
        for word in self._walk(fold(text[:MAX_CHARACTERS])):
            if word == "," and (not words or words[-1] == ","):
                continue
            words.append(word)
            if len(words) >= MAX_WORDS:
                break
        return " ".join(words).rstrip(", ")

    def can_read(self, text: str) -> bool:
        """Return whether any part of a text has a gloss."""
        return any(word != "," for word in self._walk(fold(text[:MAX_CHARACTERS])))

    def _walk(self, text: str) -> Iterator[str]:
        """Yield the glosses of Chinese words and the other passages, in order."""
        start, left = 0, MAX_CHINESE_CHARACTERS
        for passage in (*_PASSAGES.finditer(text), None):
            between = text[start : passage.start() if passage else None][:left]
            left -= len(between)
            for word, part in self._tag(_FIGURES.sub(" ", between)) if has_ideographs(between) else ():
                if gloss := self._gloss(word, part):
                    yield gloss
            if passage:
                yield passage[0]
                start = passage.end()

    def _gloss(self, word: str, part: str) -> str:
        if word in _PAUSE:
            return ","
        if part == "m" and _NUMERALS.fullmatch(word):
            return ""
        if (own := OWN.get(word)) is not None:
            return own
        if part[:1] in _LEFT_OUT or (part in _NAMES and self._is_name(word)):
            return ""
        return self._find(word)

    def _is_name(self, word: str) -> bool:
        """Return whether a word tagged as a name is not in the dictionary, and does not begin with such a word."""
        known = (self._dictionary.find_gloss(word[:end]) for end in range(len(word), 1, -1))
        return all(gloss is None for gloss in known)

    def _look_up(self, word: str) -> str:
        if (found := self._dictionary.find_gloss(word)) is not None:
            return found
        return " ".join(filter(None, self._cut(word))) if len(word) > 1 else ""

    def _cut(self, word: str) -> Iterator[str]:
        """Yield the glosses of a compound's parts, the longest known part first, from left to right."""
        start = 0
        while start < len(word):
            for end in range(min(len(word), start + MAX_PART_LENGTH), start, -1):
                known = self._part(word[start:end])
                if known is not None or end == start + 1:
                    yield known or ""
                    start = end
                    break

    def _part(self, part: str) -> str | None:
        return own if (own := OWN.get(part)) is not None else self._dictionary.find_gloss(part)
