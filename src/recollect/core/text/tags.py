"""Keep a text inside the tags that stand around it in a prompt: it can neither close them nor look like one of them."""

from __future__ import annotations

import re
from string import ascii_lowercase, ascii_uppercase

OPENING_SIGNS, CLOSING_SIGNS, SLASHES = "<＜﹤˂ᐸ❮⟨〈", ">＞﹥˃ᐳ❯⟩〉", "/／⁄∕⧸╱"
WORDS = ("memories", "conversation")
"""The tags around what a model that answers users is shown."""
ALPHABETS = (0x24B6, 0x24D0, 0xFF21, 0xFF41, *range(0x1D400, 0x1D6A4, 26))
"""Where letters from A or a to Z stand once more: in circles, wide, and in the styles of mathematics."""
ALIKE = {
    "a": "аαɑᴀ", "c": "сϲᴄⅽ", "e": "еεҽᴇℯ", "i": "іιıɪⅰ1l|", "m": "мṃᴍⅿ", "n": "ոпɴη", "o": "оοօᴏσ0",
    "r": "гᴦʀ", "s": "ѕꜱʂ", "t": "тτᴛ", "v": "νѵᴠⅴ",
}  # fmt: skip
"""Letters of other scripts, and digits, that look like one of those that the words have."""
CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
INVISIBLE = re.compile("[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]+")
"""What is not seen and no script needs: it hides words from readers, not from models. Joiners stay."""
SIGNS = str.maketrans(dict.fromkeys(OPENING_SIGNS, "‹") | dict.fromkeys(CLOSING_SIGNS, "›"))


def spell(word: str) -> str:
    """Write a pattern for all that looks like a word, whatever stands between its letters and is none."""
    between = rf"[^\w{OPENING_SIGNS}]*"
    return between.join(f"[{re.escape(''.join(look_alikes(letter)))}]" for letter in word)


def look_alikes(letter: str) -> list[str]:
    """List what looks like a small letter."""
    place = ascii_lowercase.index(letter)
    styled = [chr(start + place) for start in ALPHABETS]
    return [letter, ascii_uppercase[place], *styled, *ALIKE.get(letter, ""), *ALIKE.get(letter, "").upper()]


TAG = re.compile(
    rf"[{OPENING_SIGNS}](?=[^\w{OPENING_SIGNS}>]*[{SLASHES}]"
    rf"|[^\w{OPENING_SIGNS}]*(?:{'|'.join(map(spell, WORDS))}))"
)
"""What could be read as the beginning of a tag; the search stops at the next sign."""


def defuse_tags(line: str) -> str:
    """Change every sign that could begin one of the tags; what is code or an address otherwise stays as it is."""
    return TAG.sub("‹", line if line.isprintable() else INVISIBLE.sub("", line))


def defuse_signs(line: str) -> str:
    """Change every sign that tags are made of: in notes for a model that nobody quotes from."""
    return (line if line.isprintable() else INVISIBLE.sub("", line)).translate(SIGNS)
