"""Normalize names and predicates for comparison, and compute the similarity of names."""

from __future__ import annotations

import re
import unicodedata

from recollect.core.text.variants import fold_characters

MAX_KEY_LENGTH = 500
"""A longer key would exceed the size of an index entry in some scripts."""
NAME_BOUNDARY_CHARACTERS = " \"'`´‘’“”«»‹›„‚,;:!?…·、。，；：！？～~-–—_|()[]{}<>（）【】《》〈〉「」『』〔〕"
"""Characters around a name that do not belong to it; "#", "+", "&" and similar ones do, as in C# and C++."""
CONTROL = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")
"""Characters that a line of text must not contain."""
INVISIBLE = frozenset({"Cc", "Cf", "Cs"})
POSSESSIVE = re.compile(r"(?<=\w)['’]s$")
HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
JOINTS = re.compile(r"[_\-–—]+")
VOWEL_SIGNS = frozenset({0, *range(10, 36), 84, 91, 103, 118, 129, 130, 132})
"""The combining classes that glibc treats as letters; accents, viramas and tones have others."""


def normalize_name(text: str) -> str:
    """Normalize an entity's name; a name in any script keeps its letters."""
    if not text:
        return ""
    folded = _fold(text)
    bare = folded
    while (shorter := _trim(bare)) != bare:
        bare = shorter
    return (bare or folded)[:MAX_KEY_LENGTH].rstrip()


def normalise_predicate(text: str) -> str:
    """Normalize a predicate: `WORKS_AT`, `worksAt` and "works at" are equal."""
    return normalize_name(JOINTS.sub(" ", HUMP.sub(" ", text)))


def trigrams(text: str) -> frozenset[str]:
    """Return the trigrams of a text like pg_trgm: two blanks before each word, and one after it.

    A Chinese name has no blanks, so it is one word: n characters have n + 1 trigrams, and names of two characters with
    one difference share one trigram of five (李雷, 李磊: 0.2). Similarity finds Chinese names with the same beginning
    (清华, 清华大学: 0.33), but hardly any misspelled ones. In a database with the locale C, pg_trgm accepts only
    ASCII letters; this function then differs from it.
    """
    words = "".join(letter if _is_of_word(letter) else " " for letter in text.lower()).split()
    padded = (f"  {word} " for word in words)
    return frozenset(word[start : start + 3] for word in padded for start in range(len(word) - 2))


def similarity(one: str, other: str) -> float:
    """Return the share of trigrams that two texts have in common, like pg_trgm."""
    first, second = trigrams(one), trigrams(other)
    return len(first & second) / len(first | second) if first and second else 0.0


def _fold(text: str) -> str:
    if text.isascii() and text.isprintable():
        return " ".join(text.lower().split())
    shown = text if text.isprintable() else "".join(map(_show, text))
    composed = fold_characters(shown).casefold()
    return " ".join(unicodedata.normalize("NFKC", composed).split())


def _show(letter: str) -> str:
    if letter.isspace():
        return " "
    return "" if unicodedata.category(letter) in INVISIBLE else letter


def _trim(text: str) -> str:
    """Strip punctuation, the period of a sentence and a possessive 's from a name."""
    bare = text.strip(NAME_BOUNDARY_CHARACTERS).rstrip(". ")
    return POSSESSIVE.sub("", bare) if bare.endswith("s") else bare


def _is_of_word(letter: str) -> bool:
    """Return whether PostgreSQL treats a character as a letter or digit in a UTF-8 locale of glibc."""
    category = unicodedata.category(letter)
    if category in {"Mn", "Mc"}:
        return unicodedata.combining(letter) in VOWEL_SIGNS
    return letter.isalnum() and category != "No"
