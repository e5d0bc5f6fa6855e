"""Normalise names and predicates for comparison, and compute how similar two names are."""

from __future__ import annotations

import re
import unicodedata

from recollect.core.text.variants import fold_characters

LONGEST_KEY = 500
"""More would not fit an index page in every script."""
SPOKEN_AROUND = " \"'`´‘’“”«»‹›„‚,;:!?…·、。，；：！？～~-–—_|()[]{}<>（）【】《》〈〉「」『』〔〕"
"""Characters around a name that are no part of it; "#", "+", "&" and the like are, as in C# and C++."""
CONTROL = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")
"""What no line of text may hold."""
INVISIBLE = frozenset({"Cc", "Cf", "Cs"})
POSSESSIVE = re.compile(r"(?<=\w)['’]s$")
HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
JOINTS = re.compile(r"[_\-–—]+")
VOWEL_SIGNS = frozenset({0, *range(10, 36), 84, 91, 103, 118, 129, 130, 132})
"""The combining classes that glibc takes for letters; accents, viramas and tones have others."""


def normalise_name(text: str) -> str:
    """Normalise an entity's name; a name of any script keeps its letters."""
    if not text:
        return ""
    folded = _fold(text)
    bare = folded
    while (shorter := _trim(bare)) != bare:
        bare = shorter
    return (bare or folded)[:LONGEST_KEY].rstrip()


def normalise_predicate(text: str) -> str:
    """Normalise a predicate: `WORKS_AT`, `worksAt` and "works at" are one."""
    return normalise_name(JOINTS.sub(" ", HUMP.sub(" ", text)))


def trigrams(text: str) -> frozenset[str]:
    """List the trigrams of a text as pg_trgm does: two blanks before each word, and one behind it.

    A Chinese name has no blanks within, so it is one word: n characters give n + 1 trigrams, and one character
    of two that differs leaves one trigram of five in common (李雷, 李磊: 0.2). Similarity finds Chinese names that
    begin alike (清华, 清华大学: 0.33), and hardly any that are misspelt. In a database of the locale C, pg_trgm takes
    no letter beyond ASCII for one; there this twin is none.
    """
    words = "".join(letter if _is_of_word(letter) else " " for letter in text.lower()).split()
    padded = (f"  {word} " for word in words)
    return frozenset(word[start : start + 3] for word in padded for start in range(len(word) - 2))


def similarity(one: str, other: str) -> float:
    """Compute the share of trigrams that two texts have in common, as pg_trgm does."""
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
    """Strip what surrounds a name: punctuation, the stop of a sentence, a possessive 's."""
    bare = text.strip(SPOKEN_AROUND).rstrip(". ")
    return POSSESSIVE.sub("", bare) if bare.endswith("s") else bare


def _is_of_word(letter: str) -> bool:
    """Tell what PostgreSQL takes for a letter or a digit where its locale is a UTF-8 one of glibc."""
    category = unicodedata.category(letter)
    if category in {"Mn", "Mc"}:
        return unicodedata.combining(letter) in VOWEL_SIGNS
    return letter.isalnum() and category != "No"
