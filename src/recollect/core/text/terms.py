"""Convert texts in any script to search terms, and compute the weights of terms."""

from __future__ import annotations

import math
import re
import threading
import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise
from typing import Protocol, TypeVar

import Stemmer

from recollect.core.text.variants import fold_characters
from recollect.core.text.words import QUESTION_PHRASES, QUESTION_WORDS, STOP_CHARACTERS, STOP_WORDS
from recollect.models.recall import Script

K1 = 1.2
"""Limits the effect of repeated terms (BM25)."""
B = 0.75
"""The effect of a memory's length (BM25). No other pair is better on all sets of bench/quality.py."""
PRIOR_MEMORIES = 10
PRIOR_LENGTH = 24.0
"""A new scope counts as if it had ten memories of 24 terms."""
MAX_WORD_LENGTH = 64
MAX_CUE_TERMS = 256
"""Maximum number of terms of a cue; the last ones are kept, because in a dialogue the newest words matter most."""
SLOTS = 999_999_999
"""pgvector's sparsevec has at most 1,000,000,000 dimensions, counted from 1."""
CJK_SHARE = 0.3
BEFORE = 400
"""Maximum characters of an utterance that is embedded with the next message. A longer one, such as an assistant's
answer, would displace the message itself, and its end alone means little."""
TERM_BITS = 36
"""The low bits of a 64-bit hash are for the term; the others are for the scope, so that its terms are adjacent."""
Term = TypeVar("Term")

