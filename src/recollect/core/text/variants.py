"""Fold the ways of writing one character into one: traditional and simplified Chinese, and Japanese shinjitai.

What is stored in a folded form (terms, keywords, names, topics) was folded by one version of these rules, and can be
compared with nothing that another version folded. So every scope has its version, and a call works by that of its
scope. Width is not a matter of versions: Unicode's own normalisation (NFKC) has always folded it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Final
from unicodedata import is_normalized, normalize

from recollect.errors import SchemaError, TextVersionError
from recollect.loading import read_data

PLAIN, NEWEST = 1, 2
"""The versions: 1 folds case and width alone, 2 variants, too. A release carries its own version and the one before."""
CARRIED = frozenset({PLAIN, NEWEST})
PACKAGE, EXTRA = "opencc_purepy", "engine"
TRADITIONAL = ("dicts/TSCharacters.txt", "e1e78e133f5e50072f76fd7c2dc08afee88d75cfe0ea708876e3ab7b763203d5")
SHINJITAI = ("dicts/JPShinjitaiCharacters.txt", "fbad90894bc99d0ef96a495652da93fd97761296b942736e1e31ffb13ab19bbc")
"""OpenCC's tables, and the digests of their bytes: another table would be another version."""
FORM: Final = "NFKC"
WIDTHS = {code: normalize(FORM, chr(code)) for code in (0x2026, 0x3000, *range(0xFF01, 0xFFF0))}
"""What Chinese texts hold of characters that have another width, or are several in one."""

_chosen: ContextVar[int] = ContextVar("text_version", default=NEWEST)


def text_version() -> int:
    """Return the version that the present call folds by."""
    return _chosen.get()


@contextmanager
def folding_by(version: int) -> Iterator[None]:
    """Fold by a version, in this task and in threads that it starts; by the newest if the version is not carried."""
    token = _chosen.set(NEWEST)
    choose_version(version)
    try:
        yield
    finally:
        _chosen.reset(token)


def choose_version(version: int) -> None:
    """Fold by a version from now on in this task, until the call ends that `folding_by` began."""
    _chosen.set(version if version in CARRIED else NEWEST)


def check_version(version: int) -> None:
    """Refuse to write to a scope that is folded by another version than this call, or by one that is not carried."""
    if version not in CARRIED:
        raise SchemaError(not_carried(version))
    if version != _chosen.get():
        raise TextVersionError(version)


def not_carried(version: int) -> str:
    """Say what to do about a version of the rules that this program does not carry."""
    known = " and ".join(map(str, sorted(CARRIED)))
    if version > NEWEST:
        return f"Terms are stored by version {version} of the text rules, this program carries {known}: update it."
    return (
        f"Terms are stored by version {version} of the text rules, this program carries {known}: run `recollect "
        "rewrite-terms` of a release that carries both, then update."
    )


def fold_characters(text: str) -> str:
    """Fold width, and variants if the version of the present call does: what terms, keywords and names begin with."""
    if text.isascii():
        return text
    table = WIDTHS if _chosen.get() == PLAIN else load_forms()
    # To normalise a text takes twice as long as to translate it, and then most texts need no more.
    folded = text.translate(table)
    return folded if is_normalized(FORM, folded) else normalize(FORM, text).translate(table)


def fold_variants(text: str) -> str:
    """Fold the variants of characters by the newest version; every character stays one, so positions do, too."""
    return text if text.isascii() else text.translate(load_table())


@cache
def load_table() -> dict[int, str]:
    """Read the table once: from a character to the one that stands for all its variants."""
    traditional, shinjitai = (_read_rows(read_data(PACKAGE, *file, EXTRA)) for file in (TRADITIONAL, SHINJITAI))
    one = dict(_choose_shinjitai(shinjitai)) | dict(_choose_traditional(traditional))
    return {ord(key): _follow(one, key) for key in one}


@cache
def load_forms() -> dict[int, str]:
    """Read the table of variants, and that of widths with it."""
    return WIDTHS | load_table()


def _read_rows(table: str) -> list[tuple[str, list[str]]]:
    """Read rows: a character, a tab, and the characters that it is written as, with blanks between."""
    rows = (line.split("\t") for line in table.splitlines() if line and not line.startswith("#"))
    return [(key, written.split()) for key, written in rows]


def _choose_traditional(rows: Sequence[tuple[str, list[str]]]) -> Iterator[tuple[str, str]]:
    """Choose rows with one target; beside an everyday character, or one of the standard, others are no second meaning.

    So 麼 is 么 although OpenCC also knows 麽; 乾 stays, because it depends on the meaning whether it is 干.
    """
    for key, targets in rows:
        known = [each for each in targets if each == key or _is_everyday(each)]
        usual = known or [each for each in targets if _encode(each, "gb2312")] or targets
        if len(usual) == 1 and usual[0] != key:
            yield key, usual[0]


def _choose_shinjitai(rows: Sequence[tuple[str, list[str]]]) -> Iterator[tuple[str, str]]:
    """Choose rows of characters that are no Chinese ones: 芸 is also another character in Chinese, 図 is not."""
    for key, targets in rows:
        others = [each for each in targets if each != key]
        usual = others if len(others) == 1 else [each for each in others if _encode(each, "big5")]
        if len(usual) == 1 and not _encode(key, "gb2312") and not _encode(key, "big5"):
            yield key, usual[0]


def _is_everyday(character: str) -> bool:
    """Tell whether a character is one of the 3,755 of the first level of the simplified standard GB 2312."""
    return b"\xb0" <= _encode(character, "gb2312")[:1] <= b"\xd7"


def _encode(character: str, standard: str) -> bytes:
    """Encode a character by a national standard; empty if the standard does not have it."""
    return character.encode(standard, "ignore")


def _follow(one: Mapping[str, str], character: str) -> str:
    """Follow a character to its end, so that folding twice changes nothing more."""
    seen = {character}
    while (character := one.get(character, character)) not in seen:
        seen.add(character)
    return min(seen) if character in one else character
