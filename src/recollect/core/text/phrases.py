"""Label and summarize a text without a model, by its most distinctive phrases and sentences."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby

from recollect.core.text.keywords import file_under
from recollect.core.text.terms import analyse, script_of
from recollect.core.text.variants import fold_variants
from recollect.core.text.words import CHINESE_FILLERS, ENGLISH_FILLERS, LOOSE_END, LOOSE_FRONT, NAME_JOINTS, TITLES
from recollect.models.recall import Script

MIN_LABEL_WORDS, MAX_LABEL_WORDS, MAX_PHRASE_WORDS = 2, 4, 3
MIN_CHARACTERS, MAX_LABEL_CHARACTERS, MAX_LATIN_LENGTH, MAX_WEIGHED = 2, 8, 16, 5
MAX_LABEL_LENGTH, MAX_SUMMARY_LENGTH, MAX_KEYWORDS, MAX_SENTENCES = 60, 400, 8, 5
MAX_LENGTH_READ = 60_000
"""The maximum length of a segment, so no more of a text is read."""
NAME_GAIN, TITLE_GAIN, LATIN_GAIN, EARLY_GAIN = 2.0, 2.5, 1.5, 0.5
MIN_SHARE = 0.25
"""A sentence that adds less than this share of the first one's gain is left out."""

_SENTENCE = re.compile(rf"(?:\b(?i:{'|'.join(TITLES)})\.|[^.!?。！？…\n]|\.(?=\w))+[.!?。！？…]*[\"'”’」』）)]*")
_SIGNS = "\u0300-\u036f\u0900-\u109f\u1780-\u17ff"
"""Vowel signs and similar marks, which occur inside words."""
_WORD = re.compile(rf"[^\W_](?:[\w{_SIGNS}&'’.+#-]*[\w{_SIGNS}+#])?|[^\w\s]")
_POSSESSIVE = re.compile(r"['’]s$")
_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_RUN = re.compile(
    rf"《([^》\n]{{1,20}})》|([{_HAN}\u3005\u30a1-\u30fc\uac00-\ud7a3]+)|([A-Za-z](?:[A-Za-z0-9.+#-]*[A-Za-z0-9+#])?)"
)
_FILLER = re.compile("|".join(map(re.escape, sorted(CHINESE_FILLERS, key=len, reverse=True))))
_FILLER_TERMS = frozenset(chain.from_iterable(map(analyse, ENGLISH_FILLERS | CHINESE_FILLERS)))


@dataclass(frozen=True, slots=True)
class Phrase:
    """A candidate for a label: its text, its first position, and its weight."""

    text: str
    position: int
    weight: float


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a sentence, and whether it looks like a name."""

    text: str
    name: bool
    filler: bool


def distinctive_terms(text: str) -> tuple[str, ...]:
    """List the terms of a text that can indicate its topic: no stop words, no single characters."""
    terms = analyse(_FILLER.sub(" ", fold_variants(text[:MAX_LENGTH_READ])))
    return tuple(term for term in terms if term not in _FILLER_TERMS and (len(term) > 1 or term.isascii()))


def label(texts: Sequence[str]) -> str:
    """Return a label of texts, 2 to 4 words or 2 to 8 characters from them; empty if there are none."""
    text = "\n".join(texts)[:MAX_LENGTH_READ]
    ranked = _rank(text)
    if not ranked:
        return _begin(text)
    return ranked[0].text if script_of(text) is Script.CJK else _join_words(ranked)


def find_keywords(texts: Sequence[str], most: int = MAX_KEYWORDS) -> tuple[str, ...]:
    """Return the most distinctive phrases of texts as keywords."""
    return file_under(tuple(phrase.text for phrase in _rank("\n".join(texts)[:MAX_LENGTH_READ])))[:most]


def summarize(texts: Sequence[str], longest: int = MAX_SUMMARY_LENGTH) -> str:
    """Return the few sentences with most of the texts' terms, in order and within a length."""
    text = "\n".join(texts)[:MAX_LENGTH_READ]
    sentences = list(dict.fromkeys(split_sentences(text)))
    joint = "" if script_of(text) is Script.CJK else " "
    chosen = _cover(sentences, longest, len(joint))
    if not chosen:
        return _cut(sentences[0], longest) if sentences else ""
    return joint.join(sentences[index] for index in sorted(chosen))


