"""Convert variants of a character to one form: traditional and simplified Chinese, and Japanese shinjitai.

Terms, keywords, names and topics are stored and compared in this form.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Final
from unicodedata import is_normalized, normalize

from recollect.loading import read_data

PACKAGE, EXTRA = "opencc_purepy", "engine"
TRADITIONAL = ("dicts/TSCharacters.txt", "e1e78e133f5e50072f76fd7c2dc08afee88d75cfe0ea708876e3ab7b763203d5")
SHINJITAI = ("dicts/JPShinjitaiCharacters.txt", "fbad90894bc99d0ef96a495652da93fd97761296b942736e1e31ffb13ab19bbc")
"""OpenCC's tables, and the digests of their bytes: another table would not match stored terms."""
FORM: Final = "NFKC"
WIDTHS = {code: normalize(FORM, chr(code)) for code in (0x2026, 0x3000, *range(0xFF01, 0xFFF0))}
"""Characters in Chinese texts that have another width, or combine several characters."""


def fold_characters(text: str) -> str:
    """Normalize width and variants: the first step for terms, keywords and names."""
    if text.isascii():
        return text
    table = load_forms()
    # Normalizing a text takes twice as long as translating it, and most translated texts need no normalization.
    folded = text.translate(table)
    return folded if is_normalized(FORM, folded) else normalize(FORM, text).translate(table)


def fold_variants(text: str) -> str:
    """Convert variants of characters, one by one, so that positions stay the same."""
    return text if text.isascii() else text.translate(load_table())


@cache
def load_table() -> dict[int, str]:
    """Return the table from each character to the form of all its variants."""
    traditional, shinjitai = (_read_rows(read_data(PACKAGE, *file, EXTRA)) for file in (TRADITIONAL, SHINJITAI))
    one = dict(_choose_shinjitai(shinjitai)) | dict(_choose_traditional(traditional))
    return {ord(key): _follow(one, key) for key in one}


@cache
def load_forms() -> dict[int, str]:
    """Return the table of variants and widths."""
    return WIDTHS | load_table()


def _read_rows(table: str) -> list[tuple[str, list[str]]]:
    """Parse rows: a character, a tab, and its forms, separated by blanks."""
    rows = (line.split("\t") for line in table.splitlines() if line and not line.startswith("#"))
    return [(key, written.split()) for key, written in rows]


def _choose_traditional(rows: Sequence[tuple[str, list[str]]]) -> Iterator[tuple[str, str]]:
    """Choose rows with one target; an everyday or standard character takes precedence over others.

    So 麼 becomes 么, although OpenCC also knows 麽; 乾 stays, because only some of its meanings are written 干.
    """
    for key, targets in rows:
        known = [each for each in targets if each == key or _is_everyday(each)]
        usual = known or [each for each in targets if _encode(each, "gb2312")] or targets
        if len(usual) == 1 and usual[0] != key:
            yield key, usual[0]


def _choose_shinjitai(rows: Sequence[tuple[str, list[str]]]) -> Iterator[tuple[str, str]]:
    """Choose rows whose characters do not exist in Chinese: 芸 is also a Chinese character, 図 is not."""
    for key, targets in rows:
        others = [each for each in targets if each != key]
        usual = others if len(others) == 1 else [each for each in others if _encode(each, "big5")]
        if len(usual) == 1 and not _encode(key, "gb2312") and not _encode(key, "big5"):
            yield key, usual[0]


def _is_everyday(character: str) -> bool:
    """Return whether a character is one of the 3,755 of the first level of GB 2312."""
    return b"\xb0" <= _encode(character, "gb2312")[:1] <= b"\xd7"


def _encode(character: str, standard: str) -> bytes:
    """Encode a character in a national standard; empty if the standard lacks it."""
    return character.encode(standard, "ignore")


def _follow(one: Mapping[str, str], character: str) -> str:
    """Follow the table to its end, so that a second conversion changes nothing."""
    seen = {character}
    while (character := one.get(character, character)) not in seen:
        seen.add(character)
    return min(seen) if character in one else character
