"""Choose the senses of a Chinese word from CC-CEDICT's lines: at most two short ones, common senses first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product, zip_longest

from recollect.core.text.terms import IDEOGRAPHS

MAX_SENSES = 2
MAX_WORDS = 6
"""Maximum number of words to use of a sense that explains at length, such as a proverb's."""
_LINE = re.compile(r"(\S+) (\S+) \[([^\]]*)\] /(.*)/\s*$")
_WORD = rf"[{IDEOGRAPHS}|]*?([{IDEOGRAPHS}]+)"
_SAME_AS = re.compile(rf"(?:\w+ )?variant of {_WORD}(?:\[|$)|see (?:also )?{_WORD}\[", re.IGNORECASE)
_GRAMMAR = re.compile(
    r"(?:CL:|classifier|measure word|(?:\w+ )?particle\b|surname\b|used in |see |also written |also pr\. |Taiwan pr\. "
    r"|(?:\w+ )*variant of |abbr\. (?:for|to) [^,;]*$|\([^)]*\b(?:particle|prefix|suffix|complement|marker)\b)",
    re.IGNORECASE,
)
"""Notes about the use or spelling of a word, not about its meaning."""
_RARE = re.compile(
    r"\([^)]*\b(?:archaic|old|literary|dialect|obsolete|Tw|coll\.|slang|vulgar|bound form|onom\.|Buddhism|classical)"
)
_ASIDE = re.compile(rf"\([^)]*\)|\[[^\]]*\]|[{IDEOGRAPHS}·]+\|?")
_LITERAL = re.compile(r"^.*?\bfig\. ")
_KIND_OF_PLACE = re.compile(r" (?:subprovincial|(?:prefecture|county)-level)\b.*")
_OPENING = re.compile(r"^(?:(?:to be|to|a|an|the|one's|lit\.|fig\.|abbr\. (?:for|to)|esp\.) |[ ,.]+)+")
_STAND_IN = re.compile(r"\b(?:sb's|sb|sth|oneself|etc)\b|\.\.\.")


@dataclass(frozen=True, slots=True)
class Headword:
    """One line of the dictionary: a word, one of its readings, and the definitions for this reading."""

    forms: tuple[str, ...]
    """In simplified and in traditional characters."""
    proper: bool
    definitions: tuple[str, ...]


def read_entries(lines: Iterable[str]) -> Iterator[Headword]:
    """Parse the lines of the dictionary; comments are skipped."""
    for line in lines:
        if not line.startswith("#") and (found := _LINE.match(line)):
            traditional, simplified, reading, definitions = found.groups()
            forms = tuple(dict.fromkeys((simplified, traditional)))
            yield Headword(forms, reading[:1].isupper(), tuple(definitions.split("/")))


def choose_senses(entries: Iterable[Headword]) -> dict[str, str]:
    """Return the gloss of every word; a variant of a word has the gloss of that word."""
    by_form: dict[str, list[Headword]] = {}
    for entry in entries:
        for form in entry.forms:
            by_form.setdefault(form, []).append(entry)
    chosen = {form: rank_senses(of_form)[:MAX_SENSES] for form, of_form in by_form.items()}
    for form, of_form in by_form.items():
        if not chosen[form]:
            chosen[form] = find_variant_senses(of_form, chosen)
    return {form: " ".join(senses) for form, senses in chosen.items() if senses}


def find_variant_senses(entries: Sequence[Headword], chosen: Mapping[str, list[str]]) -> list[str]:
    """Return the senses of the word that a word without senses is a variant of."""
    for definition in (each for entry in entries for each in entry.definitions):
        if (found := _SAME_AS.match(definition)) and (senses := chosen.get(found[1] or found[2])):
            return senses
    return []


def rank_senses(entries: Sequence[Headword]) -> list[str]:
    """List the common senses of a word, alternating between readings; rare senses or names only if there are no others.

    The readings of a word are listed by sound. The reading with the most definitions is the usual one.
    """
    entries = sorted(entries, key=lambda entry: -len(entry.definitions))
    for proper, rare in product((False, True), repeat=2):
        of_readings = [
            [*_list_parts([each for each in entry.definitions if bool(_RARE.match(each)) is rare])]
            for entry in entries
            if entry.proper is proper
        ]
        if ranked := [sense for turn in zip_longest(*of_readings) for sense in turn if sense]:
            return list(dict.fromkeys(ranked))
    return []


def _list_parts(definitions: Sequence[str]) -> Iterator[str]:
    """Yield the first wording of every definition, then the others."""
    wordings = [each.split(";") for each in definitions if not _GRAMMAR.match(each)]
    for turn in zip_longest(*wordings):
        for wording in turn:
            if wording and (sense := clean(wording)):
                yield sense


def clean(wording: str) -> str:
    """Reduce a wording to its words: without remarks, an initial "to" or "the", or placeholders such as "sb"."""
    plain = _STAND_IN.sub("", _KIND_OF_PLACE.sub("", _ASIDE.sub("", _LITERAL.sub("", wording))))
    plain = _OPENING.sub("", plain.strip() + " ").partition(",")[0]
    return " ".join(plain.split()[:MAX_WORDS])