def split_sentences(text: str) -> list[str]:
    """Split a text into sentences, with blanks normalized."""
    found = (" ".join(sentence.split()) for sentence in _SENTENCE.findall(text))
    return [sentence for sentence in found if any(map(str.isalnum, sentence))]


def _cover(sentences: Sequence[str], longest: int, joint: int) -> list[int]:
    """Choose the sentences that add most for their length, until none fits or adds enough."""
    terms = [frozenset(distinctive_terms(sentence)) for sentence in sentences]
    missing = {term: math.log1p(count) for term, count in Counter(chain.from_iterable(terms)).items()}
    chosen: list[int] = []
    room, least = longest, 0.0
    while len(chosen) < MAX_SENTENCES:
        gains = {
            index: sum(missing.get(term, 0.0) for term in terms[index]) / math.sqrt(len(sentence))
            for index, sentence in enumerate(sentences)
            if index not in chosen and len(sentence) <= room
        }
        best = max(gains, key=lambda index: gains[index], default=None)
        if best is None or gains[best] <= least:
            break
        least = max(least, gains[best] * MIN_SHARE)
        chosen.append(best)
        room -= len(sentences[best]) + joint
        for term in terms[best]:
            missing.pop(term, None)
    return chosen


def _rank(text: str) -> list[Phrase]:
    """Return the phrases of a text, the most distinctive first."""
    found = _phrases_of_characters(text) if script_of(text) is Script.CJK else _phrases_of_words(text)
    best: dict[str, Phrase] = {}
    for phrase in found:
        known = best.get(phrase.text.casefold())
        if known is None or phrase.weight > known.weight:
            best[phrase.text.casefold()] = phrase
    return sorted(best.values(), key=lambda phrase: (-phrase.weight, phrase.position))


def _phrases_of_words(text: str) -> Iterator[Phrase]:
    sentences = split_sentences(text)
    counts = Counter(analyse(text))
    names = _find_names(sentences)
    for sentence in sentences:
        for words in _chunk(sentence, names):
            weights = [_weigh_word(word, counts) for word in words]
            taken = _best_window(weights, MAX_LABEL_WORDS if words[0].name else MAX_PHRASE_WORDS)
            phrase = " ".join(word.text for word in words[taken])[:MAX_LABEL_LENGTH].strip()
            position = text.find(words[taken.start].text)
            yield Phrase(phrase, position, sum(weights[taken]) * _early(position, text))


def _best_window(weights: Sequence[float], width: int) -> slice:
    """Return the window of a list of words that has the most weight."""
    starts = range(max(len(weights) - width, 0) + 1)
    start = max(starts, key=lambda first: sum(weights[first : first + width]))
    return slice(start, start + width)


def _find_names(sentences: Iterable[str]) -> frozenset[str]:
    """Find capitalized words inside sentences, and the same words at the beginning of sentences."""
    names: set[str] = set()
    for sentence in sentences:
        words = [_POSSESSIVE.sub("", word) for word in _WORD.findall(sentence)]
        capitals = [word[0].isupper() and not _is_filler(word) for word in words]
        names.update(word for word, capital in zip(words[1:], capitals[1:], strict=True) if capital)
        if capitals[:2] == [True, True]:
            names.add(words[0])
    return frozenset(names)


def _chunk(sentence: str, names: frozenset[str]) -> Iterator[list[Word]]:
    """Split a sentence at fillers and punctuation; a name with small words inside is one piece."""
    words = [_read_word(word, names) for word in _WORD.findall(sentence)]
    for index in range(len(words) - 2, 0, -1):
        word, named = words[index], words[index + 1].name
        joins = word.text in NAME_JOINTS and words[index - 1].name
        if named and (joins or (len(word.text) > 1 and word.text[0].isupper())):
            words[index] = Word(word.text, name=True, filler=False)
    for (filler, _), group in groupby(words, key=lambda word: (word.filler, word.name)):
        if not filler:
            yield list(group)


def _read_word(text: str, names: frozenset[str]) -> Word:
    bare = _POSSESSIVE.sub("", text)
    return Word(bare, name=bare in names, filler=_is_filler(bare))