_CJK = (
    "\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3041-\u3096\u309d-\u309f\u30a1-\u30fa"
    "\u30fc-\u312f\u3131-\u318e\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff"
    "\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
UNSPACED = _CJK + "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u1000-\u103f\u1780-\u17d3"
"""Thai, Lao, Burmese and Khmer also have no spaces between words."""
_MARKS = "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff"
r"""Vowel signs and accents, which `\\w` does not match although they occur inside words."""
_LETTERS = rf"(?:[^\W_{UNSPACED}]|[{_MARKS}])+"
_ASCII_WORDS = re.compile(r"[a-z0-9]+(?:'[a-z]+)*")
_RUNS = re.compile(rf"([{UNSPACED}]+)|({_LETTERS}(?:'{_LETTERS})*)")
_CJK_LETTER = re.compile(f"[{_CJK}]")
IDEOGRAPHS = "\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_IDEOGRAPH = re.compile(f"[{IDEOGRAPHS}]")
_QUESTION_PHRASE = re.compile("|".join(QUESTION_PHRASES))
_ACCENT = re.compile("[\u0300-\u036f]")
_CLITICS = frozenset(("s", "t", "m", "d", "re", "ve", "ll"))

_of_thread = threading.local()


def analyse(text: str) -> list[str]:
    """List the terms of a text to store, in order and with repetition."""
    return _split(_fold(text))


def analyse_cue(text: str) -> list[str]:
    """List the distinct search terms of a cue, without question words."""
    folded = _fold(text)
    asked = [term for term in _split(_QUESTION_PHRASE.sub(" ", folded)) if term not in _QUESTION_TERMS]
    return list(dict.fromkeys(asked or _split(folded)))[-MAX_CUE_TERMS:]


def _fold(text: str) -> str:
    if text.isascii():
        return text.lower()
    return fold_characters(text).casefold().replace("\u2019", "'")


def _split(folded: str) -> list[str]:
    if folded.isascii():
        return [root for word in _ASCII_WORDS.findall(folded) if (root := _root(word[:MAX_WORD_LENGTH]))]
    terms: list[str] = []
    for run, word in _RUNS.findall(folded):
        if run:
            terms += [character for character in run if character not in STOP_CHARACTERS]
            terms += [first + second for first, second in pairwise(run)]
        elif root := _root(word[:MAX_WORD_LENGTH]):
            terms.append(root)
    return terms


@lru_cache(maxsize=1 << 16)
def _root(word: str) -> str:
    """Return the stem of a word, or an empty text for a stop word."""
    if not word.isascii():
        word = unicodedata.normalize("NFKC", _ACCENT.sub("", unicodedata.normalize("NFKD", word)))
    head, apostrophe, tail = word.rpartition("'")
    word = (head if apostrophe and tail in _CLITICS else word).replace("'", "")
    return "" if word in STOP_WORDS else _stem(word)


def _stem(word: str) -> str:
    """Stem with this thread's stemmer: two threads must not use one instance at the same time."""
    stemmer = getattr(_of_thread, "stemmer", None)
    if stemmer is None:
        stemmer = _of_thread.stemmer = Stemmer.Stemmer("english", 0)
    return str(stemmer.stemWord(word))


_QUESTION_TERMS = frozenset(map(_stem, QUESTION_WORDS))


def term_weights(counts: Mapping[Term, int], average_length: float) -> dict[Term, float]:
    """Return the weight of each distinct term of a memory: the document side of BM25."""
    length = sum(counts.values())
    damping = K1 * (1 - B + B * length / average_length)
    if length == len(counts):
        return dict.fromkeys(counts, (K1 + 1) / (1 + damping))
    return {term: count * (K1 + 1) / (count + damping) for term, count in counts.items()}


def average_length(term_count: int, memory_count: int) -> float:
    """Return the average number of terms per memory, with a prior for new scopes."""
    return (term_count + PRIOR_MEMORIES * PRIOR_LENGTH) / (memory_count + PRIOR_MEMORIES)


def inverse_frequency(memory_count: int, containing: float) -> float:
    """Return how distinctive a term is that `containing` of the memories contain; never negative."""
    rest = max(memory_count - containing, 0.0)
    return math.log1p((rest + 0.5) / (containing + 0.5))


@lru_cache(maxsize=1 << 16)
def fingerprint_term(term: str) -> int:
    """Return a 64-bit hash of a term, equal in every scope; this is the expensive half."""
    return int.from_bytes(blake2b(term.encode(), digest_size=8).digest(), "big")


def within_scope(scope_id: int, fingerprint: int) -> int:
    """Return the signed 64-bit hash of a term in a scope: the scope's bits, then the term's."""
    return scope_bits(scope_id) | fingerprint & (1 << TERM_BITS) - 1


@lru_cache(maxsize=1 << 12)
def scope_bits(scope_id: int) -> int:
    """Return a hash of a scope as the 28 high bits of a signed 64-bit number."""
    digest = blake2b(scope_id.to_bytes(8, "big"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True) >> TERM_BITS << TERM_BITS


def hash_term(scope_id: int, term: str) -> int:
    """Return the signed 64-bit hash of a term in its scope."""
    return within_scope(scope_id, fingerprint_term(term))


def draw_number(*said: str) -> int:
    """Return a pseudo-random number of 31 bits from texts, for samples of a scope."""
    return int.from_bytes(blake2b("\0".join(said).encode(), digest_size=4).digest(), "big") >> 1


def term_position(fingerprint: int) -> int:
    """Return the position of a term in a sparse vector, counted from 1, the same in every scope."""
    return fingerprint % SLOTS + 1


def slot_of(term: str) -> int:
    """Return the position of a term in a sparse vector."""
    return term_position(fingerprint_term(term))


def indexed_text(speaker: str, content: str) -> str:
    """Join speaker and content: many cues ask for the speaker."""
    return f"{speaker}: {content}" if speaker else content


class Embeddable(Protocol):
    """Anything with a text to embed."""

    @property
    def speaker(self) -> str:
        """Return the speaker."""
        ...

    @property
    def content(self) -> str:
        """Return the content."""
        ...

    @property
    def embedding_text(self) -> str:
        """Return the text to embed instead, if any."""
        ...


def utterance_before(speaker: str, content: str) -> str:
    """Return the utterance before a message as embedded with it; empty if it is too long."""
    return indexed_text(speaker, content) if content.strip() and len(content) <= BEFORE else ""


def embedded_text(memory: Embeddable, before: str = "") -> str:
    """Return the text for a memory's vector: its own embedding text, or speaker and content after `before`."""
    said = indexed_text(memory.speaker, memory.content)
    return memory.embedding_text.strip() or (f"{before}\n{said}" if before else said)


def script_of(text: str) -> Script:
    """Return the dominant script of a text."""
    if text.isascii():
        return Script.WORDS
    folded = unicodedata.normalize("NFKC", text)
    letters = sum(map(str.isalpha, folded))
    return Script.CJK if letters and len(_CJK_LETTER.findall(folded)) >= CJK_SHARE * letters else Script.WORDS


def has_ideographs(text: str) -> bool:
    """Return whether a text contains Chinese characters."""
    return not text.isascii() and _IDEOGRAPH.search(text) is not None


def is_chinese(text: str) -> bool:
    """Return whether a text is Chinese, not Japanese or Korean: most letters are Chinese characters."""
    return script_of(text) is Script.CJK and 2 * len(_IDEOGRAPH.findall(text)) > len(_CJK_LETTER.findall(text))
