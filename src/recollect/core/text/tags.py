"""Keep a text inside its tags in a prompt: it can neither close them nor contain similar tags."""

from __future__ import annotations

import re
from string import ascii_lowercase, ascii_uppercase

OPENING_SIGNS, CLOSING_SIGNS, SLASHES = "<＜﹤˂ᐸ❮⟨〈", ">＞﹥˃ᐳ❯⟩〉", "/／⁄∕⧸╱"
WORDS = ("memories", "conversation")
"""The tags in prompts for models that answer users."""
ALPHABETS = (0x24B6, 0x24D0, 0xFF21, 0xFF41, *range(0x1D400, 0x1D6A4, 26))
"""The first code points of further alphabets from A or a to Z: circled, full-width, and mathematical."""
ALIKE = {
    "a": "аαɑᴀ", "c": "сϲᴄⅽ", "e": "еεҽᴇℯ", "i": "іιıɪⅰ1l|", "m": "мṃᴍⅿ", "n": "ոпɴη", "o": "оοօᴏσ0",
    "r": "гᴦʀ", "s": "ѕꜱʂ", "t": "тτᴛ", "v": "νѵᴠⅴ",
}  # fmt: skip
"""Letters of other scripts, and digits, that look like letters of these words."""
CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
INVISIBLE = re.compile("[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]+")
"""Invisible characters that no script needs: they hide words from readers, not from models. Joiners stay."""
SIGNS = str.maketrans(dict.fromkeys(OPENING_SIGNS, "‹") | dict.fromkeys(CLOSING_SIGNS, "›"))


def confusable_pattern(word: str) -> str:
    """Return a pattern for everything that looks like a word, with any other characters between its letters."""
    between = rf"[^\w{OPENING_SIGNS}]*"
    return between.join(f"[{re.escape(''.join(list_confusables(letter)))}]" for letter in word)


def list_confusables(letter: str) -> list[str]:
    """List the characters that look like a small letter."""
    place = ascii_lowercase.index(letter)
    styled = [chr(start + place) for start in ALPHABETS]
    return [letter, ascii_uppercase[place], *styled, *ALIKE.get(letter, ""), *ALIKE.get(letter, "").upper()]


TAG = re.compile(
    rf"[{OPENING_SIGNS}](?=[^\w{OPENING_SIGNS}>]*[{SLASHES}]"
    rf"|[^\w{OPENING_SIGNS}]*(?:{'|'.join(map(confusable_pattern, WORDS))}))"
)
"""Anything that looks like the beginning of a tag; the search stops at the next sign."""


def escape_tags(line: str) -> str:
    """Replace every sign that could begin one of the tags; other code and addresses stay unchanged."""
    return TAG.sub("‹", line if line.isprintable() else INVISIBLE.sub("", line))


def escape_angle_brackets(line: str) -> str:
    """Replace all angle brackets, for notes that need no exact quotes."""
    return (line if line.isprintable() else INVISIBLE.sub("", line)).translate(SIGNS)