def _is_filler(word: str) -> bool:
    """Return whether a word has no topic: punctuation, a number, or a stop word."""
    head = re.split("['’]", word.casefold())[0]
    return not word[0].isalnum() or word.isdigit() or head in ENGLISH_FILLERS


def _weigh_word(word: Word, counts: Counter[str]) -> float:
    count = max((counts[term] for term in analyse(word.text)), default=1)
    return math.log1p(count) * (NAME_GAIN if word.name else 1.0)


def _join_words(ranked: Sequence[Phrase]) -> str:
    """Return the best phrase; a single word is extended with the next distinct phrases."""
    taken = [ranked[0]]
    for phrase in ranked[1:]:
        words = sum(len(each.text.split()) for each in taken)
        known = set(analyse(" ".join(each.text for each in taken)))
        if words >= MIN_LABEL_WORDS:
            break
        if words + len(phrase.text.split()) <= MAX_LABEL_WORDS and known.isdisjoint(analyse(phrase.text)):
            taken.append(phrase)
    taken.sort(key=lambda phrase: phrase.position)
    return " ".join(phrase.text for phrase in taken)[:MAX_LABEL_LENGTH].strip()


def _phrases_of_characters(text: str) -> Iterator[Phrase]:
    """Yield the pieces between fillers, and repeated parts of these pieces."""
    pieces = list(_take_apart(text))
    counts = Counter(chain.from_iterable(_substrings(piece.text) for piece in pieces))
    swallowed = {
        shorter for longer, count in counts.items() for shorter in (longer[1:], longer[:-1]) if counts[shorter] == count
    }
    for piece in pieces:
        early = _early(piece.position, text)
        yield replace(piece, weight=_weigh_characters(piece.text, counts[piece.text]) * piece.weight * early)
        for part in dict.fromkeys(_substrings(piece.text)):
            if counts[part] > 1 and part not in swallowed and part == _trim(part):
                position = piece.position + piece.text.find(part)
                yield Phrase(part, position, _weigh_characters(part, counts[part]) * early)


def _take_apart(text: str) -> Iterator[Phrase]:
    """Yield titles, Latin words, and the other runs of characters without fillers at their ends."""
    for run in _RUN.finditer(text):
        title, characters, word = run.groups()
        if title:
            yield Phrase(title[:MAX_LABEL_CHARACTERS], run.start(1), TITLE_GAIN)
        elif word and len(word) > 1 and word.casefold() not in ENGLISH_FILLERS:
            yield Phrase(word[:MAX_LATIN_LENGTH], run.start(), LATIN_GAIN)
        elif characters:
            start = run.start()
            for piece in _FILLER.sub(lambda filler: "\0" * len(filler[0]), characters).split("\0"):
                bare = _trim(piece)
                if len(bare) >= MIN_CHARACTERS:
                    yield Phrase(bare[:MAX_LABEL_CHARACTERS], start + piece.find(bare), 1.0)
                start += len(piece) + 1


def _trim(piece: str) -> str:
    """Strip fillers from the ends of a piece, unless too little would remain."""
    bare = piece.lstrip(LOOSE_FRONT).rstrip(LOOSE_END)
    return bare if len(bare) >= MIN_CHARACTERS else piece


def _substrings(piece: str) -> Iterator[str]:
    if not piece.isascii():
        for length in range(MIN_CHARACTERS, len(piece)):
            yield from (piece[start : start + length] for start in range(len(piece) - length + 1))
    yield piece


def _weigh_characters(text: str, count: int) -> float:
    return math.log1p(count) * math.sqrt(min(len(text), MAX_WEIGHED))


def _early(position: int, text: str) -> float:
    """Return a factor that favors early phrases, which usually name the topic."""
    return 1 + EARLY_GAIN * (1 - position / max(len(text), 1))


def _begin(text: str) -> str:
    """Label a text without distinctive phrases by its beginning."""
    sentences = split_sentences(text)
    if not sentences:
        return ""
    if script_of(text) is Script.CJK:
        return "".join(filter(str.isalnum, sentences[0]))[:MAX_LABEL_CHARACTERS]
    return " ".join(sentences[0].split()[:MAX_LABEL_WORDS])[:MAX_LABEL_LENGTH].strip(" .,;:!?")


def _cut(sentence: str, longest: int) -> str:
    return sentence if len(sentence) <= longest else sentence[: max(longest - 1, 0)].rstrip() + "…"
