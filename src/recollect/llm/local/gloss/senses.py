"""Choose the senses of a Chinese word from CC-CEDICT's lines: at most two, short, the usual ones first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product, zip_longest

from recollect.core.text.terms import IDEOGRAPHS

MOST_SENSES = 2
MOST_WORDS = 6
"""Of a sense that explains at length, as those of proverbs do, only so many words are used."""
_LINE = re.compile(r"(\S+) (\S+) \[([^\]]*)\] /(.*)/\s*$")
_WORD = rf"[{IDEOGRAPHS}|]*?([{IDEOGRAPHS}]+)"
_SAME_AS = re.compile(rf"(?:\w+ )?variant of {_WORD}(?:\[|$)|see (?:also )?{_WORD}\[", re.IGNORECASE)
_GRAMMAR = re.compile(
    r"(?:CL:|classifier|measure word|(?:\w+ )?particle\b|surname\b|used in |see |also written |also pr\. |Taiwan pr\. "
    r"|(?:\w+ )*variant of |abbr\. (?:for|to) [^,;]*$|\([^)]*\b(?:particle|prefix|suffix|complement|marker)\b)",
    re.IGNORECASE,
)
"""What says how a word is used or written, and not what it means."""
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
    """One line of the dictionary: a word, one of its readings, and what it means in it."""

    forms: tuple[str, ...]
    """In simplified and in traditional characters."""
    proper: bool
    definitions: tuple[str, ...]


def read_entries(lines: Iterable[str]) -> Iterator[Headword]:
    """Read the lines of the dictionary; comments are passed over."""
    for line in lines:
        if not line.startswith("#") and (found := _LINE.match(line)):
            traditional, simplified, reading, definitions = found.groups()
            forms = tuple(dict.fromkeys((simplified, traditional)))
            yield Headword(forms, reading[:1].isupper(), tuple(definitions.split("/")))


def choose_senses(entries: Iterable[Headword]) -> dict[str, str]:
    """Give every word its gloss; one that is only another way to write a word has that word's."""
    by_form: dict[str, list[Headword]] = {}
    for entry in entries:
        for form in entry.forms:
            by_form.setdefault(form, []).append(entry)
    chosen = {form: rank_senses(of_form)[:MOST_SENSES] for form, of_form in by_form.items()}
    for form, of_form in by_form.items():
        if not chosen[form]:
            chosen[form] = follow(of_form, chosen)
    return {form: " ".join(senses) for form, senses in chosen.items() if senses}


def follow(entries: Sequence[Headword], chosen: Mapping[str, list[str]]) -> list[str]:
    """Find the senses of the word that a word without a sense is a variant of."""
    for definition in (each for entry in entries for each in entry.definitions):
        if (found := _SAME_AS.match(definition)) and (senses := chosen.get(found[1] or found[2])):
            return senses
    return []


def rank_senses(entries: Sequence[Headword]) -> list[str]:
    """List what a word usually means, readings in turn; what it rarely means, or names, only where that is all.

    The readings of a word are listed by their sound. The one that has most to say of it is the usual one.
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
    """Reduce a wording to its words: no remarks, no opening "to" or "the", no stand-ins such as "sb"."""
    plain = _STAND_IN.sub("", _KIND_OF_PLACE.sub("", _ASIDE.sub("", _LITERAL.sub("", wording))))
    plain = _OPENING.sub("", plain.strip() + " ").partition(",")[0]
    return " ".join(plain.split()[:MOST_WORDS])
